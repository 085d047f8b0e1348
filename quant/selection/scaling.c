#include "quant/selection/scaling.h"
#include "base/tensor/float8.h"
#include "graph/attr_text.h"
#include "graph/op.h"
#include "interpreter/inference/evaluate.h"
#include "quant/layer.h"

#include <string.h>

static bool is_code(int dtype) {
    return tare_float8_format(dtype) || dtype == TARE_DT_INT8 || dtype == TARE_DT_UINT8 || dtype == TARE_DT_INT4 ||
           dtype == TARE_DT_UINT4;
}

/* TensorFlow chooses from float8 by way of half. */
bool tare_quant_has_codes(const struct tare_node *node) {
    if (!tare_node_is(node, "Cast")) return false;
    const int from = tare_edge_dtype(node->inputs[0]), to = node->output_dtypes[0];
    return (is_code(from) && (is_code(to) || tare_quant_takes_dtype(to))) ||
           (is_code(to) && tare_quant_takes_dtype(from));
}

bool tare_quant_scales(const struct tare_node *node) {
    static const char *const ops[] = { "Mul", "RealDiv", "Div", "Sub", "AddV2", NULL };
    return node->n_inputs == 2 && tare_op_is_one_of(node->op, ops);
}

tare_status tare_quant_add_scaling(struct tare_quant_selection *s, struct tare_arena *arena,
                                   const struct tare_node *node, size_t operand) {
    struct tare_quant_scaling *scalings = tare_arena_append(arena, s->scalings, s->n_scalings, sizeof *scalings);
    if (!scalings) return TARE_NO_MEMORY;
    scalings[s->n_scalings++] = (struct tare_quant_scaling){ .node = node, .operand = operand };
    s->scalings = scalings;
    return TARE_OK;
}

/* ---- scales ---- */

/* Names of layers do not matter. */
static bool is_alike(const struct tare_node *a, const struct tare_node *b, int *budget) {
    if (a == b) return true;
    if ((*budget)-- <= 0 || strcmp(a->op, b->op) != 0 || a->n_inputs != b->n_inputs || a->n_attrs != b->n_attrs ||
        tare_node_is_arg(a) || !tare_node_is_pure(a))
        return false;
    for (size_t i = 0; i < a->n_attrs; i++) {
        const struct tare_attr *other = tare_node_find_attr(b, a->attrs[i].name);
        if (!other || !tare_attr_equal(&a->attrs[i], other)) return false;
    }
    for (size_t i = 0; i < a->n_inputs; i++)
        if (a->inputs[i].index != b->inputs[i].index || !is_alike(a->inputs[i].node, b->inputs[i].node, budget))
            return false;
    return true;
}

/* The number itself, where the index is an element of a vector of numbers. */
static struct tare_quant_index number_of(struct tare_quant_index index) {
    const struct tare_node *pack = index.edge.node;
    if (index.element < 0 || !tare_node_is(pack, "Pack") || index.element >= (int)pack->n_inputs) return index;
    index.edge = pack->inputs[index.element];
    index.element = -1;
    return index;
}

bool tare_quant_same_number(struct tare_edge a, struct tare_edge b) {
    enum { MOST_VISITED = 64 };
    int budget = MOST_VISITED;
    return a.index == b.index && is_alike(a.node, b.node, &budget);
}

static bool same_index(const struct tare_quant_index *a, const struct tare_quant_index *b) {
    const struct tare_quant_index x = number_of(*a), y = number_of(*b);
    return x.size == y.size && x.element == y.element && tare_quant_same_number(x.edge, y.edge);
}

static bool same_choice(const struct tare_quant_selection *a, const struct tare_quant_selection *b) {
    if (a->n_indices != b->n_indices || a->index_rank != b->index_rank) return false;
    for (int i = 0; i < a->n_indices; i++)
        if (!same_index(&a->indices[i], &b->indices[i])) return false;
    return true;
}

bool tare_quant_set_scale(struct tare_quant_selection *s, const struct tare_quant_selection *scale) {
    struct tare_quant_scaling *scaling = &s->scalings[s->n_scalings - 1];
    const int ahead = s->operand.rank - scale->operand.rank;
    if (ahead < 0 || (scale->n_indices && !same_choice(s, scale))) return false;
    for (int i = 0; i < TARE_MAX_RANK; i++)
        scaling->axes[i] = TARE_FROM_NOTHING;
    for (int i = 0; i < scale->operand.rank; i++) {
        const int from = scale->from[i], to = s->from[ahead + i];
        if (from <= TARE_FROM_INDEX && from != to) return false;
        if (from < 0 || scale->operand.dims[i] == 1) continue;
        if (to < 0 || scale->operand.dims[i] != s->operand.dims[ahead + i]) return false;
        scaling->axes[to] = from;
    }
    for (int i = 0; i < scale->n_indices; i++)
        scaling->axes[s->indices[i].axis] = scale->indices[i].axis;
    scaling->scale = scale;
    return true;
}

bool tare_quant_chooses_by(const struct tare_quant_selection *selection, const struct tare_node *chooser) {
    if (selection->chooser == chooser) return true;
    for (size_t i = 0; i < selection->n_scalings; i++)
        if (selection->scalings[i].scale && tare_quant_chooses_by(selection->scalings[i].scale, chooser)) return true;
    return false;
}

/* ---- values ---- */

/* The scale with the axes of the stack, one element where it has none. */
static tare_status arrange(struct tare_tensor *out, const struct tare_tensor *scale, const int *axes, int rank) {
    const size_t size = tare_dtype_size(scale->dtype);
    struct tare_shape shape = { .rank = rank };
    int64_t strides[TARE_MAX_RANK], next = 1, at[TARE_MAX_RANK] = { 0 };
    for (int i = scale->shape.rank; i-- > 0; next *= scale->shape.dims[i])
        strides[i] = next;
    for (int i = 0; i < rank; i++)
        shape.dims[i] = axes[i] < 0 ? 1 : scale->shape.dims[axes[i]];
    TARE_TRY(tare_tensor_new(out, scale->dtype, &shape));
    for (int64_t n = 0; n < out->elements; n++) {
        int64_t from = 0;
        for (int i = 0; i < rank; i++)
            from += axes[i] < 0 ? 0 : at[i] * strides[axes[i]];
        memcpy((char *)out->data + (size_t)n * size, (const char *)scale->data + (size_t)from * size, size);
        for (int i = rank; i-- > 0 && ++at[i] == shape.dims[i];)
            at[i] = 0;
    }
    return TARE_OK;
}

static tare_status scale_values(struct tare_tensor *out, const struct tare_quant_scaling *scaling, int rank) {
    struct tare_tensor values = { 0 };
    tare_status status = tare_quant_scaled_stack(&values, scaling->scale);
    if (status == TARE_OK && values.dtype != TARE_DT_INVALID) status = arrange(out, &values, scaling->axes, rank);
    tare_tensor_reset(&values);
    return status;
}

static tare_status cut(struct tare_tensor *out, const struct tare_tensor *values,
                       const struct tare_quant_scaling *scaling) {
    int64_t runs = 1, run = (int64_t)tare_dtype_size(values->dtype);
    for (int i = 0; i < scaling->axis; i++)
        runs *= values->shape.dims[i];
    for (int i = scaling->axis + 1; i < values->shape.rank; i++)
        run *= values->shape.dims[i];
    const int64_t whole = values->shape.dims[scaling->axis] * run, part = scaling->shape.dims[scaling->axis] * run;
    TARE_TRY(tare_tensor_new(out, values->dtype, &scaling->shape));
    for (int64_t i = 0; i < runs; i++)
        memcpy((char *)out->data + i * part, (const char *)values->data + i * whole + scaling->begin * run,
               (size_t)part);
    return TARE_OK;
}

/* Replaces the values of the stack by those after one op; by nothing if the scale is not known. */
static tare_status compute(struct tare_tensor *values, const struct tare_quant_scaling *scaling) {
    struct tare_tensor inputs[2] = { 0 }, result = { 0 };
    tare_status status = TARE_OK;
    bool known = true;
    if (scaling->scale) {
        status = scale_values(&inputs[1 - scaling->operand], scaling, values->shape.rank);
        known = inputs[1 - scaling->operand].dtype != TARE_DT_INVALID;
    }
    inputs[scaling->operand] = *values;
    if (scaling->cuts)
        status = cut(&result, values, scaling);
    else if (tare_node_is(scaling->node, "Reshape"))
        status = tare_tensor_share_as(&result, values, &scaling->shape);
    else if (status == TARE_OK && known)
        status = tare_node_evaluate(scaling->node, inputs, &result);
    tare_tensor_reset(&inputs[0]);
    tare_tensor_reset(&inputs[1]);
    *values = result;
    return status;
}

tare_status tare_quant_scaled_stack(struct tare_tensor *out, const struct tare_quant_selection *s) {
    const struct tare_tensor *stack = tare_edge_constant(s->stack);
    if (!stack) return TARE_OK;
    if (stack->splat)
        TARE_TRY(tare_tensor_copy(out, stack));
    else
        tare_tensor_share(out, stack);
    for (size_t i = 0; i < s->n_scalings && out->dtype != TARE_DT_INVALID; i++)
        TARE_TRY(compute(out, &s->scalings[i]));
    return TARE_OK;
}
