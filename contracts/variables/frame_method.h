/*
 * frame_method.h: the method of a frame, as its variables need it: the signatures of its parameters and locals, with
 * the actual arguments of generic types and methods, and where its variables are. Shared generic code is compiled once
 * for all reference types; a word of the frame leads to the actual ones, where the code needs them.
 * Source: dotnet/runtime src/coreclr/vm/eetwain.cpp (GetExactGenericsToken), generics.cpp
 * (GetExactInstantiationsOfMethodAndItsClassFromCallInformation).
 */
#ifndef CDACQ_CONTRACTS_VARIABLES_FRAME_METHOD_H
#define CDACQ_CONTRACTS_VARIABLES_FRAME_METHOD_H

#include "contracts/type_system/signature_type.h"
#include "contracts/variables/variable_place.h"

/* Must not be moved once opened. */
struct frame_method {
    struct code_block block;
    struct signature_scope scope;
    uint32_t token;
    uint64_t owner; /* the MethodTable of its type; of shared code whose arguments are not known, the shared one */
    bool owner_is_value;
    bool has_this, is_funclet;
    bool is_shared;          /* its arguments are not known: those of `scope` are System.__Canon */
    bool has_locals;         /* their signature could be read */
    uint32_t argument_count; /* with `this` */
    uint32_t local_count;
    struct metadata_blob signature, locals;
    struct block_variables places; /* at the frame's program counter */
    const char *places_problem;    /* why none are known; NULL: they are */
};

/*
 * Opens the method of a frame. False if no method is there, if it has no token (a dynamic method), or if the reader
 * fails. The caller closes it in either case.
 */
bool frame_method_open(const struct variable_frame *frame, struct frame_method *ret);
void frame_method_close(struct frame_method *method);

/* The cursor at the type of parameter 0, after `this`; and of local 0. */
struct signature frame_method_parameters(const struct frame_method *method);
struct signature frame_method_locals(const struct frame_method *method);

/* Appends Type.ToString() of `this`. False: it is not known. */
bool frame_method_this_name(const struct frame_method *method, struct text *ret);

#endif
