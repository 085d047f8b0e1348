/* Ops that keep the scale of their activation. */
#include "quant/same_scale.h"
#include "quant/emit.h"
#include "quant/fake_quant.h"
#include "quant/range_cache.h"
#include "quant/layer_index.h"
#include "base/tensor/number.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 64 }; /* consecutive same-scale ops; deeper chains stay float */

/* What an op does to codes. */
enum form {
    OTHER,
    MOVES,    /* the op itself, on integers */
    SPLITS,   /* the same with several outputs */
    FORWARDS, /* output i is input i */
    PADS,     /* Pad: zeros become zero points */
    CLAMPS,   /* Relu, Relu6 */
    LIMITS,   /* FakeQuant: the integers after it round as it does */
    ADDS,     /* AddV2 of two activations */
    AVERAGES, /* AvgPool: the mean of a layer's output codes */
};

static const struct {
    const char *op;
    enum form form;
    size_t first, behind; /* inputs that are activations */
    size_t last;          /* in place of `behind`: the last such input, counted from the end; 0: use `behind` */
} forms[] = {
    { "Identity", MOVES, 0, 1, 0 },
    { "StopGradient", MOVES, 0, 1, 0 },
    { "Reshape", MOVES, 0, 1, 0 },
    { "Squeeze", MOVES, 0, 1, 0 },
    { "ExpandDims", MOVES, 0, 1, 0 },
    { "Transpose", MOVES, 0, 1, 0 },
    { "Slice", MOVES, 0, 1, 0 },
    { "StridedSlice", MOVES, 0, 1, 0 },
    { "Tile", MOVES, 0, 1, 0 },
    { "BroadcastTo", MOVES, 0, 1, 0 },
    { "ReverseV2", MOVES, 0, 1, 0 },
    { "DepthToSpace", MOVES, 0, 1, 0 },
    { "SpaceToDepth", MOVES, 0, 1, 0 },
    { "BatchToSpaceND", MOVES, 0, 1, 0 },
    { "MirrorPad", MOVES, 0, 1, 0 },
    { "MaxPool", MOVES, 0, 1, 0 },
    { "Max", MOVES, 0, 1, 0 },
    { "Min", MOVES, 0, 1, 0 },
    { "Select", MOVES, 1, 3, 0 },
    { "SelectV2", MOVES, 1, 3, 0 },
    { "Concat", MOVES, 1, 0, 1 },
    { "ConcatV2", MOVES, 0, 0, 2 },
    { "Pack", MOVES, 0, 0, 1 },
    { "Split", SPLITS, 1, 2, 0 },
    { "SplitV", SPLITS, 0, 1, 0 },
    { "Unpack", SPLITS, 0, 1, 0 },
    { "IdentityN", FORWARDS, 0, 0, 1 },
    { "FakeQuantWithMinMaxVars", LIMITS, 0, 1, 0 },
    { "FakeQuantWithMinMaxArgs", LIMITS, 0, 1, 0 },
    { "Pad", PADS, 0, 1, 0 },
    { "PadV2", MOVES, 0, 0, 0 }, /* its constant, too: see is_activation_of */
    { "Relu", CLAMPS, 0, 1, 0 },
    { "Relu6", CLAMPS, 0, 1, 0 },
    { "AddV2", ADDS, 0, 2, 0 },
    { "Add", ADDS, 0, 2, 0 },
    { "AvgPool", AVERAGES, 0, 1, 0 },
};
enum { N_FORMS = sizeof forms / sizeof *forms };

/* Ops that read only the shape of an activation. */
static const char *const askers[] = { "Shape", "Rank", "Size" };

static bool asks(const struct tare_node *node) {
    for (size_t i = 0; i < sizeof askers / sizeof *askers; i++)
        if (strcmp(node->op, askers[i]) == 0) return true;
    return false;
}

static bool is_activation_of(const struct tare_node *node, size_t input) {
    if (strcmp(node->op, "PadV2") == 0) return input == 0 || input == 2;
    for (size_t i = 0; i < N_FORMS; i++)
        if (strcmp(node->op, forms[i].op) == 0)
            return input >= forms[i].first &&
                   input < (forms[i].last ? node->n_inputs + 1 - forms[i].last : forms[i].behind);
    return false;
}

/* The method whose layers read integer activations. */
static const struct tare_quant_method *integers_of(const struct tare_quant_work *work) {
    return tare_quant_method_in(&tare_method_static, work->plan->op_set, TARE_FORMAT_INT);
}

/* The parameters of an addend or of the operand of a mean, from its own range, by the setting of the layer that
 * computes it; NULL if it was not observed, and after a failure, which is in work->cache->status. They are as wide as
 * those of the `result` (NULL: not known yet): operands of 8 bits would limit the accuracy of a result of 16. Looked up
 * by the name that the edge had before its layer was rewritten. */
static const struct tare_qparams *own_params(const struct tare_quant_work *work, struct tare_edge edge,
                                             const struct tare_qparams *result) {
    const struct tare_quant_layer *replaced = tare_quant_layer_replaced_by(work, edge);
    const struct tare_quant_layer *layer = replaced ? replaced : tare_quant_layer_with_output(work, edge);
    struct tare_quant_setting setting = layer && !layer->refused ? layer->setting : work->plan->setting;
    struct tare_qparams *params = TARE_NEW(work->arena, struct tare_qparams);
    tare_status status = TARE_NO_MEMORY;
    bool found = false;
    if (replaced) edge = replaced->output;
    if (result) setting.activation_bits = result->qmax > UINT8_MAX ? 16 : 8;
    if (params) status = tare_quant_find_params(&found, params, work, edge, &setting);
    if (work->cache->status == TARE_OK) work->cache->status = status;
    return status == TARE_OK && found ? params : NULL;
}

/* True if both addends are activations with their own ranges. */
static bool can_add(const struct tare_quant_work *work, const struct tare_node *node) {
    if (!work->plan->integer_adds || node->n_inputs != 2) return false;
    for (size_t i = 0; i < 2; i++)
        if (tare_edge_constant(node->inputs[i]) || !own_params(work, node->inputs[i], NULL)) return false;
    return true;
}

static bool made_as_integers(const struct tare_quant_work *work, struct tare_edge edge, int depth);

static enum form form_of_at(const struct tare_quant_work *work, const struct tare_node *node, int depth) {
    double low, high;
    for (size_t i = 0; i < N_FORMS; i++) {
        if (strcmp(node->op, forms[i].op) != 0) continue;
        if (!tare_quant_takes_dtype(tare_edge_dtype((struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 })))
            return OTHER;
        if (forms[i].form == ADDS && !can_add(work, node)) return OTHER;
        if (forms[i].form == LIMITS && !tare_quant_fake_limits(&low, &high, node)) return OTHER;
        /* codes computed only for the mean would be rounded twice */
        if (forms[i].form == AVERAGES &&
            (!own_params(work, node->inputs[0], NULL) || !made_as_integers(work, node->inputs[0], depth + 1)))
            return OTHER;
        return forms[i].form;
    }
    return OTHER;
}

/* True if static layers compute the activation, directly or through ops that keep the scale. */
static bool made_as_integers(const struct tare_quant_work *work, struct tare_edge edge, int depth) {
    const struct tare_quant_layer *layer = tare_quant_layer_with_output(work, edge);
    if (layer) return !layer->refused && layer->setting.method == integers_of(work) && layer->kind != TARE_KIND_GATHER;
    if (depth > MOST_DEPTH || form_of_at(work, edge.node, depth) == OTHER) return false;
    for (size_t i = 0; i < edge.node->n_inputs; i++)
        if (is_activation_of(edge.node, i) && !made_as_integers(work, edge.node->inputs[i], depth + 1)) return false;
    return true;
}

static enum form form_of(const struct tare_quant_work *work, const struct tare_node *node) {
    return form_of_at(work, node, 0);
}

static bool equal_params(const struct tare_qparams *a, const struct tare_qparams *b) {
    return a->scale == b->scale && a->zero_point == b->zero_point && a->qmin == b->qmin && a->qmax == b->qmax;
}

/* ---- which uses require integers ---- */

/* The parameters with which a static layer reads input `input` of `node`; NULL if it is not one. */
static const struct tare_qparams *read_by_layer(const struct tare_quant_work *work, const struct tare_node *node,
                                                size_t input) {
    const struct tare_quant_layer *layer = tare_quant_layer_of(work, node);
    if (!layer || layer->refused || layer->setting.method != integers_of(work) || layer->kind == TARE_KIND_GATHER ||
        layer->entries)
        return NULL;
    if (input == layer->left) return &layer->left_params;
    return !layer->weight && input == layer->right ? &layer->right_params : NULL;
}

static bool demanded(const struct tare_qparams **params, const struct tare_quant_work *work, struct tare_edge edge,
                     int depth);

/* The parameters that one use of an edge requires; false: it requires real values. */
static bool wanted_by(const struct tare_qparams **params, const struct tare_quant_work *work,
                      const struct tare_node *node, size_t input, int depth) {
    const struct tare_qparams *read = read_by_layer(work, node, input);
    const enum form form = read ? OTHER : form_of(work, node);
    const int first = form == FORWARDS ? (int)input : 0;
    const int behind = form == SPLITS ? (int)node->n_outputs : first + 1;
    *params = read;
    if (read) return true;
    if (form == OTHER || !is_activation_of(node, input)) return false;
    for (int i = first; i < behind; i++) {
        const struct tare_edge output = { (struct tare_node *)(uintptr_t)node, i };
        const struct tare_qparams *others = NULL;
        if (form == SPLITS && !tare_graph_count_uses(node->graph, output, NULL)) continue;
        if (!demanded(&others, work, output, depth + 1)) return false;
        if (*params && !equal_params(*params, others)) return false;
        *params = others;
    }
    if (form == ADDS || form == AVERAGES) *params = own_params(work, node->inputs[input], *params);
    return *params;
}

static bool demanded(const struct tare_qparams **params, const struct tare_quant_work *work, struct tare_edge edge,
                     int depth) {
    const struct tare_graph *graph = edge.node->graph;
    const size_t uses = tare_graph_count_uses(graph, edge, NULL);
    size_t found = 0;
    *params = NULL;
    if (depth > MOST_DEPTH || !uses) return false;
    for (const struct tare_use *use = tare_edge_first_use(edge); use; use = tare_edge_next_use(use)) {
        const struct tare_qparams *expected;
        if (use->user->dead) continue;
        found++;
        if (asks(use->user)) continue;
        if (!wanted_by(&expected, work, use->user, use->input, depth)) return false;
        if (*params && !equal_params(*params, expected)) return false;
        *params = expected;
    }
    return *params && found == uses; /* otherwise a return or a signature uses it */
}

tare_status tare_quant_demanded(const struct tare_qparams **params, const struct tare_quant_work *work,
                                struct tare_edge edge) {
    if (!demanded(params, work, edge, 0)) *params = NULL;
    return work->cache->status;
}

/* ---- making them ---- */

float tare_quantize_number(float value, const struct tare_qparams *params) {
    float q = value / (float)params->scale + (float)params->zero_point;
    q = fminf(fmaxf(q, (float)params->qmin), (float)params->qmax);
    return tare_round_half_even_f(q);
}

/* A node with the attributes of `op`, for another dtype. */
static struct tare_edge emit_same(struct tare_emit *emit, const struct tare_node *op, const struct tare_edge *inputs,
                                  int dtype) {
    const char *full = tare_arena_printf(&emit->graph->model->arena, "%s/int8", op->name);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, op->op, full) : NULL;
    if (!node && emit->status == TARE_OK) emit->status = TARE_NO_MEMORY;
    for (size_t i = 0; i < op->n_inputs && emit->status == TARE_OK; i++)
        emit->status = tare_node_add_input(node, inputs[i]);
    if (emit->status == TARE_OK) emit->status = tare_node_copy_attrs(node, op);
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, "T", dtype);
    if (emit->status == TARE_OK) emit->status = tare_node_resolve(node);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge emit_padded(struct tare_emit *emit, const struct tare_node *op, const struct tare_edge *inputs,
                                    const struct tare_qparams *params) {
    const int dtype = tare_quant_integer_dtype(params);
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, dtype },
                                            { "Tpaddings", TARE_EMIT_TYPE, tare_edge_dtype(inputs[1]) },
                                            { 0 } };
    struct tare_emit own = { .graph = emit->graph, .prefix = op->name, .status = emit->status };
    const struct tare_edge padded[] = { inputs[0], inputs[1],
                                        tare_emit_number(&own, "zero_point", dtype, params->zero_point) };
    const struct tare_edge y = tare_emit_node(&own, "PadV2", "int8", padded, 3, attrs);
    emit->status = own.status;
    return y;
}

static struct tare_edge emit_clamped(struct tare_emit *emit, const struct tare_node *op, struct tare_edge q,
                                     const struct tare_qparams *params) {
    struct tare_emit own = { .graph = emit->graph, .prefix = op->name, .status = emit->status };
    const int dtype = tare_quant_integer_dtype(params);
    q = tare_emit_binary(&own, "Maximum", "int8", q, tare_emit_number(&own, "zero_point", dtype, params->zero_point));
    if (strcmp(op->op, "Relu6") == 0)
        q = tare_emit_binary(&own, "Minimum", "int8", q,
                             tare_emit_number(&own, "six", dtype, (int32_t)tare_quantize_number(6, params)));
    emit->status = own.status;
    return q;
}

/* Integers may have a wider range than the FakeQuant: symmetric ones, or those of a ConcatV2 of several. An end that
 * differs by one code was only rounded differently. */
static struct tare_edge emit_limited(struct tare_emit *emit, const struct tare_node *op, struct tare_edge q,
                                     const struct tare_qparams *params) {
    struct tare_emit own = { .graph = emit->graph, .prefix = op->name, .status = emit->status };
    const int dtype = tare_quant_integer_dtype(params);
    double low, high;
    if (!tare_quant_fake_limits(&low, &high, op)) return q;
    const int32_t least = (int32_t)tare_quantize_number((float)low, params),
                  most = (int32_t)tare_quantize_number((float)high, params);
    if (least > params->qmin + 1)
        q = tare_emit_binary(&own, "Maximum", "int8", q, tare_emit_number(&own, "least", dtype, least));
    if (most < params->qmax - 1)
        q = tare_emit_binary(&own, "Minimum", "int8", q, tare_emit_number(&own, "most", dtype, most));
    emit->status = own.status;
    return q;
}

/* (q - zero point) * (scale / output scale) of an addend. */
static struct tare_edge emit_addend(struct tare_emit *emit, struct tare_edge q, const struct tare_qparams *from,
                                    const struct tare_qparams *to) {
    struct tare_edge x = tare_emit_cast(emit, "int8/widen", q, TARE_DT_INT32);
    x = tare_emit_binary(emit, "Sub", "int8/centre", x, tare_emit_i32(emit, "int8/zero_point", from->zero_point));
    x = tare_emit_cast(emit, "int8/cast", x, TARE_DT_FLOAT);
    return tare_emit_binary(emit, "Mul", "int8/scaled", x,
                            tare_emit_f32(emit, "int8/factor", (float)(from->scale / to->scale)));
}

/* Cast(Round(clip(y + zero point))), where y is a real value divided by the output's scale. */
static struct tare_edge emit_rounded(struct tare_emit *emit, struct tare_edge y, const struct tare_qparams *out) {
    y = tare_emit_binary(emit, "AddV2", "int8/add", y,
                         tare_emit_f32(emit, "int8/sum_zero_point", (float)out->zero_point));
    y = tare_emit_binary(emit, "Maximum", "int8/maximum", y, tare_emit_f32(emit, "int8/qmin", (float)out->qmin));
    y = tare_emit_binary(emit, "Minimum", "int8/minimum", y, tare_emit_f32(emit, "int8/qmax", (float)out->qmax));
    return tare_emit_cast(emit, "int8/narrow", tare_emit_unary(emit, "Round", "int8/round", y),
                          tare_quant_integer_dtype(out));
}

/* Each addend has its own scale; the sum is rounded once. */
static struct tare_edge emit_sum(struct tare_emit *emit, const struct tare_node *op, const struct tare_edge *inputs,
                                 const struct tare_qparams *const addends[2], const struct tare_qparams *out) {
    struct tare_emit own = { .graph = emit->graph, .prefix = op->name, .status = emit->status };
    const struct tare_edge second = emit_addend(&own, inputs[1], addends[1], out);
    struct tare_edge y =
        tare_emit_binary(&own, "AddV2", "int8/sum", emit_addend(&own, inputs[0], addends[0], out), second);
    y = emit_rounded(&own, y, out);
    emit->status = own.status;
    return y;
}

/* The codes have the scale of the layer that computed them, because values outside the range of the mean must not be
 * clipped before it; the mean, in float32, is rounded once. */
static struct tare_edge emit_averaged(struct tare_emit *emit, const struct tare_node *op, struct tare_edge q,
                                      const struct tare_qparams *from, const struct tare_qparams *to) {
    struct tare_emit own = { .graph = emit->graph, .prefix = op->name, .status = emit->status };
    const struct tare_edge x = tare_emit_cast(&own, "int8/widen", q, TARE_DT_FLOAT);
    struct tare_edge y = emit_same(&own, op, &x, TARE_DT_FLOAT);
    y = tare_emit_binary(&own, "Sub", "int8/centre", y,
                         tare_emit_f32(&own, "int8/zero_point", (float)from->zero_point));
    y = tare_emit_binary(&own, "Mul", "int8/scaled", y,
                         tare_emit_f32(&own, "int8/factor", (float)(from->scale / to->scale)));
    y = emit_rounded(&own, y, to);
    emit->status = own.status;
    return y;
}

static tare_status integer_form(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                struct tare_edge real, const struct tare_qparams *params, int depth);

tare_status tare_quant_share_integers(struct tare_quant_work *work, struct tare_edge real, struct tare_edge integer,
                                      const struct tare_qparams *params) {
    const struct tare_quant_shared made = {
        .method = integers_of(work), .real = real, .integer = integer, .params = params
    };
    const struct tare_quant_shared *added;
    TARE_TRY(tare_graph_index_uses(real.node->graph));
    for (struct tare_use *use = tare_edge_first_use(real), *next; use; use = next) {
        struct tare_node *node = use->user;
        next = tare_edge_next_use(use);
        if (node->dead || !asks(node) || use->input != 0) continue;
        tare_node_set_input(node, 0, integer);
        TARE_TRY(tare_node_set_type(node, "T", tare_edge_dtype(integer)));
        TARE_TRY(tare_node_resolve(node));
    }
    return tare_quant_add_shared(&added, work, &made);
}

/* Emits the integers from the op that computes `real`, and those of its other outputs. */
static tare_status through_op(struct tare_quant_work *work, struct tare_emit *emit, enum form form,
                              struct tare_edge real, const struct tare_qparams *params, int depth) {
    const struct tare_node *op = real.node;
    const struct tare_qparams *addends[2] = { NULL, NULL };
    struct tare_edge *inputs = tare_arena_extend(work->arena, op->inputs, op->n_inputs, 1, sizeof *inputs);
    struct tare_edge made;
    if (!inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < op->n_inputs; i++) {
        const struct tare_qparams *expected = params;
        if (!is_activation_of(op, i) || (form == FORWARDS && i != (size_t)real.index)) continue;
        if (form == ADDS || form == AVERAGES) expected = addends[i] = own_params(work, op->inputs[i], params);
        TARE_TRY(work->cache->status);
        if (!expected) return TARE_FAIL(TARE_INTERNAL, "%s: an operand without a range", op->name);
        TARE_TRY(integer_form(&inputs[i], work, emit, op->inputs[i], expected, depth + 1));
    }
    switch (form) {
    case PADS:
        made = emit_padded(emit, op, inputs, params);
        break;
    case CLAMPS:
        made = emit_clamped(emit, op, inputs[0], params);
        break;
    case ADDS:
        made = emit_sum(emit, op, inputs, addends, params);
        break;
    case AVERAGES:
        made = emit_averaged(emit, op, inputs[0], addends[0], params);
        break;
    case LIMITS:
        made = emit_limited(emit, op, inputs[0], params);
        TARE_TRY(emit->status);
        return tare_quant_share_integers(work, real, made, params);
    case FORWARDS:
        return tare_quant_share_integers(work, real, inputs[real.index], params);
    default:
        made = emit_same(emit, op, inputs, tare_quant_integer_dtype(params));
        break;
    }
    TARE_TRY(emit->status);
    for (int i = 0; i < (form == SPLITS ? (int)op->n_outputs : 1); i++)
        TARE_TRY(tare_quant_share_integers(work, (struct tare_edge){ real.node, i }, (struct tare_edge){ made.node, i },
                                           params));
    return TARE_OK;
}

static tare_status integer_form(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                struct tare_edge real, const struct tare_qparams *params, int depth) {
    const struct tare_quant_method *method = integers_of(work);
    const struct tare_quant_shared *shared = tare_quant_find_shared(work, method, real, params);
    const enum form form = form_of(work, real.node);
    const struct tare_qparams *expected = NULL;
    if (!shared && form != OTHER && depth < MOST_DEPTH) TARE_TRY(tare_quant_demanded(&expected, work, real));
    TARE_TRY(work->cache->status); /* of form_of, too */
    if (expected && equal_params(expected, params)) {
        TARE_TRY(through_op(work, emit, form, real, params, depth));
        shared = tare_quant_find_shared(work, method, real, params);
    }
    if (!shared) {
        struct tare_quant_shared made = { .method = method, .real = real, .params = params };
        if (method->quantize)
            TARE_TRY(method->quantize(&made.integer, work, emit->graph, real, emit->prefix, params));
        else
            made.integer = tare_emit_quantize(emit, real, params);
        TARE_TRY(emit->status);
        TARE_TRY(tare_quant_add_shared(&shared, work, &made));
    }
    *out = shared->integer;
    return TARE_OK;
}

tare_status tare_quant_integer_form(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                    struct tare_edge real, const struct tare_qparams *params) {
    return integer_form(out, work, emit, real, params, 0);
}
