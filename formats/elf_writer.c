#include "formats/elf_writer.h"

#include <elf.h>

#include "formats/byte_writer.h"
#include "util/sha256.h"

enum {
    PIECE = 8 * 1024, /* of a section that is read */
    NAME_MAX_SIZE = 64,
    NOTE_HEADER_SIZE = 12 + 4, /* with the name "GNU" */
    NOTE_SIZE = NOTE_HEADER_SIZE + ELF_WRITER_BUILD_ID_SIZE,
    TABLE_ALIGN = 8,
};

/* The file, as it is laid out: header, segments, the contents of the sections, names, build-id, table of sections. */
struct layout_of_file {
    const struct elf_writer_image *image;
    uint64_t *offsets;               /* of the sections in the file */
    struct byte_writer names, table; /* .shstrtab; bytes of tables that are formed before they are written */
    uint64_t names_offset, note_offset, sections_offset;
    uint64_t at; /* bytes written so far */
    unsigned segment_count;
    struct sha256 hash;
    bool failed;
};

static size_t header_size(const struct elf_writer_image *image)
{
    return image->wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
}

static size_t segment_size(const struct elf_writer_image *image)
{
    return image->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
}

static bool is_loaded(const struct elf_writer_section *section)
{
    return section->flags & SHF_ALLOC && section->size;
}

static void put_number(struct layout_of_file *file, uint64_t value)
{
    file->failed |= !file->image->wide && value > UINT32_MAX;
    put_word(&file->table, value, file->image->wide ? 8 : 4);
}

/* Assigns offsets. */
static bool lay_out(struct layout_of_file *file)
{
    const struct elf_writer_image *image = file->image;
    file->offsets = calloc(image->section_count + 1, sizeof *file->offsets);
    if (!file->offsets)
        return false;
    file->segment_count = 1; /* the note */
    for (size_t i = 0; i < image->section_count; i++)
        file->segment_count += is_loaded(&image->sections[i]);
    uint64_t at = header_size(image) + (uint64_t)file->segment_count * segment_size(image);
    put_u8(&file->names, 0);
    for (size_t i = 0; i < image->section_count; i++) {
        const struct elf_writer_section *section = &image->sections[i];
        at = align_up(at, section->align ? section->align : 1);
        file->offsets[i] = at;
        if (section->type != SHT_NOBITS)
            at = add_saturated(at, section->size);
    }
    file->note_offset = align_up(at, TABLE_ALIGN);
    file->names_offset = file->note_offset + NOTE_SIZE;
    return at < INT64_MAX;
}

/* ---- Writing ---- */

static void emit(struct layout_of_file *file, const void *bytes, size_t size)
{
    if (file->failed || !size)
        return;
    file->failed = !file->image->write(file->image->context, bytes, size);
    file->at += size;
}

static void emit_padding(struct layout_of_file *file, uint64_t offset)
{
    static const uint8_t zeros[256];
    while (file->at < offset && !file->failed)
        emit(file, zeros, (size_t)MIN(offset - file->at, (uint64_t)sizeof zeros));
}

static void emit_table(struct layout_of_file *file)
{
    file->failed |= file->table.broken;
    emit(file, file->table.data, file->failed ? 0 : file->table.length);
    file->table.length = 0;
}

static void emit_contents(struct layout_of_file *file, size_t index)
{
    const struct elf_writer_section *section = &file->image->sections[index];
    uint8_t buffer[PIECE];
    if (section->type == SHT_NOBITS)
        return;
    emit_padding(file, file->offsets[index]);
    if (section->bytes) {
        sha256_add(&file->hash, section->bytes, (size_t)section->size);
        emit(file, section->bytes, (size_t)section->size);
        return;
    }
    for (uint64_t at = 0; at < section->size && !file->failed;) {
        size_t size = (size_t)MIN(section->size - at, (uint64_t)sizeof buffer);
        file->image->read(file->image->context, index, at, buffer, size);
        sha256_add(&file->hash, buffer, size);
        emit(file, buffer, size);
        at += size;
    }
}

static void put_header(struct layout_of_file *file)
{
    const struct elf_writer_image *image = file->image;
    struct byte_writer *to = &file->table;
    uint8_t ident[EI_NIDENT] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3};
    ident[EI_CLASS] = image->wide ? ELFCLASS64 : ELFCLASS32;
    ident[EI_DATA] = image->big_endian ? ELFDATA2MSB : ELFDATA2LSB;
    ident[EI_VERSION] = EV_CURRENT;
    put_bytes(to, ident, sizeof ident);
    put_u16(to, image->type);
    put_u16(to, image->machine);
    put_u32(to, EV_CURRENT);
    put_number(file, 0); /* entry */
    put_number(file, header_size(image));
    put_number(file, file->sections_offset);
    put_u32(to, 0); /* flags */
    put_u16(to, (unsigned)header_size(image));
    put_u16(to, (unsigned)segment_size(image));
    put_u16(to, file->segment_count);
    put_u16(to, image->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
    put_u16(to, (unsigned)image->section_count + 3);
    put_u16(to, (unsigned)image->section_count + 2); /* .shstrtab */
}

/* A program header. */
struct segment {
    uint32_t type, flags;
    uint64_t offset, address, file_size, size, align;
};

static void put_segment(struct layout_of_file *file, const struct segment *segment)
{
    put_u32(&file->table, segment->type);
    if (file->image->wide)
        put_u32(&file->table, segment->flags);
    put_number(file, segment->offset);
    put_number(file, segment->address);
    put_number(file, segment->address);
    put_number(file, segment->file_size);
    put_number(file, segment->size);
    if (!file->image->wide)
        put_u32(&file->table, segment->flags);
    put_number(file, segment->align);
}

static void put_segments(struct layout_of_file *file)
{
    for (size_t i = 0; i < file->image->section_count; i++) {
        const struct elf_writer_section *section = &file->image->sections[i];
        bool has_bytes = section->type != SHT_NOBITS && !file->image->addresses_are_offsets;
        const struct segment segment = {
            .type = PT_LOAD,
            .flags = PF_R | (section->flags & SHF_EXECINSTR ? (uint32_t)PF_X : 0u),
            .offset = file->image->addresses_are_offsets ? section->address : file->offsets[i],
            .address = section->address,
            .file_size = has_bytes ? section->size : 0,
            .size = section->size,
            .align = 1,
        };
        if (is_loaded(section))
            put_segment(file, &segment);
    }
    const struct segment note = {.type = PT_NOTE,
                                 .flags = PF_R,
                                 .offset = file->note_offset,
                                 .file_size = NOTE_SIZE,
                                 .size = NOTE_SIZE,
                                 .align = 4};
    put_segment(file, &note);
}

static void put_section(struct layout_of_file *file, const struct elf_writer_section *section, uint64_t offset)
{
    size_t length = section->name ? strlen(section->name) : 0;
    put_u32(&file->table, length ? (uint32_t)file->names.length : 0);
    if (length)
        put_string(&file->names, section->name, MIN(length, (size_t)NAME_MAX_SIZE));
    put_u32(&file->table, section->type);
    put_number(file, section->flags);
    put_number(file, section->address);
    put_number(file, offset);
    put_number(file, section->size);
    put_u32(&file->table, section->link);
    put_u32(&file->table, section->info);
    put_number(file, section->align);
    put_number(file, section->entry_size);
}

static void put_sections(struct layout_of_file *file)
{
    put_section(file, &(struct elf_writer_section){.type = SHT_NULL}, 0);
    for (size_t i = 0; i < file->image->section_count; i++)
        put_section(file, &file->image->sections[i], file->offsets[i]);
    struct elf_writer_section note = {.name = ".note.gnu.build-id", .type = SHT_NOTE, .size = NOTE_SIZE, .align = 4};
    put_section(file, &note, file->note_offset);
    static const char own[] = ".shstrtab";
    struct elf_writer_section names = {
        .name = own, .type = SHT_STRTAB, .size = file->names.length + sizeof own, .align = 1};
    put_section(file, &names, file->names_offset);
    file->failed |= file->names.broken;
}

static void put_note(struct layout_of_file *file, const uint8_t build_id[ELF_WRITER_BUILD_ID_SIZE])
{
    put_u32(&file->table, 4);
    put_u32(&file->table, ELF_WRITER_BUILD_ID_SIZE);
    put_u32(&file->table, NT_GNU_BUILD_ID);
    put_string(&file->table, "GNU", 3);
    put_bytes(&file->table, build_id, ELF_WRITER_BUILD_ID_SIZE);
}

/* The table of sections is formed first, because it forms the names; the names come before it in the file. */
static void write_all(struct layout_of_file *file, uint8_t ret_build_id[ELF_WRITER_BUILD_ID_SIZE])
{
    uint8_t digest[SHA256_SIZE];
    put_sections(file);
    struct byte_writer sections = file->table;
    file->table = (struct byte_writer){.big_endian = sections.big_endian};
    file->failed |= sections.broken;
    file->sections_offset = align_up(file->names_offset + file->names.length, TABLE_ALIGN);
    sha256_begin(&file->hash);
    sha256_add(&file->hash, sections.data, file->failed ? 0 : sections.length);
    put_header(file);
    put_segments(file);
    emit_table(file);
    for (size_t i = 0; i < file->image->section_count && !file->failed; i++)
        emit_contents(file, i);
    sha256_end(&file->hash, digest);
    memcpy(ret_build_id, digest, ELF_WRITER_BUILD_ID_SIZE);
    emit_padding(file, file->note_offset);
    put_note(file, ret_build_id);
    emit_table(file);
    emit(file, file->names.data, file->names.length);
    emit_padding(file, file->sections_offset);
    emit(file, sections.data, sections.length);
    byte_writer_deinit(&sections);
}

bool elf_writer_write(const struct elf_writer_image *image, uint8_t ret_build_id[ELF_WRITER_BUILD_ID_SIZE])
{
    struct layout_of_file file = {
        .image = image, .names.big_endian = image->big_endian, .table.big_endian = image->big_endian};
    file.failed = image->section_count > ELF_WRITER_SECTIONS_MAX || !lay_out(&file);
    if (!file.failed)
        write_all(&file, ret_build_id);
    free(file.offsets);
    byte_writer_deinit(&file.names);
    byte_writer_deinit(&file.table);
    return !file.failed;
}
