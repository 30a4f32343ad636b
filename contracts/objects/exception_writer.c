#include "contracts/objects/exception_writer.h"

#include "contracts/objects/field.h"
#include "contracts/objects/object.h"
#include "contracts/objects/resource_keys.h"
#include "contracts/objects/string.h"
#include "contracts/type_system/type_handle.h"
#include "formats/metadata_members.h"
#include "formats/names/names.h"

enum { METHODS_MAX = 64 * 1024 /* of a type */ };

void exception_put(struct exception_writer *w, const char *bytes, size_t length)
{
    if (w->stopped || !length)
        return;
    if (w->pending) {
        const char *pending = w->pending;
        w->pending = NULL;
        exception_puts(w, pending);
    }
    if (length > EXCEPTION_TEXT_MAX - w->written) {
        length = EXCEPTION_TEXT_MAX - w->written;
        w->flaws |= EXCEPTION_TEXT_CUT;
        w->stopped = true;
    }
    w->written += length;
    /* A thread can handle many exceptions, each with the same long text: the bound on one is not enough. */
    struct target *target = w->output->cache->reader->target;
    if ((target && !work_take_raw_text(&target->work, bytes, length)) ||
        (length && !w->output->write(w->output->context, bytes, length))) {
        w->flaws |= EXCEPTION_TEXT_CUT;
        w->stopped = true;
    }
}

void exception_puts(struct exception_writer *w, const char *string)
{
    exception_put(w, string, strlen(string));
}

bool exception_has_keys(struct exception_writer *w)
{
    struct module_cache *cache = w->output->cache;
    if (!w->asked_for_keys && !cache->aot) {
        enum resource_texts texts = resource_texts_find(cache);
        w->has_keys = texts == RESOURCE_KEYS;
        bool is_translated = !w->has_keys && w->output->is_translated && w->output->is_translated(w->output->context);
        w->flaws |= is_translated || texts == RESOURCE_TEXTS_UNKNOWN ? EXCEPTION_TEXT_INFERRED : 0;
    }
    w->asked_for_keys = true;
    return w->has_keys;
}

void exception_put_resource(struct exception_writer *w, const struct resource_text *text)
{
    exception_puts(w, exception_has_keys(w) ? text->key : text->before);
}

void exception_begin_resource(struct exception_writer *w, const struct resource_text *text)
{
    exception_put_resource(w, text);
    if (exception_has_keys(w))
        exception_puts(w, ", ");
}

void exception_end_resource(struct exception_writer *w, const struct resource_text *text)
{
    if (!exception_has_keys(w))
        exception_puts(w, text->after);
}

static struct reader_task enter_part(struct exception_writer *w)
{
    return reader_enter(w->output->cache->reader, FUEL_INDEX);
}

bool exception_leave_part(struct exception_writer *w, const struct reader_task *outer)
{
    struct reader *reader = w->output->cache->reader;
    w->flaws |= reader_unverified(reader) ? EXCEPTION_TEXT_UNCONFIRMED : 0;
    bool good = reader_leave(reader, outer).status >= 0;
    w->flaws |= good ? 0 : EXCEPTION_TEXT_MISSING;
    return good;
}

static bool put_piece(void *context, const char *utf8, size_t length)
{
    struct exception_writer *w = context;
    exception_put(w, utf8, length);
    return !w->stopped;
}

void exception_put_string(struct exception_writer *w, uint64_t string)
{
    if (!string || w->stopped)
        return;
    struct reader_task outer = enter_part(w);
    string_each(w->output->cache->reader, string, UINT32_MAX, put_piece, w);
    exception_leave_part(w, &outer);
}

void exception_put_type(struct exception_writer *w, uint64_t method_table)
{
    struct text text = {0};
    struct reader_task outer = enter_part(w);
    if (type_handle_name(w->output->cache, method_table, &text) == CDACQ_OK && text.data)
        exception_put(w, text.data, text.length);
    else
        w->flaws |= EXCEPTION_TEXT_MISSING;
    exception_leave_part(w, &outer);
    text_deinit(&text);
}

bool exception_find_member(struct exception_writer *w, const struct writing_exception *e, const char *name,
                           uint64_t *ret)
{
    uint64_t value = 0;
    struct reader_task outer = enter_part(w);
    bool found = object_reference(w->output->cache, e->fields.address, name, &value);
    exception_leave_part(w, &outer);
    *ret = found ? value : 0;
    return found;
}

uint64_t exception_member(struct exception_writer *w, const struct writing_exception *e, const char *name)
{
    uint64_t value;
    if (!exception_find_member(w, e, name, &value))
        w->flaws |= EXCEPTION_TEXT_MISSING;
    return value;
}

bool exception_has_text(struct exception_writer *w, uint64_t string)
{
    struct reader_task outer = enter_part(w);
    bool has = string && string_length(w->output->cache->reader, string) > 0;
    exception_leave_part(w, &outer);
    return has;
}

/* ---- Which type's Message and ToString() an exception has ---- */

struct overrides {
    bool message, text, trace;
};

/* The member of a method's name, NULL in *ret if there is none. */
static enum cdacq_status overridden_by(struct overrides *overrides, const struct metadata *metadata, uint32_t name,
                                       bool **ret)
{
    static const char *const names[] = {"get_Message", "ToString", "get_StackTrace"};
    bool *const found[] = {&overrides->message, &overrides->text, &overrides->trace};
    enum cdacq_status status = CDACQ_OK;
    *ret = NULL;
    for (size_t i = 0; status == CDACQ_OK && !*ret && i < ARRAY_SIZE(names); i++) {
        bool equal = false;
        status = metadata_string_equals(metadata, name, names[i], strlen(names[i]), &equal);
        *ret = status == CDACQ_OK && equal ? found[i] : NULL;
    }
    return status;
}

/* Which of these methods a type overrides by a method of any name (MethodImpl). Methods of interfaces are others. */
static enum cdacq_status find_implementations(struct module_cache *cache, const struct metadata *metadata,
                                              uint32_t type, struct overrides *ret)
{
    enum cdacq_status status;
    uint32_t rid = 0;
    while ((status = metadata_next_method_impl(metadata, type, &rid)) == CDACQ_OK && rid) {
        struct metadata_method_impl row;
        struct metadata_member_ref declaration;
        bool *found = NULL, of_interface = false;
        if (!reader_step(cache->reader, "the overrides of a type"))
            return CDACQ_ERR_FUEL;
        status = metadata_method_impl(metadata, rid, &row);
        if (status == CDACQ_OK)
            status = metadata_method_reference(metadata, row.declaration, &declaration);
        if (status == CDACQ_OK)
            status = overridden_by(ret, metadata, declaration.name, &found);
        if (status == CDACQ_OK && found)
            status = metadata_implements_token(metadata, type, declaration.parent, &of_interface);
        if (status != CDACQ_OK)
            break;
        if (found && !of_interface)
            *found = true;
    }
    return status;
}

/* Which of these methods a type declares itself. Generic methods and those with parameters are others. */
static enum cdacq_status find_overrides(struct module_cache *cache, const struct metadata *metadata, uint32_t type,
                                        struct overrides *ret)
{
    uint32_t begin, end;
    enum cdacq_status status = metadata_methods(metadata, type, &begin, &end);
    if (status == CDACQ_OK && (end - begin > METHODS_MAX || metadata_row_count(metadata, METADATA_METHOD_PTR)))
        return CDACQ_OK;
    for (uint32_t rid = begin; status == CDACQ_OK && rid < end; rid++) {
        struct metadata_method_def method;
        if (!reader_step(cache->reader, "the methods of a type"))
            return CDACQ_ERR_FUEL;
        status = metadata_method_def(metadata, rid, &method);
        if (status != CDACQ_OK || !(method.flags & METHOD_FLAG_VIRTUAL) || (method.flags & METHOD_FLAG_STATIC))
            continue;
        bool *found;
        status = overridden_by(ret, metadata, method.name, &found);
        if (status == CDACQ_OK && found)
            status = metadata_method_takes_nothing(metadata, rid, found);
    }
    if (status != CDACQ_OK)
        return status;
    status = find_implementations(cache, metadata, type, ret);
    if (status != CDACQ_ERR_MEMORY)
        return status;
    reader_recover(cache->reader, FAILURE(CDACQ_ERR_MEMORY)); /* compilers write none for these methods */
    return CDACQ_OK;
}

/* From the exception's type to System.Exception: the first whose Message, and whose ToString(), is known. */
static void find_kinds(struct exception_writer *w, struct writing_exception *e)
{
    struct module_cache *cache = w->output->cache;
    struct reader *reader = cache->reader;
    uint64_t method_table = e->fields.method_table;
    if (cache->aot) {
        w->find_native_kinds(w, e);
        return;
    }
    for (unsigned i = 0; method_table && i < HIERARCHY_MAX && !(e->message && e->text); i++) {
        const struct metadata *metadata;
        struct overrides overrides = {false, false, false};
        uint32_t token;
        enum cdacq_status status = type_handle_definition(cache, method_table, &metadata, &token);
        const struct exception_kind *kind = status == CDACQ_OK ? w->find_kind(metadata, token) : NULL;
        if (kind && !e->message && kind->message)
            e->message = kind;
        if (kind && !e->text && kind->text)
            e->text = kind;
        if (status == CDACQ_OK && !kind)
            status = find_overrides(cache, metadata, metadata_rid(token), &overrides);
        if ((overrides.message && !e->message) || (overrides.text && !e->text) || overrides.trace)
            w->flaws |= EXCEPTION_TEXT_OVERRIDDEN;
        if (status != CDACQ_OK)
            w->flaws |= EXCEPTION_TEXT_MISSING;
        method_table = method_table_parent(reader, method_table);
        if (reader_failed(reader))
            break;
    }
}

bool exception_enter(struct exception_writer *w, uint64_t address, const struct writing_exception *outer,
                     struct writing_exception *ret)
{
    *ret = (struct writing_exception){.outer = outer, .depth = outer ? outer->depth + 1 : 0};
    for (const struct writing_exception *other = outer; other; other = other->outer)
        if (other->fields.address == address) {
            w->flaws |= EXCEPTION_TEXT_CUT;
            return false;
        }
    if (ret->depth >= EXCEPTION_DEPTH_MAX || !w->exceptions_left || w->stopped) {
        w->flaws |= EXCEPTION_TEXT_CUT;
        return false;
    }
    w->exceptions_left--;
    struct reader_task task = enter_part(w);
    bool known = exception_read(w->output->cache->reader, address, &ret->fields);
    if (known)
        find_kinds(w, ret);
    exception_leave_part(w, &task);
    return known;
}

void exception_put_message(struct exception_writer *w, const struct writing_exception *e)
{
    const struct exception_kind *kind = e->message ? e->message : w->base;
    kind->message(w, e);
}

void exception_put_text(struct exception_writer *w, const struct writing_exception *e)
{
    const struct exception_kind *kind = e->text ? e->text : w->base;
    kind->text(w, e);
}
