#include "src/cli/commands/native_aot.h"

#include "src/cli/base/console.h"

bool native_aot_refused(struct cdacq_target *target)
{
    struct cdacq_target_info info = {.size = sizeof info};
    cdacq_target_get_info(target, &info, NULL);
    if (!info.native_aot)
        return false;
    message(
        "a NativeAOT program compiles no code at run time: profilers and debuggers find its methods in its file and "
        "in its .dbg file");
    return true;
}
