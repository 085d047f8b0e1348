/* Requires at least three cases for every built-in op row, in tests/ops, tests/golden or a test program listed in
 * tests/ops/elsewhere.txt. */
#include "graph/op.h"
#include "interpreter/ops/builtin.h"
#include "support/op_family.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ENOUGH = 3 };

static struct op_coverage *load(void) {
    struct op_coverage *coverage = op_coverage_load(TARE_SOURCE_DIR);
    if (!coverage) fail_msg("the cases cannot be read: %s", tare_error_text());
    return coverage;
}

static void row__has_at_least_three_cases(void **state) {
    struct op_coverage *coverage = load();
    const struct tare_op_def *const *list;
    struct tare_arena arena = { 0 };
    size_t all, count = 0, poor = 0;
    (void)state;
    assert_int_equal(tare_ops_list_all(&list, &all, &arena, tare_ops_builtin()), TARE_OK);
    for (size_t i = 0; i < all; i++) {
        const size_t cases = op_coverage_count(coverage, list[i]->name);
        count += list[i]->row != NULL;
        if (!list[i]->row || cases >= ENOUGH) continue;
        print_error("%s has %zu cases (expected at least %d)\n", list[i]->name, cases, ENOUGH);
        poor++;
    }
    op_coverage_free(coverage);
    tare_arena_free(&arena);
    assert_true(count > 400);
    if (poor) fail_msg("%zu of %zu ops have too few cases", poor, count);
}

static void check_known(void *arg, const char *op, size_t cases) {
    const struct tare_op_def *def = tare_ops_find(tare_ops_builtin(), op);
    if ((def && def->row) || islower((unsigned char)*op))
        return; /* golden files of other things use lower-case names */
    print_error("%zu cases are for %s, which has no row\n", cases, op);
    ++*(size_t *)arg;
}

static void case__is_of_an_op_that_has_a_row(void **state) {
    struct op_coverage *coverage = load();
    size_t unknown = 0;
    (void)state;
    op_coverage_each(coverage, check_known, &unknown);
    op_coverage_free(coverage);
    assert_int_equal(unknown, 0);
}

/* Reads a whole file and appends a NUL. */
static char *read_text(const char *path) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    const long size = ftell(file);
    rewind(file);
    text = calloc(1, (size_t)size + 1);
    if (text && fread(text, 1, (size_t)size, file) != (size_t)size) text[0] = '\0';
    fclose(file);
    return text;
}

/* Counts the occurrences of the op in a program: as the string "Op", as Op__ in a test name, or followed by a
 * bracket in a graph's text. */
static size_t mentions(const char *text, const char *op) {
    const size_t size = strlen(op);
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, op)); at += size) {
        const char before = at == text ? ' ' : at[-1], after = at[size];
        count += before == '"' && after == '"';
    }
    return count;
}

static void elsewhere__names_programs_that_use_the_op(void **state) {
    char line[512], op[128], file[256], path[4096];
    size_t count, bad = 0;
    FILE *list = fopen(TARE_SOURCE_DIR "/tests/ops/elsewhere.txt", "r");
    (void)state;
    assert_non_null(list);
    while (fgets(line, sizeof line, list)) {
        if (line[0] == '#' || sscanf(line, "%127s %zu %255s", op, &count, file) != 3) continue;
        snprintf(path, sizeof path, "%s/tests/unit/%s", TARE_SOURCE_DIR, file);
        char *text = read_text(path);
        if (!text || mentions(text, op) < 1) {
            print_error("elsewhere.txt: %s %s\n", file, text ? "does not use the op:" : "is not there:");
            print_error("    %s", line);
            bad++;
        }
        free(text);
    }
    fclose(list);
    assert_int_equal(bad, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row__has_at_least_three_cases),
        cmocka_unit_test(case__is_of_an_op_that_has_a_row),
        cmocka_unit_test(elsewhere__names_programs_that_use_the_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
