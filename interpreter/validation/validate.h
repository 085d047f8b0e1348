/* Structural rules of a model that TensorFlow would load, as far as the IR shows them: ops, attributes, inputs, calls,
 * cycles, returns, signatures, variables; batching and the placement of TPU computations. Does not know files, nor
 * which ops a TPU compiles (the caller may say). */
#ifndef TARE_INTERPRETER_VALIDATION_VALIDATE_H
#define TARE_INTERPRETER_VALIDATION_VALIDATE_H

#include "graph/model.h"
#include "graph/op.h"

/* What is wrong, one message each: "function/node (Op): what"; the main graph is called "graph". */
struct tare_faults {
    struct tare_arena arena;
    const char **items;
    size_t count, capacity;
    const char **notes; /* what is unusual, but no violation: the model loads and runs */
    size_t n_notes, notes_capacity;
};
void tare_faults_free(struct tare_faults *faults);
/* Adds "where: what", for rules that are checked elsewhere. */
tare_status tare_faults_add(struct tare_faults *faults, const char *where, const char *what);

struct tare_validate_options {
    /* Whether a TPU has a kernel for the op; NULL: not checked. */
    bool (*compiles)(const char *op);
    /* An op that these do not know is a fault, though the file brings a definition: who loads it must bring a kernel.
     * NULL: a definition is enough. */
    const struct tare_op_registry *ops;
    bool values_optional; /* a variable without a checkpoint key needs no value */
    bool values_in_file;  /* a variable with a checkpoint key has its value: it was not read */
};

/* Adds the model's faults to a zeroed (or earlier) list, in the order of the model's graphs and nodes. A faulty model
 * is no failure: the status is TARE_OK or TARE_NO_MEMORY. NULL options: all default. */
tare_status tare_model_validate(struct tare_faults *faults, const struct tare_model *model,
                                const struct tare_validate_options *options);

#endif
