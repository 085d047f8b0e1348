/* Shape inference shared by the ops, next to the row functions of graph/op.h. Windows of convolutions and pools are
 * in interpreter/ops/support/window.h. */
#ifndef TARE_INTERPRETER_INFERENCE_INFER_H
#define TARE_INTERPRETER_INFERENCE_INFER_H

#include "graph/op.h"

struct tare_infer {
    const struct tare_node *node;
    size_t n_inputs;
    const int *input_dtypes;
    const struct tare_shape *inputs;               /* possibly partial */
    const struct tare_tensor *const *input_values; /* constants, NULL where the value is not known */
    /* Elements of vectors of integers, -1 where not known, for the inputs of which some are; NULL: for none. */
    const struct tare_shape *const *input_parts;
    size_t n_outputs;
    struct tare_shape *outputs; /* to fill; preset to unknown rank */
    struct tare_arena *arena;
};

/* Shared inference functions, usable in rows. */
tare_status tare_infer_same(struct tare_infer *infer);      /* every output as input 0 */
tare_status tare_infer_broadcast(struct tare_infer *infer); /* output 0 = all inputs broadcast */
tare_status tare_infer_scalar(struct tare_infer *infer);    /* every output a scalar */

/* Infers every output shape of a graph from the shapes of its arguments (or Placeholders' attributes when `args` is
 * NULL). Calls of functions are followed. *out maps node position and output index: out[position][index]; arena memory.
 * Contradictions are errors; what cannot be known stays unknown. */
tare_status tare_graph_infer_shapes(struct tare_shape ***out, struct tare_arena *arena, const struct tare_graph *graph,
                                    const struct tare_shape *args);
/* The same with the shapes of the variables of resource arguments: handles[i] of argument i, NULL where it is none
 * or not known. */
tare_status tare_graph_infer_shapes_of(struct tare_shape ***out, struct tare_arena *arena,
                                       const struct tare_graph *graph, const struct tare_shape *args,
                                       const struct tare_shape *const *handles);

/* The same as tare_graph_infer_shapes with what is known of the values of arguments: values[i] of argument i, NULL
 * where none is. They must live until the call returns. */
tare_status tare_graph_infer_shapes_given(struct tare_shape ***out, struct tare_arena *arena,
                                          const struct tare_graph *graph, const struct tare_shape *args,
                                          const struct tare_tensor *const *values);

/* Called for input `index` of a loop whose body returns it with another shape, and for output `index` of a conditional
 * whose branches return tensors of different ranks: what a compiler of static shapes rejects. Both are known as far as
 * they differ; a node is named once for each context in which its function is called. */
typedef void (*tare_infer_conflict_fn)(void *arg, const struct tare_node *node, size_t index,
                                       const struct tare_shape *first, const struct tare_shape *second);
/* Infers the graph as above for these alone. */
tare_status tare_graph_infer_conflicts(tare_infer_conflict_fn conflict, void *arg, const struct tare_graph *graph,
                                       const struct tare_shape *args, const struct tare_shape *const *handles);

/* What was inferred of called functions. Inferences of the graphs of one model that share it infer a function once for
 * the same arguments, instead of once per graph that reaches it. The model, and the shapes of `handles`, must neither
 * change nor end before it. NULL: out of memory. */
struct tare_inference;
struct tare_inference *tare_inference_new(void);
void tare_inference_free(struct tare_inference *inference); /* NULL is fine */
/* As tare_graph_infer_shapes_of, with what `inference` contains (NULL: nothing is shared). */
tare_status tare_graph_infer_shapes_with(struct tare_inference *inference, struct tare_shape ***out,
                                         struct tare_arena *arena, const struct tare_graph *graph,
                                         const struct tare_shape *args, const struct tare_shape *const *handles);

/* Shape specified by input `i`, a vector of dims: its dims when its value is known (-1: unknown), else unknown dims
 * of the vector's length, else unknown. TARE_SHAPE for a value below -1 or too many dims. */
tare_status tare_infer_shape_input(struct tare_shape *out, const struct tare_infer *infer, size_t i);
/* Input `i` has this rank or an unknown one; TARE_SHAPE "input 0 has rank 3 (expected 4)". */
tare_status tare_infer_want_rank(const struct tare_infer *infer, size_t i, int rank);

#endif
