/*
 * resource_keys.h: whether a process has the texts of the framework's resources, or only their keys. The runtime uses
 * keys if the switch System.Resources.UseSystemResourceKeys is on, as applications without resources have it. The core
 * library asks for the switch once and keeps the answer (SR.s_usingResourceKeys). A trimmed one may lack that field.
 * Source: dotnet/runtime src/libraries/Common/src/System/SR.cs;
 * src/libraries/System.Private.CoreLib/src/System/AppContext.cs.
 */
#ifndef CDACQ_CONTRACTS_OBJECTS_RESOURCE_KEYS_H
#define CDACQ_CONTRACTS_OBJECTS_RESOURCE_KEYS_H

#include "contracts/module_cache.h"

enum resource_texts { RESOURCE_TEXTS_UNKNOWN, RESOURCE_TEXTS, RESOURCE_KEYS };

/* The reader does not fail. */
enum resource_texts resource_texts_find(struct module_cache *cache);

#endif
