#include "target/file_policy.h"

void file_policy_deinit(struct file_policy *policy)
{
    for (size_t i = 0; policy->indexes && policy->module_paths[i]; i++)
        file_index_deinit(&policy->indexes[i]);
    free(policy->indexes);
    policy->indexes = NULL;
}

const struct file_index *file_policy_index(struct file_policy *policy, size_t i)
{
    if (!policy->indexes) {
        size_t count = 0;
        while (policy->module_paths[count])
            count++;
        policy->indexes = calloc(count, sizeof *policy->indexes);
        for (size_t k = 0; policy->indexes && k < count; k++)
            file_index_build(policy->module_paths[k], &policy->indexes[k]);
    }
    return policy->indexes ? &policy->indexes[i] : NULL;
}

void file_policy_describe(const struct file_policy *policy, const struct cdacq_need *need, char *message, size_t size)
{
    size_t length = strlen(message);
    if (!policy->describe)
        return;
    policy->describe(policy->describe_context, need, message + length, size - length);
    message[size - 1] = '\0';
}
