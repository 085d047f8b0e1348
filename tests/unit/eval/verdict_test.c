/* Which model is recommended, the sentence that says so, and how often that is wrong. */
#include "eval/verdict.h"
#include "eval/target.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

enum { ROWS = 5, MOST = 10000 };

/* A float model of 100 bytes and others, with records labelled 0 to 9. */
struct fixture {
    struct tare_comparison c;
    struct tare_comparison_row rows[ROWS];
    struct tare_metrics metrics[ROWS];
    struct tare_judgement judgements[ROWS][MOST];
    int64_t sorted[MOST];
    double errors[ROWS][MOST];
};
static struct fixture f;

static void open_fixture(size_t count) {
    static const char *keys[] = { "scores", "embedding" };
    memset(&f, 0, sizeof f);
    f.c.rows = f.rows;
    f.c.n_rows = count + 1;
    f.c.n_outputs = 1;
    f.c.output_keys = keys;
    for (size_t r = 0; r <= count; r++) {
        f.rows[r] = (struct tare_comparison_row){ .method = r ? "static" : "float",
                                                  .size_bytes = 100 - 10 * (int64_t)r,
                                                  .outputs = &f.metrics[r],
                                                  .tpu_seconds = NAN };
        f.metrics[r] = (struct tare_metrics){ .elements = 1, .signal = 1, .noise = r ? 1e-4 : 0 };
    }
}

static void label_rows(size_t row, size_t count) {
    struct tare_metrics *m = &f.metrics[row];
    for (size_t i = 0; i < count; i++)
        f.judgements[row][i].label = (int64_t)(i % 10);
    m->judged = (struct tare_judged){ .rows = f.judgements[row], .sorted = f.sorted, .count = count };
    m->labelled = (int64_t)count;
    m->top1 = 0;
    for (size_t i = 0; i < count; i++)
        m->top1 += f.judgements[row][i].right;
}

/* Float is right in `right` of `count` records; model `row` has of these `lost` wrong, and `gained` others right. */
static void label(size_t row, size_t count, size_t right, size_t gained, size_t lost) {
    for (size_t i = 0; i < count; i++)
        f.judgements[row][i].right = i < right ? i >= lost : i < right + gained;
    label_rows(row, count);
}

static void cost(size_t row, int64_t bytes, double microseconds) {
    f.rows[row].size_bytes = bytes;
    f.rows[row].tpu_seconds = 1e-6 * microseconds;
}

/* Ranks the labels, as a comparison does after its last record. */
static void finish(void) {
    for (size_t r = 0; r < sizeof f.metrics / sizeof *f.metrics; r++) {
        f.metrics[r].judged.of_majority = 0;
        tare_metrics_finish(&f.metrics[r], NULL);
    }
}

static struct tare_verdict verdict_of_all(void) {
    finish();
    return tare_verdict_of(&f.c);
}

static void expect_verdict(const char *expected) {
    struct tare_strbuf text = { 0 };
    finish();
    tare_verdict_put(&text, &f.c);
    if (strcmp(tare_strbuf_text(&text), expected) != 0)
        fail_msg("'%s', expected '%s'", tare_strbuf_text(&text), expected);
    tare_strbuf_free(&text);
}

static void expect_part(const char *expected) {
    struct tare_strbuf text = { 0 };
    finish();
    tare_verdict_put(&text, &f.c);
    if (!strstr(tare_strbuf_text(&text), expected)) fail_msg("'%s', expected '%s'", tare_strbuf_text(&text), expected);
    tare_strbuf_free(&text);
}

static void expect_row(size_t row) {
    const struct tare_comparison_row *got = verdict_of_all().row;
    if (got != (row ? &f.rows[row] : NULL)) fail_msg("row %d, expected %zu", got ? (int)(got - f.rows) : 0, row);
}

/* ---- what the records support ---- */

static void float_at_chance__has_no_recommendation(void **state) {
    (void)state;
    open_fixture(1);
    label(0, 1000, 112, 0, 0);
    label(1, 1000, 112, 3, 3);
    expect_verdict(
        "No model is recommended: the top-1 of float is 11.20 % (95 % interval: 9.39 % to 13.31 %), no better than "
        "the most frequent label for all (10.00 %). Check labels and the scale of the inputs with 'tare dataset head'");
    label(0, 1000, 130, 0, 0);
    label(1, 1000, 130, 0, 0);
    expect_row(1);
}

static void labels_of_one_class__have_no_recommendation(void **state) {
    (void)state;
    open_fixture(1);
    for (size_t r = 0; r < 2; r++) {
        label(r, 1000, 1000, 0, 0);
        for (size_t i = 0; i < 1000; i++)
            f.judgements[r][i].label = 7;
    }
    expect_part("no better than the most frequent label for all (100.00 %)");
    expect_row(0);
}

/* Nine of ten labels are 0, and the score of a 1 is higher, but never above the threshold. */
static void unbalanced_labels__are_compared_by_auc(void **state) {
    (void)state;
    open_fixture(1);
    for (size_t r = 0; r < 2; r++) {
        label(r, 400, 360, 0, 0);
        for (size_t i = 0; i < 400; i++) {
            f.judgements[r][i].label = i >= 360;
            mini_ok(tare_auc_add(&f.metrics[r].auc, 0.1 + 0.001 * (double)(i % 100) + (i >= 360 ? 0.05 : 0), i >= 360));
        }
    }
    assert_int_equal(verdict_of_all().reason, TARE_VERDICT_UNBALANCED);
    expect_part(
        "no better than the most frequent label for all (90.00 %); its scores have an order: compare with --metric "
        "auc");
    for (size_t r = 0; r < 2; r++)
        tare_auc_reset(&f.metrics[r].auc);
}

static void three_records__tell_nothing(void **state) {
    (void)state;
    open_fixture(1);
    label(0, 3, 3, 0, 0);
    label(1, 3, 3, 0, 0);
    expect_verdict("No model is recommended: each smaller one may lose more than 1 percentage point of top-1; the "
                   "nearest is static (100.00 %, float 100.00 %; 95 % interval of the difference: -69.00 to +69.00); 3 "
                   "examples detect a loss of 69 percentage points of top-1 (give about 210, or --margin 70)");
}

static void ninety_records_with_a_loss_of_five_points__tell_their_interval(void **state) {
    (void)state;
    open_fixture(1);
    label(0, 90, 75, 7, 12);
    label(1, 90, 75, 7, 12);
    label(0, 90, 75, 0, 0);
    expect_verdict("No model is recommended: each smaller one may lose more than 1 percentage point of top-1; the "
                   "nearest is static (77.78 %, float 83.33 %; 95 % interval of the difference: -16.19 to +4.82); 90 "
                   "examples detect a loss of 11 percentage points of top-1 (give about 8600, or --margin 17)");
}

static void equal_models__are_recommended_by_enough_records(void **state) {
    (void)state;
    open_fixture(1);
    label(0, 1000, 900, 0, 0);
    label(1, 1000, 900, 5, 5);
    expect_verdict(
        "Recommended: static, the only smaller model with a loss of at most 1 percentage point of top-1 (90.00 %, "
        "float 90.00 %; 95 % interval of the difference: -0.79 to +0.79); weights 1.1 times smaller");
    label(0, 300, 270, 0, 0);
    label(1, 300, 270, 2, 2);
    expect_verdict("No model is recommended: each smaller one may lose more than 1 percentage point of top-1; the "
                   "nearest is static (90.00 %, float 90.00 %; 95 % interval of the difference: -2.05 to +2.05); 300 "
                   "examples detect a loss of 2 percentage points of top-1 (give about 990, or --margin 2.1)");
}

static void ten_thousand_records__show_small_losses(void **state) {
    (void)state;
    open_fixture(2);
    label(0, 10000, 9000, 0, 0);
    label(1, 10000, 9000, 90, 110); /* loses 0.2 points */
    label(2, 10000, 9000, 40, 190); /* loses 1.5 points */
    expect_verdict(
        "Recommended: static, the only smaller model with a loss of at most 1 percentage point of top-1 (89.80 %, "
        "float 90.00 %; 95 % interval of the difference for 2 models: -0.53 to +0.12); weights 1.1 times smaller");
    f.c.n_rows = 2;
    label(1, 10000, 9000, 20, 320);
    expect_verdict("No model is recommended: each smaller one loses more than 1 percentage point of top-1; the nearest "
                   "is static (87.00 %, float 90.00 %; 95 % interval of the difference: -3.38 to -2.65)");
}

/* A mean needs examples, and is compared in percent of float's error. */
static void regression__has_a_margin_in_percent_of_the_error(void **state) {
    (void)state;
    for (size_t count = 10; count <= 100; count += 90) {
        open_fixture(1);
        for (size_t r = 0; r < 2; r++) {
            struct tare_metrics *m = &f.metrics[r];
            for (size_t i = 0; i < count; i++)
                f.errors[r][i] = 1 + 0.1 * (double)(i % 7) + (r ? 0.01 * (double)(i % 3) - 0.01 : 0);
            m->errors = (struct tare_example_errors){ .absolute = { f.errors[r], count, 0 },
                                                      .squared = { f.errors[r], count, 0 } };
            m->expected.count = (int64_t)count;
            m->expected.squares = 1e4 * (double)count; /* spread 100 */
            for (size_t i = 0; i < count; i++)
                m->expected_error += f.errors[r][i];
        }
        if (count == 10)
            expect_verdict("No model is recommended: 10 examples are too few to compare models in mean absolute error "
                           "(expected at least 20)");
        else
            expect_verdict(
                "Recommended: static, the only smaller model with a loss of at most 1 % of the MAE (1.295, float "
                "1.295; 95 % interval of the difference: -0.00173 to +0.00153); weights 1.1 times smaller");
    }
}

static void margin__is_the_users(void **state) {
    (void)state;
    open_fixture(1);
    label(0, 1000, 900, 0, 0);
    label(1, 1000, 900, 15, 20);
    expect_row(0);
    f.c.margin = 3;
    expect_row(1);
    expect_part("with a loss of at most 3 percentage points of top-1 (");
}

/* ---- the choice ---- */

static void smallest__wins_among_those_that_keep_up(void **state) {
    (void)state;
    open_fixture(4);
    label(0, 5000, 4500, 0, 0);
    label(1, 5000, 4500, 24, 4); /* the highest value, but larger */
    cost(1, 60, 5);
    label(2, 5000, 4500, 10, 12);
    cost(2, 40, 9);
    label(3, 5000, 4500, 12, 14); /* as small, and faster */
    cost(3, 41, 7);
    label(4, 5000, 4500, 10, 400);
    cost(4, 10, 1);
    expect_row(3);
    const struct tare_verdict verdict = verdict_of_all();
    assert_true(verdict.fastest && verdict.tested && !verdict.better);
    assert_int_equal(verdict.candidates, 3);
    assert_int_equal(verdict.compared, 4);
    f.rows[3].tpu_seconds = NAN;
    expect_row(2);
}

/* Both keep the margin, and the larger one is better by the records on which they differ. */
static void competitors__are_compared_with_each_other(void **state) {
    (void)state;
    open_fixture(2);
    label(0, 5000, 4500, 0, 0);
    cost(1, 45, 1);
    label(1, 5000, 4500, 0, 2);
    cost(2, 40, 1);
    label(2, 5000, 4500, 0, 30);
    expect_row(1);
    expect_part("Recommended: static, better than the smallest of 2 models");
    cost(1, 51, 1); /* more than a quarter larger */
    expect_row(2);
}

static void dominated_model__is_not_recommended(void **state) {
    (void)state;
    open_fixture(2);
    label(0, 5000, 4500, 0, 0);
    for (size_t r = 1; r < 3; r++)
        cost(r, 40, 1);
    label(1, 5000, 4500, 3, 6);
    label(2, 5000, 4500, 3, 4);
    expect_row(2);
    label(1, 5000, 4500, 3, 4);
    f.metrics[1].noise = 1e-5; /* equal by the measure, better by the SQNR */
    expect_row(1);
}

static void slower_model__is_recommended_for_its_size_only(void **state) {
    (void)state;
    open_fixture(1);
    label(0, 5000, 4500, 0, 0);
    label(1, 5000, 4500, 3, 4);
    f.rows[0].tpu_seconds = 1e-6;
    cost(1, 50, 1.3);
    expect_part(
        "; weights 2.0 times smaller, but slower than float by the estimate (1.3 µs, float 1 µs): for its size only");
}

/* A companion may be the fastest; a model that loses more than the margin is not. */
static void fastest_model__is_named_beside_the_smallest(void **state) {
    static const char fastest[] = ". As fast as possible within the margin: ";
    struct tare_strbuf text = { 0 };
    (void)state;
    open_fixture(3);
    label(0, 5000, 4500, 0, 0);
    for (size_t r = 1; r < 4; r++)
        label(r, 5000, 4500, 3, 4);
    label(3, 5000, 4500, 10, 400);
    f.rows[0].tpu_seconds = 1e-6;
    cost(1, 40, 0.9);
    cost(2, 60, 0.8);
    cost(3, 30, 0.1);
    f.rows[2].method = "static+bfloat16";
    f.rows[2].companion = true;
    expect_row(1);
    expect_part(". As fast as possible within the margin: static+bfloat16, an estimated 0.8 µs");
    f.rows[2].tpu_seconds = 0.88e-6; /* about as fast as the recommended one */
    tare_verdict_put(&text, &f.c);
    assert_null(strstr(tare_strbuf_text(&text), fastest));
    tare_strbuf_free(&text);
}

/* By the compiler's cycles where there are any: not the smallest, and none that is slower than float. */
static void comparison_by_time__recommends_the_fastest(void **state) {
    (void)state;
    open_fixture(3);
    for (size_t r = 0; r < 4; r++)
        label(r, 5000, 4500, r ? 3 : 0, r ? 4 : 0);
    f.c.by_time = true;
    f.c.compiler = "libtpu 1";
    f.c.chip_batch = 32;
    f.rows[0].tpu_seconds = 1e-6;
    cost(1, 60, 0.5);
    cost(2, 50, 0.7);
    cost(3, 30, 1.2);
    expect_row(1);
    for (size_t r = 0; r < 4; r++)
        f.rows[r].tpu_cycles = (double[]){ 1000, 900, 800, 1300 }[r];
    expect_row(2);
    expect_part(", the fastest of 2 models");
    expect_part("1.25 times as fast on a Cloud TPU v2 in batches of 32 (800 cycles, float 1000, by libtpu 1)");
    f.rows[3].tpu_cycles = 803; /* about as fast, and smaller */
    expect_row(3);
}

static void models_slower_than_float__are_not_recommended_by_time(void **state) {
    (void)state;
    open_fixture(2);
    for (size_t r = 0; r < 3; r++)
        label(r, 5000, 4500, r ? 3 : 0, r ? 4 : 0);
    f.c.by_time = true;
    f.rows[0].tpu_seconds = 1e-6;
    cost(1, 60, 0.95); /* an estimate that may be wrong */
    cost(2, 50, 1.2);
    f.rows[1].quantized = f.rows[2].quantized = 3;
    expect_row(0);
    expect_part("No model is recommended: each smaller one within the margin is slower than float on "
                "a Cloud TPU v2 in batches of 1, by the estimate");
    f.rows[1].quantized = 0; /* float, with smaller weights */
    f.rows[1].tpu_seconds = 1e-6;
    expect_row(1);
}

static void weights_of_convolutions__are_smaller_on_disk_only(void **state) {
    (void)state;
    open_fixture(1);
    label(0, 1000, 900, 0, 0);
    label(1, 1000, 900, 5, 5);
    f.rows[1].folded = 2;
    expect_part(
        "; weights 1.1 times smaller on disk (the compiler of a TPU turns those of 2 convolutions into bfloat16)");
    f.rows[1].folded = 1;
    expect_part(" those of 1 convolution into bfloat16");
}

/* The companion of a row is not recommended, and its sentence says what bfloat16 costs. */
static void companion__shows_what_bfloat16_costs(void **state) {
    (void)state;
    open_fixture(2);
    label(0, 5000, 4500, 0, 0);
    label(1, 5000, 4500, 3, 4);
    label(2, 5000, 4500, 3, 4);
    f.rows[2].method = "static+bfloat16";
    f.rows[2].companion = true;
    f.metrics[1].noise = 0.00263; /* 25.80 dB */
    f.metrics[2].noise = 0.0107;
    expect_row(1);
    assert_int_equal(verdict_of_all().compared, 1);
    expect_part(". bfloat16 costs static 6.1 dB (SQNR 19.71 instead of 25.80 dB): convert with 'bfloat16_optimization: "
                "DISABLED' to avoid that");
    f.metrics[2].noise = 0.003;
    expect_part("; weights 1.1 times smaller");
    assert_true(tare_worst_sqnr_db(NULL, &f.c, &f.metrics[2]) > 25);
}

static void each_worse__is_said(void **state) {
    (void)state;
    open_fixture(2);
    label(0, 1000, 900, 0, 0);
    label(1, 1000, 900, 1, 90);
    label(2, 1000, 900, 1, 60);
    expect_verdict("No model is recommended: each smaller one loses more than 1 percentage point of top-1; the nearest "
                   "is static (84.10 %, float 90.00 %; 95 % interval of the difference for 2 models: -7.88 to -4.35)");
    assert_int_equal(verdict_of_all().reason, TARE_VERDICT_WORSE);
}

static void without_labels__decibels_decide(void **state) {
    (void)state;
    open_fixture(2);
    cost(1, 50, 1);
    cost(2, 25, 1);
    f.c.records = 1;
    f.metrics[2].noise = 0.02; /* 17 dB */
    expect_row(1);
    expect_part("Recommended: static, the only smaller model with an SQNR of at least 20 dB (no labels to compare by; "
                "40.00 dB on 1 record)");
    f.c.custom_measure = &(const struct tare_measure){ "share of pairs", "pairs", " %", false, TARE_MEASURE_CUSTOM };
    f.metrics[1].has_custom = true;
    f.metrics[1].custom = 90;
    expect_part("with an SQNR of at least 20 dB (share of pairs 90.00 %, without an interval; 40.00 dB on 1 record)");
    f.c.custom_measure = NULL;
    f.metrics[1].noise = 0.02;
    expect_row(0);
    expect_verdict("No smaller model reaches an SQNR of 20 dB");
    f.c.records = 2;
    expect_verdict("No model is recommended: the outputs of float are the same for all records");
}

/* ---- given models ---- */

/* A given model without noise in the measured output has the outputs of float only if all of them are the same. */
static void given_model__names_outputs_that_cannot_be_compared(void **state) {
    (void)state;
    open_fixture(1);
    f.rows[1].path = f.rows[1].method = "given";
    f.metrics[0].rows = f.metrics[1].rows = 20;
    f.metrics[1].noise = 0;
    strcpy(f.rows[0].answers, "1234");
    strcpy(f.rows[1].answers, "1234");
    expect_part("the outputs are those of float");
    strcpy(f.rows[1].answers, "5678");
    expect_part("output scores has the values of float, but the outputs are not identical");
    f.metrics[1].elements = 0;
    expect_part("output scores has no finite numbers to compare with float");
    f.metrics[1].not_finite = 3;
    expect_part("NaN or infinity in 3 elements of the output that are finite in float");
    assert_false(tare_verdict_is_good(&f.c));
    f.metrics[1].unlike = 7;
    expect_part("the output has another size or kind than that of float in 7 of 20 examples");
    assert_false(tare_verdict_is_good(&f.c));
}

static void given_model__is_within_the_margin_or_not_or_not_known(void **state) {
    (void)state;
    open_fixture(1);
    f.rows[1].path = f.rows[1].method = "given";
    label(0, 1000, 900, 0, 0);
    label(1, 1000, 900, 2, 3);
    expect_verdict("given: loses at most 1 percentage point of top-1 (89.90 %, float 90.00 %; 95 % interval of the "
                   "difference: -0.77 to +0.53)");
    label(1, 1000, 900, 2, 33);
    expect_verdict("given: loses more than 1 percentage point of top-1 (86.90 %, float 90.00 %; 95 % interval of the "
                   "difference: -4.48 to -2.04)");
    label(1, 1000, 900, 2, 8);
    expect_verdict("given: may lose more than 1 percentage point of top-1 (89.40 %, float 90.00 %; 95 % interval of "
                   "the difference: -1.46 to +0.09); 1000 examples detect a loss of 0.86 percentage points of top-1 "
                   "(give more, or --margin 1.5)");
    assert_false(tare_verdict_is_good(&f.c));
}

/* The second of two outputs, which is not measured. */
static void all_outputs__count(void **state) {
    struct tare_metrics own[2], reference[2];
    (void)state;
    open_fixture(1);
    f.c.n_outputs = 2;
    cost(1, 30, 1);
    label(0, 5000, 4500, 0, 0);
    label(1, 5000, 4500, 0, 0);
    for (int i = 0; i < 2; i++)
        f.metrics[i].varies = f.metrics[i].floating = true;
    reference[0] = f.metrics[0], own[0] = f.metrics[1];
    reference[1] = (struct tare_metrics){ .elements = 1, .signal = 1, .varies = true, .floating = true };
    own[1] = reference[1];
    own[1].noise = 0.5;
    f.rows[0].outputs = reference, f.rows[1].outputs = own;
    expect_part("; output embedding: SQNR 3.01 dB");
    own[1].not_finite = 2;
    expect_row(0);
    expect_part("each smaller one has an output of another size than float, or with NaN or infinity");
    f.rows[1].path = f.rows[1].method = "given";
    expect_part("given: NaN or infinity in 2 elements of the output embedding that are finite in float");
    assert_false(tare_verdict_is_good(&f.c));
    f.rows[1].path = NULL;
    own[1].not_finite = 0;
    own[0].labelled = reference[0].labelled = 0; /* without labels the worst output counts */
    expect_row(0);
    own[1].noise = 1e-4;
    expect_row(1);
}

static void target__is_what_is_recommended(void **state) {
    const struct tare_target_point point = { 0 };
    struct tare_target_result target = { .chosen = &point };
    (void)state;
    open_fixture(1);
    f.c.target = &target;
    expect_row(0);
    assert_true(tare_verdict_is_good(&f.c));
    expect_verdict("Recommended: the mix of precisions that is chosen for the target");
    target.chosen = NULL;
    assert_false(tare_verdict_is_good(&f.c));
    expect_verdict("Recommended: none, as no mix of precisions meets the target");
}

/* ---- how often it is wrong ---- */

/* Records on which float is right with 90 %. Each model changes some: `changed` of the right ones become wrong by
 * chance, and as many of the others right that `loss` is lost on average. */
static void draw_records(uint64_t *seed, size_t count, const double *loss, double changed) {
    for (size_t i = 0; i < count; i++) {
        const bool right = draw_unit(seed) < 0.9;
        f.judgements[0][i].right = right;
        for (size_t r = 1; r < f.c.n_rows; r++) {
            const double rate = right ? (changed + loss[r]) / 0.9 : changed / 0.1;
            const bool changes = draw_unit(seed) < rate;
            f.judgements[r][i].right = changes ? !right : right;
        }
    }
    for (size_t r = 0; r < f.c.n_rows; r++)
        label_rows(r, count);
}

/* Four models that lose just the margin. */
static void false_recommendations__are_rarer_than_stated(void **state) {
    enum { TRIALS = 1500 };
    const double loss[ROWS] = { 0, 0.02, 0.02, 0.02, 0.02 }, changed[] = { 0, 0.002, 0.02 };
    uint64_t seed = 11;
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        int wrong = 0;
        open_fixture(4);
        f.c.margin = 2;
        for (int i = 0; i < TRIALS; i++) {
            draw_records(&seed, 400, loss, changed[k]);
            wrong += verdict_of_all().row != NULL;
        }
        if (wrong > (int)(TARE_TAIL_95 * TRIALS))
            fail_msg("%g changed: %d of %d recommendations are wrong (at most 2.5 %%)", changed[k], wrong, (int)TRIALS);
    }
}

static void models_without_loss__are_found(void **state) {
    enum { TRIALS = 300 };
    const double loss[ROWS] = { 0 };
    uint64_t seed = 12;
    int found = 0;
    (void)state;
    open_fixture(4);
    for (int i = 0; i < TRIALS; i++) {
        draw_records(&seed, 2000, loss, 0.005);
        found += verdict_of_all().row != NULL;
    }
    if (found < TRIALS * 8 / 10) fail_msg("%d of %d recommended", found, (int)TRIALS);
}

/* Of models that lose 0 to 3 points, what the even records recommend is not known to lose more on the odd ones. */
static void recommendations_on_even_records__hold_on_odd_ones(void **state) {
    enum { TRIALS = 200 };
    const double loss[ROWS] = { 0, 0.001, 0.006, 0.012, 0.03 };
    uint64_t seed = 13;
    int made = 0, broken = 0, beyond = 0;
    (void)state;
    open_fixture(4);
    for (int i = 0; i < TRIALS; i++) {
        struct tare_paired p;
        draw_records(&seed, 3000, loss, 0.003);
        const struct tare_comparison_row *row = verdict_of_all().row;
        if (!row) continue;
        made++;
        beyond += loss[row - f.rows] > 0.01;
        draw_records(&seed, 3000, loss, 0.003); /* the other half */
        tare_measure_paired(&p, tare_measure_of(&f.c), row->outputs, f.metrics, TARE_TAIL_95);
        broken += p.low > 1;
    }
    if (made < TRIALS / 2 || broken > TRIALS / 40 || beyond > TRIALS / 40)
        fail_msg("%d recommendations: %d do not hold, %d lose more than the margin", made, broken, beyond);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_at_chance__has_no_recommendation),
        cmocka_unit_test(labels_of_one_class__have_no_recommendation),
        cmocka_unit_test(unbalanced_labels__are_compared_by_auc),
        cmocka_unit_test(three_records__tell_nothing),
        cmocka_unit_test(ninety_records_with_a_loss_of_five_points__tell_their_interval),
        cmocka_unit_test(equal_models__are_recommended_by_enough_records),
        cmocka_unit_test(ten_thousand_records__show_small_losses),
        cmocka_unit_test(regression__has_a_margin_in_percent_of_the_error),
        cmocka_unit_test(margin__is_the_users),
        cmocka_unit_test(smallest__wins_among_those_that_keep_up),
        cmocka_unit_test(competitors__are_compared_with_each_other),
        cmocka_unit_test(dominated_model__is_not_recommended),
        cmocka_unit_test(slower_model__is_recommended_for_its_size_only),
        cmocka_unit_test(fastest_model__is_named_beside_the_smallest),
        cmocka_unit_test(comparison_by_time__recommends_the_fastest),
        cmocka_unit_test(models_slower_than_float__are_not_recommended_by_time),
        cmocka_unit_test(weights_of_convolutions__are_smaller_on_disk_only),
        cmocka_unit_test(companion__shows_what_bfloat16_costs),
        cmocka_unit_test(each_worse__is_said),
        cmocka_unit_test(without_labels__decibels_decide),
        cmocka_unit_test(given_model__names_outputs_that_cannot_be_compared),
        cmocka_unit_test(given_model__is_within_the_margin_or_not_or_not_known),
        cmocka_unit_test(all_outputs__count),
        cmocka_unit_test(target__is_what_is_recommended),
        cmocka_unit_test(false_recommendations__are_rarer_than_stated),
        cmocka_unit_test(models_without_loss__are_found),
        cmocka_unit_test(recommendations_on_even_records__hold_on_odd_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
