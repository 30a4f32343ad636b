/*
 * layout.c: the layouts of the types in layout.def, and reading and writing fields by name. The seed chooses the order
 * and padding of fields, which are aligned as a compiler would align them.
 */
#include "mocktarget/mock.h"

#define KIND_U8      "uint8"
#define KIND_U16     "uint16"
#define KIND_U32     "uint32"
#define KIND_U64     "uint64"
#define KIND_NUINT   "nuint"
#define KIND_POINTER "pointer"
#define KIND_INLINE  NULL

const struct mock_row mock_type_rows[T_COUNT] = {
#define CDAC_TYPE(type)                      [T_##type].name = #type,
#define CDAC_SIZE(type, contract_name, need) [T_##type].contract = #contract_name,
#include "descriptors/layout.def"
};

const struct mock_row mock_field_rows[F_COUNT] = {
#define CDAC_FIELD(type, kind, field, contract, need) \
    [F_##type##_##field] = {#type "." #field, #contract, KIND_##kind, T_##type},
#include "descriptors/layout.def"
};

const struct mock_row mock_global_rows[G_COUNT] = {
#define CDAC_GLOBAL(kind, name, contract, need) [G_##name] = {#name, #contract, KIND_##kind, 0},
#include "descriptors/layout.def"
};

/* The width of a kind; 0 if it is inline. */
static unsigned width_of(const struct mock *mock, const char *kind)
{
    return !kind ? 0 : strncmp(kind, "uint", 4) == 0 ? (unsigned)atoi(kind + 4) / 8 : mock->word;
}

/* The size of an inline field; 0 for an array at the end of its object, whose size mock_object() takes. */
static uint32_t inline_size(const struct mock *mock, enum mock_field field)
{
    switch ((int)field) {
    case F_RangeSectionMap_TopLevelData:
        return 256 * mock->word;
    case F_Bucket_Keys:
    case F_Bucket_Values:
        return mock->options.hash_slots * mock->word;
    case F_ReadyToRunInfo_EntryPointToMethodDescMap:
        return mock->sizes[T_HashMap];
    case F_PlatformMetadata_PrecodeMachineDescriptor:
        return mock->sizes[T_PrecodeMachineDescriptor];
    case F_PrecodeMachineDescriptor_StubBytes:
    case F_PrecodeMachineDescriptor_StubIgnoredBytes:
    case F_PrecodeMachineDescriptor_FixupBytes:
    case F_PrecodeMachineDescriptor_FixupIgnoredBytes:
        return MOCK_PRECODE_CODE;
    case F_RangeListBlock_Ranges:
        return MOCK_BLOCK_RANGES * mock->sizes[T_RangeListRange];
    case F_StubLinkStubManager_StarterBlock:
    case F_CallCountingManager_StarterBlock:
        return mock->sizes[T_RangeListBlock];
    case F_SoftwareExceptionFrame_TargetContext:
    case F_FaultingExceptionFrame_TargetContext:
    case F_DebuggerEval_TargetContext:
        return MOCK_CONTEXT;
    case F_TransitionBlock_CalleeSavedRegisters:
    case F_HijackArgs_CalleeSavedRegisters:
    case F_LazyMachState_m_Capture:
    case F_LazyMachState_m_Unwound:
        return mock->sizes[T_CalleeSavedRegisters];
    case F_ThreadStaticsInfo_GCTlsIndex:
    case F_ThreadStaticsInfo_NonGCTlsIndex:
        return 4; /* a TLSIndex */
    case F_TableSegment_RgAllocation:
    case F_TableSegment_RgUserData:
    case F_TableSegment_RgTail:
        return 256; /* a byte for each block of handles */
    case F_LazyMachState_captureX19_X29:
    case F_LazyMachState_ptrX19_X29:
        return 11 * mock->word;
    case F_HelperMethodFrame_MachState:
        return mock->sizes[T_LazyMachState];
    case F_CMiniMdSchema_RecordCounts:
        return MOCK_STORE_TABLES * 4;
    case F_CMiniMdRW_Schema:
        return mock->sizes[T_CMiniMdSchema];
    case F_CMiniMdRW_Tables:
        return MOCK_STORE_TABLES * mock->sizes[T_TableRW];
    case F_CMiniMdRW_StringHeap:
    case F_CMiniMdRW_BlobHeap:
    case F_CMiniMdRW_GuidHeap:
        return mock->sizes[T_StgPool];
    case F_CLiteWeightStgdbRW_MiniMd:
        return mock->sizes[T_CMiniMdRW];
    case F_StressMsg_Header:
        return MOCK_STRESS_HEADER;
    case F_GCHeap_GenerationTable: /* these two stand for more than the mock has */
    case F_GCHeap_OomData:
        return 4 * mock->word;
    case F_Module_TypeDefToMethodTableMap:
    case F_Module_MethodDefToDescMap:
    case F_Module_FieldDefToDescMap:
    case F_Module_TypeRefToMethodTableMap:
    case F_Module_MemberRefToDescMap:
    case F_Module_MethodDefToILCodeVersioningStateMap:
        return mock->sizes[T_ModuleLookupMap];
    default:
        return 0;
    }
}

/* Of types whose objects begin with an object of another type, or with what no field describes. */
static uint32_t base_size(const struct mock *mock, enum mock_type type)
{
    switch ((int)type) {
    case T_StoredSigMethodDesc:
    case T_InstantiatedMethodDesc:
        return mock->sizes[T_MethodDesc];
    case T_DynamicMethodDesc:
        return mock->sizes[T_StoredSigMethodDesc];
    case T_LoaderCodeHeap:
    case T_HostCodeHeap:
        return mock->sizes[T_CodeHeap];
    case T_ParamTypeDesc:
    case T_TypeVarTypeDesc:
        return mock->sizes[T_TypeDesc];
    case T_NonVtableSlot: /* which has no fields, as the next two */
    case T_NativeCodeSlot:
        return mock->word;
    case T_MethodImpl:
        return 2 * mock->word;
    case T_InterpreterPrecodeData: /* the type is at the same offset in both */
        return mock->sizes[T_StubPrecodeData];
    case T_TableRW:
        return mock->sizes[T_StgPool];
    case T_StressMsgHeader: /* which has no fields; arguments follow */
        return mock->sizes[T_StressMsg];
    case T_Frame: /* begins with what identifies its kind */
        return mock->word;
    case T_InlinedCallFrame:
    case T_SoftwareExceptionFrame:
    case T_FramedMethodFrame:
    case T_FuncEvalFrame:
    case T_ResumableFrame:
    case T_FaultingExceptionFrame:
    case T_HijackFrame:
    case T_HelperMethodFrame:
        return mock->sizes[T_Frame];
    default:
        return 0;
    }
}

/* Fields that this version of PrecodeStubs lacks. */
static bool is_absent_of_precodes(unsigned version, enum mock_field field)
{
    switch ((int)field) {
    case F_StubPrecodeData_MethodDesc:
        return version != 1;
    case F_StubPrecodeData_SecretParam:
    case F_ThisPtrRetBufPrecodeData_MethodDesc:
        return version == 1;
    case F_PrecodeMachineDescriptor_OffsetOfPrecodeType:
    case F_PrecodeMachineDescriptor_ReadWidthOfPrecodeType:
    case F_PrecodeMachineDescriptor_ShiftOfPrecodeType:
        return version == 3;
    case F_PrecodeMachineDescriptor_UMEntryPrecodeType:
    case F_PrecodeMachineDescriptor_InterpreterPrecodeType:
    case F_PrecodeMachineDescriptor_DynamicHelperPrecodeType:
    case F_PrecodeMachineDescriptor_StubPrecodeSize:
    case F_PrecodeMachineDescriptor_StubBytes:
    case F_PrecodeMachineDescriptor_StubIgnoredBytes:
    case F_PrecodeMachineDescriptor_FixupStubPrecodeSize:
    case F_PrecodeMachineDescriptor_FixupBytes:
    case F_PrecodeMachineDescriptor_FixupIgnoredBytes:
        return version != 3;
    default:
        return false;
    }
}

/* Fields of targets that have cold JIT code, and of those that have none. Unwind codes are where they are on x64. */
static bool is_absent_of_heaps(bool cold_jit_code, enum mock_field field)
{
    switch ((int)field) {
    case F_CodeHeapListNode_EndAddress:
        return cold_jit_code;
    case F_CodeHeapListNode_BottomEndAddress:
    case F_CodeHeapListNode_TopStartAddress:
    case F_RealCodeHeader_ColdCodeHeader:
        return !cold_jit_code;
    case F_UnwindInfo_CountOfUnwindCodes:
    case F_UnwindInfo_UnwindCodeOffset:
        return true;
    default:
        return false;
    }
}

/*
 * What builds of .NET 11 have that is not 11.0.0 for linux-x64: those of other architectures, and with an option, those
 * with cold JIT code or with an interpreter. Source: src/coreclr/vm/datadescriptor/datadescriptor.inc.
 */
static bool is_of_another_build(const struct mock *mock, enum mock_field field)
{
    bool is_x64 = mock->word == 8 && mock->options.unwind == MOCK_UNWIND_END_ADDRESS;
    switch ((int)mock_field_rows[field].type) {
    case T_CalleeSavedRegisters:
    case T_UnwindInfo:
        return !is_x64;
    case T_InterpreterRealCodeHeader:
    case T_InterpreterPrecodeData:
    case T_InterpByteCodeStart:
    case T_InterpMethod:
    case T_PortableEntryPoint:
        return mock->options.interpreter;
    default:
        break;
    }
    switch ((int)field) {
    case F_InlinedCallFrame_SPAfterProlog:
        return mock->options.unwind == MOCK_UNWIND_HEADER && mock->word == 4; /* arm */
    case F_CodeHeapListNode_BottomEndAddress:
    case F_CodeHeapListNode_TopStartAddress:
    case F_RealCodeHeader_ColdCodeHeader:
        return mock->options.cold_jit_code;
    case F_PrecodeMachineDescriptor_InterpreterPrecodeType:
    case F_PrecodeMachineDescriptor_DynamicHelperPrecodeType:
        return mock->options.interpreter;
    default:
        return false;
    }
}

/* Fields that the target's architecture or version of a contract lacks. */
static bool is_absent(const struct mock *mock, enum mock_field field)
{
    uint64_t offset;
    if (mock->is_net11 && !net11_field(mock_field_rows[field].name, &offset) && !is_of_another_build(mock, field))
        return true;
    if (is_absent_of_heaps(mock->options.cold_jit_code, field))
        return true;
    if (is_absent_of_precodes(mock->options.precode_version, field))
        return true;
    if (mock->options.no_funclets &&
        ((int)field == F_RealCodeHeader_NumUnwindInfos || (int)field == F_RealCodeHeader_UnwindInfos ||
         (int)field == F_UnwindInfo_FunctionLength))
        return true;
    if (field == F_RuntimeFunction_EndAddress)
        return mock->options.unwind != MOCK_UNWIND_END_ADDRESS;
    return field == F_UnwindInfo_FunctionLength && mock->options.unwind != MOCK_UNWIND_FUNCTION_LENGTH;
}

static bool is_array_at_end(const struct mock *mock, enum mock_field field)
{
    return !mock_field_rows[field].kind && !inline_size(mock, field);
}

/* The fields of a type in the order that the seed gives, except that arrays at the end come last. */
static size_t order_fields(struct mock *mock, enum mock_type type, enum mock_field *ret)
{
    size_t count = 0, fixed = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int field = 0; field < F_COUNT; field++)
            if (mock_field_rows[field].type == type && !is_absent(mock, field) &&
                is_array_at_end(mock, field) == (pass == 1))
                ret[count++] = field;
        fixed = pass ? fixed : count;
    }
    for (size_t i = fixed; i > 1; i--) {
        size_t j = mock->options.seed ? mock_random(mock, i) : i - 1;
        enum mock_field field = ret[i - 1];
        ret[i - 1] = ret[j];
        ret[j] = field;
    }
    return count;
}

/* Puts the fields of a type where .NET 11.0.0 has them. Returns the end of the last one, or of the type. */
static uint64_t lay_out_as_11(struct mock *mock, enum mock_type type, const enum mock_field *fields, size_t count)
{
    uint64_t end = base_size(mock, type), size = 0, offset;
    for (size_t i = 0; i < count; i++) {
        unsigned width = width_of(mock, mock_field_rows[fields[i]].kind);
        if (!net11_field(mock_field_rows[fields[i]].name, &offset))
            continue;
        mock->fields[fields[i]] = (struct mock_slot){(uint32_t)offset, (uint8_t)width, true, false};
        end = MAX(end, offset + (width ? width : inline_size(mock, fields[i])));
    }
    bool has_size = net11_type(mock_type_rows[type].name, &size) && size;
    return has_size ? MAX(end, size) : align_up(end, mock->word);
}

static void lay_out(struct mock *mock, enum mock_type type)
{
    enum mock_field fields[F_COUNT];
    size_t count = order_fields(mock, type, fields);
    uint64_t end = base_size(mock, type), alignment = 1;
    if (mock->has_net11_offsets) {
        end = lay_out_as_11(mock, type, fields, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (mock->fields[fields[i]].present) /* .NET 11.0.0 has it */
            continue;
        unsigned width = width_of(mock, mock_field_rows[fields[i]].kind);
        uint64_t natural = width ? MIN(width, mock->word) : type == T_DynamicMetadata ? 1 : 4;
        if (!width && !is_array_at_end(mock, fields[i]))
            natural = mock->word;
        alignment = MAX(alignment, natural);
        /* GenericsDictInfo must fit one word, which precedes the dictionaries. A StressMsg begins with its header. */
        bool is_dense = type == T_GenericsDictInfo || type == T_StressMsg;
        uint64_t padding = is_dense ? 0 : natural * mock_random(mock, 3);
        end = align_up(end + padding, natural);
        mock->fields[fields[i]] = (struct mock_slot){(uint32_t)end, (uint8_t)width, true, false};
        end += width ? width : inline_size(mock, fields[i]);
    }
    if (!mock->has_net11_offsets)
        end += alignment * mock_random(mock, 3);
    if (type == T_MethodDescChunk || type == T_MethodDesc)
        alignment = MAX(alignment, (uint64_t)8); /* MethodDescAlignment */
    if (type == T_StressMsgHeader)
        alignment = 8; /* of messages */
    mock->sizes[type] = (uint32_t)align_up(MAX(end, (uint64_t)1), alignment);
}

void mock_layout(struct mock *mock)
{
    /* A type that holds another one by value comes after it. */
    lay_out(mock, T_HashMap);
    lay_out(mock, T_PrecodeMachineDescriptor);
    lay_out(mock, T_ModuleLookupMap);
    for (int type = 0; type < T_COUNT; type++)
        if (type != T_HashMap && type != T_PrecodeMachineDescriptor && type != T_ModuleLookupMap)
            lay_out(mock, type);
}

uint64_t mock_object(struct mock *mock, enum mock_type type, uint64_t extra)
{
    uint64_t size = mock->sizes[type] + extra, object = mock_alloc(mock, size, 8);
    uint8_t *bytes = mock_bytes_at(mock, object, size);
    if (!bytes)
        return 0;
    for (uint64_t i = 0; i < mock->sizes[type]; i++)
        bytes[i] = mock->options.seed ? (uint8_t)mock_random(mock, 256) : 0xcd;
    memset(bytes, 0, base_size(mock, type)); /* the fields of the base type set these bytes */
    for (int field = 0; field < F_COUNT; field++) {
        const struct mock_slot *slot = &mock->fields[field];
        if (mock_field_rows[field].type == type && slot->present)
            memset(bytes + slot->offset, 0, slot->width ? slot->width : inline_size(mock, field));
    }
    return object;
}

uint64_t mock_address_of(struct mock *mock, uint64_t object, enum mock_field field)
{
    if (!mock->fields[field].present)
        return mock_fail(mock, "%s is not in this layout", mock_field_rows[field].name);
    return mock->failed ? 0 : object + mock->fields[field].offset;
}

void mock_put(struct mock *mock, uint64_t object, enum mock_field field, uint64_t value)
{
    uint64_t address = mock_address_of(mock, object, field);
    if (address)
        mock_write_uint(mock, address, mock->fields[field].width, value);
}

void mock_put_optional(struct mock *mock, uint64_t object, enum mock_field field, uint64_t value)
{
    if (mock->fields[field].present)
        mock_put(mock, object, field, value);
}

uint64_t mock_fetch(struct mock *mock, uint64_t object, enum mock_field field)
{
    uint64_t address = mock_address_of(mock, object, field);
    return address ? mock_read_uint(mock, address, mock->fields[field].width) : 0;
}

/* ---- By name ---- */

static int find_row(const struct mock_row *rows, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return i;
    return -1;
}

uint64_t mock_new(struct mock *mock, const char *type, uint64_t extra)
{
    int found = find_row(mock_type_rows, T_COUNT, type);
    return found < 0 ? mock_fail(mock, "no type %s", type) : mock_object(mock, found, extra);
}

void mock_set(struct mock *mock, uint64_t address, const char *field, uint64_t value)
{
    int found = find_row(mock_field_rows, F_COUNT, field);
    if (found < 0)
        mock_fail(mock, "no field %s", field);
    else
        mock_put(mock, address, found, value);
}

uint64_t mock_get(struct mock *mock, uint64_t address, const char *field)
{
    int found = find_row(mock_field_rows, F_COUNT, field);
    return found < 0 ? mock_fail(mock, "no field %s", field) : mock_fetch(mock, address, found);
}

uint32_t mock_offset_of(struct mock *mock, const char *field)
{
    int found = find_row(mock_field_rows, F_COUNT, field);
    return found < 0 ? (uint32_t)mock_fail(mock, "no field %s", field) : mock->fields[found].offset;
}

uint32_t mock_size_of(struct mock *mock, const char *type)
{
    int found = find_row(mock_type_rows, T_COUNT, type);
    return found < 0 ? (uint32_t)mock_fail(mock, "no type %s", type) : mock->sizes[found];
}

unsigned mock_pointer_size(const struct mock *mock)
{
    return mock->word;
}

/* Whether this release publishes a global; another build of .NET 11 has those of an interpreter. */
static bool has_global(const struct mock *mock, enum mock_global global)
{
    uint64_t value;
    const char *name = mock_global_rows[global].name;
    bool is_of_interpreter =
        (int)global == G_InterpreterJitManagerAddress || (int)global == G_FeaturePortableEntrypoints;
    return !mock->is_net11 || net11_number(name, &value) || net11_pointer(name) ||
           (is_of_interpreter && mock->options.interpreter);
}

void mock_global(struct mock *mock, const char *name, uint64_t value)
{
    int found = find_row(mock_global_rows, G_COUNT, name);
    if (found < 0 || !has_global(mock, found)) {
        mock_fail(mock, "no global %s", name);
        return;
    }
    mock->globals[found] = value;
    mock->global_set[found] = true;
}

/* A contract with all its fields, sizes and globals. */
static bool hide_contract(struct mock *mock, const char *name)
{
    bool found = false;
    for (int field = 0; field < F_COUNT; field++)
        if (strcmp(mock_field_rows[field].contract, name) == 0)
            found = mock->fields[field].hidden = true;
    for (int type = 0; type < T_COUNT; type++)
        if (mock_type_rows[type].contract && strcmp(mock_type_rows[type].contract, name) == 0)
            found = mock->size_hidden[type] = true;
    for (int global = 0; global < G_COUNT; global++)
        if (strcmp(mock_global_rows[global].contract, name) == 0) {
            found = true;
            mock->global_set[global] = false;
        }
    if (found)
        mock_contract(mock, name, NULL);
    return found;
}

/* "Bucket.!" */
static bool hide_size(struct mock *mock, const char *name)
{
    size_t length = strlen(name);
    for (int type = 0; type < T_COUNT; type++)
        if (strlen(mock_type_rows[type].name) + 2 == length &&
            strncmp(mock_type_rows[type].name, name, length - 2) == 0 && strcmp(name + length - 2, ".!") == 0)
            return mock->size_hidden[type] = true;
    return false;
}

/* A name may be that of a contract, a type and a global: the contract takes precedence. */
void mock_hide(struct mock *mock, const char *name)
{
    int field = find_row(mock_field_rows, F_COUNT, name), type = find_row(mock_type_rows, T_COUNT, name),
        global = find_row(mock_global_rows, G_COUNT, name);
    if (field >= 0) {
        mock->fields[field].hidden = true;
    } else if (!hide_size(mock, name) && !hide_contract(mock, name)) {
        if (type >= 0)
            mock->type_hidden[type] = true;
        if (global >= 0)
            mock->global_set[global] = false;
        if (type < 0 && global < 0)
            mock_fail(mock, "nothing is called %s", name);
    }
}

void mock_contract(struct mock *mock, const char *name, const char *version)
{
    size_t i = 0;
    while (i < mock->contract_count && strcmp(mock->contracts[i].name, name) != 0)
        i++;
    if (!version) {
        if (i < mock->contract_count)
            mock->contracts[i] = mock->contracts[--mock->contract_count];
        return;
    }
    if (i == MOCK_CONTRACT_MAX || strlen(name) >= sizeof mock->contracts[i].name ||
        strlen(version) >= sizeof mock->contracts[i].version) {
        mock_fail(mock, "no room for contract %s", name);
        return;
    }
    strcpy(mock->contracts[i].name, name);
    strcpy(mock->contracts[i].version, version);
    mock->contract_count = MAX(mock->contract_count, i + 1);
}
