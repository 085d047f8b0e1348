/* Files, folders and outputs that are complete or not there. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void map__gives_the_bytes(void **state) {
    struct tare_mapping mapping;
    (void)state;
    assert_int_equal(tare_file_map(&mapping, temp_file("a", "hello", 5)), TARE_OK);
    assert_int_equal(mapping.size, 5);
    assert_memory_equal(mapping.data, "hello", 5);
    tare_file_unmap(&mapping);
    assert_null(mapping.data);
}

static void map__takes_an_empty_file(void **state) {
    struct tare_mapping mapping;
    (void)state;
    assert_int_equal(tare_file_map(&mapping, temp_file("empty", "", 0)), TARE_OK);
    assert_int_equal(mapping.size, 0);
    assert_non_null(mapping.data);
    tare_file_unmap(&mapping);
}

static void map__says_path_and_reason(void **state) {
    struct tare_mapping mapping;
    (void)state;
    assert_int_equal(tare_file_map(&mapping, "/no/such/file"), TARE_NOT_FOUND);
    assert_string_equal(tare_error_text(), "cannot open '/no/such/file': No such file or directory");
    assert_int_equal(tare_file_map(&mapping, "/tmp"), TARE_IO);
    assert_string_equal(tare_error_text(), "cannot map '/tmp': it is a folder");
}

static void read__adds_a_nul_and_fits_sizes_around_the_buffer(void **state) {
    static char big[200000];
    char *data;
    size_t size;
    (void)state;
    memset(big, 'x', sizeof big);
    for (size_t expected = 0; expected < sizeof big; expected = expected * 3 + 1) {
        assert_int_equal(tare_file_read(&data, &size, temp_file("read", big, expected)), TARE_OK);
        assert_int_equal(size, expected);
        assert_memory_equal(data, big, expected);
        assert_int_equal(data[size], 0);
        tare_free(data);
    }
}

static void paths__are_taken_apart_and_joined(void **state) {
    static const char *const cases[][3] = {
        { "a/b/c", "a/b", "c" }, { "c", ".", "c" }, { "/c", "/", "c" }, { "a//c", "a", "c" }, { "a/", "a", "" }
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *folder = tare_path_folder(cases[i][0]);
        assert_string_equal(folder, cases[i][1]);
        assert_string_equal(tare_path_base(cases[i][0]), cases[i][2]);
        tare_free(folder);
    }
    char *joined = tare_path_join("a", "b");
    assert_string_equal(joined, "a/b");
    tare_free(joined);
    joined = tare_path_join("", "b");
    assert_string_equal(joined, "b");
    tare_free(joined);
}

static void list_and_glob__are_sorted(void **state) {
    struct tare_file_list list = { 0 };
    (void)state;
    assert_int_equal(tare_file_make_folders(temp_path("l/deep/er"), NULL), TARE_OK);
    temp_file("l/b", "", 0);
    temp_file("l/a", "", 0);
    temp_file("l/Z", "", 0);
    assert_int_equal(tare_file_list(&list, temp_path("l")), TARE_OK);
    assert_int_equal(list.count, 4);
    assert_string_equal(list.names[0], "Z");
    assert_string_equal(list.names[1], "a");
    assert_string_equal(list.names[3], "deep");
    tare_file_list_free(&list);
    assert_int_equal(tare_file_glob(&list, temp_path("l/[ab]")), TARE_OK);
    assert_int_equal(list.count, 2);
    assert_string_equal(tare_path_base(list.names[0]), "a");
    tare_file_list_free(&list);
    assert_int_equal(tare_file_glob(&list, temp_path("l/*.none")), TARE_NOT_FOUND);
    tare_file_list_free(&list);
}

static void tree__is_copied_and_removed(void **state) {
    (void)state;
    assert_int_equal(tare_file_make_folders(temp_path("tree/x/y"), NULL), TARE_OK);
    temp_file("tree/x/y/f", "123", 3);
    temp_file("tree/g", "", 0);
    assert_int_equal(tare_file_copy_tree(temp_path("tree"), temp_path("tree"), temp_path("copy")), TARE_OK);
    assert_int_equal(tare_file_size(temp_path("copy/x/y/f")), 3);
    assert_int_equal(tare_file_size(temp_path("copy/g")), 0);
    assert_int_equal(tare_file_copy_tree(temp_path("tree"), temp_path("tree"), temp_path("copy")), TARE_IO);
    assert_int_equal(tare_file_sync_tree(temp_path("copy")), TARE_OK);
    assert_int_equal(symlink("/", temp_path("copy/link")), 0);
    assert_int_equal(tare_file_remove_tree(temp_path("copy")), TARE_OK);
    assert_int_equal(tare_file_kind_of(temp_path("copy")), TARE_FILE_NONE);
    assert_int_equal(tare_file_remove_tree(temp_path("copy")), TARE_OK);
}

static size_t entries_of(const char *folder) {
    struct tare_file_list list;
    size_t count;
    assert_int_equal(tare_file_list(&list, folder), TARE_OK);
    count = list.count;
    tare_file_list_free(&list);
    return count;
}

static void assert_content(const char *path, const char *expected) {
    char *data;
    size_t size;
    assert_int_equal(tare_file_read(&data, &size, path), TARE_OK);
    assert_string_equal(data, expected);
    tare_free(data);
}

static void output_file__any_failing_operation_leaves_the_old_file(void **state) {
    tare_status status = TARE_IO;
    int64_t n;
    (void)state;
    assert_int_equal(tare_file_make_folders(temp_path("out"), NULL), TARE_OK);
    temp_file("out/f", "old", 3);
    for (n = 1; n < 100; n++) {
        tare_file_fail_at(n);
        status = tare_file_write(temp_path("out/f"), "new!", 4);
        tare_file_fail_at(0);
        assert_int_equal(entries_of(temp_path("out")), 1);
        if (status == TARE_OK) break;
        assert_true(strlen(tare_error_text()) > 0);
        if (tare_file_size(temp_path("out/f")) != 4) assert_content(temp_path("out/f"), "old");
    }
    assert_int_equal(status, TARE_OK);
    assert_true(n >= 4);
    assert_content(temp_path("out/f"), "new!");
}

static void output_file__a_failed_write_cannot_be_completed(void **state) {
    static char block[100000];
    struct tare_output_file out;
    (void)state;
    temp_file("gap", "old", 3);
    assert_int_equal(tare_output_file_begin(&out, temp_path("gap")), TARE_OK);
    assert_int_equal(tare_output_file_write(&out, "head", 4), TARE_OK);
    tare_file_fail_at(1);
    assert_int_equal(tare_output_file_write(&out, block, sizeof block), TARE_IO);
    tare_file_fail_at(0);
    assert_int_equal(tare_output_file_write(&out, "tail", 4), TARE_OK);
    assert_int_equal(tare_output_file_commit(&out), TARE_IO);
    assert_non_null(strstr(tare_error_text(), "a part of it could not be written"));
    assert_content(temp_path("gap"), "old");
}

static void output_file__patches_what_was_written(void **state) {
    struct tare_output_file out;
    static char block[100000];
    (void)state;
    memset(block, '.', sizeof block);
    assert_int_equal(tare_output_file_begin(&out, temp_path("patched")), TARE_OK);
    assert_int_equal(tare_output_file_write(&out, "head", 4), TARE_OK);
    assert_int_equal(tare_output_file_write(&out, block, sizeof block), TARE_OK);
    assert_int_equal(tare_output_file_write(&out, "tail", 4), TARE_OK);
    assert_int_equal(tare_output_file_patch(&out, 0, "HEAD", 4), TARE_OK);
    assert_int_equal(tare_output_file_patch(&out, 100006, "xyz", 3), TARE_INTERNAL);
    assert_int_equal(tare_output_file_write(&out, "end", 3), TARE_OK);
    assert_int_equal(tare_output_file_commit(&out), TARE_OK);
    assert_int_equal(tare_file_size(temp_path("patched")), 100011);
    struct tare_mapping mapping;
    assert_int_equal(tare_file_map(&mapping, temp_path("patched")), TARE_OK);
    assert_memory_equal(mapping.data, "HEAD....", 8);
    assert_memory_equal(mapping.data + 100004, "tailend", 7);
    tare_file_unmap(&mapping);
}

static void output_dir__appears_whole(void **state) {
    struct tare_output_dir out;
    (void)state;
    assert_int_equal(tare_output_dir_begin(&out, temp_path("p/q/model/"), NULL), TARE_OK);
    assert_int_equal(tare_file_kind_of(temp_path("p/q/model")), TARE_FILE_NONE);
    char *inside = tare_path_join(out.temporary, "f");
    assert_int_equal(tare_file_write(inside, "1", 1), TARE_OK);
    tare_free(inside);
    assert_int_equal(tare_output_dir_commit(&out), TARE_OK);
    assert_content(temp_path("p/q/model/f"), "1");
    assert_int_equal(entries_of(temp_path("p/q")), 1);
}

static void output_dir__refuses_what_is_there(void **state) {
    const struct tare_output_rules replace = { .overwrite = true };
    struct tare_output_dir out;
    char text[600];
    (void)state;
    assert_int_equal(tare_file_make_folders(temp_path("there"), NULL), TARE_OK);
    temp_file("there/f", "", 0);
    assert_int_equal(tare_output_dir_begin(&out, temp_path("there"), NULL), TARE_INVALID_ARGUMENT);
    snprintf(text, sizeof text, "Output directory already exists: %s", temp_path("there"));
    assert_string_equal(tare_error_text(), text);
    temp_file("file", "", 0);
    assert_int_equal(tare_output_dir_begin(&out, temp_path("file"), &replace), TARE_INVALID_ARGUMENT);
}

static void output_dir__refuses_what_came_in_between(void **state) {
    struct tare_output_dir out;
    (void)state;
    assert_int_equal(tare_output_dir_begin(&out, temp_path("race/m"), NULL), TARE_OK);
    assert_int_equal(tare_file_make_folders(temp_path("race/m"), NULL), TARE_OK);
    temp_file("race/m/f", "", 0);
    assert_int_equal(tare_output_dir_commit(&out), TARE_INVALID_ARGUMENT);
    assert_int_equal(entries_of(temp_path("race")), 1);
}

static void output_dir__abort_removes_it_and_the_parents_made(void **state) {
    struct tare_output_dir out;
    (void)state;
    assert_int_equal(tare_output_dir_begin(&out, temp_path("gone/further/m"), NULL), TARE_OK);
    tare_output_dir_abort(&out);
    assert_int_equal(tare_file_kind_of(temp_path("gone")), TARE_FILE_NONE);
    assert_int_equal(tare_file_kind_of(temp_folder()), TARE_FILE_DIRECTORY);
}

static tare_status replace_model(void) {
    const struct tare_output_rules replace = { .overwrite = true };
    struct tare_output_dir out;
    char *inside;
    tare_status status;
    TARE_TRY(tare_output_dir_begin(&out, temp_path("w/model"), &replace));
    inside = tare_path_join(out.temporary, "f");
    status = tare_file_write(inside, "new", 3);
    tare_free(inside);
    if (status == TARE_OK) return tare_output_dir_commit(&out);
    tare_output_dir_abort(&out);
    return status;
}

static void output_dir__overwrite_keeps_old_or_new_at_each_failure(void **state) {
    tare_status status = TARE_IO;
    (void)state;
    for (int64_t n = 1; status != TARE_OK && n < 200; n++) {
        assert_int_equal(tare_file_remove_tree(temp_path("w")), TARE_OK);
        assert_int_equal(tare_file_make_folders(temp_path("w/model"), NULL), TARE_OK);
        temp_file("w/model/f", "old", 3);
        tare_file_fail_at(n);
        status = replace_model();
        tare_file_fail_at(0);
        assert_int_equal(tare_file_size(temp_path("w/model/f")), 3);
        if (status == TARE_OK) assert_content(temp_path("w/model/f"), "new");
    }
    assert_int_equal(status, TARE_OK);
    assert_int_equal(entries_of(temp_path("w")), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map__gives_the_bytes),
        cmocka_unit_test(map__takes_an_empty_file),
        cmocka_unit_test(map__says_path_and_reason),
        cmocka_unit_test(read__adds_a_nul_and_fits_sizes_around_the_buffer),
        cmocka_unit_test(paths__are_taken_apart_and_joined),
        cmocka_unit_test(list_and_glob__are_sorted),
        cmocka_unit_test(tree__is_copied_and_removed),
        cmocka_unit_test(output_file__any_failing_operation_leaves_the_old_file),
        cmocka_unit_test(output_file__a_failed_write_cannot_be_completed),
        cmocka_unit_test(output_file__patches_what_was_written),
        cmocka_unit_test(output_dir__appears_whole),
        cmocka_unit_test(output_dir__refuses_what_is_there),
        cmocka_unit_test(output_dir__refuses_what_came_in_between),
        cmocka_unit_test(output_dir__abort_removes_it_and_the_parents_made),
        cmocka_unit_test(output_dir__overwrite_keeps_old_or_new_at_each_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
