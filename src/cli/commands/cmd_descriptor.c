/*
 * cmd_descriptor.c: prints the merged descriptor that the library uses, each value with its origin, or the differences
 * between two. Origins are not compared, nor are the values of globals that are addresses, which differ in each
 * process.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/base/runtimes.h"
#include "util/vector.h"

/* One value and the type that it is a field of, NULL for others. Strings are the target's. */
struct entry {
    struct cdacq_descriptor_item item;
    const char *scope;
};

DEFINE_VECTOR(entries, struct entry);

struct list {
    struct entries entries;
    const char *scope; /* the type visited last */
    unsigned schema;
};

static int add_entry(const struct cdacq_descriptor_item *item, void *context)
{
    struct list *list = context;
    if (item->kind == CDACQ_ITEM_TYPE)
        list->scope = item->name;
    if (!entries_append(&list->entries, (struct entry){*item, item->kind == CDACQ_ITEM_FIELD ? list->scope : NULL}))
        out_of_memory();
    return 0;
}

/*
 * Opens a target and lists its descriptor, which may exist even if no method can be found. Returns NULL, with a
 * message, if there is none.
 */
static struct cdacq_target *open_described(const char *name, const struct common_options *options, struct list *list)
{
    struct cdacq_options open = options->open;
    open.flags |= CDACQ_OPEN_PARTIAL;
    struct cdacq_target *target = target_open(name, &open);
    if (!target)
        return NULL;
    struct cdacq_target_info info = {.size = sizeof info};
    cdacq_target_get_info(target, &info, NULL);
    list->schema = info.schema;
    if (cdacq_target_visit_descriptor(target, add_entry, list, NULL) < 0)
        out_of_memory();
    if (list->entries.count || !info.problem)
        return target;
    message("%s", info.problem);
    cdacq_target_close(target);
    return NULL;
}

static bool is_address(const struct cdacq_descriptor_item *item)
{
    return item->kind == CDACQ_ITEM_GLOBAL && item->type && !strcmp(item->type, "pointer");
}

/* ---- One descriptor, as JSON ----------------------------------------------------------------------------------- */

/* Addresses, and numbers that a reader's double might round, are written as "0x..". */
static void write_value(struct json_writer *w, const char *key, const struct cdacq_descriptor_item *item)
{
    if (item->text)
        json_string(w, key, item->text);
    else if (is_address(item) || item->value > UINT64_C(1) << 53)
        json_known_address(w, key, item->has_value, item->value);
    else
        json_known_number(w, key, item->has_value, item->value);
}

/* Writes a value and its origin on one line. */
static void write_item(struct json_writer *w, const char *key, const struct cdacq_descriptor_item *item)
{
    static const char *const keys[] = {
        [CDACQ_ITEM_TYPE] = "size",
        [CDACQ_ITEM_FIELD] = "offset",
        [CDACQ_ITEM_GLOBAL] = "value",
        [CDACQ_ITEM_CONTRACT] = "version",
    };
    bool wrap = w->wrap;
    json_begin_object(w, key);
    w->wrap = false;
    write_value(w, keys[item->kind], item);
    if (item->kind == CDACQ_ITEM_FIELD || item->kind == CDACQ_ITEM_GLOBAL)
        json_string(w, "type", item->type);
    json_note(w, "origin", item->origin);
    json_note(w, "overrides", item->overrides);
    json_end_object(w);
    w->wrap = wrap;
}

/* Writes the type at `i` with its fields. Returns the index after them. */
static size_t write_type(struct json_writer *w, const struct list *list, size_t i)
{
    json_begin_object(w, NULL);
    write_item(w, "!", &list->entries.items[i].item);
    for (i++; i < list->entries.count && list->entries.items[i].item.kind == CDACQ_ITEM_FIELD; i++) {
        json_string_key(w, list->entries.items[i].item.name);
        write_item(w, NULL, &list->entries.items[i].item);
    }
    json_end_object(w);
    return i;
}

static void write_section(struct json_writer *w, const struct list *list, const char *name,
                          enum cdacq_descriptor_item_kind kind)
{
    json_begin_object(w, name);
    for (size_t i = 0; i < list->entries.count;) {
        const struct cdacq_descriptor_item *item = &list->entries.items[i].item;
        if (item->kind != kind) {
            i++;
            continue;
        }
        json_string_key(w, item->name);
        if (kind == CDACQ_ITEM_TYPE) {
            i = write_type(w, list, i);
        } else {
            write_item(w, NULL, item);
            i++;
        }
    }
    json_end_object(w);
}

/* Indented for people and for diff; with --json all on one line. */
static void write_descriptor(struct output *out, const struct list *list, bool pretty)
{
    struct json_writer writer = json_begin_line(out), *w = &writer;
    writer.pretty = writer.wrap = pretty;
    json_number(w, "version", list->schema);
    write_section(w, list, "types", CDACQ_ITEM_TYPE);
    write_section(w, list, "globals", CDACQ_ITEM_GLOBAL);
    write_section(w, list, "contracts", CDACQ_ITEM_CONTRACT);
    json_end_line(w);
}

/* ---- The difference -------------------------------------------------------------------------------------------- */

/* Types by name, each followed by its fields, then globals, then contracts. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int x_section = x->scope ? CDACQ_ITEM_TYPE : (int)x->item.kind;
    int y_section = y->scope ? CDACQ_ITEM_TYPE : (int)y->item.kind;
    if (x_section != y_section)
        return x_section < y_section ? -1 : 1;
    int order = strcmp(x->scope ? x->scope : x->item.name, y->scope ? y->scope : y->item.name);
    if (order)
        return order;
    if (!x->scope || !y->scope)
        return (x->scope != NULL) - (y->scope != NULL);
    return strcmp(x->item.name, y->item.name);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_value(const struct cdacq_descriptor_item *a, const struct cdacq_descriptor_item *b)
{
    if (!same_text(a->type, b->type) || !same_text(a->text, b->text))
        return false;
    return is_address(a) || (a->has_value == b->has_value && a->value == b->value);
}

static const char *const kind_names[] = {
    [CDACQ_ITEM_TYPE] = "type",
    [CDACQ_ITEM_FIELD] = "field",
    [CDACQ_ITEM_GLOBAL] = "global",
    [CDACQ_ITEM_CONTRACT] = "contract",
};

/* "offset 8 uint32", "size 16", "1" */
static void print_value(struct output *out, const struct cdacq_descriptor_item *item)
{
    if (item->kind == CDACQ_ITEM_TYPE)
        output_literal(out, "size ");
    if (item->kind == CDACQ_ITEM_FIELD)
        output_literal(out, "offset ");
    if (item->text)
        output_text(out, item->text);
    else if (item->has_value)
        output_printf(out, is_address(item) ? "0x%" PRIx64 : "%" PRIu64, item->value);
    else
        output_literal(out, "unknown");
    if (item->type) {
        output_literal(out, " ");
        output_text(out, item->type);
    }
}

/* One of the two may be NULL. "- " is only in the first, "+ " only in the second, "~ " is in both and differs. */
static void print_difference(struct output *out, const struct entry *first, const struct entry *second)
{
    const struct entry *any = first ? first : second;
    output_literal(out, !second ? "- " : !first ? "+ " : "~ ");
    output_printf(out, "%s ", kind_names[any->item.kind]);
    if (any->scope) {
        output_text_between(out, "", any->scope, ".");
    }
    output_text_between(out, "", any->item.name, ": ");
    print_value(out, &any->item);
    if (first && second) {
        output_literal(out, " -> ");
        print_value(out, &second->item);
    }
    output_literal(out, "\n");
}

static void write_side(struct json_writer *w, const char *key, const struct entry *entry)
{
    if (entry)
        write_item(w, key, &entry->item);
    else
        json_null(w, key);
}

static void write_difference(struct output *out, const struct entry *first, const struct entry *second)
{
    const struct entry *any = first ? first : second;
    struct json_writer writer = json_begin_line(out), *w = &writer;
    json_note(w, "difference", !second ? "removed" : !first ? "added" : "changed");
    json_note(w, "kind", kind_names[any->item.kind]);
    json_string(w, "scope", any->scope);
    json_string(w, "name", any->item.name);
    write_side(w, "first", first);
    write_side(w, "second", second);
    json_end_line(w);
}

static bool compare_schemas(struct output *out, const struct list *a, const struct list *b, bool json)
{
    if (a->schema == b->schema)
        return true;
    output_printf(out,
                  json ? "{\"difference\":\"changed\",\"kind\":\"version\",\"scope\":null,\"name\":null,"
                         "\"first\":{\"version\":%u},\"second\":{\"version\":%u}}\n"
                       : "~ version: %u -> %u\n",
                  a->schema, b->schema);
    return false;
}

/* Sorts both lists. Returns whether they are the same. */
static bool compare_lists(struct output *out, struct list *a, struct list *b, bool json)
{
    bool same = compare_schemas(out, a, b, json);
    if (a->entries.count)
        qsort(a->entries.items, a->entries.count, sizeof *a->entries.items, compare_entries);
    if (b->entries.count)
        qsort(b->entries.items, b->entries.count, sizeof *b->entries.items, compare_entries);
    for (size_t i = 0, j = 0; i < a->entries.count || j < b->entries.count;) {
        const struct entry *first = i < a->entries.count ? &a->entries.items[i] : NULL;
        const struct entry *second = j < b->entries.count ? &b->entries.items[j] : NULL;
        int order = !first ? 1 : !second ? -1 : compare_entries(first, second);
        i += order <= 0;
        j += order >= 0;
        if (order == 0 && same_value(&first->item, &second->item))
            continue;
        same = false;
        (json ? write_difference : print_difference)(out, order <= 0 ? first : NULL, order >= 0 ? second : NULL);
    }
    return same;
}

/* ---- The command ------------------------------------------------------------------------------------------------ */

/* `other` is NULL if only one descriptor is shown. */
static int show(const struct common_options *options, struct list *list, struct list *other)
{
    struct output out;
    bool same = true;
    if (!output_open(&out, options->output))
        return EXIT_FAILED;
    if (other)
        same = compare_lists(&out, list, other, options->json);
    else
        write_descriptor(&out, list, !options->json);
    if (!output_close(&out))
        return EXIT_FAILED;
    return same ? EXIT_ANSWERED : EXIT_PARTLY;
}

static int run(const void *given)
{
    const struct common_options *options = given;
    if (output_is_a_target(options))
        return EXIT_FAILED;
    struct list lists[2] = {0};
    struct cdacq_target *targets[2] = {0};
    size_t opened = 0;
    while (opened < options->targets.count &&
           (targets[opened] = open_described(options->targets.items[opened], options, &lists[opened])))
        opened++;
    int status = EXIT_FAILED;
    for (size_t i = 0; i < opened; i++)
        (void)runtimes_tell_left_out(options, false, targets[i]);
    if (opened == options->targets.count)
        status = show(options, &lists[0], opened > 1 ? &lists[1] : NULL);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
        entries_deinit(&lists[i].entries);
        cdacq_target_close(targets[i]);
    }
    return status;
}

const struct command command_descriptor = {
    .name = "descriptor",
    .section = SECTION_CORES,
    RUNS(run, struct common_options),
    .operands =
        OPERANDS({TARGET_OPERAND}, {"OTHER", OPERAND_TARGET, OPTIONAL, TO_WORDS(struct common_options, targets)}),
    .options = OPTIONS(json_rows, output_rows, target_rows),
    .summary = "print the merged data descriptor, or how two of them differ",
    .details =
        "Prints one JSON object, each value with the document it came from. TARGET may also be a runtime's\n"
        "file, libcoreclr.so or a single-file application. With OTHER, a second target, prints one line for\n"
        "each difference: '-' only in TARGET, '+' only in OTHER, '~' in both. Origins and the values of addresses\n"
        "are not compared.\n",
    .exit_partly = "the two descriptors differ",
};
