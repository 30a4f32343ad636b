/*
 * manual.h: writes the man pages when cdacq is built: what --help prints, from the same tables, and text from docs/man.
 */
#ifndef CDACQ_CLI_MANUAL_H
#define CDACQ_CLI_MANUAL_H

/*
 * Writes cdacq.1 and a page for each command into `folder`. `texts` is a folder with NAME.man, the text that only the
 * page has, and options.man. Returns an exit code.
 */
int manual_write(const char *texts, const char *folder);

/* The word that makes the tool call manual_write. */
#define MANUAL_COMMAND "__manual"

#endif
