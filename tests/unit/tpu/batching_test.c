/* Batchers before functions: their position, their attributes, and the functions that they refuse. */
#include "tpu/batching.h"
#include "tpu/placement.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <string.h>

static const int64_t sizes[] = { 2, 4, 8 };
static const struct tare_batch_options plain = {
    .num_batch_threads = 2,
    .max_batch_size = 8,
    .batch_timeout_micros = 5000,
    .max_enqueued_batches = 10,
    .allowed_batch_sizes = sizes,
    .n_allowed = 3,
};

/* main: y = f(x, handle) with x of the given shape; f(handle, x) = x * variable, after a call of inner(x). */
struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *function;
    struct tare_edge x, y;
    struct tare_binding in, out;
    struct tare_signature signature;
    struct tare_alias alias;
    struct tare_batching_result result;
};

static struct tare_edge shaped(struct tare_graph *graph, const char *name, struct tare_shape shape) {
    struct tare_node *node = mini_open(graph, "Placeholder", name, 0);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(node, "shape", &shape));
    return mini_done(node);
}

static void set_up(struct fixture *f, struct tare_shape shape) {
    struct tare_edge handle, arg;
    struct tare_node *read;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->function = tare_model_add_function(f->model, "__inference_f_1");
    handle = mini_arg(f->function, "handle", TARE_DT_RESOURCE);
    arg = mini_arg(f->function, "x", TARE_DT_FLOAT);
    read = mini_open(f->function, "ReadVariableOp", "read", 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_return(f->function, "y", mini_node(f->function, "Mul", "mul", 2, arg, mini_done(read)));
    f->x = shaped(f->model->main, "x", shape);
    f->y = mini_call(f->model->main, "StatefulPartitionedCall", "call", f->function, 2, mini_variable(f->model, "v", 3),
                     f->x);
    f->in = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = f->x };
    f->out = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = f->y };
    f->signature = (struct tare_signature){
        .key = "serving_default", .inputs = &f->in, .n_inputs = 1, .outputs = &f->out, .n_outputs = 1
    };
    f->alias = (struct tare_alias){ f->function->name, "tpu_func" };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
    f->model->aliases = &f->alias;
    f->model->n_aliases = 1;
}

static void place(struct fixture *f) {
    struct tare_tpu_function function = { f->function, NULL, "tpu_func" };
    struct tare_tpu_placed *placed;
    mini_ok(tare_tpu_place(&placed, &f->arena, f->model, &function, 1, &(struct tare_tpu_place_options){ 0 }));
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = f->model->n_aliases = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static tare_status batch(struct fixture *f, const struct tare_batch_options *options, size_t count) {
    return tare_tpu_batch(&f->result, &f->arena, f->model, options, count);
}

static struct tare_batch_options of(enum tare_batch_component component, const char *name) {
    struct tare_batch_options options = plain;
    options.component = component;
    options.name = name;
    return options;
}

/* f(row) = 3 row, two rows at once */
static void check_runs(const struct fixture *f) {
    float rows[] = { 1, -2, 0.5f, 4 };
    struct tare_shape shape = tare_shape_make(2, 2, 2);
    struct tare_session *session = mini_session(f->model);
    struct tare_tensor x, y = { 0 };
    mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &shape, rows));
    mini_ok(tare_session_run(session, &f->x, &x, 1, &f->y, &y, 1, NULL, 0));
    for (int i = 0; i < 4; i++)
        assert_float_equal(TARE_CONST_DATA(float, &y)[i], 3 * rows[i], 0);
    tare_tensor_reset(&x);
    tare_tensor_reset(&y);
    tare_session_free(session);
}

static void a_placed_function__is_batched_under_its_own_name(void **state) {
    struct fixture f;
    struct tare_node *node;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 2));
    place(&f);
    mini_ok(batch(&f, &plain, 1));
    graph_check_dtypes(f.model);
    assert_int_equal(f.result.inserted, 1);
    assert_int_equal(f.result.updated, 0);
    node = graph_only(f.function, "BatchFunction");
    assert_int_equal(f.function->n_nodes, 1);
    assert_string_equal(tare_node_function(node, "f")->name, "__inference_f_1_with_batch");
    assert_non_null(graph_only(tare_node_function(node, "f"), "TPUPartitionedCall"));
    assert_int_equal(tare_node_list(node, "Tin")->count, 1);
    assert_int_equal(tare_node_list(node, "Tcaptured")->items[0].type, TARE_DT_RESOURCE);
    assert_int_equal(tare_node_function(node, "f")->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    check_runs(&f);
    tear_down(&f);
}

static void attributes__are_the_options_without_defaults(void **state) {
    struct fixture f;
    struct tare_node *node;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 2));
    place(&f);
    mini_ok(batch(&f, &plain, 1));
    node = graph_only(f.function, "BatchFunction");
    assert_int_equal(tare_node_int(node, "num_batch_threads", 0), 2);
    assert_int_equal(tare_node_int(node, "max_batch_size", 0), 8);
    assert_int_equal(tare_node_int(node, "batch_timeout_micros", 0), 5000);
    assert_null(tare_node_find_attr(node, "max_enqueued_batches"));
    assert_null(tare_node_find_attr(node, "batch_padding_policy"));
    assert_int_equal(tare_node_list(node, "allowed_batch_sizes")->count, 3);
    assert_true(tare_node_bool(node, "enable_large_batch_splitting", false));
    tear_down(&f);
}

static void an_existing_batcher__gets_the_new_numbers(void **state) {
    struct tare_batch_options other = plain;
    struct fixture f;
    struct tare_node *node;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 2));
    place(&f);
    mini_ok(batch(&f, &plain, 1));
    other.max_batch_size = 16;
    other.n_allowed = 0;
    other.max_enqueued_batches = 50;
    other.disable_large_batch_splitting = true;
    mini_ok(batch(&f, &other, 1));
    assert_int_equal(f.result.inserted, 0);
    assert_int_equal(f.result.updated, 1);
    node = graph_only(f.function, "BatchFunction");
    assert_int_equal(tare_node_int(node, "max_batch_size", 0), 16);
    assert_int_equal(tare_node_int(node, "max_enqueued_batches", 0), 50);
    assert_null(tare_node_find_attr(node, "allowed_batch_sizes"));
    assert_null(tare_node_find_attr(node, "enable_large_batch_splitting"));
    tear_down(&f);
}

static void a_function__is_batched_by_each_of_its_names(void **state) {
    struct tare_batch_options options[] = { of(TARE_BATCH_ALIAS, "tpu_func"),
                                            of(TARE_BATCH_CONCRETE, "__inference_f_1"),
                                            of(TARE_BATCH_SIGNATURE, "serving_default") };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct fixture f;
        set_up(&f, tare_shape_make(2, -1, 2));
        mini_ok(batch(&f, &options[i], 1));
        graph_check_dtypes(f.model);
        assert_non_null(graph_only(f.function, "BatchFunction"));
        check_runs(&f);
        tear_down(&f);
    }
}

static void batching__once_and_not_on_the_tpu(void **state) {
    struct tare_batch_options twice[] = { of(TARE_BATCH_ALIAS, "tpu_func"),
                                          of(TARE_BATCH_SIGNATURE, "serving_default") };
    struct tare_batch_options unknown = of(TARE_BATCH_ALIAS, "tpu_fun"), inner = of(TARE_BATCH_CONCRETE, "inner");
    struct tare_tpu_function function;
    struct tare_tpu_placed *placed;
    struct tare_graph *graph, *outer;
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 2));
    mini_fails(batch(&f, &plain, 1), "nothing to batch");
    mini_fails(batch(&f, &unknown, 1), "known aliases: \"tpu_func\"");
    mini_fails(batch(&f, twice, 2), "two batch_options apply");
    graph = tare_model_add_function(f.model, "inner");
    mini_return(graph, "y", mini_node(graph, "Relu", "relu", 1, mini_arg(graph, "x", TARE_DT_FLOAT)));
    outer = tare_model_add_function(f.model, "outer");
    mini_return(outer, "y", mini_call(outer, "PartitionedCall", "call", graph, 1, mini_arg(outer, "x", TARE_DT_FLOAT)));
    function = (struct tare_tpu_function){ outer, NULL, "outer" };
    mini_ok(tare_tpu_place(&placed, &f.arena, f.model, &function, 1, &(struct tare_tpu_place_options){ 0 }));
    mini_fails(batch(&f, &inner, 1), "inside the TPU function tpu_fn_icv2_outer");
    tear_down(&f);
}

static void shapes__that_cannot_be_batched_are_refused(void **state) {
    struct tare_batch_options signature = of(TARE_BATCH_SIGNATURE, "serving_default");
    static const struct {
        int rank, d0;
        const char *text;
    } cases[] = {
        { 0, 0, "Batching input tensors must have at least one dimension: input 'x' is a scalar" },
        { 2, 4, "Dimensions of inputs should match: input 'x' has shape [4,2]" },
    };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct fixture f;
        set_up(&f, tare_shape_make(cases[i].rank, cases[i].d0, 2));
        mini_fails(batch(&f, &signature, 1), cases[i].text);
        place(&f);
        mini_fails(batch(&f, &plain, 1), cases[i].text);
        assert_null(tare_model_find_function(f.model, "__inference_f_1_with_batch"));
        tear_down(&f);
    }
}

static void an_output_without_batch_dimension__is_refused(void **state) {
    struct tare_batch_options options = of(TARE_BATCH_CONCRETE, "sum");
    struct fixture f;
    struct tare_graph *graph;
    struct tare_edge arg;
    struct tare_node *sum;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 2));
    graph = tare_model_add_function(f.model, "sum");
    arg = mini_arg(graph, "x", TARE_DT_FLOAT);
    sum = mini_open(graph, "Sum", "total", 2, arg, mini_ints(graph, "axes", 2, (int32_t[]){ 0, 1 }));
    mini_return(graph, "y", mini_done(sum));
    mini_call(f.model->main, "PartitionedCall", "sum", graph, 1, f.x);
    mini_fails(batch(&f, &options, 1), "Batched output tensor has 0 dimensions: output 'y' (node 'total')");
    tear_down(&f);
}

static void a_sparse_signature_input__is_refused(void **state) {
    struct tare_batch_options options = of(TARE_BATCH_SIGNATURE, "serving_default");
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 2));
    f.in.whole = &(struct tare_composite_tensor){ "x", "SparseTensor" };
    mini_fails(batch(&f, &options, 1), "BatchFunction does not support SparseTensors as inputs or outputs: input 'x'");
    tear_down(&f);
}

/* Nothing is wrong with the shapes as the model has them: only a batch shows that the output has twice its rows. */
static void an_output_of_twice_the_batch__is_refused(void **state) {
    struct fixture f;
    struct tare_node *concat;
    struct tare_edge arg;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 2));
    arg = f.function->returns[0].edge;
    concat = mini_open(f.function, "ConcatV2", "twice", 3, arg, arg, mini_int(f.function, "axis", 0));
    mini_ok(tare_node_set_int(concat, "N", 2));
    mini_ok(tare_node_set_type(concat, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(concat, "Tidx", TARE_DT_INT32));
    tare_graph_set_return(f.function, 0, mini_done(concat));
    place(&f);
    mini_fails(batch(&f, &plain, 1), "output 'y' (node");
    mini_fails(batch(&f, &plain, 1), "has shape [10,2] for a batch of 5");
    tear_down(&f);
}

/* y[0:3]: three rows whatever the batch, though the rank of the input is unknown. */
static void an_output_of_fixed_rows__is_refused_behind_an_unknown_rank(void **state) {
    struct fixture f;
    struct tare_node *slice;
    struct tare_edge begin, end, strides;
    (void)state;
    set_up(&f, tare_shape_unknown());
    begin = mini_ints(f.function, "begin", 1, (int32_t[]){ 0 });
    end = mini_ints(f.function, "end", 1, (int32_t[]){ 3 });
    strides = mini_ints(f.function, "strides", 1, (int32_t[]){ 1 });
    slice = mini_open(f.function, "StridedSlice", "three", 4, f.function->returns[0].edge, begin, end, strides);
    mini_ok(tare_node_set_type(slice, "Index", TARE_DT_INT32));
    tare_graph_set_return(f.function, 0, mini_done(slice));
    place(&f);
    mini_fails(batch(&f, &plain, 1), "output 'y' (node");
    mini_fails(batch(&f, &plain, 1), "has shape [3] for a batch of 11");
    tear_down(&f);
}

/* As many rows as the input has dimensions, of which a batch may have as many. */
static void the_shape_of_an_input__is_refused_behind_an_unknown_rank(void **state) {
    struct fixture f;
    struct tare_node *shape, *cast;
    (void)state;
    set_up(&f, tare_shape_unknown());
    shape = mini_open(f.function, "Shape", "shape", 1, f.function->returns[0].edge);
    mini_ok(tare_node_set_type(shape, "out_type", TARE_DT_INT32));
    cast = mini_open(f.function, "Cast", "cast", 1, mini_done(shape));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
    tare_graph_set_return(f.function, 0, mini_done(cast));
    place(&f);
    mini_fails(batch(&f, &plain, 1), "has shape [1] for a batch of 11");
    tear_down(&f);
}

/* Elements of a variable: the same rows for every batch, though shape inference does not know how many. */
static void an_output_without_batched_input__is_refused_through_calls(void **state) {
    struct fixture f;
    struct tare_edge read, positive;
    struct tare_node *cast;
    (void)state;
    set_up(&f, tare_shape_unknown());
    read = (struct tare_edge){ tare_graph_find(f.function, "read"), 0 };
    positive = mini_node(f.function, "Greater", "positive", 2, read, mini_float(f.function, "zero", 0));
    cast = mini_open(f.function, "Cast", "cast", 1, mini_node(f.function, "Where", "where", 1, positive));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_FLOAT));
    tare_graph_set_return(f.function, 0, mini_done(cast));
    place(&f); /* the variable is read in the TPU function */
    mini_fails(batch(&f, &plain, 1), "depends on no batched input, so it has the same number of rows for every batch");
    tear_down(&f);
}

/* keep(x): indices of positive elements, whose number is not known; returns the call. */
static struct tare_edge keep_positive(struct fixture *f) {
    struct tare_graph *graph = tare_model_add_function(f->model, "keep");
    const struct tare_edge arg = mini_arg(graph, "x", TARE_DT_FLOAT), zero = mini_float(graph, "zero", 0);
    mini_return(graph, "y",
                mini_node(graph, "Where", "where", 1, mini_node(graph, "Greater", "positive", 2, arg, zero)));
    return mini_call(f->model->main, "PartitionedCall", "keep", graph, 1, f->x);
}

/* TensorFlow's own inference found more than ours: a loop of four steps, say. */
static void an_output_of_declared_rows__is_refused(void **state) {
    struct tare_batch_options options = of(TARE_BATCH_CONCRETE, "keep");
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(1, -1));
    f.out.edge = keep_positive(&f);
    f.out.shape = tare_shape_make(2, 4, 1);
    mini_fails(batch(&f, &options, 1), "output 'y' (node 'where') has 4 rows according to the signature, whatever");
    tear_down(&f);
}

static void an_output_whose_rows_are_not_known__is_noted(void **state) {
    struct tare_batch_options options = of(TARE_BATCH_CONCRETE, "keep");
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(1, -1));
    keep_positive(&f);
    mini_ok(batch(&f, &options, 1));
    assert_int_equal(f.result.n_notes, 1);
    assert_non_null(strstr(f.result.notes[0], "the number of rows of output 'y' (node 'where') is not known before it "
                                              "runs"));
    tear_down(&f);
}

/* x·xᵀ has a row and a column per example: a request's columns depend on what is batched with it. */
static void an_output_whose_columns_follow_the_batch__is_noted(void **state) {
    struct tare_batch_options options = of(TARE_BATCH_CONCRETE, "products");
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 3));
    struct tare_graph *graph = tare_model_add_function(f.model, "products");
    const struct tare_edge arg = mini_arg(graph, "x", TARE_DT_FLOAT);
    struct tare_node *product = mini_open(graph, "MatMul", "product", 2, arg, arg);
    mini_ok(tare_node_set_bool(product, "transpose_b", true));
    mini_return(graph, "y", mini_done(product));
    mini_call(f.model->main, "PartitionedCall", "products", graph, 1, f.x);
    mini_ok(batch(&f, &options, 1));
    assert_int_equal(f.result.n_notes, 1);
    assert_non_null(strstr(f.result.notes[0], "output 'y' (node 'product') has shape [5,5] for a batch of 5, and other "
                                              "columns for other batches"));
    tear_down(&f);
}

/* A function of x, whose first node is `op` along `axis`: what the batcher finds. */
static const char *mixing_of(struct fixture *f, const char *op, int axis) {
    struct tare_batch_options options = of(TARE_BATCH_CONCRETE, "rows");
    struct tare_graph *graph;
    struct tare_edge arg, y;
    struct tare_node *node;
    set_up(f, tare_shape_make(2, -1, 3));
    graph = tare_model_add_function(f->model, "rows");
    arg = mini_arg(graph, "x", TARE_DT_FLOAT);
    node = mini_open(graph, op, "mixes", 2, arg, mini_int(graph, "axis", axis));
    if (strcmp(op, "Mean") == 0) mini_ok(tare_node_set_bool(node, "keep_dims", true));
    y = mini_done(node);
    mini_return(graph, "y", mini_node(graph, "Sub", "y", 2, arg, y));
    mini_call(f->model->main, "PartitionedCall", "rows", graph, 1, f->x);
    mini_ok(batch(f, &options, 1));
    return f->result.mixing ? f->result.mixing : "";
}

static void computation_along_the_batch__is_found(void **state) {
    static const struct {
        const char *op, *text;
    } cases[] = { { "Mean", "node 'mixes' (Mean) reduces over the rows" },
                  { "Cumsum", "node 'mixes' (Cumsum) accumulates over the rows" } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        assert_non_null(strstr(mixing_of(&f, cases[i].op, 0), cases[i].text));
        tear_down(&f);
        assert_string_equal(mixing_of(&f, cases[i].op, 1), "");
        tear_down(&f);
    }
}

/* x + 0 · max(x): what the maximum is makes no difference. */
static void computation_along_the_batch_that_is_multiplied_by_0__is_not_found(void **state) {
    struct tare_batch_options options = of(TARE_BATCH_CONCRETE, "rows");
    (void)state;
    for (int factor = 0; factor < 2; factor++) {
        struct fixture f;
        set_up(&f, tare_shape_make(2, -1, 3));
        struct tare_graph *graph = tare_model_add_function(f.model, "rows");
        const struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
        const struct tare_edge max = mini_node(graph, "Max", "mixes", 2, x, mini_int(graph, "axis", 0));
        const struct tare_edge product =
            mini_node(graph, "Mul", "product", 2, mini_float(graph, "factor", (float)factor), max);
        mini_return(graph, "y", mini_node(graph, "AddV2", "y", 2, x, product));
        mini_call(f.model->main, "PartitionedCall", "rows", graph, 1, f.x);
        mini_ok(batch(&f, &options, 1));
        assert_int_equal(f.result.mixing != NULL, factor);
        tear_down(&f);
    }
}

/* What is computed from x by an index of each row. */
typedef struct tare_edge (*by_index)(struct tare_graph *graph, struct tare_edge x, struct tare_edge ids);

static struct tare_edge sums_of_segments(struct tare_graph *graph, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge sums = mini_node(graph, "UnsortedSegmentSum", "mixes", 3, x, ids, mini_int(graph, "n", 3));
    return mini_node(graph, "GatherV2", "y", 3, sums, ids, mini_int(graph, "axis", 0));
}

static struct tare_edge scattered_rows(struct tare_graph *graph, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge indices = mini_node(graph, "ExpandDims", "indices", 2, ids, mini_int(graph, "axis", 1));
    return mini_node(graph, "TensorScatterAdd", "mixes", 3, x, indices, x);
}

/* Which rows have the index of which. */
static struct tare_edge pairs_of_rows(struct tare_graph *graph, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge column = mini_node(graph, "ExpandDims", "column", 2, ids, mini_int(graph, "one", 1));
    struct tare_node *equal = mini_open(graph, "Equal", "mixes", 2, column,
                                        mini_node(graph, "ExpandDims", "row", 2, ids, mini_int(graph, "zero", 0)));
    struct tare_node *same = mini_open(graph, "Cast", "same", 1, mini_done(equal));
    mini_ok(tare_node_set_type(same, "DstT", TARE_DT_FLOAT));
    return mini_node(graph, "MatMul", "y", 2, mini_done(same), x);
}

/* The element of each row that the index names, by its position among the elements of all rows. */
static struct tare_edge elements_of_rows(struct tare_graph *graph, struct tare_edge x, struct tare_edge ids) {
    const struct tare_edge rows = mini_node(graph, "Size", "rows", 1, ids);
    struct tare_edge first =
        mini_node(graph, "Range", "range", 3, mini_int(graph, "start", 0), rows, mini_int(graph, "delta", 1));
    const int32_t flat[] = { -1 };
    first = mini_node(graph, "Mul", "first", 2, first, mini_int(graph, "width", 3));
    return mini_node(graph, "GatherV2", "y", 3,
                     mini_node(graph, "Reshape", "flat", 2, x, mini_ints(graph, "shape", 1, flat)),
                     mini_node(graph, "AddV2", "positions", 2, ids, first), mini_int(graph, "axis", 0));
}

static void rows_that_meet_by_an_index__are_found(void **state) {
    static const struct {
        by_index compute;
        const char *text;
    } cases[] = {
        { sums_of_segments, "function rows: node 'mixes' (UnsortedSegmentSum) reduces rows by an index" },
        { scattered_rows, "function rows: node 'mixes' (TensorScatterAdd) writes rows by an index" },
        { pairs_of_rows, "function rows: node 'mixes' (Equal) combines rows with each other" },
        { elements_of_rows, NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_batch_options options = of(TARE_BATCH_CONCRETE, "rows");
        struct fixture f;
        set_up(&f, tare_shape_make(2, -1, 3));
        struct tare_graph *graph = tare_model_add_function(f.model, "rows");
        const struct tare_edge x = mini_arg(graph, "x", TARE_DT_FLOAT);
        struct tare_node *largest = mini_open(graph, "ArgMax", "ids", 2, x, mini_int(graph, "last", 1));
        mini_ok(tare_node_set_type(largest, "output_type", TARE_DT_INT32));
        mini_return(graph, "y", cases[i].compute(graph, x, mini_done(largest)));
        mini_call(f.model->main, "PartitionedCall", "rows", graph, 1, f.x);
        mini_ok(batch(&f, &options, 1));
        if (cases[i].text)
            assert_string_equal(f.result.mixing, cases[i].text);
        else
            assert_null(f.result.mixing);
        tear_down(&f);
    }
}

/* Squeeze without axes removes a batch of 1. */
static void batches_of_one_row_that_fail__are_a_warning(void **state) {
    struct tare_batch_options options = of(TARE_BATCH_CONCRETE, "squeeze");
    struct tare_graph *graph;
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(3, -1, 1, 3));
    graph = tare_model_add_function(f.model, "squeeze");
    mini_return(graph, "y", mini_node(graph, "Squeeze", "squeeze", 1, mini_arg(graph, "x", TARE_DT_FLOAT)));
    mini_call(f.model->main, "PartitionedCall", "squeeze", graph, 1, f.x);
    mini_ok(batch(&f, &options, 1));
    assert_int_equal(f.result.n_warnings, 1);
    assert_non_null(strstr(f.result.warnings[0], "output 'y' (node 'squeeze') has shape [3] for a batch of 1"));
    tear_down(&f);
}

static void open_dimensions__are_noted(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(3, -1, -1, 4));
    place(&f);
    mini_ok(batch(&f, &plain, 1));
    assert_int_equal(f.result.n_notes, 1);
    assert_non_null(strstr(f.result.notes[0],
                           "input 'x' has shape [?,?,4], and requests whose dimension 1 differs will be "
                           "refused: Dimensions of inputs should match"));
    tear_down(&f);
}

/* The entry for every TPU function does not reach f: one caller has a batcher of its own, the other one none. */
static void a_signature_that_passes_the_batcher_of_another__is_warned_of(void **state) {
    const struct tare_batch_options options[] = { of(TARE_BATCH_SIGNATURE, "outer"), plain };
    struct tare_signature signatures[2];
    struct tare_edge handle, x, call;
    struct tare_graph *outer;
    struct tare_binding out;
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 2));
    outer = tare_model_add_function(f.model, "outer");
    handle = mini_arg(outer, "handle", TARE_DT_RESOURCE);
    x = mini_arg(outer, "x", TARE_DT_FLOAT);
    mini_return(outer, "y", mini_call(outer, "StatefulPartitionedCall", "inner", f.function, 2, handle, x));
    call = mini_call(f.model->main, "StatefulPartitionedCall", "outer", outer, 2, mini_variable(f.model, "w", 3), f.x);
    out = f.out;
    out.edge = call;
    signatures[0] = signatures[1] = f.signature;
    signatures[1].key = "outer";
    signatures[1].outputs = &out;
    f.model->signatures = signatures;
    f.model->n_signatures = 2;
    place(&f);
    mini_ok(batch(&f, options, 2));
    assert_int_equal(f.result.inserted, 1);
    assert_int_equal(f.result.n_warnings, 1);
    assert_string_equal(f.result.warnings[0],
                        "function __inference_f_1, which is batched in outer_with_batch, is not for signature "
                        "'serving_default': its requests reach the TPU one by one (batch_options { signature_name: "
                        "\"serving_default\" } batches them)");
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_placed_function__is_batched_under_its_own_name),
        cmocka_unit_test(attributes__are_the_options_without_defaults),
        cmocka_unit_test(an_existing_batcher__gets_the_new_numbers),
        cmocka_unit_test(a_function__is_batched_by_each_of_its_names),
        cmocka_unit_test(batching__once_and_not_on_the_tpu),
        cmocka_unit_test(a_signature_that_passes_the_batcher_of_another__is_warned_of),
        cmocka_unit_test(shapes__that_cannot_be_batched_are_refused),
        cmocka_unit_test(an_output_without_batch_dimension__is_refused),
        cmocka_unit_test(a_sparse_signature_input__is_refused),
        cmocka_unit_test(an_output_of_twice_the_batch__is_refused),
        cmocka_unit_test(an_output_of_fixed_rows__is_refused_behind_an_unknown_rank),
        cmocka_unit_test(the_shape_of_an_input__is_refused_behind_an_unknown_rank),
        cmocka_unit_test(an_output_without_batched_input__is_refused_through_calls),
        cmocka_unit_test(an_output_of_declared_rows__is_refused),
        cmocka_unit_test(an_output_whose_rows_are_not_known__is_noted),
        cmocka_unit_test(an_output_whose_columns_follow_the_batch__is_noted),
        cmocka_unit_test(computation_along_the_batch__is_found),
        cmocka_unit_test(computation_along_the_batch_that_is_multiplied_by_0__is_not_found),
        cmocka_unit_test(rows_that_meet_by_an_index__are_found),
        cmocka_unit_test(batches_of_one_row_that_fail__are_a_warning),
        cmocka_unit_test(open_dimensions__are_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
