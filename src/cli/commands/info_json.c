/* info_json.c: writes the facts of `info` as one JSON object. */
#include "src/cli/base/runtimes.h"
#include "src/cli/base/target.h"
#include "src/cli/commands/info.h"
#include "src/cli/base/json_writer.h"
#include "util/base.h"

static int write_contract(const struct cdacq_contract_info *contract, void *context)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_string(w, "name", contract->name);
    json_string(w, "version", contract->version);
    json_bool(w, "supported", contract->supported);
    json_string(w, "known", contract->known);
    json_string(w, "origin", contract->origin);
    json_end_object(w);
    return 0;
}

static int write_module(const struct cdacq_mapped_file *module, void *context)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_string(w, "path", module->path);
    json_address(w, "begin", module->begin);
    json_address(w, "end", module->end);
    json_string(w, "build_id", module->build_id);
    json_string(w, "symbol_key", module->symbol_key);
    json_number(w, "missing_size", module->missing_size);
    json_string(w, "local_path", module->local_path);
    json_bool(w, "verified", module->verified);
    json_note(w, "problem", module->problem);
    json_end_object(w);
    return 0;
}

static int write_pdb(const struct cdacq_pdb_info *pdb, void *context)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_string(w, "module", pdb->module);
    json_address(w, "base", pdb->base);
    json_string(w, "symbol_key", pdb->key);
    json_string(w, "path", pdb->path);
    json_bool(w, "embedded", pdb->embedded);
    json_bool(w, "refused", pdb->refused);
    json_note(w, "problem", pdb->problem);
    json_end_object(w);
    return 0;
}

static int write_runtime(const struct cdacq_runtime_info *runtime, void *context)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_string(w, "path", runtime->path);
    json_address(w, "base", runtime->base);
    json_string(w, "build_id", runtime->build_id);
    json_string(w, "version", runtime->version);
    json_address(w, "descriptor_address", runtime->descriptor_address);
    json_bool(w, "in_use", runtime->in_use);
    json_end_object(w);
    return 0;
}

static void write_step(const struct next_step *step, void *context)
{
    struct json_writer *w = context;
    json_begin_object(w, NULL);
    json_string(w, "need", step->need);
    json_note(w, "text", step->text);
    json_string(w, "path", step->path);
    json_string(w, "build_id", step->build_id);
    json_string(w, "symbol_key", step->symbol_key);
    json_begin_array(w, "options");
    for (size_t i = 0; i < ARRAY_SIZE(step->options) && step->options[i]; i++)
        json_string(w, NULL, step->options[i]);
    json_end_array(w);
    json_end_object(w);
}

static void write_runtimes(struct json_writer *w, const struct info *info)
{
    const struct cdacq_target_info *facts = &info->facts;
    json_begin_array(w, "runtimes");
    cdacq_target_visit_runtimes(info->target, write_runtime, w, NULL);
    json_end_array(w);
    json_bool(w, "native_aot", facts->native_aot);
    json_number(w, "runtime_count", facts->runtime_count);
    json_number(w, "runtime", facts->runtime);
    json_string(w, "runtime_version", runtime_version_of(facts));
    json_string(w, "runtime_file_version", facts->runtime_file_version);
    json_string(w, "runtime_path", facts->runtime_path);
    json_address(w, "runtime_base", facts->runtime_base);
    json_string(w, "runtime_build_id", facts->runtime_build_id);
    json_address(w, "descriptor_address", facts->descriptor_address);
    json_note(w, "descriptor_origin", facts->descriptor_origin);
    json_string(w, "supplement", facts->supplement);
    json_number(w, "schema", facts->schema);
    json_note(w, "descriptor_missing", facts->descriptor_missing);
}

static void write_memory(struct json_writer *w, const struct cdacq_target_info *facts)
{
    json_string(w, "writer", facts->writer);
    json_number(w, "segment_count", facts->segment_count);
    json_number(w, "dumped_size", facts->dumped_size);
    json_number(w, "missing_size", facts->missing_size);
    json_bool(w, "truncated", facts->truncated);
    json_note(w, "truncation", facts->truncation);
}

static void write_code_ranges(struct json_writer *w, const struct info *info)
{
    json_begin_array(w, "code_ranges");
    for (size_t i = 0; i < info->kind_count; i++) {
        const struct info_kind *kind = &info->kinds[i];
        json_begin_object(w, NULL);
        json_string(w, "kind", kind->name);
        json_number(w, "count", kind->count);
        json_number(w, "size", kind->size);
        json_number(w, "collectible", kind->collectible);
        json_number(w, "unreadable", kind->unreadable);
        json_note(w, "problem", kind->unreadable ? kind->problem : NULL);
        json_end_object(w);
    }
    json_end_array(w);
}

void info_write_json(const struct info *info, struct output *out)
{
    const struct cdacq_target_info *facts = &info->facts;
    struct json_writer writer = json_begin_line(out), *w = &writer;
    struct cdacq_error error;
    json_string(w, "target", info->target_name);
    json_note(w, "kind", info_target_kind(info));
    json_known_number(w, "pid", facts->pid != 0, (uint64_t)facts->pid);
    json_string(w, "elf_machine", facts->elf_machine);
    json_string(w, "architecture", facts->architecture);
    json_string(w, "operating_system", facts->operating_system);
    json_known_number(w, "pointer_size", facts->pointer_size != 0, facts->pointer_size);
    json_bool(w, "big_endian", facts->big_endian);
    write_runtimes(w, info);
    write_memory(w, facts);
    json_begin_array(w, "contracts");
    cdacq_target_visit_contracts(info->target, write_contract, w, NULL);
    json_end_array(w);
    write_code_ranges(w, info);
    json_begin_array(w, "modules");
    (void)cdacq_target_visit_mapped_files(info->target, write_module, w, &error);
    json_end_array(w);
    json_begin_array(w, "pdbs");
    if (info->session)
        (void)cdacq_session_visit_pdbs(info->session, write_pdb, w, &error);
    json_end_array(w);
    json_note(w, "problem", facts->problem);
    json_begin_array(w, "next_steps");
    info_visit_next_steps(info, write_step, w);
    json_end_array(w);
    json_end_line(w);
}
