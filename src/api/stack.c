/*
 * stack.c: the calls of cdacq/stack.h: threads with their registers, and the walk of their stacks.
 */
#include <inttypes.h>
#include <stdio.h>

#include "contracts/objects/field.h"
#include "contracts/objects/string.h"
#include "contracts/stack_walk/stack_walk.h"
#include "src/api/session.h"
#include "target/core.h"
#include "target/threads.h"
#include "util/sized.h"

/*
 * The pages of a core are unmapped after so many threads. The kernel maps 16 pages around each page that is read, so
 * the stacks of 5,000 threads would take 250 MB.
 */
enum { THREADS_PER_RELEASE = 256 };

enum { THREAD_NAME_UNITS = 256 }; /* UTF-16 units of a managed thread's name that are shown */

/* Bytes that a snapshot holds beyond what the walks read. */
enum {
    SNAPSHOT_STACK_MAX = 1024 * 1024,         /* of one stack */
    SNAPSHOT_STACKS_MAX = 1024 * 1024 * 1024, /* of all stacks */
};

_Static_assert(ARRAY_SIZE(((struct cdacq_registers *)NULL)->values) == REGISTER_MAX, "all registers");

static struct cdacq_registers registers_of(const struct registers *registers)
{
    struct cdacq_registers ret = {.size = sizeof ret, .known = registers->known};
    memcpy(ret.values, registers->values, sizeof ret.values);
    return ret;
}

static enum cdacq_status take_registers(const struct cdacq_registers *registers, struct registers *ret,
                                        struct cdacq_error *err)
{
    struct cdacq_registers copy = {.size = sizeof copy};
    if (!registers)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a walk needs registers: its own, or those of the thread");
    enum cdacq_status status = sized_check(registers, "struct cdacq_registers", err);
    if (status < 0)
        return status;
    sized_copy(&copy, registers, sized_size(registers));
    *ret = (struct registers){.known = copy.known};
    for (unsigned i = 0; i < REGISTER_MAX; i++)
        ret->values[i] = register_is_known(ret, i) ? copy.values[i] : 0;
    return CDACQ_OK;
}

/* ---- Threads ---- */

/* Reads the list of the runtime's Threads, as far as possible. */
static enum cdacq_status read_runtime_threads(struct cdacq_session *session, struct thread_list *ret,
                                              struct cdacq_error *err)
{
    *ret = (struct thread_list){0};
    if (!(session->target->layout.usable & 1u << LAYOUT_Thread))
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "the runtime publishes no Thread contract that this build reads");
    reader_begin(&session->reader.raw, FUEL_OPEN);
    thread_list_read(&session->reader, ret);
    return reader_status(&session->reader.raw, err);
}

static uint64_t thread_key(const struct thread_data *const *thread)
{
    return (*thread)->os_id;
}

DEFINE_HASH_TABLE(threads_by_id, const struct thread_data *, uint64_t, thread_key, hash_u64, equal_u64);

/* Indexes the Threads by id. If several have one id, the first of the list is found. */
static bool index_threads(const struct thread_list *list, struct threads_by_id *ret)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].os_id && !threads_by_id_insert(ret, &list->items[i], NULL))
            return false;
    return true;
}

/* The name that the program gave a thread; NULL: none, or it cannot be read. */
static const char *managed_name(struct cdacq_session *session, uint64_t exposed)
{
    struct text name = {0};
    uint64_t string;
    const char *kept = NULL;
    reader_begin(&session->reader.raw, FUEL_NAME);
    if (exposed && object_reference(&session->modules, exposed, "_name", &string) && string &&
        string_append(&session->reader, string, THREAD_NAME_UNITS, &name) && name.length)
        kept = arena_string(&session->arena, name.data, name.length);
    text_deinit(&name);
    return kept;
}

/* Adds what the runtime's Thread has: its exceptions and, if the kernel's name is not known, the managed name. */
static void add_objects(struct cdacq_session *session, struct cdacq_thread *thread)
{
    struct thread_objects objects = {0};
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    if (!thread_read_objects(&session->reader, thread->thread, &objects))
        return;
    struct exception_info info = {.object = objects.last_thrown};
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    if (objects.exception_info && has_field(&session->reader, F_ExceptionInfo_ThrownObject))
        (void)exception_info_read(&session->reader, objects.exception_info, &info);
    thread->exception = objects.exception_info ? info.object : 0;
    thread->last_thrown = objects.last_thrown;
    thread->last_thrown_is_fatal = objects.unhandled;
    if (!thread->name)
        thread->name = managed_name(session, objects.exposed);
}

/*
 * Whether any Thread belongs to a listed thread. If none does, the ids come from two pid namespaces: a debugger that
 * writes the core of a process in a container from outside writes the ids that it sees itself.
 */
static bool any_thread_matches(const struct threads *threads, const struct threads_by_id *by_id)
{
    for (size_t i = 0; i < threads->count; i++)
        if (threads_by_id_find(by_id, (uint64_t)threads->items[i].inner_tid))
            return true;
    return !by_id->count;
}

/* The Thread for which the others are suspended; 0: none, or it cannot be read. */
static uint64_t suspending_thread(struct cdacq_session *session)
{
    if (!(session->target->layout.usable & 1u << LAYOUT_Thread))
        return 0;
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    uint64_t thread = thread_suspending(&session->reader);
    return reader_failed(&session->reader.raw) ? 0 : thread;
}

/*
 * Visits one thread; `known` is what the runtime has of it, or NULL, and `suspending` the Thread for which the others
 * are suspended. Returns what the visitor returned.
 */
static int visit_thread(struct cdacq_session *session, const struct target_thread *thread,
                        const struct thread_data *known, uint64_t suspending,
                        int (*visit)(const struct cdacq_thread *thread, void *context), void *context)
{
    struct cdacq_registers registers = registers_of(&thread->registers);
    struct cdacq_thread visited = {
        .size = sizeof visited,
        .tid = thread->tid,
        .thread = known ? known->address : 0,
        .managed_id = known ? known->id : 0,
        .state = known ? known->state : 0,
        .signal = thread->signal,
        .died = thread->died,
        .mode = thread->mode,
        .name = thread->name[0] ? thread->name : NULL,
        .registers = &registers,
        .suspends_others = known && known->address == suspending,
        .delays_suspension = known && suspending && known->address != suspending && known->is_cooperative,
    };
    if (known)
        add_objects(session, &visited);
    return visit(&visited, context);
}

/* The result of a visit: neither of two failures hides the other. */
static enum cdacq_status visit_result(enum cdacq_status listed, const struct cdacq_error *list_error,
                                      enum cdacq_status status, const struct cdacq_error *error,
                                      struct cdacq_error *err)
{
    if (listed >= 0 && status < 0 && err)
        *err = *error;
    if (listed >= 0 || status == CDACQ_STOPPED)
        return status;
    if (status < 0)
        return error_set(err, listed, list_error->address, "%s; %s", list_error->message, error->message);
    if (err)
        *err = *list_error;
    return listed;
}

enum cdacq_status cdacq_session_visit_threads(struct cdacq_session *session,
                                              int (*visit)(const struct cdacq_thread *thread, void *context),
                                              void *context, struct cdacq_error *err)
{
    struct threads threads = {0};
    struct thread_list list;
    struct threads_by_id by_id = {0};
    struct cdacq_error list_error, error; /* of the target's list, and of the rest */
    session_begin_question(session);
    enum cdacq_status listed = target_threads(session->target->target, &threads, &list_error);
    if (listed < 0 && !threads.count) {
        threads_deinit(&threads);
        if (err)
            *err = list_error;
        return listed;
    }
    enum cdacq_status status = read_runtime_threads(session, &list, &error);
    if (!index_threads(&list, &by_id))
        status = error_set(&error, CDACQ_ERR_NOMEM, 0, "out of memory for the runtime's Threads");
    else if (status >= 0 && listed >= 0 && !any_thread_matches(&threads, &by_id))
        status = error_set(&error, CDACQ_ERR_CORRUPT, 0,
                           "no thread has an id by which the runtime knows one: the ids may be those of another pid "
                           "namespace than that of the process");
    uint64_t suspending = suspending_thread(session), fuel = FUEL_STACKS, *outer_fuel = session->stacks_fuel;
    session->stacks_fuel = &fuel;
    for (size_t i = 0; i < threads.count && status != CDACQ_STOPPED; i++) {
        if (session_gave_up(session, &error)) {
            status = CDACQ_ERR_FUEL;
            break;
        }
        const struct target_thread *thread = &threads.items[i];
        const struct thread_data *const *known = threads_by_id_find(&by_id, (uint64_t)thread->inner_tid);
        if (visit_thread(session, thread, known ? *known : NULL, suspending, visit, context))
            status = CDACQ_STOPPED;
        if (i % THREADS_PER_RELEASE == THREADS_PER_RELEASE - 1 && session->target->target->kind == CDACQ_TARGET_CORE)
            core_release_pages(session->target->target);
    }
    session->stacks_fuel = outer_fuel;
    threads_by_id_deinit(&by_id);
    thread_list_deinit(&list);
    if (session->target->target->recording) {
        threads_deinit(&session->target->snapshot_threads);
        session->target->snapshot_threads = threads;
    } else {
        threads_deinit(&threads);
    }
    return visit_result(listed, &list_error, status, &error, err);
}

/* ---- Frames ---- */

static enum native_step step(void *context, struct reader *reader, bool interrupted, struct registers *registers,
                             struct native_frame_info *ret)
{
    struct cdacq_session *session = context;
    return native_modules_step(session->native, reader, interrupted, registers, ret);
}

static bool is_native(void *context, uint64_t address)
{
    struct cdacq_session *session = context;
    const struct mapping *mapping = target_mapping_at(session->target->target, address);
    return mapping && mapping->path && mapping->access != MAPPING_WRITABLE;
}

/* The native images, prepared when first needed. */
static struct native_modules *native_of(struct cdacq_session *session)
{
    if (!session->native && session->native_error.status >= 0 &&
        target_list_mappings(session->target->target, NULL) == CDACQ_OK)
        session->native = native_modules_create(session->target->target, &session->native_error);
    return session->native;
}

/* The path of the file that is mapped at an address, and the offset from where its first byte is mapped. */
static void find_mapped_file(struct target *target, uint64_t address, struct cdacq_frame *ret)
{
    bool is_listed = target_list_mappings(target, NULL) == CDACQ_OK; /* the search needs all mappings */
    const struct mapping *mapping = is_listed ? target_mapping_at(target, address) : NULL, *first = mapping;
    if (!mapping || !mapping->path)
        return;
    for (unsigned steps = 0;
         first > target->mappings && first->offset && first[-1].path && strcmp(first[-1].path, mapping->path) == 0;
         first--)
        if (steps++ == NATIVE_MAPPINGS_MAX)
            return;
    ret->module = mapping->path;
    ret->module_offset = address - first->begin + first->offset;
}

static void name_native(struct cdacq_session *session, struct cdacq_frame *frame)
{
    struct native_symbol symbol;
    uint64_t address = frame->pc - frame->is_call;
    if (!session->native || !native_modules_symbol(session->native, address, &symbol)) {
        find_mapped_file(session->target->target, address, frame);
        frame->module_offset += frame->module && frame->is_call;
        return;
    }
    frame->symbol = symbol.name;
    frame->symbol_offset = symbol.name ? symbol.offset + frame->is_call : 0;
    frame->module = symbol.module;
    frame->module_offset = symbol.module_offset + frame->is_call;
    frame->files_unverified |= symbol.name && symbol.unverified;
}

/* The method or stub that a frame is in. A return address may be the first byte after a method. */
static bool name_managed(struct cdacq_session *session, const struct cdacq_frame *frame, struct cdacq_method *ret)
{
    *ret = (struct cdacq_method){.size = sizeof *ret};
    session_answer(session, frame->pc - frame->is_call, ret);
    ret->ip = frame->pc;
    if (ret->answer == CDACQ_ANSWER_MANAGED || ret->answer == CDACQ_ANSWER_STUB)
        ret->offset += frame->is_call;
    return ret->answer != CDACQ_ANSWER_NONE;
}

/* A frame of the walk, as the visitor sees it. */
struct shown_frame {
    struct cdacq_frame frame;
    struct cdacq_method method;
    struct cdacq_registers registers;
};

static void show_frame(struct cdacq_session *session, const struct stack_walk *walk, const struct walk_frame *frame,
                       unsigned index, struct shown_frame *ret)
{
    ret->frame = (struct cdacq_frame){
        .size = sizeof ret->frame,
        .index = index,
        .kind = frame->kind,
        .by = frame->by,
        .funclet = frame->funclet,
        .is_call = frame->is_call,
        .cfa = frame->cfa,
        .frame = frame->frame,
        .frame_name = frame->frame_kind ? frame->frame_kind->name : NULL,
        .after_gap = frame->after_gap,
    };
    if (frame->kind == CDACQ_FRAME_EXPLICIT)
        return;
    ret->registers = registers_of(&frame->registers);
    ret->frame.registers = &ret->registers;
    ret->frame.pc = frame->registers.values[walk->machine->pc];
    ret->frame.sp = frame->registers.values[walk->machine->sp];
    if (name_managed(session, &ret->frame, &ret->method))
        ret->frame.method = &ret->method;
    if (ret->method.answer == CDACQ_ANSWER_NONE || ret->method.answer == CDACQ_ANSWER_ERROR) {
        ret->frame.files_unverified = frame->unverified;
        name_native(session, &ret->frame);
    }
}

static size_t length_of(const char *text)
{
    return text ? strlen(text) : 0;
}

/*
 * Counts the texts of a frame as work: whoever visits a million frames that share one method writes its name, which can
 * have 64 KiB, as often.
 */
static void count_texts(struct cdacq_session *session, const struct cdacq_frame *frame)
{
    size_t bytes = length_of(frame->symbol) + length_of(frame->module);
    if (frame->method)
        bytes += frame->method->name_length + length_of(frame->method->module);
    (void)work_take_text(&session->target->target->work, bytes);
}

/* Why a walk ended early. If native frames cannot be unwound at all, that is the reason. */
static enum cdacq_status broken(struct cdacq_session *session, const struct stack_walk *walk, struct cdacq_error *err)
{
    struct cdacq_error error;
    enum cdacq_status status = reader_status(&session->reader.raw, &error);
    bool has_native = session->native || session->native_error.status >= 0;
    if (has_native && walk->no_caller)
        return error_set(err, status, error.address,
                         "the code at 0x%" PRIx64
                         " has no call-frame information, and no return address was found further up the stack",
                         error.address);
    if (has_native)
        return error_set(err, status, error.address, "%s", error.message);
    if (err)
        *err = session->native_error;
    return session->native_error.status;
}

static enum cdacq_status take_thread(struct cdacq_session *session, const struct cdacq_thread *thread,
                                     struct cdacq_thread *ret, struct thread_data *ret_data, struct cdacq_error *err)
{
    *ret = (struct cdacq_thread){.size = sizeof *ret};
    *ret_data = (struct thread_data){0};
    enum cdacq_status status = thread ? sized_check(thread, "struct cdacq_thread", err) : CDACQ_OK;
    if (!thread || status < 0)
        return status;
    sized_copy(ret, thread, sized_size(thread));
    if (!ret->thread || !(session->target->layout.usable & 1u << LAYOUT_Thread))
        return CDACQ_OK;
    reader_begin(&session->reader.raw, FUEL_LOOKUP);
    thread_read(&session->reader, ret->thread, ret_data); /* if it fails, the walk uses no Frames */
    return CDACQ_OK;
}

/*
 * Records the part of a stack that a walk has covered, even words that the walk did not read: a debugger that opens the
 * snapshot reads other words.
 */
static void record_stack(struct cdacq_session *session, uint64_t sp, uint64_t end)
{
    struct target *target = session->target->target;
    uint64_t *total = &session->target->snapshot_stacks;
    if (!target->recording || end <= sp)
        return;
    uint64_t size = MIN(MIN(end - sp, (uint64_t)SNAPSHOT_STACK_MAX), SNAPSHOT_STACKS_MAX - *total);
    struct span span;
    *total += size;
    /* Lines without memory are left out here, because each costs much when the snapshot is written. */
    for (uint64_t at = sp, stop = sp + size; at < stop;) {
        bool found = target->ops->memory_at(target, at, &span);
        uint64_t next = found ? MIN(span.end, stop) : add_saturated(align_down(at, LINE_SIZE), LINE_SIZE);
        if (found)
            target_record(target, at, next - at);
        at = next;
    }
}

enum cdacq_status cdacq_session_visit_frames(struct cdacq_session *session, const struct cdacq_thread *thread,
                                             const struct cdacq_registers *registers, unsigned flags,
                                             int (*visit)(const struct cdacq_frame *frame, void *context),
                                             void *context, struct cdacq_error *err)
{
    struct cdacq_thread copy;
    struct thread_data data;
    struct registers first;
    enum cdacq_status status = error_check_flags(flags, CDACQ_FRAMES_EXPLICIT | CDACQ_FRAMES_CALLER, err);
    if (status < 0)
        return status;
    session_begin_question(session);
    status = take_thread(session, thread, &copy, &data, err);
    if (status >= 0)
        status = take_registers(registers ? registers : copy.registers, &first, err);
    if (status < 0)
        return status;
    uint64_t fuel = FUEL_STACKS;
    const struct stack_walk_host host = {
        .manager = &session->target->manager,
        .reader = &session->reader,
        .fuel = session->stacks_fuel ? session->stacks_fuel : &fuel,
        .has_frames = session->target->layout.usable >> LAYOUT_StackWalk & 1,
        .step = native_of(session) ? step : NULL,
        .is_native = is_native,
        .context = session,
    };
    struct stack_walk walk;
    struct walk_frame frame;
    struct shown_frame shown;
    enum walk_result result;
    uint64_t end = 0;
    if (!stack_walk_init(&walk, &host, data.address ? &data : NULL, &first, flags))
        return walk.machine
                   ? error_set(err, CDACQ_ERR_ARGUMENT, 0, "a walk needs the program counter and the stack pointer")
                   : error_set(err, CDACQ_ERR_CONTRACT, 0,
                               "this build does not walk stacks of the target's architecture");
    for (unsigned index = 0; (result = stack_walk_next(&walk, &frame)) == WALK_FRAME;) {
        show_frame(session, &walk, &frame, index, &shown);
        count_texts(session, &shown.frame);
        session->visits++; /* `visit` may use the session, whose map and modules the walk uses */
        bool stops = visit(&shown.frame, context);
        session->visits--;
        if (stops)
            return CDACQ_STOPPED;
        session_follow(session);
        index += frame.kind != CDACQ_FRAME_EXPLICIT;
        end = MAX(end, shown.frame.cfa);
    }
    record_stack(session, first.values[walk.machine->sp], end);
    return result == WALK_BROKEN ? broken(session, &walk, err) : CDACQ_OK;
}
