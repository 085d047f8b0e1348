/* The table of a comparison's columns: what no compiler checks of it. */
#include "eval/report/comparison_columns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct tare_comparison_column *column(size_t i) {
    return &tare_comparison_columns[i];
}

static void places_in_csv__are_taken_once_and_without_a_gap(void **state) {
    size_t places = 0;
    (void)state;
    for (size_t i = 0; i < tare_comparison_n_columns; i++)
        places += column(i)->csv > 0;
    for (size_t place = 1; place <= places; place++) {
        size_t taken = 0;
        for (size_t i = 0; i < tare_comparison_n_columns; i++)
            taken += column(i)->csv == (int)place;
        if (taken != 1) fail_msg("place %zu of CSV is taken %zu times", place, taken);
    }
}

static void keys__are_unique_in_csv_and_in_each_group_of_json(void **state) {
    (void)state;
    for (size_t i = 0; i < tare_comparison_n_columns; i++)
        for (size_t k = 0; k < i; k++) {
            if (column(i)->csv && column(k)->csv && strcmp(column(i)->key, column(k)->key) == 0)
                fail_msg("two columns of CSV are called %s", column(i)->key);
            if (column(i)->json && column(i)->json == column(k)->json &&
                strcmp(tare_comparison_json_key(column(i)), tare_comparison_json_key(column(k))) == 0)
                fail_msg("two members of JSON are called %s", tare_comparison_json_key(column(i)));
        }
}

static void every_column__has_what_its_reports_print(void **state) {
    (void)state;
    for (size_t i = 0; i < tare_comparison_n_columns; i++) {
        const struct tare_comparison_column *c = column(i);
        const bool has_value = c->value || (c->tables && c->put && !c->csv && !c->json);
        if ((c->csv || c->json || c->diff.heading) && !c->key) fail_msg("column %zu has no key", i);
        if (c->csv && !c->value && !c->text) fail_msg("%s has neither value nor text", c->key);
        if ((c->json || c->tables) && !has_value) fail_msg("column %zu (%s) has no value", i, c->key ? c->key : "");
        if (c->diff.heading && !(c->diff.format && c->diff.factor > 0)) fail_msg("%s: diff has no format", c->key);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_in_csv__are_taken_once_and_without_a_gap),
        cmocka_unit_test(keys__are_unique_in_csv_and_in_each_group_of_json),
        cmocka_unit_test(every_column__has_what_its_reports_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
