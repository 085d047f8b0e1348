/* The TPU half of a conversion on models in memory: what functions captured, and what a second conversion leaves alone.
 */
#include "convert/pipeline.h"
#include "support/graph_check.h"
#include "support/mini_model.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *f;
    struct tare_edge x;
    struct tare_signature signature;
    struct tare_binding input, output;
    struct tare_arena arena;
    struct tare_conversion conversion;
};

/* f(x, shape) = reshape(x, shape); the main graph gives it a constant. */
static void set_up(struct fixture *f) {
    const int32_t shape[] = { -1, 2 };
    struct tare_edge x, dims;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->f = tare_model_add_function(f->model, "f");
    x = mini_arg(f->f, "x", TARE_DT_FLOAT);
    dims = mini_arg(f->f, "captured", TARE_DT_INT32);
    mini_return(f->f, "y", mini_node(f->f, "Relu", "relu", 1, mini_node(f->f, "Reshape", "reshape", 2, x, dims)));
    f->x = mini_placeholder(f->model->main, "x", TARE_DT_FLOAT);
    f->input = (struct tare_binding){ .key = "x", .dtype = TARE_DT_FLOAT, .shape = tare_shape_unknown(), .edge = f->x };
    f->output = (struct tare_binding){ .key = "y",
                                       .dtype = TARE_DT_FLOAT,
                                       .shape = tare_shape_unknown(),
                                       .edge = mini_call(f->model->main, "PartitionedCall", "call", f->f, 2, f->x,
                                                         mini_ints(f->model->main, "shape", 2, shape)) };
    f->signature = (struct tare_signature){
        .key = "serving_default", .inputs = &f->input, .n_inputs = 1, .outputs = &f->output, .n_outputs = 1
    };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void place(struct fixture *f) {
    struct tare_tpu_choice choice = { TARE_TPU_BY_SIGNATURE, "serving_default", false };
    const struct tare_converter_options options = { .functions = &choice, .n_functions = 1, .bfloat16 = true };
    mini_ok(tare_pipeline_place(&f->conversion, &f->arena, f->model, &options, NULL));
    graph_check_dtypes(f->model);
}

static void a_captured_constant__moves_into_the_function(void **state) {
    struct fixture f;
    const struct tare_graph *body;
    (void)state;
    set_up(&f);
    place(&f);
    assert_int_equal(f.conversion.n_findings, 0); /* as an argument it would not be known at compilation */
    assert_int_equal(tare_conversion_changes(&f.conversion, "localize_constants"), 1);
    body = f.conversion.placed[0].replicated;
    assert_int_equal(body->n_args, 1);
    assert_non_null(tare_edge_constant(graph_node(body, "reshape")->inputs[1]));
    tear_down(&f);
}

/* A runtime prunes such nodes before it runs a function; the TPU's compiler would refuse them. */
static void ops_whose_results_nothing_uses__do_not_matter(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_node(f.f, "AsString", "unused", 1, tare_node_output0(f.f->args[0]));
    place(&f);
    assert_int_equal(f.conversion.n_findings, 0);
    assert_int_equal(tare_conversion_changes(&f.conversion, "prune"), 1);
    for (size_t i = 0; i < f.conversion.placed[0].replicated->n_nodes; i++)
        assert_string_not_equal(f.conversion.placed[0].replicated->nodes[i]->op, "AsString");
    tear_down(&f);
}

static void steps_and_changes__are_counted(void **state) {
    struct tare_pass_count counts[TARE_PIPELINE_STEPS];
    struct fixture f;
    size_t n, found = 0;
    (void)state;
    set_up(&f);
    place(&f);
    n = tare_pipeline_counts(counts, &f.conversion, NULL);
    for (size_t i = 0; i < n; i++) {
        found += strcmp(counts[i].name, "localize_constants") == 0 && counts[i].changes == 1;
        found += strcmp(counts[i].name, "place") == 0 && counts[i].changes == 1;
        found += strcmp(counts[i].name, "keep_float32") == 0 && counts[i].changes > 0; /* arithmetic of inputs */
    }
    assert_int_equal(found, 3);
    tear_down(&f);
}

static void several_calls_a_request__are_advised_against(void **state) {
    struct tare_tpu_choice choices[] = { { TARE_TPU_BY_CONCRETE, "f", false }, { TARE_TPU_BY_CONCRETE, "g", false } };
    const struct tare_converter_options options = { .functions = choices, .n_functions = 2 };
    struct tare_graph *g, *top;
    struct tare_edge x;
    struct fixture f;
    (void)state;
    set_up(&f);
    g = tare_model_add_function(f.model, "g");
    mini_return(g, "y", mini_node(g, "Relu", "relu", 1, mini_arg(g, "x", TARE_DT_FLOAT)));
    top = tare_model_add_function(f.model, "top");
    x = mini_arg(top, "x", TARE_DT_FLOAT);
    x = mini_call(top, "PartitionedCall", "first", f.f, 2, x, mini_ints(top, "shape", 2, (int32_t[]){ -1, 2 }));
    mini_return(top, "y", mini_call(top, "PartitionedCall", "second", g, 1, x));
    f.output.edge = mini_call(f.model->main, "PartitionedCall", "both", top, 1, f.x);
    mini_ok(tare_pipeline_place(&f.conversion, &f.arena, f.model, &options, NULL));
    assert_int_equal(f.conversion.n_advice, 1);
    assert_non_null(strstr(f.conversion.advice[0], "signature serving_default calls 2 TPU functions a request"));
    tear_down(&f);
}

static void random_numbers__are_said_to_be_others(void **state) {
    const int32_t two[] = { 2, 2 };
    struct fixture f;
    struct tare_edge random;
    (void)state;
    set_up(&f);
    random = mini_node(f.f, "StatelessRandomUniform", "random", 2, mini_ints(f.f, "size", 2, two),
                       mini_ints(f.f, "seed", 2, two));
    tare_graph_set_return(f.f, 0, mini_node(f.f, "AddV2", "noisy", 2, f.f->returns[0].edge, random));
    place(&f);
    assert_int_equal(f.conversion.n_advice, 1);
    assert_non_null(strstr(f.conversion.advice[0], "node 'random' (StatelessRandomUniform) draws random numbers"));
    tear_down(&f);
}

/* Whatever names the functions: the model has none. */
static void a_tensorflow_1_model__is_named_as_such(void **state) {
    static const struct tare_tpu_choice choices[] = { { TARE_TPU_BY_ALIAS, "tpu_func", false },
                                                      { TARE_TPU_BY_JIT, NULL, false },
                                                      { TARE_TPU_BY_SIGNATURE, "serving_default", false } };
    struct tare_graph_model *model = mini_model_new();
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct tare_tpu_choice choice = choices[i];
        const struct tare_converter_options options = { .functions = &choice, .n_functions = 1 };
        struct tare_arena arena = { 0 };
        struct tare_tpu_memory memory;
        mini_fails(tare_pipeline_memory(&memory, &arena, model, &options),
                   "The converter does not support TensorFlow 1 models. TensorFlow 1 models should be migrated to "
                   "TensorFlow 2 (this one has no functions to place on the TPU: ");
        tare_arena_free(&arena);
    }
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_captured_constant__moves_into_the_function),
        cmocka_unit_test(ops_whose_results_nothing_uses__do_not_matter),
        cmocka_unit_test(steps_and_changes__are_counted),
        cmocka_unit_test(several_calls_a_request__are_advised_against),
        cmocka_unit_test(random_numbers__are_said_to_be_others),
        cmocka_unit_test(a_tensorflow_1_model__is_named_as_such),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
