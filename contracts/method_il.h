/*
 * method_il.h: the IL of a method, as its assembly has it. A method whose IL was replaced while the process ran (hot
 * reload, a profiler) has none here.
 * Source: dotnet/runtime docs/design/datacontracts/Loader.md (GetILHeader).
 */
#ifndef CDACQ_CONTRACTS_METHOD_IL_H
#define CDACQ_CONTRACTS_METHOD_IL_H

#include "contracts/loader.h"
#include "formats/il.h"

struct window;

/*
 * The code of a MethodDef of an open module, in a window that the caller deinits. False if it has none, or if the
 * reader fails.
 */
bool method_il_read(const struct module *module, uint32_t token, struct window *ret_window, struct il_code *ret);

/*
 * The StandAloneSig of a MethodDef's locals; 0 if it has none. False if the method has no IL here, or if the reader
 * fails.
 */
bool method_il_local_signature(const struct module *module, uint32_t token, uint32_t *ret);

#endif
