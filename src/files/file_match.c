#include "src/files/file_match.h"

#include <stdio.h>

#include "formats/elf.h"
#include "formats/metadata.h"
#include "formats/pe.h"
#include "formats/ready_to_run.h"
#include "util/text.h"
#include "util/vector.h"

enum {
    SAMPLE_MAX = 8, /* read-only pages to compare */
    BUILD_ID_SIZE_MAX = 64,
    NOTE_MAX = 64 * 1024, /* of a file, in all its segments, in which the build-id is looked for; a real one has few */
};

/*
 * The cost of searching for bytes of a file: a step for each mapping, and LOOK_COST for each access to memory. A
 * damaged core may map a file a million times; a real one maps each assembly a few times. All comparisons of a
 * candidate share one budget; a single-file app takes some hundred steps for each assembly.
 */
enum { BUDGET = 1024 * 1024, LOOK_COST = 16 };

enum { BUDGET_OF_A_STEP = 4 }; /* what is done in the time of a step of work, about */

DEFINE_VECTOR(file_offsets, uint64_t);

struct comparison {
    struct target *target;
    const struct mapped_file *file;
    struct file_candidate *candidate;
    struct file_offsets pe_begins; /* of the PE images in it */
    unsigned budget;
    uint64_t compared; /* bytes */
    bool matches, differs;
    char *why;
    size_t why_size;
};

/* Copies what the target itself holds of [offset, offset + size) of the file in one mapping of it. */
static bool dumped_in(struct comparison *comparison, const struct mapping *mapping, uint64_t offset, void *buffer,
                      size_t size)
{
    struct target *target = comparison->target;
    struct span span;
    if (offset < mapping->offset || !range_fits(offset - mapping->offset, size, mapping->end - mapping->begin))
        return false;
    uint64_t address = mapping->begin + (offset - mapping->offset);
    size_t done = 0;
    while (done < size && comparison->budget >= LOOK_COST) {
        comparison->budget -= LOOK_COST;
        if (!target->ops->dumped_at(target, address + done, &span))
            break;
        size_t n = (size_t)MIN(span.end - (address + done), (uint64_t)(size - done));
        memcpy((uint8_t *)buffer + done, span.bytes + (address + done - span.begin), n);
        done += n;
    }
    return done == size;
}

/* Copies the bytes from a mapping, writable or not, in which the target holds them. Returns that mapping, or NULL. */
static const struct mapping *dumped_where(struct comparison *comparison, bool writable, uint64_t offset, void *buffer,
                                          size_t size)
{
    const struct mapped_file *file = comparison->file;
    for (size_t i = mapped_file_mappings_to(file, offset);
         i-- > 0 && file->mappings[i]->reach > offset && comparison->budget;) {
        const struct mapping *mapping = file->mappings[i];
        comparison->budget--;
        if ((mapping->access == MAPPING_WRITABLE) == writable && dumped_in(comparison, mapping, offset, buffer, size))
            return mapping;
    }
    return NULL;
}

/* The same for any mapping; one that the process cannot write to is preferred. */
static const struct mapping *dumped_at_offset(struct comparison *comparison, uint64_t offset, void *buffer, size_t size)
{
    const struct mapping *mapping = dumped_where(comparison, false, offset, buffer, size);
    return mapping ? mapping : dumped_where(comparison, true, offset, buffer, size);
}

static void set_differs(struct comparison *comparison, const char *reason)
{
    if (!comparison->differs)
        snprintf(comparison->why, comparison->why_size, "%s", reason);
    comparison->differs = true;
}

static bool is_blank(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

/* The PE image that an offset of the file is in, and the offset as an RVA. */
static bool open_pe_at(const struct comparison *comparison, uint64_t offset, struct bytes_extent *part, struct pe *ret,
                       uint32_t *ret_rva)
{
    const struct file_candidate *candidate = comparison->candidate;
    const uint64_t *begin = NULL;
    for (size_t i = 0; i < comparison->pe_begins.count; i++) {
        const uint64_t *other = &comparison->pe_begins.items[i];
        begin = *other <= offset && (!begin || *other > *begin) ? other : begin;
    }
    if (!begin)
        return false;
    struct bytes whole = bytes_of_buffer(candidate->bytes, candidate->size);
    struct bytes bytes = bytes_of_extent(&whole, *begin, candidate->size - *begin, part);
    return pe_open(&bytes, false, ret) >= 0 && pe_rva(ret, offset - *begin, ret_rva);
}

enum relocation_verdict { RELOCATION_ALL, RELOCATION_NOT_ALL, RELOCATION_UNKNOWN };

/*
 * Whether relocation explains each difference between the target's bytes and the file's: code of arm64 has addresses in
 * it. Not known if relocations are damaged, or more than there is budget for. *ret_blank: nothing else than zeros is
 * equal.
 */
static enum relocation_verdict explain_by_relocation(struct comparison *comparison, uint64_t offset,
                                                     const uint8_t *dumped, size_t size, bool *ret_blank)
{
    enum { OPEN_COST = 128, BEGINS_OF_A_STEP = 8 };
    const uint8_t *bytes = comparison->candidate->bytes + offset;
    struct bytes_extent part;
    struct pe pe;
    uint32_t rva;
    bool relocated[PAGE_SIZE];
    size_t cost = OPEN_COST + comparison->pe_begins.count / BEGINS_OF_A_STEP;
    *ret_blank = true;
    if (cost > comparison->budget)
        return RELOCATION_UNKNOWN;
    comparison->budget -= (unsigned)cost;
    if (!open_pe_at(comparison, offset, &part, &pe, &rva))
        return RELOCATION_NOT_ALL;
    if (pe_mark_relocated(&pe, rva, (uint32_t)size, &comparison->budget, relocated) != CDACQ_OK)
        return RELOCATION_UNKNOWN;
    for (size_t i = 0; i < size; i++) {
        if (!relocated[i] && dumped[i] != bytes[i])
            return RELOCATION_NOT_ALL;
        *ret_blank &= relocated[i] || !bytes[i];
    }
    return RELOCATION_ALL;
}

/*
 * Compares bytes of the file with the target; of a sample, but for what relocation changes. `reason` is for a
 * difference. False if the target does not hold them, nothing needs comparing, or, for a sample, the file has zeros
 * there. A sample is not compared with a writable mapping: the process may have changed it. A file is not read where
 * the target holds nothing.
 */
static bool compare_part(struct comparison *comparison, uint64_t offset, size_t size, bool is_sample,
                         const char *reason)
{
    uint8_t dumped[PAGE_SIZE];
    const struct file_candidate *candidate = comparison->candidate;
    if (candidate->is_mapped_one || size > sizeof dumped || !range_fits(offset, size, candidate->size) ||
        !(is_sample ? dumped_where(comparison, false, offset, dumped, size)
                    : dumped_at_offset(comparison, offset, dumped, size)))
        return false;
    comparison->compared += size;
    if (is_sample && is_blank(candidate->bytes + offset, size))
        return false;
    bool equal = memcmp(dumped, candidate->bytes + offset, size) == 0, blank = false;
    enum relocation_verdict verdict = equal       ? RELOCATION_ALL
                                      : is_sample ? explain_by_relocation(comparison, offset, dumped, size, &blank)
                                                  : RELOCATION_NOT_ALL;
    comparison->matches |= verdict == RELOCATION_ALL && !blank;
    if (verdict == RELOCATION_NOT_ALL)
        set_differs(comparison, reason);
    return verdict != RELOCATION_UNKNOWN && !blank;
}

static bool compare_bytes(struct comparison *comparison, uint64_t offset, size_t size, const char *reason)
{
    return compare_part(comparison, offset, size, false, reason);
}

/*
 * Compares a few pages, spread over the constant extents. Pages of zeros prove nothing. Of an assembly, the last part
 * of an extent counts as a page, and all is compared if it is certainly another file. An ELF file is not compared like
 * that: the runtime writes into a read-only page of its own, and debuggers and uprobes write into code.
 */
static void compare_samples(struct comparison *comparison, bool is_pe)
{
    const struct file_candidate *candidate = comparison->candidate;
    unsigned compared = 0;
    bool whole = is_pe && mapped_file_is_another(comparison->file, candidate);
    for (size_t i = 0; i < candidate->constant.count && !candidate->is_mapped_one; i++) {
        const struct file_extent *extent = &candidate->constant.items[i];
        if (!(extent->access & FILE_EXTENT_UNKNOWN))
            continue; /* another mapping of the same extent may be writable */
        uint64_t pages = (extent->end - extent->begin + (is_pe ? PAGE_SIZE - 1 : 0)) / PAGE_SIZE;
        uint64_t step = whole ? 1 : MAX(pages / SAMPLE_MAX, (uint64_t)1);
        for (uint64_t page = 0; page < pages && (whole || compared < SAMPLE_MAX) && !comparison->differs;
             page += step) {
            uint64_t begin = extent->begin + page * PAGE_SIZE, size = MIN(extent->end - begin, (uint64_t)PAGE_SIZE);
            compared +=
                compare_part(comparison, begin, (size_t)size, true, "its bytes are not those that the target holds");
        }
    }
}

/* ---- ELF ---- */

/* Finds the build-id among the notes of a segment. Takes from *notes_left, which all segments of a file share. */
static bool find_build_id(const struct elf_file *elf, const uint8_t *bytes, const struct elf_segment *segment,
                          unsigned *notes_left, struct elf_note_bytes *ret)
{
    for (uint64_t at = 0;
         *notes_left && elf_note_next(elf->class, bytes + segment->offset, segment->file_size, 4, &at, ret);
         --*notes_left)
        if (elf_note_is_build_id(&ret->note, ret->name) && ret->note.desc_size <= BUILD_ID_SIZE_MAX)
            return true;
    return false;
}

static void compare_build_id(struct comparison *comparison, const struct elf_file *elf,
                             const struct elf_segment *segment, unsigned *notes_left)
{
    struct elf_note_bytes view;
    struct file_candidate *candidate = comparison->candidate;
    if (!range_fits(segment->offset, segment->file_size, candidate->size) ||
        !find_build_id(elf, candidate->bytes, segment, notes_left, &view))
        return;
    compare_bytes(comparison, (uint64_t)(view.desc - candidate->bytes), view.note.desc_size, "it has another build-id");
    bool is_only = candidate->tag.kind == FILE_TAG_NONE; /* of several identities, none is kept */
    file_tag_set(&candidate->tag, FILE_TAG_ELF, view.desc, is_only ? view.note.desc_size : 0);
}

static bool is_stripped_of_contents(const struct elf_file *elf)
{
    struct elf_section section;
    for (unsigned i = 0; elf_file_section(elf, i, &section); i++)
        if (section.type == SHT_NOBITS && (section.flags & SHF_EXECINSTR))
            return true;
    return false;
}

/* False if the file is no ELF file that can be read. *ret_end is the end of what the loader maps and may relocate. */
static bool compare_elf(struct comparison *comparison, uint64_t *ret_end)
{
    struct file_candidate *candidate = comparison->candidate;
    struct bytes bytes = bytes_of_buffer(candidate->bytes, candidate->size);
    struct elf_file elf;
    struct elf_segment segment;
    unsigned notes_left = NOTE_MAX;
    *ret_end = 0;
    if (!elf_file_open(&bytes, &elf))
        return false;
    /* A file of debugging information has the program's headers without its contents. */
    if (is_stripped_of_contents(&elf))
        set_differs(comparison, "it holds debugging information only");
    for (unsigned i = 0; elf_file_segment(&elf, i, &segment); i++) {
        uint64_t end = add_saturated(segment.offset, segment.file_size);
        if (segment.type == PT_LOAD)
            *ret_end = MAX(*ret_end, end);
        /* Relocation changes writable segments, including those that become read-only afterwards (RELRO). */
        if (segment.type == PT_LOAD && !(segment.flags & PF_W))
            file_candidate_add_constant(candidate, segment.offset, end, FILE_EXTENT_CONSTANT);
        else if (segment.type == PT_NOTE)
            compare_build_id(comparison, &elf, &segment, &notes_left);
    }
    return true;
}

/* ---- PE ---- */

/* A PE image: a whole file, or one of those in a single-file app. */
struct pe_in_file {
    struct pe pe;
    struct bytes_extent part;
    uint64_t begin; /* file offset of its first byte */
};

/* The READYTORUN_HEADER's offset in the image: the CLR header names it, or, in a composite image, an export does. */
static bool find_r2r_header(const struct pe *pe, uint64_t *ret)
{
    struct pe_clr clr;
    uint32_t rva = 0;
    if (pe_read_clr(pe, &clr) == CDACQ_OK)
        rva = clr.managed_native_header.rva;
    if (!rva)
        pe_find_export(pe, "RTR_HEADER", &rva);
    return rva && pe_offset(pe, rva, R2R_HEADER_SIZE, ret) == CDACQ_OK;
}

/* Tables of an image that contracts/ reads and that stay constant, even in a writable section. */
static const uint8_t constant_tables[] = {R2R_RUNTIME_FUNCTIONS, R2R_METHODDEF_ENTRYPOINTS, R2R_EXCEPTION_INFO,
                                          R2R_DEBUG_INFO,        R2R_INSTANCE_ENTRYPOINTS,  R2R_COMPONENT_ASSEMBLIES,
                                          R2R_HOT_COLD_MAP};

static uint32_t word_in_file(void *context, uint64_t at)
{
    uint32_t word = 0;
    bytes_u32(context, at, &word);
    return word;
}

/* Adds the ReadyToRun tables as constant. The runtime functions, which dumps hold most often, identify the file. */
static void compare_r2r_tables(struct comparison *comparison, const struct pe_in_file *image)
{
    const struct pe *pe = &image->pe;
    struct bytes bytes = pe->bytes;
    struct r2r_source source = {.word = word_in_file, .context = &bytes};
    struct r2r_header header;
    struct r2r_section section;
    uint64_t at, offset;
    if (!find_r2r_header(pe, &at) || !r2r_header_read(&source, at, &header))
        return;
    for (size_t i = 0; i < ARRAY_SIZE(constant_tables); i++) {
        if (!r2r_section_find(&source, &header.sections, constant_tables[i], &section) ||
            pe_offset(pe, section.rva, section.size, &offset) != CDACQ_OK)
            continue;
        offset += image->begin;
        file_candidate_add_constant(comparison->candidate, offset, offset + section.size, FILE_EXTENT_ALWAYS);
        for (unsigned part = 0; constant_tables[i] == R2R_RUNTIME_FUNCTIONS && part < SAMPLE_MAX; part++) {
            size_t n = MIN(section.size, 512u);
            compare_bytes(comparison, offset + (uint64_t)(section.size - n) / SAMPLE_MAX * part, n,
                          "it has other runtime functions");
        }
    }
}

/*
 * Compares a field of the headers that identifies an image. In a single-file app, the page with the headers of the
 * first assembly may also be the last one of the executable's data: there, variables have taken the place of the
 * headers.
 */
static void compare_field(struct comparison *comparison, uint64_t offset, const char *name, uint32_t value)
{
    uint8_t dumped[4];
    char reason[100];
    if (comparison->candidate->is_mapped_one || !dumped_where(comparison, false, offset, dumped, sizeof dumped))
        return;
    snprintf(reason, sizeof reason, "its %s is %08x, the target's %08x", name, value, load_u32(dumped, false));
    compare_bytes(comparison, offset, 4, reason);
}

static void compare_mvid(struct comparison *comparison, const struct pe_in_file *image)
{
    struct bytes_extent part;
    struct bytes blob;
    struct metadata metadata;
    struct metadata_module module;
    if (comparison->candidate->is_mapped_one || pe_metadata(&image->pe, &part, &blob) < 0 ||
        metadata_open(&blob, &metadata) < 0 || metadata_module(&metadata, 1, &module) < 0 || !module.mvid)
        return;
    uint64_t offset = image->begin + part.offset + metadata.guids.offset + (uint64_t)(module.mvid - 1) * 16;
    compare_bytes(comparison, offset, 16, "it has another MVID");
}

/* Compares the PE image at a file offset. False if there is none. */
static bool compare_pe(struct comparison *comparison, uint64_t begin)
{
    struct file_candidate *candidate = comparison->candidate;
    struct pe_in_file image = {.begin = begin};
    struct bytes whole = bytes_of_buffer(candidate->bytes, candidate->size);
    struct bytes bytes = bytes_of_extent(&whole, begin, candidate->size - begin, &image.part);
    if (pe_open(&bytes, false, &image.pe) < 0)
        return false;
    (void)file_offsets_append(&comparison->pe_begins, begin); /* without memory, relocated words differ */
    const struct pe *pe = &image.pe;
    file_candidate_add_constant(candidate, begin, begin + pe->headers_size, FILE_EXTENT_CONSTANT);
    for (unsigned i = 0; i < pe->section_count; i++) {
        const struct pe_section *section = &pe->sections[i];
        uint64_t offset = begin + section->file_offset;
        if (!(section->characteristics & (unsigned)PE_SECTION_WRITE))
            file_candidate_add_constant(candidate, offset, offset + section->file_size, FILE_EXTENT_CONSTANT);
    }
    if (!begin) {
        struct pe_identity identity = {pe->time_stamp, pe->image_size};
        file_tag_set(&candidate->tag, FILE_TAG_PE, &identity, sizeof identity);
    }
    uint64_t coff = begin + load_u32(candidate->bytes + begin + 0x3c, false) + UINT64_C(4);
    compare_field(comparison, coff + 4, "time stamp", pe->time_stamp);
    compare_field(comparison, coff + 20 + 56, "SizeOfImage", pe->image_size);
    compare_mvid(comparison, &image);
    compare_r2r_tables(comparison, &image);
    return true;
}

enum { BUNDLE_ALIGNMENT = 16 };

/*
 * Compares the assemblies after the segments of a single-file app. Each starts in the first page of a mapping, at any
 * aligned offset.
 */
static void compare_bundle(struct comparison *comparison, uint64_t segments_end)
{
    const struct file_candidate *candidate = comparison->candidate;
    uint64_t seen = UINT64_MAX;
    for (size_t i = 0; i < comparison->file->mapping_count; i++) {
        uint64_t page = align_down(comparison->file->mappings[i]->offset, PAGE_SIZE);
        if (page == seen || add_saturated(page, PAGE_SIZE) <= segments_end)
            continue;
        seen = page;
        for (uint64_t in_page = 0; in_page < PAGE_SIZE; in_page += BUNDLE_ALIGNMENT) {
            uint64_t begin = page + in_page;
            if (!range_fits(begin, 64, candidate->size) || memcmp(candidate->bytes + begin, "MZ", 2) != 0)
                continue;
            if (comparison->budget < LOOK_COST)
                return;
            comparison->budget -= LOOK_COST;
            if (compare_pe(comparison, begin))
                break;
        }
    }
}

/* Compares the kind of a file whose headers cannot be read: there is nothing else to compare with the target. */
static void compare_kind(struct comparison *comparison, bool is_elf, bool is_pe)
{
    uint8_t magic[SELFMAG];
    if (comparison->candidate->is_mapped_one || !dumped_at_offset(comparison, 0, magic, sizeof magic))
        return;
    if (!is_elf && memcmp(magic, ELFMAG, SELFMAG) == 0)
        set_differs(comparison, "it is no ELF file");
    else if (!is_pe && memcmp(magic, "MZ", 2) == 0)
        set_differs(comparison, "it is no PE image");
}

enum file_match compare_mapped_file(struct target *target, const struct mapped_file *file,
                                    struct file_candidate *candidate, char *why, size_t why_size)
{
    struct comparison comparison = {
        .target = target,
        .file = file,
        .candidate = candidate,
        .budget = BUDGET,
        .matches = candidate->is_mapped_one,
        .why = why,
        .why_size = why_size,
    };
    uint64_t segments_end = 0;
    if (!candidate->is_mapped_one)
        (void)target_list_mappings(target, NULL); /* without them, nothing can be compared */
    bool is_elf = compare_elf(&comparison, &segments_end);
    bool is_pe = !is_elf && compare_pe(&comparison, 0);
    if (is_elf && !target->partial) /* else there are no mappings to go by, and the process is read */
        compare_bundle(&comparison, segments_end);
    compare_kind(&comparison, is_elf, is_pe);
    /* A read-only mapping of what the loader does not relocate equals the file. */
    file_candidate_add_constant(candidate, segments_end, candidate->size, FILE_EXTENT_READ_ONLY);
    compare_samples(&comparison, is_pe);
    work_add_steps(&target->work, (BUDGET - comparison.budget) / BUDGET_OF_A_STEP +
                                      comparison.compared / WORK_BYTES_OF_A_STEP + candidate->constant.count);
    file_offsets_deinit(&comparison.pe_begins);
    if (comparison.differs)
        return FILE_DIFFERS;
    return comparison.matches ? FILE_MATCHES : FILE_UNKNOWN;
}

/* ---- Identity ---- */

enum { HEAD_LINE = 64 };

/* The first page of a file. Bytes that the target does not hold are zero. */
struct head {
    uint8_t bytes[PAGE_SIZE];
    uint64_t lines; /* bit mask of the lines that the target holds */
};

static void read_head(struct comparison *comparison, struct head *head)
{
    uint8_t line[HEAD_LINE];
    *head = (struct head){0};
    const struct mapping *mapping = dumped_at_offset(comparison, 0, line, sizeof line);
    for (unsigned i = 0; mapping && i < PAGE_SIZE / HEAD_LINE; i++)
        if (dumped_in(comparison, mapping, i * HEAD_LINE, line, sizeof line)) {
            memcpy(head->bytes + i * HEAD_LINE, line, sizeof line);
            head->lines |= UINT64_C(1) << i;
        }
}

static bool head_has(const struct head *head, uint64_t offset, uint64_t size)
{
    if (!size || !range_fits(offset, size, PAGE_SIZE))
        return false;
    for (uint64_t i = offset / HEAD_LINE; i <= (offset + size - 1) / HEAD_LINE; i++)
        if (!(head->lines >> i & 1))
            return false;
    return true;
}

/* A file system has no longer names than fit; a longer one is that of no file. */
static void write_key(struct file_identity *ret, const char *name, const char *kind, const char *key)
{
    if ((size_t)snprintf(ret->key, sizeof ret->key, "%s/%s%s/%s", name, kind, key, name) >= sizeof ret->key)
        ret->key[0] = '\0';
}

static void identify_elf(const struct head *head, const char *name, struct file_identity *ret)
{
    struct bytes bytes = bytes_of_buffer(head->bytes, sizeof head->bytes);
    struct elf_file elf;
    struct elf_segment segment;
    struct elf_note_bytes view;
    unsigned notes_left = NOTE_MAX;
    if (!elf_file_open(&bytes, &elf))
        return;
    for (unsigned i = 0; elf_file_segment(&elf, i, &segment); i++)
        if (segment.type == PT_NOTE && head_has(head, segment.offset, segment.file_size) &&
            find_build_id(&elf, head->bytes, &segment, &notes_left, &view)) {
            memcpy(ret->build_id, view.desc, view.note.desc_size);
            ret->build_id_size = view.note.desc_size;
        }
    if (!ret->build_id_size)
        return;
    char hex[2 * sizeof ret->build_id + 1];
    text_hex(hex, ret->build_id, ret->build_id_size);
    snprintf(ret->text, sizeof ret->text, "build-id %s", hex);
    write_key(ret, name, "elf-buildid-", hex);
}

static void identify_pe(const struct head *head, const char *name, struct file_identity *ret)
{
    enum { UP_TO_SIZE_OF_IMAGE = 4 + 20 + 60 };
    struct bytes bytes = bytes_of_buffer(head->bytes, sizeof head->bytes);
    struct pe pe;
    if (pe_open(&bytes, true, &pe) < 0 || !head_has(head, load_u32(head->bytes + 0x3c, false), UP_TO_SIZE_OF_IMAGE))
        return;
    snprintf(ret->text, sizeof ret->text, "time stamp %08x, size 0x%x", pe.time_stamp, pe.image_size);
    ret->pe = (struct pe_identity){pe.time_stamp, pe.image_size};
    ret->is_pe = true;
    char key[2 * 8 + 1];
    snprintf(key, sizeof key, "%08X%x", pe.time_stamp, pe.image_size);
    write_key(ret, name, "", key);
}

/* Source of both keys: dotnet/diagnostics documentation/symbols/SSQP_Key_Conventions.md. */
static void identify(const struct head *head, const struct mapped_file *file, struct file_identity *ret)
{
    const char *name = path_basename(file->path);
    if (memcmp(head->bytes, ELFMAG, SELFMAG) == 0)
        identify_elf(head, name, ret);
    else if (head->lines)
        identify_pe(head, name, ret);
}

void identify_mapped_file(struct target *target, const struct mapped_file *file, struct file_identity *ret)
{
    struct head head;
    struct comparison comparison = {.target = target, .file = file, .budget = BUDGET};
    (void)target_list_mappings(target, NULL); /* without them, nothing is known */
    read_head(&comparison, &head);
    identify(&head, file, ret);
}

void identify_local_file(struct target *target, const struct mapped_file *file, struct file_identity *ret)
{
    const struct file_candidate *content = &file->content;
    struct head head = {.lines = UINT64_MAX};
    (void)target;
    *ret = (struct file_identity){0};
    if (!content->bytes || content->size < sizeof head.bytes)
        return;
    memcpy(head.bytes, content->bytes, sizeof head.bytes);
    identify(&head, file, ret);
}
