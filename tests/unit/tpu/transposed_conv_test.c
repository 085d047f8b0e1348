/* Transposed convolutions in TPU functions: written as XlaConvV2, with the same bits. */
#include "tpu/transposed_conv.h"
#include "interpreter/inference/model_shapes.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "support/tensor_compare.h"

#include <string.h>

/* What one case is made of. The filter is [kernel…, channels / groups, outputs]; depthwise: [kernel…, channels,
 * outputs]. */
struct setting {
    const char *op;
    int spatial;
    bool channels_first;
    const char *padding;
    int64_t low, high; /* EXPLICIT */
    int64_t stride, dilation, kernel, groups;
    int dtype;
    bool constant_filter;
    enum { KNOWN, OPEN_BATCH, OPEN } sizes;
};

enum { CHANNELS = 4, OUTPUTS = 6, BATCH = 2 };

struct fixture {
    struct setting setting;
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *function;
    struct tare_edge feeds[3], y; /* gradient, filter, a tensor of the input's shape */
    struct tare_tensor values[3];
    int n_feeds;
    size_t changes;
};

static bool is_depthwise(const struct setting *s) {
    return strstr(s->op, "Depthwise");
}

static int64_t input_size(int axis) {
    return 9 - 2 * axis;
}

static int64_t gradient_size(const struct setting *s, int axis) {
    const int64_t in = input_size(axis), reach = (s->kernel - 1) * s->dilation + 1;
    if (strcmp(s->padding, "SAME") == 0) return (in + s->stride - 1) / s->stride;
    return (in + s->low + s->high - reach) / s->stride + 1;
}

/* [batch, spatial…, channels] in the case's layout; `open`: what is not known. */
static struct tare_shape layout(const struct setting *s, int64_t channels, bool gradient, bool open) {
    struct tare_shape shape = { .rank = s->spatial + 2 };
    const int first = s->channels_first ? 2 : 1;
    shape.dims[0] = open && s->sizes != KNOWN ? -1 : BATCH;
    shape.dims[s->channels_first ? 1 : s->spatial + 1] = channels;
    for (int i = 0; i < s->spatial; i++)
        shape.dims[first + i] = open && s->sizes == OPEN ? -1 : gradient ? gradient_size(s, i) : input_size(i);
    return shape;
}

static struct tare_shape filter_shape(const struct setting *s) {
    struct tare_shape shape = { .rank = s->spatial + 2 };
    for (int i = 0; i < s->spatial; i++)
        shape.dims[i] = s->kernel;
    shape.dims[s->spatial] = is_depthwise(s) ? CHANNELS : CHANNELS / s->groups;
    shape.dims[s->spatial + 1] = is_depthwise(s) ? OUTPUTS / 2 : OUTPUTS;
    return shape;
}

static struct tare_tensor drawn(int dtype, const struct tare_shape *shape, uint32_t seed) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, dtype, shape));
    for (int64_t i = 0; i < tensor.elements; i++) {
        seed = seed * 1664525u + 1013904223u;
        tare_tensor_set_f64(&tensor, i,
                            dtype == TARE_DT_INT32 ? (double)(seed >> 24) - 128 : (seed >> 8) / 8388608.0 - 1);
    }
    return tensor;
}

static struct tare_edge open_placeholder(struct fixture *f, const char *name, int dtype, struct tare_shape shape,
                                         struct tare_tensor value) {
    struct tare_node *node = mini_open(f->model->main, "Placeholder", name, 0);
    mini_ok(tare_node_set_type(node, "dtype", dtype));
    mini_ok(tare_node_set_shape(node, "shape", &shape));
    f->feeds[f->n_feeds] = mini_done(node);
    f->values[f->n_feeds] = value;
    return f->feeds[f->n_feeds++];
}

/* One value for batch and channels, others for the spatial dimensions. */
static void set_ints(struct tare_node *node, const char *name, const struct setting *s, int64_t spatial) {
    int64_t values[5] = { 1, 1, 1, 1, 1 };
    for (int i = 0; i < s->spatial; i++)
        values[(s->channels_first ? 2 : 1) + i] = spatial;
    mini_ok(tare_node_set_int_list(node, name, values, (size_t)s->spatial + 2));
}

static void set_window(struct tare_node *node, const struct setting *s) {
    const char *formats[] = { s->spatial == 2 ? "NHWC" : "NDHWC", s->spatial == 2 ? "NCHW" : "NCDHW" };
    const char *format = formats[s->channels_first];
    set_ints(node, "strides", s, s->stride);
    set_ints(node, "dilations", s, s->dilation);
    mini_ok(tare_node_set_string(node, "data_format", format, strlen(format)));
    mini_ok(tare_node_set_string(node, "padding", s->padding, strlen(s->padding)));
    if (strcmp(s->padding, "EXPLICIT") == 0) {
        int64_t pads[8] = { 0 };
        for (int i = 0; i < 4; i++)
            pads[(s->channels_first ? 4 : 2) + i] = i % 2 ? s->high : s->low;
        mini_ok(tare_node_set_int_list(node, "explicit_paddings", pads, 8));
    }
}

static struct tare_edge sizes_of(struct fixture *f, struct tare_edge like) {
    const struct tare_shape shape = layout(&f->setting, CHANNELS, false, false);
    int32_t dims[5];
    struct tare_edge parts[5], first;
    struct tare_node *pack;
    for (int i = 0; i < shape.rank; i++)
        dims[i] = (int32_t)shape.dims[i];
    if (f->setting.sizes == KNOWN) return mini_ints(f->function, "sizes", shape.rank, dims);
    first = mini_node(f->function, "Shape", "shape", 1, like);
    if (f->setting.sizes == OPEN) return first;
    /* as exporters write it: the batch from a shape, the other sizes as constants */
    parts[0] = mini_node(f->function, "Gather", "batch", 2, first, mini_int(f->function, "zero", 0));
    pack = mini_open(f->function, "Pack", "sizes", 1, parts[0]);
    for (int i = 1; i < shape.rank; i++)
        mini_ok(tare_node_add_input(pack, mini_int(f->function, "dim", dims[i])));
    mini_ok(tare_node_set_int(pack, "N", shape.rank));
    mini_ok(tare_node_set_type(pack, "T", TARE_DT_INT32));
    return mini_done(pack);
}

/* main: y = f(gradient[, filter][, like]). */
static void set_up(struct fixture *f, const struct setting *setting) {
    const struct setting *s = setting;
    const int outputs = is_depthwise(s) ? CHANNELS * OUTPUTS / 2 : OUTPUTS;
    const struct tare_shape gradient = layout(s, outputs, true, false), weights = filter_shape(s);
    const struct tare_shape input = layout(s, CHANNELS, false, false);
    struct tare_edge x, w, like = { NULL, 0 };
    struct tare_tensor filter = drawn(s->dtype, &weights, 7);
    struct tare_node *conv, *call;
    memset(f, 0, sizeof *f);
    f->setting = *s;
    f->model = mini_model_new();
    f->function = tare_model_add_function(f->model, "f");
    open_placeholder(f, "x", s->dtype, layout(s, outputs, true, true), drawn(s->dtype, &gradient, 1));
    x = mini_arg(f->function, "x", s->dtype);
    if (s->constant_filter) {
        w = (struct tare_edge){ tare_graph_add_const(f->function, "w", &filter), 0 };
        tare_tensor_reset(&filter);
    } else {
        open_placeholder(f, "w", s->dtype, weights, filter);
        w = mini_arg(f->function, "w", s->dtype);
    }
    if (s->sizes != KNOWN) {
        open_placeholder(f, "like", TARE_DT_FLOAT, layout(s, CHANNELS, false, true), drawn(TARE_DT_FLOAT, &input, 3));
        like = mini_arg(f->function, "like", TARE_DT_FLOAT);
    }
    conv = mini_open(f->function, s->op, "up", 3, sizes_of(f, like), w, x);
    mini_ok(tare_node_set_type(conv, "T", s->dtype));
    set_window(conv, s);
    mini_return(f->function, "y", mini_done(conv));
    call = mini_open(f->model->main, "StatefulPartitionedCall", "call", 0);
    mini_ok(tare_node_set_func(call, "f", "f"));
    int in[3];
    for (int i = 0; i < f->n_feeds; i++) {
        mini_ok(tare_node_add_input(call, f->feeds[i]));
        in[i] = tare_edge_dtype(f->feeds[i]);
    }
    mini_ok(tare_node_set_type_list(call, "Tin", in, (size_t)f->n_feeds));
    mini_ok(tare_node_set_type_list(call, "Tout", &s->dtype, 1));
    f->y = mini_done(call);
}

static void lower(struct fixture *f) {
    mini_ok(tare_tpu_lower_transposed(&f->changes, &f->arena, f->model, &f->function, 1));
    graph_check_dtypes(f->model);
}

static void tear_down(struct fixture *f) {
    for (int i = 0; i < f->n_feeds; i++)
        tare_tensor_reset(&f->values[i]);
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static struct tare_tensor result_of(const struct fixture *f) {
    struct tare_session *session = mini_session(f->model);
    struct tare_tensor y = { 0 };
    mini_ok(tare_session_run(session, f->feeds, f->values, (size_t)f->n_feeds, &f->y, &y, 1, NULL, 0));
    tare_session_free(session);
    return y;
}

static bool is_constant(const struct tare_graph *function, int input) {
    return tare_edge_constant(graph_only(function, "XlaConvV2")->inputs[input]);
}

static void check(const struct setting *setting) {
    struct fixture f;
    struct tare_tensor before, after;
    struct tare_strbuf why = { 0 };
    set_up(&f, setting);
    before = result_of(&f);
    lower(&f);
    assert_int_equal(f.changes, 1);
    assert_int_equal(graph_count(f.function, setting->op), 0);
    assert_int_equal(is_constant(f.function, 3), setting->sizes != OPEN);
    assert_int_equal(is_constant(f.function, 1), setting->constant_filter);
    after = result_of(&f);
    if (!tensors_agree(&why, &after, &before, (struct tolerance){ 0 }))
        fail_msg("%s %s stride %d dilation %d kernel %d groups %d %s%s: %s", setting->op, setting->padding,
                 (int)setting->stride, (int)setting->dilation, (int)setting->kernel, (int)setting->groups,
                 tare_dtype_name(setting->dtype), setting->channels_first ? " channels first" : "",
                 tare_strbuf_text(&why));
    tare_strbuf_free(&why);
    tare_tensor_reset(&before);
    tare_tensor_reset(&after);
    lower(&f);
    assert_int_equal(f.changes, 0); /* a second time there is nothing to do */
    tear_down(&f);
}

/* Every stride and dilation of the setting's op, both layouts, filters and sizes. */
static void sweep(struct setting s) {
    static const int64_t windows[][3] = { { 1, 1, 3 }, { 2, 1, 2 }, { 2, 1, 3 }, { 3, 1, 2 },
                                          { 1, 2, 3 }, { 2, 2, 2 }, { 2, 1, 1 } };
    for (int first = 0; first < 2; first++)
        for (size_t i = 0; i < sizeof windows / sizeof *windows; i++)
            for (int sizes = KNOWN; sizes <= OPEN; sizes++) {
                s.channels_first = first;
                s.stride = windows[i][0];
                s.dilation = windows[i][1];
                s.kernel = windows[i][2];
                s.sizes = sizes;
                s.constant_filter = (first + (int)i + sizes) % 2;
                check(&s);
            }
}

static void two_dimensions__keep_their_bits(void **state) {
    (void)state;
    for (int groups = 1; groups <= 2; groups++) {
        sweep(
            (struct setting){ "Conv2DBackpropInput", 2, .padding = "VALID", .groups = groups, .dtype = TARE_DT_FLOAT });
        sweep(
            (struct setting){ "Conv2DBackpropInput", 2, .padding = "SAME", .groups = groups, .dtype = TARE_DT_FLOAT });
        sweep((struct setting){ "Conv2DBackpropInput", 2, .padding = "EXPLICIT", .low = 2, .high = 1, .groups = groups,
                                .dtype = TARE_DT_FLOAT });
    }
}

static void three_dimensions__keep_their_bits(void **state) {
    (void)state;
    sweep((struct setting){ "Conv3DBackpropInputV2", 3, .padding = "VALID", .groups = 1, .dtype = TARE_DT_FLOAT });
    sweep((struct setting){ "Conv3DBackpropInputV2", 3, .padding = "SAME", .groups = 1, .dtype = TARE_DT_FLOAT });
}

static void depthwise_ones__keep_their_bits(void **state) {
    (void)state;
    sweep((struct setting){ "DepthwiseConv2dNativeBackpropInput", 2, .padding = "VALID", .groups = 1,
                            .dtype = TARE_DT_FLOAT });
    sweep((struct setting){ "DepthwiseConv2dNativeBackpropInput", 2, .padding = "SAME", .groups = 1,
                            .dtype = TARE_DT_FLOAT });
    sweep((struct setting){ "DepthwiseConv2dNativeBackpropInput", 2, .padding = "EXPLICIT", .low = 1, .high = 2,
                            .groups = 1, .dtype = TARE_DT_FLOAT });
}

static void every_dtype__keeps_its_bits(void **state) {
    static const int dtypes[] = { TARE_DT_BFLOAT16, TARE_DT_HALF, TARE_DT_DOUBLE, TARE_DT_INT32 };
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        sweep((struct setting){ "Conv2DBackpropInput", 2, .padding = "SAME", .groups = 1, .dtype = dtypes[i] });
        if (dtypes[i] == TARE_DT_INT32) continue;
        sweep((struct setting){ "DepthwiseConv2dNativeBackpropInput", 2, .padding = "SAME", .groups = 1,
                                .dtype = dtypes[i] });
    }
}

static const struct setting usual = { "Conv2DBackpropInput",   2,
                                      .padding = "SAME",       .groups = 1,
                                      .dtype = TARE_DT_FLOAT,  .stride = 2,
                                      .dilation = 1,           .kernel = 3,
                                      .constant_filter = true, .sizes = OPEN_BATCH };

static void shapes__stay_known_but_for_the_batch(void **state) {
    struct fixture f;
    struct tare_model_shapes *shapes;
    struct tare_shape shape;
    (void)state;
    set_up(&f, &usual);
    lower(&f);
    mini_ok(tare_model_shapes_new(&shapes, f.model));
    shape = tare_model_shape(shapes, f.y);
    assert_int_equal(shape.rank, 4);
    assert_int_equal(shape.dims[0], -1);
    assert_int_equal(shape.dims[1], input_size(0));
    assert_int_equal(shape.dims[2], input_size(1));
    assert_int_equal(shape.dims[3], CHANNELS);
    tare_model_shapes_free(shapes);
    tear_down(&f);
}

/* The original filter, and the sum that computed the sizes, have no use left. */
static void a_constant_filter__is_reversed_once_and_for_all(void **state) {
    struct fixture f;
    struct tare_edge filter;
    (void)state;
    set_up(&f, &usual);
    const float first =
        TARE_CONST_DATA(float, tare_edge_constant((struct tare_edge){ graph_node(f.function, "w"), 0 }))[0];
    lower(&f);
    assert_int_equal(graph_count(f.function, "ReverseV2"), 0);
    assert_int_equal(graph_count(f.function, "Pack"), 0);
    assert_null(tare_graph_find(f.function, "w"));
    filter = graph_only(f.function, "XlaConvV2")->inputs[1];
    assert_float_equal(TARE_CONST_DATA(float, tare_edge_constant(filter))[8 * CHANNELS * OUTPUTS], first, 0);
    tear_down(&f);
}

static void controls__pass_to_the_new_node(void **state) {
    struct fixture f;
    struct tare_node *before, *after, *conv;
    (void)state;
    set_up(&f, &usual);
    before = mini_node(f.function, "TestEffect", "before", 1, (struct tare_edge){ f.function->args[0], 0 }).node;
    after = mini_node(f.function, "TestEffect", "after", 1, (struct tare_edge){ f.function->args[0], 0 }).node;
    mini_ok(tare_node_add_control(graph_node(f.function, "up"), before));
    mini_ok(tare_node_add_control(after, graph_node(f.function, "up")));
    lower(&f);
    conv = graph_only(f.function, "XlaConvV2");
    assert_int_equal(conv->n_controls, 1);
    assert_ptr_equal(conv->controls[0], before);
    assert_ptr_equal(after->controls[0], conv);
    tear_down(&f);
}

/* The second one's input is the first one's new output: its shape is known all the same. */
static void a_chain__has_constant_paddings(void **state) {
    static const int64_t ones[] = { 1, 1, 1, 1 };
    const struct tare_shape square = tare_shape_make(4, 1, 1, CHANNELS, CHANNELS);
    struct tare_tensor filter = drawn(TARE_DT_FLOAT, &square, 5);
    struct fixture f;
    struct tare_node *second;
    (void)state;
    set_up(&f, &usual);
    second = mini_open(f.function, "Conv2DBackpropInput", "second", 3,
                       (struct tare_edge){ graph_node(f.function, "sizes"), 0 },
                       (struct tare_edge){ tare_graph_add_const(f.function, "w2", &filter), 0 },
                       (struct tare_edge){ graph_node(f.function, "up"), 0 });
    mini_ok(tare_node_set_type(second, "T", TARE_DT_FLOAT));
    mini_ok(tare_node_set_int_list(second, "strides", ones, 4));
    mini_ok(tare_node_set_string(second, "padding", "SAME", 4));
    tare_graph_set_return(f.function, 0, mini_done(second));
    lower(&f);
    assert_int_equal(f.changes, 2);
    assert_int_equal(graph_count(f.function, "XlaConvV2"), 2);
    assert_int_equal(graph_count(f.function, "Slice"), 0);
    tare_tensor_reset(&filter);
    tear_down(&f);
}

/* It fails when it runs; padded until it fits it would not. */
static void sizes_that_do_not_fit__leave_the_node(void **state) {
    struct setting s = usual;
    struct fixture f;
    (void)state;
    s.sizes = KNOWN;
    set_up(&f, &s);
    set_ints(graph_node(f.function, "up"), "strides", &s, 3);
    lower(&f);
    assert_int_equal(f.changes, 0);
    assert_int_equal(graph_count(f.function, "Conv2DBackpropInput"), 1);
    tear_down(&f);
}

static void what_the_cpu_calls__stays(void **state) {
    struct fixture f;
    struct tare_graph *chosen, *inner;
    struct tare_edge x, like;
    (void)state;
    set_up(&f, &usual);
    inner = f.function;
    chosen = tare_model_add_function(f.model, "chosen");
    x = mini_arg(chosen, "x", TARE_DT_FLOAT);
    like = mini_arg(chosen, "like", TARE_DT_FLOAT);
    mini_return(chosen, "y", mini_call(chosen, "PartitionedCall", "down", inner, 2, x, like));
    mini_call(f.model->main, "PartitionedCall", "on_tpu", chosen, 2, f.feeds[0], f.feeds[1]);
    f.function = chosen;
    lower(&f);
    assert_int_equal(f.changes, 1);
    assert_int_equal(graph_count(inner, "Conv2DBackpropInput"), 1);
    assert_int_equal(graph_count(tare_node_function(graph_node(chosen, "down"), "f"), "XlaConvV2"), 1);
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_dimensions__keep_their_bits),
        cmocka_unit_test(three_dimensions__keep_their_bits),
        cmocka_unit_test(depthwise_ones__keep_their_bits),
        cmocka_unit_test(every_dtype__keeps_its_bits),
        cmocka_unit_test(shapes__stay_known_but_for_the_batch),
        cmocka_unit_test(a_constant_filter__is_reversed_once_and_for_all),
        cmocka_unit_test(controls__pass_to_the_new_node),
        cmocka_unit_test(a_chain__has_constant_paddings),
        cmocka_unit_test(sizes_that_do_not_fit__leave_the_node),
        cmocka_unit_test(what_the_cpu_calls__stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
