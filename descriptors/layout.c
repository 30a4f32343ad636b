#include "descriptors/layout.h"

#include <inttypes.h>
#include <stdio.h>

enum { KIND_U8, KIND_U16, KIND_U32, KIND_U64, KIND_NUINT, KIND_POINTER, KIND_INLINE };
enum { OPTIONAL, REQUIRED };

struct row {
    const char *type, *name, *alias;
    uint8_t kind, contract, need;
};

static const struct row field_rows[F_COUNT] = {
#define CDAC_FIELD(type, kind, field, contract, need) \
    [F_##type##_##field] = {#type, #field, NULL, KIND_##kind, LAYOUT_##contract, need},
#define CDAC_FIELD_ALIAS(type, kind, field, alias, contract, need) \
    [F_##type##_##field] = {#type, #field, #alias, KIND_##kind, LAYOUT_##contract, need},
#include "descriptors/layout.def"
};

static const char *const field_names[F_COUNT] = {
#define CDAC_FIELD(type, kind, field, contract, need) [F_##type##_##field] = #type "." #field,
#include "descriptors/layout.def"
};

static const char *const type_names[T_COUNT] = {
#define CDAC_TYPE(type) [T_##type] = #type,
#include "descriptors/layout.def"
};

static const struct row size_rows[T_COUNT] = {
#define CDAC_SIZE(type, contract, need) [T_##type] = {#type, "!", NULL, KIND_INLINE, LAYOUT_##contract, need},
#include "descriptors/layout.def"
};

static const struct row global_rows[G_COUNT] = {
#define CDAC_GLOBAL(kind, name, contract, need) [G_##name] = {NULL, #name, NULL, KIND_##kind, LAYOUT_##contract, need},
#include "descriptors/layout.def"
};

static const char *const contract_names[LAYOUT_CONTRACT_COUNT] = {
    [LAYOUT_ExecutionManager] = "ExecutionManager", [LAYOUT_PlatformMetadata] = "PlatformMetadata",
    [LAYOUT_PrecodeStubs] = "PrecodeStubs",         [LAYOUT_RuntimeTypeSystem] = "RuntimeTypeSystem",
    [LAYOUT_CodeVersions] = "CodeVersions",         [LAYOUT_Loader] = "Loader",
    [LAYOUT_EcmaMetadata] = "EcmaMetadata",
};

struct global_default {
    enum layout_global global;
    uint64_t value;
};

static const struct global_default global_defaults[] = {
#define CDAC_GLOBAL_DEFAULT(kind, name, contract, value) {G_##name, value},
#include "descriptors/layout.def"
};

const char *layout_field_name(enum layout_field field)
{
    return field_names[field];
}

const char *layout_type_name(enum layout_type type)
{
    return type_names[type];
}

static unsigned width_of(unsigned kind, unsigned pointer_size)
{
    static const uint8_t widths[] = {[KIND_U8] = 1, [KIND_U16] = 2, [KIND_U32] = 4, [KIND_U64] = 8, [KIND_INLINE] = 0};
    return kind == KIND_NUINT || kind == KIND_POINTER ? pointer_size : widths[kind];
}

/* The width of a primitive type by the name that descriptors give it; 0 for any other name. */
static unsigned declared_width(const char *type, unsigned pointer_size)
{
    static const struct {
        const char *name;
        uint8_t width; /* 0: that of a pointer */
    } primitives[] = {
        {"uint8", 1},  {"int8", 1},    {"bool", 1},      {"uint16", 2},      {"int16", 2},
        {"uint32", 4}, {"int32", 4},   {"uint64", 8},    {"int64", 8},       {"nuint", 0},
        {"nint", 0},   {"pointer", 0}, {"uintptr_t", 0}, {"intptr_t", 0},    {"char", 1},
        {"float", 4},  {"double", 8},  {"TADDR", 0},     {"CodePointer", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(primitives); i++)
        if (strcmp(type, primitives[i].name) == 0)
            return primitives[i].width ? primitives[i].width : pointer_size;
    return 0;
}

/*
 * Whether a row can be read as described. If not, a contract that is `needed` is told so; for another the row is as
 * good as absent: a type that no contract in use needs never stands in the way.
 */
static bool row_fits(const struct row *row, const char *name, const struct descriptor_item *item, unsigned pointer_size,
                     bool needed, enum cdacq_status *status, struct cdacq_error *err)
{
    unsigned width = width_of(row->kind, pointer_size);
    unsigned declared = item->type ? declared_width(item->type, pointer_size) : 0;
    if (item->kind == CDACQ_ITEM_FIELD && item->value > UINT32_MAX) {
        if (needed)
            *status = error_set(err, CDACQ_ERR_FIELD, 0, "%s: its offset %" PRId64 " is in front of the object (%s)",
                                name, (int64_t)item->value, item->origin);
        return false;
    }
    if (row->kind == KIND_INLINE)
        return true;
    if (declared && declared != width) {
        if (needed)
            *status =
                error_set(err, CDACQ_ERR_FIELD, 0, "%s: declared as %.40s, which has not the %u bytes expected (%s)",
                          name, item->type, width, item->origin);
        return false;
    }
    if (item->kind == CDACQ_ITEM_GLOBAL && width < 8 && item->value >> 8 * width) {
        if (needed)
            *status = error_set(err, CDACQ_ERR_FIELD, 0, "%s: its value 0x%" PRIx64 " does not fit %u bytes (%s)", name,
                                item->value, width, item->origin);
        return false;
    }
    return true;
}

static enum cdacq_status bind_fields(const struct descriptor *descriptor, uint32_t needed, struct layout *layout,
                                     struct cdacq_error *err)
{
    enum cdacq_status status = CDACQ_OK;
    for (size_t i = 0; i < F_COUNT && status >= 0; i++) {
        const struct row *row = &field_rows[i];
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_FIELD, row->type, row->name);
        if ((!item || !item->has_value) && row->alias)
            item = descriptor_find(descriptor, CDACQ_ITEM_FIELD, row->type, row->alias);
        if (item && item->has_value &&
            row_fits(row, field_names[i], item, layout->pointer_size, needed >> row->contract & 1, &status, err))
            layout->fields[i] =
                (struct layout_slot){(uint32_t)item->value, (uint8_t)width_of(row->kind, layout->pointer_size), true};
    }
    return status;
}

static enum cdacq_status bind_globals(const struct descriptor *descriptor, uint32_t needed, struct layout *layout,
                                      struct cdacq_error *err)
{
    enum cdacq_status status = CDACQ_OK;
    for (size_t i = 0; i < ARRAY_SIZE(global_defaults); i++) {
        layout->globals[global_defaults[i].global] = global_defaults[i].value;
        layout->global_present[global_defaults[i].global] = true;
    }
    for (size_t i = 0; i < G_COUNT && status >= 0; i++) {
        const struct row *row = &global_rows[i];
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_GLOBAL, "", row->name);
        if (!item || !item->has_value)
            continue;
        layout->global_present[i] =
            row_fits(row, row->name, item, layout->pointer_size, needed >> row->contract & 1, &status, err);
        layout->globals[i] = layout->global_present[i] ? item->value : 0;
    }
    return status;
}

/* Calls `found` for each required name that a contract lacks. */
static void each_missing(const struct layout *layout, enum layout_contract contract,
                         void (*found)(const char *type, const char *name, void *context), void *context)
{
    for (size_t i = 0; i < T_COUNT; i++)
        if (size_rows[i].need == REQUIRED && size_rows[i].contract == contract && !layout->sizes[i])
            found(size_rows[i].type, "size", context);
    for (size_t i = 0; i < F_COUNT; i++)
        if (field_rows[i].need == REQUIRED && field_rows[i].contract == contract && !layout->fields[i].present)
            found(field_rows[i].type, field_rows[i].name, context);
    for (size_t i = 0; i < G_COUNT; i++)
        if (global_rows[i].need == REQUIRED && global_rows[i].contract == contract && !layout->global_present[i])
            found(NULL, global_rows[i].name, context);
}

struct missing_list {
    char *buffer;
    size_t size, length, omitted;
};

static void append_missing(const char *type, const char *name, void *context)
{
    struct missing_list *list = context;
    char item[96];
    int n = snprintf(item, sizeof item, "%s%s%s%s", list->length ? ", " : "", type ? type : "", type ? "." : "", name);
    if (n < 0 || list->length + (size_t)n + sizeof ", and 999 more" > list->size) {
        list->omitted++;
        return;
    }
    memcpy(list->buffer + list->length, item, (size_t)n + 1);
    list->length += (size_t)n;
}

void layout_missing(const struct layout *layout, enum layout_contract contract, char *buffer, size_t size)
{
    struct missing_list list = {buffer, size, 0, 0};
    if (size)
        buffer[0] = '\0';
    each_missing(layout, contract, append_missing, &list);
    if (list.omitted)
        snprintf(buffer + list.length, size - list.length, ", and %zu more", list.omitted);
}

static void count_missing(const char *type, const char *name, void *context)
{
    (void)type;
    (void)name;
    ++*(size_t *)context;
}

enum cdacq_status layout_bind(const struct descriptor *descriptor, unsigned pointer_size, uint32_t needed,
                              struct layout *ret, struct cdacq_error *err)
{
    struct layout layout = {.pointer_size = pointer_size};
    for (size_t i = 0; i < T_COUNT; i++) {
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_TYPE, "", type_names[i]);
        if (item && item->has_value)
            layout.sizes[i] = (uint32_t)item->value;
    }
    enum cdacq_status status = bind_fields(descriptor, needed, &layout, err);
    if (status >= 0)
        status = bind_globals(descriptor, needed, &layout, err);
    for (unsigned contract = 0; status >= 0 && contract < LAYOUT_CONTRACT_COUNT; contract++) {
        size_t missing = 0;
        each_missing(&layout, contract, count_missing, &missing);
        if (!missing) {
            layout.usable |= 1u << contract;
        } else if (needed >> contract & 1) {
            char names[CDACQ_ERROR_MESSAGE_SIZE - 80];
            layout_missing(&layout, contract, names, sizeof names);
            status = error_set(err, CDACQ_ERR_FIELD, 0, "the descriptor lacks what %s needs: %s",
                               contract_names[contract], names);
        }
    }
    if (status >= 0)
        *ret = layout;
    return status;
}
