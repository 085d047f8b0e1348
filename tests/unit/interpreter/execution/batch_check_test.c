/* Which pairs of records are evidence that records may run as one batch. */
#include "interpreter/batch_check.h"

#include "support/mini_model.h"

#include <string.h>

/* A trial that returns the listed verdicts one after the other; TARE_IO where `fails` is its number. */
struct script {
    const enum tare_batch_verdict *verdicts;
    int fails, calls;
    float first_of_second; /* the value that the last trial was given for the second record */
};

static tare_status play(void *arg, enum tare_batch_verdict *verdict, const struct tare_tensor *const pair[2]) {
    struct script *script = arg;
    *verdict = script->verdicts[script->calls++];
    script->first_of_second = TARE_CONST_DATA(float, &pair[1][0])[0];
    return script->calls == script->fails ? TARE_FAIL(TARE_IO, "trial %d", script->calls) : TARE_OK;
}

/* Two records of a float input (1 and `second`) and an integer one (7 and `mask`). */
static tare_status check(enum tare_batch_verdict *verdict, struct script *script, float second, int32_t mask) {
    const struct tare_shape shape = tare_shape_make(1, (int64_t)1);
    const float floats[2] = { 1, second };
    const int32_t ints[2] = { 7, mask };
    struct tare_tensor records[2][2];
    const struct tare_tensor *const pair[2] = { records[0], records[1] };
    for (int r = 0; r < 2; r++) {
        mini_ok(tare_tensor_from(&records[r][0], TARE_DT_FLOAT, &shape, &floats[r]));
        mini_ok(tare_tensor_from(&records[r][1], TARE_DT_INT32, &shape, &ints[r]));
    }
    const tare_status status = tare_batch_check_pair(verdict, pair, 2, play, script);
    for (int r = 0; r < 2; r++)
        for (int i = 0; i < 2; i++)
            tare_tensor_reset(&records[r][i]);
    return status;
}

static void pair__with_an_equal_input_is_no_evidence(void **state) {
    const enum tare_batch_verdict same[] = { TARE_BATCH_INDEPENDENT, TARE_BATCH_INDEPENDENT };
    struct script script = { .verdicts = same };
    enum tare_batch_verdict verdict;
    (void)state;
    mini_ok(check(&verdict, &script, 2, 7)); /* a mask that both records share may mix records that do not */
    assert_int_equal(verdict, TARE_BATCH_UNDECIDED);
    mini_ok(check(&verdict, &script, 1, 8));
    assert_int_equal(verdict, TARE_BATCH_UNDECIDED);
    assert_int_equal(script.calls, 0);
}

static void pair__is_tried_again_with_a_contrast(void **state) {
    const enum tare_batch_verdict same[] = { TARE_BATCH_INDEPENDENT, TARE_BATCH_INDEPENDENT };
    const enum tare_batch_verdict mixed[] = { TARE_BATCH_INDEPENDENT, TARE_BATCH_DEPENDENT };
    const enum tare_batch_verdict apart[] = { TARE_BATCH_DEPENDENT };
    struct script script = { .verdicts = same };
    enum tare_batch_verdict verdict;
    (void)state;
    mini_ok(check(&verdict, &script, 2, 8));
    assert_int_equal(verdict, TARE_BATCH_INDEPENDENT);
    assert_int_equal(script.calls, 2);
    assert_float_equal(script.first_of_second, -32, 0);
    script = (struct script){ .verdicts = mixed };
    mini_ok(check(&verdict, &script, 2, 8));
    assert_int_equal(verdict, TARE_BATCH_DEPENDENT);
    script = (struct script){ .verdicts = apart };
    mini_ok(check(&verdict, &script, 2, 8));
    assert_int_equal(verdict, TARE_BATCH_DEPENDENT);
    assert_int_equal(script.calls, 1);
}

static void failure__of_the_records_is_an_error_and_of_the_contrast_is_not(void **state) {
    const enum tare_batch_verdict same[] = { TARE_BATCH_INDEPENDENT, TARE_BATCH_DEPENDENT };
    struct script script = { .verdicts = same, .fails = 1 };
    enum tare_batch_verdict verdict;
    (void)state;
    mini_fails(check(&verdict, &script, 2, 8), "trial 1");
    script = (struct script){ .verdicts = same, .fails = 2 };
    mini_ok(check(&verdict, &script, 2, 8));
    assert_int_equal(verdict, TARE_BATCH_INDEPENDENT);
}

static void graph__names_the_reason_for_one_by_one_runs(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_edge x = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    struct tare_edge y = mini_node(model->main, "Softmax", "y", 1, x);
    struct tare_binding input = { .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_make(2, -1, 3), .edge = x };
    struct tare_binding output = { .key = "y", .dtype = TARE_DT_FLOAT, .edge = y };
    const struct tare_signature signature = { "test", "", &input, 1, &output, 1, NULL };
    const char *reason = "";
    (void)state;
    mini_ok(tare_batch_check_graph(&reason, model, &signature));
    assert_null(reason);
    input.shape = tare_shape_make(2, 1, 3);
    mini_ok(tare_batch_check_graph(&reason, model, &signature));
    assert_string_equal(reason, "the signature does not leave the first dimension of every input open");
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pair__with_an_equal_input_is_no_evidence),
        cmocka_unit_test(pair__is_tried_again_with_a_contrast),
        cmocka_unit_test(failure__of_the_records_is_an_error_and_of_the_contrast_is_not),
        cmocka_unit_test(graph__names_the_reason_for_one_by_one_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
