/* exit_code.h: what the tool returns. */
#ifndef CDACQ_CLI_BASE_EXIT_CODE_H
#define CDACQ_CLI_BASE_EXIT_CODE_H

enum {
    EXIT_ANSWERED = 0, /* every question */
    EXIT_PARTLY = 1,   /* some questions have no answer, or two descriptors differ */
    EXIT_FAILED = 2,   /* no question has an answer; a message says why */
    EXIT_USAGE = 64,   /* EX_USAGE of sysexits.h */
};

#endif
