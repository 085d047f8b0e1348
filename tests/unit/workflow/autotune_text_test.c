/* The report of --auto, for outputs without error and outputs that cannot be measured. */
#include "base/strbuf.h"
#include "support/mini_model.h"
#include "workflow/autotune/autotune.h"

#include <math.h>
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

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(gain__is_in_words_where_it_is_not_a_number) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
