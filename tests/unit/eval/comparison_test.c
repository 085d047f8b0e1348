/* Passes over models whose numbers of outputs differ are refused: a pass reads as many outputs as the first model has.
 */
#include "eval/comparison.h"
#include "base/alloc.h"
#include "eval/record_store.h"
#include "support/mini_model.h"

static const struct tare_binding bindings[] = { { .key = "first", .dtype = TARE_DT_FLOAT },
                                                { .key = "second", .dtype = TARE_DT_FLOAT } };

/* A comparison that has measured the float model, with `n_outputs` outputs, over one record. */
static void measured(struct tare_comparison *out, size_t n_outputs) {
    struct tare_tensor outputs[2] = { { 0 } };
    *out = (struct tare_comparison){ .n_outputs = n_outputs, .references.n_outputs = n_outputs };
    for (size_t i = 0; i < n_outputs; i++)
        mini_ok(tare_tensor_scalar_f32(&outputs[i], 2.5f));
    mini_ok(tare_reference_store_add(&out->references, outputs));
    for (size_t i = 0; i < n_outputs; i++)
        tare_tensor_reset(&outputs[i]);
    out->rows = tare_calloc(1, sizeof *out->rows);
    assert_non_null(out->rows);
    out->rows->outputs = TARE_NEW_ARRAY(&out->arena, struct tare_metrics, n_outputs + 1);
    assert_non_null(out->rows->outputs);
    out->n_rows = 1;
}

static tare_status add_known(size_t known_outputs, size_t n_outputs) {
    struct tare_stored_record record = { 0 };
    const struct tare_record_store store = { .complete = true, .records = &record, .count = 1 };
    const struct tare_runner_options options = { .records = &store };
    const struct tare_signature signature = { .outputs = (struct tare_binding *)bindings, .n_outputs = n_outputs };
    struct tare_comparison known, comparison = { 0 };
    struct tare_comparison_row *row;
    measured(&known, known_outputs);
    const tare_status status = tare_comparison_add_known(&row, &comparison, &known, &signature, &options, "label");
    if (status == TARE_OK) assert_int_equal(comparison.records, 1);
    tare_comparison_free(&comparison);
    tare_comparison_free(&known);
    return status;
}

static void known_outputs__are_as_many_as_the_signature_has(void **state) {
    (void)state;
    mini_ok(add_known(1, 1));
    mini_ok(add_known(2, 2));
    mini_fails(add_known(1, 2), "a model has 1 outputs (expected 2)");
    mini_fails(add_known(2, 1), "a model has 2 outputs (expected 1)");
}

static void later_models__have_as_many_outputs_as_the_first(void **state) {
    (void)state;
    for (size_t count = 1; count <= 2; count++) {
        const struct tare_signature signature = { .outputs = (struct tare_binding *)bindings, .n_outputs = count };
        struct tare_comparison_pass pass = { 0 };
        struct tare_comparison comparison;
        measured(&comparison, 2);
        if (count == 2)
            mini_ok(tare_comparison_pass_begin(&pass, &comparison, &signature, "label"));
        else
            mini_fails(tare_comparison_pass_begin(&pass, &comparison, &signature, "label"), "a model has 1 outputs");
        tare_comparison_pass_end(&pass);
        tare_comparison_free(&comparison);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_outputs__are_as_many_as_the_signature_has),
        cmocka_unit_test(later_models__have_as_many_outputs_as_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
