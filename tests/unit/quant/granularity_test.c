/* Weight-only layers of every granularity and width against products with weights that the test quantizes itself. */
#include "support/mini_model.h"

#include "base/arena.h"
#include "quant/layer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 101, COLUMNS = 3, SAMPLES = 2 };

/* Sums of a hundred products in another order. */
static const double TOLERANCE = 1e-5;

static float noise(int64_t i) {
    return (float)((i * 7919 % 2003) - 1001) / 500.0f;
}

struct quantized {
    struct tare_graph_model *model;
    struct tare_edge x, y;
    struct tare_arena arena;
    struct tare_quant_report report;
};

static struct tare_tensor filled(const struct tare_shape *shape) {
    struct tare_tensor tensor;
    mini_ok(tare_tensor_new(&tensor, TARE_DT_FLOAT, shape));
    for (int64_t i = 0; i < tensor.elements; i++)
        TARE_DATA(float, &tensor)[i] = noise(i) * (float)(1 + i % 5);
    return tensor;
}

/* x, a weight of the shape, and y = op(x, w) (a table: op(w, x, axis)), quantized. */
static void make(struct quantized *q, const char *op, const struct tare_tensor *weight,
                 const struct tare_shape *x_shape, const struct tare_quant_setting *setting) {
    struct tare_quant_plan options = { .setting = *setting, .min_elements = 1 };
    const bool table = strcmp(op, "GatherV2") == 0;
    memset(q, 0, sizeof *q);
    options.setting.method = &tare_method_weight_only;
    q->model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(q->model, "f");
    struct tare_edge x = mini_arg(f, "x", table ? TARE_DT_INT32 : TARE_DT_FLOAT), y;
    struct tare_edge w = { tare_graph_add_const(f, "w", weight), 0 };
    if (table)
        y = mini_node(f, op, "layer", 3, w, x, mini_int(f, "axis", 0));
    else
        y = mini_node(f, op, "layer", 2, x, w);
    mini_return(f, "y", y);
    q->x = mini_placeholder(q->model->main, "in", table ? TARE_DT_INT32 : TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(q->x.node, "shape", x_shape));
    q->y = mini_call(q->model->main, "PartitionedCall", "call", f, 1, q->x);
    mini_ok(tare_quantize(&q->report, &q->arena, q->model, NULL, &options));
    if (q->report.quantized != 1) fail_msg("%s: %s", op, q->report.outcomes[0].refused);
}

static struct tare_tensor answer(struct quantized *q, const struct tare_tensor *x) {
    struct tare_session *session = mini_session(q->model);
    struct tare_tensor result;
    mini_ok(tare_session_run(session, &q->x, x, 1, &q->y, &result, 1, NULL, 0));
    tare_session_free(session);
    return result;
}

static void end(struct quantized *q) {
    tare_model_free(q->model);
    tare_arena_free(&q->arena);
}

/* Column n of a weight [rows, columns] after quantization with one scale per `block` rows, or for the whole weight;
 * returns its squared error. */
static double dequantized_column(double *out, const float *w, int64_t rows, int64_t columns, int64_t n, int64_t block,
                                 bool per_tensor, int bits, bool full) {
    const double qmax = (1 << (bits - 1)) - 1;
    double error = 0;
    for (int64_t k = 0; k < rows; k++) {
        double high = 0, low = 0;
        for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
                if (!per_tensor && (j != n || i / block != k / block)) continue;
                high = fmax(high, w[i * columns + j]);
                low = fmin(low, w[i * columns + j]);
            }
        const double scale = full ? fmax(high / qmax, -low / (qmax + 1)) : fmax(high, -low) / qmax;
        const double q = round(w[k * columns + n] / scale);
        out[k * columns + n] = fmin(fmax(q, full ? -qmax - 1 : -qmax), qmax) * scale;
        error += pow(w[k * columns + n] - out[k * columns + n], 2);
    }
    return error;
}

/* What a weight [rows, columns] is after quantization: in each column the block size of least squared error among
 * `block`, its double, … and all rows. */
static void dequantized(double *out, const float *w, int64_t rows, int64_t columns, int64_t block, bool per_tensor,
                        int bits, bool full) {
    for (int64_t n = 0; n < columns; n++) {
        int64_t best = block;
        double least = dequantized_column(out, w, rows, columns, n, block, per_tensor, bits, full), error;
        for (int64_t size = 2 * block; size < 2 * rows; size *= 2) {
            error = dequantized_column(out, w, rows, columns, n, size, per_tensor, bits, full);
            if (!(error < least)) continue;
            least = error;
            best = size;
        }
        dequantized_column(out, w, rows, columns, n, best, per_tensor, bits, full);
    }
}

static void check_matmul(const struct tare_quant_setting *setting) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, COLUMNS), x_shape = tare_shape_make(2, SAMPLES, ROWS);
    struct tare_tensor w = filled(&shape), x = filled(&x_shape), y;
    double real[ROWS * COLUMNS];
    struct quantized q;
    make(&q, "MatMul", &w, &x_shape, setting);
    y = answer(&q, &x);
    dequantized(real, TARE_DATA(float, &w), ROWS, COLUMNS,
                setting->granularity == TARE_PER_BLOCK ? setting->block : ROWS, setting->granularity == TARE_PER_TENSOR,
                setting->bits, setting->full_range);
    for (int m = 0; m < SAMPLES; m++)
        for (int n = 0; n < COLUMNS; n++) {
            double sum = 0, size = 0;
            for (int k = 0; k < ROWS; k++) {
                const double term = TARE_DATA(float, &x)[m * ROWS + k] * real[k * COLUMNS + n];
                sum += term;
                size += fabs(term);
            }
            const double got = TARE_DATA(float, &y)[m * COLUMNS + n];
            if (fabs(got - sum) > TOLERANCE * size)
                fail_msg("bits %d, granularity %d, block %d: [%d, %d] is %.9g (expected %.9g)", setting->bits,
                         (int)setting->granularity, (int)setting->block, m, n, got, sum);
        }
    tare_tensor_reset(&w);
    tare_tensor_reset(&x);
    tare_tensor_reset(&y);
    end(&q);
}

static void matmul__every_granularity_and_width(void **state) {
    static const int64_t blocks[] = { 32, 64, 128 }; /* 101 rows: a short last block, and one block alone */
    (void)state;
    for (int bits = 4; bits <= 8; bits += 4)
        for (int full = 0; full < 2; full++) {
            check_matmul(
                &(struct tare_quant_setting){ .bits = bits, .full_range = full, .granularity = TARE_PER_TENSOR });
            check_matmul(&(struct tare_quant_setting){ .bits = bits, .full_range = full });
            for (int i = 0; i < 3; i++)
                check_matmul(&(struct tare_quant_setting){
                    .bits = bits, .full_range = full, .granularity = TARE_PER_BLOCK, .block = blocks[i] });
        }
}

/* ---- blocks of every kind of layer: the float layer with the weight that the test dequantizes ---- */

struct block_case {
    const char *op, *equation;
    struct tare_shape x, w;
    int64_t batches, rows, columns; /* of the weight, a stack of matrices as it lies */
};

static struct tare_edge block_layer(struct tare_graph *f, const struct block_case *c, struct tare_edge x,
                                    const struct tare_tensor *weight) {
    struct tare_node *op =
        mini_open(f, c->op, "layer", 2, x, (struct tare_edge){ tare_graph_add_const(f, "w", weight), 0 });
    if (c->equation) mini_ok(tare_node_set_string(op, "equation", c->equation, strlen(c->equation)));
    if (strncmp(c->op, "Conv", 4) == 0) {
        mini_ok(tare_node_set_int_list(op, "strides", (const int64_t[]){ 1, 1, 1, 1, 1 }, (size_t)c->x.rank));
        mini_ok(tare_node_set_string(op, "padding", "SAME", 4));
    }
    return mini_done(op);
}

static struct tare_tensor block_answer(const struct block_case *c, const struct tare_tensor *weight,
                                       const struct tare_tensor *x, const struct tare_quant_setting *setting) {
    struct quantized q = { .model = mini_model_new() };
    struct tare_graph *f = tare_model_add_function(q.model, "f");
    mini_return(f, "y", block_layer(f, c, mini_arg(f, "x", TARE_DT_FLOAT), weight));
    q.x = mini_placeholder(q.model->main, "in", TARE_DT_FLOAT);
    mini_ok(tare_node_set_shape(q.x.node, "shape", &c->x));
    q.y = mini_call(q.model->main, "PartitionedCall", "call", f, 1, q.x);
    if (setting) {
        const struct tare_quant_plan options = { .setting = *setting, .min_elements = 1 };
        mini_ok(tare_quantize(&q.report, &q.arena, q.model, NULL, &options));
        if (q.report.quantized != 1) fail_msg("%s: %s", c->op, q.report.outcomes[0].refused);
    }
    struct tare_tensor y = answer(&q, x);
    end(&q);
    return y;
}

static void check_blocks(const struct block_case *c, int64_t block, int bits) {
    const struct tare_quant_setting setting = {
        .method = &tare_method_weight_only, .granularity = TARE_PER_BLOCK, .block = block, .bits = bits
    };
    const int64_t matrix = c->rows * c->columns;
    struct tare_tensor w = filled(&c->w), x = filled(&c->x), real;
    double *values = calloc((size_t)matrix, sizeof *values);
    assert_non_null(values);
    mini_ok(tare_tensor_new(&real, TARE_DT_FLOAT, &c->w));
    for (int64_t b = 0; b < c->batches; b++) {
        dequantized(values, TARE_DATA(float, &w) + b * matrix, c->rows, c->columns, block, false, bits, false);
        for (int64_t i = 0; i < matrix; i++)
            TARE_DATA(float, &real)[b * matrix + i] = (float)values[i];
    }
    struct tare_tensor got = block_answer(c, &w, &x, &setting), expected = block_answer(c, &real, &x, NULL);
    assert_true(got.elements == expected.elements);
    for (int64_t i = 0; i < got.elements; i++) {
        const double y = TARE_DATA(float, &expected)[i];
        if (fabs(TARE_DATA(float, &got)[i] - y) > 1e-4 * (1 + fabs(y)))
            fail_msg("%s, blocks of %d, %d bits: element %d is %.9g (expected %.9g)", c->op, (int)block, bits, (int)i,
                     TARE_DATA(float, &got)[i], y);
    }
    free(values);
    tare_tensor_reset(&w);
    tare_tensor_reset(&x);
    tare_tensor_reset(&real);
    tare_tensor_reset(&got);
    tare_tensor_reset(&expected);
}

static void blocks__of_every_kind_of_layer(void **state) {
    static const int64_t blocks[] = { 32, 64, 128, 256 };
    const struct block_case cases[] = {
        { "Conv2D", NULL, tare_shape_make(4, 1, 3, 4, 11), tare_shape_make(4, 3, 3, 11, 2), 1, 99, 2 },
        { "Conv3D", NULL, tare_shape_make(5, 1, 2, 3, 2, 13), tare_shape_make(5, 2, 2, 2, 13, 2), 1, 104, 2 },
        { "BatchMatMulV2", NULL, tare_shape_make(3, 2, 3, 70), tare_shape_make(3, 2, 70, 3), 2, 70, 3 },
        { "Einsum", "abc,cde->abde", tare_shape_make(3, 2, 2, 66), tare_shape_make(3, 66, 2, 3), 1, 66, 6 },
        { "Einsum", "abcd,cde->abe", tare_shape_make(4, 1, 2, 9, 8), tare_shape_make(3, 9, 8, 3), 1, 72, 3 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t b = 0; b < 4; b++) {
            check_blocks(&cases[i], blocks[b], 8);
            check_blocks(&cases[i], blocks[b], 4);
        }
}

static void int4__takes_half_a_byte_an_element(void **state) {
    const struct tare_shape shape = tare_shape_make(2, ROWS, COLUMNS), x_shape = tare_shape_make(2, SAMPLES, ROWS);
    struct tare_tensor w = filled(&shape);
    int64_t bytes = 0;
    struct quantized q;
    (void)state;
    make(&q, "MatMul", &w, &x_shape, &(struct tare_quant_setting){ .bits = 4 });
    const struct tare_graph *f = q.model->functions[0];
    for (size_t i = 0; i < f->n_nodes; i++)
        if (strcmp(f->nodes[i]->op, "Const") == 0) {
            const struct tare_tensor *value = tare_node_tensor(f->nodes[i], "value");
            if (value->dtype == TARE_DT_INT8) bytes += value->elements;
        }
    assert_int_equal(bytes, (ROWS + 1) / 2 * COLUMNS + 1); /* and the distance of the shifts */
    assert_int_equal(q.report.outcomes[0].bits, 4);
    tare_tensor_reset(&w);
    end(&q);
}

static void nibble_packing__low_half_of_the_rows_first(void **state) {
    const struct tare_shape shape = tare_shape_make(2, 3, 2);
    const int8_t values[] = { 1, -1, 2, -2, 7, -7 };
    struct tare_quantized_weight weight = { .layout = { 1, 3, 2, 0, false }, .n_scales = 2, .n_blocks = 1, .bits = 4 };
    struct tare_tensor packed;
    (void)state;
    mini_ok(tare_tensor_from(&weight.values, TARE_DT_INT8, &shape, values));
    mini_ok(tare_weight_pack_nibbles(&packed, &weight));
    assert_int_equal(packed.shape.dims[0], 2);
    assert_int_equal(TARE_DATA(uint8_t, &packed)[0], 0x71); /* rows 0 and 2 */
    assert_int_equal(TARE_DATA(uint8_t, &packed)[1], 0x9f);
    assert_int_equal(TARE_DATA(uint8_t, &packed)[2], 0x02); /* row 1 and the row of zeros */
    assert_int_equal(TARE_DATA(uint8_t, &packed)[3], 0x0e);
    tare_tensor_reset(&packed);
    tare_tensor_reset(&weight.values);
}

/* Each entry of a table has its own scale, per tensor all have one; entries are the rounded ones times it. */
static void check_table(const struct tare_quant_setting *setting) {
    enum { ENTRIES = 7, WIDTH = 5 };
    const struct tare_shape shape = tare_shape_make(2, ENTRIES, WIDTH), x_shape = tare_shape_make(1, 3);
    const int32_t expected[3] = { 6, 0, 3 };
    struct tare_tensor w = filled(&shape), x, y;
    double transposed[ENTRIES * WIDTH];
    float columns[ENTRIES * WIDTH];
    struct quantized q;
    mini_ok(tare_tensor_from(&x, TARE_DT_INT32, &x_shape, expected));
    make(&q, "GatherV2", &w, &x_shape, setting);
    y = answer(&q, &x);
    for (int e = 0; e < ENTRIES; e++)
        for (int i = 0; i < WIDTH; i++)
            columns[i * ENTRIES + e] = TARE_DATA(float, &w)[e * WIDTH + i];
    dequantized(transposed, columns, WIDTH, ENTRIES, WIDTH, setting->granularity == TARE_PER_TENSOR, setting->bits,
                false);
    for (int e = 0; e < 3; e++)
        for (int i = 0; i < WIDTH; i++) {
            const double real = transposed[i * ENTRIES + expected[e]];
            assert_float_equal(TARE_DATA(float, &y)[e * WIDTH + i], real, 1e-6 * (1 + fabs(real)));
        }
    tare_tensor_reset(&w);
    tare_tensor_reset(&x);
    tare_tensor_reset(&y);
    end(&q);
}

static void table__every_granularity_and_width(void **state) {
    (void)state;
    for (int bits = 4; bits <= 8; bits += 4) {
        check_table(&(struct tare_quant_setting){ .bits = bits });
        check_table(&(struct tare_quant_setting){ .bits = bits, .granularity = TARE_PER_TENSOR });
        check_table(&(struct tare_quant_setting){ .bits = bits, .granularity = TARE_PER_BLOCK, .block = 32 });
    }
}

static void same_weight_twice__is_one_constant(void **state) {
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only, .min_elements = 1 };
    const struct tare_shape shape = tare_shape_make(2, 4, 4);
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_tensor a = filled(&shape), b = filled(&shape); /* the same values in other memory */
    struct tare_arena arena = { 0 };
    struct tare_quant_report report;
    (void)state;
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT);
    struct tare_edge c = { tare_graph_add_const(f, "a", &a), 0 }, d = { tare_graph_add_const(f, "b", &b), 0 };
    x = mini_node(f, "MatMul", "first", 2, x, c);
    mini_return(f, "y", mini_node(f, "MatMul", "second", 2, x, d));
    mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
    assert_int_equal(report.quantized, 2);
    size_t constants = 0;
    for (size_t i = 0; i < f->n_nodes; i++)
        constants +=
            strcmp(f->nodes[i]->op, "Const") == 0 && tare_node_tensor(f->nodes[i], "value")->dtype == TARE_DT_INT8;
    assert_int_equal(constants, 1);
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_model_free(model);
    tare_arena_free(&arena);
}

/* A pass that doubles every weight, and one that makes the integers itself: all 3 with a scale of 1. */
static tare_status run_doubling(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    (void)self;
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_tensor copy;
        TARE_TRY(tare_quant_make_real(&work->layers[i]));
        TARE_TRY(tare_tensor_copy(&copy, &work->layers[i].real));
        tare_tensor_reset(&work->layers[i].real);
        for (int64_t j = 0; j < copy.elements; j++)
            TARE_DATA(float, &copy)[j] *= 2;
        work->layers[i].real = copy;
    }
    return TARE_OK;
}

static tare_status run_threes(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    (void)self;
    struct tare_quant_layer *layer = &work->layers[0];
    TARE_TRY(tare_quant_make_integers(work->arena, layer));
    memset(layer->quantized.values.data, 3, (size_t)layer->quantized.values.elements);
    for (int64_t i = 0; i < layer->quantized.n_scales; i++)
        layer->quantized.scales[i] = 1;
    return TARE_OK;
}

static const struct tare_quant_pass doubling = { .name = "doubling", .help = "for the test", .run = run_doubling };
static const struct tare_quant_pass threes = { .name = "threes", .help = "for the test", .run = run_threes };

static float answer_of(const struct tare_quant_pass *pass) {
    const struct tare_quant_pass *const passes[] = { pass, NULL };
    const struct tare_quant_plan options = { .setting.method = &tare_method_weight_only,
                                             .min_elements = 1,
                                             .passes = passes };
    const struct tare_shape shape = tare_shape_make(2, 2, 1), x_shape = tare_shape_make(2, 1, 2);
    struct tare_graph_model *model = mini_model_new();
    struct tare_arena arena = { 0 };
    struct tare_quant_report report;
    struct tare_tensor w, x, y;
    float result;
    mini_ok(tare_tensor_from(&w, TARE_DT_FLOAT, &shape, (const float[]){ 127, 1 }));
    mini_ok(tare_tensor_from(&x, TARE_DT_FLOAT, &x_shape, (const float[]){ 1, 10 }));
    struct tare_edge in = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_graph *f = tare_model_add_function(model, "f");
    struct tare_edge arg = mini_arg(f, "x", TARE_DT_FLOAT);
    mini_return(f, "y",
                mini_node(f, "MatMul", "layer", 2, arg, (struct tare_edge){ tare_graph_add_const(f, "w", &w), 0 }));
    struct tare_edge out = mini_call(model->main, "PartitionedCall", "call", f, 1, in);
    mini_ok(tare_quantize(&report, &arena, model, NULL, &options));
    struct tare_session *session = mini_session(model);
    mini_ok(tare_session_run(session, &in, &x, 1, &out, &y, 1, NULL, 0));
    result = TARE_DATA(float, &y)[0];
    tare_tensor_reset(&w);
    tare_tensor_reset(&x);
    tare_tensor_reset(&y);
    tare_session_free(session);
    tare_model_free(model);
    tare_arena_free(&arena);
    return result;
}

static void pass__what_it_makes_is_what_the_method_uses(void **state) {
    (void)state;
    assert_float_equal(answer_of(NULL), 137, 0);
    assert_float_equal(answer_of(&doubling), 274, 0);
    assert_float_equal(answer_of(&threes), 33, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul__every_granularity_and_width),
        cmocka_unit_test(blocks__of_every_kind_of_layer),
        cmocka_unit_test(int4__takes_half_a_byte_an_element),
        cmocka_unit_test(nibble_packing__low_half_of_the_rows_first),
        cmocka_unit_test(table__every_granularity_and_width),
        cmocka_unit_test(same_weight_twice__is_one_constant),
        cmocka_unit_test(pass__what_it_makes_is_what_the_method_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
