/*
 * stack.c: the calls of cdacq/stack.h: threads with their registers, and the walk of their stacks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "contracts/code_lookup/range_section_map.h"
#include "contracts/native_aot/aot_thread.h"
#include "contracts/objects/field.h"
#include "contracts/objects/string.h"
#include "contracts/stack_walk/machine.h"
#include "contracts/stack_walk/stack_walk.h"
#include "src/lookup/answer.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "src/stacks/stack.h"
#include "src/stacks/stack_async.h"
#include "target/core.h"
#include "target/mapped_file.h"
#include "target/proc_locks.h"
#include "target/proc_net.h"
#include "target/proc_status.h"
#include "target/system_call.h"
#include "target/threads.h"
#include "util/sized.h"

/*
 * The pages of a core are unmapped after so many threads. The kernel maps 16 pages around each page that is read, so
 * the stacks of 5,000 threads would take 250 MB.
 */
enum { THREADS_PER_RELEASE = 256 };

enum { CALL_FILES_MAX = 256 }; /* system calls whose files and sockets are looked for */

enum { THREAD_NAME_UNITS = 256 }; /* UTF-16 units of a managed thread's name that are shown */

/* Bytes that a snapshot holds beyond what the walks read. */
enum {
    SNAPSHOT_STACK_MAX = 1024 * 1024,         /* of one stack */
    SNAPSHOT_STACKS_MAX = 1024 * 1024 * 1024, /* of all stacks */
};

_Static_assert(ARRAY_SIZE(((struct cdacq_registers *)NULL)->values) == REGISTER_MAX, "all registers");

struct cdacq_registers stack_registers_of(const struct registers *registers)
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

enum cdacq_status stack_runtime_threads(struct cdacq_session *session, struct thread_list *ret, struct cdacq_error *err)
{
    *ret = (struct thread_list){0};
    if (session->resolver.target->is_native)
        return CDACQ_OK; /* cdacq_target_get_info says what is wrong with the runtime */
    if (!(session->resolver.target->layout.usable & 1u << LAYOUT_Thread))
        return error_set(err, CDACQ_ERR_CONTRACT, 0, "the runtime publishes no Thread contract that this build reads");
    reader_begin(&session->resolver.reader, FUEL_OPEN);
    thread_list_read(&session->resolver.reader, ret);
    return reader_status(&session->resolver.reader, err);
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
    reader_begin(&session->resolver.reader, FUEL_NAME);
    if (exposed && object_reference(&session->resolver.modules, exposed, "_name", &string) && string &&
        string_append(&session->resolver.reader, string, THREAD_NAME_UNITS, &name) && name.length)
        kept = arena_string(&session->resolver.records.arena, name.data, name.length);
    text_deinit(&name);
    return kept;
}

/* The managed Thread of NativeAOT, and its id; 0 if it is not known. */
static uint64_t find_native_exposed(struct cdacq_session *session, struct cdacq_thread *thread)
{
    reader_begin(&session->resolver.reader, FUEL_INDEX);
    uint64_t exposed = aot_managed_thread(session->resolver.modules.aot, &session->resolver.reader, thread->thread);
    uint32_t id = exposed ? aot_managed_thread_id(&session->resolver.reader, exposed) : 0;
    if (!reader_failed(&session->resolver.reader))
        thread->managed_id = id;
    return exposed;
}

/*
 * Adds what the runtime's Thread has: its exceptions and the managed name, which is whole where the kernel's has 15
 * bytes of it. The thread that runs finalizers has no managed one.
 */
static void add_objects(struct cdacq_session *session, struct cdacq_thread *thread)
{
    struct thread_objects objects = {0};
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    if (!thread_read_objects(&session->resolver.reader, thread->thread, &objects))
        return;
    struct exception_info info = {.object = objects.last_thrown};
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    if (objects.exception_info && exception_info_described(&session->resolver.reader))
        (void)exception_info_read(&session->resolver.reader, objects.exception_info, &info);
    thread->exception = objects.exception_info ? info.object : 0;
    thread->last_thrown = objects.last_thrown;
    thread->last_thrown_is_fatal = objects.unhandled;
    if (session->resolver.modules.aot)
        objects.exposed = find_native_exposed(session, thread);
    const char *name = managed_name(session, objects.exposed);
    thread->name = name ? name : thread->name;
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    if (!thread->name && thread_is_finalizer(&session->resolver.reader, thread->thread))
        thread->name = ".NET Finalizer"; /* which is what the runtime has the kernel call it */
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
    if (!(session->resolver.target->layout.usable & 1u << LAYOUT_Thread))
        return 0;
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    uint64_t thread = thread_suspending(&session->resolver.reader);
    return reader_failed(&session->resolver.reader) ? 0 : thread;
}

/* The system call of a thread, with what its descriptor leads to. */
struct described_call {
    struct cdacq_system_call call;
    struct open_descriptor file;
};

/* What is asked of the kernel about the descriptors of all threads. */
struct call_files {
    unsigned left; /* descriptors that it may still be asked about */
    struct proc_net net;
};

/* NULL if the thread is in none. */
static const struct cdacq_system_call *describe_call(struct cdacq_session *session, const struct target_thread *thread,
                                                     struct call_files *files, struct described_call *ret)
{
    const struct target *target = session->resolver.target->memory;
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    if (!system_call_describe(&session->resolver.reader, thread, &ret->call))
        return NULL;
    if (target->kind == CDACQ_TARGET_PROCESS && ret->call.child && files->left) {
        files->left--;
        ret->call.child = proc_outer_id(target->pid, ret->call.child);
    }
    if (target->kind == CDACQ_TARGET_PROCESS && ret->call.descriptor >= 0 && files->left) {
        files->left--;
        (void)system_call_find_file(&files->net, ret->call.descriptor, &ret->file);
        ret->call.file = ret->file.file[0] ? ret->file.file : NULL;
        ret->call.local = ret->file.local[0] ? ret->file.local : NULL;
        ret->call.peer = ret->file.peer[0] ? ret->file.peer : NULL;
        if (ret->call.kind == CDACQ_CALL_LOCK)
            ret->call.holder = proc_locks_find_holder(target->pid, ret->call.descriptor,
                                                      strcmp(ret->call.name, "flock") == 0, files->net.work);
    }
    return &ret->call;
}

/*
 * Visits one thread; `known` is what the runtime has of it, or NULL, and `suspending` the Thread for which the others
 * are suspended. Returns what the visitor returned.
 */
static int visit_thread(struct cdacq_session *session, const struct target_thread *thread,
                        const struct thread_data *known, uint64_t suspending, struct call_files *files,
                        int (*visit)(const struct cdacq_thread *thread, void *context), void *context)
{
    struct cdacq_registers registers = stack_registers_of(&thread->registers);
    struct described_call call;
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
        .call = describe_call(session, thread, files, &call),
    };
    if (known)
        add_objects(session, &visited);
    return visit(&visited, context);
}

/* The Threads of another session of the group, while the threads of the process are visited. */
struct other_threads {
    struct thread_list list;
    struct threads_by_id by_id;
    const struct thread_data *outer; /* what a visit around this one has */
    int outer_tid;
};

/*
 * Reads the Threads of the other sessions, as far as possible: without them, a walk uses no Frames there. *ret is NULL
 * if there are no other sessions, or when out of memory.
 */
static void begin_others(struct cdacq_session *session, struct other_threads **ret)
{
    struct cdacq_session *other;
    *ret = session->group ? calloc(RUNTIME_MAX, sizeof **ret) : NULL;
    for (unsigned next = 0; *ret && (other = session_next_other(session, &next));) {
        struct other_threads *threads = &(*ret)[next - 1];
        resolver_begin(&other->resolver);
        (void)stack_runtime_threads(other, &threads->list, NULL);
        (void)index_threads(&threads->list, &threads->by_id);
        threads->outer = other->threads.thread;
        threads->outer_tid = other->threads.tid;
    }
}

/* Tells the other sessions which thread is visited. */
static void visit_in_others(struct cdacq_session *session, const struct other_threads *others,
                            const struct target_thread *thread)
{
    struct cdacq_session *other;
    for (unsigned next = 0; others && (other = session_next_other(session, &next));) {
        const struct thread_data *const *known =
            threads_by_id_find(&others[next - 1].by_id, (uint64_t)thread->inner_tid);
        other->threads.thread = known ? *known : NULL;
        other->threads.tid = thread->tid;
    }
}

static void end_others(struct cdacq_session *session, struct other_threads *others)
{
    struct cdacq_session *other;
    for (unsigned next = 0; others && (other = session_next_other(session, &next));) {
        struct other_threads *threads = &others[next - 1];
        other->threads.thread = threads->outer;
        other->threads.tid = threads->outer_tid;
        threads_by_id_deinit(&threads->by_id);
        thread_list_deinit(&threads->list);
        if (!other->threads.tid && !other->threads.fuel) {
            stack_async_destroy(other->threads.async);
            other->threads.async = NULL;
        }
    }
    free(others);
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
    resolver_begin(&session->resolver);
    enum cdacq_status listed = target_threads(session->resolver.target->memory, &threads, &list_error);
    if (listed < 0 && !threads.count) {
        threads_deinit(&threads);
        if (err)
            *err = list_error;
        return listed;
    }
    enum cdacq_status status = stack_runtime_threads(session, &list, &error);
    if (!index_threads(&list, &by_id))
        status = error_set(&error, CDACQ_ERR_NOMEM, 0, "out of memory for the runtime's Threads");
    else if (status >= 0 && listed >= 0 && !any_thread_matches(&threads, &by_id))
        status = error_set(&error, CDACQ_ERR_CORRUPT, 0,
                           "no thread has an id by which the runtime knows one: the ids may be those of another pid "
                           "namespace than that of the process");
    uint64_t suspending = suspending_thread(session), fuel = FUEL_STACKS, *outer_fuel = session->threads.fuel;
    struct target *memory = session->resolver.target->memory;
    struct call_files files = {.left = CALL_FILES_MAX, .net = {.pid = memory->pid, .work = &memory->work}};
    struct other_threads *others;
    begin_others(session, &others);
    session->threads.fuel = &fuel;
    session->resolver.records.text_users++; /* `visit` has the name of the thread, and may begin epochs */
    for (size_t i = 0; i < threads.count && status != CDACQ_STOPPED; i++) {
        if (resolver_gave_up(&session->resolver, &error)) {
            status = CDACQ_ERR_FUEL;
            break;
        }
        const struct target_thread *thread = &threads.items[i];
        const struct thread_data *const *known = threads_by_id_find(&by_id, (uint64_t)thread->inner_tid);
        visit_in_others(session, others, thread);
        if (visit_thread(session, thread, known ? *known : NULL, suspending, &files, visit, context))
            status = CDACQ_STOPPED;
        if (i % THREADS_PER_RELEASE == THREADS_PER_RELEASE - 1 &&
            session->resolver.target->memory->kind == CDACQ_TARGET_CORE)
            core_release_pages(session->resolver.target->memory);
    }
    session->resolver.records.text_users--;
    proc_net_deinit(&files.net);
    end_others(session, others);
    session->threads.fuel = outer_fuel;
    if (!outer_fuel && !session->threads.tid) {
        stack_async_destroy(session->threads.async);
        session->threads.async = NULL;
    }
    threads_by_id_deinit(&by_id);
    thread_list_deinit(&list);
    if (session->resolver.target->memory->recording) {
        struct cdacq_target *target = target_owner(session->resolver.target); /* which writes the snapshot */
        threads_deinit(&target->snapshot_threads);
        target->snapshot_threads = threads;
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
    return native_modules_step(session->resolver.native.modules, reader, interrupted, registers, ret);
}

static bool is_native(void *context, uint64_t address)
{
    struct cdacq_session *session = context;
    const struct mapping *mapping = target_mapping_at(session->resolver.target->memory, address);
    return mapping && mapping->path && mapping->access != MAPPING_WRITABLE;
}

/* The path of the file that is mapped at an address, and the offset from where its first byte is mapped. */
static void find_mapped_file(struct target *target, uint64_t address, struct cdacq_frame *ret)
{
    bool is_listed = target_list_mappings(target, NULL) == CDACQ_OK; /* the search needs all mappings */
    const struct mapping *mapping = is_listed ? target_mapping_at(target, address) : NULL, *first = mapping;
    if (!mapping || !mapping->path)
        return;
    for (unsigned steps = 0; first > target->mappings && first->offset && first[-1].path &&
                             strcmp(mapped_file_name(first - 1), mapped_file_name(mapping)) == 0;
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
    if (!session->resolver.native.modules ||
        !native_modules_symbol(session->resolver.native.modules, address, &symbol)) {
        find_mapped_file(session->resolver.target->memory, address, frame);
        frame->module_offset += frame->module && frame->is_call;
        return;
    }
    frame->symbol = symbol.name;
    frame->symbol_offset = symbol.name ? symbol.offset + frame->is_call : 0;
    frame->module = symbol.module;
    frame->module_offset = symbol.module_offset + frame->is_call;
    frame->files_verified &= !symbol.name || !symbol.unverified;
}

/* The method or stub that a frame is in. A return address may be the first byte after a method. */
static bool name_managed(struct cdacq_session *session, const struct cdacq_frame *frame, struct cdacq_method *ret)
{
    *ret = (struct cdacq_method){.size = sizeof *ret};
    answer_find(&session->resolver, frame->pc - frame->is_call, ret);
    if (session->group)
        (void)session_ask_others(session, ret);
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
    char error[CDACQ_ERROR_MESSAGE_SIZE]; /* of the method: the session may look others up before it is visited */
};

static bool is_known_native(const struct cdacq_session *session, uint64_t pc)
{
    return session->sampling && native_addresses_find(&session->sampling->native, pc);
}

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
        .files_verified = true,
    };
    if (frame->kind == CDACQ_FRAME_EXPLICIT)
        return;
    ret->registers = stack_registers_of(&frame->registers);
    ret->frame.registers = &ret->registers;
    ret->frame.pc = frame->registers.values[walk->machine->pc];
    ret->frame.sp = frame->registers.values[walk->machine->sp];
    if (is_known_native(session, ret->frame.pc))
        ret->method = (struct cdacq_method){.size = sizeof ret->method, .answer = CDACQ_ANSWER_NONE};
    else if (name_managed(session, &ret->frame, &ret->method))
        ret->frame.method = &ret->method;
    else if (session->sampling && is_native(session, ret->frame.pc))
        (void)native_addresses_insert(&session->sampling->native, ret->frame.pc, NULL);
    if (ret->method.answer == CDACQ_ANSWER_ERROR) {
        snprintf(ret->error, sizeof ret->error, "%s", ret->method.error);
        ret->method.error = ret->error;
    }
    if (ret->method.answer == CDACQ_ANSWER_NONE || ret->method.answer == CDACQ_ANSWER_ERROR) {
        ret->frame.files_verified = !frame->unverified;
        name_native(session, &ret->frame);
    }
}

/* What a frame says about memory that was read before this visit. */
static void doubt(struct cdacq_session *session, const struct cdacq_frame *frame)
{
    struct session_sampling *sampling = session->sampling;
    enum cdacq_answer answer = frame->method ? frame->method->answer : CDACQ_ANSWER_NONE;
    struct range_section section;
    sampling->is_doubtful |= frame->by == CDACQ_FRAME_BY_GUESS || frame->after_gap || answer == CDACQ_ANSWER_ERROR ||
                             (answer == CDACQ_ANSWER_NONE && frame->pc && !frame->symbol && !frame->module);
    if (answer != CDACQ_ANSWER_MANAGED || sampling->may_be_freed)
        return;
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    bool is_known = execution_manager_section(&session->resolver.target->manager, &session->resolver.reader,
                                              frame->method->code_start, &section);
    sampling->may_be_freed = !is_known || section.flags & RANGE_SECTION_COLLECTIBLE;
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
    (void)work_take_text(&session->resolver.target->memory->work, bytes);
}

/* ---- Async methods ---- */

/* What finds the async methods of a stack. NULL: they are not asked for, or cannot be found. */
static struct stack_async *begin_async(struct cdacq_session *session, const struct cdacq_thread *thread, unsigned flags)
{
    if (!(flags & CDACQ_FRAMES_ASYNC) || !thread->thread)
        return NULL;
    struct stack_async *async = session->threads.async ? session->threads.async : stack_async_create(session);
    if ((session->threads.fuel || session->threads.tid) && !session->sampling) /* objects may move till the next walk */
        session->threads.async = async;
    if (async)
        stack_async_begin(async, thread);
    return async;
}

/* It is kept while threads are visited. */
static void end_async(struct cdacq_session *session, struct stack_async *async)
{
    if (async != session->threads.async)
        stack_async_destroy(async);
}

/* A walk whose frames are visited. */
struct visited_walk {
    struct cdacq_session *session;
    struct stack_async *async[RUNTIME_MAX]; /* by the number of the runtime */
    int (*visit)(const struct cdacq_frame *frame, void *context);
    void *context;
};

/* Visits a frame. `visit` may use the session, whose map and modules the walk uses. Returns whether the visit ends. */
static bool visit_frame(const struct visited_walk *visited, const struct cdacq_frame *frame)
{
    struct cdacq_session *session = visited->session;
    count_texts(session, frame);
    epoch_pin(&session->resolver.epoch);
    bool stops = visited->visit(frame, visited->context);
    epoch_unpin(&session->resolver.epoch);
    if (!stops)
        epoch_follow(&session->resolver.epoch);
    return stops;
}

/*
 * The async methods that come before a frame. While threads are sampled, objects can move: what they were read from is
 * compared after the walk and, in a second try, at once.
 */
static const struct async_frame *read_async(struct cdacq_session *session, struct stack_async *async,
                                            const struct cdacq_frame *before, size_t *ret_count)
{
    struct session_sampling *sampling = session->sampling;
    if (!sampling)
        return stack_async_before(async, before, ret_count);
    struct read_log *outer = reader_log(&session->resolver.reader, &sampling->log);
    const struct async_frame *found = stack_async_before(async, before, ret_count);
    (void)reader_log(&session->resolver.reader, outer);
    if (sampling->is_strict && !stack_objects_hold(session))
        *ret_count = 0;
    return found;
}

bool stack_objects_hold(struct cdacq_session *session)
{
    struct session_sampling *sampling = session->sampling;
    struct target *memory = session->resolver.target->memory;
    const struct logged_reads *reads = &sampling->log.reads;
    bool holds = target_unchanged(memory, &sampling->log, 0);
    for (size_t i = 0; i < reads->count && !holds; i++)
        target_renew(memory, reads->items[i].address, reads->items[i].address + reads->items[i].size);
    sampling->has_changed |= !holds;
    read_log_clear(&sampling->log);
    return holds;
}

/* Visits the async methods that come before a frame with code. */
static bool visit_async(const struct visited_walk *visited, const struct cdacq_frame *before)
{
    size_t count = 0;
    bool stops = false;
    bool is_code = before->method && before->method->answer != CDACQ_ANSWER_NONE;
    uint64_t runtime = is_code ? before->method->runtime : visited->session->resolver.target->runtime;
    struct stack_async *async = visited->async[runtime];
    const struct async_frame *found = async ? read_async(visited->session, async, before, &count) : NULL;
    for (size_t i = 0; i < count && !stops; i++) {
        struct cdacq_method method;
        if (!stack_async_answer(async, &found[i], &method))
            continue;
        const struct cdacq_frame frame = {.size = sizeof frame,
                                          .index = before->index,
                                          .kind = CDACQ_FRAME_ASYNC,
                                          .by = CDACQ_FRAME_BY_AWAIT,
                                          .pc = found[i].pc,
                                          .method = &method,
                                          .object = found[i].object};
        stops = visit_frame(visited, &frame);
    }
    return stops;
}

/* Why a walk ended early. If native frames cannot be unwound at all, that is the reason. */
static enum cdacq_status broken(struct cdacq_session *session, const struct stack_walk *walk, struct cdacq_error *err)
{
    struct cdacq_error error;
    enum cdacq_status status = reader_status(walk->host.reader, &error);
    bool has_native = session->resolver.native.modules || session->resolver.native.error.status >= 0;
    if (has_native && walk->no_caller)
        return error_set(err, status, error.address,
                         "the code at 0x%" PRIx64
                         " has no call-frame information, and no return address was found further up the stack",
                         error.address);
    if (has_native)
        return error_set(err, status, error.address, "%s", error.message);
    if (err)
        *err = session->resolver.native.error;
    return session->resolver.native.error.status;
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
    if (!ret->thread || !(session->resolver.target->layout.usable & 1u << LAYOUT_Thread))
        return CDACQ_OK;
    reader_begin(&session->resolver.reader, FUEL_LOOKUP);
    thread_read(&session->resolver.reader, ret->thread, ret_data); /* if it fails, the walk uses no Frames */
    return CDACQ_OK;
}

/*
 * Records the part of a stack that a walk has covered, even words that the walk did not read: a debugger that opens the
 * snapshot reads other words.
 */
static void record_stack(struct cdacq_session *session, uint64_t sp, uint64_t end)
{
    struct target *target = session->resolver.target->memory;
    uint64_t *total = &target_owner(session->resolver.target)->snapshot_stacks;
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

/* What the walk has of a session's runtime. `data`: of the Thread; NULL: none. */
static struct stack_walk_runtime walk_runtime(struct cdacq_session *session, const struct thread_data *data)
{
    return (struct stack_walk_runtime){.manager = &session->resolver.target->manager,
                                       .reader = &session->resolver.reader,
                                       .has_frames = session->resolver.target->layout.usable >> LAYOUT_StackWalk & 1,
                                       .thread = data ? *data : (struct thread_data){0}};
}

/* Adds the other runtimes to a walk of a thread. Returns their number. */
static size_t add_others(struct visited_walk *visited, const struct cdacq_thread *thread, unsigned flags,
                         struct stack_walk_runtime ret[WALK_OTHERS_MAX])
{
    struct cdacq_session *other;
    size_t count = 0;
    for (unsigned next = 0; count < WALK_OTHERS_MAX && (other = session_next_other(visited->session, &next));) {
        bool is_visited = other->threads.thread && thread->tid && other->threads.tid == thread->tid;
        resolver_begin(&other->resolver);
        ret[count++] = walk_runtime(other, is_visited ? other->threads.thread : NULL);
        if (!is_visited)
            continue;
        struct cdacq_thread known = *thread;
        known.thread = other->threads.thread->address;
        known.managed_id = other->threads.thread->id;
        known.state = other->threads.thread->state;
        visited->async[next - 1] = begin_async(other, &known, flags);
    }
    return count;
}

static void end_all_async(const struct visited_walk *visited)
{
    struct cdacq_session *other;
    end_async(visited->session, visited->async[visited->session->resolver.target->runtime]);
    for (unsigned next = 0; (other = session_next_other(visited->session, &next));)
        end_async(other, visited->async[next - 1]);
}

enum cdacq_status cdacq_session_visit_frames(struct cdacq_session *session, const struct cdacq_thread *thread,
                                             const struct cdacq_registers *registers, unsigned flags,
                                             int (*visit)(const struct cdacq_frame *frame, void *context),
                                             void *context, struct cdacq_error *err)
{
    struct cdacq_thread copy;
    struct thread_data data;
    struct registers first;
    enum cdacq_status status =
        error_check_flags(flags, CDACQ_FRAMES_EXPLICIT | CDACQ_FRAMES_CALLER | CDACQ_FRAMES_ASYNC, err);
    if (status < 0)
        return status;
    resolver_begin(&session->resolver);
    status = take_thread(session, thread, &copy, &data, err);
    if (status >= 0)
        status = take_registers(registers ? registers : copy.registers, &first, err);
    if (status < 0)
        return status;
    uint64_t fuel = FUEL_STACKS;
    struct visited_walk visited = {.session = session, .visit = visit, .context = context};
    struct stack_walk_runtime others[WALK_OTHERS_MAX];
    size_t other_count = add_others(&visited, &copy, flags, others);
    const struct stack_walk_host host = {
        .manager = &session->resolver.target->manager,
        .reader = &session->resolver.reader,
        .fuel = session->threads.fuel ? session->threads.fuel : &fuel,
        .has_frames = session->resolver.target->layout.usable >> LAYOUT_StackWalk & 1,
        .is_innermost = !registers,
        .step = resolver_native(&session->resolver) ? step : NULL,
        .is_native = is_native,
        .context = session,
        .others = others,
        .other_count = other_count,
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
    visited.async[session->resolver.target->runtime] = begin_async(session, &copy, flags);
    for (unsigned index = 0; (result = stack_walk_next(&walk, &frame)) == WALK_FRAME;) {
        show_frame(session, &walk, &frame, index, &shown);
        if (session->sampling)
            doubt(session, &shown.frame);
        if (visit_async(&visited, &shown.frame) || visit_frame(&visited, &shown.frame)) {
            end_all_async(&visited);
            return CDACQ_STOPPED;
        }
        index += frame.kind != CDACQ_FRAME_EXPLICIT;
        end = MAX(end, shown.frame.cfa);
    }
    end_all_async(&visited);
    if (session->sampling)
        session->sampling->is_doubtful |= result == WALK_BROKEN;
    record_stack(session, first.values[walk.machine->sp], end);
    return result == WALK_BROKEN ? broken(session, &walk, err) : CDACQ_OK;
}
