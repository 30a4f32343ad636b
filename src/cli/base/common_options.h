/*
 * common_options.h: options that several commands take. The struct of each command begins with struct common_options,
 * into which the rows of these options write.
 */
#ifndef CDACQ_CLI_BASE_COMMON_OPTIONS_H
#define CDACQ_CLI_BASE_COMMON_OPTIONS_H

#include "cdacq.h"
#include "src/cli/base/console.h"
#include "src/cli/base/options.h"

/* Operands, which the command line owns. */
struct word_list {
    const char *const *items;
    size_t count;
};

struct common_options {
    const char *command; /* its name, for messages */
    struct word_list targets;
    struct cdacq_options open; /* how a target is opened */
    bool has_runtime;          /* --runtime was given */
    bool verbose, json, follow, all, folded, speedscope, pprof;
    const char *output; /* NULL: standard output */
};

/* Of commands that take addresses. */
struct address_options {
    struct common_options common;
    struct word_list ips; /* as typed */
};

extern const struct option_row target_rows[]; /* how a target is opened */
extern const struct option_row json_rows[], output_rows[], names_rows[], follow_rows[], whole_rows[], folded_rows[],
    profile_rows[];

enum r2r_methods { R2R_PREPARED, R2R_ALL, R2R_NONE };

/* Which methods are listed. */
struct method_options {
    struct common_options common;
    bool stubs;
    bool has_r2r; /* the default depends on the command */
    enum r2r_methods r2r;
};

extern const struct option_row stubs_rows[], r2r_rows[];

/* The flags of cdacq_session_visit_methods, with what --r2r is by default. */
unsigned method_flags(const struct method_options *options, enum r2r_methods by_default);

/* Every command takes these. */
struct general_options {
    enum colour colour;
    bool help, version;
};

extern const struct option_row general_rows[];

#endif
