#include "src/perf/method_frames.h"

#include "contracts/stack_walk/machine.h"
#include "contracts/stack_walk/unwind_entry.h"
#include "src/api/session.h"
#include "src/api/source_lines.h"

enum {
    FUNCTIONS_MAX = 4 * 1024 * 1024, /* of all methods, which can share a table in a damaged core */
    BYTES_MAX = 1024 * 1024 * 1024,  /* of code that is read for all of them */
};

DEFINE_VECTOR_FUNCTIONS(frame_rows, struct frame_row);

void method_frames_init(struct method_frames *frames, struct cdacq_session *session)
{
    const struct walk_machine *machine = walk_machine_find(session->target->layout.architecture);
    *frames = (struct method_frames){.session = session,
                                     .unwinder = machine && machine->unwinder->rows ? machine->unwinder : NULL};
}

void method_frames_deinit(struct method_frames *frames)
{
    frame_rows_deinit(&frames->rows);
}

const struct frame_machine *method_frames_machine(const struct method_frames *frames)
{
    return frames->unwinder ? frames->unwinder->machine : NULL;
}

/* The part of a block that holds `address`, and the index of its range. NULL if only a walk finds its method. */
static const struct block_part *find_part(struct cdacq_session *session, uint64_t address, size_t *ret_range)
{
    const struct code_map *map = session_map(session);
    const struct code_range *range = map ? code_map_range(map, address) : NULL;
    if (!range || address - range->section.begin > UINT32_MAX)
        return NULL;
    *ret_range = (size_t)(range - map->ranges);
    const struct session_range *table = session_table(session, *ret_range);
    const struct block_part *part =
        table ? code_table_find(table->table, (uint32_t)(address - range->section.begin)) : NULL;
    return part && (part->kind == PART_HOT || part->kind == PART_COLD) ? part : NULL;
}

bool method_block(struct cdacq_session *session, uint64_t address, struct code_block *ret)
{
    struct field_reader *reader = &session->reader;
    struct execution_manager *manager = &session->target->manager;
    size_t range;
    const struct block_part *part = find_part(session, address, &range);
    reader_begin(&reader->raw, FUEL_LOOKUP);
    if (part ? code_map_block(manager, reader, &session->map->ranges[range], part, ret)
             : execution_manager_find(manager, reader, address, ret))
        return code_block_is_method(ret);
    return false;
}

const struct method_record *method_record_at(struct cdacq_session *session, uint64_t address, bool with_lines)
{
    struct cdacq_method answer;
    size_t range;
    const struct block_part *part = find_part(session, address, &range);
    if (!part)
        return session_find_record(session, address, &answer);
    struct method_record *record = session_record(session, range, part);
    if (!record || !with_lines || record->has_il_map)
        return record;
    const struct module_pdb *pdb = session_module_pdb(session, record->module);
    struct code_block block;
    if (pdb && pdb->usable && method_block(session, address, &block)) {
        record_read_il_map(session, record, &block);
        record_read_source(session, record);
    }
    return record;
}

void method_frames_visit(struct method_frames *frames, const struct code_block *block,
                         void (*visit)(const struct unwind_function *function, const struct frame_rows *rows,
                                       void *context),
                         void *context)
{
    struct field_reader *reader = &frames->session->reader;
    struct unwind_table table = unwind_entry_table(reader, block);
    for (uint32_t i = 0; i < table.count && frames->unwinder; i++) {
        struct unwind_function function;
        bool epilogs;
        if (frames->functions + frames->left_out > FUNCTIONS_MAX || frames->bytes > BYTES_MAX) {
            frames->left_out += table.count - i;
            return;
        }
        reader_begin(&reader->raw, FUEL_LOOKUP);
        bool is_funclet = unwind_entry_is_funclet(reader, block, &table, i);
        bool is_read =
            !reader_failed(&reader->raw) && unwind_entry_read(reader, block, &table, i, is_funclet, &function);
        frames->bytes = add_saturated(frames->bytes, is_read ? function.end - function.begin : 0);
        if (!is_read || !frames->unwinder->rows(&reader->raw, &function, &frames->rows, &epilogs) ||
            !frames->rows.count) {
            frames->left_out++;
            continue;
        }
        frames->functions++;
        frames->without_epilogs += !epilogs;
        visit(&function, &frames->rows, context);
    }
}
