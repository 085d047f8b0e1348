/* DatasetSpec: what records become, against tests/golden/examples.py; what a spec must not say; damaged records. */
#include "datasets/spec.h"
#include "base/alloc.h"
#include "datasets/npy.h"
#include "datasets/record_kind.h"
#include "datasets/tfrecord.h"
#include "support/memory_use.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define GOLDEN TARE_SOURCE_DIR "/tests/golden/examples/"

enum { RECORDS = 3 };

/* Differences that libraries may have. */
static const double EXACT = 0;
static const double SUMS = 6e-5;   /* of weighted pixels up to 255: the rows between are float32 */
static const double PLACES = 1e-3; /* TensorFlow computes where pixels are in float, the script in double */
static const double JPEG = 1;      /* rounding of colours by another version of libjpeg */
static const double SMALL = 3e-7;  /* one rounding to float32 of a value around 1 */

static const char *golden(const char *name) {
    static char path[512];
    snprintf(path, sizeof path, "%s%s", GOLDEN, name);
    return path;
}

static struct tare_dataset_spec *load(const char *name) {
    struct tare_dataset_spec *spec;
    char file[64];
    snprintf(file, sizeof file, "%s.spec", name);
    if (tare_dataset_spec_load(&spec, golden(file)) != TARE_OK) fail_msg("%s", tare_error_text());
    return spec;
}

/* The samples that the spec makes of a file's records. */
static void make_samples(struct tare_sample samples[RECORDS], const char *name, const char *records) {
    struct tare_dataset_spec *spec = load(name);
    struct tare_tfrecord_reader *reader;
    char file[64];
    snprintf(file, sizeof file, "%s.tfrecord", records);
    assert_int_equal(tare_tfrecord_open(&reader, golden(file)), TARE_OK);
    for (int i = 0; i < RECORDS; i++) {
        struct tare_tfrecord record;
        bool end;
        assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_OK);
        assert_false(end);
        if (tare_dataset_spec_decode(&samples[i], spec, record.data, record.size) != TARE_OK)
            fail_msg("%s: record %d: %s", name, i, tare_error_text());
    }
    tare_tfrecord_close(reader);
    tare_dataset_spec_free(spec);
}

static void check_value(const struct tare_tensor *got, const struct tare_tensor *all, int row, double tolerance,
                        const char *what) {
    int64_t each = all->elements / RECORDS;
    int dtype = got->dtype == TARE_DT_BFLOAT16 ? TARE_DT_FLOAT : got->dtype; /* numpy has none */
    assert_string_equal(tare_dtype_name(dtype), tare_dtype_name(all->dtype));
    assert_int_equal(got->shape.rank, all->shape.rank - 1);
    for (int d = 0; d < got->shape.rank; d++)
        assert_int_equal(got->shape.dims[d], all->shape.dims[d + 1]);
    for (int64_t i = 0; i < each; i++) {
        double x = tare_tensor_get_f64(got, i), y = tare_tensor_get_f64(all, row * each + i);
        if (!(fabs(x - y) <= tolerance))
            fail_msg("%s, record %d, element %d: got %.9g, expected %.9g", what, row, (int)i, x, y);
    }
}

static void check_input(const char *name, const char *records, const char *key, double tolerance) {
    struct tare_sample samples[RECORDS];
    struct tare_tensor all;
    char file[64];
    snprintf(file, sizeof file, "%s.%s.npy", name, key);
    if (tare_npy_read(&all, golden(file)) != TARE_OK) fail_msg("%s", tare_error_text());
    make_samples(samples, name, records);
    for (int i = 0; i < RECORDS; i++) {
        const struct tare_tensor *value = tare_sample_find(&samples[i], key);
        assert_non_null(value);
        check_value(value, &all, i, tolerance, file);
    }
    for (int i = 0; i < RECORDS; i++)
        tare_sample_reset(&samples[i]);
    tare_tensor_reset(&all);
}

static void images__are_scaled_by_each_rule(void **state) {
    (void)state;
    check_input("png_nearest", "images", "x", EXACT);
    check_input("png_bilinear", "images", "x", SUMS);
    check_input("png_area", "images", "x", SUMS);
    check_input("png_antialias", "images", "x", PLACES);
}

static void images__are_decoded_cut_and_normalized(void **state) {
    (void)state;
    check_input("jpeg", "images", "x", JPEG);
    check_input("jpeg_normalized", "images", "x", JPEG / 57);
    check_input("jpeg_normalized", "images", "label", EXACT);
    check_input("gray", "images", "x", 1.5 / 255);
    check_input("gray", "images", "rgb", 1);
    check_input("gray", "images", "alpha", EXACT);
}

static void lists__become_tensors(void **state) {
    static const char *const exact[] = { "floats", "raw", "raw_scaled", "tokens", "tail", "rare", "class", "label" };
    (void)state;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
        check_input("lists", "images", exact[i], EXACT);
    check_input("lists", "images", "scaled", SMALL);
}

static void feature_lists__become_tensors(void **state) {
    (void)state;
    check_input("frames", "sequences", "frames", EXACT);
    check_input("frames", "sequences", "last", EXACT);
    check_input("frames", "sequences", "length", EXACT);
}

static void features__are_shown_as_they_are(void **state) {
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    struct tare_features features;
    struct tare_sample sample;
    const struct tare_tensor *frames, *words;
    bool end;
    (void)state;
    assert_int_equal(tare_tfrecord_open(&reader, golden("sequences.tfrecord")), TARE_OK);
    assert_int_equal(tare_tfrecord_next(&record, &end, reader), TARE_OK);
    assert_int_equal(tare_record_kind_of(record.data, record.size), TARE_RECORD_SEQUENCE_EXAMPLE);
    assert_int_equal(tare_features_decode(&features, record.data, record.size), TARE_OK);
    tare_tfrecord_close(reader);
    assert_int_equal(features.count, 4);
    assert_int_equal(tare_features_find(&features, "frames")->steps, 2);
    assert_int_equal(tare_features_to_sample(&sample, &features), TARE_OK);
    tare_features_reset(&features);
    frames = tare_sample_find(&sample, "frames");
    words = tare_sample_find(&sample, "words");
    assert_int_equal(frames->shape.rank, 2);
    assert_int_equal(frames->shape.dims[0], 2);
    assert_int_equal(frames->shape.dims[1], 2);
    assert_int_equal(words->dtype, TARE_DT_STRING);
    assert_memory_equal(TARE_CONST_DATA(struct tare_str, words)[1].data, "w1", 2);
    tare_sample_reset(&sample);
}

/* ---- what a spec must not say ---- */

static void refused(const char *text, const char *expected) {
    struct tare_dataset_spec *spec;
    tare_status status = tare_dataset_spec_parse(&spec, text, strlen(text), "my.spec");
    if (status != TARE_INVALID_ARGUMENT) fail_msg("%s: status %s", text, tare_status_name(status));
    assert_null(spec);
    if (!strstr(tare_error_text(), expected))
        fail_msg("%s\n got: %s\n expected: %s", text, tare_error_text(), expected);
}

static void spec__errors_tell_the_place_and_the_nearest_name(void **state) {
    (void)state;
    refused("input { name: \"x\" sourc: RAW }",
            "my.spec:1:19: DatasetInput has no field 'sourc' (did you mean 'source'?)");
    refused("input {\n  name: \"x\"\n  source: JPG\n}",
            "my.spec:3:11: Source has no value 'JPG' (did you mean 'JPEG'?)");
    refused("input { name: \"x\" type: FLAOT32 }", "did you mean 'FLOAT32'?");
    refused("input { name: \"x\" type: 20 }", "my.spec:1:25: Type has no value '20'");
    refused("input { name: \"x\" type: -1 }", "Type has no value '-1'");
    refused("input { name: \"x\" raw_type: 0x10 source: RAW }", "Type has no value '0x10'");
    refused("input { name: \"x\" source: 77 }", "Source has no value '77'");
    refused("input { name: \"x\" image { step { resize { height: 5 width: 5 method: 99 } } } }",
            "Method has no value '99'");
    refused("input { name: \"x\" image { step { resize { height: 5 width: 5 method: lanczos } } } }",
            "Method has no value 'lanczos' (did you mean 'LANCZOS'?)");
    refused("inputs { }", "did you mean 'input'?");
    refused("input { name: \"x\" ", "my.spec:1:");
    refused("", "my.spec: the spec has no inputs");
    refused("input { name: \"a\" } # input {\n  input { type: INT8 }", "my.spec:2:3: input 2 has no name");
    refused("input { name: \"input\" }\ninput { name: \"input\" }", "my.spec:2:1: input 'input' is duplicated");
    refused("input { name: \"x\" }\nlabel { std: 0 }",
            "my.spec:2:1: input 'label': std 0 (expected a number other than 0)");
}

static void spec__refuses_what_does_not_go_together(void **state) {
    static const char *const cases[][2] = {
        { "shape: [2, -1, -1]", "-1 at most once" },
        { "shape: -2", "dimension -2" },
        { "shape: [9000000000, 9000000000]", "too many elements" },
        { "shape: [1,1,1,1,1,1,1,1,1,1,1,1]", "12 dimensions" },
        { "default_value: 1", "default_value needs a shape" },
        { "default_value: [1, 2] shape: 3", "default_value has 2 values" },
        { "default_value: 1 shape: 3 type: STRING", "type is STRING" },
        { "source: RAW", "needs raw_type" },
        { "source: FLOAT_LIST raw_type: INT8", "raw_type requires source RAW" },
        { "raw_type: STRING", "raw_type STRING" },
        { "source: INT64_LIST image { }", "image cannot be combined with source INT64_LIST" },
        { "raw_type: UINT8 image { }", "image cannot be combined with raw_type" },
        { "image { channels: 2 }", "channels 2" },
        { "source: JPEG image { channels: 4 }", "no alpha channel" },
        { "image { step { } }", "step 1: no resize, crop or pad" },
        { "image { step { crop { height: 1 width: 1 } } step { resize { height: 5 } } }", "step 2: resize to 5 x 0" },
        { "image { step { resize { height: 5 width: 5 shorter_side: 5 } } }",
          "either height and width or shorter_side" },
        { "image { step { resize { longer_side: 5 pad: 0 } } }", "pad of resize needs height and width" },
        { "image { step { resize { longer_side: -1 } } }", "longer_side -1" },
        { "image { step { resize { height: 5 width: 5 method: AREA convention: PIL } } }",
          "convention PIL with this method" },
        { "image { step { resize { height: 5 width: 5 convention: PIL antialias: false } } }",
          "convention PIL with antialias: false" },
        { "image { step { resize { height: 5 width: 5 pad: nan } } }", "pad nan" },
        { "image { step { pad { height: 5 } } }", "pad to 5 x 0" },
        { "image { step { pad { height: 5 width: 5 value: inf } } }", "value inf of pad" },
        { "truncate: true", "truncate needs type" },
        { "image { step { resize { shorter_side: 40000 } } }", "shorter_side 40000" },
        { "image { step { crop { fraction: 1.5 } } }", "fraction 1.5" },
        { "image { step { crop { fraction: nan } } }", "fraction nan" },
        { "image { step { crop { height: 5 } } }", "crop to 5 x 0" },
        { "scale: inf", "scale inf" },
        { "mean: [1, nan]", "mean nan" },
        { "std: 1 type: STRING", "strings cannot be scaled" },
        { "length { }", "length of 0 rows" },
        { "class_name: \"a\" class_name: \"a\"", "'a' is duplicated" },
        { "class_name: \"a\" source: FLOAT_LIST", "class_name requires source BYTES" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[200];
        snprintf(text, sizeof text, "input { name: \"x\" %s }", cases[i][0]);
        refused(text, cases[i][1]);
        assert_non_null(strstr(tare_error_text(), "my.spec:1:1: input 'x': "));
    }
}

/* ---- records that do not fit ---- */

static void first_record(struct tare_tfrecord *record, struct tare_tfrecord_reader **reader, const char *file) {
    bool end;
    assert_int_equal(tare_tfrecord_open(reader, golden(file)), TARE_OK);
    assert_int_equal(tare_tfrecord_next(record, &end, *reader), TARE_OK);
}

/* A spec that also reads labelled records serves samples without labels; a misspelled feature is an error. */
static void samples__need_no_label(void **state) {
    static const struct {
        const char *label, *error;
        size_t count;
    } cases[] = { { "label", NULL, 2 },
                  { "species", NULL, 1 },
                  { "lable", "no feature 'lable'; did you mean 'label'?", 1 } };
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    (void)state;
    first_record(&record, &reader, "images.tfrecord");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_dataset_spec *spec;
        struct tare_sample sample;
        char text[100];
        snprintf(text, sizeof text, "input { name: \"floats\" }\nlabel { feature: \"%s\" }", cases[i].label);
        assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "my.spec"), TARE_OK);
        const tare_status status = tare_dataset_spec_decode(&sample, spec, record.data, record.size);
        if ((status == TARE_OK) != !cases[i].error) fail_msg("%s: %s", cases[i].label, tare_error_text());
        if (cases[i].error) assert_non_null(strstr(tare_error_text(), cases[i].error));
        if (!cases[i].error) assert_int_equal(sample.count, cases[i].count);
        tare_sample_reset(&sample);
        tare_dataset_spec_free(spec);
    }
    tare_tfrecord_close(reader);
}

/* What a command compares with needs no line of the spec; texts are no labels, and names of the spec come first. */
static void kept_features__need_no_line(void **state) {
    static const struct {
        const char *kept;
        size_t count;
    } cases[] = { { "label", 2 }, { "tokens", 2 }, { "raw", 1 }, { "none", 1 }, { "floats", 1 }, { NULL, 1 } };
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    (void)state;
    first_record(&record, &reader, "images.tfrecord");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const char text[] = "input { name: \"floats\" }";
        const char *kept = cases[i].kept;
        struct tare_dataset_spec *spec;
        struct tare_sample sample;
        assert_int_equal(tare_dataset_spec_parse(&spec, text, sizeof text - 1, "my.spec"), TARE_OK);
        for (int twice = 0; twice < 2; twice++)
            assert_int_equal(tare_dataset_spec_keep(spec, kept), TARE_OK);
        if (tare_dataset_spec_decode(&sample, spec, record.data, record.size) != TARE_OK)
            fail_msg("%s: %s", kept, tare_error_text());
        if (sample.count != cases[i].count)
            fail_msg("%s: %zu values, expected %zu", kept, sample.count, cases[i].count);
        if (sample.count == 2) assert_non_null(tare_sample_find(&sample, kept));
        tare_sample_reset(&sample);
        tare_dataset_spec_free(spec);
    }
    tare_tfrecord_close(reader);
}

static void record__that_does_not_fit_says_got_and_wanted(void **state) {
    static const char *const cases[][2] = {
        { "feature: \"flots\"", "no feature 'flots'; did you mean 'floats'? (it has image/jpeg, image/gray" },
        { "feature: \"floats\" source: INT64_LIST", "feature 'floats' is a float_list (expected an int64_list)" },
        { "feature: \"label\" source: RAW type: INT8", "feature 'label' is an int64_list (expected a bytes_list)" },
        { "feature: \"raw\" source: RAW raw_type: FLOAT64", "12 bytes (expected a multiple of 8 for float64)" },
        { "feature: \"floats\" shape: [4, 2]", "6 elements (expected [4,2])" },
        { "feature: \"floats\" shape: [4, -1]", "6 elements (expected [4,?])" },
        { "feature: \"image/png\" source: JPEG", "feature 'image/png': the bytes are a PNG (expected a JPEG)" },
        { "feature: \"raw\" source: IMAGE", "not an image" },
        { "feature: \"image/png\" image { } shape: [24, 32, 1]", "(expected [24,32,1])" },
        { "feature: \"image/png\" image { step { crop { height: 25 width: 3 } } }",
          "a crop of 25 x 3 is larger than the image" },
        { "feature: \"class\" class_name: \"dog\"", "'bird' is none of the 1 names" },
        { "feature: \"class\" type: INT32",
          "string values cannot be converted to int32 (list the texts as class_name" },
        { "feature: \"class\" scale: 2", "cannot be converted to scaled" },
        { "feature: \"image/png\" image { } mean: [1, 2]", "mean has 2 values (expected 1, or one for each of 3" },
        { "feature: \"floats\" channels_first: true", "channels_first needs numbers" },
        { "feature: \"floats\" image { }", "is not an image" },
        { "feature: \"floats\" length { rows: 2 } shape: [2, 4]", "6 elements are not a whole number of rows of 4" },
    };
    struct tare_tfrecord_reader *reader;
    struct tare_tfrecord record;
    (void)state;
    first_record(&record, &reader, "images.tfrecord");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_dataset_spec *spec;
        struct tare_sample sample;
        char text[200];
        snprintf(text, sizeof text, "input { name: \"x\" %s }", cases[i][0]);
        if (tare_dataset_spec_parse(&spec, text, strlen(text), "my.spec") != TARE_OK)
            fail_msg("%s: %s", text, tare_error_text());
        assert_int_not_equal(tare_dataset_spec_decode(&sample, spec, record.data, record.size), TARE_OK);
        if (!strstr(tare_error_text(), cases[i][1]) || strncmp(tare_error_text(), "input 'x': ", 11) != 0)
            fail_msg("%s\n got: %s\n expected: %s", text, tare_error_text(), cases[i][1]);
        tare_sample_reset(&sample);
        tare_dataset_spec_free(spec);
    }
    tare_tfrecord_close(reader);
}

static void numbers__that_do_not_fit_are_refused(void **state) {
    static const char text[] = "input { name: \"x\" type: INT8 }";
    struct tare_features features = { 0 };
    struct tare_dataset_spec *spec;
    struct tare_sample sample;
    (void)state;
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
    assert_int_equal(tare_features_add_int(&features, "x", 128), TARE_OK);
    assert_int_equal(tare_dataset_spec_apply(&sample, spec, &features), TARE_TYPE);
    assert_string_equal(tare_error_text(), "input 'x': value 128 does not fit int8");
    tare_sample_reset(&sample);
    tare_features_reset(&features);
    assert_int_equal(tare_features_add_int(&features, "x", -128), TARE_OK);
    assert_int_equal(tare_dataset_spec_apply(&sample, spec, &features), TARE_OK);
    assert_int_equal(tare_tensor_get_i64(&sample.values[0], 0), -128);
    tare_sample_reset(&sample);
    tare_features_reset(&features);
    tare_dataset_spec_free(spec);
}

/* features { feature { key: "x" value { float_list { } } } } */
static void default_value__stands_in_for_an_empty_list(void **state) {
    static const char record[] = "\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x12\x00";
    static const char text[] = "input { name: \"x\" shape: 2 default_value: [3, 4] type: INT32 }";
    struct tare_dataset_spec *spec;
    struct tare_sample sample;
    (void)state;
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
    if (tare_dataset_spec_decode(&sample, spec, record, 11) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_int_equal(sample.values[0].shape.rank, 2);
    assert_int_equal(tare_tensor_get_i64(&sample.values[0], 0), 3);
    assert_int_equal(tare_tensor_get_i64(&sample.values[0], 1), 4);
    tare_sample_reset(&sample);
    tare_dataset_spec_free(spec);
}

/* feature_lists { feature_list { key: "x" value { } } }: the type of the values is not known. */
static void feature_list_without_steps__has_the_dtype_that_the_spec_asks_for(void **state) {
    static const char record[] = "\x12\x07\x0a\x05\x0a\x01x\x12\x00";
    static const struct {
        const char *spec;
        int dtype;
    } cases[] = { { "source: INT64_LIST", TARE_DT_INT64 }, { "type: INT32", TARE_DT_INT32 },
                  { "source: BYTES", TARE_DT_STRING },     { "class_name: \"a\"", TARE_DT_INT64 },
                  { "source: FLOAT_LIST", TARE_DT_FLOAT }, { "", TARE_DT_FLOAT } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_dataset_spec *spec;
        struct tare_sample sample;
        char text[200];
        snprintf(text, sizeof text, "input { name: \"x\" length { rows: 2 } shape: 2 %s }", cases[i].spec);
        assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
        if (tare_dataset_spec_decode(&sample, spec, record, sizeof record - 1) != TARE_OK)
            fail_msg("%s: %s", text, tare_error_text());
        if (sample.values[0].dtype != cases[i].dtype) fail_msg("%s: %s", text, tare_dtype_name(sample.values[0].dtype));
        assert_int_equal(sample.values[0].elements, 2);
        tare_sample_reset(&sample);
        tare_dataset_spec_free(spec);
    }
}

/* A tensor of `rank` dims, counting up, as the feature x. */
static void array_feature(struct tare_features *out, struct tare_tensor *value, const struct tare_shape *shape) {
    const struct tare_sample sample = { .keys = (const char *[]){ "x" }, .values = value, .count = 1 };
    assert_int_equal(tare_tensor_new(value, TARE_DT_FLOAT, shape), TARE_OK);
    for (int64_t i = 0; i < value->elements; i++)
        TARE_DATA(float, value)[i] = (float)i;
    assert_int_equal(tare_features_of_sample(out, &sample), TARE_OK);
}

static void length__of_an_array_is_that_of_its_first_axis(void **state) {
    static const char text[] = "input { name: \"x\" length { rows: 3 } }";
    static const struct tare_shape shapes[] = { { .rank = 2, .dims = { 1, 5 } }, { .rank = 3, .dims = { 1, 2, 4 } } };
    struct tare_dataset_spec *spec;
    (void)state;
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
    for (int i = 0; i < 2; i++) {
        struct tare_features features;
        struct tare_tensor value;
        struct tare_sample sample;
        array_feature(&features, &value, &shapes[i]);
        if (tare_dataset_spec_apply(&sample, spec, &features) != TARE_OK) fail_msg("%s", tare_error_text());
        const struct tare_tensor *got = &sample.values[0];
        assert_int_equal(got->shape.rank, 2 + i); /* [1,3], [1,3,4] */
        assert_int_equal(got->shape.dims[1], 3);
        assert_int_equal(got->shape.dims[1 + i], i ? 4 : 3);
        for (int64_t k = 0; k < got->elements; k++)
            assert_float_equal(TARE_CONST_DATA(float, got)[k], k < (i ? 8 : 3) ? (float)k : 0, 0);
        tare_sample_reset(&sample);
        tare_features_reset(&features);
        tare_tensor_reset(&value);
    }
    tare_dataset_spec_free(spec);
}

/* Finite numbers do not become infinite, whether they are scaled or not; infinities stay. */
static void numbers__that_a_type_does_not_hold_are_errors(void **state) {
    static const struct {
        double x;
        const char *spec;
        bool fits;
    } cases[] = {
        { 1e300, "", true },
        { 1e300, "type: FLOAT32", false },
        { -1e300, "type: BFLOAT16", false },
        { 65504, "type: FLOAT16", true },
        { 65520, "type: FLOAT16", false },
        { 3e38, "type: FLOAT32 scale: 2", false },
        { 3e38, "type: FLOAT32 scale: 0.5", true },
        { INFINITY, "type: FLOAT32", true },
        { -INFINITY, "type: FLOAT16", true },
        { 16777217, "column: 'x' type: FLOAT64", true },
        { 1e300, "column: 'x'", false },
        { 1e300, "column: 'x' type: FLOAT64", true },
    };
    const struct tare_shape shape = { .rank = 2, .dims = { 1, 1 } };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_dataset_spec *spec;
        struct tare_features features;
        struct tare_tensor value;
        struct tare_sample sample = { .keys = (const char *[]){ "x" }, .values = &value, .count = 1 };
        char text[100];
        snprintf(text, sizeof text, "input { name: 'x' %s }", cases[i].spec);
        assert_int_equal(tare_tensor_from(&value, TARE_DT_DOUBLE, &shape, &cases[i].x), TARE_OK);
        assert_int_equal(tare_features_of_sample(&features, &sample), TARE_OK);
        if (tare_dataset_spec_parse(&spec, text, strlen(text), "s") != TARE_OK) fail_msg("%s", tare_error_text());
        const tare_status status = tare_dataset_spec_apply(&sample, spec, &features);
        if (status != (cases[i].fits ? TARE_OK : TARE_TYPE)) fail_msg("%g, %s: %d", cases[i].x, text, status);
        if (!cases[i].fits) assert_non_null(strstr(tare_error_text(), "does not fit"));
        if (cases[i].fits && sample.values[0].dtype == TARE_DT_DOUBLE)
            assert_true(tare_tensor_get_f64(&sample.values[0], 0) == cases[i].x);
        tare_sample_reset(&sample);
        tare_features_reset(&features);
        tare_tensor_reset(&value);
        tare_dataset_spec_free(spec);
    }
}

/* Clipped, they would be other values: 255 for 300, 0 for -1. */
static void fillers__must_fit_their_type(void **state) {
    static const char text[] = "input { name: 'x' length { rows: 2 value: -1 } }";
    static const char *const bad[] = { "type: UINT8 default_value: -1", "type: INT8 default_value: 128",
                                       "type: BOOL default_value: 2", "type: UINT8 length { rows: 3 value: 300 }" };
    const uint8_t byte = 7;
    const struct tare_shape shape = { .rank = 2, .dims = { 1, 1 } };
    struct tare_dataset_spec *spec;
    struct tare_features features;
    struct tare_tensor value;
    struct tare_sample sample = { .keys = (const char *[]){ "x" }, .values = &value, .count = 1 };
    (void)state;
    assert_int_equal(tare_tensor_from(&value, TARE_DT_UINT8, &shape, &byte), TARE_OK);
    assert_int_equal(tare_features_of_sample(&features, &sample), TARE_OK);
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
    assert_int_equal(tare_dataset_spec_apply(&sample, spec, &features), TARE_TYPE);
    assert_string_equal(tare_error_text(), "input 'x': the value -1 of length does not fit uint8");
    tare_sample_reset(&sample);
    tare_features_reset(&features);
    tare_tensor_reset(&value);
    tare_dataset_spec_free(spec);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char input[100];
        snprintf(input, sizeof input, "input { name: 'x' shape: 1 %s }", bad[i]);
        assert_int_equal(tare_dataset_spec_parse(&spec, input, strlen(input), "s"), TARE_INVALID_ARGUMENT);
        assert_non_null(strstr(tare_error_text(), "does not fit"));
    }
}

/* Steps of one and of two values: what they need is a shape for all of them. */
static void feature_lists__of_unequal_steps_need_a_shape(void **state) {
    static const char record[] =
        "\x12\x16\x0a\x14\x0a\x01l\x12\x0f\x0a\x05\x1a\x03\x0a\x01\x07\x0a\x06\x1a\x04\x0a\x02\x08\x09";
    static const char *const bad[] = { "", "length { rows: 4 }", "length { rows: 4 } shape: 4" };
    static const char *const good[] = { "shape: [-1, 3]", "length { rows: 1 } shape: [1, 3]" };
    struct tare_dataset_spec *spec;
    struct tare_sample sample;
    char text[100];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "input { name: 'l' %s }", bad[i]);
        assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
        assert_int_equal(tare_dataset_spec_decode(&sample, spec, record, sizeof record - 1), TARE_SHAPE);
        if (!strstr(tare_error_text(),
                    "'l' has steps of different lengths (expected equal lengths, or shape: [ROWS, N]"))
            fail_msg("%s: %s", bad[i], tare_error_text());
        tare_sample_reset(&sample);
        tare_dataset_spec_free(spec);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(text, sizeof text, "input { name: 'l' %s }", good[i]);
        assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
        if (tare_dataset_spec_decode(&sample, spec, record, sizeof record - 1) != TARE_OK)
            fail_msg("%s: %s", good[i], tare_error_text());
        for (int64_t k = 0; k < 3; k++)
            assert_int_equal(tare_tensor_get_i64(&sample.values[0], k), 7 + k);
        tare_sample_reset(&sample);
        tare_dataset_spec_free(spec);
    }
}

static void byte_order_mark__is_skipped(void **state) {
    static const char good[] = "\xef\xbb\xbf"
                               "input { name: 'x' }",
                      bad[] = "\xef\xbb\xbf"
                              " input { name: '' }";
    struct tare_dataset_spec *spec;
    (void)state;
    assert_int_equal(tare_dataset_spec_parse(&spec, good, strlen(good), "s"), TARE_OK);
    tare_dataset_spec_free(spec);
    assert_int_equal(tare_dataset_spec_parse(&spec, bad, strlen(bad), "s"), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "s:1:2: input 1 has no name");
}

static void record__is_one_string(void **state) {
    static const char record[] = "\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x1a\x00";
    static const char text[] = "input { name: \"examples\" source: RECORD shape: 1 whole: true }";
    struct tare_features features = { 0 };
    struct tare_dataset_spec *spec;
    struct tare_sample sample;
    (void)state;
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
    if (tare_dataset_spec_decode(&sample, spec, record, 11) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_int_equal(sample.values[0].dtype, TARE_DT_STRING);
    assert_int_equal(sample.values[0].shape.rank, 1);
    const struct tare_str *got = TARE_CONST_DATA(struct tare_str, &sample.values[0]);
    assert_int_equal(got->size, 11);
    assert_memory_equal(got->data, record, 11);
    tare_sample_reset(&sample);
    assert_int_equal(tare_dataset_spec_apply(&sample, spec, &features), TARE_TYPE);
    assert_non_null(strstr(tare_error_text(), "source RECORD needs a TFRecord file"));
    tare_sample_reset(&sample);
    tare_dataset_spec_free(spec);
}

static void default_value__has_the_dtype_of_the_feature(void **state) {
    static const char empty[] = "\x0a\x09\x0a\x07\x0a\x01x\x12\x02\x1a\x00"; /* int64_list { } */
    static const struct {
        const char *spec;
        size_t size; /* of the record: 0: without x */
        int dtype;   /* TARE_DT_INVALID: an error */
    } cases[] = {
        { "shape: 1 default_value: 3", 11, TARE_DT_INT64 },
        { "shape: 1 default_value: 3", 0, TARE_DT_INVALID },
        { "shape: 1 default_value: 0.5", 0, TARE_DT_FLOAT },
        { "shape: 1 default_value: 3 source: INT64_LIST", 0, TARE_DT_INT64 },
        { "shape: 1 default_value: 3 source: FLOAT_LIST", 0, TARE_DT_FLOAT },
        { "shape: 1 default_value: 3 source: RAW raw_type: UINT8", 0, TARE_DT_UINT8 },
        { "shape: 1 default_value: 0 class_name: \"a\"", 0, TARE_DT_INT64 },
        { "shape: 1 default_value: 3 type: INT32", 0, TARE_DT_INT32 },
        { "shape: 1 default_value: 3 type: FLOAT32 scale: 2", 0, TARE_DT_FLOAT },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_dataset_spec *spec;
        struct tare_sample sample;
        char text[200];
        snprintf(text, sizeof text, "input { name: \"x\" %s }", cases[i].spec);
        if (tare_dataset_spec_parse(&spec, text, strlen(text), "s") != TARE_OK) fail_msg("%s", tare_error_text());
        const tare_status status = tare_dataset_spec_decode(&sample, spec, empty, cases[i].size);
        if (cases[i].dtype == TARE_DT_INVALID) {
            assert_int_equal(status, TARE_TYPE);
            assert_non_null(strstr(tare_error_text(), "the dtype of default_value is not known (set type"));
        } else {
            if (status != TARE_OK) fail_msg("%s: %s", text, tare_error_text());
            if (sample.values[0].dtype != cases[i].dtype)
                fail_msg("%s: %s", text, tare_dtype_name(sample.values[0].dtype));
        }
        tare_sample_reset(&sample);
        tare_dataset_spec_free(spec);
    }
}

/* Images that come as arrays, with the axis of samples. */
static void samples__go_through_a_spec_too(void **state) {
    static const char text[] =
        "input { name: \"y\" feature: \"x\" image { order: BGR step { crop { height: 1 width: 1 } } } "
        "scale: 2 channels_first: true }";
    const char *const keys[] = { "x" };
    const uint8_t pixels[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    const struct tare_shape shape = tare_shape_make(4, 1, 2, 2, 3);
    struct tare_dataset_spec *spec;
    struct tare_sample sample;
    struct tare_tensor x;
    const struct tare_tensor *y;
    void *data;
    size_t size;
    (void)state;
    assert_int_equal(tare_dataset_spec_parse(&spec, text, strlen(text), "s"), TARE_OK);
    assert_int_equal(tare_tensor_from(&x, TARE_DT_UINT8, &shape, pixels), TARE_OK);
    assert_int_equal(tare_sample_encode(&data, &size, keys, &x, 1), TARE_OK);
    if (tare_dataset_spec_decode(&sample, spec, data, size) != TARE_OK) fail_msg("%s", tare_error_text());
    y = tare_sample_find(&sample, "y");
    assert_int_equal(y->dtype, TARE_DT_FLOAT);
    assert_int_equal(y->shape.rank, 4);
    assert_int_equal(y->shape.dims[1], 3);
    for (int c = 0; c < 3; c++)
        assert_true(TARE_CONST_DATA(float, y)[c] == (float)(2 * (3 - c)));
    tare_sample_reset(&sample);
    tare_tensor_reset(&x);
    tare_free(data);
    tare_dataset_spec_free(spec);
}

/* ---- damage ---- */

/* Whatever the bytes are: an answer, no crash, and not much memory. The sanitizers look on. */
static void damaged__records_are_decoded_or_refused(void **state) {
    static const char *const specs[][2] = { { "images", "jpeg" },
                                            { "images", "png_area" },
                                            { "images", "lists" },
                                            { "images", "gray" },
                                            { "sequences", "frames" } };
    unsigned random = 1;
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        struct tare_dataset_spec *spec = load(specs[s][1]);
        struct tare_tfrecord_reader *reader;
        struct tare_tfrecord record;
        struct tare_sample sample;
        char file[64], *copy;
        int refused_count = 0;
        snprintf(file, sizeof file, "%s.tfrecord", specs[s][0]);
        first_record(&record, &reader, file);
        copy = tare_malloc(record.size);
        for (size_t cut = 0; cut < record.size; cut += cut < 200 ? 1 : 37) {
            memcpy(copy, record.data, cut);
            refused_count += tare_dataset_spec_decode(&sample, spec, copy, cut) != TARE_OK;
            tare_sample_reset(&sample);
        }
        assert_true(refused_count > 0);
        for (int n = 0; n < 200; n++) {
            memcpy(copy, record.data, record.size);
            random = random * 1664525u + 1013904223u;
            copy[(random >> 8) % record.size] ^= (char)(1 + (random >> 4) % 255);
            if (tare_dataset_spec_decode(&sample, spec, copy, record.size) != TARE_OK)
                assert_true(strlen(tare_error_text()) > 0);
            tare_sample_reset(&sample);
        }
        tare_free(copy);
        tare_tfrecord_close(reader);
        tare_dataset_spec_free(spec);
    }
}

static void faults__are_reported(void **state) {
    static const char *const names[][2] = { { "images", "jpeg_normalized" },
                                            { "images", "lists" },
                                            { "sequences", "frames" } };
    (void)state;
    for (size_t s = 0; s < sizeof names / sizeof *names; s++) {
        struct tare_tfrecord_reader *reader;
        struct tare_tfrecord record;
        tare_status status = TARE_NO_MEMORY;
        char file[64];
        snprintf(file, sizeof file, "%s.tfrecord", names[s][0]);
        first_record(&record, &reader, file);
        for (int n = 1; status != TARE_OK; n++) {
            struct tare_dataset_spec *spec;
            struct tare_sample sample = { 0 };
            snprintf(file, sizeof file, "%s.spec", names[s][1]);
            tare_alloc_fail_at(n);
            status = tare_dataset_spec_load(&spec, golden(file));
            if (status == TARE_OK) status = tare_dataset_spec_decode(&sample, spec, record.data, record.size);
            tare_alloc_fail_at(0);
            if (status != TARE_OK) assert_int_equal(status, TARE_NO_MEMORY);
            tare_sample_reset(&sample);
            tare_dataset_spec_free(spec);
            assert_true(n < 5000);
        }
        tare_tfrecord_close(reader);
    }
}

/* The last test: no forged size was believed. */
static void memory__stays_small(void **state) {
    (void)state;
    assert_true(memory_used() < ((int64_t)200 << 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images__are_scaled_by_each_rule),
        cmocka_unit_test(images__are_decoded_cut_and_normalized),
        cmocka_unit_test(lists__become_tensors),
        cmocka_unit_test(feature_lists__become_tensors),
        cmocka_unit_test(features__are_shown_as_they_are),
        cmocka_unit_test(spec__errors_tell_the_place_and_the_nearest_name),
        cmocka_unit_test(spec__refuses_what_does_not_go_together),
        cmocka_unit_test(samples__need_no_label),
        cmocka_unit_test(kept_features__need_no_line),
        cmocka_unit_test(record__that_does_not_fit_says_got_and_wanted),
        cmocka_unit_test(numbers__that_do_not_fit_are_refused),
        cmocka_unit_test(default_value__stands_in_for_an_empty_list),
        cmocka_unit_test(feature_list_without_steps__has_the_dtype_that_the_spec_asks_for),
        cmocka_unit_test(length__of_an_array_is_that_of_its_first_axis),
        cmocka_unit_test(numbers__that_a_type_does_not_hold_are_errors),
        cmocka_unit_test(fillers__must_fit_their_type),
        cmocka_unit_test(feature_lists__of_unequal_steps_need_a_shape),
        cmocka_unit_test(byte_order_mark__is_skipped),
        cmocka_unit_test(record__is_one_string),
        cmocka_unit_test(default_value__has_the_dtype_of_the_feature),
        cmocka_unit_test(samples__go_through_a_spec_too),
        cmocka_unit_test(damaged__records_are_decoded_or_refused),
        cmocka_unit_test(faults__are_reported),
        cmocka_unit_test(memory__stays_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
