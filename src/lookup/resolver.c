#include "src/lookup/resolver.h"

#include "contracts/execution_manager/code_map.h"
#include "src/lookup/module_source.h"
#include "src/lookup/opened_target.h"

static const char *interned_key(const char *const *text)
{
    return *text;
}

DEFINE_HASH_TABLE_FUNCTIONS(interned_texts, const char *, const char *, interned_key, hash_string, equal_strings);

static void code_index_forget(struct code_index *index)
{
    for (size_t i = 0; index->ranges && i < index->map->count; i++)
        free(index->ranges[i].records);
    free(index->ranges);
    code_map_free(index->own_map);
    *index = (struct code_index){.lookups = index->lookups};
}

static void records_forget(struct records *records)
{
    walked_records_deinit(&records->walked);
    record_index_deinit(&records->formed);
    arena_deinit(&records->epoch_arena);
    records->function_total = 0;
    records->il_point_total = 0;
}

static void records_forget_texts(struct records *records)
{
    interned_texts_deinit(&records->texts);
    arena_deinit(&records->arena);
    records->module_path = NULL;
}

static void source_lines_forget(struct source_lines *lines)
{
    lines->point_total = 0;
    lines->point_bytes = 0;
}

static void source_lines_deinit(struct source_lines *lines)
{
    for (struct module_source **source = NULL; (source = module_sources_next(&lines->sources, source));) {
        source_link_deinit(&(*source)->link);
        free((*source)->documents);
        free(*source);
    }
    module_sources_deinit(&lines->sources);
}

void resolver_init(struct resolver *resolver, struct cdacq_target *target, struct module_files files)
{
    *resolver = (struct resolver){.target = target, .names = target->names};
    reader_init_fields(&resolver->reader, target->memory, &target->layout, target->descriptor_info.pointer_size,
                       target->descriptor_info.big_endian);
    epoch_init(&resolver->epoch, target, &resolver->reader);
    module_cache_init(&resolver->modules, &resolver->reader, files);
    resolver->modules.round = &resolver->epoch.round;
    const struct execution_manager_version *version = target->manager.version;
    if (version && version->only_section && !target->is_native)
        resolver->modules.aot = &target->manager.managers.aot;
}

/* Drops what was formed in an epoch. */
static void forget(struct resolver *resolver)
{
    code_index_forget(&resolver->index);
    records_forget(&resolver->records);
    source_lines_forget(&resolver->lines);
    module_cache_trim(&resolver->modules);
}

void resolver_deinit(struct resolver *resolver)
{
    forget(resolver);
    records_forget_texts(&resolver->records);
    source_lines_deinit(&resolver->lines);
    native_code_deinit(&resolver->native);
    module_cache_deinit(&resolver->modules);
    epoch_deinit(&resolver->epoch);
    arena_deinit(&resolver->failure_texts);
}

/* Drops the texts of a running process if they are many, and the documents of PDBs among them. */
static void forget_texts(struct resolver *resolver)
{
    struct records *records = &resolver->records;
    size_t table = records->texts.capacity * (sizeof *records->texts.slots + 1);
    if (records->arena.size + table <= SESSION_TEXTS_MAX || records->text_users)
        return;
    source_lines_deinit(&resolver->lines);
    resolver->lines = (struct source_lines){0};
    records_forget_texts(records);
    work_return_memory(&resolver->target->memory->work, records->arena_taken);
    records->arena_seen = records->arena_taken = 0;
}

void resolver_begin(struct resolver *resolver)
{
    if (!epoch_begin(&resolver->epoch))
        return;
    native_code_follow(&resolver->native, resolver->target);
    forget(resolver);
    forget_texts(resolver);
}

bool resolver_gave_up(const struct resolver *resolver, struct cdacq_error *err)
{
    char text[128];
    if (!work_is_spent(&resolver->target->memory->work, text, sizeof text))
        return false;
    error_set(err, CDACQ_ERR_FUEL, 0, "%s", text);
    return true;
}

const char *resolver_text(struct resolver *resolver, const char *text, size_t length)
{
    return resolver_is_running(resolver) ? resolver_intern(resolver, text, length)
                                         : arena_string(&resolver->records.arena, text, length);
}

const char *resolver_intern(struct resolver *resolver, const char *text, size_t length)
{
    struct records *records = &resolver->records;
    const char **known = interned_texts_find(&records->texts, text);
    const char *copy = known ? *known : arena_string(&records->arena, text, length);
    return known || (copy && interned_texts_insert(&records->texts, copy, NULL)) ? copy : NULL;
}
