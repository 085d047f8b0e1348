/* Tables line up. */
#include "base/text_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static const struct tare_text_table_column columns[] = {
    { .heading = "method", .left = true },
    { .heading = "top-1" },
    { .heading = "AUC" },
    { .heading = "note", .left = true },
    { 0 },
};

static void prints(struct tare_text_table *table, const char *text) {
    struct tare_strbuf out = { 0 };
    tare_text_table_print(&out, table);
    assert_string_equal(tare_strbuf_text(&out), text);
    tare_strbuf_free(&out);
    tare_text_table_free(table);
}

static void columns__line_up_and_unfilled_ones_are_left_out(void **state) {
    struct tare_text_table *table = tare_text_table_new(columns);
    (void)state;
    tare_text_table_row(table);
    tare_text_table_cell(table, "float");
    tare_text_table_cell(table, "%.2f%%", 100.0);
    tare_text_table_skip(table);
    tare_text_table_cell(table, "reference");
    tare_text_table_row(table);
    tare_text_table_cell(table, "weight_only");
    tare_text_table_cell(table, "%.2f%%", 7.5);
    prints(table, "method         top-1  note\n"
                  "float        100.00%  reference\n"
                  "weight_only    7.50%  -\n");
}

static void width__counts_characters_and_not_bytes(void **state) {
    struct tare_text_table *table = tare_text_table_new(columns);
    (void)state;
    tare_text_table_row(table);
    tare_text_table_cell(table, "größenänderung");
    tare_text_table_cell(table, "1");
    tare_text_table_row(table);
    tare_text_table_cell(table, "a");
    tare_text_table_cell(table, "2");
    prints(table, "method          top-1\n"
                  "größenänderung      1\n"
                  "a                   2\n");
}

static void cells_beyond_the_columns__are_dropped(void **state) {
    struct tare_text_table *table = tare_text_table_new(columns);
    (void)state;
    tare_text_table_row(table);
    for (int i = 0; i < 9; i++)
        tare_text_table_cell(table, "%d", i);
    prints(table, "method  top-1  AUC  note\n0           1    2  3\n");
}

static struct tare_text_table *wide(const char *name) {
    struct tare_text_table *table = tare_text_table_new(columns);
    tare_text_table_row(table);
    tare_text_table_cell(table, "%s", name);
    tare_text_table_cell(table, "100.00%%");
    tare_text_table_cell(table, "0.9876");
    tare_text_table_cell(table, "a note");
    return table;
}

static void table__that_fits_is_one(void **state) {
    struct tare_text_table *table = wide("static");
    (void)state;
    tare_text_table_fit(table, 31);
    prints(table, "method    top-1     AUC  note\nstatic  100.00%  0.9876  a note\n");
}

static void table__that_is_too_wide_is_printed_in_parts_with_its_names(void **state) {
    struct tare_text_table *table = wide("static");
    (void)state;
    tare_text_table_fit(table, 30);
    prints(table, "method    top-1     AUC\nstatic  100.00%  0.9876\n\nmethod  note\nstatic  a note\n");
    table = wide("static");
    tare_text_table_fit(table, 16); /* one column at a time, be it too wide */
    prints(table,
           "method    top-1\nstatic  100.00%\n\nmethod     AUC\nstatic  0.9876\n\nmethod  note\nstatic  a note\n");
}

static void table__whose_names_take_most_of_a_line_stays_whole(void **state) {
    struct tare_text_table *table = wide("a_name_of_29_characters_or_so");
    (void)state;
    tare_text_table_fit(table, 40);
    prints(table, "method                           top-1     AUC  note\n"
                  "a_name_of_29_characters_or_so  100.00%  0.9876  a note\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns__line_up_and_unfilled_ones_are_left_out),
        cmocka_unit_test(width__counts_characters_and_not_bytes),
        cmocka_unit_test(cells_beyond_the_columns__are_dropped),
        cmocka_unit_test(table__that_fits_is_one),
        cmocka_unit_test(table__that_is_too_wide_is_printed_in_parts_with_its_names),
        cmocka_unit_test(table__whose_names_take_most_of_a_line_stays_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
