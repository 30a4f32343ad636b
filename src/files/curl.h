/*
 * curl.h: reads a URL with the program curl, which runs in a process of its own: what a server sends is parsed there,
 * and the static tool can do the same as the others. It ends with the call. The URL, and each one that a server
 * redirects to, is of http or https. From a URL of https, each one is of https; from one of http, it may lead to https
 * and back. ~/.curlrc is not read. Thread-safe.
 */
#ifndef CDACQ_FILES_CURL_H
#define CDACQ_FILES_CURL_H

#include "util/base.h"

enum {
    CURL_SILENT_SECONDS = 5, /* without a byte, after which curl is ended */
    CURL_REDIRECTS_MAX = 5,
};

enum curl_outcome {
    CURL_DONE,
    CURL_ABSENT,      /* the server has answered that there is no such file */
    CURL_FAILED,      /* another file may be given */
    CURL_UNREACHABLE, /* there is no answer */
    CURL_MISSING,     /* the program is not there */
};

struct curl_request {
    const char *url;
    int fd; /* the contents are written to it */
    uint64_t size_max;
    unsigned seconds_max;
    void (*progress)(void *context, uint64_t done); /* bytes */
    void *context;
};

/* Unless all is done, `why` has one line that says why not. *ret_size is the number of bytes that were written. */
enum curl_outcome curl_read(const struct curl_request *request, uint64_t *ret_size, char *why, size_t why_size);

#endif
