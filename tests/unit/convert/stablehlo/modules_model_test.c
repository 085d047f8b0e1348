/* Every StableHLO module of the test data is read, printed and written, and contains the ops that an independent reader
 * counted (stablehlo/modules.tsv). */
#include "support/mini_model.h"
#include "support/models.h"
#include "support/round_trip.h"

#include "base/alloc.h"
#include "base/file.h"
#include "convert/stablehlo/print.h"
#include "convert/stablehlo/summary.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *folder;
static size_t not_written; /* modules that tare_shlo_write does not support */

static tare_status count_bytes(void *arg, const char *text, size_t size) {
    (void)text;
    *(size_t *)arg += size;
    return TARE_OK;
}

/* "add_v1:2,call_v1:1,…" of modules.tsv against the summary; functions are counted apart. */
static bool has_ops(const struct tare_shlo_summary *summary, char *expected) {
    size_t kinds = 0, functions = 0;
    char *rest = NULL;
    for (char *word = strtok_r(expected, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *colon = strrchr(word, ':');
        if (!colon) return false;
        *colon = '\0';
        const size_t count = strtoul(colon + 1, NULL, 10);
        if (strcmp(word, "func_v1") == 0) {
            functions = count;
            continue;
        }
        size_t i = 0;
        while (i < summary->n_kinds && strcmp(strchr(summary->ops[i].name, '.') + 1, word) != 0)
            i++;
        if (i == summary->n_kinds || summary->ops[i].count != count) return false;
        kinds++;
    }
    return functions == summary->n_functions && kinds <= summary->n_kinds;
}

static bool check_module(const char *path, char *expected_ops) {
    struct tare_mapping file;
    struct tare_shlo_module *module;
    struct tare_shlo_summary summary;
    struct tare_arena arena = { 0 };
    size_t printed = 0;
    const struct tare_shlo_print_options options = { .write = count_bytes, .arg = &printed };
    bool good;
    mini_ok(tare_file_map(&file, path));
    if (tare_shlo_read(&module, file.data, file.size) != TARE_OK) {
        print_message("%s: %s\n", path, tare_error_text());
        tare_file_unmap(&file);
        return false;
    }
    mini_ok(tare_shlo_summarize(&summary, &arena, module));
    mini_ok(tare_shlo_print(module, &options));
    good = printed > 0 && (!expected_ops || has_ops(&summary, expected_ops));
    if (!good) print_message("%s: other ops than expected\n", path);
    bool refused;
    if (!round_trip_is_equal(&refused, module, path)) {
        not_written += refused;
        good = good && refused;
    }
    tare_arena_free(&arena);
    tare_shlo_free(module);
    tare_file_unmap(&file);
    return good;
}

static void modules__are_read_with_the_ops_that_another_reader_counts(void **state) {
    char line[16384], path[1200];
    size_t checked = 0, wrong = 0;
    snprintf(path, sizeof path, "%s/modules.tsv", folder);
    FILE *table = fopen(path, "r");
    (void)state;
    assert_non_null(table);
    while (fgets(line, sizeof line, table)) {
        char *rest = line, *fields[5] = { 0 };
        if (line[0] == '#') continue;
        for (int i = 0; i < 5; i++)
            fields[i] = strsep(&rest, "\t\n"); /* empty for a module without ops */
        if (!fields[4]) continue;
        snprintf(path, sizeof path, "%s/testdata/%s", folder, fields[0]);
        if (tare_file_kind_of(path) != TARE_FILE_REGULAR) continue;
        wrong += !check_module(path, fields[4]);
        checked++;
    }
    fclose(table);
    print_message("%zu modules, %zu not written\n", checked, not_written);
    assert_int_equal(wrong, 0);
    assert_true(not_written * 50 < checked);
    assert_true(checked > 2500);
}

static size_t check_folder(const char *name, const char *refused) {
    char path[1200];
    struct tare_file_list list = { 0 };
    size_t good = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    mini_ok(tare_file_list(&list, path));
    for (size_t i = 0; i < list.count; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, name, list.names[i]);
        if (tare_file_kind_of(path) == TARE_FILE_DIRECTORY)
            snprintf(path, sizeof path, "%s/%s/%s/module.mlirbc", folder, name, list.names[i]);
        if (tare_file_kind_of(path) != TARE_FILE_REGULAR) continue;
        const bool expected = !refused || strcmp(list.names[i], refused) != 0;
        if (check_module(path, NULL) != expected) fail_msg("%s", path);
        good += expected;
    }
    tare_file_list_free(&list);
    return good;
}

static void modules__of_every_version_are_read(void **state) {
    (void)state;
    assert_int_equal(check_folder("vhlo", "invalid_vhlo_future.mlirbc"), 33);
    assert_int_equal(check_folder("jax", NULL), 40);
    assert_true(check_folder("testdata-1.8", NULL) > 2500);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules__are_read_with_the_ops_that_another_reader_counts),
        cmocka_unit_test(modules__of_every_version_are_read),
    };
    folder = test_data("stablehlo");
    if (!folder) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
