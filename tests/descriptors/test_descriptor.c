#include "descriptors/descriptor.h"

#include <stdio.h>

#include "descriptors/json.h"
#include "descriptors/runtime.h"
#include "descriptors/runtime_info.h"
#include "descriptors/runtime_version.h"
#include "tests/support/check_main.h"
#include "tests/support/fixture_file.h"

static struct descriptor descriptor;
static struct cdacq_error error;
static const struct pointer_data no_pointers;

static void setup(void)
{
    memset(&descriptor, 0, sizeof descriptor);
    memset(&error, 0, sizeof error);
}

static void teardown(void)
{
    descriptor_deinit(&descriptor);
}

static enum cdacq_status try_add(const char *text, const char *origin, struct pointer_data pointers,
                                 enum descriptor_merge merge)
{
    struct json *root;
    enum cdacq_status status = json_parse(text, strlen(text), origin, &root, &error);
    ck_assert_msg(status == CDACQ_OK, "%s", error.message);
    status = descriptor_add(&descriptor, root, origin, pointers, merge, &error);
    json_free(root); /* nothing may point into it */
    return status;
}

static void add(const char *text, const char *origin, enum descriptor_merge merge)
{
    ck_assert_msg(try_add(text, origin, no_pointers, merge) == CDACQ_OK, "%s", error.message);
}

static const struct descriptor_item *find(enum cdacq_descriptor_item_kind kind, const char *scope, const char *name)
{
    const struct descriptor_item *item = descriptor_find(&descriptor, kind, scope, name);
    ck_assert_msg(item != NULL, "%s.%s", scope, name);
    ck_assert_int_eq(item->kind, kind);
    ck_assert_str_eq(item->scope, scope);
    ck_assert_str_eq(item->name, name);
    return item;
}

static const struct descriptor_item *global(const char *name)
{
    return find(CDACQ_ITEM_GLOBAL, "", name);
}

static const struct descriptor_item *field(const char *type, const char *name)
{
    return find(CDACQ_ITEM_FIELD, type, name);
}

static const struct descriptor_item *type_of(const char *name)
{
    return find(CDACQ_ITEM_TYPE, "", name);
}

#define assert_value(item, expected)                           \
    do {                                                       \
        const struct descriptor_item *item_ = (item);          \
        ck_assert(item_->has_value);                           \
        ck_assert_uint_eq(item_->value, (uint64_t)(expected)); \
    } while (0)

#define assert_text(item, expected_type, expected_text) \
    do {                                                \
        const struct descriptor_item *item_ = (item);   \
        ck_assert_pstr_eq(item_->type, expected_type);  \
        ck_assert_pstr_eq(item_->text, expected_text);  \
    } while (0)

/* ---- The compact form ---- */

START_TEST(types_and_fields)
{
    add("{\"version\":0,\"types\":{\"A\":{\"!\":24,\"x\":8,\"y\":[16,\"pointer\"],\"z\":\"0x18\",\"w\":[\"32\","
        "\"uint8\"]},"
        "\"Empty\":{},\"Unsized\":{\"x\":0}}}",
        "runtime", MERGE_OVERRIDE);
    ck_assert_uint_eq(descriptor.schema, 0);
    ck_assert(descriptor.has_schema);
    assert_value(type_of("A"), 24);
    assert_value(field("A", "x"), 8);
    assert_text(field("A", "x"), NULL, NULL);
    assert_value(field("A", "y"), 16);
    assert_text(field("A", "y"), "pointer", NULL);
    assert_value(field("A", "z"), 24);
    assert_value(field("A", "w"), 32);
    assert_text(field("A", "w"), "uint8", NULL);
    ck_assert(!type_of("Empty")->has_value);
    ck_assert(!type_of("Unsized")->has_value); /* present, without a known size */
    assert_value(field("Unsized", "x"), 0);
    ck_assert_uint_eq(descriptor.items.count, 8);
    ck_assert_ptr_null(descriptor_find(&descriptor, CDACQ_ITEM_FIELD, "A", "!"));
    ck_assert_ptr_null(descriptor_find(&descriptor, CDACQ_ITEM_FIELD, "a", "x"));
    ck_assert_ptr_null(descriptor_find(&descriptor, CDACQ_ITEM_FIELD, "A", "X"));
    ck_assert_ptr_null(descriptor_find(&descriptor, CDACQ_ITEM_GLOBAL, "", "A"));
    ck_assert_str_eq(field("A", "x")->origin, "runtime");
    ck_assert_ptr_null(field("A", "x")->other);
}
END_TEST

/* No runtime has these, but the format does. */
START_TEST(offsets_in_every_form)
{
    add("{\"types\":{\"Odd\":{\"a\":-12,\"b\":\"0x12\",\"c\":\"-0x12\",\"d\":[\"0x100\",\"int\"],"
        "\"least\":-2147483648,\"most\":4294967295}}}",
        "runtime", MERGE_OVERRIDE);
    assert_value(field("Odd", "a"), -12);
    assert_value(field("Odd", "b"), 0x12);
    assert_value(field("Odd", "c"), -0x12);
    assert_value(field("Odd", "d"), 0x100);
    assert_text(field("Odd", "d"), "int", NULL);
    assert_value(field("Odd", "least"), INT32_MIN);
    assert_value(field("Odd", "most"), UINT32_MAX);
}
END_TEST

/* A number, also one in the pointer data, and "unknown" have no text. */
START_TEST(operating_systems)
{
    static const char *const cases[][2] = {
        {"\"unix\"", "unix"},  {"\"1\"", "unix"},  {"[\"win\",\"string\"]", "win"}, {"\"other\"", NULL},
        {"\"unknown\"", NULL}, {"1", NULL},        {"[7,\"uint32\"]", NULL},        {"[[0],\"uint32\"]", NULL},
        {"\"Unix\"", "unix"},  {"\"WIN\"", "win"}, {"\"Windows\"", "win"},          {"\"Apple\"", NULL},
    };
    const uint64_t values[] = {1};
    ck_assert_ptr_null(operating_system_find(&descriptor));
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"globals\":{\"OperatingSystem\":%s}}", cases[i][0]);
        ck_assert_int_eq(try_add(text, "runtime", (struct pointer_data){.values = values, .count = 1}, MERGE_OVERRIDE),
                         CDACQ_OK);
        ck_assert_pstr_eq(operating_system_find(&descriptor), cases[i][1]);
        teardown();
        setup();
    }
}
END_TEST

/* As .NET 11 spells them, in another case, and what is neither. */
START_TEST(runtime_flavors)
{
    static const struct {
        const char *json;
        enum runtime_flavor flavor;
    } cases[] = {
        {"[\"Coreclr\",\"string\"]", RUNTIME_FLAVOR_CORECLR},
        {"[\"NativeAot\",\"string\"]", RUNTIME_FLAVOR_NATIVE_AOT},
        {"\"nativeaot\"", RUNTIME_FLAVOR_NATIVE_AOT},
        {"\"mono\"", RUNTIME_FLAVOR_UNKNOWN},
        {"\"\"", RUNTIME_FLAVOR_UNKNOWN},
        {"1", RUNTIME_FLAVOR_UNKNOWN},
    };
    ck_assert_int_eq(runtime_flavor_find(&descriptor), RUNTIME_FLAVOR_UNKNOWN);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"globals\":{\"RuntimeFlavor\":%s}}", cases[i].json);
        add(text, "runtime", MERGE_OVERRIDE);
        ck_assert_int_eq(runtime_flavor_find(&descriptor), cases[i].flavor);
    }
}
END_TEST

/* What the descriptor publishes wins over what the image and its folder say, unless it is no version. */
START_TEST(published_versions)
{
    static const char *const cases[][3] = {
        {"[\"11.0.0\",\"string\"]", "11.0", "11.0.0"},
        {"\"12.0.3\"", "12.0", "12.0.3"},
        {"\"11.0.0-rc.2.26502.107\"", "11.0", "11.0.0-rc.2.26502.107"},
        {"\"11.0\"", "11.0", "11.0"},
        {"\"11\"", "", ""},
        {"\"\"", "", ""},
        {"\"v11.0.0\"", "", ""},
        {"\"11.0.0 \\u001b[31m\"", "", ""},
        {"\"11..0\"", "", ""},
        {"\"11.0.0-0123456789012345678901234567890123456789\"", "", ""},
        {"11", "", ""},
    };
    struct runtime runtime = {0};
    struct runtime_version version;
    runtime_version_find(&runtime, NULL, &version);
    ck_assert_str_eq(version.version, "");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"globals\":{\"RuntimeProductVersionString\":%s}}", cases[i][0]);
        add(text, "runtime", MERGE_OVERRIDE);
        runtime_version_find(&runtime, &descriptor, &version);
        ck_assert_str_eq(version.release, cases[i][1]);
        ck_assert_str_eq(version.version, cases[i][2]);
    }
}
END_TEST

START_TEST(globals_in_every_form)
{
    const uint64_t values[] = {0, 0x1000, UINT64_MAX};
    const struct pointer_data pointers = {.values = values, .count = 3};
    const char *text = "{\"globals\":{\"direct\":1,\"negative\":-1,\"text\":\"x64\",\"hex\":\"0xff\","
                       "\"indirect\":[1],\"typed\":[2,\"uint8\"],\"typed-indirect\":[[2],\"pointer\"],"
                       "\"typed-text\":[\"1\",\"string\"],\"pure-text\":[\"linux\",\"string\"],"
                       "\"big\":[\"0xfffffffffffffffe\",\"uintptr_t\"],\"null-slot\":[0],\"by-text\":[\"1\"]}}";
    ck_assert_msg(try_add(text, "runtime", pointers, MERGE_OVERRIDE) == CDACQ_OK, "%s", error.message);
    assert_value(global("direct"), 1);
    assert_text(global("direct"), NULL, NULL);
    assert_value(global("negative"), -1);
    ck_assert(!global("text")->has_value);
    assert_text(global("text"), NULL, "x64");
    assert_value(global("hex"), 255);
    assert_text(global("hex"), NULL, "0xff"); /* a number and a string at once */
    assert_value(global("indirect"), 0x1000);
    assert_value(global("typed"), 2);
    assert_text(global("typed"), "uint8", NULL);
    assert_value(global("typed-indirect"), UINT64_MAX);
    assert_text(global("typed-indirect"), "pointer", NULL);
    assert_value(global("typed-text"), 1);
    assert_text(global("typed-text"), "string", "1");
    ck_assert(!global("pure-text")->has_value);
    assert_text(global("pure-text"), "string", "linux");
    assert_value(global("big"), UINT64_MAX - 1);
    assert_value(global("null-slot"), 0);
    assert_value(global("by-text"), 0x1000);
}
END_TEST

START_TEST(contracts_by_number_and_text)
{
    add("{\"version\":\"2\",\"contracts\":{\"ExecutionManager\":2,\"Loader\":\"c1\",\"Thread\":\"1\"}}", "runtime",
        MERGE_OVERRIDE);
    ck_assert_uint_eq(descriptor.schema, 2);
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "ExecutionManager")->text, "2");
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "Loader")->text, "c1");
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "Thread")->text, "1");
}
END_TEST

START_TEST(unknown_keys)
{
    add("{\"version\":0,\"baseline\":\"empty\",\"future\":[{}],\"Types\":5,\"subDescriptors\":{\"GC\":[[1],\"pointer\"]"
        "}}",
        "runtime", MERGE_OVERRIDE);
    ck_assert_uint_eq(descriptor.items.count, 0);
}
END_TEST

START_TEST(nothing_is_in_an_empty_descriptor)
{
    ck_assert_ptr_null(descriptor_find(&descriptor, CDACQ_ITEM_TYPE, "", "A"));
    add("{}", "runtime", MERGE_OVERRIDE);
    ck_assert_ptr_null(descriptor_find(&descriptor, CDACQ_ITEM_TYPE, "", "A"));
    ck_assert(!descriptor.has_schema);
}
END_TEST

/* ---- The regular form, of baselines ---- */

START_TEST(the_regular_form)
{
    add("{\"version\":0,\"types\":["
        "{\"name\":\"A\",\"size\":24,\"fields\":[{\"name\":\"x\",\"type\":\"pointer\",\"offset\":8},"
        "{\"name\":\"y\",\"type\":\"uint32\",\"offset\":\"unknown\"},{\"name\":\"z\",\"type\":\"B\"},{\"name\":\"w\","
        "\"offset\":\"12\"}]},"
        "{\"name\":\"B\",\"size\":\"indeterminate\",\"fields\":[]},{\"name\":\"C\"}],"
        "\"globals\":[{\"name\":\"g\",\"type\":\"uint8\",\"value\":\"0x0f\"},{\"name\":\"h\",\"type\":\"pointer\","
        "\"value\":\"unknown\"},"
        "{\"name\":\"i\",\"type\":\"pointer\"},{\"name\":\"s\",\"type\":\"string\",\"value\":\"x64\"}],"
        "\"contracts\":{\"ExecutionManager\":1}}",
        "baseline", MERGE_ADD);
    assert_value(type_of("A"), 24);
    ck_assert(!type_of("B")->has_value);
    ck_assert(!type_of("C")->has_value);
    assert_value(field("A", "x"), 8);
    assert_text(field("A", "x"), "pointer", NULL);
    ck_assert(!field("A", "y")->has_value);
    assert_text(field("A", "y"), "uint32", NULL);
    ck_assert(!field("A", "z")->has_value);
    assert_text(field("A", "z"), "B", NULL);
    assert_value(field("A", "w"), 12);
    assert_value(global("g"), 15);
    assert_text(global("g"), "uint8", "0x0f");
    ck_assert(!global("h")->has_value);
    assert_text(global("h"), "pointer", NULL);
    ck_assert(!global("i")->has_value);
    assert_text(global("s"), "string", "x64");
}
END_TEST

START_TEST(the_runtime_fills_a_baseline)
{
    add("{\"version\":0,\"types\":[{\"name\":\"A\",\"size\":\"indeterminate\",\"fields\":["
        "{\"name\":\"x\",\"type\":\"pointer\",\"offset\":\"unknown\"},{\"name\":\"y\",\"type\":\"uint32\",\"offset\":4}"
        ","
        "{\"name\":\"z\",\"type\":\"uint8\",\"offset\":1}]}],"
        "\"globals\":[{\"name\":\"g\",\"type\":\"pointer\",\"value\":\"unknown\"},{\"name\":\"h\",\"type\":\"uint8\","
        "\"value\":1}]}",
        "baseline", MERGE_ADD);
    const uint64_t values[] = {0, 0x5000};
    const struct pointer_data pointers = {.values = values, .count = 2};
    ck_assert_int_eq(
        try_add("{\"version\":2,\"types\":{\"A\":{\"!\":32,\"x\":16,\"y\":20}},\"globals\":{\"g\":[1],\"h\":2}}",
                "runtime", pointers, MERGE_OVERRIDE),
        CDACQ_OK);
    ck_assert_uint_eq(descriptor.schema, 2); /* that of the runtime, not of the baseline */
    assert_value(type_of("A"), 32);
    assert_value(field("A", "x"), 16);
    assert_text(field("A", "x"), "pointer", NULL); /* the baseline's type */
    ck_assert_str_eq(field("A", "x")->origin, "runtime");
    ck_assert_ptr_null(field("A", "x")->other); /* filled, without a disagreement */
    assert_value(field("A", "y"), 20);
    ck_assert_str_eq(field("A", "y")->origin, "runtime");
    ck_assert_str_eq(field("A", "y")->other, "baseline");
    assert_value(field("A", "z"), 1);
    ck_assert_str_eq(field("A", "z")->origin, "baseline");
    assert_value(global("g"), 0x5000);
    assert_text(global("g"), "pointer", NULL);
    ck_assert_ptr_null(global("g")->other);
    assert_value(global("h"), 2);
    ck_assert_str_eq(global("h")->other, "baseline");
    ck_assert_uint_eq(descriptor.items.count, 6);
}
END_TEST

/* ---- Merging ---- */

START_TEST(supplements_only_add)
{
    add("{\"version\":0,\"types\":{\"A\":{\"!\":24,\"x\":[8,\"pointer\"]},\"B\":{}},\"globals\":{\"g\":1,\"s\":\"x64\"}"
        ","
        "\"contracts\":{\"Loader\":1}}",
        "runtime", MERGE_OVERRIDE);
    add("{\"version\":1,\"types\":{\"A\":{\"!\":32,\"x\":9,\"y\":16},\"B\":{\"!\":4},\"C\":{\"z\":0}},"
        "\"globals\":{\"g\":2,\"h\":3,\"s\":\"arm64\"},\"contracts\":{\"Loader\":2,\"ExecutionManager\":\"c1\"}}",
        "supplement", MERGE_ADD);
    ck_assert_uint_eq(descriptor.schema, 0);
    /* A present value stays, and the different one is shown. */
    assert_value(type_of("A"), 24);
    ck_assert_str_eq(type_of("A")->origin, "runtime");
    ck_assert_str_eq(type_of("A")->other, "supplement");
    assert_value(field("A", "x"), 8);
    ck_assert_str_eq(field("A", "x")->other, "supplement");
    assert_value(global("g"), 1);
    ck_assert_str_eq(global("g")->other, "supplement");
    ck_assert_str_eq(global("s")->text, "x64");
    ck_assert_str_eq(global("s")->other, "supplement");
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "Loader")->text, "1");
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "Loader")->other, "supplement");
    /* Missing values are added. */
    assert_value(type_of("B"), 4);
    ck_assert_str_eq(type_of("B")->origin, "supplement");
    assert_value(field("A", "y"), 16);
    ck_assert_str_eq(field("A", "y")->origin, "supplement");
    ck_assert_ptr_null(field("A", "y")->other);
    assert_value(field("C", "z"), 0);
    assert_value(global("h"), 3);
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "ExecutionManager")->text, "c1");
}
END_TEST

START_TEST(what_agrees_is_no_disagreement)
{
    add("{\"types\":{\"A\":{\"!\":8,\"x\":[8,\"pointer\"]}},\"globals\":{\"g\":[\"0x10\",\"uint8\"],\"s\":\"x\"}}",
        "runtime", MERGE_OVERRIDE);
    add("{\"types\":{\"A\":{\"!\":\"8\",\"x\":8}},\"globals\":{\"g\":16,\"s\":[\"x\",\"string\"]}}", "supplement",
        MERGE_ADD);
    ck_assert_ptr_null(type_of("A")->other);
    ck_assert_ptr_null(field("A", "x")->other);
    ck_assert_ptr_null(global("g")->other);
    ck_assert_ptr_null(global("s")->other);
    ck_assert_str_eq(global("g")->origin, "runtime");
}
END_TEST

START_TEST(what_says_nothing_changes_nothing)
{
    add("{\"types\":{\"A\":{\"!\":8,\"x\":8}},\"globals\":{\"g\":1}}", "runtime", MERGE_OVERRIDE);
    add("{\"types\":{\"A\":{\"x\":\"unknown\"}},\"globals\":{\"g\":\"unknown\"}}", "user", MERGE_OVERRIDE);
    assert_value(type_of("A"), 8);
    ck_assert_str_eq(type_of("A")->origin, "runtime");
    assert_value(field("A", "x"), 8);
    assert_value(global("g"), 1);
    ck_assert_ptr_null(global("g")->other);
}
END_TEST

START_TEST(the_user_overrides)
{
    add("{\"types\":{\"A\":{\"!\":8,\"x\":[8,\"pointer\"]}},\"globals\":{\"g\":1},\"contracts\":{\"Loader\":1}}",
        "runtime", MERGE_OVERRIDE);
    add("{\"types\":{\"A\":{\"!\":9,\"x\":10}},\"globals\":{\"g\":2},\"contracts\":{\"Loader\":\"c1\"}}", "mine.json",
        MERGE_OVERRIDE);
    assert_value(type_of("A"), 9);
    ck_assert_str_eq(type_of("A")->origin, "mine.json");
    ck_assert_str_eq(type_of("A")->other, "runtime");
    assert_value(field("A", "x"), 10);
    assert_text(field("A", "x"), "pointer", NULL);
    assert_value(global("g"), 2);
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "Loader")->text, "c1");
    ck_assert_uint_eq(descriptor.items.count, 4);
}
END_TEST

START_TEST(a_number_and_a_text_disagree)
{
    add("{\"globals\":{\"a\":1,\"b\":\"x\"}}", "runtime", MERGE_OVERRIDE);
    add("{\"globals\":{\"a\":\"x\",\"b\":1}}", "supplement", MERGE_ADD);
    ck_assert_str_eq(global("a")->other, "supplement");
    ck_assert_str_eq(global("b")->other, "supplement");
    assert_value(global("a"), 1);
    ck_assert_str_eq(global("b")->text, "x");
}
END_TEST

START_TEST(each_document_has_its_own_pointers)
{
    const uint64_t first[] = {0, 0x1000}, second[] = {0, 0x2000};
    const struct pointer_data a = {.values = first, .count = 2}, b = {.values = second, .count = 2};
    ck_assert_int_eq(try_add("{\"globals\":{\"g\":[[1],\"pointer\"]}}", "runtime", a, MERGE_OVERRIDE), CDACQ_OK);
    ck_assert_int_eq(try_add("{\"globals\":{\"h\":[[1],\"pointer\"]}}", "GC", b, MERGE_ADD), CDACQ_OK);
    assert_value(global("g"), 0x1000);
    assert_value(global("h"), 0x2000);
}
END_TEST

/* ---- What is refused ---- */

static const struct refused {
    const char *text, *message;
} refused[] = {
    {"[]", "runtime: document \"runtime\": not an object"},
    {"1", "runtime: document \"runtime\": not an object"},
    {"{\"version\":\"x\"}", "runtime: key \"version\": not a number of 32 bits"},
    {"{\"version\":null}", "runtime: key \"version\": not a number of 32 bits"},
    {"{\"version\":-1}", "runtime: key \"version\": not a number of 32 bits"},
    {"{\"version\":4294967296}", "runtime: key \"version\": not a number of 32 bits"},
    {"{\"types\":1}", "runtime: key \"types\": neither an object nor an array"},
    {"{\"globals\":\"x\"}", "runtime: key \"globals\": neither an object nor an array"},
    {"{\"contracts\":[]}", "runtime: key \"contracts\": not an object"},
    {"{\"types\":{\"A\":1}}", "runtime: type \"A\": not an object"},
    {"{\"types\":{\"A\":{\"!\":null}}}", "runtime: type \"A\": its size is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"!\":-1}}}", "runtime: type \"A\": its size is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"!\":4294967296}}}", "runtime: type \"A\": its size is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"!\":[8,\"x\"]}}}", "runtime: type \"A\": its size is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"x\":-2147483649}}}", "runtime: field \"x\": its offset is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"x\":1.5}}}", "runtime: field \"x\": its offset is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"x\":4294967296}}}", "runtime: field \"x\": its offset is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"x\":\"y\"}}}", "runtime: field \"x\": its offset is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"x\":{}}}}", "runtime: field \"x\": its offset is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"x\":[]}}}", "runtime: field \"x\": an offset is N or [N, \"type\"]"},
    {"{\"types\":{\"A\":{\"x\":[1]}}}", "runtime: field \"x\": an offset is N or [N, \"type\"]"},
    {"{\"types\":{\"A\":{\"x\":[1,2]}}}", "runtime: field \"x\": an offset is N or [N, \"type\"]"},
    {"{\"types\":{\"A\":{\"x\":[1,\"a\",2]}}}", "runtime: field \"x\": an offset is N or [N, \"type\"]"},
    {"{\"types\":{\"A\":{\"x\":[[1],\"a\"]}}}", "runtime: field \"x\": its offset is not a 32-bit number"},
    {"{\"types\":{\"A\":{\"x\":1,\"y\":2,\"x\":3}}}", "runtime: type \"A\": a field appears twice"},
    {"{\"types\":{\"A\":{\"!\":1,\"!\":2}}}", "runtime: type \"A\": a field appears twice"},
    {"{\"globals\":{\"g\":null}}", "runtime: value \"g\": neither a number nor a string"},
    {"{\"globals\":{\"g\":true}}", "runtime: value \"g\": neither a number nor a string"},
    {"{\"globals\":{\"g\":{}}}", "runtime: value \"g\": neither a number nor a string"},
    {"{\"globals\":{\"g\":1.5}}", "runtime: value \"g\": not a whole number of 64 bits"},
    {"{\"globals\":{\"g\":18446744073709551616}}", "runtime: value \"g\": not a whole number of 64 bits"},
    {"{\"globals\":{\"g\":[]}}", "runtime: value \"g\": an indirect value is [index]"},
    {"{\"globals\":{\"g\":[1,\"a\",2]}}", "runtime: value \"g\": an indirect value is [index]"},
    {"{\"globals\":{\"g\":[\"x\"]}}", "runtime: value \"g\": an indirect value is [index]"},
    {"{\"globals\":{\"g\":[[]]}}", "runtime: value \"g\": an indirect value is [index]"},
    {"{\"globals\":{\"g\":[[[1]],\"a\"]}}", "runtime: value \"g\": an indirect value is [index]"},
    {"{\"globals\":{\"g\":[1,2]}}", "runtime: global \"g\": its type is not a string"},
    {"{\"globals\":{\"g\":[[1],[2]]}}", "runtime: global \"g\": its type is not a string"},
    {"{\"globals\":{\"g\":[3]}}", "runtime: value \"g\": an indirect value beyond the pointer data"},
    {"{\"globals\":{\"g\":[[3],\"pointer\"]}}", "runtime: value \"g\": an indirect value beyond the pointer data"},
    {"{\"globals\":{\"g\":[-1]}}", "runtime: value \"g\": an indirect value beyond the pointer data"},
    {"{\"globals\":{\"g\":[18446744073709551615]}}", "runtime: value \"g\": an indirect value beyond the pointer data"},
    {"{\"contracts\":{\"Loader\":null}}", "runtime: contract \"Loader\": its version is neither a number nor a string"},
    {"{\"contracts\":{\"Loader\":[1]}}", "runtime: contract \"Loader\": its version is neither a number nor a string"},
    {"{\"types\":[1]}", "runtime: type \"\": needs a name and an array of fields"},
    {"{\"types\":[{}]}", "runtime: type \"\": needs a name and an array of fields"},
    {"{\"types\":[{\"name\":{}}]}", "runtime: type \"\": needs a name and an array of fields"},
    {"{\"types\":[{\"name\":5}]}", "runtime: type \"\": needs a name and an array of fields"},
    {"{\"types\":[{\"name\":\"A\",\"fields\":{}}]}", "runtime: type \"A\": needs a name and an array of fields"},
    {"{\"types\":[{\"name\":\"A\",\"fields\":[1]}]}", "runtime: type \"A\": a field without a name"},
    {"{\"types\":[{\"name\":\"A\",\"fields\":[{\"name\":null}]}]}", "runtime: type \"A\": a field without a name"},
    {"{\"types\":[{\"name\":\"A\",\"fields\":[{\"name\":\"x\",\"offset\":null}]}]}",
     "runtime: field \"x\": its offset is not a 32-bit number"},
    {"{\"types\":[{\"name\":\"A\",\"fields\":[{\"name\":\"x\"},{\"name\":\"x\"}]}]}",
     "runtime: type \"A\": a field appears twice"},
    {"{\"globals\":[{}]}", "runtime: key \"globals\": a global without a name"},
    {"{\"globals\":[[]]}", "runtime: key \"globals\": a global without a name"},
    {"{\"globals\":[{\"name\":[]}]}", "runtime: key \"globals\": a global without a name"},
    {"{\"types\":{\"A\\u001b\\n\":1}}", "runtime: type \"A\\x1b\\x0a\": not an object"},
};

START_TEST(what_is_no_descriptor_is_refused)
{
    const uint64_t values[] = {0, 1, 2};
    const struct pointer_data pointers = {.values = values, .count = 3};
    ck_assert_int_eq(try_add(refused[_i].text, "runtime", pointers, MERGE_OVERRIDE), CDACQ_ERR_DESCRIPTOR);
    ck_assert_str_eq(error.message, refused[_i].message);
}
END_TEST

START_TEST(no_pointer_data_no_indirect_values)
{
    static const char *const texts[] = {"{\"globals\":{\"g\":[0]}}", "{\"globals\":{\"g\":[[0],\"pointer\"]}}",
                                        "{\"globals\":[{\"name\":\"g\",\"value\":[0]}]}"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        ck_assert_int_eq(try_add(texts[i], "baseline", no_pointers, MERGE_ADD), CDACQ_ERR_DESCRIPTOR);
        ck_assert_str_eq(error.message,
                         "baseline: value \"g\": an indirect value, but this document has no pointer data");
    }
}
END_TEST

/* ---- Bounds ---- */

static void add_generated(const char *prefix, const char *format, size_t count, const char *suffix,
                          enum cdacq_status expected)
{
    char *text = malloc(JSON_TEXT_MAX + 1000);
    size_t at = (size_t)sprintf(text, "%s", prefix);
    for (size_t i = 0; i < count && at < JSON_TEXT_MAX - 64; i++)
        at += (size_t)sprintf(text + at, format, i, i);
    sprintf(text + at, "%s", suffix);
    double start = cpu_seconds();
    enum cdacq_status status = try_add(text, "runtime", no_pointers, MERGE_OVERRIDE);
    double took = cpu_seconds() - start;
    ck_assert_msg(status == expected, "%d: %s", status, error.message);
    ck_assert_msg(took < time_bound(15), "%g s", took);
    free(text);
}

START_TEST(many_globals)
{
    add_generated("{\"globals\":{", "\"g%zx\":%zu,", SIZE_MAX, "}}", CDACQ_OK);
    ck_assert_uint_gt(descriptor.items.count, 50000);
    assert_value(global("g0"), 0);
    assert_value(global("gabc"), 0xabc);
}
END_TEST

START_TEST(fields_of_a_type_are_capped)
{
    add_generated("{\"types\":{\"A\":{", "\"f%zx\":%zu,", 1024, "}}}", CDACQ_OK);
    assert_value(field("A", "f3ff"), 0x3ff);
    teardown();
    add_generated("{\"types\":{\"A\":{", "\"f%zx\":%zu,", 1025, "}}}", CDACQ_ERR_DESCRIPTOR);
    teardown();
    add_generated("{\"types\":[{\"name\":\"A\",\"fields\":[", "{\"name\":\"f%zx\",\"offset\":%zu},", 1025, "]}]}",
                  CDACQ_ERR_DESCRIPTOR);
}
END_TEST

START_TEST(items_are_capped)
{
    /* Documents of up to a megabyte, until the cap. */
    enum cdacq_status status = CDACQ_OK;
    char *text = malloc(JSON_TEXT_MAX + 1000);
    for (size_t i = 0; status == CDACQ_OK && i < 32; i++) {
        size_t at = (size_t)sprintf(text, "{\"globals\":{");
        for (size_t n = 0; at < JSON_TEXT_MAX - 64; n++)
            at += (size_t)sprintf(text + at, "\"%zx_%zx\":1,", i, n);
        sprintf(text + at, "}}");
        status = try_add(text, "runtime", no_pointers, MERGE_OVERRIDE);
        ck_assert_uint_le(descriptor.items.count, DESCRIPTOR_ITEM_MAX);
    }
    ck_assert_int_eq(status, CDACQ_ERR_DESCRIPTOR);
    ck_assert_ptr_nonnull(strstr(error.message, "too many items"));
    free(text);
}
END_TEST

/* Names that would all start at one slot if the hash had no seed: FNV-1a, folded, with the low 12 bits alike. */
START_TEST(names_made_to_collide)
{
    enum { WANTED = 500 };
    char *text = malloc(JSON_TEXT_MAX);
    size_t at = (size_t)sprintf(text, "{\"globals\":{"), found = 0;
    for (uint32_t n = 0; found < WANTED; n++) {
        char name[16];
        snprintf(name, sizeof name, "%x", n);
        if ((hash_string(name, hash_string("", CDACQ_ITEM_GLOBAL)) & 0xfff) == 0) {
            at += (size_t)sprintf(text + at, "\"%s\":1,", name);
            found++;
        }
    }
    sprintf(text + at, "}}");
    add(text, "runtime", MERGE_OVERRIDE);
    free(text);
    ck_assert_uint_eq(descriptor.items.count, WANTED);
    /* The distances between items: they do not form one long sequence. */
    size_t longest = 0, run = 0;
    for (size_t i = 0; i < descriptor.slots.capacity; i++) {
        run = descriptor.slots.tags[i] ? run + 1 : 0;
        longest = MAX(longest, run);
    }
    ck_assert_uint_lt(longest, WANTED / 4);
}
END_TEST

START_TEST(long_strings_are_kept)
{
    static char name[40000], text[90000];
    memset(name, 'n', sizeof name - 1);
    snprintf(text, sizeof text, "{\"globals\":{\"%s\":\"%s\",\"a\":1,\"b\":\"x\"}}", name, name);
    add(text, "runtime", MERGE_OVERRIDE);
    ck_assert_str_eq(global(name)->text, name);
    assert_value(global("a"), 1);
}
END_TEST

START_TEST(deinit_may_be_repeated)
{
    add("{\"globals\":{\"a\":1}}", "runtime", MERGE_OVERRIDE);
    descriptor_deinit(&descriptor);
    ck_assert_uint_eq(descriptor.items.count, 0);
    descriptor_deinit(&descriptor);
    add("{\"globals\":{\"a\":2}}", "runtime", MERGE_OVERRIDE);
    assert_value(global("a"), 2);
}
END_TEST

/* ---- The real descriptor of .NET 10 ---- */

START_TEST(the_descriptor_of_net_10)
{
    size_t size;
    uint8_t *text = fixture_file("descriptors/10.0.json", &size);
    ck_assert_uint_eq(size, 10563);
    uint64_t values[24];
    for (size_t i = 0; i < ARRAY_SIZE(values); i++)
        values[i] = i ? 0x1000 + i * 8 : 0;
    const struct pointer_data pointers = {.values = values, .count = ARRAY_SIZE(values)};
    ck_assert_msg(try_add((const char *)text, "runtime", pointers, MERGE_OVERRIDE) == CDACQ_OK, "%s", error.message);
    free(text);
    ck_assert_uint_eq(descriptor.schema, 0);
    static const struct {
        const char *type, *field;
        uint64_t offset;
    } fields[] = {
        {"RangeSectionMap", "TopLevelData", 0},
        {"RangeSectionFragment", "Next", 0},
        {"RangeSection", "Flags", 16},
        {"RangeSection", "R2RModule", 32},
        {"CodeHeapListNode", "HeaderMap", 40},
        {"RealCodeHeader", "UnwindInfos", 36},
        {"Module", "ReadyToRunInfo", 704},
        {"ReadyToRunInfo", "EntryPointToMethodDescMap", 360},
        {"PlatformMetadata", "CodePointerFlags", 112},
        {"MethodTable", "Module", 24},
        {"PEImage", "LoadedImageLayout", 128},
        {"DynamicMetadata", "Data", 4},
    };
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        assert_value(field(fields[i].type, fields[i].field), fields[i].offset);
    assert_value(type_of("RuntimeFunction"), 12);
    assert_value(type_of("Bucket"), 64);
    ck_assert(!type_of("UnwindInfo")->has_value);
    assert_value(global("ExecutionManagerCodeRangeMapAddress"), values[20]);
    assert_text(global("ExecutionManagerCodeRangeMapAddress"), "pointer", NULL);
    assert_value(global("StubCodeBlockLast"), 15);
    assert_value(global("HashMapValueMask"), INT64_MAX);
    assert_value(global("StaticsPointerMask"), UINT64_MAX - 1);
    assert_text(global("Architecture"), "string", "x64");
    assert_text(global("OperatingSystem"), "string", "1");
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "ExecutionManager")->text, "2");
    ck_assert_str_eq(find(CDACQ_ITEM_CONTRACT, "", "PrecodeStubs")->text, "3");
    ck_assert_ptr_null(descriptor_find(&descriptor, CDACQ_ITEM_CONTRACT, "", "GCInfo"));
}
END_TEST

START_TEST(the_descriptor_of_net_10_with_too_few_pointers)
{
    size_t size;
    uint8_t *text = fixture_file("descriptors/10.0.json", &size);
    uint64_t values[23] = {0};
    const struct pointer_data pointers = {.values = values, .count = ARRAY_SIZE(values)};
    ck_assert_int_eq(try_add((const char *)text, "runtime", pointers, MERGE_OVERRIDE), CDACQ_ERR_DESCRIPTOR);
    ck_assert_str_eq(error.message,
                     "runtime: value \"MethodDescSizeTable\": an indirect value beyond the pointer data");
    free(text);
}
END_TEST

static Suite *suite(void)
{
    const TTest *const tests[] = {
        types_and_fields,
        offsets_in_every_form,
        globals_in_every_form,
        contracts_by_number_and_text,
        unknown_keys,
        nothing_is_in_an_empty_descriptor,
        the_regular_form,
        operating_systems,
        runtime_flavors,
        published_versions,
        the_runtime_fills_a_baseline,
        supplements_only_add,
        what_agrees_is_no_disagreement,
        what_says_nothing_changes_nothing,
        the_user_overrides,
        a_number_and_a_text_disagree,
        each_document_has_its_own_pointers,
        no_pointer_data_no_indirect_values,
        many_globals,
        fields_of_a_type_are_capped,
        items_are_capped,
        names_made_to_collide,
        long_strings_are_kept,
        deinit_may_be_repeated,
        the_descriptor_of_net_10,
        the_descriptor_of_net_10_with_too_few_pointers,
    };
    Suite *s = suite_create("descriptor");
    TCase *tc = tcase_create("descriptor");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, what_is_no_descriptor_is_refused, 0, ARRAY_SIZE(refused));
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
