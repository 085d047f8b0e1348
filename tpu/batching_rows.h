/* The axis of a batch's rows in the tensors of a graph: shared by the files that follow it. */
#ifndef TARE_TPU_BATCHING_ROWS_H
#define TARE_TPU_BATCHING_ROWS_H

#include "graph/bindings.h"

/* Shapes are those of a batch of TARE_ROWS: a prime number, so that an axis into which a Reshape merges the rows is
 * recognised. */
enum { TARE_ROWS = 13, TARE_NO_AXIS = -1 };

struct tare_rows {
    struct tare_arena *arena;
    struct tare_bindings *bindings;
    const struct tare_node *found; /* the first that mixes rows; NULL: none */
    const char *what;              /* it does */
    int depth;
};

/* One graph: its shapes, and the axis of the rows of each edge. */
struct tare_row_frame {
    struct tare_rows *rows;
    const struct tare_graph *graph;
    struct tare_shape **shapes;
    const struct tare_shape *args;
    int **axes, *arg_axes;
};

const struct tare_shape *tare_row_shape(const struct tare_row_frame *f, struct tare_edge edge);
/* TARE_NO_AXIS: the tensor has no rows, or it is not known where. */
int tare_row_axis(const struct tare_row_frame *f, struct tare_edge edge);
void tare_row_mixes(const struct tare_row_frame *f, const struct tare_node *node, const char *what);
/* The constant axes of input `i`, negative ones counted from the end; `is_axis` has TARE_MAX_RANK entries. False: not
 * known. */
bool tare_row_axes(const struct tare_node *node, size_t i, int rank, bool *is_axis);
/* For an op that reads or writes at positions (tpu/batching_index.c), sets *axis to that of the rows in its output.
 * False: it is another op. */
bool tare_row_after_index(int *axis, const struct tare_row_frame *f, const struct tare_node *node);

#endif
