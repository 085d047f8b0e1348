/* Quantization methods: one file in quant/methods/ and one row each. The driver (quant/quantize.c) finds the layers,
 * chooses the settings of each and calls the row of its method; it does not refer to methods by name. */
#ifndef TARE_QUANT_METHOD_H
#define TARE_QUANT_METHOD_H

#include "graph/graph.h"

#include <stdbool.h>
#include <stdint.h>

struct tare_quant_layer; /* quant/layer.h */
struct tare_qparams;     /* calib/qparams.h */
struct tare_quant_work;

/* What a layer does. Sets of kinds are bits 1 << kind. */
enum tare_quant_kind {
    TARE_KIND_CONV2D,
    TARE_KIND_DEPTHWISE,
    TARE_KIND_CONV3D,
    TARE_KIND_MATMUL,
    TARE_KIND_BATCH_MATMUL,
    TARE_KIND_EINSUM,
    TARE_KIND_GATHER,
    TARE_KIND_XLA_DOT,  /* any dimension numbers */
    TARE_KIND_XLA_CONV, /* any order of dimensions, one to three spatial ones */
    TARE_KIND_TRANSPOSED_CONV,
    TARE_KINDS,
};

/* Elements below which the scales and additional ops of a weight cost more than the bytes that it saves. */
enum { TARE_LEAST_WEIGHT = 1024 };

struct tare_quant_method {
    const char *name;          /* "static": as options and reports have it */
    const char *help;          /* one line */
    bool needs_ranges;         /* of activations, from calibration */
    bool integer_inputs;       /* activations are quantized as well */
    bool takes_bias;           /* the bias and activation after a layer are part of it */
    bool takes_blocks;         /* weights may have one scale per block of rows */
    bool takes_two_inputs;     /* products of two activations */
    bool takes_wide;           /* activations of 16 bits */
    unsigned kinds;            /* of layers that it quantizes by default */
    unsigned kinds_on_request; /* and of layers that it quantizes if a rule names it */
    int64_t min_elements;      /* default minimum size of a weight to quantize; tables always have one */
    /* *reason: why the method cannot quantize the layer; NULL if it can. Called before anything is rewritten. */
    tare_status (*plan)(const char **reason, const struct tare_quant_work *work, struct tare_quant_layer *layer);
    /* Emits the integers of an activation that no op produces as integers; NULL: tare_emit_quantize. */
    tare_status (*quantize)(struct tare_edge *out, struct tare_quant_work *work, struct tare_graph *graph,
                            struct tare_edge real, const char *prefix, const struct tare_qparams *params);
    /* Replaces the layer by its quantized form. */
    tare_status (*rewrite)(struct tare_quant_work *work, struct tare_quant_layer *layer);
};

extern const struct tare_quant_method tare_method_static, tare_method_dynamic, tare_method_weight_only;
/* The forms of static and dynamic range in the op set UNIFORM_QUANTIZED. */
extern const struct tare_quant_method tare_method_uniform_static, tare_method_uniform_dynamic;
/* With numbers of eight-bit floats. */
extern const struct tare_quant_method tare_method_float8_static, tare_method_float8_dynamic;
/* And in the op set TF. */
extern const struct tare_quant_method tare_method_tf_static, tare_method_tf_dynamic;
/* Every method, terminated by NULL. */
extern const struct tare_quant_method *const tare_quant_methods[];

/* The ops of the quantized graph. */
enum tare_quant_op_set { TARE_OP_SET_XLA, TARE_OP_SET_UNIFORM_QUANTIZED, TARE_OP_SET_TF };
/* True for MatMul, BatchMatMul, Einsum and XlaDotV2, products of arrays without a window. */
bool tare_quant_multiplies_arrays(enum tare_quant_kind kind);

extern const char *const tare_quant_op_set_names[]; /* by value; ends with NULL */
/* The method's form in an op set, with codes of a format (enum tare_number_format); NULL when it has none. */
const struct tare_quant_method *tare_quant_method_in(const struct tare_quant_method *method,
                                                     enum tare_quant_op_set op_set, int format);
/* By name; NULL when there is none. */
const struct tare_quant_method *tare_quant_method_find(const char *name);

#endif
