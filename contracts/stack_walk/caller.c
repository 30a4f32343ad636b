#include "contracts/stack_walk/caller.h"

#include "contracts/execution_manager/execution_manager.h"
#include "contracts/stack_walk/guess.h"
#include "contracts/stack_walk/unwind_entry.h"

enum { LEAF_MAX = 4096 }; /* bytes of a function of the runtime that has no unwind data */

static uint64_t pc_of(const struct caller_search *search)
{
    return search->registers->values[search->machine->pc];
}

static uint64_t sp_of(const struct caller_search *search)
{
    return search->registers->values[search->machine->sp];
}

static struct reader *reader_of(const struct caller_search *search)
{
    return search->host->reader;
}

void caller_find_code(const struct caller_search *search, struct code_at *ret)
{
    uint64_t address = pc_of(search) - search->is_call;
    ret->is_known = execution_manager_find(search->host->manager, search->host->reader, address, &ret->block);
    ret->is_known &= !reader_failed(reader_of(search));
}

/* Reads the unwind entry that covers the program counter. Fails the reader if there is none. */
static bool find_unwind_function(const struct caller_search *search, struct code_at *code, struct unwind_function *ret)
{
    struct reader *reader = search->host->reader;
    const struct code_block *block = &code->block;
    if (!block_function_find(reader, block, &code->function) || !code->function.entry) {
        reader_fail(reader_of(search), CDACQ_ERR_CORRUPT, block->ip, "no unwind data cover the program counter");
        return false;
    }
    bool is_funclet;
    return block_is_funclet(reader, block, &is_funclet) &&
           unwind_entry_read(reader, block, &code->function.table, code->function.index, is_funclet, ret);
}

/*
 * To stop a thread, the runtime replaces a return address on its stack by one of its own. The slot of that address
 * belongs to this frame if it is in the part of the stack that the frame frees when it returns. The caller then gets
 * the original address.
 */
static void undo_hijack(const struct caller_search *search, struct registers *caller)
{
    uint64_t slot = search->thread->hijacked_slot;
    if (slot < sp_of(search) || slot >= caller->values[search->machine->sp])
        return;
    uint64_t address =
        walk_machine_code_address(search->machine, reader_of(search), read_pointer(reader_of(search), slot));
    if (address == caller->values[search->machine->pc] && !reader_failed(reader_of(search)))
        register_set(caller, search->machine->pc,
                     walk_machine_code_address(search->machine, reader_of(search), search->thread->hijacked_address));
    reader_recover(reader_of(search), FAILURE_BUT_FUEL);
}

static bool step_managed(const struct caller_search *search, struct code_at *code, struct registers *caller)
{
    struct unwind_function function;
    if (!find_unwind_function(search, code, &function) ||
        !search->machine->unwinder->unwind(reader_of(search), &function, !search->is_call, caller))
        return false;
    undo_hijack(search, caller);
    return true;
}

/* Whether stubs of this kind leave the stack and the link register as their call set them, at every instruction. */
static bool is_frameless(enum cdacq_code_kind kind)
{
    return kind == CDACQ_CODE_JUMP_STUB || kind == CDACQ_CODE_DYNAMIC_HELPER || kind == CDACQ_CODE_STUB_PRECODE ||
           kind == CDACQ_CODE_FIXUP_PRECODE || kind == CDACQ_CODE_VSD_DISPATCH_STUB ||
           kind == CDACQ_CODE_VSD_VTABLE_STUB || kind == CDACQ_CODE_CALL_COUNTING_STUB ||
           kind == CDACQ_CODE_COPIED_WRITE_BARRIERS;
}

struct guess caller_guess(const struct caller_search *search)
{
    uint64_t base = search->thread->stack_base;
    return (struct guess){.manager = search->host->manager,
                          .reader = search->host->reader,
                          .machine = search->machine,
                          .stack_base = base && sp_of(search) < base ? base : 0,
                          .is_native = search->host->is_native,
                          .context = search->host->context};
}

bool caller_return_address(const struct caller_search *search, uint64_t *ret, struct call_site *ret_site)
{
    const struct walk_machine *machine = search->machine;
    struct guess guess = caller_guess(search);
    bool in_register = machine->return_address != NO_REGISTER;
    if (search->is_call || machine->callee_pops ||
        (in_register && !register_is_known(search->registers, machine->return_address)))
        return false;
    *ret = in_register ? search->registers->values[machine->return_address]
                       : read_pointer(reader_of(search), sp_of(search));
    *ret = walk_machine_code_address(machine, reader_of(search), *ret);
    return !reader_failed(reader_of(search)) && guess_is_return_address(&guess, *ret, ret_site);
}

void caller_return_to(const struct caller_search *search, uint64_t address, struct registers *caller)
{
    register_set(caller, search->machine->pc, address);
    if (search->machine->return_address == NO_REGISTER)
        register_set(caller, search->machine->sp, sp_of(search) + reader_of(search)->pointer_size);
    registers_keep(caller, walk_machine_preserved(search->machine));
    undo_hijack(search, caller);
}

/*
 * Steps out of code that has no frame. That is certain only in stubs that never have one, in code to which the call
 * before the return address leads, and after a call through a null pointer.
 */
static bool step_frameless(const struct caller_search *search, const struct code_at *code, struct registers *caller)
{
    struct call_site site;
    uint64_t address;
    if (!caller_return_address(search, &address, &site))
        return false;
    bool is_stub = code->is_known && is_frameless(code->block.kind);
    bool is_callee = !code->is_known && site.is_managed && site.target <= pc_of(search) &&
                     pc_of(search) - site.target < LEAF_MAX && site.target;
    bool is_null_call =
        !pc_of(search) && !search->is_call && !site.target; /* no code has run, so the stack is as the call left it */
    if (is_stub || is_callee || is_null_call)
        caller_return_to(search, address, caller);
    return is_stub || is_callee || is_null_call;
}

/* Steps out of a linkage table, which may lack call-frame information: its entries only jump and have no frame. */
static bool step_linkage(const struct caller_search *search, struct registers *caller)
{
    struct call_site site;
    uint64_t address;
    if (!search->machine->is_linkage || !search->machine->is_linkage(reader_of(search), pc_of(search)) ||
        !caller_return_address(search, &address, &site))
        return false;
    caller_return_to(search, address, caller);
    return true;
}

enum native_step caller_find(const struct caller_search *search, struct code_at *code, struct registers *caller,
                             struct native_frame_info *info, enum cdacq_frame_source *ret_by)
{
    bool found;
    *ret_by = CDACQ_FRAME_BY_UNWIND;
    bool is_method = code->is_known && code_block_is_method(&code->block);
    if (is_method && !code->block.manager->by_call_frames) {
        found = step_managed(search, code, caller);
    } else if ((code->is_known && !is_method) || !search->host->step || reader_failed(reader_of(search))) {
        found = step_frameless(search, code, caller);
    } else {
        enum native_step result =
            search->host->step(search->host->context, reader_of(search), !search->is_call, caller, info);
        if (result == NATIVE_STEPPED)
            *ret_by = CDACQ_FRAME_BY_CFI;
        if (result != NATIVE_UNKNOWN)
            return result;
        found = step_linkage(search, caller) || step_frameless(search, code, caller);
    }
    return found ? NATIVE_STEPPED : NATIVE_UNKNOWN;
}
