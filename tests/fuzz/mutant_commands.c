#include "tests/fuzz/mutant_commands.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/cli/base/arguments.h"
#include "src/cli/base/commands.h"

enum { ARGUMENTS_MAX = 32, ARGUMENT_SIZE = 96, IPS = 4, COMMANDS_MAX = 32, RECORDS_OF = 1024 * 1024 };

/* A command line. */
struct line {
    char *arguments[ARGUMENTS_MAX + 1];
    char texts[ARGUMENTS_MAX][ARGUMENT_SIZE];
    int count;
};

static char folder[64], files[80], written[80];
static char last_text[1024];
static size_t last_command;
static struct {
    unsigned long count;
    double seconds, slowest;
} totals[COMMANDS_MAX];

const char *commands_last(void)
{
    return last_text;
}

void commands_count(double seconds)
{
    totals[last_command].count++;
    totals[last_command].seconds += seconds;
    totals[last_command].slowest = MAX(seconds, totals[last_command].slowest);
}

void commands_print(int fd)
{
    for (size_t i = 0; i < MIN(command_count, (size_t)COMMANDS_MAX); i++)
        if (totals[i].count)
            dprintf(fd, "  %-10s %8lu cases, %6.2f ms each, slowest %4.0f ms\n", commands[i]->name, totals[i].count,
                    totals[i].seconds * 1000 / (double)totals[i].count, totals[i].slowest * 1000);
}

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    if (line->count < ARGUMENTS_MAX) {
        vsnprintf(line->texts[line->count], ARGUMENT_SIZE, format, values);
        line->arguments[line->count] = line->texts[line->count];
        line->arguments[++line->count] = NULL;
    }
    va_end(values);
}

/* ---- The folder ---- */

void commands_init(void)
{
    snprintf(folder, sizeof folder, "/dev/shm/cdacq-mutants-%d", getpid());
    snprintf(files, sizeof files, "%s/files", folder);
    snprintf(written, sizeof written, "%s/written", folder);
    if (mkdir(folder, 0700) < 0 || mkdir(files, 0700) < 0) {
        perror(folder);
        exit(2);
    }
    for (size_t i = 0; i < base_count; i++) {
        char link[sizeof files + NAME_MAX + 1];
        snprintf(link, sizeof link, "%s/%.*s", files, NAME_MAX, bases[i].name);
        if (bases[i].kind == BASE_IMAGE || bases[i].kind == BASE_PDB)
            (void)!symlink(bases[i].path, link);
    }
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_folder(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void commands_deinit(void)
{
    remove_folder(folder);
}

/* Nothing may be written beside the folder that `symfs` or `bundle` was given. */
static bool is_folder_clean(void)
{
    DIR *open = opendir(folder);
    bool is_clean = true;
    for (struct dirent *entry; open && (entry = readdir(open)) != NULL;)
        is_clean &= !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") || !strcmp(entry->d_name, "files") ||
                    !strcmp(entry->d_name, "written");
    if (open)
        closedir(open);
    return is_clean;
}

/* ---- Bases that commands write ---- */

static const char *run(struct line *line, int input);

static void add_written(const char *command, const struct base *core, const char *name)
{
    struct line line = {0};
    char path[sizeof folder + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    add(&line, "mutants");
    add(&line, "%s", command);
    add(&line, "%s", core->path);
    add(&line, "--stubs");
    add(&line, "--output=%s", path);
    const char *problem = run(&line, -1);
    struct stat st;
    if (!problem && stat(path, &st) == 0 && st.st_size > 1024)
        bases_add_file(path);
    (void)unlink(path);
}

void commands_add_bases(void)
{
    for (size_t i = 0, count = base_count; i < count; i++)
        if (bases[i].kind == BASE_CORE && bases[i].size < RECORDS_OF) {
            add_written("jitdump", &bases[i], "written.dump");
            add_written("perfmap", &bases[i], "written.map");
        }
}

/* ---- Command lines ---- */

static void add_options(struct line *line, const struct command *command, struct random *random)
{
    static const char *const styles[] = {"csharp", "sos", "il", "source"};
    if (command_takes(command, names_rows))
        add(line, "--names=%s", styles[random_below(random, ARRAY_SIZE(styles))]);
    if (command_takes(command, stubs_rows) && random_below(random, 8)) /* all are many, which takes time */
        add(line, random_below(random, 8) ? "--stubs" : "--r2r=all");
    if (command_takes(command, json_rows) && random_below(random, 2))
        add(line, "--json");
    if (command_takes(command, snapshot_rows) && random_below(random, 3))
        add(line, "--stacks");
    if (command_takes(command, snapshot_rows) && random_below(random, 4) == 0)
        add(line, "--heap");
    if (command_takes(command, complete_rows) && random_below(random, 2))
        add(line, "--unconfirmed");
    if (command_takes(command, heap_rows) && random_below(random, 3) == 0)
        add(line, "--strings");
    if (command_takes(command, elf_rows) && random_below(random, 2))
        add(line, "--code");
    if (command_takes(command, report_rows) && random_below(random, 4) == 0)
        add(line, random_below(random, 2) ? "--brief" : "--signature");
    if (command_takes(command, stack_rows) && random_below(random, 4) == 0)
        add(line, random_below(random, 2) ? "--managed" : "--each");
    if (command_takes(command, stack_rows) && random_below(random, 2))
        add(line, "--variables");
}

static void add_ips(struct line *line, const struct base *core, struct random *random)
{
    for (int i = 0; i < IPS; i++)
        add(line, "%llx", (unsigned long long)base_any_target(core, random));
    if (random_below(random, 4) == 0)
        add(line, "libcoreclr.so!0x%x", (unsigned)random_below(random, 1 << 20));
    if (random_below(random, 8) == 0)
        add(line, "System.String.Concat+0x%x", (unsigned)random_below(random, 99));
}

static void add_names(struct line *line, struct random *random)
{
    static const char *const names[] = {"*", "System.*", "*.Main(*)", "*****?", "a*b*c*d*e*f", "System.String.Concat"};
    add(line, "%s", names[random_below(random, ARRAY_SIZE(names))]);
}

static void add_bounds(struct line *line)
{
    add(line, "--work-max=2M");
    add(line, "--memory-max=32M");
}

/* What standard input provides; -1: nothing. */
static const char *run(struct line *line, int input)
{
    struct command_line parsed;
    const char *problem = NULL;
    size_t used = 0;
    for (int i = 1; i < line->count && used < sizeof last_text; i++)
        used += (size_t)snprintf(last_text + used, sizeof last_text - used, " %s", line->arguments[i]);
    int before = input < 0 ? -1 : dup(STDIN_FILENO);
    if (input >= 0) {
        lseek(input, 0, SEEK_SET);
        dup2(input, STDIN_FILENO);
    }
    optind = 0; /* getopt begins again */
    if (arguments_parse(line->count, line->arguments, &parsed) == ARGUMENTS_RUN) {
        for (last_command = 0; commands[last_command] != parsed.command;)
            last_command++;
        int status = parsed.command->run(parsed.options);
        if (status < 0 || status > 2)
            problem = "an exit code that no command has";
    } else
        problem = "a command line that is wrong";
    arguments_deinit(&parsed);
    if (before >= 0) {
        dup2(before, STDIN_FILENO);
        close(before);
    }
    return problem;
}

/* A core, as a file or as standard input, which is returned then; or several. Results of one go to /dev/null. */
static int add_targets(struct line *line, const struct command *command, const struct base *core, struct random *random)
{
    uint64_t how = command->operands->repeats ? random_below(random, 8) : 0;
    add(line, "%s", how == 1 ? "-" : core->path);
    if (how == 2) {
        add(line, "%s", bases_any(random, BASE_CORE)->path);
        add(line, "%s", core->path);
    } else if (command_takes(command, output_rows)) {
        add(line, "-o");
        add(line, "/dev/null");
    }
    return how == 1 ? core->fd : -1;
}

static const char *run_core_as(const char *name, const struct base *core, const struct base *other,
                               struct random *random)
{
    struct line line = {0};
    const struct command *command = command_find(name);
    add(&line, "mutants");
    add(&line, "%s", name);
    int input = add_targets(&line, command, core, random);
    if ((!strcmp(name, "verify") || !strcmp(name, "descriptor")) && other)
        add(&line, "%s", other->path);
    bool writes_folder = !strcmp(name, "symfs") || !strcmp(name, "bundle");
    if (writes_folder)
        add(&line, "%s", written);
    add_bounds(&line);
    if (other && (other->kind == BASE_IMAGE || other->kind == BASE_PDB || random_below(random, 4) == 0))
        add(&line, "--module-path=%s", files);
    if (other && other->kind == BASE_JSON)
        add(&line, "--descriptor=%s", other->path);
    add_options(&line, command, random);
    if (!strcmp(name, "filter")) {
        input = other->fd;
        if (random_below(random, 2))
            add(&line, "--folded");
    }
    if (!strcmp(name, "ip2method") || !strcmp(name, "inspect"))
        add_ips(&line, core, random);
    if (!strcmp(name, "methods") && random_below(random, 4) == 0)
        add_names(&line, random);
    const char *problem = run(&line, input);
    if (writes_folder) {
        if (!is_folder_clean())
            problem = "a file is where none may be written";
        remove_folder(written);
    }
    return problem;
}

static const char *run_core(const struct base *core, struct random *random)
{
    static const char *const names[] = {"info",       "ip2method", "inspect", "methods", "perfmap", "jitdump",
                                        "descriptor", "snapshot",  "stack",   "report",  "verify",  "elf",
                                        "filter",     "symfs",     "bundle",  "heap",    "complete"};
    const char *name = names[random_below(random, ARRAY_SIZE(names))];
    const struct base *other = !strcmp(name, "filter") ? bases_any(random, BASE_TEXT)
                               : !strcmp(name, "verify")
                                   ? bases_any(random, random_below(random, 2) ? BASE_MAP : BASE_JITDUMP)
                                   : NULL;
    if (!strcmp(name, "descriptor") && random_below(random, 2))
        other = bases_any(random, BASE_CORE);
    return (!strcmp(name, "filter") || !strcmp(name, "verify")) && !other ? NULL
                                                                          : run_core_as(name, core, other, random);
}

/* A command without a core. */
static const char *run_file(const char *name, const struct base *base, struct random *random)
{
    struct line line = {0};
    add(&line, "mutants");
    add(&line, "%s", name);
    add(&line, "%s", base->path);
    add(&line, "-o");
    add(&line, "/dev/null");
    add_options(&line, command_find(name), random);
    if (!strcmp(name, "records") && random_below(random, 2))
        add(&line, "--at=%llx", (unsigned long long)base_any_target(bases_any(random, BASE_CORE), random));
    return run(&line, -1);
}

/* Commands that look for images, PDBs and descriptors. */
static const char *run_with(const struct base *other, struct random *random)
{
    static const char *const names[] = {"info",     "ip2method", "inspect", "methods", "perfmap",
                                        "snapshot", "stack",     "report",  "elf",     "complete"};
    const struct base *core = bases_any(random, BASE_CORE);
    return run_core_as(names[random_below(random, ARRAY_SIZE(names))], core, other, random);
}

const char *commands_run(const struct base *base, struct random *random)
{
    const struct base *core = bases_any(random, BASE_CORE);
    bool first = random_below(random, 2);
    switch (base->kind) {
    case BASE_CORE:
        return run_core(base, random);
    case BASE_PACKED:
        return run_file(first ? "info" : "report", base, random);
    case BASE_JITDUMP:
        return first ? run_file("records", base, random) : run_core_as("verify", core, base, random);
    case BASE_MAP:
        return run_core_as("verify", core, base, random);
    case BASE_TEXT:
        return run_core_as("filter", core, base, random);
    case BASE_FOLDED:
        return run_file("flame", base, random);
    case BASE_IMAGE:
        return random_below(random, 4) ? run_with(base, random) : run_file(first ? "info" : "descriptor", base, random);
    case BASE_JSON:
        return run_with(base, random);
    case BASE_PDB:
        return run_with(base, random);
    }
    return NULL;
}
