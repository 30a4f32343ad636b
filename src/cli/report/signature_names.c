#include "src/cli/report/signature_names.h"

#include <string.h>

#include "util/base.h"

enum { SYMBOL_LENGTH_MAX = 512 };

static size_t digits(const char *name, size_t length)
{
    size_t n = 0;
    while (n < length && name[n] >= '0' && name[n] <= '9')
        n++;
    return n;
}

static bool ends_with(const char *name, size_t length, const char *end)
{
    return length >= strlen(end) && memcmp(name + length - strlen(end), end, strlen(end)) == 0;
}

/* Whether what comes next, if it is a number, is one that a compiler or the framework gives. */
static bool is_place_of_number(const char *name, size_t length)
{
    static const char *const words[] = {
        "<>c__DisplayClass", "<>f__AnonymousType", "dynamicClass.lambda_method", "@", " at line ", "$__R", "_", "|"};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (ends_with(name, length, words[i]))
            return true;
    return false;
}

/*
 * The length of what a compiler has numbered at name[i], 0 if that is no such number: C#'s "<Run>b__3_0",
 * "<Load>g__Get|0_1" and "<>c__DisplayClass3_0", Visual Basic's "_Lambda$__3-0" and "_Lambda$__R3-0", and F#'s
 * "run@14-1", whose first number is a line, as in "Pipe #1 stage #2 at line 14@14".
 */
static size_t number_length(const char *name, size_t i, size_t length)
{
    size_t n = digits(name + i, length - i);
    if (!n || !is_place_of_number(name, i))
        return 0;
    while (i + n < length && (name[i + n] == '_' || digits(name + i + n, 1)))
        n++;
    bool second = i + n + 1 < length && name[i + n] == '-' && digits(name + i + n + 1, 1);
    return second ? n + 1 + digits(name + i + n + 1, length - i - n - 1) : n;
}

void signature_form_name(struct text *ret, const char *name, size_t length)
{
    unsigned depth = 0;
    for (size_t i = 0; i < length && (depth || name[i] != '('); i++) { /* within type arguments, a tuple begins */
        bool compiler = i == 0 || name[i - 1] == '.';                  /* "<Run>b__3_0", "<>c": no type arguments */
        size_t number = depth ? 0 : number_length(name, i, length);
        if (name[i] == '<' && compiler && !depth) {
            const char *end = memchr(name + i, '>', length - i);
            size_t n = end ? (size_t)(end - name) - i + 1 : length - i;
            text_append(ret, name + i, n);
            i += n - 1;
            continue;
        }
        depth += name[i] == '<' || name[i] == '[';
        if (number) {
            i += number - 1;
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
    static const char *const parts[] = {".cold", ".part.", ".isra.", ".constprop."};
    size_t whole = MIN(strcspn(symbol, "@"), (size_t)SYMBOL_LENGTH_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        const char *part = strstr(symbol, parts[i]);
        whole = part && part != symbol ? MIN(whole, (size_t)(part - symbol)) : whole;
    }
    size_t length = whole;
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
    static const char *const prefixes[] = {"System.",  "Microsoft.",           "Internal.",
                                           "Interop.", "dynamicClass.IL_STUB", "<StartupCode$FSharp-Core>."};
    static const char *const inner[] = {"local function ", "lambda "}; /* "lambda in Demo.Main()" */
    const char *outer =
        begins_with_any(name, length, inner, ARRAY_SIZE(inner)) ? memmem(name, length, " in ", 4) : NULL;
    if (outer) {
        length -= (size_t)(outer + 4 - name);
        name = outer + 4;
    }
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
