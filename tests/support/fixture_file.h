/* fixture_file.h: a file, one below tests/fixtures mostly, read as a whole, for tests. */
#ifndef CDACQ_TESTS_SUPPORT_FIXTURE_FILE_H
#define CDACQ_TESTS_SUPPORT_FIXTURE_FILE_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* To be freed; with a NUL behind its end. Fails the test where it cannot be read. */
static inline uint8_t *file_at(const char *path, size_t *ret_size)
{
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "cannot open %s", path);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    size_t size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(size + 1);
    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(fread(data, 1, size, file), size);
    fclose(file);
    data[size] = '\0';
    *ret_size = size;
    return data;
}

static inline uint8_t *fixture_file(const char *name, size_t *ret_size)
{
    const char *folder = getenv("CDACQ_FIXTURES");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/fixtures", name);
    return file_at(path, ret_size);
}

#endif
