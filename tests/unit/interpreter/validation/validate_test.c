/* Each rule of a loadable model: a model that keeps it, and the words for one that does not. */
#include "base/control.h"
#include "interpreter/validation/validate.h"
#include "interpreter/ops/builtin.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define OK(expression)                                                                                                 \
    do {                                                                                                               \
        if ((expression) != TARE_OK) fail_msg("%s: %s", #expression, tare_error_text());                               \
    } while (0)

/* y = call(x) of a function that runs Relu on its argument. */
struct fixture {
    struct tare_graph_model *model;
    struct tare_graph *main, *function;
    struct tare_node *x, *call, *relu;
    struct tare_validate_options options;
};

static struct tare_edge out(struct tare_node *node) {
    return (struct tare_edge){ node, 0 };
}

static struct tare_node *add(struct tare_graph *graph, const char *op, const char *name, struct tare_node *input) {
    struct tare_node *node = tare_graph_add(graph, op, name);
    assert_non_null(node);
    if (input) OK(tare_node_add_input(node, out(input)));
    return node;
}

static struct tare_node *identity(struct tare_graph *graph, const char *name, struct tare_node *input) {
    struct tare_node *node = add(graph, "Identity", name, input);
    OK(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    OK(tare_node_resolve(node));
    return node;
}

static struct tare_node *call(struct tare_graph *graph, const char *op, struct tare_node *input, const char *function) {
    struct tare_node *node = add(graph, op, "call", input);
    OK(tare_node_set_type_list(node, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
    OK(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
    OK(tare_node_set_func(node, "f", function));
    OK(tare_node_resolve(node));
    return node;
}

static int set_up(void **state) {
    static struct fixture f;
    memset(&f, 0, sizeof f);
    f.model = tare_model_new(tare_ops_builtin());
    f.main = f.model->main;
    f.function = tare_model_add_function(f.model, "inner");
    f.relu = identity(f.function, "relu", tare_graph_add_arg(f.function, "x", TARE_DT_FLOAT));
    OK(tare_graph_add_return(f.function, "y", TARE_DT_FLOAT, out(f.relu)));
    f.x = add(f.main, "Placeholder", "x", NULL);
    OK(tare_node_set_type(f.x, "dtype", TARE_DT_FLOAT));
    OK(tare_node_resolve(f.x));
    f.call = call(f.main, "PartitionedCall", f.x, "inner");
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    tare_model_free(((struct fixture *)*state)->model);
    return 0;
}

/* The faults are these, in this order (NULL ends the list). */
static void expect(const struct fixture *f, ...) {
    struct tare_faults faults = { 0 };
    const char *expected;
    size_t i = 0;
    va_list args;
    OK(tare_model_validate(&faults, f->model, &f->options));
    va_start(args, f);
    while ((expected = va_arg(args, const char *))) {
        if (i == faults.count) fail_msg("no fault (expected: %s)", expected);
        assert_string_equal(faults.items[i], expected);
        i++;
    }
    va_end(args);
    if (i < faults.count) fail_msg("one fault too many: %s", faults.items[i]);
    tare_faults_free(&faults);
}

static void sound_model__has_no_fault(void **state) {
    expect(*state, NULL);
}

static void unknown_op(void **state) {
    struct fixture *f = *state;
    add(f->function, "NoSuchOp", "n", NULL);
    expect(f, "inner/n (NoSuchOp): unknown op", NULL);
}

static void attributes(void **state) {
    struct fixture *f = *state;
    tare_node_remove_attr(f->relu, "T");
    OK(tare_node_set_int(f->relu, "_mine", 1));
    expect(f, "inner/relu (Identity): NodeDef missing attr 'T' from Op Identity", NULL);
}

static void ill_kinded_attribute(void **state) {
    struct fixture *f = *state;
    OK(tare_node_set_int(f->x, "shape", 1));
    OK(tare_node_set_int(f->x, "colour", 1));
    expect(f, "graph/x (Placeholder): AttrValue had value with type 'int' when 'shape' expected for attr 'shape'",
           "graph/x (Placeholder): NodeDef mentions attribute colour which is not in the op definition", NULL);
}

/* Among few names and among many. */
static void attribute_names__are_there_once(void **state) {
    struct fixture *f = *state;
    struct tare_attr *attrs;
    char name[16];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "_%d", i);
        OK(tare_node_set_int(f->x, name, i));
    }
    f->x->attrs[f->x->n_attrs - 1].name = "_0";
    expect(f, "graph/x (Placeholder): two attrs named _0", NULL);
    for (int i = 3; i < 100; i++) {
        snprintf(name, sizeof name, "_%d", i);
        OK(tare_node_set_int(f->x, name, i));
    }
    attrs = f->x->attrs;
    attrs[f->x->n_attrs - 1].name = "_50";
    expect(f, "graph/x (Placeholder): two attrs named _0", "graph/x (Placeholder): two attrs named _50", NULL);
}

static void inputs(void **state) {
    struct fixture *f = *state;
    OK(tare_node_add_input(f->relu, out(f->relu)));
    expect(f, "inner/relu (Identity): NodeDef expected inputs 'float32' do not match 2 inputs specified",
           "inner: the graph has a cycle through node relu", NULL);
}

static void dangling_input(void **state) {
    struct fixture *f = *state;
    tare_node_remove(f->x);
    expect(f, "graph/call (PartitionedCall): input 0 is x, which is not in the graph", NULL);
}

static void missing_function(void **state) {
    struct fixture *f = *state;
    OK(tare_node_set_func(f->call, "f", "gone"));
    expect(f, "graph/call (PartitionedCall): attr f calls gone, which the library lacks", NULL);
}

static void call_with_other_dtypes(void **state) {
    struct fixture *f = *state;
    struct tare_graph *ints = tare_model_add_function(f->model, "ints");
    struct tare_node *arg = tare_graph_add_arg(ints, "x", TARE_DT_INT32);
    OK(tare_graph_add_return(ints, "y", TARE_DT_INT32, out(arg)));
    OK(tare_node_set_func(f->call, "f", "ints"));
    expect(f, "graph/call (PartitionedCall): calls ints with input 0 of float32, it takes int32",
           "graph/call (PartitionedCall): expects output 0 of ints to be float32, it is int32", NULL);
    OK(tare_graph_add_return(ints, "z", TARE_DT_INT32, out(arg)));
    assert_non_null(tare_graph_add_arg(ints, "w", TARE_DT_INT32));
    expect(f, "graph/call (PartitionedCall): calls ints with 1 inputs, it takes 2",
           "graph/call (PartitionedCall): expects 1 outputs of ints, which has 2", NULL);
}

static void names(void **state) {
    static const char *const valid[] = { "a-bc_", "a-B.0/.c_", "0123", ".0123", "_abc", "a>b", "a>.b>c/d" };
    static const char *const invalid[] = { "a:b", "a\\b", "/a", "-a", "a b", "a>", "a>_b", ">a", "ü" };
    struct fixture *f = *state;
    struct tare_node *node = identity(f->main, "n", f->x);
    for (size_t i = 0; i < sizeof valid / sizeof *valid; i++) {
        node->name = tare_arena_strdup(&f->model->arena, valid[i]);
        expect(f, NULL);
    }
    for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
        node->name = tare_arena_strdup(&f->model->arena, invalid[i]);
        expect(f,
               tare_arena_printf(&f->model->arena, "graph/%s (Identity): Node name contains invalid characters",
                                 invalid[i]),
               NULL);
    }
    node->name = tare_arena_strdup(&f->model->arena, "n");
    node = identity(f->function, "n", f->relu);
    expect(f, NULL);
    node->name = tare_arena_strdup(&f->model->arena, "_n"); /* a loader of functions allows no internal names */
    expect(f, "inner/_n (Identity): Node name contains invalid characters", NULL);
}

static void returns(void **state) {
    struct fixture *f = *state;
    tare_graph_set_return(f->function, 0, (struct tare_edge){ f->function->returns[0].edge.node, 3 });
    expect(f, "inner: output y is output 3 of relu, which has 1", NULL);
    tare_graph_set_return(f->function, 0, (struct tare_edge){ NULL, 0 });
    expect(f, "inner: output y names no node", NULL);
}

/* What signatures need: an optimizer's slots and metrics may have one name. */
static void variables_of_one_name__are_noted(void **state) {
    struct fixture *f = *state;
    struct tare_shape shape = tare_shape_make(1, 2);
    struct tare_signature *signature = TARE_NEW(&f->model->arena, struct tare_signature);
    f->model->variables = TARE_NEW_ARRAY(&f->model->arena, struct tare_variable, 2);
    f->model->n_variables = 2;
    signature->key = "read";
    signature->outputs = TARE_NEW_ARRAY(&f->model->arena, struct tare_binding, 2);
    for (int i = 0; i < 2; i++) {
        struct tare_node *handle = add(f->main, "VarHandleOp", i ? "second" : "first", NULL), *read;
        OK(tare_node_set_type(handle, "dtype", TARE_DT_FLOAT));
        OK(tare_node_set_shape(handle, "shape", &shape));
        OK(tare_node_resolve(handle));
        read = add(f->main, "ReadVariableOp", i ? "read_second" : "read_first", handle);
        OK(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
        OK(tare_node_resolve(read));
        f->model->variables[i] = (struct tare_variable){
            .node = handle, .shared_name = "v", .dtype = TARE_DT_FLOAT, .shape = shape, .key = i ? "b" : "a"
        };
        OK(tare_tensor_new(&f->model->variables[i].value, TARE_DT_FLOAT, &shape));
        signature->outputs[i] =
            (struct tare_binding){ .key = i ? "y" : "x", .dtype = TARE_DT_FLOAT, .edge = { read, 0 } };
    }
    for (int needed = 1; needed <= 2; needed++) {
        struct tare_faults faults = { 0 };
        signature->n_outputs = (size_t)needed;
        f->model->signatures = signature;
        f->model->n_signatures = 1;
        OK(tare_model_validate(&faults, f->model, &f->options));
        assert_int_equal(faults.count, 0);
        assert_int_equal(faults.n_notes, needed - 1);
        if (faults.n_notes)
            assert_string_equal(
                faults.notes[0],
                "graph/second (VarHandleOp): the shared_name 'v' is that of node 'first', too: a server "
                "gives both variables the value that is restored last");
        tare_faults_free(&faults);
    }
}

/* handle = x */
static struct tare_node *assign(struct fixture *f, struct tare_node *handle) {
    struct tare_node *node = tare_graph_add(f->main, "AssignVariableOp", "assign");
    OK(tare_node_add_input(node, (struct tare_edge){ handle, 0 }));
    OK(tare_node_add_input(node, (struct tare_edge){ f->x, 0 }));
    OK(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    OK(tare_node_resolve(node));
    return node;
}

static void variables_need_values(void **state) {
    struct fixture *f = *state;
    struct tare_shape shape = tare_shape_make(1, 2);
    struct tare_node *handle = add(f->main, "VarHandleOp", "v", NULL);
    struct tare_variable variable = { .node = handle, .shared_name = "v", .dtype = TARE_DT_FLOAT, .shape = shape };
    OK(tare_node_set_type(handle, "dtype", TARE_DT_FLOAT));
    OK(tare_node_set_shape(handle, "shape", &shape));
    OK(tare_node_resolve(handle));
    f->model->variables = TARE_NEW(&f->model->arena, struct tare_variable);
    f->model->n_variables = 1;
    f->model->variables[0] = variable;
    expect(f, NULL); /* nothing reads it: a note */
    f->model->concretes = TARE_NEW(&f->model->arena, struct tare_concrete);
    f->model->concretes[0] = (struct tare_concrete){ .graph = tare_model_find_function(f->model, "inner"),
                                                     .bound = (int[]){ 7 },
                                                     .n_bound = 1 };
    f->model->n_concretes = 1;
    f->model->variables[0].object_id = 7;
    expect(f, "graph/v (VarHandleOp): variable v has no value in the checkpoint", NULL);
    f->model->init_node = assign(f, handle); /* the main op sets it */
    expect(f, NULL);
    f->model->init_node = NULL;
    OK(tare_tensor_from(&f->model->variables[0].value, TARE_DT_FLOAT, &(struct tare_shape){ .rank = 1, .dims = { 3 } },
                        (float[]){ 1, 2, 3 }));
    expect(f, "graph/v (VarHandleOp): shape [2], the checkpoint has [3]", NULL);
    f->model->variables[0].removed = true;
    expect(f, NULL);
}

static struct tare_node *batch_function(struct fixture *f, const int64_t *sizes, size_t count) {
    struct tare_node *node = add(f->main, "BatchFunction", "batch", f->x);
    OK(tare_node_set_type_list(node, "Tin", (int[]){ TARE_DT_FLOAT }, 1));
    OK(tare_node_set_type_list(node, "Tout", (int[]){ TARE_DT_FLOAT }, 1));
    OK(tare_node_set_type_list(node, "Tcaptured", NULL, 0));
    OK(tare_node_set_int(node, "num_batch_threads", 1));
    OK(tare_node_set_int(node, "max_batch_size", 8));
    OK(tare_node_set_int(node, "batch_timeout_micros", 1));
    OK(tare_node_set_int_list(node, "allowed_batch_sizes", sizes, count));
    OK(tare_node_set_func(node, "f", "inner"));
    OK(tare_node_resolve(node));
    return node;
}

static void batch_sizes(void **state) {
    struct fixture *f = *state;
    struct tare_node *node = batch_function(f, (int64_t[]){ 2, 4, 8 }, 3);
    expect(f, NULL);
    OK(tare_node_set_int_list(node, "allowed_batch_sizes", (int64_t[]){ 4, 4 }, 2));
    expect(f, "graph/batch (BatchFunction): allowed_batch_sizes entries must be monotonically increasing",
           "graph/batch (BatchFunction): final entry in allowed_batch_sizes must equal max_batch_size when "
           "enable_large_batch_splitting is False (expected 8, got 4)",
           NULL);
    OK(tare_node_set_int_list(node, "allowed_batch_sizes", (int64_t[]){ 4 }, 1));
    OK(tare_node_set_bool(node, "enable_large_batch_splitting", true));
    expect(f, NULL);
}

static void expect_note(const struct fixture *f, const char *note) {
    struct tare_faults faults = { 0 };
    OK(tare_model_validate(&faults, f->model, &f->options));
    assert_int_equal(faults.count, 0);
    assert_int_equal(faults.n_notes, note ? 1 : 0);
    if (note) assert_string_equal(faults.notes[0], note);
    tare_faults_free(&faults);
}

static void batchers_of_one_name_that_call_different_functions__are_noted(void **state) {
    struct fixture *f = *state;
    struct tare_node *first = batch_function(f, (int64_t[]){ 8 }, 1), *second = batch_function(f, (int64_t[]){ 8 }, 1);
    struct tare_graph *other = tare_model_add_function(f->model, "other");
    OK(tare_graph_add_return(other, "y", TARE_DT_FLOAT, out(tare_graph_add_arg(other, "x", TARE_DT_FLOAT))));
    OK(tare_node_set_string(first, "shared_name", "batch/", 6));
    OK(tare_node_set_string(second, "shared_name", "batch/", 6));
    expect_note(f, NULL); /* both call "inner" */
    OK(tare_node_set_func(second, "f", "other"));
    expect_note(f,
                "graph/batch_1 (BatchFunction): the shared_name 'batch/' is that of node 'batch', too: a server runs "
                "the function of one of them for the requests of both");
}

static void devices_that_a_server_may_lack__are_noted(void **state) {
    struct fixture *f = *state;
    f->call->device = "/job:localhost/replica:0/task:0/device:CPU:0";
    expect_note(f, NULL);
    f->relu->device = "/job:worker/replica:0/task:0/device:CPU:0";
    expect_note(f, "inner/relu (Identity): is assigned to the device '/job:worker/replica:0/task:0/device:CPU:0': a "
                   "server without it needs soft placement");
    f->relu->device = "/job:localhost2/device:CPU:0";
    expect_note(f, "inner/relu (Identity): is assigned to the device '/job:localhost2/device:CPU:0': a server without "
                   "it needs soft placement");
    f->relu->device = "/job:localhost/replica:0/task:1/device:CPU:0";
    expect_note(f, "inner/relu (Identity): is assigned to the device '/job:localhost/replica:0/task:1/device:CPU:0': a "
                   "server without it needs soft placement");
    f->relu->device = "/device:GPU:0";
    expect_note(f, "inner/relu (Identity): is assigned to the device '/device:GPU:0': a server without it needs soft "
                   "placement");
}

/* A call of "tpu": replicated input -> cluster (metadata, an identity) -> replicated output. */
static void tpu_call(struct fixture *f, struct tare_node **inside, struct tare_node **output) {
    struct tare_graph *tpu = tare_model_add_function(f->model, "tpu");
    struct tare_node *arg = tare_graph_add_arg(tpu, "x", TARE_DT_FLOAT), *metadata, *input, *node, *ordinal;
    struct tare_tensor zero;
    metadata = add(tpu, "TPUReplicateMetadata", "metadata", NULL);
    OK(tare_node_set_int(metadata, "num_replicas", 1));
    OK(tare_node_set_string(metadata, "_tpu_replicate", "cluster", 7));
    OK(tare_node_resolve(metadata));
    input = add(tpu, "TPUReplicatedInput", "input", arg);
    OK(tare_node_set_int(input, "N", 1));
    OK(tare_node_set_type(input, "T", TARE_DT_FLOAT));
    OK(tare_node_resolve(input));
    *inside = identity(tpu, "inside", input);
    OK(tare_node_set_string(*inside, "_tpu_replicate", "cluster", 7));
    *output = add(tpu, "TPUReplicatedOutput", "output", *inside);
    OK(tare_node_set_int(*output, "num_replicas", 1));
    OK(tare_node_set_type(*output, "T", TARE_DT_FLOAT));
    OK(tare_node_resolve(*output));
    OK(tare_graph_add_return(tpu, "y", TARE_DT_FLOAT, out(*output)));
    OK(tare_tensor_scalar_i32(&zero, 0));
    ordinal = tare_graph_add_const(f->main, "ordinal", &zero);
    tare_tensor_reset(&zero);
    node = call(f->main, "TPUPartitionedCall", f->x, "tpu");
    OK(tare_node_add_input(node, out(ordinal)));
}

static void tpu_cluster__that_is_sound(void **state) {
    struct fixture *f = *state;
    struct tare_node *inside, *output;
    tpu_call(f, &inside, &output);
    expect(f, NULL);
}

static void tpu_cluster__must_be_left_by_replicated_outputs(void **state) {
    struct fixture *f = *state;
    struct tare_node *inside, *output, *thief;
    tpu_call(f, &inside, &output);
    thief = identity(inside->graph, "thief", inside);
    tare_graph_set_return(inside->graph, 0, out(inside));
    OK(tare_node_set_string(output, "_tpu_replicate", "cluster", 7));
    assert_non_null(thief);
    expect(f, "tpu/output (TPUReplicatedOutput): is marked as part of the cluster",
           "tpu/thief (Identity): Undeclared output of TPU computation: takes inside:0 out of the cluster, only "
           "TPUReplicatedOutput may",
           "tpu: returns inside straight out of the cluster", NULL);
}

static void tpu_cluster__needs_one_metadata_and_one_name(void **state) {
    struct fixture *f = *state;
    struct tare_node *inside, *output;
    tpu_call(f, &inside, &output);
    OK(tare_node_set_string(inside, "_tpu_replicate", "other", 5));
    expect(f, "tpu: runs on a TPU with more than one cluster", NULL);
    tare_node_remove_attr(tare_graph_find(inside->graph, "metadata"), "_tpu_replicate");
    expect(f, "tpu: Missing TPUReplicateMetadata node", NULL);
    tare_node_remove_attr(inside, "_tpu_replicate");
    expect(f, "tpu: runs on a TPU with no cluster", NULL);
}

static bool compiles_nothing_else(const char *op) {
    return strcmp(op, "Relu") == 0;
}

static void tpu_cluster__takes_only_what_a_tpu_can(void **state) {
    struct fixture *f = *state;
    struct tare_node *inside, *output, *node;
    tpu_call(f, &inside, &output);
    node = add(inside->graph, "Where", "where", inside);
    OK(tare_node_set_type(node, "T", TARE_DT_FLOAT));
    OK(tare_node_set_string(node, "_tpu_replicate", "cluster", 7));
    OK(tare_node_resolve(node));
    f->options.compiles = compiles_nothing_else;
    expect(f, "tpu/where (Where): op isn't compilable for TPU device", NULL);
    f->options.compiles = NULL;
    OK(tare_node_set_type(node, "T", TARE_DT_COMPLEX128));
    expect(f, "tpu/where (Where): attr T is complex128, which a TPU lacks",
           "tpu/where (Where): input 0 is float32 (expected complex128)", NULL);
}

static void cancellation__is_no_fault_and_no_lack_of_memory(void **state) {
    const struct fixture *f = *state;
    const volatile sig_atomic_t cancelled = TARE_STOP_INTERRUPTED;
    struct tare_control control = { .cancelled = &cancelled };
    struct tare_faults faults = { 0 };
    tare_control_set(&control);
    assert_int_equal(tare_model_validate(&faults, f->model, &f->options), TARE_INTERRUPTED);
    tare_control_set(NULL);
    tare_faults_free(&faults);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(sound_model__has_no_fault),
        CASE(unknown_op),
        CASE(attributes),
        CASE(ill_kinded_attribute),
        CASE(attribute_names__are_there_once),
        CASE(names),
        CASE(inputs),
        CASE(dangling_input),
        CASE(missing_function),
        CASE(call_with_other_dtypes),
        CASE(returns),
        CASE(variables_of_one_name__are_noted),
        CASE(variables_need_values),
        CASE(batchers_of_one_name_that_call_different_functions__are_noted),
        CASE(devices_that_a_server_may_lack__are_noted),
        CASE(batch_sizes),
        CASE(cancellation__is_no_fault_and_no_lack_of_memory),
        CASE(tpu_cluster__that_is_sound),
        CASE(tpu_cluster__must_be_left_by_replicated_outputs),
        CASE(tpu_cluster__needs_one_metadata_and_one_name),
        CASE(tpu_cluster__takes_only_what_a_tpu_can),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
