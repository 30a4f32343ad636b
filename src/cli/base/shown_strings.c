#include "src/cli/base/shown_strings.h"

#include <stdlib.h>

#include "src/cli/base/memory.h"
#include "util/escape.h"

const struct shown shown_nothing = {.text = (char[]){"null"}, .json_length = 4};

void shown_strings_init(struct shown_strings *strings)
{
    *strings = (struct shown_strings){.slots = allocate(SHOWN_ROLES * sizeof *strings->slots)};
}

void shown_strings_deinit(struct shown_strings *strings)
{
    for (struct shown *slot = strings->in_use; slot; slot = slot->next)
        free(slot->text);
    free(strings->slots);
    *strings = (struct shown_strings){0};
}

void shown_strings_forget(struct shown_strings *strings)
{
    for (struct shown *slot = strings->in_use; slot; slot = slot->next)
        slot->string = NULL;
}

/* The last component of a path, which may come from Windows. */
static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        slash = strrchr(path, '\\');
    return slash && slash[1] ? slash + 1 : path;
}

/*
 * A path is escaped already: that of a source file of Windows keeps its backslashes, that of a module has two for one.
 */
static enum escape_form form_of(enum shown_role role, bool json)
{
    bool data = role != SHOWN_FILE && role != SHOWN_URL && role != SHOWN_MODULE;
    return json ? (data ? ESCAPE_JSON_DATA : ESCAPE_JSON_MESSAGE) : (data ? ESCAPE_DATA : ESCAPE_MESSAGE);
}

/* Out of line: few answers are the first with a string. */
__attribute__((noinline)) void shown_strings_fill(struct shown_strings *strings, struct shown *slot,
                                                  enum shown_role role, const char *string)
{
    struct shown *next = slot->next;
    if (!slot->text) {
        next = strings->in_use;
        strings->in_use = slot;
    }
    size_t length = strlen(string), before_base = (size_t)(last_component(string) - string);
    char *text = reallocate(slot->text, 2 * ESCAPED_SIZE(length) + 2);
    char *base = escape(text, string, before_base, form_of(role, false));
    char *json = escape(base, string + before_base, length - before_base, form_of(role, false));
    char *end = json;
    *end++ = '"';
    end = escape(end, string, length, form_of(role, true));
    *end++ = '"';
    *slot = (struct shown){
        .next = next,
        .string = string,
        .text = text,
        .base = (size_t)(base - text),
        .text_length = (size_t)(json - text),
        .json_length = (size_t)(end - json),
    };
}
