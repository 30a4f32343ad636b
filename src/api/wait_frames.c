/*
 * wait_frames.c: finds the objects that a frame refers to: in the slots that its GC info names or, if that does not
 * help, in all its words.
 */
#include "contracts/objects/sync_block.h"
#include "contracts/stack_walk/explicit_frame.h"
#include "contracts/stack_walk/machine.h"
#include "contracts/type_system/method_desc.h"
#include "src/api/session.h"
#include "src/api/wait_graph.h"

enum {
    SCAN_WORDS_MAX = 256,   /* words of a frame that are searched */
    SITES_MAX = 64 * 1024,  /* program counters; frames at others are ignored */
    SLOTS_MAX = 1 << 20,    /* slots of all sites; frames at further sites are searched */
    FUEL_SLOTS = 20 * 1000, /* for one frame's GC info */
};

/* ---- Sites ---- */

static bool is_core(const struct cdacq_wait_graph *graph, const struct module *module)
{
    return module && graph->types.core &&
           (module->address == graph->types.core || (module->base && module->base == graph->core_base));
}

static void read_slots(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame, struct wait_site *site)
{
    struct cdacq_session *session = graph->session;
    struct field_reader *reader = &session->reader;
    struct code_block block;
    uint64_t gc_info;
    uint32_t version;
    reader_begin(&reader->raw, FUEL_LOOKUP);
    if (!execution_manager_find(&session->target->manager, reader, session_address(session, frame->pc - frame->is_call),
                                &block) ||
        !code_block_is_method(&block) || !block.manager->gc_info ||
        !block.manager->gc_info(reader, &block, &gc_info, &version) || block.offset + frame->is_call > UINT32_MAX)
        return;
    reader_begin(&reader->raw, FUEL_SLOTS);
    site->exact = gc_slots_read(reader, gc_info, version, (uint32_t)(block.offset + frame->is_call), frame->is_call,
                                &graph->slots);
    site->count = (uint32_t)(graph->slots.count - site->first);
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
    const struct method_record *record = session_find_record(graph->session, frame->pc - frame->is_call, &method);
    reader_begin(&graph->session->reader.raw, FUEL_NAME);
    if (record && is_core(graph, record->module))
        site.role = (uint8_t)wait_role_of(&record->module->metadata, method.token);
    const struct module *module = record ? record->module : NULL; /* a dynamic method has none */
    site.of_framework = module && module->status >= 0 && wait_is_of_framework(&module->metadata, method.token);
    site.is_initializer = module && module->status >= 0 && wait_is_initializer(&module->metadata, method.token);
    site.neutral = !record || !method.token;
    if (graph->slots.count < SLOTS_MAX)
        read_slots(graph, frame, &site);
    const struct wait_site *added = wait_sites_insert(&graph->sites, site, NULL);
    if (!added)
        graph_note_memory(graph);
    return added;
}

uint64_t graph_innermost_frame(struct cdacq_wait_graph *graph, uint64_t thread)
{
    struct field_reader *reader = &graph->session->reader;
    reader_begin(&reader->raw, FUEL_LOOKUP);
    uint64_t frame = thread ? read_field(reader, thread, F_Thread_Frame) : 0;
    return !frame || reader_failed(&reader->raw) || frame_is_last(reader, frame) ? 0 : frame;
}

/*
 * The role of a native function that the code of `frame` has called: the compiler may have inlined the method that
 * calls it, such as Thread.Join, into this code. The runtime's Frame names the function, and has to lead back to
 * `frame`.
 */
static enum wait_role role_of_call(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame)
{
    struct cdacq_session *session = graph->session;
    struct field_reader *reader = &session->reader;
    const struct walk_machine *machine = walk_machine_find(session->target->layout.architecture);
    uint64_t call = graph_innermost_frame(graph, graph_last_thread(graph)->address);
    struct frame_caller caller;
    struct method_desc method;
    if (!call || !machine || !frame_is_inlined_call(reader, call) || !frame_caller(reader, machine, call, &caller) ||
        caller.registers.values[machine->pc] != frame->pc ||
        !method_desc_read(reader, frame_method(reader, call), &method) || method.module != graph->types.core)
        return WAIT_ROLE_NONE;
    const struct module *core = module_cache_get(&session->modules, method.module);
    return core ? wait_role_of(&core->metadata, method.token) : WAIT_ROLE_NONE;
}

/* ---- Objects of a frame ---- */

static bool read_word(struct cdacq_wait_graph *graph, uint64_t address, uint64_t *ret)
{
    struct reader *reader = &graph->session->reader.raw;
    reader_begin(reader, FUEL_LOOKUP);
    *ret = read_pointer(reader, address);
    return !reader_failed(reader);
}

static bool read_slot(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame, const struct gc_slot *slot,
                      uint64_t *ret)
{
    const struct cdacq_registers *registers = frame->registers;
    bool needs_register = slot->base == GC_SLOT_REGISTER || slot->base == GC_SLOT_FRAME;
    if (needs_register && !(registers && registers->known >> slot->number & 1))
        return false;
    /* A funclet has another stack pointer than its method: only slots by the frame register are where the info says. */
    if (frame->kind == CDACQ_FRAME_FUNCLET && slot->base != GC_SLOT_FRAME)
        return false;
    uint64_t base = slot->base == GC_SLOT_CALLER_SP ? frame->cfa : frame->sp;
    if (needs_register)
        base = registers->values[slot->number];
    if (slot->base == GC_SLOT_REGISTER) {
        *ret = base;
        return true;
    }
    return base && read_word(graph, base + (uint64_t)(int64_t)slot->offset, ret);
}

/* Takes a WaitHandle if it has the SafeWaitHandle that the thread waits for. The caller's frame can hold it, too. */
static void take_wait_handle(struct cdacq_wait_graph *graph, uint64_t object, enum threading_type type)
{
    struct current_thread *current = &graph->current;
    uint64_t safe;
    if (type == THREADING_WAIT_HANDLE && current->safe_handle &&
        threading_read(&graph->types, object, THREADING_WAIT_HANDLE_SAFE, &safe) && safe == current->safe_handle)
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
    struct field_reader *reader = &graph->session->reader;
    struct object_monitor monitor;
    reader_begin(&reader->raw, FUEL_LOOKUP);
    if (type == THREADING_LOCK || type == THREADING_READER_WRITER ||
        (object_monitor_read(reader, object, &monitor) && monitor.thin && monitor.thread_id == thread->managed_id))
        (void)graph_add_lock(graph, object);
}

/* Notes a task that the thread runs. */
static void take_run(struct cdacq_wait_graph *graph, uint64_t task)
{
    bool full = graph->runs.count >= RUNNING_TASKS_MAX;
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
    if (!frame->symbol || !frame->module || frame->by == CDACQ_FRAME_BY_GUESS || frame->files_unverified)
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

static void take_slots(struct cdacq_wait_graph *graph, const struct cdacq_frame *frame, const struct wait_site *site,
                       struct wait_candidate *ret)
{
    struct current_thread *current = &graph->current;
    enum threading_type wanted = wait_role_type((enum wait_role)site->role);
    bool has_token = false, all_read = true;
    for (uint32_t i = 0; i < site->count; i++) {
        const struct gc_slot slot = graph->slots.items[site->first + i];
        uint64_t object;
        bool is_read = graph->types.reads_left && read_slot(graph, frame, &slot, &object);
        all_read &= is_read;
        if (!is_read || !object)
            continue;
        enum threading_type type = threading_type_of(&graph->types, object, true);
        has_token |= type == THREADING_CANCELLATION;
        all_read &= type != THREADING_OTHER || threading_type_differs(&graph->types, object, THREADING_CANCELLATION);
        take_held(graph, object, type);
        take_wait_handle(graph, object, type);
        if (type == THREADING_SAFE_HANDLE && site->role == WAIT_ROLE_HANDLE) {
            current->several_handles |= current->safe_handle && current->safe_handle != object;
            current->safe_handle = object;
        }
        if (site->role == WAIT_ROLE_WORKER || site->role == WAIT_ROLE_RUNS_WORK)
            graph_take_pool_object(graph, object, type);
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
    const struct walk_machine *machine = walk_machine_find(graph->session->target->layout.architecture);
    unsigned width = graph->session->reader.raw.pointer_size;
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
    bool called_wait = !waits && !current->past_wait && current->roles >> WAIT_ROLE_HANDLE & 1;
    if (!waits && !current->past_wait)
        current->framework_waits = current->roles && site->of_framework;
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
