/* Each range algorithm against a plain search on the same values or the same histogram. */
#include "calib/algorithm.h"
#include "calib/quantization_error.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "calib/tally.h"
#include "support/draw.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

enum { COUNT = 60000, SAMPLES = 6 };

static struct tare_statistics statistics[DRAW_KINDS];
static float values[DRAW_KINDS][COUNT]; /* sorted once the statistics are made */
static double mean_low[DRAW_KINDS], mean_high[DRAW_KINDS];

static const struct tare_qscheme asymmetric = { .bits = 8 };
static const struct tare_qscheme symmetric = { .bits = 8, .symmetric = true, .narrow = true };

static int by_value(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static void fill(struct tare_tally *tally, int kind) {
    draw_fill(values[kind], COUNT, (enum draw_kind)kind, 100 + (uint64_t)kind);
    for (int i = 0; i < SAMPLES; i++) {
        struct tare_place place = { 0, i, i };
        struct tare_shape shape = tare_shape_make(1, COUNT / SAMPLES);
        struct tare_tensor value;
        float *part = values[kind] + i * (COUNT / SAMPLES);
        assert_int_equal(tare_tensor_wrap(&value, TARE_DT_FLOAT, &shape, part, NULL, NULL), TARE_OK);
        assert_int_equal(tare_statistics_add(&statistics[kind], tally, &value, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
        tare_tensor_reset(&value);
        qsort(part, COUNT / SAMPLES, sizeof *part, by_value);
        mean_low[kind] += part[0] / (double)SAMPLES;
        mean_high[kind] += part[COUNT / SAMPLES - 1] / (double)SAMPLES;
    }
    qsort(values[kind], COUNT, sizeof *values[kind], by_value);
}

static int set_up(void **state) {
    (void)state;
    struct tare_tally *tally = tare_tally_new();
    for (int kind = 0; kind < DRAW_KINDS; kind++)
        fill(tally, kind);
    tare_tally_free(tally);
    return 0;
}
static int tear_down(void **state) {
    (void)state;
    for (int kind = 0; kind < DRAW_KINDS; kind++)
        tare_statistics_reset(&statistics[kind]);
    return 0;
}

static struct tare_range range_of(const char *text, int kind, const struct tare_qscheme *scheme) {
    struct tare_algorithm_choice choice;
    struct tare_range range;
    assert_int_equal(tare_algorithm_parse(&choice, text), TARE_OK);
    assert_int_equal(tare_algorithm_range(&range, &choice, &statistics[kind], scheme), TARE_OK);
    assert_true(range.low <= range.high && range.candidates >= 1);
    if (scheme->symmetric) assert_true(range.low == -range.high);
    return range;
}

static void assert_near(double got, double expected, double tolerance, const char *what, int kind) {
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%s of %s: got %.9g, expected %.9g within %g", what, draw_name((enum draw_kind)kind), got, expected,
                 tolerance);
}

static void min_max__is_the_exact_extremes(void **state) {
    (void)state;
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        struct tare_range range = range_of("min_max", kind, &asymmetric);
        assert_true(range.low == values[kind][0] && range.high == values[kind][COUNT - 1]);
        range = range_of("min_max", kind, &symmetric);
        assert_true(range.high == fmax(fabs(values[kind][0]), fabs(values[kind][COUNT - 1])));
    }
}

static void average_min_max__is_the_mean_of_the_samples_extremes(void **state) {
    (void)state;
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        struct tare_range range = range_of("average_min_max", kind, &asymmetric);
        double reach = fabs(values[kind][0]) + fabs(values[kind][COUNT - 1]);
        assert_near(range.low, mean_low[kind], 1e-12 * reach, "mean minimum", kind);
        assert_near(range.high, mean_high[kind], 1e-12 * reach, "mean maximum", kind);
    }
}

/* The sorted values around a rank, widened by a bin's relative width (1/512) for the interpolation inside the bin. */
static void assert_rank(double got, const float *sorted, double rank, int kind) {
    int64_t below = (int64_t)floor(rank) - 2, above = (int64_t)ceil(rank) + 2;
    double low = sorted[below < 0 ? 0 : below >= COUNT ? COUNT - 1 : below];
    double high = sorted[above >= COUNT ? COUNT - 1 : above < 0 ? 0 : above];
    double slack = fmax(fabs(low), fabs(high)) / 512;
    if (got < low - slack || got > high + slack)
        fail_msg("rank %.3f of %s: got %.9g, expected %.9g to %.9g", rank, draw_name((enum draw_kind)kind), got, low,
                 high);
}

static void percentile__is_the_rank_of_the_sorted_values(void **state) {
    (void)state;
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        struct tare_range range = range_of("percentile", kind, &asymmetric);
        assert_rank(range.low, values[kind], COUNT * 0.00001, kind);
        assert_rank(range.high, values[kind], COUNT * 0.99999, kind);
        range = range_of("percentile:p=99", kind, &asymmetric);
        assert_rank(range.low, values[kind], COUNT * 0.01, kind);
        assert_rank(range.high, values[kind], COUNT * 0.99, kind);
        range = range_of("percentile:min_percentile=20,max_percentile=70", kind, &asymmetric);
        assert_rank(range.low, values[kind], COUNT * 0.20, kind);
        assert_rank(range.high, values[kind], COUNT * 0.70, kind);
        range = range_of("percentile:min_percentile=0,max_percentile=100", kind, &asymmetric);
        assert_true(range.low == values[kind][0] && range.high == values[kind][COUNT - 1]);
    }
}

static void percentile__symmetric_keeps_the_share_by_magnitude(void **state) {
    (void)state;
    static float magnitudes[COUNT];
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        for (int i = 0; i < COUNT; i++)
            magnitudes[i] = fabsf(values[kind][i]);
        qsort(magnitudes, COUNT, sizeof *magnitudes, by_value);
        assert_rank(range_of("percentile:p=95", kind, &symmetric).high, magnitudes, COUNT * 0.90, kind);
        assert_rank(range_of("percentile", kind, &symmetric).high, magnitudes, COUNT * 0.99998, kind);
    }
}

/* Squared error on the grid of a range, value by value, each at its bin's centre. */
static double plain_error(const struct tare_bins *bins, double low, double high, const struct tare_qscheme *scheme) {
    struct tare_qparams grid = tare_qparams_of_range(low, high, scheme);
    double error = 0;
    for (size_t i = 0; i < bins->count; i++) {
        double difference = bins->centers[i] - tare_qparams_round(&grid, bins->centers[i]);
        error += difference * difference * (double)bins->bins[i].count;
    }
    return error;
}

static void grid_error__equals_the_sum_over_bins(void **state) {
    (void)state;
    uint64_t seed = 77;
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        struct tare_bins bins;
        assert_int_equal(tare_bins_make(&bins, &statistics[kind]), TARE_OK);
        for (int turn = 0; turn < 12; turn++) {
            const struct tare_qscheme *scheme = turn % 2 ? &symmetric : &asymmetric;
            double low = bins.low * 1.2 * draw_unit(&seed), high = bins.high * 1.2 * draw_unit(&seed);
            if (low > high) low = high;
            struct tare_qparams grid = tare_qparams_of_range(low, high, scheme);
            struct tare_quantization_error error = tare_quantization_error_of(&grid, &bins);
            double expected = plain_error(&bins, low, high, scheme);
            /* The prefix sums lose what lies below the last place of all squares together. */
            double slack = 1e-9 * expected + 1e-13 * bins.squares[bins.count];
            assert_near(error.rounding + error.clipping, expected, slack, "squared error", kind);
            double clipped = 0;
            for (size_t i = 0; i < bins.count; i++) {
                double q = bins.centers[i] / grid.scale + grid.zero_point;
                if (q < grid.qmin - 0.5 || q >= grid.qmax + 0.5) clipped += (double)bins.bins[i].count;
            }
            assert_near(error.clipped, clipped, 0, "clipped values", kind);
        }
        tare_bins_free(&bins);
    }
}

/* The least error over ranges whose ends stand at equal steps from 0 to the extremes, as TensorFlow's brute force has
 * them; the error itself bin by bin. */
static double least_plain_error(const struct tare_bins *bins, const struct tare_qscheme *scheme) {
    enum { STEPS = 24 };
    double least = HUGE_VAL, reach_low = fmax(0, -bins->low), reach_high = fmax(0, bins->high);
    if (scheme->symmetric) reach_low = reach_high = fmax(reach_low, reach_high);
    for (int i = 0; i <= STEPS; i++) {
        for (int j = 0; j <= STEPS; j++) {
            if ((scheme->symmetric && i != j) || (reach_low == 0 && i > 0) || (reach_high == 0 && j > 0)) continue;
            least = fmin(least, plain_error(bins, -reach_low * i / STEPS, reach_high * j / STEPS, scheme));
        }
    }
    return least;
}

/* The least error over a dense grid of ranges. */
static double least_error(const struct tare_bins *bins, const struct tare_qscheme *scheme) {
    enum { STEPS = 60 };
    double least = HUGE_VAL, reach_low = fmax(0, -bins->low), reach_high = fmax(0, bins->high);
    if (scheme->symmetric) reach_low = reach_high = fmax(reach_low, reach_high);
    for (int i = 0; i < STEPS; i++) {
        for (int j = 0; j < STEPS; j++) {
            if (scheme->symmetric && i != j) continue;
            if ((reach_low == 0 && i > 0) || (reach_high == 0 && j > 0)) continue;
            double low = -reach_low * exp2(-i / 8.0), high = reach_high * exp2(-j / 8.0);
            struct tare_qparams grid = tare_qparams_of_range(low, high, scheme);
            struct tare_quantization_error error = tare_quantization_error_of(&grid, bins);
            least = fmin(least, error.rounding + error.clipping);
        }
    }
    return least;
}

/* The search steps more finely than the dense grid, so it may only be better; a hundredth is for the local minima that
 * rounding of the zero point makes. */
static const double SEARCH_SLACK = 1.01;

static void mse__is_not_worse_than_a_dense_search(void **state) {
    (void)state;
    const struct {
        const char *name;
        const struct tare_qscheme *scheme;
    } cases[] = { { "mse", &asymmetric }, { "mse", &symmetric }, { "mse_symmetric", &symmetric } };
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        struct tare_bins bins;
        assert_int_equal(tare_bins_make(&bins, &statistics[kind]), TARE_OK);
        for (int i = 0; i < 3; i++) {
            struct tare_range range = range_of(cases[i].name, kind, cases[i].scheme);
            double found = plain_error(&bins, range.low, range.high, cases[i].scheme);
            double least = fmin(least_error(&bins, cases[i].scheme), least_plain_error(&bins, cases[i].scheme));
            if (found > least * SEARCH_SLACK + 1e-12 * bins.squares[bins.count])
                fail_msg("%s on %s: error %.9g of [%g, %g], a dense search finds %.9g", cases[i].name,
                         draw_name((enum draw_kind)kind), found, range.low, range.high, least);
        }
        tare_bins_free(&bins);
    }
}

static void mse__beats_the_extremes_on_heavy_tails(void **state) {
    (void)state;
    struct tare_bins bins;
    assert_int_equal(tare_bins_make(&bins, &statistics[DRAW_HEAVY]), TARE_OK);
    struct tare_range whole = range_of("min_max", DRAW_HEAVY, &asymmetric),
                      cut = range_of("mse", DRAW_HEAVY, &asymmetric);
    struct tare_range_quality a = tare_range_quality_of(&whole, &bins, &asymmetric);
    struct tare_range_quality b = tare_range_quality_of(&cut, &bins, &asymmetric);
    if (!(b.sqnr_db > a.sqnr_db)) fail_msg("mse %.3f dB, min_max %.3f dB", b.sqnr_db, a.sqnr_db);
    assert_true(a.clipped == 0 && b.clipped > 0 && b.clipping_mse > 0);
    tare_bins_free(&bins);
}

/* Kullback-Leibler divergence bin by bin, as the method's definition has it; bins[] is the magnitudes' histogram or the
 * signed one with zero in the middle. */
static double plain_divergence(const double *n, int total_bins, int from, int to, int codes) {
    double inside = 0, total = 0, divergence = 0;
    for (int i = 0; i < total_bins; i++) {
        total += n[i];
        if (i >= from && i < to) inside += n[i];
    }
    if (inside == 0) return HUGE_VAL;
    double *p = tare_calloc((size_t)total_bins, sizeof *p);
    for (int i = 0; i < total_bins; i++)
        p[i < from ? from : i >= to ? to - 1 : i] += n[i];
    for (int code = 0; code < codes; code++) {
        int start = from + (int)((int64_t)(to - from) * code / codes);
        int end = from + (int)((int64_t)(to - from) * (code + 1) / codes);
        double mass = 0;
        int filled = 0;
        for (int i = start; i < end; i++) {
            mass += n[i];
            filled += p[i] > 0;
        }
        for (int i = start; i < end; i++) {
            if (p[i] <= 0) continue;
            divergence += mass > 0 ? p[i] / total * log((p[i] / total) / (mass / filled / inside)) : HUGE_VAL;
        }
    }
    tare_free(p);
    return divergence;
}

enum { MOST_HALF = 4096, MOST_BINS = 2 * MOST_HALF };

/* The histogram in bins of equal width, merged in pairs until those that are not empty hold 8 values each on average;
 * returns the number of bins on each side of zero. */
static int equal_bins(double n[MOST_BINS], const struct tare_bins *bins, double reach) {
    const double width = reach / MOST_HALF;
    int half = MOST_HALF;
    memset(n, 0, MOST_BINS * sizeof *n);
    for (size_t i = 0; i < bins->count; i++) {
        if (bins->centers[i] == 0) continue;
        double from = bins->bins[i].low / width + MOST_HALF, to = bins->bins[i].high / width + MOST_HALF;
        for (int at = (int)floor(from); at <= (int)floor(to); at++) {
            double share = floor(from) == floor(to) ? 1 : (fmin(to, at + 1) - fmax(from, at)) / (to - from);
            n[at < 0 ? 0 : at >= MOST_BINS ? MOST_BINS - 1 : at] += share * (double)bins->bins[i].count;
        }
    }
    for (;; half /= 2) {
        double total = 0, filled = 0;
        for (int i = 0; i < 2 * half; i++) {
            total += n[i];
            filled += n[i] > 0;
        }
        if (total >= 8 * filled) return half;
        for (int i = 0; i < half; i++)
            n[i] = n[2 * i] + n[2 * i + 1];
    }
}

static double error_of_range(const struct tare_bins *bins, double low, double high) {
    struct tare_qparams params = tare_qparams_of_range(low, high, &asymmetric);
    struct tare_quantization_error error = tare_quantization_error_of(&params, bins);
    return error.rounding + error.clipping;
}

static void entropy__finds_the_threshold_of_least_divergence(void **state) {
    (void)state;
    enum { CODES = 255 };
    static double n[MOST_BINS];
    for (int kind = 0; kind < DRAW_KINDS; kind++) {
        struct tare_bins bins;
        assert_int_equal(tare_bins_make(&bins, &statistics[kind]), TARE_OK);
        const double reach = fmax(fabs(bins.low), fabs(bins.high)), limit = error_of_range(&bins, bins.low, bins.high);
        const int half = equal_bins(n, &bins, reach);
        const double width = reach / half;
        struct tare_range range = range_of("entropy", kind, &asymmetric);
        assert_true(range.candidates > half / 2 || kind == DRAW_TWO);
        double threshold = fmax(-range.low, range.high), least = HUGE_VAL, found = HUGE_VAL;
        int lowest = (int)floor(bins.low / width + half), highest = (int)ceil(bins.high / width + half);
        int chosen = (int)lround(threshold / width);
        for (int i = 16; i <= half; i++) {
            int from = half - i > lowest ? half - i : lowest, to = half + i < highest ? half + i : highest;
            if (i != chosen && i % 37 && i != half) continue;
            from = from > half ? half : from;
            to = to < half ? half : to;
            if (to - from < CODES && i < half) continue;
            if (error_of_range(&bins, fmax(bins.low, -i * width), fmin(bins.high, i * width)) > limit) continue;
            double value = plain_divergence(n, 2 * half, from, to, CODES);
            least = fmin(least, value);
            if (i == chosen) found = value;
        }
        if (found == HUGE_VAL || found > least + 1e-9)
            fail_msg("entropy on %s: threshold %g (bin %d of %d) has divergence %.12g, another has %.12g",
                     draw_name((enum draw_kind)kind), threshold, chosen, half, found, least);
        tare_bins_free(&bins);
    }
}

/* The range of `text` for `count` values, and its SQNR. */
static struct tare_range range_of_values(double *sqnr_db, const char *text, float *x, int64_t count) {
    const struct tare_shape shape = tare_shape_make(1, count);
    const struct tare_place place = { 0, 0, 0 };
    struct tare_statistics few = { .samples = 0 };
    struct tare_tally *tally = tare_tally_new();
    struct tare_algorithm_choice choice;
    struct tare_tensor tensor;
    struct tare_range range;
    struct tare_bins bins;
    assert_non_null(tally);
    assert_int_equal(tare_tensor_wrap(&tensor, TARE_DT_FLOAT, &shape, x, NULL, NULL), TARE_OK);
    assert_int_equal(tare_statistics_add(&few, tally, &tensor, &place, 1, TARE_BATCH_SPLIT), TARE_OK);
    assert_int_equal(tare_algorithm_parse(&choice, text), TARE_OK);
    assert_int_equal(tare_bins_make(&bins, &few), TARE_OK);
    assert_int_equal(tare_algorithm_range_of_bins(&range, &choice, &few, &bins, &asymmetric), TARE_OK);
    *sqnr_db = tare_range_quality_of(&range, &bins, &asymmetric).sqnr_db;
    tare_bins_free(&bins);
    tare_statistics_reset(&few);
    tare_tensor_reset(&tensor);
    tare_tally_free(tally);
    return range;
}

static void entropy__does_not_clip_without_evidence(void **state) {
    enum { FEW = 400 }; /* fewer than 8 for each of 255 codes */
    static float x[FEW];
    double db;
    (void)state;
    draw_fill(x, FEW, DRAW_NORMAL, 7);
    const struct tare_range all = range_of_values(&db, "min_max", x, FEW);
    const struct tare_range range = range_of_values(&db, "entropy", x, FEW);
    assert_true(range.low == all.low && range.high == all.high);
}

/* A record of a table: many small features and one large one, as in inputs that mix units. */
static void entropy__keeps_rare_large_values_that_matter(void **state) {
    enum { RECORDS = 4000, FEATURES = 12 };
    static float x[RECORDS * FEATURES];
    double min_max_db, db;
    uint64_t seed = 3;
    (void)state;
    for (int i = 0; i < RECORDS * FEATURES; i++)
        x[i] = (float)((i % FEATURES ? 1.0 : 900.0) * (1 + draw_unit(&seed)));
    range_of_values(&min_max_db, "min_max", x, RECORDS * FEATURES);
    range_of_values(&db, "entropy", x, RECORDS * FEATURES);
    if (db < min_max_db) fail_msg("entropy: %.1f dB, min_max: %.1f dB", db, min_max_db);
}

static void entropy__does_not_let_zeros_decide(void **state) {
    (void)state;
    struct tare_statistics more = { .samples = 0 };
    assert_int_equal(tare_statistics_merge(&more, &statistics[DRAW_RELU], NULL), TARE_OK);
    struct tare_range before = range_of("entropy", DRAW_RELU, &asymmetric), after;
    more.histogram.zeros *= 1000;
    struct tare_algorithm_choice choice;
    assert_int_equal(tare_algorithm_parse(&choice, "entropy"), TARE_OK);
    assert_int_equal(tare_algorithm_range(&after, &choice, &more, &asymmetric), TARE_OK);
    assert_true(before.low == after.low && before.high == after.high);
    tare_statistics_reset(&more);
}

static void algorithms__keep_a_constant(void **state) {
    (void)state;
    size_t count;
    const struct tare_algorithm *const *rows = tare_algorithm_list(&count);
    for (size_t i = 0; i < count; i++) {
        double constant = values[DRAW_CONSTANT][0];
        struct tare_range range = range_of(rows[i]->name, DRAW_CONSTANT, &asymmetric);
        struct tare_qparams grid = tare_qparams_of_range(range.low, range.high, &asymmetric);
        assert_near(tare_qparams_round(&grid, constant), constant, 0.002 * constant, rows[i]->name, DRAW_CONSTANT);
    }
}

static void algorithms__say_so_when_nothing_finite_was_seen(void **state) {
    (void)state;
    struct tare_statistics empty = { .samples = 0 };
    size_t count;
    const struct tare_algorithm *const *rows = tare_algorithm_list(&count);
    for (size_t i = 0; i < count; i++) {
        struct tare_algorithm_choice choice;
        struct tare_range range;
        assert_int_equal(tare_algorithm_parse(&choice, rows[i]->name), TARE_OK);
        assert_int_equal(tare_algorithm_range(&range, &choice, &empty, &asymmetric), TARE_NOT_FOUND);
        assert_string_equal(tare_error_text(), "no finite value was seen");
    }
}

static void algorithms__are_all_zero_for_zeros(void **state) {
    (void)state;
    struct tare_statistics zeros = { .samples = 1, .finite_samples = 1, .n_extremes = 1 };
    zeros.histogram.zeros = 10;
    size_t count;
    const struct tare_algorithm *const *rows = tare_algorithm_list(&count);
    for (size_t i = 0; i < 2 * count; i++) {
        struct tare_algorithm_choice choice;
        struct tare_range range;
        assert_int_equal(tare_algorithm_parse(&choice, rows[i / 2]->name), TARE_OK);
        assert_int_equal(tare_algorithm_range(&range, &choice, &zeros, i % 2 ? &symmetric : &asymmetric), TARE_OK);
        assert_true(range.low == 0 && range.high == 0);
    }
    tare_statistics_reset(&zeros);
}

/* A range is stored with the statistics, and searched again when they have more samples. */
static void algorithms__search_a_range_once_for_the_same_samples(void **state) {
    (void)state;
    struct tare_statistics grown = { .samples = 0 };
    struct tare_algorithm_choice entropy, mse;
    struct tare_range narrow, again, other, wide;
    assert_int_equal(tare_algorithm_parse(&entropy, "entropy"), TARE_OK);
    assert_int_equal(tare_algorithm_parse(&mse, "mse"), TARE_OK);
    assert_int_equal(tare_statistics_merge(&grown, &statistics[DRAW_RELU], NULL), TARE_OK);
    assert_int_equal(tare_algorithm_range(&narrow, &entropy, &grown, &asymmetric), TARE_OK);
    assert_int_equal(tare_algorithm_range(&again, &entropy, &grown, &asymmetric), TARE_OK);
    assert_true(again.low == narrow.low && again.high == narrow.high && again.candidates == narrow.candidates);
    assert_non_null(grown.ranges);
    assert_int_equal(tare_algorithm_range(&other, &mse, &grown, &asymmetric), TARE_OK);
    assert_int_equal(tare_algorithm_range(&again, &entropy, &grown, &symmetric), TARE_OK);
    assert_true(again.low == -again.high);
    assert_int_equal(tare_statistics_merge(&grown, &statistics[DRAW_NORMAL], NULL), TARE_OK);
    assert_int_equal(tare_algorithm_range(&wide, &entropy, &grown, &asymmetric), TARE_OK);
    assert_true(wide.low < narrow.low);
    tare_statistics_reset(&grown);
}

/* Without the bins of the caller, the algorithms get only what they read. */
static void algorithms__find_the_range_of_all_bins(void **state) {
    (void)state;
    size_t count;
    const struct tare_algorithm *const *rows = tare_algorithm_list(&count);
    for (size_t i = 0; i < count * DRAW_KINDS; i++) {
        struct tare_statistics alone = { .samples = 0 }, shared = { .samples = 0 };
        struct tare_algorithm_choice choice;
        struct tare_range expected, range;
        struct tare_bins bins;
        assert_int_equal(tare_algorithm_parse(&choice, rows[i / DRAW_KINDS]->name), TARE_OK);
        assert_int_equal(tare_statistics_merge(&alone, &statistics[i % DRAW_KINDS], NULL), TARE_OK);
        assert_int_equal(tare_statistics_merge(&shared, &statistics[i % DRAW_KINDS], NULL), TARE_OK);
        assert_int_equal(tare_bins_make(&bins, &shared), TARE_OK);
        assert_int_equal(tare_algorithm_range_of_bins(&expected, &choice, &shared, &bins, &asymmetric), TARE_OK);
        assert_int_equal(tare_algorithm_range(&range, &choice, &alone, &asymmetric), TARE_OK);
        assert_true(range.low == expected.low && range.high == expected.high &&
                    range.candidates == expected.candidates);
        tare_bins_free(&bins);
        tare_statistics_reset(&alone);
        tare_statistics_reset(&shared);
    }
}

static void parse__knows_tensorflows_names(void **state) {
    (void)state;
    const char *const names[][2] = { { "CALIBRATION_METHOD_MIN_MAX", "min_max" },
                                     { "CALIBRATION_METHOD_AVERAGE_MIN_MAX", "average_min_max" },
                                     { "CALIBRATION_METHOD_HISTOGRAM_PERCENTILE", "percentile" },
                                     { "CALIBRATION_METHOD_HISTOGRAM_MSE_BRUTEFORCE", "mse" },
                                     { "CALIBRATION_METHOD_HISTOGRAM_MSE_MAX_FREQUENCY", "mse" },
                                     { "CALIBRATION_METHOD_HISTOGRAM_MSE_SYMMETRIC", "mse_symmetric" } };
    for (int i = 0; i < 6; i++) {
        struct tare_algorithm_choice choice;
        assert_int_equal(tare_algorithm_parse(&choice, names[i][0]), TARE_OK);
        assert_string_equal(choice.row->name, names[i][1]);
    }
}

static void parse__says_what_is_wrong(void **state) {
    (void)state;
    const char *const cases[][2] = {
        { "percentil", "unknown algorithm 'percentil' (did you mean 'percentile'?)" },
        { "xyzzy",
          "unknown algorithm 'xyzzy' (known: min_max, average_min_max, percentile, entropy, mse, mse_symmetric)" },
        { "percentile:q=3", "algorithm 'percentile' has no parameter 'q' (known: min_percentile, max_percentile, p)" },
        { "min_max:p=3", "algorithm 'min_max' has no parameter 'p' (known: none)" },
        { "percentile:p=101", "algorithm 'percentile': p is '101' (expected a number from 50 to 100)" },
        { "percentile:p=9x", "algorithm 'percentile': p is '9x' (expected a number from 50 to 100)" },
        { "percentile:p", "algorithm 'percentile': p is '' (expected a number from 50 to 100)" },
        { "percentile:p=nan", "algorithm 'percentile': p is 'nan' (expected a number from 50 to 100)" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_algorithm_choice choice;
        assert_int_equal(tare_algorithm_parse(&choice, cases[i][0]), TARE_USAGE);
        assert_string_equal(tare_error_text(), cases[i][1]);
    }
}

static void list__keeps_parameters_with_their_algorithm(void **state) {
    (void)state;
    struct tare_algorithm_choice choices[4];
    size_t count;
    assert_int_equal(
        tare_algorithm_parse_list(choices, &count, 4,
                                  "min_max,percentile:min_percentile=1,max_percentile=98.5,mse,percentile:p=99.9"),
        TARE_OK);
    assert_int_equal(count, 4);
    const char *const expected[] = { "min_max", "percentile:min_percentile=1,max_percentile=98.5", "mse",
                                     "percentile:p=99.9" };
    for (size_t i = 0; i < count; i++) {
        struct tare_strbuf text = { 0 };
        tare_algorithm_print(&text, &choices[i]);
        assert_string_equal(tare_strbuf_text(&text), expected[i]);
        tare_strbuf_free(&text);
    }
}

static void list__says_what_is_wrong(void **state) {
    (void)state;
    const char *const cases[][2] = {
        { "", "unknown algorithm '' (known: min_max, average_min_max, percentile, entropy, mse, mse_symmetric)" },
        { "mse,", "unknown algorithm '' (known: min_max, average_min_max, percentile, entropy, mse, mse_symmetric)" },
        { "mse,min_max,mse", "algorithm 'mse' is given twice" },
        { "percentile,percentile:p=99.9,percentile:p=99,mse,entropy", "more than 4 algorithms" },
        { "mse,p=3", "algorithm 'mse' has no parameter" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_algorithm_choice choices[4];
        size_t count;
        assert_int_equal(tare_algorithm_parse_list(choices, &count, 4, cases[i][0]), TARE_USAGE);
        if (i < 4) assert_string_equal(tare_error_text(), cases[i][1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(min_max__is_the_exact_extremes),
        cmocka_unit_test(average_min_max__is_the_mean_of_the_samples_extremes),
        cmocka_unit_test(percentile__is_the_rank_of_the_sorted_values),
        cmocka_unit_test(percentile__symmetric_keeps_the_share_by_magnitude),
        cmocka_unit_test(grid_error__equals_the_sum_over_bins),
        cmocka_unit_test(mse__is_not_worse_than_a_dense_search),
        cmocka_unit_test(mse__beats_the_extremes_on_heavy_tails),
        cmocka_unit_test(entropy__finds_the_threshold_of_least_divergence),
        cmocka_unit_test(entropy__does_not_clip_without_evidence),
        cmocka_unit_test(entropy__keeps_rare_large_values_that_matter),
        cmocka_unit_test(entropy__does_not_let_zeros_decide),
        cmocka_unit_test(algorithms__keep_a_constant),
        cmocka_unit_test(algorithms__say_so_when_nothing_finite_was_seen),
        cmocka_unit_test(algorithms__are_all_zero_for_zeros),
        cmocka_unit_test(algorithms__search_a_range_once_for_the_same_samples),
        cmocka_unit_test(algorithms__find_the_range_of_all_bins),
        cmocka_unit_test(parse__knows_tensorflows_names),
        cmocka_unit_test(parse__says_what_is_wrong),
        cmocka_unit_test(list__keeps_parameters_with_their_algorithm),
        cmocka_unit_test(list__says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
