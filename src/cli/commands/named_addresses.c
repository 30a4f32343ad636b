#include "src/cli/commands/named_addresses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/runtimes.h"
#include "util/base.h"
#include "util/binary_search.h"
#include "util/file.h"
#include "util/vector.h"

enum { NAME_MAX_LENGTH = 4096 };

/* The code of a method. */
struct place_name {
    const char *name; /* a copy */
    uint64_t start, size, cold_start, cold_size;
};

DEFINE_VECTOR(place_names, struct place_name);

struct module_search {
    const char *name;
    uint64_t base, size;
    unsigned count;
};

static bool set_problem(struct bad_ip *bad, const char *problem)
{
    bad->problem = problem;
    return false;
}

static int by_name(const void *a, const void *b)
{
    const struct place_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->start > y->start) - (x->start < y->start);
}

static int add_name(const struct cdacq_method *method, void *context)
{
    struct named_addresses *places = context;
    places->incomplete |= method->answer == CDACQ_ANSWER_ERROR;
    if (method->answer != CDACQ_ANSWER_MANAGED || !method->name)
        return 0;
    const char *name = arena_string(&places->texts, method->name, method->name_length);
    if (!name || !place_names_append(places->names, (struct place_name){name, method->code_start, method->code_size,
                                                                        method->cold_start, method->cold_size}))
        out_of_memory();
    return 0;
}

static void list_names(struct named_addresses *places)
{
    struct cdacq_error error;
    if (places->names)
        return;
    places->names = allocate(sizeof *places->names);
    struct cdacq_session *one;
    for (unsigned next = 0; (one = runtimes_next(places->session, &next));)
        if (cdacq_session_visit_methods(one, CDACQ_VISIT_R2R_ALL, add_name, places, &error) < 0) {
            message("not all methods are known: %s", error.message);
            places->incomplete = true;
        }
    if (places->names->count)
        qsort(places->names->items, places->names->count, sizeof *places->names->items, by_name);
}

/* With its parameters, or without. */
static bool is_name_of(const char *name, const char *full_name)
{
    size_t length = strlen(name);
    return !strncmp(full_name, name, length) && (!full_name[length] || full_name[length] == '(');
}

/* An offset past the hot part continues in the cold part, as in answers. */
static bool address_in(const struct place_name *place, uint64_t offset, uint64_t *ret, struct bad_ip *bad)
{
    static char text[96];
    bool is_hot = offset < place->size;
    *ret = is_hot ? place->start + offset : place->cold_start + (offset - place->size);
    if (is_hot || offset - place->size < place->cold_size)
        return true;
    snprintf(text, sizeof text, "the offset is beyond the method, which has 0x%" PRIx64 " bytes",
             place->size + place->cold_size);
    return set_problem(bad, text);
}

/* Sets the problem only if the one method of that name does not have the offset. */
static bool find_method(struct named_addresses *places, const char *name, uint64_t offset, uint64_t *ret,
                        unsigned *ret_count, struct bad_ip *bad)
{
    list_names(places);
    const struct place_names *names = places->names;
    size_t first = lower_bound(i, names->count, strcmp(names->items[i].name, name) < 0), length = strlen(name);
    const struct place_name *found = NULL;
    for (size_t i = first; i < names->count && !strncmp(names->items[i].name, name, length); i++) {
        if (!is_name_of(name, names->items[i].name))
            continue;
        found = &names->items[i];
        ++*ret_count;
    }
    return *ret_count == 1 && address_in(found, offset, ret, bad);
}

static int match_module(const struct cdacq_mapped_file *module, void *context)
{
    struct module_search *search = context;
    if (strcmp(module->path, search->name) != 0 && strcmp(path_basename(module->path), search->name) != 0)
        return 0;
    search->base = module->begin;
    search->size = module->end - module->begin;
    search->count++;
    return 0;
}

static bool find_in_module(struct named_addresses *places, const char *name, uint64_t offset, uint64_t *ret,
                           struct bad_ip *bad)
{
    struct module_search search = {.name = name};
    if (cdacq_target_visit_mapped_files(places->target, match_module, &search, NULL) < 0)
        return set_problem(bad, "the mappings of the process cannot be read");
    *ret = search.base + offset;
    if (search.count == 1 && offset >= search.size)
        return set_problem(bad, "the offset is beyond the end of the mapped file");
    return search.count == 1 ||
           set_problem(bad, search.count ? "several mapped files have this name; give the path" : "no such module");
}

bool named_addresses_find(void *context, const char *text, size_t length, bool *ret_found, uint64_t *ret,
                          struct bad_ip *bad)
{
    struct named_addresses *places = context;
    static char several[96];
    char name[NAME_MAX_LENGTH];
    while (length && ip_is_blank(text[0]))
        text++, length--;
    while (length && ip_is_blank(text[length - 1]))
        length--;
    size_t at = length;
    while (at && text[at - 1] != '+' && text[at - 1] != '!')
        at--;
    uint64_t offset;
    struct bad_ip bad_offset;
    if (at < 2 || at - 1 >= sizeof name || length - at < 3 || text[at] != '0' || (text[at + 1] | 0x20) != 'x' ||
        !ip_parse(text + at, length - at, &offset, &bad_offset))
        return false;
    size_t name_length = at - 1;
    while (name_length && ip_is_blank(text[name_length - 1])) /* "Fib(int) +0x2f", as answers have it */
        name_length--;
    if (name_length && text[at - 1] == '+' && text[name_length - 1] == '?') /* "Fib<T>(int)? +0x2f" */
        name_length--;
    snprintf(name, sizeof name, "%.*s", (int)name_length, text);
    *bad = (struct bad_ip){.text = text, .length = length};
    if (text[at - 1] == '!') {
        *ret_found = find_in_module(places, name, offset, ret, bad);
        return true;
    }
    unsigned count = 0;
    *ret_found = find_method(places, name, offset, ret, &count, bad);
    if (count > 1) {
        snprintf(several, sizeof several, "%u pieces of code have this name; 'cdacq methods' lists their addresses",
                 count);
        set_problem(bad, several);
    } else if (!count && !(*ret_found = find_in_module(places, name, offset, ret, bad))) {
        set_problem(bad, places->incomplete ? "no module has this name, nor any of the methods that can be read"
                                            : "no method or module has this name");
    }
    return true;
}

void named_addresses_deinit(struct named_addresses *places)
{
    if (places->names)
        place_names_deinit(places->names);
    free(places->names);
    places->names = NULL;
    arena_deinit(&places->texts);
}
