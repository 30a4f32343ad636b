#include "src/cli/report/other_process.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/base.h"
#include "util/file.h"
#include "util/helper.h"
#include "util/proc_file.h"

/* A helper's work: the command line is in the memory of the process, which may never let a read of it end. */
static int read_command(const void *question, size_t size, int fd, struct helper_answer *ret)
{
    (void)question, (void)size;
    ret->size = file_read_at(fd, 0, ret->bytes, sizeof((struct other_process *)0)->command);
    return 0;
}

static void find_command(int pid, struct other_process *found)
{
    CLEANUP_CLOSE int fd = proc_file_open(pid, "cmdline");
    char bytes[sizeof found->command];
    struct helper_call call = {.work = read_command, .question_fd = fd, .answer = bytes, .answer_room = sizeof bytes};
    if (fd < 0 || !helper_ask(&call))
        return;
    size_t length = call.answer_size;
    bool is_cut = length == sizeof bytes;
    while (length && !bytes[length - 1])
        length--;
    for (size_t i = 0; i < length; i++)
        bytes[i] = bytes[i] ? bytes[i] : ' ';
    if (length)
        snprintf(found->command, sizeof found->command, "%.*s%s", (int)MIN(length, sizeof bytes - 4), bytes,
                 is_cut ? "..." : "");
}

/* "State:\tS (sleeping)" */
static void find_state(int pid, struct other_process *found)
{
    static const char key[] = "\nState:\t";
    char text[1024];
    CLEANUP_CLOSE int fd = proc_file_open(pid, "status");
    text[fd < 0 ? 0 : file_read_at(fd, 0, text, sizeof text - 1)] = '\0';
    const char *state = strstr(text, key), *word = state ? strchr(state, '(') : NULL;
    if (word)
        snprintf(found->state, sizeof found->state, "%.*s", (int)strcspn(word + 1, ")\n"), word + 1);
    if (word && strncmp(text, "Name:\t", 6) == 0) /* of a process without a command line, as a zombie is */
        snprintf(found->command, sizeof found->command, "%.*s", (int)strcspn(text + 6, "\n"), text + 6);
}

void other_process_read(const struct report *report, int pid, struct other_process *ret)
{
    *ret = (struct other_process){.command = ""};
    if (pid <= 0 || pid == report->process.pid || report->facts.kind != CDACQ_TARGET_PROCESS)
        return;
    find_state(pid, ret);
    if (ret->state[0])
        find_command(pid, ret);
}

void other_process_put(struct output *out, const struct report *report, int pid)
{
    struct other_process found;
    other_process_read(report, pid, &found);
    output_printf(out, "process %d", pid);
    if (found.state[0]) {
        output_text_between(out, " (", found.command, ": ");
        output_text_between(out, "", found.state, ")");
    } else if (report->facts.kind == CDACQ_TARGET_PROCESS) {
        output_literal(out, " (which has ended)");
    }
}

void other_process_write_members(struct json_writer *w, const struct report *report, const char *key, int pid)
{
    struct other_process found;
    char name[32];
    other_process_read(report, pid, &found);
    json_known_number(w, key, pid > 0, (uint64_t)pid);
    snprintf(name, sizeof name, "%s_command", key);
    json_string(w, name, found.command[0] ? found.command : NULL);
    snprintf(name, sizeof name, "%s_state", key);
    json_string(w, name, found.state[0] ? found.state : NULL);
}
