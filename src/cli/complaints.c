#include "src/cli/complaints.h"

#include <inttypes.h>

#include "src/cli/console.h"

void complaints_add(struct complaints *complaints, uint64_t address, const char *why)
{
    const char *reason = why ? why : "no reason is known";
    complaints->count++;
    if (address && complaints->told >= COMPLAINTS_MAX)
        return;
    complaints->told++;
    if (address)
        message("0x%" PRIx64 ": %s", address, reason);
    else
        message("%s", reason);
}

void complaints_end(const struct complaints *complaints, const char *one, const char *many)
{
    uint64_t more = complaints->count - complaints->told;
    if (more)
        message("%" PRIu64 " more %s cannot be read", more, more == 1 ? one : many);
}
