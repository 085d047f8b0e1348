/* Tables of reports: the same rows as text and as a page. */
#include "eval/report/report_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const struct tare_report_column columns[] = {
    { .heading = "method", .left = true, .only = TARE_IN_TEXT },
    { .heading = "model", .left = true, .only = TARE_IN_PAGE },
    { .heading = "top-1" },
    { .heading = "nowhere", .help = "no row has it" },
    { .heading = "SQNR dB", .help = "the more, the better" },
    { .heading = "size", .left = true },
    { 0 },
};

static void put(struct tare_strbuf *out, enum tare_report_form form) {
    struct tare_report_table *table = tare_report_table_new(form, columns);
    const double shares[] = { 0.5, NAN }, decibels[] = { HUGE_VAL, 44.914 };
    for (int i = 0; i < 2; i++) {
        tare_report_table_row(table);
        tare_report_table_text(table, "static");
        tare_report_table_series(table, 3, "static mse");
        tare_report_table_share(table, 2, shares[i]);
        tare_report_table_skip(table);
        tare_report_table_db(table, decibels[i]);
        tare_report_table_bar(table, i ? 0.333 : 1);
        tare_report_table_cell(table, "beyond the last column");
    }
    tare_report_table_end(out, table);
}

static void text__has_its_own_columns_and_none_that_no_row_fills(void **state) {
    (void)state;
    struct tare_strbuf out = { 0 };
    put(&out, TARE_IN_TEXT);
    assert_string_equal(tare_strbuf_text(&out), "method   top-1  SQNR dB  size\n"
                                                "static  50.00%    exact  100%\n"
                                                "static       -    44.91   33%\n");
    tare_strbuf_free(&out);
}

static void page__has_the_same_rows_with_markers_and_bars(void **state) {
    (void)state;
    static const char *const expected[] = {
        ("<th scope=\"col\" class=\"l\">model</th><th scope=\"col\">top-1</th><th scope=\"col\" "
         "title=\"the more, the better\">SQNR dB</th><th scope=\"col\" class=\"l\">size</th></tr>"),
        ("<th scope=\"row\" class=\"l\"><svg class=\"mark c3\" viewBox=\"-8 -8 16 16\" aria-hidden=\"true\"><path "
         "d=\"M0-5.5L5.5 0L0 5.5L-5.5 0z\"/></svg>static mse</th><td>50.00 %</td><td>exact</td>"),
        "<i style=\"width:33.3%\"></i></span>33 %</td>",
        "<td>–</td><td>44.91</td>",
    };
    struct tare_strbuf out = { 0 };
    put(&out, TARE_IN_PAGE);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (!strstr(tare_strbuf_text(&out), expected[i]))
            fail_msg("no '%s' in: %s", expected[i], tare_strbuf_text(&out));
    assert_null(strstr(tare_strbuf_text(&out), "nowhere"));
    assert_null(strstr(tare_strbuf_text(&out), ">static</td>"));
    tare_strbuf_free(&out);
}

static void table__without_rows_is_nothing(void **state) {
    (void)state;
    struct tare_strbuf out = { 0 };
    tare_report_table_end(&out, tare_report_table_new(TARE_IN_TEXT, columns));
    tare_report_table_end(&out, tare_report_table_new(TARE_IN_PAGE, columns));
    assert_int_equal(out.size, 0);
    assert_false(out.failed);
}

static void memory__that_is_not_there_shows_in_the_buffer(void **state) {
    (void)state;
    struct tare_strbuf out = { 0 };
    tare_report_table_row(NULL);
    tare_report_table_cell(NULL, "%d", 1);
    tare_report_table_bar(NULL, 0.5);
    tare_report_table_end(&out, NULL);
    assert_true(out.failed);
    tare_strbuf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text__has_its_own_columns_and_none_that_no_row_fills),
        cmocka_unit_test(page__has_the_same_rows_with_markers_and_bars),
        cmocka_unit_test(table__without_rows_is_nothing),
        cmocka_unit_test(memory__that_is_not_there_shows_in_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
