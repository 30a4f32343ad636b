/* kernel_queries.h: whether PROCMAP_QUERY is answered. */
#ifndef CDACQ_TESTS_SUPPORT_KERNEL_QUERIES_H
#define CDACQ_TESTS_SUPPORT_KERNEL_QUERIES_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/utsname.h>

#include "tests/support/emulation.h"

/* Linux 6.11 and later does that, qemu-user does not. */
static inline bool kernel_has_map_queries(void)
{
    struct utsname name;
    int major = 0, minor = 0;
    ck_assert_int_eq(uname(&name), 0);
    ck_assert_int_eq(sscanf(name.release, "%d.%d", &major, &minor), 2);
    return !is_emulated() && (major > 6 || (major == 6 && minor >= 11));
}

#endif
