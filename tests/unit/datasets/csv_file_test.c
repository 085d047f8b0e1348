/* CSV files: quoting, dtypes of columns, errors by line, and inputs made of columns by a DatasetSpec. */
#include "datasets/csv_file.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "datasets/foreign_file.h"
#include "datasets/source.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static tare_status open_text(struct tare_csv_file **out, const char *text) {
    uint8_t *bytes = tare_malloc(strlen(text) + 1);
    assert_non_null(bytes);
    memcpy(bytes, text, strlen(text));
    return tare_csv_file_open(out, "t.csv", bytes, strlen(text));
}

static struct tare_csv_file *open_ok(const char *text) {
    struct tare_csv_file *file;
    if (open_text(&file, text) != TARE_OK) fail_msg("%s", tare_error_text());
    return file;
}

static void assert_text(const struct tare_csv_file *file, int64_t row, const char *column, const char *expected) {
    struct tare_features features;
    assert_int_equal(tare_csv_file_read(&features, file, row), TARE_OK);
    const struct tare_feature *feature = tare_features_find(&features, column);
    assert_non_null(feature);
    assert_int_equal(feature->values.dtype, TARE_DT_STRING);
    const struct tare_str *text = TARE_CONST_DATA(struct tare_str, &feature->values);
    assert_int_equal(text->size, strlen(expected));
    assert_memory_equal(text->data, expected, text->size);
    tare_features_reset(&features);
}

static void assert_number(const struct tare_csv_file *file, int64_t row, const char *column, int dtype,
                          double expected) {
    struct tare_features features;
    if (tare_csv_file_read(&features, file, row) != TARE_OK) fail_msg("%s", tare_error_text());
    const struct tare_feature *feature = tare_features_find(&features, column);
    assert_non_null(feature);
    assert_int_equal(feature->values.dtype, dtype);
    const double got = tare_tensor_get_f64(&feature->values, 0);
    if (got != expected) fail_msg("%s in row %d: expected %g, got %g", column, (int)row, expected, got);
    tare_features_reset(&features);
}

static void values__may_be_quoted(void **state) {
    struct tare_csv_file *file =
        open_ok("\xef\xbb\xbfname,\"a \"\"note\"\"\"\r\n\"x, y\",\"two\nlines\"\r\n\r\n z ,\"\"\n");
    (void)state;
    assert_int_equal(tare_csv_file_rows(file), 2);
    assert_text(file, 0, "name", "x, y");
    assert_text(file, 0, "a \"note\"", "two\nlines");
    assert_text(file, 1, "name", " z ");
    assert_text(file, 1, "a \"note\"", "");
    assert_int_equal(tare_csv_file_offset(file, 0), 22);
    tare_csv_file_close(file);
}

static void line_breaks__do_not_belong_to_values(void **state) {
    struct tare_csv_file *file = open_ok("a,b\r\n1,x\r\n2,\"x\r\"\n3,\"x\r\"\r\n4,\"x\"\r\n5,x\r");
    static const char *const expected[] = { "x", "x\r", "x\r", "x", "x" };
    (void)state;
    for (int row = 0; row < 5; row++)
        assert_text(file, row, "b", expected[row]);
    tare_csv_file_close(file);
}

static void columns__have_the_narrowest_dtype_of_their_values(void **state) {
    struct tare_csv_file *file = open_ok("i\tf\ts\tbig\tmixed\n1\t2\t3\t9223372036854775807\t9223372036854775808\n"
                                         "-4\t 5e-1\tx\t9223372036854775808\t.5");
    (void)state;
    assert_int_equal(tare_csv_file_rows(file), 2);
    assert_number(file, 0, "i", TARE_DT_INT64, 1);
    assert_number(file, 1, "i", TARE_DT_INT64, -4);
    assert_number(file, 0, "f", TARE_DT_FLOAT, 2);
    assert_number(file, 1, "f", TARE_DT_FLOAT, 0.5);
    assert_text(file, 0, "s", "3");
    assert_text(file, 0, "big", "9223372036854775807"); /* float32 would make other integers of them */
    assert_text(file, 1, "big", "9223372036854775808");
    assert_number(file, 0, "mixed", TARE_DT_FLOAT, 0x1p63);
    tare_csv_file_close(file);
}

static void numbers__that_float32_does_not_hold_are_errors(void **state) {
    static const char *const bad[] = { "1e300", "-1e39", "1e999", "3.5e38" };
    static const char *const good[] = { "inf", "-INF", "nan", "3.4e38", "1e-300" };
    struct tare_features features;
    char text[100];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "a,b\n1.5,2\n%s,3\n", bad[i]);
        struct tare_csv_file *file = open_ok(text);
        assert_int_equal(tare_csv_file_read(&features, file, 1), TARE_OK);
        assert_null(tare_features_find(&features, "a"));
        assert_int_equal(tare_features_check(&features, "b"), TARE_OK);
        assert_int_equal(tare_features_check(&features, "a"), TARE_TYPE);
        snprintf(text, sizeof text, "line 3: column 'a': %s does not fit float32 (expected -3.40282e+38 to", bad[i]);
        if (!strstr(tare_error_text(), text)) fail_msg("%s", tare_error_text());
        tare_features_reset(&features);
        tare_csv_file_close(file);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "a,b\n1.5,2\n%s,3\n", good[i]);
        struct tare_csv_file *file = open_ok(text);
        assert_int_equal(tare_csv_file_read(&features, file, 1), TARE_OK);
        assert_non_null(tare_features_find(&features, "a"));
        tare_features_reset(&features);
        tare_csv_file_close(file);
    }
}

static void values__that_are_empty_are_absent_numbers(void **state) {
    struct tare_csv_file *file = open_ok("a;b\n1;\n;2,5\n");
    struct tare_features features;
    (void)state;
    assert_int_equal(tare_csv_file_read(&features, file, 0), TARE_OK);
    assert_int_equal(features.count, 2); /* b is a string column: 2,5 is not a number */
    tare_features_reset(&features);
    assert_int_equal(tare_csv_file_read(&features, file, 1), TARE_OK);
    assert_null(tare_features_find(&features, "a"));
    tare_features_reset(&features);
    tare_csv_file_close(file);
}

/* The list of values is not copied for each further value. */
static void rows__take_memory_in_proportion_to_their_columns(void **state) {
    enum { COLUMNS = 4000 };
    struct tare_strbuf text = { 0 };
    struct tare_features features;
    (void)state;
    for (int i = 0; i < COLUMNS; i++)
        tare_strbuf_printf(&text, "%sc%d", i ? "," : "", i);
    for (int i = 0; i < COLUMNS; i++)
        tare_strbuf_puts(&text, i ? ",7" : "\n7");
    struct tare_csv_file *file = open_ok(tare_strbuf_text(&text));
    tare_strbuf_free(&text);
    assert_int_equal(tare_csv_file_read(&features, file, 0), TARE_OK);
    assert_int_equal(features.count, COLUMNS);
    const size_t most = COLUMNS * (4 * sizeof *features.items + 256);
    if (features.arena.bytes > most)
        fail_msg("%d columns: expected at most %zu bytes, got %zu", COLUMNS, most, features.arena.bytes);
    tare_features_reset(&features);
    tare_csv_file_close(file);
}

static void files__with_errors_name_the_line(void **state) {
    static const struct {
        const char *text, *error;
    } cases[] = {
        { "", "t.csv: the file is empty (expected the names of the columns)" },
        { "\xef\xbb\xbf \r\n\n", "t.csv: the file is empty (expected the names of the columns)" },
        { "1,2\n3,4\n", "t.csv: line 1: numbers (expected the names of the columns)" },
        { "a,a\n1,2\n", "t.csv: line 1: duplicate column 'a'" },
        { "a,\n1,2\n", "t.csv: line 1: column 2 has no name" },
        { "\"a,b\n1,2\n", "t.csv: line 1: a quoted column name is not closed" },
    };
    struct tare_csv_file *file;
    struct tare_features features;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(open_text(&file, cases[i].text), TARE_CORRUPT);
        assert_string_equal(tare_error_text(), cases[i].error);
        assert_null(file);
    }
    file = open_ok("a,b\n1,2\n1,2,3\n1,\"2\n");
    assert_int_equal(tare_csv_file_rows(file), 3);
    assert_int_equal(tare_csv_file_read(&features, file, 1), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "line 3: wrong number of values (expected 2 as in line 1, got 3)");
    tare_features_reset(&features);
    assert_int_equal(tare_csv_file_read(&features, file, 2), TARE_CORRUPT);
    assert_string_equal(tare_error_text(), "line 4: a quoted value is not closed");
    tare_features_reset(&features);
    tare_csv_file_close(file);
}

/* A damaged row, which --max-bad passes over, does not make text of the other rows' numbers. */
static void rows__with_errors_do_not_count_for_the_dtype(void **state) {
    struct tare_csv_file *file = open_ok("a,b\n1,2\nx\n1,y,z\n3,\"4\n5,6\n");
    (void)state;
    assert_int_equal(tare_csv_file_rows(file), 4);
    assert_number(file, 0, "a", TARE_DT_INT64, 1);
    assert_number(file, 0, "b", TARE_DT_INT64, 2);
    tare_csv_file_close(file);
}

static void allocations__that_fail_are_reported(void **state) {
    (void)state;
    for (int n = 1;; n++) {
        struct tare_csv_file *file;
        struct tare_features features = { 0 };
        tare_alloc_fail_at(0);
        uint8_t *bytes = tare_malloc(20);
        memcpy(bytes, "a,bb\n1,longer text\n", 19);
        tare_alloc_fail_at(n);
        tare_status status = tare_csv_file_open(&file, "t.csv", bytes, 19);
        if (status == TARE_OK) status = tare_csv_file_read(&features, file, 0);
        const bool done = tare_alloc_count() < n;
        tare_alloc_fail_at(0);
        if (!done) assert_int_equal(status, TARE_NO_MEMORY);
        if (done) assert_int_equal(status, TARE_OK);
        if (done) assert_int_equal(features.count, 2);
        tare_features_reset(&features);
        tare_csv_file_close(file);
        if (done) break;
    }
}

static struct tare_dataset_spec *spec_of(const char *text) {
    struct tare_dataset_spec *spec;
    if (tare_dataset_spec_parse(&spec, text, strlen(text), "spec") != TARE_OK) fail_msg("%s", tare_error_text());
    return spec;
}

static void spec__makes_inputs_and_labels_of_columns(void **state) {
    static const char table[] = "age,city,income,class\n41,Rome,2.5,1\n,Oslo,1.25,0\n";
    const char *path = temp_file("people.csv", table, sizeof table - 1);
    struct tare_dataset_spec *spec =
        spec_of("input { name: 'x' column: 'age' column: 'income' shape: 2 default_value: -1 }\n"
                "input { name: 'city' shape: 1 }\nlabel { feature: 'class' whole: true }");
    const struct tare_source_options options = { .spec = spec };
    struct tare_source *source;
    struct tare_sample sample;
    struct tare_record where;
    bool end;
    (void)state;
    assert_int_equal(tare_source_new(&source, &path, 1, &options), TARE_OK);
    for (int row = 0; row < 2; row++) {
        if (tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK) fail_msg("%s", tare_error_text());
        assert_false(end);
        const struct tare_tensor *x = tare_sample_find(&sample, "x"), *city = tare_sample_find(&sample, "city");
        const struct tare_shape expected = tare_shape_make(2, 1, 2);
        assert_true(tare_shape_equal(&x->shape, &expected));
        assert_true(TARE_CONST_DATA(float, x)[0] == (row ? -1.0f : 41.0f));
        assert_true(TARE_CONST_DATA(float, x)[1] == (row ? 1.25f : 2.5f));
        assert_memory_equal(TARE_CONST_DATA(struct tare_str, city)->data, row ? "Oslo" : "Rome", 4);
        assert_int_equal(tare_tensor_get_i64(tare_sample_find(&sample, "label"), 0), row ? 0 : 1);
        tare_sample_reset(&sample);
    }
    assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
    assert_true(end);
    tare_source_free(source);
    tare_dataset_spec_free(spec);
}

static void assert_dtypes(const char *path, const char *text, int dtype, double missing) {
    struct tare_dataset_spec *spec = spec_of(text);
    const struct tare_source_options options = { .spec = spec };
    struct tare_source *source;
    struct tare_record where;
    bool end;
    assert_int_equal(tare_source_new(&source, &path, 1, &options), TARE_OK);
    for (int row = 0; row < 2; row++) {
        struct tare_sample sample;
        if (tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK) fail_msg("%s", tare_error_text());
        const struct tare_tensor *x = tare_sample_find(&sample, "x");
        if (x->dtype != dtype) fail_msg("%s: row %d is %s", text, row, tare_dtype_name(x->dtype));
        const double got = tare_tensor_get_f64(x, x->elements - 1), expected = row ? missing : 16777217;
        if (got != expected) fail_msg("%s: row %d is %g (expected %g)", text, row, got, expected);
        tare_sample_reset(&sample);
    }
    tare_source_free(source);
    tare_dataset_spec_free(spec);
}

/* A value that is missing gets the dtype of its column: float64, as the number in the spec, would be another input. */
static void spec__gives_missing_numbers_the_dtype_of_their_column(void **state) {
    static const char table[] = "k,y,n\n1,0.5,16777217\n2,1.5,\n";
    const char *path = temp_file("missing.csv", table, sizeof table - 1);
    (void)state;
    assert_dtypes(path, "input { name: 'x' feature: 'n' shape: 1 default_value: 7 }", TARE_DT_INT64, 7);
    assert_dtypes(path, "input { name: 'x' column: 'k' column: 'n' default_value: -7 shape: 2 }", TARE_DT_INT64, -7);
    assert_dtypes(path, "input { name: 'x' feature: 'n' shape: 1 default_value: 0.5 type: FLOAT64 }", TARE_DT_DOUBLE,
                  0.5);
}

/* A value that makes a column float32 makes it float32 in all records. */
static void spec__converts_integers_if_the_default_value_is_not_whole(void **state) {
    const char *path = temp_file("default.csv", "n,k\n16777216,1\n,1\n", 18);
    struct tare_dataset_spec *spec = spec_of("input { name: 'x' feature: 'n' shape: 1 default_value: 0.5 }\n"
                                             "input { name: 'y' column: 'k' column: 'n' shape: 2 default_value: 0.5 }");
    const struct tare_source_options options = { .spec = spec };
    struct tare_source *source;
    struct tare_record where;
    bool end;
    (void)state;
    assert_int_equal(tare_source_new(&source, &path, 1, &options), TARE_OK);
    for (int row = 0; row < 2; row++) {
        struct tare_sample sample;
        if (tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK) fail_msg("%s", tare_error_text());
        for (size_t i = 0; i < 2; i++) {
            const struct tare_tensor *value = &sample.values[i];
            if (value->dtype != TARE_DT_FLOAT)
                fail_msg("%s, row %d: %s", sample.keys[i], row, tare_dtype_name(value->dtype));
            assert_true(TARE_CONST_DATA(float, value)[i] == (row ? 0.5f : 16777216));
        }
        tare_sample_reset(&sample);
    }
    tare_source_free(source);
    tare_dataset_spec_free(spec);
}

/* Each column of two files: the first record of each file has that dtype, in either order of the files. */
static void columns__have_one_dtype_in_all_files(void **state) {
    static const char one[] = "ints,floats,texts,large,only,empty\n1,1,1,1,1,\n";
    static const char two[] = "large,empty,ints,texts,floats\n99999999999999999999,2.5,2,x,0.5\n";
    const char *const paths[] = { temp_file("one.csv", one, sizeof one - 1),
                                  temp_file("two.csv", two, sizeof two - 1) };
    static const struct {
        const char *key;
        int dtype;
    } columns[] = {
        { "ints", TARE_DT_INT64 }, { "floats", TARE_DT_FLOAT }, { "texts", TARE_DT_STRING }, { "large", TARE_DT_STRING }
    };
    (void)state;
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        for (int swap = 0; swap < 2; swap++) {
            char text[200];
            snprintf(text, sizeof text,
                     "input { name: 'x' feature: '%s' } input { name: 'e' feature: 'empty' shape: 1 "
                     "default_value: 0 }",
                     columns[c].key);
            struct tare_dataset_spec *spec = spec_of(text);
            const struct tare_source_options options = { .spec = spec };
            const char *const both[] = { paths[swap], paths[!swap] };
            struct tare_source *source;
            struct tare_record where;
            bool end;
            assert_int_equal(tare_source_new(&source, both, 2, &options), TARE_OK);
            for (int row = 0; row < 2; row++) {
                struct tare_sample sample;
                if (tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK)
                    fail_msg("%s", tare_error_text());
                if (sample.values[0].dtype != columns[c].dtype)
                    fail_msg("%s, file %d: %s", columns[c].key, row, tare_dtype_name(sample.values[0].dtype));
                assert_int_equal(sample.values[1].dtype, TARE_DT_FLOAT); /* also where it is absent */
                tare_sample_reset(&sample);
            }
            tare_source_free(source);
            tare_dataset_spec_free(spec);
        }
}

/* A file that changes between the two passes, as one that could be read only once, is not read as another dtype. */
static void columns__of_a_file_that_was_not_compared_must_fit(void **state) {
    struct tare_csv_columns *columns = tare_csv_columns_new();
    struct tare_csv_file *first = open_ok("a,b\n1,0.5\n"), *fits = open_ok("b,a,c\n1,,x\n"),
                         *other = open_ok("a\n0.5\n");
    (void)state;
    assert_non_null(columns);
    assert_int_equal(tare_csv_columns_add(columns, first), TARE_OK);
    assert_int_equal(tare_csv_file_share(first, columns), TARE_OK);
    assert_int_equal(tare_csv_file_share(fits, columns), TARE_OK);
    assert_number(fits, 0, "b", TARE_DT_FLOAT, 1);
    assert_int_equal(tare_csv_file_share(other, columns), TARE_TYPE);
    assert_non_null(strstr(tare_error_text(), "t.csv: column 'a' is float32 here and int64 in the files before"));
    tare_csv_file_close(first);
    tare_csv_file_close(fits);
    tare_csv_file_close(other);
    tare_csv_columns_free(columns);
}

static void spec__reports_columns_that_do_not_fit(void **state) {
    static const struct {
        const char *spec, *error;
    } cases[] = {
        { "input { name: 'x' column: 'aeg' }", "has no feature 'aeg'; did you mean 'age'?" },
        { "input { name: 'x' column: 'city' }", "input 'x': column 'city' is string (expected numbers) because of " },
        { "input { name: 'x' column: 'city' }", "people.csv: line 2: 'Rome'" },
        { "input { name: 'x' feature: 'city' type: INT32 }", "column 'city' is text because of " },
        { "input { name: 'x' feature: 'id' type: INT64 }",
          "people.csv: line 2: '99999999999999999999', which int64 does not hold" },
        { "input { name: 'x' column: 'age' column: 'far' shape: 2 default_value: 0 }",
          "people.csv: record 0 at 16: input 'x': line 2: column 'far': 1e300 does not fit float32" },
        { "input { name: 'x' feature: 'far' shape: 1 default_value: 0 }", "column 'far': 1e300 does not fit float32" },
    };
    static const char table[] = "age,city,id,far\n41,Rome,99999999999999999999,1e300\n";
    const char *path = temp_file("people.csv", table, sizeof table - 1);
    struct tare_dataset_spec *bad;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_dataset_spec *spec = spec_of(cases[i].spec);
        const struct tare_source_options options = { .spec = spec };
        struct tare_source *source;
        struct tare_sample sample;
        struct tare_record where;
        bool end;
        assert_int_equal(tare_source_new(&source, &path, 1, &options), TARE_OK);
        assert_true(tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK);
        if (!strstr(tare_error_text(), cases[i].error)) fail_msg("%s", tare_error_text());
        tare_source_free(source);
        tare_dataset_spec_free(spec);
    }
    static const char both[] = "input { name: 'x' feature: 'a' column: 'b' }";
    assert_int_equal(tare_dataset_spec_parse(&bad, both, sizeof both - 1, "spec"), TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_text(), "feature and column exclude each other"));
}

static void files__of_other_formats_name_the_conversion(void **state) {
    static const struct {
        const char *name, *bytes;
        size_t size;
        const char *error;
    } cases[] = {
        { "a.h5", "\x89HDF\r\n\x1a\n_______________", 20, "a.h5: an HDF5 file (expected TFRecord, NPY, NPZ, CSV" },
        { "a.parquet", "PAR1________________", 20, "pandas.read_parquet('FILE').to_csv" },
        { "a.json", "{\"image\": [1, 2, 3]}", 20, "a JSON file" },
        { "a.wav", "RIFF\1\0\0\0WAVEfmt ____", 20, "a WAV file" },
        { "a.webp", "RIFF\1\0\0\0WEBPVP8 ____", 20, "a WebP image" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = temp_file(cases[i].name, cases[i].bytes, cases[i].size);
        struct tare_source *source;
        assert_int_equal(tare_source_new(&source, &path, 1, NULL), TARE_UNSUPPORTED);
        if (!strstr(tare_error_text(), cases[i].error)) fail_msg("%s", tare_error_text());
    }
    const char *bucket = "gs://bucket/data.tfrecord";
    struct tare_source *source;
    assert_int_equal(tare_source_new(&source, &bucket, 1, NULL), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_text(), "gcloud storage cp gs://bucket/data.tfrecord ."));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values__may_be_quoted),
        cmocka_unit_test(line_breaks__do_not_belong_to_values),
        cmocka_unit_test(columns__have_the_narrowest_dtype_of_their_values),
        cmocka_unit_test(numbers__that_float32_does_not_hold_are_errors),
        cmocka_unit_test(values__that_are_empty_are_absent_numbers),
        cmocka_unit_test(rows__take_memory_in_proportion_to_their_columns),
        cmocka_unit_test(files__with_errors_name_the_line),
        cmocka_unit_test(rows__with_errors_do_not_count_for_the_dtype),
        cmocka_unit_test(allocations__that_fail_are_reported),
        cmocka_unit_test(spec__makes_inputs_and_labels_of_columns),
        cmocka_unit_test(spec__gives_missing_numbers_the_dtype_of_their_column),
        cmocka_unit_test(spec__converts_integers_if_the_default_value_is_not_whole),
        cmocka_unit_test(columns__have_one_dtype_in_all_files),
        cmocka_unit_test(columns__of_a_file_that_was_not_compared_must_fit),
        cmocka_unit_test(spec__reports_columns_that_do_not_fit),
        cmocka_unit_test(files__of_other_formats_name_the_conversion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
