/* jitdump FILE: reads a jitdump, the file in which a runtime records the code that it compiles. It needs no target. */
#include <cdacq/jitdump.h>
#include <inttypes.h>
#include <stdio.h>

static void print_lines(const struct cdacq_jitdump_record *record)
{
    struct cdacq_jitdump_entry entry;
    uint64_t cursor = 0;
    entry.size = sizeof entry;
    while (cdacq_jitdump_record_next_entry(record, &cursor, &entry, NULL) == CDACQ_OK)
        printf("  %#" PRIx64 " %s:%" PRIu32 "\n", entry.code_addr, entry.name, entry.line);
}

int main(int argc, char **argv)
{
    struct cdacq_error error;
    struct cdacq_jitdump *jitdump;
    struct cdacq_jitdump_record record;
    enum cdacq_status status;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 64;
    }
    if (cdacq_jitdump_open(argv[1], 0, &jitdump, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 2;
    }
    record.size = sizeof record;
    while ((status = cdacq_jitdump_next(jitdump, &record, &error)) == CDACQ_OK) {
        if (record.error) /* later records are not affected */
            fprintf(stderr, "%s\n", record.error);
        if (record.kind == CDACQ_JITDUMP_DEBUG_INFO)
            print_lines(&record);
        if (record.kind == CDACQ_JITDUMP_LOAD && record.as.load.name)
            printf("%#" PRIx64 " %" PRIu64 " %s\n", record.as.load.code_addr, record.as.load.code_size,
                   record.as.load.name);
    }
    if (status < 0)
        fprintf(stderr, "%s\n", error.message);
    cdacq_jitdump_close(jitdump);
    return status < 0 ? 2 : 0;
}
