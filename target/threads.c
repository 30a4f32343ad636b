#include "target/threads.h"

#include "util/error.h"

enum cdacq_status target_threads(struct target *target, struct threads *ret, struct cdacq_error *err)
{
    *ret = (struct threads){0};
    if (!target->ops->threads)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "an image file has no threads");
    return target->ops->threads(target, ret, err);
}

bool threads_append_live(struct threads *threads, const struct target *target, int tid, const uint8_t *registers,
                         size_t size)
{
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    struct target_thread thread = {.tid = tid, .inner_tid = tid};
    bool has_registers = machine && registers_from_kernel(machine, registers, size,
                                                          __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, &thread.registers);
    if (has_registers)
        thread.mode = registers_mode(machine, registers, size);
    thread.call = has_registers ? registers_call(machine, registers, size) : 0;
    return threads_append(threads, thread) && has_registers;
}
