/*
 * unwind_image.h: the code of a ReadyToRun image as a process has it, and a stack, for tests of unwinders that
 * interpret real code. Header only: each of these tests is one program.
 */
#ifndef CDACQ_TESTS_SUPPORT_UNWIND_IMAGE_H
#define CDACQ_TESTS_SUPPORT_UNWIND_IMAGE_H

#include "formats/pe.h"
#include "target/memory.h"
#include "target/reader.h"
#include "tests/support/fixture_file.h"

enum { IMAGE = 0x1000000, STACK = 0x40000000, STACK_SIZE = 0x80000, TOP = STACK + STACK_SIZE - 0x1000 };
enum { LISTING_NUMBERS = 15 }; /* of a function, as tests/dotnet/r2r_image.py writes them */

static uint8_t *image;
static uint64_t image_size;
static uint8_t stack[STACK_SIZE];
static struct target *target;
static struct reader reader;

static bool unwind_image_span_at(uint64_t address, uint64_t *ret_begin, uint64_t *ret_end, const void **ret_bytes,
                                 void *context)
{
    (void)context;
    bool is_stack = address >= STACK;
    *ret_begin = is_stack ? STACK : IMAGE;
    *ret_end = *ret_begin + (is_stack ? STACK_SIZE : image_size);
    *ret_bytes = is_stack ? stack : image;
    return address >= *ret_begin && address < *ret_end;
}

static void unwind_image_open(uint16_t elf_machine, unsigned pointer_size)
{
    static struct cdacq_memory source = {.size = sizeof source, .span_at = unwind_image_span_at};
    source.elf_machine = elf_machine;
    ck_assert_int_eq(memory_open(&source, NULL, false, &target, NULL), CDACQ_OK);
    reader_init(&reader, target, pointer_size, false);
}

static void unwind_image_close(void)
{
    target_destroy(target);
    free(image);
    target = NULL;
    image = NULL;
}

/* A small image of zeros, in which a test writes code and unwind data by hand. Keeps what was written before. */
static void unwind_image_by_hand(void)
{
    image_size = 0x1000;
    image = image ? image : calloc(1, image_size);
}

static uint8_t *unwind_image_file(const char *name, const char *variable, const char *extension, size_t *ret_size)
{
    const char *other = variable ? getenv(variable) : NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s%s.%s", other ? other : "r2r/", other ? "" : name, extension);
    return other ? file_at(path, ret_size) : fixture_file(path, ret_size);
}

/*
 * Loads an image of tests/fixtures/r2r, or the one that the environment variable names, RVA by RVA. Returns its
 * listing, to be freed. `variable` may be NULL.
 */
static char *unwind_image_load(const char *name, const char *variable)
{
    size_t size;
    struct pe pe;
    uint8_t *file = unwind_image_file(name, variable, "dll", &size);
    struct bytes bytes = bytes_of_buffer(file, size);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    image_size = pe.image_size;
    image = calloc(1, image_size);
    for (unsigned i = 0; i < pe.section_count; i++)
        memcpy(image + pe.sections[i].rva, file + pe.sections[i].file_offset,
               MIN(pe.sections[i].file_size, pe.sections[i].virtual_size));
    free(file);
    return (char *)unwind_image_file(name, variable, "txt", &size);
}

/* Reads the numbers of the line after *line, and moves there. False if there is none. */
static bool unwind_image_next(const char **line, unsigned ret[LISTING_NUMBERS])
{
    const char *newline = strchr(*line, '\n');
    if (!newline)
        return false;
    *line = newline + 1;
    char *at = (char *)*line, *end;
    for (unsigned i = 0; i < LISTING_NUMBERS; i++, at = end) {
        ret[i] = (unsigned)strtoul(at, &end, 16);
        if (end == at)
            return false;
    }
    return true;
}

#endif
