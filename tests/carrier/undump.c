/*
 * undump CORE DIRECTORY: becomes a process whose memory is what an ELF core says (core_memory.h), with files made below
 * DIRECTORY. Prints "ready" and waits to be killed; dies with its parent. Exit code 3: one of the addresses is taken.
 * With CDACQ_UNDUMP_EXECUTABLE=1 in the environment, code in files is executable (core_memory_make_executable()).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "tests/carrier/core_memory.h"

int main(int argc, char **argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc != 3) {
        fputs("usage: undump CORE DIRECTORY\n", stderr);
        return 1;
    }
    core_memory_load(argv[1], argv[2]);
    if (getenv("CDACQ_UNDUMP_EXECUTABLE"))
        core_memory_make_executable();
    if (write(1, "ready\n", 6) != 6)
        return 1;
    for (;;)
        pause();
}
