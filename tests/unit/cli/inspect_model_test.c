/* tare inspect and tare copy over every real model: what is valid opens, quickly and in little memory, and comes back
 * to the byte; what is broken on purpose gives one line that names the fault. */
#include "base/file.h"
#include "support/models.h"
#include "support/process.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 }; /* shadow memory and slow code: sizes and times say nothing */
#else
enum { SANITIZED = 0 };
#endif

static const double MAX_SECONDS = 1.0;
static const size_t FREE_BYTES = 64 << 20; /* the program itself, its libraries and tables */
enum { MAX_TIMES_FILE = 3 };

static const struct {
    const char *model, *fault;
} broken[] = {
    { "tf-fuzz-attr", "node RestoreV2/tensor_names (Const): NodeDef missing attr 'value' from Op Const" },
    { "tf-fuzz-const", "node Assign/value (Const): NodeDef missing attr 'value' from Op Const" },
    { "tf-fuzz-shape", "node b/initial_value (Const): attr value: shape [?,1] is not known" },
};

static const char *fault_of(const char *model) {
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        if (strcmp(broken[i].model, model) == 0) return broken[i].fault;
    return NULL;
}

static size_t count_lines(const char *text) {
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static int64_t model_file_size(const char *path) {
    static const char *const names[] = { "saved_model.pb", "saved_model.pbtxt", "saved_model.cpb" };
    char file[1300];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(file, sizeof file, "%s/%s", path, names[i]);
        if (tare_file_kind_of(file) == TARE_FILE_REGULAR) return (int64_t)tare_file_size(file);
    }
    return 0;
}

static size_t judge_broken(const char *name, const struct process *inspect) {
    const char *fault = fault_of(name);
    if (inspect->status == 1 && strstr(inspect->err, fault) && count_lines(inspect->err) == 1) return 0;
    print_error("%s: exit status %d: %s (expected 1 and one line with: %s)\n", name, inspect->status, inspect->err,
                fault);
    return 1;
}

static size_t judge_sound(const char *name, const struct process *inspect) {
    size_t limit = (size_t)model_file_size(models_path(name)) * MAX_TIMES_FILE + FREE_BYTES;
    size_t failed = 0;
    if (inspect->status != 0) {
        print_error("%s: exit status %d: %s\n", name, inspect->status, inspect->err);
        return 1;
    }
    if (!SANITIZED && inspect->cpu_seconds >= MAX_SECONDS) {
        print_error("%s: %.2f s (expected below %.1f)\n", name, inspect->cpu_seconds, MAX_SECONDS);
        failed++;
    }
    if (!SANITIZED && inspect->peak_bytes > limit) {
        print_error("%s: %zu bytes (expected at most %zu)\n", name, inspect->peak_bytes, limit);
        failed++;
    }
    return failed;
}

static void inspect__opens_every_sound_model(void **state) {
    struct tare_file_list models = models_list();
    size_t failed = 0;
    (void)state;
    for (size_t i = 0; i < models.count; i++) {
        const char *name = models.names[i];
        const char *argv[] = {
            process_tare(), "inspect", models_path(name), "--functions", "--ops", "--variables", NULL
        };
        struct process inspect;
        process_run(&inspect, argv);
        failed += fault_of(name) ? judge_broken(name, &inspect) : judge_sound(name, &inspect);
        process_free(&inspect);
    }
    tare_file_list_free(&models);
    assert_int_equal(failed, 0);
}

/* ---- copies ---- */

static size_t compare_trees(const char *a, const char *b);

static size_t compare_files(const char *a, const char *b) {
    struct tare_mapping x = { 0 }, y = { 0 };
    bool same = tare_file_map(&x, a) == TARE_OK && tare_file_map(&y, b) == TARE_OK && x.size == y.size &&
                memcmp(x.data, y.data, x.size) == 0;
    tare_file_unmap(&x);
    tare_file_unmap(&y);
    if (!same) print_error("%s and %s differ\n", a, b);
    return !same;
}

static size_t compare_folders(const char *a, const char *b) {
    struct tare_file_list left = { 0 }, right = { 0 };
    size_t failed;
    assert_int_equal(tare_file_list(&left, a), TARE_OK);
    assert_int_equal(tare_file_list(&right, b), TARE_OK);
    failed = left.count != right.count;
    if (failed) print_error("%s has %zu entries, %s has %zu\n", a, left.count, b, right.count);
    for (size_t i = 0; i < left.count; i++) {
        char x[2048], y[2048];
        snprintf(x, sizeof x, "%s/%s", a, left.names[i]);
        snprintf(y, sizeof y, "%s/%s", b, left.names[i]);
        failed += compare_trees(x, y);
    }
    tare_file_list_free(&left);
    tare_file_list_free(&right);
    return failed;
}

static size_t compare_trees(const char *a, const char *b) {
    return tare_file_kind_of(a) == TARE_FILE_DIRECTORY ? compare_folders(a, b) : compare_files(a, b);
}

static void copy__of_every_sound_model_is_byte_for_byte(void **state) {
    struct tare_file_list models = models_list();
    size_t failed = 0, copied = 0;
    (void)state;
    for (size_t i = 0; i < models.count; i++) {
        const char *name = models.names[i], *to = temp_path("copy");
        const char *argv[] = { process_tare(), "copy", models_path(name), to, NULL };
        struct process copy;
        if (fault_of(name)) continue;
        process_run(&copy, argv);
        if (copy.status == 0) {
            failed += compare_trees(models_path(name), to);
            copied++;
        } else {
            print_error("%s: exit status %d: %s\n", name, copy.status, copy.err);
            failed++;
        }
        process_free(&copy);
        assert_int_equal(tare_file_remove_tree(to), TARE_OK);
    }
    print_message("%zu models copied\n", copied);
    tare_file_list_free(&models);
    assert_int_equal(failed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inspect__opens_every_sound_model),
        cmocka_unit_test(copy__of_every_sound_model_is_byte_for_byte),
    };
    if (!test_data("models")) return TEST_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
