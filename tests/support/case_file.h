/* Reader of tests/ops/<family>.cases: op cases as text, for values that a person can check by eye. Lines:
 *
 *   # comment
 *   case OP [attributes]        begins a case: `case LeakyRelu T: float; alpha: 0.5`
 *   types float half int32      repeats the case for each dtype, put in place of every @
 *   in TENSOR                   an input, in order (support/tensor_text.h): `in @[3] -1 0 2`
 *   out TENSOR                  an output; `out -`: not looked at
 *   tol [abs X] [rel X] [ulp N] tolerance; exact without
 *   error WORDS                 the case fails with these words in the text
 *   infer SHAPES -> SHAPES      exact result of inference on partial shapes: `infer [2,?] [?]* -> [2,?]` (* = value
 * known) dynamic                     inference cannot know the shape even when every input value is known
 *
 * A line that ends with \ goes on in the next one. */
#ifndef TARE_TESTS_CASE_FILE_H
#define TARE_TESTS_CASE_FILE_H

#include "support/op_case.h"

struct case_file;

/* TARE_NOT_FOUND when there is no file; TARE_INVALID_ARGUMENT names the line. */
tare_status case_file_open(struct case_file **out, const char *path);
void case_file_close(struct case_file *file);
/* Cases, those of `types` counted one by one. */
size_t case_file_count(const struct case_file *file);
const char *case_file_op(const struct case_file *file, size_t i);
/* Fills `out` (zeroed; op_case_reset ends it); texts belong to the file. */
tare_status case_file_read(struct op_case *out, const struct case_file *file, size_t i);

#endif
