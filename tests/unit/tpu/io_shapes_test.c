/* What crosses between host and TPU, and that values stay the same. */
#include "tpu/io_shapes.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/bfloat16.h"
#include "tpu/sharding.h"

#include <string.h>

/* main: y = f(x) with f(x) = 2 x, placed; x of the given shape. */
struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *function;
    struct tare_edge x, y;
    struct tare_tpu_placed *placed;
    struct tare_io_shapes_result result;
    size_t sharded;
};

/* With `cores` above 1, inputs are split between them. */
static void set_up_with(struct fixture *f, struct tare_shape shape, bool bfloat16, int cores, bool flattens) {
    static const struct tare_bfloat16_options options = { .rounds_magnitudes = true };
    struct tare_tpu_function function;
    struct tare_node *input;
    struct tare_edge x;
    size_t changes = 0;
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->function = tare_model_add_function(f->model, "f");
    x = mini_arg(f->function, "x", TARE_DT_FLOAT);
    mini_return(f->function, "y", mini_node(f->function, "Mul", "mul", 2, x, mini_float(f->function, "two", 2)));
    input = mini_open(f->model->main, "Placeholder", "x", 0);
    mini_ok(tare_node_set_type(input, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(input, "shape", &shape));
    f->x = mini_done(input);
    f->y = mini_call(f->model->main, "StatefulPartitionedCall", "call", f->function, 1, f->x);
    if (bfloat16) mini_ok(tare_tpu_bfloat16(f->model, &f->function, 1, &options, &changes));
    function = (struct tare_tpu_function){ f->function, NULL, "f" };
    mini_ok(tare_tpu_place(&f->placed, &f->arena, f->model, &function, 1, &(struct tare_tpu_place_options){ 0 }));
    mini_ok(tare_tpu_shard_inputs(&f->sharded, &f->arena, f->model, f->placed, 1,
                                  &(struct tare_tpu_sharding){ .num_cores_per_replica = cores }, false));
    mini_ok(tare_tpu_io_shapes(&f->result, f->model, f->placed, 1, flattens));
    graph_check_dtypes(f->model);
}

static void set_up_on(struct fixture *f, struct tare_shape shape, bool bfloat16, int cores) {
    set_up_with(f, shape, bfloat16, cores, true);
}

static void set_up(struct fixture *f, struct tare_shape shape, bool bfloat16) {
    set_up_on(f, shape, bfloat16, 1);
}

static void tear_down(struct fixture *f) {
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static void check_runs(const struct fixture *f, int columns) {
    struct tare_shape shape = tare_shape_make(2, 3, columns);
    struct tare_session *session = mini_session(f->model);
    struct tare_tensor x, y = { 0 };
    mini_ok(tare_tensor_new(&x, TARE_DT_FLOAT, &shape));
    for (int64_t i = 0; i < x.elements; i++)
        TARE_DATA(float, &x)[i] = (float)i;
    mini_ok(tare_session_run(session, &f->x, &x, 1, &f->y, &y, 1, NULL, 0));
    assert_int_equal(y.shape.rank, 2);
    assert_int_equal(y.shape.dims[1], columns);
    for (int64_t i = 0; i < x.elements; i++)
        assert_float_equal(TARE_CONST_DATA(float, &y)[i], 2 * (float)i, 0);
    tare_tensor_reset(&x);
    tare_tensor_reset(&y);
    tare_session_free(session);
}

static void a_padded_matrix__crosses_as_a_vector(void **state) {
    struct fixture f;
    struct tare_node *call, *recover;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 10), false);
    assert_int_equal(f.result.inputs, 1);
    assert_int_equal(f.result.outputs, 1);
    assert_int_equal(f.result.narrowed, 0);
    call = graph_only(f.function, "TPUPartitionedCall");
    assert_string_equal(call->inputs[0].node->name, "x/flatten/Reshape");
    assert_string_equal(f.function->returns[0].edge.node->name, "y/recover/Reshape");
    recover = graph_node(f.placed[0].replicated, "x/recover/Reshape");
    assert_string_equal(tare_node_string(recover, TARE_TPU_CLUSTER_ATTR, ""), f.placed[0].cluster);
    assert_int_equal(TARE_CONST_DATA(int32_t, tare_edge_constant(recover->inputs[1]))[0], -1);
    assert_int_equal(TARE_CONST_DATA(int32_t, tare_edge_constant(recover->inputs[1]))[1], 10);
    assert_string_equal(tare_node_string(recover->inputs[1].node, TARE_TPU_CLUSTER_ATTR, ""), f.placed[0].cluster);
    check_runs(&f, 10);
    tear_down(&f);
}

static void shapes__that_fill_tiles_or_are_open_stay(void **state) {
    struct tare_shape shapes[] = { tare_shape_make(2, -1, 256), tare_shape_make(3, -1, 16, 128), tare_shape_make(1, -1),
                                   tare_shape_make(2, -1, -1),  tare_shape_make(3, -1, -1, 10),  tare_shape_unknown() };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct fixture f;
        set_up(&f, shapes[i], false);
        if (f.result.inputs || f.result.outputs) fail_msg("shape %zu was flattened", i);
        assert_int_equal(graph_count(f.function, "Reshape"), 0);
        tear_down(&f);
    }
}

static void bfloat16__crosses_as_such(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f, tare_shape_make(2, -1, 10), true);
    assert_int_equal(f.result.narrowed, 2);
    assert_int_equal(graph_count(f.placed[0].replicated, "Cast"), 0);
    assert_int_equal(graph_count(f.function, "Cast"), 2);
    assert_int_equal(f.placed[0].replicated->args[0]->output_dtypes[0], TARE_DT_BFLOAT16);
    assert_int_equal(f.placed[0].replicated->returns[0].dtype, TARE_DT_BFLOAT16);
    assert_int_equal(f.function->args[0]->output_dtypes[0], TARE_DT_FLOAT);
    assert_int_equal(f.function->returns[0].dtype, TARE_DT_FLOAT);
    check_runs(&f, 10);
    tear_down(&f);
}

/* enable_cast_outside without io_shape_optimization. */
static void casts_alone__leave_the_shapes(void **state) {
    struct fixture f;
    (void)state;
    set_up_with(&f, tare_shape_make(2, -1, 10), true, 1, false);
    assert_int_equal(f.result.narrowed, 2);
    assert_int_equal(f.result.inputs + f.result.outputs, 0);
    assert_int_equal(graph_count(f.placed[0].replicated, "Cast"), 0);
    assert_int_equal(graph_count(f.function, "Cast"), 2);
    assert_int_equal(graph_count(f.function, "Reshape"), 0);
    check_runs(&f, 10);
    tear_down(&f);
}

static void a_batch_of_known_size__is_split_between_cores(void **state) {
    static const unsigned char rows_between_two[] = { 0x08, 3, 0x1a, 2, 2, 1, 0x22, 2, 0, 1 };
    struct tare_shape shapes[] = { tare_shape_make(2, 4, 10), tare_shape_make(2, 4, 128), tare_shape_make(2, -1, 10),
                                   tare_shape_make(2, 3, 10) };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct fixture f;
        set_up_on(&f, shapes[i], false, 2);
        if (f.sharded != (i < 2)) fail_msg("shape %zu: %zu inputs are split (expected %d)", i, f.sharded, i < 2);
        if (i < 2) {
            const struct tare_node *sharding = graph_only(f.placed[0].replicated, "XlaSharding");
            const struct tare_attr *attr = tare_node_find_attr(sharding, "sharding");
            assert_int_equal(attr->items[0].s.size, sizeof rows_between_two);
            assert_memory_equal(attr->items[0].s.data, rows_between_two, sizeof rows_between_two);
            assert_int_equal(f.result.inputs, 0); /* a vector could not be split by rows */
        }
        tear_down(&f);
    }
}

/* The runtime looks for exactly this chain; anything between makes it send the whole tensor to each core. */
static void sharding__follows_the_argument_directly(void **state) {
    (void)state;
    for (int bfloat16 = 0; bfloat16 < 2; bfloat16++) {
        const struct tare_node *sharding, *input;
        struct fixture f;
        set_up_on(&f, tare_shape_make(2, 4, 10), bfloat16, 2);
        sharding = graph_only(f.placed[0].replicated, "XlaSharding");
        input = sharding->inputs[0].node;
        assert_string_equal(input->op, "TPUReplicatedInput");
        assert_ptr_equal(input->inputs[0].node, f.placed[0].replicated->args[0]);
        assert_string_equal(sharding->controls[0]->op, "TPUReplicateMetadata");
        assert_int_equal(f.result.narrowed, bfloat16 ? 2 : 0);
        assert_int_equal(tare_edge_dtype(sharding->inputs[0]), bfloat16 ? TARE_DT_BFLOAT16 : TARE_DT_FLOAT);
        tear_down(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_padded_matrix__crosses_as_a_vector),
        cmocka_unit_test(shapes__that_fill_tiles_or_are_open_stay),
        cmocka_unit_test(bfloat16__crosses_as_such),
        cmocka_unit_test(casts_alone__leave_the_shapes),
        cmocka_unit_test(a_batch_of_known_size__is_split_between_cores),
        cmocka_unit_test(sharding__follows_the_argument_directly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
