#include "contracts/ready_to_run/r2r_image.h"

#include "contracts/code_info/gc_info.h"
#include "contracts/code_lookup/hash_map.h"
#include "formats/names/entry_point.h"
#include "contracts/ready_to_run/r2r_imports.h"

/* r2r_entries.methods: a tag in the top three bits, and a number. 0 is none. */
#define ENTRY_KIND_SHIFT 29
#define ENTRY_VALUE_MASK ((UINT32_C(1) << ENTRY_KIND_SHIFT) - 1)

enum { ENTRY_TAG_METHODDEF = 1, ENTRY_TAG_INSTANCE = 2, ENTRY_TAG_COMPONENT = 3, ENTRY_TAG_RESUMPTION_STUB = 4 };

enum { INSTANCE_SIGNATURE_MAX = 64 * 1024 };

static void entries_free(struct r2r_entries *entries)
{
    if (!entries)
        return;
    window_deinit(&entries->instances_window);
    window_deinit(&entries->manifest);
    window_deinit(&entries->mvids);
    free(entries->components);
    free(entries->methods);
    free(entries);
}

void r2r_image_free(struct r2r_image *image)
{
    if (!image)
        return;
    window_deinit(&image->hot_cold_window);
    entries_free(atomic_load_explicit(&image->entries, memory_order_acquire));
    free(image);
}

enum method_entry_kind r2r_entry(const struct r2r_entries *entries, uint32_t function, uint32_t *ret_entry,
                                 uint16_t *ret_component)
{
    uint32_t entry = entries->methods ? entries->methods[function] : 0;
    *ret_entry = entry & ENTRY_VALUE_MASK;
    *ret_component = entries->components ? entries->components[function] : 0;
    switch (entry >> ENTRY_KIND_SHIFT) {
    case ENTRY_TAG_METHODDEF:
        return ENTRY_METHODDEF;
    case ENTRY_TAG_INSTANCE:
        return ENTRY_INSTANCE;
    case ENTRY_TAG_COMPONENT:
        return ENTRY_COMPONENT;
    case ENTRY_TAG_RESUMPTION_STUB:
        return ENTRY_RESUMPTION_STUB;
    default:
        return ENTRY_NONE;
    }
}

/* What the runtime's map has for a function; 0 if nothing or if the reader fails. */
static uint64_t mapped_method_desc(const struct r2r_image *image, struct reader *reader, uint32_t function)
{
    uint64_t start = image->base + unwind_table_begin(reader, &image->functions, function);
    return reader_failed(reader) ? 0 : ptr_hash_map_find(reader, image->entry_point_map, start);
}

uint64_t r2r_image_method_desc(const struct r2r_image *image, struct reader *reader, uint32_t function,
                               uint64_t *ret_unknown)
{
    uint64_t method_desc = mapped_method_desc(image, reader, function);
    uint64_t missing = reader_failure(reader).address;
    bool unknown = reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY)); /* the image may still name the method */
    *ret_unknown = unknown ? missing : 0;
    return unknown || reader_failed(reader) ? 0 : method_desc;
}

bool r2r_image_is_start(const struct r2r_image *image, const struct r2r_entries *entries, struct reader *reader,
                        uint32_t function)
{
    if (!has_funclets(reader))
        return true; /* without cold code either, a function is a method */
    /* Without tables only the map has the starts: missing memory must not be taken for "no start here". */
    return entries->methods ? entries->methods[function] != 0 : mapped_method_desc(image, reader, function) != 0;
}

static uint32_t word_in_memory(void *context, uint64_t at)
{
    return read_u32(context, at);
}

/* The same without failing: 0 if it cannot be read. */
static uint32_t word_if_there(void *context, uint64_t at)
{
    struct reader *reader = context;
    uint8_t bytes[4] = {0};
    reader_try_copy(reader, at, bytes, sizeof bytes);
    return load_u32(bytes, reader->big_endian);
}

static struct r2r_source source_of(struct reader *reader)
{
    return (struct r2r_source){word_in_memory, reader, reader->big_endian};
}

static bool find_section(struct reader *reader, const struct r2r_section_table *sections, enum r2r_section_type type,
                         struct r2r_section *ret)
{
    struct r2r_source source = source_of(reader);
    return reader_step(reader, "ReadyToRun sections") && r2r_section_find(&source, sections, type, ret) &&
           !reader_failed(reader);
}

/* The sections of the image. False if it has no header or the reader fails. */
static bool read_sections(struct reader *reader, const struct r2r_image *image, struct r2r_section_table *ret)
{
    char magic[2];
    struct r2r_source source = source_of(reader);
    struct r2r_header header = {0};
    if (!image->header)
        return false;
    bool valid = r2r_header_read(&source, image->header, &header);
    if (reader_failed(reader))
        return false;
    /* A synthetic target may have no real image. A PE image without a valid header is damaged. */
    if (!valid &&
        !(reader_try_copy(reader, image->base, magic, sizeof magic) && memcmp(magic, "MZ", sizeof magic) == 0))
        return false;
    *ret = header.sections;
    if (!valid || ret->count > R2R_SECTION_MAX)
        reader_fail(reader, CDACQ_ERR_CORRUPT, image->header, "READYTORUN_HEADER");
    return !reader_failed(reader);
}

static bool section_window(struct reader *reader, const struct r2r_image *image, const struct r2r_section *section,
                           const char *what, struct window *ret)
{
    if (!range_fits(section->rva, section->size, image->end - image->base))
        return reader_fail(reader, CDACQ_ERR_CORRUPT, image->base + section->rva, what);
    return reader_window(reader, image->base + section->rva, section->size, what, ret);
}

/* A section by the runtime's pointer to its directory, as specified. */
static bool described_section(const struct r2r_image *image, struct reader *reader, enum layout_field field,
                              struct r2r_section *ret)
{
    uint64_t directory = read_field(reader, image->info, field);
    if (!directory || reader_failed(reader))
        return false;
    *ret = (struct r2r_section){
        .rva = (uint32_t)read_field(reader, directory, F_ImageDataDirectory_VirtualAddress),
        .size = (uint32_t)read_field(reader, directory, F_ImageDataDirectory_Size),
    };
    return ret->size != 0 && !reader_failed(reader);
}

bool r2r_image_section(const struct r2r_image *image, struct reader *reader, enum r2r_section_type type,
                       struct r2r_section *ret)
{
    struct r2r_section_table sections;
    enum layout_field field = type == R2R_DEBUG_INFO       ? F_ReadyToRunInfo_DebugInfoSection
                              : type == R2R_EXCEPTION_INFO ? F_ReadyToRunInfo_ExceptionInfoSection
                                                           : F_COUNT;
    bool described = field != F_COUNT && has_field(reader, field);
    if (described ? !described_section(image, reader, field, ret)
                  : !read_sections(reader, image, &sections) || !find_section(reader, &sections, type, ret))
        return false;
    if (!range_fits(ret->rva, ret->size, image->end - image->base))
        reader_fail(reader, CDACQ_ERR_CORRUPT, image->base + ret->rva, "ReadyToRun section");
    return !reader_failed(reader);
}

/* A method's runtime function index as both tables store it; the low bit says that fixups follow. */
static bool entry_function(const struct native_section *section, uint32_t offset, uint32_t *ret)
{
    uint32_t id;
    if (!native_unsigned(section, &offset, &id))
        return false;
    *ret = id & 1 ? id >> 2 : id >> 1;
    return true;
}

/* The function with which a methoddef starts. False if the table lacks it, as it does generic methods. */
static bool start_of_methoddef(const struct r2r_image *image, struct reader *reader, uint32_t rid, uint32_t *ret)
{
    struct r2r_section section;
    struct native_array array;
    uint32_t offset;
    if (!rid || !r2r_image_section(image, reader, R2R_METHODDEF_ENTRYPOINTS, &section))
        return false;
    const struct native_section bytes = {NULL, section.size, image->base + section.rva, reader};
    return native_array_open(bytes, &array) && native_array_at(&array, rid - 1, &offset) &&
           entry_function(&array.section, offset, ret) && !reader_failed(reader);
}

bool r2r_image_contradicts(const struct r2r_image *image, struct reader *reader, uint32_t function, uint32_t rid)
{
    uint32_t start, entry;
    uint16_t component;
    if (!start_of_methoddef(image, reader, rid, &start) || start == function)
        return false;
    /*
     * A second method with the same token, such as the async variant of one that returns a Task, is no contradiction.
     */
    const struct r2r_entries *entries = r2r_image_entries(image, reader);
    return entries && r2r_entry(entries, function, &entry, &component) == ENTRY_METHODDEF && entry != rid;
}

struct inverter {
    struct reader *reader;
    const struct r2r_image *image;
    struct r2r_entries *entries;
    uint16_t component; /* whose table is being read */
};

/* A start that is lost would give its code to the method before it, so a malformed table gives no answer at all. */
static void malformed(const struct inverter *inverter, const struct r2r_section *section, const char *what)
{
    reader_fail(inverter->reader, CDACQ_ERR_CORRUPT, inverter->image->base + section->rva, what);
}

static void set_entry(const struct inverter *inverter, uint32_t function, unsigned tag, uint32_t value)
{
    uint32_t *methods = inverter->entries->methods;
    uint16_t *components = inverter->entries->components;
    /* A cold function is never a start. Of two entries the first one counts. */
    if (function >= inverter->image->first_cold || methods[function] || value > ENTRY_VALUE_MASK)
        return;
    methods[function] = (uint32_t)tag << ENTRY_KIND_SHIFT | value;
    if (components)
        components[function] = inverter->component;
}

static void add_methoddefs(const struct inverter *inverter, const struct r2r_section_table *sections, unsigned tag)
{
    struct r2r_section section;
    struct window window;
    struct native_array array;
    if (!find_section(inverter->reader, sections, R2R_METHODDEF_ENTRYPOINTS, &section) ||
        !section_window(inverter->reader, inverter->image, &section, "ReadyToRun section 103", &window))
        return;
    if (!native_array_open((struct native_section){.bytes = window.bytes, .size = section.size}, &array)) {
        array.count = 0;
        malformed(inverter, &section, "ReadyToRun section 103");
    }
    /* Bounds a false count: a rid has 24 bits, and an element takes at least a bit of the section. */
    uint32_t count = (uint32_t)MIN(MIN(array.count, UINT32_C(0xffffff)), (uint64_t)section.size * 16);
    for (uint32_t i = 0; i < count && reader_step(inverter->reader, "ReadyToRun section 103"); i++) {
        uint32_t offset, function = UINT32_MAX;
        if (!native_array_at(&array, i, &offset))
            continue;
        if (!entry_function(&array.section, offset, &function) || function >= inverter->image->first_cold)
            malformed(inverter, &section, "ReadyToRun section 103");
        else
            set_entry(inverter, function, tag, i + 1);
    }
    window_deinit(&window);
}

/* An instance's element is a method signature followed by the function. */
static bool add_instance(uint32_t offset, void *context)
{
    const struct inverter *inverter = context;
    const struct native_section *section = &inverter->entries->instances;
    size_t length;
    uint32_t function;
    if (name_entry_point_skip(section->bytes + offset, MIN(section->size - offset, (uint32_t)INSTANCE_SIGNATURE_MAX),
                              &length) != CDACQ_OK ||
        !entry_function(section, offset + (uint32_t)length, &function)) {
        inverter->entries->instances_incomplete = true;
        return true;
    }
    set_entry(inverter, function, ENTRY_TAG_INSTANCE, offset);
    /* Many entries may share one long signature; each costs fuel for its length. */
    for (size_t paid = 0; paid <= length; paid += 64)
        if (!reader_step(inverter->reader, "ReadyToRun section 109"))
            return false;
    return true;
}

static void add_instances(struct inverter *inverter, const struct r2r_section_table *sections)
{
    struct r2r_entries *entries = inverter->entries;
    struct r2r_section section;
    struct native_hashtable table;
    if (!find_section(inverter->reader, sections, R2R_INSTANCE_ENTRYPOINTS, &section) ||
        !section_window(inverter->reader, inverter->image, &section, "ReadyToRun section 109",
                        &entries->instances_window))
        return;
    entries->instances = (struct native_section){.bytes = entries->instances_window.bytes, .size = section.size};
    if (!native_hashtable_open(entries->instances, &table) || !native_hashtable_each(&table, add_instance, inverter) ||
        entries->instances_incomplete)
        malformed(inverter, &section, "ReadyToRun section 109");
}

/*
 * In a composite image each component has tables of its own: section 115 lists, for each, its CLR header and a header
 * of sections. The i-th AssemblyRef of the manifest metadata names the i-th component.
 */
static bool add_components(struct inverter *inverter, const struct r2r_section_table *sections)
{
    struct reader *reader = inverter->reader;
    uint64_t base = inverter->image->base;
    struct r2r_section list, manifest;
    if (!find_section(reader, sections, R2R_COMPONENT_ASSEMBLIES, &list))
        return false;
    uint32_t count = list.size / 16;
    if (count > R2R_COMPONENT_MAX)
        malformed(inverter, &list, "ReadyToRun section 115");
    uint64_t size = ((uint64_t)inverter->image->functions.count + 1) * sizeof(uint16_t);
    if (reader_take_memory(reader, size, "ReadyToRun entry points"))
        inverter->entries->components = calloc(1, size);
    if (!inverter->entries->components)
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "ReadyToRun entry points");
    /* Only names need these; the starts do not. */
    if (find_section(reader, sections, R2R_MANIFEST_METADATA, &manifest) &&
        !section_window(reader, inverter->image, &manifest, "ReadyToRun section 112", &inverter->entries->manifest))
        reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    if (find_section(reader, sections, R2R_MANIFEST_MVIDS, &manifest) &&
        !section_window(reader, inverter->image, &manifest, "ReadyToRun section 118", &inverter->entries->mvids))
        reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
    for (uint32_t i = 0; i < count && reader_step(reader, "ReadyToRun section 115"); i++) {
        uint64_t header = base + read_u32(reader, base + list.rva + (uint64_t)i * 16 + 8);
        struct r2r_source source = source_of(reader);
        struct r2r_section_table component = r2r_core_header_read(&source, header);
        if (component.count > R2R_SECTION_MAX)
            reader_fail(reader, CDACQ_ERR_CORRUPT, header, "READYTORUN_CORE_HEADER");
        inverter->component = (uint16_t)i;
        add_methoddefs(inverter, &component, ENTRY_TAG_COMPONENT);
    }
    return true;
}

static void add_resumption_stub(uint32_t rva, void *context)
{
    const struct inverter *inverter = context;
    const struct unwind_table *functions = &inverter->image->functions;
    uint32_t function = unwind_table_find(inverter->reader, functions, rva);
    bool is_thumb = inverter->reader->layout->architecture == ARCHITECTURE_ARM;
    if (is_thumb)
        rva &= ~UINT32_C(1);
    if (function != UINT32_MAX && unwind_table_begin(inverter->reader, functions, function) == rva)
        set_entry(inverter, function, ENTRY_TAG_RESUMPTION_STUB, 0);
}

/*
 * The stubs by which async methods continue are in none of the tables. Where the import sections are missing, as in
 * small cores, these stubs have no name; see r2r_method_start().
 */
static void add_resumption_stubs(struct inverter *inverter, const struct r2r_section_table *sections)
{
    struct reader *reader = inverter->reader;
    struct r2r_imports imports = {inverter->image->base, inverter->image->end, {0}};
    if (!inverter->image->has_resumption_stubs ||
        !find_section(inverter->reader, sections, R2R_IMPORT_SECTIONS, &imports.sections))
        return;
    r2r_imports_resumption_stubs(inverter->reader, &imports, add_resumption_stub, inverter);
    reader_recover(reader, FAILURE(CDACQ_ERR_MEMORY));
}

/* Inverts the entry point tables. A synthetic image may have none. */
static void invert(struct inverter *inverter)
{
    struct reader *reader = inverter->reader;
    struct r2r_section_table sections;
    struct r2r_section section;
    if (!read_sections(reader, inverter->image, &sections))
        return;
    bool has_tables = find_section(reader, &sections, R2R_METHODDEF_ENTRYPOINTS, &section) ||
                      find_section(reader, &sections, R2R_INSTANCE_ENTRYPOINTS, &section) ||
                      find_section(reader, &sections, R2R_COMPONENT_ASSEMBLIES, &section);
    if (!has_tables || reader_failed(reader))
        return;
    uint64_t size = ((uint64_t)inverter->image->functions.count + 1) * sizeof(uint32_t);
    if (reader_take_memory(reader, size, "ReadyToRun entry points"))
        inverter->entries->methods = calloc(1, size);
    if (!inverter->entries->methods) {
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "ReadyToRun entry points");
        return;
    }
    if (!add_components(inverter, &sections))
        add_methoddefs(inverter, &sections, ENTRY_TAG_METHODDEF);
    add_instances(inverter, &sections);
    add_resumption_stubs(inverter, &sections);
}

/* A failure is kept with the tables, so that every use reports it. */
static struct r2r_entries *entries_read(const struct r2r_image *image, struct reader *reader)
{
    struct r2r_entries *entries = calloc(1, sizeof *entries);
    if (!entries) {
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "ReadyToRun entry points");
        return NULL;
    }
    struct inverter inverter = {reader, image, entries, 0};
    /* The first look-up does not pay for the tables. */
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    invert(&inverter);
    entries->unverified = reader_unverified(reader);
    entries->failure = reader_leave(reader, &outer);
    return entries;
}

const struct r2r_entries *r2r_image_entries(const struct r2r_image *image, struct reader *reader)
{
    struct r2r_image *shared = (struct r2r_image *)(uintptr_t)image; /* only the atomic changes */
    struct r2r_entries *entries = atomic_load_explicit(&shared->entries, memory_order_acquire);
    if (reader_failed(reader))
        return NULL;
    if (!entries) {
        struct r2r_entries *read = entries_read(image, reader);
        if (!read)
            return NULL;
        if (atomic_compare_exchange_strong_explicit(&shared->entries, &entries, read, memory_order_acq_rel,
                                                    memory_order_acquire))
            entries = read;
        else
            entries_free(read);
    }
    reader_add_unverified(reader, entries->unverified);
    return reader_fail_again(reader, &entries->failure) ? NULL : entries;
}

/*
 * Whether the header of the image has a table there, at least of that size: the runtime copied where it is when it
 * loaded the image. True if the header lacks the table or cannot be read.
 */
static bool agrees_with_header(struct reader *reader, const struct r2r_image *image, enum r2r_section_type type,
                               uint64_t address, uint64_t size)
{
    struct r2r_source source = {word_if_there, reader, reader->big_endian};
    struct r2r_header header;
    struct r2r_section section;
    return !r2r_header_read(&source, image->header, &header) || header.sections.count > R2R_SECTION_MAX ||
           !r2r_section_find(&source, &header.sections, type, &section) || !section.rva ||
           (image->base + section.rva == address && size <= section.size);
}

static void read_thunks(struct reader *reader, struct r2r_image *image)
{
    enum layout_field field = F_ReadyToRunInfo_DelayLoadMethodCallThunks;
    if (has_field(reader, field) && has_field(reader, F_ImageDataDirectory_VirtualAddress))
        described_section(image, reader, field, &image->thunks);
}

static void read_hot_cold(struct reader *reader, struct r2r_image *image, uint64_t info)
{
    image->first_cold = image->functions.count;
    if (!has_field(reader, F_ReadyToRunInfo_NumHotColdMap) || !has_field(reader, F_ReadyToRunInfo_HotColdMap))
        return;
    uint32_t count = (uint32_t)read_field(reader, info, F_ReadyToRunInfo_NumHotColdMap);
    if (!count)
        return;
    if (count % 2) /* half a pair: the owner of the last cold code is unknown */
        reader_fail(reader, CDACQ_ERR_CORRUPT, info, "ReadyToRunInfo.NumHotColdMap");
    if (count / 2 > image->functions.count) /* a cold function has one pair */
        reader_fail(reader, CDACQ_ERR_CORRUPT, info, "ReadyToRunInfo.NumHotColdMap");
    uint64_t address = read_field(reader, info, F_ReadyToRunInfo_HotColdMap);
    if (!agrees_with_header(reader, image, R2R_HOT_COLD_MAP, address, (uint64_t)count * 4))
        reader_fail(reader, CDACQ_ERR_CORRUPT, info, "ReadyToRunInfo.HotColdMap");
    if (!reader_window(reader, address, (uint64_t)count * 4, "ReadyToRunInfo.HotColdMap", &image->hot_cold_window))
        return;
    image->hot_cold = (struct hot_cold_map){
        .entries = image->hot_cold_window.bytes,
        .pair_count = count / 2,
        .function_count = image->functions.count,
        .big_endian = reader->big_endian,
    };
    image->first_cold = hot_cold_first_cold(&image->hot_cold);
}

static void read_functions(struct reader *reader, struct r2r_image *image, uint64_t info)
{
    uint32_t count = (uint32_t)read_field(reader, info, F_ReadyToRunInfo_NumRuntimeFunctions);
    if (!count || reader_failed(reader))
        return;
    uint64_t address = read_field(reader, info, F_ReadyToRunInfo_RuntimeFunctions);
    if (count > R2R_FUNCTION_MAX)
        reader_fail(reader, CDACQ_ERR_CORRUPT, info, "ReadyToRunInfo.NumRuntimeFunctions");
    if (reader_failed(reader))
        return;
    image->functions = unwind_table_at(reader, address, count, image->base);
    /* Some tables end with a sentinel that the count may or may not include. */
    uint32_t last;
    if (reader_try_copy(reader,
                        address + (uint64_t)(count - 1) * image->functions.entry_size +
                            reader->layout->fields[F_RuntimeFunction_BeginAddress].offset,
                        &last, sizeof last) &&
        last == UINT32_MAX)
        image->functions.count--;
    uint64_t size = (uint64_t)image->functions.count * image->functions.entry_size;
    if (!agrees_with_header(reader, image, R2R_RUNTIME_FUNCTIONS, address, size))
        reader_fail(reader, CDACQ_ERR_CORRUPT, info, "ReadyToRunInfo.RuntimeFunctions");
    unwind_table_window(reader, &image->functions);
}

/* The version of the GC info follows from the header; it stays 0 if that cannot be read. */
static void read_version(struct reader *reader, struct r2r_image *image)
{
    enum { FIRST_WITH_STUBS = 17 }; /* previews of .NET 11; .NET 10 has 16 */
    struct r2r_source source = {word_if_there, reader, reader->big_endian};
    struct r2r_header header;
    if (!reader_failed(reader) && r2r_header_read(&source, image->header, &header)) {
        image->gc_info_version = gc_info_version_of_r2r(reader->layout, header.major, header.minor);
        image->major_version = header.major;
        image->has_resumption_stubs = header.major >= FIRST_WITH_STUBS;
    }
}

struct r2r_image *r2r_image_open(struct reader *reader, const struct range_section *section)
{
    struct r2r_image *image = calloc(1, sizeof *image);
    if (!image) {
        reader_fail(reader, CDACQ_ERR_NOMEM, 0, "ReadyToRun image");
        return NULL;
    }
    /* The look-up does not pay for the image either, and a failure is kept with it. */
    struct reader_task outer = reader_enter(reader, FUEL_INDEX);
    image->module = section->r2r_module;
    image->base = section->begin;
    image->end = section->end;
    uint64_t info = read_field(reader, section->r2r_module, F_Module_ReadyToRunInfo);
    uint64_t composite = read_field(reader, info, F_ReadyToRunInfo_CompositeInfo);
    image->info = info;
    image->header = read_field(reader, composite, F_ReadyToRunInfo_ReadyToRunHeader);
    /* Only the map is the composite image's; each component's info has everything else. */
    image->entry_point_map = field_address(reader, composite, F_ReadyToRunInfo_EntryPointToMethodDescMap);
    read_functions(reader, image, info);
    read_hot_cold(reader, image, info);
    read_thunks(reader, image);
    read_version(reader, image);
    image->unverified = reader_unverified(reader);
    image->failure = reader_leave(reader, &outer);
    reader_add_unverified(reader, image->unverified);
    return image;
}
