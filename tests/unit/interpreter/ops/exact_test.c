/* Convolutions and products of integers that keep their packed weights: a node whose input has another size in each
 * run.
 */
#include "interpreter/ops/support/exact.h"

#include "base/alloc.h"
#include "support/guarded.h"
#include "support/levels.h"
#include "support/mini_model.h"

#include <string.h>

enum { CHANNELS = 24, COLUMNS = 40, PATCH = 9 * CHANNELS };

static struct tare_conv conv_of(int64_t height, int64_t width) {
    return (struct tare_conv){ .batch = 1,
                               .in = { 1, height, width },
                               .in_channels = CHANNELS,
                               .kernel = { 1, 3, 3 },
                               .out = { 1, height, width },
                               .out_channels = COLUMNS,
                               .stride = { 1, 1, 1 },
                               .dilation = { 1, 1, 1 },
                               .base_dilation = { 1, 1, 1 },
                               .pad = { 0, 1, 1 },
                               .groups = 1 };
}

/* Runs the convolution with the weights of earlier runs and compares it with the plain one. */
static void check(struct tare_weights *weights, const struct tare_tensor *filter, int64_t height, int64_t width) {
    const struct tare_conv conv = conv_of(height, width);
    const int64_t in = height * width * CHANNELS, out = height * width * COLUMNS, count = PATCH * COLUMNS;
    struct tare_arena scratch = { 0 };
    int8_t *input = guarded_block((size_t)in);
    int32_t *wide_in = guarded_block((size_t)in * 4), *wide_filter = guarded_block((size_t)count * 4);
    int32_t *expected = guarded_block((size_t)out * 4), *got = guarded_block((size_t)out * 4);
    for (int64_t i = 0; i < in; i++)
        wide_in[i] = input[i] = random_int8();
    for (int64_t i = 0; i < count; i++)
        wide_filter[i] = TARE_DATA(int8_t, filter)[i];
    tare_conv_plain_i32(expected, &conv, wide_in, wide_filter);
    const struct tare_exact exact = { .lhs = input,
                                      .rhs = filter->data,
                                      .lhs_dtype = TARE_DT_INT8,
                                      .rhs_dtype = TARE_DT_INT8,
                                      .weights = weights,
                                      .source = filter,
                                      .scratch = &scratch };
    mini_ok(tare_exact_conv(got, &exact, &conv));
    assert_memory_equal(got, expected, (size_t)out * 4);
    tare_free(input), tare_free(wide_in), tare_free(wide_filter), tare_free(expected), tare_free(got);
    tare_arena_free(&scratch);
}

static void packed_weights__fit_inputs_of_every_size(void **unused) {
    (void)unused;
    static const int node;
    const struct tare_shape shape = tare_shape_make(4, (int64_t)3, (int64_t)3, (int64_t)CHANNELS, (int64_t)COLUMNS);
    struct tare_tensor filter;
    struct tare_weights weights = { .owner = &node };
    mini_ok(tare_tensor_new(&filter, TARE_DT_INT8, &shape));
    for (int64_t i = 0; i < filter.elements; i++)
        TARE_DATA(int8_t, &filter)[i] = random_int8();
    static const int64_t sizes[][2] = { { 14, 14 }, { 7, 7 }, { 3, 20 }, { 5, 1 }, { 14, 14 } };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check(&weights, &filter, sizes[i][0], sizes[i][1]);
    tare_weights_reset(&weights);
    tare_tensor_reset(&filter);
}

/* Sums that a product passes on. */
struct taken {
    struct tare_consumer consumer; /* first */
    int32_t *sums;
    int64_t count;
};

static void take(struct tare_consumer *consumer, void *values, int64_t first, int64_t count) {
    struct taken *taken = (struct taken *)consumer;
    memcpy(taken->sums + first, values, (size_t)count * sizeof *taken->sums);
    taken->count += count;
}

/* Compares a product of `rows` rows, with an output array and with a consumer, with the plain loops. */
static void check_rows(struct tare_weights *weights, const struct tare_tensor *rhs, int64_t rows) {
    const int64_t k = rhs->shape.dims[0], n = rhs->shape.dims[1];
    struct tare_arena scratch = { 0 };
    int8_t *lhs = guarded_block((size_t)(rows * k));
    int32_t *expected = guarded_block((size_t)(rows * n) * 4), *got = guarded_block((size_t)(rows * n) * 4);
    for (int64_t i = 0; i < rows * k; i++)
        lhs[i] = random_int8();
    struct taken taken = { .consumer = { .take = take }, .sums = guarded_block((size_t)(rows * n) * 4) };
    struct tare_exact exact = { .lhs = lhs,
                                .rhs = rhs->data,
                                .lhs_dtype = TARE_DT_INT8,
                                .rhs_dtype = TARE_DT_INT8,
                                .weights = weights,
                                .source = rhs,
                                .scratch = &scratch };
    mini_ok(tare_exact_product(got, &exact, 1, rows, n, k));
    exact.consumer = &taken.consumer;
    mini_ok(tare_exact_product(NULL, &exact, 1, rows, n, k));
    exact.consumer = NULL, exact.plain = true, exact.weights = NULL;
    mini_ok(tare_exact_product(expected, &exact, 1, rows, n, k));
    assert_memory_equal(got, expected, (size_t)(rows * n) * 4);
    assert_int_equal(taken.count, rows * n);
    assert_memory_equal(taken.sums, expected, (size_t)(rows * n) * 4);
    tare_free(lhs), tare_free(expected), tare_free(got), tare_free(taken.sums);
    tare_arena_free(&scratch);
}

/* Small products, which run without choosing a kernel once the weights are packed, and larger ones with the same
 * weights. */
static void products(void **unused) {
    (void)unused;
    static const int nodes[8];
    static const int64_t sizes[][2] = { { 3, 128 }, { 32, 128 }, { 64, 12 }, { 1, 1 }, { 130, 70 }, { 700, 16 } };
    static const int64_t rows[] = { 1, 1, 2, 5, 40, 1, 3 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tare_weights weights = { .owner = &nodes[i] };
        const struct tare_shape shape = tare_shape_make(2, sizes[i][0], sizes[i][1]);
        struct tare_tensor rhs;
        mini_ok(tare_tensor_new(&rhs, TARE_DT_INT8, &shape));
        for (int64_t j = 0; j < rhs.elements; j++)
            TARE_DATA(int8_t, &rhs)[j] = random_int8();
        for (size_t j = 0; j < sizeof rows / sizeof *rows; j++)
            check_rows(&weights, &rhs, rows[j]);
        tare_weights_reset(&weights);
        tare_tensor_reset(&rhs);
    }
}

static void packed_weights__of_products_of_few_and_many_rows(void **unused) {
    (void)unused;
    levels_run("products");
}

int main(int argc, char **argv) {
    const struct CMUnitTest one[] = { cmocka_unit_test(products) };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_weights__fit_inputs_of_every_size),
        cmocka_unit_test(packed_weights__of_products_of_few_and_many_rows),
    };
    if (argc > 1 && strcmp(argv[1], "products") == 0) return cmocka_run_group_tests(one, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
