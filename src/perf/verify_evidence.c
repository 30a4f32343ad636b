#include "src/perf/verify_evidence.h"

#include "contracts/code_lookup/range_section_map.h"
#include "formats/perf_name.h"
#include "src/lookup/answer.h"
#include "src/lookup/opened_target.h"

enum { CODE_CHUNK = 4096 };

enum agreement evidence_compare_names(const struct file_record *record, const struct cdacq_method *method)
{
    if (!method->name)
        return AGREE_UNKNOWN;
    bool is_same =
        perf_name_is_of(record->name, record->name_length, method->name, method->name_length) ||
        (record->line && perf_name_take_line(record->name, record->name_length, method->name, method->name_length));
    return is_same ? AGREE_YES : AGREE_NO;
}

enum agreement evidence_compare_code(struct cdacq_session *session, const struct file_record *record, uint64_t address,
                                     uint64_t *ret_differs)
{
    uint8_t chunk[CODE_CHUNK];
    struct reader *reader = &session->resolver.reader;
    const uint8_t *code = record->code;
    if (!code || !record->size)
        return AGREE_UNKNOWN;
    reader_begin(reader, FUEL_INDEX);
    for (uint64_t done = 0; done < record->size; done += sizeof chunk) {
        size_t size = (size_t)MIN(record->size - done, (uint64_t)sizeof chunk);
        if (!reader_try_copy(reader, address + done, chunk, size))
            return AGREE_UNKNOWN;
        if (memcmp(chunk, code + done, size) == 0)
            continue;
        size_t i = 0;
        while (chunk[i] == code[done + i])
            i++;
        *ret_differs = done + i;
        return AGREE_NO;
    }
    return AGREE_YES;
}

static void find_once(struct cdacq_session *session, const struct file_record *record, struct evidence *ret)
{
    *ret = (struct evidence){.name = AGREE_UNKNOWN, .code = AGREE_UNKNOWN};
    answer_find(&session->resolver, record->address, &ret->method);
    if (ret->method.answer != CDACQ_ANSWER_MANAGED)
        return;
    ret->at_start = evidence_part_start(&ret->method) == record->address;
    ret->same_range = ret->at_start && evidence_part_size(&ret->method) == record->size && !record->addresses_differ;
    ret->name = evidence_compare_names(record, &ret->method);
    if (ret->at_start)
        ret->code = evidence_compare_code(session, record, record->address, &ret->code_differs);
}

/* The page of code that is new in a running process may have been read before the code was. */
void evidence_find(struct cdacq_session *session, const struct file_record *record, struct evidence *ret)
{
    struct epoch_tries tries = {0};
    bool answered = true;
    do
        find_once(session, record, ret);
    while (ret->code == AGREE_NO && epoch_again_or_fail(&session->resolver.epoch, &tries, &answered));
    if (!answered)
        ret->code = AGREE_UNKNOWN;
}

bool evidence_matches(const struct evidence *evidence)
{
    return evidence->same_range && evidence->name != AGREE_NO && evidence->code != AGREE_NO;
}

enum code_lifetime evidence_code_lifetime(struct cdacq_session *session, uint64_t address)
{
    struct reader *reader = &session->resolver.reader;
    struct execution_manager *manager = &session->resolver.target->manager;
    struct range_section section;
    struct epoch_tries tries = {0};
    bool releasable, answered = true;
    epoch_watch(&session->resolver.epoch);
    do {
        reader_begin(reader, FUEL_LOOKUP);
        /* A section without methods is newer than the record. */
        if (execution_manager_section(manager, reader, address, &section))
            releasable = section.flags & RANGE_SECTION_COLLECTIBLE ||
                         jit_manager_of(&section)->method_kind == CDACQ_CODE_UNKNOWN;
        else
            releasable = execution_manager_reaches(manager, reader, address);
    } while (epoch_again_or_fail(&session->resolver.epoch, &tries, &answered));
    return reader_failed(reader) ? CODE_LIFETIME_UNKNOWN
           : releasable          ? CODE_LIFETIME_RELEASABLE
                                 : CODE_LIFETIME_PERMANENT;
}
