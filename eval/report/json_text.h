/* jansson trees as text. */
#ifndef TARE_EVAL_REPORT_JSON_TEXT_H
#define TARE_EVAL_REPORT_JSON_TEXT_H

#include "base/status.h"
#include "base/strbuf.h"
#include "base/warnings.h"

#include <jansson.h>

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
