/* From --data to a calibration: files by signature, samples that do not fit, several signatures, shares. */
#include "workflow/calibrate.h"

#include "base/alloc.h"
#include "base/file.h"
#include "calib/format/file.h"
#include "datasets/tfrecord.h"
#include "workflow/sample_feed.h"
#include "support/draw.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 4, RECORDS = 12 };

/* ---- a model with two signatures, and files for them ---- */

static void fill_signature(struct tare_graph_model *model, struct tare_signature *s, const char *key) {
    char name[32];
    struct tare_graph *g = model->main;
    struct tare_shape shape = tare_shape_make(2, WIDTH, WIDTH);
    struct tare_tensor value;
    mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
    draw_fill(value.data, (size_t)value.elements, DRAW_NORMAL, (uint64_t)key[0]);
    snprintf(name, sizeof name, "%s_w", key);
    struct tare_edge w = { tare_graph_add_const(g, name, &value), 0 };
    tare_tensor_reset(&value);
    snprintf(name, sizeof name, "%s_x", key);
    struct tare_edge x = mini_placeholder(g, name, TARE_DT_FLOAT);
    snprintf(name, sizeof name, "%s_y", key);
    struct tare_edge y = mini_node(g, "MatMul", name, 2, x, w);
    s->key = tare_arena_strdup(&model->arena, key);
    s->method_name = "";
    s->inputs = TARE_NEW(&model->arena, struct tare_binding);
    s->outputs = TARE_NEW(&model->arena, struct tare_binding);
    s->n_inputs = s->n_outputs = 1;
    *s->inputs =
        (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_make(2, -1, WIDTH), .edge = x };
    *s->outputs = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = y };
}

static struct tare_graph_model *make_model(void) {
    struct tare_graph_model *model = mini_model_new();
    model->signatures = TARE_NEW_ARRAY(&model->arena, struct tare_signature, 2);
    model->n_signatures = 2;
    fill_signature(model, &model->signatures[0], "encode");
    fill_signature(model, &model->signatures[1], "decode");
    return model;
}

/* RECORDS samples; number `wide` (-1: none) has an additional column, number `other` other keys. */
static const char *write_samples(const char *name, int wide, int other) {
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path(name);
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int r = 0; r < RECORDS; r++) {
        const char *keys[] = { r == other ? "z" : "x", "w" };
        struct tare_shape shape = tare_shape_make(2, 1, r == wide ? WIDTH + 1 : WIDTH);
        struct tare_tensor value, values[2];
        void *bytes;
        size_t size;
        mini_ok(tare_tensor_new(&value, TARE_DT_FLOAT, &shape));
        draw_fill(value.data, (size_t)value.elements, DRAW_NORMAL, (uint64_t)r + 100);
        values[0] = values[1] = value;
        mini_ok(tare_sample_encode(&bytes, &size, keys, values, r == other ? 2 : 1));
        mini_ok(tare_tfrecord_write(writer, bytes, size));
        tare_tensor_reset(&value);
        tare_free(bytes);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

/* ---- files by signature ---- */

static void data__belongs_to_the_signature_in_front(void **state) {
    struct tare_graph_model *model = make_model();
    struct tare_data_groups groups;
    char encode[512], decode[512], odd[512];
    (void)state;
    write_samples("e-1", -1, -1);
    write_samples("e-2", -1, -1);
    write_samples("d", -1, -1);
    write_samples("decode=odd", -1, -1);
    snprintf(encode, sizeof encode, "encode=%s/e-*", temp_folder());
    snprintf(decode, sizeof decode, "decode=%s/d", temp_folder());
    snprintf(odd, sizeof odd, "%s/decode=odd", temp_folder()); /* a file's name may look like it */
    const char *const data[] = { encode, decode, odd };
    mini_ok(tare_data_groups_make(&groups, model, data, 3, &model->signatures[0]));
    assert_int_equal(groups.count, 2);
    assert_ptr_equal(groups.items[0].signature, &model->signatures[0]);
    assert_int_equal(groups.items[0].files.count, 3);
    assert_string_equal(groups.items[0].files.names[0], temp_path("e-1"));
    assert_string_equal(groups.items[0].files.names[1], temp_path("e-2"));
    assert_string_equal(groups.items[0].files.names[2], odd);
    assert_int_equal(groups.items[1].files.count, 1);
    assert_string_equal(groups.items[1].files.names[0], temp_path("d"));
    tare_data_groups_free(&groups);
    tare_model_free(model);
}

static void data__refuses_what_is_ambiguous(void **state) {
    struct tare_graph_model *model = make_model();
    struct tare_data_groups groups;
    char twice[512];
    (void)state;
    write_samples("e-1", -1, -1);
    snprintf(twice, sizeof twice, "encode=%s/e-1*", temp_folder());
    const struct {
        const char *data[2];
        tare_status status;
        const char *text;
    } cases[] = {
        { { twice, twice }, TARE_USAGE, "is given twice for signature encode" },
        { { "encode=-", "decode=-" }, TARE_USAGE, "standard input can be read only once" },
        { { "train=-", "-" }, TARE_NOT_FOUND, "there is no signature 'train' (the model has encode, decode)" },
        { { "-", "-" }, TARE_USAGE, "choose one with --signature (the model has encode, decode)" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tare_data_groups_make(&groups, model, cases[i].data, 2, NULL), cases[i].status);
        if (!strstr(tare_error_text(), cases[i].text))
            fail_msg("'%s' (expected '%s')", tare_error_text(), cases[i].text);
        tare_data_groups_free(&groups);
    }
    tare_model_free(model);
}

/* ---- samples that do not fit ---- */

static struct tare_calibration *calibrate(const struct tare_graph_model *model, struct tare_calibrate_options options,
                                          const char *const *data, size_t n_data) {
    struct tare_calibration *c = NULL;
    options.data = data;
    options.n_data = n_data;
    if (tare_workflow_calibrate(&c, model, &options) != TARE_OK) assert_null(c);
    return c;
}

static void samples__that_do_not_fit_are_named_or_passed_over(void **state) {
    struct tare_graph_model *model = make_model();
    const char *data[1];
    char named[600];
    (void)state;
    data[0] = write_samples("misfits", 5, 9);
    for (int threads = 1; threads <= 2; threads++) { /* with two, samples are decoded ahead */
        struct tare_calibrate_options options = { .signature = "encode", .threads = threads };
        assert_null(calibrate(model, options, data, 1));
        snprintf(named, sizeof named, "%s: record 5 at ", data[0]);
        assert_non_null(strstr(tare_error_text(), named));
        assert_non_null(strstr(tare_error_text(), "input x: expected shape [?,4], got [1,5]"));
        options.max_bad = 1;
        assert_null(calibrate(model, options, data, 1));
        assert_non_null(strstr(tare_error_text(), "record 9 at "));
        assert_non_null(strstr(tare_error_text(), "The function expects input keys of: {x}. Got: {z, w}."));
        options.max_bad = 2;
        struct tare_calibration *c = calibrate(model, options, data, 1);
        assert_non_null(c);
        assert_int_equal(tare_calibration_records(c), RECORDS - 2);
        assert_int_equal(c->inputs[0].n_bad, 2);
        assert_int_equal(c->inputs[0].bad[0].record, 5);
        assert_string_equal(c->inputs[0].bad[0].reason, "refused");
        assert_true(strncmp(c->inputs[0].bad[0].text, "record 5 at ", 12) == 0); /* the file is named once */
        assert_int_equal(c->inputs[0].bad[1].record, 9);
        tare_calibration_free(c);
    }
    tare_model_free(model);
}

/* ---- state between records ---- */

/* Largest values that x takes if y of each record is x of the next one. */
static void largest_states(float *out, const struct tare_graph_model *model, const char *data) {
    const struct tare_signature *encode = tare_model_find_signature(model, "encode");
    struct tare_session *session = mini_session(model);
    struct tare_tensor x = { 0 }, y;
    struct tare_sample_feed feed;
    struct tare_record where;
    bool end;
    mini_ok(tare_sample_feed_open(&feed, encode, &data, 1, &(struct tare_source_options){ 0 }, NULL));
    mini_ok(feed.source.next(feed.source.arg, &x, &where, &end, NULL, NULL));
    out[0] = 0;
    for (int r = 0; r < RECORDS; r++) {
        for (int64_t i = 0; i < x.elements; i++)
            if (TARE_CONST_DATA(float, &x)[i] > out[0]) out[0] = TARE_CONST_DATA(float, &x)[i];
        mini_ok(tare_session_run_signature(session, encode, &x, &y));
        tare_tensor_reset(&x);
        x = y;
    }
    tare_tensor_reset(&x);
    tare_sample_feed_close(&feed);
    tare_session_free(session);
}

static void feedback__calibrates_with_the_states_of_the_model(void **state) {
    struct tare_graph_model *model = make_model();
    const char *pairs[] = { "y=x" }, *data[] = { write_samples("state", -1, -1) };
    const struct tare_feedback feedback = { .pairs = { .items = pairs, .count = 1 } };
    struct tare_strbuf first = { 0 };
    float expected;
    (void)state;
    largest_states(&expected, model, data[0]);
    for (int form = 0; form < 4; form++) {
        const struct tare_calibrate_options options = {
            .signature = "encode", .threads = form & 1 ? 3 : 1, .batch = form & 2 ? 4 : 1, .feedback = &feedback
        };
        struct tare_calibration *c = calibrate(model, options, data, 1);
        struct tare_strbuf got = { 0 };
        double low, high;
        if (!c) fail_msg("%s", tare_error_text());
        assert_int_equal(tare_calibration_records(c), RECORDS);
        assert_true(tare_statistics_extremes(&low, &high, &tare_calibration_find(c, "", "encode_x", 0)->statistics));
        assert_true((float)high == expected);
        mini_ok(tare_calibration_encode(&got, c));
        if (!form) first = got;
        assert_int_equal(got.size, first.size);
        assert_memory_equal(got.data, first.data, first.size);
        if (form) tare_strbuf_free(&got);
        tare_calibration_free(c);
    }
    tare_strbuf_free(&first);
    tare_model_free(model);
}

static void feedback__refuses_records_that_do_not_follow_each_other(void **state) {
    struct tare_graph_model *model = make_model();
    const char *pairs[] = { "y=x" }, *data[] = { write_samples("state", -1, -1) };
    const struct tare_feedback feedback = { .pairs = { .items = pairs, .count = 1 } };
    struct tare_calibrate_options options = { .signature = "encode", .sample = 3, .seed = 1, .feedback = &feedback };
    (void)state;
    assert_null(calibrate(model, options, data, 1));
    assert_non_null(strstr(tare_error_text(), "--feedback and --sample are mutually exclusive"));
    options.sample = 0;
    options.shards = 2;
    assert_null(calibrate(model, options, data, 1));
    assert_non_null(strstr(tare_error_text(), "the records of a shard do not follow each other"));
    options.shards = 0;
    pairs[0] = "z=x";
    assert_null(calibrate(model, options, data, 1));
    assert_non_null(strstr(tare_error_text(), "unknown output z (signature encode has y)"));
    tare_model_free(model);
}

/* ---- the whole ---- */

static void calibration__of_several_signatures_is_that_of_its_shares(void **state) {
    struct tare_graph_model *model = make_model();
    char encode[600], decode[600];
    (void)state;
    snprintf(encode, sizeof encode, "encode=%s", write_samples("enc", 3, -1));
    snprintf(decode, sizeof decode, "decode=%s", write_samples("dec", -1, -1));
    const char *const data[] = { encode, decode };
    struct tare_calibrate_options options = {
        .threads = 2, .max_bad = 1, .limit = 10, .observe_all = true, .channels = true
    };
    struct tare_calibration *whole = calibrate(model, options, data, 2), *sum = NULL;
    assert_non_null(whole);
    assert_int_equal(tare_calibration_records(whole), 2 * 10 - 1); /* the bad one is among the first ten */
    assert_int_equal(tare_calibration_find(whole, "", "encode_y", 0)->statistics.samples, 9);
    assert_int_equal(tare_calibration_find(whole, "", "decode_y", 0)->statistics.samples, 10);
    assert_int_equal(tare_calibration_find(whole, "", "decode_y", 0)->statistics.channels, WIDTH);
    for (int shard = 2; shard >= 0; shard--) {
        options.shard = shard;
        options.shards = 3;
        options.threads = options.batch = 1 + shard;
        struct tare_calibration *share = calibrate(model, options, data, 2);
        assert_non_null(share);
        if (!sum) {
            sum = share;
            continue;
        }
        mini_ok(tare_calibration_merge(sum, share));
        tare_calibration_free(share);
    }
    struct tare_strbuf expected = { 0 }, got = { 0 };
    mini_ok(tare_calibration_encode(&expected, whole));
    mini_ok(tare_calibration_encode(&got, sum));
    assert_int_equal(got.size, expected.size);
    assert_memory_equal(got.data, expected.data, expected.size);
    tare_strbuf_free(&expected);
    tare_strbuf_free(&got);
    tare_calibration_free(whole);
    tare_calibration_free(sum);
    tare_model_free(model);
}

static void calibration__bound_holds_and_tensors_are_those_of_quantization(void **state) {
    struct tare_graph_model *model = make_model();
    const char *data[1];
    (void)state;
    data[0] = write_samples("enc", -1, -1);
    const struct tare_calibrate_options options = { .signature = "encode", .data = data, .n_data = 1, .threads = 2 };
    struct tare_calibrate_job calibrating;
    struct tare_calibrate_size size;
    mini_ok(tare_workflow_calibrate_open(&calibrating, model, &options));
    mini_ok(tare_workflow_calibrate_measure(&size, &calibrating));
    struct tare_calibration *c = calibrate(model, options, data, 1);
    assert_non_null(c);
    assert_int_equal(c->n_tensors, 2); /* the product's input and output */
    assert_int_equal(size.tensors, 2);
    assert_int_equal(size.bytes, 2 * size.bytes_each); /* whatever the workers */
    assert_true(tare_calibration_bytes(c) <= size.bytes);
    tare_calibration_free(c);
    tare_workflow_calibrate_close(&calibrating);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data__belongs_to_the_signature_in_front),
        cmocka_unit_test(data__refuses_what_is_ambiguous),
        cmocka_unit_test(samples__that_do_not_fit_are_named_or_passed_over),
        cmocka_unit_test(feedback__calibrates_with_the_states_of_the_model),
        cmocka_unit_test(feedback__refuses_records_that_do_not_follow_each_other),
        cmocka_unit_test(calibration__of_several_signatures_is_that_of_its_shares),
        cmocka_unit_test(calibration__bound_holds_and_tensors_are_those_of_quantization),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
