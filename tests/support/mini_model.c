#include "support/mini_model.h"
#include "interpreter/ops/builtin.h"

#include "interpreter/kernel.h"

#include <string.h>

struct mini_log mini_log;

static void note(const struct tare_kernel *kernel) {
    if (strlen(mini_log.order) + strlen(kernel->node->name) + 2 < sizeof mini_log.order) {
        strcat(mini_log.order, kernel->node->name);
        strcat(mini_log.order, " ");
    }
    mini_log.runs++;
}

static tare_status run_add(struct tare_kernel *kernel) {
    const struct tare_tensor *a = &kernel->inputs[0], *b = &kernel->inputs[1];
    note(kernel);
    mini_log.reused += kernel->may_reuse_input0;
    TARE_TRY(tare_kernel_output_like0(kernel, 0));
    for (int64_t i = 0; i < a->elements; i++) {
        if (a->dtype == TARE_DT_FLOAT) TARE_DATA(float, &kernel->outputs[0])
        [i] = TARE_CONST_DATA(float, a)[i] + TARE_CONST_DATA(float, b)[b->elements == 1 ? 0 : i];
        else TARE_DATA(int32_t, &kernel->outputs[0])[i] =
            TARE_CONST_DATA(int32_t, a)[i] + TARE_CONST_DATA(int32_t, b)[b->elements == 1 ? 0 : i];
    }
    return TARE_OK;
}

static tare_status run_less(struct tare_kernel *kernel) {
    struct tare_shape scalar = tare_shape_scalar();
    note(kernel);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &scalar));
    TARE_DATA(bool, &kernel->outputs[0])
    [0] = tare_tensor_get_f64(&kernel->inputs[0], 0) < tare_tensor_get_f64(&kernel->inputs[1], 0);
    return TARE_OK;
}

static tare_status run_effect(struct tare_kernel *kernel) {
    note(kernel);
    return tare_kernel_forward(kernel, 0, 0);
}

static tare_status run_fail(struct tare_kernel *kernel) {
    note(kernel);
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "it was asked to");
}

static const struct tare_op rows[] = {
    { .name = "TestAdd",
      .inputs = "a: T, b: T",
      .outputs = "c: T",
      .attrs = "T: {float, int32}",
      .run = run_add,
      .flags = TARE_OP_IN_PLACE | TARE_OP_ELEMENTWISE },
    { .name = "TestLess", .inputs = "a: T, b: T", .outputs = "c: bool", .attrs = "T: {float, int32}", .run = run_less },
    { .name = "TestEffect",
      .inputs = "x: T",
      .outputs = "y: T",
      .attrs = "T: type",
      .run = run_effect,
      .flags = TARE_OP_STATEFUL },
    { .name = "TestFail", .inputs = "x: T", .outputs = "y: T", .attrs = "T: type", .run = run_fail },
    { .name = "TestNothing", .inputs = "x: T", .outputs = "y: T", .attrs = "T: type" },
    { 0 },
};

void mini_ok(tare_status status) {
    if (status != TARE_OK) fail_msg("%s: %s", tare_status_name(status), tare_error_text());
}

void mini_fails(tare_status status, const char *part) {
    if (status == TARE_OK) fail_msg("it went well (expected a failure with '%s')", part);
    if (!strstr(tare_error_text(), part)) fail_msg("error '%s' (expected one with '%s')", tare_error_text(), part);
}

struct tare_graph_model *mini_model_new(void) {
    struct tare_graph_model *model = tare_model_new(tare_ops_builtin());
    assert_non_null(model);
    memset(&mini_log, 0, sizeof mini_log);
    model->custom_ops = tare_ops_new(tare_ops_builtin());
    for (const struct tare_op *row = rows; row->name; row++)
        mini_ok(tare_ops_add(model->custom_ops, row));
    return model;
}

static const struct tare_op_attr *find_attr(const struct tare_node *node, const char *name) {
    for (size_t i = 0; node->def && i < node->def->n_attrs; i++)
        if (strcmp(node->def->attrs[i].name, name) == 0) return &node->def->attrs[i];
    return NULL;
}

static struct tare_node *open_node(struct tare_graph *graph, const char *op, const char *name, int n, va_list edges) {
    struct tare_node *node = tare_graph_add(graph, op, name);
    assert_non_null(node);
    for (int i = 0; i < n; i++)
        mini_ok(tare_node_add_input(node, va_arg(edges, struct tare_edge)));
    mini_infer_attrs(node);
    return node;
}

void mini_infer_attrs(struct tare_node *node) {
    int dtypes[64];
    const size_t n = node->n_inputs;
    size_t at = 0;
    assert_true(n <= sizeof dtypes / sizeof *dtypes);
    for (size_t i = 0; i < n; i++)
        dtypes[i] = tare_edge_dtype(node->inputs[i]);
    for (size_t i = 0; node->def && i < node->def->n_inputs && at < n; i++) {
        const struct tare_op_arg *arg = &node->def->inputs[i];
        size_t count = 1;
        if (arg->number_attr) {
            count = n - at - (node->def->n_inputs - i - 1);
            mini_ok(tare_node_set_int(node, arg->number_attr, (int64_t)count));
        }
        if (arg->type_list_attr) {
            count = n - at - (node->def->n_inputs - i - 1);
            mini_ok(tare_node_set_type_list(node, arg->type_list_attr, dtypes + at, count));
        }
        if (arg->type_attr && find_attr(node, arg->type_attr))
            mini_ok(tare_node_set_type(node, arg->type_attr, dtypes[at]));
        at += count;
    }
}

struct tare_node *mini_open(struct tare_graph *graph, const char *op, const char *name, int n, ...) {
    va_list edges;
    va_start(edges, n);
    struct tare_node *node = open_node(graph, op, name, n, edges);
    va_end(edges);
    return node;
}

struct tare_edge mini_done(struct tare_node *node) {
    mini_ok(tare_node_resolve(node));
    return (struct tare_edge){ node, 0 };
}

struct tare_edge mini_node(struct tare_graph *graph, const char *op, const char *name, int n, ...) {
    va_list edges;
    va_start(edges, n);
    struct tare_node *node = open_node(graph, op, name, n, edges);
    va_end(edges);
    return mini_done(node);
}

struct tare_edge mini_output(struct tare_edge edge, int index) {
    edge.index = index;
    return edge;
}

struct tare_edge mini_placeholder(struct tare_graph *graph, const char *name, int dtype) {
    struct tare_node *node = mini_open(graph, "Placeholder", name, 0);
    mini_ok(tare_node_set_type(node, "dtype", dtype));
    return mini_done(node);
}

static struct tare_edge constant(struct tare_graph *graph, const char *name, struct tare_tensor *value) {
    struct tare_node *node = tare_graph_add_const(graph, name, value);
    tare_tensor_reset(value);
    assert_non_null(node);
    return (struct tare_edge){ node, 0 };
}

struct tare_tensor mini_scalar(int dtype, double value) {
    struct tare_tensor tensor;
    struct tare_shape shape = tare_shape_scalar();
    mini_ok(tare_tensor_new(&tensor, dtype, &shape));
    if (dtype == TARE_DT_FLOAT) TARE_DATA(float, &tensor)[0] = (float)value;
    if (dtype == TARE_DT_INT32) TARE_DATA(int32_t, &tensor)[0] = (int32_t)value;
    if (dtype == TARE_DT_INT64) TARE_DATA(int64_t, &tensor)[0] = (int64_t)value;
    if (dtype == TARE_DT_BOOL) TARE_DATA(bool, &tensor)[0] = value != 0;
    return tensor;
}

struct tare_edge mini_float(struct tare_graph *graph, const char *name, float value) {
    struct tare_tensor tensor = mini_scalar(TARE_DT_FLOAT, value);
    return constant(graph, name, &tensor);
}

struct tare_edge mini_int(struct tare_graph *graph, const char *name, int32_t value) {
    struct tare_tensor tensor = mini_scalar(TARE_DT_INT32, value);
    return constant(graph, name, &tensor);
}

struct tare_edge mini_ints(struct tare_graph *graph, const char *name, int n, const int32_t *values) {
    struct tare_shape shape = tare_shape_make(1, n);
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_INT32, &shape, values));
    return constant(graph, name, &tensor);
}

struct tare_edge mini_bool(struct tare_graph *graph, const char *name, bool value) {
    struct tare_tensor tensor = mini_scalar(TARE_DT_BOOL, value);
    return constant(graph, name, &tensor);
}

struct tare_edge mini_strings(struct tare_graph *graph, const char *name, int n, const char *const *values) {
    struct tare_shape shape = tare_shape_make(1, n);
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_STRING, &shape));
    for (int i = 0; i < n; i++)
        mini_ok(tare_tensor_set_string(&tensor, i, values[i], strlen(values[i])));
    return constant(graph, name, &tensor);
}

/* Every function that Keras exports lists the shapes of its arguments: so do those of the tests, or what passes make of
 * the list would be seen on real models only. */
static void list_input_shape(struct tare_graph *function) {
    static const char NAME[] = "_input_shapes";
    struct tare_arena *arena = &function->model->arena;
    const struct tare_attr *old = tare_graph_find_attr(function, NAME);
    const struct tare_shape unknown = tare_shape_unknown();
    struct tare_attr *attrs = tare_arena_extend(arena, function->attrs, function->n_attrs, old ? 0 : 1, sizeof *attrs);
    struct tare_attr *list = attrs ? &attrs[old ? (size_t)(old - function->attrs) : function->n_attrs] : NULL;
    struct tare_shape *shape = tare_arena_extend(arena, &unknown, 1, 0, sizeof unknown);
    assert_true(list && shape);
    function->attrs = attrs;
    if (!old) {
        *list = (struct tare_attr){ .name = NAME, .kind = TARE_ATTR_SHAPE, .is_list = true };
        function->attrs_capacity = ++function->n_attrs;
    }
    list->items = tare_arena_extend(arena, list->items, list->count, 1, sizeof *list->items);
    assert_non_null(list->items);
    list->items[list->count++].shape = shape;
}

struct tare_edge mini_arg(struct tare_graph *function, const char *name, int dtype) {
    struct tare_node *node = tare_graph_add_arg(function, name, dtype);
    assert_non_null(node);
    list_input_shape(function);
    return (struct tare_edge){ node, 0 };
}

void mini_return(struct tare_graph *function, const char *name, struct tare_edge edge) {
    mini_ok(tare_graph_add_return(function, name, tare_edge_dtype(edge), edge));
}

struct tare_edge mini_call(struct tare_graph *graph, const char *op, const char *name, const struct tare_graph *callee,
                           int n, ...) {
    va_list edges;
    int dtypes[64];
    va_start(edges, n);
    struct tare_node *node = open_node(graph, op, name, n, edges);
    va_end(edges);
    for (size_t i = 0; i < callee->n_returns; i++)
        dtypes[i] = callee->returns[i].dtype;
    mini_ok(tare_node_set_func(node, "f", callee->name));
    mini_ok(tare_node_set_type_list(node, "Tout", dtypes, callee->n_returns));
    return mini_done(node);
}

void mini_add_variable(struct tare_graph_model *model, struct tare_node *node, struct tare_tensor value) {
    struct tare_variable *grown =
        tare_arena_extend(&model->arena, model->variables, model->n_variables, 1, sizeof *grown);
    assert_non_null(grown);
    grown[model->n_variables++] = (struct tare_variable){ .node = node,
                                                          .shared_name = node->name,
                                                          .dtype = value.dtype,
                                                          .shape = value.shape,
                                                          .value = value,
                                                          .object_id = -1 };
    model->variables = grown;
}

struct tare_edge mini_variable(struct tare_graph_model *model, const char *name, float value) {
    struct tare_node *node = mini_open(model->main, "VarHandleOp", name, 0);
    struct tare_shape scalar = tare_shape_scalar();
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(node, "shape", &scalar));
    mini_add_variable(model, node, mini_scalar(TARE_DT_FLOAT, value));
    return mini_done(node);
}

struct tare_session *mini_session(const struct tare_graph_model *model) {
    struct tare_session *session;
    mini_ok(tare_session_new(&session, model, NULL));
    return session;
}

struct tare_tensor mini_run(struct tare_session *session, struct tare_edge feed, double value, struct tare_edge fetch) {
    struct tare_tensor fed = { 0 }, result;
    if (feed.node) fed = mini_scalar(tare_edge_dtype(feed), value);
    mini_ok(tare_session_run(session, &feed, &fed, feed.node != NULL, &fetch, &result, 1, NULL, 0));
    if (feed.node) tare_tensor_reset(&fed);
    return result;
}

double mini_number(struct tare_session *session, struct tare_edge feed, double value, struct tare_edge fetch) {
    struct tare_tensor result = mini_run(session, feed, value, fetch);
    assert_int_equal(result.elements, 1);
    double number = tare_tensor_get_f64(&result, 0);
    tare_tensor_reset(&result);
    return number;
}
