#include "src/cli/base/read_failures.h"

#include <inttypes.h>

#include "src/cli/base/console.h"

void read_failures_add(struct read_failures *complaints, uint64_t address, const char *why)
{
    const char *reason = why ? why : "no reason is known";
    complaints->count++;
    if (address && complaints->told >= READ_FAILURES_MAX)
        return;
    complaints->told++;
    if (address)
        message("0x%" PRIx64 ": %s", address, reason);
    else
        message("%s", reason);
}

void read_failures_end(const struct read_failures *complaints, const char *one, const char *many)
{
    uint64_t more = complaints->count - complaints->told;
    if (more)
        message("%" PRIu64 " more %s cannot be read", more, more == 1 ? one : many);
}
