/* Outputs of one record as inputs of the next: order, beginnings of sequences, and misuse. */
#include "eval/record_store.h"
#include "eval/runner.h"

#include "base/alloc.h"
#include "datasets/tfrecord.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <string.h>

enum { RECORDS = 7, WIDTH = 2 };

/* A signature x, h -> y = x + h, other = -x. */
struct fixture {
    struct tare_graph_model *model;
    struct tare_binding inputs[2], outputs[3];
    struct tare_signature signature;
};

static struct tare_binding bind(const char *key, int dtype, struct tare_shape shape, struct tare_edge edge) {
    return (struct tare_binding){ .key = key, .dtype = dtype, .shape = shape, .edge = edge };
}

static void open_fixture(struct fixture *f, struct tare_shape state) {
    const struct tare_shape rows = tare_shape_make(2, (int64_t)-1, (int64_t)WIDTH);
    f->model = mini_model_new();
    struct tare_edge x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    struct tare_edge h = mini_placeholder(f->model->main, "h", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(f->model->main, "AddV2", "y", 2, x, h);
    struct tare_edge other = mini_node(f->model->main, "Neg", "other", 1, x);
    f->inputs[0] = bind("x", TARE_DT_FLOAT, rows, x);
    f->inputs[1] = bind("h", TARE_DT_FLOAT, state, h);
    f->outputs[0] = bind("y", TARE_DT_FLOAT, rows, y);
    f->outputs[1] = bind("other", TARE_DT_FLOAT, tare_shape_make(2, (int64_t)-1, (int64_t)WIDTH + 1), other);
    f->outputs[2] = bind("half", TARE_DT_HALF, rows, y);
    f->signature = (struct tare_signature){ "step", "", f->inputs, 2, f->outputs, 2, NULL };
}

static const struct tare_shape rows_of_two = { .rank = 2, .dims = { -1, WIDTH } };

/* Records of x = k, 10 k; with key clip = k / 3 and, in record `given` (-1: none), h = 1000. */
static const char *write_records(const char *name, int first, int given) {
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path(name);
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int k = first; k < first + RECORDS; k++) {
        const char *const keys[] = { "x", "clip", "h" };
        const float x[WIDTH] = { (float)k, 10 * (float)k }, h[WIDTH] = { 1000, 1000 };
        const int32_t clip = k / 3;
        const struct tare_shape shape = tare_shape_make(2, 1, WIDTH), scalar = tare_shape_make(0);
        struct tare_tensor values[3];
        void *data;
        size_t size;
        mini_ok(tare_tensor_from(&values[0], TARE_DT_FLOAT, &shape, x));
        mini_ok(tare_tensor_from(&values[1], TARE_DT_INT32, &scalar, &clip));
        mini_ok(tare_tensor_from(&values[2], TARE_DT_FLOAT, &shape, h));
        mini_ok(tare_sample_encode(&data, &size, keys, values, k == given ? 3 : 2));
        mini_ok(tare_tfrecord_write(writer, data, size));
        for (int i = 0; i < 3; i++)
            tare_tensor_reset(&values[i]);
        tare_free(data);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

struct answers {
    float values[2 * RECORDS];
    size_t count;
};

static tare_status collect(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                           const struct tare_tensor *outputs) {
    struct answers *answers = arg;
    (void)sample;
    (void)where;
    assert_int_equal(outputs[0].elements, WIDTH);
    assert_true(TARE_CONST_DATA(float, &outputs[0])[1] - 10 * TARE_CONST_DATA(float, &outputs[0])[0] <= 0);
    answers->values[answers->count++] = TARE_CONST_DATA(float, &outputs[0])[0];
    return TARE_OK;
}

static tare_status run(struct answers *answers, const struct fixture *f, int threads,
                       const struct tare_runner_options *options) {
    struct tare_session **sessions;
    *answers = (struct answers){ 0 };
    mini_ok(tare_sessions_new(&sessions, threads, f->model, NULL));
    const tare_status status = tare_run_records_on(sessions, threads, &f->signature, options, collect, answers);
    tare_sessions_free(sessions, threads);
    return status;
}

static struct tare_feedback feedback_of(const char **pairs, size_t count, const char *sequence) {
    return (struct tare_feedback){ .pairs = { .items = pairs, .count = count }, .sequence = sequence };
}

static const char *pair[] = { "y=h" };

/* Two files of RECORDS records each: in every form of a run. */
static void expect_values(const struct fixture *f, const char *const *paths, const char *sequence,
                          const float *expected) {
    const struct tare_feedback feedback = feedback_of(pair, 1, sequence);
    struct tare_record_store store = { 0 };
    for (int form = 0; form < 8; form++) {
        struct tare_runner_options options = {
            .paths = paths, .n_paths = 2, .batch = form & 1 ? 5 : 1, .feedback = &feedback
        };
        struct answers got;
        if (form & 2) options.records = &store;
        if (form == 2) tare_record_store_fill(&store, &options, TARE_RECORD_STORE_BYTES);
        assert_true(form < 2 || store.complete);
        mini_ok(run(&got, f, form & 4 ? 3 : 1, &options));
        assert_int_equal(got.count, 2 * RECORDS);
        for (size_t i = 0; i < got.count; i++)
            if (got.values[i] != expected[i])
                fail_msg("form %d: record %zu is %g (expected %g)", form, i, got.values[i], expected[i]);
    }
    tare_record_store_free(&store);
}

static void state__adds_up_within_a_file_for_any_threads_and_batch(void **state) {
    struct fixture f;
    const char *const paths[] = { write_records("a.tfrecord", 1, -1), write_records("b.tfrecord", 2, -1) };
    static const float expected[] = { 1, 3, 6, 10, 15, 21, 28, 2, 5, 9, 14, 20, 27, 35 };
    (void)state;
    open_fixture(&f, rows_of_two);
    expect_values(&f, paths, NULL, expected);
    tare_model_free(f.model);
}

static void sequences__begin_where_the_key_changes(void **state) {
    struct fixture f;
    const char *const paths[] = { write_records("a.tfrecord", 1, -1), write_records("b.tfrecord", 2, -1) };
    /* clips 0 0 1 1 1 2 2, then 0 1 1 1 2 2 2 */
    static const float expected[] = { 1, 3, 3, 7, 12, 6, 13, 2, 3, 7, 12, 6, 13, 21 };
    (void)state;
    open_fixture(&f, rows_of_two);
    expect_values(&f, paths, "clip", expected);
    tare_model_free(f.model);
}

/* The same clip at the end of one file and at the beginning of the next is two sequences. */
static void a_file__begins_a_sequence_whatever_the_key(void **state) {
    struct fixture f;
    const char *const paths[] = { write_records("a.tfrecord", 1, -1), write_records("b.tfrecord", 7, -1) };
    /* clips 0 0 1 1 1 2 2, then 2 2 3 3 3 4 4 */
    static const float expected[] = { 1, 3, 3, 7, 12, 6, 13, 7, 15, 9, 19, 30, 12, 25 };
    (void)state;
    open_fixture(&f, rows_of_two);
    expect_values(&f, paths, "clip", expected);
    tare_model_free(f.model);
}

static void first_record__may_have_the_state_to_begin_with(void **state) {
    struct fixture f;
    const char *const paths[] = { write_records("a.tfrecord", 1, 1), write_records("b.tfrecord", 2, 5) };
    static const float expected[] = { 1001, 1003, 1006, 1010, 1015, 1021, 1028, 2, 5, 9, 14, 20, 27, 35 };
    (void)state;
    open_fixture(&f, rows_of_two);
    expect_values(&f, paths, NULL, expected); /* in a later record, the model's own state is used */
    tare_model_free(f.model);
}

static void misuse__is_named_with_what_is_there(void **state) {
    static const struct {
        const char *pairs[2], *sequence, *text;
    } cases[] = {
        { { "y" }, NULL, "--feedback y: expected OUTPUT=INPUT" },
        { { "y=" }, NULL, "--feedback y=: expected OUTPUT=INPUT" },
        { { "z=h" }, NULL, "--feedback z=h: unknown output z (signature step has y, other, half)" },
        { { "y=g" }, NULL, "--feedback y=g: unknown input g (signature step has x, h)" },
        { { "y=h", "y=h" }, NULL, "--feedback: input h is given twice" },
        { { "half=h" }, NULL, "input h is float32, output half is float16 (expected the same dtype)" },
        { { "other=h" }, NULL, "output other has shape [?,3] (expected [?,2], as input h)" },
        { { "y=h" }, "scene", "a.tfrecord: record 0: --sequence scene: the record has no such key (it has x, clip)" },
    };
    struct fixture f;
    const char *const path = write_records("a.tfrecord", 0, -1);
    struct answers got;
    (void)state;
    open_fixture(&f, rows_of_two);
    f.signature.n_outputs = 3;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *pairs[] = { cases[i].pairs[0], cases[i].pairs[1] };
        const struct tare_feedback feedback = feedback_of(pairs, pairs[1] ? 2 : 1, cases[i].sequence);
        const struct tare_runner_options options = { .paths = &path, .n_paths = 1, .feedback = &feedback };
        mini_fails(run(&got, &f, 1, &options), cases[i].text);
    }
    tare_model_free(f.model);
}

static void zeros__need_a_shape(void **state) {
    struct fixture f;
    const struct tare_feedback feedback = feedback_of(pair, 1, NULL);
    const char *path = write_records("a.tfrecord", 1, -1);
    const struct tare_runner_options options = { .paths = &path, .n_paths = 1, .feedback = &feedback };
    struct answers got;
    (void)state;
    open_fixture(&f, tare_shape_make(2, (int64_t)-1, (int64_t)-1));
    mini_fails(run(&got, &f, 1, &options), "record 0: input h: its shape [?,?] does not determine the size of zeros");
    path = write_records("b.tfrecord", 1, 1);
    mini_ok(run(&got, &f, 1, &options));
    assert_true(got.values[RECORDS - 1] == 1028);
    tare_model_free(f.model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state__adds_up_within_a_file_for_any_threads_and_batch),
        cmocka_unit_test(sequences__begin_where_the_key_changes),
        cmocka_unit_test(a_file__begins_a_sequence_whatever_the_key),
        cmocka_unit_test(first_record__may_have_the_state_to_begin_with),
        cmocka_unit_test(misuse__is_named_with_what_is_there),
        cmocka_unit_test(zeros__need_a_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
