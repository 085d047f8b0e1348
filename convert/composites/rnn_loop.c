/* The loop form of recurrent layers: a StatelessWhile over TensorLists with a step in its body. All inputs are
 * multiplied with the kernel before it, so that the loop is left with the recurrence; weights pass through it
 * unchanged. */
#include "convert/composites/build.h"
#include "graph/model.h"

enum { INPUTS = 0, MOST_VALUES = 8 };

/* Loop variables: these, followed by the states. The lists are indexed by time step. */
static const struct {
    const char *name;
    int dtype;
} fixed_values[] = { { "step", TARE_DT_INT32 },      { "limit", TARE_DT_INT32 },     { "inputs", TARE_DT_VARIANT },
                     { "outputs", TARE_DT_VARIANT }, { "recurrent", TARE_DT_FLOAT }, { "bias", TARE_DT_FLOAT } };
enum { STEP, LIMIT, LIST_IN, LIST_OUT, RECURRENT, BIAS, FIXED };

static size_t count_values(const struct tare_rnn *rnn) {
    return FIXED + rnn->n_states;
}

static int dtype_of(size_t value) {
    return value < FIXED ? fixed_values[value].dtype : TARE_DT_FLOAT;
}

/* ---- lists ---- */

static tare_status row_shape(struct tare_edge *out, struct tare_composing *c, const char *name, int64_t columns) {
    const int32_t shape[2] = { -1, (int32_t)columns };
    return tare_composing_ints(out, c, name, 2, shape);
}

static tare_status list_op(struct tare_edge *out, struct tare_composing *c, const char *op, size_t n,
                           const struct tare_edge *inputs) {
    struct tare_node *node;
    TARE_TRY(tare_composing_node(&node, c, op, op, n, inputs));
    TARE_TRY(tare_node_set_type(node, "element_dtype", TARE_DT_FLOAT));
    *out = (struct tare_edge){ node, 0 };
    return tare_node_resolve(node);
}

/* ---- the functions ---- */

static tare_status new_function(struct tare_composing *out, const struct tare_composing *c, const struct tare_rnn *rnn,
                                const char *what) {
    struct tare_graph_model *model = c->graph->model;
    const char *stem = tare_arena_printf(&model->arena, "%s_%s", c->graph->name, what);
    const char *name = stem ? tare_model_unused_name(model, stem) : NULL;
    *out = *c;
    out->graph = name ? tare_model_add_function(model, name) : NULL;
    if (!out->graph) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count_values(rnn); i++)
        if (!tare_graph_add_arg(out->graph, i < FIXED ? fixed_values[i].name : "state", dtype_of(i)))
            return TARE_NO_MEMORY;
    return TARE_OK;
}

static tare_status build_condition(struct tare_composing *f) {
    struct tare_edge more;
    TARE_TRY(tare_composing_op(&more, f, "Less", "more", 2,
                               (struct tare_edge[]){ tare_composing_arg(f, STEP), tare_composing_arg(f, LIMIT) }));
    return tare_graph_add_return(f->graph, "more", TARE_DT_BOOL, more);
}

/* Index of the time step; counted from the end in a layer that runs backwards. */
static tare_status build_index(struct tare_edge *out, struct tare_composing *f, bool backwards, struct tare_edge next) {
    *out = tare_composing_arg(f, STEP);
    if (!backwards) return TARE_OK;
    return tare_composing_op(out, f, "Sub", "from_the_end", 2,
                             (struct tare_edge[]){ tare_composing_arg(f, LIMIT), next });
}

static tare_status build_body(struct tare_composing *f, const struct tare_composing *c, const struct tare_rnn *rnn,
                              int64_t columns) {
    struct tare_edge one, index, x, shape, values[MOST_VALUES], states[TARE_RNN_STATES];
    struct tare_edge weights[TARE_RNN_WEIGHTS] = { tare_composing_arg(f, RECURRENT), tare_composing_arg(f, BIAS) };
    for (size_t i = 0; i < count_values(rnn); i++)
        values[i] = tare_composing_arg(f, i);
    for (size_t i = 0; i < rnn->n_states; i++)
        states[i] = values[FIXED + i];
    TARE_TRY(tare_composing_int(&one, f, "one_step", 1));
    TARE_TRY(tare_composing_op(&values[STEP], f, "AddV2", "next", 2, (struct tare_edge[]){ values[STEP], one }));
    TARE_TRY(build_index(&index, f, tare_rnn_goes_backwards(c), values[STEP]));
    TARE_TRY(row_shape(&shape, f, "input_shape", columns));
    TARE_TRY(list_op(&x, f, "TensorListGetItem", 3, (struct tare_edge[]){ values[LIST_IN], index, shape }));
    if (rnn->prepare) TARE_TRY(rnn->prepare(f, weights));
    TARE_TRY(rnn->step(f, weights, x, states));
    TARE_TRY(list_op(&values[LIST_OUT], f, "TensorListSetItem", 3,
                     (struct tare_edge[]){ values[LIST_OUT], tare_composing_arg(f, STEP), states[0] }));
    for (size_t i = 0; i < rnn->n_states; i++)
        values[FIXED + i] = states[i];
    for (size_t i = 0; i < count_values(rnn); i++)
        TARE_TRY(tare_graph_add_return(f->graph, tare_arena_printf(&f->graph->model->arena, "value_%zu", i),
                                       dtype_of(i), values[i]));
    return TARE_OK;
}

/* ---- around the loop ---- */

/* The number of time steps: a constant if it is known, else read from the shape of the inputs. */
static tare_status count_steps(struct tare_edge *out, struct tare_composing *c) {
    const int axis = tare_rnn_time_axis(c);
    const int64_t known = tare_composing_shape(c, INPUTS).dims[axis];
    struct tare_edge shape, begin, end, stride, inputs = tare_composing_arg(c, INPUTS);
    struct tare_node *node;
    if (known > 0) return tare_composing_int(out, c, "time_steps", (int32_t)known);
    TARE_TRY(tare_composing_node(&node, c, "Shape", "shape", 1, &inputs));
    TARE_TRY(tare_node_set_type(node, "out_type", TARE_DT_INT32));
    TARE_TRY(tare_node_resolve(node));
    shape = (struct tare_edge){ node, 0 };
    TARE_TRY(tare_composing_ints(&begin, c, "time_steps/begin", 1, (int32_t[]){ axis }));
    TARE_TRY(tare_composing_ints(&end, c, "time_steps/end", 1, (int32_t[]){ axis + 1 }));
    TARE_TRY(tare_composing_ints(&stride, c, "time_steps/stride", 1, (int32_t[]){ 1 }));
    TARE_TRY(tare_composing_node(&node, c, "StridedSlice", "time_steps", 4,
                                 (struct tare_edge[]){ shape, begin, end, stride }));
    TARE_TRY(tare_node_set_int(node, "shrink_axis_mask", 1));
    *out = (struct tare_edge){ node, 0 };
    return tare_node_resolve(node);
}

/* [time, batch, …] from [batch, time, …] and back; as it is in a layer whose time comes first. */
static tare_status swap_time(struct tare_edge *out, struct tare_composing *c, const char *name,
                             struct tare_edge value) {
    static const int32_t swapped[3] = { 1, 0, 2 };
    struct tare_edge order;
    *out = value;
    if (tare_rnn_time_axis(c) == 0) return TARE_OK;
    TARE_TRY(tare_composing_ints(&order, c, "perm", 3, swapped));
    return tare_composing_op(out, c, "Transpose", name, 2, (struct tare_edge[]){ value, order });
}

/* The list of x K by time step. */
static tare_status build_inputs(struct tare_edge *out, struct tare_composing *c, const struct tare_rnn *rnn,
                                struct tare_edge steps, int64_t columns) {
    struct tare_edge inputs, any, width, shape, projected;
    struct tare_node *node;
    TARE_TRY(swap_time(&inputs, c, "time_major", tare_composing_arg(c, INPUTS)));
    TARE_TRY(tare_composing_int(&any, c, "any", -1));
    TARE_TRY(tare_composing_int(&width, c, "width", (int32_t)columns));
    TARE_TRY(tare_composing_node(&node, c, "Pack", "projected/shape", 3, (struct tare_edge[]){ steps, any, width }));
    TARE_TRY(tare_node_set_type(node, "T", TARE_DT_INT32));
    TARE_TRY(tare_node_set_int(node, "N", 3));
    TARE_TRY(tare_node_resolve(node));
    TARE_TRY(tare_rnn_project(&projected, c, inputs, rnn->kernel, (struct tare_edge){ node, 0 }));
    TARE_TRY(row_shape(&shape, c, "input_shape", columns));
    return list_op(out, c, "TensorListFromTensor", 2, (struct tare_edge[]){ projected, shape });
}

static tare_status build_loop(struct tare_node **out, struct tare_composing *c, const struct tare_rnn *rnn,
                              const struct tare_edge *values, const char *condition, const char *body) {
    int dtypes[MOST_VALUES];
    TARE_TRY(tare_composing_node(out, c, "StatelessWhile", "steps", count_values(rnn), values));
    for (size_t i = 0; i < count_values(rnn); i++)
        dtypes[i] = dtype_of(i);
    TARE_TRY(tare_node_set_type_list(*out, "T", dtypes, count_values(rnn)));
    TARE_TRY(tare_node_set_func(*out, "cond", condition));
    TARE_TRY(tare_node_set_func(*out, "body", body));
    return tare_node_resolve(*out);
}

static tare_status stack_outputs(struct tare_edge *out, struct tare_composing *c, struct tare_node *loop,
                                 int64_t units) {
    struct tare_edge shape, axis, stacked;
    if (tare_rnn_keeps_last(c)) {
        TARE_TRY(tare_composing_int(&axis, c, "time_axis", tare_rnn_time_axis(c)));
        return tare_composing_op(out, c, "ExpandDims", "outputs", 2, (struct tare_edge[]){ { loop, FIXED }, axis });
    }
    TARE_TRY(row_shape(&shape, c, "output_shape", units));
    TARE_TRY(list_op(&stacked, c, "TensorListStack", 2, (struct tare_edge[]){ { loop, LIST_OUT }, shape }));
    return swap_time(out, c, "outputs", stacked);
}

tare_status tare_rnn_build_loop(struct tare_edge *outputs, struct tare_edge *states, struct tare_composing *c,
                                const struct tare_rnn *rnn) {
    const struct tare_shape recurrent = tare_composing_shape(c, rnn->kernel + 1);
    const int64_t units = recurrent.dims[0], columns = recurrent.dims[1];
    struct tare_composing condition, body;
    struct tare_edge values[MOST_VALUES], shape;
    struct tare_node *loop;
    TARE_TRY(new_function(&condition, c, rnn, "more"));
    TARE_TRY(build_condition(&condition));
    TARE_TRY(new_function(&body, c, rnn, "step"));
    TARE_TRY(build_body(&body, c, rnn, columns));
    TARE_TRY(tare_composing_int(&values[STEP], c, "first", 0));
    TARE_TRY(count_steps(&values[LIMIT], c));
    TARE_TRY(build_inputs(&values[LIST_IN], c, rnn, values[LIMIT], columns));
    TARE_TRY(row_shape(&shape, c, "output_shape", units));
    TARE_TRY(list_op(&values[LIST_OUT], c, "TensorListReserve", 2, (struct tare_edge[]){ shape, values[LIMIT] }));
    values[RECURRENT] = tare_composing_arg(c, rnn->kernel + 1);
    values[BIAS] = tare_composing_arg(c, rnn->kernel + 2);
    for (size_t i = 0; i < rnn->n_states; i++)
        values[FIXED + i] = states[i];
    TARE_TRY(build_loop(&loop, c, rnn, values, condition.graph->name, body.graph->name));
    for (size_t i = 0; i < rnn->n_states; i++)
        states[i] = (struct tare_edge){ loop, (int)(FIXED + i) };
    return stack_outputs(outputs, c, loop, units);
}
