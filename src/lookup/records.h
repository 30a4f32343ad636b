/*
 * records.h: forms the record of a method: the part of an answer that is the same for all addresses of its hot or cold
 * part.
 */
#ifndef CDACQ_LOOKUP_RECORDS_H
#define CDACQ_LOOKUP_RECORDS_H

#include "contracts/type_system/method_name.h"

struct cdacq_method;
struct method_record;
struct resolver;

/* Forms names of methods. `spelling` NULL: that of answers. */
struct method_namer resolver_namer(struct resolver *resolver, const struct name_spelling *spelling);

/*
 * Forms the record of a block's hot or cold part. NULL, with resolver->error set, when out of memory or if a bound is
 * reached.
 */
struct method_record *record_make(struct resolver *resolver, const struct code_block *block);

/* Takes the name of a method, its token and its module into an answer. */
void resolver_set_name(struct resolver *resolver, struct cdacq_method *method, const struct method_name *name);

#endif
