/*
 * test_heap_treemap.c: the rectangles of a treemap have the areas of what they show, lie within those around them and
 * do not overlap; small ones become one; texts are escaped.
 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/base/output.c"
#include "src/cli/base/svg.c"
#include "src/cli/commands/heap_treemap.c"
#include "tests/cli/mock_console.h"
#include "tests/support/check_main.h"

enum { ROOM_WIDTH = WIDTH - 2 * MARGIN, ROOM_HEIGHT = HEIGHT - HEADER - MARGIN };

static bool is_within(const struct rectangle *a, const struct rectangle *b)
{
    const double slack = 0.001;
    return a->x >= b->x - slack && a->y >= b->y - slack && a->x + a->width <= b->x + b->width + slack &&
           a->y + a->height <= b->y + b->height + slack;
}

static bool overlap(const struct rectangle *a, const struct rectangle *b)
{
    const double slack = 0.001;
    return a->x + a->width > b->x + slack && b->x + b->width > a->x + slack && a->y + a->height > b->y + slack &&
           b->y + b->height > a->y + slack;
}

START_TEST(areas_are_those_of_the_bytes)
{
    struct box boxes[40] = {0};
    const struct rectangle room = {10, 20, 600, 300};
    uint64_t total = 0;
    for (size_t i = 0; i < ARRAY_SIZE(boxes); i++)
        total += boxes[i].bytes = 100000 / (i + 1);
    place_boxes(boxes, ARRAY_SIZE(boxes), total, room);
    for (size_t i = 0; i < ARRAY_SIZE(boxes); i++) {
        const struct rectangle *place = &boxes[i].place;
        double ratio = MAX(place->width, place->height) / MIN(place->width, place->height);
        ck_assert_double_eq_tol(place->width * place->height,
                                room.width * room.height * (double)boxes[i].bytes / (double)total, 0.01);
        ck_assert(is_within(place, &room));
        ck_assert_double_lt(ratio, 4); /* slices of the whole room would have 200 */
        for (size_t n = 0; n < i; n++)
            ck_assert_msg(!overlap(place, &boxes[n].place), "%zu and %zu", i, n);
    }
}
END_TEST

START_TEST(namespaces)
{
    static const struct {
        const char *name;
        size_t length;
    } rows[] = {
        {"System.Collections.Generic.List`1[System.String]", 26},
        {"System.String[]", 6},
        {"Node", 0},
        {"A.B+C.D", 1},
        {"? (MethodTable 0x1)", 0},
        {"A.", 1},
        {"", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        ck_assert_msg(namespace_length(rows[i].name) == rows[i].length, "%s", rows[i].name);
}
END_TEST

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

static const char *draw(struct output *out, struct treemap_type *types, size_t count)
{
    output_open_memory(out);
    heap_export_treemap(out, types, count);
    *output_reserve(out, 1) = '\0';
    return out->data;
}

START_TEST(an_image)
{
    struct output out;
    struct treemap_type types[] = {
        {"App.Box<&>", 1, 600}, {"Other", 2, 300}, {NULL, 1, 100}, {"App.Small", 1, 1}, {"App.Smaller", 1, 1}};
    const char *text = draw(&out, types, ARRAY_SIZE(types));
    ck_assert_msg(strstr(text, "1002 bytes of 5 types in 2 namespaces"), "%s", text);
    ck_assert_msg(strstr(text, "<title>App.Box&lt;&amp;&gt;: 600 bytes (59.88 %), 1 object</title>"), "%s", text);
    ck_assert_msg(strstr(text, "<title>(no namespace): 400 bytes (39.92 %), 3 objects</title>"), "%s", text);
    ck_assert_msg(strstr(text, "<title>?: 100 bytes"), "%s", text);
    ck_assert_msg(strstr(text, ">Box&lt;&amp;&gt;</text>"), "%s", text);
    ck_assert_uint_eq(count_of(text, "<g>"), 2 + 5);
    ck_assert_uint_eq(count_of(text, "</g>"), 2 + 5);
    output_abandon(&out);
    text = draw(&out, NULL, 0);
    ck_assert_msg(strstr(text, "0 bytes of 0 types in 0 namespaces") && strstr(text, "</svg>"), "%s", text);
    output_abandon(&out);
}
END_TEST

/* However many types there are, a browser gets few boxes. */
START_TEST(many_small_types)
{
    enum { COUNT = 100000 };
    static char names[COUNT][24];
    struct output out;
    struct treemap_type *types = allocate((COUNT + 1) * sizeof *types);
    for (size_t i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "N%zu.T%zu", i / 50, i);
        types[i] = (struct treemap_type){names[i], 1, i < COUNT / 2 ? 24 : 32};
    }
    types[COUNT] = (struct treemap_type){"Large.T", 1, UINT64_C(1) << 40};
    const char *text = draw(&out, types, COUNT + 1);
    ck_assert_uint_le(count_of(text, "<g>"), 4);
    ck_assert_msg(strstr(text, "<title>2000 more namespaces: 2800000 bytes (0.00 %), 100000 objects</title>"), "%.900s",
                  text);
    output_abandon(&out);
    for (size_t i = 0; i <= COUNT; i++)
        types[i] = (struct treemap_type){names[i % COUNT], 1, 24};
    text = draw(&out, types, COUNT + 1);
    ck_assert_uint_le(count_of(text, "<g>"), 2 * ROOM_WIDTH * ROOM_HEIGHT / AREA_MIN);
    output_abandon(&out);
    free(types);
}
END_TEST

static Suite *suite(void)
{
    Suite *suite = suite_create("heap_treemap");
    TCase *tc = tcase_create("heap_treemap");
    tcase_add_test(tc, areas_are_those_of_the_bytes);
    tcase_add_test(tc, namespaces);
    tcase_add_test(tc, an_image);
    tcase_add_test(tc, many_small_types);
    suite_add_tcase(suite, tc);
    return suite;
}

CHECK_MAIN(suite)
