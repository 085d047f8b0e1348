/* Drives one op row alone: a node whose inputs are function arguments, shape inference, prepare, run.
 *
 * What is checked for every case:
 *   - the attributes match the definition, and the inputs have the dtypes that it requires;
 *   - inference with known shapes and values, with known shapes only, and with nothing known never contradicts the
 *     result, and knows the result's shape fully in the first way (unless the case is `dynamic`);
 *   - outputs have the dtypes of the definition, match the expected ones, and inputs are not modified;
 *   - a second run on dirty recycled memory, the plain kernel (`reference`) and a run in place (rows with
 *     TARE_OP_IN_PLACE) give the same, and nothing is written behind an output;
 *   - when the n-th allocation fails, the op fails cleanly;
 *   - a case that must fail does so in `run`, whatever inference said, with the given words in its text.
 * `prepare` is called without inputs: it sees the node only. */
#ifndef TARE_TESTS_OP_CASE_H
#define TARE_TESTS_OP_CASE_H

#include "graph/op.h"
#include "support/tensor_compare.h"

enum { OP_CASE_MAX_TENSORS = 32 };

struct op_case {
    const char *op;
    const char *attrs; /* "T: float; padding: 'SAME'; strides: [1, 2, 2, 1]"; NULL: none */
    const char *where; /* file and line, for messages */
    struct tare_tensor inputs[OP_CASE_MAX_TENSORS];
    size_t n_inputs;
    struct tare_tensor outputs[OP_CASE_MAX_TENSORS]; /* expected; dtype INVALID: not compared */
    size_t n_outputs;
    struct tolerance tolerance;
    const char *error; /* NULL: must succeed; otherwise part of the error text */
    const char *infer; /* NULL, or "[2,?] [3]* -> [2,3]": input shapes (* = the value is known, too) and the exact
                          result of inference; several are separated by ';' */
    bool dynamic;      /* the output shape depends on more than inference can know */
};

/* Runs all checks; on failure prints the case and the difference to stderr. */
bool op_case_run(const struct op_case *test);
/* Runs inference and the kernel on a case that may be invalid (expectations are ignored). Checks that nothing
 * crashes, that a failure sets an error text, and that a success creates every output with the definition's dtype.
 * `*ran` is set if the kernel was reached and succeeded. */
bool op_case_survive(bool *ran, const struct op_case *test);
/* Releases the tensors. */
void op_case_reset(struct op_case *test);

/* Builds a case from texts, runs it and resets it: the form for test programs. `inputs` and `outputs` are
 * NULL-terminated lists of tensor texts (support/tensor_text.h). */
bool op_case_check(const char *op, const char *attrs, const char *const *inputs, const char *const *outputs,
                   struct tolerance tolerance);

#endif
