/* The fewest layers in float, on models that are formulas: every layer adds noise and saves bytes. */
#include "eval/target.h"

#include "base/strbuf.h"
#include "support/draw.h"
#include "support/mini_model.h"

#include <math.h>
#include <string.h>

enum { LAYERS = 10, MOST = 10 };

struct world {
    double noise[MOST]; /* of a layer that is quantized, as a share of the signal */
    int64_t weights[MOST];
    size_t count;
    double together; /* noise of layers 0 and 1 when both are quantized */
    int measured, sized;
    struct tare_sensitivity sensitivity;
    struct tare_sensitive_layer layers[MOST];
};

static bool in(const size_t *kept, size_t n_kept, size_t layer) {
    for (size_t i = 0; i < n_kept; i++)
        if (kept[i] == layer) return true;
    return false;
}

static double noise_of(const struct world *w, const size_t *kept, size_t n_kept) {
    double noise = 1e-9;
    for (size_t i = 0; i < w->count; i++)
        if (!in(kept, n_kept, i)) noise += w->noise[i];
    if (!in(kept, n_kept, 0) && !in(kept, n_kept, 1)) noise += w->together;
    return noise;
}

static int64_t bytes_of(const struct world *w, const size_t *kept, size_t n_kept) {
    int64_t bytes = 100;
    for (size_t i = 0; i < w->count; i++)
        bytes += w->weights[i] * (in(kept, n_kept, i) ? 4 : 1);
    return bytes;
}

static tare_status size_of(void *arg, int64_t *bytes, const size_t *kept, size_t n_kept) {
    struct world *w = arg;
    w->sized++;
    *bytes = bytes_of(w, kept, n_kept);
    return TARE_OK;
}

/* Top-1 falls by a point for each percent of noise. */
static tare_status measure(void *arg, struct tare_target_point *point) {
    struct world *w = arg;
    const double noise = noise_of(w, point->kept, point->n_kept);
    w->measured++;
    point->size_bytes = bytes_of(w, point->kept, point->n_kept);
    point->figures = (struct tare_sensitivity_figures){ -10 * log10(noise), 0.8 - noise, NAN, noise, 0.8 - noise, 80 };
    return TARE_OK;
}

static void make(struct world *w, size_t count, uint64_t seed) {
    static const char *const names[MOST] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j" };
    memset(w, 0, sizeof *w);
    w->count = count;
    for (size_t i = 0; i < count; i++) {
        w->noise[i] = pow(10, -1 - 4 * draw_unit(&seed));
        w->weights[i] = 10 + (int64_t)(1000 * draw_unit(&seed));
        w->layers[i] = (struct tare_sensitive_layer){ .function = "",
                                                      .node = names[i],
                                                      .op = "MatMul",
                                                      .weight_elements = w->weights[i],
                                                      .alone.sqnr_db = -10 * log10(w->noise[i]) };
    }
    w->sensitivity = (struct tare_sensitivity){ .method = "static", .layers = w->layers, .count = count };
}

static tare_status search(struct tare_target_result *out, struct world *w, double drop, double db, int64_t bytes) {
    const struct tare_target target = { drop, db, bytes, 0 };
    const struct tare_target_task task = { .target = &target,
                                           .sensitivity = &w->sensitivity,
                                           .float_score = 0.8,
                                           .float_mae = 0,
                                           .measured = tare_measure_find(TARE_MEASURE_TOP1),
                                           .size = size_of,
                                           .measure = measure,
                                           .arg = w };
    return tare_target_search(out, &task);
}

/* By trying every set. */
static size_t fewest_by_hand(const struct world *w, double db, int64_t bytes) {
    size_t fewest = w->count + 1;
    for (unsigned set = 0; set < 1u << w->count; set++) {
        size_t kept[MOST], n = 0;
        for (size_t i = 0; i < w->count; i++)
            if (set >> i & 1) kept[n++] = i;
        if (-10 * log10(noise_of(w, kept, n)) >= db && (!bytes || bytes_of(w, kept, n) <= bytes) && n < fewest)
            fewest = n;
    }
    return fewest;
}

static void layers_that_add_up__are_as_few_as_any_set(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        for (double db = 5; db < 50; db += 5) {
            struct world w;
            struct tare_target_result r;
            make(&w, LAYERS, seed);
            mini_ok(search(&r, &w, INFINITY, db, 0));
            assert_non_null(r.chosen);
            if (r.chosen->n_kept != fewest_by_hand(&w, db, 0))
                fail_msg("seed %d, %g dB: %zu layers in float, expected %zu", (int)seed, db, r.chosen->n_kept,
                         fewest_by_hand(&w, db, 0));
            assert_true(r.chosen->figures.sqnr_db >= db && r.chosen->meets && r.chosen->pareto);
            if (w.measured > 6 + LAYERS) fail_msg("%d of %d mixes measured", w.measured, 1 << LAYERS);
            tare_target_free(&r);
        }
}

static void a_drop_in_points__is_that_of_top1(void **state) {
    struct world w;
    struct tare_target_result r;
    (void)state;
    make(&w, LAYERS, 5);
    mini_ok(search(&r, &w, 0.5, -INFINITY, 0));
    assert_true(100 * (0.8 - r.chosen->figures.score) <= 0.5);
    assert_int_equal(r.chosen->n_kept, fewest_by_hand(&w, -10 * log10(0.005), 0));
    tare_target_free(&r);
}

/* Two layers that only hurt together: one of them in float is enough. */
static void a_layer_that_need_not_stay__goes_back(void **state) {
    struct world w;
    struct tare_target_result r;
    (void)state;
    make(&w, 5, 8);
    for (size_t i = 0; i < 5; i++)
        w.noise[i] = 1e-4;
    w.together = 0.1;
    w.layers[2].alone.sqnr_db = 1; /* looks bad, and is not */
    w.layers[3].alone.sqnr_db = 2;
    mini_ok(search(&r, &w, INFINITY, 30, 0));
    assert_int_equal(r.chosen->n_kept, 1);
    assert_true(r.chosen->kept[0] <= 1);
    tare_target_free(&r);
}

static void a_size_alone__keeps_what_fits_of_the_worst_a_byte(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct world w;
        struct tare_target_result r;
        make(&w, LAYERS, seed);
        const int64_t least = bytes_of(&w, NULL, 0), most = least + 3 * (least - 100), limit = (least + most) / 2;
        mini_ok(search(&r, &w, INFINITY, -INFINITY, limit));
        assert_non_null(r.chosen);
        assert_true(r.chosen->size_bytes <= limit);
        if (!(r.chosen->n_kept > 0)) fail_msg("nothing stays float in %lld bytes", (long long)limit);
        assert_in_range(w.measured, 1, 2);
        tare_target_free(&r);
    }
}

static void both__must_hold(void **state) {
    struct world w;
    struct tare_target_result r;
    (void)state;
    make(&w, LAYERS, 3);
    const int64_t all = 100 + 4 * (bytes_of(&w, NULL, 0) - 100);
    mini_ok(search(&r, &w, INFINITY, 20, all));
    assert_int_equal(r.chosen->n_kept, fewest_by_hand(&w, 20, all));
    tare_target_free(&r);
    mini_ok(search(&r, &w, INFINITY, 60, bytes_of(&w, NULL, 0)));
    assert_null(r.chosen);
    assert_non_null(strstr(r.best, "0 of 10 layers in float: "));
    tare_target_free(&r);
}

/* Three precisions: a step to 8 bits removes nine tenths of a layer's noise, the step to float the rest. */
static const size_t *steps_of(size_t *count, const struct tare_sensitivity *s, const size_t *kept, size_t n_kept,
                              struct world *w) {
    static size_t in_float[MOST];
    *count = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct tare_sensitive_layer *step = tare_target_step(s, kept, n_kept, "", w->layers[2 * i].node);
        w->noise[i] = step ? 1e-3 : 1e-2;
        if (step && !step->quantized) in_float[(*count)++] = i;
    }
    return in_float;
}

static tare_status measure_steps(void *arg, struct tare_target_point *point) {
    struct world *w = arg;
    size_t count;
    const size_t *in_float = steps_of(&count, &w->sensitivity, point->kept, point->n_kept, w);
    const double noise = noise_of(w, in_float, count);
    point->size_bytes = bytes_of(w, in_float, count);
    point->figures = (struct tare_sensitivity_figures){ -10 * log10(noise), 0.8 - noise, NAN, noise, 0.8 - noise, 80 };
    return TARE_OK;
}

/* Gives each of the three layers a step to 8 bits and one to float. `apart`: dB between the first steps of layers. */
static void give_two_steps(struct world *w, const char *setting, double to_8_bits, double apart, double to_float) {
    for (size_t i = 3; i-- > 0;) {
        w->layers[2 * i] = w->layers[i];
        w->layers[2 * i].setting = setting;
        w->layers[2 * i].alone.sqnr_db = to_8_bits + apart * (double)i;
        w->layers[2 * i].quantized = true;
        w->layers[2 * i].bits = 8;
        w->layers[2 * i + 1] = w->layers[2 * i];
        w->layers[2 * i + 1].alone.sqnr_db = to_float;
        w->layers[2 * i + 1].quantized = false;
        w->layers[2 * i + 1].level = 1;
    }
    w->sensitivity.count = 6;
}

static void precisions__are_raised_before_layers_go_to_float(void **state) {
    const struct tare_target target = { INFINITY, -INFINITY, 0, 0.013 };
    struct tare_strbuf text = { 0 };
    struct tare_target_result r;
    struct world w;
    size_t in_float;
    (void)state;
    make(&w, 3, 3);
    give_two_steps(&w, " algorithm=mse", 20, 0, 30);
    const struct tare_target_task task = { .target = &target,
                                           .sensitivity = &w.sensitivity,
                                           .float_score = 0.8,
                                           .measured = tare_measure_find(TARE_MEASURE_MAE),
                                           .size = size_of,
                                           .measure = measure_steps,
                                           .arg = &w };
    mini_ok(tare_target_search(&r, &task));
    assert_non_null(r.chosen); /* 0.01 + 0.001 + 0.001: two layers of 8 bits */
    assert_int_equal(r.chosen->n_kept, 2);
    assert_int_equal(tare_target_layers(&in_float, &w.sensitivity, r.chosen->kept, r.chosen->n_kept), 3);
    assert_int_equal(in_float, 0);
    tare_target_recipe(&text, &r);
    assert_non_null(strstr(tare_strbuf_text(&text), " -> bits=8 algorithm=mse  # alone 20.00 dB\n"));
    assert_null(strstr(tare_strbuf_text(&text), "float"));
    tare_strbuf_free(&text);
    tare_target_free(&r);
}

/* The steps to float are the more urgent ones. */
static void equal_mixes__are_measured_once(void **state) {
    const struct tare_target target = { INFINITY, 26, 0, 0 };
    struct tare_target_result r;
    struct world w;
    (void)state;
    make(&w, 3, 3);
    give_two_steps(&w, "", 30, 1, 20);
    const struct tare_target_task task = { .target = &target,
                                           .sensitivity = &w.sensitivity,
                                           .float_score = 0.8,
                                           .measured = tare_measure_find(TARE_MEASURE_TOP1),
                                           .size = size_of,
                                           .measure = measure_steps,
                                           .arg = &w };
    mini_ok(tare_target_search(&r, &task));
    assert_true(r.n_points > 2);
    for (size_t i = 0; i < r.n_points; i++)
        for (size_t k = 0; k < i; k++) {
            bool equal = true;
            for (size_t l = 0; l < 3; l++)
                equal &=
                    tare_target_step(&w.sensitivity, r.points[i].kept, r.points[i].n_kept, "", w.layers[2 * l].node) ==
                    tare_target_step(&w.sensitivity, r.points[k].kept, r.points[k].n_kept, "", w.layers[2 * l].node);
            if (equal) fail_msg("mixes %zu and %zu are equal", k, i);
        }
    tare_target_free(&r);
}

/* A loss is in the unit of the measure. */
static void losses__have_units(void **state) {
    static const struct {
        int kind;
        const char *text;
    } cases[] = {
        { TARE_MEASURE_TOP1, "1.25 percentage points of top-1 lost" },
        { TARE_MEASURE_IOU, "1.25 percentage points of IoU lost" },
        { TARE_MEASURE_PSNR, "1.25 dB of PSNR lost" },
        { TARE_MEASURE_AUC, "0.0125 of AUC lost" },
        { TARE_MEASURE_MAE, "1.25 % more MAE" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_strbuf text = { 0 };
        tare_measure_put_loss(&text, tare_measure_find(cases[i].kind), 1.25, 3);
        assert_string_equal(tare_strbuf_text(&text), cases[i].text);
        tare_strbuf_free(&text);
    }
}

static void out_of_reach__says_the_best(void **state) {
    struct world w;
    struct tare_target_result r;
    struct tare_strbuf text = { 0 };
    (void)state;
    make(&w, 4, 3);
    mini_ok(search(&r, &w, INFINITY, 200, 0)); /* all in float have 90 dB */
    assert_null(r.chosen);
    assert_non_null(strstr(r.best, "4 of 4 layers in float: 1e-07 percentage points of top-1 lost, SQNR 90.00 dB, "));
    tare_target_table(&text, &r);
    assert_non_null(strstr(tare_strbuf_text(&text), "static, 4 layers; expected: at least 200 dB"));
    tare_strbuf_free(&text);
    tare_target_free(&r);
    mini_ok(search(&r, &w, INFINITY, -INFINITY, 50));
    assert_null(r.chosen);
    assert_non_null(strstr(r.best, "0 of 4 layers in float"));
    tare_target_free(&r);
}

static void a_recipe__names_the_layers(void **state) {
    struct world w;
    struct tare_target_result r;
    struct tare_strbuf text = { 0 };
    (void)state;
    make(&w, 3, 3);
    w.layers[1].node = "x/a.b";
    w.noise[1] = 0.5;
    w.layers[1].alone.sqnr_db = 3.01;
    mini_ok(search(&r, &w, INFINITY, 9, 0));
    tare_target_heading(&text, &r);
    tare_target_recipe(&text, &r);
    assert_non_null(strstr(tare_strbuf_text(&text),
                           "# static: at least 9 dB\nname=\"x/a\\.b\" function=\"\" -> float  # alone 3.01 dB\n"));
    tare_strbuf_free(&text);
    tare_target_free(&r);
}

static void targets__are_checked(void **state) {
    struct world w;
    struct tare_target_result r;
    const struct tare_target drop = { 1, -INFINITY, 0, 0 }, mae = { INFINITY, -INFINITY, 0, 0.5 };
    const struct tare_target_task task = { .target = &drop,
                                           .sensitivity = &w.sensitivity,
                                           .float_score = NAN,
                                           .measured = tare_measure_find(TARE_MEASURE_SQNR) };
    (void)state;
    make(&w, 2, 1);
    mini_fails(search(&r, &w, INFINITY, -INFINITY, 0), "there is no target");
    tare_target_free(&r);
    mini_fails(tare_target_search(&r, &task), "the measure is SQNR, which compares with the float model");
    tare_target_free(&r);
    const struct tare_target_task errors = { .target = &mae, .sensitivity = &w.sensitivity, .float_mae = NAN };
    mini_fails(tare_target_search(&r, &errors), "no expected values");
    tare_target_free(&r);
}

static void sizes__are_bytes_units_and_shares(void **state) {
    static const struct {
        const char *text;
        int64_t bytes;
    } cases[] = { { "250000", 250000 }, { "60%", 600 },        { "1.5MB", 1500000 },
                  { "300kB", 300000 },  { "2GB", 2000000000 }, { "7B", 7 } };
    static const char *const wrong[] = { "", "big", "0", "-5", "60%x", "1e30", "nan" };
    int64_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mini_ok(tare_target_read_size(&bytes, cases[i].text, 1000));
        assert_int_equal(bytes, cases[i].bytes);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        mini_fails(tare_target_read_size(&bytes, wrong[i], 1000), "expected bytes, 300kB, 1.5MB or a share as 60%");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_that_add_up__are_as_few_as_any_set),
        cmocka_unit_test(a_drop_in_points__is_that_of_top1),
        cmocka_unit_test(a_layer_that_need_not_stay__goes_back),
        cmocka_unit_test(a_size_alone__keeps_what_fits_of_the_worst_a_byte),
        cmocka_unit_test(both__must_hold),
        cmocka_unit_test(precisions__are_raised_before_layers_go_to_float),
        cmocka_unit_test(equal_mixes__are_measured_once),
        cmocka_unit_test(losses__have_units),
        cmocka_unit_test(out_of_reach__says_the_best),
        cmocka_unit_test(a_recipe__names_the_layers),
        cmocka_unit_test(targets__are_checked),
        cmocka_unit_test(sizes__are_bytes_units_and_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
