/*
 * aot_name.h: names of a NativeAOT program's methods and types, from what ILC embeds in its image. A method that the
 * image's tables do not name has no name here; the linker's symbols may have one.
 */
#ifndef CDACQ_CONTRACTS_NATIVE_AOT_AOT_NAME_H
#define CDACQ_CONTRACTS_NATIVE_AOT_AOT_NAME_H

#include "contracts/native_aot/aot_image.h"
#include "util/text.h"

/*
 * Appends the name of the method that begins at `begin`. NOT_MANAGED: the image does not name it. Another failure: the
 * tables cannot be read (the reader has failed) or are malformed.
 */
enum cdacq_status aot_name_method(struct aot_image *aot, struct reader *reader, uint64_t begin,
                                  enum aot_name_style style, struct text *ret);

/*
 * Appends what Type.ToString() writes for a MethodTable: arguments and elements, too. NOT_MANAGED: the image has no
 * metadata of the type, or of one that it is composed of.
 */
enum cdacq_status aot_name_type(struct aot_image *aot, struct reader *reader, uint64_t method_table, struct text *ret);

#endif
