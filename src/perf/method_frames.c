#include "src/perf/method_frames.h"

#include "contracts/execution_manager/code_map.h"
#include "contracts/execution_manager/execution_manager.h"
#include "contracts/stack_walk/machine.h"
#include "contracts/stack_walk/unwind_entry.h"
#include "src/files/module_pdb.h"
#include "src/lookup/answer.h"
#include "src/lookup/find.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/source_lines.h"
#include "src/lookup/index.h"
#include "src/lookup/il_offsets.h"

enum {
    FUNCTIONS_MAX = 4 * 1024 * 1024, /* of all methods, which can share a table in a damaged core */
    BYTES_MAX = 1024 * 1024 * 1024,  /* of code that is read for all of them */
};

DEFINE_VECTOR_FUNCTIONS(frame_rows, struct frame_row);

void method_frames_init(struct method_frames *frames, struct cdacq_session *session)
{
    const struct walk_machine *machine = walk_machine_find(session->resolver.target->layout.architecture);
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
    const struct code_map *map = resolver_map(&session->resolver);
    const struct code_range *range = map ? code_map_range(map, address) : NULL;
    if (!range || address - range->section.begin > UINT32_MAX)
        return NULL;
    *ret_range = (size_t)(range - map->ranges);
    const struct index_range *table = resolver_table(&session->resolver, *ret_range);
    const struct block_part *part =
        table ? code_table_find(table->table, (uint32_t)(address - range->section.begin)) : NULL;
    return part && (part->kind == PART_HOT || part->kind == PART_COLD) ? part : NULL;
}

bool method_block(struct cdacq_session *session, uint64_t address, struct code_block *ret)
{
    struct reader *reader = &session->resolver.reader;
    struct execution_manager *manager = &session->resolver.target->manager;
    size_t range;
    const struct block_part *part = find_part(session, address, &range);
    reader_begin(reader, FUEL_LOOKUP);
    if (part ? code_map_block(manager, reader, &session->resolver.index.map->ranges[range], part, ret)
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
        return answer_find(&session->resolver, address, &answer);
    struct method_record *record = resolver_record(&session->resolver, range, part);
    if (!record || !with_lines || record->has_il_map)
        return record;
    const struct module_pdb *pdb = resolver_module_pdb(&session->resolver, record->module);
    struct code_block block;
    if (pdb && pdb->usable && method_block(session, address, &block)) {
        record_read_il_map(&session->resolver, record, &block);
        record_read_source(&session->resolver, record);
    }
    return record;
}

void method_frames_visit(struct method_frames *frames, const struct code_block *block,
                         void (*visit)(const struct unwind_function *function, const struct frame_rows *rows,
                                       void *context),
                         void *context)
{
    struct reader *reader = &frames->session->resolver.reader;
    struct unwind_table table = unwind_entry_table(reader, block);
    for (uint32_t i = 0; i < table.count && frames->unwinder; i++) {
        struct unwind_function function;
        bool epilogs;
        if (frames->functions + frames->left_out > FUNCTIONS_MAX || frames->bytes > BYTES_MAX) {
            frames->left_out += table.count - i;
            return;
        }
        reader_begin(reader, FUEL_LOOKUP);
        bool is_funclet = unwind_entry_is_funclet(reader, block, &table, i);
        bool is_read = !reader_failed(reader) && unwind_entry_read(reader, block, &table, i, is_funclet, &function);
        frames->bytes = add_saturated(frames->bytes, is_read ? function.end - function.begin : 0);
        if (!is_read || !frames->unwinder->rows(reader, &function, &frames->rows, &epilogs) || !frames->rows.count) {
            frames->left_out++;
            continue;
        }
        frames->functions++;
        frames->without_epilogs += !epilogs;
        visit(&function, &frames->rows, context);
    }
}
