/*
 * inspection.h: all that the ExecutionManager contract provides for an IP: inspection.c asks, and inspection_text.c and
 * inspection_json.c write the answers. Questions are separate: each has an answer, or the reason why it has none.
 */
#ifndef CDACQ_CLI_COMMANDS_INSPECTION_H
#define CDACQ_CLI_COMMANDS_INSPECTION_H

#include "src/cli/base/ip_text.h"
#include "src/cli/base/output.h"
#include "util/vector.h"
#include "cdacq.h"

/* Questions that can fail separately, and the key of the reason. */
#define QUESTIONS(X)                          \
    X(JIT_TYPE, "jit_type")                   \
    X(METHOD_REGION, "hot_size")              \
    X(FUNCLET_START, "funclet_start")         \
    X(IS_FUNCLET, "is_funclet")               \
    X(IS_FILTER_FUNCLET, "is_filter_funclet") \
    X(UNWIND_INFO, "unwind_info")             \
    X(DEBUG_INFO, "debug_info")               \
    X(GC_INFO, "gc_info")                     \
    X(GC_SAFE, "gc_safe")                     \
    X(PARAMETERS, "stack_parameter_size")     \
    X(ENTRY_METHOD_DESC, "entry_method_desc") \
    X(EXCEPTION_CLAUSES, "exception_clauses")

enum question {
#define QUESTION_(name, key) QUESTION_##name,
    QUESTIONS(QUESTION_)
#undef QUESTION_
        QUESTION_COUNT
};

DEFINE_VECTOR(inspection_clauses, struct cdacq_exception_clause);
DEFINE_VECTOR(inspection_variables, struct cdacq_variable_place);

struct inspection {
    bool tells_runtime; /* to be set once: which runtime the answers are of */
    struct cdacq_method method;
    struct cdacq_block block;
    uint64_t hot_size, cold_start, cold_size;
    uint64_t funclet_start;
    bool is_funclet, is_filter_funclet;
    uint64_t unwind_info;
    uint64_t debug_info;
    bool has_flag_byte;
    uint64_t gc_info;
    uint32_t gc_version;
    bool gc_safe;
    uint32_t stack_parameter_size;
    uint64_t entry_method_desc;
    struct inspection_clauses clauses;
    struct cdacq_source source; /* of managed code */
    bool has_variables;
    struct inspection_variables variables;
    char *variables_problem; /* allocated, or NULL: as that of the source, no error of the command */
    bool answered[QUESTION_COUNT];
    char *problems[QUESTION_COUNT]; /* allocated; NULL if there is none */
    size_t problem_count;
};

/* The key of a question, in text and JSON. */
const char *inspection_key(enum question question);

/* "argument" or "local" */
const char *inspection_variable_kind(enum cdacq_variable_kind kind);

/* "typed", "filter", "finally" or "fault" */
const char *inspection_clause_kind(enum cdacq_clause_kind kind);

/*
 * Asks all questions about an IP. The struct is zeroed, or has the answers about another IP. Strings are those of the
 * session.
 */
void inspection_ask(struct inspection *inspection, struct cdacq_session *session, uint64_t ip);

void inspection_deinit(struct inspection *inspection);

/* Writes the line of ip2method, then one line for each other value. */
void inspection_write_text(const struct inspection *inspection, struct output *out);

/* Writes an object with all keys. `bad` is the text that is not an IP, or NULL. */
void inspection_write_json(const struct inspection *inspection, const struct bad_ip *bad, struct output *out);

#endif
