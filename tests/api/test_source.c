/*
 * test_source.c: lines in answers, and where PDBs are found. A mock process has the method Plain.Add of
 * tests/fixtures/pdb: from native offset 0 on its code is that of IL offset 0, line 11, and from 16 on that of 5, line
 * 14.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "formats/pe_debug.h"
#include "formats/portable_pdb/portable_pdb.h"
#include "src/lookup/opened_target.h"
#include "tests/support/check_main.h"
#include "tests/support/fixture_file.h"
#include "tests/support/il_versions.h"
#include "tests/support/mock_support.h"

static const uint8_t debug_info[] = {0x05, 0x42, 0x03, 0x82, 0x11, 0x22}; /* of version 1 */

static struct mock *mock;
static struct cdacq_target *target;
static struct cdacq_session *session;
static struct cdacq_error error;
static uint64_t start, image_base, module, method_desc;
static uint8_t *image, *pdb;
static size_t image_size, pdb_size;
static char folder[64], path[256], module_path[128], key[PE_DEBUG_KEY_SIZE];

static void setup(void)
{
    strcpy(folder, "/tmp/cdacq-source-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(module_path, sizeof module_path, "%s/app/Lines.dll", folder);
    pdb = fixture_file("pdb/Lines.pdb", &pdb_size);
}

static void close_target(void)
{
    cdacq_session_destroy(session);
    cdacq_target_close(target);
    session = NULL;
    target = NULL;
}

static void teardown(void)
{
    char command[128];
    close_target();
    mock_destroy(mock);
    mock = NULL;
    free(image);
    free(pdb);
    image = pdb = NULL;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Writes a file below the folder, with its folders. */
static void write_file(const char *name, const void *bytes, size_t size)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *slash = path + strlen(folder); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

/* A process that maps `fixture` as app/Lines.dll and has compiled its first method. */
static void make_process(const char *fixture)
{
    size_t count;
    uint64_t stride;
    uint32_t type;
    struct bytes_extent part;
    struct bytes blob;
    struct metadata metadata;
    struct pe pe;
    struct pe_debug debug;
    image = fixture_file(fixture, &image_size);
    struct bytes bytes = bytes_of_buffer(image, image_size);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_read_debug(&pe, &debug), CDACQ_OK);
    pe_debug_symbol_key(&debug, false, key);
    ck_assert_int_eq(pe_metadata(&pe, &part, &blob), CDACQ_OK);
    ck_assert_int_eq(metadata_open(&blob, &metadata), CDACQ_OK);
    ck_assert_int_eq(metadata_method_owner(&metadata, 1, &type), CDACQ_OK);

    mock = mock_create(&(struct mock_options){.pointer_size = 8, .seed = 3});
    struct mock_heap *heap = mock_heap_create(mock, &(struct mock_heap_options){.size = 0x10000});
    module = mock_module(mock, &(struct mock_module_options){.path = "/other.dll",
                                                             .metadata = image + part.offset,
                                                             .metadata_size = (size_t)blob.size});
    image_base = mock_map(mock, 0, align_up(image_size, PAGE_SIZE), MOCK_READ, module_path, 0);
    mock_write(mock, image_base, image, image_size);
    mock_set(mock, module, "Module.Base", image_base);
    uint64_t table = mock_method_table(mock, module, type);
    method_desc = mock_method_descs(mock, table, 1, 1, &stride);
    start = mock_method(heap, &(struct mock_method){.size = 64, .method_desc = method_desc});
    mock_contract(mock, "DebugInfo", "1");
    mock_publish(mock, NULL);
    mock_write(mock, mock_functions(mock, &count)->debug_info, debug_info, sizeof debug_info);
    mock_check(mock);
}

static void open_process(enum carrier carrier, const struct cdacq_options *options)
{
    close_target();
    target = mock_open(mock, carrier, options);
    ck_assert_int_eq(cdacq_session_create(target, &session, &error), CDACQ_OK);
}

/* Options with one module path below the folder, and the flags. */
static struct cdacq_options options_of(const char *below, unsigned flags)
{
    static char directory[128];
    static const char *const directories[] = {directory};
    snprintf(directory, sizeof directory, "%s%s", folder, below);
    return (struct cdacq_options){
        .size = sizeof(struct cdacq_options), .flags = flags, .module_paths = directories, .module_path_count = 1};
}

static struct cdacq_source source_at(unsigned offset)
{
    struct cdacq_source source = {.size = sizeof source};
    ck_assert_int_eq(cdacq_session_source_at(session, start + offset, &source, &error), CDACQ_OK);
    return source;
}

static void check_lines(void)
{
    for (unsigned offset = 0; offset < 64; offset++) {
        struct cdacq_method method = {.size = sizeof method};
        struct cdacq_source source = source_at(offset);
        uint32_t line = offset < 16 ? 11 : 14;
        int32_t il_offset;
        ck_assert_msg(source.problem == NULL, "%s", source.problem);
        ck_assert_uint_eq(source.line, line);
        ck_assert_uint_eq(source.column, offset < 16 ? 5 : 9);
        ck_assert_uint_eq(source.end_line, line);
        ck_assert_uint_eq(source.end_column, offset < 16 ? 6 : 20);
        ck_assert_str_eq(source.file, "/_/src/Lines.cs");
        ck_assert_str_eq(source.url, "https://example.com/src/Lines.cs?raw=1");
        ck_assert_int_eq(source.il_offset, offset < 16 ? 0 : 5);
        ck_assert_int_eq(cdacq_session_il_offset_at(session, start + offset, &il_offset, &error), CDACQ_OK);
        ck_assert_int_eq(il_offset, source.il_offset);
        ck_assert_int_eq(cdacq_session_method_at(session, start + offset, &method, &error), CDACQ_OK);
        ck_assert_uint_eq(method.line, line);
        ck_assert_uint_eq(method.column, source.column);
        ck_assert_str_eq(method.file, "/_/src/Lines.cs");
        ck_assert_str_eq(method.source_url, "https://example.com/src/Lines.cs?raw=1");
    }
}

/* Whether a PDB was there, but not used, follows from the reason here. */
static int check_refused(const struct cdacq_pdb_info *info, void *context)
{
    if (info->base == image_base) {
        ck_assert_int_eq(info->refused, info->problem && !strstr(info->problem, " was not found"));
        ++*(int *)context;
    }
    return 0;
}

static void check_no_line(const char *problem)
{
    int listed = 0;
    struct cdacq_method method = {.size = sizeof method};
    struct cdacq_source source = source_at(16);
    ck_assert_ptr_nonnull(source.problem);
    ck_assert_msg(strstr(source.problem, problem) != NULL, "%s", source.problem);
    ck_assert(!source.line && !source.file && !source.url && !source.pdb && !source.pdb_embedded);
    ck_assert_int_eq(source.il_offset, 5);
    ck_assert_int_eq(cdacq_session_method_at(session, start, &method, &error), CDACQ_OK);
    ck_assert(!method.line && !method.column && !method.file && !method.source_url && !method.error);
    ck_assert_str_eq(method.name, "Lines.Plain.Add(int, int)");
    ck_assert_int_eq(cdacq_session_visit_pdbs(session, check_refused, &listed, &error), CDACQ_OK);
    ck_assert_int_eq(listed, 1);
}

START_TEST(lines_come_from_the_pdb_beside_the_module)
{
    make_process("pdb/Lines.dll");
    write_file("app/Lines.pdb", pdb, pdb_size);
    open_process(CARRIER_CORE, NULL);
    check_lines();
    ck_assert_str_eq(source_at(0).pdb, path);
    ck_assert(!source_at(0).pdb_embedded);
}
END_TEST

START_TEST(a_pdb_is_read_where_files_are_not_mapped)
{
    make_process("pdb/Lines.dll");
    write_file("app/Lines.pdb", pdb, pdb_size);
    struct cdacq_options options = {.size = sizeof options, .flags = CDACQ_OPEN_PREAD};
    open_process(CARRIER_CORE_PREAD, &options);
    check_lines();
    ck_assert_int_eq(truncate(path, 100), 0); /* of a mapping, this would raise SIGBUS */
    check_lines();
}
END_TEST

/* A PDB in allocated memory counts among what the target keeps. */
START_TEST(a_pdb_that_is_read_takes_memory)
{
    uint64_t taken[2];
    make_process("pdb/Lines.dll");
    write_file("app/Lines.pdb", pdb, pdb_size);
    const struct cdacq_options options = {.size = sizeof options, .memory_max = 64 * 1024 * 1024};
    for (int i = 0; i < 2; i++) {
        open_process(CARRIER_CORE_PREAD, &options);
        target->policy->pread = i; /* of files; the core is open */
        check_lines();
        taken[i] = target->memory->work.memory;
    }
    ck_assert_uint_eq(taken[1] - taken[0], pdb_size);
}
END_TEST

START_TEST(lines_come_from_the_embedded_pdb)
{
    make_process("pdb/Embedded.dll");
    open_process(_i, NULL);
    check_lines();
    ck_assert(source_at(0).pdb_embedded);
    ck_assert_ptr_null(source_at(0).pdb);
}
END_TEST

START_TEST(an_embedded_pdb_that_is_damaged_is_not_used)
{
    struct pe pe;
    struct pe_debug debug;
    make_process("pdb/Embedded.dll");
    struct bytes bytes = bytes_of_buffer(image, image_size);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_read_debug(&pe, &debug), CDACQ_OK);
    mock_write_uint(mock, image_base + debug.embedded_offset + 5, 1, image[debug.embedded_offset + 5] ^ 0xff);
    mock_write_uint(mock, image_base + debug.embedded_offset + debug.embedded_size / 2, 4, 0xffffffff);
    open_process(CARRIER_CORE, NULL);
    check_no_line("embedded PDB: its compressed data are damaged");
    write_file("app/Lines.pdb", pdb, pdb_size); /* the image names this one, too */
    open_process(CARRIER_CORE, NULL);
    check_lines();
}
END_TEST

START_TEST(an_embedded_pdb_without_its_mark_is_told)
{
    struct pe pe;
    struct pe_debug debug;
    make_process("pdb/Embedded.dll");
    struct bytes bytes = bytes_of_buffer(image, image_size);
    ck_assert_int_eq(pe_open(&bytes, false, &pe), CDACQ_OK);
    ck_assert_int_eq(pe_read_debug(&pe, &debug), CDACQ_OK);
    mock_write_uint(mock, image_base + debug.embedded_offset - 8, 1, 'm'); /* MPDB, and the size */
    open_process(CARRIER_CORE, NULL);
    check_no_line("embedded PDB: its header is damaged");
}
END_TEST

/* Gives the runtime a PDB with the assembly, as Assembly.Load does. */
static void load_pdb(const void *bytes, size_t size, size_t size_of_buffer)
{
    uint64_t stream = mock_alloc(mock, 64, 8), buffer = mock_alloc(mock, MAX(size, 1), 8);
    mock_write(mock, buffer, bytes, size);
    mock_set(mock, stream, "CGrowableSymbolStream.Buffer", buffer);
    mock_set(mock, stream, "CGrowableSymbolStream.Size", size_of_buffer);
    mock_set(mock, module, "Module.GrowableSymbolStream", stream);
}

START_TEST(lines_come_from_the_loaded_pdb)
{
    make_process("pdb/Lines.dll");
    load_pdb(pdb, pdb_size, pdb_size);
    open_process(_i, NULL);
    check_lines();
    ck_assert(source_at(0).pdb_embedded);
    ck_assert_ptr_null(source_at(0).pdb);
}
END_TEST

START_TEST(a_loaded_pdb_that_does_not_match_is_not_used)
{
    make_process("pdb/Lines.dll");
    load_pdb("BSJB", 4, 4);
    open_process(CARRIER_CORE, NULL);
    check_no_line("its loaded PDB: it is not a portable PDB");
    load_pdb(pdb, pdb_size, UINT32_MAX);
    open_process(CARRIER_CORE, NULL);
    check_no_line("its loaded PDB: it is larger than 256 MiB");
    load_pdb(pdb, pdb_size, 128 * 1024 * 1024);
    open_process(CARRIER_CORE, NULL);
    check_no_line("its loaded PDB: it is not in the target");
    mock_set(mock, module, "Module.GrowableSymbolStream", 1 << 20); /* nothing is there */
    open_process(CARRIER_CORE, NULL);
    check_no_line("its loaded PDB: it is not in the target");
    write_file("app/Lines.pdb", pdb, pdb_size);
    open_process(CARRIER_CORE, NULL);
    check_lines();
}
END_TEST

START_TEST(no_pdb_was_loaded)
{
    make_process("pdb/Embedded.dll");
    load_pdb(pdb, pdb_size, 0);
    open_process(CARRIER_CORE, NULL);
    check_lines();
}
END_TEST

START_TEST(a_missing_pdb_is_named_with_its_key)
{
    char expected[256];
    make_process("pdb/Lines.dll");
    open_process(CARRIER_CORE, NULL);
    snprintf(expected, sizeof expected,
             "Lines.pdb is needed for source lines and was not found (symbol server key Lines.pdb/%s/Lines.pdb)", key);
    check_no_line(expected);
}
END_TEST

/* Gives the PDB that the image names a name of `length` bytes: the entry then refers to a copy behind the file. */
static void lengthen_pdb_name(char *ret, size_t length)
{
    enum { ENTRY_DATA = 16, ENTRY_POINTER = 24, FIXED = 24 }; /* offsets in an entry; what is before the name */
    const uint8_t *debug = memmem(image, image_size, "RSDS", 4);
    ck_assert_ptr_nonnull(debug);
    uint8_t pointer[4];
    store_u32(pointer, (uint32_t)(debug - image), false);
    const uint8_t *entry = (uint8_t *)memmem(image, image_size, pointer, sizeof pointer) - ENTRY_POINTER;
    memset(ret, 'n', length);
    ret[length] = '\0';
    mock_write(mock, image_base + image_size, debug, FIXED);
    mock_write(mock, image_base + image_size + FIXED, ret, length + 1);
    mock_write_uint(mock, image_base + (uint64_t)(entry - image) + ENTRY_DATA, 4, FIXED + length + 1);
    mock_write_uint(mock, image_base + (uint64_t)(entry - image) + ENTRY_POINTER, 4, image_size);
}

/* A part of a key would not be found on any server. */
START_TEST(a_key_that_does_not_fit_is_not_shown)
{
    char name[256], known[2 * sizeof name + 80], expected[1024];
    make_process("pdb/Lines.dll");
    lengthen_pdb_name(name, _i ? sizeof name - 1 : 100);
    open_process(CARRIER_CORE, NULL);
    snprintf(known, sizeof known, "symbol server key %s/%s/%s", name, key, name);
    snprintf(expected, sizeof expected, "%s is needed for source lines and was not found (%s)", name,
             _i ? "a symbol server key that is too long for this message" : known);
    check_no_line(expected);
}
END_TEST

START_TEST(own_paths_are_not_tried_for_memory_of_the_caller)
{
    make_process("pdb/Lines.dll");
    write_file("app/Lines.pdb", pdb, pdb_size);
    open_process(CARRIER_MEMORY, NULL);
    check_no_line("was not found");
    struct cdacq_options options = options_of("/app", 0);
    open_process(CARRIER_MEMORY, &options);
    check_lines();
}
END_TEST

/* ---- Files that do not match ---- */

START_TEST(a_pdb_with_another_id_is_named_and_not_used)
{
    struct portable_pdb opened;
    make_process("pdb/Lines.dll");
    ck_assert_int_eq(portable_pdb_open(pdb, pdb_size, &opened), CDACQ_OK);
    pdb[opened.id_offset + _i] ^= 1;
    write_file("app/Lines.pdb", pdb, pdb_size);
    open_process(CARRIER_CORE, NULL);
    check_no_line("/app/Lines.pdb is not the PDB of Lines.dll: it has another id; wanted: symbol server key Lines");
}
END_TEST

START_TEST(a_pdb_with_another_checksum_is_named_and_not_used)
{
    make_process("pdb/Lines.dll");
    pdb[pdb_size - 1] ^= 1;
    write_file("app/Lines.pdb", pdb, pdb_size);
    open_process(CARRIER_CORE, NULL);
    check_no_line("/app/Lines.pdb is not the PDB of Lines.dll: it has the right id, but another checksum");
}
END_TEST

START_TEST(what_is_no_portable_pdb_is_named_and_not_used)
{
    static const char windows[64] = "Microsoft C/C++ MSF 7.00\r\n\032DS";
    make_process("pdb/Lines.dll");
    write_file("app/Lines.pdb", windows, sizeof windows);
    open_process(CARRIER_CORE, NULL);
    check_no_line("it has the format of Windows PDBs");
    write_file("app/Lines.pdb", image, image_size);
    open_process(CARRIER_CORE, NULL);
    check_no_line("it is not a portable PDB");
}
END_TEST

START_TEST(a_pipe_is_not_read)
{
    make_process("pdb/Lines.dll");
    write_file("app/other", "", 0);
    snprintf(path, sizeof path, "%s/app/Lines.pdb", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    open_process(CARRIER_CORE, NULL);
    check_no_line("was not found");
}
END_TEST

/* ---- Hostile PDBs ---- */

/* The image then names a checksum of an unknown kind only. */
static void forget_checksum(void)
{
    static const uint8_t sha[] = "SHA256";
    uint8_t *checksum = memmem(image, image_size, sha, sizeof sha);
    ck_assert_ptr_nonnull(checksum);
    mock_write(mock, image_base + (uint64_t)(checksum - image), "SHA0", 4);
}

/* Without a checksum, the id confirms the PDB if it is a hash of it; other contents give lines that are marked. */
START_TEST(a_pdb_without_a_checksum_is_confirmed_by_its_id)
{
    struct cdacq_method method = {.size = sizeof method};
    bool is_changed = _i == 1;
    make_process("pdb/Lines.dll");
    forget_checksum();
    pdb[pdb_size - 1] ^= is_changed;
    write_file("app/Lines.pdb", pdb, pdb_size);
    open_process(CARRIER_CORE, NULL);
    ck_assert_uint_eq(source_at(0).line, 11);
    ck_assert_int_eq(source_at(0).verified, !is_changed);
    ck_assert_int_eq(cdacq_session_method_at(session, start, &method, &error), CDACQ_OK);
    ck_assert_int_eq(method.module_verified, !is_changed);
}
END_TEST

/*
 * A PDB whose first method has the points of IL offsets 0 and 5, and then `hidden` ones. The image names no checksum.
 */
static void write_pdb_with_hidden_points(unsigned hidden)
{
    static const uint8_t begin[] = {0, 0, 0, 1, 11, 5, 5, 0, 20, 6, 8}, point[] = {1, 0, 0};
    struct portable_pdb opened;
    uint32_t blob_size = (uint32_t)(sizeof begin + hidden * sizeof point);
    size_t size = pdb_size + 4 + blob_size;
    ck_assert_int_eq(portable_pdb_open(pdb, pdb_size, &opened), CDACQ_OK);
    struct metadata_heap *blobs = &opened.metadata.blobs; /* the last stream; the new blob follows it */
    uint64_t row = opened.metadata.tables[METADATA_METHOD_DEBUG_INFORMATION].offset;
    ck_assert_uint_eq(blobs->offset + blobs->size, pdb_size);
    CLEANUP_FREE uint8_t *large = malloc(size);
    memcpy(large, pdb, pdb_size);
    store_u16(large + row + 2, (uint16_t)blobs->size, false);
    store_u32(large + pdb_size, 0xc0000000 | blob_size, true);
    memcpy(large + pdb_size + 4, begin, sizeof begin);
    for (uint8_t *p = large + pdb_size + 4 + sizeof begin; p < large + size; p += sizeof point)
        memcpy(p, point, sizeof point);
    uint8_t *header = memmem(large, 256, "#Blob", sizeof "#Blob");
    store_u32(header - 4, (uint32_t)(size - blobs->offset), false);
    write_file("app/Lines.pdb", large, size);
    forget_checksum();
}

START_TEST(points_beyond_the_bound_are_not_decoded)
{
    make_process("pdb/Lines.dll");
    write_pdb_with_hidden_points(1000);
    open_process(CARRIER_CORE, NULL);
    ck_assert_uint_eq(source_at(0).line, 11);
    write_pdb_with_hidden_points(4 * 1024 * 1024 / 3);
    open_process(CARRIER_CORE, NULL);
    struct cdacq_source source = source_at(0);
    ck_assert_uint_eq(source.line, 0);
    ck_assert_str_eq(source.problem, "the method, or the session, has more sequence points than are read");
}
END_TEST

/* ---- Where files are found ---- */

static bool find_pdb(const struct cdacq_need *need, char *ret_path, size_t size, void *context)
{
    if (need->kind != CDACQ_NEED_PDB)
        return false;
    ck_assert_str_eq(need->path, "Lines.pdb");
    ck_assert_ptr_nonnull(strstr(need->symbol_key, key));
    ck_assert_ptr_null(need->build_id);
    snprintf(ret_path, size, "%s", path);
    ++*(int *)context;
    return true;
}

START_TEST(the_opener_can_find_it)
{
    int asked = 0;
    make_process("pdb/Lines.dll");
    write_file("elsewhere/x", pdb, pdb_size);
    struct cdacq_options options = {.size = sizeof options, .find_file = find_pdb, .find_file_context = &asked};
    open_process(CARRIER_MEMORY, &options);
    check_lines();
    ck_assert_int_eq(asked, 1);
}
END_TEST

START_TEST(it_is_found_below_a_sysroot)
{
    char below[256], root[128];
    const char *const roots[] = {root};
    make_process("pdb/Lines.dll");
    snprintf(root, sizeof root, "%s/root", folder);
    snprintf(below, sizeof below, "root%s/app/Lines.pdb", folder);
    write_file(below, pdb, pdb_size);
    struct cdacq_options options = {.size = sizeof options, .sysroots = roots, .sysroot_count = 1};
    open_process(CARRIER_MEMORY, &options);
    check_lines();
}
END_TEST

/* In a symbol store, the file is found even among others of its name. */
START_TEST(it_is_found_in_a_symbol_store)
{
    char other[PE_DEBUG_KEY_SIZE], name[256];
    make_process("pdb/Lines.dll");
    if (_i == 1)
        for (char *p = key; *p; p++)
            *p = (char)(*p >= 'a' && *p <= 'z' ? *p - 'a' + 'A' : *p);
    if (_i == 2)
        strcpy(key + 32, "ffffffff");
    if (_i == 3)
        strcpy(key + 32, "1");
    snprintf(name, sizeof name, _i == 4 ? "store/lines.pdb/%s/lines.pdb" : "store/Lines.pdb/%s/Lines.pdb", key);
    write_file(name, pdb, pdb_size);
    strcpy(other, key);
    other[0] = other[0] == '0' ? '1' : '0';
    snprintf(name, sizeof name, "store/Lines.pdb/%s/Lines.pdb", other);
    write_file(name, "no PDB", 6);
    struct cdacq_options options = options_of("/store", 0);
    open_process(CARRIER_MEMORY, &options);
    check_lines();
}
END_TEST

START_TEST(it_is_found_anywhere_below_a_module_path)
{
    make_process("pdb/Lines.dll");
    write_file("modules/a/Lines.pdb", "no PDB", 6);
    write_file("modules/b/c/Lines.pdb", pdb, pdb_size);
    struct cdacq_options options = options_of("/modules", 0);
    open_process(CARRIER_MEMORY, &options);
    check_lines();
    ck_assert_str_eq(source_at(0).pdb, path);
}
END_TEST

/* ---- In a snapshot ---- */

static void add_note(const void *bytes, size_t size)
{
    ck_assert(target_pdbs_append(&target->memory->pdbs, (struct target_pdb){.bytes = bytes, .size = size}));
}

/* PDBs with the right id and another checksum, in all more than may be kept, do not hide the one after them. */
START_TEST(refused_pdbs_of_a_snapshot_take_no_memory)
{
    enum { SIZE = 4 * 1024 * 1024, COUNT = 10 };
    make_process("pdb/Lines.dll");
    uint8_t *other = calloc(1, SIZE);
    memcpy(other, pdb, pdb_size);
    const struct cdacq_options options = {.size = sizeof options, .memory_max = 8 * SIZE};
    open_process(CARRIER_MEMORY, &options);
    for (unsigned i = 0; i < COUNT; i++)
        add_note(other, SIZE);
    add_note(pdb, pdb_size);
    check_lines();
    ck_assert(source_at(0).pdb_embedded);
    ck_assert_uint_eq(target->module_pdbs.budget.memory, pdb_size);
    close_target();
    free(other);
}
END_TEST

START_TEST(a_pdb_of_a_snapshot_that_is_not_used_has_a_reason)
{
    make_process("pdb/Lines.dll");
    open_process(CARRIER_MEMORY, NULL);
    add_note(pdb, pdb_size);
    target->module_pdbs.budget.memory = 1024 * 1024 * 1024;
    check_no_line("the snapshot's PDB of Lines.dll: the PDBs of other modules take 1 GiB already");
    ck_assert_uint_eq(target->module_pdbs.budget.memory, 1024 * 1024 * 1024);
}
END_TEST

/* ---- Listing, sessions, other addresses ---- */

static int take_pdb(const struct cdacq_pdb_info *info, void *context)
{
    if (info->base != image_base)
        return 0;
    ck_assert_str_eq(info->module, module_path);
    ck_assert_str_eq(info->path, path);
    ck_assert_ptr_nonnull(strstr(info->key, key));
    ck_assert(!info->embedded && !info->refused && !info->problem);
    ++*(int *)context;
    return 0;
}

START_TEST(pdbs_are_listed)
{
    int count = 0;
    make_process("pdb/Lines.dll");
    write_file("app/Lines.pdb", pdb, pdb_size);
    open_process(CARRIER_CORE, NULL);
    ck_assert_int_eq(cdacq_session_visit_pdbs(session, take_pdb, &count, &error), CDACQ_OK);
    ck_assert_int_eq(count, 1);
    check_lines();
}
END_TEST

START_TEST(sessions_share_a_pdb)
{
    struct cdacq_session *other;
    make_process("pdb/Lines.dll");
    write_file("app/Lines.pdb", pdb, pdb_size);
    open_process(CARRIER_CORE, NULL);
    check_lines();
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(cdacq_session_create(target, &other, &error), CDACQ_OK);
    cdacq_session_destroy(session);
    session = other;
    check_lines();
}
END_TEST

START_TEST(other_addresses_have_no_source)
{
    struct cdacq_source source = {.size = sizeof source, .line = 77};
    int32_t il_offset = 77;
    make_process("pdb/Lines.dll");
    open_process(CARRIER_CORE, NULL);
    ck_assert_int_eq(cdacq_session_source_at(session, image_base, &source, &error), CDACQ_NOT_MANAGED);
    ck_assert_int_eq(cdacq_session_il_offset_at(session, image_base, &il_offset, &error), CDACQ_NOT_MANAGED);
    ck_assert(source.line == 77 && il_offset == 77);
    source.size = 0;
    ck_assert_int_eq(cdacq_session_source_at(session, start, &source, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_visit_pdbs(session, NULL, NULL, &error), CDACQ_ERR_ARGUMENT);
    ck_assert_int_eq(cdacq_session_visit_pdbs(NULL, take_pdb, NULL, &error), CDACQ_ERR_ARGUMENT);
}
END_TEST

/* Changes a byte of the image in the memory of the process. */
static void change_image(size_t offset)
{
    char memory[64];
    uint8_t byte = image[offset] ^ 0xff;
    snprintf(memory, sizeof memory, "/proc/%d/mem", target->memory->pid);
    int fd = open(memory, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)(image_base + offset)), 1);
    close(fd);
}

/* A process can load an assembly where it had another one. */
START_TEST(another_image_at_the_same_place_has_another_pdb)
{
    enum { PE_POINTER = 0x3c, STAMP = 8, ID = 4 };
    if (mock_carriers() <= CARRIER_PROCESS)
        return;
    make_process("pdb/Lines.dll");
    write_file("app/Lines.pdb", pdb, pdb_size);
    struct cdacq_options options = options_of("", 0);
    open_process(CARRIER_PROCESS, &options);
    check_lines();
    const uint8_t *debug = memmem(image, image_size, "RSDS", 4);
    ck_assert_ptr_nonnull(debug);
    change_image(load_u32(image + PE_POINTER, false) + STAMP);
    change_image((size_t)(debug - image) + ID);
    check_no_line("it has another id");
}
END_TEST

/* ---- Replaced IL ---- */

/* The method of the process has the only entry of a table. Returns the entry. */
static uint64_t put_dynamic_il(void)
{
    uint64_t table = mock_new(mock, "DynamicILBlobTable", 0), entry = mock_new(mock, "DynamicILBlobTable", 0);
    mock_set(mock, entry, "DynamicILBlobTable.EntryMethodToken", 0x06000001);
    mock_set(mock, table, "DynamicILBlobTable.Table", entry);
    mock_set(mock, table, "DynamicILBlobTable.TableSize", 1);
    mock_set(mock, module, "Module.DynamicILBlobTable", table);
    return entry;
}

/* A version of the method's IL, in a module of which the runtime keeps the metadata. Returns it. */
static uint64_t put_il_version(enum il_version_source source)
{
    const uint64_t lists[] = {0, il_version_put(mock, source, 0)};
    (void)il_versions_put(mock, module, lists, ARRAY_SIZE(lists));
    mock_set(mock, mock_get(mock, module, "Module.PEAssembly"), "PEAssembly.MDImportIsRW", 1);
    return lists[1];
}

/* An old line of code with other IL would be worse than none. */
START_TEST(replaced_il_has_no_line)
{
    enum { DYNAMIC, NOT_DYNAMIC, EDIT, REJIT, DYNAMIC_UNREADABLE, VERSIONS_UNREADABLE, CODE_DATA_UNREADABLE, CASES };
    static const char replaced[] = "its IL was replaced while the process ran",
                      unknown[] = "whether its IL was replaced while the process ran cannot be read";
    static const char *const problems[CASES] = {replaced, NULL, replaced, NULL, unknown, unknown, unknown};
    enum { MISSING = 0x10 };
    make_process("pdb/Embedded.dll");
    if (_i == DYNAMIC)
        put_dynamic_il();
    else if (_i == NOT_DYNAMIC)
        mock_set(mock, put_dynamic_il(), "DynamicILBlobTable.EntryMethodToken", 0x06000002);
    else if (_i == EDIT || _i == REJIT)
        put_il_version(_i == EDIT ? IL_VERSION_EDIT : IL_VERSION_REJIT);
    else if (_i == DYNAMIC_UNREADABLE)
        mock_set(mock, module, "Module.DynamicILBlobTable", MISSING);
    else if (_i == VERSIONS_UNREADABLE)
        mock_set(mock, put_il_version(IL_VERSION_REJIT), "ILCodeVersionNode.Next", MISSING);
    else
        mock_set(mock, method_desc, "MethodDesc.CodeData", MISSING);
    open_process(CARRIER_CORE, NULL);
    if (problems[_i]) {
        struct cdacq_source source = source_at(16);
        ck_assert_msg(source.problem && strncmp(source.problem, problems[_i], strlen(problems[_i])) == 0, "%s",
                      source.problem);
        ck_assert(!source.line && !source.file);
    } else {
        check_lines();
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("source");
    TCase *tc = tcase_create("source");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, lines_come_from_the_pdb_beside_the_module);
    tcase_add_test(tc, a_pdb_is_read_where_files_are_not_mapped);
    tcase_add_test(tc, a_pdb_that_is_read_takes_memory);
    tcase_add_loop_test(tc, lines_come_from_the_embedded_pdb, CARRIER_MEMORY, CARRIER_CORE_PREAD + 1);
    tcase_add_loop_test(tc, lines_come_from_the_loaded_pdb, CARRIER_MEMORY, CARRIER_CORE_PREAD + 1);
    tcase_add_test(tc, a_loaded_pdb_that_does_not_match_is_not_used);
    tcase_add_test(tc, no_pdb_was_loaded);
    tcase_add_test(tc, an_embedded_pdb_that_is_damaged_is_not_used);
    tcase_add_test(tc, an_embedded_pdb_without_its_mark_is_told);
    tcase_add_test(tc, a_missing_pdb_is_named_with_its_key);
    tcase_add_loop_test(tc, a_key_that_does_not_fit_is_not_shown, 0, 2);
    tcase_add_test(tc, own_paths_are_not_tried_for_memory_of_the_caller);
    tcase_add_loop_test(tc, a_pdb_with_another_id_is_named_and_not_used, 0, PORTABLE_PDB_ID_SIZE);
    tcase_add_test(tc, a_pdb_with_another_checksum_is_named_and_not_used);
    tcase_add_loop_test(tc, a_pdb_without_a_checksum_is_confirmed_by_its_id, 0, 2);
    tcase_add_test(tc, what_is_no_portable_pdb_is_named_and_not_used);
    tcase_add_test(tc, a_pipe_is_not_read);
    tcase_add_test(tc, points_beyond_the_bound_are_not_decoded);
    tcase_add_test(tc, the_opener_can_find_it);
    tcase_add_test(tc, it_is_found_below_a_sysroot);
    tcase_add_loop_test(tc, it_is_found_in_a_symbol_store, 0, 5);
    tcase_add_test(tc, it_is_found_anywhere_below_a_module_path);
    tcase_add_test(tc, refused_pdbs_of_a_snapshot_take_no_memory);
    tcase_add_test(tc, a_pdb_of_a_snapshot_that_is_not_used_has_a_reason);
    tcase_add_test(tc, pdbs_are_listed);
    tcase_add_test(tc, sessions_share_a_pdb);
    tcase_add_test(tc, other_addresses_have_no_source);
    tcase_add_loop_test(tc, replaced_il_has_no_line, 0, 7);
    if (!left_out_emulated("source: another_image_at_the_same_place_has_another_pdb", "no process_vm_readv"))
        tcase_add_test(tc, another_image_at_the_same_place_has_another_pdb);
    suite_add_tcase(s, tc);
    return s;
}

CHECK_MAIN(suite)
