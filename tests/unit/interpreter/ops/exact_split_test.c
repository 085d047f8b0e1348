/* Int8 convolutions and products that several threads compute have the bits of one thread at every CPU level: int32
 * sums, bytes with a residual addition, and floats with their range or only that, as dynamic quantization requires.
 * Parts are lines, positions and output channels, of sizes that the number of threads does not divide. */
#include "interpreter/kernels/integer/requantize.h"
#include "interpreter/ops/support/exact.h"
#include "support/guarded.h"
#include "support/levels.h"

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { LANES = 16 };
static const int thread_counts[] = { 1, 2, 3, 8 };
enum { COUNTS = sizeof thread_counts / sizeof *thread_counts };

static struct tare_pool *pools[COUNTS];

/* What follows the sums. */
enum result { SUMS, BYTES, FLOATS, N_RESULTS };

struct layer {
    const char *what;
    struct tare_conv conv; /* of a product: [m, k] · [k, n] as out[2], in_channels and out_channels */
    bool is_product;
    int8_t *input, *filter, *addend;
    int32_t *offset;
    float *scale;
    int64_t count; /* of the result */
};

/* A consumer that stores what the kernel passes, and what the kernel stores itself. */
struct taken {
    struct tare_consumer consumer; /* first */
    struct tare_requantize requantize;
    struct tare_value_range range;
    int32_t *sums;
    uint8_t *bytes;
    float *floats;
};

static void store(struct tare_consumer *consumer, void *values, int64_t first, int64_t count) {
    memcpy(((struct taken *)consumer)->sums + first, values, (size_t)count * sizeof(int32_t));
}

static void open_taken(struct taken *t, const struct layer *l, enum result result) {
    *t = (struct taken){ .consumer = { .take = store, .accepted = true },
                         .sums = guarded_block((size_t)l->count * 4),
                         .bytes = guarded_block((size_t)l->count),
                         .floats = guarded_block((size_t)l->count * 4) };
    memset(t->sums, 0, (size_t)l->count * 4);
    memset(t->bytes, 0, (size_t)l->count);
    memset(t->floats, 0, (size_t)l->count * 4);
    tare_value_range_begin(&t->range);
    t->requantize = (struct tare_requantize){
        .columns = l->conv.out_channels,
        .offset = l->offset,
        .scale = l->scale,
        .first = { 3, -128, 127 },
        .addend = l->addend,
        .of_result = { 3, 0.07f },
        .of_addend = { -4, 0.11f },
        .second = { -2, -128, 127 },
        .least = INT32_MIN,
        .to = t->bytes,
    };
    if (result == FLOATS) {
        t->requantize.is_real = true;
        t->requantize.real =
            (struct tare_real_stage){ .floats = t->floats, .low = -1e9f, .high = 1e9f, .range = &t->range };
    }
    t->consumer.requantize = &t->requantize;
}

static void run(struct taken *t, const struct layer *l, enum result result, struct tare_pool *threads) {
    struct tare_arena arena = { 0 };
    struct tare_weights weights = { 0 };
    const struct tare_tensor source = { .dtype = TARE_DT_INT8, .data = l->filter };
    const struct tare_conv *conv = &l->conv;
    open_taken(t, l, result);
    const struct tare_exact exact = { .lhs_dtype = TARE_DT_INT8,
                                      .rhs_dtype = TARE_DT_INT8,
                                      .lhs = l->input,
                                      .rhs = l->filter,
                                      .weights = l->is_product ? &weights : NULL,
                                      .source = &source,
                                      .scratch = &arena,
                                      .threads = threads,
                                      .consumer = result == SUMS ? NULL : &t->consumer };
    int32_t *output = result == SUMS ? t->sums : NULL;
    if (l->is_product)
        assert_int_equal(
            tare_exact_product(output, &exact, conv->batch, conv->out[2], conv->out_channels, conv->in_channels),
            TARE_OK);
    else
        assert_int_equal(tare_exact_conv(output, &exact, conv), TARE_OK);
    tare_weights_reset(&weights);
    tare_arena_free(&arena);
}

static void close_taken(struct taken *t, const struct layer *l) {
    assert_block_guard(t->sums, (size_t)l->count * 4);
    assert_block_guard(t->bytes, (size_t)l->count);
    assert_block_guard(t->floats, (size_t)l->count * 4);
    tare_free(t->sums), tare_free(t->bytes), tare_free(t->floats);
}

static void assert_equal(const struct taken *got, const struct taken *expected, const struct layer *l, int threads) {
    float ends[2][2] = { { 0 } };
    const struct taken *both[2] = { got, expected };
    if (memcmp(got->sums, expected->sums, (size_t)l->count * 4) != 0)
        fail_msg("%s: sums, %d threads", l->what, threads);
    if (memcmp(got->bytes, expected->bytes, (size_t)l->count) != 0) fail_msg("%s: bytes, %d threads", l->what, threads);
    if (memcmp(got->floats, expected->floats, (size_t)l->count * 4) != 0)
        fail_msg("%s: floats, %d threads", l->what, threads);
    bool known[2];
    for (int i = 0; i < 2; i++)
        known[i] = tare_value_range_end(&ends[i][0], &ends[i][1], &both[i]->range);
    if (known[0] != known[1] || memcmp(ends[0], ends[1], sizeof ends[0]) != 0)
        fail_msg("%s: range, %d threads: %g to %g (expected %g to %g)", l->what, threads, (double)ends[0][0],
                 (double)ends[0][1], (double)ends[1][0], (double)ends[1][1]);
}

static int8_t *random_bytes(int64_t count) {
    int8_t *bytes = guarded_block((size_t)count);
    for (int64_t i = 0; i < count; i++)
        bytes[i] = random_int8();
    return bytes;
}

static void check(struct layer l) {
    const struct tare_conv *conv = &l.conv;
    const int64_t n = conv->out_channels;
    l.count = tare_conv_rows(conv) * n;
    l.input = random_bytes(conv->batch * conv->in[1] * conv->in[2] * conv->in_channels);
    l.filter = random_bytes(tare_conv_patch(conv) * n * (l.is_product ? conv->batch : 1));
    l.addend = random_bytes(l.count);
    l.offset = guarded_block((size_t)(n + LANES) * 4), l.scale = guarded_block((size_t)(n + LANES) * 4);
    for (int64_t i = 0; i < n + LANES; i++) {
        l.offset[i] = (int32_t)(i % n * 37 - 500);
        l.scale[i] = 1e-4f * (float)(1 + i % n % 7);
    }
    for (enum result result = SUMS; result < N_RESULTS; result++) {
        struct taken expected, got;
        run(&expected, &l, result, NULL);
        for (int i = 0; i < COUNTS; i++) {
            run(&got, &l, result, pools[i]);
            assert_equal(&got, &expected, &l, thread_counts[i]);
            close_taken(&got, &l);
        }
        close_taken(&expected, &l);
    }
    tare_free(l.input), tare_free(l.filter), tare_free(l.addend), tare_free(l.offset), tare_free(l.scale);
}

struct size {
    const char *what;
    int64_t batch, height, width, in, out, kernel, stride, groups, dilation;
};

static struct layer layer_of(const struct size *s) {
    const int64_t reach = (s->kernel - 1) * s->dilation + 1, pad = reach / 2;
    return (struct layer){ .what = s->what,
                           .conv = { .batch = s->batch,
                                     .in = { 1, s->height, s->width },
                                     .in_channels = s->in,
                                     .kernel = { 1, s->kernel, s->kernel },
                                     .out = { 1, (s->height + 2 * pad - reach) / s->stride + 1,
                                              (s->width + 2 * pad - reach) / s->stride + 1 },
                                     .out_channels = s->out,
                                     .stride = { 1, s->stride, s->stride },
                                     .dilation = { 1, s->dilation, s->dilation },
                                     .base_dilation = { 1, 1, 1 },
                                     .pad = { 0, pad, pad },
                                     .groups = s->groups } };
}

static void check_all(const struct size *sizes, size_t count, bool is_product) {
    for (size_t i = 0; i < count; i++) {
        struct layer layer = layer_of(&sizes[i]);
        layer.is_product = is_product;
        assert_int_equal(tare_conv_check(&layer.conv), TARE_OK);
        check(layer);
    }
}

static void convolutions(void **unused) {
    static const struct size sizes[] = {
        { "3x3, lines", 1, 29, 28, 128, 96, 3, 1, 1, 1 },
        { "3x3, two images", 2, 11, 9, 96, 112, 3, 1, 1, 1 },
        { "3x3, channels", 1, 7, 7, 256, 330, 3, 1, 1, 1 },
        { "3x3, two images of 256 channels", 2, 14, 15, 256, 192, 3, 1, 1, 1 },
        { "1x1, positions", 1, 27, 29, 96, 130, 1, 1, 1, 1 },
        { "1x1, channels", 1, 7, 7, 512, 1024, 1, 1, 1, 1 },
        { "1x1, strided", 3, 15, 15, 160, 200, 1, 2, 1, 1 },
        { "first layer", 1, 113, 113, 3, 64, 7, 2, 1, 1 },
        { "few channels", 1, 41, 37, 12, 20, 5, 1, 1, 1 },
        { "two groups", 1, 24, 25, 64, 96, 3, 1, 2, 1 },
        { "dilated", 2, 21, 23, 64, 64, 3, 1, 1, 2 },
        { "depthwise", 1, 57, 55, 144, 144, 3, 1, 144, 1 },
        { "depthwise, strided", 2, 57, 55, 96, 96, 3, 2, 96, 1 },
        { "depthwise, 5x5", 1, 28, 29, 240, 240, 5, 1, 240, 1 },
        { "depthwise, few", 1, 120, 131, 20, 20, 3, 1, 20, 1 },
    };
    (void)unused;
    check_all(sizes, sizeof sizes / sizeof *sizes, false);
}

/* batch × [rows, in] · [in, out] */
static void products(void **unused) {
    static const struct size sizes[] = {
        { "few rows", 1, 1, 3, 1030, 1021, 1, 1, 1, 1 },
        { "one row", 1, 1, 1, 2048, 1000, 1, 1, 1, 1 },
        { "rows", 1, 1, 117, 500, 331, 1, 1, 1, 1 },
        { "batch", 3, 1, 40, 300, 200, 1, 1, 1, 1 },
    };
    (void)unused;
    check_all(sizes, sizeof sizes / sizeof *sizes, true);
}

static int run_layers(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(convolutions), cmocka_unit_test(products) };
    for (int i = 0; i < COUNTS; i++)
        pools[i] = tare_pool_new(thread_counts[i]);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < COUNTS; i++)
        tare_pool_free(pools[i]);
    return failed;
}

static void divided_layers__have_the_bits_of_whole_ones_at_every_level(void **unused) {
    (void)unused;
    levels_run("layers");
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divided_layers__have_the_bits_of_whole_ones_at_every_level),
    };
    if (argc > 1 && strcmp(argv[1], "layers") == 0) return run_layers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
