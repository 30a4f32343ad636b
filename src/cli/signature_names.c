#include "src/cli/signature_names.h"

#include <string.h>

#include "util/base.h"

enum { SYMBOL_LENGTH_MAX = 512 };

/* Whether a number at `i` is one that compilers give: "<Run>b__3", "<Load>g__Get|0_1", "<>c__DisplayClass3_0". */
static bool is_place_of_number(const char *name, size_t i)
{
    static const char closure[] = "<>c__DisplayClass";
    size_t length = strlen(closure);
    return i && (name[i - 1] == '_' || name[i - 1] == '|' ||
                 (i >= length && memcmp(name + i - length, closure, length) == 0));
}

void signature_form_name(struct text *ret, const char *name, size_t length)
{
    unsigned depth = 0;
    for (size_t i = 0; i < length && (depth || name[i] != '('); i++) { /* within type arguments, a tuple begins */
        bool compiler = i == 0 || name[i - 1] == '.';                  /* "<Run>b__3_0", "<>c": no type arguments */
        if (name[i] == '<' && compiler && !depth) {
            const char *end = memchr(name + i, '>', length - i);
            size_t n = end ? (size_t)(end - name) - i + 1 : length - i;
            text_append(ret, name + i, n);
            i += n - 1;
            continue;
        }
        depth += name[i] == '<' || name[i] == '[';
        bool is_number = name[i] >= '0' && name[i] <= '9' && is_place_of_number(name, i);
        if (!depth && is_number) {
            while (i + 1 < length && ((name[i + 1] >= '0' && name[i + 1] <= '9') || name[i + 1] == '_'))
                i++;
            continue;
        }
        if (!depth)
            text_putc(ret, name[i]);
        depth -= depth && (name[i] == '>' || name[i] == ']');
    }
}

void signature_form_symbol(struct text *ret, const char *symbol)
{
    static const char *const kinds[] = {"_avx", "_evex", "_sse", "_erms"};
    size_t whole = MIN(strcspn(symbol, "@"), (size_t)SYMBOL_LENGTH_MAX), length = whole;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        const char *kind = strstr(symbol, kinds[i]);
        length = kind ? MIN(length, (size_t)(kind - symbol)) : length;
    }
    size_t underscores = strspn(symbol, "_");
    if (length == whole || length <= underscores) { /* it names no kind, or nothing else */
        underscores = 0;
        length = whole;
    }
    text_append(ret, symbol + underscores, length - underscores);
}

static bool begins_with_any(const char *name, size_t length, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (length >= strlen(prefixes[i]) && memcmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

bool signature_is_of_framework(const char *name, size_t length)
{
    static const char *const prefixes[] = {"System.", "Microsoft.", "Internal.", "Interop.", "dynamicClass.IL_STUB"};
    return begins_with_any(name, length, prefixes, ARRAY_SIZE(prefixes));
}

bool signature_is_of_no_interest(const char *name, size_t length)
{
    static const char *const ends[] = {"System.Threading.Thread.Start",
                                       "__pthread_kill",
                                       "pthread_kill",
                                       "raise",
                                       "gsignal",
                                       "__GI_",
                                       "abort",
                                       "System.Environment.FailFast",
                                       "System.Runtime.EH.",
                                       "System.Environment._FailFast"};
    return begins_with_any(name, length, ends, ARRAY_SIZE(ends));
}

void signature_write_name(struct output *out, const char *name, size_t length)
{
    struct text text = {0};
    signature_form_name(&text, name, length);
    output_escaped(out, text.data ? text.data : "", text.length, ESCAPE_MESSAGE);
    text_deinit(&text);
}
