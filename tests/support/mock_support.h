/*
 * mock_support.h: mock targets in tests: every width and byte order, opened through every carrier, and random numbers
 * that are the same in every run. Failures inside fail the running test.
 */
#ifndef CDACQ_TESTS_SUPPORT_MOCK_SUPPORT_H
#define CDACQ_TESTS_SUPPORT_MOCK_SUPPORT_H

#include <check.h>

#include "mocktarget/mocktarget.h"
#include "cdacq.h"
#include "src/lookup/opened_session.h"

/* {32, 64} x {little, big}: the index of a loop test. */
enum { ARCH_COUNT = 4 };

/* A mock of architecture `arch`. The seed also selects how function lengths are stated and the size of spans. */
struct mock *mock_of_arch(int arch, uint64_t seed);

/* The same for version 1 or 2 of ExecutionManager, or MOCK_NET_11, with an interpreter where the seed is odd. */
struct mock *mock_of_version(int arch, uint64_t seed, unsigned version);

/* Fails the test when the mock has failed. */
void mock_check(const struct mock *mock);

enum carrier {
    CARRIER_MEMORY,
    CARRIER_READ, /* memory that can only be copied from; all or nothing where the number of the call is odd */
    CARRIER_CORE,
    CARRIER_CORE_PREAD,
    CARRIER_PROCESS,
    CARRIER_COUNT
};

/*
 * How many of the carriers there are here: without the permission to read another process's memory there is no
 * CARRIER_PROCESS, which is reported on stderr; with CDACQ_REQUIRE_PTRACE=1 that is a failure.
 */
enum carrier mock_carriers(void);

/*
 * The published target, opened through the public API. The mock must outlive it. Later writes to the mock are visible
 * only in CARRIER_MEMORY. CARRIER_PROCESS has holes of whole pages only.
 */
struct cdacq_target *mock_open(struct mock *mock, enum carrier carrier, const struct cdacq_options *options);

/* The same, which may fail. */
enum cdacq_status mock_try_open(struct mock *mock, enum carrier carrier, const struct cdacq_options *options,
                                struct cdacq_target **ret, struct cdacq_error *err);

/* A path in the target as the mock has it: CARRIER_PROCESS maps files from a directory of its own. */
const char *mock_path_of(const char *path);

/* Publishes the mock and opens it as memory. */
struct cdacq_target *mock_publish_and_open(struct mock *mock);

/* Its failure to open. */
enum cdacq_status mock_open_fails(struct mock *mock, const struct cdacq_options *options, struct cdacq_error *err);

struct cdacq_session;
struct module_cache;

/* A session with the reader and the modules of another, which takes them back (give_session_back). */
void lend_session(struct cdacq_session *ret, struct cdacq_target *target, const struct reader *reader,
                  const struct module_cache *modules);
void give_session_back(struct cdacq_session *session, struct module_cache *modules, struct reader *reader);

/* A reader of an opened target, with all its fuel. */
struct reader mock_reader(struct cdacq_target *target);

struct cdacq_session *mock_session(struct cdacq_target *target);

/* ---- A process with some of everything ---- */

/*
 * JIT heaps (one over several chunks, one collectible) with methods, funclets, stubs and freed blocks, range lists, a
 * section that is being deleted, a heap of the interpreter (if the target can have one), ReadyToRun images with and
 * without tables, prepared and unprepared methods, instances, hot and cold parts, thunks. mock_functions() lists them.
 */
enum { SAMPLE_RANGES = 16, SAMPLE_METHODS = 60, SAMPLE_STUB_KINDS = 16 };

struct sample_process {
    struct mock *mock;
    struct {
        uint64_t begin, end;
    } ranges[SAMPLE_RANGES]; /* all sections, also those that hold nothing any more */
    size_t range_count;
    uint64_t module, dynamic_method_desc;
    uint64_t method_descs[6][SAMPLE_METHODS]; /* of methods M1() on, of the JIT's module and of each image */
    struct mock_r2r *unsplit;                 /* an image with all tables, and without cold code */
};

/* Not yet published. Without `types` MethodDescs are just numbers. */
struct sample_process sample_build(int arch, uint64_t seed, unsigned version, bool types);
void sample_destroy(struct sample_process *sample);

/* The name of the method that a fact is of; in a static buffer. */
const char *sample_name(const struct sample_process *sample, const struct mock_function *function);

/* What the public API calls the code that a fact is of. */
enum cdacq_code_kind sample_code_kind(const struct mock_function *fact);

/* ---- Random numbers ---- */

struct random {
    uint64_t state;
};

uint64_t random_below(struct random *random, uint64_t bound); /* below `bound`, which is not 0 */

#endif
