/* Folds batch normalisation, and multiplications and additions by constants, into the weights and bias of the preceding
 * op.
 *
 * Every op that computes y = x * m[c] + b[c] for output channel c is a "channel transform". After a weighted op (or its
 * BiasAdd) without other users it is removed: weights are multiplied by m, and bias' = bias * m + b. The products are
 * computed in double and rounded to float once (rule fold-in-double in docs/numerics.md). */
#include "convert/pass.h"
#include "base/alloc.h"
#include "graph/graphs.h"
#include "graph/op.h"

#include <math.h>
#include <string.h>

struct transform {
    struct tare_node *node; /* computes y */
    struct tare_edge x;
    int64_t channels;   /* 0: one value for every channel (a scalar) */
    double *multiplier; /* NULL: 1 */
    double *addend;     /* NULL: 0 */
    int rank;           /* of the constant: it must not make the output's rank higher */
    bool any_layout;    /* follows data_format; else acts on the last axis */
    tare_status status; /* TARE_NO_MEMORY: whether the node is one is not known */
};

/* A float constant that acts on the last axis only: [C], [1, …, 1, C] or a scalar. */
static const struct tare_tensor *channel_constant(struct tare_edge edge, int64_t *channels) {
    const struct tare_tensor *value = tare_edge_constant(edge);
    if (!value || value->dtype != TARE_DT_FLOAT || !value->elements) return NULL;
    for (int i = 0; i + 1 < value->shape.rank; i++)
        if (value->shape.dims[i] != 1) return NULL;
    *channels = value->shape.rank ? value->shape.dims[value->shape.rank - 1] : 0;
    return value;
}

static double *as_doubles(struct tare_arena *arena, const struct tare_tensor *value, double sign) {
    double *out = TARE_NEW_ARRAY(arena, double, (size_t)value->elements);
    for (int64_t i = 0; out && i < value->elements; i++)
        out[i] = sign * tare_tensor_get_f64(value, i);
    return out;
}

static bool other_outputs_used(const struct tare_node *node) {
    for (size_t i = 1; i < node->n_outputs; i++)
        if (tare_graph_count_uses(node->graph, (struct tare_edge){ (struct tare_node *)node, (int)i }, NULL))
            return true;
    return false;
}

/* y = (x - mean) * scale * rsqrt(variance + epsilon) + offset */
static bool match_batch_norm(struct transform *t, struct tare_arena *arena, struct tare_node *node) {
    const struct tare_tensor *parts[4];
    double epsilon = tare_node_float(node, "epsilon", 1e-4f);
    if (strncmp(node->op, "FusedBatchNorm", 14) != 0 || node->n_inputs < 5) return false;
    if (tare_node_bool(node, "is_training", true) || tare_node_type(node, "T", TARE_DT_FLOAT) != TARE_DT_FLOAT ||
        other_outputs_used(node))
        return false;
    for (int i = 0; i < 4; i++) {
        parts[i] = tare_edge_constant(node->inputs[i + 1]);
        if (!parts[i] || parts[i]->dtype != TARE_DT_FLOAT || parts[i]->shape.rank != 1 ||
            parts[i]->elements != parts[0]->elements)
            return false;
    }
    t->channels = parts[0]->elements;
    t->multiplier = TARE_NEW_ARRAY(arena, double, (size_t)t->channels);
    t->addend = TARE_NEW_ARRAY(arena, double, (size_t)t->channels);
    if (!t->multiplier || !t->addend) {
        t->status = TARE_NO_MEMORY;
        return false;
    }
    for (int64_t c = 0; c < t->channels; c++) {
        double m = tare_tensor_get_f64(parts[0], c) / sqrt(tare_tensor_get_f64(parts[3], c) + epsilon);
        t->multiplier[c] = m;
        t->addend[c] = tare_tensor_get_f64(parts[1], c) - tare_tensor_get_f64(parts[2], c) * m;
    }
    t->x = node->inputs[0];
    t->any_layout = true;
    return true;
}

static bool match_arithmetic(struct transform *t, struct tare_arena *arena, struct tare_node *node) {
    bool add = tare_node_is(node, "AddV2") || tare_node_is(node, "Add"), mul = tare_node_is(node, "Mul");
    bool sub = tare_node_is(node, "Sub"), bias = tare_node_is(node, "BiasAdd");
    const struct tare_tensor *value;
    if ((!add && !mul && !sub && !bias) || node->n_inputs != 2) return false;
    t->x = node->inputs[0];
    value = channel_constant(node->inputs[1], &t->channels);
    if (!value && (add || mul)) {
        t->x = node->inputs[1];
        value = channel_constant(node->inputs[0], &t->channels);
    }
    if (!value) return false;
    t->any_layout = bias;
    t->rank = value->shape.rank;
    double **const factors = mul ? &t->multiplier : &t->addend;
    *factors = as_doubles(arena, value, sub ? -1 : 1);
    if (!*factors) t->status = TARE_NO_MEMORY;
    return *factors;
}

/* The op whose output channels are transformed. */
struct target {
    struct tare_node *weighted;
    struct tare_node *bias;   /* BiasAdd between; NULL: none */
    struct tare_node *behind; /* BatchToSpaceND after both, of a dilated convolution: it moves channels as they are;
                                 NULL: none */
    const struct tare_tensor *weights;
    const struct tare_tensor *bias_value;
    int64_t channels;
    int64_t inner; /* weight element i belongs to channel (i / inner) % channels */
};

static bool used_once(struct tare_edge edge) {
    return tare_graph_count_uses(edge.node->graph, edge, NULL) == 1;
}

static bool describe_weights(struct target *target) {
    const struct tare_node *op = target->weighted;
    const struct tare_shape *shape;
    target->weights = op->n_inputs > 1 ? tare_edge_constant(op->inputs[1]) : NULL;
    if (!target->weights || target->weights->dtype != TARE_DT_FLOAT) return false;
    shape = &target->weights->shape;
    target->inner = 1;
    if ((tare_node_is(op, "Conv2D") && shape->rank == 4) || (tare_node_is(op, "Conv3D") && shape->rank == 5)) {
        target->channels = shape->dims[shape->rank - 1];
    } else if (tare_node_is(op, "Conv2DBackpropInput") && shape->rank == 4) { /* [height, width, output, input] */
        target->channels = shape->dims[2];
        target->inner = shape->dims[3];
    } else if (tare_node_is(op, "DepthwiseConv2dNative") && shape->rank == 4) {
        target->channels = shape->dims[2] * shape->dims[3];
    } else if (tare_node_is(op, "MatMul") && shape->rank == 2) {
        bool transposed = tare_node_bool(op, "transpose_b", false);
        target->channels = shape->dims[transposed ? 0 : 1];
        if (transposed) target->inner = shape->dims[1];
    } else {
        return false;
    }
    return target->channels > 0;
}

/* Whether BatchToSpaceND leaves the last axis of an image as it is. */
static bool keeps_channels(const struct tare_node *node) {
    const struct tare_tensor *blocks = node->n_inputs == 3 ? tare_edge_constant(node->inputs[1]) : NULL;
    return tare_node_is(node, "BatchToSpaceND") && blocks && blocks->elements <= 2 && node->inputs[0].index == 0 &&
           used_once(node->inputs[0]);
}

static bool find_target(struct target *target, const struct transform *t) {
    struct tare_node *node = t->x.node;
    memset(target, 0, sizeof *target);
    if (!node || t->x.index != 0 || !used_once(t->x)) return false;
    if (keeps_channels(node)) {
        target->behind = node;
        node = node->inputs[0].node;
    }
    if (tare_node_is(node, "BiasAdd") && node != t->node) {
        target->bias = node;
        target->bias_value = tare_edge_constant(node->inputs[1]);
        if (!target->bias_value || target->bias_value->dtype != TARE_DT_FLOAT || !node->inputs[0].node ||
            !used_once(node->inputs[0]))
            return false;
        node = node->inputs[0].node;
    }
    target->weighted = node;
    if (!describe_weights(target)) return false;
    if (target->behind &&
        (target->weights->shape.rank != 4 || strncmp(tare_node_string(node, "data_format", "NHWC"), "NC", 2) == 0 ||
         strncmp(tare_node_string(t->node, "data_format", "NHWC"), "NC", 2) == 0))
        return false;
    /* Of groups, the filter has the outputs of one: several factors or terms tell that there is one group. */
    if (tare_node_is(node, "Conv2DBackpropInput") && t->channels < 2) return false;
    if ((t->channels && t->channels != target->channels) || t->rank > target->weights->shape.rank) return false;
    if (target->bias_value && target->bias_value->elements != target->channels) return false;
    return t->any_layout || strncmp(tare_node_string(node, "data_format", "NHWC"), "NC", 2) != 0;
}

static double at(const double *values, int64_t channels, int64_t c, double fallback) {
    return values ? values[channels ? c : 0] : fallback;
}

static tare_status multiply_weights(const struct target *target, const struct transform *t) {
    struct tare_node *op = target->weighted, *constant;
    struct tare_tensor scaled;
    TARE_TRY(tare_tensor_new(&scaled, TARE_DT_FLOAT, &target->weights->shape));
    for (int64_t i = 0; i < scaled.elements; i++) {
        int64_t c = (i / target->inner) % target->channels;
        TARE_DATA(float, &scaled)
        [i] = (float)(tare_tensor_get_f64(target->weights, i) * at(t->multiplier, t->channels, c, 1));
    }
    constant = tare_graph_add_const(op->graph, op->inputs[1].node->name, &scaled);
    tare_tensor_reset(&scaled);
    if (!constant) return TARE_NO_MEMORY;
    tare_node_set_input(op, 1, tare_node_output0(constant));
    return TARE_OK;
}

static tare_status make_bias_node(struct tare_node **out, const struct target *target) {
    struct tare_node *op = target->weighted;
    const char *format = tare_node_string(op, "data_format", "NHWC"), *name;
    struct tare_node *bias;
    name = tare_arena_printf(&op->graph->model->arena, "%s/bias", op->name);
    bias = name ? tare_graph_add(op->graph, "BiasAdd", name) : NULL;
    if (!bias) return TARE_NO_MEMORY;
    TARE_TRY(tare_node_set_type(bias, "T", TARE_DT_FLOAT));
    TARE_TRY(tare_node_set_string(bias, "data_format", format[0] == 'N' && format[1] == 'C' ? "NCHW" : "NHWC", 4));
    TARE_TRY(tare_node_add_input(bias, (struct tare_edge){ op, 0 }));
    *out = bias;
    return TARE_OK;
}

/* bias' = bias * m + b, on the existing BiasAdd or a new one. */
static tare_status write_bias(struct tare_node **out, const struct target *target, const struct transform *t) {
    struct tare_graph *graph = target->weighted->graph;
    struct tare_shape shape = { .rank = 1, .dims = { target->channels } };
    struct tare_node *constant, *bias = target->bias;
    const char *name = tare_arena_printf(&graph->model->arena, "%s/bias/value", target->weighted->name);
    struct tare_tensor value;
    if (!name) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t c = 0; c < target->channels; c++) {
        double old = target->bias_value ? tare_tensor_get_f64(target->bias_value, c) : 0;
        TARE_DATA(float, &value)
        [c] = (float)(old * at(t->multiplier, t->channels, c, 1) + at(t->addend, t->channels, c, 0));
    }
    constant = tare_graph_add_const(graph, name, &value);
    tare_tensor_reset(&value);
    if (!constant) return TARE_NO_MEMORY;
    if (bias) {
        tare_node_set_input(bias, 1, tare_node_output0(constant));
    } else {
        TARE_TRY(make_bias_node(&bias, target));
        TARE_TRY(tare_node_add_input(bias, (struct tare_edge){ constant, 0 }));
        TARE_TRY(tare_node_resolve(bias));
    }
    *out = bias;
    return TARE_OK;
}

static tare_status apply(const struct target *target, const struct transform *t) {
    struct tare_graph *graph = t->node->graph;
    struct tare_edge result = { target->weighted, 0 };
    if (t->multiplier) TARE_TRY(multiply_weights(target, t));
    if (t->addend || target->bias) {
        struct tare_node *bias;
        TARE_TRY(write_bias(&bias, target, t));
        result.node = bias;
        if (t->multiplier) TARE_TRY(tare_model_add_stand_in(graph->model, target->weighted, ""));
    }
    if (target->behind) {
        TARE_TRY(tare_model_add_stand_in(graph->model, result.node, ""));
        tare_node_set_input(target->behind, 0, result);
        result.node = target->behind;
    }
    TARE_TRY(tare_model_add_stand_in(graph->model, result.node, t->node->name));
    /* A bias that was just added after the op also uses it: it must not become its own input. */
    tare_graph_replace_uses(graph, (struct tare_edge){ t->node, 0 }, result, NULL);
    tare_node_remove(t->node);
    return TARE_OK;
}

static tare_status fold_node(struct tare_node *node, size_t *changes) {
    struct tare_arena arena = { 0 };
    struct transform t = { .node = node };
    struct target target;
    bool matched = match_batch_norm(&t, &arena, node) || match_arithmetic(&t, &arena, node);
    tare_status status = t.status;
    /* a BiasAdd directly after the op is the canonical form */
    if (status == TARE_OK && matched && find_target(&target, &t) &&
        !(tare_node_is(node, "BiasAdd") && !target.bias && !target.behind)) {
        status = apply(&target, &t);
        ++*changes;
    }
    tare_arena_free(&arena);
    return status;
}

static tare_status fold_graph(struct tare_graph *graph, size_t *changes) {
    size_t before;
    do { /* a multiplication may follow a normalisation that was just removed */
        before = *changes;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead) TARE_TRY(fold_node(graph->nodes[i], changes));
        tare_graph_sweep(graph);
    } while (*changes != before);
    return TARE_OK;
}

static tare_status run(struct tare_graph_model *model, size_t *changes) {
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(fold_graph(tare_model_graph(model, i), changes));
    return TARE_OK;
}

const struct tare_pass tare_pass_fold_batch_norm = {
    .name = "fold_batch_norm",
    .help = "fold batch normalisation and constant factors and terms into weights and biases",
    .run = run,
};
