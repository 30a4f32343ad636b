#include "target/native/debug_file.h"

#include <stdio.h>

#include "formats/compression/unpacker.h"
#include "formats/dwarf_cursor.h"
#include "formats/elf.h"
#include "target/file_candidate.h"
#include "target/file_search.h"
#include "target/image.h"
#include "target/mapped_file.h"
#include "target/mapped_path.h"
#include "util/crc32.h"
#include "util/text.h"

/* How many times as long as comparing bytes it takes to unpack them, and to form a checksum of them. */
enum { UNPACKING = 4, SUMMING = 4 };

/* ---- .gnu_debugdata ---- */

static size_t read_packed(void *context, void *buffer, size_t size)
{
    struct dwarf_cursor *packed = context;
    size_t n = MIN(size, dwarf_left(packed));
    memcpy(buffer, dwarf_bytes(packed, n), n);
    return n;
}

uint8_t *debug_data_open(const struct elf_file *file, struct work *work, size_t *ret_size)
{
    struct elf_section section;
    struct unpacker unpacker;
    char why[200];
    const uint8_t *bytes =
        elf_file_section_named(file, ".gnu_debugdata", &section) ? elf_file_contents(file, &section) : NULL;
    if (!bytes || section.size > DEBUG_DATA_MAX)
        return NULL;
    struct dwarf_cursor packed = dwarf_cursor_of(bytes, (size_t)section.size, false);
    if (!unpacker_init(&unpacker, &codec_xz, read_packed, &packed, why, sizeof why))
        return NULL;
    CLEANUP_FREE uint8_t *unpacked = NULL;
    size_t room = (size_t)MIN(section.size * 8 + 65536, (uint64_t)DEBUG_DATA_MAX), size = 0;
    for (; unpacker.state == UNPACKER_OPEN && room <= DEBUG_DATA_MAX; room *= 2) {
        uint8_t *larger = realloc(unpacked, room);
        if (!larger)
            break;
        unpacked = larger;
        if (!work_take_bytes(work, UNPACKING * (room - size)))
            break;
        size += unpacker_read(&unpacker, unpacked + size, room - size);
    }
    bool complete = unpacker.state == UNPACKER_COMPLETE && size; /* nothing: it is not of the format */
    unpacker_deinit(&unpacker);
    if (!complete || !work_take_memory(work, size))
        return NULL;
    *ret_size = size;
    return take_ptr(unpacked);
}

/* ---- Separate files ---- */

struct search {
    struct file_search files;
    const struct image *image;
    const char *link;  /* the name in .gnu_debuglink; NULL where there is none */
    uint32_t checksum; /* there: CRC-32 of the file */
    struct file_candidate *found;
};

enum { NOTES_MAX = 4096 }; /* of a file; sections of a forged one may share their bytes */

/* 1: the file has the image's build-id; -1: it has another one; 0: it has none. Sets the tag of the file. */
static int compare_build_id(const struct elf_file *elf, const struct image *image, struct file_tag *tag)
{
    struct elf_section section;
    unsigned left = NOTES_MAX;
    for (unsigned i = 0; left && elf_file_section(elf, i, &section); i++) {
        const uint8_t *notes = section.type == SHT_NOTE ? elf_file_contents(elf, &section) : NULL;
        struct elf_note_bytes note;
        for (uint64_t at = 0; notes && left && elf_note_next(elf->class, notes, section.size, 4, &at, &note); left--)
            if (elf_note_is_build_id(&note.note, note.name)) {
                if (note.note.desc_size <= FILE_TAG_ID_MAX)
                    file_tag_set(tag, FILE_TAG_DEBUG, note.desc, note.note.desc_size);
                return note.note.desc_size == image->build_id_size &&
                               memcmp(note.desc, image->build_id, image->build_id_size) == 0
                           ? 1
                           : -1;
            }
    }
    return 0;
}

static bool has_symbols(const struct elf_file *elf)
{
    struct elf_section section;
    for (unsigned i = 0; elf_file_section(elf, i, &section); i++)
        if (section.type == SHT_SYMTAB)
            return true;
    return false;
}

/* Whether a file that was considered for another image has another build-id. */
static bool excludes(struct file_search *files, const char *path, const struct file_tag *tag)
{
    const struct image *image = ((struct search *)files)->image;
    (void)path;
    return file_tag_differs(tag, FILE_TAG_DEBUG, image->build_id, image->build_id_size);
}

/* Accepts a file that belongs to the image and has symbols. */
static bool consider(struct file_search *files, const char *path, struct file_candidate *candidate)
{
    struct search *search = (struct search *)files;
    struct elf_file elf;
    struct bytes bytes = bytes_of_buffer(candidate->bytes, candidate->size);
    (void)path;
    bool accepted = elf_file_open(&bytes, &elf) && has_symbols(&elf);
    if (accepted && search->image->build_id_size)
        accepted = compare_build_id(&elf, search->image, &candidate->tag) == 1;
    else if (accepted)
        accepted = search->link && candidate->size <= DEBUG_CHECKSUM_MAX &&
                   work_take_bytes(&search->image->file->target->work, SUMMING * candidate->size) &&
                   crc32_of(candidate->bytes, candidate->size) == search->checksum;
    if (accepted)
        *search->found = file_candidate_take(candidate);
    return accepted;
}

/*
 * Below the root of a file system: by build-id, and by name in the directories that GDB defines for the file at
 * `beside`, which is NULL where no path of it is known.
 */
static bool look_below(struct search *search, const struct file_root *root, const char *beside, const char *by_id)
{
    if (by_id[0] && file_search_at(&search->files, root, "/usr/lib/debug/.build-id/%s", by_id))
        return true;
    if (!search->link || !beside)
        return false;
    int folder = (int)(path_basename(beside) - beside); /* with the '/' at its end */
    static const struct {
        const char *before, *after;
    } forms[] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        if (file_search_at(&search->files, root, "%s%.*s%s%s", forms[i].before, folder, beside, forms[i].after,
                           search->link))
            return true;
    return false;
}

static bool look_in_modules(struct search *search, const char *by_id)
{
    struct file_policy *policy = search->files.policy;
    bool found = false;
    pthread_mutex_lock(&policy->lock);
    for (size_t i = 0; !found && policy->module_paths && policy->module_paths[i]; i++)
        found = (by_id[0] && file_search_named(&search->files, i, by_id + 3)) ||
                (search->link && file_search_named(&search->files, i, search->link));
    pthread_mutex_unlock(&policy->lock);
    return found;
}

/*
 * Where the target itself has debug files, which for a process may be in another file system than ours; then among
 * ours, and beside the file that stands in for the image's.
 */
static bool look_at_own_places(struct search *search, const char *path, const char *by_id)
{
    const struct mapped_file *mapped = search->image->file;
    bool ours = !search->files.policy->no_own_paths;
    const struct file_root *root = file_search_own_root(mapped->target), *machine = &file_root_machine;
    /* Beside a file below a root was looked already, and its path means nothing to this machine. */
    const char *local = mapped->content.root && mapped->content.root->confined ? NULL : mapped->local_path;
    path = path ? file_search_own_path(mapped->target, path) : NULL;
    if (ours && look_below(search, root, path, by_id))
        return true;
    if (local && ours && path && file_search_is_below(local, machine, path))
        local = NULL; /* done */
    return look_below(search, machine, local, ours && root != machine ? by_id : "");
}

/* From a symbol server, whose keys of debug files have at least the 20 bytes of a SHA-1 in them. */
static bool fetch_by_key(struct search *search, const char *hex)
{
    static const char zeros[2 * 20 + 1] = "0000000000000000000000000000000000000000";
    struct file_policy *policy = search->files.policy;
    char key[sizeof "_.debug/elf-buildid-sym-/_.debug" + sizeof zeros + 2 * (size_t)BUILD_ID_MAX];
    if (!policy->server.fetch)
        return false;
    size_t length = MIN(strlen(hex), sizeof zeros - 1);
    snprintf(key, sizeof key, "_.debug/elf-buildid-sym-%s%s/_.debug", hex, zeros + length);
    const struct cdacq_need need = {.size = sizeof need,
                                    .kind = CDACQ_NEED_FILE,
                                    .path = search->image->file->path,
                                    .build_id = hex,
                                    .symbol_key = key};
    pthread_mutex_lock(&policy->lock);
    bool found =
        file_search_fetch(&search->files, search->image->file->target, &need, "it has another build-id, or no symbols");
    pthread_mutex_unlock(&policy->lock);
    return found;
}

/* The name and checksum in .gnu_debuglink. A name with a directory is not followed. */
static void read_link(struct search *search, const struct elf_file *file)
{
    struct elf_section section;
    const uint8_t *bytes =
        file && elf_file_section_named(file, ".gnu_debuglink", &section) ? elf_file_contents(file, &section) : NULL;
    size_t length = bytes ? strnlen((const char *)bytes, (size_t)section.size) : 0;
    uint64_t at = align_up((uint64_t)length + 1, 4);
    if (!length || !range_fits(at, 4, section.size) || memchr(bytes, '/', length))
        return;
    search->link = (const char *)bytes;
    search->checksum = load_u32(bytes + at, file->class.big);
}

bool debug_file_open(const struct image *image, const struct elf_file *file, struct file_candidate *ret)
{
    struct mapped_file *mapped = image->file;
    if (!mapped || !mapped->policy)
        return false;
    struct file_policy *policy = mapped->policy;
    struct search search = {
        .files = {.policy = policy, .work = &mapped->target->work, .consider = consider, .excludes = excludes},
        .image = image,
        .found = ret};
    char hex[2 * BUILD_ID_MAX + 1], by_id[sizeof hex + sizeof "/.debug"] = "";
    text_hex(hex, image->build_id, image->build_id_size);
    if (image->build_id_size > 1)
        snprintf(by_id, sizeof by_id, "%.2s/%s.debug", hex, hex + 2);
    read_link(&search, file);
    const char *path = mapped_path_is_file(mapped->path) ? mapped->path : NULL;
    for (size_t i = 0; policy->sysroots && policy->sysroots[i]; i++)
        if (look_below(&search, file_policy_sysroot(policy, i), path, by_id))
            return true;
    if (look_in_modules(&search, by_id))
        return true;
    if (look_at_own_places(&search, path, by_id))
        return true;
    if (!image->build_id_size)
        return false;
    CLEANUP_FREE char *fetched =
        policy->fetch_debug_file
            ? policy->fetch_debug_file(policy->fetch_context, mapped->path, image->build_id, image->build_id_size)
            : NULL;
    return (fetched && file_search_trusted(&search.files, fetched)) || fetch_by_key(&search, hex);
}
