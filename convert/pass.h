/* A pass: one change to a model, one file in convert/passes/, one row here. The order is the array in pipeline.c. */
#ifndef TARE_CONVERT_PASS_H
#define TARE_CONVERT_PASS_H

#include "graph/model.h"

struct tare_pass {
    const char *name; /* "fold_batch_norm": as --disable takes it and the report shows it */
    const char *help; /* one line */
    /* Changes the model and adds the number of changes made to *changes. */
    tare_status (*run)(struct tare_graph_model *model, size_t *changes);
};

/* Lets outputs of the main graph wait for the assignments that ops before them wait for. */
extern const struct tare_pass tare_pass_keep_effects;
/* Turns variables that nothing assigns into constants where functions read them, and drops the captures. */
extern const struct tare_pass tare_pass_freeze;
/* Folds inference batch normalisation, and multiplications and additions by constants, into the weights and bias of the
 * convolution or matrix product before them. */
extern const struct tare_pass tare_pass_fold_batch_norm;
/* Removes Transposes that cancel each other, also across elementwise ops, pads and concatenations. */
extern const struct tare_pass tare_pass_cancel_transposes;
/* Computes nodes whose inputs are all constants. Float8 weights stay what they are: their conversion is not computed.
 */
extern const struct tare_pass tare_pass_fold_constants;
/* The same for FakeQuant ops that read the weight from a variable that is kept. */
extern const struct tare_pass tare_pass_fold_fake_quant;
/* Copies functions that are called with different variables, for each caller. */
extern const struct tare_pass tare_pass_split_callers;
/* Moves constants that call sites pass as arguments into the functions, loops and branches that use them. */
extern const struct tare_pass tare_pass_localize_constants;
/* The same for reads of variables that stay variables. */
extern const struct tare_pass tare_pass_localize_variables;
/* Inlines functions that hold the table of a look-up in another function. */
extern const struct tare_pass tare_pass_inline_tables;
/* Moves choices from stacks of weights (lax.scan) to the products that use them, into called functions and inner loops.
 */
extern const struct tare_pass tare_pass_localize_choices;
/* Replaces the bodies of annotated composite functions (convert/composites/composites.h). */
extern const struct tare_pass tare_pass_fuse_composites;
/* Turns the batch groups of convolutions into feature groups, which quantization knows. */
extern const struct tare_pass tare_pass_split_batch_groups;
/* Drops functions that no signature or alias reaches, and nodes without effect. */
extern const struct tare_pass tare_pass_prune;

#endif
