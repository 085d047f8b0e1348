/* Annotated functions: what is fused, what it computes, and why others are kept unchanged. */
#include "convert/composites/composites.h"
#include "convert/saved_model.h"
#include "graph/inline.h"
#include "support/draw.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "support/temp.h"
#include "tpu/fused_cost.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

enum { MOST_ARGS = 6 };

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *function;
    struct tare_alias alias;
    struct tare_composites found;
};

static void set_up(struct fixture *f) {
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->function = tare_model_add_function(f->model, "composite");
    f->alias = (struct tare_alias){ "composite", "kept" };
    f->model->aliases = &f->alias;
    f->model->n_aliases = 1;
}

static void tear_down(struct fixture *f) {
    f->model->n_aliases = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static union tare_attr_item *new_item(struct fixture *f) {
    return TARE_NEW(&f->arena, union tare_attr_item);
}

static struct tare_attr text_attr(struct fixture *f, const char *name, const char *text) {
    union tare_attr_item *item = new_item(f);
    item->s.data = (char *)(uintptr_t)text;
    item->s.size = strlen(text);
    return (struct tare_attr){ .name = name, .kind = TARE_ATTR_STRING, .count = 1, .items = item };
}

static struct tare_attr bool_attr(struct fixture *f, const char *name, bool value) {
    union tare_attr_item *item = new_item(f);
    item->b = value;
    return (struct tare_attr){ .name = name, .kind = TARE_ATTR_BOOL, .count = 1, .items = item };
}

static struct tare_attr float_attr(struct fixture *f, const char *name, float value) {
    union tare_attr_item *item = new_item(f);
    item->f = value;
    return (struct tare_attr){ .name = name, .kind = TARE_ATTR_FLOAT, .count = 1, .items = item };
}

static void annotate(struct fixture *f, struct tare_attr attr) {
    struct tare_attr *grown =
        tare_arena_extend(&f->model->arena, f->function->attrs, f->function->n_attrs, 1, sizeof *grown);
    grown[f->function->n_attrs++] = attr;
    f->function->attrs = grown;
}

/* _implements in the form 'name: "NAME" attr { … }'. */
static void annotate_with(struct fixture *f, const char *name, size_t n, const struct tare_attr *attrs) {
    union tare_attr_item *item = new_item(f);
    struct tare_attr_list *own = TARE_NEW(&f->model->arena, struct tare_attr_list);
    *own = (struct tare_attr_list){ (struct tare_attr *)(uintptr_t)attrs, n };
    item->func = (struct tare_func){ .name = name, .own = own };
    annotate(f, (struct tare_attr){ .name = "_implements", .kind = TARE_ATTR_FUNC, .count = 1, .items = item });
}

/* Main-graph call with placeholders of these shapes, so that shapes are known in the function. */
static void call_with(struct fixture *f, const struct tare_shape *shapes) {
    struct tare_edge in[MOST_ARGS] = { { 0 } };
    for (size_t i = 0; i < f->function->n_args; i++) {
        struct tare_node *node = mini_open(f->model->main, "Placeholder", f->function->args[i]->name, 0);
        mini_ok(tare_node_set_type(node, "dtype", f->function->args[i]->output_dtypes[0]));
        mini_ok(tare_node_set_shape(node, "shape", &shapes[i]));
        in[i] = mini_done(node);
    }
    mini_call(f->model->main, "PartitionedCall", "call", f->function, (int)f->function->n_args, in[0], in[1], in[2],
              in[3], in[4], in[5]);
}

static void fuse(struct fixture *f) {
    mini_ok(tare_composites_fuse(&f->found, &f->arena, f->model));
}

static void expect_reason(const struct fixture *f, const char *part) {
    assert_int_equal(f->found.count, 1);
    if (!f->found.items[0].reason) fail_msg("it was fused (expected '%s')", part);
    if (!strstr(f->found.items[0].reason, part))
        fail_msg("reason '%s' (expected '%s')", f->found.items[0].reason, part);
}

static void expect_fused(const struct fixture *f, const char *name) {
    assert_int_equal(f->found.count, 1);
    if (f->found.items[0].reason) fail_msg("it stays composite: %s", f->found.items[0].reason);
    assert_string_equal(f->found.items[0].implements, name);
    assert_null(tare_graph_find_attr(f->function, "_implements"));
    assert_null(tare_graph_find_attr(f->function, "api_implements"));
    graph_check_dtypes(f->model);
}

/* Results of the function for arguments drawn anew. */
static void compute(struct fixture *f, const struct tare_shape *shapes, struct tare_tensor *results) {
    struct tare_session *session = mini_session(f->model);
    struct tare_tensor args[MOST_ARGS];
    size_t n = f->function->n_args;
    for (size_t i = 0; i < n; i++) {
        int dtype = f->function->args[i]->output_dtypes[0];
        mini_ok(tare_tensor_new(&args[i], dtype, &shapes[i]));
        if (dtype == TARE_DT_INT32)
            for (int64_t k = 0; k < args[i].elements; k++)
                TARE_DATA(int32_t, &args[i])[k] = (int32_t)(k % 3);
        else
            draw_fill(args[i].data, (size_t)args[i].elements, DRAW_NORMAL, 40 + i);
    }
    mini_ok(tare_session_call(session, f->function, args, n, results, f->function->n_returns));
    for (size_t i = 0; i < n; i++)
        tare_tensor_reset(&args[i]);
    tare_session_free(session);
}

/* Before and after: bit for bit. */
static void expect_same_values(struct fixture *f, const struct tare_shape *shapes, const char *name) {
    struct tare_tensor before[5], after[5];
    compute(f, shapes, before);
    fuse(f);
    expect_fused(f, name);
    compute(f, shapes, after);
    for (size_t i = 0; i < f->function->n_returns; i++) {
        assert_true(tare_shape_equal(&before[i].shape, &after[i].shape));
        assert_memory_equal(before[i].data, after[i].data, (size_t)before[i].elements * sizeof(float));
        tare_tensor_reset(&before[i]);
        tare_tensor_reset(&after[i]);
    }
}

/* ---- look-ups ---- */

/* One-hot times the table, the composite form. */
static void embedding_body(struct fixture *f, int id_type) {
    struct tare_edge table = mini_arg(f->function, "embs", TARE_DT_FLOAT),
                     ids = mini_arg(f->function, "ids_vec", id_type), hot;
    struct tare_node *node = mini_open(f->function, "OneHot", "hot", 4, ids, mini_int(f->function, "depth", 5),
                                       mini_float(f->function, "on", 1), mini_float(f->function, "off", 0));
    mini_ok(tare_node_set_type(node, "TI", id_type));
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    hot = mini_done(node);
    mini_return(f->function, "rets", mini_node(f->function, "MatMul", "rows", 2, hot, table));
}

static const struct tare_shape embedding_shapes[] = { { .rank = 2, .dims = { 5, 8 } }, { .rank = 1, .dims = { 4 } } };

static void an_embedding_lookup__becomes_one_gather(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    embedding_body(&f, TARE_DT_INT32);
    annotate(&f, text_attr(&f, "_implements", "embedding_lookup"));
    call_with(&f, embedding_shapes);
    expect_same_values(&f, embedding_shapes, "embedding_lookup");
    assert_int_equal(graph_count(f.function, "GatherV2"), 1);
    assert_int_equal(graph_count(f.function, "MatMul"), 0);
    tear_down(&f);
}

static void an_embedding__of_other_form_stays(void **state) {
    struct tare_shape wide[] = { { .rank = 3, .dims = { 5, 8, 2 } }, { .rank = 1, .dims = { 4 } } };
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_arg(f.function, "embs", TARE_DT_FLOAT);
    mini_return(f.function, "rets",
                mini_node(f.function, "Relu", "relu", 1, (struct tare_edge){ f.function->args[0], 0 }));
    annotate(&f, text_attr(&f, "_implements", "embedding_matmul"));
    fuse(&f);
    expect_reason(&f, "it has 1 arguments and 1 results (expected 2 and 1)");
    assert_int_equal(graph_count(f.function, "Relu"), 1);
    assert_non_null(tare_graph_find_attr(f.function, "_implements"));
    mini_arg(f.function, "ids_vec", TARE_DT_INT32);
    call_with(&f, wide);
    fuse(&f);
    expect_reason(&f, "argument 'embs' has shape [5,8,2] (expected 2 dimensions)");
    tear_down(&f);
}

/* ---- recurrent layers: the same operations, one step at a time ---- */

enum { BATCH = 2, STEPS = 3, FEATURES = 4, UNITS = 5 };

static struct tare_edge mini_split(struct tare_graph *g, struct tare_edge value, int count) {
    struct tare_node *node = mini_open(g, "Split", "split", 2, mini_int(g, "axis", 1), value);
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int(node, "num_split", count));
    return mini_done(node);
}

static struct tare_edge mini_unpack(struct tare_graph *g, struct tare_edge value, int count, int axis) {
    struct tare_node *node = mini_open(g, "Unpack", "unpack", 1, value);
    mini_ok(tare_node_set_int(node, "num", count));
    mini_ok(tare_node_set_int(node, "axis", axis));
    return mini_done(node);
}

static struct tare_edge two(struct tare_graph *g, const char *op, struct tare_edge a, struct tare_edge b) {
    return mini_node(g, op, op, 2, a, b);
}

static struct tare_edge mini_pack(struct tare_graph *g, const struct tare_edge *h, int axis) {
    struct tare_node *node = mini_open(g, "Pack", "pack", 3, h[0], h[1], h[2]);
    mini_ok(tare_node_set_int(node, "axis", axis));
    return mini_done(node);
}

static void lstm_body(struct fixture *f, bool backwards) {
    struct tare_graph *g = f->function;
    struct tare_edge x = mini_arg(g, "inputs", TARE_DT_FLOAT), h = mini_arg(g, "init_h", TARE_DT_FLOAT);
    struct tare_edge state = mini_arg(g, "init_c", TARE_DT_FLOAT), kernel = mini_arg(g, "kernel", TARE_DT_FLOAT);
    struct tare_edge recurrent = mini_arg(g, "recurrent_kernel", TARE_DT_FLOAT),
                     bias = mini_arg(g, "bias", TARE_DT_FLOAT);
    struct tare_edge steps = mini_unpack(g, x, STEPS, 1), outputs[STEPS];
    for (int t = 0; t < STEPS; t++) {
        struct tare_edge z = two(g, "MatMul", mini_output(steps, backwards ? STEPS - 1 - t : t), kernel), s, keep, take;
        z = two(g, "BiasAdd", two(g, "AddV2", z, two(g, "MatMul", h, recurrent)), bias);
        s = mini_split(g, z, 4);
        keep = two(g, "Mul", mini_node(g, "Sigmoid", "f", 1, mini_output(s, 1)), state);
        take = two(g, "Mul", mini_node(g, "Sigmoid", "i", 1, s), mini_node(g, "Tanh", "g", 1, mini_output(s, 2)));
        state = two(g, "AddV2", keep, take);
        h = two(g, "Mul", mini_node(g, "Sigmoid", "o", 1, mini_output(s, 3)), mini_node(g, "Tanh", "c", 1, state));
        outputs[t] = h;
    }
    mini_return(g, "last_output", h);
    mini_return(g, "outputs", mini_pack(g, outputs, 1));
    mini_return(g, "new_h", h);
    mini_return(g, "new_c", state);
    mini_return(g, "runtime", mini_float(g, "runtime_is", 1));
    annotate(f, text_attr(f, "api_implements", "lstm_8b2f841e-3b85-419c-a63c-5ef342712a13"));
    annotate(f, text_attr(f, "api_preferred_device", "CPU"));
    annotate(f, bool_attr(f, "time_major", false));
    annotate(f, bool_attr(f, "go_backwards", backwards));
}

static const struct tare_shape lstm_shapes[] = {
    { .rank = 3, .dims = { BATCH, STEPS, FEATURES } }, { .rank = 2, .dims = { BATCH, UNITS } },
    { .rank = 2, .dims = { BATCH, UNITS } },           { .rank = 2, .dims = { FEATURES, 4 * UNITS } },
    { .rank = 2, .dims = { UNITS, 4 * UNITS } },       { .rank = 1, .dims = { 4 * UNITS } }
};

static void a_keras_lstm__is_fused_bit_for_bit(void **state) {
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct fixture f;
        set_up(&f);
        lstm_body(&f, backwards);
        call_with(&f, lstm_shapes);
        assert_int_equal(graph_count(f.function, "MatMul"), 2 * STEPS);
        expect_same_values(&f, lstm_shapes, "lstm_8b2f841e-3b85-419c-a63c-5ef342712a13");
        assert_int_equal(graph_count(f.function, "MatMul"), 1 + STEPS); /* one product for all inputs */
        fuse(&f);
        assert_int_equal(f.found.count, 0); /* it is no composite any more */
        tear_down(&f);
    }
}

/* The same with an open number of time steps: a loop, and the same bits. */
static void a_keras_lstm__of_open_length_becomes_a_loop(void **state) {
    (void)state;
    for (int backwards = 0; backwards < 2; backwards++) {
        struct tare_shape open[6];
        struct tare_tensor before[5], after[5];
        struct fixture f;
        set_up(&f);
        lstm_body(&f, backwards);
        memcpy(open, lstm_shapes, sizeof open);
        open[0].dims[0] = open[0].dims[1] = -1;
        call_with(&f, open);
        compute(&f, lstm_shapes, before);
        fuse(&f);
        expect_fused(&f, "lstm_8b2f841e-3b85-419c-a63c-5ef342712a13");
        assert_int_equal(graph_count(f.function, "StatelessWhile"), 1);
        assert_int_equal(graph_count(f.function, "MatMul"), 1);
        compute(&f, lstm_shapes, after);
        for (size_t i = 0; i < 5; i++) {
            assert_true(tare_shape_equal(&before[i].shape, &after[i].shape));
            assert_memory_equal(before[i].data, after[i].data, (size_t)before[i].elements * sizeof(float));
            tare_tensor_reset(&before[i]);
            tare_tensor_reset(&after[i]);
        }
        tear_down(&f);
    }
}

/* A Keras LSTM of `steps` steps; what its body computes does not matter here. */
static void lstm_of(struct fixture *f, struct tare_shape *shapes, int64_t steps) {
    const struct tare_shape weight = tare_shape_make(3, 1, FEATURES, UNITS);
    struct tare_tensor value;
    struct tare_edge x, h;
    set_up(f);
    memcpy(shapes, lstm_shapes, sizeof lstm_shapes);
    shapes[0].dims[1] = steps;
    x = mini_arg(f->function, "inputs", TARE_DT_FLOAT);
    h = mini_arg(f->function, "init_h", TARE_DT_FLOAT);
    for (int i = 2; i < 6; i++)
        mini_arg(f->function, "more", TARE_DT_FLOAT);
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &weight));
    draw_fill(value.data, (size_t)value.elements, DRAW_NORMAL, 9);
    mini_return(f->function, "last_output", h);
    mini_return(f->function, "outputs",
                mini_node(f->function, "BatchMatMulV2", "all", 2, x,
                          (struct tare_edge){ tare_graph_add_const(f->function, "w", &value), 0 }));
    mini_return(f->function, "new_h", h);
    mini_return(f->function, "new_c", h);
    mini_return(f->function, "runtime", mini_float(f->function, "runtime_is", 1));
    annotate(f, text_attr(f, "_implements", "standard_lstm"));
    call_with(f, shapes);
    fuse(f);
    expect_fused(f, "standard_lstm");
    tare_tensor_reset(&value);
}

static void a_keras_lstm__of_many_steps_becomes_a_loop(void **state) {
    enum { MANY = 17 };
    struct tare_tensor results[5];
    struct tare_shape shapes[6];
    struct fixture f;
    (void)state;
    lstm_of(&f, shapes, MANY);
    assert_int_equal(graph_count(f.function, "StatelessWhile"), 1);
    compute(&f, shapes, results);
    assert_int_equal(results[1].shape.dims[1], MANY);
    assert_memory_equal((float *)results[1].data + (MANY - 1) * UNITS, results[0].data, UNITS * sizeof(float));
    for (size_t i = 0; i < 5; i++)
        tare_tensor_reset(&results[i]);
    tear_down(&f);
}

/* Bytes of the graph of an LSTM of `steps` steps; *is_loop: its form. */
static int64_t written_size(int64_t steps, bool *is_loop) {
    const struct tare_export_options options = { .overwrite = true };
    struct tare_shape shapes[6];
    struct stat file;
    struct fixture f;
    lstm_of(&f, shapes, steps);
    *is_loop = graph_count(f.function, "StatelessWhile") == 1;
    mini_ok(tare_saved_model_export(f.model, temp_path("lstm"), &options));
    assert_int_equal(stat(temp_path("lstm/saved_model.pb"), &file), 0);
    tear_down(&f);
    return file.st_size;
}

/* The smaller form is chosen: steps are unrolled while that takes fewer bytes than the loop, whose size does not depend
 * on their number. */
static void a_keras_lstm__has_the_smaller_form(void **state) {
    bool is_loop;
    const int64_t loop = written_size(128, &is_loop);
    (void)state;
    assert_true(is_loop);
    for (int64_t steps = 1; steps <= 6; steps++) {
        const int64_t size = written_size(steps, &is_loop);
        if (is_loop != (steps > 3) || size > loop + 8)
            fail_msg("%lld steps: %lld bytes %s, the loop of 128 steps has %lld", (long long)steps, (long long)size,
                     is_loop ? "as a loop" : "unrolled", (long long)loop);
    }
}

/* ---- the time of a step on a TPU ---- */

struct step_cost {
    double macs, bytes;
    const struct tare_graph *main;
};

static void add_group_of_loop(void *arg, const struct tare_node *first, const struct tare_fused_cost *group) {
    struct step_cost *cost = arg;
    if (first->graph == cost->main) return;
    cost->macs += group->macs;
    cost->bytes += group->bytes;
}

/* The outputs of all time steps. */
static struct tare_edge find_outputs(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead && strcmp(graph->nodes[i]->name, "call/outputs") == 0)
            return (struct tare_edge){ graph->nodes[i], 0 };
    fail_msg("no node call/outputs");
    return (struct tare_edge){ NULL, 0 };
}

/* Estimated cost of the whole layer, in which a loop's body counts once, or of the loop's body. */
static struct step_cost estimate(int64_t steps, bool of_loop) {
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT };
    const struct tare_signature signature = { .key = "s", .outputs = &output, .n_outputs = 1 };
    struct tare_fused_cost all;
    struct tare_shape shapes[6];
    struct step_cost cost = { 0 };
    struct fixture f;
    lstm_of(&f, shapes, steps);
    cost.main = f.model->main;
    mini_ok(tare_model_inline_calls(f.model));
    output.edge = find_outputs(f.model->main);
    mini_ok(tare_tpu_fused_cost(&all, &f.arena, f.model, &signature, of_loop ? add_group_of_loop : NULL, &cost));
    tear_down(&f);
    return of_loop ? cost : (struct step_cost){ .macs = all.macs, .bytes = all.bytes };
}

/* A loop does the same products and moves no more bytes: the estimate gives no reason to unroll. */
static void a_step_of_the_loop__is_estimated_to_take_no_longer(void **state) {
    const struct step_cost two = estimate(2, false), three = estimate(3, false);
    const struct step_cost body = estimate(128, true), many = estimate(128, false), more = estimate(129, false);
    (void)state;
    assert_true(three.macs > two.macs);
    assert_true(body.macs + more.macs - many.macs == three.macs - two.macs);
    assert_true(body.bytes + more.bytes - many.bytes <= three.bytes - two.bytes);
}

/* ---- Lingvo's cell ---- */

enum { CELLS = 3, OUTPUTS = 2 };

static float sigmoid(float x) {
    return 1 / (1 + expf(-x));
}

static void cell_function(struct fixture *f, const char *name, const struct tare_shape *shapes) {
    static const char *const names[] = { "inputs", "weight", "bias", "projection" };
    set_up(f);
    for (int i = 0; i < 4; i++)
        mini_arg(f->function, names[i], TARE_DT_FLOAT);
    mini_return(f->function, "output", (struct tare_edge){ f->function->args[0], 0 });
    annotate(f, text_attr(f, "_implements", name));
    call_with(f, shapes);
    fuse(f);
}

/* The same as compute's drawn arguments: output `column` of row `row`, by the definition. */
static double expected_output(const struct tare_shape *shapes, int gates, int row, int column) {
    float x[BATCH * FEATURES], w[(FEATURES + OUTPUTS) * 4 * CELLS], b[4 * CELLS], p[CELLS * OUTPUTS];
    float *const values[] = { x, w, b, p };
    double y = 0;
    for (int i = 0; i < 4; i++) {
        const int64_t columns = shapes[i].rank == 2 ? shapes[i].dims[1] : 1;
        draw_fill(values[i], (size_t)(shapes[i].dims[0] * columns), DRAW_NORMAL, 40 + (uint64_t)i);
    }
    for (int n = 0; n < CELLS; n++) {
        float z[4];
        for (int g = 0; g < gates; g++) {
            z[g] = b[g * CELLS + n];
            for (int k = 0; k < FEATURES; k++)
                z[g] += x[row * FEATURES + k] * w[k * gates * CELLS + g * CELLS + n];
        }
        const float input = gates == 4 ? sigmoid(z[1]) : 1 - sigmoid(z[1]);
        y += (double)(sigmoid(z[gates - 1]) * tanhf(input * tanhf(z[0])) * p[n * OUTPUTS + column]);
    }
    return y;
}

static void an_lstm_cell__is_one_step_from_zeros(void **state) {
    static const char *const names[] = { "LSTMCellSimple", "LSTMCellSimple,CoupleInputForgetGates" };
    (void)state;
    for (int coupled = 0; coupled < 2; coupled++) {
        const int gates = coupled ? 3 : 4;
        const struct tare_shape shapes[] = { tare_shape_make(2, BATCH, FEATURES),
                                             tare_shape_make(2, FEATURES + OUTPUTS, gates * CELLS),
                                             tare_shape_make(1, gates * CELLS), tare_shape_make(2, CELLS, OUTPUTS) };
        struct tare_tensor y;
        struct fixture f;
        cell_function(&f, names[coupled], shapes);
        expect_fused(&f, names[coupled]);
        assert_int_equal(graph_count(f.function, "MatMul"), 2);
        compute(&f, shapes, &y);
        assert_int_equal(y.elements, BATCH * OUTPUTS);
        for (int i = 0; i < BATCH * OUTPUTS; i++)
            assert_true(fabs((double)TARE_DATA(float, &y)[i] -
                             expected_output(shapes, gates, i / OUTPUTS, i % OUTPUTS)) < 1e-5);
        tare_tensor_reset(&y);
        tear_down(&f);
    }
}

static void an_lstm_cell__of_other_sizes_stays(void **state) {
    const struct tare_shape x = tare_shape_make(2, BATCH, FEATURES), p = tare_shape_make(2, CELLS, OUTPUTS);
    const struct {
        struct tare_shape shapes[4];
        const char *reason;
    } cases[] = {
        { { x, tare_shape_make(2, FEATURES + OUTPUTS, 4 * CELLS + 1), tare_shape_make(1, 4 * CELLS + 1), p },
          "weight and bias are not 4 gates of one size" },
        { { x, tare_shape_make(2, FEATURES, 4 * CELLS), tare_shape_make(1, 4 * CELLS), p },
          "the weight has 4 rows for 4 features and 2 outputs" },
        { { x, tare_shape_make(2, FEATURES + OUTPUTS, 4 * CELLS), tare_shape_make(1, 4 * CELLS),
            tare_shape_make(2, CELLS + 1, OUTPUTS) },
          "the projection has 4 rows for 3 cells" },
        { { tare_shape_make(3, BATCH, 1, FEATURES), p, p, p }, "argument 'inputs' has shape" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f;
        cell_function(&f, "LSTMCellSimple", cases[i].shapes);
        expect_reason(&f, cases[i].reason);
        tear_down(&f);
    }
}

static const struct tare_shape gru_shapes[] = { { .rank = 3, .dims = { BATCH, STEPS, FEATURES } },
                                                { .rank = 2, .dims = { BATCH, UNITS } },
                                                { .rank = 2, .dims = { FEATURES, 3 * UNITS } },
                                                { .rank = 2, .dims = { UNITS, 3 * UNITS } },
                                                { .rank = 2, .dims = { 2, 3 * UNITS } } };

static void gru_body(struct fixture *f) {
    struct tare_graph *g = f->function;
    struct tare_edge x, h, kernel, recurrent, bias, steps, outputs[STEPS];
    x = mini_arg(g, "inputs", TARE_DT_FLOAT);
    h = mini_arg(g, "init_h", TARE_DT_FLOAT);
    kernel = mini_arg(g, "kernel", TARE_DT_FLOAT);
    recurrent = mini_arg(g, "recurrent_kernel", TARE_DT_FLOAT);
    bias = mini_unpack(g, mini_arg(g, "bias", TARE_DT_FLOAT), 2, 0);
    steps = mini_unpack(g, x, STEPS, 1);
    for (int t = 0; t < STEPS; t++) {
        struct tare_edge a = mini_split(g, two(g, "BiasAdd", two(g, "MatMul", mini_output(steps, t), kernel), bias), 3);
        struct tare_edge b = mini_split(g, two(g, "BiasAdd", two(g, "MatMul", h, recurrent), mini_output(bias, 1)), 3);
        struct tare_edge z = mini_node(g, "Sigmoid", "z", 1, two(g, "AddV2", a, b));
        struct tare_edge r = mini_node(g, "Sigmoid", "r", 1, two(g, "AddV2", mini_output(a, 1), mini_output(b, 1)));
        struct tare_edge hh = two(g, "AddV2", mini_output(a, 2), two(g, "Mul", r, mini_output(b, 2)));
        hh = mini_node(g, "Tanh", "hh", 1, hh);
        h = two(g, "AddV2", two(g, "Mul", z, h), two(g, "Mul", two(g, "Sub", mini_float(g, "one", 1), z), hh));
        outputs[t] = h;
    }
    mini_return(g, "last_output", h);
    mini_return(g, "outputs", mini_pack(g, outputs, 1));
    mini_return(g, "new_h", h);
    mini_return(g, "runtime", mini_float(g, "runtime_is", 1));
    annotate(f, text_attr(f, "api_implements", "gru_1"));
}

static void a_keras_gru__is_fused_bit_for_bit(void **state) {
    (void)state;
    for (int open = 0; open < 2; open++) { /* an open number of steps: a loop */
        struct tare_shape shapes[5];
        struct tare_tensor before[4], after[4];
        struct fixture f;
        set_up(&f);
        gru_body(&f);
        memcpy(shapes, gru_shapes, sizeof shapes);
        if (open) shapes[0].dims[1] = -1;
        call_with(&f, shapes);
        compute(&f, gru_shapes, before);
        fuse(&f);
        expect_fused(&f, "gru_1");
        assert_int_equal(graph_count(f.function, "MatMul"), open ? 1 : 1 + STEPS);
        assert_int_equal(graph_count(f.function, "StatelessWhile"), open);
        compute(&f, gru_shapes, after);
        for (size_t i = 0; i < 4; i++) {
            assert_memory_equal(before[i].data, after[i].data, (size_t)before[i].elements * sizeof(float));
            tare_tensor_reset(&before[i]);
            tare_tensor_reset(&after[i]);
        }
        tear_down(&f);
    }
}

/* ---- layer normalisation ---- */

static void a_layer_norm__is_fused_and_needs_its_epsilon(void **state) {
    static const struct tare_shape shapes[] = { { .rank = 2, .dims = { 2, 4 } },
                                                { .rank = 1, .dims = { 4 } },
                                                { .rank = 1, .dims = { 4 } } };
    struct tare_attr epsilon;
    struct tare_session *session;
    struct tare_tensor args[3], y;
    struct fixture f;
    const float x[] = { 1, 2, 3, 4, 0, 0, 0, 8 }, one[] = { 1, 1, 1, 1 }, zero[] = { 0, 0, 0, 0 };
    (void)state;
    set_up(&f);
    for (int i = 0; i < 3; i++)
        mini_arg(f.function, i == 0 ? "x" : i == 1 ? "gamma" : "beta", TARE_DT_FLOAT);
    mini_return(f.function, "y",
                mini_node(f.function, "Relu", "placeholder_body", 1, (struct tare_edge){ f.function->args[0], 0 }));
    annotate_with(&f, "layer_norm", 0, NULL);
    call_with(&f, shapes);
    fuse(&f);
    expect_reason(&f, "epsilon attribute is not set or not a float");
    f.function->n_attrs = 0;
    epsilon = float_attr(&f, "epsilon", 1e-6f);
    annotate_with(&f, "layer_norm", 1, &epsilon);
    fuse(&f);
    expect_fused(&f, "layer_norm");
    mini_ok(tare_tensor_from(&args[0], TARE_DT_FLOAT, &shapes[0], x));
    mini_ok(tare_tensor_from(&args[1], TARE_DT_FLOAT, &shapes[1], one));
    mini_ok(tare_tensor_from(&args[2], TARE_DT_FLOAT, &shapes[2], zero));
    session = mini_session(f.model);
    mini_ok(tare_session_call(session, f.function, args, 3, &y, 1));
    assert_true(TARE_DATA(float, &y)[0] < -1.3416f && TARE_DATA(float, &y)[0] > -1.3417f); /* -1.5 / sqrt(1.25) */
    assert_true(TARE_DATA(float, &y)[7] > 1.7320f && TARE_DATA(float, &y)[7] < 1.7321f);   /* 6 / sqrt(12) */
    for (int i = 0; i < 3; i++)
        tare_tensor_reset(&args[i]);
    tare_tensor_reset(&y);
    tare_session_free(session);
    tear_down(&f);
}

static void non_max_suppression__is_one_op(void **state) {
    const struct tare_shape scalar = tare_shape_scalar();
    const struct tare_shape shapes[] = { tare_shape_make(2, 3LL, 4LL), tare_shape_make(1, 3LL), scalar, scalar,
                                         scalar };
    const float boxes[] = { 0, 0, 1, 1, 0, 0, 1, 0.9f, 2, 2, 3, 3 }, scores[] = { 0.5f, 0.9f, 0.7f };
    const float iou = 0.5f, least = 0.1f;
    const int32_t most = 4;
    struct fixture f;
    struct tare_tensor args[5], results[2] = { 0 };
    (void)state;
    set_up(&f);
    mini_arg(f.function, "boxes", TARE_DT_FLOAT);
    mini_arg(f.function, "scores", TARE_DT_FLOAT);
    const struct tare_edge size = mini_arg(f.function, "max_output_size", TARE_DT_INT32);
    mini_arg(f.function, "iou_threshold", TARE_DT_FLOAT);
    mini_arg(f.function, "score_threshold", TARE_DT_FLOAT);
    mini_return(f.function, "indices", mini_node(f.function, "Identity", "i", 1, size));
    mini_return(f.function, "valid", mini_node(f.function, "Identity", "v", 1, size));
    call_with(&f, shapes);
    annotate(&f, text_attr(&f, "_implements", "non_max_suppression_padded_v2"));
    fuse(&f);
    expect_fused(&f, "non_max_suppression_padded_v2");
    mini_ok(tare_tensor_from(&args[0], TARE_DT_FLOAT, &shapes[0], boxes));
    mini_ok(tare_tensor_from(&args[1], TARE_DT_FLOAT, &shapes[1], scores));
    mini_ok(tare_tensor_from(&args[2], TARE_DT_INT32, &scalar, &most));
    mini_ok(tare_tensor_from(&args[3], TARE_DT_FLOAT, &scalar, &iou));
    mini_ok(tare_tensor_from(&args[4], TARE_DT_FLOAT, &scalar, &least));
    struct tare_session *session = mini_session(f.model);
    mini_ok(tare_session_call(session, f.function, args, 5, results, 2));
    assert_int_equal(results[0].elements, 4); /* padded */
    assert_int_equal(TARE_CONST_DATA(int32_t, &results[0])[0], 1);
    assert_int_equal(TARE_CONST_DATA(int32_t, &results[0])[1], 2);
    assert_int_equal(TARE_CONST_DATA(int32_t, &results[1])[0], 2);
    tare_session_free(session);
    for (size_t i = 0; i < 5; i++)
        tare_tensor_reset(&args[i]);
    for (size_t i = 0; i < 2; i++)
        tare_tensor_reset(&results[i]);
    tear_down(&f);
}

static void non_max_suppression__with_too_few_arguments_stays(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_arg(f.function, "boxes", TARE_DT_FLOAT);
    const struct tare_edge scores = mini_arg(f.function, "scores", TARE_DT_FLOAT);
    mini_return(f.function, "indices", scores);
    mini_return(f.function, "valid", scores);
    annotate(&f, text_attr(&f, "_implements", "non_max_suppression_padded_v2"));
    fuse(&f);
    expect_reason(&f, "it has 2 arguments and 2 results (expected at least 5, and 2)");
    tear_down(&f);
}

static void non_max_suppression__of_a_batch_stays(void **state) {
    const struct tare_shape scalar = tare_shape_scalar();
    const struct tare_shape shapes[] = { tare_shape_make(3, 2LL, 3LL, 4LL), tare_shape_make(2, 2LL, 3LL), scalar,
                                         scalar, scalar };
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_arg(f.function, "boxes", TARE_DT_FLOAT);
    mini_arg(f.function, "scores", TARE_DT_FLOAT);
    const struct tare_edge size = mini_arg(f.function, "max_output_size", TARE_DT_INT32);
    mini_arg(f.function, "iou_threshold", TARE_DT_FLOAT);
    mini_arg(f.function, "score_threshold", TARE_DT_FLOAT);
    mini_return(f.function, "indices", mini_node(f.function, "Identity", "i", 1, size));
    mini_return(f.function, "valid", mini_node(f.function, "Identity", "v", 1, size));
    call_with(&f, shapes);
    annotate(&f, text_attr(&f, "_implements", "non_max_suppression_padded_v2"));
    fuse(&f);
    expect_reason(&f, "argument 'boxes' has shape [2,3,4] (expected 2 dimensions)");
    tear_down(&f);
}

/* ---- ops of the user's ---- */

/* TestAdd stands for an op of a plugin: it is in the model's own registry. */
static void a_fusable_op__is_mapped_to_the_op_of_that_name(void **state) {
    struct tare_attr attrs[1];
    struct tare_session *session;
    struct tare_tensor args[2], sum;
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_arg(f.function, "input_1", TARE_DT_FLOAT);
    mini_arg(f.function, "input_2", TARE_DT_FLOAT);
    mini_return(f.function, "output_1", mini_float(f.function, "first_output", 0)); /* as empty as the document's */
    attrs[0] = bool_attr(&f, "tfl_fusable_op", true);
    annotate_with(&f, "TestAdd", 1, attrs);
    fuse(&f);
    expect_fused(&f, "TestAdd");
    args[0] = mini_scalar(TARE_DT_FLOAT, 2);
    args[1] = mini_scalar(TARE_DT_FLOAT, 40);
    session = mini_session(f.model);
    mini_ok(tare_session_call(session, f.function, args, 2, &sum, 1));
    assert_true(TARE_DATA(float, &sum)[0] == 42);
    tare_tensor_reset(&args[0]);
    tare_tensor_reset(&args[1]);
    tare_tensor_reset(&sum);
    tare_session_free(session);
    tear_down(&f);
}

static void a_fusable_op__that_nobody_defines_stays(void **state) {
    struct tare_attr attrs[2];
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_return(f.function, "y", mini_arg(f.function, "input_1", TARE_DT_FLOAT));
    attrs[0] = bool_attr(&f, "tfl_fusable_op", true);
    annotate_with(&f, "my_custom_fused_op", 1, attrs);
    fuse(&f);
    expect_reason(&f, "there is no op 'my_custom_fused_op' (--plugin loads a library that defines it)");
    f.function->n_attrs = 0;
    attrs[0] = bool_attr(&f, "tfl_fusable_op", false);
    annotate_with(&f, "my_custom_fused_op", 1, attrs);
    fuse(&f);
    expect_reason(&f, "'my_custom_fused_op' is not a known composite");
    f.function->n_attrs = 0;
    attrs[0] = bool_attr(&f, "tfl_fusable_op", true);
    attrs[1] = float_attr(&f, "example_option", 10);
    annotate_with(&f, "TestEffect", 2, attrs);
    fuse(&f);
    expect_reason(&f, "op 'TestEffect' has no attribute 'example_option'");
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_embedding_lookup__becomes_one_gather),
        cmocka_unit_test(an_embedding__of_other_form_stays),
        cmocka_unit_test(a_keras_lstm__is_fused_bit_for_bit),
        cmocka_unit_test(a_keras_lstm__of_open_length_becomes_a_loop),
        cmocka_unit_test(a_keras_lstm__of_many_steps_becomes_a_loop),
        cmocka_unit_test(a_keras_lstm__has_the_smaller_form),
        cmocka_unit_test(a_step_of_the_loop__is_estimated_to_take_no_longer),
        cmocka_unit_test(an_lstm_cell__is_one_step_from_zeros),
        cmocka_unit_test(an_lstm_cell__of_other_sizes_stays),
        cmocka_unit_test(a_keras_gru__is_fused_bit_for_bit),
        cmocka_unit_test(a_layer_norm__is_fused_and_needs_its_epsilon),
        cmocka_unit_test(non_max_suppression__is_one_op),
        cmocka_unit_test(non_max_suppression__with_too_few_arguments_stays),
        cmocka_unit_test(non_max_suppression__of_a_batch_stays),
        cmocka_unit_test(a_fusable_op__is_mapped_to_the_op_of_that_name),
        cmocka_unit_test(a_fusable_op__that_nobody_defines_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
