/* Rows of composite functions, and what they build with. */
#ifndef TARE_CONVERT_COMPOSITES_INTERNAL_H
#define TARE_CONVERT_COMPOSITES_INTERNAL_H

#include "graph/model_shapes.h"

/* One function being looked at. */
struct tare_composing {
    struct tare_graph *graph;
    struct tare_arena *arena;
    const struct tare_model_shapes *shapes;
    const char *name;               /* what it implements */
    const struct tare_attr *attrs;  /* of the annotation */
    size_t n_attrs;
    const char *reason; /* set by a row that does not fit */
    struct tare_edge *results; /* of the new body: one a return */
};

struct tare_composite_row {
    const char *name; /* "embedding_lookup"; NULL in the row for every name with tfl_fusable_op */
    bool is_prefix;   /* "lstm_" */
    bool is_keras;    /* from api_implements */
    /* Says whether the signature fits (reason) before anything is changed. */
    tare_status (*check)(struct tare_composing *c);
    /* Builds the body; the old one is gone. Sets results. */
    tare_status (*build)(struct tare_composing *c);
};

extern const struct tare_composite_row tare_composite_rows[]; /* ends with a row without check */

/* Keras' recurrent layers (convert/composites_rnn.c). */
tare_status tare_composite_check_lstm(struct tare_composing *c);
tare_status tare_composite_build_lstm(struct tare_composing *c);
tare_status tare_composite_check_gru(struct tare_composing *c);
tare_status tare_composite_build_gru(struct tare_composing *c);

/* The annotation's attribute; NULL when it has none of that name. */
const struct tare_attr *tare_composing_attr(const struct tare_composing *c, const char *name);
/* Sets the reason; always TARE_OK, or TARE_NO_MEMORY. */
tare_status tare_composing_decline(struct tare_composing *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Counts of arguments and returns, and that argument i is of that dtype and rank (-1: any). */
tare_status tare_composing_want(struct tare_composing *c, size_t n_args, size_t n_returns);
tare_status tare_composing_want_arg(struct tare_composing *c, size_t i, int dtype, int rank);
struct tare_shape tare_composing_shape(const struct tare_composing *c, size_t arg);

/* A node of up to four inputs, its type attributes from their dtypes; then tare_node_resolve. */
tare_status tare_composing_node(struct tare_node **out, struct tare_composing *c, const char *op, const char *name,
                                size_t n, const struct tare_edge *inputs);
/* The same with nothing left to set: its output 0. */
tare_status tare_composing_op(struct tare_edge *out, struct tare_composing *c, const char *op, const char *name, size_t n,
                              const struct tare_edge *inputs);
tare_status tare_composing_ints(struct tare_edge *out, struct tare_composing *c, const char *name, size_t n,
                                const int32_t *values);
tare_status tare_composing_int(struct tare_edge *out, struct tare_composing *c, const char *name, int32_t value);
tare_status tare_composing_float(struct tare_edge *out, struct tare_composing *c, const char *name, float value);
struct tare_edge tare_composing_arg(const struct tare_composing *c, size_t i);

#endif
