#include "src/cli/base/svg.h"

#include <string.h>

#include "util/hash_table.h"

enum { LETTER = 7 }; /* mean width in pixels, at a size of 12 */

void svg_begin(struct output *out, const char *title, size_t width, size_t height, const char *style)
{
    output_printf(out,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" "
                  "height=\"%zu\" viewBox=\"0 0 %zu %zu\">\n",
                  width, height, width, height);
    output_literal(out, "<title>");
    svg_text(out, title, strlen(title));
    output_literal(out, "</title>\n<style>text{font:12px sans-serif;pointer-events:none}");
    output_literal(out, style);
    output_literal(out, "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fcfcf4\"/>\n");
}

void svg_text(struct output *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (length - i >= 3 && (!memcmp(text + i, "\xef\xbf\xbe", 3) || !memcmp(text + i, "\xef\xbf\xbf", 3))) {
            output_literal(out, "\xef\xbf\xbd"); /* the replacement character */
            i += 2;
            continue;
        }
        const char *entity = c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : NULL;
        output_literal(out, entity ? entity : (char[]){c, '\0'});
    }
}

/* How many letters there is room for. */
static size_t room_of(double width)
{
    return width > 6 ? (size_t)((width - 6) / LETTER) : 0;
}

bool svg_has_room(size_t length, double width)
{
    return length && room_of(width) >= MIN(length, 3);
}

void svg_label(struct output *out, const char *name, size_t length, double width)
{
    size_t room = room_of(width);
    if (!svg_has_room(length, width))
        return;
    if (room >= length) {
        svg_text(out, name, length);
    } else {
        size_t first = length - (room - 2);
        while (first < length && ((unsigned char)name[first] & 0xc0) == 0x80)
            first++;
        output_literal(out, "..");
        svg_text(out, name + first, length - first);
    }
}

void svg_fill(struct output *out, const char *name, size_t length)
{
    uint64_t hash = length;
    for (size_t i = 0; i < length; i++)
        hash = hash_u64((uint8_t)name[i], hash);
    output_printf(out, "fill=\"rgb(%u,%u,%u)\"", 205 + (unsigned)(hash & 0xff) * 50 / 255,
                  60 + (unsigned)(hash >> 8 & 0xff) * 170 / 255, (unsigned)(hash >> 16 & 0xff) * 60 / 255);
}
