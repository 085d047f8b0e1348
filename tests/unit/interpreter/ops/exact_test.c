/* Convolutions of integers that keep their packed weights: a node whose input has another size in each run. */
#include "interpreter/ops/support/exact.h"

#include "base/alloc.h"
#include "support/guarded.h"
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

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(packed_weights__fit_inputs_of_every_size) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
