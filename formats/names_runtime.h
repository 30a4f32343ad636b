/*
 * names_runtime.h: names of methods in the two spellings that .NET itself has:
 *
 *     il   instance !0 [System.Linq] Ns.Outer`1+Inner[System.Int32]::M(class [System.Runtime]Ns.List`1<!!0>&)
 *     sos  Ns.Outer`1+Inner[[System.Int32, System.Private.CoreLib]].M[[System.__Canon, System.Private.CoreLib]](Int32)
 *
 * `il` is what the runtime writes into its perf map and jitdump: types of the signature as ILAsm has them, with their
 * modifiers, and not instantiated. `sos` is what the debugger services' GetMethodDescName answers: the parameters
 * alone, instantiated, a nested type without those around it.
 *
 * A type that stands by itself is spelled as reflection does: nested ones behind `+`, arguments in brackets, and a
 * backslash before what would mean something (, [ ] & * + \). Everything is printable (text_escape); the two agree on a
 * backslash in the name of a type, which stands doubled.
 *
 * Bounds, failures and threads are those of names.h. Source: dotnet/runtime src/coreclr/inc/formattype.cpp,
 * src/coreclr/vm/{typestring,sigformat,method,perfmap}.cpp.
 */
#ifndef CDACQ_FORMATS_NAMES_RUNTIME_H
#define CDACQ_FORMATS_NAMES_RUNTIME_H

#include "cdacq/target.h"
#include "formats/names.h"

/* What a method is instantiated over, which its metadata does not know. */
struct name_instance {
    /* Appends the type that the method belongs to. NULL: the TypeDef around the MethodDef. */
    enum cdacq_status (*owner)(void *context, struct text *ret);

    /*
     * Appends a type argument of that type, or of the method. NAME_TYPE_FULL: with its assembly, in the brackets that
     * this takes. Counts of 0: not instantiated, or nobody knows; `sos` shows !0 and !!0 then.
     */
    enum cdacq_status (*argument)(void *context, bool of_method, uint32_t index, enum name_type_form form,
                                  struct text *ret);
    uint32_t type_count, method_count;
    void *context;
};

/*
 * The name of a MethodDef in `style`, CDACQ_NAMES_IL or CDACQ_NAMES_SOS. `instance` may be NULL. Of the source only
 * the metadata is needed.
 */
enum cdacq_status name_method_runtime(const struct name_source *source, enum cdacq_name_style style, uint32_t token,
                                      const struct name_instance *instance, struct text *ret);

/*
 * A method that carries its name and signature with it: `owner` is what stands for its type, the owner of `instance`
 * is not asked. Type handles of the signature take the source's type_definition.
 */
enum cdacq_status name_dynamic_runtime(const struct name_source *source, enum cdacq_name_style style, const char *owner,
                                       const char *name, const void *signature, size_t length,
                                       const struct name_instance *instance, struct text *ret);

/*
 * A method by its signature in a ReadyToRun image. What belongs to other modules is called what the image calls it: the
 * assembly of a type is the one that the reference names, which may only forward it.
 */
enum cdacq_status name_entry_point_runtime(const struct name_source *source, enum cdacq_name_style style,
                                           const struct name_entry_point *entry, struct text *ret);

/* A TypeDef or TypeRef as a type that stands by itself: `Ns.Outer`1+Inner`, without arguments. */
enum cdacq_status name_type_alone(const struct name_source *source, uint32_t token, struct text *ret);

/* What the row of a TypeDef or TypeRef says: `Ns.Name`, and of a nested type no more than its name. */
enum cdacq_status name_type_row(const struct name_source *source, uint32_t token, bool with_namespace,
                                struct text *ret);

/* The simple name of the assembly whose metadata the source has. */
enum cdacq_status name_assembly(const struct name_source *source, struct text *ret);

#endif
