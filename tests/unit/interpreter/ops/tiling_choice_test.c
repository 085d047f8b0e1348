/* How many convolutions run together, on one thread and on several. */
#include "interpreter/ops/support/tiling_choice.h"

#include "interpreter/ops/support/split.h"
#include "interpreter/session.h"
#include "support/mini_model.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { STAGES = 9 };

static struct tare_conv conv_of(int64_t size, int64_t channels, int64_t kernel, int64_t stride) {
    return (struct tare_conv){ .batch = 1,
                               .in = { 1, size, size },
                               .in_channels = channels,
                               .kernel = { 1, kernel, kernel },
                               .out = { 1, size / stride, size / stride },
                               .out_channels = channels,
                               .stride = { 1, stride, stride },
                               .dilation = { 1, 1, 1 },
                               .base_dilation = { 1, 1, 1 },
                               .pad = { 0, stride == 1 ? kernel / 2 : 0, stride == 1 ? kernel / 2 : 0 },
                               .groups = kernel > 1 ? channels : 1 };
}

/* Pointwise and depthwise convolutions in turn; every second of the latter halves the size. */
static struct tare_tiling chain(int64_t size, int64_t channels) {
    struct tare_tiling tiling = { .n_stages = STAGES, .batch = 1 };
    for (int s = 0; s < STAGES; s++) {
        const bool depthwise = s % 2 == 1;
        const int64_t stride = s % 4 == 1 ? 2 : 1;
        tiling.stages[s].conv = conv_of(size, channels, depthwise ? 3 : 1, stride);
        size /= stride;
    }
    return tiling;
}

/* Threads that have no processor of their own, so that what a run of them costs is not measured. */
static struct tare_pool *crowded_pool(void) {
    struct tare_pool *pool = tare_pool_new(tare_cpu_count() + 1);
    assert_non_null(pool);
    return pool;
}

/* With all stages in one tiling, the parts would compute most of the first lines twice. */
static void a_chain__is_cut_where_parts_would_repeat_too_much(void **unused) {
    struct tare_tiling whole = chain(96, 32), divided = whole;
    struct tare_pool *pool = crowded_pool();
    struct tare_kernel kernel = { 0 };
    (void)unused;
    assert_true(tare_tiling_choose(&whole, NULL, &kernel));
    assert_int_equal(whole.n_stages, STAGES);
    assert_int_equal(whole.parts, 1);
    (void)tare_tiling_choose(&divided, pool, &kernel);
    assert_in_range(divided.n_stages, 1, STAGES - 1);
    assert_true(divided.parts > 1);
    tare_pool_free(pool);
}

/* Work of a few microseconds is not divided, and then nothing is repeated. */
static void a_small_chain__runs_on_one_thread(void **unused) {
    struct tare_tiling tiling = chain(16, 8);
    struct tare_pool *pool = crowded_pool();
    struct tare_kernel kernel = { 0 };
    (void)unused;
    assert_true(tare_tiling_choose(&tiling, pool, &kernel));
    assert_int_equal(tiling.n_stages, STAGES);
    assert_int_equal(tiling.parts, 1);
    tare_pool_free(pool);
}

/* A padding of bfloat16 lines with nothing after it in the tiling: only a convolution rounds to bfloat16. */
static void a_bfloat16_padding__runs_alone(void **unused) {
    struct tare_tiling tiling = { .n_stages = 2, .batch = 1, .stages[0].is_widening = true };
    struct tare_pool *pool = crowded_pool();
    struct tare_kernel kernel = { 0 };
    (void)unused;
    tiling.stages[0].conv = tiling.stages[1].conv = conv_of(8, 16, 1, 1);
    tiling.stages[1].is_padding = true;
    tiling.stages[1].conv.out[1] = tiling.stages[1].conv.out[2] = 9;
    struct tare_tiling divided = tiling;
    assert_false(tare_tiling_choose(&tiling, NULL, &kernel));
    assert_false(tare_tiling_choose(&divided, pool, &kernel));
    tare_pool_free(pool);
}

static void assert_same_choice(struct tare_tiling given, struct tare_pool *pool, struct tare_kernel *keeping) {
    struct tare_kernel not_keeping = { 0 };
    struct tare_tiling kept = given;
    assert_int_equal(tare_tiling_choose(&kept, pool, keeping), tare_tiling_choose(&given, pool, &not_keeping));
    assert_int_equal(kept.n_stages, given.n_stages);
    assert_int_equal(kept.parts, given.parts);
    assert_int_equal(kept.lines, given.lines);
    assert_int_equal(kept.images, given.images);
    assert_int_equal(kept.scratch, given.scratch);
    assert_memory_equal(kept.room, given.room, sizeof kept.room);
}

/* More shapes in turn than choices are kept. */
static void a_kept_choice__is_that_of_its_shapes(void **unused) {
    static const int64_t sizes[] = { 96, 16, 64, 16, 32, 96, 48, 96, 16, 80, 64, 64 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_session *session = mini_session(model);
    struct tare_pool *pool = crowded_pool();
    struct tare_kept_tiling *kept = NULL;
    struct tare_kernel kernel = { .session = session, .tilings = &kept };
    (void)unused;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tare_tiling tiling = chain(sizes[i], 16);
        assert_same_choice(tiling, pool, &kernel);
        assert_same_choice(tiling, NULL, &kernel);
        tiling.batch = 2;
        assert_same_choice(tiling, NULL, &kernel);
        tiling.n_stages = 2;
        assert_same_choice(tiling, NULL, &kernel);
    }
    assert_non_null(kept);
    tare_pool_free(pool);
    tare_session_free(session);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain__is_cut_where_parts_would_repeat_too_much),
        cmocka_unit_test(a_small_chain__runs_on_one_thread),
        cmocka_unit_test(a_bfloat16_padding__runs_alone),
        cmocka_unit_test(a_kept_choice__is_that_of_its_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
