/* A batched model runs on two drawn rows: what depends on other rows is found, what does not is not. */
#include "workflow/batching/rows_check.h"
#include "support/mini_model.h"

#include <stdlib.h>
#include <string.h>

/* y = x · w − what `depends` adds: the first row of the batch; through a batcher. */
static size_t warnings_of(bool depends, const char **text) {
    static const int64_t sizes[] = { 2, 4 };
    const struct tare_batch_options options = { .component = TARE_BATCH_ALIAS,
                                                .name = "f",
                                                .num_batch_threads = 1,
                                                .max_batch_size = 4,
                                                .allowed_batch_sizes = sizes,
                                                .n_allowed = 2 };
    const struct tare_shape shape = tare_shape_make(2, -1, 3);
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_f_1");
    struct tare_batching_result result = { 0 };
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), y;
    struct tare_node *node;
    struct tare_binding in, out;
    struct tare_signature signature;
    struct tare_alias alias = { f->name, "f" };
    y = mini_node(f, "Mul", "scaled", 2, x, mini_float(f, "scale", 2));
    if (depends)
        y = mini_node(f, "Sub", "difference", 2, y,
                      mini_node(f, "Slice", "first", 3, x, mini_ints(f, "begin", 2, (int32_t[]){ 0, 0 }),
                                mini_ints(f, "size", 2, (int32_t[]){ 1, 3 })));
    mini_return(f, "y", y);
    node = mini_open(model->main, "Placeholder", "x", 0);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(node, "shape", &shape));
    x = mini_done(node);
    y = mini_call(model->main, "PartitionedCall", "call", f, 1, x);
    in = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = x };
    out = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .shape = shape, .edge = y };
    signature = (struct tare_signature){
        .key = "serving_default", .inputs = &in, .n_inputs = 1, .outputs = &out, .n_outputs = 1
    };
    model->signatures = &signature;
    model->n_signatures = 1;
    model->aliases = &alias;
    model->n_aliases = 1;
    mini_ok(tare_tpu_batch(&result, &model->arena, model, &options, 1));
    assert_int_equal(result.n_warnings, 0); /* the axis of the rows is not followed through slices of it */
    mini_ok(tare_workflow_check_rows(&result, &model->arena, model));
    if (result.n_warnings) *text = strdup(result.warnings[0]);
    model->n_signatures = model->n_aliases = 0;
    tare_model_free(model);
    return result.n_warnings;
}

static void a_row_that_others_change__is_a_warning(void **state) {
    const char *text = NULL;
    (void)state;
    assert_int_equal(warnings_of(true, &text), 1);
    assert_non_null(strstr(text, "batching of signature serving_default: two rows give other numbers as a batch"));
    free((char *)(uintptr_t)text);
}

static void rows_by_themselves__are_none(void **state) {
    const char *text = NULL;
    (void)state;
    assert_int_equal(warnings_of(false, &text), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_row_that_others_change__is_a_warning),
                                        cmocka_unit_test(rows_by_themselves__are_none) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
