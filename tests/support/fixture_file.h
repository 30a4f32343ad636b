/* fixture_file.h: a file, one below tests/fixtures mostly, read as a whole, for tests. */
#ifndef CDACQ_TESTS_SUPPORT_FIXTURE_FILE_H
#define CDACQ_TESTS_SUPPORT_FIXTURE_FILE_H

#include <check.h>
#include <stdio.h>

#include "util/file.h"

/* To be freed; with a NUL after its end. Fails the test if it cannot be read. */
static inline uint8_t *file_at(const char *path, size_t *ret_size)
{
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(path, &st);
    char *data = file_read_all(fd, SIZE_MAX, ret_size);
    ck_assert_msg(data != NULL, "cannot read %s", path);
    return (uint8_t *)data;
}

static inline uint8_t *fixture_file(const char *name, size_t *ret_size)
{
    const char *folder = getenv("CDACQ_FIXTURES");
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/fixtures", name);
    ck_assert_uint_lt((size_t)length, sizeof path);
    return file_at(path, ret_size);
}

#endif
