/*
 * wait_names.c: forms the names of objects' types and of the methods that tasks belong to, each once.
 */
#include "contracts/execution_manager/execution_manager.h"
#include "contracts/objects/object.h"
#include "contracts/threading/async_method.h"
#include "contracts/type_system/type_handle.h"
#include "formats/names/names.h"
#include "src/lookup/opened_target.h"
#include "src/lookup/records.h"
#include "src/waits/wait_graph.h"

static struct work *work_of(struct cdacq_wait_graph *graph)
{
    return &graph->resolver->target->memory->work;
}

/*
 * A name that is handed out once more. The work that it makes counts: a million locks, or the tasks behind thousands of
 * waits, can have one type with a name of 64 KiB. NULL at the bound.
 */
static const char *hand_out(struct cdacq_wait_graph *graph, const struct type_name *name)
{
    return name->name && work_take_text(work_of(graph), name->length) ? name->name : NULL;
}

static const char *keep(struct cdacq_wait_graph *graph, struct type_names *names, uint64_t key, struct text *text)
{
    struct type_name item = {.method_table = key};
    if (text->length && !text->broken && work_take_memory(work_of(graph), text->length)) {
        graph->name_bytes += text->length;
        item.name = arena_string(&graph->arena, text->data, text->length);
        item.length = (uint32_t)text->length;
    }
    text_deinit(text);
    if (!type_names_insert(names, item, NULL))
        graph_note_memory(graph);
    return hand_out(graph, &item);
}

void graph_return_names(struct cdacq_wait_graph *graph)
{
    work_return_memory(work_of(graph), graph->name_bytes);
    graph->name_bytes = 0;
}

const char *graph_method_table_name(struct cdacq_wait_graph *graph, uint64_t method_table)
{
    struct text text = {0};
    reader_begin(&graph->resolver->reader, FUEL_NAME);
    const struct type_name *known = type_names_find(&graph->type_names, method_table);
    if (known || graph->type_names.count == WAIT_NAMES_MAX)
        return known ? hand_out(graph, known) : NULL;
    (void)type_handle_name(&graph->resolver->modules, method_table, &text);
    return keep(graph, &graph->type_names, method_table, &text);
}

const char *graph_type_name(struct cdacq_wait_graph *graph, uint64_t object)
{
    struct reader *reader = &graph->resolver->reader;
    reader_begin(reader, FUEL_NAME);
    uint64_t method_table = object_method_table(reader, object);
    return reader_failed(reader) ? NULL : graph_method_table_name(graph, method_table);
}

/* Writes the name of a state machine's async method, which is what the source spelling calls its MoveNext. */
static void name_machine(struct cdacq_wait_graph *graph, uint64_t method_table, struct text *text)
{
    static const char move_next[] = "MoveNext";
    const struct metadata *metadata;
    uint32_t token, begin, end;
    if (type_handle_definition(&graph->resolver->modules, method_table, &metadata, &token) != CDACQ_OK ||
        metadata_methods(metadata, metadata_rid(token), &begin, &end) != CDACQ_OK ||
        metadata_row_count(metadata, METADATA_METHOD_PTR))
        return;
    const struct name_source source = {.metadata = metadata};
    for (uint32_t rid = begin; rid < end && reader_step(&graph->resolver->reader, "methods of a type"); rid++) {
        struct metadata_method_def row;
        bool equal = false;
        if (metadata_method_def(metadata, rid, &row) == CDACQ_OK &&
            metadata_string_equals(metadata, row.name, move_next, sizeof move_next - 1, &equal) == CDACQ_OK && equal) {
            (void)name_method(&source, &name_spelling_source, metadata_token(METADATA_METHOD_DEF, rid), NULL, text);
            return;
        }
    }
}

void wait_name_entry(struct resolver *resolver, uint64_t entry, struct text *text)
{
    const struct method_namer namer = resolver_namer(resolver, &name_spelling_source);
    struct method_name name = {0};
    uint64_t method_desc;
    if (!execution_manager_entry_method_desc(&resolver->target->manager, &resolver->reader,
                                             resolver_address(resolver, entry), &method_desc))
        return;
    method_name_of_desc(&namer, method_desc, &name);
    *text = name.text;
}

static void name_code(struct cdacq_wait_graph *graph, uint64_t address, struct text *text)
{
    struct resolver *resolver = graph->resolver;
    const struct method_namer namer = resolver_namer(resolver, &name_spelling_source);
    struct method_name name = {0};
    struct code_block block;
    if (!execution_manager_find(&resolver->target->manager, &resolver->reader, resolver_address(resolver, address),
                                &block) ||
        !code_block_is_method(&block))
        return;
    method_name_form(&namer, &block, &name);
    *text = name.text;
}

const char *graph_code_method(struct cdacq_wait_graph *graph, uint64_t address)
{
    struct text text = {0};
    reader_begin(&graph->resolver->reader, FUEL_LOOKUP);
    const struct type_name *known = type_names_find(&graph->method_names, address);
    if (known || graph->method_names.count == WAIT_NAMES_MAX)
        return known ? hand_out(graph, known) : NULL;
    name_code(graph, address, &text);
    return keep(graph, &graph->method_names, address, &text);
}

const char *graph_task_method(struct cdacq_wait_graph *graph, uint64_t task)
{
    struct text text = {0};
    struct async_method method;
    reader_begin(&graph->resolver->reader, FUEL_NAME);
    if (!async_method_find(&graph->types, task, &method))
        return NULL;
    uint64_t key = method.type ? method.type : task_entry_point(&graph->types, task);
    if (!key)
        return NULL;
    const struct type_name *known = type_names_find(&graph->method_names, key);
    if (known || graph->method_names.count == WAIT_NAMES_MAX)
        return known ? hand_out(graph, known) : NULL;
    if (method.type)
        name_machine(graph, method.type, &text);
    else
        wait_name_entry(graph->resolver, key, &text);
    return keep(graph, &graph->method_names, key, &text);
}
