#include "target/threads.h"

#include <signal.h>

#include "util/error.h"

enum cdacq_status target_threads(struct target *target, struct threads *ret, struct cdacq_error *err)
{
    *ret = (struct threads){0};
    if (!target->ops->threads)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "an image file has no threads");
    return target->ops->threads(target, ret, err);
}

static const struct register_machine *machine_of(const struct target *target, struct cdacq_error *err)
{
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    if (!machine)
        error_set(err, CDACQ_ERR_FORMAT, 0, "threads of ELF machine %u cannot be read", target->elf_machine);
    return machine;
}

/* ---- Cores ---- */

/* Whether a signal can have ended a process that a debugger had stopped, for which it also uses signals. */
static bool is_fatal(int number)
{
    return number == SIGSEGV || number == SIGABRT || number == SIGBUS || number == SIGILL || number == SIGFPE ||
           number == SIGSYS || number == SIGQUIT;
}

/*
 * Linux writes the thread that died first, with the process's only NT_SIGINFO, and the signal into every NT_PRSTATUS.
 * createdump writes signal and NT_SIGINFO for the thread that crashed, wherever it is in the list. gdb writes what each
 * thread stopped for, and the current thread first. Without NT_SIGINFO the signal identifies a thread only if no other
 * one has it.
 */
size_t threads_find_dead(const struct core_threads *notes, bool by_debugger)
{
    size_t signals = 0, last = notes->count;
    for (size_t i = 0; i < notes->count; i++) {
        const struct thread_notes *thread = &notes->items[i];
        if (thread->signal.signal && (!by_debugger || is_fatal(thread->signal.signal)))
            return i;
        if (thread->status.signal && (!by_debugger || is_fatal(thread->status.signal))) {
            signals++;
            last = i;
        }
    }
    return signals == 1 ? last : notes->count;
}

/* The signal of one thread. Linux gives every thread that of the one that died. */
static int signal_of(const struct thread_notes *thread, bool died, bool by_debugger)
{
    int status = died || by_debugger ? thread->status.signal : 0;
    return thread->signal.signal ? thread->signal.signal : status;
}

enum cdacq_status threads_of_core(const struct target *target, const struct core_threads *notes, struct elf_class elf,
                                  const struct core_prpsinfo *process, bool by_debugger, struct threads *ret,
                                  struct cdacq_error *err)
{
    const struct register_machine *machine = machine_of(target, err);
    size_t dead = threads_find_dead(notes, by_debugger);
    if (!notes->count)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "the core has no threads: it holds memory only");
    if (!machine)
        return CDACQ_ERR_FORMAT;
    if (!threads_reserve(ret, notes->count))
        return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory for %zu threads", notes->count);
    for (size_t i = 0; i < notes->count; i++) {
        /* The one that died comes first, then those before it. */
        size_t index = dead == notes->count || i > dead ? i : i ? i - 1 : dead;
        const struct thread_notes *thread = &notes->items[index];
        struct target_thread *added = &ret->items[ret->count++];
        *added = (struct target_thread){
            .tid = thread->status.tid,
            .inner_tid = thread->status.tid, /* the kernel writes ids as the process has them */
            .signal = signal_of(thread, index == dead, by_debugger),
            .died = index == dead,
        };
        if (added->tid == process->pid)
            memcpy(added->name, process->name, sizeof added->name);
        registers_from_kernel(machine, thread->status.registers, thread->status.registers_size, elf.big,
                              &added->registers);
        added->mode = registers_mode(machine, thread->status.registers, thread->status.registers_size);
    }
    return CDACQ_OK;
}

/* ---- Processes ---- */

bool threads_append_live(struct threads *threads, const struct target *target, int tid, const uint8_t *registers,
                         size_t size)
{
    const struct register_machine *machine = register_machine_find(target->elf_machine);
    struct target_thread thread = {.tid = tid, .inner_tid = tid};
    if (machine)
        thread.mode = registers_mode(machine, registers, size);
    return machine &&
           registers_from_kernel(machine, registers, size, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, &thread.registers) &&
           threads_append(threads, thread);
}
