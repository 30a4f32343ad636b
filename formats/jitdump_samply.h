/*
 * jitdump_samply.h: the records that samply adds to jitdumps: SAMPLY_JIT_CODE_DEBUG_INFO2 as it is published, and the
 * record by that name that samply reads. The public functions for the lists of the former are defined here, too.
 *
 * Sources: "Jitdump record format for debug info with inlines" by Markus Stange; samply-symbols/src/jitdump.rs of
 * samply. Only the header of samply's tier and source records is published.
 *
 * Pure functions; thread-safe.
 */
#ifndef CDACQ_FORMATS_JITDUMP_SAMPLY_H
#define CDACQ_FORMATS_JITDUMP_SAMPLY_H

#include "cdacq/jitdump.h"
#include "formats/jitdump_problems.h"

/* Whether the contents of a record with the id of SAMPLY_TIER are lists that fill it exactly. */
bool jitdump_is_samply_positions(const struct cdacq_jitdump_record *record);

/* Check the lists of a record of either form, whose fields are decoded. */
void jitdump_check_samply(const struct cdacq_jitdump_record *record, struct jitdump_problems *problems);
void jitdump_check_samply_positions(const struct cdacq_jitdump_record *record, struct jitdump_problems *problems);

/* Of a record of either form: the end of what its ranges and lines cover, relative to the function's start. */
uint64_t jitdump_samply_end(const struct cdacq_jitdump_record *record);

#endif
