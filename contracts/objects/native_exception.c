#include "contracts/objects/native_exception.h"

#include <inttypes.h>

#include "contracts/native_aot/aot_name.h"
#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "target/image.h"

enum { SLOTS_MAX = 1024 /* of System.Exception; it has about ten */ };

static const char separator[] = "--- End of stack trace from previous location ---";

/* ---- Frames ---- */

/* The part of a path after the last slash and before the last dot. */
static void append_module(const char *path, struct text *ret)
{
    const char *name = path_basename(path), *dot = strrchr(name, '.');
    text_escape(ret, name, dot ? (size_t)(dot - name) : strlen(name));
}

bool native_frame_append(struct aot_image *aot, struct reader *reader, uint64_t ip, struct text *ret,
                         unsigned *ret_flaws)
{
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    const struct aot_tables *tables = aot_tables_get(aot, reader);
    struct aot_function function;
    const struct aot_method *method =
        tables && aot_function_at(aot, reader, ip, &function) ? aot_method_at(tables, function.method) : NULL;
    size_t begin = ret->length;
    text_puts(ret, "   at ");
    if (!method || !method->has_name || !aot_put_method(aot_metadata(tables), &method->name, AOT_STACK_TRACE, ret)) {
        append_module(aot->image ? aot->image->path : "", ret);
        text_printf(ret, "!<BaseAddress>+0x%" PRIx64, ip - (aot->image ? aot->image->base : 0));
    }
    bool hidden = method && method->is_hidden, unverified = reader_unverified(reader);
    if (reader_leave(reader, &outer).status < 0)
        *ret_flaws |= EXCEPTION_TEXT_MISSING;
    *ret_flaws |= unverified ? EXCEPTION_TEXT_UNCONFIRMED : 0;
    if (hidden)
        text_cut(ret, begin);
    return !hidden;
}

bool native_exception_put_frame(struct exception_writer *w, const struct exception_frame *frame, bool first)
{
    struct module_cache *cache = w->output->cache;
    struct text text = {0};
    if (!frame->is_separator && native_frame_append(cache->aot, cache->reader, frame->ip, &text, &w->flaws)) {
        exception_puts(w, first ? "" : "\n");
        exception_put(w, text.data, text.length);
        w->flaws |= text.broken ? EXCEPTION_TEXT_CUT : 0;
        first = false;
    }
    text_deinit(&text);
    if (frame->last_of_foreign) {
        exception_puts(w, first ? "" : "\n");
        exception_puts(w, separator);
        first = false;
    }
    return !first;
}

/* ---- Which type's Message and ToString() an exception has ---- */

/* The MethodTable of System.Exception among the base types; 0: there is none. */
static uint64_t find_base(struct module_cache *cache, uint64_t method_table)
{
    for (unsigned i = 0; method_table && i < HIERARCHY_MAX && !reader_failed(cache->reader); i++) {
        struct text name = {0};
        bool is_base = aot_name_type(cache->aot, cache->reader, method_table, &name) == CDACQ_OK &&
                       text_equals(&name, "System.Exception");
        text_deinit(&name);
        if (is_base)
            return method_table;
        method_table = method_table_parent(cache->reader, method_table);
    }
    return 0;
}

static uint64_t slot_code(struct reader *reader, uint64_t method_table, unsigned slot)
{
    uint64_t slots = field_address(reader, method_table, F_MethodTable_VTable);
    return read_pointer(reader, slots + (uint64_t)slot * reader->pointer_size);
}

/* A virtual method that makes a part of the text. */
struct virtual_method {
    const char *name;
    bool found; /* System.Exception has it in `slot` */
    unsigned slot;
};

/* Finds the slots of methods by the names of the code in those of System.Exception. */
static void find_slots(struct reader *reader, const struct aot_tables *tables, uint64_t base,
                       struct virtual_method *methods, size_t count)
{
    unsigned slots = (unsigned)read_field(reader, base, F_MethodTable_NumVtableSlots);
    for (unsigned slot = 0; slot < MIN(slots, (unsigned)SLOTS_MAX) && !reader_failed(reader); slot++) {
        const struct aot_method *method = aot_method_at(tables, slot_code(reader, base, slot));
        struct text type = {0}, name = {0};
        bool known = method && method->has_name && aot_put_owner(aot_metadata(tables), &method->name, &type, &name) &&
                     text_equals(&type, "System.Exception");
        for (size_t i = 0; known && i < count; i++)
            if (!methods[i].found && text_equals(&name, methods[i].name)) {
                methods[i].found = true;
                methods[i].slot = slot;
            }
        text_deinit(&type);
        text_deinit(&name);
    }
}

/* The kind of the type that has the method in a slot. NULL: its code makes the text; *ret_known: or it is not known. */
static const struct exception_kind *kind_of_slot(const struct exception_writer *w, const struct aot_tables *tables,
                                                 uint64_t method_table, unsigned slot, bool *ret_known)
{
    struct reader *reader = w->output->cache->reader;
    const struct aot_method *method = aot_method_at(tables, slot_code(reader, method_table, slot));
    struct text type = {0}, name = {0}, assembly = {0};
    *ret_known = method && method->has_name && !reader_failed(reader) &&
                 aot_put_owner(aot_metadata(tables), &method->name, &type, &name) &&
                 aot_put_assembly(aot_metadata(tables), method->name.owner, &assembly);
    const struct exception_kind *kind =
        *ret_known && assembly.length && type.length ? w->find_named(assembly.data, type.data) : NULL;
    text_deinit(&type);
    text_deinit(&name);
    text_deinit(&assembly);
    return kind;
}

static void find_kinds(struct exception_writer *w, const struct aot_tables *tables, struct writing_exception *e)
{
    enum { MESSAGE, TEXT, TRACE, COUNT };
    struct virtual_method methods[COUNT] = {{.name = "get_Message"}, {.name = "ToString"}, {.name = "get_StackTrace"}};
    struct module_cache *cache = w->output->cache;
    uint64_t method_table = e->fields.method_table, base = find_base(cache, method_table);
    if (base)
        find_slots(cache->reader, tables, base, methods, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        bool known = false;
        const struct exception_kind *kind =
            methods[i].found ? kind_of_slot(w, tables, method_table, methods[i].slot, &known) : NULL;
        if (!known) /* nobody knows the method that runs: that of System.Exception may be wrong */
            w->flaws |= EXCEPTION_TEXT_INFERRED;
        else if (!kind || (i == MESSAGE && !kind->message) || (i == TEXT && !kind->text) ||
                 (i == TRACE && kind != w->base))
            w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
        else if (i != TRACE)
            *(i == MESSAGE ? &e->message : &e->text) = kind;
    }
}

void native_exception_find_kinds(struct exception_writer *w, struct writing_exception *e)
{
    struct module_cache *cache = w->output->cache;
    const struct aot_tables *tables = aot_tables_get(cache->aot, cache->reader);
    if (tables)
        find_kinds(w, tables, e);
}
