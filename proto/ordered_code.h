/* Order-preserving encodings of numbers and strings: the keys of slices in checkpoints. */
#ifndef TARE_PROTO_ORDERED_CODE_H
#define TARE_PROTO_ORDERED_CODE_H

#include "base/strbuf.h"

#include <stdint.h>

/* A length byte, then the number's bytes, highest first. */
void tare_ordered_put_unsigned(struct tare_strbuf *out, uint64_t value);
/* One to ten bytes: a sign bit, the length in unary, the number in two's complement. */
void tare_ordered_put_signed(struct tare_strbuf *out, int64_t value);
/* The bytes with 00 and FF escaped, then an end mark. */
void tare_ordered_put_string(struct tare_strbuf *out, const char *text, size_t size);

#endif
