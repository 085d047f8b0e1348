/* Pages: escaping, tables, plots, contents, and no external references. */
#include "eval/report/page.h"

#include <math.h>
#include <regex.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

static void assert_holds(const struct tare_strbuf *page, const char *text) {
    if (!strstr(tare_strbuf_text(page), text)) fail_msg("no '%s' in: %s", text, tare_strbuf_text(page));
}

static void text__cannot_become_markup(void **state) {
    (void)state;
    struct tare_strbuf page = { 0 };
    tare_page_begin(&page, "<script>alert('x')</script>", NULL);
    tare_page_element(&page, "p", "soft", "a \"b\" & <%s>", "c");
    tare_page_end(&page);
    assert_holds(&page, "<h1>&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;</h1>");
    assert_holds(&page, "<p class=\"soft\">a &quot;b&quot; &amp; &lt;c&gt;</p>");
    assert_null(strstr(tare_strbuf_text(&page), "<script>alert"));
    tare_strbuf_free(&page);
}

static void text__of_any_length_is_whole(void **state) {
    (void)state;
    struct tare_strbuf page = { 0 };
    char name[2001];
    for (int length = 254; length <= 2000; length += length < 260 ? 1 : 1740) {
        memset(name, '&', sizeof name);
        name[length] = '\0';
        tare_page_printf(&page, "%s", name);
        assert_int_equal(page.size, 5 * length);
        tare_strbuf_free(&page);
    }
}

static void page__refers_to_nothing_outside(void **state) {
    (void)state;
    struct tare_strbuf page = { 0 };
    regex_t outside;
    tare_page_begin(&page, "title", NULL);
    tare_page_end(&page);
    assert_int_equal(regcomp(&outside, "src=|href=\"[^#]|https?:|@import|url\\(|<link", REG_EXTENDED), 0);
    assert_int_equal(regexec(&outside, tare_strbuf_text(&page), 0, NULL, 0), REG_NOMATCH);
    regfree(&outside);
    tare_strbuf_free(&page);
}

static void headings__are_listed_when_there_are_three(void **state) {
    (void)state;
    for (int count = 2; count <= 3; count++) {
        struct tare_strbuf page = { 0 };
        tare_page_begin(&page, "title", NULL);
        for (int i = 0; i < count; i++)
            tare_page_heading(&page, "Part <%d>", i);
        tare_page_end(&page);
        assert_holds(&page, "<h2 id=\"Part--lt-1-gt-\">Part &lt;1&gt;</h2>");
        if (count == 3)
            assert_holds(&page, "<li><a href=\"#Part--lt-1-gt-\">Part &lt;1&gt;</a></li>");
        else
            assert_null(strstr(tare_strbuf_text(&page), "<nav"));
        assert_null(strstr(tare_strbuf_text(&page), "<!--contents-->"));
        tare_strbuf_free(&page);
    }
}

static void table__has_its_cells_in_their_columns(void **state) {
    (void)state;
    static const struct tare_page_column columns[] = { { .heading = "name", .left = true, .wraps = true },
                                                       { .heading = "a<b", .help = "less \"than\"" },
                                                       { 0 } };
    struct tare_strbuf page = { 0 };
    struct tare_page_table table;
    tare_page_table_begin(&table, &page, columns);
    tare_page_table_row(&table);
    tare_page_table_series_cell(&table, 9, "%s", "x");
    tare_page_table_cell(&table, "%d", 7);
    tare_page_table_row(&table);
    tare_page_table_cell(&table, "y");
    tare_page_table_skip(&table);
    tare_page_table_end(&table);
    assert_string_equal(
        tare_strbuf_text(&page),
        "<div class=\"scroll\"><table class=\"data\"><thead><tr><th scope=\"col\" class=\"l w\">name</th>"
        "<th scope=\"col\" title=\"less &quot;than&quot;\">a&lt;b</th></tr></thead><tbody>\n"
        "<tr><th scope=\"row\" class=\"l w\"><svg class=\"mark c1\" viewBox=\"-8 -8 16 16\" "
        "aria-hidden=\"true\"><path d=\"M-4-4H4V4H-4z\"/></svg>x</th><td>7</td></tr>\n"
        "<tr><th scope=\"row\" class=\"l w\">y</th><td>–</td></tr>\n</tbody></table></div>\n");
    tare_strbuf_free(&page);
}

static void bar__beyond_its_end_is_marked(void **state) {
    (void)state;
    static const struct tare_page_column columns[] = { { .heading = "share" }, { 0 } };
    struct tare_strbuf page = { 0 };
    struct tare_page_table table;
    tare_page_table_begin(&table, &page, columns);
    tare_page_table_row(&table);
    tare_page_table_bar_cell(&table, 0.5, "50 %%");
    tare_page_table_row(&table);
    tare_page_table_bar_cell(&table, 1.24, "124 %%");
    tare_page_table_end(&table);
    assert_holds(&page, "<span class=\"meter\"><i style=\"width:50.0%\"></i></span>50 %");
    assert_holds(&page, "<span class=\"meter over\"><i style=\"width:100.0%\"></i></span>124 %");
    tare_strbuf_free(&page);
}

static void plot__places_values_between_its_edges(void **state) {
    (void)state;
    struct tare_strbuf page = { 0 };
    const struct tare_plot plot = { .x_low = -1, .x_high = 3, .y_low = 0, .y_high = 10, .height = 120 };
    tare_plot_begin(&page, &plot, "values & counts");
    tare_plot_bar(&page, &plot, 0, 1, 0, 5, "bar");
    tare_plot_line(&page, &plot, 1, 0, 1, 1e300, "c1");
    tare_plot_letters(&page);
    tare_plot_ticks(&page, &plot, " MB", "%");
    tare_plot_titles(&page, "size", "top-1");
    tare_plot_marker(&page, &plot, 3, 5, 0, true, "a & b");
    tare_plot_label(&page, &plot, 3, 10, "ink", "%s", "<end>");
    tare_plot_end(&page);
    assert_holds(&page, "aria-label=\"values &amp; counts\"");
    assert_holds(&page, "<path class=\"fill bar\" d=\"M250.0 1000.0H500.0V500.0H250.0z\"/>");
    assert_holds(&page, "<span class=\"point left\" style=\"left:100.00%;top:50.00%\" tabindex=\"0\" role=\"img\" "
                        "aria-label=\"a &amp; b\">");
    assert_holds(&page, "<circle r=\"7\"/>"); /* ringed */
    assert_holds(&page, "<span class=\"tip\">a &amp; b</span>");
    assert_holds(&page, "<span class=\"xt\">size</span><span class=\"yt\">top-1</span>");
    assert_holds(&page, "<path class=\"line c1\" d=\"M500.0 1000.0L500.0 -20.0\"/>"); /* far outside stays near */
    assert_holds(&page, "<span class=\"x first\" style=\"left:0.00%\">-1 MB</span>");
    assert_holds(&page, "<span class=\"x\" style=\"left:50.00%\">1 MB</span>");
    assert_holds(&page, "<span class=\"y\" style=\"top:80.00%\">2%</span>");
    assert_holds(&page, "<span class=\"at left ink\" style=\"left:100.00%;top:0.00%\">&lt;end&gt;</span>");
    tare_strbuf_free(&page);
}

static void round_numbers__fill_the_interval(void **state) {
    (void)state;
    const struct {
        double low, high;
        size_t most, count;
        double first, last;
    } cases[] = {
        { 0, 10, 6, 6, 0, 10 },
        { -1, 1, 6, 5, -1, 1 },
        { 0.9371, 0.9489, 5, 5, 0.9375, 0.9475 },
        { 3, 4, 2, 2, 3, 4 },
        { -3e-9, 5e-9, 6, 4, -2e-9, 4e-9 },
        { 12e6, 95e6, 6, 4, 20e6, 80e6 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double numbers[8], slack = 1e-9 * (cases[i].high - cases[i].low);
        size_t count = tare_plot_round_numbers(numbers, cases[i].most, cases[i].low, cases[i].high);
        if (count != cases[i].count || fabs(numbers[0] - cases[i].first) > slack ||
            fabs(numbers[count - 1] - cases[i].last) > slack)
            fail_msg("case %zu: %zu numbers from %g to %g (expected %zu from %g to %g)", i, count,
                     count ? numbers[0] : 0, count ? numbers[count - 1] : 0, cases[i].count, cases[i].first,
                     cases[i].last);
    }
    double numbers[8];
    assert_int_equal(tare_plot_round_numbers(numbers, 6, 1, 1), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text__cannot_become_markup),
        cmocka_unit_test(text__of_any_length_is_whole),
        cmocka_unit_test(page__refers_to_nothing_outside),
        cmocka_unit_test(headings__are_listed_when_there_are_three),
        cmocka_unit_test(table__has_its_cells_in_their_columns),
        cmocka_unit_test(bar__beyond_its_end_is_marked),
        cmocka_unit_test(plot__places_values_between_its_edges),
        cmocka_unit_test(round_numbers__fill_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
