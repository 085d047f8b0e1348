/* Quantization of a whole model. */
#ifndef TARE_QUANT_REWRITE_H
#define TARE_QUANT_REWRITE_H

#include "graph/model.h"
#include "quant/method.h"
#include "calib/algorithm.h"
#include "quant/pass.h"

struct tare_statistics;   /* calib/statistics.h */
struct tare_hessian;      /* calib/hessian.h */
struct tare_kept_samples; /* calib/calibration.h */
struct tare_hessian_form;

struct tare_quant_setting;

/* The source of activation ranges: a calibration, or a test. Called before anything is rewritten. */
struct tare_quant_ranges {
    /* The range of a tensor from the setting's algorithm, for the integer type of the setting's activations. *found is
     * false if the tensor was not observed, or had no finite value. */
    tare_status (*find)(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high);
    void *arg;
    /* The statistics of a tensor, for accuracy passes; NULL where it was not observed. The function may be NULL. */
    const struct tare_statistics *(*statistics)(void *arg, struct tare_edge edge);
    /* The Hessian of a layer's input (calib/hessian.h), for accuracy passes; NULL where there is none. The function may
     * be NULL. */
    const struct tare_hessian *(*hessian)(void *arg, struct tare_edge edge, const struct tare_hessian_form *form);
    /* Samples to run the model with, for accuracy passes; NULL: none. */
    const struct tare_kept_samples *samples;
};

enum tare_quant_granularity { TARE_PER_CHANNEL, TARE_PER_TENSOR, TARE_PER_BLOCK };
/* Where none is chosen: per channel; per tensor in UNIFORM_QUANTIZED, as in TensorFlow, whose compiler does not support
 * more scales in products of matrices, biases and activations. */
enum tare_quant_granularity tare_quant_default_granularity(enum tare_quant_op_set op_set);

/* How one layer is quantized. */
struct tare_quant_setting {
    const struct tare_quant_method *method; /* NULL: it stays float */
    int bits;                               /* of weights: 8 (also 0) or 4 */
    enum tare_quant_granularity granularity;
    int64_t block;       /* rows that share a scale, with TARE_PER_BLOCK: 32, 64, 128 or 256 */
    bool full_range;     /* weights may use -128 (-8) */
    bool symmetric;      /* activations: symmetric ranges */
    int activation_bits; /* 8 (also 0, but see `widens`) or 16, which is symmetric in [-32767, 32767] whatever
                            `symmetric` is */
    struct tare_algorithm_choice algorithm; /* chooses activation ranges; row NULL: min_max */
};

struct tare_quant_recipe;       /* quant/recipe.h */
struct tare_quant_work;         /* quant/layer.h */
struct tare_quant_weight_store; /* quant/weight_store.h */

/* How one model is quantized. Texts such as "static" or "percentile:p=99.9" are printed from it, never stored with it.
 */
struct tare_quant_options {
    struct tare_quant_setting setting; /* of layers that no rule names */
    bool keep_variables;               /* weights stay variables of the checkpoint */
    enum tare_quant_op_set op_set;
    bool depthwise;             /* also quantize DepthwiseConv2dNative, which does not speed it up on a TPU */
    bool two_inputs;            /* quantize products of two activations */
    bool integer_adds;          /* static: sums of two activations between static layers are sums of integers */
    int64_t min_elements;       /* smallest weight worth quantizing; 0: the method's own */
    int64_t min_table_elements; /* the same for tables only; 0: min_elements */
    const struct tare_quant_recipe *recipe;      /* rules for individual layers; NULL: none */
    const struct tare_quant_pass *const *passes; /* in order of execution, terminated by NULL; NULL: none */
    /* Called with each weight that has been processed and is no longer needed; NULL: no callback. */
    void (*forget)(const struct tare_tensor *weight);
    /* Only layers for which it is true are quantized; NULL: all. */
    bool (*accepts)(void *arg, const struct tare_graph *graph, const struct tare_node *op);
    void *accepts_arg;
    /* Changes the settings of a layer after the recipe; NULL: not called. */
    void (*adjust)(void *arg, const struct tare_graph *graph, const struct tare_node *op,
                   struct tare_quant_setting *setting);
    void *adjust_arg;
    bool
        widens; /* activation_bits 0 is 16 for static layers of the op set XLA whose output int8 would make too noisy */
    /* Of the pass reconstruction. */
    double reconstruction_seconds;           /* blocks that are not done by then keep their integers; 0: no limit */
    int threads;                             /* 0: one per processor; the result does not depend on it */
    bool quiet;                              /* print no progress */
    struct tare_quant_weight_store *weights; /* integers of earlier quantizations of the same constants; NULL: none */
    bool warns; /* add warnings about ranges and weights to the report; takes some milliseconds a layer */
};

enum { TARE_OUTCOME_SCALES = 8 };

/* Result for one weighted op, for reports. */
struct tare_quant_outcome {
    const char *function, *node, *op;
    const char *refused;               /* why it stays float; NULL: quantized */
    const char *method;                /* NULL when refused */
    struct tare_quant_setting setting; /* that it was quantized by */
    int bits;                          /* of the weight */
    const char *input_node;            /* whose output `input_output` is the activation, before any rewrite */
    int input_output;
    struct tare_qparams input; /* of the activation; scale 0 if there is none or it is computed at run time */
    double weight_scales[TARE_OUTCOME_SCALES]; /* the first of them */
    int64_t n_weight_scales;                   /* all */
    double weight_scale_min, weight_scale_max;
    double
        channel_spread; /* ratio of the largest to the median magnitude of the weight's columns (channels); 1: equal */
    double weight_sqnr_db; /* of the dequantized weight against the original */
    bool weight_vanishes;  /* its integers are all 0, the original is not */
    int64_t weight_elements;
};

/* What the pass reconstruction did with a block: a part of a graph whose layers are rounded together. */
struct tare_quant_block_outcome {
    const char *function, *first, *last; /* graph, and names of the first and the last layer */
    size_t n_layers;
    const char *result; /* "block", "layers" or "unchanged": which integers were kept */
    const char *reason; /* why its layers were not rounded together; NULL: they were */
    /* Squared errors of its outputs on held-out samples, relative to the outputs, in dB: of the integers before the
     * pass, of those rounded layer by layer, and of those rounded together. NaN: not measured. */
    double before_db, layers_db, block_db;
};

struct tare_quant_report {
    struct tare_quant_outcome *outcomes; /* arena memory */
    size_t count;
    size_t quantized;
    const char **unused_rules; /* "recipe.txt:3": rules that matched no layer */
    size_t n_unused_rules;
    const char *
        *warnings; /* with options.warns: layers with avoidable loss and the option that helps; a slower model */
    size_t n_warnings;
    struct tare_quant_block_outcome *blocks; /* of the pass reconstruction, in order of execution */
    size_t n_blocks;
};

/* Adds a warning of at most 1,023 bytes. */
tare_status tare_quant_add_warning(struct tare_quant_report *report, struct tare_arena *arena, const char *format, ...)
    TARE_PRINTF(3, 4);

/* Rejects incompatible settings: TARE_INVALID_ARGUMENT, with TensorFlow's message where it has one. */
tare_status tare_quant_check_setting(const struct tare_quant_setting *setting);

/* True if a method in the options requires activation ranges. */
bool tare_quant_needs_ranges(const struct tare_quant_options *options);

/* Quantizes every layer of every graph of the model (function bodies that loops, branches or several callers share
 * included) according to the options. `ranges` may be NULL if no method in use needs them. */
tare_status tare_quantize(struct tare_quant_report *report, struct tare_arena *arena, struct tare_graph_model *model,
                          const struct tare_quant_ranges *ranges, const struct tare_quant_options *options);

/* The edges that calibration must observe for any method and options: inputs and outputs of all quantizable layers. */
struct tare_edge_list {
    struct tare_edge *edges;
    size_t count;
};
tare_status tare_quant_observed_edges(struct tare_edge_list *out, struct tare_arena *arena,
                                      const struct tare_graph_model *model);

#endif
