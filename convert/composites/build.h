/* Rows of composite functions, and the helpers that they build with. */
#ifndef TARE_CONVERT_COMPOSITES_INTERNAL_H
#define TARE_CONVERT_COMPOSITES_INTERNAL_H

#include "interpreter/inference/model_shapes.h"

/* One annotated function. */
struct tare_composing {
    struct tare_graph *graph;
    struct tare_arena *arena;
    const struct tare_model_shapes *shapes;
    const char *name;              /* the name in the annotation */
    const struct tare_attr *attrs; /* of the annotation */
    size_t n_attrs;
    const char *reason;        /* set by a row that does not fit */
    struct tare_edge *results; /* of the new body: one a return */
};

struct tare_composite_row {
    const char *name; /* "embedding_lookup"; NULL in the row for every name with tfl_fusable_op */
    bool is_prefix;   /* "lstm_" */
    bool is_keras;    /* from api_implements */
    /* Checks the signature before anything is changed; sets reason if it does not match. */
    tare_status (*check)(struct tare_composing *c);
    /* Builds the body, after the old one was removed. Sets results. */
    tare_status (*build)(struct tare_composing *c);
};

extern const struct tare_composite_row tare_composite_rows[]; /* ends with a row without check */

/* Keras' recurrent layers (convert/composites/rnn.c). */
tare_status tare_composite_check_lstm(struct tare_composing *c);
tare_status tare_composite_build_lstm(struct tare_composing *c);
tare_status tare_composite_check_gru(struct tare_composing *c);
tare_status tare_composite_build_gru(struct tare_composing *c);

/* Lingvo's cell (convert/composites/lstm_cell.c). */
tare_status tare_composite_check_lstm_cell(struct tare_composing *c);
tare_status tare_composite_build_lstm_cell(struct tare_composing *c);

/* A recurrent layer's cell. Arguments are inputs, states, kernel, recurrent kernel, bias. */
enum { TARE_RNN_WEIGHTS = 4, TARE_RNN_STATES = 2 };
struct tare_rnn {
    size_t kernel;   /* argument; recurrent kernel and bias follow */
    size_t n_states; /* states[0] is the output */
    /* weights[0] and weights[1] are recurrent kernel and bias in c->graph: computes once what every step derives from
     * them. NULL: nothing is derived. */
    tare_status (*prepare)(struct tare_composing *c, struct tare_edge *weights);
    /* From x [batch, gates * units] and the states, the next states; nodes are added to c->graph. */
    tare_status (*step)(struct tare_composing *c, const struct tare_edge *weights, struct tare_edge x,
                        struct tare_edge *states);
};
int tare_rnn_time_axis(const struct tare_composing *c);
bool tare_rnn_goes_backwards(const struct tare_composing *c);
/* The layer returns the last output only, with a time axis of one step. */
bool tare_rnn_keeps_last(const struct tare_composing *c);
/* inputs times the kernel, all time steps at once, in that shape. */
tare_status tare_rnn_project(struct tare_edge *out, struct tare_composing *c, struct tare_edge inputs, size_t kernel,
                             struct tare_edge shape);
/* convert/composites/rnn_loop.c: the steps as one loop over TensorLists, for many or an unknown number of steps.
 * *outputs are those of all steps, or of the last; states[] are the initial states, replaced by the final ones. */
tare_status tare_rnn_build_loop(struct tare_edge *outputs, struct tare_edge *states, struct tare_composing *c,
                                const struct tare_rnn *rnn);

/* The annotation's attribute of that name; NULL if absent. */
const struct tare_attr *tare_composing_attr(const struct tare_composing *c, const char *name);
/* Sets the reason; always TARE_OK, or TARE_NO_MEMORY. */
tare_status tare_composing_decline(struct tare_composing *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A failure if the counts of arguments and returns are others: for names with which users promise an interface. */
tare_status tare_composing_verify(const struct tare_composing *c, size_t n_args, size_t n_returns);
/* Counts of arguments and returns, and that argument i is of that dtype and rank (-1: any). */
tare_status tare_composing_want(struct tare_composing *c, size_t n_args, size_t n_returns);
tare_status tare_composing_expect_arg(struct tare_composing *c, size_t i, int dtype, int rank);
struct tare_shape tare_composing_shape(const struct tare_composing *c, size_t arg);

/* A node of up to four inputs, its type attributes from their dtypes; then tare_node_resolve. */
tare_status tare_composing_node(struct tare_node **out, struct tare_composing *c, const char *op, const char *name,
                                size_t n, const struct tare_edge *inputs);
/* The same for a node without further attributes; returns its output 0. */
tare_status tare_composing_op(struct tare_edge *out, struct tare_composing *c, const char *op, const char *name,
                              size_t n, const struct tare_edge *inputs);
static inline tare_status tare_composing_binary(struct tare_edge *out, struct tare_composing *c, const char *op,
                                                struct tare_edge a, struct tare_edge b) {
    return tare_composing_op(out, c, op, op, 2, (struct tare_edge[]){ a, b });
}
tare_status tare_composing_ints(struct tare_edge *out, struct tare_composing *c, const char *name, size_t n,
                                const int32_t *values);
tare_status tare_composing_int(struct tare_edge *out, struct tare_composing *c, const char *name, int32_t value);
tare_status tare_composing_float(struct tare_edge *out, struct tare_composing *c, const char *name, float value);
struct tare_edge tare_composing_arg(const struct tare_composing *c, size_t i);

#endif
