/*
 * unwind_steps.c: steps a thread of a live .NET process one instruction at a time and judges the x64 unwinder, for
 * unwind_steps.py.
 *
 *     unwind_steps PID STEPS METHODS SECONDS
 *
 * Every call instruction leaves a record: where the return address is, what it is, and the registers that the caller
 * had. These records are the truth. At each instruction of managed code, one frame is unwound from the thread's
 * registers and compared with the innermost record: program counter, stack pointer, registers that calls preserve. At
 * each call out of managed code, the frame is also unwound from the return address, as that of a frame which is not the
 * innermost. The run ends after STEPS instructions of managed code and METHODS compiled by the JIT, or after SECONDS. A
 * record ends when the stack pointer is above its return address: returns, tail calls, exceptions and stubs that jump
 * need no rule of their own.
 *
 * Native functions are run over where nothing managed can be within them: a call is stepped through the first time, and
 * if it was long and met no managed code, the next one runs to its return address, where a breakpoint of the processor
 * stops it. The runtime's suspension signal is handled the same way. If an exception passes the breakpoint, the word on
 * the stack that holds the return address is written again sooner or later, which a second breakpoint notices. All
 * records are then forgotten, and frames are judged again from the next call on.
 *
 * The runtime replaces a return address to stop a thread when it returns (hijacking). Then the stack's own word is the
 * return address expected, and the step is counted as such.
 *
 * A collection moves objects and updates references to them, also where a frame has saved a caller's register. Such a
 * register is counted, not judged: the thread ran at its own speed since the call, and both values are in writable
 * memory without a name. A funclet need not preserve its caller's registers, because the method's body has saved what
 * the method changes; the unwinder then must not claim to know them.
 *
 * Prints counts, one "NAME NUMBER" a line; a line "MISMATCH ..." for the first of each function.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#undef PAGE_SIZE /* target/pages.h has its own */

#include "cdacq.h"
#include "util/vector.h"
#include "contracts/unwind/unwinder.h"
#include "target/memory.h"

enum {
    RBX = 3,
    RBP = 6,
    RSP = 7,
    R12 = 12,
    R13,
    R14,
    R15,
    RIP,
    EM_X86_64_ = 62,
    ANSWERS = 1 << 20, /* kept for program counters; a power of two */
    PAGES = 1024,      /* the same for memory */
    PAGE = 4096,
    STACK_MAX = 64 << 20,
    CALL_MAX = 15, /* bytes of an instruction */
    MISMATCH_LINES = 40,
    CALLEES = 1 << 16, /* kept; a power of two */
    LONG_CALL = 64,    /* instructions */
    RUN_SECONDS = 2,
};

static const uint8_t preserved[] = {RBX, RBP, R12, R13, R14, R15};

struct call {
    uint64_t slot, return_address;
    struct registers caller; /* at the call instruction */
    uint64_t callee;
    uint64_t step, managed, runs; /* the counts when it was made */
};

/* What is known of the calls of an address. */
struct callee {
    uint64_t address;
    bool managed; /* managed code ran within one */
    bool is_long;
};

struct function {
    struct unwind_function entry;
    uint64_t method, method_desc; /* start of its method */
    bool jitted, funclet, filter, cold, frame_register, chained;
    uint64_t steps, mismatches;
};

struct kept_page {
    uint64_t address;
    uint64_t read;  /* in this step; UINT64_MAX: the slot is empty */
    uint64_t asked; /* the last step that asked for it */
    bool is_stack;
    uint8_t bytes[PAGE];
};

struct answer {
    uint64_t pc;
    uint32_t function; /* index + 1; 0: none */
};

DEFINE_VECTOR(call_list, struct call);
DEFINE_VECTOR(function_list, struct function);

static pid_t process;
static uint64_t runtime_begin, runtime_end; /* of libcoreclr.so */
static uint64_t stack_end;                  /* of the thread's own stack: handlers of signals may have another */
static uint64_t step_count;
static struct kept_page pages[PAGES];
static struct answer *answers;
static struct function_list functions;
static struct call_list calls;
static struct callee callees[CALLEES];
static int pending_signal;          /* for the next step to deliver */
static volatile sig_atomic_t ticks; /* of RUN_SECONDS */
static struct cdacq_target *live;
static struct cdacq_session *session;
static time_t opened;
static struct reader reader;

static struct {
    uint64_t steps, managed, prolog, epilog, funclet, jit, r2r, returns, hijacked, unknown, mismatches, signals;
    uint64_t run_over, lost, moved, not_known, replaced;
} counts;

/* How often the thread ran at its own speed: only then are there collections. */
static uint64_t runs(void)
{
    return counts.signals + counts.run_over;
}

static void die(const char *what)
{
    fprintf(stderr, "unwind_steps: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- Memory ----------------------------------------------------------------------------------------------------- */

static bool read_memory(uint64_t address, void *buffer, size_t size)
{
    struct iovec local = {buffer, size}, remote = {(void *)(uintptr_t)address, size};
    return process_vm_readv(process, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static bool on_stack(uint64_t address)
{
    return address < stack_end && stack_end - address < STACK_MAX;
}

/* Whether an address is in memory that has no name; writable: as a collection has not given it back. */
static bool in_heap(uint64_t address, bool writable)
{
    char path[64], line[512];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/maps", process);
    FILE *maps = fopen(path, "re");
    while (maps && !found && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        char access[8];
        int name = 0;
        if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %n", &begin, &end, access, &name) == 3 && name)
            found = address >= begin && address < end && !line[name] && (!writable || access[1] == 'w');
    }
    if (maps)
        fclose(maps);
    return found;
}

/*
 * The slot of a page. What was asked for in this step keeps its slot: the reader may return to its bytes without asking
 * again.
 */
static struct kept_page *slot_of(uint64_t begin)
{
    enum { PROBES = 16 };
    struct kept_page *unused = NULL;
    for (size_t i = 0; i < PROBES; i++) {
        struct kept_page *page = &pages[(begin / PAGE + i) % PAGES];
        if (page->read != UINT64_MAX && page->address == begin)
            return page;
        if (!unused && (page->read == UINT64_MAX || page->asked != step_count))
            unused = page;
    }
    return unused;
}

/* The stack is read again at each step; code and unwind data, when a new function is met. */
static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    uint64_t begin = address & ~(uint64_t)(PAGE - 1);
    struct kept_page *page = slot_of(begin);
    (void)context;
    if (!page)
        return false;
    if (page->read == UINT64_MAX || page->address != begin || (page->is_stack && page->read != step_count)) {
        page->read = UINT64_MAX;
        if (!read_memory(begin, page->bytes, PAGE))
            return false;
        page->read = step_count;
        page->address = begin;
        page->is_stack = on_stack(begin);
    }
    page->asked = step_count;
    *ret_begin = begin;
    *ret_end = begin + PAGE;
    *ret_bytes = page->bytes;
    return true;
}

static void forget_pages(void)
{
    for (size_t i = 0; i < PAGES; i++)
        pages[i].read = UINT64_MAX;
}

/* ---- Functions -------------------------------------------------------------------------------------------------- */

/* What the library read of the process is as it was then; code that is newer needs a new target. */
static void open_process(void)
{
    struct cdacq_error error;
    cdacq_session_destroy(session);
    cdacq_target_close(live);
    session = NULL;
    live = NULL;
    if (cdacq_target_open_pid(process, NULL, &live, &error) < 0 || cdacq_session_create(live, &session, &error) < 0) {
        fprintf(stderr, "unwind_steps: %s\n", error.message);
        exit(2);
    }
    memset(answers, 0, ANSWERS * sizeof *answers);
    opened = time(NULL);
}

static bool describe(uint64_t pc, struct function *ret)
{
    struct cdacq_block block;
    uint64_t entry, hot_size, cold_start, cold_size;
    uint32_t words[3];
    uint8_t info[4];
    if (cdacq_session_code_block_at(session, pc, &block, NULL) != CDACQ_OK ||
        cdacq_block_get_unwind_info(&block, session, &entry, NULL) < 0 || !entry ||
        cdacq_block_get_method_region_info(&block, session, &hot_size, &cold_start, &cold_size, NULL) < 0 ||
        !read_memory(entry, words, sizeof words))
        return false;
    uint64_t base = cdacq_block_get_unwind_info_base_address(&block), start = cdacq_block_get_start_address(&block);
    *ret = (struct function){
        .entry = {.base = base, .begin = base + words[0], .end = base + words[1], .unwind_data = base + words[2]},
        .method = start,
        .method_desc = cdacq_block_get_method_desc(&block),
        .jitted = cdacq_block_get_jit_type(&block) == CDACQ_JIT_TYPE_JIT,
        .cold = cold_size && pc >= cold_start && pc < cold_start + cold_size,
    };
    if (cold_size) {
        ret->entry.other_begin = ret->cold ? start : cold_start;
        ret->entry.other_end = ret->cold ? start + hot_size : cold_start + cold_size;
    }
    if (cdacq_block_is_funclet(&block, session, &ret->funclet, NULL) < 0 ||
        cdacq_block_is_filter_funclet(&block, session, &ret->filter, NULL) < 0 ||
        !read_memory(ret->entry.unwind_data, info, sizeof info))
        return false;
    ret->entry.funclet = ret->funclet;
    ret->frame_register = info[3] & 15;
    ret->chained = info[0] >> 3 & 4;
    return pc >= ret->entry.begin && pc < ret->entry.end;
}

/* The function of managed code at pc, or NULL. */
static struct function *function_at(uint64_t pc)
{
    struct answer *answer = &answers[(pc ^ pc >> 20) % ANSWERS];
    struct function found;
    if (answer->pc == pc)
        return answer->function ? &functions.items[answer->function - 1] : NULL;
    *answer = (struct answer){.pc = pc};
    for (size_t i = functions.count; i-- > 0 && !answer->function;)
        if (pc >= functions.items[i].entry.begin && pc < functions.items[i].entry.end)
            answer->function = (uint32_t)i + 1;
    if (!answer->function && describe(pc, &found)) {
        if (!function_list_append(&functions, found))
            die("functions");
        forget_pages();
        answer->function = (uint32_t)functions.count;
    }
    return answer->function ? &functions.items[answer->function - 1] : NULL;
}

/* ---- Judging ---------------------------------------------------------------------------------------------------- */

static void report(struct function *function, const struct registers *at, bool interrupted, const char *what,
                   uint64_t expected, uint64_t found)
{
    static unsigned lines;
    struct cdacq_method method = {.size = sizeof method};
    counts.mismatches++;
    if (function->mismatches++ || lines++ >= MISMATCH_LINES)
        return;
    uint8_t code[16] = {0};
    read_memory(at->values[RIP], code, sizeof code);
    bool named = cdacq_session_method_at(session, function->entry.begin, &method, NULL) == CDACQ_OK;
    printf("MISMATCH %s%s %#" PRIx64 "+%#" PRIx64 " of %#" PRIx64 " %s: %s, expected %#" PRIx64 ", found %#" PRIx64
           ", rsp %#" PRIx64 ", rbp %#" PRIx64 ", code",
           named && method.name ? method.name : "?", interrupted ? "" : " (return address)", function->entry.begin,
           at->values[RIP] - function->entry.begin, function->method, function->jitted ? "jit" : "r2r", what, expected,
           found, at->values[RSP], at->values[RBP]);
    for (unsigned i = 0; i < sizeof code; i++)
        printf(" %02x", code[i]);
    puts("");
    fflush(stdout);
}

/* Unwinds a frame and compares it with the record of the call that made it. */
static void judge(struct function *function, const struct registers *at, bool interrupted, const struct call *truth)
{
    struct registers found = *at;
    uint64_t in_memory = 0;
    read_memory(truth->slot, &in_memory, sizeof in_memory);
    counts.hijacked += in_memory != truth->return_address;
    reader_forget(&reader, NULL); /* memory has changed */
    reader_begin(&reader, FUEL_LOOKUP);
    if (!unwinder_x64.unwind(&reader, &function->entry, interrupted, &found)) {
        report(function, at, interrupted, reader_failure(&reader).what, 0, reader_failure(&reader).address);
        return;
    }
    if (found.values[RIP] != in_memory)
        report(function, at, interrupted, "rip", in_memory, found.values[RIP]);
    else if (found.values[RSP] != truth->slot + 8)
        report(function, at, interrupted, "rsp", truth->slot + 8, found.values[RSP]);
    for (unsigned i = 0; i < ARRAY_SIZE(preserved) && found.values[RSP] == truth->slot + 8; i++) {
        static const char *const names[] = {"rbx", "rbp", "r12", "r13", "r14", "r15"};
        uint64_t expected = truth->caller.values[preserved[i]], value = found.values[preserved[i]];
        if (!register_is_known(&found, preserved[i]) && function->funclet) {
            counts.not_known++;
        } else if (expected != value && runs() != truth->runs && in_heap(expected, false) && in_heap(value, true)) {
            counts.moved++;
        } else if (expected != value || !register_is_known(&found, preserved[i])) {
            report(function, at, interrupted, names[i], expected, value);
            break;
        }
    }
}

static void judge_step(struct function *function, const struct registers *at)
{
    uint8_t head[2] = {0}, code[4] = {0};
    counts.managed++;
    function->steps++;
    *(function->jitted ? &counts.jit : &counts.r2r) += 1;
    counts.funclet += function->funclet;
    reader_forget(&reader, NULL);
    reader_begin(&reader, FUEL_LOOKUP);
    reader_try_copy(&reader, function->entry.unwind_data, head, sizeof head);
    counts.prolog += at->values[RIP] - function->entry.begin < head[1];
    reader_try_copy(&reader, at->values[RIP], code, sizeof code);
    unsigned rex = (code[0] & 0xf0) == 0x40;
    counts.epilog += (code[rex] & 0xf8) == 0x58 || code[0] == 0xc3;
    judge(function, at, true, &calls.items[calls.count - 1]);
}

static struct callee *callee_at(uint64_t address)
{
    struct callee *callee = &callees[(address ^ address >> 16) % CALLEES];
    if (callee->address != address)
        *callee = (struct callee){.address = address};
    return callee;
}

/* If the step was a call, records and returns it. */
static struct call *note_call(const struct registers *before, const struct registers *after)
{
    uint64_t pushed;
    if (after->values[RSP] != before->values[RSP] - 8 || !read_memory(after->values[RSP], &pushed, sizeof pushed) ||
        pushed <= before->values[RIP] || pushed > before->values[RIP] + CALL_MAX || after->values[RIP] == pushed)
        return NULL;
    struct function *function = function_at(before->values[RIP]);
    if (function && calls.count) {
        struct registers at = *before; /* seen from the callee, the caller's frame is not the innermost one */
        at.values[RIP] = pushed;
        counts.returns++;
        judge(function, &at, false, &calls.items[calls.count - 1]);
    }
    if (!call_list_append(&calls, (struct call){after->values[RSP], pushed, *before, after->values[RIP], step_count,
                                                counts.managed + counts.unknown, runs()}))
        die("calls");
    return &calls.items[calls.count - 1];
}

/*
 * Unoptimized code calls a helper of the runtime to be replaced on the stack, and the helper jumps into the new code as
 * if the old one had called it; but its frame is now part of the new one. Then that call is none.
 */
static void note_replacement(const struct function *function, const struct registers *now)
{
    if (!calls.count || now->values[RIP] != function->entry.begin)
        return;
    const struct call *call = &calls.items[calls.count - 1];
    const struct function *caller = function_at(call->return_address - 1);
    if (caller && caller->method_desc == function->method_desc && caller->method != function->method &&
        call->callee >= runtime_begin && call->callee < runtime_end) {
        counts.replaced++;
        calls.count--;
    }
}

/* Ends the records of calls that have returned, and notes what they were. */
static void end_calls(const struct registers *now)
{
    for (; calls.count && now->values[RSP] > calls.items[calls.count - 1].slot; calls.count--) {
        const struct call *call = &calls.items[calls.count - 1];
        struct callee *callee = callee_at(call->callee);
        bool returned = now->values[RIP] == call->return_address;
        callee->managed |= !returned || counts.managed + counts.unknown != call->managed;
        callee->is_long |= step_count - call->step > LONG_CALL;
    }
}

/* ---- Stepping --------------------------------------------------------------------------------------------------- */

static struct registers registers_now(void)
{
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, process, NULL, &r) < 0)
        die("PTRACE_GETREGS");
    const uint64_t values[] = {r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
                               r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip};
    struct registers ret = {0};
    for (unsigned i = 0; i < ARRAY_SIZE(values); i++)
        register_set(&ret, i, values[i]);
    return ret;
}

static void on_tick(int signal)
{
    (void)signal;
    ticks++;
}

static void set_debug_register(unsigned number, uint64_t value)
{
    if (ptrace(PTRACE_POKEUSER, process, offsetof(struct user, u_debugreg) + 8 * number, value) < 0)
        die("PTRACE_POKEUSER");
}

/* Stops before the instruction at `pc` and, unless 0, after a write to the eight bytes at `slot`. */
static void set_breakpoints(uint64_t pc, uint64_t slot)
{
    enum { FIRST = 1, SECOND = 1 << 2, SECOND_WRITES_8_BYTES = 9 << 20 };
    set_debug_register(7, 0);
    set_debug_register(6, 0);
    set_debug_register(0, pc);
    set_debug_register(1, slot);
    set_debug_register(7, FIRST | (slot ? SECOND | SECOND_WRITES_8_BYTES : 0));
}

/* After a breakpoint it is set, and hides the next one at the same address, even when a signal comes between. */
static void clear_resume_flag(void)
{
    enum { RESUME = 1 << 16 };
    long flags = ptrace(PTRACE_PEEKUSER, process, offsetof(struct user, regs.eflags), NULL);
    if (flags & RESUME && ptrace(PTRACE_POKEUSER, process, offsetof(struct user, regs.eflags), flags & ~RESUME) < 0)
        die("PTRACE_POKEUSER");
}

static bool slot_was_written(void)
{
    return ptrace(PTRACE_PEEKUSER, process, offsetof(struct user, u_debugreg[6]), NULL) & 2;
}

/* Waits for the next stop. 0: the process has ended; -1: this took too long. */
static int wait_for_stop(bool in_time)
{
    int status, start = ticks;
    while (waitpid(process, &status, __WALL) < 0) {
        if (errno != EINTR)
            die("waitpid");
        if (in_time && ticks - start > 1)
            return -1;
    }
    return WIFSTOPPED(status) ? status : 0;
}

/*
 * Runs to an address with the stack pointer that it then has; delivers a signal first. False, and all records are
 * forgotten, if it was not reached.
 */
static bool run_to(uint64_t pc, uint64_t sp, uint64_t slot, int signal)
{
    int start = ticks;
    bool reached = false, lost = false;
    counts.run_over++;
    set_breakpoints(pc, slot);
    while ((!reached && !lost) || signal) {
        if (lost) {
            pending_signal = signal;
            break;
        }
        if (ptrace(PTRACE_CONT, process, NULL, signal) < 0)
            return false;
        int status = wait_for_stop(true);
        signal = 0;
        if (status < 0) {
            ptrace(PTRACE_INTERRUPT, process, NULL, NULL);
            status = wait_for_stop(false);
        }
        if (!status)
            return false;
        if (!(status >> 16) && WSTOPSIG(status) != SIGTRAP) {
            signal = WSTOPSIG(status);
            counts.signals++;
        }
        struct registers now = registers_now();
        reached = now.values[RIP] == pc && now.values[RSP] == sp;
        lost = !reached && (ticks - start > 1 || slot_was_written());
        if (now.values[RIP] == pc && !reached && !lost && !signal) { /* of a deeper frame */
            set_debug_register(7, 0);
            ptrace(PTRACE_SINGLESTEP, process, NULL, NULL);
            status = wait_for_stop(false);
            if (status && !(status >> 16) && WSTOPSIG(status) != SIGTRAP)
                signal = WSTOPSIG(status);
            set_breakpoints(pc, slot);
        }
    }
    set_debug_register(7, 0);
    step_count++; /* memory has changed */
    counts.lost += lost;
    if (lost)
        calls.count = 0;
    return reached;
}

/* One instruction, or the first of a signal's handler. False when the process has ended. */
static bool step(const struct registers *before)
{
    for (;;) {
        int signal_to_deliver = pending_signal;
        pending_signal = 0;
        if (ptrace(PTRACE_SINGLESTEP, process, NULL, signal_to_deliver) < 0)
            return false;
        int status = wait_for_stop(false);
        if (!status)
            return false;
        if (status >> 16) /* a stop of ptrace's own */
            continue;
        if (WSTOPSIG(status) == SIGTRAP)
            return true;
        counts.signals++;
        if (WSTOPSIG(status) != SIGRTMIN) {
            pending_signal = WSTOPSIG(status);
            continue;
        }
        clear_resume_flag();
        if (!run_to(before->values[RIP], before->values[RSP], 0, SIGRTMIN))
            return true;
    }
}

/* On one processor the two threads hand over in a tenth of the time. */
static void share_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof one, &one) < 0 || sched_setaffinity(process, sizeof one, &one) < 0)
        die("sched_setaffinity");
}

static void attach(void)
{
    int status;
    char path[64], line[512];
    if (ptrace(PTRACE_SEIZE, process, NULL, NULL) < 0 || ptrace(PTRACE_INTERRUPT, process, NULL, NULL) < 0)
        die("PTRACE_SEIZE");
    if (waitpid(process, &status, __WALL) < 0 || !WIFSTOPPED(status))
        die("waitpid");
    snprintf(path, sizeof path, "/proc/%d/maps", process);
    FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx", &begin, &end) != 2)
            continue;
        if (strstr(line, "[stack]"))
            stack_end = end;
        if (strstr(line, "/libcoreclr.so")) {
            runtime_begin = runtime_begin ? runtime_begin : begin;
            runtime_end = end;
        }
    }
    if (!maps || !stack_end)
        die("the main thread's stack");
    fclose(maps);
    share_processor();
}

static uint64_t count_methods(bool jitted)
{
    uint64_t count = 0;
    for (size_t i = 0; i < functions.count; i++) {
        bool first = functions.items[i].jitted == jitted && functions.items[i].steps;
        for (size_t j = 0; j < i && first; j++)
            first = functions.items[j].method != functions.items[i].method || !functions.items[j].steps;
        count += first;
    }
    return count;
}

static void run(uint64_t limit, uint64_t least_methods, time_t deadline)
{
    bool enough = false;
    struct registers before = registers_now(), after;
    for (; !enough && step(&before); before = after) {
        if (++step_count % 1024 == 0)
            enough = time(NULL) >= deadline || (counts.managed >= limit && count_methods(true) >= least_methods);
        after = registers_now();
        if (!on_stack(after.values[RSP]))
            continue;
        struct call *call = note_call(&before, &after);
        struct callee *callee = call ? callee_at(call->callee) : NULL;
        if (callee && callee->is_long && !callee->managed) {
            callee->managed = !run_to(call->return_address, call->slot + 8, call->slot, 0);
            after = registers_now();
        }
        end_calls(&after);
        struct function *function = function_at(after.values[RIP]);
        if (function)
            note_replacement(function, &after);
        if (function && calls.count)
            judge_step(function, &after);
        else if (function)
            counts.unknown++;
        else if (time(NULL) > opened + 5)
            open_process();
    }
    counts.steps = step_count;
}

static void print_counts(void)
{
    uint64_t funclets = 0, filters = 0, frames = 0, frameless = 0, chained = 0, cold = 0, wrong = 0;
    for (size_t i = 0; i < functions.count; i++) {
        const struct function *function = &functions.items[i];
        if (!function->steps)
            continue;
        funclets += function->funclet;
        filters += function->filter;
        frames += function->frame_register;
        frameless += !function->frame_register;
        chained += function->chained;
        cold += function->cold;
        wrong += function->mismatches != 0;
    }
    const struct {
        const char *name;
        uint64_t number;
    } rows[] = {{"steps", counts.steps},
                {"managed", counts.managed},
                {"jit", counts.jit},
                {"r2r", counts.r2r},
                {"prolog", counts.prolog},
                {"epilog", counts.epilog},
                {"in_funclets", counts.funclet},
                {"return_addresses", counts.returns},
                {"hijacked", counts.hijacked},
                {"signals", counts.signals},
                {"run_over", counts.run_over},
                {"lost", counts.lost},
                {"replaced_on_stack", counts.replaced},
                {"moved_by_collections", counts.moved},
                {"not_known_in_funclets", counts.not_known},
                {"without_record", counts.unknown},
                {"jit_methods", count_methods(true)},
                {"r2r_methods", count_methods(false)},
                {"funclets", funclets},
                {"filters", filters},
                {"with_frame_register", frames},
                {"without_frame_register", frameless},
                {"chained", chained},
                {"cold", cold},
                {"functions_with_mismatches", wrong},
                {"mismatches", counts.mismatches}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        printf("%s %" PRIu64 "\n", rows[i].name, rows[i].number);
}

int main(int argc, char **argv)
{
    static struct cdacq_memory source = {.size = sizeof source, .span_at = span_at, .elf_machine = EM_X86_64_};
    const struct itimerval every = {{RUN_SECONDS, 0}, {RUN_SECONDS, 0}};
    const struct sigaction action = {.sa_handler = on_tick}; /* interrupts waitpid */
    struct target *target = NULL;
    if (argc != 5)
        return 64;
    process = atoi(argv[1]);
    answers = calloc(ANSWERS, sizeof *answers);
    if (!answers || memory_open(&source, NULL, false, &target, NULL) < 0)
        die("memory");
    reader_init(&reader, target, 8, false);
    forget_pages();
    if (sigaction(SIGALRM, &action, NULL) < 0 || setitimer(ITIMER_REAL, &every, NULL) < 0)
        die("timer");
    attach();
    open_process();
    run(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), time(NULL) + atoi(argv[4]));
    print_counts();
    ptrace(PTRACE_DETACH, process, NULL, NULL);
    cdacq_session_destroy(session);
    cdacq_target_close(live);
    target_destroy(target);
    function_list_deinit(&functions);
    call_list_deinit(&calls);
    free(answers);
    return counts.mismatches != 0;
}
