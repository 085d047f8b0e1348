/* Damaged TFRecords and specs: cut at every byte, and 200 single bytes changed. The sanitizers look on. */
#include "base/alloc.h"
#include "base/file.h"
#include "base/strbuf.h"
#include "datasets/source.h"
#include "datasets/survey.h"
#include "datasets/tfrecord.h"
#include "support/memory_use.h"
#include "support/temp.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#define GOLDEN TARE_SOURCE_DIR "/tests/golden/examples/"

enum { RECORDS = 8, CHANGES = 200 };

static unsigned next_random(unsigned *random) {
    *random = *random * 1664525u + 1013904223u;
    return *random >> 8;
}

static void make_file(const char *path) {
    struct tare_tfrecord_writer *writer;
    assert_int_equal(tare_tfrecord_create(&writer, path), TARE_OK);
    for (int i = 0; i < RECORDS; i++) {
        const char *const keys[] = { "x" };
        struct tare_shape shape = tare_shape_make(2, 1, 3);
        float x[] = { (float)i, 1, 2 };
        struct tare_tensor value;
        void *data;
        size_t size;
        assert_int_equal(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, x), TARE_OK);
        assert_int_equal(tare_sample_encode(&data, &size, keys, &value, 1), TARE_OK);
        assert_int_equal(tare_tfrecord_write(writer, data, size), TARE_OK);
        tare_free(data);
        tare_tensor_reset(&value);
    }
    assert_int_equal(tare_tfrecord_commit(writer), TARE_OK);
}

/* Good samples and bad records of a file; every good one is whole. */
static void count(int *good, size_t *bad, const char *path) {
    const struct tare_source_options options = { .max_bad = 1000 };
    struct tare_source *source;
    *good = 0;
    if (tare_source_new(&source, &path, 1, &options) != TARE_OK) fail_msg("%s", tare_error_text());
    for (;; ++*good) {
        struct tare_sample sample;
        struct tare_record where;
        const struct tare_tensor *x;
        bool end;
        if (tare_source_next(&sample, &where, &end, source, NULL, NULL) != TARE_OK) fail_msg("%s", tare_error_text());
        if (end) break;
        x = tare_sample_find(&sample, "x");
        assert_non_null(x);
        assert_true(TARE_CONST_DATA(float, x)[0] == (float)where.number);
        tare_sample_reset(&sample);
    }
    tare_source_bad_records(source, bad);
    tare_source_free(source);
}

static void tfrecord__gives_every_record_before_the_cut(void **state) {
    static const char *const names[] = { "plain.tfrecord", "packed.tfrecord.gz" };
    (void)state;
    for (int n = 0; n < 2; n++) {
        char *bytes;
        size_t size;
        int last = 0;
        make_file(temp_path(names[n]));
        assert_int_equal(tare_file_read(&bytes, &size, temp_path(names[n])), TARE_OK);
        for (size_t cut = 0; cut <= size; cut++) {
            size_t bad, each = size / RECORDS;
            int good;
            count(&good, &bad, temp_file("cut", bytes, cut));
            if (n == 0) {
                assert_int_equal(good, cut / each);
                assert_int_equal(bad, cut % each != 0);
            }
            assert_true(good >= last);
            last = good;
            if (n && cut && cut < size) assert_int_equal(bad, 1); /* compressed data without its end mark */
        }
        assert_int_equal(last, RECORDS);
        tare_free(bytes);
    }
}

static void tfrecord__never_gives_a_changed_record(void **state) {
    unsigned random = 5;
    char *bytes;
    size_t size;
    (void)state;
    make_file(temp_path("plain.tfrecord"));
    assert_int_equal(tare_file_read(&bytes, &size, temp_path("plain.tfrecord")), TARE_OK);
    for (int n = 0; n < CHANGES; n++) {
        size_t spot = next_random(&random) % size, each = size / RECORDS, bad;
        char old = bytes[spot];
        bool in_length = spot % each < 12;
        int good;
        bytes[spot] ^= (char)(1 + next_random(&random) % 255);
        count(&good, &bad, temp_file("changed", bytes, size));
        assert_int_equal(bad, 1);
        /* behind a bad length nothing can be found */
        assert_int_equal(good, in_length ? (int)(spot / each) : RECORDS - 1);
        bytes[spot] = old;
    }
    tare_free(bytes);
}

static void compressed__is_read_or_refused(void **state) {
    unsigned random = 6;
    char *bytes;
    size_t size;
    uLongf packed_size = 4096;
    unsigned char packed[4096];
    (void)state;
    make_file(temp_path("plain.tfrecord"));
    assert_int_equal(tare_file_read(&bytes, &size, temp_path("plain.tfrecord")), TARE_OK);
    assert_int_equal(compress(packed, &packed_size, (const Bytef *)bytes, size), Z_OK);
    for (int n = 0; n < CHANGES; n++) {
        const struct tare_survey_options options = { .limit = 0 };
        size_t spot = next_random(&random) % packed_size;
        unsigned char old = packed[spot];
        struct tare_survey survey;
        const char *path;
        packed[spot] ^= (unsigned char)(1 + next_random(&random) % 255);
        path = temp_file("packed", packed, packed_size);
        if (tare_survey_files(&survey, &path, 1, &options) != TARE_OK) fail_msg("%s", tare_error_text());
        assert_true(survey.bad > 0);
        assert_true(survey.records <= RECORDS);
        tare_survey_free(&survey);
        packed[spot] = old;
    }
    tare_free(bytes);
}

static void sample__is_decoded_or_refused(void **state) {
    const char *const keys[] = { "x", "name" };
    const struct tare_shape shapes[] = { tare_shape_make(2, 2, 3), tare_shape_make(1, 1) };
    const float x[6] = { 1, 2, 3, 4, 5, 6 };
    struct tare_tensor values[2];
    unsigned random = 4;
    void *data;
    size_t size;
    (void)state;
    assert_int_equal(tare_tensor_from(&values[0], TARE_DT_FLOAT, &shapes[0], x), TARE_OK);
    assert_int_equal(tare_tensor_new(&values[1], TARE_DT_STRING, &shapes[1]), TARE_OK);
    assert_int_equal(tare_tensor_set_string(&values[1], 0, "text", 4), TARE_OK);
    assert_int_equal(tare_sample_encode(&data, &size, keys, values, 2), TARE_OK);
    for (int n = 0; n < 5 * CHANGES; n++) {
        size_t spot = next_random(&random) % size;
        char *bytes = data, old = bytes[spot];
        struct tare_sample sample;
        bytes[spot] ^= (char)(1 + next_random(&random) % 255);
        if (tare_sample_decode(&sample, data, size) != TARE_OK) assert_true(strlen(tare_error_text()) > 0);
        tare_sample_reset(&sample);
        bytes[spot] = old;
    }
    tare_free(data);
    tare_tensor_reset(&values[0]);
    tare_tensor_reset(&values[1]);
}

/* The last test: no forged size was believed. One value may stand for 256 MiB of elements (datasets/sample.c). */
static void memory__stays_small(void **state) {
    (void)state;
    assert_true(memory_used() < ((int64_t)400 << 20));
}

static void spec__is_read_or_refused(void **state) {
    static const char *const names[] = { "lists.spec", "jpeg_normalized.spec", "gray.spec" };
    unsigned random = 9;
    (void)state;
    for (int n = 0; n < 3; n++) {
        struct tare_dataset_spec *spec;
        char path[512], *text;
        size_t size;
        snprintf(path, sizeof path, GOLDEN "%s", names[n]);
        assert_int_equal(tare_file_read(&text, &size, path), TARE_OK);
        for (size_t cut = 0; cut < size; cut++) {
            char *part = tare_malloc(cut);
            memcpy(part, text, cut);
            if (tare_dataset_spec_parse(&spec, part, cut, "s") != TARE_OK)
                assert_int_equal(strncmp(tare_error_text(), "s:", 2), 0);
            tare_dataset_spec_free(spec);
            tare_free(part);
        }
        for (int i = 0; i < CHANGES; i++) {
            size_t spot = next_random(&random) % size;
            char old = text[spot];
            text[spot] ^= (char)(1 + next_random(&random) % 255);
            if (tare_dataset_spec_parse(&spec, text, size, "s") != TARE_OK)
                assert_int_equal(strncmp(tare_error_text(), "s:", 2), 0);
            tare_dataset_spec_free(spec);
            text[spot] = old;
        }
        tare_free(text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tfrecord__gives_every_record_before_the_cut),
        cmocka_unit_test(tfrecord__never_gives_a_changed_record),
        cmocka_unit_test(compressed__is_read_or_refused),
        cmocka_unit_test(spec__is_read_or_refused),
        cmocka_unit_test(sample__is_decoded_or_refused),
        cmocka_unit_test(memory__stays_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
