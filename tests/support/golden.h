/* Reader of golden files: op cases with inputs and expected outputs computed by an independent program
 * (tests/golden/<family>.py). tests/golden/README.md describes the format. */
#ifndef TARE_TESTS_GOLDEN_H
#define TARE_TESTS_GOLDEN_H

#include "support/op_case.h"

struct golden_file;

/* Reads the whole file. TARE_NOT_FOUND if it does not exist, TARE_CORRUPT with the offset of the error. */
tare_status golden_open(struct golden_file **out, const char *path);
void golden_close(struct golden_file *file);
size_t golden_count(const struct golden_file *file);
/* The op of case i. */
const char *golden_op(const struct golden_file *file, size_t i);
/* Fills `out` (which must be zeroed; release with op_case_reset). The texts belong to the file. */
tare_status golden_read(struct op_case *out, const struct golden_file *file, size_t i);

#endif
