/* net11.c: what .NET 11.0.0 for linux-x64 publishes, by name. net11.def has it from the runtime's own descriptor. */
#include "mocktarget/mock.h"
#include "util/binary_search.h"

/* Each list is sorted by name. */
struct published {
    const char *name;
    uint64_t value; /* an offset, a size, a number */
};

static const struct published fields[] = {
#define NET11_FIELD(type, field, offset) {#type "." #field, offset},
#include "mocktarget/net11.def"
};

static const struct published types[] = {
#define NET11_TYPE(type, size) {#type, size},
#include "mocktarget/net11.def"
};

static const struct published numbers[] = {
#define NET11_NUMBER(name, value) {#name, value},
#include "mocktarget/net11.def"
};

static const struct published pointers[] = {
#define NET11_POINTER(name) {#name, 0},
#include "mocktarget/net11.def"
};

const struct net11_text net11_strings[] = {
#define NET11_STRING(name, value) {#name, value},
#include "mocktarget/net11.def"
    {NULL, NULL},
};

const struct net11_text net11_contracts[] = {
#define NET11_CONTRACT(name, version) {#name, version},
#include "mocktarget/net11.def"
    {NULL, NULL},
};

static bool find(const struct published *rows, size_t count, const char *name, uint64_t *ret)
{
    size_t at = lower_bound(i, count, strcmp(rows[i].name, name) < 0);
    if (at == count || strcmp(rows[at].name, name) != 0)
        return false;
    *ret = rows[at].value;
    return true;
}

bool net11_field(const char *name, uint64_t *ret_offset)
{
    return find(fields, ARRAY_SIZE(fields), name, ret_offset);
}

bool net11_type(const char *name, uint64_t *ret_size)
{
    return find(types, ARRAY_SIZE(types), name, ret_size);
}

bool net11_number(const char *name, uint64_t *ret)
{
    return find(numbers, ARRAY_SIZE(numbers), name, ret);
}

bool net11_pointer(const char *name)
{
    uint64_t none;
    return find(pointers, ARRAY_SIZE(pointers), name, &none);
}
