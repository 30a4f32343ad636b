/*
 * pdb_points.c: prints what a portable PDB says of methods, for pdbs.py, in the form of tests/fixtures/pdb/judge.
 *
 *     pdb_points PDB
 */
#include <stdio.h>

#include "formats/portable_pdb/portable_pdb.h"
#include "util/file.h"

static void print_points(const struct portable_pdb *pdb, uint32_t rid)
{
    struct sequence_points points;
    struct sequence_point point;
    struct text name = {0};
    uint32_t document = 0;
    if (portable_pdb_points(pdb, rid, &points) < 0)
        puts("no points");
    else
        while (sequence_points_next(&points, &point)) {
            if (point.document != document) {
                text_clear(&name);
                portable_pdb_document_name(pdb, document = point.document, &name);
            }
            printf("%u\t%u\t%u\t%u\t%u\t%s\n", point.il_offset, point.start_line, point.start_column, point.end_line,
                   point.end_column, name.data ? name.data : "?");
        }
    if (points.malformed)
        puts("malformed");
    text_deinit(&name);
}

static void print_pdb(const struct portable_pdb *pdb)
{
    char hex[2 * PORTABLE_PDB_ID_SIZE + 1];
    const uint8_t *json;
    size_t size;
    text_hex(hex, pdb->id, sizeof pdb->id);
    printf("id\t%s\n", hex);
    for (uint32_t rid = 1; rid <= metadata_row_count(&pdb->metadata, METADATA_METHOD_DEBUG_INFORMATION); rid++) {
        printf("method\t0x%08x\n", metadata_token(METADATA_METHOD_DEF, rid));
        print_points(pdb, rid);
    }
    if (portable_pdb_custom(pdb, metadata_token(METADATA_MODULE, 1), portable_pdb_source_link, &json, &size) >= 0 &&
        json) {
        printf("sourcelink\t");
        for (size_t i = 0; i < size; i++)
            putchar(json[i] == '\n' ? ' ' : json[i]);
        putchar('\n');
    }
}

int main(int argc, char **argv)
{
    struct stat st;
    struct portable_pdb pdb;
    size_t size;
    CLEANUP_CLOSE int fd = argc == 2 ? file_open(argv[1], &st) : -1;
    CLEANUP_FREE char *bytes = fd < 0 ? NULL : file_read_all(fd, SIZE_MAX, &size);
    if (!bytes || portable_pdb_open(bytes, size, &pdb) < 0) {
        fprintf(stderr, "usage: pdb_points PDB\n");
        return 2;
    }
    print_pdb(&pdb);
    return 0;
}
