/* What a survey finds; how data sets are made and split. */
#include "datasets/survey.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "datasets/make.h"
#include "datasets/partition.h"
#include "datasets/source.h"
#include "datasets/tfrecord.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GOLDEN TARE_SOURCE_DIR "/tests/golden/"

enum { RECORDS = 6 };

/* x: float32 [1, 2] of i and 10 * i; half of them swapped keys; c: always 7. Record 4 is record 1; record 3 holds NaN
 * and infinity and has x of three values. */
static int make_file(void **state) {
    struct tare_tfrecord_writer *writer;
    (void)state;
    assert_int_equal(tare_tfrecord_create(&writer, temp_path("data.tfrecord")), TARE_OK);
    for (int i = 0; i < RECORDS; i++) {
        int number = i == 4 ? 1 : i;
        const char *const keys[][2] = { { "x", "c" }, { "c", "x" } };
        struct tare_shape shape = tare_shape_make(2, 1, i == 3 ? 3 : 2);
        float x[] = { (float)number, (float)(10 * number), NAN };
        struct tare_tensor values[2];
        bool swapped = i >= 3;
        void *data;
        size_t size;
        if (i == 3) x[1] = INFINITY;
        assert_int_equal(tare_tensor_from(&values[swapped], TARE_DT_FLOAT, &shape, x), TARE_OK);
        assert_int_equal(tare_tensor_scalar_i32(&values[!swapped], 7), TARE_OK);
        assert_int_equal(tare_sample_encode(&data, &size, keys[swapped], values, 2), TARE_OK);
        assert_int_equal(tare_tfrecord_write(writer, data, size), TARE_OK);
        tare_free(data);
        tare_tensor_reset(&values[0]);
        tare_tensor_reset(&values[1]);
    }
    assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
    return 0;
}

static void look(struct tare_survey *survey, const char *path) {
    const struct tare_survey_options options = { .limit = 0 };
    if (tare_survey_files(survey, &path, 1, &options) != TARE_OK) fail_msg("%s", tare_error_text());
}

static void survey__finds_types_shapes_and_values(void **state) {
    struct tare_survey survey;
    const struct tare_survey_key *x, *c;
    (void)state;
    look(&survey, temp_path("data.tfrecord"));
    assert_int_equal(survey.records, RECORDS);
    assert_int_equal(survey.bad, 0);
    assert_string_equal(survey.kind, "RepresentativeDataSample");
    assert_string_equal(survey.files[0].format, "TFRecord");
    assert_int_equal(survey.files[0].bytes, tare_file_size(temp_path("data.tfrecord")));
    assert_int_equal(survey.n_keys, 2);
    x = &survey.keys[0];
    c = &survey.keys[1];
    assert_string_equal(x->name, "x");
    assert_int_equal(x->dtype, TARE_DT_FLOAT);
    assert_int_equal(x->shape.rank, 2);
    assert_int_equal(x->shape.dims[0], 1);
    assert_int_equal(x->shape.dims[1], -1);
    assert_int_equal(x->elements, 13);
    assert_int_equal(x->nan, 1);
    assert_int_equal(x->infinite, 1);
    assert_int_equal(x->first_nan.number, 3);
    assert_int_equal(x->zeros, 2);
    assert_true(x->least == 0 && x->most == 50);
    assert_false(x->constant);
    assert_string_equal(c->name, "c");
    assert_true(c->constant);
    assert_true(c->least == 7 && c->most == 7);
    assert_int_equal(c->records, RECORDS);
    tare_survey_free(&survey);
}

static void survey__finds_equal_records_whatever_the_order_of_keys(void **state) {
    struct tare_survey survey;
    (void)state;
    look(&survey, temp_path("data.tfrecord"));
    assert_int_equal(survey.duplicates, 1);
    assert_int_equal(survey.listed[0].at.number, 4);
    assert_int_equal(survey.listed[0].first.number, 1);
    tare_survey_free(&survey);
}

/* A message field of length-delimited bytes. */
static void put_field(struct tare_strbuf *out, int number, const struct tare_strbuf *body) {
    assert_true(body->size < 128);
    tare_strbuf_putc(out, (char)(number << 3 | 2));
    tare_strbuf_putc(out, (char)body->size);
    tare_strbuf_append(out, tare_strbuf_text(body), body->size);
}

/* A tf.SequenceExample with the feature list "l" of so many steps, each int64_list { 7, 8 }; steps < 0: a tf.Example
 * with the feature "l" and an empty float_list. */
static void write_list(struct tare_tfrecord_writer *writer, int steps) {
    struct tare_strbuf value = { 0 }, list = { 0 }, entry = { 0 }, lists = { 0 }, record = { 0 };
    static const char ints[] = "\x1a\x04\x0a\x02\x07\x08", floats[] = "\x12\x00";
    tare_strbuf_append(&value, steps < 0 ? floats : ints, steps < 0 ? 2 : 6);
    for (int i = 0; i < steps; i++)
        put_field(&list, 1, &value);
    tare_strbuf_append(&entry, "\x0a\x01l", 3);
    put_field(&entry, 2, steps < 0 ? &value : &list);
    put_field(&lists, 1, &entry);
    put_field(&record, steps < 0 ? 1 : 2, &lists);
    assert_int_equal(tare_tfrecord_write(writer, tare_strbuf_text(&record), record.size), TARE_OK);
    tare_strbuf_free(&value);
    tare_strbuf_free(&list);
    tare_strbuf_free(&entry);
    tare_strbuf_free(&lists);
    tare_strbuf_free(&record);
}

/* Whether the empty list comes first or last, the other records show its type. */
static void survey__finds_no_type_in_empty_lists(void **state) {
    static const int cases[][3] = { { 0, 2, 3 }, { 3, 2, 0 }, { 2, -1, 2 }, { -1, 2, 2 }, { 2, 0, 2 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_tfrecord_writer *writer;
        struct tare_survey survey;
        assert_int_equal(tare_tfrecord_create(&writer, temp_path("lists.tfrecord")), TARE_OK);
        for (int k = 0; k < 3; k++)
            write_list(writer, cases[i][k]);
        assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
        look(&survey, temp_path("lists.tfrecord"));
        assert_int_equal(survey.bad, 0);
        assert_int_equal(survey.n_keys, 1);
        const struct tare_survey_key *key = &survey.keys[0];
        if (key->mixed || key->dtype != TARE_DT_INT64)
            fail_msg("case %zu: %s%s", i, tare_dtype_name(key->dtype), key->mixed ? ", mixed" : "");
        if (key->shape.rank != 2 || key->shape.dims[0] != -1 || key->shape.dims[1] != 2)
            fail_msg("case %zu: rank %d", i, key->shape.rank);
        assert_int_equal(key->records, 3);
        tare_survey_free(&survey);
    }
}

/* Keys are in the order of the columns, also those that the first records lack. */
static void survey__orders_columns_as_the_header(void **state) {
    static const char *const names[] = { "a", "b", "c", "d", "e" };
    static const char table[] = "a,b,c,d,e\n,2,,4,\n1,2,,4,\n1,2,3,4,5\n";
    struct tare_survey survey;
    FILE *file = fopen(temp_path("columns.csv"), "wb");
    (void)state;
    assert_non_null(file);
    assert_int_equal(fwrite(table, 1, sizeof table - 1, file), sizeof table - 1);
    fclose(file);
    look(&survey, temp_path("columns.csv"));
    assert_int_equal(survey.n_keys, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(survey.keys[i].name, names[i]);
    assert_int_equal(survey.keys[0].records, 2);
    assert_int_equal(survey.keys[2].records, 1);
    assert_int_equal(survey.keys[3].records, 3);
    tare_survey_free(&survey);
}

static void survey__tells_kinds_and_features_apart(void **state) {
    const char *paths[] = { GOLDEN "examples/images.tfrecord", GOLDEN "examples/sequences.tfrecord" };
    const struct tare_survey_options options = { .limit = 0 };
    struct tare_survey survey;
    const struct tare_survey_key *jpeg;
    (void)state;
    assert_int_equal(tare_survey_files(&survey, paths, 1, &options), TARE_OK);
    assert_string_equal(survey.kind, "tf.Example");
    jpeg = &survey.keys[0];
    assert_string_equal(jpeg->name, "image/jpeg");
    assert_int_equal(jpeg->dtype, TARE_DT_STRING);
    assert_int_equal(jpeg->images, 3);
    assert_int_equal(jpeg->shortest, 1042);
    assert_int_equal(jpeg->longest, 2038);
    assert_string_equal(survey.keys[9].name, "rare");
    assert_int_equal(survey.keys[9].records, 1);
    tare_survey_free(&survey);
    assert_int_equal(tare_survey_files(&survey, paths, 2, &options), TARE_OK);
    assert_string_equal(survey.kind, "mixed");
    tare_survey_free(&survey);
}

static void assert_texts(const char *name, const char *csv, const char *const *texts, size_t count, bool more) {
    struct tare_survey survey;
    look(&survey, temp_file(name, csv, strlen(csv)));
    const struct tare_survey_key *key = &survey.keys[0];
    assert_int_equal(key->dtype, TARE_DT_STRING);
    assert_int_equal(key->n_texts, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(key->texts[i], texts[i]);
    assert_int_equal(key->has_more_texts, more);
    tare_survey_free(&survey);
}

static void survey__lists_the_first_distinct_texts(void **state) {
    static const char *const few[] = { "red", "", "blue" }, *const one[] = { "x" };
    static const char *const many[] = { "a", "b", "c", "d", "e", "f", "g", "h" };
    (void)state;
    assert_texts("few.csv", "k,n\nred,1\n,2\nblue,3\nred,4\n", few, 3, false);
    assert_texts("many.csv", "k,n\na,1\nb,1\nc,1\nd,1\ne,1\nf,1\ng,1\nh,1\na,1\ni,1\nj,1\n", many, 8, true);
    assert_texts("bytes.csv", "k,n\nx,1\n\x01\xff,2\n", one, 1, true);
    assert_texts("long.csv", "k,n\nx,1\n0123456789012345678901234567890123456789012345678901234567890abc,2\n", one, 1,
                 true);
}

static void survey__shows_records_of_no_known_kind_as_bytes(void **state) {
    struct tare_tfrecord_writer *writer;
    struct tare_survey survey;
    (void)state;
    assert_int_equal(tare_tfrecord_create(&writer, temp_path("words.tfrecord")), TARE_OK);
    assert_int_equal(tare_tfrecord_write(writer, "word", 4), TARE_OK);
    assert_int_equal(tare_tfrecord_write(writer, "", 0), TARE_OK);
    assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
    look(&survey, temp_path("words.tfrecord"));
    assert_int_equal(survey.records, 2);
    assert_int_equal(survey.bad, 0);
    assert_string_equal(survey.kind, "unknown");
    assert_string_equal(survey.keys[0].name, "(bytes)");
    assert_int_equal(survey.keys[0].shortest, 0);
    assert_int_equal(survey.keys[0].longest, 4);
    tare_survey_free(&survey);
}

static void survey__counts_bad_records_and_goes_on(void **state) {
    struct tare_survey survey;
    char *bytes;
    size_t size;
    (void)state;
    assert_int_equal(tare_file_read(&bytes, &size, temp_path("data.tfrecord")), TARE_OK);
    bytes[30] ^= 1;
    look(&survey, temp_file("bad.tfrecord", bytes, size - 1));
    assert_int_equal(survey.records, RECORDS - 2);
    assert_int_equal(survey.bad, 2);
    assert_int_equal(survey.files[0].bad, 2);
    assert_non_null(strstr(survey.bad_texts[0], "bad.tfrecord: record 0: corrupted record at 0"));
    assert_non_null(strstr(survey.bad_texts[1], "bad.tfrecord: record 5: truncated record at "));
    tare_survey_free(&survey);
    tare_free(bytes);
}

static void hash__sees_every_part_of_a_tensor(void **state) {
    const float values[] = { 0, 1, 2, 3 };
    const struct tare_shape shapes[] = { tare_shape_make(1, 4), tare_shape_make(2, 2, 2), tare_shape_make(2, 1, 4) };
    struct tare_content_hash hashes[8];
    struct tare_tensor t;
    int count = 0;
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tare_tensor_from(&t, TARE_DT_FLOAT, &shapes[i], values), TARE_OK);
        hashes[count++] = tare_content_hash_tensor(&t);
        tare_tensor_reset(&t);
    }
    assert_int_equal(tare_tensor_from(&t, TARE_DT_INT32, &shapes[0], values), TARE_OK);
    hashes[count++] = tare_content_hash_tensor(&t);
    TARE_DATA(int32_t, &t)[3] ^= 1;
    hashes[count++] = tare_content_hash_tensor(&t);
    tare_tensor_reset(&t);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            for (int lane = 0; lane < 2; lane++)
                assert_true(hashes[i].words[lane] != hashes[k].words[lane]);
}

/* ---- making ---- */

/* The first value of every x in a file of samples. */
static const char *xs_of(struct tare_strbuf *out, const char *path) {
    struct tare_source *source;
    struct tare_sample sample;
    struct tare_record where;
    bool end;
    out->size = 0;
    if (tare_source_new(&source, &path, 1, NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    for (;;) {
        if (tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK) fail_msg("%s", tare_error_text());
        if (end) break;
        tare_strbuf_printf(out, "%g ", tare_tensor_get_f64(tare_sample_find(&sample, "x"), 0));
        tare_sample_reset(&sample);
    }
    tare_source_free(source);
    return tare_strbuf_text(out);
}

static void make__writes_samples_of_arrays(void **state) {
    const char *npz = GOLDEN "npy/samples.npz", *npy = GOLDEN "npy/i2.npy";
    const char *const names[] = { "x", "again" }, *const paths[] = { npy, npy };
    const struct tare_make_options all = { .limit = 0 }, three = { .limit = 3 };
    struct tare_make_outcome outcome;
    struct tare_strbuf out = { 0 };
    (void)state;
    assert_int_equal(tare_dataset_make(&outcome, temp_path("m.tfrecord"), &npz, 1, NULL, NULL, &all), TARE_OK);
    assert_int_equal(outcome.records, 4);
    assert_string_equal(xs_of(&out, temp_path("m.tfrecord")), "0 6 12 18 ");
    assert_int_equal(tare_dataset_make(&outcome, temp_path("m.tfrecord.gz"), &npz, 1, NULL, NULL, &three), TARE_OK);
    assert_string_equal(xs_of(&out, temp_path("m.tfrecord.gz")), "0 6 12 ");
    assert_int_equal(tare_dataset_make_arrays(&outcome, temp_path("n.tfrecord"), names, paths, 2, NULL, &all), TARE_OK);
    assert_int_equal(outcome.records, 2);
    assert_string_equal(xs_of(&out, temp_path("n.tfrecord")), "-4 8 ");
    tare_strbuf_free(&out);
}

static void make__leaves_nothing_behind_when_it_fails(void **state) {
    const char *bad = GOLDEN "examples/images.tfrecord";
    const struct tare_make_options none = { .max_bad = 0 }, some = { .max_bad = 3 };
    struct tare_make_outcome outcome;
    struct tare_file_list before = { 0 }, after = { 0 };
    (void)state;
    assert_int_equal(tare_file_list(&before, temp_folder()), TARE_OK);
    assert_int_equal(tare_dataset_make(&outcome, temp_path("f.tfrecord"), &bad, 1, NULL, NULL, &none), TARE_TYPE);
    assert_non_null(strstr(tare_error_text(), "images.tfrecord: record 0 at 0: it is a tf.Example"));
    assert_int_equal(tare_dataset_make(&outcome, temp_path("f.tfrecord"), &bad, 1, NULL, NULL, &some),
                     TARE_INVALID_ARGUMENT);
    assert_non_null(strstr(tare_error_text(), "images.tfrecord: no records (expected at least 1)"));
    assert_int_equal(tare_file_list(&after, temp_folder()), TARE_OK);
    assert_int_equal(after.count, before.count);
    tare_file_list_free(&before);
    tare_file_list_free(&after);
}

/* ---- splitting ---- */

static void partition__has_the_sizes_that_were_asked_for(void **state) {
    static const struct {
        const char *counts, *fractions;
        int64_t expected[4];
        size_t count;
    } cases[] = {
        { "3,4", NULL, { 3, 4, 3 }, 3 },
        { "10", NULL, { 10 }, 1 },
        { "0,10", NULL, { 0, 10 }, 2 },
        { NULL, "0.8", { 8, 2 }, 2 },
        { NULL, "0.7,0.2,0.1", { 7, 2, 1 }, 3 },
        { NULL, "0.25,0.25", { 3, 2, 5 }, 3 },
        { NULL, "1", { 10 }, 1 },
        { NULL, "0.001", { 0, 10 }, 2 },
    };
    static const char *const bad_counts[] = { "", "3,", "x", "1.5", "-1", "11", "5,6", "3 4" };
    static const char *const bad_fractions[] = { "", "1.5", "0.9,0.2", "nan", "a", "0.5;0.5" };
    struct tare_partition partition;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_status status = cases[i].counts ? tare_partition_parse_counts(&partition, 10, cases[i].counts)
                                             : tare_partition_parse_fractions(&partition, 10, cases[i].fractions);
        assert_int_equal(status, TARE_OK);
        assert_int_equal(partition.count, cases[i].count);
        for (size_t k = 0; k < partition.count; k++)
            assert_int_equal(partition.sizes[k], cases[i].expected[k]);
    }
    for (size_t i = 0; i < sizeof bad_counts / sizeof *bad_counts; i++)
        assert_int_equal(tare_partition_parse_counts(&partition, 10, bad_counts[i]), TARE_USAGE);
    for (size_t i = 0; i < sizeof bad_fractions / sizeof *bad_fractions; i++)
        assert_int_equal(tare_partition_parse_fractions(&partition, 10, bad_fractions[i]), TARE_USAGE);
    assert_int_equal(tare_partition_equally(&partition, 10, 4), TARE_OK);
    assert_int_equal(
        partition.sizes[0] * 1000 + partition.sizes[1] * 100 + partition.sizes[2] * 10 + partition.sizes[3], 3322);
    assert_int_equal(tare_partition_equally(&partition, 10, 0), TARE_USAGE);
    assert_int_equal(tare_partition_equally(&partition, 10, 513), TARE_USAGE);
}

/* Drawn by the algorithm in Python, so that the same seed gives the same parts in each version. */
static void partition__is_drawn_by_the_seed(void **state) {
    struct tare_partition partition;
    uint16_t parts[10], again[10];
    char text[11] = "";
    (void)state;
    assert_int_equal(tare_partition_parse_counts(&partition, 10, "5,3"), TARE_OK);
    tare_partition_assign(parts, &partition, false, 7);
    for (int i = 0; i < 10; i++)
        assert_int_equal(parts[i], i < 5 ? 0 : i < 8 ? 1 : 2);
    tare_partition_assign(parts, &partition, true, 7);
    for (int i = 0; i < 10; i++)
        text[i] = (char)('0' + parts[i]);
    assert_string_equal(text, "2012000011");
    tare_partition_assign(again, &partition, true, 8);
    assert_memory_not_equal(parts, again, sizeof parts);
}

static void split__copies_each_record_to_one_part(void **state) {
    struct tare_split_options options = { .fractions = "0.5", .names = "a,b", .shuffle = true, .seed = 3 };
    struct tare_split_outcome outcome;
    const char *path = temp_path("data.tfrecord"), *prefix = temp_path("half");
    struct tare_strbuf a = { 0 }, b = { 0 };
    char all[200], seen[10] = { 0 };
    (void)state;
    assert_int_equal(tare_dataset_split(&outcome, prefix, &path, 1, &options), TARE_OK);
    assert_int_equal(outcome.count, 2);
    assert_int_equal(outcome.parts[0].records, 3);
    assert_string_equal(tare_path_base(outcome.parts[1].path), "half-b.tfrecord");
    snprintf(all, sizeof all, "%s%s", xs_of(&a, outcome.parts[0].path), xs_of(&b, outcome.parts[1].path));
    for (const char *at = all; *at; at++)
        if (*at != ' ') seen[*at - '0']++;
    assert_int_equal(strlen(all), 2 * RECORDS);
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 2);
    assert_int_equal(seen[2] * 100 + seen[3] * 10 + seen[5], 111);
    tare_split_outcome_free(&outcome);
    options = (struct tare_split_options){ .parts = 4, .compress = true };
    assert_int_equal(tare_dataset_split(&outcome, prefix, &path, 1, &options), TARE_OK);
    assert_string_equal(tare_path_base(outcome.parts[3].path), "half-00003-of-00004.tfrecord.gz");
    assert_string_equal(xs_of(&a, outcome.parts[0].path), "0 1 ");
    assert_string_equal(xs_of(&a, outcome.parts[3].path), "5 ");
    tare_split_outcome_free(&outcome);
    tare_strbuf_free(&a);
    tare_strbuf_free(&b);
}

static void split__says_what_is_wrong(void **state) {
    static const struct {
        struct tare_split_options options;
        const char *expected;
    } cases[] = {
        { { .parts = 2, .counts = "1" }, "give one of" },
        { { .parts = 2, .names = "a" }, "1 names for 2 parts" },
        { { .parts = 2, .names = "a,a" }, "duplicate part name 'a'" },
        { { .parts = 2, .names = "a,/b" }, "not a list of names" },
        { { .parts = 2, .names = "" }, "empty" },
        { { .counts = "7" }, "there are only 6 records" },
    };
    const char *path = temp_path("data.tfrecord"), *input = "-", *npz = GOLDEN "npy/samples.npz";
    struct tare_split_outcome outcome;
    struct tare_split_options two = { .parts = 2 };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tare_dataset_split(&outcome, temp_path("w"), &path, 1, &cases[i].options), TARE_USAGE);
        if (!strstr(tare_error_text(), cases[i].expected)) fail_msg("%s: %s", cases[i].expected, tare_error_text());
        tare_split_outcome_free(&outcome);
    }
    assert_int_equal(tare_dataset_split(&outcome, temp_path("w"), &input, 1, &two), TARE_USAGE);
    tare_split_outcome_free(&outcome);
    assert_int_equal(tare_dataset_split(&outcome, temp_path("w"), &npz, 1, &two), TARE_UNSUPPORTED);
    assert_non_null(strstr(tare_error_text(), "samples.npz: NPZ cannot be split (expected a TFRecord"));
    tare_split_outcome_free(&outcome);
    assert_int_equal(tare_file_kind_of(temp_path("w-00000-of-00002.tfrecord")), TARE_FILE_NONE);
}

static void faults__are_reported_and_leave_no_file(void **state) {
    char *kept = tare_strdup(temp_path("data.tfrecord")); /* the buffers of temp_path come round again */
    const char *path = kept;
    struct tare_file_list before = { 0 }, after = { 0 };
    (void)state;
    assert_int_equal(tare_file_list(&before, temp_folder()), TARE_OK);
    for (int what = 0; what < 6; what++) {
        tare_status status = TARE_IO;
        for (int64_t n = 1; status != TARE_OK; n++) {
            const struct tare_survey_options look_options = { .limit = 0 };
            const struct tare_make_options make_options = { .limit = 0 };
            const struct tare_split_options split_options = { .parts = 2 };
            struct tare_split_outcome split = { 0 };
            struct tare_make_outcome made;
            struct tare_survey survey = { 0 };
            assert_true(n < 2000);
            if (what & 1)
                tare_file_fail_at(n);
            else
                tare_alloc_fail_at(n);
            if (what / 2 == 0) status = tare_survey_files(&survey, &path, 1, &look_options);
            if (what / 2 == 1)
                status = tare_dataset_make(&made, temp_path("g.tfrecord"), &path, 1, NULL, NULL, &make_options);
            if (what / 2 == 2) status = tare_dataset_split(&split, temp_path("g"), &path, 1, &split_options);
            tare_alloc_fail_at(0);
            tare_file_fail_at(0);
            if (status != TARE_OK) assert_true(strlen(tare_error_text()) > 0);
            tare_survey_free(&survey);
            if (status != TARE_OK) {
                /* When only syncing the folder fails the file is there, whole. */
                if (tare_file_kind_of(temp_path("g.tfrecord")) == TARE_FILE_REGULAR) {
                    assert_int_equal(tare_file_size(temp_path("g.tfrecord")), tare_file_size(path));
                    remove(temp_path("g.tfrecord"));
                }
                assert_int_equal(tare_file_list(&after, temp_folder()), TARE_OK);
                assert_int_equal(after.count, before.count);
                tare_file_list_free(&after);
            } else if (what / 2) {
                remove(temp_path("g.tfrecord"));
                remove(temp_path("g-00000-of-00002.tfrecord"));
                remove(temp_path("g-00001-of-00002.tfrecord"));
            }
            tare_split_outcome_free(&split);
        }
    }
    tare_file_list_free(&before);
    tare_free(kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survey__finds_types_shapes_and_values),
        cmocka_unit_test(survey__finds_equal_records_whatever_the_order_of_keys),
        cmocka_unit_test(survey__orders_columns_as_the_header),
        cmocka_unit_test(survey__finds_no_type_in_empty_lists),
        cmocka_unit_test(survey__tells_kinds_and_features_apart),
        cmocka_unit_test(survey__lists_the_first_distinct_texts),
        cmocka_unit_test(survey__shows_records_of_no_known_kind_as_bytes),
        cmocka_unit_test(survey__counts_bad_records_and_goes_on),
        cmocka_unit_test(hash__sees_every_part_of_a_tensor),
        cmocka_unit_test(make__writes_samples_of_arrays),
        cmocka_unit_test(make__leaves_nothing_behind_when_it_fails),
        cmocka_unit_test(partition__has_the_sizes_that_were_asked_for),
        cmocka_unit_test(partition__is_drawn_by_the_seed),
        cmocka_unit_test(split__copies_each_record_to_one_part),
        cmocka_unit_test(split__says_what_is_wrong),
        cmocka_unit_test(faults__are_reported_and_leave_no_file),
    };
    return cmocka_run_group_tests(tests, make_file, NULL);
}
