/* Passes over models whose numbers of outputs differ are refused: a pass reads as many outputs as the first model has.
 * What labels and targets belong to. */
#include "eval/evaluation.h"
#include "base/alloc.h"
#include "eval/record_store.h"
#include "support/mini_model.h"

#include <string.h>

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
    const struct tare_evaluation evaluation = { .records.records = &store, .label = "label" };
    const struct tare_signature signature = { .outputs = (struct tare_binding *)bindings, .n_outputs = n_outputs };
    struct tare_comparison known, comparison = { 0 };
    struct tare_comparison_row *row;
    measured(&known, known_outputs);
    const tare_status status = tare_comparison_add_known(&row, &comparison, &known, &signature, &evaluation);
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

/* A tensor of zeros, or of empty strings. */
static void zeros(struct tare_tensor *out, int dtype, int64_t elements) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)1, elements);
    mini_ok(tare_tensor_new(out, dtype, &shape));
    if (dtype != TARE_DT_STRING) memset(out->data, 0, tare_tensor_bytes(out));
}

/* What the label, whose key is that of the first output, is for one record: a class, a value, or an error (NULL: none).
 */
static void expect_label(int label_dtype, int64_t labels, int output_dtype, int64_t elements, bool is_class,
                         const char *error) {
    const struct tare_binding binding = { .key = "first", .dtype = output_dtype };
    const struct tare_signature signature = { .outputs = (struct tare_binding *)&binding, .n_outputs = 1 };
    struct tare_comparison comparison = { 0 };
    struct tare_comparison_pass pass;
    struct tare_tensor label, output;
    const char *key = "first";
    zeros(&label, label_dtype, labels);
    zeros(&output, output_dtype, elements);
    const struct tare_sample sample = { .keys = &key, .values = &label, .count = 1 };
    mini_ok(tare_comparison_pass_begin(&pass, &comparison, &signature, "first"));
    if (error) {
        mini_fails(tare_comparison_pass_record(&pass, &sample, &output), error);
    } else {
        mini_ok(tare_comparison_pass_record(&pass, &sample, &output));
        assert_int_equal(pass.outputs[0].labelled, is_class);
        assert_int_equal(pass.outputs[0].expected.count, is_class ? 0 : labels);
    }
    tare_comparison_pass_end(&pass);
    tare_comparison_free(&comparison);
    tare_tensor_reset(&label);
    tare_tensor_reset(&output);
}

static void label_of_an_output__is_its_value_or_a_class(void **state) {
    (void)state;
    expect_label(TARE_DT_FLOAT, 3, TARE_DT_FLOAT, 3, false, NULL);
    expect_label(TARE_DT_INT64, 1, TARE_DT_FLOAT, 1, false, NULL);
    expect_label(TARE_DT_INT64, 1, TARE_DT_FLOAT, 3, true, NULL); /* scores */
    expect_label(TARE_DT_INT64, 1, TARE_DT_INT64, 1, true, NULL); /* the class itself */
    expect_label(TARE_DT_FLOAT, 2, TARE_DT_FLOAT, 3, false,
                 "target 'first' has 2 elements (expected 3, as output first)");
    expect_label(TARE_DT_STRING, 3, TARE_DT_FLOAT, 3, false, "target 'first' is not numeric");
}

/* The output of the name of --target, though another one has as many elements and comes first. */
static void the_default_label__is_no_input(void **state) {
    struct tare_binding input = { .key = "label", .dtype = TARE_DT_INT64, .shape = { .rank = -1 } };
    const struct tare_signature signature = {
        .inputs = &input, .n_inputs = 1, .outputs = (struct tare_binding *)bindings, .n_outputs = 1
    };
    (void)state;
    for (int is_input = 0; is_input < 2; is_input++) {
        struct tare_comparison comparison = { 0 };
        struct tare_comparison_pass pass;
        input.key = is_input ? "label" : "image";
        mini_ok(tare_comparison_pass_begin(&pass, &comparison, &signature, "label"));
        assert_string_equal(pass.label, is_input ? "" : "label");
        tare_comparison_pass_end(&pass);
        input.key = "class";
        mini_ok(tare_comparison_pass_begin(&pass, &comparison, &signature, "class")); /* which was asked for */
        assert_string_equal(pass.label, "class");
        tare_comparison_pass_end(&pass);
        tare_comparison_free(&comparison);
    }
}

/* Rows with a class of a record for a model whose input has this shape, of [4, 10] scores and labels of that shape. */
static int64_t labelled_rows(struct tare_shape input, int64_t labels) {
    struct tare_binding in = { .key = "x", .dtype = TARE_DT_FLOAT, .shape = input };
    const struct tare_signature signature = {
        .inputs = &in, .n_inputs = 1, .outputs = (struct tare_binding *)bindings, .n_outputs = 1
    };
    const struct tare_shape scores = tare_shape_make(2, 4LL, 10LL), classes = tare_shape_make(1, labels);
    struct tare_comparison comparison = { 0 };
    struct tare_comparison_pass pass;
    struct tare_tensor label, output;
    const char *key = "label";
    mini_ok(tare_tensor_new(&output, TARE_DT_FLOAT, &scores));
    mini_ok(tare_tensor_new(&label, TARE_DT_INT64, &classes));
    memset(output.data, 0, tare_tensor_bytes(&output));
    memset(label.data, 0, tare_tensor_bytes(&label));
    const struct tare_sample sample = { .keys = &key, .values = &label, .count = 1 };
    mini_ok(tare_comparison_pass_begin(&pass, &comparison, &signature, "label"));
    mini_ok(tare_comparison_pass_record(&pass, &sample, &output));
    const int64_t rows = pass.outputs[0].labelled;
    tare_comparison_pass_end(&pass);
    tare_comparison_free(&comparison);
    tare_tensor_reset(&label);
    tare_tensor_reset(&output);
    return rows;
}

static void labels_of_a_fixed_batch__are_of_its_examples(void **state) {
    (void)state;
    assert_int_equal(labelled_rows(tare_shape_make(2, -1LL, 3LL), 4), 4);
    assert_int_equal(labelled_rows(tare_shape_make(2, 4LL, 3LL), 4), 4);
    assert_int_equal(labelled_rows(tare_shape_make(1, 4LL), 4), 0);      /* a sequence */
    assert_int_equal(labelled_rows(tare_shape_make(2, 1LL, 4LL), 4), 0); /* of one example */
    assert_int_equal(labelled_rows(tare_shape_make(2, 5LL, 3LL), 4), 0); /* not the output's rows */
}

static void target__belongs_to_the_output_of_its_name(void **state) {
    const struct tare_signature signature = { .outputs = (struct tare_binding *)bindings, .n_outputs = 2 };
    struct tare_comparison comparison = { .target_key = "second" };
    struct tare_comparison_pass pass;
    struct tare_tensor target, outputs[2];
    const char *key = "second";
    (void)state;
    zeros(&target, TARE_DT_FLOAT, 2);
    for (int i = 0; i < 2; i++)
        zeros(&outputs[i], TARE_DT_FLOAT, 2);
    const struct tare_sample sample = { .keys = &key, .values = &target, .count = 1 };
    mini_ok(tare_comparison_pass_begin(&pass, &comparison, &signature, "label"));
    mini_ok(tare_comparison_pass_record(&pass, &sample, outputs));
    assert_int_equal(pass.outputs[0].expected.count, 0);
    assert_int_equal(pass.outputs[1].expected.count, 2);
    tare_comparison_pass_end(&pass);
    tare_comparison_free(&comparison);
    tare_tensor_reset(&target);
    for (int i = 0; i < 2; i++)
        tare_tensor_reset(&outputs[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_outputs__are_as_many_as_the_signature_has),
        cmocka_unit_test(later_models__have_as_many_outputs_as_the_first),
        cmocka_unit_test(label_of_an_output__is_its_value_or_a_class),
        cmocka_unit_test(the_default_label__is_no_input),
        cmocka_unit_test(labels_of_a_fixed_batch__are_of_its_examples),
        cmocka_unit_test(target__belongs_to_the_output_of_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
