#include "cdacq.h"

/* CDACQ_VERSION comes from the build: project(VERSION) is the one place that states it. */
const char *cdacq_version(void)
{
    return CDACQ_VERSION;
}
