#include "src/cli/base/memory.h"

#include <stdlib.h>
#include <unistd.h>

#include "src/cli/base/exit_code.h"
#include "src/cli/base/console.h"
#include "src/cli/base/spill.h"
#include "src/cli/base/watchdog.h"

_Noreturn void out_of_memory(void)
{
    watchdog_remove_now();
    message("%s", spill_failure());
    _exit(EXIT_FAILED); /* exit handlers might allocate */
}

void *allocate(size_t size)
{
    void *data = calloc(1, size);
    if (!data)
        out_of_memory();
    return data;
}

void *allocate_large(uint64_t size)
{
    void *data = spill_resize(NULL, 0, size);
    if (!data)
        out_of_memory();
    return data;
}

void *reallocate(void *data, size_t size)
{
    data = realloc(data, size);
    if (!data)
        out_of_memory();
    return data;
}
