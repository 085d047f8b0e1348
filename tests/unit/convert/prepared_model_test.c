/* Ranges of a calibration suit the integer type of the setting. */
#include "base/alloc.h"
#include "calib/tally.h"
#include "convert/pass.h"
#include "convert/prepared_model.h"
#include "graph/calls.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

static struct tare_calibration *calibration_of_four_values(void) {
    const uint64_t fingerprint[2] = { 1, 2 };
    const struct tare_shape shape = { .rank = 2, .dims = { 1, 4 } };
    const struct tare_place place = { 0 };
    const float values[] = { -1, 0.5f, 2, 3 };
    struct tare_calibration *calibration = tare_calibration_new(fingerprint, "test", false);
    struct tare_calibration_tensor *tensor;
    struct tare_tally *tally = tare_tally_new();
    struct tare_tensor value;
    mini_ok(tare_calibration_add_tensor(calibration, "", "x", 0, &tensor));
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, values));
    mini_ok(tare_statistics_add(&tensor->statistics, tally, &value, &place, 1, TARE_BATCH_SHARED));
    tare_tensor_reset(&value);
    tare_tally_free(tally);
    return calibration;
}

static void range_for(const char *algorithm, bool symmetric, double *low, double *high) {
    struct tare_calibration *calibration = calibration_of_four_values();
    const struct tare_quant_ranges ranges = tare_ranges_of(calibration);
    struct tare_quant_setting setting = { .symmetric = symmetric };
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    bool found;
    mini_ok(tare_algorithm_parse(&setting.algorithm, algorithm));
    mini_ok(ranges.find(ranges.arg, x, &setting, &found, low, high));
    assert_true(found);
    tare_model_free(model);
    tare_calibration_free(calibration);
}

static void symmetric_ranges__reach_as_far_both_ways(void **state) {
    const char *const algorithms[] = { "min_max", "percentile", "mse" };
    (void)state;
    for (int i = 0; i < 3; i++) {
        double low, high;
        range_for(algorithms[i], true, &low, &high);
        if (low != -high) fail_msg("%s: %g … %g", algorithms[i], low, high);
        range_for(algorithms[i], false, &low, &high);
        if (!(low > -high)) fail_msg("%s, asymmetric: %g … %g", algorithms[i], low, high);
    }
}

/* The range of x by an algorithm in a new calibration, with allocation `failing` (from 1; 0: none) failing. */
static tare_status range_without(int64_t failing, const char *algorithm, bool *found, double ends[2],
                                 int64_t *allocations) {
    struct tare_calibration *calibration = calibration_of_four_values();
    const struct tare_quant_ranges ranges = tare_ranges_of(calibration);
    struct tare_graph_model *model = mini_model_new();
    const struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_quant_setting setting = { 0 };
    mini_ok(tare_algorithm_parse(&setting.algorithm, algorithm));
    tare_alloc_fail_at(failing);
    const tare_status status = ranges.find(ranges.arg, x, &setting, found, &ends[0], &ends[1]);
    *allocations = tare_alloc_count();
    tare_alloc_fail_at(0);
    tare_model_free(model);
    tare_calibration_free(calibration);
    return status;
}

/* Each allocation of each algorithm: the range is the same (where one fails that only saves time) or an error, and
 * never looks like that of a tensor without a range. */
static void ranges__do_not_become_absent_without_memory(void **state) {
    size_t count;
    const struct tare_algorithm *const *rows = tare_algorithm_list(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        double expected[2], ends[2];
        int64_t allocations, unused, failures = 0;
        bool found;
        mini_ok(range_without(0, rows[i]->name, &found, expected, &allocations));
        assert_true(found && allocations > (rows[i]->of_extremes ? 0 : 1)); /* the memo of ranges, and bins */
        for (int64_t n = 1; n <= allocations; n++) {
            const tare_status status = range_without(n, rows[i]->name, &found, ends, &unused);
            failures += status == TARE_NO_MEMORY;
            if (status == TARE_NO_MEMORY) continue;
            assert_int_equal(status, TARE_OK);
            assert_true(found && ends[0] == expected[0] && ends[1] == expected[1]);
        }
        assert_true(failures >= allocations - 1); /* all but the memo of ranges */
    }
}

static void passes__that_need_channels_refuse_a_calibration_without(void **state) {
    const struct tare_quant_pass *const passes[] = { &tare_quant_pass_bias_correction, NULL };
    struct tare_calibration *calibration = calibration_of_four_values();
    (void)state;
    mini_fails(tare_calibration_check_passes(calibration, passes), "tare calibrate --channels");
    mini_fails(tare_calibration_check_passes(NULL, passes), "needs samples or a calibration");
    mini_ok(tare_calibration_check_passes(calibration, NULL));
    tare_calibration_free(calibration);
}

/* y = IdentityN(x, unused)[0] in a function: the unused argument can be removed afterwards. */
static void prune__uses_of_identities_become_uses_of_their_inputs(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    size_t changes = 0, removed = 0;
    (void)state;
    const struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), unused = mini_arg(f, "unused", TARE_DT_FLOAT);
    const struct tare_edge both = mini_node(f, "IdentityN", "both", 2, x, unused);
    mini_return(f, "y", mini_node(f, "Relu", "relu", 1, both));
    const struct tare_edge a = mini_placeholder(model->main, "a", TARE_DT_FLOAT);
    const struct tare_edge b = mini_placeholder(model->main, "b", TARE_DT_FLOAT);
    const struct tare_edge y = mini_call(model->main, "PartitionedCall", "call", f, 2, a, b);
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT, .edge = y };
    struct tare_signature signature = { .key = "serving_default", .outputs = &output, .n_outputs = 1 };
    model->signatures = &signature;
    model->n_signatures = 1;
    mini_ok(tare_pass_prune.run(model, &changes));
    assert_int_equal(graph_count(f, "IdentityN"), 0);
    mini_ok(tare_model_remove_unused_args(&removed, model));
    assert_int_equal(removed, 1);
    assert_int_equal(y.node->n_inputs, 1);
    tare_model_free(model);
}

/* As TensorFlow freezes a function: y = x w waits for the reads of its weight, now identities of a constant, and here
 * for an assignment, too. Where another weight replaces the constant, nothing holds it. */
static void prune__results_wait_for_effects_alone(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "f");
    size_t changes = 0;
    (void)state;
    const struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), count = mini_arg(f, "count", TARE_DT_RESOURCE);
    const struct tare_edge w = mini_node(f, "Identity", "read", 1, mini_float(f, "w", 3));
    struct tare_node *add = mini_open(f, "AssignAddVariableOp", "add", 2, count, mini_float(f, "one", 1));
    mini_ok(tare_node_set_type(add, "dtype", TARE_DT_FLOAT));
    mini_done(add);
    struct tare_node *reads = mini_open(f, "NoOp", "reads", 0), *end = mini_open(f, "NoOp", "end", 0);
    mini_ok(tare_node_add_control(reads, w.node));
    mini_ok(tare_node_add_control(end, reads));
    mini_ok(tare_node_add_control(end, add));
    const struct tare_edge product = mini_node(f, "Mul", "product", 2, x, w);
    struct tare_node *y = mini_open(f, "Identity", "y", 1, product);
    mini_ok(tare_node_add_control(y, reads));
    mini_ok(tare_node_add_control(y, end));
    mini_return(f, "y", mini_done(y));
    const struct tare_edge a = mini_placeholder(model->main, "a", TARE_DT_FLOAT);
    const struct tare_edge handle = mini_variable(model, "count", 0);
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT };
    output.edge = mini_call(model->main, "StatefulPartitionedCall", "call", f, 2, a, handle);
    struct tare_signature signature = { .key = "serving_default", .outputs = &output, .n_outputs = 1 };
    model->signatures = &signature;
    model->n_signatures = 1;
    mini_ok(tare_pass_prune.run(model, &changes));
    assert_int_equal(y->n_controls, 1);
    assert_ptr_equal(y->controls[0], end);
    assert_int_equal(end->n_controls, 1);
    assert_ptr_equal(end->controls[0], add);
    tare_node_set_input(product.node, 1, mini_float(f, "other", 2));
    mini_ok(tare_graph_remove_unreachable(f, NULL));
    assert_int_equal(graph_count(f, "Const"), 2);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prune__results_wait_for_effects_alone),
        cmocka_unit_test(prune__uses_of_identities_become_uses_of_their_inputs),
        cmocka_unit_test(symmetric_ranges__reach_as_far_both_ways),
        cmocka_unit_test(ranges__do_not_become_absent_without_memory),
        cmocka_unit_test(passes__that_need_channels_refuse_a_calibration_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
