/* Patterns of RE2, the library of TensorFlow, as patterns of PCRE2. */
#ifndef TARE_INTERPRETER_OPS_STRING_RE2_PATTERN_H
#define TARE_INTERPRETER_OPS_STRING_RE2_PATTERN_H

#include "base/strbuf.h"
#include "base/tensor/tensor.h"

/* The character that stands for a byte that is not UTF-8, which no class matches. */
enum { TARE_RE2_BYTE = 0x10ffff };

/* Appends the pattern for PCRE2 (UTF-8, without other options) that matches the same texts, with the same groups, in
 * the same order of preference; `with_bytes`: of texts with TARE_RE2_BYTE. Patterns that RE2 refuses are refused
 * (back-references, look-around, possessive repeats), with its reasons; TARE_UNSUPPORTED: RE2 accepts it, but it has no
 * form here. */
tare_status tare_re2_translate(struct tare_strbuf *out, struct tare_str pattern, bool with_bytes) TARE_WARN_UNUSED;

#endif
