/* The properties of a Keras recurrent layer that both of its forms use (unrolled: rnn.c, as a loop: rnn_loop.c), and
 * the product of its inputs with the kernel, which both compute for all time steps at once. */
#include "convert/composites/build.h"

enum { INPUTS = 0 };

static bool flag(const struct tare_composing *c, const char *name) {
    const struct tare_attr *attr = tare_graph_find_attr(c->graph, name);
    return attr && attr->kind == TARE_ATTR_BOOL && attr->count && attr->items[0].b;
}

int tare_rnn_time_axis(const struct tare_composing *c) {
    return flag(c, "time_major") ? 0 : 1;
}

bool tare_rnn_goes_backwards(const struct tare_composing *c) {
    return flag(c, "go_backwards");
}

bool tare_rnn_keeps_last(const struct tare_composing *c) {
    return tare_model_shape(c->shapes, c->graph->returns[1].edge).dims[tare_rnn_time_axis(c)] == 1;
}

tare_status tare_rnn_project(struct tare_edge *out, struct tare_composing *c, struct tare_edge inputs, size_t kernel,
                             struct tare_edge shape) {
    const int32_t flat[2] = { -1, (int32_t)tare_composing_shape(c, INPUTS).dims[2] };
    struct tare_edge rows_shape, rows;
    TARE_TRY(tare_composing_ints(&rows_shape, c, "rows/shape", 2, flat));
    TARE_TRY(tare_composing_op(&rows, c, "Reshape", "rows", 2, (struct tare_edge[]){ inputs, rows_shape }));
    TARE_TRY(tare_composing_op(&rows, c, "MatMul", "MatMul", 2,
                               (struct tare_edge[]){ rows, tare_composing_arg(c, kernel) }));
    return tare_composing_op(out, c, "Reshape", "projected", 2, (struct tare_edge[]){ rows, shape });
}
