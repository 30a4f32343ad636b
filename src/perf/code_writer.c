#include "src/perf/code_writer.h"

#include <stdio.h>

#include "src/lookup/opened_session.h"
#include "src/perf/sink_reports.h"
#include "util/sized.h"

enum cdacq_status code_writer_take_arguments(struct code_writer *writer, const struct cdacq_sink *sink,
                                             const struct cdacq_written *ret, const char *what, struct cdacq_error *err)
{
    writer->sink.size = sizeof writer->sink;
    if (sized_check(sink, "struct cdacq_sink", NULL) >= 0)
        sized_copy(&writer->sink, sink, sink->size);
    if (!writer->sink.write)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "a %s needs a sink that writes", what);
    return sized_check(ret, "struct cdacq_written", err);
}

void code_writer_put(struct code_writer *writer, const void *bytes, size_t size)
{
    if (writer->stopped || !size)
        return;
    if (writer->record) {
        put_bytes(writer->record, bytes, size);
        return;
    }
    if (writer->sink.write(bytes, size, writer->sink.context))
        writer->stopped = true;
    else
        writer->written.bytes += size;
}

/* Writes the records of an entry that were kept. */
void code_writer_flush(struct code_writer *writer)
{
    struct byte_writer *record = writer->record;
    if (!record)
        return;
    writer->record = NULL;
    if (record->broken)
        writer->stopped = writer->no_memory = true;
    code_writer_put(writer, record->data, record->length);
    record->length = 0;
    writer->record = record;
}

void code_writer_put_name(struct code_writer *writer, const struct code_entry *entry)
{
    code_writer_put(writer, entry->name, entry->name_length);
    code_writer_put(writer, entry->suffix, entry->suffix_length);
}

void code_writer_leave_out(struct code_writer *writer, const struct cdacq_method *method, uint64_t begin, uint64_t size,
                           const char *why)
{
    if (!sink_leave_out(&writer->sink, &writer->written, method, begin, size, why))
        writer->stopped = true;
}

static void write_entry(struct code_writer *writer, const struct code_entry *entry)
{
    writer->unverified = !entry->method->module_verified;
    bool was_put = writer->put(writer, entry);
    code_writer_flush(writer);
    if (!was_put || writer->stopped)
        return;
    writer->written.unverified += writer->unverified;
    if (entry->method->answer == CDACQ_ANSWER_STUB)
        writer->written.stubs++;
    else
        writer->written.methods++;
}

/* The word for a method's tier that the runtime writes after the name; NULL when the tier is not known. */
static const char *tier_of(const struct cdacq_method *method, bool cold)
{
    static const struct {
        const char *tier, *written;
    } words[] = {
        {"Tier0", "QuickJitted"},
        {"Tier1", "OptimizedTier1"},
        {"Tier1OSR", "OptimizedTier1OSR"},
        {"Optimized", "Optimized"},
        {"Tier0Instrumented", "InstrumentedTier"},
        {"Tier1Instrumented", "InstrumentedTierOptimized"},
    };
    if (method->kind == CDACQ_CODE_READY_TO_RUN)
        return cold ? "PreJit-cold" : "PreJIT";
    for (size_t i = 0; method->tier && i < ARRAY_SIZE(words); i++)
        if (strcmp(method->tier, words[i].tier) == 0)
            return words[i].written;
    return NULL;
}

/* Writes the hot or cold part of a method. */
static void write_part(struct code_writer *writer, const struct cdacq_method *method, uint64_t begin, uint64_t size,
                       bool cold)
{
    char suffix[64] = "";
    const char *tier = tier_of(method, cold);
    if (!method->name) {
        code_writer_leave_out(writer, method, begin, size, method->error);
        return;
    }
    if (tier)
        snprintf(suffix, sizeof suffix, "[%s]", tier);
    write_entry(writer,
                &(struct code_entry){method, begin, size, method->name, suffix, method->name_length, strlen(suffix)});
}

/*
 * Finds the next span of memory in [*begin, end). Sets *begin to its start and returns its end, or 0 if there is none.
 * Memory is missing in whole pages.
 */
static uint64_t next_span(struct reader *reader, uint64_t *begin, uint64_t end)
{
    while (*begin < end && reader_step(reader, "stubs") && !reader_try_view(reader, *begin, 1))
        *begin = align_up(*begin + 1, PAGE_SIZE);
    uint64_t at = *begin;
    while (at < end && reader_step(reader, "stubs") && reader_try_view(reader, at, 1))
        at = MIN(reader->hint.end, end);
    return at > *begin && at <= end ? at : 0;
}

/* `method` covers the range that the runtime has reserved for stubs; not all of it need be committed memory. */
static void write_stubs(struct code_writer *writer, const struct cdacq_method *method)
{
    char name[64];
    snprintf(name, sizeof name, "stub <%s>", cdacq_code_kind_text(method->kind));
    struct code_entry entry = {method, method->code_start, method->code_size, name, "", strlen(name), 0};
    uint64_t begin = entry.begin, end = add_saturated(begin, entry.size), span_end;
    struct reader reader = writer->session->resolver.reader;
    reader_begin(&reader, FUEL_LOOKUP);
    if (!writer->with_bytes || !(span_end = next_span(&reader, &begin, end))) {
        write_entry(writer, &entry); /* this reports what is missing */
        return;
    }
    for (; span_end && !writer->stopped; begin = span_end, span_end = next_span(&reader, &begin, end)) {
        entry.begin = begin;
        entry.size = span_end - begin;
        write_entry(writer, &entry);
    }
    if (reader_failed(&reader)) {
        struct cdacq_error error;
        reader_status(&reader, &error);
        code_writer_leave_out(writer, method, begin, end - begin, error.message);
    }
}

int code_writer_visit(const struct cdacq_method *method, void *context)
{
    struct code_writer *writer = context;
    sink_visit(&writer->sink, method);
    if (method->answer == CDACQ_ANSWER_ERROR) {
        code_writer_leave_out(writer, method, method->code_start, method->code_size, method->error);
    } else if (method->answer == CDACQ_ANSWER_STUB) {
        write_stubs(writer, method);
    } else if (method->kind == CDACQ_CODE_JITTED || method->kind == CDACQ_CODE_READY_TO_RUN) {
        write_part(writer, method, method->code_start, method->code_size, false);
        if (method->cold_start && !writer->stopped)
            write_part(writer, method, method->cold_start, method->cold_size, true);
    }
    return writer->stopped;
}
