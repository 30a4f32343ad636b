/*
 * fuzz_perf_script.c: any bytes as lines of perf script. What is found is within the line, and its parts are in order.
 */
#include "src/cli/commands/perf_script.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;

static const char *check(struct perf_script_part part, const char *text, const char *end)
{
    if (!part.text)
        return text;
    if (part.text < text || part.text > end || part.length > (size_t)(end - part.text))
        abort();
    return part.text + part.length;
}

static void check_frame(const struct perf_script_frame *frame, const char *text, const char *end)
{
    struct perf_script_symbol symbol;
    check(frame->rest, text, end);
    sink += frame->ip;
    for (unsigned has_file = 0; has_file < 2; has_file++) {
        perf_script_symbol(frame->rest, has_file, &symbol);
        check(symbol.file, check(symbol.name, frame->rest.text, end), end);
        if ((symbol.name.text && !symbol.name.length) || (symbol.is_inlined && symbol.file.text))
            abort();
    }
}

static void check_line(const char *text, const char *end)
{
    struct perf_script_header header;
    struct perf_script_frame frame;
    if (text == end)
        return;
    perf_script_header(text, end, &header);
    if (header.evidence) {
        check(header.event, check(header.thread, text, end), end);
        if (header.rest < text || header.rest > end || (header.is_record && header.event.text))
            abort();
        if (perf_script_only_frame(&header, end, &frame))
            check_frame(&frame, header.rest, end);
    }
    if (perf_script_frame(text, end, &frame))
        check_frame(&frame, text, end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *next = (const char *)data, *end = next + size;
    while (next < end) {
        const char *text = next, *line_end = memchr(text, '\n', (size_t)(end - text));
        line_end = line_end ? line_end : end;
        next = line_end + (line_end < end);
        while (line_end > text && (line_end[-1] == ' ' || line_end[-1] == '\t'))
            line_end--;
        while (text < line_end && (*text == ' ' || *text == '\t'))
            text++;
        check_line(text, line_end);
    }
    return 0;
}
