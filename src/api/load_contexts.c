/* load_contexts.c: the call of cdacq/heap.h for assembly load contexts. */
#include "cdacq/heap.h"
#include "contracts/load_context.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/string.h"
#include "src/lookup/opened_session.h"
#include "util/error.h"

enum {
    CONTEXTS_MAX = 1 << 16,
    NAME_MAX_UNITS = 1024,
    STATE_UNLOADING = 1, /* AssemblyLoadContext.InternalState */
};

struct known {
    struct load_context context;
    uint32_t assemblies;
};

DEFINE_VECTOR(known_contexts, struct known);

struct visit {
    struct reader *reader;
    struct known_contexts known;
    bool out_of_memory;
};

static void add_module(void *context, uint64_t module)
{
    struct visit *visit = context;
    struct known added = {.context = load_context_read(visit->reader, module), .assemblies = 1};
    if (reader_recover(visit->reader, FAILURE_BUT_FUEL))
        return; /* what is known of the others stays known */
    for (size_t i = visit->known.count; i-- > 0 && reader_step(visit->reader, "load contexts");) {
        struct known *known = &visit->known.items[i];
        if (known->context.context == added.context.context && known->context.allocator == added.context.allocator) {
            known->assemblies++;
            return;
        }
    }
    if (visit->known.count < CONTEXTS_MAX && !known_contexts_append(&visit->known, added))
        visit->out_of_memory = true;
}

/* The name that the program has given it. */
static const char *read_name(struct resolver *resolver, uint64_t context)
{
    struct text text = {0}, escaped = {0};
    uint64_t name = 0;
    if (context && object_reference(&resolver->modules, context, "_name", &name) && name &&
        string_append(&resolver->reader, name, NAME_MAX_UNITS, &text))
        text_escape(&escaped, text.data, text.length);
    reader_recover(&resolver->reader, FAILURE_BUT_FUEL);
    const char *found = escaped.length ? resolver_intern(resolver, escaped.data, escaped.length) : NULL;
    text_deinit(&text);
    text_deinit(&escaped);
    return found;
}

static bool is_unloading(struct resolver *resolver, uint64_t context)
{
    struct reader *reader = &resolver->reader;
    struct object_field field;
    uint64_t type = context ? object_method_table(reader, context) : 0;
    bool is = type && object_field_find(&resolver->modules, type, "_state", &field) && !field.is_static &&
              read_u32(reader, object_field_address(reader, context, &field)) == STATE_UNLOADING;
    return !reader_recover(reader, FAILURE_BUT_FUEL) && is;
}

enum cdacq_status cdacq_session_visit_load_contexts(struct cdacq_session *session,
                                                    int (*visit)(const struct cdacq_load_context *found, void *context),
                                                    void *context, struct cdacq_error *err)
{
    if (!session || !visit)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, session ? "no callback is given" : "no session");
    struct resolver *resolver = &session->resolver;
    struct visit work = {.reader = &resolver->reader};
    resolver_begin(resolver);
    reader_begin(&resolver->reader, FUEL_HEAP);
    bool is_listed = assemblies_visit(&resolver->reader, add_module, &work), stopped = false;
    enum cdacq_status status = reader_status(&resolver->reader, err);
    if (status >= 0 && work.out_of_memory)
        status = error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    if (status >= 0 && !is_listed)
        status = error_set(err, CDACQ_ERR_FIELD, 0, "the runtime does not describe its list of assemblies");
    for (size_t i = 0; status >= 0 && i < work.known.count && !stopped; i++) {
        const struct known *known = &work.known.items[i];
        struct cdacq_load_context found = {.size = sizeof found,
                                           .address = known->context.context,
                                           .allocator = known->context.allocator,
                                           .name = read_name(resolver, known->context.context),
                                           .is_unloading = is_unloading(resolver, known->context.context),
                                           .assembly_count = known->assemblies};
        status = reader_status(&resolver->reader, err);
        stopped = status >= 0 && visit(&found, context) != 0;
    }
    known_contexts_deinit(&work.known);
    return status < 0 ? status : stopped ? CDACQ_STOPPED : CDACQ_OK;
}
