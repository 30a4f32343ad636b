/*
 * main.c: reads the command line and runs the command or prints help.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/arguments.h"
#include "src/cli/commands.h"
#include "src/cli/complete.h"
#include "src/cli/help.h"
#include "src/cli/manual.h"
#include "src/cli/watchdog.h"

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

int main(int argc, char **argv)
{
    open_standard_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file that is too large is an error of write(), and its beginning is removed */
    watchdog_catch_bus_errors();
    if (argc == 4 && !strcmp(argv[1], MANUAL_COMMAND))
        return manual_write(argv[2], argv[3]);
    if (argc > 1 && !strcmp(argv[1], COMPLETE_COMMAND))
        return complete_write((const char *const *)argv + 2, (size_t)argc - 2);
    struct invocation invocation;
    enum arguments_result what = arguments_parse(argc, argv, &invocation);
    int status = what == ARGUMENTS_WRONG     ? EXIT_USAGE
                 : what == ARGUMENTS_HELP    ? help_print(invocation.command)
                 : what == ARGUMENTS_VERSION ? help_print_version()
                                             : invocation.command->run(&invocation);
    arguments_deinit(&invocation);
    return status;
}
