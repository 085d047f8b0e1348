/* The structural rules that TensorFlow checks when it loads a model, as far as the IR represents them: ops, attributes,
 * inputs, calls, cycles, returns, signatures, variables; batching and the placement of TPU computations. Does not know
 * files, nor which ops a TPU compiles (the caller may specify that). */
#ifndef TARE_INTERPRETER_VALIDATION_VALIDATE_H
#define TARE_INTERPRETER_VALIDATION_VALIDATE_H

#include "graph/model.h"
#include "graph/op.h"

/* Violations, one message each: "function/node (Op): what"; the main graph is called "graph". */
struct tare_faults {
    struct tare_arena arena;
    const char **items;
    size_t count, capacity;
    const char **notes; /* unusual, but not a violation: the model loads and runs */
    size_t n_notes, notes_capacity;
};
void tare_faults_free(struct tare_faults *faults);
/* Adds "where: what", for rules that are checked elsewhere. */
tare_status tare_faults_add(struct tare_faults *faults, const char *where, const char *what);
tare_status tare_faults_note(struct tare_faults *faults, const char *where, const char *what);

struct tare_validate_options {
    /* Whether a TPU has a kernel for the op; NULL: not checked. */
    bool (*compiles)(const char *op);
    bool any_tpu_dtypes; /* dtypes that a TPU lacks are not violations */
    /* An op that is not in this registry is a violation even if the file defines it, because loading it needs a kernel.
     * NULL: a definition is enough. */
    const struct tare_op_registry *ops;
    bool values_optional; /* a variable without a checkpoint key needs no value */
    bool values_in_file;  /* a variable with a checkpoint key has its value: it was not read */
};

/* Appends the model's violations to a zeroed or existing list, in the order of the model's graphs and nodes. Violations
 * are not a failure. TARE_NO_MEMORY or TARE_INTERRUPTED: the list is incomplete, and may contain what was not a
 * violation. NULL options: all default. */
tare_status tare_model_validate(struct tare_faults *faults, const struct tare_graph_model *model,
                                const struct tare_validate_options *options);

#endif
