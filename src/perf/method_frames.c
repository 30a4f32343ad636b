#include "src/perf/method_frames.h"

#include "contracts/stack_walk/machine.h"
#include "contracts/stack_walk/unwind_entry.h"

enum { FUNCTIONS_MAX = 4 * 1024 * 1024 }; /* of all methods, which can share a table in a damaged core */

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

bool method_block(struct cdacq_session *session, uint64_t address, struct code_block *ret)
{
    struct field_reader *reader = &session->reader;
    struct execution_manager *manager = &session->target->manager;
    const struct code_map *map = session_map(session);
    const struct code_range *range = map ? code_map_range(map, address) : NULL;
    const struct session_range *table = range ? session_table(session, (size_t)(range - map->ranges)) : NULL;
    const struct block_part *part = table && address - range->section.begin <= UINT32_MAX
                                        ? code_table_find(table->table, (uint32_t)(address - range->section.begin))
                                        : NULL;
    bool is_method = part && (part->kind == PART_HOT || part->kind == PART_COLD);
    reader_begin(&reader->raw, FUEL_LOOKUP);
    if (is_method ? code_map_block(manager, reader, range, part, ret)
                  : execution_manager_find(manager, reader, address, ret))
        return code_block_is_method(ret);
    return false;
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
        if (frames->functions + frames->left_out > FUNCTIONS_MAX) {
            frames->left_out += table.count - i;
            return;
        }
        reader_begin(&reader->raw, FUEL_LOOKUP);
        bool is_funclet = unwind_entry_is_funclet(reader, block, &table, i);
        if (reader_failed(&reader->raw) || !unwind_entry_read(reader, block, &table, i, is_funclet, &function) ||
            !frames->unwinder->rows(&reader->raw, &function, &frames->rows, &epilogs) || !frames->rows.count) {
            frames->left_out++;
            continue;
        }
        frames->functions++;
        frames->without_epilogs += !epilogs;
        visit(&function, &frames->rows, context);
    }
}
