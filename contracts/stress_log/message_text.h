/*
 * message_text.h: formats a message of the StressLog: its format string is printf's, each argument is a word of the
 * target. The runtime adds forms of %p for what the word is the address of.
 *
 * Source: dotnet/runtime docs/design/datacontracts/StressLog.md; ISO C 7.23.6.1 (fprintf); for I, I32, I64 and w,
 * Microsoft's "Format specification syntax: printf and wprintf functions".
 */
#ifndef CDACQ_CONTRACTS_STRESS_LOG_MESSAGE_TEXT_H
#define CDACQ_CONTRACTS_STRESS_LOG_MESSAGE_TEXT_H

#include "descriptors/fields.h"
#include "util/text.h"

enum {
    MESSAGE_FORMAT_MAX = 1024, /* bytes of a format string */
    MESSAGE_STRING_MAX = 256,  /* bytes, or UTF-16 units, of a string argument */
    MESSAGE_WIDTH_MAX = 256,   /* columns */
    MESSAGE_PRECISION_MAX = 64,
};

enum message_flaw {
    MESSAGE_NO_ARGUMENT = 1 << 0, /* the format has more conversions than the message has arguments */
    MESSAGE_MISSING = 1 << 1,     /* memory of a string is missing */
    MESSAGE_CUT = 1 << 2,         /* a string, or the text, is too long */
    MESSAGE_CHANGEABLE = 1 << 3,  /* a string is in memory that may have other contents by now */
};

/* What the address of an argument is named by. */
enum message_name {
    MESSAGE_TYPE,   /* %pT: a MethodTable */
    MESSAGE_METHOD, /* %pM: a MethodDesc */
    MESSAGE_VTABLE, /* %pV: of a C++ class */
    MESSAGE_CODE,   /* %pK: a return address */
};

struct message_source {
    /* Appends a name, printable. False, and nothing is appended, if there is none. NULL: there are no names. */
    bool (*name)(void *context, enum message_name kind, uint64_t address, struct text *ret);
    /* Whether no process writes to the memory at an address. NULL: not known. */
    bool (*is_constant)(void *context, uint64_t address);
    void *context;
};

/*
 * Appends the text, which is printable and has no newline at its end. Returns its flaws. The reader fails only if its
 * fuel runs out.
 */
unsigned message_text_write(struct reader *reader, const struct message_source *source, const char *format,
                            size_t length, const uint64_t *arguments, unsigned count, struct text *ret);

#endif
