/* jitdump_find.c: finds the function that had an address at a time, by reading all records of the file once more. */
#include "src/perf/jitdump_handle.h"
#include "util/sized.h"

/* A search: the function that had the address last. */
struct search {
    uint64_t address;
    bool found;
    struct cdacq_jitdump_place place;
};

/* Whether [begin, begin + size) has the address; it may end with the address space. */
static bool has_address(uint64_t begin, uint64_t size, uint64_t address)
{
    return address >= begin && address - begin < size;
}

static bool overlap(const struct cdacq_jitdump_place *a, const struct cdacq_jitdump_place *b)
{
    return (b->code_size && has_address(a->vma, a->code_size, b->vma)) ||
           (a->code_size && has_address(b->vma, b->code_size, a->vma));
}

/* A function comes to be at a place: it may have the address, or overwrite the function that had it. */
static void take_place_of(struct search *search, const struct cdacq_jitdump_place *place)
{
    const struct cdacq_jitdump_place *old = &search->place;
    if (has_address(place->vma, place->code_size, search->address)) {
        search->found = true;
        search->place = *place;
    } else if (old->load == place->load || overlap(old, place)) {
        search->found = false;
    }
}

/* What moves is of the size that it was loaded with. */
static void search_move(struct search *search, const struct jitdump_stream *scan,
                        const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_move *move = &record->as.move;
    const struct jitdump_place *known = scan->has_places ? jitdump_places_find(&scan->places, move->code_index) : NULL;
    struct cdacq_jitdump_place place = {.size = sizeof place,
                                        .code_index = move->code_index,
                                        .load = move->load,
                                        .vma = move->vma,
                                        .code_addr = move->new_code_addr,
                                        .code_size = known ? known->code_size : move->code_size,
                                        .timestamp = record->timestamp};
    if (move->load)
        take_place_of(search, &place);
}

static void search_load(struct search *search, const struct cdacq_jitdump_record *record)
{
    const struct cdacq_jitdump_load *load = &record->as.load;
    struct cdacq_jitdump_place place = {.size = sizeof place,
                                        .code_index = load->code_index,
                                        .load = record->offset,
                                        .vma = load->vma,
                                        .code_addr = load->code_addr,
                                        .code_size = load->code_size,
                                        .timestamp = record->timestamp};
    take_place_of(search, &place);
}

static void search_record(struct search *search, const struct jitdump_stream *scan,
                          const struct cdacq_jitdump_record *record)
{
    if (record->kind == CDACQ_JITDUMP_LOAD && record->has_fields)
        search_load(search, record);
    else if (record->kind == CDACQ_JITDUMP_MOVE && record->has_fields)
        search_move(search, scan, record);
}

/* Counts what is wrong with the records that a search has seen. The text of the first problem is kept. */
static void note_problem(struct cdacq_jitdump *jitdump, struct cdacq_jitdump_place *found, const char *text)
{
    if (!found->damaged++) {
        error_set(&jitdump->find_problem, CDACQ_ERR_FORMAT, 0, "%s", text);
        found->problem = jitdump->find_problem.message;
    }
}

/* Searches all records. CDACQ_NOT_MANAGED: no function has the address. */
static enum cdacq_status search_all(struct cdacq_jitdump *jitdump, struct jitdump_stream *scan, uint64_t time,
                                    struct search *search, struct cdacq_jitdump_place *ret, struct cdacq_error *err)
{
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_error problem;
    enum cdacq_status status;
    while ((status = jitdump_stream_next(scan, &record, &problem)) == CDACQ_OK) {
        if (record.error && (record.kind == CDACQ_JITDUMP_LOAD || record.kind == CDACQ_JITDUMP_MOVE))
            note_problem(jitdump, ret, record.error);
        if (record.kind != CDACQ_JITDUMP_HEADER && (time == CDACQ_JITDUMP_LAST || record.timestamp <= time))
            search_record(search, scan, &record);
    }
    if (status == CDACQ_DONE)
        status = jitdump_stream_check_end(scan, &problem);
    if (status == CDACQ_ERR_FORMAT && scan->has_header) { /* the records before it are valid */
        note_problem(jitdump, ret, problem.message);
        status = CDACQ_DONE;
    }
    if (status < 0 && err)
        *err = problem;
    return status < 0 ? status : search->found ? CDACQ_OK : CDACQ_NOT_MANAGED;
}

/* Reads the JIT_CODE_LOAD at an offset, after the records before it, which may be about it. */
static enum cdacq_status read_load(struct jitdump_stream *again, uint64_t offset, unsigned flags,
                                   struct cdacq_jitdump_record *ret, struct cdacq_error *err)
{
    enum cdacq_status status = CDACQ_OK;
    while (status == CDACQ_OK && again->offset <= offset) {
        again->flags = again->offset == offset ? flags : 0;
        status = jitdump_stream_next(again, ret, err);
    }
    return status == CDACQ_DONE || (status == CDACQ_OK && (ret->kind != CDACQ_JITDUMP_LOAD || ret->offset != offset))
               ? error_set(err, CDACQ_ERR_IO, offset, "the jitdump has changed while it was read")
               : status;
}

enum cdacq_status cdacq_jitdump_find(struct cdacq_jitdump *jitdump, uint64_t address, uint64_t time,
                                     struct cdacq_jitdump_record *ret, struct cdacq_jitdump_place *ret_place,
                                     struct cdacq_error *err)
{
    struct jitdump_stream scan, *again = &jitdump->found; /* which keeps what *ret points to */
    struct cdacq_jitdump_record record = {.size = sizeof record};
    struct cdacq_jitdump_place found = {.size = sizeof found};
    struct search search = {.address = address};
    enum cdacq_status status = sized_check(ret_place, "struct cdacq_jitdump_place", err);
    if (status >= 0)
        status = sized_check(ret, "struct cdacq_jitdump_record", err);
    if (status >= 0)
        status = jitdump_stream_open_again(&jitdump->stream, &scan, err);
    if (status < 0)
        return status;
    status = search_all(jitdump, &scan, time, &search, &found, err);
    jitdump_stream_close(&scan);
    jitdump_stream_close(again);
    if (status == CDACQ_OK)
        status = jitdump_stream_open_again(&jitdump->stream, again, err);
    if (status == CDACQ_OK)
        status = read_load(again, search.place.load, jitdump->stream.flags & CDACQ_JITDUMP_CODE, &record, err);
    if (status < 0)
        return status;
    if (status == CDACQ_OK) {
        search.place.damaged = found.damaged;
        search.place.problem = found.problem;
        found = search.place;
        sized_copy(ret, &record, sizeof record);
    }
    sized_copy(ret_place, &found, sizeof found);
    return status;
}
