/* jansson trees as text. jansson prints and reads reals with the decimal point of the thread's locale, for which it
 * asks localeconv(); these functions set the locale "C" for its calls. localeconv() has one result for all threads: a
 * host that asks for it, in another locale, while JSON is read is the one case that this does not cover. */
#ifndef TARE_EVAL_REPORT_JSON_TEXT_H
#define TARE_EVAL_REPORT_JSON_TEXT_H

#include "base/status.h"
#include "base/strbuf.h"
#include "base/warnings.h"

#include <jansson.h>

/* The text of the tree, to be freed by free(), or NULL without memory or with NULL. `flags`: of json_dumps. */
char *tare_json_dump(const json_t *root, size_t flags);
/* Reads a tree; NULL with *error (unless it is NULL) otherwise. */
json_t *tare_json_parse(const char *text, size_t size, json_error_t *error);
/* Appends the tree, indented, with 15 significant digits per number, and a newline. Takes ownership of `root`; NULL (an
 * object that could not be allocated) is TARE_NO_MEMORY. */
tare_status tare_json_write(struct tare_strbuf *out, json_t *root) TARE_WARN_UNUSED;
/* A string; bytes that are not UTF-8 are escaped, as are then all outside ASCII (docs/json.md). NULL is null. */
json_t *tare_json_text(const char *text);
json_t *tare_json_text_of(const char *text, size_t size);
/* A list of the texts; NULL without memory. */
json_t *tare_json_warnings(const struct tare_warnings *warnings);
/* Sets a member whose key may not be UTF-8; takes ownership of the value. */
void tare_json_set(json_t *object, const char *key, json_t *value);
/* A finite number, otherwise null. */
json_t *tare_json_number(double value);

#endif
