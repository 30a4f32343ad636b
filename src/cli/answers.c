#include "src/cli/answers.h"

#include <stdlib.h>
#include <string.h>

#include "src/cli/cli.h"
#include "util/escape.h"
#include "src/cli/put.h"
#include "util/base.h"

/* More than all fixed words, numbers and keys of a line take together. */
enum { LINE_ROOM = 1024 };

static const struct shown nothing = {.text = (char[]){"null"}, .json_length = 4};

void answers_init(struct answers *answers, struct output *out, bool json)
{
    *answers = (struct answers){.out = out, .json = json, .shown = allocate(SHOWN_ROLES * sizeof *answers->shown)};
    for (size_t i = 0; i < ARRAY_SIZE(answers->kinds); i++) {
        answers->kinds[i].text = cdacq_code_kind_text((enum cdacq_code_kind)i);
        answers->kinds[i].length = strlen(answers->kinds[i].text);
    }
}

void answers_deinit(struct answers *answers)
{
    for (struct shown *slot = answers->in_use; slot; slot = slot->next)
        free(slot->text);
    free(answers->shown);
    answers->shown = NULL;
}

/* ---- Strings of the session ---------------------------------------------------------------------------------- */

/* The last component of a path: of the system that the code was built on, which may have been Windows. */
static const char *last_component(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        slash = strrchr(path, '\\');
    return slash && slash[1] ? slash + 1 : path;
}

static __attribute__((noinline)) void fill_slot(struct answers *answers, struct shown *slot, const char *string)
{
    struct shown *next = slot->next;
    if (!slot->text) {
        next = answers->in_use;
        answers->in_use = slot;
    }
    size_t length = strlen(string), before_base = (size_t)(last_component(string) - string);
    char *text = reallocate(slot->text, 2 * ESCAPED_SIZE(length) + 2);
    char *base = escape(text, string, before_base, ESCAPE_DATA);
    char *json = escape(base, string + before_base, length - before_base, ESCAPE_DATA);
    char *end = json;
    *end++ = '"';
    end = escape(end, string, length, ESCAPE_JSON_DATA);
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

/* A session keeps its strings in place, so the address alone tells them apart. */
static inline const struct shown *show(struct answers *answers, enum shown_role role, const char *string)
{
    if (!string)
        return &nothing;
    uint64_t hash = (uint64_t)(uintptr_t)string * UINT64_C(0x9e3779b97f4a7c15);
    struct shown *slot = &answers->shown[role][hash >> 53];
    _Static_assert(SHOWN_SLOTS == 1 << (64 - 53), "the hash's upper bits choose the slot");
    if (__builtin_expect(slot->string != string, 0))
        fill_slot(answers, slot, string);
    return slot;
}

static inline char *put_base(char *p, const struct shown *shown)
{
    return put_bytes(p, shown->text + shown->base, shown->text_length - shown->base);
}

static inline char *put_json(char *p, const struct shown *shown)
{
    return put_bytes(p, shown->text + shown->text_length, shown->json_length);
}

/* ---- Text ---------------------------------------------------------------------------------------------------- */

static inline char *put_name(char *p, const struct cdacq_method *m)
{
    if (m->answer == CDACQ_ANSWER_STUB || m->answer == CDACQ_ANSWER_NONE)
        return PUT_LITERAL(p, "-");
    return m->name ? put_bytes(p, m->name, m->name_length) : PUT_LITERAL(p, "?");
}

/* "[jit Tier1]", "[stub FixupPrecode]", "[none]" */
static inline char *put_bracket(char *p, const struct answers *answers, const struct cdacq_method *m,
                                const struct shown *tier)
{
    if (m->answer == CDACQ_ANSWER_NONE)
        return PUT_LITERAL(p, "[none]");
    p = m->answer == CDACQ_ANSWER_STUB ? PUT_LITERAL(p, "[stub ") : PUT_LITERAL(p, "[");
    p = put_bytes(p, answers->kinds[m->kind].text, answers->kinds[m->kind].length);
    if (tier != &nothing) {
        *p++ = ' ';
        p = put_base(p, tier);
    }
    *p++ = ']';
    return p;
}

static inline char *put_module(char *p, const struct shown *module)
{
    if (module == &nothing)
        return p;
    p = PUT_LITERAL(p, " (");
    p = put_base(p, module);
    *p++ = ')';
    return p;
}

static inline char *put_il_offset(char *p, int32_t il_offset)
{
    static const char zeros[] = "000";
    p = PUT_LITERAL(p, " IL_");
    size_t digits = (35 - (size_t)__builtin_clz((uint32_t)il_offset | 1)) / 4;
    if (digits < 4)
        p = put_bytes(p, zeros, 4 - digits);
    char number[PUT_NUMBER_ROOM + PUT_SLACK];
    put_hex(number, (uint32_t)il_offset);
    return put_bytes(p, number + 2, digits);
}

static void write_text(struct answers *answers, const struct cdacq_method *m)
{
    const struct shown *module = show(answers, SHOWN_MODULE, m->module), *tier = show(answers, SHOWN_TIER, m->tier),
                       *file = show(answers, SHOWN_FILE, m->file);
    char *p = output_reserve(answers->out,
                             LINE_ROOM + m->name_length + module->text_length + tier->text_length + file->text_length);
    p = put_hex(p, m->ip);
    *p++ = ' ';
    p = put_name(p, m);
    *p++ = ' ';
    if (m->answer == CDACQ_ANSWER_MANAGED) {
        *p++ = '+';
        p = put_hex(p, m->offset);
        *p++ = ' ';
    }
    p = put_bracket(p, answers, m, tier);
    if (m->answer == CDACQ_ANSWER_MANAGED) {
        if (m->il_offset >= 0)
            p = put_il_offset(p, m->il_offset);
        if (file != &nothing) {
            *p++ = ' ';
            p = put_base(p, file);
            if (m->line) {
                *p++ = ':';
                p = put_decimal(p, m->line);
            }
        }
        p = put_module(p, module);
    }
    *p++ = '\n';
    output_commit(answers->out, p);
}

static void write_method_text(struct answers *answers, const struct cdacq_method *m)
{
    const struct shown *module = show(answers, SHOWN_MODULE, m->module), *tier = show(answers, SHOWN_TIER, m->tier);
    char *p = output_reserve(answers->out, LINE_ROOM + m->name_length + module->text_length + tier->text_length);
    p = put_hex(p, m->code_start);
    p = PUT_LITERAL(p, " +");
    p = put_hex(p, m->code_size);
    *p++ = ' ';
    p = put_name(p, m);
    *p++ = ' ';
    p = put_bracket(p, answers, m, tier);
    p = put_module(p, module);
    *p++ = '\n';
    output_commit(answers->out, p);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

static inline char *put_json_hex(char *p, uint64_t value)
{
    if (!value)
        return PUT_LITERAL(p, "null");
    *p++ = '"';
    p = put_hex(p, value);
    *p++ = '"';
    return p;
}

static inline char *put_json_size(char *p, uint64_t value)
{
    return value ? put_decimal(p, value) : PUT_LITERAL(p, "null");
}

static inline char *put_json_token(char *p, uint32_t token)
{
    if (!token)
        return PUT_LITERAL(p, "null");
    p = PUT_LITERAL(p, "\"0x");
    put_hex8(p, token);
    p += 8;
    *p++ = '"';
    return p;
}

static inline char *put_json_bool(char *p, bool value)
{
    return value ? PUT_LITERAL(p, "true") : PUT_LITERAL(p, "false");
}

/* Whether one of the eight bytes is `c`. */
static inline uint64_t has_byte(uint64_t bytes, char c)
{
    uint64_t x = bytes ^ UINT64_C(0x0101010101010101) * (uint8_t)c;
    return (x - UINT64_C(0x0101010101010101)) & ~x & UINT64_C(0x8080808080808080);
}

/*
 * A name is printable UTF-8 already: only two characters mean something in a JSON string. Eight at a time are looked
 * at.
 */
static inline char *put_json_name(char *p, const char *name, size_t length)
{
    *p++ = '"';
    for (const char *end = name + length; name < end;) {
        uint64_t bytes;
        if (end - name >= 8) {
            memcpy(&bytes, name, sizeof bytes);
            memcpy(p, &bytes, sizeof bytes);
            if (!(has_byte(bytes, '"') | has_byte(bytes, '\\'))) {
                p += 8;
                name += 8;
                continue;
            }
        }
        if (*name == '"' || *name == '\\')
            *p++ = '\\';
        *p++ = *name++;
    }
    *p++ = '"';
    return p;
}

static inline char *put_json_kind(char *p, const struct answers *answers, const struct cdacq_method *m)
{
    if (m->answer == CDACQ_ANSWER_NONE || (m->answer == CDACQ_ANSWER_ERROR && m->kind == CDACQ_CODE_UNKNOWN))
        return PUT_LITERAL(p, "null");
    *p++ = '"';
    p = put_bytes(p, answers->kinds[m->kind].text, answers->kinds[m->kind].length);
    *p++ = '"';
    return p;
}

static inline char *put_json_status(char *p, enum cdacq_answer answer)
{
    switch (answer) {
    case CDACQ_ANSWER_MANAGED:
        return PUT_LITERAL(p, "\"status\":\"managed\"");
    case CDACQ_ANSWER_STUB:
        return PUT_LITERAL(p, "\"status\":\"stub\"");
    case CDACQ_ANSWER_NONE:
        return PUT_LITERAL(p, "\"status\":\"none\"");
    default:
        return PUT_LITERAL(p, "\"status\":\"error\"");
    }
}

static size_t json_room(const struct cdacq_method *m, const struct shown *module, const struct shown *tier,
                        const struct shown *file)
{
    return LINE_ROOM + 2 * m->name_length + module->json_length + tier->json_length + file->json_length +
           (m->error ? ESCAPED_SIZE(strlen(m->error)) : 0);
}

/* status to module */
static inline char *put_json_identity(char *p, const struct answers *answers, const struct cdacq_method *m,
                                      const struct shown *module)
{
    p = put_json_status(p, m->answer);
    p = PUT_LITERAL(p, ",\"kind\":");
    p = put_json_kind(p, answers, m);
    p = PUT_LITERAL(p, ",\"method\":");
    if (m->answer == CDACQ_ANSWER_MANAGED && m->name)
        p = put_json_name(p, m->name, m->name_length);
    else
        p = PUT_LITERAL(p, "null");
    p = PUT_LITERAL(p, ",\"method_desc\":");
    p = put_json_hex(p, m->method_desc);
    p = PUT_LITERAL(p, ",\"token\":");
    p = put_json_token(p, m->token);
    p = PUT_LITERAL(p, ",\"module\":");
    return put_json(p, module);
}

/* What only an answer about code can tell. */
static inline char *put_json_cold(char *p, const struct cdacq_method *m)
{
    p = PUT_LITERAL(p, ",\"cold\":");
    return m->answer == CDACQ_ANSWER_MANAGED ? put_json_bool(p, m->cold) : PUT_LITERAL(p, "null");
}

/* module_verified to the end */
static inline char *put_json_end(char *p, const struct cdacq_method *m)
{
    p = PUT_LITERAL(p, ",\"module_verified\":");
    if (m->answer == CDACQ_ANSWER_MANAGED || m->module)
        p = put_json_bool(p, m->module_verified);
    else
        p = PUT_LITERAL(p, "null");
    p = PUT_LITERAL(p, ",\"error\":");
    if (m->error) {
        *p++ = '"';
        p = escape(p, m->error, strlen(m->error), ESCAPE_JSON_MESSAGE);
        *p++ = '"';
    } else {
        p = PUT_LITERAL(p, "null");
    }
    return PUT_LITERAL(p, "}\n");
}

/* The members of an answer's object, and its end. */
static void write_json_members(struct answers *answers, const struct cdacq_method *m, bool open)
{
    const struct shown *module = show(answers, SHOWN_MODULE, m->module), *tier = show(answers, SHOWN_TIER, m->tier),
                       *file = show(answers, SHOWN_FILE, m->file);
    char *p = output_reserve(answers->out, json_room(m, module, tier, file));
    if (open)
        *p++ = '{';
    p = PUT_LITERAL(p, "\"ip\":\"");
    p = put_hex(p, m->ip);
    p = PUT_LITERAL(p, "\",");
    p = put_json_identity(p, answers, m, module);
    p = PUT_LITERAL(p, ",\"code_start\":");
    p = put_json_hex(p, m->code_start);
    p = PUT_LITERAL(p, ",\"code_size\":");
    p = put_json_size(p, m->code_size);
    p = PUT_LITERAL(p, ",\"offset\":");
    p = m->code_start ? put_decimal(p, m->offset) : PUT_LITERAL(p, "null");
    p = put_json_cold(p, m);
    p = PUT_LITERAL(p, ",\"funclet_start\":");
    p = put_json_hex(p, m->funclet_start);
    p = PUT_LITERAL(p, ",\"il_offset\":");
    if (m->answer != CDACQ_ANSWER_MANAGED || m->il_offset == CDACQ_OFFSET_UNKNOWN) {
        p = PUT_LITERAL(p, "null");
    } else {
        if (m->il_offset < 0)
            *p++ = '-';
        p = put_decimal(p, m->il_offset < 0 ? 0 - (uint64_t)m->il_offset : (uint64_t)m->il_offset);
    }
    p = PUT_LITERAL(p, ",\"tier\":");
    p = put_json(p, tier);
    p = PUT_LITERAL(p, ",\"file\":");
    p = put_json(p, file);
    p = PUT_LITERAL(p, ",\"line\":");
    p = put_json_size(p, m->line);
    p = put_json_end(p, m);
    output_commit(answers->out, p);
}

static void write_method_json(struct answers *answers, const struct cdacq_method *m)
{
    const struct shown *module = show(answers, SHOWN_MODULE, m->module), *tier = show(answers, SHOWN_TIER, m->tier);
    char *p = output_reserve(answers->out, json_room(m, module, tier, &nothing));
    *p++ = '{';
    p = put_json_identity(p, answers, m, module);
    p = PUT_LITERAL(p, ",\"code_start\":");
    p = put_json_hex(p, m->code_start);
    p = PUT_LITERAL(p, ",\"code_size\":");
    p = put_json_size(p, m->code_size);
    p = put_json_cold(p, m);
    p = PUT_LITERAL(p, ",\"funclet_start\":");
    p = put_json_hex(p, m->funclet_start);
    p = PUT_LITERAL(p, ",\"tier\":");
    p = put_json(p, tier);
    p = PUT_LITERAL(p, ",\"cold_start\":");
    p = put_json_hex(p, m->cold_start);
    p = PUT_LITERAL(p, ",\"cold_size\":");
    p = put_json_size(p, m->cold_size);
    p = put_json_end(p, m);
    output_commit(answers->out, p);
}

/* ---- Errors, and the choice ----------------------------------------------------------------------------------- */

/* "WHAT ? [error] PROBLEM", where WHAT is an address or what stands in its place */
static void write_error_text(struct answers *answers, const char *what, size_t length, const char *problem)
{
    struct output *out = answers->out;
    output_commit(out, escape(output_reserve(out, ESCAPED_SIZE(length)), what, length, ESCAPE_DATA));
    output_literal(out, " ? [error] ");
    output_note(out, problem);
    output_literal(out, "\n");
}

static void write_error_at(struct answers *answers, uint64_t address, const char *problem)
{
    char what[PUT_NUMBER_ROOM + PUT_SLACK];
    size_t length = (size_t)(put_hex(what, address) - what);
    write_error_text(answers, what, length, problem ? problem : "no reason is known");
}

void answers_write(struct answers *answers, const struct cdacq_method *method)
{
    answers->errors += method->answer == CDACQ_ANSWER_ERROR;
    if (answers->json)
        write_json_members(answers, method, true);
    else if (method->answer == CDACQ_ANSWER_ERROR)
        write_error_at(answers, method->ip, method->error);
    else
        write_text(answers, method);
}

void answers_write_members(struct answers *answers, const struct cdacq_method *method)
{
    answers->errors += method->answer == CDACQ_ANSWER_ERROR;
    write_json_members(answers, method, false);
}

void answers_write_method(struct answers *answers, const struct cdacq_method *method)
{
    answers->errors += method->answer == CDACQ_ANSWER_ERROR;
    if (answers->json)
        write_method_json(answers, method);
    else if (method->answer == CDACQ_ANSWER_ERROR)
        write_error_at(answers, method->code_start, method->error);
    else
        write_method_text(answers, method);
}

void answers_write_bad(struct answers *answers, const struct bad_ip *bad)
{
    static const char unknown[] =
        ",\"status\":\"error\",\"kind\":null,\"method\":null,\"method_desc\":null,\"token\":null,\"module\":null,"
        "\"code_start\":null,\"code_size\":null,\"offset\":null,\"cold\":null,\"funclet_start\":null,"
        "\"il_offset\":null,\"tier\":null,\"file\":null,\"line\":null,\"module_verified\":null,\"error\":";
    struct output *out = answers->out;
    answers->errors++;
    if (!answers->json) {
        write_error_text(answers, bad->text, bad->length, bad->problem);
        return;
    }
    output_literal(out, "{\"ip\":\"");
    output_commit(out,
                  escape(output_reserve(out, ESCAPED_SIZE(bad->length)), bad->text, bad->length, ESCAPE_JSON_DATA));
    output_literal(out, "\"");
    output_literal(out, unknown);
    output_json_note(out, bad->problem);
    output_literal(out, "}\n");
}
