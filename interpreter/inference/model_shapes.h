/* Shapes of every tensor of a model: signatures' shapes flow into functions through their call sites. */
#ifndef TARE_INTERPRETER_INFERENCE_MODEL_SHAPES_H
#define TARE_INTERPRETER_INFERENCE_MODEL_SHAPES_H

#include "graph/model.h"

struct tare_model_shapes;

/* Infers shapes from the main graph's placeholders down the call graph. What several call sites pass differently is
 * unknown where they differ. Valid until a graph changes. */
tare_status tare_model_shapes_new(struct tare_model_shapes **out, const struct tare_graph_model *model);
void tare_model_shapes_free(struct tare_model_shapes *shapes);
/* Shape of an edge; unknown rank when nothing is known (also for functions that are not called). */
struct tare_shape tare_model_shape(const struct tare_model_shapes *shapes, struct tare_edge edge);

#endif
