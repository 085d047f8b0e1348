/* The report of --auto, for outputs without error and outputs that cannot be measured. */
#include "base/strbuf.h"
#include "support/mini_model.h"
#include "workflow/autotune/autotune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void expect(double db, double plain_db, size_t n_outputs, const char *expected) {
    const struct tare_autotune a = { .method = "static",
                                     .algorithm = "min_max",
                                     .passes = "",
                                     .n_outputs = n_outputs,
                                     .db = db,
                                     .plain_db = plain_db,
                                     .records = 12,
                                     .held_out = true,
                                     .models = 5 };
    struct tare_strbuf table = { 0 }, recipe = { 0 };
    tare_workflow_autotune_table(&table, &a);
    tare_workflow_autotune_heading(&recipe, &a);
    if (!strstr(tare_strbuf_text(&table), expected))
        fail_msg("'%s', expected '%s'", tare_strbuf_text(&table), expected);
    if (!strstr(tare_strbuf_text(&recipe), expected))
        fail_msg("'%s', expected '%s'", tare_strbuf_text(&recipe), expected);
    tare_strbuf_free(&table);
    tare_strbuf_free(&recipe);
}

static void gain__is_in_words_where_it_is_not_a_number(void **state) {
    (void)state;
    expect(40.125, 35.3, 1, "40.12 dB instead of 35.30 on 12 held-out samples");
    expect(INFINITY, INFINITY, 1, "exact instead of exact on 12 held-out samples");
    expect(30, -INFINITY, 1, "30.00 dB instead of none on 12 held-out samples");
    expect(NAN, NAN, 1, "not measured instead of not measured on 12 held-out samples");
    expect(30, 20, 3, "30.00 dB instead of 20.00 at the worst of 3 outputs on 12 held-out samples");
}

/* Of ten layers, the fourth has a rule; of the others those with the largest errors have a row. */
static void layers_as_all__are_summed_up(void **state) {
    (void)state;
    struct tare_autotune_layer layers[10];
    struct tare_autotune a = { .method = "static", .passes = "", .layers = layers, .count = 10, .records = 1 };
    struct tare_strbuf table = { 0 };
    char names[10][8];
    for (int i = 0; i < 10; i++) {
        snprintf(names[i], sizeof names[i], "layer%d", i);
        layers[i] = (struct tare_autotune_layer){ .node = names[i], .op = "MatMul", .why = "", .alone_db = 40 - i };
    }
    layers[3].activation_bits = 16;
    tare_workflow_autotune_table(&table, &a);
    for (int i = 0; i < 10; i++)
        assert_int_equal(strstr(tare_strbuf_text(&table), names[i]) != NULL, i == 3 || i >= 5);
    assert_non_null(strstr(tare_strbuf_text(&table), "\n4 more layers get the same as all: 36.0 to 40.0 dB alone\n"));
    assert_non_null(strstr(tare_strbuf_text(&table), "on 1 sample,"));
    tare_strbuf_free(&table);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(gain__is_in_words_where_it_is_not_a_number),
                                        cmocka_unit_test(layers_as_all__are_summed_up) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
