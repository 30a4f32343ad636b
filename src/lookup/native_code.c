#include "src/lookup/native_code.h"

#include "src/lookup/opened_target.h"
#include "target/native/native_modules.h"

struct native_modules *native_code_modules(struct native_code *native, struct cdacq_target *target)
{
    if (!native->modules && native->error.status >= 0 && target_list_mappings(target->memory, NULL) == CDACQ_OK)
        native->modules = native_modules_create(target->memory, &native->error);
    return native->modules;
}

void native_code_follow(struct native_code *native, const struct cdacq_target *target)
{
    if (native->mapping_round == target->memory->mapping_round)
        return;
    native_code_deinit(native);
    native->mapping_round = target->memory->mapping_round;
}

void native_code_deinit(struct native_code *native)
{
    native_modules_destroy(native->modules);
    native->modules = NULL;
}
