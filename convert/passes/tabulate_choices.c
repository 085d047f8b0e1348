/* The formula is run once for each entry, with the interpreter's own kernels; the value of an iteration has the bits
 * that it had before. */
#include "convert/passes/tabulate_choices.h"
#include "base/alloc.h"
#include "base/control.h"
#include "convert/pass.h"
#include "quant/layers/widened_weight.h"
#include "graph/calls.h"
#include "graph/emit.h"
#include "interpreter/inference/evaluate.h"
#include "quant/layer.h"
#include "quant/selection/selection.h"

#include <string.h>

enum {
    DEEPEST = 48,               /* ops between a choice and the product */
    MOST_VISITED = 1024,        /* of one formula */
    MOST_NUMBERS = 64,          /* edges of them */
    MOST_ENTRIES = 4096,        /* of a stack */
    LEAST_ELEMENTS = 64,        /* of a weight */
    LARGEST_GROWTH = 64 * 1024, /* bytes that the results may have beyond the stacks */
};

/* A value as a formula of entries. The numbers are elements of the vectors by which XlaDynamicSlice chooses: several
 * edges that compute the same. */
struct formula {
    struct tare_edge numbers[MOST_NUMBERS]; /* the first ones by axis */
    int axis_of[MOST_NUMBERS];
    size_t n_numbers;
    int64_t sizes[TARE_MAX_RANK]; /* entries by axis */
    int axes;                     /* 0: nothing is chosen */
    size_t bytes;                 /* of the stacks */
    int budget;
};

/* XlaDynamicSlice of one element of the first axes of a constant and all of the others. */
static bool read_choice(struct formula *out, const struct tare_node *node) {
    if (!tare_node_is(node, "XlaDynamicSlice") || !tare_node_is(node->inputs[1].node, "Pack")) return false;
    const struct tare_tensor *stack = tare_edge_constant(node->inputs[0]), *size = tare_edge_constant(node->inputs[2]);
    const struct tare_node *begin = node->inputs[1].node;
    if (!stack || !size || size->elements != stack->shape.rank || (int)begin->n_inputs != stack->shape.rank)
        return false;
    *out = (struct formula){ .bytes = tare_tensor_bytes(stack) };
    for (int i = 0; i < stack->shape.rank; i++) {
        if (tare_edge_constant(begin->inputs[i])) {
            if (tare_tensor_get_i64(size, i) != stack->shape.dims[i]) return false;
            continue;
        }
        if (i != out->axes || tare_tensor_get_i64(size, i) != 1) return false;
        out->numbers[i] = begin->inputs[i];
        out->sizes[out->axes++] = stack->shape.dims[i];
    }
    return out->axes > 0;
}

static bool add_number(struct formula *formula, struct tare_edge number, int axis) {
    for (size_t i = 0; i < formula->n_numbers; i++)
        if (tare_edge_equal(formula->numbers[i], number)) return formula->axis_of[i] == axis;
    if (formula->n_numbers == MOST_NUMBERS) return false;
    formula->axis_of[formula->n_numbers] = axis;
    formula->numbers[formula->n_numbers++] = number;
    return true;
}

/* All choices have the same numbers of the same range. */
static bool add_choice(struct formula *formula, const struct formula *choice) {
    const bool is_first = formula->axes == 0;
    if (!is_first && formula->axes != choice->axes) return false;
    formula->axes = choice->axes;
    formula->bytes += choice->bytes;
    for (int i = 0; i < choice->axes; i++) {
        if (is_first) formula->sizes[i] = choice->sizes[i];
        if (formula->sizes[i] != choice->sizes[i]) return false;
        if (!is_first && !tare_quant_same_number(formula->numbers[i], choice->numbers[i])) return false;
        if (!add_number(formula, choice->numbers[i], i)) return false;
    }
    return true;
}

static bool read_formula(struct formula *formula, struct tare_edge edge, int depth) {
    struct formula choice;
    const struct tare_node *node = edge.node;
    if (tare_edge_constant(edge)) return true;
    if (depth == DEEPEST || formula->budget-- <= 0 || tare_node_is_arg(node) || node->n_controls || !node->n_inputs)
        return false;
    if (read_choice(&choice, node)) return add_choice(formula, &choice);
    if (tare_widens_float8(node)) return false; /* the codes are the weight */
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!read_formula(formula, node->inputs[i], depth + 1)) return false;
    return tare_node_is_computable(node);
}

/* ---- the stack of the results ---- */

/* Sets *value (zeroed) to the formula at entry `entry`, counted by rows. Not *done: as in tare_edge_evaluate. */
static tare_status compute(bool *done, struct tare_tensor *value, struct tare_edge edge, const struct formula *formula,
                           int64_t entry) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor numbers[MOST_NUMBERS] = { 0 };
    int64_t at[TARE_MAX_RANK];
    tare_status status = tare_control_check();
    for (int i = formula->axes; i-- > 0; entry /= formula->sizes[i])
        at[i] = entry % formula->sizes[i];
    for (size_t i = 0; i < formula->n_numbers && status == TARE_OK; i++) {
        status = tare_tensor_new(&numbers[i], tare_edge_dtype(formula->numbers[i]), &scalar);
        if (status == TARE_OK) tare_tensor_set_i64(&numbers[i], 0, at[formula->axis_of[i]]);
    }
    if (status == TARE_OK)
        status = tare_edge_evaluate(done, value, edge, formula->numbers, numbers, formula->n_numbers);
    for (size_t i = 0; i < formula->n_numbers; i++)
        if (numbers[i].dtype) tare_tensor_reset(&numbers[i]);
    return status;
}

/* Adds an entry to the stack, which the first one creates. */
static tare_status add_entry(bool *done, struct tare_tensor *stack, const struct tare_tensor *value,
                             const struct formula *formula, int64_t entry, int64_t count) {
    const size_t bytes = tare_tensor_bytes(value);
    struct tare_shape shape = { .rank = formula->axes + value->shape.rank };
    *done = false;
    if (entry == 0) {
        if (shape.rank > TARE_MAX_RANK || value->shape.rank < 2 || value->elements < LEAST_ELEMENTS ||
            !tare_quant_takes_dtype(value->dtype) || bytes > (formula->bytes + LARGEST_GROWTH) / (size_t)count)
            return TARE_OK;
        memcpy(shape.dims, formula->sizes, (size_t)formula->axes * sizeof *shape.dims);
        memcpy(shape.dims + formula->axes, value->shape.dims, (size_t)value->shape.rank * sizeof *shape.dims);
        TARE_TRY(tare_tensor_new(stack, value->dtype, &shape));
    }
    if (tare_tensor_bytes(stack) != bytes * (size_t)count || value->dtype != stack->dtype) return TARE_OK;
    memcpy((char *)stack->data + (size_t)entry * bytes, value->data, bytes);
    *done = true;
    return TARE_OK;
}

static tare_status compute_all(bool *done, struct tare_tensor *stack, struct tare_edge edge,
                               const struct formula *formula) {
    int64_t count = 1;
    for (int i = 0; i < formula->axes; i++)
        count = count > MOST_ENTRIES ? count : count * formula->sizes[i];
    *done = count <= MOST_ENTRIES;
    for (int64_t i = 0; i < count && *done; i++) {
        struct tare_tensor value = { 0 };
        tare_status status = compute(done, &value, edge, formula, i);
        if (status != TARE_OK) { /* what fails now fails when it runs */
            *done = false;
            status = tare_error_dismiss(status);
        } else if (*done)
            status = add_entry(done, stack, &value, formula, i, count);
        if (value.dtype) tare_tensor_reset(&value);
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* The entry of the stack by the formula's numbers. */
static struct tare_edge choose(struct tare_emit *emit, const struct tare_tensor *stack, const struct formula *formula) {
    const int dtype = tare_edge_dtype(formula->numbers[0]), rank = stack->shape.rank;
    struct tare_shape shape = { .rank = rank - formula->axes };
    struct tare_edge begin[TARE_MAX_RANK];
    int64_t sizes[TARE_MAX_RANK];
    const struct tare_shape vector = { .rank = 1, .dims = { rank } }, scalar = tare_shape_scalar();
    const int64_t none = 0;
    struct tare_edge zero = tare_emit_longs(emit, "entry/zero", &scalar, &none);
    if (dtype != TARE_DT_INT64) zero = tare_emit_cast(emit, "entry/zero_as", zero, dtype);
    for (int i = 0; i < rank; i++) {
        begin[i] = i < formula->axes ? formula->numbers[i] : zero;
        sizes[i] = i < formula->axes ? 1 : stack->shape.dims[i];
        if (i >= formula->axes) shape.dims[i - formula->axes] = sizes[i];
    }
    struct tare_edge length = tare_emit_longs(emit, "entry/sizes", &vector, sizes);
    if (dtype != TARE_DT_INT64) length = tare_emit_cast(emit, "entry/sizes_as", length, dtype);
    const struct tare_emit_attr packs[] = {
        { "T", TARE_EMIT_TYPE, dtype }, { "N", TARE_EMIT_INT, rank }, { "axis", TARE_EMIT_INT, 0 }, { 0 }
    };
    struct tare_edge inputs[3] = { { tare_graph_add_const(emit->graph, "entries", stack), 0 } };
    if (!inputs[0].node) emit->status = TARE_NO_MEMORY;
    if (emit->status != TARE_OK) return zero;
    inputs[1] = tare_emit_node(emit, "Pack", "entry/begin", begin, (size_t)rank, packs);
    inputs[2] = length;
    const struct tare_emit_attr slices[] = { { "T", TARE_EMIT_TYPE, stack->dtype },
                                             { "Tindices", TARE_EMIT_TYPE, dtype },
                                             { 0 } };
    return tare_emit_reshape(emit, "entry/value", tare_emit_node(emit, "XlaDynamicSlice", "entry", inputs, 3, slices),
                             &shape);
}

/* ---- candidates ---- */

struct search {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_model_shapes *shapes; /* NULL until a formula is found */
};

/* Whether quantization follows the edge to a stack by itself. */
static tare_status is_followed(bool *out, struct search *search, struct tare_edge edge) {
    struct tare_quant_selection *selection;
    if (!search->shapes) TARE_TRY(tare_model_shapes_new(&search->shapes, search->model));
    TARE_TRY(tare_quant_find_selection(&selection, &search->arena, edge, search->shapes));
    *out = selection && !selection->n_factors;
    return TARE_OK;
}

static tare_status tabulate(struct search *search, struct tare_edge edge, size_t *changes) {
    struct formula formula = { .budget = MOST_VISITED };
    struct tare_emit emit = { .graph = edge.node->graph, .prefix = edge.node->name };
    struct tare_tensor stack = { 0 };
    bool followed, done = false;
    if (tare_edge_constant(edge) || !read_formula(&formula, edge, 0) || !formula.axes) return TARE_OK;
    TARE_TRY(is_followed(&followed, search, edge));
    if (followed) return TARE_OK;
    tare_status status = compute_all(&done, &stack, edge, &formula);
    if (status == TARE_OK && done) {
        const struct tare_edge value = choose(&emit, &stack, &formula);
        status = emit.status;
        if (status == TARE_OK) tare_graph_replace_uses(emit.graph, edge, value, NULL);
        ++*changes;
    }
    if (stack.dtype) tare_tensor_reset(&stack);
    return status;
}

/* Inputs of products, and what functions get. */
static tare_status tabulate_inputs(struct search *search, struct tare_node *node, size_t *changes) {
    struct tare_call_site site = { .kind = TARE_CALL_NONE };
    if (!tare_quant_multiplies(node)) TARE_TRY(tare_call_site(&site, &search->arena, node));
    if (!tare_quant_multiplies(node) && (site.kind == TARE_CALL_NONE || site.kind == TARE_CALL_OTHER)) return TARE_OK;
    for (size_t i = site.first; i < node->n_inputs; i++)
        TARE_TRY(tabulate(search, node->inputs[i], changes));
    return TARE_OK;
}

tare_status tare_tabulate_choices(struct tare_graph_model *model, size_t *changes) {
    struct search search = { .model = model };
    tare_status status = TARE_OK;
    for (size_t g = 0; g < model->n_functions && status == TARE_OK; g++) {
        struct tare_graph *graph = model->functions[g];
        const size_t count = graph->n_nodes;
        for (size_t i = 0; i < count && status == TARE_OK; i++)
            if (!graph->nodes[i]->dead) status = tabulate_inputs(&search, graph->nodes[i], changes);
    }
    tare_model_shapes_free(search.shapes);
    tare_arena_free(&search.arena);
    return status;
}
