/*
 * reader.h: typed reads for one task. Three ideas make algorithms read like their specification:
 *
 * - Sticky error. The first read that fails is remembered (status, address, what was being read); every later read
 *   returns 0 without touching memory. An algorithm asks once, at its end, through reader_status(): a sticky zero must
 *   never be taken for "not found".
 * - Fuel. Every read and every step of a loop costs a unit; a task starts with a fixed amount. Corrupt or cyclic memory
 *   can therefore not keep a call from ending. Running out has its own status and names the loop.
 * - Nested tasks. Work whose cost and failure belong to something that is kept (an image, a module) runs between
 *   reader_enter() and reader_leave(): it has its own fuel and its own failure, and the outer task goes on unchanged.
 * - Byte order and pointer size are the target's, set once from the descriptor.
 *
 * A reader belongs to one thread.
 */
#ifndef CDACQ_TARGET_READER_H
#define CDACQ_TARGET_READER_H

#include "util/base.h"
#include "target/target.h"

/* Fuel of one call, in reads and steps. Stated in docs/limits.md: keep both in step. */
enum {
    FUEL_LOOKUP = 100 * 1000,       /* one address to its method */
    FUEL_NAME = 100 * 1000,         /* one method to its name */
    FUEL_INDEX = 64 * 1000 * 1000,  /* every method of one code range */
    FUEL_OPEN = 4 * 1000 * 1000,    /* finding and reading the descriptor */
    WINDOW_MAX = 256 * 1024 * 1024, /* bytes that one window may span */
};

/* Why something cannot be read: kept with what is remembered of it, so that every use reports it again. */
struct reader_failure {
    enum cdacq_status status; /* CDACQ_OK: it can */
    uint64_t address;         /* of the failed read */
    const char
        *what; /* "RangeSection.Flags", or the loop that ran out of fuel; a static string, NULL where not known */
};

/* The state of one task. Its members are private to reader.h and reader.c. */
struct reader_task {
    uint32_t fuel;
    bool unverified; /* bytes of a file were read that nothing could confirm */
    struct reader_failure failure;
    const char *loop; /* the loop that made a step last: named by a read that finds no fuel left */
};

struct reader {
    struct target *target;
    struct span hint; /* where the last read was: most reads are near */
    uint8_t pointer_size;
    bool big_endian;
    bool dumped_only; /* take no file's bytes: for comparing a file with the dump */
    struct reader_task task;
};

void reader_init(struct reader *reader, struct target *target, unsigned pointer_size, bool big_endian);

/* Starts a new task: no failure, all its fuel. */
static inline void reader_begin(struct reader *reader, uint32_t fuel)
{
    reader->task = (struct reader_task){.fuel = fuel};
}

/* Starts a nested task and returns the outer one, which reader_leave() takes. */
static inline struct reader_task reader_enter(struct reader *reader, uint32_t fuel)
{
    struct reader_task outer = reader->task;
    reader_begin(reader, fuel);
    return outer;
}

/*
 * Ends a nested task: the outer one goes on as it was. Returns why the nested one failed; status OK where it did not.
 */
static inline struct reader_failure reader_leave(struct reader *reader, const struct reader_task *outer)
{
    struct reader_failure failure = reader->task.failure;
    reader->task = *outer;
    return failure;
}

static inline bool reader_failed(const struct reader *reader)
{
    return UNLIKELY(reader->task.failure.status < 0);
}

/* Makes the reader fail unless it has already. Returns 0, so that a value function can end with it. */
uint64_t reader_fail(struct reader *reader, enum cdacq_status status, uint64_t address, const char *what);

/* Makes the reader fail with a failure that was kept. False where that is none. */
static inline bool reader_fail_again(struct reader *reader, const struct reader_failure *failure)
{
    if (failure->status < 0)
        reader_fail(reader, failure->status, failure->address, failure->what);
    return failure->status < 0;
}

/* Names what was being read, in a failure that has no name yet. */
static inline void reader_name_failure(struct reader *reader, const char *what)
{
    if (reader_failed(reader) && !reader->task.failure.what)
        reader->task.failure.what = what;
}

/* The failure of the task so far; status OK where there is none. */
static inline struct reader_failure reader_failure(const struct reader *reader)
{
    return reader->task.failure;
}

/* The status of a failure that was kept; where it is one, *err says what could not be read, where, and why. */
enum cdacq_status reader_report(const struct reader *reader, const struct reader_failure *failure,
                                struct cdacq_error *err);

/* The same for the task so far. */
enum cdacq_status reader_status(const struct reader *reader, struct cdacq_error *err);

/* A set of statuses for reader_recover(). */
#define FAILURE(status) (1u << -(status))
#define FAILURE_ANY     UINT32_MAX

/* Clears a failure whose status is in the set: the answer can do without what was read. True where there was one. */
static inline bool reader_recover(struct reader *reader, uint32_t failures)
{
    bool recovered = reader_failed(reader) && (failures & FAILURE(reader->task.failure.status));
    if (recovered)
        reader->task.failure = (struct reader_failure){0};
    return recovered;
}

/* The fuel that the task has left. */
static inline uint32_t reader_fuel(const struct reader *reader)
{
    return reader->task.fuel;
}

/* Takes fuel from the task, all of it where it has less: for work that was done outside of the task. */
static inline void reader_charge(struct reader *reader, uint32_t units)
{
    reader->task.fuel -= MIN(reader->task.fuel, units);
}

/* Whether the task has read bytes of a file that nothing could confirm. */
static inline bool reader_unverified(const struct reader *reader)
{
    return reader->task.unverified;
}

/* Notes the same of bytes that were read earlier, for something that the task uses. */
static inline void reader_add_unverified(struct reader *reader, bool unverified)
{
    reader->task.unverified |= unverified;
}

/* One unit of fuel. False when there is none left or the reader has failed. */
static inline bool reader_spend(struct reader *reader)
{
    if (reader_failed(reader))
        return false;
    if (UNLIKELY(reader->task.fuel == 0)) {
        reader_fail(reader, CDACQ_ERR_FUEL, 0, reader->task.loop ? reader->task.loop : "reading memory");
        return false;
    }
    reader->task.fuel--;
    return true;
}

/* One step of the loop `what`, which is named when the fuel runs out. False as reader_spend(): leave the loop. */
static inline bool reader_step(struct reader *reader, const char *what)
{
    reader->task.loop = what;
    return reader_spend(reader);
}

/* Copies [address, address + size); joins runs. False, and the reader fails, when any byte is missing. */
bool reader_copy(struct reader *reader, uint64_t address, void *buffer, size_t size);

/* The same without failing: for what may rightly be absent. Costs fuel, fails only when that runs out. */
bool reader_try_copy(struct reader *reader, uint64_t address, void *buffer, size_t size);

/* The bytes themselves where they are in one run, else NULL, without failing. Good until the next read. */
const uint8_t *reader_try_view(struct reader *reader, uint64_t address, size_t size);

uint8_t read_u8(struct reader *reader, uint64_t address);
uint16_t read_u16(struct reader *reader, uint64_t address);
uint32_t read_u32(struct reader *reader, uint64_t address);
uint64_t read_u64(struct reader *reader, uint64_t address);
uint64_t read_pointer(struct reader *reader, uint64_t address);
/* `width` is 1, 2, 4 or 8. */
uint64_t read_uint(struct reader *reader, uint64_t address, unsigned width);

/*
 * Many bytes at once, without a check for each: either a view of the target's own or a copy where they are not in one
 * run. Deinit it in either case; it must not outlive the target.
 */
struct window {
    const uint8_t *bytes;
    size_t size;
    void *owned;
};

/*
 * False, and the reader fails, when any byte is missing or `size` is above WINDOW_MAX. `what` names it in the message.
 */
bool reader_window(struct reader *reader, uint64_t address, uint64_t size, const char *what, struct window *ret);
void window_deinit(struct window *window);

/*
 * A NUL-terminated string of at most `max` bytes, appended to nothing: *ret is allocated, NUL-terminated, owned by the
 * caller. False, and the reader fails, when memory ends or no NUL comes.
 */
bool reader_string(struct reader *reader, uint64_t address, size_t max, char **ret);

#endif
