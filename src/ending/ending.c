/*
 * ending.c: finds out how the runtime ended a process. The stack of the thread that died shows who called abort(),
 * and with which arguments.
 */
#include "src/ending/ending.h"

#include <signal.h>

#include "contracts/objects/exception_text.h"
#include "contracts/objects/string.h"
#include "contracts/stack_walk/explicit_frame.h"
#include "contracts/stack_walk/machine.h"
#include "contracts/thread.h"
#include "contracts/type_system/core_type.h"
#include "contracts/type_system/method_desc.h"
#include "formats/core_notes.h"
#include "formats/metadata_members.h"
#include "formats/names/names.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/records.h"
#include "util/sized.h"

enum {
    SEARCHED_MAX = 4096, /* bytes of a frame that are searched */
    STRINGS_MAX = 2,     /* a message, and what precedes it */
};

static const char out_of_memory[] = "System.OutOfMemoryException";
static const char fail_fast[] = "System.Environment.FailFast(";
static const char old_fail_fast[] = "System.Environment._FailFast(";
static const char native_fail_fast[] = "System.Environment.<FailFast>g____PInvoke|"; /* which code of the JIT calls */

/* ---- Names ---- */

const struct metadata *ending_core_library(struct cdacq_session *session)
{
    const struct metadata *metadata = NULL;
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    uint64_t module = core_module(&session->resolver.reader);
    if (!module || module_cache_metadata(&session->resolver.modules, module, 0, &metadata) != CDACQ_OK)
        return NULL;
    return metadata;
}

bool ending_form_name(struct cdacq_session *session, const struct metadata *core, uint64_t method_desc,
                      struct text *ret)
{
    struct method_namer namer = resolver_namer(&session->resolver, &name_spelling_fatal);
    struct method_name name = {0};
    namer.core = core;
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    if (namer.runtime_types && method_desc)
        method_name_of_desc(&namer, method_desc, &name);
    *ret = name.text;
    return name.unverified;
}

/* Whether the method's name begins with one of the prefixes. */
static bool has_name_of(struct ending *ending, uint64_t method_desc, const char *const *prefixes, size_t count)
{
    struct text name;
    bool equal = false;
    (void)ending_form_name(ending->session, ending_core_library(ending->session), method_desc, &name);
    for (size_t i = 0; name.length && i < count && !equal; i++)
        equal = strncmp(name.data, prefixes[i], strlen(prefixes[i])) == 0;
    text_deinit(&name);
    return equal;
}

static bool has_name(struct ending *ending, uint64_t method_desc, const char *prefix)
{
    return has_name_of(ending, method_desc, &prefix, 1);
}

static bool is_fail_fast(struct ending *ending, uint64_t method_desc)
{
    static const char *const names[] = {fail_fast, old_fail_fast, native_fail_fast};
    return has_name_of(ending, method_desc, names, ARRAY_SIZE(names));
}

/* ---- The stack of the thread that died ---- */

/* Whether a method is the one that calls the program's entry point, as it is in managed code since .NET 11. */
static bool calls_entry_point(struct ending *ending, const struct method_desc *desc)
{
    struct cdacq_session *session = ending->session;
    const struct metadata *metadata;
    bool equal = false;
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    uint64_t core = core_module(&session->resolver.reader);
    return core && desc->module == core &&
           module_cache_metadata(&session->resolver.modules, core, desc->token, &metadata) == CDACQ_OK &&
           metadata_method_is(metadata, desc->token, "System", "Environment", "CallEntryPoint", &equal) == CDACQ_OK &&
           equal;
}

/* Whether what the runtime writes leaves a method out. StackTraceHiddenAttribute has no effect there. */
static bool is_hidden(struct ending *ending, uint64_t method_desc)
{
    struct reader *reader = &ending->session->resolver.reader;
    struct hidden_slot *slot = &ending->hidden[hash_u64(method_desc, 0) % HIDDEN_SLOTS];
    struct method_desc desc;
    if (slot->method_desc != method_desc) {
        reader_begin(reader, FUEL_LOOKUP);
        *slot = (struct hidden_slot){.method_desc = method_desc};
        if (ending->session->resolver.target->runtime_types && method_desc_read(reader, method_desc, &desc))
            slot->hidden = method_desc_is_hidden(reader, &desc) || calls_entry_point(ending, &desc);
    }
    return slot->hidden;
}

/* Whether a frame is code of another runtime of the process. */
static bool is_of_other(const struct ending *ending, const struct cdacq_frame *frame)
{
    return frame->method && frame->method->answer != CDACQ_ANSWER_NONE &&
           frame->method->runtime != ending->session->resolver.target->runtime;
}

/* Whether native code is that of the runtime. */
static bool is_native_of_runtime(const struct ending *ending, const struct cdacq_frame *frame)
{
    const struct image_bounds *image = &ending->session->resolver.target->manager.image;
    bool is_its_file = frame->kind == CDACQ_FRAME_NATIVE && frame->module && ending->runtime_path &&
                       strcmp(frame->module, ending->runtime_path) == 0;
    /* Another runtime may be mapped from the same file. */
    return is_its_file && (!ending->session->group || (frame->pc >= image->begin && frame->pc <= image->end));
}

/* Whether a frame is of the C library or a signal. The first frame that is neither, nor of C++, called abort(). */
static bool is_of_libc(const struct cdacq_frame *frame)
{
    const char *base = frame->module ? path_basename(frame->module) : "";
    return frame->kind == CDACQ_FRAME_SIGNAL || strncmp(base, "libc.so", 7) == 0 || strncmp(base, "libc-", 5) == 0 ||
           strncmp(base, "libpthread", 10) == 0 || strncmp(base, "ld-musl-", 8) == 0;
}

static bool is_of_cplusplus(const struct cdacq_frame *frame)
{
    const char *base = frame->module ? path_basename(frame->module) : "";
    return strncmp(base, "libstdc++.so", 12) == 0 || strncmp(base, "libgcc_s.so", 11) == 0;
}

/* Whether a signal can come from abort(), which sends it to its own thread; kill() does not. `sender`: 0 if unknown. */
static bool is_of_abort(int pid, int code, int sender)
{
    return !sender || (code == SI_TKILL && (!pid || sender == pid));
}

/*
 * The signal that a handler got. It shows who sent SIGABRT: the runtime handles that signal to write a core, so its
 * frames are on the stack in any case.
 */
static struct core_siginfo signal_of(struct ending *ending, const struct cdacq_frame *frame)
{
    struct reader *reader = &ending->session->resolver.reader;
    const struct elf_class elf = {.wide = reader->pointer_size == 8, .big = reader->big_endian};
    uint8_t bytes[24]; /* up to the user */
    reader_begin(reader, FUEL_LOOKUP);
    bool known = reader_try_copy(reader, frame->sp + ending->stack.machine->siginfo, bytes, sizeof bytes);
    return known ? core_siginfo_at(elf, bytes, sizeof bytes) : (struct core_siginfo){0};
}

static uint64_t known_register(const struct cdacq_frame *frame, unsigned number)
{
    const struct cdacq_registers *registers = frame->registers;
    return registers && registers->known >> number & 1 ? registers->values[number] : 0;
}

/*
 * Whether managed code has called the runtime and no other native code: the innermost Frame is one that only the
 * runtime makes, or the method ends the process or dispatches an exception. If the C library has no call-frame
 * information (musl), the native frames are missing. Then only this, or an exception that no handler has caught, shows
 * that the runtime ended the process.
 */
static bool calls_runtime(struct ending *ending, const struct cdacq_frame *frame)
{
    static const char *const callers[] = {fail_fast, old_fail_fast, native_fail_fast, "System.Runtime.EH."};
    struct reader *reader = &ending->session->resolver.reader;
    if (frame->method && has_name_of(ending, frame->method->method_desc, callers, ARRAY_SIZE(callers)))
        return true;
    reader_begin(reader, FUEL_LOOKUP);
    return ending->stack.frame && !frame_is_last(reader, ending->stack.frame) &&
           frame_kind_at(reader, ending->stack.frame) && !frame_is_inlined_call(reader, ending->stack.frame);
}

/*
 * Finds out who ended the process: the innermost frame outside of the C and C++ libraries shows it. False if it was not
 * the runtime; `of_runtime` stays false as long as that is not known.
 */
static bool find_culprit(struct ending *ending, const struct cdacq_frame *frame)
{
    if (frame->kind == CDACQ_FRAME_SIGNAL && !ending->managed) {
        struct core_siginfo signal = signal_of(ending, frame);
        if (signal.signal == SIGABRT) {
            ending->of_runtime = ending->of_cplusplus = ending->terminates = false; /* the sender's frames follow */
            if (!signal.pid || !is_of_abort(ending->pid, signal.code, signal.pid))
                return false;
        }
    }
    if (ending->of_runtime || is_of_libc(frame))
        return true;
    if (is_of_cplusplus(frame)) {
        ending->of_cplusplus = true;
        ending->terminates |= frame->symbol && strcmp(frame->symbol, "_ZSt9terminatev") == 0;
        return true;
    }
    if (is_of_other(ending, frame))
        return false;
    if (frame->by == CDACQ_FRAME_BY_FRAME) {
        ending->of_runtime = ending->is_inferred = true;
        ending->is_in_runtime = calls_runtime(ending, frame);
        call_stack_add_native(&ending->stack);
    } else {
        ending->of_runtime = is_native_of_runtime(ending, frame);
    }
    return ending->of_runtime;
}

static int visit_frame(const struct cdacq_frame *frame, void *context)
{
    struct ending *ending = context;
    bool funclet = frame->kind == CDACQ_FRAME_FUNCLET;
    if (!find_culprit(ending, frame))
        return 1;
    if (!ending->of_runtime)
        return 0;
    if (frame->kind == CDACQ_FRAME_NATIVE || is_of_other(ending, frame))
        call_stack_add_native(&ending->stack);
    if (is_of_other(ending, frame))
        return 0;
    ending->has_funclet |= funclet;
    if ((frame->kind != CDACQ_FRAME_MANAGED && !funclet) || !frame->method)
        return 0;
    uint64_t method_desc = frame->method->method_desc;
    if (ending->managed < FIRST_FRAMES)
        ending->first[ending->managed++] = (struct first_frame){method_desc, frame->sp, frame->cfa};
    const struct call_stack_frame added = {
        .method_desc = method_desc,
        .sp = frame->sp,
        .cfa = frame->cfa,
        .fp = known_register(frame, ending->stack.machine->fp),
        .funclet = funclet,
        .filter = frame->funclet == CDACQ_FUNCLET_FILTER,
        .hidden = is_hidden(ending, method_desc),
    };
    /* The runtime lists the frames of several stacks by their addresses. */
    ending->is_unordered |= frame->sp < ending->last_sp;
    ending->last_sp = frame->sp;
    if (!frame->is_call && !ending->interrupted && ending->end.kind != CDACQ_END_FAIL_FAST) {
        ending->interrupted = true;
        call_stack_restart(&ending->stack, frame->sp);
    }
    call_stack_add(&ending->stack, &added);
    if (ending->stack.methods.count && ending->end.kind == CDACQ_END_NONE) {
        bool called = is_fail_fast(ending, ending->stack.methods.items[0]);
        ending->end.kind = called ? CDACQ_END_FAIL_FAST : CDACQ_END_FATAL;
    }
    return ending->stack.broken;
}

/*
 * Whether an object is of a type. The name of its type may rest on an unconfirmed file, and so does the kind then. If
 * the name cannot be read, the kind, and with it the text, may be another one.
 */
static bool has_type(struct ending *ending, uint64_t object, const char *type)
{
    struct cdacq_session *session = ending->session;
    struct text name = {0};
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    unsigned flaws = object ? ending_exception_type(session, object, &name) : EXCEPTION_TEXT_MISSING;
    bool equal = !(flaws & ~(unsigned)EXCEPTION_TEXT_UNCONFIRMED) && name.length == strlen(type) &&
                 memcmp(name.data, type, name.length) == 0;
    if (object && flaws & ~(unsigned)EXCEPTION_TEXT_UNCONFIRMED)
        ending->end.flaws |= CDACQ_EXCEPTION_MISSING;
    ending->unverified |= (flaws & EXCEPTION_TEXT_UNCONFIRMED) != 0;
    text_deinit(&name);
    return equal;
}

static int visit_thread(const struct cdacq_thread *thread, void *context)
{
    struct ending *ending = context;
    struct reader *reader = &ending->session->resolver.reader;
    struct thread_data data = {0};
    if (!thread->died)
        return 0;
    ending->thread = *thread;
    ending->thread.name = NULL; /* they end with the visit */
    ending->thread.registers = NULL;
    ending->end.tid = thread->tid;
    reader_begin(reader, FUEL_LOOKUP);
    const struct walk_machine *machine = walk_machine_find(reader->layout->architecture);
    if (!machine || !thread->thread || !thread_read(reader, thread->thread, &data))
        return 1;
    /* First, because the frames of an overflow can take all the work that is allowed. */
    ending->is_overflow =
        thread->last_thrown_is_fatal && has_type(ending, thread->last_thrown, "System.StackOverflowException");
    call_stack_init(&ending->stack, reader, machine, data.frame);
    if (cdacq_session_visit_frames(ending->session, thread, NULL, 0, visit_frame, ending, NULL) < 0)
        ending->end.flaws |= CDACQ_EXCEPTION_CUT;
    return 1;
}

/* ---- The arguments of FailFast ---- */

/* Whether `object` is a string. NOT_MANAGED: it is not. MEMORY: it may be, but the target lacks memory of it. */
static enum cdacq_status check_string(struct cdacq_session *session, uint64_t object)
{
    struct reader *reader = &session->resolver.reader;
    if (!object || object % reader->pointer_size)
        return CDACQ_NOT_MANAGED;
    reader_begin(reader, FUEL_LOOKUP);
    string_length(reader, object);
    enum cdacq_status status = reader_status(reader, NULL);
    return status == CDACQ_OK || status == CDACQ_ERR_MEMORY ? status : CDACQ_NOT_MANAGED;
}

/* How many words of a frame are searched. */
static unsigned searched_words(const struct ending *ending, const struct first_frame *frame)
{
    uint64_t size = frame->cfa > frame->sp ? MIN(frame->cfa - frame->sp, (uint64_t)SEARCHED_MAX) : 0;
    return (unsigned)size / ending->session->resolver.reader.pointer_size;
}

/*
 * Searches a frame for strings that it refers to by their first character, which is how they are passed to native code.
 * Returns them in the order in which the frame refers to the objects themselves.
 */
static unsigned search_strings(struct ending *ending, const struct first_frame *frame, uint64_t ret[STRINGS_MAX])
{
    struct reader *reader = &ending->session->resolver.reader;
    unsigned width = reader->pointer_size, words = searched_words(ending, frame), count = 0;
    bool missing = false;
    uint64_t characters = reader->layout->fields[F_String_m_FirstChar].offset;
    for (unsigned i = 0; i < words && count < STRINGS_MAX; i++) {
        reader_begin(reader, FUEL_LOOKUP);
        uint64_t word = read_pointer(reader, frame->sp + (uint64_t)i * width),
                 string = word > characters ? word - characters : 0;
        if (reader_failed(reader)) {
            ending->end.flaws |= CDACQ_EXCEPTION_MISSING;
            return count;
        }
        enum cdacq_status status = check_string(ending->session, string);
        if (status == CDACQ_OK && !(count && ret[0] == string))
            ret[count++] = string;
        missing |= status == CDACQ_ERR_MEMORY;
    }
    if (missing && !count)
        ending->end.flaws |= CDACQ_EXCEPTION_MISSING;
    for (unsigned i = 0; i < words && count == STRINGS_MAX; i++) {
        reader_begin(reader, FUEL_LOOKUP);
        uint64_t word = read_pointer(reader, frame->sp + (uint64_t)i * width);
        if (word == ret[1]) {
            ret[1] = ret[0];
            ret[0] = word;
        }
        if (word == ret[0])
            break;
    }
    return count;
}

/* The exception that the runtime keeps as the inner one of its own, if FailFast's frame has it too. */
static uint64_t search_exception(struct ending *ending, const struct first_frame *frame)
{
    struct reader *reader = &ending->session->resolver.reader;
    struct exception own;
    unsigned words = searched_words(ending, frame);
    reader_begin(reader, FUEL_LOOKUP);
    if (!exception_read(reader, ending->thread.last_thrown, &own)) {
        ending->end.flaws |= CDACQ_EXCEPTION_MISSING;
        return 0;
    }
    for (unsigned i = 0; own.inner && i < words; i++) {
        reader_begin(reader, FUEL_LOOKUP);
        if (read_pointer(reader, frame->sp + (uint64_t)i * reader->pointer_size) == own.inner)
            return own.inner;
    }
    return 0;
}

/* The runtime lists the native function of FailFast once, where it lists others twice. */
static void forget_repeated_call(struct method_list *methods)
{
    if (methods->count > 1 && methods->items[0] == methods->items[1])
        memmove(methods->items, methods->items + 1, --methods->count * sizeof methods->items[0]);
}

static void find_arguments(struct ending *ending, uint64_t frame)
{
    static const char pinned[] = "System.Environment.FailFast(System.Runtime.CompilerServices.StackCrawlMarkHandle,";
    static const char with_source[] = "System.Environment.FailFast(System.String, System.Exception, System.String)";
    struct reader *reader = &ending->session->resolver.reader;
    uint64_t objects[FRAME_OBJECTS_MAX] = {0}, strings[STRINGS_MAX] = {0};
    reader_begin(reader, FUEL_LOOKUP);
    if (frame && !frame_is_last(reader, frame) && frame_objects(reader, frame, objects)) {
        ending->end.message = objects[0];
        ending->end.exception = objects[1];
        ending->end.source = objects[2];
        ending->has_source = objects[2] != 0;
        return;
    }
    ending->end.flaws |= CDACQ_EXCEPTION_INFERRED;
    /* The compiler may have inlined one of the two methods into the other. */
    unsigned outer = ending->managed > 1 && has_name(ending, ending->first[0].method_desc, pinned);
    if (!outer && (ending->managed < 2 || !has_name(ending, ending->stack.methods.items[0], native_fail_fast) ||
                   !has_name(ending, ending->first[0].method_desc, fail_fast))) {
        ending->end.flaws |= CDACQ_EXCEPTION_MISSING;
        return;
    }
    unsigned count = search_strings(ending, &ending->first[0], strings);
    ending->has_source = count == STRINGS_MAX;
    for (unsigned i = outer; i < ending->managed && !ending->has_source; i++)
        ending->has_source = has_name(ending, ending->first[i].method_desc, with_source);
    if (ending->has_source && count < STRINGS_MAX)
        ending->end.flaws |= CDACQ_EXCEPTION_MISSING;
    ending->end.exception = search_exception(ending, &ending->first[outer]);
    struct exception passed;
    reader_begin(reader, FUEL_LOOKUP);
    bool is_second = strings[1] && ending->end.exception && /* with a source, the message is that of the exception */
                     exception_read(reader, ending->end.exception, &passed) && passed.message == strings[1];
    ending->end.message = strings[is_second];
    ending->end.source = strings[!is_second];
}

/* ---- What ended the process ---- */

/*
 * If an exception leaves a method that native code has called (UnmanagedCallersOnly), .NET 9 lets C++ end the process.
 * The frames that threw the exception are gone by then. The last exception of the thread may be another one, which was
 * handled before.
 */
static void classify_terminated(struct ending *ending)
{
    struct cdacq_end *end = &ending->end;
    bool is_known = ending->terminates && !ending->is_inferred && !ending->thread.last_thrown_is_fatal;
    end->exception = is_known ? ending->thread.last_thrown : 0;
    end->kind = end->exception ? CDACQ_END_TERMINATED : CDACQ_END_NONE;
    end->flaws |= end->exception ? CDACQ_EXCEPTION_INFERRED : 0;
}

static void classify(struct ending *ending)
{
    struct cdacq_session *session = ending->session;
    const struct cdacq_thread *thread = &ending->thread;
    struct cdacq_end *end = &ending->end;
    struct thread_data data;
    bool is_thrown = thread->exception && !ending->has_funclet; /* and no handler runs */
    if (!ending->of_runtime || (ending->is_inferred && !ending->is_in_runtime && !is_thrown)) {
        end->kind = CDACQ_END_NONE;
    } else if (ending->of_cplusplus) {
        classify_terminated(ending);
    } else if (!thread->last_thrown_is_fatal) {
        end->exception = thread->exception ? thread->exception : thread->last_thrown;
        end->kind = !end->exception                                   ? CDACQ_END_NONE
                    : has_type(ending, end->exception, out_of_memory) ? CDACQ_END_OUT_OF_MEMORY
                                                                      : CDACQ_END_UNHANDLED;
    } else if (ending->is_overflow) {
        end->kind = CDACQ_END_STACK_OVERFLOW;
    } else if (end->kind == CDACQ_END_FAIL_FAST) {
        reader_begin(&session->resolver.reader, FUEL_LOOKUP);
        forget_repeated_call(&ending->stack.methods);
        find_arguments(ending, thread_read(&session->resolver.reader, thread->thread, &data) ? data.frame : 0);
    } else {
        end->kind = CDACQ_END_FATAL;
        if (has_type(ending, thread->exception, "System.AccessViolationException"))
            end->exception = thread->exception; /* another is not why: the runtime failed while it was thrown */
        if (!end->exception)
            end->flaws |= CDACQ_EXCEPTION_INFERRED;
    }
    if (end->kind != CDACQ_END_NONE && (ending->is_inferred || ending->is_unordered))
        end->flaws |= CDACQ_EXCEPTION_INFERRED;
}

/* NativeAOT keeps what it wrote. */
static int visit_native_thread(const struct cdacq_thread *thread, void *context)
{
    static const enum cdacq_end_kind kinds[] = {
        [NATIVE_REASON_UNHANDLED] = CDACQ_END_UNHANDLED,
        [NATIVE_REASON_FAIL_FAST] = CDACQ_END_FAIL_FAST,
        [NATIVE_REASON_INTERNAL] = CDACQ_END_FATAL,
    };
    struct ending *ending = context;
    if (!thread->died)
        return 0;
    ending->end.tid = thread->tid;
    ending->native = native_ending_find(ending->session, thread);
    if (ending->native) {
        ending->end.kind = kinds[ending->native->reason];
        ending->end.exception = ending->native->exception;
        ending->end.message = ending->native->message_object;
        ending->end.flaws |= ending->native->is_inferred ? CDACQ_EXCEPTION_INFERRED : 0;
    }
    return 1;
}

static enum cdacq_status find_ending(struct cdacq_session *session, struct ending *ret, struct cdacq_error *err)
{
    struct cdacq_target_info facts = {.size = sizeof facts};
    struct cdacq_process_info process = {.size = sizeof process};
    enum cdacq_status status = cdacq_target_get_info(session->resolver.target, &facts, err);
    if (status >= 0)
        status = cdacq_target_get_process_info(session->resolver.target, &process, err);
    if (status < 0 || (process.signal && (process.signal != SIGABRT ||
                                          !is_of_abort(process.pid, process.signal_code, process.sender_pid))))
        return status;
    if (session->resolver.modules.aot) {
        status = cdacq_session_visit_threads(session, visit_native_thread, ret, err);
        return ret->end.tid ? CDACQ_OK : status;
    }
    ret->pid = process.pid;
    ret->runtime_path = facts.runtime_path;
    status = cdacq_session_visit_threads(session, visit_thread, ret, err);
    classify(ret);
    return ret->end.tid ? CDACQ_OK : status;
}

void ending_forget(struct cdacq_session *session)
{
    if (session->ending) {
        method_list_deinit(&session->ending->stack.methods);
        native_ending_free(session->ending->native);
    }
    free(session->ending);
    session->ending = NULL;
}

enum cdacq_status ending_find(struct cdacq_session *session, struct ending **ret, struct cdacq_error *err)
{
    if (!session)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session");
    if (!session->ending || session->resolver.target->memory->kind != CDACQ_TARGET_CORE) {
        ending_forget(session);
        session->ending = malloc(sizeof *session->ending);
        if (!session->ending)
            return error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
        *session->ending = (struct ending){.session = session, .end = {.size = sizeof session->ending->end}};
        enum cdacq_status status = find_ending(session, session->ending, err);
        if (status < 0) {
            ending_forget(session);
            return status;
        }
    }
    *ret = session->ending;
    return CDACQ_OK;
}

bool ending_lacks_text(struct ending *ending)
{
    struct reader *reader = &ending->session->resolver.reader;
    struct exception own;
    if (ending->thread.last_thrown != ending->end.exception)
        return has_type(ending, ending->thread.last_thrown, out_of_memory);
    reader_begin(reader, FUEL_LOOKUP);
    return exception_read(reader, ending->end.exception, &own) && !own.thrown;
}

enum cdacq_status cdacq_session_get_end(struct cdacq_session *session, struct cdacq_end *ret, struct cdacq_error *err)
{
    struct ending *ending = NULL;
    enum cdacq_status status = sized_check(ret, "struct cdacq_end", err);
    if (status >= 0)
        status = ending_find(session, &ending, err);
    if (status >= 0)
        sized_copy(ret, &ending->end, sizeof ending->end);
    return status;
}
