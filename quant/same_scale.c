/* Ops that keep the scale of their activation. */
#include "quant/same_scale.h"
#include "tensor/number.h"

#include <math.h>
#include <string.h>

enum { MOST_DEPTH = 64 }; /* of same-scale ops behind each other: what lies deeper stays float */

/* What an op does to codes. */
enum form {
    OTHER,
    MOVES,  /* the op itself, on int8 */
    PADS,   /* Pad: zeros become zero points */
    CLAMPS, /* Relu, Relu6 */
    JOINS,  /* ConcatV2: all inputs but the last */
    ADDS,   /* AddV2 of two activations */
};

static const struct {
    const char *op;
    enum form form;
} forms[] = {
    { "Identity", MOVES },  { "Reshape", MOVES },  { "Squeeze", MOVES }, { "ExpandDims", MOVES },
    { "Transpose", MOVES }, { "MaxPool", MOVES },  { "Pad", PADS },      { "Relu", CLAMPS },
    { "Relu6", CLAMPS },    { "ConcatV2", JOINS }, { "AddV2", ADDS },    { "Add", ADDS },
};

static bool is_activation_of(const struct tare_node *node, size_t input, enum form form) {
    if (form == JOINS) return input + 1 < node->n_inputs;
    return form == ADDS ? input < 2 : input == 0;
}

/* The parameters of an addend, by its own range; NULL when it was not observed. By the name that the edge had before
 * its layer was rewritten. */
static const struct tare_qparams *own_params(const struct tare_quant_work *work, struct tare_edge edge) {
    const struct tare_qscheme scheme = tare_quant_activation_scheme(&work->options->setting);
    struct tare_qparams *params = TARE_NEW(work->arena, struct tare_qparams);
    double low, high;
    for (size_t i = 0; i < work->n_layers; i++)
        if (work->layers[i].replaced.node && tare_edge_equal(work->layers[i].replaced, edge))
            edge = work->layers[i].output;
    if (!params || !work->ranges || !work->ranges->find(work->ranges->arg, edge, &low, &high)) return NULL;
    if (tare_qparams_from_range(params, low, high, &scheme) == TARE_OK) return params;
    tare_error_clear();
    return NULL;
}

/* Both addends are activations with ranges of their own. */
static bool can_add(const struct tare_quant_work *work, const struct tare_node *node) {
    if (!work->options->integer_adds || node->n_inputs != 2) return false;
    for (size_t i = 0; i < 2; i++)
        if (tare_edge_constant(node->inputs[i]) || !own_params(work, node->inputs[i])) return false;
    return true;
}

static enum form form_of(const struct tare_quant_work *work, const struct tare_node *node) {
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (strcmp(node->op, forms[i].op) != 0) continue;
        if (tare_edge_dtype((struct tare_edge){ (struct tare_node *)(uintptr_t)node, 0 }) != TARE_DT_FLOAT)
            return OTHER;
        return forms[i].form != ADDS || can_add(work, node) ? forms[i].form : OTHER;
    }
    return OTHER;
}

static bool equal_params(const struct tare_qparams *a, const struct tare_qparams *b) {
    return a->scale == b->scale && a->zero_point == b->zero_point && a->qmin == b->qmin && a->qmax == b->qmax;
}

/* ---- who wants integers ---- */

/* The parameters that a static layer reads input `input` of `node` with; NULL: it is none. */
static const struct tare_qparams *read_by_layer(const struct tare_quant_work *work, const struct tare_node *node,
                                                size_t input) {
    for (size_t i = 0; i < work->n_layers; i++) {
        const struct tare_quant_layer *layer = &work->layers[i];
        if (layer->op != node || layer->refused || layer->setting.method != &tare_method_static ||
            layer->kind == TARE_KIND_GATHER)
            continue;
        if (input == layer->left) return &layer->left_params;
        return !layer->weight && input == layer->right ? &layer->right_params : NULL;
    }
    return NULL;
}

static bool demanded(const struct tare_qparams **params, const struct tare_quant_work *work, struct tare_edge edge,
                     int depth) {
    const struct tare_graph *graph = edge.node->graph;
    const size_t uses = tare_graph_count_uses(graph, edge, NULL);
    size_t found = 0;
    if (depth > MOST_DEPTH || !uses) return false;
    for (size_t n = 0; n < graph->n_nodes && found < uses; n++) {
        struct tare_node *node = graph->nodes[n];
        for (size_t i = 0; i < node->n_inputs && !node->dead; i++) {
            const struct tare_qparams *wanted = NULL;
            enum form form;
            if (!tare_edge_equal(node->inputs[i], edge)) continue;
            wanted = read_by_layer(work, node, i);
            form = wanted ? OTHER : form_of(work, node);
            if (!wanted && (form == OTHER || !is_activation_of(node, i, form) ||
                            !demanded(&wanted, work, (struct tare_edge){ node, 0 }, depth + 1)))
                return false;
            if (form == ADDS) wanted = own_params(work, edge);
            if (*params && !equal_params(*params, wanted)) return false;
            *params = wanted;
            found++;
        }
    }
    return found == uses; /* else a return or a signature takes it */
}

bool tare_quant_demanded(const struct tare_qparams **params, const struct tare_quant_work *work,
                         struct tare_edge edge) {
    *params = NULL;
    return demanded(params, work, edge, 0);
}

/* ---- making them ---- */

float tare_quantize_number(float value, const struct tare_qparams *params) {
    float q = value / (float)params->scale + (float)params->zero_point;
    q = fminf(fmaxf(q, (float)params->qmin), (float)params->qmax);
    return tare_round_half_even_f(q);
}

/* The op on int8: its attributes, with T changed. */
static struct tare_edge emit_same(struct tare_emit *emit, const struct tare_node *op, const struct tare_edge *inputs,
                                  const char *name) {
    const char *full = tare_arena_printf(&emit->graph->model->arena, "%s/int8", op->name);
    struct tare_node *node = full && emit->status == TARE_OK ? tare_graph_add(emit->graph, name, full) : NULL;
    if (!node && emit->status == TARE_OK) emit->status = TARE_NO_MEMORY;
    for (size_t i = 0; i < op->n_inputs && emit->status == TARE_OK; i++)
        emit->status = tare_node_add_input(node, inputs[i]);
    if (emit->status == TARE_OK) emit->status = tare_node_copy_attrs(node, op);
    if (emit->status == TARE_OK) emit->status = tare_node_set_type(node, "T", TARE_DT_INT8);
    if (emit->status == TARE_OK) emit->status = tare_node_resolve(node);
    return (struct tare_edge){ node, 0 };
}

static struct tare_edge emit_padded(struct tare_emit *emit, const struct tare_node *op, const struct tare_edge *inputs,
                                    const struct tare_qparams *params) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_INT8 },
                                            { "Tpaddings", TARE_EMIT_TYPE, tare_edge_dtype(inputs[1]) },
                                            { 0 } };
    struct tare_emit own = { .graph = emit->graph, .prefix = op->name, .status = emit->status };
    const struct tare_edge padded[] = { inputs[0], inputs[1],
                                        tare_emit_i8(&own, "zero_point", (int8_t)params->zero_point) };
    const struct tare_edge y = tare_emit_node(&own, "PadV2", "int8", padded, 3, attrs);
    emit->status = own.status;
    return y;
}

static struct tare_edge emit_clamped(struct tare_emit *emit, const struct tare_node *op, struct tare_edge q,
                                     const struct tare_qparams *params) {
    struct tare_emit own = { .graph = emit->graph, .prefix = op->name, .status = emit->status };
    q = tare_emit_binary(&own, "Maximum", "int8", q, tare_emit_i8(&own, "zero_point", (int8_t)params->zero_point));
    if (strcmp(op->op, "Relu6") == 0)
        q = tare_emit_binary(&own, "Minimum", "int8", q,
                             tare_emit_i8(&own, "six", (int8_t)tare_quantize_number(6, params)));
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

/* Each addend has its own scale; the sum is rounded once. */
static struct tare_edge emit_sum(struct tare_emit *emit, const struct tare_node *op, const struct tare_edge *inputs,
                                 const struct tare_qparams *const addends[2], const struct tare_qparams *out) {
    struct tare_emit own = { .graph = emit->graph, .prefix = op->name, .status = emit->status };
    struct tare_edge y = tare_emit_binary(&own, "AddV2", "int8/sum", emit_addend(&own, inputs[0], addends[0], out),
                                          emit_addend(&own, inputs[1], addends[1], out));
    y = tare_emit_binary(&own, "AddV2", "int8/add", y,
                         tare_emit_f32(&own, "int8/sum_zero_point", (float)out->zero_point));
    y = tare_emit_binary(&own, "Maximum", "int8/maximum", y, tare_emit_f32(&own, "int8/qmin", (float)out->qmin));
    y = tare_emit_binary(&own, "Minimum", "int8/minimum", y, tare_emit_f32(&own, "int8/qmax", (float)out->qmax));
    y = tare_emit_cast(&own, "int8/narrow", tare_emit_unary(&own, "Round", "int8/round", y), TARE_DT_INT8);
    emit->status = own.status;
    return y;
}

static tare_status integer_form(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                struct tare_edge real, const struct tare_qparams *params, int depth);

/* The int8 form by the op that makes `real`. */
static tare_status through_op(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                              enum form form, const struct tare_node *op, const struct tare_qparams *params,
                              int depth) {
    const struct tare_qparams *addends[2] = { NULL, NULL };
    struct tare_edge *inputs = tare_arena_extend(work->arena, op->inputs, op->n_inputs, 1, sizeof *inputs);
    if (!inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < op->n_inputs; i++) {
        const struct tare_qparams *wanted = params;
        if (!is_activation_of(op, i, form)) continue;
        if (form == ADDS) wanted = addends[i] = own_params(work, op->inputs[i]);
        if (!wanted) return TARE_FAIL(TARE_INTERNAL, "%s: an addend without a range", op->name);
        TARE_TRY(integer_form(&inputs[i], work, emit, op->inputs[i], wanted, depth + 1));
    }
    switch (form) {
    case PADS:
        *out = emit_padded(emit, op, inputs, params);
        break;
    case CLAMPS:
        *out = emit_clamped(emit, op, inputs[0], params);
        break;
    case ADDS:
        *out = emit_sum(emit, op, inputs, addends, params);
        break;
    default:
        *out = emit_same(emit, op, inputs, op->op);
        break;
    }
    return emit->status;
}

static tare_status integer_form(struct tare_edge *out, struct tare_quant_work *work, struct tare_emit *emit,
                                struct tare_edge real, const struct tare_qparams *params, int depth) {
    const struct tare_quant_shared *shared = tare_quant_find_shared(work, &tare_method_static, real, params);
    struct tare_quant_shared made = { .method = &tare_method_static, .real = real, .params = params };
    const enum form form = real.index == 0 ? form_of(work, real.node) : OTHER;
    const struct tare_qparams *wanted;
    if (!shared) {
        if (form != OTHER && depth < MOST_DEPTH && tare_quant_demanded(&wanted, work, real) &&
            equal_params(wanted, params))
            TARE_TRY(through_op(&made.integer, work, emit, form, real.node, params, depth));
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
