/*
 * svg.h: what images as SVG have in common. Texts are printable UTF-8, as the library and `escape` give them.
 */
#ifndef CDACQ_CLI_BASE_SVG_H
#define CDACQ_CLI_BASE_SVG_H

#include "src/cli/base/output.h"

/*
 * Begins an image of that many pixels, with the rules of a style sheet besides those of texts. The title is not only
 * for people: Chromium looks for the image's own title whenever it meets one, past all boxes if there is none.
 */
void svg_begin(struct output *out, const char *title, size_t width, size_t height, const char *style);

/* Text of an XML document. No document may have U+FFFE and U+FFFF. */
void svg_text(struct output *out, const char *text, size_t length);

/* Whether a box has room for a text of that length, or for enough of its end. */
bool svg_has_room(size_t length, double width);

/* A text in a box: as much of its end as the width has room for, because the end of a name tells more. */
void svg_label(struct output *out, const char *name, size_t length, double width);

/* fill="rgb(...)", between yellow and red. The same name has the same colour everywhere. */
void svg_fill(struct output *out, const char *name, size_t length);

#endif
