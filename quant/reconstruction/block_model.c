/* Building the model of a block: a copy of its nodes, in which each layer's weight is a placeholder and each quantized
 * activation passes through a rounding step.
 *
 * The step is x̂ = clip(round(x / s), qmin - z, qmax - z) s, and its derivative 1 inside the range and 0 where it clips.
 * An element keeps its float value with the probability `drop` (Wei et al., "QDrop: Randomly Dropping Quantization for
 * Extremely Low-bit Post-Training Quantization", ICLR 2022): rounding that fits one set of activation errors exactly
 * does not fit others. Weight-only layers have float activations. */
#include "quant/reconstruction/block_model.h"
#include "quant/reconstruction/gradient.h"

#include "base/alloc.h"
#include "graph/emit.h"
#include "graph/op.h"
#include "quant/dynamic_range.h"

#include <string.h>

struct build {
    struct tare_block_model *out;
    const struct tare_quant_work *work;
    const struct tare_block *block;
    struct tare_arena *arena;
    struct tare_graph *graph;
    struct tare_node **copies; /* by node of the block's graph */
    struct tare_gradient_step *steps;
    size_t n_steps;
    struct tare_emit emit;
    const char *reason;
    int depth; /* of the nodes being copied */
};

/* Copying follows inputs by recursion. Blocks of real models have paths of fewer than 200 nodes. */
enum { MOST_DEPTH = 2000 };

static tare_status refuse(struct build *b, const char *format, const char *what) {
    b->reason = tare_arena_printf(b->arena, format, what);
    return b->reason ? TARE_OK : TARE_NO_MEMORY;
}

static struct tare_edge placeholder(struct build *b, const char *name, int dtype) {
    const struct tare_emit_attr attrs[] = { { "dtype", TARE_EMIT_TYPE, dtype }, { 0 } };
    return tare_emit_node(&b->emit, "Placeholder", name, NULL, 0, attrs);
}

/* ---- rounding steps ---- */

static struct tare_edge floats(struct build *b, const char *op, struct tare_edge x, struct tare_edge y) {
    return tare_emit_binary(&b->emit, op, op, x, y);
}

static struct tare_edge compare(struct build *b, const char *op, struct tare_edge x, struct tare_edge y) {
    const struct tare_edge inputs[] = { x, y };
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT }, { 0 } };
    return tare_emit_node(&b->emit, op, op, inputs, 2, attrs);
}

/* True for the elements that keep their float value. */
static struct tare_edge draw(struct build *b, struct tare_edge x) {
    const struct tare_emit_attr shape_attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                                  { "out_type", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                                  { 0 } };
    const struct tare_emit_attr attrs[] = { { "dtype", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "T", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "Tseed", TARE_EMIT_TYPE, TARE_DT_INT64 },
                                            { 0 } };
    const struct tare_shape pair = tare_shape_make(1, 2);
    const int64_t own[] = { (int64_t)b->n_steps << 32, 0 };
    const struct tare_edge inputs[] = { tare_emit_node(&b->emit, "Shape", "shape", &x, 1, shape_attrs),
                                        floats(b, "AddV2", b->out->seed,
                                               tare_emit_longs(&b->emit, "step", &pair, own)) };
    return compare(b, "Less", tare_emit_node(&b->emit, "StatelessRandomUniform", "draw", inputs, 2, attrs),
                   b->out->drop);
}

struct step_range {
    struct tare_edge scale, low, high; /* low and high: in steps */
};

static struct step_range fixed_range(struct build *b, const struct tare_qparams *p) {
    return (struct step_range){ tare_emit_f32(&b->emit, "scale", (float)p->scale),
                                tare_emit_f32(&b->emit, "low", (float)(p->qmin - p->zero_point)),
                                tare_emit_f32(&b->emit, "high", (float)(p->qmax - p->zero_point)) };
}

/* The ranges of the rows at run time, as the dynamic method has them. */
static struct step_range current_range(struct build *b, const struct tare_quant_layer *layer, struct tare_edge x) {
    int32_t axes[TARE_MAX_RANK];
    const int n_axes = tare_quant_row_axes(axes, &layer->product);
    const struct tare_edge high = tare_emit_extreme(&b->emit, "Max", "Maximum", "high", x, axes, n_axes),
                           low = tare_emit_extreme(&b->emit, "Min", "Minimum", "low", x, axes, n_axes),
                           codes = tare_emit_f32(&b->emit, "codes", 255),
                           least = tare_emit_f32(&b->emit, "least", 1e-30F);
    const struct tare_edge scale =
        floats(b, "Maximum", floats(b, "RealDiv", floats(b, "Sub", high, low), codes), least);
    return (struct step_range){ scale, floats(b, "RealDiv", low, scale), floats(b, "RealDiv", high, scale) };
}

static struct tare_edge add_step(struct build *b, struct tare_edge x, const struct step_range *range) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT }, { 0 } };
    const struct tare_emit_attr none[] = { { 0 } };
    const struct tare_edge steps = floats(b, "RealDiv", x, range->scale);
    const struct tare_edge kept = draw(b, x);
    const struct tare_edge inside[] = { compare(b, "GreaterEqual", steps, range->low),
                                        compare(b, "LessEqual", steps, range->high) };
    const struct tare_edge passes[] = { kept, tare_emit_node(&b->emit, "LogicalAnd", "inside", inside, 2, none) };
    struct tare_edge rounded = tare_emit_unary(&b->emit, "Round", "round", steps);
    rounded = floats(b, "Minimum", floats(b, "Maximum", rounded, range->low), range->high);
    rounded = floats(b, "Mul", rounded, range->scale);
    const struct tare_edge choices[] = { kept, x, rounded };
    const struct tare_edge value = tare_emit_node(&b->emit, "SelectV2", "step", choices, 3, attrs);
    b->steps[b->n_steps++] =
        (struct tare_gradient_step){ value, x, tare_emit_node(&b->emit, "LogicalOr", "passes", passes, 2, none) };
    return value;
}

static struct tare_edge quantized_input(struct build *b, const struct tare_quant_layer *layer, struct tare_edge x) {
    struct step_range range;
    if (!layer->setting.method->integer_inputs || b->emit.status != TARE_OK) return x;
    b->emit.prefix = layer->op->name;
    range = layer->setting.method->needs_ranges ? fixed_range(b, &layer->left_params) : current_range(b, layer, x);
    return add_step(b, x, &range);
}

/* ---- copying nodes ---- */

static const struct tare_quant_layer *layer_of(const struct build *b, const struct tare_node *node, size_t *index) {
    for (size_t i = 0; i < b->block->n_layers; i++)
        if (b->block->layers[i]->op == node) {
            *index = i;
            return b->block->layers[i];
        }
    return NULL;
}

static bool has_functions(const struct tare_node *node) {
    for (size_t i = 0; i < node->n_attrs; i++)
        if (node->attrs[i].kind == TARE_ATTR_FUNC) return true;
    return !node->def;
}

/* TensorFlow 1's control flow: its loops are cycles of the graph, and its values may be dead. */
static bool is_control_flow(const struct tare_node *node) {
    static const char *const ops[] = { "Switch",   "RefSwitch",     "_SwitchN",         "Merge",
                                       "RefMerge", "Enter",         "RefEnter",         "Exit",
                                       "RefExit",  "NextIteration", "RefNextIteration", NULL };
    return tare_op_is_one_of(node->op, ops);
}

static tare_status copy_edge(struct tare_edge *out, struct build *b, struct tare_edge edge);

static tare_status copy_inputs(struct tare_edge *inputs, struct build *b, const struct tare_node *from) {
    size_t index;
    const struct tare_quant_layer *layer = layer_of(b, from, &index);
    for (size_t i = 0; i < from->n_inputs; i++) {
        if (layer && i == layer->right)
            inputs[i] = b->out->weights[index];
        else
            TARE_TRY(copy_edge(&inputs[i], b, from->inputs[i]));
        if (b->reason) return TARE_OK;
        if (layer && i == layer->left) inputs[i] = quantized_input(b, layer, inputs[i]);
        TARE_TRY(b->emit.status);
    }
    return TARE_OK;
}

/* Inputs are copied first, so that the copies are in an order of execution. */
static tare_status copy_node(struct build *b, const struct tare_node *from) {
    struct tare_edge *inputs = TARE_NEW_ARRAY(b->arena, struct tare_edge, from->n_inputs + 1);
    struct tare_node *to;
    if (!inputs) return TARE_NO_MEMORY;
    if (has_functions(from)) return refuse(b, "it calls functions (%s)", from->op);
    if (is_control_flow(from)) return refuse(b, "it contains control flow (%s)", from->op);
    if (b->depth == MOST_DEPTH) return refuse(b, "a path through it is too long (%s)", from->name);
    if (from->def->is_stateful || tare_node_is(from, "Placeholder")) return refuse(b, "it contains %s", from->op);
    b->depth++;
    TARE_TRY(copy_inputs(inputs, b, from));
    b->depth--;
    if (b->reason) return TARE_OK;
    to = tare_graph_add(b->graph, from->op, from->name);
    if (!to) return TARE_NO_MEMORY;
    for (size_t i = 0; i < from->n_inputs; i++)
        TARE_TRY(tare_node_add_input(to, inputs[i]));
    TARE_TRY(tare_node_copy_attrs(to, from));
    TARE_TRY(tare_node_resolve(to));
    b->copies[from->position] = to;
    return TARE_OK;
}

static tare_status copy_edge(struct tare_edge *out, struct build *b, struct tare_edge edge) {
    for (size_t i = 0; i < b->block->n_inputs; i++)
        if (tare_edge_equal(edge, b->block->inputs[i])) {
            *out = b->out->inputs[i];
            return TARE_OK;
        }
    if (tare_node_is_arg(edge.node)) return refuse(b, "it reads an argument beyond its inputs (%s)", edge.node->name);
    if (!b->copies[edge.node->position]) TARE_TRY(copy_node(b, edge.node));
    *out = (struct tare_edge){ b->copies[edge.node->position], edge.index };
    return TARE_OK;
}

/* ---- the whole ---- */

static tare_status allocate(struct build *b) {
    struct tare_block_model *out = b->out;
    const size_t count = b->block->n_inputs + b->block->n_outputs + b->block->n_layers + 1;
    out->n_outputs = b->block->n_outputs;
    out->inputs = TARE_NEW_ARRAY(b->arena, struct tare_edge, count);
    out->targets = TARE_NEW_ARRAY(b->arena, struct tare_edge, count);
    out->shares = TARE_NEW_ARRAY(b->arena, struct tare_edge, count);
    out->weights = TARE_NEW_ARRAY(b->arena, struct tare_edge, count);
    out->outputs = TARE_NEW_ARRAY(b->arena, struct tare_edge, count);
    out->errors = TARE_NEW_ARRAY(b->arena, struct tare_edge, count);
    out->gradients = TARE_NEW_ARRAY(b->arena, struct tare_edge, count);
    b->steps = TARE_NEW_ARRAY(b->arena, struct tare_gradient_step, count);
    b->copies = TARE_NEW_ARRAY(b->arena, struct tare_node *, b->block->graph->n_nodes + 1);
    out->model = tare_model_new(b->work->model->custom_ops ? b->work->model->custom_ops : b->work->model->ops);
    if (!out->inputs || !out->targets || !out->shares || !out->weights || !out->outputs || !out->errors ||
        !out->gradients || !b->steps || !b->copies || !out->model)
        return TARE_NO_MEMORY;
    b->graph = b->emit.graph = out->model->main;
    return TARE_OK;
}

static tare_status add_inputs(struct build *b) {
    struct tare_block_model *out = b->out;
    b->emit.prefix = "block";
    out->drop = placeholder(b, "drop", TARE_DT_FLOAT);
    out->seed = placeholder(b, "seed", TARE_DT_INT64);
    for (size_t i = 0; i < b->block->n_inputs; i++)
        out->inputs[i] = placeholder(b, "input", tare_edge_dtype(b->block->inputs[i]));
    for (size_t i = 0; i < b->block->n_layers; i++)
        out->weights[i] = placeholder(b, "weight", TARE_DT_FLOAT);
    return b->emit.status;
}

/* Adds error and loss of an output; *seed is the derivative of the loss with respect to it. */
static void add_error(struct build *b, size_t i, struct tare_edge *seed) {
    const struct tare_emit_attr attrs[] = { { "T", TARE_EMIT_TYPE, TARE_DT_FLOAT },
                                            { "Tidx", TARE_EMIT_TYPE, TARE_DT_INT32 },
                                            { "keep_dims", TARE_EMIT_BOOL, false },
                                            { 0 } };
    const struct tare_shape flat = { .rank = 1, .dims = { -1 } };
    struct tare_edge difference, squares[2];
    b->emit.prefix = "block";
    b->out->targets[i] = placeholder(b, "target", TARE_DT_FLOAT);
    b->out->shares[i] = placeholder(b, "share", TARE_DT_FLOAT);
    difference = floats(b, "Sub", b->out->outputs[i], b->out->targets[i]);
    squares[0] = tare_emit_reshape(&b->emit, "squares", floats(b, "Mul", difference, difference), &flat);
    squares[1] = tare_emit_vector(&b->emit, "axis", 1, (const int32_t[]){ 0 });
    b->out->errors[i] = tare_emit_node(&b->emit, "Sum", "error", squares, 2, attrs);
    *seed = floats(b, "Mul", difference, b->out->shares[i]);
}

static tare_status add_outputs(struct build *b, struct tare_edge *values, struct tare_edge *seeds, size_t *count) {
    *count = 0;
    for (size_t i = 0; i < b->block->n_outputs && !b->reason; i++) {
        struct tare_edge edge;
        TARE_TRY(copy_edge(&edge, b, b->block->outputs[i]));
        if (b->reason || tare_edge_dtype(edge) != TARE_DT_FLOAT) continue;
        b->out->outputs[i] = edge;
        add_error(b, i, &seeds[*count]);
        values[(*count)++] = edge;
        TARE_TRY(b->emit.status);
    }
    if (!*count && !b->reason) return refuse(b, "%s", "no output of it is float32");
    return TARE_OK;
}

static tare_status add_gradients(struct build *b, const bool *trains, const struct tare_edge *values,
                                 const struct tare_edge *seeds, size_t count) {
    const size_t n_layers = b->block->n_layers;
    struct tare_edge *wanted = TARE_NEW_ARRAY(b->arena, struct tare_edge, n_layers + 1);
    struct tare_edge *gradients = TARE_NEW_ARRAY(b->arena, struct tare_edge, n_layers + 1);
    struct tare_gradient_task task = { .graph = b->graph,
                                       .values = values,
                                       .seeds = seeds,
                                       .n_values = count,
                                       .wanted = wanted,
                                       .steps = b->steps,
                                       .n_steps = b->n_steps };
    const char *unsupported;
    if (!wanted || !gradients) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_layers; i++)
        if (trains[i]) wanted[task.n_wanted++] = b->out->weights[i];
    TARE_TRY(tare_gradient_add(gradients, &unsupported, &task));
    if (unsupported) return refuse(b, "%s has no derivative", unsupported);
    for (size_t i = 0, k = 0; i < n_layers; i++)
        if (trains[i]) b->out->gradients[i] = gradients[k++];
    return TARE_OK;
}

static tare_status build_model(struct build *b, const bool *trains) {
    struct tare_edge *values, *seeds;
    size_t count;
    TARE_TRY(allocate(b));
    TARE_TRY(add_inputs(b));
    values = TARE_NEW_ARRAY(b->arena, struct tare_edge, b->block->n_outputs + 1);
    seeds = TARE_NEW_ARRAY(b->arena, struct tare_edge, b->block->n_outputs + 1);
    if (!values || !seeds) return TARE_NO_MEMORY;
    TARE_TRY(add_outputs(b, values, seeds, &count));
    b->out->runs = !b->reason;
    return b->reason ? TARE_OK : add_gradients(b, trains, values, seeds, count);
}

tare_status tare_block_model_new(struct tare_block_model *out, const char **reason, struct tare_arena *arena,
                                 const struct tare_quant_work *work, const struct tare_block *block,
                                 const bool *trains) {
    struct build b = { .out = out, .work = work, .block = block, .arena = arena };
    tare_status status;
    memset(out, 0, sizeof *out);
    status = build_model(&b, trains);
    *reason = b.reason;
    return status;
}

void tare_block_model_free(struct tare_block_model *model) {
    tare_model_free(model->model);
    model->model = NULL;
}
