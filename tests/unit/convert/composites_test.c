/* Annotated functions: what is fused, what it computes, and why others are kept unchanged. Recurrent layers are in
 * composites_recurrent_test.c. */
#include "support/composite.h"
#include "support/graph_check.h"

#include <string.h>

/* ---- look-ups ---- */

/* One-hot times the table, the composite form. */
static void embedding_body(struct composite *f, int id_type) {
    struct tare_edge table = mini_arg(f->function, "embs", TARE_DT_FLOAT),
                     ids = mini_arg(f->function, "ids_vec", id_type), hot;
    struct tare_node *node = mini_open(f->function, "OneHot", "hot", 4, ids, mini_int(f->function, "depth", 5),
                                       mini_float(f->function, "on", 1), mini_float(f->function, "off", 0));
    mini_ok(tare_node_set_type(node, "TI", id_type));
    mini_ok(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    hot = mini_done(node);
    mini_return(f->function, "rets", mini_node(f->function, "MatMul", "rows", 2, hot, table));
}

static const struct tare_shape embedding_shapes[] = { { .rank = 2, .dims = { 5, 8 } }, { .rank = 1, .dims = { 4 } } };

static void an_embedding_lookup__becomes_one_gather(void **state) {
    struct composite f;
    (void)state;
    composite_set_up(&f);
    embedding_body(&f, TARE_DT_INT32);
    composite_annotate(&f, composite_text_attr(&f, "_implements", "embedding_lookup"));
    composite_call_with(&f, embedding_shapes);
    composite_expect_same_values(&f, embedding_shapes, "embedding_lookup");
    assert_int_equal(graph_count(f.function, "GatherV2"), 1);
    assert_int_equal(graph_count(f.function, "MatMul"), 0);
    composite_tear_down(&f);
}

/* They have the annotation of the function that they belong to, but other arguments and results. */
static void functions_of_training__are_left_alone(void **state) {
    static const char *const names[] = { "__forward_composite_7", "__inference___backward_composite_7" };
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct composite f;
        composite_set_up_named(&f, names[i]);
        embedding_body(&f, TARE_DT_INT32);
        composite_annotate(&f, composite_text_attr(&f, "_implements", "embedding_lookup"));
        composite_call_with(&f, embedding_shapes);
        composite_fuse(&f);
        assert_int_equal(f.found.count, 0);
        assert_int_equal(graph_count(f.function, "MatMul"), 1);
        composite_tear_down(&f);
    }
}

static void an_embedding__of_other_form_stays_and_of_another_interface_fails(void **state) {
    struct tare_shape wide[] = { { .rank = 3, .dims = { 5, 8, 2 } }, { .rank = 1, .dims = { 4 } } };
    struct composite f;
    (void)state;
    composite_set_up(&f);
    mini_arg(f.function, "embs", TARE_DT_FLOAT);
    mini_return(f.function, "rets",
                mini_node(f.function, "Relu", "relu", 1, (struct tare_edge){ f.function->args[0], 0 }));
    composite_annotate(&f, composite_text_attr(&f, "_implements", "embedding_matmul"));
    mini_fails(tare_composites_fuse(&f.found, f.model),
               "a composite 'embedding_matmul' has 2 arguments and 1 results, this one 1 and 1: correct its "
               "experimental_implements");
    assert_non_null(strstr(tare_error_text(), "function "));
    assert_int_equal(graph_count(f.function, "Relu"), 1);
    assert_non_null(tare_graph_find_attr(f.function, "_implements"));
    mini_arg(f.function, "ids_vec", TARE_DT_INT32);
    composite_call_with(&f, wide);
    composite_fuse(&f);
    composite_expect_reason(&f, "argument 'embs' has shape [5,8,2] (expected 2 dimensions)");
    composite_tear_down(&f);
}

/* ---- layer normalisation ---- */

static void a_layer_norm__is_fused_and_needs_its_epsilon(void **state) {
    static const struct tare_shape shapes[] = { { .rank = 2, .dims = { 2, 4 } },
                                                { .rank = 1, .dims = { 4 } },
                                                { .rank = 1, .dims = { 4 } } };
    struct tare_attr epsilon;
    struct tare_session *session;
    struct tare_tensor args[3], y;
    struct composite f;
    const float x[] = { 1, 2, 3, 4, 0, 0, 0, 8 }, one[] = { 1, 1, 1, 1 }, zero[] = { 0, 0, 0, 0 };
    (void)state;
    composite_set_up(&f);
    for (int i = 0; i < 3; i++)
        mini_arg(f.function, i == 0 ? "x" : i == 1 ? "gamma" : "beta", TARE_DT_FLOAT);
    mini_return(f.function, "y",
                mini_node(f.function, "Relu", "placeholder_body", 1, (struct tare_edge){ f.function->args[0], 0 }));
    composite_annotate_with(&f, "layer_norm", 0, NULL);
    composite_call_with(&f, shapes);
    composite_fuse(&f);
    composite_expect_reason(&f, "epsilon attribute is not set or not a float");
    f.function->n_attrs = 0;
    epsilon = composite_float_attr(&f, "epsilon", 1e-6f);
    composite_annotate_with(&f, "layer_norm", 1, &epsilon);
    composite_fuse(&f);
    composite_expect_fused(&f, "layer_norm");
    mini_ok(tare_tensor_from(&args[0], TARE_DT_FLOAT, &shapes[0], x));
    mini_ok(tare_tensor_from(&args[1], TARE_DT_FLOAT, &shapes[1], one));
    mini_ok(tare_tensor_from(&args[2], TARE_DT_FLOAT, &shapes[2], zero));
    session = mini_session(f.model);
    mini_ok(tare_session_call(session, f.function, args, 3, &y, 1));
    assert_true(TARE_DATA(float, &y)[0] < -1.3416f && TARE_DATA(float, &y)[0] > -1.3417f); /* -1.5 / sqrt(1.25) */
    assert_true(TARE_DATA(float, &y)[7] > 1.7320f && TARE_DATA(float, &y)[7] < 1.7321f);   /* 6 / sqrt(12) */
    for (int i = 0; i < 3; i++)
        tare_tensor_reset(&args[i]);
    tare_tensor_reset(&y);
    tare_session_free(session);
    composite_tear_down(&f);
}

static void non_max_suppression__is_one_op(void **state) {
    const struct tare_shape scalar = tare_shape_scalar();
    const struct tare_shape shapes[] = { tare_shape_make(2, 3LL, 4LL), tare_shape_make(1, 3LL), scalar, scalar,
                                         scalar };
    const float boxes[] = { 0, 0, 1, 1, 0, 0, 1, 0.9f, 2, 2, 3, 3 }, scores[] = { 0.5f, 0.9f, 0.7f };
    const float iou = 0.5f, least = 0.1f;
    const int32_t most = 4;
    struct composite f;
    struct tare_tensor args[5], results[2] = { 0 };
    (void)state;
    composite_set_up(&f);
    mini_arg(f.function, "boxes", TARE_DT_FLOAT);
    mini_arg(f.function, "scores", TARE_DT_FLOAT);
    const struct tare_edge size = mini_arg(f.function, "max_output_size", TARE_DT_INT32);
    mini_arg(f.function, "iou_threshold", TARE_DT_FLOAT);
    mini_arg(f.function, "score_threshold", TARE_DT_FLOAT);
    mini_return(f.function, "indices", mini_node(f.function, "Identity", "i", 1, size));
    mini_return(f.function, "valid", mini_node(f.function, "Identity", "v", 1, size));
    composite_call_with(&f, shapes);
    composite_annotate(&f, composite_text_attr(&f, "_implements", "non_max_suppression_padded_v2"));
    composite_fuse(&f);
    composite_expect_fused(&f, "non_max_suppression_padded_v2");
    mini_ok(tare_tensor_from(&args[0], TARE_DT_FLOAT, &shapes[0], boxes));
    mini_ok(tare_tensor_from(&args[1], TARE_DT_FLOAT, &shapes[1], scores));
    mini_ok(tare_tensor_from(&args[2], TARE_DT_INT32, &scalar, &most));
    mini_ok(tare_tensor_from(&args[3], TARE_DT_FLOAT, &scalar, &iou));
    mini_ok(tare_tensor_from(&args[4], TARE_DT_FLOAT, &scalar, &least));
    struct tare_session *session = mini_session(f.model);
    mini_ok(tare_session_call(session, f.function, args, 5, results, 2));
    assert_int_equal(results[0].elements, 4); /* padded */
    assert_int_equal(TARE_CONST_DATA(int32_t, &results[0])[0], 1);
    assert_int_equal(TARE_CONST_DATA(int32_t, &results[0])[1], 2);
    assert_int_equal(TARE_CONST_DATA(int32_t, &results[1])[0], 2);
    tare_session_free(session);
    for (size_t i = 0; i < 5; i++)
        tare_tensor_reset(&args[i]);
    for (size_t i = 0; i < 2; i++)
        tare_tensor_reset(&results[i]);
    composite_tear_down(&f);
}

static void non_max_suppression__with_too_few_arguments_stays(void **state) {
    struct composite f;
    (void)state;
    composite_set_up(&f);
    mini_arg(f.function, "boxes", TARE_DT_FLOAT);
    const struct tare_edge scores = mini_arg(f.function, "scores", TARE_DT_FLOAT);
    mini_return(f.function, "indices", scores);
    mini_return(f.function, "valid", scores);
    composite_annotate(&f, composite_text_attr(&f, "_implements", "non_max_suppression_padded_v2"));
    composite_fuse(&f);
    composite_expect_reason(&f, "it has 2 arguments and 2 results (expected at least 5, and 2)");
    composite_tear_down(&f);
}

static void non_max_suppression__of_a_batch_stays(void **state) {
    const struct tare_shape scalar = tare_shape_scalar();
    const struct tare_shape shapes[] = { tare_shape_make(3, 2LL, 3LL, 4LL), tare_shape_make(2, 2LL, 3LL), scalar,
                                         scalar, scalar };
    struct composite f;
    (void)state;
    composite_set_up(&f);
    mini_arg(f.function, "boxes", TARE_DT_FLOAT);
    mini_arg(f.function, "scores", TARE_DT_FLOAT);
    const struct tare_edge size = mini_arg(f.function, "max_output_size", TARE_DT_INT32);
    mini_arg(f.function, "iou_threshold", TARE_DT_FLOAT);
    mini_arg(f.function, "score_threshold", TARE_DT_FLOAT);
    mini_return(f.function, "indices", mini_node(f.function, "Identity", "i", 1, size));
    mini_return(f.function, "valid", mini_node(f.function, "Identity", "v", 1, size));
    composite_call_with(&f, shapes);
    composite_annotate(&f, composite_text_attr(&f, "_implements", "non_max_suppression_padded_v2"));
    composite_fuse(&f);
    composite_expect_reason(&f, "argument 'boxes' has shape [2,3,4] (expected 2 dimensions)");
    composite_tear_down(&f);
}

/* ---- ops of the user's ---- */

/* TestAdd stands for an op of a plugin: it is in the model's own registry. */
static void a_fusable_op__is_mapped_to_the_op_of_that_name(void **state) {
    struct tare_attr attrs[1];
    struct tare_session *session;
    struct tare_tensor args[2], sum;
    struct composite f;
    (void)state;
    composite_set_up(&f);
    mini_arg(f.function, "input_1", TARE_DT_FLOAT);
    mini_arg(f.function, "input_2", TARE_DT_FLOAT);
    mini_return(f.function, "output_1", mini_float(f.function, "first_output", 0)); /* as empty as the document's */
    attrs[0] = composite_bool_attr(&f, "tfl_fusable_op", true);
    composite_annotate_with(&f, "TestAdd", 1, attrs);
    composite_fuse(&f);
    composite_expect_fused(&f, "TestAdd");
    args[0] = mini_scalar(TARE_DT_FLOAT, 2);
    args[1] = mini_scalar(TARE_DT_FLOAT, 40);
    session = mini_session(f.model);
    mini_ok(tare_session_call(session, f.function, args, 2, &sum, 1));
    assert_true(TARE_DATA(float, &sum)[0] == 42);
    tare_tensor_reset(&args[0]);
    tare_tensor_reset(&args[1]);
    tare_tensor_reset(&sum);
    tare_session_free(session);
    composite_tear_down(&f);
}

static void a_fusable_op__that_nobody_defines_stays(void **state) {
    struct tare_attr attrs[2];
    struct composite f;
    (void)state;
    composite_set_up(&f);
    mini_return(f.function, "y", mini_arg(f.function, "input_1", TARE_DT_FLOAT));
    attrs[0] = composite_bool_attr(&f, "tfl_fusable_op", true);
    composite_annotate_with(&f, "my_custom_fused_op", 1, attrs);
    composite_fuse(&f);
    composite_expect_reason(&f, "there is no op 'my_custom_fused_op' (--plugin loads a library that defines it)");
    f.function->n_attrs = 0;
    attrs[0] = composite_bool_attr(&f, "tfl_fusable_op", false);
    composite_annotate_with(&f, "my_custom_fused_op", 1, attrs);
    composite_fuse(&f);
    composite_expect_reason(&f, "'my_custom_fused_op' is not a known composite");
    f.function->n_attrs = 0;
    attrs[0] = composite_bool_attr(&f, "tfl_fusable_op", true);
    attrs[1] = composite_float_attr(&f, "example_option", 10);
    composite_annotate_with(&f, "TestEffect", 2, attrs);
    composite_fuse(&f);
    composite_expect_reason(&f, "op 'TestEffect' has no attribute 'example_option'");
    composite_tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_embedding_lookup__becomes_one_gather),
        cmocka_unit_test(functions_of_training__are_left_alone),
        cmocka_unit_test(an_embedding__of_other_form_stays_and_of_another_interface_fails),
        cmocka_unit_test(a_layer_norm__is_fused_and_needs_its_epsilon),
        cmocka_unit_test(non_max_suppression__is_one_op),
        cmocka_unit_test(non_max_suppression__with_too_few_arguments_stays),
        cmocka_unit_test(non_max_suppression__of_a_batch_stays),
        cmocka_unit_test(a_fusable_op__is_mapped_to_the_op_of_that_name),
        cmocka_unit_test(a_fusable_op__that_nobody_defines_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
