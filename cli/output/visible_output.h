/* Standard output for people: what commands print is escaped (base/visible.h) on its way. */
#ifndef TARE_CLI_OUTPUT_VISIBLE_OUTPUT_H
#define TARE_CLI_OUTPUT_VISIBLE_OUTPUT_H

#include "base/arena.h"

#include <stdbool.h>

/* Replaces the stream stdout by one that escapes control characters other than newline and tab, and writes to file
 * descriptor 1. Where standard output is a terminal with colors, tare's color sequences pass. Without memory, stdout
 * stays as it is. Called once. */
void tare_make_stdout_visible(void);

/* Whether something was written to the stream that tare_make_stdout_visible made; what is still buffered does not
 * count. */
bool tare_stdout_is_used(void);

/* Prints one line; newlines in `text` are escaped, too. */
void tare_print_line(const char *label, const char *text);
/* `text` as one line; from the arena if something must be escaped. "" without memory. */
const char *tare_visible_name(struct tare_arena *arena, const char *text);

#endif
