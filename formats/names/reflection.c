/*
 * reflection.c: types on their own, as the runtime and reflection spell them:
 *
 *     Ns.Outer`1+Inner`1[System.__Canon,System.Int32]
 *     Ns.Outer`1+Inner`1[[System.__Canon, System.Private.CoreLib],[System.Int32, System.Private.CoreLib]]
 *
 * Nested types follow `+`, arguments are in brackets, and a backslash precedes reserved characters (, [ ] & * + \).
 * text_escape doubles a backslash of the name itself.
 */
#include "formats/names/spelling.h"
#include "formats/names/type_walk.h"

/* Not inlined because of its large path. */
static __attribute__((noinline)) void reflection_named(struct namer *n, const struct named_type *type,
                                                       struct type_arguments *arguments)
{
    struct type_path path;
    (void)arguments;
    if (!namer_path(n, type->metadata, type->token, &path))
        return;
    for (unsigned i = path.count; i-- > 0 && n->status == CDACQ_OK;) {
        namer_put_namespace(n, path.metadata, path.levels[i].namespace_name, namer_put_reserved);
        namer_put_reserved(n, path.metadata, path.levels[i].name);
        if (i)
            text_putc(n->text, '+');
    }
    n->origin = (struct origin){.metadata = path.metadata, .scope = path.scope};
}

#define REFLECTION                                                                                        \
    .primitives = PRIMITIVE_SOS, .qualified = true, .first_zapsig = ELEMENT_CANON_ZAPSIG, .pointer = "*", \
    .byref = {"", "&"}, .one_dimension = "*", .arguments = {"[", ",", "]"}, .named = reflection_named

const struct type_spelling type_spelling_reflection = {REFLECTION};
const struct type_spelling type_spelling_reflection_full = {REFLECTION, .assemblies = true};
const struct type_spelling type_spelling_reflection_identities = {REFLECTION, .assemblies = true, .identities = true};
