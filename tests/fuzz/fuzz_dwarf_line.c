/*
 * fuzz_dwarf_line.c: any bytes as .debug_line. The first byte selects the byte order, the second how many bytes of the
 * end are .debug_line_str. Sequences ascend, and rows are of a unit that the section holds.
 */
#include <stdlib.h>

#include "formats/dwarf_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEQUENCES_SHOWN = 64 };

struct visit {
    const struct dwarf_line_sections *sections;
    uint32_t unit;
    unsigned left;
};

static bool take_row(const struct dwarf_row *row, void *context)
{
    struct visit *visit = context;
    struct text path = {0};
    bool found = dwarf_file_path(visit->sections, visit->unit, row->file, &path);
    if (found ? !path.length || strlen(path.data) != path.length : path.length && !path.broken)
        abort();
    text_deinit(&path);
    return visit->left-- > 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t strings = MIN((size_t)data[1], size - 2), lines = size - 2 - strings;
    const struct dwarf_line_sections sections = {
        .line = {data + 2, lines}, .line_strings = {data + 2 + lines, strings}, .big = data[0] & 1};
    struct dwarf_sequences found = {0};
    if (!dwarf_sequences_find(&sections, &found))
        abort();
    for (size_t i = 0; i < found.count && i < SEQUENCES_SHOWN; i++) {
        struct visit visit = {&sections, found.items[i].unit, 16};
        if (found.items[i].begin >= found.items[i].end || (i && found.items[i - 1].begin > found.items[i].begin) ||
            found.items[i].program > lines || dwarf_rows_each(&sections, &found.items[i], take_row, &visit) > lines)
            abort();
    }
    dwarf_sequences_deinit(&found);
    return 0;
}
