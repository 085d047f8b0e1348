/* Samples, labels, and sources of several files. */
#include "datasets/source.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "datasets/label.h"
#include "datasets/tfrecord.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { FILES = 3, EACH = 10 };

static void encode(void **data, size_t *size, int number) {
    const char *const keys[] = { "x", "label" };
    struct tare_tensor values[2];
    struct tare_shape three = tare_shape_make(1, 3);
    float x[] = { (float)number, 1, 2 };
    assert_int_equal(tare_tensor_from(&values[0], TARE_DT_FLOAT, &three, x), TARE_OK);
    assert_int_equal(tare_tensor_scalar_i64(&values[1], number), TARE_OK);
    assert_int_equal(tare_sample_encode(data, size, keys, values, 2), TARE_OK);
    tare_tensor_reset(&values[0]);
    tare_tensor_reset(&values[1]);
}

/* s-0.tfrecord, s-1.tfrecord.gz, s-2.tfrecord: labels 0 … 29 */
static int make_files(void **state) {
    (void)state;
    for (int f = 0; f < FILES; f++) {
        struct tare_tfrecord_writer *writer;
        char name[32];
        snprintf(name, sizeof name, "s-%d.tfrecord%s", f, f == 1 ? ".gz" : "");
        assert_int_equal(tare_tfrecord_create(&writer, temp_path(name)), TARE_OK);
        for (int i = 0; i < EACH; i++) {
            void *data;
            size_t size;
            encode(&data, &size, f * EACH + i);
            assert_int_equal(tare_tfrecord_write(writer, data, size), TARE_OK);
            tare_free(data);
        }
        assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
    }
    return 0;
}

/* The labels of all samples as text, "!" and the status at a failure. */
static const char *labels_of(struct tare_strbuf *out, const char *const *paths, size_t n_paths,
                             const struct tare_source_options *options,
                             bool (*expected)(void *arg, const struct tare_record *where)) {
    struct tare_source *source;
    tare_status status;
    out->size = 0;
    status = tare_source_new(&source, paths, n_paths, options);
    while (status == TARE_OK) {
        struct tare_sample sample;
        struct tare_record where;
        int64_t label;
        bool end;
        status = tare_source_next(&sample, &where, &end, source, expected, NULL);
        if (status != TARE_OK || end) break;
        assert_int_equal(tare_sample_label(&label, &sample, "label"), TARE_OK);
        tare_strbuf_printf(out, "%d ", (int)label);
        tare_sample_reset(&sample);
    }
    if (status != TARE_OK) tare_strbuf_printf(out, "!%s", tare_status_name(status));
    tare_source_free(source);
    return tare_strbuf_text(out);
}

static void sample__round_trip(void **state) {
    struct tare_sample sample;
    void *data;
    size_t size;
    (void)state;
    encode(&data, &size, 5);
    assert_int_equal(tare_sample_decode(&sample, data, size), TARE_OK);
    assert_int_equal(sample.count, 2);
    assert_true(TARE_CONST_DATA(float, tare_sample_find(&sample, "x"))[0] == 5);
    assert_null(tare_sample_find(&sample, "y"));
    tare_sample_reset(&sample);
    tare_free(data);
}

static void sample__later_value_of_a_key_counts(void **state) {
    struct tare_sample sample;
    void *a, *b;
    size_t a_size, b_size;
    char both[500];
    int64_t label;
    (void)state;
    encode(&a, &a_size, 5);
    encode(&b, &b_size, 6);
    memcpy(both, a, a_size);
    memcpy(both + a_size, b, b_size);
    assert_int_equal(tare_sample_decode(&sample, both, a_size + b_size), TARE_OK);
    assert_int_equal(sample.count, 2);
    assert_int_equal(tare_sample_label(&label, &sample, "label"), TARE_OK);
    assert_int_equal(label, 6);
    tare_sample_reset(&sample);
    tare_free(a);
    tare_free(b);
}

/* Few keys are looked through, many are hashed. */
static void sample__may_have_many_keys(void **state) {
    enum { KEYS = 100 };
    char names[KEYS][8];
    const char *keys[KEYS + 1];
    struct tare_tensor values[KEYS + 1];
    struct tare_sample sample;
    void *data;
    size_t size;
    (void)state;
    for (int i = 0; i < KEYS; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        keys[i] = names[i];
        assert_int_equal(tare_tensor_scalar_i32(&values[i], i), TARE_OK);
    }
    keys[KEYS] = names[7]; /* the later value counts */
    assert_int_equal(tare_tensor_scalar_i32(&values[KEYS], -7), TARE_OK);
    assert_int_equal(tare_sample_encode(&data, &size, keys, values, KEYS + 1), TARE_OK);
    assert_int_equal(tare_sample_decode(&sample, data, size), TARE_OK);
    assert_int_equal(sample.count, KEYS);
    for (int i = 0; i < KEYS; i++)
        assert_int_equal(tare_tensor_get_i64(tare_sample_find(&sample, names[i]), 0), i == 7 ? -7 : i);
    tare_sample_reset(&sample);
    tare_free(data);
    for (int i = 0; i <= KEYS; i++)
        tare_tensor_reset(&values[i]);
}

static void sample__expands_one_value_within_bounds(void **state) {
    /* x: float32 [2,3] of float_val 1.5; x: float32 [1000000,1000000] of the same */
    static const char small[] =
        "\x12\x17\x0a\x01x\x12\x12\x08\x01\x12\x08\x12\x02\x08\x02\x12\x02\x08\x03\x2a\x04\0\0\xc0\x3f";
    static const char large[] =
        "\x12\x1b\x0a\x01x\x12\x16\x08\x01\x12\x0c\x12\x04\x08\xc0\x84\x3d\x12\x04\x08\xc0\x84\x3d"
        "\x2a\x04\0\0\xc0\x3f";
    struct tare_sample sample;
    const struct tare_tensor *x;
    (void)state;
    if (tare_sample_decode(&sample, small, 25) != TARE_OK) fail_msg("%s", tare_error_text());
    x = tare_sample_find(&sample, "x");
    assert_false(x->splat);
    assert_int_equal(x->elements, 6);
    assert_true(TARE_CONST_DATA(float, x)[5] == 1.5f);
    tare_sample_reset(&sample);
    assert_int_equal(tare_sample_decode(&sample, large, 29), TARE_SHAPE);
    tare_sample_reset(&sample);
}

static void sample__is_refused_when_cut(void **state) {
    struct tare_sample sample;
    void *data;
    size_t size;
    (void)state;
    encode(&data, &size, 5);
    for (size_t cut = 1; cut < size; cut++) {
        /* a cut between the two entries leaves a good sample with one of them */
        if (tare_sample_decode(&sample, data, cut) == TARE_OK) assert_int_equal(sample.count, 1);
        tare_sample_reset(&sample);
    }
    tare_free(data);
}

static void labels__are_class_indices(void **state) {
    struct tare_sample sample = { 0 };
    struct tare_tensor value;
    const char *keys[] = { "label" };
    static const double numbers[] = { 3, -1, 2.5, 0.0 / 0.0, 1e30 };
    struct tare_shape five = tare_shape_make(1, 5);
    int64_t label;
    (void)state;
    assert_int_equal(tare_tensor_from(&value, TARE_DT_DOUBLE, &five, numbers), TARE_OK);
    sample.keys = keys;
    sample.values = &value;
    sample.count = 1;
    assert_int_equal(tare_sample_label(&label, &sample, "none"), TARE_NOT_FOUND);
    assert_int_equal(tare_sample_label(&label, &sample, "label"), TARE_SHAPE);
    assert_int_equal(tare_label_count(&label, &sample, "label"), TARE_OK);
    assert_int_equal(label, 5);
    assert_int_equal(tare_label_get(&label, &sample, "label", 0), TARE_OK);
    assert_int_equal(label, 3);
    for (int i = 1; i < 5; i++)
        assert_int_equal(tare_label_get(&label, &sample, "label", i), TARE_TYPE);
    assert_int_equal(tare_label_get(&label, &sample, "label", 5), TARE_SHAPE);
    tare_tensor_reset(&value);
}

static const char *pattern(void) {
    return temp_path("s-*");
}

/* "first label:values" of each sample, "!" and the status at a failure. */
static const char *rows_of(struct tare_strbuf *out, const struct tare_source_options *options,
                           bool (*wanted)(void *arg, const struct tare_record *where)) {
    const char *paths[] = { pattern() };
    struct tare_source *source;
    tare_status status = tare_source_new(&source, paths, 1, options);
    out->size = 0;
    while (status == TARE_OK) {
        struct tare_sample sample;
        struct tare_record where;
        bool end;
        status = tare_source_next(&sample, &where, &end, source, wanted, NULL);
        if (status != TARE_OK || end) break;
        const struct tare_tensor *labels = tare_sample_find(&sample, "label"), *x = tare_sample_find(&sample, "x");
        assert_int_equal(labels->shape.rank, 1);
        assert_int_equal(x->elements, labels->elements * 3);
        for (int64_t i = 0; i < labels->elements; i++)
            assert_true((int64_t)TARE_CONST_DATA(float, x)[3 * i] == tare_tensor_get_i64(labels, i));
        tare_strbuf_printf(out, "%d@%d:%d ", (int)tare_tensor_get_i64(labels, 0), (int)where.index,
                           (int)labels->elements);
        tare_sample_reset(&sample);
    }
    if (status != TARE_OK) tare_strbuf_printf(out, "!%s", tare_status_name(status));
    tare_source_free(source);
    return tare_strbuf_text(out);
}

static bool is_odd(void *arg, const struct tare_record *where) {
    (void)arg;
    return where->index % 2 == 1;
}

/* A sample of six records may be of two files; shards, limits and filters count samples. */
static void source__joins_rows(void **state) {
    struct tare_strbuf out = { 0 };
    struct tare_source_options options = { .rows = 6 };
    (void)state;
    assert_string_equal(rows_of(&out, &options, NULL), "0@0:6 6@1:6 12@2:6 18@3:6 24@4:6 ");
    assert_string_equal(rows_of(&out, &options, is_odd), "6@1:6 18@3:6 ");
    options.prefetch = 2;
    assert_string_equal(rows_of(&out, &options, is_odd), "6@1:6 18@3:6 ");
    options.stop = 2;
    assert_string_equal(rows_of(&out, &options, NULL), "0@0:6 6@1:6 ");
    options = (struct tare_source_options){ .rows = 6, .limit = 1, .shard = 1, .shards = 3 };
    assert_string_equal(rows_of(&out, &options, NULL), "6@1:6 ");
    options = (struct tare_source_options){ .rows = 8 };
    assert_string_equal(rows_of(&out, &options, NULL), "0@0:8 8@1:8 16@2:8 !wrong shape");
    options.max_bad = 1; /* the end is no bad record */
    assert_string_equal(rows_of(&out, &options, is_odd), "8@1:8 !wrong shape");
    tare_strbuf_free(&out);
}

static void source__gives_files_in_order(void **state) {
    struct tare_strbuf out = { 0 };
    struct tare_source_options ahead = { .prefetch = 3 };
    char expected[200] = "";
    const char *paths[] = { pattern() }, *twice[] = { temp_path("s-2.tfrecord"), temp_path("s-0.tfrecord") };
    (void)state;
    for (int i = 0; i < FILES * EACH; i++)
        snprintf(expected + strlen(expected), 8, "%d ", i);
    assert_string_equal(labels_of(&out, paths, 1, NULL, NULL), expected);
    assert_string_equal(labels_of(&out, paths, 1, &ahead, NULL), expected);
    assert_string_equal(labels_of(&out, twice, 2, NULL, NULL), "20 21 22 23 24 25 26 27 28 29 0 1 2 3 4 5 6 7 8 9 ");
    tare_strbuf_free(&out);
}

static bool odd(void *arg, const struct tare_record *where) {
    (void)arg;
    return where->index & 1;
}

static void source__limits_shards_and_filters(void **state) {
    struct tare_strbuf out = { 0 };
    const char *paths[] = { pattern() };
    (void)state;
    for (size_t prefetch = 0; prefetch < 3; prefetch++) {
        struct tare_source_options limit = { .limit = 12, .prefetch = prefetch };
        struct tare_source_options shard = { .shard = 3, .shards = 7, .prefetch = prefetch };
        struct tare_source_options both = { .shard = 1, .shards = 4, .limit = 3, .prefetch = prefetch };
        assert_string_equal(labels_of(&out, paths, 1, &limit, NULL), "0 1 2 3 4 5 6 7 8 9 10 11 ");
        assert_string_equal(labels_of(&out, paths, 1, &limit, odd), "1 3 5 7 9 11 ");
        assert_string_equal(labels_of(&out, paths, 1, &shard, NULL), "3 10 17 24 ");
        assert_string_equal(labels_of(&out, paths, 1, &both, NULL), "1 5 9 ");
        struct tare_source_options others = {
            .shard = 1, .shards = 4, .other_shards = true, .stop = 9, .prefetch = prefetch
        };
        assert_string_equal(labels_of(&out, paths, 1, &others, NULL), "0 2 3 4 6 7 8 ");
        struct tare_source_options front = { .stop = 12, .prefetch = prefetch };
        struct tare_source_options share = { .shard = 1, .shards = 4, .stop = 9, .prefetch = prefetch };
        assert_string_equal(labels_of(&out, paths, 1, &front, odd), "1 3 5 7 9 11 ");
        assert_string_equal(labels_of(&out, paths, 1, &share, NULL), "1 5 ");
    }
    assert_string_equal(labels_of(&out, paths, 1, &(struct tare_source_options){ .shard = 7, .shards = 7 }, NULL),
                        "!invalid argument");
    assert_string_equal(tare_error_text(), "shard 7 (expected 0 to 6)");
    tare_strbuf_free(&out);
}

static void source__tells_where_a_sample_came_from(void **state) {
    struct tare_source *source;
    struct tare_sample sample;
    struct tare_record where;
    const char *paths[] = { pattern() };
    int64_t first = 0;
    size_t count;
    bool end;
    (void)state;
    assert_int_equal(tare_source_new(&source, paths, 1, NULL), TARE_OK);
    assert_string_equal(tare_path_base(tare_source_files(source, &count)[1]), "s-1.tfrecord.gz");
    assert_int_equal(count, FILES);
    for (int i = 0; i < FILES * EACH; i++) {
        assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
        tare_sample_reset(&sample);
        assert_int_equal(where.index, i);
        assert_int_equal(where.file, i / EACH);
        assert_int_equal(where.number, i % EACH);
        if (i == 1) first = where.offset;
        if (i == EACH + 1) assert_int_equal(where.offset, first);
    }
    tare_source_free(source);
}

static void source__tells_of_missing_files_at_once(void **state) {
    struct tare_strbuf out = { 0 };
    const char *paths[] = { temp_path("s-0.tfrecord"), "/no/such.tfrecord" }, *none[] = { "/no/such*" };
    (void)state;
    assert_string_equal(labels_of(&out, paths, 2, NULL, NULL), "!not found");
    assert_string_equal(tare_error_text(), "cannot open '/no/such.tfrecord': No such file or directory");
    assert_string_equal(labels_of(&out, none, 1, NULL, NULL), "!not found");
    assert_string_equal(tare_error_text(), "no file matches '/no/such*'");
    tare_strbuf_free(&out);
}

/* Nine good records, two of them damaged (3: checksum, 6: no sample), then a cut. */
static void make_bad_file(void) {
    struct tare_tfrecord_writer *writer;
    char *bytes;
    size_t size, length = 0;
    assert_int_equal(tare_tfrecord_create(&writer, temp_path("bad")), TARE_OK);
    for (int i = 0; i < 9; i++) {
        void *data;
        encode(&data, &length, i);
        if (i == 6) memset(data, 0xff, length);
        assert_int_equal(tare_tfrecord_write(writer, data, length), TARE_OK);
        tare_free(data);
    }
    assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
    assert_int_equal(tare_file_read(&bytes, &size, temp_path("bad")), TARE_OK);
    bytes[size / 9 * 3 + 20] ^= 1;
    temp_file("bad", bytes, size - 3);
    tare_free(bytes);
}

static void note(void *arg, const char *text) {
    tare_strbuf_printf(arg, "%s\n", strstr(text, ": record") + 2);
}

static void source__passes_over_so_many_bad_records(void **state) {
    struct tare_strbuf out = { 0 }, notes = { 0 };
    const char *paths[] = { temp_path("bad"), temp_path("s-0.tfrecord") };
    (void)state;
    make_bad_file();
    for (size_t prefetch = 0; prefetch < 3; prefetch++) {
        struct tare_source_options options = { .prefetch = prefetch, .on_bad = note, .on_bad_arg = &notes };
        assert_string_equal(labels_of(&out, paths, 2, &options, NULL), "0 1 2 !corrupt");
        assert_non_null(strstr(tare_error_text(), "bad: record 3: corrupted record at "));
        options.max_bad = 1;
        assert_string_equal(labels_of(&out, paths, 2, &options, NULL), "0 1 2 4 5 !corrupt");
        assert_non_null(strstr(tare_error_text(), "bad: record 6 at "));
        options.max_bad = 3;
        notes.size = 0;
        assert_string_equal(labels_of(&out, paths, 2, &options, NULL), "0 1 2 4 5 7 0 1 2 3 4 5 6 7 8 9 ");
        assert_non_null(strstr(tare_strbuf_text(&notes), "record 8: truncated record at "));
        options.limit = 7;
        assert_string_equal(labels_of(&out, paths, 2, &options, NULL), "0 1 2 4 5 7 0 ");
        options = (struct tare_source_options){ .stop = 6, .max_bad = 1, .prefetch = prefetch };
        assert_string_equal(labels_of(&out, paths, 2, &options, NULL),
                            "0 1 2 4 5 "); /* 6, a second bad one, is behind */
    }
    tare_strbuf_free(&out);
    tare_strbuf_free(&notes);
}

static void source__lists_what_it_passed_over(void **state) {
    static const enum tare_bad_reason reasons[] = { TARE_BAD_CORRUPT, TARE_BAD_UNDECODABLE, TARE_BAD_TRUNCATED };
    const char *paths[] = { temp_path("bad") };
    int64_t length = tare_file_size(temp_path("s-0.tfrecord")) / EACH;
    (void)state;
    make_bad_file();
    for (size_t prefetch = 0; prefetch < 3; prefetch++) {
        struct tare_source_options options = { .prefetch = prefetch, .max_bad = 3 };
        const struct tare_bad_record *bad;
        struct tare_source *source;
        bool end = false;
        size_t count;
        assert_int_equal(tare_source_new(&source, paths, 1, &options), TARE_OK);
        while (!end) {
            struct tare_sample sample;
            struct tare_record where;
            assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
            if (!end) tare_sample_reset(&sample);
        }
        bad = tare_source_bad_records(source, &count);
        assert_int_equal(count, 3);
        assert_int_equal(tare_source_bad(source), 3);
        for (size_t i = 0; i < count; i++) {
            int64_t number = i == 0 ? 3 : i == 1 ? 6 : 8;
            assert_int_equal(bad[i].reason, reasons[i]);
            assert_int_equal(bad[i].where.number, number);
            assert_int_equal(bad[i].where.index, number);
            assert_int_equal(bad[i].where.offset, number * length);
            assert_int_equal(bad[i].status, TARE_CORRUPT);
        }
        assert_non_null(strstr(bad[2].text, "bad: record 8: truncated record at "));
        assert_string_equal(tare_bad_reason_name(bad[2].reason), "truncated");
        tare_source_free(source);
    }
}

static void source__counts_a_bad_record_in_its_own_shard(void **state) {
    struct tare_strbuf out = { 0 };
    const char *paths[] = { temp_path("bad") };
    (void)state;
    make_bad_file(); /* bad: 3, 6, 8 */
    for (size_t prefetch = 0; prefetch < 2; prefetch++) {
        struct tare_source_options first = { .shard = 1, .shards = 4, .prefetch = prefetch };
        struct tare_source_options second = { .shard = 2, .shards = 4, .prefetch = prefetch };
        assert_string_equal(labels_of(&out, paths, 1, &first, NULL), "1 5 ");
        assert_string_equal(labels_of(&out, paths, 1, &second, NULL), "2 !corrupt");
        second.max_bad = 1;
        assert_string_equal(labels_of(&out, paths, 1, &second, NULL), "2 ");
    }
    tare_strbuf_free(&out);
}

static void source__takes_refused_samples_for_bad_ones(void **state) {
    const char *paths[] = { temp_path("s-0.tfrecord") };
    (void)state;
    for (size_t prefetch = 0; prefetch < 2; prefetch++) {
        struct tare_source_options options = { .prefetch = prefetch, .max_bad = 2, .limit = 4 };
        const struct tare_bad_record *bad;
        struct tare_source *source;
        int given = 0;
        bool end = false;
        size_t count;
        assert_int_equal(tare_source_new(&source, paths, 1, &options), TARE_OK);
        for (;;) {
            struct tare_sample sample;
            struct tare_record where;
            tare_status expected;
            assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
            if (end) break;
            tare_sample_reset(&sample);
            if (given++ == 0) continue;
            expected = given <= 3 ? TARE_OK : TARE_SHAPE;
            assert_int_equal(tare_source_refuse(source, &where, TARE_FAIL(TARE_SHAPE, "too %s", "long")), expected);
        }
        assert_int_equal(given, 4);
        assert_non_null(strstr(tare_error_text(), "s-0.tfrecord: record 3 at "));
        assert_non_null(strstr(tare_error_text(), ": too long"));
        bad = tare_source_bad_records(source, &count);
        assert_int_equal(count, 2);
        assert_int_equal(bad[1].where.number, 2);
        assert_int_equal(bad[1].reason, TARE_BAD_REFUSED);
        assert_non_null(strstr(bad[1].text, "s-0.tfrecord: record 2 at "));
        tare_source_free(source);
    }
}

static void source__names_records_of_another_kind(void **state) {
    /* an Example: features { feature { key: "a" value { int64_list { value: 7 } } } } */
    static const char example[] = "\x0a\x0c\x0a\x0a\x0a\x01"
                                  "a\x12\x05\x1a\x03\x0a\x01\x07";
    /* a SequenceExample: feature_lists { feature_list { key: "a" value { feature { int64_list { value: 7 } } } } } */
    static const char sequence[] = "\x12\x0e\x0a\x0c\x0a\x01"
                                   "a\x12\x07\x0a\x05\x1a\x03\x0a\x01\x07";
    struct tare_strbuf out = { 0 };
    const char *paths[] = { temp_path("other") };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct tare_tfrecord_writer *writer;
        assert_int_equal(tare_tfrecord_create(&writer, temp_path("other")), TARE_OK);
        assert_int_equal(tare_tfrecord_write(writer, i ? sequence : example, i ? 16 : 14), TARE_OK);
        assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
        assert_string_equal(labels_of(&out, paths, 1, NULL, NULL), "!wrong dtype");
        assert_non_null(strstr(
            tare_error_text(),
            i ? "other: record 0 at 0: it is a tf.SequenceExample (expected a RepresentativeDataSample, or --spec FILE"
              : "other: record 0 at 0: it is a tf.Example (expected"));
    }
    tare_strbuf_free(&out);
}

static void source__may_be_freed_early(void **state) {
    struct tare_source *source;
    struct tare_source_options options = { .prefetch = 2 };
    struct tare_sample sample;
    struct tare_record where;
    const char *paths[] = { pattern() };
    bool end;
    (void)state;
    assert_int_equal(tare_source_new(&source, paths, 1, &options), TARE_OK);
    tare_source_free(source);
    assert_int_equal(tare_source_new(&source, paths, 1, &options), TARE_OK);
    assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
    tare_sample_reset(&sample);
    tare_source_free(source);
}

static tare_status count_bytes(void *arg, struct tare_sample *out, const void *data, size_t size) {
    (void)data;
    memset(out, 0, sizeof *out);
    *(size_t *)arg += size;
    return TARE_OK;
}

static void source__takes_another_decoder(void **state) {
    struct tare_source *source;
    size_t bytes = 0;
    struct tare_source_options options = { .decode = count_bytes, .decode_arg = &bytes };
    struct tare_sample sample;
    struct tare_record where;
    const char *paths[] = { temp_path("s-0.tfrecord") };
    bool end = false;
    (void)state;
    assert_int_equal(tare_source_new(&source, paths, 1, &options), TARE_OK);
    while (!end)
        assert_int_equal(tare_source_next(&sample, &where, &end, source, NULL, NULL), TARE_OK);
    tare_source_free(source);
    assert_int_equal((int64_t)bytes + EACH * 16, tare_file_size(temp_path("s-0.tfrecord")));
}

static void faults__are_reported(void **state) {
    const char *paths[] = { pattern() };
    (void)state;
    for (size_t prefetch = 0; prefetch < 2; prefetch++)
        for (int files = 0; files < 2; files++) {
            tare_status status = TARE_IO;
            for (int64_t n = 1; status != TARE_OK && n < 3000; n++) {
                struct tare_source_options options = { .prefetch = prefetch };
                struct tare_source *source;
                bool end = false;
                if (files)
                    tare_file_fail_at(n);
                else
                    tare_alloc_fail_at(n);
                status = tare_source_new(&source, paths, 1, &options);
                while (status == TARE_OK && !end) {
                    struct tare_sample sample;
                    struct tare_record where;
                    status = tare_source_next(&sample, &where, &end, source, NULL, NULL);
                    if (status == TARE_OK && !end) tare_sample_reset(&sample);
                }
                if (status != TARE_OK) assert_true(strlen(tare_error_text()) > 0);
                tare_source_free(source);
                tare_alloc_fail_at(0);
                tare_file_fail_at(0);
            }
            assert_int_equal(status, TARE_OK);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample__round_trip),
        cmocka_unit_test(sample__later_value_of_a_key_counts),
        cmocka_unit_test(sample__may_have_many_keys),
        cmocka_unit_test(sample__expands_one_value_within_bounds),
        cmocka_unit_test(sample__is_refused_when_cut),
        cmocka_unit_test(labels__are_class_indices),
        cmocka_unit_test(source__joins_rows),
        cmocka_unit_test(source__gives_files_in_order),
        cmocka_unit_test(source__limits_shards_and_filters),
        cmocka_unit_test(source__tells_where_a_sample_came_from),
        cmocka_unit_test(source__tells_of_missing_files_at_once),
        cmocka_unit_test(source__passes_over_so_many_bad_records),
        cmocka_unit_test(source__lists_what_it_passed_over),
        cmocka_unit_test(source__counts_a_bad_record_in_its_own_shard),
        cmocka_unit_test(source__takes_refused_samples_for_bad_ones),
        cmocka_unit_test(source__names_records_of_another_kind),
        cmocka_unit_test(source__may_be_freed_early),
        cmocka_unit_test(source__takes_another_decoder),
        cmocka_unit_test(faults__are_reported),
    };
    return cmocka_run_group_tests(tests, make_files, NULL);
}
