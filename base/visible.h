/* Text for people: control characters of names from models, data and paths are escaped, so that they cannot move the
 * cursor, change colors, reverse the text or begin a new line.
 *
 * Escaped are C0 and C1 controls, DEL, line and paragraph separators, marks that change the direction of text, and
 * bytes that are not UTF-8: \n, \r, \t, \uXXXX (also valid in JSON), \xHH for bytes. */
#ifndef TARE_BASE_VISIBLE_H
#define TARE_BASE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

enum { TARE_VISIBLE_MAX = 8 }; /* bytes that one step writes */

/* Writes the first character of `text` (at least one byte) to `out` in visible form, without a NUL. Returns the bytes
 * written; *used is the number of bytes read. 0: the bytes are the beginning of a character that is cut off at the end;
 * with `last` they are written as bytes. `lines`: newlines and tabs are kept. */
size_t tare_visible_step(char out[TARE_VISIBLE_MAX], size_t *used, const char *text, size_t size, bool lines,
                         bool last);
/* One line, NUL-terminated, cut off at a character if `room` (at least 1) is too small. Returns `out`. */
const char *tare_visible_line(char *out, size_t room, const char *text);
/* Whether tare_visible_line would change nothing. */
bool tare_is_visible(const char *text);

#endif
