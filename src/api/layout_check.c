/*
 * layout_check.c: whether the runtime lays out what it publishes as this build takes for granted. A release can change
 * what a field means and keep its name, as .NET 11 did with the list of threads. A check takes a few reads.
 */
#include <inttypes.h>
#include <stdio.h>

#include "contracts/thread.h"
#include "contracts/type_system/core_type.h"
#include "src/lookup/opened_session.h"
#include "src/lookup/opened_target.h"
#include "target/threads.h"
#include "util/error.h"

enum { FIRST_THREADS = 64 }; /* of the runtime's list; the process has one at least */

static enum cdacq_status doubt(struct cdacq_error *err, const char *what, const char *why)
{
    return error_set(err, CDACQ_ERR_CORRUPT, 0, "this runtime lays out %s in a way that this build does not know: %s",
                     what, why);
}

/* Whether no process can have memory at an address. */
static bool is_no_address(const struct cdacq_session *session, uint64_t address)
{
    enum { FIRST_PAGES = 0x10000, USER_BITS = 56 };
    return address < FIRST_PAGES || (session->resolver.reader.pointer_size == 8 && address >> USER_BITS);
}

/*
 * Whether what was read cannot be right. That memory is missing is no evidence, nor that it cannot be read: the process
 * may have ended.
 */
static bool is_implausible(struct cdacq_session *session, struct cdacq_error *ret)
{
    enum cdacq_status status = reader_status(&session->resolver.reader, ret);
    return status < 0 && status != CDACQ_ERR_FUEL && status != CDACQ_ERR_IO && status != CDACQ_ERR_NOMEM &&
           (status != CDACQ_ERR_MEMORY || is_no_address(session, ret->address));
}

/* Whether the process has one of the list's first threads, or it is not known which it has. */
static bool has_any(struct cdacq_session *session, const struct thread_list *list)
{
    struct threads threads = {0};
    bool found = target_threads(session->resolver.target->memory, &threads, NULL) < 0 || !threads.count;
    for (size_t i = 0; i < MIN(list->count, (size_t)FIRST_THREADS); i++)
        for (size_t j = 0; j < threads.count && !found; j++)
            found = list->items[i].os_id == (uint32_t)threads.items[j].tid ||
                    list->items[i].os_id == (uint32_t)threads.items[j].inner_tid;
    threads_deinit(&threads);
    return found;
}

static bool has_impossible_id(const struct thread_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].os_id > INT32_MAX && !thread_has_ended(&list->items[i]))
            return true;
    return false;
}

/* Compares the list, which may end where it could not be read further, with the number that the runtime has counted. */
static enum cdacq_status check_count(struct cdacq_session *session, size_t listed, bool is_read,
                                     struct cdacq_error *err)
{
    struct reader *reader = &session->resolver.reader;
    char text[96];
    if (!has_field(reader, F_ThreadStore_ThreadCount))
        return CDACQ_OK;
    reader_begin(reader, FUEL_LOOKUP);
    uint64_t store = read_pointer(reader, reader->layout->globals[G_ThreadStore]);
    uint32_t count = store ? (uint32_t)read_field(reader, store, F_ThreadStore_ThreadCount) : 0;
    bool is_short = is_read && count > listed + 1; /* one may have just been added */
    snprintf(text, sizeof text, "its list has %zu threads%s, and it counts %" PRIu32, listed, is_read ? "" : " or more",
             count);
    if (!reader_failed(reader) && (is_short || listed > (size_t)count + 1))
        return doubt(err, "Thread or ThreadStore", text);
    return CDACQ_OK;
}

/* *ret_runs: the runtime has threads, so that it runs code. */
static enum cdacq_status check_threads(struct cdacq_session *session, bool *ret_runs, struct cdacq_error *err)
{
    struct reader *reader = &session->resolver.reader;
    const struct target *target = session->resolver.target->memory;
    struct thread_list list;
    struct cdacq_error why;
    enum cdacq_status status = CDACQ_OK;
    if (!(session->resolver.target->layout.usable & 1u << LAYOUT_Thread) || !target->ops->threads || target->changes)
        return CDACQ_OK;
    reader_begin(reader, FUEL_OPEN);
    bool is_read = thread_list_read(reader, &list);
    *ret_runs = list.count > 0;
    if (!is_read && is_implausible(session, &why))
        status = doubt(err, "Thread or ThreadStore", why.message);
    else if (has_impossible_id(&list))
        status = doubt(err, "Thread or ThreadStore", "a thread has an id that no thread can have");
    else if (!is_read && list.count && !has_any(session, &list))
        status = doubt(err, "Thread or ThreadStore", "its list does not begin with threads of the process");
    else
        status = check_count(session, list.count, is_read, err);
    thread_list_deinit(&list);
    return status;
}

static enum cdacq_status check_module(struct cdacq_session *session, struct cdacq_error *err)
{
    struct reader *reader = &session->resolver.reader;
    struct target *target = session->resolver.target->memory;
    if (!(session->resolver.target->layout.usable & 1u << LAYOUT_RuntimeTypeSystem) ||
        !has_field(reader, F_Module_Base) || target_list_mappings(target, NULL) < 0)
        return CDACQ_OK;
    reader_begin(reader, FUEL_OPEN);
    uint64_t module = core_module(reader), base = module ? read_field(reader, module, F_Module_Base) : 0;
    struct cdacq_error why;
    if (reader_failed(reader))
        return is_implausible(session, &why) ? doubt(err, "Module", why.message) : CDACQ_OK;
    if (!module)
        return CDACQ_OK;
    const struct mapping *mapping = target_mapping_at(target, base);
    uint8_t magic[2];
    /* A core without NT_FILE lists no assemblies. */
    bool is_listed_nowhere =
        !mapping && reader_try_copy(reader, base, magic, sizeof magic) && memcmp(magic, "MZ", sizeof magic) == 0;
    if (!is_listed_nowhere && (!mapping || mapping->begin != base))
        return doubt(err, "Module", "the core library's image is not where a mapping begins");
    return CDACQ_OK;
}

static int find_range(const struct cdacq_code_range_info *range, void *context)
{
    (void)range;
    *(bool *)context = true;
    return 1;
}

static enum cdacq_status check_ranges(struct cdacq_session *session, struct cdacq_error *err)
{
    bool found = false;
    if (cdacq_session_visit_code_ranges(session, find_range, &found, NULL) < 0 || found)
        return CDACQ_OK;
    return doubt(err, "RangeSectionMap", "it has no ranges of code");
}

enum cdacq_status cdacq_session_check_layout(struct cdacq_session *session, struct cdacq_error *err)
{
    char names[CDACQ_ERROR_MESSAGE_SIZE - 160];
    if (!session)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "no session");
    if (session->resolver.target->is_native) {
        if (err)
            *err = session->resolver.target->problem;
        return session->resolver.target->problem.status;
    }
    resolver_begin(&session->resolver);
    if (layout_is_of_11(&session->resolver.target->layout)) {
        contracts_unknown(&session->resolver.target->descriptor, names, sizeof names);
        if (names[0])
            return error_set(err, CDACQ_ERR_CORRUPT, 0,
                             "this runtime publishes contracts in versions that this build does not read: %s", names);
    }
    size_t count = layout_unpublished(&session->resolver.target->layout, names, sizeof names);
    if (count)
        return error_set(err, CDACQ_ERR_CORRUPT, 0,
                         "this runtime lays out some types in a way that this build does not know: it does not publish "
                         "%s",
                         names);
    bool runs = false;
    enum cdacq_status status = check_threads(session, &runs, err);
    if (status >= 0)
        status = check_module(session, err);
    return status < 0 || !runs ? status : check_ranges(session, err);
}
