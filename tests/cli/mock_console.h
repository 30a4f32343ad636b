/*
 * mock_console.h: what a test that includes .c files of the command line needs in place of the terminal: messages are
 * counted, and nothing else is shown.
 */
#ifndef CDACQ_TESTS_CLI_MOCK_CONSOLE_H
#define CDACQ_TESTS_CLI_MOCK_CONSOLE_H

#include <check.h>
#include <signal.h>
#include <stdlib.h>

#include "src/cli/base/console.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/watchdog.h"

static unsigned messages;

_Noreturn void out_of_memory(void)
{
    ck_abort();
}

void message(const char *format, ...)
{
    (void)format;
    messages++;
}

int watchdog_set(int pid)
{
    return pid;
}

void watchdog_remove(int folder, const char *name)
{
    (void)folder, (void)name;
}

void watchdog_remove_now(void)
{
}

void watchdog_block_ends(sigset_t *ret_before)
{
    sigemptyset(ret_before);
}

bool console_has_colour(int fd)
{
    (void)fd;
    return false;
}

const char *console_style(enum style style)
{
    (void)style;
    return "";
}

void progress_begin(struct progress *progress, const char *what, int results)
{
    (void)progress, (void)what, (void)results;
}

void progress_step(struct progress *progress, uint64_t done)
{
    (void)progress, (void)done;
}

void progress_estimate(struct progress *progress, uint64_t done, uint64_t part, uint64_t whole)
{
    (void)progress, (void)done, (void)part, (void)whole;
}

void progress_expect(struct progress *progress, uint64_t total)
{
    (void)progress, (void)total;
}

void progress_end(struct progress *progress)
{
    (void)progress;
}

void progress_end_all(void)
{
}

void *allocate(size_t size)
{
    void *data = calloc(1, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

void *allocate_large(uint64_t size)
{
    return allocate(size);
}

void *reallocate(void *data, size_t size)
{
    data = realloc(data, size);
    ck_assert_ptr_nonnull(data);
    return data;
}

#endif
