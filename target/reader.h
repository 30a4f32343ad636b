/*
 * reader.h: typed reads for one task. Three ideas make algorithms read like their specification:
 *
 * - Sticky error. The first read that fails is remembered (status, address, what was being read); every later read
 *   returns 0 without touching memory. An algorithm asks once, at its end, through reader_status(): a sticky zero must
 *   never be taken for "not found".
 * - Fuel. Every read and every step of a loop costs a unit; a call starts with a full tank. Corrupt or cyclic memory
 *   can therefore not keep a call from ending. Running dry has its own status and names the loop.
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

/* Why something cannot be read: kept with what is remembered of it, so that every use tells it again. */
struct reader_failure {
    enum cdacq_status status; /* CDACQ_OK: it can */
    uint64_t address;
    const char *what; /* a static string */
};

struct reader {
    struct target *target;
    struct memory hint; /* where the last read was: most reads are near */
    uint32_t fuel;
    uint8_t pointer_size;
    bool big_endian;
    bool dumped_only; /* take no file's bytes: for judging a file by the dump */
    bool unverified;  /* since it was last cleared, bytes of a file were read that nothing could confirm */
    enum cdacq_status status;
    uint64_t address; /* of the failed read */
    const char *what; /* "RangeSection.Flags", or the loop that ran dry; a static string, NULL where not known */
    const char *loop; /* the loop that was in a step last: a read that finds the tank empty is on its account */
};

void reader_init(struct reader *reader, struct target *target, unsigned pointer_size, bool big_endian);

/* Starts a new task: no error, a full tank. */
static inline void reader_begin(struct reader *reader, uint32_t fuel)
{
    reader->status = CDACQ_OK;
    reader->what = NULL;
    reader->loop = NULL;
    reader->fuel = fuel;
    reader->unverified = false;
}

static inline bool reader_failed(const struct reader *reader)
{
    return UNLIKELY(reader->status < 0);
}

/* Makes the reader fail unless it has already. Returns 0, so that a value function can end with it. */
uint64_t reader_fail(struct reader *reader, enum cdacq_status status, uint64_t address, const char *what);

/* The status of the task so far; on failure *err tells what could not be read, where, and why. */
enum cdacq_status reader_status(const struct reader *reader, struct cdacq_error *err);

/* Takes the failure, if there is one, out of the reader, which goes on without it. */
static inline struct reader_failure reader_take_failure(struct reader *reader)
{
    struct reader_failure failure = {.status = reader->status, .address = reader->address, .what = reader->what};
    reader->status = CDACQ_OK;
    reader->what = NULL;
    return failure;
}

/* Makes the reader fail with a failure that was taken before. False where that was none. */
static inline bool reader_fail_again(struct reader *reader, const struct reader_failure *failure)
{
    if (failure->status < 0)
        reader_fail(reader, failure->status, failure->address, failure->what);
    return failure->status < 0;
}

/* Takes back a failure that is memory missing, where something can be told without it. True where that was so. */
static inline bool reader_forgive(struct reader *reader)
{
    if (reader->status != CDACQ_ERR_MEMORY)
        return false;
    (void)reader_take_failure(reader);
    return true;
}

/* One unit of fuel. False when the tank is empty or the reader has failed. */
static inline bool reader_spend(struct reader *reader)
{
    if (reader_failed(reader))
        return false;
    if (UNLIKELY(reader->fuel == 0)) {
        reader_fail(reader, CDACQ_ERR_FUEL, 0, reader->loop ? reader->loop : "reading memory");
        return false;
    }
    reader->fuel--;
    return true;
}

/* One step of the loop `what`, which is named when the tank runs dry. False as reader_spend(): leave the loop. */
static inline bool reader_step(struct reader *reader, const char *what)
{
    reader->loop = what;
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

/* False, and the reader fails, when any byte is missing or `size` is above WINDOW_MAX. `what` names it in the message.
 */
bool reader_window(struct reader *reader, uint64_t address, uint64_t size, const char *what, struct window *ret);
void window_deinit(struct window *window);

/*
 * A NUL-terminated string of at most `max` bytes, appended to nothing: *ret is allocated, NUL-terminated, owned by the
 * caller. False, and the reader fails, when memory ends or no NUL comes.
 */
bool reader_string(struct reader *reader, uint64_t address, size_t max, char **ret);

#endif
