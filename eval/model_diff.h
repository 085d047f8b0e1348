/* Comparison of two models: sizes, signatures, ops and weights. */
#ifndef TARE_EVAL_MODEL_DIFF_H
#define TARE_EVAL_MODEL_DIFF_H

#include "graph/model.h"

struct tare_strbuf;

/* How often each model has an op, in functions that signatures reach. */
struct tare_op_difference {
    const char *op;
    int64_t counts[2];
};

/* A signature or one of its tensors as each model declares it; NULL: the model does not have it. */
struct tare_signature_difference {
    const char *name; /* "serving_default", "serving_default input image" */
    const char *texts[2];
};

enum tare_weight_change {
    TARE_WEIGHT_SAME,
    TARE_WEIGHT_CHANGED,
    TARE_WEIGHT_RETYPED,
    TARE_WEIGHT_ONLY_FIRST,
    TARE_WEIGHT_ONLY_SECOND
};

/* A constant ("function/node") or variable (its checkpoint key) with at least 2 elements. */
struct tare_weight_difference {
    const char *name;
    enum tare_weight_change change; /* RETYPED: another dtype or shape */
    const char *types[2];           /* "float32[3,3,16,32]"; NULL: missing */
    int64_t bytes[2];
    double max_abs, sqnr_db; /* of CHANGED real weights: SQNR of the second against the first; NaN otherwise */
};

/* A layer, an op with a weight, in both models; NULL and 0: the model does not have it. */
struct tare_layer_difference {
    const char *name;
    const char *ops[2];     /* "Conv2D", "XlaConvV2" */
    const char *weights[2]; /* "float32[3,3,16,32]" */
    int dtypes[2];          /* of the weights */
    int64_t bytes[2];       /* of the weights */
    /* SQNR of the second weight against the first, each output channel with the scale that fits best, so that scales of
     * integers and folded batch normalizations do not count; NaN: the shapes differ, or the dtypes are the same. */
    double sqnr_db;
};

/* A scalar real constant: a scale, a zero point, a bound. NaN: the model has no constant of that name. */
struct tare_number_difference {
    const char *name;
    double values[2];
    const char *integers[2]; /* the digits of a 64-bit integer, for which a double may be too coarse; NULL: none */
};

struct tare_model_diff {
    struct tare_arena arena;
    const char *names[2]; /* borrowed */
    int64_t weight_bytes[2], nodes[2], functions[2];
    struct tare_op_difference *ops; /* all, by name */
    size_t n_ops;
    struct tare_signature_difference *signatures; /* those that differ */
    size_t n_signatures;
    struct tare_weight_difference *weights; /* all: by change, then bytes, then name */
    size_t n_weights;
    struct tare_layer_difference *layers; /* all, in the order of the first model */
    size_t n_layers;
    struct tare_number_difference *numbers; /* those that differ: constants of both models first, then by name */
    size_t n_numbers;
    size_t text_width; /* characters per line that tables should fit into; 0: unlimited. Set by the caller */
};

tare_status tare_model_diff_make(struct tare_model_diff *out, const struct tare_graph_model *first,
                                 const char *first_name, const struct tare_graph_model *second,
                                 const char *second_name) TARE_WARN_UNUSED;
/* Sets `layers`; part of tare_model_diff_make. */
tare_status tare_model_diff_layers(struct tare_model_diff *out, const struct tare_graph_model *first,
                                   const struct tare_graph_model *second) TARE_WARN_UNUSED;
void tare_model_diff_free(struct tare_model_diff *diff);
/* True when no difference was found. */
bool tare_model_diff_is_empty(const struct tare_model_diff *diff);
/* Tables of the differences, with at most `most` weights and numbers (0: all). */
void tare_model_diff_text(struct tare_strbuf *out, const struct tare_model_diff *diff, size_t most);
/* The same as an HTML page, with at most a few thousand weights and numbers. */
void tare_model_diff_html(struct tare_strbuf *out, const struct tare_model_diff *diff);
tare_status tare_model_diff_json(struct tare_strbuf *out, const struct tare_model_diff *diff) TARE_WARN_UNUSED;

#endif
