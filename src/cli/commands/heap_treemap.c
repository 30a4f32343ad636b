/*
 * heap_treemap.c: the types of the heap as a squarified treemap: rectangles that are as square as the order allows,
 * the largest first. Types are in the rectangle of their namespace. What would be too small to be seen is one
 * rectangle, so that an image has few enough for a browser.
 * Source: Bruls, Huizing, van Wijk: Squarified Treemaps, 2000.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cli/base/memory.h"
#include "src/cli/base/svg.h"
#include "src/cli/commands/heap_export.h"
#include "util/base.h"

enum {
    WIDTH = 1200, /* pixels, as those below */
    HEIGHT = 800,
    MARGIN = 10,
    HEADER = 40,
    NAME = 16,     /* height of the name of a namespace, where there is room */
    AREA_MIN = 48, /* of a rectangle, in square pixels: at most 20,000 fit */
    TEXT_MIN = 14, /* height of a rectangle with a text */
};

struct rectangle {
    double x, y, width, height;
};

/* A type or a namespace, or several small ones. */
struct box {
    const char *name;
    size_t length;
    uint64_t bytes, count; /* `count`: of objects */
    size_t first, types;   /* of a namespace: places in the list of types */
    size_t merged;         /* how many small ones it is; 0: none */
    struct rectangle place;
};

struct treemap {
    struct output *out;
    struct box *types, *namespaces;
    size_t namespace_count;
    uint64_t total;
};

/* ---- Boxes ------------------------------------------------------------------------------------------------------ */

/* A name ends with what is generic, nested or an array: the dots there are not those of the namespace. */
static size_t namespace_length(const char *name)
{
    size_t end = strcspn(name, "`[<+*&(");
    while (end && name[end - 1] != '.')
        end--;
    return end ? end - 1 : 0;
}

static int compare_namespaces(const char *a, const char *b)
{
    size_t x = namespace_length(a), y = namespace_length(b);
    int order = memcmp(a, b, MIN(x, y));
    return order ? order : (x > y) - (x < y);
}

static int by_namespace(const void *a, const void *b)
{
    const struct treemap_type *x = a, *y = b;
    int order = compare_namespaces(x->name, y->name);
    return order ? order : (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static int by_bytes(const void *a, const void *b)
{
    const struct box *x = a, *y = b;
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void add_boxes(struct treemap *map, const struct treemap_type *types, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct treemap_type *type = &types[i];
        map->types[i] =
            (struct box){.name = type->name, .length = strlen(type->name), .bytes = type->bytes, .count = type->count};
        if (!i || compare_namespaces(types[i - 1].name, type->name) != 0)
            map->namespaces[map->namespace_count++] =
                (struct box){.name = type->name, .length = namespace_length(type->name), .first = i};
        struct box *box = &map->namespaces[map->namespace_count - 1];
        box->bytes += type->bytes;
        box->count += type->count;
        box->types++;
        map->total += type->bytes;
    }
    qsort(map->namespaces, map->namespace_count, sizeof *map->namespaces, by_bytes);
}

/* Makes one box of all that would be too small, which are the last ones. Returns how many there are then. */
static size_t merge_small(struct box *boxes, size_t count, uint64_t total, const struct rectangle *room)
{
    double area = room->width * room->height;
    size_t large = 0;
    while (large < count && area * (double)boxes[large].bytes >= AREA_MIN * (double)total)
        large++;
    if (count - large < 2)
        return count;
    struct box *merged = &boxes[large];
    for (size_t i = large + 1; i < count; i++) {
        merged->bytes += boxes[i].bytes;
        merged->count += boxes[i].count;
    }
    merged->merged = count - large;
    return large + 1;
}

/* ---- Places ----------------------------------------------------------------------------------------------------- */

/* How far the worst rectangle of a row is from a square: `side` is the row's, and areas are those of the row. */
static double worst_ratio(double side, double sum, double largest, double smallest)
{
    double square = side * side, ratio = square * largest / (sum * sum), other = sum * sum / (square * smallest);
    return MAX(ratio, other);
}

/* Places the boxes of a row along the shorter side of the room, and takes it from the room. */
static void place_row(struct box *boxes, size_t count, double scale, double sum, struct rectangle *room)
{
    bool is_column = room->width >= room->height;
    double side = is_column ? room->height : room->width, depth = side > 0 ? sum / side : 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        double length = depth > 0 ? (double)boxes[i].bytes * scale / depth : 0;
        boxes[i].place = is_column ? (struct rectangle){room->x, room->y + at, depth, length}
                                   : (struct rectangle){room->x + at, room->y, length, depth};
        at += length;
    }
    if (is_column) {
        room->x += depth;
        room->width = MAX(room->width - depth, 0);
    } else {
        room->y += depth;
        room->height = MAX(room->height - depth, 0);
    }
}

/* A row takes boxes as long as that makes its worst rectangle better. The largest boxes come first. */
static void place_boxes(struct box *boxes, size_t count, uint64_t total, struct rectangle room)
{
    double scale = total ? room.width * room.height / (double)total : 0;
    for (size_t first = 0, end; first < count; first = end) {
        double side = MIN(room.width, room.height), largest = (double)boxes[first].bytes * scale, sum = largest;
        double worst = worst_ratio(side, sum, largest, largest);
        for (end = first + 1; end < count; end++) {
            double area = (double)boxes[end].bytes * scale, next = worst_ratio(side, sum + area, largest, area);
            if (!(next <= worst))
                break;
            worst = next;
            sum += area;
        }
        place_row(boxes + first, end - first, scale, sum, &room);
    }
}

/* ---- The image -------------------------------------------------------------------------------------------------- */

static void write_name(struct output *out, const struct box *box, const char *many)
{
    if (box->merged)
        output_printf(out, "%zu more %s", box->merged, many);
    else if (box->length)
        svg_text(out, box->name, box->length);
    else
        output_literal(out, "(no namespace)");
}

static void begin_box(struct treemap *map, const struct box *box, const char *many)
{
    struct output *out = map->out;
    output_literal(out, "<g><title>");
    write_name(out, box, many);
    output_printf(out, ": %" PRIu64 " bytes (%.2f %%), %" PRIu64 " object%s</title>", box->bytes,
                  100 * (double)box->bytes / (double)map->total, box->count, plural(box->count));
    output_printf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ", box->place.x, box->place.y,
                  box->place.width, box->place.height);
}

static void end_box(struct treemap *map, const struct box *box, const char *label, size_t length)
{
    output_literal(map->out, "/>");
    if (box->place.height >= TEXT_MIN && !box->merged) {
        output_printf(map->out, "<text x=\"%.2f\" y=\"%.2f\">", box->place.x + 3, box->place.y + 12);
        svg_label(map->out, label, length, box->place.width);
        output_literal(map->out, "</text>");
    }
    output_literal(map->out, "</g>\n");
}

static void draw_namespace(struct treemap *map, const struct box *box)
{
    struct box *types = map->types + box->first;
    struct rectangle inside = box->place;
    begin_box(map, box, "namespaces");
    output_literal(map->out, "class=\"n\"");
    end_box(map, box, box->length ? box->name : "(no namespace)", box->length ? box->length : strlen("(no namespace)"));
    if (box->merged)
        return;
    if (inside.height > 2 * NAME) {
        inside.y += NAME;
        inside.height -= NAME;
    }
    size_t count = merge_small(types, box->types, box->bytes, &inside);
    place_boxes(types, count, box->bytes, inside);
    for (size_t i = 0; i < count && !output_failed(map->out); i++) {
        size_t skipped = box->length ? box->length + 1 : 0; /* the box around it has the namespace */
        begin_box(map, &types[i], "types");
        svg_fill(map->out, types[i].name, types[i].merged ? 0 : types[i].length);
        end_box(map, &types[i], types[i].name + skipped, types[i].length - skipped);
    }
}

void heap_export_treemap(struct output *out, struct treemap_type *types, size_t count)
{
    struct treemap map = {.out = out,
                          .types = allocate((count + 1) * sizeof *map.types),
                          .namespaces = allocate((count + 1) * sizeof *map.namespaces)};
    const struct rectangle room = {MARGIN, HEADER, WIDTH - 2 * MARGIN, HEIGHT - HEADER - MARGIN};
    for (size_t i = 0; i < count; i++)
        types[i].name = types[i].name ? types[i].name : "?";
    if (count)
        qsort(types, count, sizeof *types, by_namespace);
    add_boxes(&map, types, count);
    svg_begin(out, "Heap by type", WIDTH, HEIGHT,
              "rect{stroke:#fff;stroke-width:.5}rect.n{fill:#777}g:hover>rect{stroke:#000}");
    output_printf(out, "<text x=\"%d\" y=\"24\">%" PRIu64 " bytes of %zu type%s in %zu namespace%s</text>\n", MARGIN,
                  map.total, count, plural(count), map.namespace_count, plural(map.namespace_count));
    size_t shown = merge_small(map.namespaces, map.namespace_count, map.total, &room);
    place_boxes(map.namespaces, shown, map.total, room);
    for (size_t i = 0; i < shown; i++)
        draw_namespace(&map, &map.namespaces[i]);
    output_literal(out, "</svg>\n");
    free(map.types);
    free(map.namespaces);
}
