/* A layer: one quantizable op with the bias and activation function after it, the decisions made for it, and its
 * weights from float to integers. The driver creates layers, passes may change them, methods rewrite them. */
#ifndef TARE_QUANT_LAYER_H
#define TARE_QUANT_LAYER_H

#include "graph/bindings.h"
#include "interpreter/inference/model_shapes.h"
#include "quant/product.h"
#include "quant/quantize.h"
#include "quant/selection/selection.h"
#include "quant/weights.h"

enum tare_quant_activation { TARE_ACTIVATION_NONE, TARE_ACTIVATION_RELU, TARE_ACTIVATION_RELU6 };

enum { TARE_MOST_PARTS = 4 };

struct tare_quant_layer {
    /* The graph. The three edges are those of the graph before any rewrite: they identify the statistics. */
    struct tare_node *op;
    enum tare_quant_kind kind;
    size_t left, right;      /* inputs of op: activation (of a table: indices), weight or second activation */
    struct tare_node *bias;  /* BiasAdd after it; NULL: none */
    struct tare_node *clamp; /* Relu or Relu6 after that; NULL: none */
    enum tare_quant_activation activation;
    const struct tare_tensor *weight;       /* constant at `right`; NULL: two activations */
    struct tare_quant_selection *selection; /* `right` is chosen from `weight`, a stack; NULL: it is `weight` itself */
    struct tare_variable *variable;         /* that holds it; NULL: a constant of the graph */
    struct tare_node *read;                 /* of the variable; ops that keep the values may follow it */
    struct tare_tensor *held;               /* its value before anything was rewritten: what `weight` points to */
    bool is_stack;                          /* a table whose entries are weights of other layers: no layer */
    const char *no_weight;                  /* why an operand that constants determine is no weight, or why a table is
                                               none; NULL: none is */
    uint64_t weight_hash;                   /* of its values; 0: not computed */
    double weight_squares;                  /* sum of their squares; 0: not computed */
    const struct tare_tensor *bias_value;   /* one element a column */
    struct tare_edge input, second, output;
    struct tare_edge observed; /* whose statistics are the activation's: `input`, until a pass scales that */
    struct tare_quant_product product;

    /* Decisions. */
    struct tare_quant_setting setting;
    const char *refused;                                          /* why it stays float; NULL: it is quantized */
    struct tare_qparams left_params, right_params, output_params; /* of activations, where the method has them */
    bool has_output_params;

    /* Rows of the weight that belong to each operand of the ConcatV2 that the activation is; n_parts 0: it is not one,
     * or the method quantizes it as a whole. */
    int64_t part_rows[TARE_MOST_PARTS];
    size_t n_parts;

    /* What passes did to the activation: channel c of its last axis is the observed one divided by input_scale[c], and
     * `real` compensates for it. NULL: unchanged. */
    double *input_scale;
    int64_t input_channels; /* how many */
    int64_t input_entries;  /* of `loop`, each with scales of its own; 0 or 1: one for all */

    /* The weight: zeroed until a pass or the driver computes it. Methods use what a pass stores here. */
    struct tare_tensor real; /* float32 whatever the weight is, shape product.arranged; default: the
                                constant, arranged */
    double *bias_real;       /* product.columns values; default: bias_value */
    double *shift;           /* values of all channels that methods which do not rewrite the bias, and layers of loops,
                                add to the result; NULL: none */
    struct tare_quantized_weight quantized; /* default: `real` rounded to nearest */
    bool scales_for_bias;                   /* a large bias has increased scales of `quantized` */
    bool changed;                           /* a pass changed `real` */
    bool own_integers;                      /* a pass computed them: shared only with layers whose `twin` is this one */
    const struct tare_quant_layer *twin;    /* an earlier layer that has the same integers from a pass; NULL: none */
    struct tare_edge integers;              /* `quantized` in the graph, once it is emitted */
    struct tare_quant_layer *tied; /* the look-up of the table that the product multiplies by, or the other way round
                                      (quant/tied_tables.h); NULL: none */
    struct tare_edge block_scales; /* of a table, or of the product tied to it, in the graph: [entries, blocks] */
    bool unarranged;               /* `integers` of a product have the axes of the weight, not of product.arranged */

    struct tare_edge replaced; /* the real output of the rewritten layer; node NULL: there is none */
    /* What chooses the layer's entry by the number of an iteration: its own selection, or that of another layer of the
     * loop's body. NULL: none does. */
    struct tare_quant_selection *loop;
    struct tare_quant_entries *entries;         /* ranges by iteration, in place of the parameters above; NULL: none */
    const struct tare_quant_layer *next_reader; /* the next layer with the same variable */
    const struct tare_quant_layer *next_user;   /* the next layer with the same observed activation */
    struct tare_quant_outcome *outcome;
};

/* The integer form of an activation, shared by all of its uses. */
struct tare_quant_shared {
    const struct tare_quant_entries *entries; /* of a layer that made them with ranges by iteration, without params */
    const struct tare_quant_method *method;
    struct tare_edge real, integer, scale, zero_point; /* the last two: for scales computed at run time */
    int32_t axes[TARE_MAX_RANK];                       /* that each of these scales spans */
    int n_axes;
    const struct tare_qparams *params;
    struct tare_quant_shared *next; /* of the same real edge */
};

struct tare_quant_layer_index;
struct tare_quant_fakes;
struct tare_quant_range_cache;

struct tare_quant_work {
    struct tare_arena *arena;
    struct tare_graph_model *model;
    const struct tare_quant_ranges *ranges;
    const struct tare_quant_plan *plan;
    const struct tare_model_shapes *shapes; /* of the model before any rewrite */
    struct tare_quant_report *report;
    size_t changes;                  /* of the present accuracy pass */
    const char *idle;                /* why it can change nothing; NULL: as its row has it */
    struct tare_quant_layer *layers; /* of all graphs, each graph's in its order of execution */
    size_t n_layers;
    struct tare_quant_fakes *fakes;              /* quant/fake_quant.h */
    struct tare_quant_range_cache *cache;        /* quant/range_cache.h */
    struct tare_quant_layer_index *index;        /* quant/layer_index.h */
    struct tare_graph *quantize_function;        /* of the op set TF, once it is created */
    struct tare_quant_suffix *function_suffixes; /* of the op set TF, quant/methods/tf.c */
};

struct tare_statistics; /* calib/statistics.h */

struct tare_quant_layer_list {
    struct tare_quant_layer *layers; /* arena memory */
    size_t count, capacity;
};

/* Adds every layer of a graph, in execution order, with its part of the graph; `refused` is set if no method can
 * quantize it. Layers without constant weight are added if both operands are float. */
tare_status tare_quant_find_layers(struct tare_quant_layer_list *list, struct tare_arena *arena,
                                   const struct tare_graph *graph, const struct tare_model_shapes *shapes,
                                   const struct tare_bindings *bindings);
/* Calls fn for each layer that is quantized and has a weight, in order; a failure names the layer. */
tare_status tare_quant_each_weight(struct tare_quant_work *work,
                                   tare_status (*fn)(struct tare_quant_work *work, struct tare_quant_layer *layer));
/* Sets `loop` of layers of one graph. */
tare_status tare_quant_find_loop(struct tare_arena *arena, struct tare_quant_layer *layers,
                                 size_t count) TARE_WARN_UNUSED;
/* Sets `no_weight` of the graph's products whose weight comes from a stack by ops that are not followed, and of the
 * tables that are such stacks; the graph's layers are those from `first` on. */
tare_status tare_quant_find_unfollowed(struct tare_quant_layer_list *list, size_t first, struct tare_arena *arena,
                                       const struct tare_graph *graph, const struct tare_model_shapes *shapes,
                                       const struct tare_bindings *bindings) TARE_WARN_UNUSED;
/* The shape that the product takes its weight in: product.arranged; of a stack, that of an entry. */
const struct tare_shape *tare_quant_operand(const struct tare_quant_layer *layer);
/* Frees what the layers own. */
void tare_quant_release_layers(struct tare_quant_layer *layers, size_t count);

/* Compute, unless it exists: `layer->real`; with it the scales of `layer->quantized`; all of `layer->quantized`. */
tare_status tare_quant_make_real(struct tare_quant_layer *layer);
tare_status tare_quant_make_scales(struct tare_arena *arena, struct tare_quant_layer *layer);
tare_status tare_quant_make_integers(struct tare_arena *arena, struct tare_quant_layer *layer);
/* Whether the layer's bias fits into the accumulators with these scales of its weight. */
bool tare_quant_bias_has_room(const struct tare_quant_layer *layer, const struct tare_quantized_weight *weight);
/* `real` as floats of the layer's own, and `bias_real` where there is a bias: to be changed. */
tare_status tare_quant_own_real(struct tare_quant_layer *layer);
tare_status tare_quant_own_bias(struct tare_arena *arena, struct tare_quant_layer *layer);
/* True if both layers are quantized and have the same integers: they read the same variable, or bit-equal constants
 * with the same settings and arrangement, without a bias and unchanged by passes. */
bool tare_quant_same_integers(const struct tare_quant_layer *a, const struct tare_quant_layer *b);
/* Another layer's weight is in the same variable: both must keep the same integers. */
bool tare_quant_shares_variable(const struct tare_quant_work *work, const struct tare_quant_layer *layer);

/* Whether the activation's last axis has `channels` channels that each meet rows (of a depthwise filter: columns) of
 * their own in the weight; and the channel that the weight at a row and column multiplies. */
bool tare_quant_has_input_channels(const struct tare_quant_layer *layer, int64_t channels);
int64_t tare_quant_input_channel(const struct tare_quant_layer *layer, int64_t channels, int64_t row, int64_t column);
/* Records that the activation's channels are also divided by `factors`; of each entry of its loop by its own, if there
 * are several entries and the input was not scaled before. */
tare_status tare_quant_scale_input(struct tare_arena *arena, struct tare_quant_layer *layer, const double *factors,
                                   int64_t entries, int64_t channels);
/* The scales of the input's channels for an entry of its loop; NULL: it is not scaled. */
const double *tare_quant_input_scale(const struct tare_quant_layer *layer, int64_t entry);
/* The statistics of the activation; NULL if it was not observed, or not per channel. */
const struct tare_statistics *tare_quant_input_statistics(const struct tare_quant_work *work,
                                                          const struct tare_quant_layer *layer);
/* Parameters of an activation after channel c is divided by scale[c]: each end of the range that the algorithm chose
 * for the observed activation changes in proportion to the extreme of the channels. Not found: the range is not known,
 * and *out stays as it is. Of an entry of its counter, or (below 0) of all. */
tare_status tare_quant_scaled_params(bool *found, struct tare_qparams *out, const struct tare_quant_work *work,
                                     struct tare_edge observed, int64_t entry, const struct tare_statistics *statistics,
                                     const double *scale, const struct tare_quant_setting *setting) TARE_WARN_UNUSED;
/* The parameters of an activation: from its FakeQuant, or else from the setting's algorithm. Not found: it has no
 * range, or not a finite one. */
tare_status tare_quant_find_params(bool *found, struct tare_qparams *out, const struct tare_quant_work *work,
                                   struct tare_edge edge, const struct tare_quant_setting *setting) TARE_WARN_UNUSED;

/* The parameters of the layer's activation as passes have scaled it. Not found: as above. */
tare_status tare_quant_input_params(bool *found, struct tare_qparams *out, const struct tare_quant_work *work,
                                    const struct tare_quant_layer *layer) TARE_WARN_UNUSED;

/* Whether two layers are of one form, as repeated blocks have them: the same op and sizes, activations by the same op.
 */
bool tare_quant_has_form_of(const struct tare_quant_layer *a, const struct tare_quant_layer *b);
/* The parameters of the layer's activations, for methods that need ranges; *reason: why one is not known. */
tare_status tare_quant_find_activations(const char **reason, const struct tare_quant_work *work,
                                        struct tare_quant_layer *layer) TARE_WARN_UNUSED;

/* Why the sums of the layer's integer products may not fit int32; NULL if they always do. */
const char *tare_quant_check_sums(const struct tare_quant_layer *layer);

/* bias-int32: bias / scale, rounded half away from zero and saturated; scales per column or per tensor. NULL: no
 * memory. */
double tare_quant_bias_code(const struct tare_quant_layer *layer, const double *scales,
                            int64_t column); /* not saturated */
const int32_t *tare_quant_bias_integers(struct tare_arena *arena, const struct tare_quant_layer *layer,
                                        const double *scales);
/* Whether numbers of the dtype are quantized: float32, bfloat16 and half. Scales are float32 for all of them. */
bool tare_quant_takes_dtype(int dtype);
/* Whether the operands' dtypes let a node of a kind of layers be one: a table of integers, such as a shape, is none,
 * and XLA's products of integers are part of a model that is quantized already. */
bool tare_quant_takes_operands(const struct tare_node *node);
/* Whether a node is a product or a convolution, of a kind of layers. */
bool tare_quant_multiplies(const struct tare_node *node);
/* Ops between a variable's read and a layer that keep the weight's values and their order. */
bool tare_quant_keeps_numbers(const struct tare_node *node);
/* How the setting quantizes weights. */
struct tare_qscheme tare_quant_weight_scheme(const struct tare_quant_setting *setting);
struct tare_qscheme tare_quant_activation_scheme(const struct tare_quant_setting *setting);

#endif
