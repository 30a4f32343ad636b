#include "src/perf/verify_methods.h"

#include <stdio.h>

#include "contracts/execution_manager/code_map.h"
#include "contracts/execution_manager/jit_manager.h"
#include "util/binary_search.h"
#include "util/error.h"

DEFINE_VECTOR_FUNCTIONS(known_methods, struct known_method);

/* A listing of the methods. */
struct method_listing {
    struct cdacq_session *session;
    struct known_methods *listed;
    char *problem;
};

void verify_methods_deinit(struct verify_methods *methods)
{
    known_methods_deinit(&methods->listed);
    free(methods->missing);
}

/* Whether a failure at `address` may hide JIT-compiled methods. */
static bool is_jit_code(const struct cdacq_session *session, uint64_t address)
{
    const struct code_range *range =
        session->resolver.index.map ? code_map_range(session->resolver.index.map, address) : NULL;
    return !range || range->manager->compiles;
}

static int add_method(const struct cdacq_method *method, void *context)
{
    struct method_listing *listing = context;
    if (method->answer == CDACQ_ANSWER_ERROR && !listing->problem[0] &&
        is_jit_code(listing->session, method->code_start))
        snprintf(listing->problem, CDACQ_ERROR_MESSAGE_SIZE, "%s",
                 method->error ? method->error : "a code range cannot be listed");
    if (method->answer != CDACQ_ANSWER_MANAGED || method->kind != CDACQ_CODE_JITTED)
        return 0;
    return !known_methods_append(listing->listed,
                                 (struct known_method){.start = method->code_start, .size = method->code_size});
}

enum cdacq_status verify_methods_list(struct cdacq_session *session, struct verify_methods *methods,
                                      char problem[CDACQ_ERROR_MESSAGE_SIZE], struct cdacq_error *err)
{
    struct method_listing listing = {session, &methods->listed, problem};
    struct cdacq_error error;
    problem[0] = '\0';
    enum cdacq_status status = cdacq_session_visit_methods(session, CDACQ_VISIT_R2R_NONE, add_method, &listing, &error);
    if (status == CDACQ_STOPPED)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "verify: out of memory");
    if (status == CDACQ_ERR_IO && epoch_check_process(&session->resolver.epoch, err) < 0)
        return CDACQ_ERR_IO;
    if (status < 0) /* look-ups work without the map */
        memcpy(problem, error.message, CDACQ_ERROR_MESSAGE_SIZE);
    return CDACQ_OK;
}

struct known_method *verify_methods_find(const struct verify_methods *methods, const struct cdacq_method *method)
{
    struct known_method *items = methods->listed.items;
    size_t count = methods->listed.count, first = lower_bound(i, count, items[i].start < method->code_start);
    bool found = method->kind == CDACQ_CODE_JITTED && first < count && items[first].start == method->code_start;
    return found ? &items[first] : NULL;
}

static int compare_sizes(const void *a, const void *b, void *methods)
{
    const struct known_method *x = (struct known_method *)methods + *(const uint32_t *)a,
                              *y = (struct known_method *)methods + *(const uint32_t *)b;
    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

enum cdacq_status verify_methods_list_missing(struct verify_methods *methods, struct cdacq_error *err)
{
    const struct known_methods *listed = &methods->listed;
    methods->missing = calloc(listed->count + 1, sizeof *methods->missing);
    if (!methods->missing)
        return error_set(err, CDACQ_ERR_NOMEM, 0, "verify: out of memory");
    for (size_t i = 0; i < listed->count && i < UINT32_MAX; i++)
        if (!listed->items[i].match)
            methods->missing[methods->missing_count++] = (uint32_t)i;
    qsort_r(methods->missing, methods->missing_count, sizeof *methods->missing, compare_sizes, listed->items);
    return CDACQ_OK;
}

size_t verify_methods_first_missing(const struct verify_methods *methods, uint64_t size)
{
    const struct known_method *items = methods->listed.items;
    return lower_bound(i, methods->missing_count, items[methods->missing[i]].size < size);
}
