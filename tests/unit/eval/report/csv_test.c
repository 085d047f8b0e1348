/* Cells of CSV files. */
#include "eval/report/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void expect(const char *text, const char *cell) {
    struct tare_strbuf out = { 0 };
    tare_csv_text(&out, text);
    assert_string_equal(tare_strbuf_text(&out), cell);
    tare_strbuf_free(&out);
}

static void text__is_quoted_where_it_must_be(void **state) {
    (void)state;
    expect(NULL, "");
    expect("model_1", "model_1");
    expect("a,b", "\"a,b\"");
    expect("say \"so\"", "\"say \"\"so\"\"\"");
}

static void text__is_no_formula(void **state) {
    (void)state;
    expect("=1+1", "'=1+1");
    expect("+a", "'+a");
    expect("-a", "'-a");
    expect("@SUM(A1)", "'@SUM(A1)");
    expect("\t=1", "'\t=1");
    expect("=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"");
    expect("a=b", "a=b");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text__is_quoted_where_it_must_be),
        cmocka_unit_test(text__is_no_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
