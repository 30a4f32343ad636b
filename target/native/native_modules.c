#include "target/native/native_modules.h"

#include "util/error.h"

struct native_modules {
    struct target *target;
};

struct native_modules *native_modules_create(struct target *target, struct cdacq_error *err)
{
    struct native_modules *modules = calloc(1, sizeof *modules);
    if (!modules)
        error_set(err, CDACQ_ERR_NOMEM, 0, "out of memory");
    else
        modules->target = target;
    return modules;
}

void native_modules_destroy(struct native_modules *modules)
{
    free(modules);
}

enum native_step native_modules_step(struct native_modules *modules, struct reader *reader, bool interrupted,
                                     struct registers *registers, struct native_frame_info *ret)
{
    (void)modules, (void)reader, (void)interrupted, (void)registers, (void)ret;
    return NATIVE_UNKNOWN;
}

bool native_modules_symbol(struct native_modules *modules, uint64_t address, struct native_symbol *ret)
{
    (void)modules, (void)address, (void)ret;
    return false;
}
