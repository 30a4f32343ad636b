#include "src/cli/answers.h"

#include <stdlib.h>
#include <string.h>

#include "src/cli/json_writer.h"
#include "src/cli/memory.h"
#include "src/cli/put.h"
#include "util/base.h"
#include "util/escape.h"

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

const char *answers_status(enum cdacq_answer answer)
{
    static const char *const texts[] = {[CDACQ_ANSWER_NONE] = "none",
                                        [CDACQ_ANSWER_MANAGED] = "managed",
                                        [CDACQ_ANSWER_STUB] = "stub",
                                        [CDACQ_ANSWER_ERROR] = "error"};
    return texts[answer];
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

/* A session keeps its strings in place, so the address alone identifies one. */
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

/* Whether one of the eight bytes is `c`. */
static inline uint64_t has_byte(uint64_t bytes, char c)
{
    uint64_t x = bytes ^ UINT64_C(0x0101010101010101) * (uint8_t)c;
    return (x - UINT64_C(0x0101010101010101)) & ~x & UINT64_C(0x8080808080808080);
}

/* A name is printable UTF-8 already: JSON escapes only two of its characters. Eight are looked at a time. */
JSON_INLINE void json_name(struct json_writer *w, const char *key, const char *name, size_t length)
{
    char *p = json_begin_value(w, key, 2 * length);
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
    w->next = p;
}

JSON_INLINE void json_shown(struct json_writer *w, const char *key, const struct shown *shown)
{
    json_raw(w, key, shown->text + shown->text_length, shown->json_length);
}

/* status to module */
JSON_INLINE void json_identity(struct json_writer *w, const struct answers *answers, const struct cdacq_method *m,
                               const struct shown *module)
{
    bool managed = m->answer == CDACQ_ANSWER_MANAGED;
    if (LIKELY(managed))
        json_plain(w, "status", "managed");
    else
        json_plain(w, "status", answers_status(m->answer));
    if (m->answer == CDACQ_ANSWER_NONE || (m->answer == CDACQ_ANSWER_ERROR && m->kind == CDACQ_CODE_UNKNOWN))
        json_null(w, "kind");
    else
        json_plain_bytes(w, "kind", answers->kinds[m->kind].text, answers->kinds[m->kind].length);
    if (managed && m->name)
        json_name(w, "method", m->name, m->name_length);
    else
        json_null(w, "method");
    json_address(w, "method_desc", m->method_desc);
    json_token(w, "token", m->token);
    json_shown(w, "module", module);
}

/* By value: the caller's writer stays in registers. */
static __attribute__((noinline)) struct json_writer write_error(struct json_writer w, const char *error)
{
    json_note(&w, "error", error);
    return w;
}

/* For an answer without its error. */
static inline size_t json_room(const struct cdacq_method *m, const struct shown *module, const struct shown *tier,
                               const struct shown *file)
{
    return LINE_ROOM + 2 * m->name_length + module->json_length + tier->json_length + file->json_length;
}

/* module_verified and error, which are the last: after json_begin_room. */
JSON_INLINE void json_reliability(struct json_writer *w, const struct cdacq_method *m)
{
    json_known_bool(w, "module_verified", m->answer == CDACQ_ANSWER_MANAGED || m->module, m->module_verified);
    json_end_room(w);
    if (UNLIKELY(m->error != NULL))
        *w = write_error(*w, m->error);
    else
        json_null(w, "error");
}

/* The members of an answer's object after its IP. */
JSON_INLINE void json_answer(struct json_writer *w, struct answers *answers, const struct cdacq_method *m)
{
    const struct shown *module = show(answers, SHOWN_MODULE, m->module), *tier = show(answers, SHOWN_TIER, m->tier),
                       *file = show(answers, SHOWN_FILE, m->file);
    bool managed = m->answer == CDACQ_ANSWER_MANAGED, has_il_offset = managed && m->il_offset != CDACQ_OFFSET_UNKNOWN;
    json_begin_room(w, json_room(m, module, tier, file));
    json_identity(w, answers, m, module);
    json_address(w, "code_start", m->code_start);
    json_known_number(w, "code_size", m->code_size != 0, m->code_size);
    json_known_number(w, "offset", m->code_start != 0, m->offset);
    json_known_bool(w, "cold", managed, m->cold);
    json_address(w, "funclet_start", m->funclet_start);
    json_known_signed(w, "il_offset", has_il_offset, m->il_offset);
    json_shown(w, "tier", tier);
    json_shown(w, "file", file);
    json_known_number(w, "line", m->line != 0, m->line);
    json_reliability(w, m);
}

/* Where it need not be fast. */
static __attribute__((noinline)) void write_answer(struct json_writer *w, struct answers *answers,
                                                   const struct cdacq_method *m)
{
    json_answer(w, answers, m);
}

static void write_json(struct answers *answers, const struct cdacq_method *m)
{
    struct json_writer w = json_begin(answers->out);
    json_begin_object(&w, NULL);
    json_known_address(&w, "ip", true, m->ip);
    json_answer(&w, answers, m);
    json_end_object(&w);
    json_end_line(&w);
}

static void write_method_json(struct answers *answers, const struct cdacq_method *m)
{
    const struct shown *module = show(answers, SHOWN_MODULE, m->module), *tier = show(answers, SHOWN_TIER, m->tier);
    struct json_writer w = json_begin(answers->out);
    json_begin_object(&w, NULL);
    json_begin_room(&w, json_room(m, module, tier, &nothing));
    json_identity(&w, answers, m, module);
    json_address(&w, "code_start", m->code_start);
    json_known_number(&w, "code_size", m->code_size != 0, m->code_size);
    json_known_bool(&w, "cold", m->answer == CDACQ_ANSWER_MANAGED, m->cold);
    json_address(&w, "funclet_start", m->funclet_start);
    json_shown(&w, "tier", tier);
    json_address(&w, "cold_start", m->cold_start);
    json_known_number(&w, "cold_size", m->cold_size != 0, m->cold_size);
    json_reliability(&w, m);
    json_end_object(&w);
    json_end_line(&w);
}

/* ---- Errors, and the choice ----------------------------------------------------------------------------------- */

/* "WHAT ? [error] PROBLEM", where WHAT is an address or what was given in its place */
static void write_error_text(struct answers *answers, const char *what, size_t length, const char *problem)
{
    struct output *out = answers->out;
    output_escaped(out, what, length, ESCAPE_DATA);
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
        write_json(answers, method);
    else if (method->answer == CDACQ_ANSWER_ERROR)
        write_error_at(answers, method->ip, method->error);
    else
        write_text(answers, method);
}

void answers_write_members(struct answers *answers, struct json_writer *w, const struct cdacq_method *method)
{
    answers->errors += method->answer == CDACQ_ANSWER_ERROR;
    json_known_address(w, "ip", true, method->ip);
    write_answer(w, answers, method);
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
    struct json_writer w = json_begin(answers->out);
    struct cdacq_method unknown = {.answer = CDACQ_ANSWER_ERROR, .error = bad->problem};
    json_begin_object(&w, NULL);
    json_string_bytes(&w, "ip", bad->text, bad->length);
    write_answer(&w, answers, &unknown);
    json_end_object(&w);
    json_end_line(&w);
}
