#include "target/command_line.h"

#include <elf.h>

#include "target/reader.h"

enum {
    DISTANCE_MAX = 8 * 1024 * 1024, /* of the vector from AT_EXECFN: Linux limits the strings to 6 MiB */
    TYPE_MAX = 255,                 /* of entries of the vector; Linux has some 50 */
    ARGUMENT_MAX = 128 * 1024,      /* bytes; as Linux has it (MAX_ARG_STRLEN) */
    ARGUMENTS_MAX = 2048,           /* more do not fit */
    WORDS_MAX = 1024 * 1024,        /* of the environment */
};

/* The memory from `begin` on, which the words are read from, up to `end`. */
struct strings {
    struct reader reader;
    struct elf_class elf;
    unsigned word;         /* bytes */
    uint64_t program, end; /* AT_EXECFN; above its address, nothing is looked for */
};

/* A page that is in the target. Its words are aligned. */
static bool read_page(struct strings *strings, uint64_t page, uint8_t *ret)
{
    return reader_step(&strings->reader, "the stack") && reader_try_copy(&strings->reader, page, ret, PAGE_SIZE);
}

static bool word_at(struct strings *strings, uint64_t address, uint64_t *ret)
{
    uint8_t bytes[8];
    if (!reader_try_copy(&strings->reader, address, bytes, strings->word))
        return false;
    *ret = elf_word(strings->elf, bytes);
    return true;
}

/* The address of the entry AT_EXECFN; 0: it is not found. */
static uint64_t find_entry(struct strings *strings)
{
    uint8_t bytes[PAGE_SIZE];
    uint64_t page = align_down(strings->program, PAGE_SIZE), above = 0;
    bool has_above = false; /* the first word of the page above */
    for (uint64_t done = 0; done < DISTANCE_MAX && page; done += PAGE_SIZE, page -= PAGE_SIZE) {
        if (!read_page(strings, page, bytes))
            return 0;
        for (size_t at = PAGE_SIZE; at; at -= strings->word) {
            uint64_t type = elf_word(strings->elf, bytes + at - strings->word);
            bool is_last = at == PAGE_SIZE;
            uint64_t value = is_last ? above : elf_word(strings->elf, bytes + at);
            if (type == AT_EXECFN && value == strings->program && (!is_last || has_above))
                return page + at - strings->word;
        }
        above = elf_word(strings->elf, bytes);
        has_above = true;
    }
    return 0;
}

/* Whether the words before `at` are those of a list that ends with 0. Writes where it begins: after another 0. */
static bool find_environment(struct strings *strings, uint64_t at, uint64_t *ret)
{
    uint64_t value;
    for (unsigned i = 0; i < WORDS_MAX && word_at(strings, at - strings->word, &value); i++) {
        if (!value) {
            *ret = at;
            return true;
        }
        if (value <= at || value >= strings->end || !reader_step(&strings->reader, "the environment"))
            return false;
        at -= strings->word;
    }
    return false;
}

/* The number of arguments is before their addresses, which end with the 0 before `end`. */
static bool find_arguments(struct strings *strings, uint64_t end, uint64_t *ret, uint64_t *ret_count)
{
    uint64_t at = end - strings->word, value;
    for (uint64_t count = 0; count < WORDS_MAX && word_at(strings, at - strings->word, &value); count++) {
        if (value == count) {
            *ret = at;
            *ret_count = count;
            return count > 0;
        }
        if (value <= at || value >= strings->end || !reader_step(&strings->reader, "the arguments"))
            return false;
        at -= strings->word;
    }
    return false;
}

/* Writes the strings. False if one is missing. */
static bool join(struct strings *strings, uint64_t first, uint64_t count, char *ret, size_t size, bool *ret_cut)
{
    size_t length = 0;
    *ret_cut = count > ARGUMENTS_MAX;
    for (uint64_t i = 0; i < MIN(count, (uint64_t)ARGUMENTS_MAX) && !*ret_cut; i++) {
        uint64_t address;
        char *argument;
        if (!word_at(strings, first + i * strings->word, &address) ||
            !reader_string(&strings->reader, address, ARGUMENT_MAX, &argument))
            return false;
        size_t n = strlen(argument), room = size - length - 1;
        *ret_cut = n + (i > 0) > room;
        if (i && room) {
            ret[length++] = ' ';
            room--;
        }
        memcpy(ret + length, argument, MIN(n, room));
        length += MIN(n, room);
        free(argument);
    }
    ret[length] = '\0';
    return true;
}

/* Finds the vector, and the list of the environment before it, whose addresses end at *ret_end. */
static bool begin(struct strings *strings, struct target *target, struct elf_class elf, uint64_t program,
                  uint64_t *ret_environment, uint64_t *ret_end)
{
    uint64_t type;
    *strings = (struct strings){.elf = elf, .word = (unsigned)elf_word_size(elf), .program = program, .end = program};
    reader_init(&strings->reader, target, strings->word, elf.big);
    reader_begin(&strings->reader, FUEL_OPEN);
    uint64_t vector = program > PAGE_SIZE ? find_entry(strings) : 0;
    while (vector && word_at(strings, vector - 2 * strings->word, &type) && type && type <= TYPE_MAX)
        vector -= 2 * strings->word;
    *ret_end = vector - strings->word;
    return vector && word_at(strings, *ret_end, &type) && !type && find_environment(strings, *ret_end, ret_environment);
}

bool command_line_read(struct target *target, struct elf_class elf, uint64_t program, char *ret, size_t size,
                       bool *ret_cut)
{
    struct strings strings;
    uint64_t environment, end, first, count;
    char text[4096];
    bool is_read = begin(&strings, target, elf, program, &environment, &end) && size && size <= sizeof text &&
                   find_arguments(&strings, environment, &first, &count) &&
                   join(&strings, first, count, text, size, ret_cut);
    if (is_read)
        strcpy(ret, text);
    reader_end(&strings.reader);
    return is_read;
}

bool command_line_environment(struct target *target, struct elf_class elf, uint64_t program,
                              int (*visit)(const char *variable, void *context), void *context, bool *ret_stopped)
{
    struct strings strings;
    uint64_t at, end, address;
    *ret_stopped = false;
    bool is_read = begin(&strings, target, elf, program, &at, &end);
    for (; is_read && at < end && !*ret_stopped; at += strings.word) {
        char *variable = NULL;
        is_read = word_at(&strings, at, &address) && reader_string(&strings.reader, address, ARGUMENT_MAX, &variable);
        *ret_stopped = is_read && visit(variable, context) != 0;
        free(variable);
    }
    reader_end(&strings.reader);
    return is_read;
}
