/* Parsing lists of methods, algorithms and granularities; '!' marks combinations that do not exist. */
#include "base/alloc.h"
#include "convert/saved_model.h"
#include "eval/comparison.h"
#include "eval/variant.h"
#include "support/mini_model.h"

#include <stdio.h>
#include <string.h>

static const struct tare_quant_plan plan = { .setting.bits = 8 };

static void check(const char *methods, const char *algorithms, const char *granularities, const char *expected) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    char text[1024] = "";
    mini_ok(tare_variants_parse(&list, &arena, methods, algorithms, granularities, &plan));
    for (size_t i = 0; i < list.count; i++) {
        const struct tare_variant *v = &list.variants[i];
        const char *algorithm, *granularity;
        mini_ok(tare_variant_texts(&algorithm, &granularity, &arena, v));
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", v->name);
        if (algorithm) snprintf(text + strlen(text), sizeof text - strlen(text), "/%s", algorithm);
        if (granularity) snprintf(text + strlen(text), sizeof text - strlen(text), "/%s", granularity);
        if (v->refused) snprintf(text + strlen(text), sizeof text - strlen(text), "!");
    }
    assert_string_equal(text, expected);
    tare_arena_free(&arena);
}

static void refuse(const char *methods, const char *algorithms, const char *granularities, const char *part) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    mini_fails(tare_variants_parse(&list, &arena, methods, algorithms, granularities, &plan), part);
    tare_arena_free(&arena);
}

static void float__comes_first_asked_for_or_not(void **state) {
    (void)state;
    check("static", "min_max", "per_channel", "float static/min_max/per_channel");
    check("static,float", "min_max", "per_channel", "float static/min_max/per_channel");
}

static void every_combination__is_measured_once(void **state) {
    (void)state;
    check("static,static", "min_max,mse", "per_channel,per_tensor",
          "float static/min_max/per_channel static/mse/per_channel static/min_max/per_tensor static/mse/per_tensor");
}

static void methods_without_ranges__do_not_multiply_with_algorithms(void **state) {
    (void)state;
    check("weight_only,bfloat16", "min_max,mse,entropy", "per_channel,per_tensor",
          "float weight_only/per_channel weight_only/per_tensor bfloat16");
}

static void bfloat16__goes_with_a_quantization(void **state) {
    (void)state;
    check("static+bfloat16", "min_max", "per_channel", "float static+bfloat16/min_max/per_channel");
    refuse("float+bfloat16", "min_max", "per_channel",
           "--methods: there is nothing to add to 'float' (got 'bfloat16')");
}

static void accuracy_passes__go_with_a_quantization(void **state) {
    (void)state;
    check("static+bias_correction+weight_clipping", "min_max", "per_channel",
          "float static+weight_clipping+bias_correction/min_max/per_channel");
    check("static+gptq:damp=0.1+smooth_quant:alpha=0.5", "percentile:p=99.9", "per_channel",
          "float static+smooth_quant+gptq:damp=0.1/percentile:p=99.9/per_channel"); /* as printed: without defaults */
    refuse("static+bias_corection", "min_max", "per_channel", "(did you mean 'bias_correction'?)");
}

static void blocks__are_listed_for_every_method_and_refused_for_some(void **state) {
    (void)state;
    check("static,weight_only", "min_max", "per_channel,per_block:32",
          "float static/min_max/per_channel static/min_max/per_block:32! weight_only/per_channel "
          "weight_only/per_block:32");
}

static void settings_of_a_method__take_precedence(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    (void)state;
    check("weight_only:bits=4:block=32+gptq,static:granularity=per_tensor", "mse", "per_channel,per_tensor",
          "float weight_only:bits=4:block=32+gptq/per_block:32 static:granularity=per_tensor/mse/per_tensor");
    mini_ok(tare_variants_parse(&list, &arena, "weight_only:bits=4:block=64+gptq,static:op-set=tf:activation_bits=16",
                                "min_max", "per_channel", &plan));
    const struct tare_variant *blocks = &list.variants[1], *wide = &list.variants[2];
    assert_int_equal(blocks->plan.setting.bits, 4);
    assert_int_equal(blocks->plan.setting.block, 64);
    assert_non_null(blocks->plan.passes);
    assert_int_equal(wide->plan.setting.bits, 8);
    assert_int_equal(wide->plan.op_set, TARE_OP_SET_TF);
    assert_string_equal(wide->name, "static:activation_bits=16:op_set=tf");
    assert_false(wide->sets_granularity);
    tare_arena_free(&arena);
    check("static:op_set=uniform_quantized,static,static:op_set=uniform_quantized:granularity=per_channel", "mse", NULL,
          "float static:op_set=uniform_quantized/mse/per_tensor static/mse/per_channel "
          "static:granularity=per_channel:op_set=uniform_quantized/mse/per_channel");
    refuse("weight_only:bits=3", "min_max", "per_channel", "option '--bits': invalid value (expected 4 or 8, got '3')");
    refuse("weight_only:bit=4", "min_max", "per_channel",
           "--methods: weight_only: there is no 'bit' (did you mean 'bits'?)");
    refuse("weight_only:bits", "min_max", "per_channel",
           "'bits' is not a setting of 'weight_only' (expected NAME=VALUE)");
    refuse("static:op_set=onnx", "min_max", "per_channel",
           "option '--op-set': invalid value (expected xla, uniform_quantized or tf, got 'onnx')");
    refuse("bfloat16:bits=4", "min_max", "per_channel", "--methods: 'bfloat16' has no settings (got 'bits=4')");
}

static void settings_that_exclude_each_other__are_refused_with_a_reason(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    (void)state;
    mini_ok(tare_variants_parse(&list, &arena, "weight_only:op_set=tf,dynamic:activation_bits=16,static:block=32",
                                "mse", "per_channel", &plan));
    assert_int_equal(list.count, 4);
    assert_string_equal(list.variants[1].refused, "method weight_only does not exist in the op set tf");
    assert_non_null(strstr(list.variants[2].refused, "method dynamic has no activations of 16 bits"));
    assert_non_null(strstr(list.variants[3].refused, "method static has no weights in blocks"));
    assert_false(tare_variants_calibrate(&list));
    tare_arena_free(&arena);
}

static void parameters_of_an_algorithm__may_hold_commas(void **state) {
    (void)state;
    check("static", "min_max, percentile:min_percentile=1,max_percentile=99 ,mse", "per_channel",
          "float static/min_max/per_channel static/percentile:min_percentile=1,max_percentile=99/per_channel "
          "static/mse/per_channel");
}

static void unknown_names__are_told_with_the_nearest(void **state) {
    (void)state;
    refuse("statik", "min_max", "per_channel", "--methods: unknown method 'statik' (did you mean 'static'?)");
    refuse("static", "minmax", "per_channel", "--algorithms: ");
    refuse("static", "min_max", "per_chanel",
           "--granularities: granularity is 'per_chanel' (expected per_tensor, per_channel or per_block:N)");
    refuse("static,,float", "min_max", "per_channel", "an empty name");
}

/* Otherwise a search took it for a method without ranges. */
static void texts_without_memory__are_an_error(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    const char *algorithm, *granularity;
    int64_t failures = 0;
    (void)state;
    mini_ok(tare_variants_parse(&list, &arena, "weight_only,static", "percentile:p=99.9", "per_block:32", &plan));
    for (size_t i = 1; i < list.count; i++)
        for (int64_t n = 1; n <= 3; n++) {
            struct tare_arena empty = { 0 };
            tare_alloc_fail_at(n);
            const tare_status status = tare_variant_texts(&algorithm, &granularity, &empty, &list.variants[i]);
            const bool failed = tare_alloc_count() >= n;
            tare_alloc_fail_at(0);
            assert_int_equal(status, failed ? TARE_NO_MEMORY : TARE_OK);
            failures += failed;
            tare_arena_free(&empty);
        }
    assert_true(failures >= 3);
    tare_arena_free(&arena);
}

static void calibration__is_needed_where_ranges_are(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    (void)state;
    mini_ok(tare_variants_parse(&list, &arena, "weight_only,bfloat16", "min_max", "per_channel", &plan));
    assert_false(tare_variants_calibrate(&list));
    mini_ok(tare_variants_parse(&list, &arena, "weight_only,static", "min_max", "per_channel", &plan));
    assert_true(tare_variants_calibrate(&list));
    tare_arena_free(&arena);
}

static void a_model_in_bfloat16__has_half_the_bytes(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_variant_list list;
    struct tare_quant_report report;
    struct tare_graph_model *model;
    int64_t before, after;
    (void)state;
    mini_ok(tare_variants_parse(&list, &arena, "bfloat16", "min_max", "per_channel", &plan));
    mini_ok(tare_load_prepared(&model, TARE_SOURCE_DIR "/examples/glyphs/saved_model"));
    mini_ok(tare_model_weight_bytes(&before, model));
    mini_ok(tare_variant_apply(&report, &arena, model, &list.variants[1], NULL));
    mini_ok(tare_model_weight_bytes(&after, model));
    assert_in_range(100 * after / before, 50, 52); /* what reshapes the tensors keeps its integers */
    tare_model_free(model);
    tare_arena_free(&arena);
}

static void variables_of_training__are_not_of_the_size(void **state) {
    struct tare_graph_model *model;
    struct tare_variable *more;
    int64_t before, after, used = 0;
    (void)state;
    mini_ok(tare_saved_model_load(&model, TARE_SOURCE_DIR "/examples/glyphs/saved_model", NULL));
    mini_ok(tare_model_weight_bytes(&before, model));
    for (size_t i = 0; i < model->n_variables; i++)
        if (!model->variables[i].removed) used += (int64_t)tare_tensor_bytes(&model->variables[i].value);
    assert_true(before >= used && before > 100000);
    more = TARE_NEW_ARRAY(&model->arena, struct tare_variable, model->n_variables + 1);
    assert_non_null(more);
    memcpy(more, model->variables, model->n_variables * sizeof *more);
    more[model->n_variables] = (struct tare_variable){ .node = tare_graph_add(model->main, "VarHandleOp", "slot"),
                                                       .shared_name = "slot",
                                                       .value = model->variables[0].value };
    assert_true(more[model->n_variables].node != NULL && tare_tensor_bytes(&more[model->n_variables].value) > 0);
    model->variables = more;
    model->n_variables++;
    mini_ok(tare_model_weight_bytes(&after, model));
    assert_int_equal(after, before);
    model->n_variables--;
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float__comes_first_asked_for_or_not),
        cmocka_unit_test(every_combination__is_measured_once),
        cmocka_unit_test(methods_without_ranges__do_not_multiply_with_algorithms),
        cmocka_unit_test(bfloat16__goes_with_a_quantization),
        cmocka_unit_test(accuracy_passes__go_with_a_quantization),
        cmocka_unit_test(blocks__are_listed_for_every_method_and_refused_for_some),
        cmocka_unit_test(settings_of_a_method__take_precedence),
        cmocka_unit_test(settings_that_exclude_each_other__are_refused_with_a_reason),
        cmocka_unit_test(parameters_of_an_algorithm__may_hold_commas),
        cmocka_unit_test(unknown_names__are_told_with_the_nearest),
        cmocka_unit_test(texts_without_memory__are_an_error),
        cmocka_unit_test(calibration__is_needed_where_ranges_are),
        cmocka_unit_test(a_model_in_bfloat16__has_half_the_bytes),
        cmocka_unit_test(variables_of_training__are_not_of_the_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
