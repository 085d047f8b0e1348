/* Recipes: their text, which rule counts, and what they report. */
#include "support/mini_model.h"

#include "base/strbuf.h"
#include "quant/recipe.h"

#include <string.h>

static struct tare_arena arena;

static int empty_arena(void **state) {
    (void)state;
    tare_arena_free(&arena);
    return 0;
}

static struct tare_quant_recipe *read(const char *text) {
    struct tare_quant_recipe *recipe;
    mini_ok(tare_quant_recipe_new(&recipe, &arena));
    mini_ok(tare_quant_recipe_read(recipe, text, strlen(text), "r.txt"));
    return recipe;
}

static void refuses(const char *text, const char *part) {
    struct tare_quant_recipe *recipe;
    mini_ok(tare_quant_recipe_new(&recipe, &arena));
    mini_fails(tare_quant_recipe_read(recipe, text, strlen(text), "r.txt"), part);
    tare_error_clear();
}

/* The place is named once. */
static void refuses_at_start(const char *text, const char *start) {
    struct tare_quant_recipe *recipe;
    mini_ok(tare_quant_recipe_new(&recipe, &arena));
    assert_int_not_equal(tare_quant_recipe_read(recipe, text, strlen(text), "r.txt"), TARE_OK);
    assert_int_equal(strncmp(tare_error_text(), start, strlen(start)), 0);
    tare_error_clear();
}

/* The setting of an op `name` after the recipe, beginning with static int8 per channel. */
static struct tare_quant_setting apply(const char *text, const char *op, const char *name, bool *by_rule, bool *used) {
    struct tare_quant_setting setting = { .method = &tare_method_static, .bits = 8 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *function = tare_model_add_function(model, "head");
    struct tare_node *node = tare_graph_add_read(function, op, name);
    bool ignored;
    mini_ok(tare_quant_recipe_apply(&setting, by_rule ? by_rule : &ignored, used, read(text), node));
    tare_model_free(model);
    return setting;
}

static void last_match__wins(void **state) {
    const char *text = "op=MatMul -> weight_only bits=4\n"
                       "# a comment\n\n"
                       "name=.*dense.* -> dynamic\n"
                       "name=other -> float\n";
    bool used[3] = { false };
    struct tare_quant_setting setting;
    (void)state;
    setting = apply(text, "MatMul", "a/dense_1/MatMul", NULL, used);
    assert_ptr_equal(setting.method, &tare_method_dynamic);
    assert_int_equal(setting.bits, 8); /* the rule before does not count at all */
    assert_true(used[0] && used[1]);
    assert_false(used[2]);
}

static void patterns__match_the_whole_text(void **state) {
    (void)state;
    assert_ptr_equal(apply("name=dense -> float", "MatMul", "dense_1", NULL, NULL).method, &tare_method_static);
    assert_null(apply("name=dense.* -> float", "MatMul", "dense_1", NULL, NULL).method);
    assert_ptr_equal(apply("op=Mat -> float", "MatMul", "x", NULL, NULL).method, &tare_method_static);
    assert_null(apply("function=he.. -> float", "MatMul", "x", NULL, NULL).method);
    assert_ptr_equal(apply("function=he.. op=Conv2D -> float", "MatMul", "x", NULL, NULL).method, &tare_method_static);
}

static void rule_without_condition__holds_for_all(void **state) {
    (void)state;
    assert_null(apply("-> float", "Conv2D", "x", NULL, NULL).method);
}

static void settings__change_what_they_name(void **state) {
    bool by_rule;
    struct tare_quant_setting setting =
        apply("op=MatMul -> algorithm=percentile:p=99.9 symmetric=true full_range=true", "MatMul", "x", &by_rule, NULL);
    (void)state;
    assert_ptr_equal(setting.method, &tare_method_static);
    assert_string_equal(setting.algorithm.row->name, "percentile");
    assert_true(setting.symmetric && setting.full_range);
    assert_false(by_rule); /* it names no method: kinds on request stay off */
    setting = apply("op=MatMul -> static activation_bits=16", "MatMul", "x", &by_rule, NULL);
    assert_int_equal(setting.activation_bits, 16);
    setting = apply("op=MatMul -> weight_only granularity=per_block:64 bits=4", "MatMul", "x", &by_rule, NULL);
    assert_int_equal(setting.granularity, TARE_PER_BLOCK);
    assert_int_equal(setting.block, 64);
    assert_int_equal(setting.bits, 4);
    assert_true(by_rule);
}

static void quotes__keep_spaces_and_signs(void **state) {
    (void)state;
    assert_null(apply("name=\"a b # \\\"c\\\"\" -> float", "MatMul", "a b # \"c\"", NULL, NULL).method);
}

static void a_byte_order_mark__is_skipped(void **state) {
    (void)state;
    assert_null(apply("\xEF\xBB\xBFop=MatMul -> float", "MatMul", "a", NULL, NULL).method);
}

static void faults__name_line_and_word(void **state) {
    (void)state;
    refuses("op=MatMul -> float\nname=( -> float",
            "r.txt:2: name '(' is not a regular expression: missing closing parenthesis");
    refuses_at_start("op=( -> float", "r.txt:1: op '(' is not a regular expression");
    refuses("op=MatMul -> flot", "r.txt:1: unknown method 'flot' (did you mean 'float'?)");
    refuses("op=MatMul", "the rule sets nothing");
    refuses("opp=MatMul -> float", "'opp' is not a condition (did you mean 'op='?)");
    refuses("bitz=4", "'bitz' is not a condition (did you mean 'bits='?)");
    refuses("bits = 4", "'bits' is not a condition (did you mean 'bits='?)");
    refuses("version=9", "or OPTION=VALUE with an option of 'tare help quantize'");
    refuses("op=A -> bits=4 bits=8", "r.txt:1: duplicate bits");
    refuses("op=A -> float static", "r.txt:1: duplicate method");
    refuses("op=A op=B -> float", "duplicate op");
    refuses("-> bits=5", "option '--bits': invalid value (expected 4 or 8, got '5')");
    refuses("-> granularity=per_block:33", "blocks have 32, 64, 128 or 256 rows");
    refuses("-> static granularity=per_block:32", "method static has no weights in blocks (weight_only has)");
    refuses("-> algorithm=minmax", "min_max");
    refuses("-> bit=4", "did you mean bits");
    refuses("name=\"a -> float", "a quotation mark is not closed");
}

static void endless_pattern__is_stopped(void **state) {
    struct tare_quant_setting setting = { 0 };
    struct tare_graph_model *model = mini_model_new();
    struct tare_node *node =
        tare_graph_add(model->main, "MatMul", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    bool by_rule;
    (void)state;
    mini_fails(tare_quant_recipe_apply(&setting, &by_rule, NULL, read("\nname=(a+)+$ -> float"), node),
               "r.txt:2: name takes too long");
    tare_error_clear();
    tare_model_free(model);
}

static void passes__hold_for_the_whole_model(void **state) {
    struct tare_quant_recipe *recipe =
        read("# what --auto wrote\n passes=gptq:damp=0.1,act_order=false,bias_correction # all\nop=MatMul -> float\n");
    (void)state;
    assert_string_equal(tare_quant_recipe_options(recipe)->pass_names, "gptq:damp=0.1,act_order=false,bias_correction");
    assert_int_equal(tare_quant_recipe_count(recipe), 1);
    assert_null(tare_quant_recipe_options(read("op=MatMul -> float"))->pass_names);
    assert_null(tare_quant_recipe_options(NULL));
    refuses("op=A -> float\npasses=gptk", "r.txt:2: there is no accuracy pass 'gptk' (did you mean 'gptq'?)");
    refuses("passes=gptq -> float", "'->' behind the option (expected nothing)");
}

struct layer {
    const char *node, *function;
};

static void the_number_of_a_function__is_any_where_it_tells_no_layers_apart(void **state) {
    static const struct layer three[] = { { "dense/MatMul", "__inference_call_5853" },
                                          { "cell/MatMul", "while_body_17" },
                                          { "cell/MatMul", "while_body_29" } };
    static const char *const written[] = { "name=\"dense/MatMul\" function=\"__inference_call_[0-9]+\"",
                                           "name=\"cell/MatMul\" function=\"while_body_17\"",
                                           "name=\"cell/MatMul\" function=\"while_body_29\"" };
    const struct tare_quant_layer_names names = TARE_QUANT_LAYER_NAMES(three, 3);
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tare_strbuf text = { 0 };
        tare_quant_recipe_put_layer(&text, &names, i);
        assert_string_equal(tare_strbuf_text(&text), written[i]);
        tare_strbuf_free(&text);
    }
}

static void a_layer__is_written_so_that_it_alone_matches(void **state) {
    static const char *const names[][2] = { { "a.b/c+(1)", "aXb/c+(1)" },
                                            { "say \"a b\" # \\\"c", "say a b # \\c" },
                                            { "two\nlines", "twonlines" } };
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tare_strbuf text = { 0 };
        bool by_rule, used[1] = { false };
        const struct layer layer = { names[i][0], "head" };
        const struct tare_quant_layer_names layers = TARE_QUANT_LAYER_NAMES(&layer, 1);
        tare_quant_recipe_put_layer(&text, &layers, 0);
        tare_strbuf_puts(&text, " -> float");
        assert_null(apply(tare_strbuf_text(&text), "MatMul", names[i][0], &by_rule, used).method);
        assert_true(by_rule && used[0]);
        assert_non_null(apply(tare_strbuf_text(&text), "MatMul", names[i][1], &by_rule, used).method);
        tare_strbuf_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(last_match__wins, empty_arena),
        cmocka_unit_test_teardown(patterns__match_the_whole_text, empty_arena),
        cmocka_unit_test_teardown(rule_without_condition__holds_for_all, empty_arena),
        cmocka_unit_test_teardown(settings__change_what_they_name, empty_arena),
        cmocka_unit_test_teardown(quotes__keep_spaces_and_signs, empty_arena),
        cmocka_unit_test_teardown(a_byte_order_mark__is_skipped, empty_arena),
        cmocka_unit_test_teardown(faults__name_line_and_word, empty_arena),
        cmocka_unit_test_teardown(endless_pattern__is_stopped, empty_arena),
        cmocka_unit_test_teardown(passes__hold_for_the_whole_model, empty_arena),
        cmocka_unit_test(the_number_of_a_function__is_any_where_it_tells_no_layers_apart),
        cmocka_unit_test_teardown(a_layer__is_written_so_that_it_alone_matches, empty_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
