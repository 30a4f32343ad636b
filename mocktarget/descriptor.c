/*
 * descriptor.c: the contract descriptor: header, JSON and pointer data, in an ELF image that exports it.
 *
 * The JSON is in the compact form. The seed chooses how a value is spelled, among all forms that runtimes may write:
 * fields with or without a type, globals as numbers, as numeric strings, or through the pointer data.
 * Source: dotnet/runtime docs/design/datacontracts/{contract-descriptor,data_descriptor}.md.
 */
#include <stdio.h>

#include "mocktarget/image.h"

enum { POINTER_DATA_MAX = G_COUNT + 1 + MOCK_SUB_DESCRIPTOR_MAX };

struct pointer_data {
    uint64_t values[POINTER_DATA_MAX]; /* the first one is not used */
    size_t count;
};

/* The declared type of a field; NULL if none is declared. */
static const char *declared_type(struct mock *mock, enum mock_field field)
{
    const char *kind = mock_field_rows[field].kind;
    if (!mock->is_net11)
        return kind && mock_random(mock, 2) ? kind : NULL;
    /* Checked builds of .NET 11 declare all types, release builds none. Arrays are declared as pointers. */
    if (!(mock->options.seed & 1))
        return NULL;
    switch ((int)field) {
    case F_RangeSection_Flags:
    case F_CodeRangeMapRangeList_RangeListType:
        return "int32";
    case F_ReadyToRunInfo_EntryPointToMethodDescMap:
        return "HashMap";
    case F_RealCodeHeader_UnwindInfos:
        return "RuntimeFunction";
    case F_EEILException_Clauses:
        return "EEExceptionClause";
    case F_EEExceptionClause_TypeHandle:
        return "nuint";
    case F_EEJitManager_StoreRichDebugInfo:
        return "bool";
    default:
        return kind ? kind : "pointer";
    }
}

static void put_field(struct mock *mock, struct text *json, enum mock_field field)
{
    const char *name = strchr(mock_field_rows[field].name, '.') + 1, *kind = declared_type(mock, field);
    unsigned offset = mock->fields[field].offset;
    if (kind)
        text_printf(json, "\"%s\":[%u,\"%s\"]", name, offset, kind);
    else
        text_printf(json, "\"%s\":%u", name, offset);
}

static void put_type(struct mock *mock, struct text *json, enum mock_type type)
{
    const char *separator = "";
    text_printf(json, "\"%s\":{", mock_type_rows[type].name);
    /* Runtimes also state sizes that no reader needs. */
    if (!mock->size_hidden[type] && (mock->is_net11 || mock_type_rows[type].contract || mock_random(mock, 2))) {
        text_printf(json, "\"!\":%u", mock->sizes[type]);
        separator = ",";
    }
    for (int field = 0; field < F_COUNT; field++) {
        const struct mock_slot *slot = &mock->fields[field];
        if (mock_field_rows[field].type != type || !slot->present || slot->hidden)
            continue;
        text_puts(json, separator);
        put_field(mock, json, field);
        separator = ",";
    }
    text_puts(json, "}");
}

static void put_types(struct mock *mock, struct text *json)
{
    text_puts(json, "\"types\":{\"Unheard\":{\"!\":8,\"Of\":[0,\"pointer\"]}");
    for (int type = 0; type < T_COUNT; type++)
        if (!mock->type_hidden[type]) {
            text_putc(json, ',');
            put_type(mock, json, type);
        }
    text_puts(json, "}");
}

static void put_number(struct mock *mock, struct text *json, uint64_t value)
{
    if (value >> 53 || mock_random(mock, 2)) /* numbers that a double cannot hold are strings */
        text_printf(json, "\"%#llx\"", (unsigned long long)value);
    else
        text_printf(json, "%llu", (unsigned long long)value);
}

static void put_global(struct mock *mock, struct text *json, enum mock_global global, struct pointer_data *pointers)
{
    const char *kind = mock_global_rows[global].kind;
    bool pointer = kind && strcmp(kind, "pointer") == 0;
    bool indirect = pointer && (!mock->options.seed || mock_random(mock, 4));
    bool typed = !mock->options.seed || mock_random(mock, 2);
    text_printf(json, ",\"%s\":%s", mock_global_rows[global].name, typed ? "[" : "");
    if (indirect) {
        text_printf(json, "[%zu]", pointers->count);
        pointers->values[pointers->count++] = mock->globals[global];
    } else {
        put_number(mock, json, mock->globals[global]);
    }
    if (typed)
        text_printf(json, ",\"%s\"]", kind);
}

static void put_globals(struct mock *mock, struct text *json, struct pointer_data *pointers)
{
    static const char *const names[] = {
        [MOCK_UNWIND_END_ADDRESS] = "x64", [MOCK_UNWIND_FUNCTION_LENGTH] = "x86",     [MOCK_UNWIND_HEADER] = "arm64",
        [MOCK_UNWIND_RISCV64] = "riscv64", [MOCK_UNWIND_LOONGARCH64] = "loongarch64",
    };
    const char *architecture = mock_is_arm(mock) ? "arm" : names[mock->options.unwind];
    text_printf(json, ",\"globals\":{\"Architecture\":[\"%s\",\"string\"]", architecture);
    if (!mock->is_net11)
        text_puts(json, ",\"OperatingSystem\":[\"1\",\"string\"]");
    for (const struct net11_text *global = net11_strings; mock->is_net11 && global->name; global++)
        if (strcmp(global->name, "Architecture") != 0 && strcmp(global->name, "RID") != 0)
            text_printf(json, ",\"%s\":[\"%s\",\"string\"]", global->name, global->text);
    for (int global = 0; global < G_COUNT; global++)
        if (mock->global_set[global])
            put_global(mock, json, global, pointers);
    text_puts(json, "}");
}

/* Their pointers come last, as in the runtime's own pointer data. */
static void put_sub_descriptors(struct mock *mock, struct text *json, struct pointer_data *pointers)
{
    for (size_t i = 0; i < mock->sub_descriptor_count; i++) {
        const struct mock_sub_descriptor *sub = &mock->sub_descriptors[i];
        text_printf(json, "%s\"%s\":[[%zu],\"pointer\"]", i ? "," : ",\"subDescriptors\":{", sub->name,
                    pointers->count);
        pointers->values[pointers->count++] = sub->variable;
    }
    text_puts(json, mock->sub_descriptor_count ? "}" : "");
}

static void put_contracts(const struct mock *mock, struct text *json)
{
    text_puts(json, ",\"contracts\":{");
    for (size_t i = 0; i < mock->contract_count; i++) {
        const char *version = mock->contracts[i].version;
        const char *quote = version[strspn(version, "0123456789")] ? "\"" : "";
        text_printf(json, "%s\"%s\":%s%s%s", i ? "," : "", mock->contracts[i].name, quote, version, quote);
    }
    text_puts(json, "}");
}

/* The header as the runtime declares it: 40 or 32 bytes. */
static void put_header(struct mock *mock, uint64_t address, uint64_t json, size_t json_size, uint64_t pointers,
                       size_t pointer_count)
{
    uint64_t at = address + 16;
    mock_write_uint(mock, address, 8, UINT64_C(0x0043414443434e44)); /* "DNCCDAC" where little-endian */
    mock_write_uint(mock, address + 8, 4, mock->word == 4 ? 3 : 1);
    mock_write_uint(mock, address + 12, 4, json_size);
    mock_write_pointer(mock, at, json);
    mock_write_uint(mock, at + mock->word, 4, pointer_count);
    mock_write_uint(mock, at + mock->word + 4, 4, 0);
    mock_write_pointer(mock, at + mock->word + 8, pointers);
}

uint64_t mock_sub_descriptor(struct mock *mock, const char *name, const char *json, const uint64_t *pointers,
                             size_t pointer_count)
{
    struct mock_sub_descriptor *sub = &mock->sub_descriptors[mock->sub_descriptor_count];
    if (mock->sub_descriptor_count == MOCK_SUB_DESCRIPTOR_MAX || strlen(name) >= sizeof sub->name)
        return mock_fail(mock, "no room for the sub-descriptor %s", name);
    mock->sub_descriptor_count++;
    strcpy(sub->name, name);
    sub->variable = mock_alloc(mock, mock->word, mock->word);
    if (!json)
        return sub->variable;
    uint64_t text = mock_alloc(mock, strlen(json) + 1, 1), header = mock_alloc(mock, 24 + 2 * mock->word, 8);
    uint64_t data = mock_alloc(mock, (pointer_count + 1) * mock->word, mock->word);
    mock_write(mock, text, json, strlen(json));
    for (size_t i = 0; i < pointer_count; i++)
        mock_write_pointer(mock, data + (i + 1) * mock->word, pointers[i]);
    put_header(mock, header, text, strlen(json), data, pointer_count + 1);
    mock_write_pointer(mock, sub->variable, header);
    return mock->failed ? 0 : sub->variable;
}

uint64_t mock_publish(struct mock *mock, const struct mock_publish_options *options)
{
    static const struct mock_publish_options usual = {0};
    struct pointer_data pointers = {.count = 1};
    struct text json = {0};
    options = options ? options : &usual;
    if (mock->published)
        mock_fail(mock, "published twice");
    unsigned schema = mock->is_net11 && !options->schema ? 2 : options->schema;
    text_printf(&json, "{\"version\":%u,\"baseline\":\"empty\",", schema);
    put_types(mock, &json);
    put_globals(mock, &json, &pointers);
    put_sub_descriptors(mock, &json, &pointers);
    put_contracts(mock, &json);
    text_puts(&json, "}");
    if (options->json) {
        text_clear(&json);
        text_puts(&json, options->json);
    }
    if (json.broken)
        mock_fail(mock, "out of memory");
    struct image_plan plan = {
        .path = options->path ? options->path : "/mock/libcoreclr.so",
        .symbols = options->symbols,
        .json_size = json.length,
        .header_size = 24 + 2 * mock->word,
        .pointers_size = pointers.count * mock->word,
    };
    if (!mock->failed && options->no_image) {
        plan.json = mock_alloc(mock, plan.json_size, 1);
        plan.pointers = mock_alloc(mock, plan.pointers_size, 8);
        plan.header = mock_alloc(mock, plan.header_size, 8);
    } else if (!mock->failed) {
        image_write(mock, &plan);
    }
    mock_write(mock, plan.json, json.data, json.length);
    for (size_t i = 0; i < pointers.count; i++)
        mock_write_pointer(mock, plan.pointers + i * mock->word, pointers.values[i]);
    put_header(mock, plan.header, plan.json, json.length, plan.pointers, pointers.count);
    text_deinit(&json);
    mock->published = true;
    return mock->failed ? 0 : plan.header;
}
