/*
 * il_offsets.h: IL offsets in answers. The debug info of a method is decoded when an address of it is first asked
 * about, not when methods are listed.
 */
#ifndef CDACQ_LOOKUP_IL_OFFSETS_H
#define CDACQ_LOOKUP_IL_OFFSETS_H

struct code_block;
struct method_record;
struct resolver;

/* Decodes the IL offsets of a record's method. `block` is the record's, or NULL: it is then looked up. */
void record_read_il_map(struct resolver *resolver, struct method_record *record, const struct code_block *block);

/* Why an IL offset of the method is not known, and so its line: reads the map again. Kept by the session, or static. */
const char *record_why_no_il_offset(struct resolver *resolver, const struct method_record *record);

#endif
