/*
 * rejit.c: a profiler, as the runtime loads it, that has a method compiled from other IL: Work.Untouched of Edited.dll,
 * with nops at its beginning. With $CDACQ_REJIT_GO, it is compiled again, when there is the file of this name, and the
 * profiler makes the file $CDACQ_REJIT_DONE when the runtime has taken the request. Otherwise, its first code has the
 * other IL. The tables of functions have the order of dotnet/runtime src/coreclr/inc/corprof.idl.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*slot)(void);

struct object {
    const slot *functions;
};

enum {
    QUERY_INTERFACE = 0,
    /* ICorProfilerCallback */
    INITIALIZE = 3,
    JIT_COMPILATION_STARTED = 23,
    JIT_COMPILATION_FINISHED = 24,
    GET_REJIT_PARAMETERS = 84,
    CALLBACKS = 128, /* more than any version has */
    /* ICorProfilerInfo4 */
    GET_FUNCTION_INFO = 15,
    SET_EVENT_MASK = 16,
    GET_MODULE_INFO = 20,
    GET_IL_FUNCTION_BODY = 22,
    GET_IL_FUNCTION_BODY_ALLOCATOR = 23,
    SET_OWN_IL_FUNCTION_BODY = 24,
    REQUEST_REJIT = 73,
    /* ICorProfilerFunctionControl */
    SET_IL_FUNCTION_BODY = 4,
    /* IMethodMalloc */
    ALLOC = 3,
};

enum { MONITOR_JIT_COMPILATION = 0x20, ENABLE_REJIT = 0x40000 };
enum { METHOD = 0x06000001, NOPS = 16, NAME_MAX_UNITS = 512, BODY_MAX = 64, TINY_FORMAT = 2 };
enum { POLLS_MAX = 6000, POLL_MICROSECONDS = 10 * 1000 };

typedef int32_t query_interface(struct object *, const void *iid, void *ret);
typedef int32_t get_function_info(struct object *, uintptr_t id, uintptr_t *ret_class, uintptr_t *ret_module,
                                  uint32_t *ret_token);
typedef int32_t set_event_mask(struct object *, uint32_t mask);
typedef int32_t get_module_info(struct object *, uintptr_t id, const uint8_t **ret_base, uint32_t room,
                                uint32_t *ret_length, uint16_t *ret_name, uintptr_t *ret_assembly);
typedef int32_t get_il_function_body(struct object *, uintptr_t module, uint32_t token, const uint8_t **ret,
                                     uint32_t *ret_size);
typedef int32_t get_il_function_body_allocator(struct object *, uintptr_t module, struct object **ret);
typedef int32_t set_own_il_function_body(struct object *, uintptr_t module, uint32_t token, const uint8_t *body);
typedef void *alloc(struct object *, uint32_t size);
typedef int32_t request_rejit(struct object *, uint32_t count, const uintptr_t *modules, const uint32_t *tokens);
typedef int32_t set_il_function_body(struct object *, uint32_t size, const uint8_t *body);

#define CALL(object, number, type, ...) (((type *)(object)->functions[number])(object, __VA_ARGS__))

int32_t DllGetClassObject(const void *class_id, const void *iid, struct object **ret);

static struct object *info;
static uintptr_t module;

static int32_t do_nothing(void)
{
    return 0;
}

static int32_t give_itself(struct object *self, const void *iid, struct object **ret)
{
    (void)iid;
    *ret = self;
    return 0;
}

/* On a thread of its own: a callback must not request it. A thread has to enter the old code before. */
static void *request(void *context)
{
    (void)context;
    const uint32_t token = METHOD;
    const char *go = getenv("CDACQ_REJIT_GO"), *done = getenv("CDACQ_REJIT_DONE");
    for (int i = 0; go && i < POLLS_MAX && access(go, F_OK) != 0; i++)
        usleep(POLL_MICROSECONDS);
    if (CALL(info, REQUEST_REJIT, request_rejit, 1, &module, &token) == 0 && done)
        close(open(done, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    return NULL;
}

static bool is_edited(uintptr_t of)
{
    static const char expected[] = "/Edited.dll";
    const uint8_t *base;
    uint32_t length = 0;
    uint16_t name[NAME_MAX_UNITS] = {0};
    uintptr_t assembly;
    if (CALL(info, GET_MODULE_INFO, get_module_info, of, &base, NAME_MAX_UNITS, &length, name, &assembly) != 0 ||
        length < sizeof expected || length > NAME_MAX_UNITS)
        return false;
    for (size_t i = 0; i < sizeof expected; i++) /* the length counts the NUL */
        if (name[length - sizeof expected + i] != (uint16_t)expected[i])
            return false;
    return true;
}

/* The module of the method that is being compiled if it is the one to replace, else 0. */
static uintptr_t module_to_change(uintptr_t id)
{
    uintptr_t class, of;
    uint32_t token = 0;
    bool found = CALL(info, GET_FUNCTION_INFO, get_function_info, id, &class, &of, &token) == 0 && token == METHOD;
    return found && is_edited(of) ? of : 0;
}

/* The method's body with nops at its beginning. Returns its size, or 0. */
static uint32_t make_body(uintptr_t of, uint32_t token, uint8_t ret[BODY_MAX])
{
    const uint8_t *il;
    uint32_t size;
    if (CALL(info, GET_IL_FUNCTION_BODY, get_il_function_body, of, token, &il, &size) != 0 ||
        (il[0] & 3) != TINY_FORMAT || size + NOPS > BODY_MAX)
        return 0;
    memset(ret, 0, BODY_MAX);
    ret[0] = (uint8_t)(il[0] + (NOPS << 2)); /* the size of the code */
    memcpy(ret + 1 + NOPS, il + 1, size - 1);
    return size + NOPS;
}

static int32_t replace_first(struct object *self, uintptr_t id, int32_t is_safe)
{
    struct object *allocator;
    uint8_t body[BODY_MAX];
    uintptr_t of = getenv("CDACQ_REJIT_GO") ? 0 : module_to_change(id);
    uint32_t size = of ? make_body(of, METHOD, body) : 0;
    (void)self;
    (void)is_safe;
    if (size && CALL(info, GET_IL_FUNCTION_BODY_ALLOCATOR, get_il_function_body_allocator, of, &allocator) == 0) {
        void *copy = CALL(allocator, ALLOC, alloc, size);
        if (copy)
            CALL(info, SET_OWN_IL_FUNCTION_BODY, set_own_il_function_body, of, METHOD, memcpy(copy, body, size));
    }
    return 0;
}

static int32_t note_compilation(struct object *self, uintptr_t id, int32_t status, int32_t is_safe)
{
    pthread_t thread;
    (void)self;
    (void)is_safe;
    if (status == 0 && !module && getenv("CDACQ_REJIT_GO") && (module = module_to_change(id)) &&
        pthread_create(&thread, NULL, request, NULL) == 0)
        pthread_detach(thread);
    return 0;
}

static int32_t give_il(struct object *self, uintptr_t of, uint32_t token, struct object *control)
{
    uint8_t body[BODY_MAX];
    uint32_t size = make_body(of, token, body);
    (void)self;
    return size ? CALL(control, SET_IL_FUNCTION_BODY, set_il_function_body, size, body) : -1;
}

static int32_t initialize(struct object *self, struct object *unknown)
{
    /* 0d8fdcaa-6257-47bf-b1bf-94dac88466ee */
    static const uint8_t info4[] = {0xaa, 0xdc, 0x8f, 0x0d, 0x57, 0x62, 0xbf, 0x47,
                                    0xb1, 0xbf, 0x94, 0xda, 0xc8, 0x84, 0x66, 0xee};
    (void)self;
    if (CALL(unknown, QUERY_INTERFACE, query_interface, info4, &info) != 0)
        return -1;
    return CALL(info, SET_EVENT_MASK, set_event_mask, MONITOR_JIT_COMPILATION | ENABLE_REJIT);
}

static slot callbacks[CALLBACKS];
static struct object profiler = {callbacks};

static int32_t create(struct object *self, struct object *outer, const void *iid, struct object **ret)
{
    (void)self;
    (void)outer;
    (void)iid;
    *ret = &profiler;
    return 0;
}

__attribute__((visibility("default"))) int32_t DllGetClassObject(const void *class_id, const void *iid,
                                                                 struct object **ret)
{
    static const slot functions[] = {(slot)give_itself, (slot)do_nothing, (slot)do_nothing, (slot)create,
                                     (slot)do_nothing};
    static struct object factory = {functions};
    (void)class_id;
    (void)iid;
    for (size_t i = 0; i < CALLBACKS; i++)
        callbacks[i] = (slot)do_nothing;
    callbacks[QUERY_INTERFACE] = (slot)give_itself;
    callbacks[INITIALIZE] = (slot)initialize;
    callbacks[JIT_COMPILATION_STARTED] = (slot)replace_first;
    callbacks[JIT_COMPILATION_FINISHED] = (slot)note_compilation;
    callbacks[GET_REJIT_PARAMETERS] = (slot)give_il;
    *ret = &factory;
    return 0;
}
