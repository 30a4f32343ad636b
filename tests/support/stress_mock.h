/*
 * stress_mock.h: a StressLog in a mock, written by the runtime's rules: src/coreclr/inc/stresslog.h, AdvanceWrite and
 * GrowChunkList. It remembers which messages a reader must find. Failures are those of the mock.
 */
#ifndef CDACQ_TESTS_SUPPORT_STRESS_MOCK_H
#define CDACQ_TESTS_SUPPORT_STRESS_MOCK_H

#include "mocktarget/mocktarget.h"
#include "util/vector.h"

enum { STRESS_MOCK_CHUNK = 512, STRESS_MOCK_STRINGS = 4096, STRESS_MOCK_SIGNATURE = 0x51c0ffee };
#define STRESS_MOCK_FREQUENCY UINT64_C(2000000000) /* ticks a second */

/* A message that was written. */
struct stress_mock_message {
    uint64_t thread, address, size; /* the ThreadStressLog */
    uint64_t time;                  /* ticks since the start of the log */
    uint32_t facility;
    const char *format;
    uint64_t arguments[8];
    unsigned count;
    bool is_gone; /* overwritten, in part or as a whole */
};

DEFINE_VECTOR(stress_mock_messages, struct stress_mock_message);

struct stress_mock {
    struct mock *mock;
    bool is_net11;
    uint64_t log, start; /* the StressLog, and its StartTimestamp */
    uint64_t images[2];  /* that have strings, one after the other in the table of modules; read-only */
    uint64_t used[2];    /* bytes of their strings */
    struct stress_mock_messages messages;
};

/* A log without threads. Call it before mock_publish(). `is_net11`: the mock is of MOCK_NET_11. */
void stress_mock_init(struct stress_mock *stress, struct mock *mock, bool is_net11);
void stress_mock_deinit(struct stress_mock *stress);

/* A string in the first or second image. Returns its address. */
uint64_t stress_mock_string(struct stress_mock *stress, unsigned image, const char *text);

/* The log of a thread, with one chunk, in front of the others. Returns the address. */
uint64_t stress_mock_thread(struct stress_mock *stress, uint64_t id);

/* Writes a message into the log of a thread, which may have up to `chunks_max` chunks. `format` must stay valid. */
void stress_mock_write(struct stress_mock *stress, uint64_t thread, unsigned chunks_max,
                       const struct stress_mock_message *message);

/* Writes the header of a message at an address. */
void stress_mock_header(struct stress_mock *stress, uint64_t address, const struct stress_mock_message *message);

#endif
