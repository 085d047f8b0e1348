/* Batches as a server forms them: which rows run together, padding, splitting, and the errors. */
#include "eval/served_batches.h"

#include "base/alloc.h"
#include "datasets/tfrecord.h"
#include "support/mini_model.h"
#include "support/sample_file.h"
#include "support/temp.h"

#include <string.h>

enum { MOST = 64 };

/* Records of the given numbers of rows; row r of all has the value r. */
static const char *write_records(const char *name, const int *rows, size_t count) {
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path(name);
    float next = 0;
    mini_ok(tare_tfrecord_create(&writer, path));
    for (size_t k = 0; k < count; k++) {
        struct tare_shape shape = tare_shape_make(1, (int64_t)rows[k]);
        float x[MOST];
        for (int i = 0; i < rows[k]; i++)
            x[i] = next++;
        write_float_sample(writer, "x", &shape, x);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

/* y = serve(x); serve calls a BatchFunction of body(x) = x + 100 sum(x): the sum of the executed batch, padding
 * included. */
struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *serve;
    struct tare_node *batcher;
    struct tare_binding input, output;
    struct tare_signature signature;
    struct tare_served_batches *batches;
    float y[MOST];
    size_t n_y, n_records;
    tare_status status;
};

static struct tare_graph *add_body(struct tare_graph_model *model) {
    struct tare_graph *body = tare_model_add_function(model, "body");
    const struct tare_edge x = mini_arg(body, "x", TARE_DT_FLOAT);
    const struct tare_edge sum = mini_node(body, "Sum", "sum", 2, x, mini_ints(body, "axes", 1, (int32_t[]){ 0 }));
    mini_return(
        body, "y",
        mini_node(body, "AddV2", "add", 2, x, mini_node(body, "Mul", "mul", 2, sum, mini_float(body, "hundred", 100))));
    return body;
}

static void add_batcher(struct fixture *f, int most, bool splits, const int64_t *allowed, size_t n_allowed) {
    const int types[] = { TARE_DT_FLOAT };
    struct tare_edge x = mini_arg(f->serve, "x", TARE_DT_FLOAT);
    f->batcher = mini_open(f->serve, "BatchFunction", "batch", 1, x);
    mini_ok(tare_node_set_func(f->batcher, "f", "body"));
    mini_ok(tare_node_set_int(f->batcher, "num_batch_threads", 1));
    mini_ok(tare_node_set_int(f->batcher, "batch_timeout_micros", 1));
    mini_ok(tare_node_set_int(f->batcher, "max_batch_size", most));
    mini_ok(tare_node_set_bool(f->batcher, "enable_large_batch_splitting", splits));
    mini_ok(tare_node_set_int_list(f->batcher, "allowed_batch_sizes", allowed, n_allowed));
    mini_ok(tare_node_set_type_list(f->batcher, "Tin", types, 1));
    mini_ok(tare_node_set_type_list(f->batcher, "Tcaptured", types, 0));
    mini_ok(tare_node_set_type_list(f->batcher, "Tout", types, 1));
    mini_return(f->serve, "y", mini_done(f->batcher));
}

static void set_up(struct fixture *f, int most, bool splits, const int64_t *allowed, size_t n_allowed) {
    *f = (struct fixture){ .model = mini_model_new() };
    add_body(f->model);
    f->serve = tare_model_add_function(f->model, "serve");
    add_batcher(f, most, splits, allowed, n_allowed);
    const struct tare_edge x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    const struct tare_edge y = mini_call(f->model->main, "PartitionedCall", "call", f->serve, 1, x);
    f->input = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = x };
    f->output = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = y };
    f->signature = (struct tare_signature){ "test", "", &f->input, 1, &f->output, 1, NULL };
}

static tare_status collect(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                           const struct tare_tensor *outputs) {
    struct fixture *f = arg;
    (void)sample;
    assert_int_equal(where->number, f->n_records);
    f->n_records++;
    for (int64_t i = 0; i < outputs[0].elements; i++)
        f->y[f->n_y++] = TARE_CONST_DATA(float, &outputs[0])[i];
    return TARE_OK;
}

static void serve(struct fixture *f, const int *rows, size_t count) {
    const char *path = write_records("requests.tfrecord", rows, count);
    const struct tare_runner_options options = { .paths = &path, .n_paths = 1 };
    struct tare_session *session;
    mini_ok(tare_served_batches_new(&f->batches, f->model, &f->signature));
    session = mini_session(f->model);
    f->status = tare_served_batches_run(f->batches, session, &options, collect, f);
    tare_session_free(session);
}

static struct tare_served_batcher report_of(const struct fixture *f) {
    size_t count;
    const struct tare_served_batcher *list = tare_served_batches_list(&count, f->batches);
    assert_int_equal(count, 1);
    return list[0];
}

static void tear_down(struct fixture *f) {
    tare_served_batches_free(f->batches);
    tare_model_free(f->model);
}

/* Row r must have run in a batch whose rows had this sum. */
static void check_sums(const struct fixture *f, const int *sums, size_t count) {
    mini_ok(f->status);
    assert_int_equal(f->n_y, count);
    for (size_t r = 0; r < count; r++)
        assert_float_equal(f->y[r], (float)r + 100 * (float)sums[r], 0);
}

/* max_batch_size 4, sizes 2 and 4. Rows 0 to 3 are a batch of 4; row 4 is padded to 2 by a copy of itself. */
static void requests__are_joined_and_padded(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, 4, true, (int64_t[]){ 2, 4 }, 2);
    serve(&f, (int[]){ 1, 1, 1, 1, 1 }, 5);
    check_sums(&f, (int[]){ 6, 6, 6, 6, 8 }, 5);
    const struct tare_served_batcher report = report_of(&f);
    assert_string_equal(report.name, "call/batch");
    assert_int_equal(report.requests, 5);
    assert_int_equal(report.rows, 5);
    assert_int_equal(report.batches, 2);
    assert_int_equal(report.padding, 1);
    assert_int_equal(report.split, 0);
    assert_int_equal(report.n_sizes, 2);
    assert_int_equal(report.sizes[0].size, 2);
    assert_int_equal(report.sizes[1].size, 4);
    assert_int_equal(report.sizes[1].batches, 1);
    tear_down(&f);
}

/* Rows 0-2 and 3-7 in batches of 4: the second request fills the first batch and is split. */
static void a_large_request__is_split(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, 8, true, (int64_t[]){ 2, 4 }, 2);
    serve(&f, (int[]){ 3, 5 }, 2);
    check_sums(&f, (int[]){ 6, 6, 6, 6, 22, 22, 22, 22 }, 8);
    const struct tare_served_batcher report = report_of(&f);
    assert_int_equal(report.split, 1);
    assert_int_equal(report.padding, 0);
    assert_int_equal(report.batches, 2);
    tear_down(&f);
}

/* Without splitting a request that does not fit begins a batch: 0-2 padded to 4 by row 0, 3-5 by row 3. */
static void without_splitting__requests_stay_whole(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, 4, false, (int64_t[]){ 2, 4 }, 2);
    serve(&f, (int[]){ 3, 3 }, 2);
    check_sums(&f, (int[]){ 3, 3, 3, 15, 15, 15 }, 6);
    assert_int_equal(report_of(&f).padding, 2);
    tear_down(&f);
}

/* Without allowed sizes nothing is padded; a request without rows runs in no batch. */
static void an_empty_request__runs_in_no_batch(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, 4, true, NULL, 0);
    serve(&f, (int[]){ 2, 0, 1 }, 3);
    check_sums(&f, (int[]){ 3, 3, 3 }, 3);
    assert_int_equal(f.n_records, 3);
    assert_int_equal(report_of(&f).batches, 1);
    assert_int_equal(report_of(&f).padding, 0);
    tear_down(&f);
}

/* More requests than the queue holds (10 batches of 2 rows) come in several groups. */
static void requests__beyond_the_queue_keep_their_order(void **state) {
    struct fixture f;
    int rows[45], sums[45];
    (void)state;
    for (int i = 0; i < 45; i++) {
        rows[i] = 1;
        sums[i] = i == 44 ? 88 : 4 * (i / 2) + 1;
    }
    set_up(&f, 2, true, (int64_t[]){ 2 }, 1);
    serve(&f, rows, 45);
    check_sums(&f, sums, 45);
    assert_int_equal(report_of(&f).batches, 23);
    tear_down(&f);
}

static void a_request__beyond_the_maximum_is_an_error(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, 4, true, (int64_t[]){ 4 }, 1);
    serve(&f, (int[]){ 1, 5 }, 2);
    mini_fails(f.status, "Task size 5 is larger than maximum input batch size 4 (call/batch)");
    tear_down(&f);
}

static void an_output__with_other_rows_is_an_error(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, 4, true, (int64_t[]){ 4 }, 1);
    struct tare_graph *body = tare_model_find_function(f.model, "body");
    const struct tare_edge y = body->returns[0].edge;
    tare_graph_set_return(body, 0, mini_node(body, "ConcatV2", "twice", 3, y, y, mini_int(body, "axis", 0)));
    serve(&f, (int[]){ 1, 1 }, 2);
    mini_fails(f.status, "0th dimension size: 8; batch size: 4 (output 0 of call/batch)");
    tear_down(&f);
}

static void a_signature__without_batcher_is_refused(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, 4, true, (int64_t[]){ 4 }, 1);
    f.signature.outputs[0].edge = f.input.edge;
    mini_fails(tare_served_batches_new(&f.batches, f.model, &f.signature), "test reaches no BatchFunction");
    assert_null(f.batches);
    tear_down(&f);
}

/* if (p) serve(x) else serve(x): a batch of the requests that take a branch is not simulated. */
static void a_batcher__in_a_branch_is_refused(void **state) {
    struct fixture f;
    const int types[] = { TARE_DT_FLOAT };
    (void)state;
    set_up(&f, 4, true, (int64_t[]){ 4 }, 1);
    struct tare_node *branch =
        mini_open(f.model->main, "If", "branch", 2, mini_bool(f.model->main, "p", true), f.input.edge);
    mini_ok(tare_node_set_type(branch, "Tcond", TARE_DT_BOOL));
    mini_ok(tare_node_set_type_list(branch, "Tin", types, 1));
    mini_ok(tare_node_set_type_list(branch, "Tout", types, 1));
    mini_ok(tare_node_set_func(branch, "then_branch", "serve"));
    mini_ok(tare_node_set_func(branch, "else_branch", "serve"));
    f.signature.outputs[0].edge = mini_done(branch);
    mini_fails(tare_served_batches_new(&f.batches, f.model, &f.signature), "batcher batch is called by branch (If)");
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests__are_joined_and_padded),
        cmocka_unit_test(a_large_request__is_split),
        cmocka_unit_test(without_splitting__requests_stay_whole),
        cmocka_unit_test(an_empty_request__runs_in_no_batch),
        cmocka_unit_test(requests__beyond_the_queue_keep_their_order),
        cmocka_unit_test(a_request__beyond_the_maximum_is_an_error),
        cmocka_unit_test(an_output__with_other_rows_is_an_error),
        cmocka_unit_test(a_signature__without_batcher_is_refused),
        cmocka_unit_test(a_batcher__in_a_branch_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
