/*
 * cdacq/error.h: the statuses and the error message that all calls of the library share.
 */
#ifndef CDACQ_ERROR_H
#define CDACQ_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define CDACQ_BEGIN_DECLS extern "C" {
#define CDACQ_END_DECLS   }
#else
#define CDACQ_BEGIN_DECLS
#define CDACQ_END_DECLS
#endif
#define CDACQ_API __attribute__((visibility("default")))

CDACQ_BEGIN_DECLS

/* The result of a call: name, value, text. */
#define CDACQ_STATUSES(X)                                                                          \
    X(CDACQ_OK, 0, "success")                                                                      \
    X(CDACQ_NOT_MANAGED, 1, "no managed method owns the address")                                  \
    X(CDACQ_STOPPED, 2, "the visitor asked to stop")                                               \
    X(CDACQ_DONE, 3, "there is no more")                                                           \
    X(CDACQ_ERR_NOMEM, -1, "out of memory")                                                        \
    X(CDACQ_ERR_ARGUMENT, -2, "an argument is not valid")                                          \
    X(CDACQ_ERR_IO, -3, "a file or a process cannot be read")                                      \
    X(CDACQ_ERR_FORMAT, -4, "a file is not what it should be")                                     \
    X(CDACQ_ERR_NO_RUNTIME, -5, "no .NET runtime in the target")                                   \
    X(CDACQ_ERR_NO_DESCRIPTOR, -6, "the runtime's contract descriptor cannot be found")            \
    X(CDACQ_ERR_DESCRIPTOR, -7, "the runtime's contract descriptor is malformed")                  \
    X(CDACQ_ERR_CONTRACT, -8, "a contract is missing or its version is not supported")             \
    X(CDACQ_ERR_FIELD, -9, "a type, field or global is not described")                             \
    X(CDACQ_ERR_MEMORY, -10, "memory is not in the target")                                        \
    X(CDACQ_ERR_FUEL, -11, "a bound on work was reached")                                          \
    X(CDACQ_ERR_CORRUPT, -12, "the target's data contradicts itself")                              \
    X(CDACQ_ERR_MODULE, -13, "a file that is needed is missing or is not the one that was mapped") \
    X(CDACQ_ERR_CHANGED, -14, "the process changed its data while they were read")

enum cdacq_status {
#define CDACQ_STATUS_(name, value, text) name = value,
    CDACQ_STATUSES(CDACQ_STATUS_)
#undef CDACQ_STATUS_
};

#define CDACQ_ERROR_MESSAGE_SIZE 512

/*
 * Why a call failed. The caller owns it. `address` is 0 when the failure concerns no address. It has no `size` field,
 * because its size never changes. The same holds for structs cdacq_block, cdacq_heap_object and cdacq_heap_string, and
 * for the members of the union in struct cdacq_jitdump_record.
 */
struct cdacq_error {
    enum cdacq_status status;
    uint64_t address;
    char message[CDACQ_ERROR_MESSAGE_SIZE]; /* one line, NUL-terminated, printable */
};

/* The general meaning of a status, or "unknown status" for any other number; a static string. */
CDACQ_API const char *cdacq_status_text(enum cdacq_status status);

CDACQ_END_DECLS

#endif
