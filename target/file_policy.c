#include "target/file_policy.h"

#include "target/file_index.h"
#include "target/work.h"
#include "util/file_root.h"

static size_t count_of(char *const *strings)
{
    size_t count = 0;
    while (strings && strings[count])
        count++;
    return count;
}

static void close_roots(struct file_root *roots, size_t count)
{
    for (size_t i = 0; roots && i < count; i++)
        file_root_close(&roots[i]);
    free(roots);
}

static size_t root_count(const struct file_policy *policy)
{
    return count_of(policy->sysroots) + count_of(policy->module_paths);
}

/* All roots. NULL when out of memory. */
static const struct file_root *open_roots(struct file_policy *policy)
{
    struct file_root *known = atomic_load_explicit(&policy->roots, memory_order_acquire);
    if (known)
        return known;
    size_t sysroots = count_of(policy->sysroots), count = root_count(policy);
    struct file_root *roots = calloc(count, sizeof *roots);
    for (size_t i = 0; roots && i < count; i++)
        (void)file_root_open(&roots[i], i < sysroots ? policy->sysroots[i] : policy->module_paths[i - sysroots],
                             i < sysroots);
    if (!roots || atomic_compare_exchange_strong(&policy->roots, &known, roots))
        return roots;
    close_roots(roots, count); /* another thread was faster */
    return known;
}

const struct file_root *file_policy_sysroot(struct file_policy *policy, size_t i)
{
    const struct file_root *roots = open_roots(policy);
    return roots ? &roots[i] : NULL;
}

const struct file_root *file_policy_module_root(struct file_policy *policy, size_t i)
{
    return file_policy_sysroot(policy, count_of(policy->sysroots) + i);
}

void file_policy_deinit(struct file_policy *policy)
{
    close_roots(atomic_exchange(&policy->roots, NULL), root_count(policy));
    for (size_t i = 0; policy->indexes && policy->module_paths[i]; i++)
        file_index_deinit(&policy->indexes[i]);
    free(policy->indexes);
    policy->indexes = NULL;
}

struct file_index *file_policy_index(struct file_policy *policy, size_t i, struct work *work)
{
    if (!policy->indexes) {
        size_t count = 0;
        while (policy->module_paths[count])
            count++;
        policy->indexes = calloc(count, sizeof *policy->indexes);
        for (size_t k = 0; policy->indexes && k < count; k++)
            if (file_index_build(policy->module_paths[k], &policy->indexes[k]))
                work_add_steps(work, policy->indexes[k].entries.count * WORK_OF_AN_ENTRY);
    }
    return policy->indexes ? &policy->indexes[i] : NULL;
}

void file_policy_describe(const struct file_policy *policy, const struct cdacq_need *need, char *message, size_t size)
{
    size_t length = strlen(message);
    if (!policy->describe)
        return;
    policy->describe(need, message + length, size - length, policy->describe_context);
    message[size - 1] = '\0';
}
