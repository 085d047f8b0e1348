/* The test program of one op family: every case of tests/ops/<family>.cases and tests/golden/<family>.bin, one cmocka
 * test an op; and the count of cases of every op, for the guard that no op is without. */
#ifndef TARE_TESTS_OP_FAMILY_H
#define TARE_TESTS_OP_FAMILY_H

#include <stddef.h>

struct CMUnitTest;

/* Runs the family's cases, then `more` (tests of its own; NULL: none). One of the two files must be there. Returns the
 * number of failed tests: the value for main. An environment variable TARE_OP=Name runs the cases of one op. */
int op_family_main(const char *source_dir, const char *family, const struct CMUnitTest *more, size_t n_more);

/* Number of cases of each op over all files of tests/ops and tests/golden: nodes alone, graphs that the op is in (each
 * counts once), and tests/ops/elsewhere.txt: lines "Op count test-file" for ops whose cases are in a test program. */
struct op_coverage;
struct op_coverage *op_coverage_load(const char *source_dir);
size_t op_coverage_count(const struct op_coverage *coverage, const char *op);
/* Calls fn for every op that has cases. */
void op_coverage_each(const struct op_coverage *coverage, void (*fn)(void *arg, const char *op, size_t count),
                      void *arg);
void op_coverage_free(struct op_coverage *coverage);

#endif
