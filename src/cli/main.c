/*
 * main.c: reads the command line and runs the command or prints help.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/cli/base/arguments.h"
#include "src/cli/base/complete.h"
#include "src/cli/base/console.h"
#include "src/cli/base/help.h"
#include "src/cli/base/watchdog.h"
#include "util/base.h"

/*
 * The kernel starts the program of a core_pattern pipe without standard output and error. A file that is opened later
 * must not take their numbers. To read from an input or write to an output that is not there is an error.
 */
static void open_standard_streams(void)
{
    static const int modes[] = {[STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_RDWR};
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)!open("/dev/null", modes[fd]);
}

/*
 * Whoever starts the tool may have set a limit of the stack (ulimit -s) at which commands would die. It is raised if it
 * may be: the kernel looks at it whenever the stack grows.
 */
static bool have_stack(void)
{
    enum { WANTED = 8 * 1024 * 1024, NEEDED = 256 * 1024 };
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= WANTED)
        return true;
    const struct rlimit tries[] = {{WANTED, MAX(limit.rlim_max, (rlim_t)WANTED)}, {limit.rlim_max, limit.rlim_max}};
    for (size_t i = 0; i < ARRAY_SIZE(tries); i++)
        if (setrlimit(RLIMIT_STACK, &tries[i]) == 0) {
            limit = tries[i];
            break;
        }
    if (limit.rlim_cur < NEEDED)
        message("the stack is limited to %llu KiB, and %d KiB are needed (ulimit -s)",
                (unsigned long long)limit.rlim_cur / 1024, NEEDED / 1024);
    return limit.rlim_cur >= NEEDED;
}

int main(int argc, char **argv)
{
    open_standard_streams();
    if (!have_stack())
        return EXIT_FAILED;
    signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error of write(), and its beginning is removed */
    signal(SIGCHLD, SIG_DFL); /* the parent may have ignored it, and how curl ends would not be known */
    watchdog_catch_bus_errors();
    if (argc > 1 && !strcmp(argv[1], COMPLETE_COMMAND))
        return complete_write((const char *const *)argv + 2, (size_t)argc - 2);
    struct command_line line;
    enum arguments_result what = arguments_parse(argc, argv, &line);
    int status = what == ARGUMENTS_WRONG     ? EXIT_USAGE
                 : what == ARGUMENTS_HELP    ? help_print(line.command)
                 : what == ARGUMENTS_VERSION ? help_print_version()
                                             : line.command->run(line.options);
    arguments_deinit(&line);
    return status;
}
