/*
 * wait_frames.c: finds the objects that a frame refers to: in the slots that its GC info names or, if that does not
 * help, in all its words.
 */
#include "contracts/objects/field.h"
#include "contracts/objects/sync_block.h"
#include "contracts/stack_walk/explicit_frame.h"
#include "contracts/stack_walk/machine.h"
#include "contracts/thread.h"
#include "contracts/type_system/method_desc.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "src/lookup/answer.h"
#include "src/lookup/frame_slots.h"
#include "src/waits/wait_graph.h"

enum {
    SCAN_WORDS_MAX = 256,  /* words of a frame that are searched */
    SITES_MAX = 64 * 1024, /* program counters; frames at others are ignored */
    SLOTS_MAX = 1 << 20,   /* slots of all sites; frames at further sites are searched */
};

/* ---- Sites ---- */

static bool is_core(const struct cdacq_wait_graph *graph, const struct module *module)
{
    return module && graph->types.core &&
           (module->address == graph->types.core || (module->base && module->base == graph->core_base));
}

static const struct wait_site *site_of(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame)
{
    uint64_t key = frame->pc << 1 | frame->is_call;
    const struct wait_site *known = wait_sites_find(&graph->sites, key);
    if (known)
        return known;
    if (graph->sites.count == SITES_MAX) {
        graph_note_too_many(graph);
        return NULL;
    }
    struct wait_site site = {.key = key, .first = (uint32_t)graph->slots.count};
    struct cdacq_method method;
    const struct method_record *record = answer_find(graph->resolver, frame->pc - frame->is_call, &method);
    reader_begin(&graph->resolver->reader, FUEL_NAME);
    if (record && is_core(graph, record->module))
        site.role = (uint8_t)wait_role_of(&record->module->metadata, method.token);
    const struct module *module = record ? record->module : NULL; /* a dynamic method has none */
    if (module && module->status >= 0 && !is_core(graph, module))
        site.role = (uint8_t)wait_role_elsewhere(&module->metadata, method.token);
    site.of_framework = module && module->status >= 0 && wait_is_of_framework(&module->metadata, method.token);
    site.is_initializer = module && module->status >= 0 && wait_is_initializer(&module->metadata, method.token);
    bool is_subsystem = site.role == WAIT_ROLE_SUBSYSTEM;
    site.role = is_subsystem ? WAIT_ROLE_NONE : site.role;
    site.neutral = !record || !method.token || (is_subsystem && graph->has_managed_wait);
    if (graph->slots.count < SLOTS_MAX)
        site.exact = frame_slots_read(graph->resolver, frame, &graph->slots);
    site.count = (uint32_t)(graph->slots.count - site.first);
    const struct wait_site *added = wait_sites_insert(&graph->sites, site, NULL);
    if (!added)
        graph_note_memory(graph);
    return added;
}

uint64_t graph_innermost_frame(struct cdacq_wait_graph *graph, uint64_t thread)
{
    struct reader *reader = &graph->resolver->reader;
    reader_begin(reader, FUEL_LOOKUP);
    uint64_t frame = thread ? read_field(reader, thread, F_Thread_Frame) : 0;
    return !frame || reader_failed(reader) || frame_is_last(reader, frame) ? 0 : frame;
}

uint64_t graph_thread_object(struct cdacq_wait_graph *graph, uint64_t thread)
{
    struct reader *reader = &graph->resolver->reader;
    struct thread_objects objects;
    reader_begin(reader, FUEL_LOOKUP);
    return thread && thread_read_objects(reader, thread, &objects) ? objects.exposed : 0;
}

/*
 * The role of a native function that the code of `frame` has called: the compiler may have inlined the method that
 * calls it, such as Thread.Join, into this code. The runtime's Frame names the function, and has to lead back to
 * `frame`.
 */
static enum wait_role role_of_call(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame)
{
    struct resolver *resolver = graph->resolver;
    struct reader *reader = &resolver->reader;
    const struct walk_machine *machine = walk_machine_find(resolver->reader.layout->architecture);
    uint64_t call = graph_innermost_frame(graph, graph_last_thread(graph)->address);
    struct frame_caller caller;
    struct method_desc method;
    if (!call || !machine || !frame_is_inlined_call(reader, call) || !frame_caller(reader, machine, call, &caller) ||
        caller.registers.values[machine->pc] != frame->pc ||
        !method_desc_read(reader, frame_method(reader, call), &method) || method.module != graph->types.core)
        return WAIT_ROLE_NONE;
    const struct module *core = module_cache_get(&resolver->modules, method.module);
    return core ? wait_role_of(&core->metadata, method.token) : WAIT_ROLE_NONE;
}

/* ---- Objects of a frame ---- */

static bool read_word(struct cdacq_wait_graph *graph, uint64_t address, uint64_t *ret)
{
    struct reader *reader = &graph->resolver->reader;
    reader_begin(reader, FUEL_LOOKUP);
    *ret = read_pointer(reader, address);
    return !reader_failed(reader);
}

static bool read_slot(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame, const struct gc_slot *slot,
                      uint64_t *ret)
{
    struct reader *reader = &graph->resolver->reader;
    uint64_t address;
    reader_begin(reader, FUEL_LOOKUP);
    return frame_slot_value(reader, frame, slot, &address, ret);
}

/* Takes the SafeWaitHandle of a wait. If it is known what the thread waits for, only that one counts. */
static void take_safe_handle(struct cdacq_wait_graph *graph, uint64_t object, enum wait_role role)
{
    struct current_thread *current = &graph->current;
    bool is_waited =
        current->waited.object && managed_wait_of_safe_handle(&graph->types, object) == current->waited.object;
    if (!is_waited && (current->waited.count || role != WAIT_ROLE_HANDLE))
        return;
    current->several_handles |= current->safe_handle && current->safe_handle != object;
    current->safe_handle = object;
}

/* Takes a WaitHandle if the thread waits for it, by its SafeWaitHandle. The caller's frame can hold it, too. */
static void take_wait_handle(struct cdacq_wait_graph *graph, uint64_t object, enum threading_type type)
{
    struct current_thread *current = &graph->current;
    uint64_t safe;
    if (type != THREADING_WAIT_HANDLE || (!current->safe_handle && !current->waited.object))
        return;
    if ((current->safe_handle && threading_read(&graph->types, object, THREADING_WAIT_HANDLE_SAFE, &safe) &&
         safe == current->safe_handle) ||
        (current->waited.object && managed_wait_of_handle(&graph->types, object) == current->waited.object))
        current->candidates[WAIT_ROLE_HANDLE] = (struct wait_candidate){.object = object, .by = CDACQ_WAIT_BY_STATE};
}

static void take_candidate(struct wait_candidate *candidate, uint64_t object, enum cdacq_wait_source by)
{
    if (!candidate->object)
        *candidate = (struct wait_candidate){.object = object, .by = by};
    else if (candidate->object != object)
        candidate->ambiguous = true;
}

/* Adds the lock of an object in a frame if the thread may hold it. The runtime has no list of such locks. */
static void take_held(struct cdacq_wait_graph *graph, uint64_t object, enum threading_type type)
{
    const struct graph_thread *thread = graph_last_thread(graph);
    struct reader *reader = &graph->resolver->reader;
    struct object_monitor monitor;
    reader_begin(reader, FUEL_LOOKUP);
    if (type == THREADING_LOCK || type == THREADING_READER_WRITER ||
        (object_monitor_read(reader, object, &monitor) && monitor.thin && monitor.thread_id == thread->managed_id))
        (void)graph_add_lock(graph, object);
}

/* Notes a task that the thread runs. */
static void take_run(struct cdacq_wait_graph *graph, uint64_t task)
{
    bool full = graph->runs.count >= RUNNING_TASKS_MAX;
    const struct task_link *last = graph->runs.count ? &graph->runs.items[graph->runs.count - 1] : NULL;
    if (last && last->waiter == task && last->other == graph->threads.count - 1) /* in another slot of the frame */
        return;
    const struct task_link code = {.waiter = task, .other = graph->current.code};
    if (code.other && !full && !task_table_insert(&graph->running_code, code, NULL))
        graph_note_memory(graph);
    struct task_link *run = full ? NULL : task_links_append_items(&graph->runs, 1);
    if (run)
        *run = (struct task_link){.waiter = task, .other = graph->threads.count - 1};
    else if (full)
        graph_note_too_many(graph);
    else
        graph_note_memory(graph);
}

/*
 * Whether the C library waits with a timeout, by the name of its function. Only files of glibc count: in musl, a wait
 * without a timeout uses the function for one with a timeout.
 */
static enum graph_answer timed_of(const struct cdacq_frame *frame)
{
    static const struct {
        const char *name;
        enum graph_answer timed;
    } rows[] = {
        {"pthread_cond_wait", GRAPH_NO},
        {"pthread_cond_timedwait", GRAPH_YES},
        {"pthread_cond_clockwait", GRAPH_YES},
    };
    static const char *const files[] = {"libc.so.6", "libc-2.", "libpthread.so.0", "libpthread-2."};
    if (!frame->symbol || !frame->module || frame->by == CDACQ_FRAME_BY_GUESS || !frame->files_verified)
        return GRAPH_UNKNOWN;
    const char *file = path_basename(frame->module);
    const char *symbol = frame->symbol + strspn(frame->symbol, "_");
    bool is_glibc = false;
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        is_glibc |= strncmp(file, files[i], strlen(files[i])) == 0;
    for (size_t i = 0; is_glibc && i < ARRAY_SIZE(rows); i++) {
        size_t length = strlen(rows[i].name);
        const char *end = symbol + length;
        if (strncmp(symbol, rows[i].name, length) == 0 && (!*end || *end == '@' || strcmp(end, "64") == 0))
            return rows[i].timed;
    }
    return GRAPH_UNKNOWN;
}

/*
 * Notes whether a CancellationToken can end the wait. The methods with these roles look at their token whenever they
 * wake up, so a slot of their frame refers to its source. `found`: a slot does. If none does, and all slots were read,
 * the method has no token that can be cancelled.
 */
static void take_token(struct current_thread *current, enum wait_role role, bool found, bool all_read)
{
    if (role != WAIT_ROLE_EVENT && role != WAIT_ROLE_SEMAPHORE)
        return;
    if (found)
        current->token = GRAPH_YES;
    else if (all_read && current->token == GRAPH_UNKNOWN)
        current->token = GRAPH_NO;
}

/* Takes the process of a Process, or of its ProcessWaitState, that waits for the end of it. */
static void take_process(struct cdacq_wait_graph *graph, uint64_t object)
{
    static const char space[] = "System.Diagnostics";
    struct module_cache *modules = &graph->resolver->modules;
    struct reader *reader = &graph->resolver->reader;
    const struct metadata *metadata;
    struct object_field field;
    uint32_t token;
    bool is_process = false, is_state = false;
    reader_begin(reader, FUEL_INDEX);
    uint64_t table = object_method_table(reader, object);
    if (graph->current.process || reader_failed(reader) ||
        type_handle_definition(modules, table, &metadata, &token) != CDACQ_OK ||
        metadata_type_is(metadata, token, space, "Process", &is_process) != CDACQ_OK ||
        metadata_type_is(metadata, token, space, "ProcessWaitState", &is_state) != CDACQ_OK ||
        (!is_process && !is_state) || !object_field_find(modules, table, "_processId", &field) || field.is_static)
        return;
    int process = (int)read_u32(reader, object_field_address(reader, object, &field));
    graph->current.process = reader_failed(reader) || process < 0 ? 0 : process;
}

static void take_slots(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame, const struct wait_site *site,
                       struct wait_candidate *ret)
{
    struct current_thread *current = &graph->current;
    enum threading_type wanted = wait_role_type((enum wait_role)site->role);
    bool has_token = false, all_read = true;
    for (uint32_t i = 0; i < site->count; i++) {
        const struct gc_slot slot = graph->slots.items[site->first + i];
        uint64_t object;
        if (slot.is_interior)
            continue;
        bool is_read = graph->types.reads_left && read_slot(graph, frame, &slot, &object);
        all_read &= is_read;
        if (!is_read || !object)
            continue;
        enum threading_type type = threading_type_of(&graph->types, object, true);
        has_token |= type == THREADING_CANCELLATION;
        all_read &= type != THREADING_OTHER || threading_type_differs(&graph->types, object, THREADING_CANCELLATION);
        take_held(graph, object, type);
        take_wait_handle(graph, object, type);
        if (type == THREADING_SAFE_HANDLE)
            take_safe_handle(graph, object, (enum wait_role)site->role);
        if (site->role == WAIT_ROLE_WORKER || site->role == WAIT_ROLE_RUNS_WORK)
            graph_take_pool_object(graph, object, type);
        if (site->role == WAIT_ROLE_PROCESS && !current->past_wait)
            take_process(graph, object);
        if (site->role == WAIT_ROLE_RUNS_TASK && threading_is_task(type)) {
            take_run(graph, object);
        } else if (!current->past_wait && (wanted == THREADING_TASK ? threading_is_task(type) : type == wanted) &&
                   wanted) {
            take_candidate(ret, object, CDACQ_WAIT_BY_FRAME);
        } else if (!current->past_wait && (site->role == WAIT_ROLE_ENTER || site->role == WAIT_ROLE_PULSE)) {
            take_candidate(ret, object, CDACQ_WAIT_BY_FRAME);
        }
    }
    if (!current->past_wait)
        take_token(current, (enum wait_role)site->role, has_token, all_read);
}

/* Takes a word that may be no reference at all. */
static void take_word(struct cdacq_wait_graph *graph, uint64_t word, enum wait_role role, struct wait_candidate *ret)
{
    enum threading_type wanted = wait_role_type(role);
    if (role == WAIT_ROLE_INITIALIZER) {
        graph_take_initializer_word(graph, word);
        return;
    }
    enum threading_type type = threading_type_of(&graph->types, word, false);
    take_wait_handle(graph, word, type);
    if (wanted && type == wanted)
        take_candidate(ret, word, CDACQ_WAIT_BY_SCAN);
}

static void scan(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame, enum wait_role role,
                 struct wait_candidate *ret)
{
    const struct walk_machine *machine = walk_machine_find(graph->resolver->reader.layout->architecture);
    unsigned width = graph->resolver->reader.pointer_size;
    uint64_t word, end = frame->cfa > frame->sp ? frame->cfa : frame->sp;
    if (!machine)
        return;
    for (unsigned i = 0; frame->registers && i < ARRAY_SIZE(frame->registers->values); i++)
        if (frame->registers->known >> i & 1 && i != machine->pc && i != machine->sp)
            take_word(graph, frame->registers->values[i], role, ret);
    for (unsigned i = 0; i < SCAN_WORDS_MAX && graph->types.reads_left && frame->sp + (uint64_t)i * width < end; i++)
        if (read_word(graph, frame->sp + (uint64_t)i * width, &word))
            take_word(graph, word, role, ret);
}

/*
 * Finds the record of a wait for a Lock in a frame. The method that made it may have been inlined into any method that
 * waits, or into the one that called it.
 */
void graph_find_blocking(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame)
{
    unsigned width = graph->resolver->reader.pointer_size;
    struct managed_blocking found = {0};
    uint64_t end = frame->cfa > frame->sp ? frame->cfa : frame->sp, address = frame->sp;
    for (unsigned i = 0; i < SCAN_WORDS_MAX && graph->types.reads_left && address < end; i++, address += width) {
        struct managed_blocking blocking = managed_blocking_read(&graph->types, address, frame->sp, end);
        if (blocking.lock && found.lock) /* which of the two is the innermost is not known */
            return;
        if (blocking.lock)
            found = blocking;
    }
    graph->current.blocking = found;
}

void graph_read_frame(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame)
{
    struct current_thread *current = &graph->current;
    if (frame->kind == CDACQ_FRAME_NATIVE && !current->left_native && current->timed == GRAPH_UNKNOWN)
        current->timed = timed_of(frame);
    if ((frame->kind != CDACQ_FRAME_MANAGED && frame->kind != CDACQ_FRAME_FUNCLET) || !frame->method)
        return;
    current->left_native = true;
    if (frame->by == CDACQ_FRAME_BY_GUESS) { /* there may be no such frame */
        current->past_wait = true;
        return;
    }
    /* While a funclet runs, the collector reports the references of the funclet's frame, not those of its method's. */
    bool reported = frame->kind == CDACQ_FRAME_MANAGED && current->funclet_method &&
                    frame->method->method_desc == current->funclet_method;
    current->funclet_method = frame->kind == CDACQ_FRAME_FUNCLET ? frame->method->method_desc : 0;
    const struct wait_site *known = reported ? NULL : site_of(graph, frame);
    if (!known || known->neutral)
        return;
    struct wait_candidate candidate = {0};
    struct wait_site own = *known;
    const struct wait_site *site = &own;
    if (!own.role && !current->past_wait && !current->roles)
        own.role = (uint8_t)role_of_call(graph, frame);
    enum wait_role role = (enum wait_role)own.role;
    bool waits = wait_role_waits(role);
    if (role == WAIT_ROLE_NONE)
        current->code = frame->pc - frame->is_call;
    bool called_wait =
        !waits && !current->past_wait && (current->roles >> WAIT_ROLE_HANDLE & 1 || current->waited.object);
    bool is_waiting = graph->has_managed_wait && graph_last_thread(graph)->is_waiting; /* even if no frame shows it */
    if (!current->past_wait && is_waiting && !current->blocking.lock)
        graph_find_blocking(graph, frame);
    if (!waits && !current->past_wait)
        current->framework_waits = (current->roles || is_waiting) && site->of_framework;
    current->past_wait |= !waits;
    struct graph_thread *thread = graph_last_thread(graph);
    if (site->is_initializer)
        graph_take_initializer(graph, frame->method->method_desc);
    thread->serves_pool |= role == WAIT_ROLE_SERVES_POOL;
    thread->is_worker |= role == WAIT_ROLE_WORKER;
    thread->runs_work |= role == WAIT_ROLE_RUNS_WORK;
    if (site->exact)
        take_slots(graph, frame, site, &candidate);
    if (called_wait && current->candidates[WAIT_ROLE_HANDLE].by != CDACQ_WAIT_BY_STATE)
        scan(graph, frame, WAIT_ROLE_NONE, &candidate);
    if (current->past_wait)
        return;
    if (!candidate.object)
        scan(graph, frame, role, &candidate);
    current->roles |= 1u << role;
    if (!current->candidates[role].object && !(role == WAIT_ROLE_HANDLE && current->safe_handle))
        current->candidates[role] = candidate;
}
