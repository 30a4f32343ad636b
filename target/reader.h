/*
 * reader.h: typed reads for one task, in the target's byte order and pointer size.
 *
 * - Sticky error. The first failed read is kept (status, address, what was read); every later read returns 0 without
 *   touching memory. An algorithm checks once, at its end, with reader_status(), before it uses a value: a sticky zero
 *   must never be taken for "not found".
 * - Fuel. Each read and each step of a loop costs a unit of a fixed amount, so that every call ends, even in corrupt or
 *   cyclic memory. Running out has its own status and names the loop.
 * - Work. What all tasks use is counted as work of the target (target/work.h), which has a bound of its own.
 * - Nested tasks. Work whose cost and failure belong to something that is kept (an image, a module) runs between
 *   reader_enter() and reader_leave(), with its own fuel and failure. The outer task then continues unchanged.
 *
 * A reader belongs to one thread.
 */
#ifndef CDACQ_TARGET_READER_H
#define CDACQ_TARGET_READER_H

#include "util/base.h"
#include "target/target.h"

struct read_log;

/* Fuel of one call, in reads and steps. docs/limits.md has the same numbers. */
enum {
    FUEL_LOOKUP = 100 * 1000,       /* one address to its method */
    FUEL_NAME = 100 * 1000,         /* one method to its name */
    FUEL_INDEX = 64 * 1000 * 1000,  /* every method of one code range */
    FUEL_HEAP = 2000 * 1000 * 1000, /* every object of the heap */
    FUEL_OPEN = 4 * 1000 * 1000,    /* finding and reading the descriptor */
    WINDOW_MAX = 256 * 1024 * 1024, /* bytes */
    FUEL_SLICE = 64 * 1024,         /* of a task, after which it is seen what others have used of all work */
};

/* Why something cannot be read. Caches keep it, so that every use reports it again. */
struct reader_failure {
    enum cdacq_status status; /* CDACQ_OK: there is no failure */
    uint64_t address;         /* of the failed read */
    const char *what;         /* "RangeSection.Flags", or the loop that ran out of fuel; static; NULL where unknown */
};

/* The state of one task. Its members are private to reader.h and reader.c. */
struct reader_task {
    uint32_t fuel;    /* of this slice */
    uint32_t counted; /* the fuel when it was last counted as work of the target */
    uint32_t reserve; /* the fuel of further slices */
    bool unverified;  /* bytes of an unconfirmed file were read */
    struct reader_failure failure;
    const char *loop; /* the last loop to make a step, for the message when fuel runs out */
};

struct layout;

struct reader {
    struct target *target;
    struct span hint;     /* of the last read; most reads are near it */
    struct span constant; /* the last one before it that does not change: many reads alternate with those of an image */
    bool is_noted;        /* reads of the hint are logged or recorded */
    struct read_log *log; /* of reads of a running process; or NULL */
    const struct layout *layout; /* of the runtime's structures, for descriptors/fields.h; NULL: none */
    uint8_t pointer_size;
    bool big_endian;
    bool dumped_only; /* files may not stand in: for comparing a file with the dump */
    struct reader_task task;
};

void reader_init(struct reader *reader, struct target *target, unsigned pointer_size, bool big_endian);

/* Forgets the last span: an epoch has begun. Reads of what the process may change are logged from now on, or not. */
static inline void reader_forget(struct reader *reader, struct read_log *log)
{
    reader->hint = reader->constant = (struct span){0};
    reader->log = log;
}

/* Logs reads elsewhere, or, if NULL, not at all. Returns the log until now. */
static inline struct read_log *reader_log(struct reader *reader, struct read_log *log)
{
    struct read_log *before = reader->log;
    reader_forget(reader, log);
    return before;
}

/* Adds the fuel that the task has used to the work of the target. */
static inline void reader_count(struct reader *reader)
{
    if (reader->target)
        work_add_steps(&reader->target->work, reader->task.counted - reader->task.fuel);
    reader->task.counted = reader->task.fuel;
}

/* Starts a new task, without a failure. It gets less fuel where the bound on all work is near. */
static inline void reader_begin(struct reader *reader, uint32_t fuel)
{
    reader_count(reader);
    if (reader->target)
        fuel = (uint32_t)MIN((uint64_t)fuel, work_left(&reader->target->work));
    uint32_t slice = MIN(fuel, (uint32_t)FUEL_SLICE);
    reader->task = (struct reader_task){.fuel = slice, .counted = slice, .reserve = fuel - slice};
}

/* The same for work that is done even if the bound was reached: what was found until then is written. */
static inline void reader_begin_last(struct reader *reader, uint32_t fuel)
{
    reader_count(reader);
    reader->task = (struct reader_task){.fuel = fuel, .counted = fuel};
}

/* Counts what a reader that will not be used again has taken. The others are counted as they begin or end a task. */
static inline void reader_end(struct reader *reader)
{
    reader_count(reader);
}

#define CLEANUP_READER __attribute__((cleanup(reader_end)))

/* Starts a nested task and returns the outer one, which reader_leave() takes. */
static inline struct reader_task reader_enter(struct reader *reader, uint32_t fuel)
{
    reader_count(reader);
    struct reader_task outer = reader->task;
    reader_begin(reader, fuel);
    return outer;
}

/* Ends a nested task and restores the outer one. Returns the failure of the nested one; status OK without one. */
static inline struct reader_failure reader_leave(struct reader *reader, const struct reader_task *outer)
{
    struct reader_failure failure = reader->task.failure;
    reader_count(reader);
    reader->task = *outer;
    return failure;
}

static inline bool reader_failed(const struct reader *reader)
{
    return UNLIKELY(reader->task.failure.status < 0);
}

/* Makes the reader fail unless it has failed. Returns 0, so that a function with a value can return it. */
uint64_t reader_fail(struct reader *reader, enum cdacq_status status, uint64_t address, const char *what);

/* Makes the reader fail with a kept failure. False where there is none. */
static inline bool reader_fail_again(struct reader *reader, const struct reader_failure *failure)
{
    if (failure->status < 0)
        reader_fail(reader, failure->status, failure->address, failure->what);
    return failure->status < 0;
}

/* Names what was read in a failure without a name. */
static inline void reader_name_failure(struct reader *reader, const char *what)
{
    if (reader_failed(reader) && !reader->task.failure.what)
        reader->task.failure.what = what;
}

/* The failure of the task; status OK where there is none. */
static inline struct reader_failure reader_failure(const struct reader *reader)
{
    return reader->task.failure;
}

/* The status of a kept failure. Sets *err if it is one: what could not be read, where, and why. */
enum cdacq_status reader_report(const struct reader *reader, const struct reader_failure *failure,
                                struct cdacq_error *err);

/* The same for the current task. */
enum cdacq_status reader_status(const struct reader *reader, struct cdacq_error *err);

/* A set of statuses for reader_recover(). */
#define FAILURE(status)  (1u << -(status))
#define FAILURE_ANY      UINT32_MAX
#define FAILURE_BUT_FUEL (FAILURE_ANY & ~FAILURE(CDACQ_ERR_FUEL)) /* without fuel, nothing else can be tried */

/* Clears a failure whose status is in the set, for reads that are optional. True where there was one. */
static inline bool reader_recover(struct reader *reader, uint32_t failures)
{
    bool recovered = reader_failed(reader) && (failures & FAILURE(reader->task.failure.status));
    if (recovered)
        reader->task.failure = (struct reader_failure){0};
    return recovered;
}

static inline uint32_t reader_fuel(const struct reader *reader)
{
    return reader->task.fuel + reader->task.reserve;
}

/* Begins the next slice of the task's fuel. False if there is none: its fuel, or all work of the target, is used up. */
bool reader_begin_slice(struct reader *reader);

/* Charges the task for work outside of it, up to all its fuel: reader_charge, for more units than the slice has. */
void reader_charge_slices(struct reader *reader, uint32_t units);
static inline void reader_charge(struct reader *reader, uint32_t units)
{
    if (UNLIKELY(units > reader->task.fuel))
        reader_charge_slices(reader, units);
    else
        reader->task.fuel -= units;
}

/* Whether the task has read bytes of a file that nothing in the target could confirm. */
static inline bool reader_unverified(const struct reader *reader)
{
    return reader->task.unverified;
}

/* Adds the same of bytes that were read earlier and that the task uses. */
static inline void reader_add_unverified(struct reader *reader, bool unverified)
{
    reader->task.unverified |= unverified;
}

/* Uses one unit of fuel. False when there is none left or the reader has failed. */
static inline bool reader_spend(struct reader *reader)
{
    if (reader_failed(reader))
        return false;
    if (UNLIKELY(reader->task.fuel == 0) && !reader_begin_slice(reader)) {
        reader_fail(reader, CDACQ_ERR_FUEL, 0, reader->task.loop ? reader->task.loop : "reading memory");
        return false;
    }
    reader->task.fuel--;
    return true;
}

/* One step of the loop `what`, which a message names when the fuel runs out. False: leave the loop. */
static inline bool reader_step(struct reader *reader, const char *what)
{
    reader->task.loop = what;
    return reader_spend(reader);
}

/* Copies [address, address + size), over several spans if needed. False, and the reader fails, if a byte is missing. */
bool reader_copy(struct reader *reader, uint64_t address, void *buffer, size_t size);

/* The same for bytes that may be absent: fails the reader only when fuel runs out. */
bool reader_try_copy(struct reader *reader, uint64_t address, void *buffer, size_t size);

/* The bytes if they are in one span, otherwise NULL without failing. Valid until the next read. */
const uint8_t *reader_try_view(struct reader *reader, uint64_t address, size_t size);

/*
 * The bytes of one span from `address` on, at most `max`; *ret_size is how many. NULL, without failing: none is there.
 */
const uint8_t *reader_try_run(struct reader *reader, uint64_t address, size_t max, size_t *ret_size);

/*
 * The same of bytes that do not change, for a use in other tasks, too: valid as long as the target. NULL also where
 * each read is recorded. *ret_unverified: they are of a file that nothing in the target could confirm; whoever uses
 * them adds that to the task.
 */
const uint8_t *reader_try_lasting_view(struct reader *reader, uint64_t address, size_t size, bool *ret_unverified);

uint8_t read_u8(struct reader *reader, uint64_t address);
uint16_t read_u16(struct reader *reader, uint64_t address);
uint32_t read_u32(struct reader *reader, uint64_t address);
uint64_t read_u64(struct reader *reader, uint64_t address);
/* As read_u32, but never from a file. */
uint32_t read_own_u32(struct reader *reader, uint64_t address);

/* The file that is mapped at `address` is not what the process has: the answer does not hold, and is formed again. */
void reader_distrust_file(struct reader *reader, uint64_t address);
uint64_t read_pointer(struct reader *reader, uint64_t address);
/* `width` is 1, 2, 4 or 8. */
uint64_t read_uint(struct reader *reader, uint64_t address, unsigned width);

/*
 * Takes memory from what all work on the target may keep. False, and the reader fails, if that bound is reached. What a
 * target keeps until it is closed is never returned.
 */
bool reader_take_memory(struct reader *reader, uint64_t bytes, const char *what);

/*
 * Bytes that are checked once and then read without checks: the target's own, or a copy where they are not in one span.
 * Deinit it in either case. It must not outlive the target.
 */
struct window {
    const uint8_t *bytes;
    size_t size;
    void *owned;
    struct work *work; /* that a copy's memory was taken from */
};

/* False, and the reader fails, when a byte is missing or `size` is above WINDOW_MAX. `what` names it in messages. */
bool reader_window(struct reader *reader, uint64_t address, uint64_t size, const char *what, struct window *ret);
void window_deinit(struct window *window);

/*
 * Reads a NUL-terminated string of at most `max` bytes. *ret is allocated and belongs to the caller. False, and the
 * reader fails, when memory or `max` ends before a NUL.
 */
bool reader_string(struct reader *reader, uint64_t address, size_t max, char **ret);

#endif
