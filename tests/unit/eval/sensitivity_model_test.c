/* Sensitivity of resnet8 on CIFAR-10: the same figures for any number of threads, and with outputs of the float model
 * that are known. */
#include "base/file.h"
#include "convert/prepared_model.h"
#include "convert/saved_model.h"
#include "eval/sensitivity.h"
#include "workflow/calibrate.h"
#include "support/mini_model.h"
#include "support/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 24 };

static char records[1100];

static struct tare_calibration *calibrate(const char *path) {
    const char *data = records;
    const struct tare_calibrate_options options = { .data = &data, .n_data = 1 };
    struct tare_calibration *calibration;
    struct tare_graph_model *model;
    mini_ok(tare_load_prepared(&model, path));
    mini_ok(tare_workflow_calibrate(&calibration, model, &options));
    tare_model_free(model);
    return calibration;
}

static void measure_with(struct tare_sensitivity *out, struct tare_calibration *calibration,
                         const struct tare_variant *variant, int threads, const struct tare_comparison *known) {
    const char *data = records;
    struct tare_variant_source source = { .model = models_path("resnet8_cifar10") };
    const struct tare_evaluation evaluation = { .source = &source,
                                                .calibration = calibration,
                                                .records = { .paths = &data, .n_paths = 1, .batch = 8 },
                                                .label = "label",
                                                .threads = threads,
                                                .quiet = true };
    const struct tare_sensitivity_task task = {
        .evaluation = &evaluation, .variant = variant, .known = known, .limit = RECORDS
    };
    mini_ok(tare_sensitivity_measure(out, &task));
    tare_variant_source_close(&source);
    assert_int_equal(out->records, RECORDS);
}

static void measure(struct tare_sensitivity *out, struct tare_calibration *calibration,
                    const struct tare_variant *variant, int threads) {
    measure_with(out, calibration, variant, threads, NULL);
}

static void assert_same(const struct tare_sensitivity *a, const struct tare_sensitivity *b) {
    assert_memory_equal(&a->float_model, &b->float_model, sizeof a->float_model);
    assert_memory_equal(&a->all, &b->all, sizeof a->all);
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct tare_sensitive_layer *x = &a->layers[i], *y = &b->layers[i];
        assert_string_equal(x->node, y->node);
        assert_memory_equal(&x->alone, &y->alone, sizeof x->alone);
        assert_memory_equal(&x->restored, &y->restored, sizeof x->restored);
        assert_memory_equal(&x->kept, &y->kept, sizeof x->kept);
    }
}

static void check_method(const char *method) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    struct tare_calibration *calibration = calibrate(models_path("resnet8_cifar10"));
    struct tare_sensitivity one, two;
    mini_ok(tare_variants_parse(&list, &arena, method, "min_max", "per_channel",
                                &(const struct tare_quant_plan){ .setting.bits = 8 }));
    measure(&one, calibration, &list.variants[1], 1);
    measure(&two, calibration, &list.variants[1], 2);
    assert_true(one.count >= 7);
    assert_same(&one, &two);
    tare_sensitivity_free(&one);
    tare_sensitivity_free(&two);
    tare_calibration_free(calibration);
    tare_arena_free(&arena);
}

static void figures__do_not_depend_on_threads(void **state) {
    (void)state;
    check_method("static");
    check_method("dynamic");
}

/* The float model over RECORDS + `more` records. */
static void run_float(struct tare_comparison *out, int more) {
    const char *data = records;
    const struct tare_evaluation evaluation = {
        .records = { .paths = &data, .n_paths = 1, .limit = RECORDS + more, .batch = 5 }, .label = "label"
    };
    struct tare_comparison_row *row;
    struct tare_graph_model *model;
    *out = (struct tare_comparison){ 0 };
    mini_ok(tare_saved_model_load(&model, models_path("resnet8_cifar10"), NULL));
    mini_ok(tare_evaluate(&row, out, model, &evaluation));
    tare_model_free(model);
}

static void float_outputs_that_are_known__give_the_figures_of_a_run(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    struct tare_sensitivity run, taken;
    (void)state;
    mini_ok(tare_variants_parse(&list, &arena, "weight_only", "min_max", "per_channel",
                                &(const struct tare_quant_plan){ .setting.bits = 4 }));
    measure(&run, NULL, &list.variants[1], 2);
    assert_true(run.float_model.top1 > 0.4);
    for (int more = 0; more <= 13; more += 13) {
        struct tare_comparison known;
        run_float(&known, more);
        measure_with(&taken, NULL, &list.variants[1], 2, &known);
        assert_same(&taken, &run);
        tare_sensitivity_free(&taken);
        tare_comparison_free(&known);
    }
    tare_sensitivity_free(&run);
    tare_arena_free(&arena);
}

/* Outputs of another model as the known ones show in the figures. */
static void float_outputs_that_are_known__are_those_that_count(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    struct tare_sensitivity run, taken;
    struct tare_comparison known;
    (void)state;
    mini_ok(tare_variants_parse(&list, &arena, "weight_only", "min_max", "per_channel",
                                &(const struct tare_quant_plan){ .setting.bits = 8 }));
    measure(&run, NULL, &list.variants[1], 1);
    run_float(&known, 0);
    TARE_DATA(float, tare_reference_store_get(&known.references, 0))[3] += 1;
    measure_with(&taken, NULL, &list.variants[1], 1, &known);
    assert_true(taken.all.sqnr_db < run.all.sqnr_db - 1);
    tare_sensitivity_free(&taken);
    tare_comparison_free(&known);
    tare_sensitivity_free(&run);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures__do_not_depend_on_threads),
        cmocka_unit_test(float_outputs_that_are_known__give_the_figures_of_a_run),
        cmocka_unit_test(float_outputs_that_are_known__are_those_that_count),
    };
    if (!test_data("models")) return TEST_SKIPPED;
    snprintf(records, sizeof records, "%s/../datasets/cifar10/eval-1000.tfrecord.gz", models_folder());
    if (!test_data("datasets/cifar10/eval-1000.tfrecord.gz")) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
