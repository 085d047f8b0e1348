/* Mutations of protobuf messages, field by field and without their definitions: what is a message inside a message is
 * guessed from the bytes. Lengths are written anew, so that a change deep inside does not end the parsing. */
#ifndef TARE_TESTS_FUZZ_WIRE_H
#define TARE_TESTS_FUZZ_WIRE_H

#include <stddef.h>
#include <stdint.h>

/* Changes `size` bytes, at most to `most`, and returns the new size: LLVMFuzzerMutate. */
typedef size_t (*wire_bytes_fn)(uint8_t *data, size_t size, size_t most);

/* Changes a message in place and returns its new size, at most `most`. The same seed makes the same change if `bytes`
 * does. */
size_t wire_mutate(uint8_t *data, size_t size, size_t most, uint64_t seed, wire_bytes_fn bytes);
/* Writes `a` with one of its fields replaced by, or followed by, a field of the same number of `b` to `out`. Returns
 * the size, 0 if the result would exceed `most` or the two have no field in common. */
size_t wire_cross(uint8_t *out, size_t most, const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size,
                  uint64_t seed);

#endif
