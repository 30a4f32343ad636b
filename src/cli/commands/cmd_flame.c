/*
 * cmd_flame.c: draws folded stacks as an SVG image. Sorted, the stacks that share their outermost frames are
 * neighbours, so one pass draws all boxes: a box begins where its frame first appears and ends where it no longer does.
 * A browser needs seconds for many boxes, so neighbours that are too narrow to be seen become one box, and what is
 * above such a box is left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/line_reader.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/base/svg.h"
#include "src/cli/commands/flame.h"
#include "util/arena.h"
#include "util/escape.h"
#include "util/file.h"
#include "util/hash_table.h"
#include "util/vector.h"

struct flame_options {
    struct common_options common;
    const char *file; /* "-": standard input */
};

static const double WIDTH_MIN = 0.2; /* of a box, in pixels */

enum {
    WIDTH = 1200, /* pixels, as those below */
    MARGIN = 10,
    HEADER = 48,
    ROW = 17,
    DEPTH_MAX = 2000,
    BOXES_MAX = 200 * 1000,
    BYTES_MAX = 1 << 30, /* of the input */
};

/* A line of the input: "frame;frame;...;frame COUNT". */
struct folded_stack {
    const char *text;
    size_t length; /* without the count */
    uint64_t count;
};

/* A frame that the stack before the current one has. */
struct open_box {
    const char *name;
    size_t length;
    uint64_t begin; /* the sum of the counts before it */
};

/* Neighbours in one row that are too narrow to be seen. */
struct narrow_boxes {
    uint64_t begin, end; /* as of an open box; equal if there are none */
    uint64_t count;
};

DEFINE_VECTOR(folded_stacks, struct folded_stack);

struct flame {
    struct output out;
    const char *name; /* of the input */
    struct folded_stacks stacks;
    struct arena arena;
    char *escaped; /* the line that is being read */
    struct open_box open[DEPTH_MAX];
    struct narrow_boxes narrow[DEPTH_MAX + 1]; /* of each row; above the last one is nothing */
    size_t open_count, depth, boxes;
    uint64_t total, done, bytes, bad_lines, cut;
    uint64_t deep; /* stacks with more than DEPTH_MAX frames */
};

/*
 * What a click and a search do. Positions are shares of the whole; `z` is what is zoomed into. The boxes are listed
 * when they are first needed, and a box has a label only while it is wide enough for one.
 */
static const char script[] =
    "<script><![CDATA[\n"
    "const W=1180,all={x:0,w:1,d:-1};let listed;\n"
    "function boxes(){return listed=listed||[...document.querySelectorAll('g.b')].map(g=>{const [n,r,t]=g.children;\n"
    "return{g,r,t,n:n.textContent,x:+g.dataset.x,w:+g.dataset.w,d:+g.dataset.d}})}\n"
    "function label(b,x,w){const n=Math.floor((w*W-6)/7),s=b.n.replace(/ \\(\\d+ samples,.*$/,'');\n"
    "if(n<Math.min(s.length,3)){b.t?.remove();b.t=null;return}\n"
    "if(!b.t){b.t=document.createElementNS('http://www.w3.org/2000/svg','text');\n"
    "b.t.setAttribute('y',+b.r.getAttribute('y')+12);b.g.append(b.t)}\n"
    "b.t.setAttribute('x',13+x*W);b.t.textContent=s.length<=n?s:'..'+s.slice(2-n)}\n"
    "function draw(z){for(const b of boxes()){const over=b.d<z.d&&b.x<=z.x+1e-9&&b.x+b.w>=z.x+z.w-1e-9;\n"
    "let x=over?0:(b.x-z.x)/z.w,w=over?1:b.w/z.w;const out=x>=1||x+w<=0||(b.d<z.d&&!over);\n"
    "b.g.style.display=out?'none':'';b.r.style.opacity=over?.5:1;if(out)continue;\n"
    "if(x<0){w+=x;x=0}if(x+w>1)w=1-x;b.r.setAttribute('x',10+x*W);b.r.setAttribute('width',w*W);label(b,x,w)}}\n"
    "function search(){const s=prompt('Regular expression');if(s===null)return;let e;try{e=new "
    "RegExp(s)}catch(x){return}\n"
    "let sum=0,end=0;for(const b of boxes()){const hit=s&&e.test(b.n);b.r.style.fill=hit?'#c060f0':'';\n"
    "if(hit&&b.x>=end-1e-9){sum+=b.w;end=b.x+b.w}}\n"
    "document.getElementById('found').textContent=s?'Found in '+(100*sum).toFixed(1)+'%':''}\n"
    "addEventListener('click',e=>{const g=e.target.closest('g.b');\n"
    "if(g)draw(boxes().find(b=>b.g===g));else if(e.target.id==='reset')draw(all);"
    "else if(e.target.id==='search')search()});\n"
    "addEventListener('keydown',e=>{if(e.key==='f'&&(e.ctrlKey||e.metaKey)){e.preventDefault();search()}});\n"
    "]]></script>\n";

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static void take_line(struct flame *flame, const char *text, const char *end)
{
    while (end > text && (end[-1] == '\r' || end[-1] == ' '))
        end--;
    const char *digits = end;
    uint64_t count = 0, unit = 1;
    for (; digits > text && digits[-1] >= '0' && digits[-1] <= '9' && end - digits < 18; unit *= 10)
        count += (uint64_t)(*--digits - '0') * unit;
    if (text == end)
        return;
    if (digits == end || digits - text < 2 || digits[-1] != ' ' || !count || flame->total + count < count) {
        flame->bad_lines++;
        return;
    }
    size_t length = (size_t)(digits - 1 - text);
    flame->escaped = reallocate(flame->escaped, ESCAPED_SIZE(length));
    length = (size_t)(escape(flame->escaped, text, length, ESCAPE_MESSAGE) - flame->escaped);
    const char *kept = arena_string(&flame->arena, flame->escaped, length);
    if (!kept || !folded_stacks_append(&flame->stacks, (struct folded_stack){kept, length, count}))
        flame->bad_lines++;
    else
        flame->total += count;
}

static bool read_lines(struct flame *flame, struct line_reader *reader)
{
    for (;;) {
        struct text_line line;
        while (line_reader_take(reader, &line)) {
            if (line.is_cut) /* its count is missing */
                flame->bad_lines++;
            else
                take_line(flame, line.text, line.end);
        }
        if (reader->at_end)
            return true;
        const char *before = reader->end;
        size_t left = (size_t)(before - reader->next);
        if (!line_reader_fill(reader)) {
            message("%s: cannot be read: %s", flame->name, strerror(errno));
            return false;
        }
        flame->bytes += (size_t)(reader->end - reader->next) - left;
        if (flame->bytes > BYTES_MAX) {
            message("more than %d MiB of stacks", BYTES_MAX >> 20);
            return false;
        }
    }
}

/* A ';' comes next after the end of a text: nothing may come between "a" and "a;b", which share the box of "a". */
static unsigned rank_of(char c)
{
    return c == ';' ? 1 : c ? (unsigned char)c + 1u : 0;
}

static int by_text(const void *a, const void *b)
{
    const char *x = ((const struct folded_stack *)a)->text, *y = ((const struct folded_stack *)b)->text;
    while (*x && *x == *y)
        x++, y++;
    return (rank_of(*x) > rank_of(*y)) - (rank_of(*x) < rank_of(*y));
}

/* ---- Drawing --------------------------------------------------------------------------------------------------- */

/* Draws a box that ends at `end`, if it is wide enough. */
static bool draw_box(struct flame *flame, size_t depth, const struct open_box *box, uint64_t end)
{
    struct output *out = &flame->out;
    uint64_t count = end - box->begin;
    double inner = WIDTH - 2 * MARGIN, share = (double)count / (double)flame->total;
    double x = (double)box->begin / (double)flame->total, width = share * inner;
    if (width < WIDTH_MIN)
        return false;
    if (flame->boxes >= BOXES_MAX) {
        flame->cut++;
        return true;
    }
    flame->boxes++;
    size_t y = HEADER + ROW * (flame->depth - depth);
    output_printf(out, "<g class=\"b\" data-x=\"%.9f\" data-w=\"%.9f\" data-d=\"%zu\"><title>", x, share, depth);
    svg_text(out, box->name, box->length);
    output_printf(out, " (%" PRIu64 " samples, %.2f%%)</title>", count, 100 * share);
    output_printf(out, "<rect x=\"%.2f\" y=\"%zu\" width=\"%.2f\" height=\"%d\" ", MARGIN + x * inner, y, width,
                  ROW - 1);
    svg_fill(out, box->name, box->length);
    output_literal(out, "/>");
    if (svg_has_room(box->length, width)) {
        output_printf(out, "<text x=\"%.2f\" y=\"%zu\">", MARGIN + x * inner + 3, y + 12);
        svg_label(out, box->name, box->length, width);
        output_literal(out, "</text>");
    }
    output_literal(out, "</g>\n");
    return true;
}

/* Draws the neighbours that were too narrow as one box. */
static void draw_narrow(struct flame *flame, size_t depth)
{
    char name[64];
    struct narrow_boxes *narrow = &flame->narrow[depth];
    int length = snprintf(name, sizeof name, "%" PRIu64 " frames, each too narrow", narrow->count);
    (void)draw_box(flame, depth, &(struct open_box){name, (size_t)length, narrow->begin}, narrow->end);
    *narrow = (struct narrow_boxes){0};
}

/* The box at `depth` ends at flame->done. */
static void close_box(struct flame *flame, size_t depth)
{
    const struct open_box *box = &flame->open[depth];
    struct narrow_boxes *narrow = &flame->narrow[depth];
    if (draw_box(flame, depth, box, flame->done)) {
        draw_narrow(flame, depth + 1);
        return;
    }
    flame->narrow[depth + 1] = (struct narrow_boxes){0};
    if (narrow->end != box->begin) {
        draw_narrow(flame, depth);
        narrow->begin = box->begin;
    }
    narrow->end = flame->done;
    narrow->count++;
}

static void close_boxes(struct flame *flame, size_t keep)
{
    while (flame->open_count > keep)
        close_box(flame, --flame->open_count);
}

/* Splits a stack into its frames; those that the open boxes share stay open. */
static void draw_stack(struct flame *flame, const struct folded_stack *stack)
{
    const char *text = stack->text, *end = text + stack->length;
    size_t depth = 0;
    bool same = true;
    for (;;) {
        const char *stop = memchr(text, ';', (size_t)(end - text));
        size_t length = (size_t)((stop ? stop : end) - text);
        const struct open_box *box = &flame->open[depth];
        if (same && (depth >= flame->open_count || box->length != length || memcmp(box->name, text, length) != 0)) {
            same = false;
            close_boxes(flame, depth);
        }
        if (!same)
            flame->open[flame->open_count++] = (struct open_box){text, length, flame->done};
        depth++;
        if (!stop)
            break;
        if (depth == DEPTH_MAX) {
            flame->deep++;
            break;
        }
        text = stop + 1;
    }
    if (same)
        close_boxes(flame, depth);
    flame->done += stack->count;
}

static size_t depth_of(const struct folded_stack *stack)
{
    size_t depth = 1;
    for (size_t i = 0; i < stack->length; i++)
        depth += stack->text[i] == ';';
    return depth < DEPTH_MAX ? depth : DEPTH_MAX;
}

static void draw(struct flame *flame)
{
    struct output *out = &flame->out;
    qsort(flame->stacks.items, flame->stacks.count, sizeof *flame->stacks.items, by_text);
    for (size_t i = 0; i < flame->stacks.count; i++) {
        size_t depth = depth_of(&flame->stacks.items[i]);
        flame->depth = depth > flame->depth ? depth : flame->depth;
    }
    size_t height = HEADER + ROW * (flame->depth + 1) + MARGIN;
    svg_begin(out, "Flame graph", WIDTH, height,
              "g.b{cursor:pointer}g.b:hover rect{stroke:#000}.h{pointer-events:auto;cursor:pointer}");
    output_literal(out, "<text id=\"reset\" class=\"h\" x=\"10\" y=\"24\">Reset</text>"
                        "<text id=\"search\" class=\"h\" x=\"60\" y=\"24\">Search</text>"
                        "<text id=\"found\" x=\"120\" y=\"24\"/>\n");
    for (size_t i = 0; i < flame->stacks.count; i++)
        draw_stack(flame, &flame->stacks.items[i]);
    close_boxes(flame, 0);
    draw_narrow(flame, 0);
    output_printf(out, "<text x=\"%d\" y=\"24\" text-anchor=\"end\">%" PRIu64 " samples</text>\n", WIDTH - MARGIN,
                  flame->total);
    output_literal(out, script);
    output_literal(out, "</svg>\n");
}

int flame_draw(const char *output, const char *name, int fd)
{
    struct line_reader reader;
    struct flame *flame = allocate(sizeof *flame);
    flame->name = name;
    line_reader_init(&reader, fd, "folded stacks");
    line_reader_show(&reader, -1);
    int status = EXIT_FAILED;
    bool ok = read_lines(flame, &reader);
    line_reader_deinit(&reader);
    if (ok && !flame->stacks.count)
        message("%s has no folded stacks, lines of the form 'frame;frame COUNT'", flame->name);
    else if (ok && output_open(&flame->out, output)) {
        draw(flame);
        if (flame->bad_lines)
            message("%" PRIu64 " line%s left out: no folded stack, or too long", flame->bad_lines,
                    plural(flame->bad_lines));
        if (flame->cut)
            message("%" PRIu64 " frame%s left out: more than %d are wide enough to be seen", flame->cut,
                    plural(flame->cut), BOXES_MAX);
        if (flame->deep)
            message("%" PRIu64 " stack%s cut: only the outermost %d frames are drawn", flame->deep, plural(flame->deep),
                    DEPTH_MAX);
        bool all = !flame->bad_lines && !flame->cut && !flame->deep;
        status = !output_close(&flame->out) ? EXIT_FAILED : all ? EXIT_ANSWERED : EXIT_PARTLY;
    }
    folded_stacks_deinit(&flame->stacks);
    arena_deinit(&flame->arena);
    free(flame->escaped);
    free(flame);
    return status;
}

/* Whether a program has a pipe open for writing, or has written to it. True if that cannot be found out. */
static bool has_writer(int fd)
{
    int copy[2];
    if (pipe2(copy, O_CLOEXEC) < 0)
        return true;
    ssize_t n = tee(fd, copy[1], 1, SPLICE_F_NONBLOCK); /* takes nothing from the pipe; 0: nobody writes */
    close(copy[0]);
    close(copy[1]);
    return n != 0;
}

/* Opens a file, or a pipe to which a program writes, now or soon: a shell may start it later. -1 with errno set. */
static int open_input(const char *name)
{
    enum { WAIT_MS = 5000, STEP_MS = 10 };
    struct stat st;
    CLEANUP_CLOSE int fd = file_open(name, &st);
    if (fd < 0)
        return -1;
    for (int waited = 0; S_ISFIFO(st.st_mode) && !has_writer(fd); waited += STEP_MS) {
        struct pollfd writer = {.fd = fd, .events = POLLIN};
        if (waited >= WAIT_MS) {
            errno = EPIPE;
            return -1;
        }
        if (poll(&writer, 1, STEP_MS) > 0) /* there is something to read, or the writer has come and gone */
            break;
    }
    if (fcntl(fd, F_SETFL, 0) < 0)
        return -1;
    int opened = fd;
    fd = -1;
    return opened;
}

static int run(const void *given)
{
    const struct flame_options *options = given;
    const char *name = options->file;
    if (output_is_file(&options->common, name))
        return EXIT_FAILED;
    int fd = target_is_stdin(name) ? STDIN_FILENO : open_input(name);
    if (fd < 0) {
        message("cannot read '%s': %s", name,
                errno == EPIPE ? "it is a pipe that no program writes to" : strerror(errno));
        return EXIT_FAILED;
    }
    int status = flame_draw(options->common.output, target_display_name(name), fd);
    if (fd != STDIN_FILENO)
        close(fd);
    return status;
}

const struct command command_flame = {
    .name = "flame",
    .section = SECTION_FILES,
    RUNS(run, struct flame_options),
    .operands = OPERANDS({"FILE", OPERAND_FILE, TO_WORD(struct flame_options, file)},
                         {.name = "-o FILE", .kind = OPERAND_OPTION, .need = OPTIONAL}),
    .options = OPTIONS(output_rows),
    .summary = "draw folded stacks as a flame graph",
    .details = "FILE has the lines that 'filter', 'stack' or 'async' write with --folded; '-' is standard input. The\n"
               "result is an SVG image that needs no other file: a browser shows each frame's share, zooms into a\n"
               "frame that is clicked, and searches names (Ctrl-F). Frames too narrow to be seen are drawn together,\n"
               "as one box.\n",
};
