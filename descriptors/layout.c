#include "descriptors/layout.h"

#include <inttypes.h>
#include <stdio.h>

#include "cdacq/target.h"
#include "descriptors/descriptor.h"
#include "util/error.h"

enum { KIND_U8, KIND_U16, KIND_U32, KIND_U64, KIND_NUINT, KIND_POINTER, KIND_INLINE };
enum { OPTIONAL, PUBLISHED_X64, PUBLISHED, REQUIRED };

struct row {
    const char *type, *name, *alias;
    uint8_t kind, contract, need;
    bool has_default;
    uint64_t value; /* the default */
};

static const struct row field_rows[F_COUNT] = {
#define CDAC_FIELD(type, kind, field, contract, need) \
    [F_##type##_##field] = {#type, #field, NULL, KIND_##kind, LAYOUT_##contract, need, false, 0},
#define CDAC_FIELD_ALIAS(type, kind, field, alias, contract, need) \
    [F_##type##_##field] = {#type, #field, #alias, KIND_##kind, LAYOUT_##contract, need, false, 0},
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
#define CDAC_SIZE(type, contract, need) [T_##type] = {#type, "!", NULL, KIND_INLINE, LAYOUT_##contract, need, false, 0},
#include "descriptors/layout.def"
};

static const struct row global_rows[G_COUNT] = {
#define CDAC_GLOBAL(kind, name, contract, need) \
    [G_##name] = {NULL, #name, NULL, KIND_##kind, LAYOUT_##contract, need, false, 0},
#define CDAC_GLOBAL_DEFAULT(kind, name, contract, value) \
    [G_##name] = {NULL, #name, NULL, KIND_##kind, LAYOUT_##contract, OPTIONAL, true, value},
#include "descriptors/layout.def"
};

static const char *const contract_names[LAYOUT_CONTRACT_COUNT] = {
    [LAYOUT_ExecutionManager] = "ExecutionManager",
    [LAYOUT_RangeSections] = "ExecutionManager",
    [LAYOUT_ReadyToRun] = "ExecutionManager",
    [LAYOUT_AuxiliarySymbols] = "AuxiliarySymbols",
    [LAYOUT_NativeCode] = "ExecutionManager",
    [LAYOUT_PlatformMetadata] = "PlatformMetadata",
    [LAYOUT_PrecodeStubs] = "PrecodeStubs",
    [LAYOUT_RuntimeTypeSystem] = "RuntimeTypeSystem",
    [LAYOUT_CodeVersions] = "CodeVersions",
    [LAYOUT_Loader] = "Loader",
    [LAYOUT_EcmaMetadata] = "EcmaMetadata",
    [LAYOUT_DebugInfo] = "DebugInfo",
    [LAYOUT_Thread] = "Thread",
    [LAYOUT_Frames] = "Thread",
    [LAYOUT_StackWalk] = "StackWalk",
    [LAYOUT_Object] = "Object",
    [LAYOUT_SyncBlock] = "SyncBlock",
    [LAYOUT_Exception] = "Exception",
    [LAYOUT_RuntimeInfo] = "RuntimeInfo",
    [LAYOUT_StressLog] = "StressLog",
    [LAYOUT_GC] = "GC",
};

/* The parts of each contract: a bit each. */
static const uint32_t contract_parts[LAYOUT_CONTRACT_COUNT] = {
    [LAYOUT_ExecutionManager] = 1u << LAYOUT_RangeSections | 1u << LAYOUT_ReadyToRun | 1u << LAYOUT_NativeCode,
    [LAYOUT_Thread] = 1u << LAYOUT_Frames,
};

/* Whether a row of a contract, or of a part of one, is needed. */
static bool is_needed(uint32_t needed, unsigned contract)
{
    bool is_part = false, is_of_needed = false;
    for (unsigned i = 0; i < LAYOUT_CONTRACT_COUNT; i++)
        if (contract_parts[i] >> contract & 1) {
            is_part = true;
            is_of_needed = needed >> i & 1;
        }
    return needed >> contract & 1 && (!is_part || is_of_needed);
}

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

/* The width of a primitive type by its name in descriptors; 0 for any other name. */
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

bool layout_managed_field(const struct layout *layout, const char *type, const char *name, struct managed_field *ret)
{
    const struct descriptor_item *item =
        layout->descriptor ? descriptor_find(layout->descriptor, CDACQ_ITEM_FIELD, type, name) : NULL;
    if (!item || !item->has_value || item->value > UINT32_MAX)
        return false;
    bool is_number = item->type && strcmp(item->type, "pointer") != 0;
    *ret = (struct managed_field){
        .offset = (uint32_t)item->value,
        .width = (uint8_t)(is_number ? declared_width(item->type, layout->pointer_size) : 0),
    };
    return true;
}

/* FIELD when a row cannot be read as the descriptor describes it. */
static enum cdacq_status check_row(const struct row *row, const char *name, const struct descriptor_item *item,
                                   unsigned pointer_size, struct cdacq_error *err)
{
    unsigned width = width_of(row->kind, pointer_size);
    unsigned declared = item->type ? declared_width(item->type, pointer_size) : 0;
    if (item->kind == CDACQ_ITEM_FIELD && item->value > UINT32_MAX)
        return error_set(err, CDACQ_ERR_FIELD, 0, "%s: its offset %" PRId64 " is in front of the object (%s)", name,
                         (int64_t)item->value, item->origin);
    if (row->kind == KIND_INLINE)
        return CDACQ_OK;
    if (declared && declared != width)
        return error_set(err, CDACQ_ERR_FIELD, 0, "%s: declared as %.40s, which has not the %u bytes expected (%s)",
                         name, item->type, width, item->origin);
    if (item->kind == CDACQ_ITEM_GLOBAL && width < 8 && item->value >> 8 * width)
        return error_set(err, CDACQ_ERR_FIELD, 0, "%s: its value 0x%" PRIx64 " does not fit %u bytes (%s)", name,
                         item->value, width, item->origin);
    return CDACQ_OK;
}

static enum cdacq_status bind_fields(const struct descriptor *descriptor, uint32_t needed, struct layout *layout,
                                     struct cdacq_error *err)
{
    for (size_t i = 0; i < F_COUNT; i++) {
        const struct row *row = &field_rows[i];
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_FIELD, row->type, row->name);
        if ((!item || !item->has_value) && row->alias)
            item = descriptor_find(descriptor, CDACQ_ITEM_FIELD, row->type, row->alias);
        if (!item || !item->has_value)
            continue;
        bool must_fit = is_needed(needed, row->contract);
        enum cdacq_status status = check_row(row, field_names[i], item, layout->pointer_size, must_fit ? err : NULL);
        if (status < 0 && must_fit)
            return status;
        if (status >= 0)
            layout->fields[i] =
                (struct layout_slot){(uint32_t)item->value, (uint8_t)width_of(row->kind, layout->pointer_size), true};
    }
    return CDACQ_OK;
}

static enum cdacq_status bind_globals(const struct descriptor *descriptor, uint32_t needed, struct layout *layout,
                                      struct cdacq_error *err)
{
    for (size_t i = 0; i < G_COUNT; i++) {
        const struct row *row = &global_rows[i];
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_GLOBAL, "", row->name);
        layout->global_present[i] = row->has_default;
        layout->globals[i] = row->value;
        if (!item || !item->has_value)
            continue;
        bool must_fit = is_needed(needed, row->contract);
        enum cdacq_status status = check_row(row, row->name, item, layout->pointer_size, must_fit ? err : NULL);
        if (status < 0 && must_fit)
            return status;
        layout->global_present[i] = status >= 0;
        layout->globals[i] = status >= 0 ? item->value : 0;
    }
    return CDACQ_OK;
}

/* The required names that a contract lacks. */
struct missing_list {
    char *buffer;
    size_t size, length, count, omitted;
};

static void append_missing(struct missing_list *list, const char *type, const char *name)
{
    char item[96];
    int n = snprintf(item, sizeof item, "%s%s%s%s", list->length ? ", " : "", type ? type : "", type ? "." : "", name);
    list->count++;
    if (n < 0 || list->length + (size_t)n + sizeof ", and 999 more" > list->size) {
        list->omitted++;
        return;
    }
    memcpy(list->buffer + list->length, item, (size_t)n + 1);
    list->length += (size_t)n;
}

/* Those of some needs. `contracts` and `needs` have a bit for each. */
static size_t missing_of(const struct layout *layout, uint32_t contracts, unsigned needs, char *buffer, size_t size)
{
    struct missing_list list = {.buffer = buffer, .size = size};
    if (size)
        buffer[0] = '\0';
    for (size_t i = 0; i < T_COUNT; i++)
        if (size_rows[i].type && needs >> size_rows[i].need & 1 && contracts >> size_rows[i].contract & 1 &&
            !layout->sizes[i])
            append_missing(&list, size_rows[i].type, "size");
    for (size_t i = 0; i < F_COUNT; i++)
        if (needs >> field_rows[i].need & 1 && contracts >> field_rows[i].contract & 1 && !layout->fields[i].present)
            append_missing(&list, field_rows[i].type, field_rows[i].name);
    for (size_t i = 0; i < G_COUNT; i++)
        if (needs >> global_rows[i].need & 1 && contracts >> global_rows[i].contract & 1 && !layout->global_present[i])
            append_missing(&list, NULL, global_rows[i].name);
    if (list.omitted)
        snprintf(buffer + list.length, size - list.length, ", and %zu more", list.omitted);
    return list.count;
}

bool layout_is_of_11(const struct layout *layout)
{
    enum { SCHEMA_OF_11 = 2 };
    bool is_coreclr = layout->fields[F_Module_ReadyToRunInfo].present; /* NativeAOT publishes less */
    return layout->schema >= SCHEMA_OF_11 && is_coreclr;
}

size_t layout_unpublished(const struct layout *layout, char *buffer, size_t size)
{
    if (!layout_is_of_11(layout))
        return 0;
    unsigned needs = 1u << REQUIRED | 1u << PUBLISHED;
    needs |= layout->architecture == ARCHITECTURE_X64 ? 1u << PUBLISHED_X64 : 0;
    return missing_of(layout, ~(1u << LAYOUT_NativeCode), needs, buffer, size);
}

size_t layout_missing(const struct layout *layout, enum layout_contract contract, char *buffer, size_t size)
{
    return missing_of(layout, 1u << contract, 1u << REQUIRED, buffer, size);
}

enum cdacq_status layout_bind(const struct descriptor *descriptor, unsigned pointer_size, uint32_t needed,
                              struct layout *ret, struct cdacq_error *err)
{
    struct layout layout = {.schema = descriptor->schema, .pointer_size = pointer_size};
    for (size_t i = 0; i < T_COUNT; i++) {
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_TYPE, "", type_names[i]);
        if (item && item->has_value)
            layout.sizes[i] = (uint32_t)item->value;
    }
    enum cdacq_status status = bind_fields(descriptor, needed, &layout, err);
    if (status >= 0)
        status = bind_globals(descriptor, needed, &layout, err);
    for (unsigned contract = 0; status >= 0 && contract < LAYOUT_CONTRACT_COUNT; contract++) {
        char names[CDACQ_ERROR_MESSAGE_SIZE - 80];
        uint32_t parts = 1u << contract | (needed & contract_parts[contract]); /* one message for all of them */
        if (!missing_of(&layout, parts, 1u << REQUIRED, names, sizeof names))
            layout.usable |= 1u << contract;
        else if (is_needed(needed, contract))
            status = error_set(err, CDACQ_ERR_FIELD, 0, "the descriptor lacks what %s needs: %s",
                               contract_names[contract], names);
    }
    if (status >= 0)
        *ret = layout;
    return status;
}
