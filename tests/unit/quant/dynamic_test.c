/* Dynamic range quantization against a plain evaluation of its formulas, bit for bit. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/quantize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 3, K = 5, N = 4 };

/* weights with 127 in every column: scale 1, integers as they are */
static const float weights[K * N] = { 127, -127, 5,  127, 0, -64, 127, 1,    33, 12,
                                      -7,  90,   -1, 2,   3, -4,  100, -101, 64, -65 };

struct quantized {
    struct tare_graph_model *model;
    struct tare_edge x, y;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static void run_quantized(struct quantized *q, struct tare_tensor *result, const struct tare_shape *shape,
                          const float *x) {
    struct tare_session *session = mini_session(q->model);
    struct tare_tensor fed;
    mini_ok(tare_tensor_from(&fed, TARE_DT_FLOAT, shape, x));
    mini_ok(tare_session_run(session, &q->x, &fed, 1, &q->y, result, 1, NULL, 0));
    tare_tensor_reset(&fed);
    tare_session_free(session);
}

static void quantize(struct quantized *q) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_dynamic, .min_elements = 1 };
    mini_ok(tare_quantize(&q->report, &q->arena, q->model, NULL, &options));
}

static void free_quantized(struct quantized *q) {
    tare_model_free(q->model);
    tare_arena_free(&q->arena);
}

/* The function f(x) = op(x, w) with a call of it; the shape of x is known. */
static struct tare_node *open_model(struct quantized *q, const char *op, const struct tare_shape *shape,
                                    const struct tare_shape *weight_shape, const float *values) {
    struct tare_tensor w;
    memset(q, 0, sizeof *q);
    q->model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(q->model, "f");
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_ok(tare_tensor_from(&w, TARE_DT_FLOAT, weight_shape, values));
    struct tare_edge c = { tare_graph_add_const(f, "w", &w), 0 };
    tare_tensor_reset(&w);
    q->x = mini_placeholder(q->model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(q->x.node, "shape", shape));
    return mini_open(f, op, "product", 2, x, c);
}

static void close_model(struct quantized *q, struct tare_node *node) {
    struct tare_graph *f = node->graph;
    mini_return(f, "y", mini_done(node));
    q->y = mini_call(q->model->main, "PartitionedCall", "call", f, 1, q->x);
    quantize(q);
}

struct parameters {
    float scale;
    int32_t zero_point;
};

/* The same in float64. */
static void check_against_float64(const struct parameters *p, float low, float high) {
    const double u = ldexp(1, -24), scale = fmax((double)high - (double)low, 1e-30) / 255, z = 127 - high / scale;
    assert_true(fabs((double)p->scale - (double)(float)scale) <= 3.01 * u * scale);
    if (low == 0 || high == 0) assert_float_equal(p->scale, (float)scale, 0);
    assert_true(fabs(z - p->zero_point) <= 0.5 + 1.0 / 16384);
}

/* The parameters of a row as the head of quant/dynamic_range.c has them, in float32. */
static struct parameters parameters_of(const float *x, int count) {
    float low = 0, high = 0;
    struct parameters p;
    for (int i = 0; i < count; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    p.scale = fmaxf(high / 255 - low / 255, 1e-30f / 255);
    p.zero_point = (int32_t)rintf(127 - high / p.scale);
    check_against_float64(&p, low, high);
    return p;
}

/* The bounds hold for ranges of all sizes; both ends of the range have a code. */
static void parameters__differ_from_float64_by_the_bound(void **state) {
    uint32_t random = 1;
    (void)state;
    for (int k = 0; k < 200000; k++) {
        float x[2];
        struct parameters p;
        for (int i = 0; i < 2; i++) {
            random = random * 1664525u + 1013904223u;
            x[i] = ldexpf((float)(random >> 8), (int)(random % 80) - 64) * (k % 3 || i == 0 ? 1 : 1e-4f);
        }
        x[1] = -x[1];
        if (k % 7 == 0) x[k % 2] = 0;
        p = parameters_of(x, 2);
        assert_true(p.zero_point >= -128 && p.zero_point <= 127);
        assert_true(x[0] / p.scale + (float)p.zero_point < 127.51f);
        assert_true(x[1] / p.scale + (float)p.zero_point > -128.51f);
    }
}

static int32_t centred(float x, const struct parameters *p) {
    const float q = floorf(x / p->scale + (float)p->zero_point + 0.5f);
    return (int32_t)fminf(fmaxf(q, -128), 127) - p->zero_point;
}

static void check_product(const float *x) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, K), weight_shape = tare_shape_make(2, K, N);
    struct tare_tensor result;
    struct quantized q;
    close_model(&q, open_model(&q, "MatMul", &shape, &weight_shape, weights));
    assert_int_equal(q.report.quantized, 1);
    run_quantized(&q, &result, &shape, x);
    for (int m = 0; m < ROWS; m++) {
        const struct parameters p = parameters_of(x + m * K, K);
        for (int n = 0; n < N; n++) {
            int32_t sum = 0;
            for (int k = 0; k < K; k++)
                sum += centred(x[m * K + k], &p) * (int32_t)weights[k * N + n];
            assert_float_equal(TARE_DATA(float, &result)[m * N + n], (float)sum * (p.scale * 1.0f), 0);
        }
    }
    tare_tensor_reset(&result);
    free_quantized(&q);
}

static void matmul__is_the_formula_on_both_signs(void **state) {
    float x[ROWS * K];
    (void)state;
    for (int i = 0; i < ROWS * K; i++)
        x[i] = (float)(i * 37 % 41) * 0.173f - 2.9f;
    check_product(x);
}

static void matmul__is_the_formula_on_one_sign(void **state) {
    float x[ROWS * K];
    (void)state;
    for (int i = 0; i < ROWS * K; i++)
        x[i] = 3 + (float)(i * 29 % 31) * 0.21f; /* the range begins at 0, not at 3 */
    check_product(x);
    for (int i = 0; i < ROWS * K; i++)
        x[i] = -x[i];
    check_product(x);
}

static void dynamic_degenerate__all_zeros_stay_zero(void **state) {
    const float x[ROWS * K] = { 0 };
    (void)state;
    check_product(x);
}

static void ties__go_up(void **state) {
    /* scale 1, zero point 127 - 255 = -128: x + 0.5 floored */
    float x[ROWS * K] = { 0, 255, 0.5f, 1.5f, 2.5f };
    const struct parameters p = parameters_of(x, K);
    (void)state;
    assert_float_equal(p.scale, 1, 0);
    assert_int_equal(p.zero_point, -128);
    assert_int_equal(centred(0.5f, &p), 1);
    assert_int_equal(centred(1.5f, &p), 2); /* half to even would be 2, and 2 for 2.5 too */
    assert_int_equal(centred(2.5f, &p), 3);
    check_product(x);
}

enum { IMAGES = 2, HEIGHT = 4, WIDTH = 5, IN = 2, OUT = 3, KERNEL = 3, PIXELS = HEIGHT * WIDTH };

/* One element of the convolution of an image, whose padding is real zero. */
static float conv_element(const float *image, const float *filter, int y, int x, int c) {
    const struct parameters p = parameters_of(image, PIXELS * IN);
    int32_t sum = 0;
    for (int a = 0; a < KERNEL * KERNEL; a++) {
        const int i = y + a / KERNEL - 1, j = x + a % KERNEL - 1;
        for (int d = 0; d < IN && i >= 0 && j >= 0 && i < HEIGHT && j < WIDTH; d++)
            sum += centred(image[(i * WIDTH + j) * IN + d], &p) * (int32_t)filter[(a * IN + d) * OUT + c];
    }
    return (float)sum * p.scale;
}

static void conv2d__each_image_has_a_range_and_same_padding_is_real_zero(void **state) {
    const struct tare_shape shape = tare_shape_make(4, IMAGES, HEIGHT, WIDTH, IN);
    const struct tare_shape filter_shape = tare_shape_make(4, KERNEL, KERNEL, IN, OUT);
    float x[IMAGES * PIXELS * IN], filter[KERNEL * KERNEL * IN * OUT];
    struct tare_tensor result;
    struct quantized q;
    (void)state;
    for (int i = 0; i < IMAGES * PIXELS * IN; i++)
        x[i] = (1 + (float)(i * 17 % 23) * 0.31f) * (i < PIXELS * IN ? 1 : 300);
    for (int i = 0; i < KERNEL * KERNEL * IN * OUT; i++)
        filter[i] = i < OUT ? 127.0f : (float)(i * 53 % 255 - 127);
    struct tare_node *conv = open_model(&q, "Conv2D", &shape, &filter_shape, filter);
    mini_ok(tare_node_set_int_list(conv, "strides", (const int64_t[]){ 1, 1, 1, 1 }, 4));
    mini_ok(tare_node_set_string(conv, "padding", "SAME", 4));
    close_model(&q, conv);
    assert_int_equal(q.report.quantized, 1);
    run_quantized(&q, &result, &shape, x);
    for (int i = 0; i < IMAGES * PIXELS * OUT; i++) {
        const int image = i / (PIXELS * OUT), pixel = i / OUT % PIXELS;
        const float expected = conv_element(x + image * PIXELS * IN, filter, pixel / WIDTH, pixel % WIDTH, i % OUT);
        assert_float_equal(TARE_DATA(float, &result)[i], expected, 0);
    }
    tare_tensor_reset(&result);
    free_quantized(&q);
}

/* What a TPU computes on its integer units. */
static void products__are_of_bytes(void **state) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, K), weight_shape = tare_shape_make(2, K, N);
    struct quantized q;
    int products = 0;
    (void)state;
    close_model(&q, open_model(&q, "MatMul", &shape, &weight_shape, weights));
    const struct tare_graph *f = q.model->functions[0];
    for (size_t i = 0; i < f->n_nodes; i++) {
        const struct tare_node *node = f->nodes[i];
        if (node->dead || strcmp(node->op, "XlaDotV2") != 0) continue;
        products++;
        assert_int_equal(tare_edge_dtype(node->inputs[0]), TARE_DT_INT8);
        assert_int_equal(tare_edge_dtype(node->inputs[1]), TARE_DT_INT8);
        assert_int_equal(node->output_dtypes[0], TARE_DT_INT32);
    }
    assert_int_equal(products, 1);
    free_quantized(&q);
}

static void batch_matmul__is_quantized_where_one_side_is_a_weight(void **state) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, K), weight_shape = tare_shape_make(2, K, N);
    struct quantized q;
    (void)state;
    close_model(&q, open_model(&q, "BatchMatMulV2", &shape, &weight_shape, weights));
    assert_int_equal(q.report.count, 1);
    assert_int_equal(q.report.quantized, 1);
    free_quantized(&q);
}

/* ---- rows ---- */

/* Each row of a batch has the bits of its own run, however large the others are. */
static void rows__do_not_depend_on_their_batch(void **state) {
    enum { MOST = 64 };
    const struct tare_shape shape = { .rank = 2, .dims = { -1, K } }, weight_shape = tare_shape_make(2, K, N);
    static float x[MOST * K];
    struct quantized q;
    (void)state;
    close_model(&q, open_model(&q, "MatMul", &shape, &weight_shape, weights));
    for (int i = 0; i < MOST * K; i++)
        x[i] = ldexpf((float)(i * 37 % 41) * 0.173f - 2.9f, i / K % 13);
    struct tare_tensor all;
    const struct tare_shape whole = tare_shape_make(2, MOST, K), one = tare_shape_make(2, 1, K);
    run_quantized(&q, &all, &whole, x);
    for (int m = 0; m < MOST; m++) {
        struct tare_tensor alone;
        run_quantized(&q, &alone, &one, x + m * K);
        assert_memory_equal(alone.data, TARE_DATA(float, &all) + m * N, N * sizeof(float));
        tare_tensor_reset(&alone);
    }
    tare_tensor_reset(&all);
    free_quantized(&q);
}

/* ---- concatenated activations ---- */

/* f(x, h) = concat(x, h) w. Only the first column of the result depends on x. */
enum { WIDE = 3, NARROW = 5 };

static struct tare_tensor draw(int64_t columns, float size, uint64_t seed) {
    const struct tare_shape shape = { .rank = 2, .dims = { ROWS, columns } };
    struct tare_tensor out;
    mini_ok(tare_tensor_new(&out, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < out.elements; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        TARE_DATA(float, &out)[i] = size * ((float)(seed >> 40) / (float)(1 << 23) - 1);
    }
    return out;
}

/* Builds the model, quantizes it if asked to, and runs it; x is `larger` times h. */
static struct tare_tensor run_concatenation(float larger, bool quantized, int *products) {
    const struct tare_shape shape = { .rank = 2, .dims = { -1, WIDE } }, other = { .rank = 2, .dims = { -1, NARROW } };
    const struct tare_shape weight = { .rank = 2, .dims = { WIDE + NARROW, N } };
    float values[(WIDE + NARROW) * N];
    struct tare_tensor fed[] = { draw(WIDE, larger, 3), draw(NARROW, 1, 4) }, w, result;
    struct quantized q = { .model = mini_model_new() };
    struct tare_graph *f = tare_model_add_function(q.model, "f");
    const struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), h = mini_arg(f, "h", TARE_DT_FLOAT);
    struct tare_edge in[2], y;
    struct tare_session *session;
    for (int i = 0; i < (WIDE + NARROW) * N; i++)
        values[i] = i < WIDE * N ? (float)(i % N == 0) : (float)(i * 37 % 19 - 9) / 9;
    mini_ok(tare_tensor_from(&w, TARE_DT_FLOAT, &weight, values));
    y = mini_node(f, "ConcatV2", "joined", 3, x, h, mini_int(f, "axis", -1));
    y = mini_node(f, "MatMul", "product", 2, y, (struct tare_edge){ tare_graph_add_const(f, "w", &w), 0 });
    mini_return(f, "y", y);
    in[0] = mini_placeholder(q.model->main, "in0", TARE_DT_FLOAT);
    in[1] = mini_placeholder(q.model->main, "in1", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(in[0].node, "shape", &shape));
    mini_ok(tare_node_set_shape(in[1].node, "shape", &other));
    y = mini_call(q.model->main, "PartitionedCall", "call", f, 2, in[0], in[1]);
    if (quantized) quantize(&q);
    *products = 0;
    for (size_t i = 0; i < f->n_nodes; i++)
        *products += strcmp(f->nodes[i]->op, "XlaDotV2") == 0;
    session = mini_session(q.model);
    mini_ok(tare_session_run(session, in, fed, 2, &y, &result, 1, NULL, 0));
    tare_session_free(session);
    tare_tensor_reset(&w);
    tare_tensor_reset(&fed[0]);
    tare_tensor_reset(&fed[1]);
    free_quantized(&q);
    return result;
}

static void operands_of_a_concatenation__have_scales_of_their_own(void **state) {
    const float larger[] = { 1, 1000 };
    (void)state;
    for (int i = 0; i < 2; i++) {
        int products;
        struct tare_tensor expected = run_concatenation(larger[i], false, &products);
        assert_int_equal(products, 0);
        struct tare_tensor got = run_concatenation(larger[i], true, &products);
        double noise = 0, signal = 0;
        assert_int_equal(products, 2);
        for (int64_t k = 0; k < got.elements; k++) {
            if (k % N == 0) continue;
            const double w = (double)TARE_CONST_DATA(float, &expected)[k];
            signal += w * w;
            noise += pow((double)TARE_CONST_DATA(float, &got)[k] - w, 2);
        }
        /* with one scale for both, h would be less than half a step of it where x is 1000 times larger */
        if (!(noise < 1e-3 * signal)) fail_msg("%g times larger: noise %g", (double)larger[i], noise / signal);
        tare_tensor_reset(&expected);
        tare_tensor_reset(&got);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters__differ_from_float64_by_the_bound),
        cmocka_unit_test(matmul__is_the_formula_on_both_signs),
        cmocka_unit_test(matmul__is_the_formula_on_one_sign),
        cmocka_unit_test(dynamic_degenerate__all_zeros_stay_zero),
        cmocka_unit_test(ties__go_up),
        cmocka_unit_test(conv2d__each_image_has_a_range_and_same_padding_is_real_zero),
        cmocka_unit_test(products__are_of_bytes),
        cmocka_unit_test(batch_matmul__is_quantized_where_one_side_is_a_weight),
        cmocka_unit_test(rows__do_not_depend_on_their_batch),
        cmocka_unit_test(operands_of_a_concatenation__have_scales_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
