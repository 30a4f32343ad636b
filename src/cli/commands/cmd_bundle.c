/*
 * cmd_bundle.c: copies the files that a core needs and this machine has into a folder, under the keys of symbol servers
 * (NAME/KEY/NAME). Another machine reads the core with --module-path DIR, and debuginfod can serve the folder.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/cli/base/commands.h"
#include "src/cli/base/console.h"
#include "src/cli/base/json_writer.h"
#include "src/cli/base/memory.h"
#include "src/cli/base/output.h"
#include "src/cli/commands/output_folder.h"
#include "src/cli/base/runtimes.h"
#include "util/base.h"

struct folder_options {
    struct common_options common;
    const char *folder;
};

#define COPIES_MAX (UINT64_C(8) << 30) /* bytes, unless --store-max says otherwise */

enum result {
    COPIED,
    PRESENT,
    MISSING,
    SKIPPED, /* it is mapped, but neither a program nor an assembly */
    RESULT_COUNT
};

static const char *const result_names[RESULT_COUNT] = {"copied", "present", "missing", "skipped"};

/* A file that the target needs. Strings are NULL where they are not known. */
struct needed_file {
    const char *path; /* as the target names it */
    const char *key;  /* NAME/KEY/NAME */
    const char *local_path;
    const char *problem;
    const struct cdacq_local_file *local_file;
    bool unconfirmed; /* nothing in the target shows that it is the file */
};

struct work {
    const struct folder_options *options;
    struct output out;
    struct output_folder folder;
    struct progress progress;
    uint64_t done;
    uint64_t assemblies; /* with about one PDB each */
    uint64_t counts[RESULT_COUNT], unconfirmed;
    uint64_t missing_pdbs; /* of `counts`: only lines need them */
    uint64_t bytes;        /* of the copied files */
    uint64_t bytes_max;    /* the target names the files, which may be sparse and of any size */
    bool failed;
};

static const char cannot_read[] = "the file can no longer be read, or is another one by now";

/* A file that is copied, with what was known of it when it was opened. */
struct source {
    int fd;
    struct stat st;
    const char *problem; /* why it could not be copied, if it could be written */
};

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_size == b->st_size && a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
           a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Copies a file. Sets from->problem if it cannot be read to its end, or is another one then. */
static void copy_bytes(struct source *from, struct output *out)
{
    enum { CHUNK = 64 * 1024 };
    struct stat now;
    uint64_t all = (uint64_t)from->st.st_size;
    for (uint64_t at = 0; at < all && !output_failed(out) && !from->problem;) {
        size_t wanted = (size_t)MIN(all - at, (uint64_t)CHUNK);
        char *p = output_reserve(out, wanted);
        size_t size = file_read_at(from->fd, at, p, wanted);
        if (size < wanted && errno)
            from->problem = cannot_read;
        else if (size < wanted)
            break;
        output_commit(out, p + size);
        at += size;
    }
    if (!from->problem && !output_failed(out) && (fstat(from->fd, &now) < 0 || !is_same(&from->st, &now)))
        from->problem = "the file changed while it was copied";
}

/* Nobody may read a copy who may not read the file. Groups are others in the copy. */
static unsigned mode_of_copy(const struct stat *st)
{
    return st->st_mode & S_IROTH ? st->st_mode & 0666 : 0600;
}

/* Copies into the open folder. False with a message, or with from->problem. */
static bool copy_into(struct work *work, int folder, const char *name, struct source *from, const char *key)
{
    struct folder_file file;
    if (!folder_file_begin(&work->folder, folder, key, name, mode_of_copy(&from->st), &file))
        return false;
    copy_bytes(from, &file.out);
    if (!from->problem)
        work->bytes += (uint64_t)from->st.st_size;
    return folder_file_end(&work->folder, &file, !from->problem) && !from->problem;
}

/*
 * A key names one content, so an own file of that name and size is not copied again, unless more users may read it, or
 * write to it, than a copy.
 */
static bool is_present(int folder, const char *name, const struct stat *from)
{
    struct stat st;
    return fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_size == from->st_size &&
           st.st_uid == geteuid() && !(st.st_mode & 0777 & ~mode_of_copy(from));
}

static enum result put_file(struct work *work, struct needed_file *file)
{
    struct source from = {0};
    const char *name;
    enum result result = MISSING;
    if (!file->local_path || file->problem)
        return MISSING;
    if (!file->key)
        return SKIPPED;
    CLEANUP_CLOSE int fd = -1; /* of the very file that was compared: its path may lead elsewhere by now */
    bool is_open =
        file->local_file && cdacq_local_file_open(file->local_file, &fd, NULL) == CDACQ_OK && fstat(fd, &from.st) == 0;
    from.fd = fd;
    CLEANUP_FREE char *key = allocate(strlen(file->key) + 2);
    sprintf(key, "/%s", file->key);
    if (!is_open) {
        file->problem = cannot_read;
        return MISSING;
    }
    if (!output_folder_takes(key)) {
        file->problem = "its key is not a path";
        return MISSING;
    }
    uint64_t size = (uint64_t)from.st.st_size;
    int folder = output_folder_of(&work->folder, key, &name);
    if (folder >= 0 && is_present(folder, name, &from.st))
        result = PRESENT;
    else if (folder >= 0 && size > work->bytes_max - work->bytes)
        file->problem = "with it, the copies would be larger than --store-max allows (8G without the option)";
    else if (folder >= 0 && copy_into(work, folder, name, &from, file->key))
        result = COPIED;
    else
        file->problem = from.problem;
    if (result == MISSING && !file->problem) {
        file->problem = "it cannot be written";
        work->failed = true;
    }
    if (folder >= 0)
        close(folder);
    return result;
}

static void write_result(struct work *work, const struct needed_file *file, enum result result)
{
    struct output *out = &work->out;
    if (work->options->common.json) {
        struct json_writer writer = json_begin_line(out), *w = &writer;
        json_note(w, "result", result_names[result]);
        json_string(w, "path", file->path);
        json_string(w, "key", file->key);
        json_string(w, "local_path", file->local_path);
        json_bool(w, "confirmed", file->local_path && !file->unconfirmed);
        json_note(w, "problem", file->problem);
        json_end_line(w);
        return;
    }
    output_style(out, result == MISSING ? STYLE_DOUBT : result == SKIPPED ? STYLE_MINOR : STYLE_NONE);
    output_printf(out, "%-7s ", result_names[result]);
    output_style(out, STYLE_NONE);
    output_text(out, file->key ? file->key : file->path);
    if (file->problem && (!file->key || !strstr(file->problem, file->key)))
        output_note_between(out, "  ", file->problem, "");
    if (file->unconfirmed && file->key)
        output_styled(out, STYLE_DOUBT, "  [not confirmed]");
    output_literal(out, "\n");
}

static enum result add_file(struct work *work, struct needed_file *file)
{
    enum result result = put_file(work, file);
    work->counts[result]++;
    work->unconfirmed += file->unconfirmed && (result == COPIED || result == PRESENT);
    write_result(work, file, result);
    progress_step(&work->progress, ++work->done);
    return result;
}

static int add_module(const struct cdacq_mapped_file *module, void *context)
{
    struct needed_file file = {module->path,    module->symbol_key, module->local_path,
                               module->problem, module->local_file, module->local_path && !module->verified};
    struct work *work = context;
    work->assemblies += module->symbol_key && !module->build_id;
    if (module->local_path || module->problem)
        add_file(work, &file);
    else /* the target has all of it */
        progress_step(&work->progress, ++work->done);
    return 0;
}

static int add_pdb(const struct cdacq_pdb_info *pdb, void *context)
{
    struct work *work = context;
    struct needed_file file = {pdb->module, pdb->key, pdb->path, pdb->problem, pdb->local_file, false};
    if (!pdb->embedded && (pdb->path || pdb->key))
        work->missing_pdbs += add_file(work, &file) == MISSING;
    return 0;
}

/* Whether the core is cut off. A message says so if none has. */
static bool is_cut_off(const char *name, struct cdacq_target *target)
{
    struct cdacq_target_info info = {.size = sizeof info};
    cdacq_target_get_info(target, &info, NULL);
    if (info.truncated && !message_was_shown("ends before its last segment") && !info.truncation)
        message("%s: %s", target_display_name(name), target_truncation(&info));
    return info.truncated;
}

static int bundle(const void *given, const struct opened_target *opened)
{
    const struct folder_options *options = given;
    uint64_t store_max = options->common.open.store_max;
    struct work work = {.options = options, .bytes_max = store_max ? store_max : COPIES_MAX};
    struct cdacq_error error;
    if (!output_open(&work.out, options->common.output))
        return EXIT_FAILED;
    if (!output_folder_open(&work.folder, options->folder)) {
        output_abandon(&work.out);
        return EXIT_FAILED;
    }
    progress_begin(&work.progress, "files", work.out.fd);
    expect_modules(&work.progress, opened->target);
    enum cdacq_status status = cdacq_target_visit_mapped_files(opened->target, add_module, &work, &error);
    progress_estimate(&work.progress, work.done, work.done, work.done + work.assemblies);
    struct cdacq_session *one;
    for (unsigned next = 0; status >= 0 && opened->session && (one = runtimes_next(opened->session, &next));)
        status = cdacq_session_visit_pdbs(one, add_pdb, &work, &error);
    progress_end(&work.progress);
    output_folder_close(&work.folder);
    if (status < 0)
        message("%s", error.message);
    /* What a core would need that is cut off, or in which no code can be found, is not all known. */
    bool is_part = is_cut_off(opened->name, opened->target) || !opened->session; /* and a message has said why */
    bool is_nothing = is_part && !work.counts[COPIED] && !work.counts[PRESENT] && !work.counts[MISSING];
    if (!output_close_if(&work.out, status >= 0 && !work.failed && !is_nothing))
        return EXIT_FAILED;
    uint64_t missing = work.counts[MISSING] - work.missing_pdbs;
    notice("'%s': %" PRIu64 " file%s copied (%" PRIu64 " KiB), %" PRIu64 " already present; missing: %" PRIu64
           " file%s and %" PRIu64 " PDB%s",
           options->folder, work.counts[COPIED], plural(work.counts[COPIED]), work.bytes / 1024, work.counts[PRESENT],
           missing, plural(missing), work.missing_pdbs, plural(work.missing_pdbs));
    if (work.unconfirmed)
        message("nothing in the target confirms %" PRIu64 " of the files: they are those at its paths on this machine",
                work.unconfirmed);
    return missing || is_part ? EXIT_PARTLY : EXIT_ANSWERED;
}

static int run(const void *given)
{
    const struct folder_options *options = given;
    const struct target_use use = {
        .run = bundle, .flags = CDACQ_OPEN_ALL_RUNTIMES | CDACQ_OPEN_PARTIAL, .file = options->folder};
    return target_is_refused(options->common.targets.items[0]) ? EXIT_FAILED : target_run(&options->common, &use);
}

const struct command command_bundle = {
    .name = "bundle",
    .section = SECTION_CORES,
    RUNS(run, struct folder_options),
    .operands = OPERANDS({TARGET_OPERAND}, {"DIR", OPERAND_FOLDER, TO_WORD(struct folder_options, folder)}),
    .options = OPTIONS(json_rows, output_rows, target_rows),
    .summary = "copy the files that a core needs, for another machine",
    .details = "Copies into DIR, under the keys of symbol servers (NAME/KEY/NAME), the mapped files whose bytes the\n"
               "core lacks and the PDBs. Another machine then needs the core and DIR alone:\n"
               "  cdacq report CORE --module-path DIR\n"
               "A file that is there already is not copied again, so that many cores can share a folder. One line for\n"
               "each file: copied, present, missing, or skipped because it is neither a program nor an assembly.\n",
    .exit_partly = "files other than PDBs are missing, or not all are known: the core is cut off, or has no .NET",
};
