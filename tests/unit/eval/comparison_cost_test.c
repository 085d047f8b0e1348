/* Estimated times of networks, float and quantized as the product does it, beside what Google's compiler for TPUs says
 * of them: tests/tpu/compiler/networks.tsv, which tests/judges/tpu_costs.py writes and describes. */
#include "support/quantized_layers.h"
#include "support/quantized_model.h"

#include "graph/bindings.h"
#include "interpreter/inference/infer.h"
#include "quant/method.h"
#include "quant/plan.h"
#include "tpu/cost/fused.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 4096, MOST_LAYERS = 24, MOST_ELEMENTS = 40000, IMAGES = 2 };

struct row {
    char network[40], form[8], chip[8], layers[128];
    int64_t batch;
    double cycles;
    double seconds; /* estimated; 0: not yet */
};

static struct row rows[MOST_ROWS];
static size_t n_rows;

/* Rows of networks of several layers that are small enough to be calibrated here. A sum with the argument is not
 * judged: no network has one. */
static bool is_used(const struct row *row) {
    int64_t height, width, channels;
    const int read = sscanf(row->layers, "%ldx%ldx%ld", &height, &width, &channels);
    const char *first = strchr(row->layers, ' ');
    if (!first || !strchr(first + 1, ' ') || strstr(row->layers, "+0") || row->batch == 1) return false;
    return read < 3 || height * width * channels <= MOST_ELEMENTS;
}

static void read_rows(void) {
    FILE *file = fopen(TARE_SOURCE_DIR "/tests/tpu/compiler/networks.tsv", "r");
    char line[512];
    assert_non_null(file);
    for (bool heading = true; fgets(line, sizeof line, file); heading = false) {
        struct row *row = &rows[n_rows];
        if (heading) continue;
        assert_true(n_rows < MOST_ROWS);
        *row = (struct row){ 0 };
        assert_int_equal(sscanf(line, "%39[^\t]\t%7[^\t]\t%7[^\t]\t%ld\t%lf\t%*[^\t]\t%127[^\n]", row->network,
                                row->form, row->chip, &row->batch, &row->cycles, row->layers),
                         6);
        n_rows += is_used(row);
    }
    fclose(file);
}

/* ---- the network as a graph ---- */

struct builder {
    struct quantized_model m;
    struct tare_edge outputs[MOST_LAYERS];
    int64_t channels[MOST_LAYERS];
    int count;
    bool is_image;
    uint64_t seed;
};

static struct tare_edge constant(struct builder *b, const char *what, struct tare_shape shape) {
    struct tare_tensor value;
    char name[32];
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < value.elements; i++)
        TARE_DATA(float, &value)[i] = quantized_model_normal(&b->seed) * 0.1f;
    snprintf(name, sizeof name, "%s%d", what, b->count);
    struct tare_edge edge = { tare_graph_add_const(b->m.graph, name, &value), 0 };
    tare_tensor_reset(&value);
    return edge;
}

static struct tare_edge named(struct builder *b, const char *op, int inputs, struct tare_edge x, struct tare_edge y) {
    char name[64];
    snprintf(name, sizeof name, "%s_%d", op, b->count);
    return inputs == 1 ? mini_node(b->m.graph, op, name, 1, x) : mini_node(b->m.graph, op, name, 2, x, y);
}

static void add_layer(struct builder *b, const char *layer) {
    const struct tare_edge x = b->outputs[b->count - 1];
    const int64_t in = b->channels[b->count - 1];
    int64_t size, out = in, stride, other;
    struct tare_edge y;
    char name[16];
    snprintf(name, sizeof name, "layer%d", b->count);
    if (sscanf(layer, "c%ld.%ld.%ld", &size, &out, &stride) == 3) {
        y = layers_float(b->m.graph, name, x, size, in, out, stride);
    } else if (sscanf(layer, "d%ld.%ld", &size, &stride) == 2) {
        y = layers_float(b->m.graph, name, x, size, in, 0, stride);
    } else if (sscanf(layer, "f%ld", &out) == 1) {
        y = named(b, "MatMul", 2, x, constant(b, "w", tare_shape_make(2, in, out)));
        y = named(b, "BiasAdd", 2, y, constant(b, "bias", tare_shape_make(1, out)));
        y = named(b, "Relu", 1, y, y);
    } else if (sscanf(layer, "+%ld", &other) == 1) {
        y = named(b, "AddV2", 2, b->outputs[other], x);
        y = named(b, "Relu", 1, y, y);
    } else {
        assert_string_equal(layer, "m");
        y = named(b, "Mean", 2, x, mini_ints(b->m.graph, "axes", 2, (const int32_t[]){ 1, 2 }));
    }
    b->outputs[b->count] = y;
    b->channels[b->count++] = out;
}

static void build(struct builder *b, const char *text) {
    struct tare_shape shape = tare_shape_make(2, (int64_t)IMAGES, (int64_t)0);
    int64_t sizes[3];
    char copy[128], *rest = copy;
    memset(b, 0, sizeof *b);
    b->seed = 1;
    quantized_model_begin(&b->m, 1, 1, 1, 1);
    snprintf(copy, sizeof copy, "%s", text);
    const char *word = strtok_r(rest, " ", &rest);
    if (sscanf(word, "%ldx%ldx%ld", &sizes[0], &sizes[1], &sizes[2]) == 3)
        shape = tare_shape_make(4, (int64_t)IMAGES, sizes[0], sizes[1], sizes[2]);
    else
        shape.dims[1] = atol(word);
    tare_tensor_reset(&b->m.samples);
    mini_ok(tare_tensor_new(&b->m.samples, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < b->m.samples.elements; i++)
        TARE_DATA(float, &b->m.samples)[i] = quantized_model_normal(&b->seed);
    b->outputs[0] = b->m.in;
    b->channels[0] = shape.dims[shape.rank - 1];
    b->count = 1;
    while ((word = strtok_r(rest, " ", &rest)))
        add_layer(b, word);
    quantized_model_return(&b->m, b->outputs[b->count - 1]);
    mini_ok(tare_node_set_shape(b->m.x.node, "shape", &shape));
}

static void estimate(double seconds[TARE_TPU_CHIPS], const char *layers, bool integer, int64_t batch) {
    const struct tare_quant_plan plan = { .setting = { .method = &tare_method_static, .activation_bits = 8 },
                                          .min_elements = 1 };
    struct tare_fused_cost cost;
    struct tare_arena arena = { 0 };
    struct builder b;
    build(&b, layers);
    if (integer) quantized_model_quantize(&b.m, &plan, "");
    struct tare_shape shape = b.m.samples.shape;
    struct tare_bindings *bindings;
    struct tare_inference *inference = tare_inference_new();
    shape.dims[0] = batch;
    mini_ok(tare_bindings_new(&bindings, b.m.model));
    mini_ok(tare_tpu_fused_graph_cost(&cost, &arena, bindings, inference, b.m.graph, &shape));
    tare_bindings_free(bindings);
    tare_inference_free(inference);
    memcpy(seconds, cost.seconds, sizeof cost.seconds);
    tare_arena_free(&arena);
    quantized_model_end(&b.m);
}

static int chip_of(const char *name) {
    int chip = 0;
    while (strcmp(tare_tpu_chips[chip].name, name) != 0)
        chip++;
    return chip;
}

/* One network is built once for each form and batch. */
static void estimate_all(void) {
    for (size_t i = 0; i < n_rows; i++) {
        double seconds[TARE_TPU_CHIPS];
        if (rows[i].seconds > 0) continue;
        estimate(seconds, rows[i].layers, strcmp(rows[i].form, "int8") == 0, rows[i].batch);
        for (size_t k = i; k < n_rows; k++)
            if (strcmp(rows[k].network, rows[i].network) == 0 && strcmp(rows[k].form, rows[i].form) == 0 &&
                rows[k].batch == rows[i].batch)
                rows[k].seconds = seconds[chip_of(rows[k].chip)];
    }
}

static int set_up(void **state) {
    (void)state;
    read_rows();
    estimate_all();
    return 0;
}

/* ---- comparisons ---- */

static double clock_of(const char *chip) {
    return strcmp(chip, "v5e") == 0 ? 1.5e9 : 1.75e9;
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double rank_of(const double *values, size_t count, double value) {
    double rank = 0;
    for (size_t i = 0; i < count; i++)
        rank += values[i] < value ? 1 : values[i] == value ? 0.5 : 0;
    return rank;
}

static double spearman(const double *x, const double *y, size_t count) {
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < count; i++) {
        const double a = rank_of(x, count, x[i]) - (double)count / 2, b = rank_of(y, count, y[i]) - (double)count / 2;
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    return xy / sqrt(xx * yy);
}

static void times__are_within_a_factor_of_two(void **state) {
    (void)state;
    for (size_t i = 0; i < n_rows; i++) {
        const double seconds = rows[i].cycles / clock_of(rows[i].chip), ratio = rows[i].seconds / seconds;
        if (strcmp(rows[i].chip, "v5e") != 0 && strcmp(rows[i].chip, "v6e") != 0) continue;
        if (ratio < 0.5 || ratio > 2)
            fail_msg("%s %s on %s, batch %ld: %.3g µs, estimated %.3g", rows[i].network, rows[i].form, rows[i].chip,
                     rows[i].batch, 1e6 * seconds, 1e6 * rows[i].seconds);
    }
}

/* int8 ÷ float, which is what the advice follows from. */
static void the_ratio_of_int8_to_float__is_the_compilers(void **state) {
    static const char *const chips[] = { "v5e", "v6e" };
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        static double expected[MOST_ROWS], got[MOST_ROWS], quotient[MOST_ROWS];
        size_t count = 0;
        for (size_t i = 0; i < n_rows; i++)
            for (size_t k = 0; k < n_rows; k++) {
                const struct row *f = &rows[i], *q = &rows[k];
                if (strcmp(f->chip, chips[c]) != 0 || strcmp(q->chip, chips[c]) != 0 || f->batch != q->batch) continue;
                if (strcmp(f->network, q->network) != 0 || strcmp(f->form, "bf16") != 0 || strcmp(q->form, "int8") != 0)
                    continue;
                expected[count] = q->cycles / f->cycles;
                got[count] = q->seconds / f->seconds;
                quotient[count] = got[count] / expected[count];
                print_message("%s %s %ld: %.2f, estimated %.2f\n", f->network, f->chip, f->batch, expected[count],
                              got[count]);
                count++;
            }
        qsort(quotient, count, sizeof *quotient, by_size);
        print_message("%s: %zu networks, Spearman %.2f, median %.2f, %.2f to %.2f\n", chips[c], count,
                      spearman(expected, got, count), quotient[count / 2], quotient[0], quotient[count - 1]);
        size_t near = 0;
        for (size_t i = 0; i < count; i++)
            near += quotient[i] > 0.7 && quotient[i] < 1.4;
        assert_true(count > 20 && 10 * near >= 8 * count);
        assert_true(quotient[count / 2] > 0.9 && quotient[count / 2] < 1.1);
        assert_true(spearman(expected, got, count) > 0.5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times__are_within_a_factor_of_two),
        cmocka_unit_test(the_ratio_of_int8_to_float__is_the_compilers),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
