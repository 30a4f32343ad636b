#include "target/abort_message.h"

#include "target/image.h"
#include "target/mapped_file.h"
#include "target/reader.h"

enum { LIBRARIES_MAX = 16 }; /* a process has one, or few in namespaces of their own */

/* libc.so.6, and libc-2.31.so as it was called before glibc 2.34. */
static bool is_libc(const struct mapping *mapping)
{
    const char *base = path_basename(mapping->path);
    return mapping->offset == 0 && (strcmp(base, "libc.so.6") == 0 || strncmp(base, "libc-2.", 7) == 0);
}

/* The variable has the address of a struct: the size of its memory in an unsigned int, then the text. */
static bool read_text(struct target *target, const struct image *image, uint64_t variable, char *ret, size_t size)
{
    CLEANUP_READER struct reader reader;
    CLEANUP_FREE char *text = NULL;
    reader_init(&reader, target, elf_word_size(image->elf), image->elf.big);
    uint64_t message = read_pointer(&reader, variable);
    if (!message || !reader_string(&reader, message + sizeof(uint32_t), size - 1, &text))
        return false;
    size_t length = strlen(text);
    while (length && text[length - 1] == '\n')
        length--;
    memcpy(ret, text, length);
    ret[length] = '\0';
    return length > 0;
}

bool abort_message_read(struct target *target, char *ret, size_t size)
{
    struct image image;
    uint64_t variable, variable_size;
    unsigned count = 0;
    if (target_list_mappings(target, NULL) < 0)
        return false;
    for (size_t i = 0; i < target->mapping_count && count < LIBRARIES_MAX; i++)
        if (is_libc(&target->mappings[i]) && ++count &&
            image_open(target, &target->mappings[i], &image, NULL) == CDACQ_OK &&
            image_find_symbol(&image, "__abort_msg", &variable, &variable_size) &&
            variable_size == elf_word_size(image.elf) &&
            !mapped_file_is_unconfirmed(image.file)) /* another build has the variable elsewhere */
            return read_text(target, &image, variable, ret, size);
    return false;
}
