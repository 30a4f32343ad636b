/*
 * environment.c: shows the environment of a process. A report may be sent to others, so values are masked whose name
 * says that they are secret, and those that hold a password by their form: a connection string, or a URL with one.
 */
#include "src/cli/commands/environment.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "src/cli/base/common_options.h"
#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"
#include "util/base.h"

/* Anywhere in a name, and as a word of it: PATH has no PAT. */
static const char *const secret_parts[] = {
    "AUTH", "CONNECTION_STRING", "CONNECTIONSTRING", "COOKIE",    "CREDENTIAL", "KEY",
    "PASS", "PRIVATE",           "SECRET",           "SIGNATURE", "TOKEN"};
static const char *const secret_words[] = {"CERT", "CONNSTR", "DSN", "PAT", "PWD", "SALT", "SAS"};

static const char *const secret_values[] = {
    "accountkey=", "password=", "pwd=", "secret=", "sharedaccesskey=", "sharedaccesssignature=", "token=", "bearer "};

static bool is_letter(char c)
{
    return isalpha((unsigned char)c);
}

static bool has_part(const char *name, size_t length, const char *part, bool as_word)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= length; i++) {
        bool is_word = (i == 0 || !is_letter(name[i - 1])) && (i + n == length || !is_letter(name[i + n]));
        if (strncasecmp(name + i, part, n) == 0 && (is_word || !as_word))
            return true;
    }
    return false;
}

/* "scheme://user:password@host" */
static bool has_user(const char *value)
{
    const char *host = strstr(value, "://");
    size_t length = host ? strcspn(host + 3, "/ ?#") : 0;
    return host && memchr(host + 3, '@', length);
}

static bool is_secret(const char *name, size_t length, const char *value)
{
    if (length == 3 && strncmp(name, "PWD", 3) == 0) /* the current folder */
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(secret_parts); i++)
        if (has_part(name, length, secret_parts[i], false))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(secret_words); i++)
        if (has_part(name, length, secret_words[i], true))
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(secret_values); i++)
        if (strcasestr(value, secret_values[i]))
            return true;
    return has_user(value);
}

struct work {
    struct output out;
    bool json;
};

static int write_variable(const char *variable, void *context)
{
    struct work *work = context;
    const char *value = strchr(variable, '=');
    size_t length = value ? (size_t)(value - variable) : strlen(variable);
    bool is_masked = !value || is_secret(variable, length, value + 1);
    if (work->json) {
        struct json_writer writer = json_begin_line(&work->out), *w = &writer;
        json_string_bytes(w, "name", variable, length);
        json_string(w, "value", is_masked ? NULL : value + 1);
        json_bool(w, "masked", is_masked);
        json_end_line(w);
    } else {
        output_escaped(&work->out, variable, length, ESCAPE_DATA);
        output_text_between(&work->out, "=", is_masked ? "***" : value + 1, "\n");
    }
    return output_failed(&work->out);
}

int environment_show(const void *given, const struct opened_target *opened)
{
    const struct common_options *options = given;
    struct work work = {.json = options->json};
    struct cdacq_error error;
    if (!output_open(&work.out, options->output))
        return EXIT_FAILED;
    enum cdacq_status status = cdacq_target_visit_environment(opened->target, write_variable, &work, &error);
    if (status < 0)
        message("%s", error.message);
    return output_close_if(&work.out, status >= 0) && status >= 0 ? EXIT_ANSWERED : EXIT_FAILED;
}
