#include "descriptors/descriptor.h"
#include "descriptors/fields.h"

#include <stdio.h>

#include "descriptors/json.h"
#include "target/memory.h"
#include "tests/support/check_main.h"
#include "tests/support/fixture_file.h"

static struct descriptor descriptor;
static struct layout layout;
static struct cdacq_error error;

enum {
    EXECUTION_MANAGER = 1 << LAYOUT_ExecutionManager | 1 << LAYOUT_RangeSections | 1 << LAYOUT_ReadyToRun,
    TYPE_SYSTEM = 1 << LAYOUT_RuntimeTypeSystem,
    LOADER = 1 << LAYOUT_Loader,
};

/* The rows, as a reader of layout.def sees them. */
enum { KIND_U8, KIND_U16, KIND_U32, KIND_U64, KIND_NUINT, KIND_POINTER, KIND_INLINE };
enum { OPTIONAL, PUBLISHED_X64, PUBLISHED, REQUIRED };

static const struct row {
    const char *type, *name;
    int kind, contract, need;
} field_rows[] = {
#define CDAC_FIELD(type, kind, field, contract, need) {#type, #field, KIND_##kind, LAYOUT_##contract, need},
#include "descriptors/layout.def"
};

static const struct row size_rows[] = {
#define CDAC_SIZE(type, contract, need) {#type, "size", 0, LAYOUT_##contract, need},
#include "descriptors/layout.def"
};

static const struct row global_rows[] = {
#define CDAC_GLOBAL(kind, name, contract, need) {"", #name, KIND_##kind, LAYOUT_##contract, need},
#include "descriptors/layout.def"
};

static void setup(void)
{
    memset(&descriptor, 0, sizeof descriptor);
    memset(&layout, 0, sizeof layout);
    memset(&error, 0, sizeof error);
}

static void teardown(void)
{
    descriptor_deinit(&descriptor);
}

static void add(const char *text, enum descriptor_merge merge)
{
    uint64_t values[24];
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        values[i] = i ? 0x1000 + i * 8 : 0;
    const struct pointer_data pointers = {.values = values, .count = ARRAY_SIZE(values)};
    struct json *root;
    ck_assert_msg(json_parse(text, strlen(text), "runtime", &root, &error) == CDACQ_OK, "%s", error.message);
    ck_assert_msg(descriptor_add(&descriptor, root, "runtime", pointers, merge, &error) == CDACQ_OK, "%s",
                  error.message);
    json_free(root);
}

/* A descriptor of everything in layout.def but `without` ("Type.Field", "Type.size" or a global): field i at 8 * i. */
static void add_all_but(const char *without)
{
    struct {
        char *data;
        size_t size;
    } text;
    FILE *out = open_memstream(&text.data, &text.size);
    const char *type = "";
    fprintf(out, "{\"types\":{");
    for (size_t i = 0; i < F_COUNT; i++) {
        char name[128];
        if (strcmp(type, field_rows[i].type) != 0) {
            fprintf(out, "%s\"%s\":{", *type ? "}," : "", field_rows[i].type);
            for (size_t s = 0; s < ARRAY_SIZE(size_rows); s++) {
                snprintf(name, sizeof name, "%s.size", field_rows[i].type);
                if (strcmp(size_rows[s].type, field_rows[i].type) == 0 && strcmp(name, without) != 0)
                    fprintf(out, "\"!\":%zu,", 1000 + s);
            }
            type = field_rows[i].type;
        }
        snprintf(name, sizeof name, "%s.%s", type, field_rows[i].name);
        if (strcmp(name, without) != 0)
            fprintf(out, "\"%s\":%zu,", field_rows[i].name, 8 * i);
    }
    fprintf(out, "}},\"globals\":{");
    for (size_t i = 0; i < ARRAY_SIZE(global_rows); i++)
        if (strcmp(global_rows[i].name, without) != 0)
            fprintf(out, "\"%s\":%zu,", global_rows[i].name, i + 1);
    fprintf(out, "}}");
    fclose(out);
    add(text.data, MERGE_OVERRIDE);
    free(text.data);
}

static enum cdacq_status bind(unsigned pointer_size, uint32_t needed)
{
    return layout_bind(&descriptor, pointer_size, needed, &layout, &error);
}

static void assert_binds(unsigned pointer_size, uint32_t needed)
{
    enum cdacq_status status = bind(pointer_size, needed);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
}

/* ---- Binding ---- */

START_TEST(every_row_is_bound)
{
    add_all_but("");
    for (unsigned pointer_size = 4; pointer_size <= 8; pointer_size += 4) {
        assert_binds(pointer_size, UINT32_MAX);
        ck_assert_uint_eq(layout.usable, (1u << LAYOUT_CONTRACT_COUNT) - 1);
        ck_assert_uint_eq(layout.pointer_size, pointer_size);
        static const unsigned widths[] = {1, 2, 4, 8, 0, 0, 0};
        for (size_t i = 0; i < F_COUNT; i++) {
            bool word = field_rows[i].kind == KIND_NUINT || field_rows[i].kind == KIND_POINTER;
            ck_assert(layout.fields[i].present);
            ck_assert_uint_eq(layout.fields[i].offset, 8 * i);
            ck_assert_uint_eq(layout.fields[i].width, word ? pointer_size : widths[field_rows[i].kind]);
            char name[128];
            snprintf(name, sizeof name, "%s.%s", field_rows[i].type, field_rows[i].name);
            ck_assert_str_eq(layout_field_name((enum layout_field)i), name);
        }
        for (size_t i = 0; i < G_COUNT; i++) {
            ck_assert(layout.global_present[i]);
            ck_assert_uint_eq(layout.globals[i], i + 1);
        }
    }
    for (size_t i = 0; i < T_COUNT; i++)
        ck_assert_str_ne(layout_type_name((enum layout_type)i), "");
    ck_assert_str_eq(layout_type_name(T_RangeSection), "RangeSection");
}
END_TEST

/* The contract that a row's part belongs to. */
static uint32_t whole_of(enum layout_contract contract)
{
    switch (contract) {
    case LAYOUT_RangeSections:
    case LAYOUT_ReadyToRun:
    case LAYOUT_NativeCode:
        return 1u << LAYOUT_ExecutionManager;
    case LAYOUT_Frames:
        return 1u << LAYOUT_Thread;
    default:
        return 0;
    }
}

/* Each row is missing alone: its contract reports it if it is required. */
static void assert_missing(const struct row *row, const char *name)
{
    descriptor_deinit(&descriptor);
    add_all_but(name);
    uint32_t bit = 1u << row->contract;
    ck_assert_int_eq(bind(8, 0), CDACQ_OK); /* not required */
    ck_assert_int_eq((layout.usable & bit) == 0, row->need == REQUIRED);
    ck_assert_uint_eq(layout.usable | bit, (1u << LAYOUT_CONTRACT_COUNT) - 1); /* other contracts do not need it */
    ck_assert_int_eq(bind(8, ~bit), CDACQ_OK);
    struct layout untouched = layout;
    enum cdacq_status status = bind(8, bit | whole_of(row->contract));
    if (row->need == REQUIRED) {
        ck_assert_int_eq(status, CDACQ_ERR_FIELD);
        const char *end = error.message + strlen(error.message) - strlen(name);
        ck_assert_str_eq(end, name);
        ck_assert_mem_eq(&layout, &untouched, sizeof layout);
    } else {
        ck_assert_int_eq(status, CDACQ_OK);
    }
}

START_TEST(every_missing_row_is_named)
{
    char name[128];
    for (size_t i = 0; i < F_COUNT; i++) {
        snprintf(name, sizeof name, "%s.%s", field_rows[i].type, field_rows[i].name);
        assert_missing(&field_rows[i], name);
        ck_assert(!layout.fields[i].present);
    }
    for (size_t i = 0; i < ARRAY_SIZE(size_rows); i++) {
        snprintf(name, sizeof name, "%s.size", size_rows[i].type);
        assert_missing(&size_rows[i], name);
    }
    for (size_t i = 0; i < ARRAY_SIZE(global_rows); i++)
        assert_missing(&global_rows[i], global_rows[i].name);
}
END_TEST

START_TEST(all_that_is_missing_is_named_at_once)
{
    add_all_but("");
    descriptor_deinit(&descriptor);
    add("{\"types\":{\"MethodDesc\":{\"ChunkIndex\":2},\"MethodDescChunk\":{\"!\":24,\"MethodTable\":0}}}",
        MERGE_OVERRIDE);
    char names[4000];
    assert_binds(8, 0);
    layout_missing(&layout, LAYOUT_RuntimeTypeSystem, names, sizeof names);
    static const char *const expected[] = {"MethodDesc.Flags3AndTokenRemainder",
                                           "MethodDesc.Flags",
                                           "MethodDescChunk.FlagsAndTokenRange",
                                           "MethodTable.MTFlags",
                                           "MethodTable.Module",
                                           "MethodDescTokenRemainderBitCount"};
    for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
        ck_assert_msg(strstr(names, expected[i]) != NULL, "no %s in %s", expected[i], names);
    ck_assert_ptr_null(strstr(names, "ChunkIndex"));
    ck_assert_ptr_null(strstr(names, "MethodDescChunk.MethodTable"));
    ck_assert_ptr_null(strstr(names, "MethodDescChunk.size"));
    ck_assert_ptr_null(strstr(names, "RangeSection"));
    ck_assert_int_eq(bind(8, TYPE_SYSTEM), CDACQ_ERR_FIELD);
    ck_assert_msg(strncmp(error.message, "the descriptor lacks what RuntimeTypeSystem needs: ", 51) == 0, "%s",
                  error.message);
    ck_assert_ptr_nonnull(strstr(error.message, "MethodDesc.Flags, "));
}
END_TEST

START_TEST(what_does_not_fit_the_message_is_counted)
{
    char whole[8000];
    assert_binds(8, 0); /* of nothing at all */
    layout_missing(&layout, LAYOUT_RangeSections, whole, sizeof whole);
    size_t count = 1;
    for (const char *p = whole; (p = strstr(p, ", ")); p += 2)
        count++;
    ck_assert_uint_gt(count, 15);
    ck_assert_ptr_null(strstr(whole, "more"));
    for (size_t size = 0; size < 400; size++) {
        char *exact = malloc(size + 1);
        exact[size] = 0x5a;
        layout_missing(&layout, LAYOUT_RangeSections, exact, size);
        ck_assert_int_eq(exact[size], 0x5a);
        ck_assert(size == 0 || strlen(exact) < size);
        if (size > 100) {
            size_t named = 1, more = 0;
            for (const char *p = exact; (p = strstr(p, ", ")); p += 2)
                named++;
            const char *tail = strstr(exact, ", and ");
            ck_assert_ptr_nonnull(tail);
            ck_assert_int_eq(sscanf(tail, ", and %zu more", &more), 1);
            ck_assert_uint_eq(named - 1 + more, count);
        }
        free(exact);
    }
    ck_assert_int_eq(bind(8, EXECUTION_MANAGER), CDACQ_ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(error.message, " more"));
    ck_assert_uint_lt(strlen(error.message), CDACQ_ERROR_MESSAGE_SIZE - 1);
}
END_TEST

START_TEST(unknown_offsets_count_as_missing)
{
    add_all_but("RangeSection.Flags");
    add("{\"types\":{\"RangeSection\":{\"Flags\":\"unknown\"}}}", MERGE_ADD);
    ck_assert_int_eq(bind(8, EXECUTION_MANAGER), CDACQ_ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(error.message, "RangeSection.Flags"));
}
END_TEST

START_TEST(defaults)
{
    assert_binds(8, 0);
    ck_assert(layout.global_present[G_FeatureEHFunclets]);
    ck_assert_uint_eq(layout.globals[G_FeatureEHFunclets], 1);
    ck_assert(!layout.global_present[G_StubCodeBlockLast]);
    add("{\"globals\":{\"FeatureEHFunclets\":0}}", MERGE_OVERRIDE);
    assert_binds(8, 0);
    ck_assert(layout.global_present[G_FeatureEHFunclets]);
    ck_assert_uint_eq(layout.globals[G_FeatureEHFunclets], 0);
}
END_TEST

START_TEST(text_is_no_value)
{
    add_all_but("StubCodeBlockLast");
    add("{\"globals\":{\"StubCodeBlockLast\":\"many\"}}", MERGE_ADD);
    ck_assert_int_eq(bind(8, EXECUTION_MANAGER), CDACQ_ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(error.message, "StubCodeBlockLast"));
}
END_TEST

/* ---- Declared types ---- */

static const struct declared {
    const char *type;
    unsigned pointer_size;
    bool fits_pointer, fits_u32, fits_u8;
} declared[] = {
    {"pointer", 8, true, false, false}, {"pointer", 4, true, true, false},     {"nuint", 8, true, false, false},
    {"nint", 4, true, true, false},     {"uint64", 8, true, false, false},     {"uint64", 4, false, false, false},
    {"int64", 8, true, false, false},   {"uint32", 8, false, true, false},     {"uint32", 4, true, true, false},
    {"int32", 8, false, true, false},   {"uint16", 8, false, false, false},    {"uint8", 8, false, false, true},
    {"int8", 4, false, false, true},    {"bool", 8, false, false, true},       {"uintptr_t", 8, true, false, false},
    {"TADDR", 8, true, false, false},   {"CodePointer", 4, true, true, false}, {"RuntimeFunction", 8, true, true, true},
    {"", 8, true, true, true},          {"UINT8", 8, true, true, true},
};

START_TEST(declared_types_must_fit)
{
    const struct declared *c = &declared[_i];
    static const char *const names[] = {"JitManager", "Flags", NULL};
    const bool fits[] = {c->fits_pointer, c->fits_u32, c->fits_u8};
    for (int which = 0; which < 3; which++) {
        char text[200], expected[200];
        descriptor_deinit(&descriptor);
        if (names[which]) {
            snprintf(text, sizeof text, "{\"types\":{\"RangeSection\":{\"%s\":[8,\"%s\"]}}}", names[which], c->type);
            snprintf(expected, sizeof expected,
                     "RangeSection.%s: declared as %s, which has not the %u bytes expected (runtime)", names[which],
                     c->type, which == 0 ? c->pointer_size : 4);
            add(text, MERGE_OVERRIDE);
            char without[64];
            snprintf(without, sizeof without, "RangeSection.%s", names[which]);
            add_all_but(without);
        } else {
            snprintf(text, sizeof text, "{\"globals\":{\"StubCodeBlockLast\":[15,\"%s\"]}}", c->type);
            snprintf(expected, sizeof expected,
                     "StubCodeBlockLast: declared as %s, which has not the 1 bytes expected (runtime)", c->type);
            add(text, MERGE_OVERRIDE);
            add_all_but("StubCodeBlockLast");
        }
        enum cdacq_status status = bind(c->pointer_size, EXECUTION_MANAGER);
        ck_assert_msg((status == CDACQ_OK) == fits[which], "%s: %s", c->type, error.message);
        if (status < 0) {
            ck_assert_int_eq(status, CDACQ_ERR_FIELD);
            ck_assert_str_eq(error.message, expected);
        }
    }
}
END_TEST

START_TEST(what_is_not_needed_has_no_effect)
{
    add("{\"types\":{\"MethodTable\":{\"MTFlags\":[0,\"uint8\"],\"BaseSize\":[0,\"uint64\"]}},"
        "\"globals\":{\"MethodDescTokenRemainderBitCount\":[12,\"uint64\"]}}",
        MERGE_OVERRIDE);
    add_all_but("");
    assert_binds(8, EXECUTION_MANAGER);
    ck_assert_uint_eq(layout.usable & TYPE_SYSTEM, 0); /* it could not be read right */
    ck_assert(layout.usable & EXECUTION_MANAGER);
    ck_assert(!layout.fields[F_MethodTable_MTFlags].present);
    ck_assert(!layout.fields[F_MethodTable_BaseSize].present);
    ck_assert(!layout.global_present[G_MethodDescTokenRemainderBitCount]);
    ck_assert_int_eq(bind(8, TYPE_SYSTEM), CDACQ_ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(error.message, "MethodTable.MTFlags: declared as uint8"));
}
END_TEST

START_TEST(inline_fields_have_any_type)
{
    add("{\"types\":{\"RangeSectionMap\":{\"TopLevelData\":[0,\"uint8\"]}}}", MERGE_OVERRIDE);
    add_all_but("");
    assert_binds(8, EXECUTION_MANAGER);
    ck_assert_uint_eq(layout.fields[F_RangeSectionMap_TopLevelData].width, 0);
}
END_TEST

START_TEST(values_must_fit_their_width)
{
    static const struct {
        const char *value;
        unsigned pointer_size;
        bool fits;
    } cases[] = {{"255", 8, true}, {"256", 8, false}, {"-1", 8, false}, {"0x10000000f", 8, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[100];
        descriptor_deinit(&descriptor);
        snprintf(text, sizeof text, "{\"globals\":{\"StubCodeBlockLast\":\"%s\"}}", cases[i].value);
        add(text, MERGE_OVERRIDE);
        add_all_but("StubCodeBlockLast");
        enum cdacq_status status = bind(cases[i].pointer_size, EXECUTION_MANAGER);
        ck_assert_msg((status == CDACQ_OK) == cases[i].fits, "%s: %s", cases[i].value, error.message);
        if (status < 0)
            ck_assert_ptr_nonnull(strstr(error.message, "StubCodeBlockLast: its value 0x"));
    }
    /* A pointer of a target of 32 bits. */
    descriptor_deinit(&descriptor);
    add("{\"globals\":{\"ExecutionManagerCodeRangeMapAddress\":\"0x100000000\"}}", MERGE_OVERRIDE);
    add_all_but("ExecutionManagerCodeRangeMapAddress");
    ck_assert_int_eq(bind(4, EXECUTION_MANAGER), CDACQ_ERR_FIELD);
    assert_binds(8, EXECUTION_MANAGER);
}
END_TEST

/* A field before its object counts as missing; in a type that nobody needs this has no effect. */
START_TEST(offsets_are_not_negative)
{
    add("{\"types\":{\"HashMap\":{\"Buckets\":-8},\"Unknown\":{\"Field\":-8}}}", MERGE_OVERRIDE);
    add_all_but("HashMap.Buckets");
    ck_assert_int_eq(bind(8, EXECUTION_MANAGER), CDACQ_ERR_FIELD);
    ck_assert_ptr_nonnull(strstr(error.message, "HashMap.Buckets: its offset -8 is in front of the object"));
    descriptor_deinit(&descriptor);
    add("{\"types\":{\"RangeSection\":{\"RangeList\":-8},\"Unknown\":{\"Field\":-8}}}", MERGE_OVERRIDE);
    add_all_but("RangeSection.RangeList");
    ck_assert_int_eq(bind(8, 0), CDACQ_OK);
    ck_assert(!layout.fields[F_RangeSection_RangeList].present);
}
END_TEST

/* ---- Aliases ---- */

static const struct {
    const char *type, *name, *alias;
    int field;
} aliases[] = {
#define CDAC_FIELD_ALIAS(type, kind, field, alias, contract, need) {#type, #field, #alias, F_##type##_##field},
#include "descriptors/layout.def"
    {NULL, NULL, NULL, 0},
};

START_TEST(fields_that_have_two_names)
{
    for (size_t i = 0; aliases[i].type; i++) {
        char text[200];
        descriptor_deinit(&descriptor);
        snprintf(text, sizeof text, "{\"types\":{\"%s\":{\"%s\":44}}}", aliases[i].type, aliases[i].alias);
        add(text, MERGE_OVERRIDE);
        assert_binds(8, 0);
        ck_assert(layout.fields[aliases[i].field].present);
        ck_assert_uint_eq(layout.fields[aliases[i].field].offset, 44);
        snprintf(text, sizeof text, "{\"types\":{\"%s\":{\"%s\":\"unknown\"}}}", aliases[i].type, aliases[i].name);
        add(text, MERGE_OVERRIDE);
        assert_binds(8, 0);
        ck_assert_uint_eq(layout.fields[aliases[i].field].offset, 44);
        snprintf(text, sizeof text, "{\"types\":{\"%s\":{\"%s\":40}}}", aliases[i].type, aliases[i].name);
        add(text, MERGE_OVERRIDE);
        assert_binds(8, 0);
        ck_assert_uint_eq(layout.fields[aliases[i].field].offset, 40); /* the name itself takes precedence */
    }
}
END_TEST

/* ---- Reading ---- */

static uint8_t bytes[64];

static bool span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes, void *context)
{
    (void)context;
    (void)address;
    *ret_begin = 0x1000;
    *ret_end = 0x1000 + sizeof bytes;
    *ret_bytes = bytes;
    return true;
}

START_TEST(fields_are_read_by_their_row)
{
    struct cdacq_memory memory = {.size = sizeof memory, .span_at = span_at};
    struct target *target;
    ck_assert_int_eq(memory_open(&memory, NULL, false, &target, &error), CDACQ_OK);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i + 1);
    add("{\"types\":{\"RangeSection\":{\"RangeBegin\":0,\"Flags\":16,\"HeapList\":60},\"RangeSectionMap\":{"
        "\"TopLevelData\":8},"
        "\"MethodDesc\":{\"ChunkIndex\":2,\"Flags\":6}}}",
        MERGE_OVERRIDE);
    assert_binds(8, 0);
    struct reader reader;
    reader_init_fields(&reader, target, &layout, 8, false);
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_RangeSection_RangeBegin), UINT64_C(0x0807060504030201));
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_RangeSection_Flags), 0x14131211); /* 32 bits: padding follows */
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_MethodDesc_ChunkIndex), 3);
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_MethodDesc_Flags), 0x0807);
    ck_assert_uint_eq(field_address(&reader, 0x1000, F_RangeSectionMap_TopLevelData), 0x1008);
    ck_assert(has_field(&reader, F_RangeSection_Flags));
    ck_assert(!has_field(&reader, F_RangeSection_R2RModule));
    ck_assert(!reader_failed(&reader));
    /* Messages name the field that fails. */
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_RangeSection_HeapList), 0);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_MEMORY);
    ck_assert_str_eq(error.message, "RangeSection.HeapList: no memory at 0x1040");
    reader_begin(&reader, 100);
    ck_assert_uint_eq(read_field(&reader, 0x5000, F_RangeSection_Flags), 0);
    reader_status(&reader, &error);
    ck_assert_str_eq(error.message, "RangeSection.Flags: no memory at 0x5010");
    reader_begin(&reader, 100);
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_RangeSection_R2RModule), 0);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FIELD);
    ck_assert_str_eq(error.message, "RangeSection.R2RModule is not described by the target's descriptor");
    reader_begin(&reader, 100);
    ck_assert_uint_eq(field_address(&reader, 0x1000, F_Bucket_Keys), 0);
    ck_assert_int_eq(reader_status(&reader, &error), CDACQ_ERR_FIELD);
    /* The other order and width. */
    assert_binds(4, 0);
    reader_init_fields(&reader, target, &layout, 4, true);
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_RangeSection_RangeBegin), 0x01020304);
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_RangeSection_Flags), 0x11121314);
    ck_assert_uint_eq(read_field(&reader, 0x1000, F_RangeSection_HeapList), 0x3d3e3f40);
    ck_assert(!reader_failed(&reader));
    target_destroy(target);
}
END_TEST

/* ---- Real descriptors ---- */

START_TEST(net_10_has_what_is_needed)
{
    size_t size;
    uint8_t *text = fixture_file("descriptors/10.0.json", &size);
    add((const char *)text, MERGE_OVERRIDE);
    free(text);
    assert_binds(8, EXECUTION_MANAGER | TYPE_SYSTEM | LOADER);
    ck_assert_uint_eq(layout.usable | 1u << LAYOUT_NativeCode, (1u << LAYOUT_CONTRACT_COUNT) - 1);
    /* Every declared type of the real descriptor was compared with its row on the way here. */
    ck_assert_uint_eq(layout.fields[F_RangeSection_Flags].offset, 16);
    ck_assert_uint_eq(layout.fields[F_RangeSection_Flags].width, 4);
    ck_assert_uint_eq(layout.fields[F_RealCodeHeader_MethodDesc].offset, 24);
    ck_assert_uint_eq(layout.fields[F_ReadyToRunInfo_EntryPointToMethodDescMap].offset, 360);
    ck_assert_uint_eq(layout.fields[F_MethodTable_Module].offset, 24);
    ck_assert_uint_eq(layout.fields[F_Module_PEAssembly].offset, 216);
    ck_assert_uint_eq(layout.sizes[T_RuntimeFunction], 12);
    ck_assert_uint_eq(layout.sizes[T_MethodDescChunk], 24);
    ck_assert_uint_eq(layout.globals[G_ExecutionManagerCodeRangeMapAddress], 0x1000 + 20 * 8);
    ck_assert_uint_eq(layout.globals[G_StubCodeBlockLast], 15);
    ck_assert_uint_eq(layout.globals[G_MethodDescTokenRemainderBitCount], 12);
    ck_assert_uint_eq(layout.globals[G_FeatureEHFunclets], 1);
    static const int absent[] = {F_RealCodeHeader_DebugInfo, F_RangeSection_RangeList, F_UnwindInfo_FunctionLength};
    for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
        ck_assert(!layout.fields[absent[i]].present);
    for (enum layout_contract contract = 0; contract < LAYOUT_CONTRACT_COUNT; contract++) {
        char names[100];
        if (contract == LAYOUT_NativeCode)
            continue; /* of NativeAOT */
        layout_missing(&layout, contract, names, sizeof names);
        ck_assert_str_eq(names, "");
    }
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        every_row_is_bound,
        every_missing_row_is_named,
        all_that_is_missing_is_named_at_once,
        what_does_not_fit_the_message_is_counted,
        unknown_offsets_count_as_missing,
        defaults,
        text_is_no_value,
        what_is_not_needed_has_no_effect,
        inline_fields_have_any_type,
        values_must_fit_their_width,
        offsets_are_not_negative,
        fields_that_have_two_names,
        fields_are_read_by_their_row,
        net_10_has_what_is_needed,
    };
    Suite *s = suite_create("layout");
    TCase *tc = tcase_create("layout");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, declared_types_must_fit, 0, ARRAY_SIZE(declared));
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
