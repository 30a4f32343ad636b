#include "src/cli/base/answers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/put.h"
#include "util/base.h"
#include "util/escape.h"

enum {
    LINE_ROOM = 1024, /* more than the fixed words, numbers and keys of a line need */
    SIZE_COLUMNS = 7, /* columns of "+0x1234" on a terminal: few methods are larger */
};

void answers_init(struct answers *answers, struct output *out, bool json)
{
    *answers = (struct answers){.out = out, .json = json};
    shown_strings_init(&answers->strings);
    for (size_t i = 0; i < ARRAY_SIZE(answers->kinds); i++) {
        answers->kinds[i].text = cdacq_code_kind_text((enum cdacq_code_kind)i);
        answers->kinds[i].length = strlen(answers->kinds[i].text);
    }
}

void answers_deinit(struct answers *answers)
{
    shown_strings_deinit(&answers->strings);
}

void answers_forget_strings(struct answers *answers)
{
    shown_strings_forget(&answers->strings);
}

const char *answers_status(enum cdacq_answer answer)
{
    static const char *const texts[] = {[CDACQ_ANSWER_NONE] = "none",
                                        [CDACQ_ANSWER_MANAGED] = "managed",
                                        [CDACQ_ANSWER_STUB] = "stub",
                                        [CDACQ_ANSWER_ERROR] = "error"};
    return texts[answer];
}

void answers_count_unread(struct answers_unread *unread, const struct cdacq_method *method)
{
    if (LIKELY(!answers_doubt_name(method)) || method->answer != CDACQ_ANSWER_MANAGED)
        return;
    if (!unread->count++)
        snprintf(unread->reason, sizeof unread->reason, "%s", method->error ? method->error : "no reason is known");
}

void answers_tell_unread(const struct answers_unread *unread)
{
    if (unread->count)
        message("%" PRIu64 " name%s could not be read: %s", unread->count, plural(unread->count), unread->reason);
}

void answers_tell_unconfirmed(uint64_t count, const char *element)
{
    if (count)
        message("%" PRIu64 " %s%s files that the target cannot confirm: 'cdacq info' names the files", count, element,
                count == 1 ? " uses" : "s use");
}

/* What an answer shows of the session's strings. */
struct strings {
    const struct shown *module, *tier, *file, *url;
};

static inline struct strings show_all(struct answers *answers, const struct cdacq_method *m)
{
    struct shown_strings *strings = &answers->strings;
    return (struct strings){shown_string(strings, SHOWN_MODULE, m->module), shown_string(strings, SHOWN_TIER, m->tier),
                            shown_string(strings, SHOWN_FILE, m->file),
                            shown_string(strings, SHOWN_URL, m->source_url)};
}

/* ---- Text ---------------------------------------------------------------------------------------------------- */

static inline char *put_name(char *p, const struct cdacq_method *m)
{
    if (m->answer == CDACQ_ANSWER_STUB || m->answer == CDACQ_ANSWER_NONE)
        return PUT_LITERAL(p, "-");
    if (m->name)
        p = put_bytes(p, m->name, m->name_length);
    return LIKELY(!answers_doubt_name(m)) ? p : PUT_LITERAL(p, "?");
}

/* "[jit Tier1]", "[jit async thunk]", "[stub FixupPrecode]", "[none]" */
static inline char *put_bracket(char *p, const struct answers *answers, const struct cdacq_method *m,
                                const struct shown *tier)
{
    if (m->answer == CDACQ_ANSWER_NONE)
        return PUT_LITERAL(p, "[none]");
    p = m->answer == CDACQ_ANSWER_STUB ? PUT_LITERAL(p, "[stub ") : PUT_LITERAL(p, "[");
    p = put_bytes(p, answers->kinds[m->kind].text, answers->kinds[m->kind].length);
    if (tier != &shown_nothing) {
        *p++ = ' ';
        p = shown_put_base(p, tier);
    }
    if (m->async_thunk)
        p = PUT_LITERAL(p, " async thunk");
    *p++ = ']';
    return p;
}

static inline char *put_module(char *p, const struct shown *module)
{
    if (module == &shown_nothing)
        return p;
    p = PUT_LITERAL(p, " (");
    p = shown_put_base(p, module);
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

/* " [runtime 1]" */
static inline char *put_runtime(char *p, const struct answers *answers, const struct cdacq_method *m)
{
    if (LIKELY(!answers->tells_runtime) || m->answer == CDACQ_ANSWER_NONE)
        return p;
    p = put_decimal(PUT_LITERAL(p, " [runtime "), m->runtime);
    *p++ = ']';
    return p;
}

/* Pads what begins at `column` to a width, on a terminal. */
static inline char *align(char *p, const struct answers *answers, const char *column, size_t width)
{
    size_t length = (size_t)(p - column);
    if (__builtin_expect(!answers->out->is_terminal || length >= width, 1))
        return p;
    memset(p, ' ', width - length);
    return p + (width - length);
}

static inline size_t text_room(const struct cdacq_method *m, const struct strings *s)
{
    return LINE_ROOM + m->name_length + s->module->text_length + s->tier->text_length + s->file->text_length;
}

/* "IL_0012 Program.cs:14 (Demo.dll)" */
static inline char *put_place(char *p, const struct cdacq_method *m, const struct strings *s)
{
    if (m->il_offset >= 0)
        p = put_il_offset(p, m->il_offset);
    if (s->file != &shown_nothing) {
        *p++ = ' ';
        p = shown_put_base(p, s->file);
        if (m->line) {
            *p++ = ':';
            p = put_decimal(p, m->line);
        }
    }
    return put_module(p, s->module);
}

static void write_text(struct answers *answers, const struct cdacq_method *m)
{
    struct strings s = show_all(answers, m);
    bool is_minor = m->answer != CDACQ_ANSWER_MANAGED;
    answers->unconfirmed += !m->module_verified;
    answers_count_unread(&answers->unread, m);
    if (is_minor)
        output_style(answers->out, STYLE_MINOR);
    char *p = output_reserve(answers->out, text_room(m, &s)), *start = p;
    p = align(put_hex(p, m->ip), answers, start, ANSWERS_ADDRESS_WIDTH);
    *p++ = ' ';
    p = put_name(p, m);
    *p++ = ' ';
    if (m->answer == CDACQ_ANSWER_MANAGED) {
        *p++ = '+';
        p = put_hex(p, m->offset);
        *p++ = ' ';
    }
    p = put_bracket(p, answers, m, s.tier);
    if (m->answer == CDACQ_ANSWER_MANAGED)
        p = put_place(p, m, &s);
    p = put_runtime(p, answers, m);
    if (is_minor) {
        output_commit(answers->out, p);
        output_style(answers->out, STYLE_NONE);
        p = output_reserve(answers->out, 1);
    }
    *p++ = '\n';
    output_commit(answers->out, p);
}

void answers_write_async(struct answers *answers, const struct cdacq_method *m)
{
    struct strings s = show_all(answers, m);
    answers->errors += m->answer == CDACQ_ANSWER_ERROR;
    answers->unconfirmed += !m->module_verified;
    answers_count_unread(&answers->unread, m);
    char *p = output_reserve(answers->out, text_room(m, &s));
    p = put_runtime(put_place(put_name(p, m), m, &s), answers, m);
    *p++ = '\n';
    output_commit(answers->out, p);
}

static void write_method_text(struct answers *answers, const struct cdacq_method *m)
{
    struct strings s = show_all(answers, m);
    char *p = output_reserve(answers->out, text_room(m, &s)), *column = p;
    answers->unconfirmed += !m->module_verified;
    answers_count_unread(&answers->unread, m);
    p = align(put_hex(p, m->code_start), answers, column, ANSWERS_ADDRESS_WIDTH);
    *p++ = ' ';
    column = p;
    *p++ = '+';
    p = align(put_hex(p, m->code_size), answers, column, SIZE_COLUMNS);
    *p++ = ' ';
    p = put_name(p, m);
    *p++ = ' ';
    p = put_bracket(p, answers, m, s.tier);
    p = put_runtime(put_module(p, s.module), answers, m);
    *p++ = '\n';
    output_commit(answers->out, p);
}

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

#define PUT_KEY(p, key) PUT_LITERAL(p, ",\"" key "\":")

/* Whether one of the eight bytes is `c`. */
static inline uint64_t has_byte(uint64_t bytes, char c)
{
    uint64_t x = bytes ^ UINT64_C(0x0101010101010101) * (uint8_t)c;
    return (x - UINT64_C(0x0101010101010101)) & ~x & UINT64_C(0x8080808080808080);
}

/* A name is printable UTF-8 already: JSON escapes only two of its characters. Eight bytes are checked at a time. */
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

static inline char *put_number(char *p, bool known, uint64_t value)
{
    return known ? put_decimal(p, value) : PUT_LITERAL(p, "null");
}

static inline char *put_address(char *p, uint64_t address)
{
    return address ? put_quoted_hex(p, address) : PUT_LITERAL(p, "null");
}

static inline char *put_bool(char *p, bool known, bool value)
{
    return !known ? PUT_LITERAL(p, "null") : value ? PUT_LITERAL(p, "true") : PUT_LITERAL(p, "false");
}

/* status to code_size. `status`: NULL, or another one than that of the answer. */
static inline char *put_identity(char *p, const struct answers *answers, const struct cdacq_method *m,
                                 const struct shown *module, const char *status)
{
    bool managed = m->answer == CDACQ_ANSWER_MANAGED, usual = managed && !status;
    status = status ? status : answers_status(m->answer);
    p = PUT_KEY(p, "status");
    *p++ = '"';
    p = LIKELY(usual) ? PUT_LITERAL(p, "managed") : put_bytes(p, status, strlen(status));
    p = PUT_LITERAL(p, "\",\"kind\":");
    if (m->answer == CDACQ_ANSWER_NONE || (m->answer != CDACQ_ANSWER_STUB && m->kind == CDACQ_CODE_UNKNOWN)) {
        p = PUT_LITERAL(p, "null");
    } else {
        *p++ = '"';
        p = put_bytes(p, answers->kinds[m->kind].text, answers->kinds[m->kind].length);
        *p++ = '"';
    }
    p = PUT_KEY(p, "method");
    p = managed && m->name ? put_json_name(p, m->name, m->name_length) : PUT_LITERAL(p, "null");
    p = put_address(PUT_KEY(p, "method_desc"), m->method_desc);
    p = put_token(PUT_KEY(p, "token"), m->token);
    p = shown_put_json(PUT_KEY(p, "module"), module);
    p = put_address(PUT_KEY(p, "code_start"), m->code_start);
    return put_number(PUT_KEY(p, "code_size"), m->code_size != 0, m->code_size);
}

/* cold and funclet_start */
static inline char *put_funclet(char *p, const struct cdacq_method *m)
{
    p = put_bool(PUT_KEY(p, "cold"), m->answer == CDACQ_ANSWER_MANAGED, m->cold);
    return put_address(PUT_KEY(p, "funclet_start"), m->funclet_start);
}

/* module_verified and error */
static inline char *put_reliability(char *p, const struct cdacq_method *m)
{
    p = put_bool(PUT_KEY(p, "module_verified"), answers_tells_verified(m), m->module_verified);
    p = PUT_KEY(p, "error");
    if (LIKELY(!m->error))
        return PUT_LITERAL(p, "null");
    *p++ = '"';
    p = escape(p, m->error, strlen(m->error), ESCAPE_JSON_MESSAGE);
    *p++ = '"';
    return p;
}

/* async_thunk, which only a MethodDesc tells */
static inline char *put_async_thunk(char *p, const struct cdacq_method *m)
{
    return put_bool(PUT_KEY(p, "async_thunk"), m->method_desc != 0, m->async_thunk);
}

/* runtime, where there are several */
static inline char *put_json_runtime(char *p, const struct answers *answers, const struct cdacq_method *m)
{
    return LIKELY(!answers->tells_runtime)
               ? p
               : put_number(PUT_KEY(p, "runtime"), m->answer != CDACQ_ANSWER_NONE, m->runtime);
}

static inline size_t json_room(const struct cdacq_method *m, const struct strings *s)
{
    return LINE_ROOM + 2 * m->name_length + s->module->json_length + s->tier->json_length + s->file->json_length +
           s->url->json_length + (m->error ? ESCAPED_SIZE(strlen(m->error)) : 0);
}

/* The members of an answer's object after its IP. */
static char *put_answer(char *p, const struct answers *answers, const struct cdacq_method *m, const struct strings *s,
                        const char *status)
{
    p = put_identity(p, answers, m, s->module, status);
    p = put_number(PUT_KEY(p, "offset"), m->code_start != 0, m->offset);
    p = put_funclet(p, m);
    p = PUT_KEY(p, "il_offset");
    bool has_il_offset = m->answer == CDACQ_ANSWER_MANAGED && m->il_offset != CDACQ_OFFSET_UNKNOWN;
    if (has_il_offset && m->il_offset < 0)
        *p++ = '-';
    p = put_number(p, has_il_offset, (uint64_t)(m->il_offset < 0 ? -(int64_t)m->il_offset : m->il_offset));
    p = shown_put_json(PUT_KEY(p, "tier"), s->tier);
    p = shown_put_json(PUT_KEY(p, "file"), s->file);
    p = put_number(PUT_KEY(p, "line"), m->line != 0, m->line);
    p = put_reliability(p, m);
    p = put_number(PUT_KEY(p, "column"), m->column != 0, m->column);
    p = shown_put_json(PUT_KEY(p, "source_url"), s->url);
    return put_json_runtime(put_async_thunk(p, m), answers, m);
}

static void write_json(struct answers *answers, const struct cdacq_method *m)
{
    struct strings s = show_all(answers, m);
    char *p = output_reserve(answers->out, json_room(m, &s));
    p = put_quoted_hex(PUT_LITERAL(p, "{\"ip\":"), m->ip);
    p = put_answer(p, answers, m, &s, NULL);
    output_commit(answers->out, PUT_LITERAL(p, "}\n"));
}

static void write_method_json(struct answers *answers, const struct cdacq_method *m)
{
    struct strings s = show_all(answers, m);
    char *p = output_reserve(answers->out, json_room(m, &s)), *start = p;
    p = put_funclet(put_identity(p, answers, m, s.module, NULL), m);
    p = shown_put_json(PUT_KEY(p, "tier"), s.tier);
    p = put_address(PUT_KEY(p, "cold_start"), m->cold_start);
    p = put_number(PUT_KEY(p, "cold_size"), m->cold_size != 0, m->cold_size);
    p = put_json_runtime(put_async_thunk(put_reliability(p, m), m), answers, m);
    *start = '{'; /* where the comma before the first member is */
    output_commit(answers->out, PUT_LITERAL(p, "}\n"));
}

/* ---- Errors, and the choice ----------------------------------------------------------------------------------- */

/* "WHAT ? [error] PROBLEM"; WHAT is an address or the bad text */
static void write_error_text(struct answers *answers, const char *what, size_t length, const char *problem)
{
    struct output *out = answers->out;
    output_escaped(out, what, length, ESCAPE_DATA);
    output_styled(out, STYLE_ERROR, " ? [error] ");
    output_note_between(out, "", problem, "\n");
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
        write_json(answers, method);
    else if (method->answer == CDACQ_ANSWER_ERROR)
        write_error_at(answers, method->ip, method->error);
    else
        write_text(answers, method);
}

void answers_write_members(struct answers *answers, struct json_writer *w, const struct cdacq_method *method,
                           const char *status)
{
    struct strings s = show_all(answers, method);
    answers->errors += method->answer == CDACQ_ANSWER_ERROR;
    char *p = json_begin_value(w, "ip", json_room(method, &s));
    p = status ? put_address(p, method->ip) : put_quoted_hex(p, method->ip);
    output_commit(w->out, put_answer(p, answers, method, &s, status));
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
    answers->errors++;
    if (!answers->json) {
        write_error_text(answers, bad->text, bad->length, bad->problem);
        return;
    }
    struct cdacq_method unknown = {.answer = CDACQ_ANSWER_ERROR, .module_verified = true, .error = bad->problem};
    struct strings s = show_all(answers, &unknown);
    struct json_writer w = json_begin_line(answers->out);
    json_string_bytes(&w, "ip", bad->text, bad->length);
    char *p = output_reserve(answers->out, json_room(&unknown, &s));
    output_commit(answers->out, PUT_LITERAL(put_answer(p, answers, &unknown, &s, NULL), "}\n"));
}
