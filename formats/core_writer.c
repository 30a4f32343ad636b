#include "formats/core_writer.h"

#include <elf.h>
#include <errno.h>

#include "util/error.h"

enum {
    NOTE_HEADER = 12 + 8, /* namesz, descsz, type, then a name of 4 or 5 bytes and its padding */
    PRPSINFO_SIZE_64 = 136,
    PRPSINFO_SIZE_32 = 124, /* with the 16-bit uid and gid of i386 and arm */
    PRPSINFO_NAME = 16,     /* pr_fname, before pr_psargs */
    PRPSINFO_ARGS = 80,
    SIGINFO_SIZE = 128,
    PAC_MASK_SIZE = 16,
    AUXV_WORDS = 4, /* two entries */
};

/* A file being written. The first failure is kept, and later writes do nothing. */
struct sink {
    FILE *file;
    uint64_t offset;
    bool big, wide, failed;
    int saved_errno;
};

static void put_bytes(struct sink *sink, const void *bytes, size_t size)
{
    errno = 0;
    if (!sink->failed && size && fwrite(bytes, 1, size, sink->file) != size) {
        sink->failed = true;
        sink->saved_errno = errno;
    }
    sink->offset += size;
}

static void put_zeros(struct sink *sink, uint64_t count)
{
    static const uint8_t zeros[CORE_WRITER_PAGE];
    for (; count; count -= MIN(count, sizeof zeros))
        put_bytes(sink, zeros, (size_t)MIN(count, sizeof zeros));
}

static void put_u16(struct sink *sink, uint16_t value)
{
    uint8_t bytes[2];
    store_u16(bytes, value, sink->big);
    put_bytes(sink, bytes, sizeof bytes);
}

static void put_u32(struct sink *sink, uint32_t value)
{
    uint8_t bytes[4];
    store_u32(bytes, value, sink->big);
    put_bytes(sink, bytes, sizeof bytes);
}

static void put_u64(struct sink *sink, uint64_t value)
{
    uint8_t bytes[8];
    store_u64(bytes, value, sink->big);
    put_bytes(sink, bytes, sizeof bytes);
}

/* A number as wide as the ELF class. check() has made sure that it fits. */
static void put_word(struct sink *sink, uint64_t value)
{
    if (sink->wide)
        put_u64(sink, value);
    else
        put_u32(sink, (uint32_t)value);
}

/* The layout of the file. */
struct plan {
    uint64_t header_count;   /* PT_NOTE and the PT_LOADs */
    uint64_t section_offset; /* of section header 0; 0 if there is none */
    uint64_t note_offset, note_size;
    uint64_t mapping_size; /* of NT_FILE's descriptor */
    uint64_t page_size;
    uint64_t end;
};

/* p_offset and p_vaddr are congruent modulo this: a page, so that a reader can map the file, unless it is packed. */
static uint32_t alignment(const struct core_writer_image *image)
{
    return image->packed ? 1 : CORE_WRITER_PAGE;
}

/* The offset of segment `i`'s bytes; `offset` is the first free one. */
static uint64_t segment_offset(const struct core_writer_image *image, size_t i, uint64_t offset)
{
    const struct core_writer_segment *segment = &image->segments[i];
    return segment->filesz ? add_saturated(offset, (segment->vaddr - offset) % alignment(image)) : offset;
}

static uint64_t page_size_of(const struct core_writer_image *image)
{
    if (image->page_size)
        return image->page_size;
    for (size_t i = 0; i < image->mapping_count; i++)
        if (image->mappings[i].offset % CORE_WRITER_PAGE)
            return 1;
    return CORE_WRITER_PAGE;
}

static uint64_t prpsinfo_size(const struct core_writer_image *image)
{
    return image->wide ? PRPSINFO_SIZE_64 : PRPSINFO_SIZE_32;
}

/* The part of struct elf_prstatus before the registers; pr_fpvalid follows them. */
static uint64_t prstatus_head_size(const struct core_writer_image *image)
{
    return image->wide ? 112 : 72;
}

/* Bytes of the machine's elf_gregset_t: debuggers refuse an NT_PRSTATUS of another size. 0: not known. */
static uint64_t registers_size(const struct core_writer_image *image)
{
    static const struct {
        uint16_t machine;
        uint8_t words;
    } sets[] = {{EM_X86_64, 27}, {EM_386, 17},   {EM_AARCH64, 34},
                {EM_ARM, 18},    {EM_RISCV, 32}, {258 /* LoongArch */, 45}};
    for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
        if (sets[i].machine == image->machine)
            return sets[i].words * (image->wide ? UINT64_C(8) : UINT64_C(4));
    return 0;
}

static uint64_t prstatus_size(const struct core_writer_image *image, const struct core_writer_thread *thread)
{
    uint64_t registers = MAX(registers_size(image), (uint64_t)thread->registers_size);
    return align_up(prstatus_head_size(image) + registers + 4, image->wide ? 8 : 4);
}

/* A note of the writer's own that holds a text; none if it is NULL. */
static uint64_t text_note_size(const char *text)
{
    return text ? NOTE_HEADER + align_up(strlen(text), 4) : 0;
}

/* The command line, if NT_PRPSINFO cuts it or fills up, as if it did; otherwise NULL. */
static const char *long_arguments(const struct core_writer_image *image)
{
    return image->arguments && strlen(image->arguments) >= PRPSINFO_ARGS - 1 ? image->arguments : NULL;
}

static void plan_notes(const struct core_writer_image *image, struct plan *plan)
{
    uint64_t word = image->wide ? 8 : 4;
    plan->page_size = page_size_of(image);
    for (size_t i = 0; i < image->note_count; i++)
        plan->note_size += align_up(image->notes[i].size, 4);
    if (image->note_count)
        return;
    plan->mapping_size = (2 + 3 * (uint64_t)image->mapping_count) * word;
    for (size_t i = 0; i < image->mapping_count; i++)
        plan->mapping_size += strlen(image->mappings[i].path) + 1;
    plan->note_size = NOTE_HEADER + align_up(plan->mapping_size, 4);
    if (image->pid)
        plan->note_size += NOTE_HEADER + prpsinfo_size(image);
    if (image->vdso)
        plan->note_size += NOTE_HEADER + AUXV_WORDS * word;
    plan->note_size += image->marked ? NOTE_HEADER : 0;
    plan->note_size += text_note_size(long_arguments(image)) + text_note_size(image->program);
    for (size_t i = 0; i < image->pdb_count; i++)
        plan->note_size += NOTE_HEADER + align_up(image->pdbs[i].size, 4);
    for (size_t i = 0; i < image->thread_count; i++) {
        plan->note_size += NOTE_HEADER + prstatus_size(image, &image->threads[i]);
        plan->note_size += image->threads[i].died ? NOTE_HEADER + SIGINFO_SIZE : 0;
        plan->note_size += image->threads[i].pac_mask ? NOTE_HEADER + PAC_MASK_SIZE : 0;
        plan->note_size += text_note_size(image->threads[i].name);
    }
}

static void plan_file(const struct core_writer_image *image, struct plan *plan)
{
    uint64_t header_size = image->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
    plan->header_count = 1 + (uint64_t)image->segment_count;
    plan->end = (image->wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr)) + plan->header_count * header_size;
    if (plan->header_count >= PN_XNUM) {
        plan->section_offset = plan->end;
        plan->end += image->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr);
    }
    plan_notes(image, plan);
    plan->note_offset = plan->end;
    plan->end += plan->note_size;
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct core_writer_segment *segment = &image->segments[i];
        plan->end = add_saturated(segment_offset(image, i, plan->end), segment->filesz);
    }
}

static enum cdacq_status check_mapping(const struct core_writer_mapping *mapping, const struct plan *plan, uint64_t top,
                                       struct cdacq_error *err)
{
    if (mapping->begin > mapping->end || mapping->end > top || mapping->offset % plan->page_size ||
        mapping->offset / plan->page_size > top)
        return error_set(err, CDACQ_ERR_ARGUMENT, mapping->begin,
                         "core file: the mapping of %s at %#llx does not fit NT_FILE", mapping->path,
                         (unsigned long long)mapping->begin);
    return CDACQ_OK;
}

/* Refuses, before the first byte is written, what does not fit the fields of the file. */
static enum cdacq_status check(const struct core_writer_image *image, const struct plan *plan, struct cdacq_error *err)
{
    uint64_t top = image->wide ? UINT64_MAX : UINT32_MAX;
    for (size_t i = 0; i < image->segment_count; i++) {
        const struct core_writer_segment *segment = &image->segments[i];
        /* A segment may include the last byte of the address space, so its end may wrap. */
        if (segment->filesz > segment->memsz || segment->vaddr > top || segment->memsz > top ||
            (segment->memsz && segment->memsz - 1 > top - segment->vaddr))
            return error_set(err, CDACQ_ERR_ARGUMENT, segment->vaddr,
                             "core file: the segment at %#llx does not fit a program header",
                             (unsigned long long)segment->vaddr);
    }
    for (size_t i = 0; i < image->mapping_count; i++) {
        enum cdacq_status status = check_mapping(&image->mappings[i], plan, top, err);
        if (status < 0)
            return status;
    }
    if (image->vdso > top)
        return error_set(err, CDACQ_ERR_ARGUMENT, image->vdso, "core file: the vDSO at %#llx does not fit NT_AUXV",
                         (unsigned long long)image->vdso);
    if (plan->header_count > UINT32_MAX || plan->mapping_size > UINT32_MAX || plan->end >= top)
        return error_set(err, CDACQ_ERR_ARGUMENT, 0, "core file: %zu segments and %zu mappings are too much for it",
                         image->segment_count, image->mapping_count);
    return CDACQ_OK;
}

static void put_header(struct sink *sink, const struct core_writer_image *image, const struct plan *plan)
{
    const uint8_t ident[EI_NIDENT] = {
        [EI_MAG0] = ELFMAG0,
        [EI_MAG1] = ELFMAG1,
        [EI_MAG2] = ELFMAG2,
        [EI_MAG3] = ELFMAG3,
        [EI_CLASS] = image->wide ? ELFCLASS64 : ELFCLASS32,
        [EI_DATA] = image->big_endian ? ELFDATA2MSB : ELFDATA2LSB,
        [EI_VERSION] = EV_CURRENT,
    };
    uint16_t header_size = image->wide ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
    put_bytes(sink, ident, sizeof ident);
    put_u16(sink, ET_CORE);
    put_u16(sink, image->machine);
    put_u32(sink, EV_CURRENT);
    put_word(sink, 0); /* e_entry */
    put_word(sink, header_size);
    put_word(sink, plan->section_offset);
    put_u32(sink, 0); /* e_flags */
    put_u16(sink, header_size);
    put_u16(sink, image->wide ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
    put_u16(sink, (uint16_t)MIN(plan->header_count, PN_XNUM));
    put_u16(sink, !plan->section_offset ? 0 : image->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
    put_u16(sink, plan->section_offset ? 1 : 0);
    put_u16(sink, SHN_UNDEF);
}

static void put_program_header(struct sink *sink, uint32_t type, uint64_t offset,
                               const struct core_writer_segment *segment, uint32_t align)
{
    put_u32(sink, type);
    if (sink->wide)
        put_u32(sink, segment->flags);
    put_word(sink, offset);
    put_word(sink, segment->vaddr);
    put_word(sink, 0); /* p_paddr */
    put_word(sink, segment->filesz);
    put_word(sink, segment->memsz);
    if (!sink->wide)
        put_u32(sink, segment->flags);
    put_word(sink, align);
}

static void put_program_headers(struct sink *sink, const struct core_writer_image *image, const struct plan *plan)
{
    struct core_writer_segment note = {.filesz = plan->note_size};
    put_program_header(sink, PT_NOTE, plan->note_offset, &note, 4);
    uint64_t offset = plan->note_offset + plan->note_size;
    for (size_t i = 0; i < image->segment_count; i++) {
        offset = segment_offset(image, i, offset);
        put_program_header(sink, PT_LOAD, offset, &image->segments[i], alignment(image));
        offset += image->segments[i].filesz;
    }
}

/* Section header 0 of extended numbering: sh_info is the number of program headers. */
static void put_section_header(struct sink *sink, const struct plan *plan)
{
    put_u32(sink, 0); /* sh_name */
    put_u32(sink, SHT_NULL);
    put_word(sink, 0); /* sh_flags */
    put_word(sink, 0); /* sh_addr */
    put_word(sink, 0); /* sh_offset */
    put_word(sink, 1); /* sh_size: the number of section headers, as the kernel writes it */
    put_u32(sink, 0);  /* sh_link */
    put_u32(sink, (uint32_t)plan->header_count);
    put_word(sink, 0); /* sh_addralign */
    put_word(sink, 0); /* sh_entsize */
}

static void put_named_header(struct sink *sink, const char name[8], uint32_t type, uint64_t size)
{
    put_u32(sink, (uint32_t)strlen(name) + 1);
    put_u32(sink, (uint32_t)size);
    put_u32(sink, type);
    put_bytes(sink, name, 8);
}

static void put_note_header(struct sink *sink, uint32_t type, uint64_t size)
{
    put_named_header(sink, "CORE\0\0\0", type, size);
}

static void put_prpsinfo(struct sink *sink, const struct core_writer_image *image)
{
    char name[PRPSINFO_NAME + PRPSINFO_ARGS] = {0};
    if (image->name)
        memcpy(name, image->name, MIN(strlen(image->name), (size_t)PRPSINFO_NAME - 1));
    if (image->arguments)
        memcpy(name + PRPSINFO_NAME, image->arguments, MIN(strlen(image->arguments), (size_t)PRPSINFO_ARGS - 1));
    put_note_header(sink, NT_PRPSINFO, prpsinfo_size(image));
    put_bytes(sink, "\0R\0\0", 4);                /* pr_state, pr_sname, pr_zomb, pr_nice */
    put_zeros(sink, image->wide ? 4 + 8 : 4);     /* padding and pr_flag */
    put_zeros(sink, image->wide ? 4 + 4 : 2 + 2); /* pr_uid, pr_gid */
    put_u32(sink, (uint32_t)image->pid);
    put_zeros(sink, 3 * 4); /* pr_ppid, pr_pgrp, pr_sid */
    put_bytes(sink, name, sizeof name);
}

/* The part of the auxiliary vector that is known. */
static void put_auxv(struct sink *sink, const struct core_writer_image *image)
{
    const uint64_t words[AUXV_WORDS] = {AT_SYSINFO_EHDR, image->vdso, AT_NULL, 0};
    put_note_header(sink, NT_AUXV, AUXV_WORDS * (image->wide ? sizeof(uint64_t) : sizeof(uint32_t)));
    for (size_t i = 0; i < AUXV_WORDS; i++)
        put_word(sink, words[i]);
}

static void put_own_note(struct sink *sink, enum core_writer_note type, const void *bytes, size_t size)
{
    char name[8] = CORE_WRITER_NOTE;
    put_u32(sink, sizeof CORE_WRITER_NOTE);
    put_u32(sink, (uint32_t)size);
    put_u32(sink, type);
    put_bytes(sink, name, sizeof name);
    put_bytes(sink, bytes, size);
    put_zeros(sink, align_up(size, 4) - size);
}

static void put_text_note(struct sink *sink, enum core_writer_note type, const char *text)
{
    if (text)
        put_own_note(sink, type, text, strlen(text));
}

static void put_thread(struct sink *sink, const struct core_writer_image *image,
                       const struct core_writer_thread *thread)
{
    uint64_t end = add_saturated(sink->offset, NOTE_HEADER + prstatus_size(image, thread));
    put_note_header(sink, NT_PRSTATUS, prstatus_size(image, thread));
    put_u32(sink, (uint32_t)thread->signal); /* si_signo, si_code, si_errno */
    put_zeros(sink, 2 * 4);
    put_u16(sink, (uint16_t)thread->signal);            /* pr_cursig */
    put_zeros(sink, 2 + (image->wide ? 2 * 8 : 2 * 4)); /* padding, pr_sigpend, pr_sighold */
    put_u32(sink, (uint32_t)thread->tid);               /* pr_pid */
    put_zeros(sink, 3 * 4 + 8 * (image->wide ? 8 : 4)); /* pr_ppid, pr_pgrp, pr_sid, four times */
    put_bytes(sink, thread->registers, thread->registers_size);
    put_zeros(sink, end - sink->offset);
    if (thread->died) {
        put_note_header(sink, NT_SIGINFO, SIGINFO_SIZE);
        end = add_saturated(sink->offset, SIGINFO_SIZE);
        put_u32(sink, (uint32_t)thread->signal);
        put_u32(sink, 0); /* si_errno */
        put_u32(sink, (uint32_t)thread->code);
        put_zeros(sink, image->wide ? 4 : 0);
        if (thread->address) {
            put_word(sink, thread->address);
        } else {
            put_u32(sink, (uint32_t)thread->sender_pid);
            put_u32(sink, thread->sender_uid);
        }
        put_zeros(sink, end - sink->offset);
    }
    if (thread->pac_mask) {
        put_named_header(sink, "LINUX\0\0", NT_ARM_PAC_MASK, PAC_MASK_SIZE);
        put_u64(sink, thread->pac_mask); /* of pointers to data, and of addresses of code */
        put_u64(sink, thread->pac_mask);
    }
    put_text_note(sink, CORE_WRITER_THREAD_NAME, thread->name);
}

static void put_nt_file(struct sink *sink, const struct core_writer_image *image, const struct plan *plan)
{
    put_note_header(sink, NT_FILE, plan->mapping_size);
    put_word(sink, image->mapping_count);
    put_word(sink, plan->page_size);
    for (size_t i = 0; i < image->mapping_count; i++) {
        put_word(sink, image->mappings[i].begin);
        put_word(sink, image->mappings[i].end);
        put_word(sink, image->mappings[i].offset / plan->page_size);
    }
    for (size_t i = 0; i < image->mapping_count; i++)
        put_bytes(sink, image->mappings[i].path, strlen(image->mappings[i].path) + 1);
    put_zeros(sink, align_up(plan->mapping_size, 4) - plan->mapping_size);
}

static void put_notes(struct sink *sink, const struct core_writer_image *image, const struct plan *plan)
{
    for (size_t i = 0; i < image->note_count; i++) {
        put_bytes(sink, image->notes[i].bytes, image->notes[i].size);
        put_zeros(sink, align_up(image->notes[i].size, 4) - image->notes[i].size);
    }
    if (image->note_count)
        return;
    if (image->pid)
        put_prpsinfo(sink, image);
    if (image->vdso)
        put_auxv(sink, image);
    if (image->marked)
        put_own_note(sink, CORE_WRITER_MARK, NULL, 0);
    put_text_note(sink, CORE_WRITER_ARGUMENTS, long_arguments(image));
    put_text_note(sink, CORE_WRITER_PROGRAM, image->program);
    for (size_t i = 0; i < image->thread_count; i++)
        put_thread(sink, image, &image->threads[i]);
    put_nt_file(sink, image, plan);
    for (size_t i = 0; i < image->pdb_count; i++)
        put_own_note(sink, CORE_WRITER_PDB, image->pdbs[i].bytes, image->pdbs[i].size);
}

static void put_segment(struct sink *sink, const struct core_writer_image *image,
                        const struct core_writer_segment *segment)
{
    if (segment->bytes) {
        put_bytes(sink, segment->bytes, segment->filesz);
        return;
    }
    for (uint64_t done = 0, size; done < segment->filesz && !sink->failed; done += size) {
        const void *bytes;
        size = image->read(image->context, segment->vaddr + done, segment->filesz - done, &bytes);
        if (bytes)
            put_bytes(sink, bytes, size);
        else
            put_zeros(sink, size);
    }
}

enum cdacq_status core_writer_write(FILE *file, const struct core_writer_image *image, uint64_t *ret_size,
                                    struct cdacq_error *err)
{
    struct plan plan = {0};
    plan_file(image, &plan);
    enum cdacq_status status = check(image, &plan, err);
    if (status < 0)
        return status;
    struct sink sink = {.file = file, .big = image->big_endian, .wide = image->wide};
    put_header(&sink, image, &plan);
    put_program_headers(&sink, image, &plan);
    if (plan.section_offset)
        put_section_header(&sink, &plan);
    put_notes(&sink, image, &plan);
    for (size_t i = 0; i < image->segment_count && !sink.failed; i++) {
        put_zeros(&sink, segment_offset(image, i, sink.offset) - sink.offset);
        put_segment(&sink, image, &image->segments[i]);
    }
    errno = 0;
    if (!sink.failed && fflush(file) != 0) {
        sink.failed = true;
        sink.saved_errno = errno;
    }
    if (sink.failed)
        return error_set(err, CDACQ_ERR_IO, 0, "core file: cannot be written: %s", strerror(sink.saved_errno));
    if (ret_size)
        *ret_size = plan.end;
    return CDACQ_OK;
}
