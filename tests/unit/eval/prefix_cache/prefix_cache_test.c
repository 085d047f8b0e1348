/* Models that part from each other late: each runs from there on, and answers with the bits of the whole model. */
#include "eval/prefix_cache/prefix_cache.h"
#include "base/alloc.h"
#include "datasets/tfrecord.h"
#include "support/mini_model.h"
#include "support/sample_file.h"
#include "support/temp.h"

#include <stdio.h>
#include <string.h>

enum { RECORDS = 21, WIDTH = 3, STEPS = 4, MODELS = 4, MOST = RECORDS * WIDTH };

static const char *write_records(void) {
    struct tare_tfrecord_writer *writer;
    const char *path = temp_path("rerun.tfrecord");
    mini_ok(tare_tfrecord_create(&writer, path));
    for (int k = 0; k < RECORDS; k++) {
        const float x[WIDTH] = { (float)k / 7, (float)-k / 3, 1 };
        struct tare_shape shape = tare_shape_make(2, (int64_t)1, (int64_t)WIDTH);
        write_float_sample(writer, "x", &shape, x);
    }
    mini_ok(tare_tfrecord_commit(writer));
    return path;
}

/* y = tanh(… tanh(x * c0) * c1 …) over STEPS steps; model i has another constant in step i. */
static const float constants[STEPS] = { 1.5F, 0.7F, 1.1F, 0.9F };

struct answers {
    const char *signature_key;
    float values[MODELS][MOST];
    size_t count[MODELS];
    bool sum;      /* y = sum of all rows: not to be split */
    bool products; /* steps are matrix products with a constant of which model i has another one in step i */
    size_t mixed;  /* this model divides by the largest value of the batch; 0: none does */
    int made;
};

static void add_signature(struct tare_graph_model *model, struct tare_edge x, struct tare_edge y) {
    struct tare_binding *bindings = TARE_NEW_ARRAY(&model->arena, struct tare_binding, 2);
    struct tare_signature *signature = TARE_NEW(&model->arena, struct tare_signature);
    bindings[0] = (struct tare_binding){
        .key = "x", .dtype = TARE_DT_FLOAT, .edge = x, .shape = tare_shape_make(2, (int64_t)-1, (int64_t)WIDTH)
    };
    bindings[1] = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = y };
    *signature = (struct tare_signature){ "serving_default", "", &bindings[0], 1, &bindings[1], 1, NULL };
    model->signatures = signature;
    model->n_signatures = 1;
}

/* y times a matrix of which every element is `value`. */
static struct tare_edge multiply(struct tare_graph *graph, char names[2][16], struct tare_edge y, float value) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)WIDTH, (int64_t)WIDTH);
    struct tare_tensor matrix;
    struct tare_edge constant;
    mini_ok(tare_tensor_new(&matrix, TARE_DT_FLOAT, &shape));
    for (int i = 0; i < WIDTH * WIDTH; i++)
        TARE_DATA(float, &matrix)[i] = value;
    constant = (struct tare_edge){ tare_graph_add_const(graph, names[0], &matrix), 0 };
    tare_tensor_reset(&matrix);
    return mini_node(graph, "MatMul", names[1], 2, y, constant);
}

static tare_status make(void *arg, struct tare_graph_model **out, size_t number) {
    struct answers *answers = arg;
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT), y = x;
    for (size_t s = 0; s < STEPS; s++) {
        char names[2][16];
        snprintf(names[0], sizeof *names, "c%zu", s);
        snprintf(names[1], sizeof *names, "m%zu", s);
        if (answers->products) {
            y = multiply(model->main, names, y, constants[s] + (number == s));
            continue;
        }
        y = mini_node(model->main, "Mul", names[1], 2, y,
                      mini_float(model->main, names[0], constants[s] + (number == s)));
        snprintf(names[1], sizeof *names, "t%zu", s);
        y = mini_node(model->main, "Tanh", names[1], 1, y);
    }
    if (answers->sum)
        y = mini_node(model->main, "Sum", "sum", 2, y, mini_ints(model->main, "axes", 2, (const int32_t[]){ 0, 1 }));
    if (answers->mixed && number == answers->mixed)
        y = mini_node(
            model->main, "RealDiv", "mixed", 2, y,
            mini_node(model->main, "Max", "most", 2, y, mini_ints(model->main, "axes", 2, (const int32_t[]){ 0, 1 })));
    add_signature(model, x, y);
    answers->made++;
    *out = model;
    return TARE_OK;
}

static tare_status note(void *arg, size_t number, const struct tare_sample *sample, const struct tare_tensor *outputs) {
    struct answers *answers = arg;
    (void)sample;
    for (int64_t i = 0; i < outputs[0].elements; i++)
        answers->values[number][answers->count[number]++] = TARE_CONST_DATA(float, &outputs[0])[i];
    return TARE_OK;
}

static struct tare_prefix_cache_report run(struct answers *answers, int threads, int batch, int64_t memory) {
    const char *path = temp_path("rerun.tfrecord");
    const struct tare_runner_options runner = { .paths = &path, .n_paths = 1, .batch = batch };
    const struct tare_prefix_cache_task task = { .n_models = MODELS,
                                                 .make = make,
                                                 .record = note,
                                                 .arg = answers,
                                                 .runner = &runner,
                                                 .threads = threads,
                                                 .memory = memory };
    struct tare_prefix_cache_report report;
    const struct answers before = { .sum = answers->sum, .products = answers->products, .mixed = answers->mixed };
    *answers = before;
    mini_ok(tare_prefix_cache_run(&report, &task));
    return report;
}

static void answers__are_those_of_whole_models(void **state) {
    static struct answers whole, parts;
    struct tare_prefix_cache_report report = run(&whole, 1, 1, 0);
    (void)state;
    assert_int_equal(report.nodes, report.whole_nodes);
    assert_int_equal(report.kept_bytes, 0);
    assert_int_equal(whole.count[MODELS - 1], RECORDS * WIDTH);
    assert_memory_not_equal(whole.values[0], whole.values[1], sizeof whole.values[0]);
    for (int threads = 1; threads <= 3; threads++)
        for (int batch = 1; batch <= 8; batch += 3) {
            report = run(&parts, threads, batch, 1 << 20);
            assert_memory_equal(parts.values, whole.values, sizeof whole.values);
            assert_true(report.nodes < report.whole_nodes);
            assert_true(report.kept_bytes > 0);
        }
}

/* Model 0 is the first; model 1 differs in steps 0 and 1 and shares nothing; 2 shares step 0 with 1, 3 steps 0 and 1.
 */
static void steps_that_an_earlier_model_ran__do_not_run_again(void **state) {
    static struct answers answers;
    struct tare_prefix_cache_report report = run(&answers, 1, 4, 1 << 20);
    (void)state;
    assert_int_equal(report.whole_nodes, MODELS * 2 * STEPS * RECORDS);
    assert_int_equal(report.nodes, (4 + 4 + 3 + 2) * 2 * RECORDS);
}

static void little_memory__makes_parts_or_runs_again_and_changes_no_bit(void **state) {
    static struct answers whole, parts;
    const int64_t record = WIDTH * sizeof(float);
    size_t most_parts = 0;
    (void)state;
    run(&whole, 1, 1, 0);
    for (int64_t memory = 1; memory < 64 * record; memory += record) {
        struct tare_prefix_cache_report report = run(&parts, 2, 2, memory);
        assert_memory_equal(parts.values, whole.values, sizeof whole.values);
        assert_true(report.kept_bytes <= memory);
        if (report.parts > most_parts) most_parts = report.parts;
    }
    assert_true(most_parts > 1);
}

static void outputs_that_are_not_split_by_records__run_one_by_one(void **state) {
    static struct answers one, many;
    (void)state;
    one.sum = many.sum = true;
    run(&one, 1, 1, 0);
    struct tare_prefix_cache_report report = run(&many, 2, 4, 1 << 20);
    assert_false(report.unsuited);
    assert_int_equal(many.count[0], RECORDS);
    assert_memory_equal(many.values, one.values, sizeof one.values);
}

/* ---- which models run together ---- */

static void find_shared(bool shares[MODELS], struct answers *answers) {
    const struct tare_prefix_cache_task task = {
        .n_models = MODELS, .make = make, .record = note, .arg = answers, .costly_only = true
    };
    mini_ok(tare_prefix_cache_find_shared(shares, &task));
}

/* Models 1, 2 and 3 share the first step, 2 and 3 also the second one. */
static void models_that_share_products__are_found(void **state) {
    static struct answers products = { .products = true }, elementwise = { .products = false };
    bool shares[MODELS];
    (void)state;
    find_shared(shares, &products);
    assert_false(shares[0]);
    assert_true(shares[1] && shares[2] && shares[3]);
    find_shared(shares, &elementwise);
    for (int i = 0; i < MODELS; i++)
        assert_false(shares[i]);
}

static void costly_values__are_kept_alone_and_change_no_bit(void **state) {
    static struct answers whole = { .products = true }, parts = { .products = true };
    const char *path = temp_path("rerun.tfrecord");
    const struct tare_runner_options runner = { .paths = &path, .n_paths = 1, .batch = 4 };
    double seconds[MODELS] = { 0 };
    const struct tare_prefix_cache_task task = { .n_models = MODELS,
                                                 .make = make,
                                                 .record = note,
                                                 .arg = &parts,
                                                 .runner = &runner,
                                                 .threads = 2,
                                                 .memory = 1 << 20,
                                                 .costly_only = true,
                                                 .seconds = seconds };
    struct tare_prefix_cache_report report;
    (void)state;
    run(&whole, 1, 1, 0);
    mini_ok(tare_prefix_cache_run(&report, &task));
    assert_memory_equal(parts.values, whole.values, sizeof whole.values);
    assert_int_equal(report.nodes, (4 + 4 + 3 + 2) * RECORDS);
    for (int i = 0; i < MODELS; i++)
        assert_true(seconds[i] > 0);
}

/* Only the first model was checked once, which allows batches here. */
static void models_that_mix_a_batch__make_all_run_one_by_one(void **state) {
    static struct answers one = { .mixed = 2 }, many = { .mixed = 2 };
    (void)state;
    run(&one, 1, 1, 0);
    const struct tare_prefix_cache_report report = run(&many, 2, 4, 1 << 20);
    assert_false(report.unsuited);
    assert_memory_equal(many.values, one.values, sizeof one.values);
}

static void models_that_mix_a_batch__are_named_on_request(void **state) {
    static struct answers answers = { .mixed = 2 };
    const char *path = temp_path("rerun.tfrecord");
    const struct tare_runner_options runner = { .paths = &path, .n_paths = 1, .batch = 4 };
    bool dependent[MODELS] = { false };
    const struct tare_prefix_cache_task task = { .n_models = MODELS,
                                                 .make = make,
                                                 .record = note,
                                                 .arg = &answers,
                                                 .runner = &runner,
                                                 .memory = 1 << 20,
                                                 .dependent = dependent };
    struct tare_prefix_cache_report report;
    (void)state;
    mini_ok(tare_prefix_cache_run(&report, &task));
    assert_true(report.unsuited);
    for (int i = 0; i < MODELS; i++) {
        assert_int_equal(dependent[i], i == 2);
        assert_int_equal(answers.count[i], 0);
    }
}

static int set_up(void **state) {
    (void)state;
    write_records();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers__are_those_of_whole_models),
        cmocka_unit_test(steps_that_an_earlier_model_ran__do_not_run_again),
        cmocka_unit_test(little_memory__makes_parts_or_runs_again_and_changes_no_bit),
        cmocka_unit_test(outputs_that_are_not_split_by_records__run_one_by_one),
        cmocka_unit_test(models_that_share_products__are_found),
        cmocka_unit_test(costly_values__are_kept_alone_and_change_no_bit),
        cmocka_unit_test(models_that_mix_a_batch__make_all_run_one_by_one),
        cmocka_unit_test(models_that_mix_a_batch__are_named_on_request),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
