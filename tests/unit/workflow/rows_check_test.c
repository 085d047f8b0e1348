/* A batched model runs on two drawn requests: what depends on others is refused, what does not is not. */
#include "workflow/batching/rows_check.h"
#include "support/mini_model.h"

#include <stdlib.h>
#include <string.h>

enum kind { BY_ITSELF, FIRST_ROW, FIRST_ROW_SLIGHTLY, FIRST_ROW_ON_THE_CPU, ROWS_THAT_DO_NOT_FIT, RANDOM };

static struct tare_edge first_row(struct tare_graph *graph, struct tare_edge x) {
    return mini_node(graph, "Slice", "first", 3, x, mini_ints(graph, "begin", 2, (int32_t[]){ 0, 0 }),
                     mini_ints(graph, "size", 2, (int32_t[]){ 1, 3 }));
}

/* As a model whose seed nothing advances: the same numbers for the same shape. */
static struct tare_edge drawn_for(struct tare_graph *graph, struct tare_edge x) {
    struct tare_node *node =
        mini_open(graph, "StatelessRandomUniform", "noise", 2, mini_node(graph, "Shape", "shape_of_x", 1, x),
                  mini_ints(graph, "seed", 2, (int32_t[]){ 1, 2 }));
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

/* What a function adds to 2 x. */
static struct tare_edge body(struct tare_graph *f, struct tare_edge x, enum kind kind) {
    struct tare_edge y = mini_node(f, "Mul", "scaled", 2, x, mini_float(f, "scale", 2));
    if (kind == FIRST_ROW) y = mini_node(f, "Sub", "difference", 2, y, first_row(f, x));
    if (kind == FIRST_ROW_SLIGHTLY)
        y = mini_node(f, "Add", "sum", 2, y,
                      mini_node(f, "Mul", "slight", 2, first_row(f, x), mini_float(f, "small", 0.01f)));
    if (kind == RANDOM) y = mini_node(f, "Mul", "product", 2, y, drawn_for(f, x));
    if (kind == ROWS_THAT_DO_NOT_FIT)
        y = mini_node(f, "Add", "sum", 2, y,
                      mini_node(f, "Reshape", "one", 2, x, mini_ints(f, "shape", 2, (int32_t[]){ 1, 3 })));
    return y;
}

struct outcome {
    tare_status status;
    size_t n_warnings;
    char *text; /* of the error or the warning */
};

/* y = f(x) through a batcher; on the CPU the first row is subtracted from it. */
static struct outcome check(enum kind kind, bool allows) {
    static const int64_t sizes[] = { 2, 4 };
    const struct tare_batch_options options = { .component = TARE_BATCH_ALIAS,
                                                .name = "f",
                                                .num_batch_threads = 1,
                                                .max_batch_size = 4,
                                                .allowed_batch_sizes = sizes,
                                                .n_allowed = 2 };
    const struct tare_rows_check rows = { .allows = allows };
    const struct tare_shape shape = tare_shape_make(2, -1, 3);
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *f = tare_model_add_function(model, "__inference_f_1");
    struct tare_batching_result result = { 0 };
    struct tare_edge x = mini_arg(f, "x", TARE_DT_FLOAT), y;
    struct tare_node *node;
    struct tare_binding in, out;
    struct tare_signature signature;
    struct tare_alias alias = { f->name, "f" };
    struct outcome outcome;
    mini_return(f, "y", body(f, x, kind));
    node = mini_open(model->main, "Placeholder", "x", 0);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(node, "shape", &shape));
    x = mini_done(node);
    y = mini_call(model->main, "PartitionedCall", "call", f, 1, x);
    if (kind == FIRST_ROW_ON_THE_CPU) y = mini_node(model->main, "Sub", "on_cpu", 2, y, first_row(model->main, y));
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
    assert_null(result.mixing); /* the axis of the rows is not followed through slices of it */
    outcome.status = tare_workflow_check_rows(&result, &model->arena, model, &rows);
    outcome.n_warnings = result.n_warnings;
    outcome.text = strdup(outcome.status != TARE_OK ? tare_error_text() : result.n_warnings ? result.warnings[0] : "");
    model->n_signatures = model->n_aliases = 0;
    tare_model_free(model);
    return outcome;
}

static void check_outcome(enum kind kind, bool allows, tare_status status, const char *text) {
    const struct outcome outcome = check(kind, allows);
    if (outcome.status != status || !strstr(outcome.text, text) || (!*text && *outcome.text))
        fail_msg("kind %d: status %d and: %s (expected %d and: %s)", (int)kind, (int)outcome.status, outcome.text,
                 (int)status, text);
    assert_int_equal(outcome.n_warnings, status == TARE_OK && *text);
    free(outcome.text);
}

static void a_row_that_others_change__is_refused(void **state) {
    (void)state;
    check_outcome(FIRST_ROW, false, TARE_UNSUPPORTED,
                  "batching of signature serving_default: two requests give other numbers as one batch than alone");
    check_outcome(ROWS_THAT_DO_NOT_FIT, false, TARE_UNSUPPORTED, "two requests fail as one batch: ");
}

static void a_row_that_others_change__is_a_warning_where_it_is_allowed(void **state) {
    (void)state;
    check_outcome(FIRST_ROW, true, TARE_OK, "the results of a request depend on the requests that are batched with it");
    check_outcome(ROWS_THAT_DO_NOT_FIT, true, TARE_OK, "two requests fail as one batch: ");
}

static void slight_differences__are_a_warning(void **state) {
    (void)state;
    check_outcome(FIRST_ROW_SLIGHTLY, false, TARE_OK, "two requests give other numbers as one batch than alone");
}

static void random_numbers__are_a_warning(void **state) {
    (void)state;
    check_outcome(RANDOM, false, TARE_OK, "two requests give other numbers as one batch than alone");
}

/* The CPU computes each request by itself. */
static void rows_by_themselves__are_none(void **state) {
    (void)state;
    check_outcome(BY_ITSELF, false, TARE_OK, "");
    check_outcome(FIRST_ROW_ON_THE_CPU, false, TARE_OK, "");
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_row_that_others_change__is_refused),
                                        cmocka_unit_test(a_row_that_others_change__is_a_warning_where_it_is_allowed),
                                        cmocka_unit_test(slight_differences__are_a_warning),
                                        cmocka_unit_test(random_numbers__are_a_warning),
                                        cmocka_unit_test(rows_by_themselves__are_none) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
