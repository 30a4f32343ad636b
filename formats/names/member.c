/*
 * member.c: Source: ECMA-335 I.10.3 (operators), II.22.28 (accessors); the C# standard, 15.10 (operators), 18.6.2
 * (explicit implementations), and the names that the C# compiler gives to what came later. Methods with the names of
 * accessors and operators are such only if the SpecialName flag says so; a MemberRef has no flags, and there the name
 * and the parameters decide. The code of C# 14's extension members is in static methods without that flag. Types that
 * the compiler nests in the same class, the grouping types, declare these members with it.
 */
#include "formats/names/member.h"

#include "formats/metadata_members.h"
#include "formats/names/attributes.h"

enum { METHOD_SPECIAL_NAME = 0x0800 };

static const struct {
    const char *name, *sign;
} operators[] = {
    {"UnaryPlus", "+"},
    {"UnaryNegation", "-"},
    {"LogicalNot", "!"},
    {"OnesComplement", "~"},
    {"Increment", "++"},
    {"Decrement", "--"},
    {"True", "true"},
    {"False", "false"},
    {"Addition", "+"},
    {"Subtraction", "-"},
    {"Multiply", "*"},
    {"Division", "/"},
    {"Modulus", "%"},
    {"BitwiseAnd", "&"},
    {"BitwiseOr", "|"},
    {"ExclusiveOr", "^"},
    {"LeftShift", "<<"},
    {"RightShift", ">>"},
    {"UnsignedRightShift", ">>>"},
    {"Equality", "=="},
    {"Inequality", "!="},
    {"LessThan", "<"},
    {"GreaterThan", ">"},
    {"LessThanOrEqual", "<="},
    {"GreaterThanOrEqual", ">="},
    {"AdditionAssignment", "+="},
    {"SubtractionAssignment", "-="},
    {"MultiplicationAssignment", "*="},
    {"DivisionAssignment", "/="},
    {"ModulusAssignment", "%="},
    {"BitwiseAndAssignment", "&="},
    {"BitwiseOrAssignment", "|="},
    {"ExclusiveOrAssignment", "^="},
    {"LeftShiftAssignment", "<<="},
    {"RightShiftAssignment", ">>="},
    {"UnsignedRightShiftAssignment", ">>>="},
    {"IncrementAssignment", "++"},
    {"DecrementAssignment", "--"},
};

/* Whether more than `prefix` is there: `get_` alone is no accessor. */
static bool has_prefix(const char *name, size_t length, const char *prefix)
{
    return length > strlen(prefix) && name_begins(name, length, prefix);
}

/* The part of the name before its last dot outside of angle brackets; 0: there is none. */
static size_t interface_length(const char *name, size_t length)
{
    unsigned depth = 0;
    if (name[0] == '<') /* the compiler's own */
        return 0;
    for (size_t i = length; i-- > 1;) {
        if (name[i] == '>')
            depth++;
        else if (name[i] == '<' && depth)
            depth--;
        else if (name[i] == '.' && !depth)
            return i + 1 < length ? i : 0;
    }
    return 0;
}

/* What a return type is, apart from its modifiers. */
static uint8_t result_element(struct signature s)
{
    signature_skip_modifiers(&s);
    return signature_peek(&s);
}

/* `init` is a setter that requires the modifier IsExternalInit. */
static bool is_init(struct namer *n, const struct named_method *method)
{
    struct signature s = method->signature;
    bool equal = false;
    if (signature_byte(&s) != ELEMENT_CMOD_REQD)
        return false;
    enum cdacq_status status = metadata_type_is(method->metadata, signature_token(&s),
                                                "System.Runtime.CompilerServices", "IsExternalInit", &equal);
    namer_lose(n, status);
    return status == CDACQ_OK && equal;
}

/* An indexer's property has any name; that of the type's DefaultMember is the one that C# writes as `this`. */
static bool is_this(struct namer *n, const struct named_method *method, const struct member *member)
{
    static const char *const names[] = {"DefaultMemberAttribute", NULL};
    const char *stem = member->name + member->stem;
    size_t stem_length = member->length - member->stem, length;
    char name[METADATA_STRING_CAP];
    uint32_t owner;
    if (name_equals(stem, stem_length, "Item"))
        return true;
    if (metadata_token_table(method->token) != METADATA_METHOD_DEF || member->interface)
        return false;
    enum cdacq_status status = metadata_method_owner(method->metadata, metadata_rid(method->token), &owner);
    namer_lose(n, status);
    if (status != CDACQ_OK)
        return false;
    struct attribute_search search = {.metadata = method->metadata,
                                      .parent = metadata_token(METADATA_TYPE_DEF, owner),
                                      .namespace_name = "System.Reflection",
                                      .names = names};
    return namer_next_attribute(n, &search) &&
           namer_attribute_string(n, method->metadata, search.value, name, &length) && length == stem_length &&
           memcmp(stem, name, length) == 0;
}

static void read_accessor(struct namer *n, const struct named_method *method, struct member *member)
{
    static const struct {
        const char *prefix, *word;
        bool returns, indexed;
        uint8_t parameters; /* without the indexes */
    } accessors[] = {
        {"get_", "get", true, true, 0},
        {"set_", "set", false, true, 1},
        {"add_", "add", false, false, 1},
        {"remove_", "remove", false, false, 1},
    };
    const char *own = member->name + member->stem;
    size_t length = member->length - member->stem;
    uint32_t count = method->header.parameter_count;
    bool returns = result_element(method->signature) != ELEMENT_VOID;
    for (size_t i = 0; i < ARRAY_SIZE(accessors); i++) {
        if (!has_prefix(own, length, accessors[i].prefix) || returns != accessors[i].returns ||
            count < accessors[i].parameters || (count > accessors[i].parameters && !accessors[i].indexed))
            continue;
        member->kind = count > accessors[i].parameters ? MEMBER_INDEXER : MEMBER_ACCESSOR;
        member->word = accessors[i].word;
        member->stem += strlen(accessors[i].prefix);
        if (!returns && accessors[i].indexed && is_init(n, method))
            member->word = "init";
    }
}

static void read_operator(struct member *member)
{
    static const char checked[] = "Checked";
    const char *own = member->name + member->stem + 3;
    size_t length = member->length - member->stem - 3;
    if (has_prefix(own, length, checked)) {
        member->checked = true;
        own += sizeof checked - 1;
        length -= sizeof checked - 1;
    }
    if (name_equals(own, length, "Implicit") || name_equals(own, length, "Explicit")) {
        member->kind = MEMBER_CONVERSION;
        member->word = *own == 'I' ? "implicit" : "explicit";
    }
    for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
        if (name_equals(own, length, operators[i].name)) {
            member->kind = MEMBER_OPERATOR;
            member->word = operators[i].sign;
        }
}

/* ---- Extension members of C# 14 ---- */

/* Whether a method of a grouping type declares the member: it lacks the receiver, which is the first parameter here. */
static enum cdacq_status is_declaration(const struct named_method *method, const struct member *member, uint32_t rid,
                                        bool *ret)
{
    const struct metadata *m = method->metadata;
    struct metadata_method_def row;
    CLEANUP_METADATA_BLOB struct metadata_blob blob;
    blob.allocated = NULL;
    bool equal = false;
    enum cdacq_status status = metadata_method_def(m, rid, &row);
    if (status == CDACQ_OK && row.flags & METHOD_SPECIAL_NAME)
        status = metadata_string_equals(m, row.name, member->name, member->length, &equal);
    if (status == CDACQ_OK && equal)
        status = metadata_blob_read(m, row.signature, &blob);
    if (status != CDACQ_OK || !equal)
        return status;
    struct signature s = signature_at(blob.data, blob.length, 0, false);
    struct signature_header header = signature_method(&s);
    uint64_t count = (uint64_t)header.parameter_count + !(row.flags & METHOD_FLAG_STATIC);
    *ret = !s.failed && count == method->header.parameter_count;
    return CDACQ_OK;
}

static enum cdacq_status is_declared_in(struct namer *n, const struct named_method *method, const struct member *member,
                                        uint32_t type, bool *ret)
{
    static const char prefix[] = "<G>$";
    const struct metadata *m = method->metadata;
    struct metadata_type_def row;
    struct metadata_generics generics = {.count = 0};
    char buffer[METADATA_STRING_CAP];
    const char *name;
    size_t length;
    uint32_t begin, end;
    enum cdacq_status status = metadata_type_def(m, type, &row);
    if (status == CDACQ_OK)
        status = metadata_string(m, row.name, buffer, &name, &length);
    if (status != CDACQ_OK || !has_prefix(name, length, prefix))
        return status;
    if (namer_spend_search(n, m, METADATA_GENERIC_PARAM))
        status = metadata_generics(m, metadata_token(METADATA_TYPE_DEF, type), &generics);
    if (status != CDACQ_OK || generics.count != method->header.generic_count)
        return status;
    status = metadata_methods(m, type, &begin, &end);
    for (uint32_t rid = begin; status == CDACQ_OK && rid < end && !*ret && namer_spend(n, 1); rid++)
        status = is_declaration(method, member, rid, ret);
    return status;
}

static bool is_extension_member(struct namer *n, const struct named_method *method, const struct member *member)
{
    const struct metadata *m = method->metadata;
    const char *name = member->name;
    uint32_t owner, rid = 0, type;
    bool found = false;
    if (!(method->flags & METHOD_FLAG_STATIC) || member->interface || metadata_row_count(m, METADATA_METHOD_PTR) ||
        !(has_prefix(name, member->length, "get_") || has_prefix(name, member->length, "set_") ||
          has_prefix(name, member->length, "op_")) ||
        !namer_spend_bulk(n, metadata_row_count(m, METADATA_NESTED_CLASS)))
        return false;
    enum cdacq_status status = metadata_method_owner(m, metadata_rid(method->token), &owner);
    namer_lose(n, status);
    if (status != CDACQ_OK || !namer_has_attribute(n, m, metadata_token(METADATA_TYPE_DEF, owner),
                                                   "System.Runtime.CompilerServices", "ExtensionAttribute"))
        return false;
    while (!found && namer_spend(n, 1) && (status = metadata_next_nested(m, owner, &rid, &type)) == CDACQ_OK && rid &&
           (status = is_declared_in(n, method, member, type, &found)) == CDACQ_OK)
        ;
    namer_lose(n, status);
    return found;
}

/* The receiver is no index: extension blocks have no indexers. */
static void read_extension_member(struct member *member)
{
    if (name_begins(member->name, member->length, "op_")) {
        read_operator(member);
        return;
    }
    member->kind = MEMBER_ACCESSOR;
    member->word = *member->name == 'g' ? "get" : "set";
    member->stem += strlen("get_");
}

bool member_read(struct namer *n, const struct named_method *method, struct member *ret)
{
    const char *name;
    ret->kind = MEMBER_PLAIN;
    ret->interface = ret->stem = ret->length = 0;
    ret->checked = false;
    if (!method->token)
        return n->status == CDACQ_OK;
    if (method->plain_name) {
        ret->length = MIN(strlen(method->plain_name), sizeof ret->name);
        memcpy(ret->name, method->plain_name, ret->length);
        return n->status == CDACQ_OK;
    }
    if (!namer_check(n, metadata_string(method->metadata, method->name, ret->name, &name, &ret->length)) ||
        !namer_spend_bulk(n, ret->length))
        return false;
    if (name != ret->name)
        memcpy(ret->name, name, ret->length);
    if (!ret->length)
        return true;
    ret->interface = interface_length(ret->name, ret->length);
    ret->stem = ret->interface ? ret->interface + 1 : 0;
    bool definition = metadata_token_table(method->token) == METADATA_METHOD_DEF;
    if (!method->has_parameters)
        return true;
    if (definition && !(method->flags & METHOD_SPECIAL_NAME)) {
        if (is_extension_member(n, method, ret))
            read_extension_member(ret);
    } else if (method->header.generic) {
        return true;
    } else if (has_prefix(ret->name + ret->stem, ret->length - ret->stem, "op_")) {
        read_operator(ret);
    } else {
        read_accessor(n, method, ret);
    }
    return true;
}

/* ---- Writing ---- */

static void put_type(struct namer *n, const struct metadata *m, uint32_t token)
{
    if (metadata_token_table(token) == METADATA_TYPE_SPEC)
        type_spec(n, m, token);
    else
        n->types->named(n, &(struct named_type){.metadata = m, .token = token}, NULL);
}

/* The type of the member that a MethodImpl names, if that has the name of ours; 0 otherwise. */
static uint32_t declaring_type(struct namer *n, const struct metadata *m, uint32_t declaration, const char *name,
                               size_t length)
{
    struct metadata_member_ref reference;
    bool equal = false;
    enum cdacq_status status = metadata_method_reference(m, declaration, &reference);
    if (status == CDACQ_OK)
        status = metadata_string_equals(m, reference.name, name, length, &equal);
    namer_lose(n, status);
    uint32_t table = status == CDACQ_OK ? metadata_token_table(reference.parent) : 0;
    return equal && (table == METADATA_TYPE_DEF || table == METADATA_TYPE_REF || table == METADATA_TYPE_SPEC)
               ? reference.parent
               : 0;
}

/* The interface as a type, from the MethodImpl. False, and nothing is written, if there is none. */
static bool put_implemented(struct namer *n, const struct named_method *method, const struct member *member)
{
    const struct metadata *m = method->metadata;
    struct metadata_method_impl row;
    uint32_t owner = metadata_rid(n->formals_owner[0]), rid = 0, type = 0; /* the owner was written before */
    size_t own = member->interface + 1, before = n->text->length;
    if (metadata_token_table(method->token) != METADATA_METHOD_DEF || !owner)
        return false;
    enum cdacq_status status = CDACQ_OK;
    while (!type && namer_spend_search(n, m, METADATA_METHOD_IMPL) &&
           (status = metadata_next_method_impl(m, owner, &rid)) == CDACQ_OK && rid &&
           (status = metadata_method_impl(m, rid, &row)) == CDACQ_OK)
        if (row.body == method->token)
            type = declaring_type(n, m, row.declaration, member->name + own, member->length - own);
    namer_lose(n, status);
    if (!type || n->status != CDACQ_OK)
        return false;
    put_type(n, m, type);
    if (n->status != CDACQ_ERR_MEMORY)
        return true;
    namer_lose(n, n->status);
    namer_retry(n, before);
    return false;
}

static void put_indexer(struct namer *n, const struct named_method *method, const struct member *member,
                        const struct parameter_style *list)
{
    struct signature_header header = method->header;
    struct signature s = method->signature;
    if (is_this(n, method, member))
        text_puts(n->text, "this");
    else
        text_escape(n->text, member->name + member->stem, member->length - member->stem);
    if (result_element(s) == ELEMENT_VOID) /* a setter: the last parameter is the value */
        header.parameter_count--;
    signature_skip_type(&s);
    type_parameters(n, &s, method->metadata, &header, list);
}

void member_put(struct namer *n, const struct named_method *method, const struct member *member,
                const struct parameter_style *list)
{
    struct signature s = method->signature;
    if (!method->token) {
        method_put_name(n, method);
        return;
    }
    if (member->interface) {
        if (!put_implemented(n, method, member))
            text_escape(n->text, member->name, member->interface);
        text_putc(n->text, '.');
    }
    switch (member->kind) {
    case MEMBER_PLAIN:
        text_escape(n->text, member->name + member->stem, member->length - member->stem);
        return;
    case MEMBER_ACCESSOR:
    case MEMBER_INDEXER:
        if (member->kind == MEMBER_INDEXER)
            put_indexer(n, method, member, list);
        else
            text_escape(n->text, member->name + member->stem, member->length - member->stem);
        text_putc(n->text, '.');
        text_puts(n->text, member->word);
        return;
    case MEMBER_OPERATOR:
        text_puts(n->text, member->checked ? "operator checked " : "operator ");
        text_puts(n->text, member->word);
        return;
    case MEMBER_CONVERSION:
        text_puts(n->text, member->word);
        text_puts(n->text, member->checked ? " operator checked " : " operator ");
        type_signature(n, &s, method->metadata);
        return;
    }
}
