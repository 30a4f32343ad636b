/*
 * exception_output.h: where texts of exceptions go, what they may lack, and how long they may be.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_EXCEPTION_OUTPUT_H
#define CDACQ_CONTRACTS_OBJECTS_EXCEPTION_OUTPUT_H

#include "contracts/module_cache.h"
#include "contracts/objects/exception.h"

enum {
    EXCEPTION_TEXT_MAX = 64 * 1024 * 1024, /* bytes of one text */
    EXCEPTION_COUNT_MAX = 4096,            /* exceptions in one text */
    EXCEPTION_ELEMENTS_MAX = 64 * 1024,    /* elements of lists of exceptions in one text, also those that are null */
    EXCEPTION_DEPTH_MAX = 128,             /* exceptions within exceptions */
    EXCEPTION_FRAMES_MAX = 200 * 1000,     /* frames in one text */
    EXCEPTION_NAMES_MAX = 8192,            /* methods in one text that have to be named */
};

/* What a text lacks: a bit each. */
enum exception_text_flaw {
    EXCEPTION_TEXT_OVERRIDDEN = 1,   /* code of the target would have to run: stored fields stand in */
    EXCEPTION_TEXT_CUT = 2,          /* too long, too deep, or a cycle */
    EXCEPTION_TEXT_MISSING = 4,      /* something could not be read */
    EXCEPTION_TEXT_INFERRED = 8,     /* a part was found by a search, is of a culture or of a resource: may be wrong */
    EXCEPTION_TEXT_UNCONFIRMED = 16, /* names or lines come from a file that nothing in the target confirms */
};

/* Whether a frame has a source line. */
enum exception_line {
    EXCEPTION_LINE_NONE,
    EXCEPTION_LINE_KNOWN,
    EXCEPTION_LINE_OTHER,  /* none: the code at the address is another method's, so that the name may be wrong, too */
    EXCEPTION_LINE_FAILED, /* the runtime fails as it looks for it, and then looks for no further line of the trace */
};

struct exception_output {
    struct module_cache *cache;
    bool runtime_types; /* the target describes MethodDescs */

    /* Takes the next bytes of UTF-8. False: no more are wanted. */
    bool (*write)(void *context, const char *bytes, size_t length);

    /* The source line of a frame; NULL: none is known. *ret_file is valid until the next call. */
    enum exception_line (*line)(void *context, const struct exception_frame *frame, const char **ret_file,
                                uint32_t *ret_line);

    /* Whether the process has the framework's resources of another language, which are not known; NULL: it has not. */
    bool (*is_translated)(void *context);
    void *context;
};

#endif
