/* The test program of one op family: runs every case of tests/ops/<family>.cases, tests/golden/<family>.bin and
 * tests/golden/tensorflow/<family>.bin, with one cmocka test per op. Also counts the cases of each op, for the test
 * that requires a minimum. */
#ifndef TARE_TESTS_OP_FAMILY_H
#define TARE_TESTS_OP_FAMILY_H

#include <stddef.h>

struct CMUnitTest;

/* Runs the family's cases, then `more` (additional tests; NULL: none). At least one of the files must exist.
 * Returns the number of failed tests, the value for main. The environment variable TARE_OP=Name selects the cases of
 * one op. */
int op_family_main(const char *source_dir, const char *family, const struct CMUnitTest *more, size_t n_more);

/* Number of cases of each op over all files of tests/ops and tests/golden: single-node cases, graphs that contain
 * the op (once each), and lines "Op count test-file" of tests/ops/elsewhere.txt for ops with cases in test programs. */
struct op_coverage;
struct op_coverage *op_coverage_load(const char *source_dir);
size_t op_coverage_count(const struct op_coverage *coverage, const char *op);
/* Calls fn for each op that has cases. */
void op_coverage_each(const struct op_coverage *coverage, void (*fn)(void *arg, const char *op, size_t count),
                      void *arg);
void op_coverage_free(struct op_coverage *coverage);

#endif
