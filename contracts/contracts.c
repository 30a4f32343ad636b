#include "contracts/contracts.h"

#include <stdio.h>

#include "contracts/execution_manager/execution_manager.h"
#include "descriptors/descriptor.h"
#include "formats/debug_info.h"
#include "contracts/code_lookup/precode_stubs.h"
#include "util/error.h"

struct contract_row {
    const char *name;
    unsigned schema;
    const char *version;
    enum layout_contract contract;
    const struct execution_manager_version *execution_manager; /* NULL for other contracts */
    const struct precode_stubs_version *precode_stubs;         /* likewise */
    const struct debug_info_encoding *debug_info;              /* likewise */
};

static const struct contract_row rows[] = {
    {"ExecutionManager", 0, "1", LAYOUT_ExecutionManager, &execution_manager_1, NULL, NULL},
    {"ExecutionManager", 0, "2", LAYOUT_ExecutionManager, &execution_manager_2, NULL, NULL},
    {"ExecutionManager", 0, "c1", LAYOUT_ExecutionManager, &execution_manager_1, NULL, NULL}, /* previews of .NET 11 */
    {"ExecutionManager", 0, "c2", LAYOUT_ExecutionManager, &execution_manager_2, NULL, NULL},
    {"ExecutionManager", 2, "c1", LAYOUT_ExecutionManager, &execution_manager_c1, NULL, NULL},
    {"ExecutionManager", 2, "n1", LAYOUT_ExecutionManager, &execution_manager_n1, NULL, NULL}, /* NativeAOT */
    {"AuxiliarySymbols", 2, "c1", LAYOUT_AuxiliarySymbols, NULL, NULL, NULL},
    {"PlatformMetadata", 0, "1", LAYOUT_PlatformMetadata, NULL, NULL, NULL},
    {"PlatformMetadata", 0, "c1", LAYOUT_PlatformMetadata, NULL, NULL, NULL},
    {"PlatformMetadata", 2, "c1", LAYOUT_PlatformMetadata, NULL, NULL, NULL},
    {"PrecodeStubs", 0, "1", LAYOUT_PrecodeStubs, NULL, &precode_stubs_1, NULL},
    {"PrecodeStubs", 0, "2", LAYOUT_PrecodeStubs, NULL, &precode_stubs_2, NULL},
    {"PrecodeStubs", 0, "3", LAYOUT_PrecodeStubs, NULL, &precode_stubs_3, NULL},
    {"PrecodeStubs", 0, "c3", LAYOUT_PrecodeStubs, NULL, &precode_stubs_3, NULL}, /* previews of .NET 11 */
    {"PrecodeStubs", 2, "c1", LAYOUT_PrecodeStubs, NULL, &precode_stubs_3, NULL},
    {"RuntimeTypeSystem", 0, "8.0", LAYOUT_RuntimeTypeSystem, NULL, NULL,
     NULL}, /* ours, for .NET 8: see type_handle.c */
    {"RuntimeTypeSystem", 0, "1", LAYOUT_RuntimeTypeSystem, NULL, NULL, NULL},
    {"RuntimeTypeSystem", 0, "c1", LAYOUT_RuntimeTypeSystem, NULL, NULL, NULL},
    {"RuntimeTypeSystem", 2, "c1", LAYOUT_RuntimeTypeSystem, NULL, NULL, NULL},
    {"RuntimeTypeSystem", 2, "n1", LAYOUT_RuntimeTypeSystem, NULL, NULL, NULL},
    {"CodeVersions", 0, "1", LAYOUT_CodeVersions, NULL, NULL, NULL},
    {"CodeVersions", 0, "c1", LAYOUT_CodeVersions, NULL, NULL, NULL},
    {"CodeVersions", 2, "c1", LAYOUT_CodeVersions, NULL, NULL, NULL},
    {"Loader", 0, "1", LAYOUT_Loader, NULL, NULL, NULL},
    {"Loader", 0, "c1", LAYOUT_Loader, NULL, NULL, NULL},
    {"Loader", 2, "c1", LAYOUT_Loader, NULL, NULL, NULL},
    {"EcmaMetadata", 0, "1", LAYOUT_EcmaMetadata, NULL, NULL, NULL},
    {"EcmaMetadata", 0, "c1", LAYOUT_EcmaMetadata, NULL, NULL, NULL},
    {"EcmaMetadata", 2, "c1", LAYOUT_EcmaMetadata, NULL, NULL, NULL},
    {"DebugInfo", 0, "8.0", LAYOUT_DebugInfo, NULL, NULL, &debug_info_nibbles}, /* ours, for .NET 8 and 9 */
    {"DebugInfo", 0, "1", LAYOUT_DebugInfo, NULL, NULL, &debug_info_packed},
    {"DebugInfo", 0, "2", LAYOUT_DebugInfo, NULL, NULL, &debug_info_chunked}, /* previews of .NET 11 */
    {"DebugInfo", 0, "c1", LAYOUT_DebugInfo, NULL, NULL, &debug_info_packed},
    {"DebugInfo", 0, "c2", LAYOUT_DebugInfo, NULL, NULL, &debug_info_chunked},
    {"DebugInfo", 2, "c1", LAYOUT_DebugInfo, NULL, NULL, &debug_info_chunked},
    {"Thread", 0, "1", LAYOUT_Thread, NULL, NULL, NULL},
    {"Thread", 0, "c1", LAYOUT_Thread, NULL, NULL, NULL},
    {"Thread", 2, "c1", LAYOUT_Thread, NULL, NULL, NULL},
    {"Thread", 2, "n1", LAYOUT_Thread, NULL, NULL, NULL},
    {"StackWalk", 0, "8.0", LAYOUT_StackWalk, NULL, NULL, NULL}, /* ours, for .NET 8 and 9: see explicit_frame.h */
    {"StackWalk", 0, "1", LAYOUT_StackWalk, NULL, NULL, NULL},
    {"StackWalk", 0, "c1", LAYOUT_StackWalk, NULL, NULL, NULL},
    {"StackWalk", 2, "c1", LAYOUT_StackWalk, NULL, NULL, NULL},
    {"Object", 0, "1", LAYOUT_Object, NULL, NULL, NULL},
    {"Object", 0, "c1", LAYOUT_Object, NULL, NULL, NULL},
    {"Object", 2, "c1", LAYOUT_Object, NULL, NULL, NULL},
    {"Object", 2, "n1", LAYOUT_Object, NULL, NULL, NULL},
    {"SyncBlock", 0, "8.0", LAYOUT_SyncBlock, NULL, NULL, NULL}, /* ours, for .NET 8 to 10 */
    {"SyncBlock", 0, "1", LAYOUT_SyncBlock, NULL, NULL, NULL},
    {"SyncBlock", 0, "c1", LAYOUT_SyncBlock, NULL, NULL, NULL},
    {"SyncBlock", 2, "c1", LAYOUT_SyncBlock, NULL, NULL, NULL},
    {"Exception", 0, "1", LAYOUT_Exception, NULL, NULL, NULL},
    {"Exception", 0, "c1", LAYOUT_Exception, NULL, NULL, NULL},
    {"Exception", 2, "c1", LAYOUT_Exception, NULL, NULL, NULL},
    {"Exception", 2, "n1", LAYOUT_Exception, NULL, NULL, NULL},
    {"RuntimeInfo", 0, "1", LAYOUT_RuntimeInfo, NULL, NULL, NULL},
    {"RuntimeInfo", 0, "c1", LAYOUT_RuntimeInfo, NULL, NULL, NULL},
    {"RuntimeInfo", 2, "c1", LAYOUT_RuntimeInfo, NULL, NULL, NULL},
    {"StressLog", 0, "2", LAYOUT_StressLog, NULL, NULL, NULL},
    {"StressLog", 2, "c2", LAYOUT_StressLog, NULL, NULL, NULL},
    {"GC", 0, "8.0", LAYOUT_GC, NULL, NULL, NULL}, /* ours, for .NET 8 to 10: see gc/heap.h */
    {"GC", 2, "c1", LAYOUT_GC, NULL, NULL, NULL},
};

/* Of what this build reads without rows in layout.def: GC info, and the hash tables of the runtime. */
static const struct {
    const char *name;
    unsigned schema;
    const char *version;
} further[] = {{"GCInfo", 2, "c1"}, {"SHash", 2, "c1"}};

static const struct contract_row *find_row(const char *name, unsigned schema, const char *version)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (rows[i].schema == schema && strcmp(rows[i].name, name) == 0 && strcmp(rows[i].version, version) == 0)
            return &rows[i];
    return NULL;
}

bool contracts_supported(const char *name, unsigned schema, const char *version)
{
    return find_row(name, schema, version) != NULL;
}

/* Whether two versions are of the same kind of runtime: "n1" and the like are NativeAOT's. */
static bool same_flavor(const char *version, const char *other)
{
    return (version[0] == 'n') == (other[0] == 'n');
}

void contracts_known(const char *name, unsigned schema, const char *version, char *buffer, size_t size)
{
    size_t length = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].schema != schema || strcmp(rows[i].name, name) != 0 || !same_flavor(rows[i].version, version))
            continue;
        int n = snprintf(buffer + length, size - length, "%s%s", length ? ", " : "", rows[i].version);
        if (n < 0 || (size_t)n >= size - length)
            return;
        length += (size_t)n;
    }
}

/* Appends a contract to a list if the descriptor lacks it (`item` is NULL) or has it in another version. */
static void append_unknown(const struct descriptor_item *item, const char *name, bool supported, const char *known,
                           char *buffer, size_t size)
{
    size_t length = strlen(buffer);
    char version[32];
    if (item && supported)
        return;
    const char *text = item ? error_printable(version, sizeof version, item->text) : "none";
    int n = snprintf(buffer + length, size - length, "%s%s %s (not %s)", length ? ", " : "", name, text, known);
    if (n < 0 || (size_t)n >= size - length)
        buffer[length] = '\0';
}

void contracts_unknown(const struct descriptor *descriptor, char *buffer, size_t size)
{
    char known[64];
    buffer[0] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (rows[i].schema != descriptor->schema ||
            (i && strcmp(rows[i].name, rows[i - 1].name) == 0 && rows[i - 1].schema == rows[i].schema))
            continue;
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_CONTRACT, "", rows[i].name);
        if (!item && rows[i].contract == LAYOUT_GC)
            continue; /* a sub-descriptor publishes it, and whoever reads that says that it is missing */
        contracts_known(rows[i].name, descriptor->schema, rows[i].version, known, sizeof known);
        append_unknown(item, rows[i].name, item && contracts_supported(rows[i].name, descriptor->schema, item->text),
                       known, buffer, size);
    }
    for (size_t i = 0; i < ARRAY_SIZE(further); i++) {
        const struct descriptor_item *item = descriptor_find(descriptor, CDACQ_ITEM_CONTRACT, "", further[i].name);
        if (further[i].schema == descriptor->schema)
            append_unknown(item, further[i].name, item && strcmp(item->text, further[i].version) == 0,
                           further[i].version, buffer, size);
    }
}

bool contracts_native_aot(const struct descriptor *descriptor)
{
    enum runtime_flavor flavor = runtime_flavor_find(descriptor);
    if (flavor != RUNTIME_FLAVOR_UNKNOWN)
        return flavor == RUNTIME_FLAVOR_NATIVE_AOT;
    /* Every CoreCLR describes Modules and MethodDescs; NativeAOT has neither. */
    return descriptor->items.count && !descriptor_find(descriptor, CDACQ_ITEM_CONTRACT, "", "ExecutionManager") &&
           !descriptor_find(descriptor, CDACQ_ITEM_TYPE, "", "Module") &&
           !descriptor_find(descriptor, CDACQ_ITEM_TYPE, "", "MethodDesc");
}

bool contracts_need_descriptor(const struct descriptor *descriptor)
{
    return !descriptor_find(descriptor, CDACQ_ITEM_CONTRACT, "", "ExecutionManager") &&
           !contracts_native_aot(descriptor);
}

enum cdacq_status contracts_select(const struct descriptor *descriptor, struct contracts *ret, struct cdacq_error *err)
{
    struct contracts contracts = {0};
    for (size_t i = 0; i < descriptor->items.count; i++) {
        const struct descriptor_item *item = &descriptor->items.items[i];
        const struct contract_row *row =
            item->kind == CDACQ_ITEM_CONTRACT ? find_row(item->name, descriptor->schema, item->text) : NULL;
        if (!row)
            continue;
        contracts.usable |= 1u << row->contract;
        if (row->execution_manager)
            contracts.execution_manager = row->execution_manager;
        if (row->precode_stubs)
            contracts.precode_stubs = row->precode_stubs;
        if (row->debug_info)
            contracts.debug_info = row->debug_info;
    }
    if (!contracts.execution_manager) {
        const struct descriptor_item *published =
            descriptor_find(descriptor, CDACQ_ITEM_CONTRACT, "", "ExecutionManager");
        char known[64], version[32];
        contracts_known("ExecutionManager", descriptor->schema, published ? published->text : "", known, sizeof known);
        if (published)
            return error_set(err, CDACQ_ERR_CONTRACT, 0,
                             "the runtime publishes ExecutionManager %s (descriptor version %u); this build reads %s",
                             error_printable(version, sizeof version, published->text), descriptor->schema,
                             known[0] ? known : "none of that descriptor version");
        if (contracts_native_aot(descriptor))
            return error_set(err, CDACQ_ERR_CONTRACT, 0,
                             "the runtime is NativeAOT, and its descriptor has no ExecutionManager: methods are native "
                             "code, which a native debugger names by the application's symbol file");
        return error_set(err, CDACQ_ERR_CONTRACT, 0,
                         "the runtime publishes no ExecutionManager contract (as .NET 9), and this build has no "
                         "supplement for it, so methods cannot be found");
    }
    *ret = contracts;
    return CDACQ_OK;
}
