/* A plan: options, presets, recipes, and the text that builds the same plan again. */
#include "quant/plan.h"
#include "base/strbuf.h"
#include "quant/pass.h"
#include "quant/recipe.h"
#include "support/mini_model.h"

#include <string.h>

static struct tare_arena arena;
static const struct tare_option_set set = { .program = "test", .options = tare_plan_rows };

static int empty_arena(void **state) {
    (void)state;
    tare_arena_free(&arena);
    return 0;
}

static tare_status parse(struct tare_quant_plan *out, int argc, const char *const *argv) {
    struct tare_option_outcome outcome;
    *out = (struct tare_quant_plan){ 0 };
    TARE_TRY(tare_options_parse(out, &outcome, &set, argc, (char *const *)(uintptr_t)argv));
    return tare_quant_plan_open(out, &arena);
}

#define PLAN(out, ...)                                                                                                 \
    do {                                                                                                               \
        const char *const words[] = { __VA_ARGS__ };                                                                   \
        mini_ok(parse(out, (int)(sizeof words / sizeof *words), words));                                               \
    } while (0)

static void expect_options(const struct tare_quant_plan *plan, const char *expected) {
    struct tare_strbuf text = { 0 };
    tare_quant_plan_put(&text, plan);
    assert_string_equal(tare_strbuf_text(&text), expected);
    tare_strbuf_free(&text);
}

static void expect_recipe(const struct tare_quant_plan *plan, const char *expected) {
    struct tare_strbuf text = { 0 };
    tare_quant_plan_write(&text, plan);
    assert_string_equal(tare_strbuf_text(&text), expected);
    tare_strbuf_free(&text);
}

static void options__are_written_as_they_are_read(void **state) {
    struct tare_quant_plan plan;
    (void)state;
    PLAN(&plan, "--bits", "8");
    expect_options(&plan, " --method static");
    PLAN(&plan, "--method=weight_only", "--bits=4", "--granularity=per_block:32", "--passes=gptq", "--symmetric",
         "--op-set=xla", "--min-elements=5", "--rule", "op=MatMul -> float # why");
    expect_options(&plan, " --method weight_only --bits 4 --granularity per_block:32 --symmetric --passes gptq "
                          "--min-elements 5 --rule 'op=\"MatMul\" -> float'");
    expect_recipe(&plan, "method=weight_only\nbits=4\ngranularity=per_block:32\nsymmetric=true\npasses=gptq\n"
                         "min_elements=5\nop=\"MatMul\" -> float  # why\n");
    tare_options_free(&plan, &set);
}

static void presets__set_what_belongs_to_them(void **state) {
    struct tare_quant_plan plan;
    (void)state;
    PLAN(&plan, "--method", "int8");
    expect_options(&plan, " --method static");
    PLAN(&plan, "--method", "w8a16");
    expect_options(&plan, " --method static --activation-bits 16");
    PLAN(&plan, "--method", "w4a8");
    expect_options(&plan, " --method static --bits 4");
    PLAN(&plan, "--method", "int4");
    expect_options(&plan, " --method weight_only --bits 4 --granularity per_block:64");
    PLAN(&plan, "--method", "int4", "--granularity", "per_block:32");
    expect_options(&plan, " --method weight_only --bits 4 --granularity per_block:32");
    PLAN(&plan, "--rule", "op=Conv2D -> w8a16");
    expect_options(&plan, " --method static --rule 'op=\"Conv2D\" -> static bits=8 activation_bits=16'");
    tare_options_free(&plan, &set);
    PLAN(&plan, "--method", "fp8_dynamic");
    expect_options(&plan, " --method dynamic --format fp8_e4m3");
    PLAN(&plan, "--rule", "op=Conv2D -> fp8");
    expect_options(&plan, " --method static --rule 'op=\"Conv2D\" -> static format=fp8_e4m3'");
    tare_options_free(&plan, &set);
}

static void format__of_integers_sets_their_bits(void **state) {
    struct tare_quant_plan plan;
    (void)state;
    PLAN(&plan, "--format", "int4");
    expect_options(&plan, " --method static --bits 4");
    PLAN(&plan, "--format", "int8");
    expect_options(&plan, " --method static");
    PLAN(&plan, "--format", "fp8_e5m2");
    expect_options(&plan, " --method static --format fp8_e5m2");
    expect_recipe(&plan, "method=static\nformat=fp8_e5m2\n");
    const char *const words[] = { "--format=fp8_e4m3", "--bits=4" };
    assert_int_equal(parse(&plan, 2, words), TARE_INVALID_ARGUMENT);
    tare_options_free(&plan, &set);
    const char *const other_set[] = { "--format=fp8_e4m3", "--op-set=tf" };
    mini_fails(parse(&plan, 2, other_set), "format fp8_e4m3 exists in the op set xla only");
    const char *const unknown[] = { "--method=int7" };
    mini_fails(parse(&plan, 1, unknown), "--method: unknown method 'int7' (did you mean 'int8'?)");
}

static void words_of_completion__are_all_methods_and_no_others(void **state) {
    const char *const *words = tare_quant_setting_rows[TARE_SET_METHOD].words;
    (void)state;
    for (size_t i = 0; words[i]; i++) {
        struct tare_quant_setting setting = { 0 };
        mini_ok(tare_quant_method_read(&setting, words[i]));
    }
    for (size_t i = 0; tare_quant_methods[i]; i++)
        assert_true(tare_op_is_one_of(tare_quant_methods[i]->name, words));
}

/* The same options in a rule of the command, which reads as a recipe file does. */
static void a_recipe__sets_what_the_command_does_not(void **state) {
    struct tare_quant_plan plan;
    (void)state;
    PLAN(&plan, "--bits", "8", "--rule", "bits=4", "--rule", "algorithm=mse", "--rule", "two_inputs=true", "--rule",
         "passes=gptq");
    assert_int_equal(plan.setting.bits, 8);
    assert_true(plan.two_inputs);
    assert_string_equal(plan.passes[0]->name, "gptq");
    expect_options(&plan, " --method static --algorithm mse --passes gptq --two-inputs");
    tare_options_free(&plan, &set);
    const char *const nested[] = { "--rule", "recipe=x" };
    mini_fails(parse(&plan, 2, nested), "'recipe' is not a condition");
    tare_options_free(&plan, &set);
}

static void a_written_plan__is_read_as_the_same_plan(void **state) {
    struct tare_quant_plan plan, again = { 0 };
    struct tare_quant_recipe *recipe;
    struct tare_strbuf text = { 0 };
    (void)state;
    PLAN(&plan, "--method=dynamic", "--algorithm=percentile:p=99.9", "--full-range", "--depthwise", "--rule",
         "name=\"a\\\"b.*\" -> static symmetric=true");
    tare_quant_plan_write(&text, &plan);
    mini_ok(tare_quant_recipe_new(&recipe, &arena));
    mini_ok(tare_quant_recipe_read(recipe, tare_strbuf_text(&text), text.size, "r.txt"));
    mini_ok(tare_options_defaults(&again, tare_plan_rows));
    again.recipe = recipe;
    mini_ok(tare_quant_plan_open(&again, &arena));
    expect_recipe(&again, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    tare_options_free(&plan, &set);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(options__are_written_as_they_are_read, empty_arena),
        cmocka_unit_test_teardown(presets__set_what_belongs_to_them, empty_arena),
        cmocka_unit_test_teardown(format__of_integers_sets_their_bits, empty_arena),
        cmocka_unit_test(words_of_completion__are_all_methods_and_no_others),
        cmocka_unit_test_teardown(a_recipe__sets_what_the_command_does_not, empty_arena),
        cmocka_unit_test_teardown(a_written_plan__is_read_as_the_same_plan, empty_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
