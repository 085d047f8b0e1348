/* Records through one or several sessions: order, bits, state, and which failure is reported. */
#include "eval/model_inputs.h"
#include "eval/record_store.h"
#include "eval/runner.h"

#include "base/alloc.h"
#include "base/strbuf.h"
#include "datasets/tfrecord.h"
#include "support/memory_use.h"
#include "support/mini_model.h"
#include "support/sample_file.h"
#include "support/temp.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { RECORDS = 23, WIDTH = 3 };

static void write_record(struct tare_tfrecord_writer *writer, int64_t rows, const float *x) {
    struct tare_shape shape = tare_shape_make(2, rows, (int64_t)WIDTH);
    write_float_sample(writer, "x", &shape, x);
}

/* Record k has one row: k, k / 3, -k; from `negative` on its second number is negative. */
static const char *write_records(const char *name, int negative) {
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path(name);
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int k = 0; k < RECORDS; k++) {
        const float x[WIDTH] = { (float)k, (k >= negative ? -1 : 1) * (float)(k + 1) / 3, 5 };
        write_record(writer, 1, x);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

/* A signature x -> y over one edge. */
struct fixture {
    struct tare_graph_model *model;
    struct tare_edge x;
    struct tare_binding input, output;
    struct tare_signature signature;
};

static void open_fixture(struct fixture *f) {
    struct tare_shape shape = tare_shape_make(2, (int64_t)-1, (int64_t)WIDTH);
    f->model = mini_model_new();
    f->x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    f->input = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = f->x };
}

static void close_fixture(struct fixture *f, struct tare_edge y) {
    f->output = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = y };
    f->signature = (struct tare_signature){ "test", "", &f->input, 1, &f->output, 1, NULL };
}

struct answers {
    float values[4 * RECORDS * WIDTH];
    int64_t numbers[RECORDS];
    size_t n_values, n_records;
};

static tare_status collect(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                           const struct tare_tensor *outputs) {
    struct answers *answers = arg;
    (void)sample;
    answers->numbers[answers->n_records++] = where->number;
    for (int64_t i = 0; i < outputs[0].elements; i++)
        answers->values[answers->n_values++] = TARE_CONST_DATA(float, &outputs[0])[i];
    return TARE_OK;
}

static tare_status run_with(struct answers *answers, const struct fixture *f, int threads,
                            const struct tare_runner_options *options, const struct tare_session_options *session) {
    struct tare_session **sessions;
    memset(answers, 0, sizeof *answers);
    mini_ok(tare_sessions_new(&sessions, threads, f->model, session));
    tare_status status = tare_run_records_on(sessions, threads, &f->signature, options, collect, answers);
    tare_sessions_free(sessions, threads);
    return status;
}

static tare_status run(struct answers *answers, const struct fixture *f, const char *path, int threads, int batch,
                       const struct tare_session_options *session) {
    const struct tare_runner_options options = { .paths = &path, .n_paths = 1, .batch = batch };
    return run_with(answers, f, threads, &options, session);
}

static void assert_in_order(const struct answers *answers) {
    assert_int_equal(answers->n_records, RECORDS);
    for (int k = 0; k < RECORDS; k++)
        assert_int_equal(answers->numbers[k], k);
}

static void records__give_the_same_bits_for_any_threads_and_batch(void **state) {
    struct fixture f;
    static struct answers one, other;
    (void)state;
    open_fixture(&f);
    close_fixture(&f, mini_node(f.model->main, "Softmax", "y", 1, f.x));
    const char *path = write_records("plain.tfrecord", RECORDS);
    mini_ok(run(&one, &f, path, 1, 1, NULL));
    assert_in_order(&one);
    assert_int_equal(one.n_values, RECORDS * WIDTH);
    assert_true(one.values[0] < one.values[2]);           /* of 0, 1/3, 5 */
    mini_ok(run(&other, &f, path, RECORDS + 9, 1, NULL)); /* fewer records than threads */
    assert_in_order(&other);
    assert_memory_equal(other.values, one.values, sizeof one.values);
    for (int threads = 1; threads <= 4; threads++)
        for (int batch = 1; batch <= 5; batch++) {
            mini_ok(run(&other, &f, path, threads, batch, NULL));
            assert_in_order(&other);
            assert_memory_equal(other.values, one.values, sizeof one.values);
        }
    tare_model_free(f.model);
}

/* ---- decoded records ---- */

static void stored_records__give_the_same_bits_as_files(void **state) {
    struct fixture f;
    static struct answers one, other;
    struct tare_record_store store = { 0 };
    const char *path = write_records("stored.tfrecord", RECORDS);
    struct tare_runner_options options = { .paths = &path, .n_paths = 1, .batch = 2 };
    (void)state;
    open_fixture(&f);
    close_fixture(&f, mini_node(f.model->main, "Softmax", "y", 1, f.x));
    mini_ok(run_with(&one, &f, 1, &options, NULL));
    tare_record_store_fill(&store, &options, TARE_RECORD_STORE_BYTES);
    assert_true(store.complete);
    assert_int_equal(store.count, RECORDS);
    assert_int_equal(remove(path), 0); /* so that only the store has the records */
    options.records = &store;
    for (int threads = 1; threads <= 3; threads++) {
        mini_ok(run_with(&other, &f, threads, &options, NULL));
        assert_in_order(&other);
        assert_memory_equal(other.values, one.values, sizeof one.values);
    }
    options.limit = 5;
    mini_ok(run_with(&other, &f, 2, &options, NULL));
    assert_int_equal(other.n_records, 5);
    assert_memory_equal(other.values, one.values, 5 * WIDTH * sizeof *one.values);
    tare_record_store_free(&store);
    tare_model_free(f.model);
}

/* In memory, each would take 600 bytes. Records are in chunks of 2 MiB, of which one is in memory. */
static void stored_records__are_not_in_memory(void **state) {
    enum { MANY = 150000, MOST = 8 << 20 };
    const float x[WIDTH] = { 1, 2, 3 };
    struct tare_record_store store = { 0 };
    struct tare_record_reader reader;
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path("many.tfrecord");
    const struct tare_runner_options files = { .paths = &path, .n_paths = 1 }, stored = { .records = &store };
    int64_t count = 0, sum = 0;
    (void)state;
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int k = 0; k < MANY; k++)
        write_record(writer, 1, x);
    mini_ok(tare_tfrecord_commit(writer));
    const int64_t before = memory_used();
    tare_record_store_fill(&store, &files, TARE_RECORD_STORE_BYTES);
    assert_true(store.complete);
    mini_ok(tare_record_reader_open(&reader, &stored));
    for (bool end = false; !end; count++) {
        struct tare_sample sample = { 0 };
        struct tare_record where;
        mini_ok(tare_record_reader_next(&sample, &where, &end, &reader));
        if (!end) sum += where.number == count && TARE_CONST_DATA(float, &sample.values[0])[2] == 3;
        tare_sample_reset(&sample);
    }
    tare_record_reader_close(&reader);
    assert_int_equal(sum, MANY);
    if (memory_used() - before >= MOST) print_error("%lld bytes more\n", (long long)(memory_used() - before));
    assert_true(memory_used() - before < MOST);
    tare_record_store_free(&store);
}

static void batches__are_at_least_two_per_worker_where_the_records_are_known(void **state) {
    struct tare_record_store store = { .complete = true, .count = 23 };
    struct tare_runner_options options = { .batch = 64 };
    (void)state;
    assert_int_equal(tare_runner_most_batch(&options, 4), 64);
    options.records = &store;
    assert_int_equal(tare_runner_most_batch(&options, 1), 64);
    assert_int_equal(tare_runner_most_batch(&options, 4), 3);
    options.limit = 8;
    assert_int_equal(tare_runner_most_batch(&options, 4), 1);
    options.records = NULL;
    options.limit = 1000;
    assert_int_equal(tare_runner_most_batch(&options, 4), 64);
    options.limit = 100;
    assert_int_equal(tare_runner_most_batch(&options, 2), 25);
    options.batch = 0;
    assert_int_equal(tare_runner_most_batch(&options, 2), 1);
}

static void stored_records__stay_in_files_when_they_do_not_fit_or_are_damaged(void **state) {
    struct tare_record_store store = { 0 };
    const char *path = write_records("large.tfrecord", RECORDS);
    const struct tare_runner_options options = { .paths = &path, .n_paths = 1 };
    FILE *file;
    (void)state;
    tare_record_store_fill(&store, &options, 1000); /* 23 records of three floats need more */
    assert_false(store.complete);
    assert_int_equal(store.count, 0);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 40, SEEK_SET), 0);
    assert_int_equal(fputc(255, file), 255);
    assert_int_equal(fclose(file), 0);
    tare_record_store_fill(&store, &options, TARE_RECORD_STORE_BYTES);
    assert_false(store.complete);
    assert_string_equal(tare_error_text(), "");
    tare_record_store_free(&store);
}

/* y = sum of all x so far. */
static struct tare_edge running_sum(struct fixture *f) {
    struct tare_graph *g = f->model->main;
    struct tare_edge v = mini_variable(f->model, "v", 0);
    struct tare_edge all = mini_node(g, "Sum", "sum", 2, f->x, mini_ints(g, "axes", 2, (const int32_t[]){ 0, 1 }));
    struct tare_edge add = mini_node(g, "AssignAddVariableOp", "add", 2, v, all);
    struct tare_node *read = mini_open(g, "ReadVariableOp", "y", 1, v);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_add_control(read, add.node));
    return mini_done(read);
}

static void state__belongs_to_a_worker_and_its_records_do_not_depend_on_timing(void **state) {
    struct fixture f;
    static struct answers answers;
    float sums[3];
    (void)state;
    open_fixture(&f);
    close_fixture(&f, running_sum(&f));
    const char *path = write_records("state.tfrecord", RECORDS);
    for (int threads = 1; threads <= 3; threads++) {
        memset(sums, 0, sizeof sums);
        mini_ok(run(&answers, &f, path, threads, 1, NULL));
        assert_in_order(&answers);
        for (int k = 0; k < RECORDS; k++) { /* record k runs on worker k modulo threads */
            const float x = (float)k + (float)(k + 1) / 3 + 5;
            sums[k % threads] += x;
            assert_float_equal(answers.values[k], sums[k % threads], 1e-3);
        }
    }
    tare_model_free(f.model);
}

static void state__that_a_signature_changes_is_known_before_the_run(void **state) {
    struct fixture f;
    bool stateful;
    struct tare_strbuf text = { 0 };
    (void)state;
    open_fixture(&f);
    struct tare_edge sum = running_sum(&f);
    close_fixture(&f, sum);
    assert_int_equal(tare_session_state_ops(&stateful, f.model, &f.signature, &text), TARE_OK);
    assert_true(stateful);
    assert_string_equal(tare_strbuf_text(&text), "AssignAddVariableOp: used by add\n");
    close_fixture(&f, mini_node(f.model->main, "Softmax", "z", 1, f.x));
    tare_strbuf_free(&text);
    assert_int_equal(tare_session_state_ops(&stateful, f.model, &f.signature, &text), TARE_OK);
    assert_false(stateful);
    assert_string_equal(tare_strbuf_text(&text), "");
    tare_strbuf_free(&text);
    tare_model_free(f.model);
}

static void printing__is_in_the_order_of_the_records(void **state) {
    struct fixture f;
    struct tare_strbuf text = { 0 };
    bool stateful;
    (void)state;
    open_fixture(&f);
    struct tare_node *print = mini_open(f.model->main, "Print", "print", 2, f.x, f.x);
    mini_ok(tare_node_set_type_list(print, "U", (const int[]){ TARE_DT_FLOAT }, 1));
    close_fixture(&f, mini_done(print));
    assert_int_equal(tare_session_state_ops(&stateful, f.model, &f.signature, &text), TARE_OK);
    assert_true(stateful);
    assert_string_equal(tare_strbuf_text(&text), "Print: used by print\n");
    tare_strbuf_free(&text);
    tare_model_free(f.model);
}

static void failure__is_the_first_one_in_the_order_of_the_records(void **state) {
    struct fixture f;
    static struct answers answers;
    const struct tare_session_options checked = { .check_numerics = true };
    (void)state;
    open_fixture(&f);
    struct tare_edge log = mini_node(f.model->main, "Log", "log", 1, f.x);
    close_fixture(&f, mini_node(f.model->main, "Relu", "y", 1, log));
    const char *path = write_records("negative.tfrecord", 9);
    for (int threads = 1; threads <= 4; threads++) {
        mini_fails(run(&answers, &f, path, threads, 1, &checked),
                   "negative.tfrecord: record 0: log (Log): output 0 has an infinity at element 0");
        assert_int_equal(answers.n_records, 0);
    }
    tare_model_free(f.model);

    open_fixture(&f);
    close_fixture(&f, mini_node(f.model->main, "Sqrt", "root", 1, f.x));
    for (int threads = 1; threads <= 4; threads++) {
        mini_fails(run(&answers, &f, path, threads, 1, &checked),
                   "record 9: root (Sqrt): output 0 has NaN at element 1");
        assert_int_equal(answers.n_records, 9); /* all before it were handed on */
    }
    tare_model_free(f.model);
}

static void failure__in_a_batch_names_its_records(void **state) {
    struct fixture f;
    static struct answers answers;
    const struct tare_session_options checked = { .check_numerics = true };
    (void)state;
    open_fixture(&f);
    close_fixture(&f, mini_node(f.model->main, "Sqrt", "root", 1, f.x));
    mini_fails(run(&answers, &f, write_records("batches.tfrecord", 9), 2, 4, &checked),
               "batches.tfrecord: records 8 to 11: root");
    assert_int_equal(answers.n_records, 8);
    tare_model_free(f.model);
}

/* A row of 300,000 floats is larger than TARE_BATCH_BYTES. */
static void batch__of_large_activations_is_run_record_by_record(void **state) {
    struct fixture f;
    static struct answers answers;
    const struct tare_session_options checked = { .check_numerics = true };
    (void)state;
    open_fixture(&f);
    struct tare_graph *g = f.model->main;
    struct tare_edge wide = mini_node(g, "Tile", "wide", 2, f.x, mini_ints(g, "by", 2, (const int32_t[]){ 1, 100000 }));
    struct tare_edge sum = mini_node(g, "Min", "least", 2, wide, mini_ints(g, "axes", 1, (const int32_t[]){ 1 }));
    close_fixture(&f, mini_node(g, "Sqrt", "root", 1, sum));
    mini_fails(run(&answers, &f, write_records("wide.tfrecord", 9), 2, 4, &checked), "wide.tfrecord: record 9: root");
    assert_int_equal(answers.n_records, 8);
    tare_model_free(f.model);
}

static tare_status refuse_third(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                                const struct tare_tensor *outputs) {
    (void)sample;
    (void)where;
    (void)outputs;
    return ++*(int *)arg == 3 ? TARE_FAIL(TARE_IO, "the disk is full") : TARE_OK;
}

static void failure__of_the_receiver_ends_all_workers(void **state) {
    struct fixture f;
    int calls = 0;
    (void)state;
    open_fixture(&f);
    close_fixture(&f, mini_node(f.model->main, "Softmax", "y", 1, f.x));
    const char *path = write_records("receiver.tfrecord", RECORDS);
    const struct tare_runner_options options = { .paths = &path, .n_paths = 1 };
    struct tare_session **sessions;
    mini_ok(tare_sessions_new(&sessions, 3, f.model, NULL));
    mini_fails(tare_run_records_on(sessions, 3, &f.signature, &options, refuse_third, &calls), "the disk is full");
    assert_int_equal(calls, 3);
    tare_sessions_free(sessions, 3);
    tare_model_free(f.model);
}

static void record__that_does_not_fit_is_named(void **state) {
    struct fixture f;
    static struct answers answers;
    (void)state;
    open_fixture(&f);
    f.input.dtype = TARE_DT_INT32;
    close_fixture(&f, mini_node(f.model->main, "Softmax", "y", 1, f.x));
    mini_fails(run(&answers, &f, write_records("dtype.tfrecord", RECORDS), 2, 1, NULL),
               "dtype.tfrecord: record 0: input x: expected int32, got float32");
    tare_model_free(f.model);
}

/* One worker, batches of 1 and of 5: the same answers. */
static void expect_same_answers(const struct fixture *f, const char *path) {
    static struct answers one, other;
    mini_ok(run(&one, f, path, 1, 1, NULL));
    mini_ok(run(&other, f, path, 1, 5, NULL));
    assert_in_order(&other);
    assert_int_equal(other.n_values, one.n_values);
    assert_memory_equal(other.values, one.values, sizeof one.values);
}

/* y = x / the largest x of the batch */
static void batch__that_a_model_mixes_is_run_record_by_record(void **state) {
    struct fixture f;
    (void)state;
    open_fixture(&f);
    struct tare_graph *g = f.model->main;
    struct tare_edge most = mini_node(g, "Max", "most", 2, f.x, mini_ints(g, "axes", 2, (const int32_t[]){ 0, 1 }));
    close_fixture(&f, mini_node(g, "RealDiv", "y", 2, f.x, most));
    expect_same_answers(&f, write_records("mixed.tfrecord", RECORDS));
    tare_model_free(f.model);
}

static void batch__of_a_model_that_branches_by_values_is_run_record_by_record(void **state) {
    const int types[] = { TARE_DT_FLOAT };
    const char *const names[] = { "then", "else" };
    struct fixture f;
    (void)state;
    open_fixture(&f);
    struct tare_graph *g = f.model->main;
    for (int i = 0; i < 2; i++) { /* the sum's sign is that of a record alone, also for the first two */
        struct tare_graph *branch = tare_model_add_function(f.model, names[i]);
        mini_return(branch, "y", mini_node(branch, i ? "Neg" : "Abs", "y", 1, mini_arg(branch, "x", TARE_DT_FLOAT)));
    }
    struct tare_edge sum = mini_node(g, "Sum", "sum", 2, f.x, mini_ints(g, "axes", 2, (const int32_t[]){ 0, 1 }));
    struct tare_edge less = mini_node(g, "TestLess", "less", 2, sum, mini_float(g, "c", 20));
    struct tare_node *node = mini_open(g, "If", "if", 2, less, f.x);
    mini_ok(tare_node_set_type_list(node, "Tout", types, 1));
    mini_ok(tare_node_set_func(node, "then_branch", "then"));
    mini_ok(tare_node_set_func(node, "else_branch", "else"));
    close_fixture(&f, mini_done(node));
    expect_same_answers(&f, write_records("branch.tfrecord", RECORDS));
    tare_model_free(f.model);
}

static void batch__of_a_model_with_state_is_run_record_by_record(void **state) {
    struct fixture f;
    (void)state;
    open_fixture(&f);
    close_fixture(&f, running_sum(&f));
    expect_same_answers(&f, write_records("summed.tfrecord", RECORDS));
    tare_model_free(f.model);
}

static void batch__whose_outputs_cannot_be_split_is_run_record_by_record(void **state) {
    struct fixture f;
    static struct answers one, other;
    (void)state;
    open_fixture(&f);
    struct tare_edge axes = mini_ints(f.model->main, "axes", 2, (const int32_t[]){ 0, 1 });
    close_fixture(&f, mini_node(f.model->main, "Sum", "y", 2, f.x, axes));
    const char *path = write_records("sums.tfrecord", RECORDS);
    mini_ok(run(&one, &f, path, 1, 1, NULL));
    mini_ok(run(&other, &f, path, 2, 4, NULL));
    assert_in_order(&other);
    assert_memory_equal(other.values, one.values, sizeof one.values);
    tare_model_free(f.model);
}

/* Keys of the sample in another order than the inputs; an input that is missing is an error. */
static void many_inputs__are_bound_by_key(void **state) {
    enum { INPUTS = 40 };
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_binding inputs[INPUTS];
    struct tare_tensor values[INPUTS], bound[INPUTS];
    const char *keys[INPUTS];
    for (int i = 0; i < INPUTS; i++) {
        char *name = tare_arena_printf(&model->arena, "x%d", i);
        inputs[i] = (struct tare_binding){ .key = name,
                                           .dtype = TARE_DT_FLOAT,
                                           .shape = tare_shape_unknown(),
                                           .edge = mini_placeholder(model->main, name, TARE_DT_FLOAT) };
        keys[INPUTS - 1 - i] = name;
        values[INPUTS - 1 - i] = mini_scalar(TARE_DT_FLOAT, i);
    }
    const struct tare_signature signature = { .key = "test", .inputs = inputs, .n_inputs = INPUTS };
    struct tare_sample sample = { .keys = keys, .values = values, .count = INPUTS };
    mini_ok(tare_bind_sample(bound, &signature, &sample, NULL));
    for (int i = 0; i < INPUTS; i++) {
        assert_float_equal(TARE_DATA(float, &bound[i])[0], i, 0);
        tare_tensor_reset(&bound[i]);
    }
    keys[7] = "y";
    mini_fails(tare_bind_sample(bound, &signature, &sample, NULL), "Got: {x39, x38, x37, x36, x35, x34, x33, y, x31");
    for (int i = 0; i < INPUTS; i++)
        tare_tensor_reset(&values[i]);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_inputs__are_bound_by_key),
        cmocka_unit_test(records__give_the_same_bits_for_any_threads_and_batch),
        cmocka_unit_test(stored_records__give_the_same_bits_as_files),
        cmocka_unit_test(stored_records__are_not_in_memory),
        cmocka_unit_test(batches__are_at_least_two_per_worker_where_the_records_are_known),
        cmocka_unit_test(stored_records__stay_in_files_when_they_do_not_fit_or_are_damaged),
        cmocka_unit_test(state__belongs_to_a_worker_and_its_records_do_not_depend_on_timing),
        cmocka_unit_test(state__that_a_signature_changes_is_known_before_the_run),
        cmocka_unit_test(printing__is_in_the_order_of_the_records),
        cmocka_unit_test(failure__is_the_first_one_in_the_order_of_the_records),
        cmocka_unit_test(failure__in_a_batch_names_its_records),
        cmocka_unit_test(batch__of_large_activations_is_run_record_by_record),
        cmocka_unit_test(failure__of_the_receiver_ends_all_workers),
        cmocka_unit_test(record__that_does_not_fit_is_named),
        cmocka_unit_test(batch__that_a_model_mixes_is_run_record_by_record),
        cmocka_unit_test(batch__of_a_model_that_branches_by_values_is_run_record_by_record),
        cmocka_unit_test(batch__of_a_model_with_state_is_run_record_by_record),
        cmocka_unit_test(batch__whose_outputs_cannot_be_split_is_run_record_by_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
