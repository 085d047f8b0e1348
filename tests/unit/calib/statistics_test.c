/* Statistics of a tensor: what is kept, and that batches, order and merging leave no trace. */
#include "calib/statistics.h"

#include "base/alloc.h"
#include "base/thread.h"
#include "support/draw.h"
#include "base/tensor/number.h"
#include "calib/tally.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static struct tare_tally *tally;

static int set_up(void **state) {
    (void)state;
    tally = tare_tally_new();
    return !tally;
}
static int tear_down(void **state) {
    (void)state;
    tare_tally_free(tally);
    return 0;
}

static void add(struct tare_statistics *s, int dtype, struct tare_shape shape, const void *data,
                const struct tare_place *places, int64_t count, enum tare_batch_layout layout) {
    struct tare_tensor value;
    assert_int_equal(tare_tensor_wrap(&value, dtype, &shape, data, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(s, tally, &value, places, count, layout), TARE_OK);
    tare_tensor_reset(&value);
}

static void statistics__count_and_locate_what_they_see(void **state) {
    (void)state;
    struct tare_statistics s = { .per_channel = true };
    const float first[] = { 1.0f, -2.0f, 0.0f, 4.0f }, second[] = { NAN, 0.5f, INFINITY, 3.0f };
    const struct tare_place places[] = { { 0, 16, 16 }, { 1, 2, 40 } };
    add(&s, TARE_DT_FLOAT, tare_shape_make(2, 2, 2), first, &places[0], 1, TARE_BATCH_SPLIT);
    add(&s, TARE_DT_FLOAT, tare_shape_make(2, 2, 2), second, &places[1], 1, TARE_BATCH_SPLIT);
    double low, high;
    assert_true(tare_statistics_extremes(&low, &high, &s));
    assert_true(low == -2 && high == 4);
    assert_int_equal(tare_statistics_elements(&s), 8);
    assert_int_equal(s.samples, 2);
    assert_int_equal(s.lowest[0].record, 16);
    assert_true(s.highest[1].value == 3 && s.highest[1].input == 1 && s.highest[1].record == 2);
    assert_true(s.has_nan && s.has_infinity);
    assert_int_equal(s.first_nan.record, 2);
    assert_true(tare_exact_sum_value(&s.sum) == 6.5);
    assert_true(tare_exact_sum_value(&s.sum_of_squares) == 30.25);
    assert_true(tare_exact_sum_value(&s.sum_of_minima) == -1.5);
    assert_true(tare_exact_sum_value(&s.sum_of_maxima) == 7);
    assert_int_equal(s.channels, 2);
    assert_true(s.channel_low[1] == -2 && s.channel_high[0] == 1 && s.channel_high[1] == 4);
    assert_true(tare_exact_sum_value(&s.channel_sum[0]) == 1 && tare_exact_sum_value(&s.channel_sum[1]) == 5.5);
    assert_true(tare_statistics_extremes_until(&low, &high, &s, 5)); /* indexes below 32 */
    assert_true(high == 4 && low == -2);
    assert_false(tare_statistics_extremes_until(&low, &high, &s, 4));
    tare_statistics_reset(&s);
}

static void statistics__the_first_record_wins_a_tie(void **state) {
    (void)state;
    const float value = 7;
    const struct tare_place places[] = { { 1, 3, 3 }, { 0, 9, 9 }, { 0, 8, 8 } };
    for (int start = 0; start < 3; start++) {
        struct tare_statistics s = { 0 };
        for (int i = 0; i < 3; i++)
            add(&s, TARE_DT_FLOAT, tare_shape_scalar(), &value, &places[(start + i) % 3], 1, TARE_BATCH_SHARED);
        assert_int_equal(s.highest[0].input, 0);
        assert_int_equal(s.highest[0].record, 8);
        assert_int_equal(s.highest[1].record, 9);
        assert_int_equal(s.lowest[0].record, 8);
        tare_statistics_reset(&s);
    }
}

static void statistics__a_record_that_comes_again_takes_one_place(void **state) {
    (void)state;
    struct tare_statistics s = { 0 };
    const struct {
        int64_t record;
        float value;
    } steps[] = { { 0, 5 }, { 1, 6 }, { 0, 9 }, { 1, 2 }, { 2, 8 }, { 2, 7 } };
    for (int i = 0; i < 6; i++) {
        struct tare_place place = { 0, steps[i].record, steps[i].record };
        add(&s, TARE_DT_FLOAT, tare_shape_scalar(), &steps[i].value, &place, 1, TARE_BATCH_SHARED);
    }
    assert_true(s.highest[0].value == 9 && s.highest[0].record == 0);
    assert_true(s.highest[1].value == 8 && s.highest[1].record == 2);
    assert_true(s.lowest[0].value == 2 && s.lowest[0].record == 1);
    assert_true(s.lowest[1].value == 5 && s.lowest[1].record == 0);
    tare_statistics_reset(&s);
}

enum { RECORDS = 41, ROWS = 2, WIDTH = 300, CHANNELS = 3, PER_RECORD = ROWS * WIDTH * CHANNELS };
static float data[RECORDS * PER_RECORD];
static struct tare_place places_of_all[RECORDS];

static void make_data(void) {
    uint64_t seed = 9;
    draw_fill(data, RECORDS * PER_RECORD, DRAW_HEAVY, 21);
    for (int i = 0; i < RECORDS; i++) {
        places_of_all[i] = (struct tare_place){ i % 3, i / 3, i };
        data[i * PER_RECORD + (int)(draw_bits(&seed) % PER_RECORD)] = i % 10 == 4   ? NAN
                                                                      : i % 10 == 7 ? -INFINITY
                                                                                    : 0.0f;
    }
}

static void statistics__batches_and_merge_order_leave_no_trace(void **state) {
    (void)state;
    make_data();
    struct tare_statistics one = { .per_channel = true };
    for (int i = 0; i < RECORDS; i++) {
        add(&one, TARE_DT_FLOAT, tare_shape_make(3, ROWS, WIDTH, CHANNELS), data + i * PER_RECORD, &places_of_all[i], 1,
            TARE_BATCH_SPLIT);
    }
    assert_true(one.has_nan && one.has_infinity);
    const int batches[] = { 2, 7, 32, RECORDS };
    for (int b = 0; b < 4; b++) {
        struct tare_statistics parts[3] = { { .per_channel = true }, { .per_channel = true }, { .per_channel = true } };
        int turn = 0;
        for (int i = 0; i < RECORDS; i += batches[b], turn++) {
            int count = RECORDS - i < batches[b] ? RECORDS - i : batches[b];
            add(&parts[turn % 3], TARE_DT_FLOAT, tare_shape_make(3, count * ROWS, WIDTH, CHANNELS),
                data + i * PER_RECORD, &places_of_all[i], count, TARE_BATCH_SPLIT);
        }
        for (int order = 0; order < 3; order++) {
            struct tare_statistics merged = { .per_channel = true };
            for (int i = 0; i < 3; i++)
                assert_int_equal(tare_statistics_merge(&merged, &parts[(order + i) % 3], NULL), TARE_OK);
            assert_true(tare_statistics_equal(&one, &merged));
            tare_statistics_reset(&merged);
        }
        for (int i = 0; i < 3; i++)
            tare_statistics_reset(&parts[i]);
    }
    tare_statistics_reset(&one);
}

/* Records by turns from several threads, in batches. */
struct team {
    struct tare_statistics *statistics;
    pthread_mutex_t lock;
    int threads, batch;
    int64_t rows; /* of one record */
};

static tare_status add_turns(void *arg, int number) {
    struct team *team = arg;
    struct tare_tally *own = tare_tally_new();
    tare_status status = !own ? TARE_NO_MEMORY : TARE_OK;
    for (int i = number * team->batch; i < RECORDS && status == TARE_OK; i += team->threads * team->batch) {
        int count = RECORDS - i < team->batch ? RECORDS - i : team->batch;
        struct tare_shape shape = tare_shape_make(3, count * team->rows, WIDTH / 100, CHANNELS);
        struct tare_tensor value;
        status = tare_tensor_wrap(&value, TARE_DT_FLOAT, &shape, data + i * team->rows * (WIDTH / 100) * CHANNELS, NULL,
                                  NULL);
        if (status != TARE_OK) break;
        status = tare_statistics_add_shared(team->statistics, &team->lock, own, &value, &places_of_all[i], count,
                                            TARE_BATCH_SPLIT);
        tare_tensor_reset(&value);
    }
    tare_tally_free(own);
    return status;
}

static void statistics__threads_that_share_them_leave_no_trace(void **state) {
    (void)state;
    make_data();
    for (int channels = 0; channels < 2; channels++) {
        for (int64_t rows = 2; rows <= ROWS * 100; rows *= 100) { /* few values and many */
            struct tare_statistics one = { .per_channel = channels }, shared = { .per_channel = channels };
            struct team team = {
                .statistics = &one, .lock = PTHREAD_MUTEX_INITIALIZER, .threads = 1, .batch = 1, .rows = rows
            };
            assert_int_equal(add_turns(&team, 0), TARE_OK);
            team.statistics = &shared;
            team.threads = 4;
            team.batch = 3;
            assert_int_equal(tare_threads_run(team.threads, add_turns, &team), TARE_OK);
            assert_int_equal(shared.samples, RECORDS);
            assert_true(tare_statistics_equal(&one, &shared));
            /* and they take what those of one thread take */
            assert_int_equal(tare_statistics_bytes(&one), tare_statistics_bytes(&shared));
            tare_statistics_reset(&one);
            tare_statistics_reset(&shared);
        }
    }
}

static void statistics__a_shared_tensor_counts_once_for_each_record(void **state) {
    (void)state;
    const float values[] = { 1, 2, 3 };
    const struct tare_place places[] = { { 0, 0, 0 }, { 0, 1, 1 }, { 0, 2, 2 } };
    struct tare_statistics batch = { 0 }, single = { 0 };
    add(&batch, TARE_DT_FLOAT, tare_shape_make(1, 3), values, places, 3, TARE_BATCH_SHARED);
    for (int i = 0; i < 3; i++)
        add(&single, TARE_DT_FLOAT, tare_shape_make(1, 3), values, &places[i], 1, TARE_BATCH_SPLIT);
    assert_true(tare_statistics_equal(&batch, &single));
    add(&single, TARE_DT_FLOAT, tare_shape_make(1, 3), values, &places[2], 1, TARE_BATCH_SPLIT);
    assert_false(tare_statistics_equal(&batch, &single));
    tare_statistics_reset(&batch);
    tare_statistics_reset(&single);
}

static void statistics__other_floating_dtypes_count_as_the_floats_they_are(void **state) {
    (void)state;
    float floats[5000];
    double doubles[5000];
    uint16_t halves[5000], brains[5000];
    draw_fill(floats, 5000, DRAW_NORMAL, 4);
    for (int i = 0; i < 5000; i++) {
        floats[i] = roundf(floats[i] * 16) / 16; /* exact in all of them */
        brains[i] = tare_bfloat16_from_float(floats[i]);
        halves[i] = tare_half_from_float(floats[i]);
        doubles[i] = floats[i];
    }
    const void *const data_of[] = { floats, doubles, brains, halves };
    const int dtypes[] = { TARE_DT_FLOAT, TARE_DT_DOUBLE, TARE_DT_BFLOAT16, TARE_DT_HALF };
    struct tare_statistics s[4] = { { .samples = 0 } };
    for (int i = 0; i < 4; i++) {
        add(&s[i], dtypes[i], tare_shape_make(2, 1, 5000), data_of[i], places_of_all, 1, TARE_BATCH_SPLIT);
        assert_true(tare_statistics_equal(&s[0], &s[i]));
    }
    for (int i = 0; i < 4; i++)
        tare_statistics_reset(&s[i]);
}

static void statistics__what_cannot_be_counted_is_refused(void **state) {
    (void)state;
    struct tare_statistics s = { 0 };
    const int32_t ints[] = { 1, 2, 3 };
    struct tare_shape shape = tare_shape_make(1, 3);
    struct tare_tensor value = { 0 };
    assert_int_equal(tare_tensor_from(&value, TARE_DT_INT32, &shape, ints), TARE_OK);
    assert_int_equal(tare_statistics_add(&s, tally, &value, places_of_all, 1, TARE_BATCH_SPLIT), TARE_TYPE);
    tare_tensor_reset(&value);
    assert_int_equal(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, ints), TARE_OK);
    assert_int_equal(tare_statistics_add(&s, tally, &value, places_of_all, 2, TARE_BATCH_SPLIT), TARE_SHAPE);
    assert_string_equal(tare_error_text(), "2 records do not divide axis 0 of [3]");
    tare_tensor_reset(&value);
    tare_statistics_reset(&s);
}

static void statistics__channels_of_changing_length_are_given_up(void **state) {
    (void)state;
    const float values[6] = { 1, 2, 3, 4, 5, 6 };
    struct tare_statistics a = { .per_channel = true }, b = { .per_channel = true }, vector = { .per_channel = true };
    add(&a, TARE_DT_FLOAT, tare_shape_make(2, 2, 3), values, places_of_all, 1, TARE_BATCH_SPLIT);
    add(&b, TARE_DT_FLOAT, tare_shape_make(2, 3, 2), values, places_of_all, 1, TARE_BATCH_SPLIT);
    add(&vector, TARE_DT_FLOAT, tare_shape_make(1, 6), values, places_of_all, 1, TARE_BATCH_SPLIT);
    assert_int_equal(a.channels, 3);
    assert_int_equal(vector.channels, -1);
    assert_int_equal(tare_statistics_merge(&a, &b, NULL), TARE_OK);
    assert_int_equal(a.channels, -1);
    assert_int_equal(tare_statistics_merge(&b, &a, NULL), TARE_OK);
    assert_int_equal(b.channels, -1);
    tare_statistics_reset(&a);
    tare_statistics_reset(&b);
    tare_statistics_reset(&vector);
}

/* Each bin of all pages has two values, then 2^33, which need counters of 8 bytes. */
static void statistics__stay_below_the_stated_bound(void **state) {
    (void)state;
    enum { COUNT = 1 << 19, DOUBLINGS = 32 };
    float *values = tare_malloc_aligned(COUNT * sizeof *values);
    assert_non_null(values);
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = tare_float_from_bits(i << 13);
    struct tare_statistics s = { .per_channel = true };
    add(&s, TARE_DT_FLOAT, tare_shape_make(2, COUNT / 64, 64), values, places_of_all, 1, TARE_BATCH_SPLIT);
    assert_true(tare_statistics_bytes(&s) > 250000 && tare_statistics_bytes(&s) < 1200000); /* narrow counters */
    for (int i = 0; i < DOUBLINGS; i++) {
        struct tare_histogram copy = { .zeros = 0 };
        assert_int_equal(tare_histogram_merge(&copy, &s.histogram), TARE_OK);
        assert_int_equal(tare_histogram_merge(&s.histogram, &copy), TARE_OK);
        tare_histogram_reset(&copy);
    }
    if (tare_statistics_bytes(&s) > tare_statistics_bound(64))
        fail_msg("%zu bytes, bound %zu", tare_statistics_bytes(&s), tare_statistics_bound(64));
    assert_true(tare_statistics_bytes(&s) > 2000000);
    tare_statistics_reset(&s);
    tare_free(values);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics__count_and_locate_what_they_see),
        cmocka_unit_test(statistics__the_first_record_wins_a_tie),
        cmocka_unit_test(statistics__a_record_that_comes_again_takes_one_place),
        cmocka_unit_test(statistics__batches_and_merge_order_leave_no_trace),
        cmocka_unit_test(statistics__threads_that_share_them_leave_no_trace),
        cmocka_unit_test(statistics__a_shared_tensor_counts_once_for_each_record),
        cmocka_unit_test(statistics__other_floating_dtypes_count_as_the_floats_they_are),
        cmocka_unit_test(statistics__what_cannot_be_counted_is_refused),
        cmocka_unit_test(statistics__channels_of_changing_length_are_given_up),
        cmocka_unit_test(statistics__stay_below_the_stated_bound),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
