/* Drafts of DatasetSpecs for a model's inputs: they parse, and name the features that fit. Labels as one-hot rows. */
#include "datasets/spec_draft.h"
#include "base/alloc.h"
#include "datasets/label.h"
#include "datasets/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static struct tare_survey_key image = { .name = "image/encoded",
                                        .dtype = TARE_DT_STRING,
                                        .records = 9,
                                        .elements = 9,
                                        .images = 9,
                                        .shortest = 100,
                                        .longest = 900 };
static struct tare_survey_key label = {
    .name = "image/class/label", .dtype = TARE_DT_INT64, .records = 9, .elements = 9
};

static size_t draft_with(struct tare_strbuf *out, const struct tare_spec_draft_options *options,
                         struct tare_survey_key *keys, size_t n_keys, const struct tare_spec_draft_input *inputs,
                         size_t n_inputs, const char *summary) {
    struct tare_spec_draft_found found;
    const struct tare_survey survey = { .keys = keys, .n_keys = n_keys, .records = 9, .kind = "tf.Example" };
    struct tare_dataset_spec *spec;
    *out = (struct tare_strbuf){ 0 };
    for (size_t i = 0; i < n_keys; i++)
        if (!keys[i].shape.rank) keys[i].shape = tare_shape_make(1, 1);
    tare_dataset_spec_draft_for(out, &found, &survey, inputs, n_inputs, options);
    if (summary) assert_string_equal(tare_strbuf_text(&found.summary), summary);
    tare_strbuf_free(&found.summary);
    if (found.missing < n_inputs) {
        if (tare_dataset_spec_parse(&spec, tare_strbuf_text(out), out->size, "draft") != TARE_OK)
            fail_msg("%s\n%s", tare_error_text(), tare_strbuf_text(out));
        tare_dataset_spec_free(spec);
    }
    return found.missing;
}

static size_t draft(struct tare_strbuf *out, struct tare_survey_key *keys, size_t n_keys,
                    const struct tare_spec_draft_input *inputs, size_t n_inputs) {
    return draft_with(out, &(struct tare_spec_draft_options){ 0 }, keys, n_keys, inputs, n_inputs, NULL);
}

static void assert_has(const struct tare_strbuf *text, const char *part) {
    if (!strstr(tare_strbuf_text(text), part)) fail_msg("no '%s' in:\n%s", part, tare_strbuf_text(text));
}

static void draft__resizes_images_to_the_input(void **state) {
    const struct tare_spec_draft_input last = { "pixels", TARE_DT_FLOAT, tare_shape_make(4, -1, 96, 128, 3) };
    const struct tare_spec_draft_input first = { "pixels", TARE_DT_UINT8, tare_shape_make(4, -1, 3, 96, 128) };
    struct tare_survey_key keys[] = { label, image };
    struct tare_strbuf text;
    (void)state;
    assert_int_equal(draft(&text, keys, 2, &last, 1), 0);
    assert_has(&text, "name: \"pixels\"\n  feature: \"image/encoded\"\n  image { channels: 3 step { resize { height: "
                      "96 width: 128 } } }");
    assert_has(&text, "label {\n  feature: \"image/class/label\"");
    tare_strbuf_free(&text);
    assert_int_equal(draft(&text, keys, 2, &first, 1), 0);
    assert_has(&text, "step { resize { height: 96 width: 128 } } }\n  channels_first: true\n  type: UINT8");
    tare_strbuf_free(&text);
}

static void draft__with_options__needs_no_edit(void **state) {
    const struct tare_spec_draft_input pixels = { "pixels", TARE_DT_FLOAT, tare_shape_make(4, -1, 96, 128, 3) },
                                       all = { "all", TARE_DT_FLOAT, tare_shape_make(2, -1, 3) },
                                       numbers[] = { { "a", TARE_DT_FLOAT, tare_shape_make(2, -1, 1) },
                                                     { "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 2) } };
    struct tare_survey_key images[] = { label, image };
    struct tare_survey_key columns[] = {
        { .name = "a", .dtype = TARE_DT_FLOAT, .records = 9, .elements = 9 },
        { .name = "species",
          .dtype = TARE_DT_STRING,
          .records = 9,
          .elements = 9,
          .texts = { "no", "ay" },
          .n_texts = 2 },
        { .name = "b", .dtype = TARE_DT_INT64, .records = 9, .elements = 9 },
        { .name = "c", .dtype = TARE_DT_FLOAT, .records = 9, .elements = 9 },
        { .name = "y", .dtype = TARE_DT_FLOAT, .records = 9, .elements = 9 },
    };
    struct tare_strbuf text;
    (void)state;
    draft_with(&text, &(struct tare_spec_draft_options){ .scale = TARE_SPEC_SCALE_SIGNED }, images, 2, &pixels, 1,
               "'pixels' from feature 'image/encoded'; label 'image/class/label'");
    assert_has(&text, "  type: FLOAT32\n  mean: 127.5 std: 127.5\n}");
    tare_strbuf_free(&text);
    draft_with(
        &text, &(struct tare_spec_draft_options){ .label = "species", .decides = true }, columns, 4, numbers, 2,
        "'x' from all columns of numbers in the order of the data, 1 input by name; label 'species', whose texts "
        "are numbered in the order of their bytes");
    assert_has(&text, "label {\n  feature: \"species\"\n  whole: true\n  class_name: \"ay\"   # 0\n  class_name: "
                      "\"no\"   # 1\n}");
    tare_strbuf_free(&text);
    draft_with(&text, &(struct tare_spec_draft_options){ .target = "y" }, columns, 5, numbers, 1,
               "1 input by name; expected values 'y'");
    assert_has(&text, "label {\n  name: \"y\"\n  feature: \"y\"\n  shape: 1 whole: true\n}");
    tare_strbuf_free(&text);
    draft_with(&text, &(struct tare_spec_draft_options){ .target = "y" }, columns, 5, &all, 1,
               "'all' from all columns of numbers in the order of the data; expected values 'y'");
    assert_has(&text, "  column: \"a\"\n  column: \"b\"\n  column: \"c\"\n  shape: [3]\n");
    tare_strbuf_free(&text);
}

static void draft__prefers_features_of_the_same_name_and_converts_dtypes(void **state) {
    struct tare_survey_key keys[] = { { .name = "a", .dtype = TARE_DT_INT64, .records = 9, .elements = 36 },
                                      { .name = "b", .dtype = TARE_DT_INT64, .records = 5, .elements = 20 } };
    const struct tare_spec_draft_input inputs[] = { { "b", TARE_DT_INT32, tare_shape_make(2, -1, 4) },
                                                    { "mask", TARE_DT_FLOAT, tare_shape_make(3, -1, 2, 2) } };
    struct tare_strbuf text;
    (void)state;
    keys[0].shape = keys[1].shape = tare_shape_make(1, 4);
    assert_int_equal(draft(&text, keys, 2, inputs, 2), 0);
    assert_has(&text, "name: \"b\"\n  feature: \"b\"\n  shape: [4]\n  type: INT32\n  default_value: 0");
    assert_has(&text, "name: \"mask\"\n  feature: \"a\"\n  shape: [2, 2]\n  type: FLOAT32\n");
    tare_strbuf_free(&text);
}

/* A feature that has the input's elements in every record is taken before an earlier one of varying length. */
static void draft__prefers_features_of_known_length(void **state) {
    struct tare_survey_key keys[] = { { .name = "a", .dtype = TARE_DT_FLOAT, .records = 9, .elements = 20 },
                                      { .name = "b", .dtype = TARE_DT_FLOAT, .records = 9, .elements = 18 } };
    const struct tare_spec_draft_input input = { "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 2) };
    struct tare_strbuf text;
    (void)state;
    keys[0].shape = tare_shape_make(1, -1);
    keys[1].shape = tare_shape_make(1, 2);
    assert_int_equal(draft(&text, keys, 2, &input, 1), 0);
    assert_has(&text, "feature: \"b\"\n  shape: [2]\n}");
    tare_strbuf_free(&text);
}

static void draft__gives_whole_records_to_models_that_parse_them(void **state) {
    struct tare_survey_key keys[] = { { .name = "s", .dtype = TARE_DT_STRING, .records = 9, .elements = 9 } };
    const struct tare_spec_draft_input input = { "examples", TARE_DT_STRING, tare_shape_make(1, -1) };
    struct tare_strbuf text;
    (void)state;
    assert_int_equal(draft(&text, keys, 1, &input, 1), 0);
    assert_has(&text, "name: \"examples\"\n  source: RECORD shape: 1 whole: true\n}");
    tare_strbuf_free(&text);
}

static void draft__joins_scalar_numbers_into_one_input(void **state) {
    struct tare_survey_key keys[] = { { .name = "age", .dtype = TARE_DT_INT64, .records = 9, .elements = 9 },
                                      { .name = "label", .dtype = TARE_DT_INT64, .records = 9, .elements = 9 },
                                      { .name = "income", .dtype = TARE_DT_FLOAT, .records = 9, .elements = 9 },
                                      { .name = "city", .dtype = TARE_DT_STRING, .records = 9, .elements = 9 } };
    const struct tare_spec_draft_input input = { "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 2) };
    struct tare_strbuf text;
    (void)state;
    assert_int_equal(draft(&text, keys, 4, &input, 1), 0);
    assert_has(&text, "name: \"x\"\n  # In the order of the data; the model may expect another one.\n  column: "
                      "\"age\"\n  column: \"income\"\n  shape: [2]\n  type: FLOAT32");
    assert_has(&text, "label {\n  feature: \"label\"");
    assert_has(&text, "# not used: feature \"city\", string [1]");
    tare_strbuf_free(&text);
}

static void assert_lacks(const struct tare_strbuf *text, const char *part) {
    if (strstr(tare_strbuf_text(text), part)) fail_msg("'%s' in:\n%s", part, tare_strbuf_text(text));
}

/* Which number a text becomes, only the user knows: without the comments the draft parses with class names. */
static void draft__shows_the_class_names_of_texts(void **state) {
    struct tare_survey_key keys[] = { { .name = "sex",
                                        .dtype = TARE_DT_STRING,
                                        .records = 9,
                                        .elements = 9,
                                        .shortest = 4,
                                        .longest = 6,
                                        .texts = { "male", "fe\"male" },
                                        .n_texts = 2 },
                                      { .name = "code",
                                        .dtype = TARE_DT_STRING,
                                        .records = 9,
                                        .elements = 9,
                                        .shortest = 1,
                                        .longest = 1,
                                        .texts = { "b", "a" },
                                        .n_texts = 2,
                                        .has_more_texts = true },
                                      { .name = "class",
                                        .dtype = TARE_DT_STRING,
                                        .records = 9,
                                        .elements = 9,
                                        .shortest = 3,
                                        .longest = 3,
                                        .texts = { "yes" },
                                        .n_texts = 1 } };
    const struct tare_spec_draft_input inputs[] = { { "sex", TARE_DT_FLOAT, tare_shape_make(2, -1, 1) },
                                                    { "code", TARE_DT_BOOL, tare_shape_make(1, -1) } };
    struct tare_strbuf text;
    (void)state;
    assert_int_equal(draft(&text, keys, 3, inputs, 2), 0);
    assert_has(&text, "  # class_name: \"fe\\\"male\"   # 0\n  # class_name: \"male\"   # 1\n  shape: [1]\n");
    assert_has(&text, "  # class_name: \"a\"   # 0\n  # class_name: \"b\"   # 1\n  # # … and the other values\n");
    assert_has(&text, "# label {\n#   feature: \"class\"\n#   whole: true\n#   class_name: \"yes\"   # 0\n# }\n");
    assert_lacks(&text, "RAW");
    for (char *at = text.data; (at = strstr(at, "  # class_name")); at++)
        at[2] = ' ';
    struct tare_dataset_spec *spec;
    if (tare_dataset_spec_parse(&spec, text.data, text.size, "edited") != TARE_OK) fail_msg("%s", tare_error_text());
    tare_dataset_spec_free(spec);
    tare_strbuf_free(&text);
    const struct tare_spec_draft_input other = { "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 1) };
    assert_int_equal(draft(&text, keys, 3, &other, 1), 1); /* a letter is not a number */
    tare_strbuf_free(&text);
}

static void draft__reads_numbers_from_bytes_of_the_right_length(void **state) {
    struct tare_survey_key keys[] = {
        { .name = "pixels", .dtype = TARE_DT_STRING, .records = 9, .elements = 9, .shortest = 48, .longest = 48 }
    };
    const struct tare_spec_draft_input bytes = { "x", TARE_DT_FLOAT, tare_shape_make(2, -1, 48) };
    const struct tare_spec_draft_input floats = { "x", TARE_DT_FLOAT, tare_shape_make(3, -1, 4, 3) };
    struct tare_strbuf text;
    (void)state;
    assert_int_equal(draft(&text, keys, 1, &bytes, 1), 0);
    assert_has(&text, "source: RAW raw_type: UINT8\n  shape: [48]\n  type: FLOAT32\n");
    tare_strbuf_free(&text);
    assert_int_equal(draft(&text, keys, 1, &floats, 1), 0);
    assert_has(&text, "source: RAW raw_type: FLOAT32\n  shape: [4, 3]\n");
    tare_strbuf_free(&text);
}

static void draft__lists_inputs_without_a_feature(void **state) {
    struct tare_survey_key keys[] = { label };
    const struct tare_spec_draft_input input = { "text", TARE_DT_STRING, tare_shape_make(1, -1) };
    struct tare_strbuf text;
    (void)state;
    assert_int_equal(draft(&text, keys, 1, &input, 1), 1);
    assert_has(&text, "# no feature fits the input \"text\", string [?]");
    tare_strbuf_free(&text);
}

static void assert_class(const float *values, int64_t count, int64_t row, int64_t rows, tare_status expected,
                         int64_t class) {
    const char *key = "label";
    struct tare_tensor value;
    struct tare_shape shape = tare_shape_make(1, (int)count);
    int64_t got = -1;
    assert_int_equal(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, values), TARE_OK);
    const struct tare_sample sample = { .keys = &key, .values = &value, .count = 1 };
    assert_int_equal(tare_label_class(&got, &sample, "label", row, rows), expected);
    if (expected == TARE_OK) assert_int_equal(got, class);
    tare_tensor_reset(&value);
}

static void label__is_an_index_or_a_one_hot_row(void **state) {
    (void)state;
    assert_class((const float[]){ 7 }, 1, 0, 1, TARE_OK, 7);
    assert_class((const float[]){ 4, 7 }, 2, 1, 2, TARE_OK, 7);
    assert_class((const float[]){ 0, 0, 1 }, 3, 0, 1, TARE_OK, 2);
    assert_class((const float[]){ 0, 0, 1, 1, 0, 0 }, 6, 1, 2, TARE_OK, 0);
    assert_class((const float[]){ 0, 1, 1 }, 3, 0, 1, TARE_SHAPE, 0);
    assert_class((const float[]){ 0, 0, 0 }, 3, 0, 1, TARE_SHAPE, 0);
    assert_class((const float[]){ 0, 0.5f, 0.5f }, 3, 0, 1, TARE_SHAPE, 0);
    assert_class((const float[]){ 0, 0, 1 }, 3, 0, 2, TARE_SHAPE, 0);
    assert_class((const float[]){ 0.5f }, 1, 0, 1, TARE_TYPE, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draft__resizes_images_to_the_input),
        cmocka_unit_test(draft__with_options__needs_no_edit),
        cmocka_unit_test(draft__prefers_features_of_the_same_name_and_converts_dtypes),
        cmocka_unit_test(draft__prefers_features_of_known_length),
        cmocka_unit_test(draft__gives_whole_records_to_models_that_parse_them),
        cmocka_unit_test(draft__joins_scalar_numbers_into_one_input),
        cmocka_unit_test(draft__shows_the_class_names_of_texts),
        cmocka_unit_test(draft__reads_numbers_from_bytes_of_the_right_length),
        cmocka_unit_test(draft__lists_inputs_without_a_feature),
        cmocka_unit_test(label__is_an_index_or_a_one_hot_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
