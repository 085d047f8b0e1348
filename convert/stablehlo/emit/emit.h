/* From graphs to StableHLO: a signature of a model whose variables are frozen, for arguments of one size, becomes the
 * function main of a module. Calls are inlined, nodes whose values follow from shapes and constants become constants,
 * and every other node is translated by the rule of its op: a row in one of the tables of emit_*.c. */
#ifndef TARE_CONVERT_STABLEHLO_EMIT_EMIT_H
#define TARE_CONVERT_STABLEHLO_EMIT_EMIT_H

#include "convert/stablehlo/emit/build.h"
#include "convert/stablehlo/emit/weights.h"
#include "graph/model.h"

/* What is known of one output of a node. */
struct tare_emit_value {
    tare_build_value value;      /* in the module; NULL: not emitted (yet) */
    struct tare_tensor constant; /* dtype INVALID: not constant */
};

/* A graph that is being translated: the main graph, or the function of a branch or a loop. */
struct tare_emit_graph {
    const struct tare_graph *graph;
    struct tare_shape **shapes;                     /* by position and output */
    struct tare_emit_value **values;                /* the same */
    const tare_build_value *args;                   /* of a function */
    const struct tare_tensor *const *arg_constants; /* of a function; NULL for those that are not known */
    struct tare_emit_graph *next;                   /* of all that were translated */
};

struct tare_emit {
    struct tare_build build;
    struct tare_emit_graph *graph; /* translated now */
    struct tare_emit_graph *all;   /* their constants live until tare_emit_free */
    struct tare_arena arena;
    int depth;          /* of functions in functions */
    bool weights_apart; /* constants of many elements become arguments of main */
    struct tare_emit_weight *weights;
    size_t n_weights, weights_capacity;
};

/* The rule of an op: emits the node and sets its outputs. Rules use the functions below; a failure is recorded in the
 * builder, or returned with a text that does not name the node. */
struct tare_emit_row {
    const char *op;
    tare_status (*emit)(struct tare_emit *emit, const struct tare_node *node, const void *arg);
    const void *arg;
};

/* The tables; each ends with a row without op. */
extern const struct tare_emit_row tare_emit_elementwise[], tare_emit_shapes[], tare_emit_indexing[],
    tare_emit_reductions[], tare_emit_products[], tare_emit_windows[], tare_emit_control[], tare_emit_xla[],
    tare_emit_algebra[], tare_emit_order[], tare_emit_functions[];

/* Input k: its value in the module, shape, and value if it is constant (NULL: it is not). */
tare_build_value tare_emit_in(struct tare_emit *emit, const struct tare_node *node, size_t k);
struct tare_shape tare_emit_in_shape(const struct tare_emit *emit, const struct tare_node *node, size_t k);
const struct tare_tensor *tare_emit_in_constant(const struct tare_emit *emit, const struct tare_node *node, size_t k);
/* The integers of a constant input of at most TARE_MAX_RANK elements; TARE_UNSUPPORTED if it is not constant. */
tare_status tare_emit_in_ints(int64_t *out, size_t *count, const struct tare_emit *emit, const struct tare_node *node,
                              size_t k);
struct tare_shape tare_emit_out_shape(const struct tare_emit *emit, const struct tare_node *node, size_t i);
/* The dtype of output i. */
int tare_emit_out_dtype(const struct tare_node *node, size_t i);
/* Sets output i. */
tare_status tare_emit_set(struct tare_emit *emit, const struct tare_node *node, size_t i, tare_build_value value);

/* Arguments of a function: values of the module, and the constants that some of them are known to be (NULL: those of
 * no argument, or not of this one), on which shapes of the function may depend. */
struct tare_emit_args {
    const tare_build_value *values;
    const struct tare_tensor *const *constants;
};
/* The values of a function's results for arguments, emitted into the current block; the arguments' shapes are those of
 * the values. Calls in the function are inlined. */
tare_status tare_emit_function(tare_build_value *results, struct tare_emit *emit, struct tare_graph *function,
                               const struct tare_emit_args *args);

/* A region with the values of a function for arguments of these types, which become the region's own. `constants`: as
 * above. */
tare_status tare_emit_region(struct tare_shlo_block *out, struct tare_emit *emit, struct tare_graph *function,
                             const struct tare_shlo_type *const *types, const struct tare_tensor *const *constants,
                             size_t count);
/* The results of an op are the outputs of the node; NULL: it failed. */
tare_status tare_emit_results(struct tare_emit *emit, const struct tare_node *node, const struct tare_shlo_op *op);

/* Calls a target of XLA with the operands and results of the request, and a configuration in the target's own form.
 * NULL: recorded. */
struct tare_shlo_op *tare_emit_call(struct tare_emit *emit, const char *target, const char *config,
                                    const struct tare_build_request *request);
/* A part of x of these sizes from the elements of `first`, a vector, on. */
tare_build_value tare_emit_dynamic_slice(struct tare_emit *emit, tare_build_value x, tare_build_value first,
                                         const struct tare_shape *sizes);

struct tare_emit_options {
    const char *signature;     /* NULL: serving_default, or the only one */
    int64_t batch;             /* size of open first dimensions of inputs; at least 1 */
    const char *const *shapes; /* "KEY=2,16": the shape of an input */
    size_t n_shapes;
    int version;        /* of VHLO */
    bool weights_apart; /* constants of 1,024 elements or more are arguments after those of the signature */
    size_t tpu_call;    /* of a converted model: only this computation of the signature's on the TPU, from 1; 0: all */
};
/* TARE_USAGE for a text that is not INPUT=SIZE,SIZE. */
tare_status tare_emit_check_shapes(const char *const *shapes, size_t count) TARE_WARN_UNUSED;
/* Translates a signature of a prepared model (convert/pipeline.h), whose main graph is changed: its calls are inlined.
 * `emit` is zeroed. The module borrows elements of constants. TARE_UNSUPPORTED names the ops without StableHLO form, or
 * the node that failed. */
tare_status tare_emit_module(struct tare_shlo_module **out, struct tare_emit *emit, struct tare_graph_model *model,
                             const struct tare_emit_options *options) TARE_WARN_UNUSED;
/* Undoes the placement of a converted model whose calls are inlined and whose inputs have known shapes: calls of TPU
 * functions and batchers become plain calls, which are inlined. With `tpu_call`, *signature becomes that of the call's
 * arguments and results; TARE_NOT_FOUND if there are fewer. Arena memory is for scratch. */
tare_status tare_emit_unplace(const struct tare_signature **signature, struct tare_arena *arena,
                              struct tare_graph_model *model, const struct tare_signature *whole,
                              size_t tpu_call) TARE_WARN_UNUSED;
/* What tare_emit_module does before it translates: the model's inputs get their sizes, and all calls are inlined.
 * *signature is what is translated. */
tare_status tare_emit_prepare(const struct tare_signature **signature, struct tare_arena *arena,
                              struct tare_graph_model *model, const struct tare_emit_options *options) TARE_WARN_UNUSED;
/* Releases what the module borrows; call it after the module was written, and tare_shlo_free before it. */
void tare_emit_free(struct tare_emit *emit);

#endif
