/* Reader of tests/ops/<family>.cases: op cases as text, for values that a person can check by eye. Lines:
 *
 *   # comment
 *   case OP [attributes]        begins a case: `case LeakyRelu T: float; alpha: 0.5`
 *   types float half int32      repeats the case for each dtype, substituted for each @
 *   in TENSOR                   an input, in order (support/tensor_text.h): `in @[3] -1 0 2`
 *   out TENSOR                  an output; `out -`: not compared
 *   tol [abs X] [rel X] [ulp N] tolerance; exact without
 *   error WORDS                 the case must fail with a text that contains these words
 *   infer SHAPES -> SHAPES      exact result of inference on partial shapes: `infer [2,?] [?]* -> [2,?]`;
 *                               * = the value is known
 *   dynamic                     inference cannot know the shape even if all input values are known
 *
 * A line that ends with \ continues on the next line. */
#ifndef TARE_TESTS_CASE_FILE_H
#define TARE_TESTS_CASE_FILE_H

#include "support/op_case.h"

struct case_file;

/* TARE_NOT_FOUND if the file does not exist; TARE_INVALID_ARGUMENT with the line number for a syntax error. */
tare_status case_file_open(struct case_file **out, const char *path);
void case_file_close(struct case_file *file);
/* Number of cases; a case with `types` counts once per dtype. */
size_t case_file_count(const struct case_file *file);
const char *case_file_op(const struct case_file *file, size_t i);
/* Fills `out` (which must be zeroed; release with op_case_reset). The texts belong to the file. */
tare_status case_file_read(struct op_case *out, const struct case_file *file, size_t i);

#endif
