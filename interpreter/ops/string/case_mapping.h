/* Upper and lower case of text in UTF-8. */
#ifndef TARE_INTERPRETER_OPS_STRING_CASE_MAPPING_H
#define TARE_INTERPRETER_OPS_STRING_CASE_MAPPING_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

#include <stdbool.h>

/* Appends `text` in the other case, with the full mappings of Unicode; a replacement character for each ill-formed
 * sequence. */
void tare_case_map(struct tare_strbuf *out, struct tare_str text, bool upper);

#endif
