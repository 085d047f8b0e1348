/* Reader of golden files: cases of ops with inputs and expected outputs made by an independent program
 * (tests/golden/<family>.py). The format is described in tests/golden/README.md. */
#ifndef TARE_TESTS_GOLDEN_H
#define TARE_TESTS_GOLDEN_H

#include "support/op_case.h"

struct golden_file;

/* Maps nothing: the file is read whole. TARE_NOT_FOUND when there is none, TARE_CORRUPT with the offset. */
tare_status golden_open(struct golden_file **out, const char *path);
void golden_close(struct golden_file *file);
size_t golden_count(const struct golden_file *file);
/* The op of case i. */
const char *golden_op(const struct golden_file *file, size_t i);
/* Fills `out` (zeroed; op_case_reset ends it); texts belong to the file. */
tare_status golden_read(struct op_case *out, const struct golden_file *file, size_t i);

#endif
