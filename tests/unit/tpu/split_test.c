/* Automatic choice of TPU functions: whole functions, or the part before or after unsupported ops; results do not
 * change. */
#include "tpu/split.h"
#include "support/graph_check.h"
#include "support/mini_model.h"
#include "tpu/compatibility.h"

#include <string.h>

struct fixture {
    struct tare_graph_model *model;
    struct tare_arena arena;
    struct tare_graph *top;
    struct tare_edge x, y;
    struct tare_binding out;
    struct tare_signature signature;
    struct tare_tpu_split split;
};

static void set_up(struct fixture *f) {
    memset(f, 0, sizeof *f);
    f->model = mini_model_new();
    f->top = tare_model_add_function(f->model, "top");
}

/* A signature over `top` with one argument. */
static void serve(struct fixture *f) {
    f->x = mini_placeholder(f->model->main, "x", f->top->args[0]->output_dtypes[0]);
    f->y = mini_call(f->model->main, "StatefulPartitionedCall", "call", f->top, 1, f->x);
    f->out = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = f->y };
    f->signature = (struct tare_signature){ .key = "serving_default", .outputs = &f->out, .n_outputs = 1 };
    f->model->signatures = &f->signature;
    f->model->n_signatures = 1;
}

static void tear_down(struct fixture *f) {
    f->model->n_signatures = 0;
    tare_model_free(f->model);
    tare_arena_free(&f->arena);
}

static double number(const struct fixture *f, double x) {
    struct tare_session *session = mini_session(f->model);
    double y = mini_number(session, f->x, x, f->y);
    tare_session_free(session);
    return y;
}

/* Splits, and checks the result: `count` functions that the TPU supports, and the same output for a number. */
static void split(struct fixture *f, size_t count) {
    const bool has_number = f->x.node && f->top->args[0]->output_dtypes[0] == TARE_DT_FLOAT;
    const double before = has_number ? number(f, 0.37) : 0;
    mini_ok(tare_tpu_split(&f->split, &f->arena, f->model));
    graph_check_dtypes(f->model);
    assert_int_equal(f->split.count, count);
    for (size_t i = 0; i < count; i++) {
        struct tare_graph *function = tare_model_find_function(f->model, f->split.choices[i].name);
        struct tare_tpu_finding *findings;
        size_t found;
        if (f->split.choices[i].kind == TARE_TPU_BY_SIGNATURE) function = f->top;
        assert_non_null(function);
        mini_ok(tare_tpu_check(&findings, &found, &f->arena, f->model, &function, 1));
        if (found) fail_msg("%s: %s", function->name, findings[0].text);
    }
    if (has_number && number(f, 0.37) != before) fail_msg("got %.9g (expected %.9g)", number(f, 0.37), before);
}

static struct tare_graph *part(const struct fixture *f, size_t i) {
    return tare_model_find_function(f->model, f->split.choices[i].name);
}

static struct tare_edge chain(struct tare_graph *graph, struct tare_edge x, int n) {
    while (n-- > 0)
        x = mini_node(graph, "Tanh", "tanh", 1, x);
    return x;
}

/* float to float through a string, which a TPU does not support. */
static struct tare_edge through_text(struct tare_graph *graph, struct tare_edge x) {
    return mini_node(graph, "StringToNumber", "parse", 1, mini_node(graph, "AsString", "print", 1, x));
}

static void a_supported_signature__is_placed_whole(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_return(f.top, "y", chain(f.top, mini_arg(f.top, "x", TARE_DT_FLOAT), 2));
    serve(&f);
    split(&f, 1);
    assert_int_equal(f.split.choices[0].kind, TARE_TPU_BY_SIGNATURE);
    assert_string_equal(f.split.choices[0].name, "serving_default");
    assert_string_equal(f.split.notes[0], "signature 'serving_default' is placed on the TPU whole");
    tear_down(&f);
}

/* A value of a type that a TPU lacks stays on the CPU with the op that takes it, and so does float64 between them. */
static void a_type_that_tpus_lack__does_not_cross(void **state) {
    struct fixture f;
    struct tare_node *to, *real, *back;
    (void)state;
    set_up(&f);
    to = mini_open(f.top, "Cast", "to", 1, mini_arg(f.top, "x", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(to, "DstT", TARE_DT_COMPLEX128));
    mini_done(to);
    real = mini_open(f.top, "Real", "real", 1, (struct tare_edge){ to, 0 });
    mini_ok(tare_node_set_type(real, "Tout", TARE_DT_DOUBLE));
    mini_done(real);
    back = mini_open(f.top, "Cast", "back", 1, (struct tare_edge){ real, 0 });
    mini_ok(tare_node_set_type(back, "DstT", TARE_DT_FLOAT));
    mini_done(back);
    mini_return(f.top, "y", chain(f.top, (struct tare_edge){ back, 0 }, 5));
    serve(&f);
    split(&f, 1);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 5);
    assert_int_equal(graph_count(f.top, "Real"), 1);
    tear_down(&f);
}

/* The network of an image classifier: between the decoding of the image and the name of the class. */
static void a_network_between_two_refused_ops__is_placed(void **state) {
    struct fixture f;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = through_text(f.top, chain(f.top, mini_arg(f.top, "x", TARE_DT_FLOAT), 1));
    mini_return(f.top, "y", through_text(f.top, chain(f.top, x, 5)));
    serve(&f);
    split(&f, 1);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 5);
    assert_int_equal(graph_count(f.top, "Tanh"), 1);
    tear_down(&f);
}

/* class LanguageModel of the documentation, without a function of its own for the network. */
static void strings_at_the_beginning__stay_on_the_cpu(void **state) {
    struct fixture f;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = mini_node(f.top, "StringToNumber", "preprocess", 1, mini_arg(f.top, "input_string", TARE_DT_STRING));
    mini_return(f.top, "y", chain(f.top, x, 3));
    serve(&f);
    split(&f, 1);
    assert_string_equal(f.split.choices[0].name, "top_tpu");
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 3);
    assert_int_equal(graph_count(f.top, "Tanh"), 0);
    assert_int_equal(graph_count(f.top, "StringToNumber"), 1);
    assert_non_null(
        strstr(f.split.notes[0],
               "is placed on the TPU in part, as function top_tpu; the rest stays on the CPU: 'tf.StringToNumber' op"));
    tear_down(&f);
}

static void strings_at_the_end__stay_on_the_cpu(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_return(f.top, "y", through_text(f.top, chain(f.top, mini_arg(f.top, "x", TARE_DT_FLOAT), 3)));
    serve(&f);
    split(&f, 1);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 3);
    assert_int_equal(part(&f, 0)->n_returns, 1);
    tear_down(&f);
}

/* boundaries = [0, 0.5] * 2, used on both sides of the cut; the shape of the input, used on the CPU only. */
static void constants_and_shapes__are_computed_on_the_cpu_for_the_cpu(void **state) {
    struct fixture f;
    struct tare_edge x, boundaries, shape;
    (void)state;
    set_up(&f);
    x = mini_arg(f.top, "x", TARE_DT_FLOAT);
    boundaries = mini_node(f.top, "Mul", "boundaries", 2, mini_float(f.top, "half", 0.5f), mini_float(f.top, "two", 2));
    shape =
        mini_node(f.top, "AddV2", "shape_plus", 2, mini_node(f.top, "Rank", "rank", 1, x), mini_int(f.top, "one", 1));
    x = mini_node(f.top, "Mul", "scaled", 2, chain(f.top, x, 3), boundaries);
    x = mini_node(f.top, "AddV2", "shifted", 2, through_text(f.top, x), boundaries);
    mini_return(f.top, "y", mini_node(f.top, "StringToNumber", "back", 1, mini_node(f.top, "AsString", "out", 1, x)));
    mini_return(f.top, "rank", shape);
    serve(&f);
    split(&f, 1);
    assert_int_equal(part(&f, 0)->n_returns, 1); /* neither the boundaries nor the rank */
    assert_int_equal(graph_count(part(&f, 0), "Mul"), 2);
    assert_int_equal(graph_count(f.top, "Mul"), 1);
    assert_int_equal(graph_count(f.top, "Rank"), 1);
    tear_down(&f);
}

/* A weight that both sides of the cut use, scaled: each reads the variable. */
static void weights__are_read_on_both_sides(void **state) {
    struct fixture f;
    struct tare_edge x, handle, weight;
    struct tare_node *read;
    (void)state;
    set_up(&f);
    x = mini_arg(f.top, "x", TARE_DT_FLOAT);
    handle = mini_arg(f.top, "w", TARE_DT_RESOURCE);
    read = mini_open(f.top, "ReadVariableOp", "read", 1, handle);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    weight = mini_node(f.top, "Mul", "scaled_weight", 2, mini_done(read), mini_float(f.top, "two", 2));
    x = mini_node(f.top, "Mul", "product", 2, chain(f.top, x, 3), weight);
    mini_return(f.top, "y", mini_node(f.top, "AddV2", "shifted", 2, through_text(f.top, x), weight));
    f.x = mini_placeholder(f.model->main, "x", TARE_DT_FLOAT);
    f.y = mini_call(f.model->main, "StatefulPartitionedCall", "call", f.top, 2, f.x, mini_variable(f.model, "w", 3));
    f.out = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = f.y };
    f.signature = (struct tare_signature){ .key = "serving_default", .outputs = &f.out, .n_outputs = 1 };
    f.model->signatures = &f.signature;
    f.model->n_signatures = 1;
    split(&f, 1);
    assert_int_equal(part(&f, 0)->n_returns, 1); /* not the weight */
    assert_int_equal(graph_count(part(&f, 0), "ReadVariableOp"), 1);
    assert_int_equal(graph_count(f.top, "ReadVariableOp"), 1);
    tear_down(&f);
}

static void strings_in_the_middle__make_three_parts(void **state) {
    struct fixture f;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = through_text(f.top, chain(f.top, mini_arg(f.top, "x", TARE_DT_FLOAT), 3));
    mini_return(f.top, "y", chain(f.top, x, 4));
    serve(&f);
    split(&f, 2);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 4); /* the larger first */
    assert_int_equal(graph_count(part(&f, 1), "Tanh"), 3);
    assert_int_equal(graph_count(f.top, "StatefulPartitionedCall"), 2);
    assert_non_null(strstr(f.split.notes[0], "is placed on the TPU in two parts, as functions"));
    tear_down(&f);
}

static void a_small_side__is_not_worth_a_second_call(void **state) {
    struct fixture f;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    x = through_text(f.top, chain(f.top, mini_arg(f.top, "x", TARE_DT_FLOAT), 1));
    mini_return(f.top, "y", chain(f.top, x, 12));
    serve(&f);
    split(&f, 1);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 12);
    assert_int_equal(graph_count(f.top, "Tanh"), 1);
    tear_down(&f);
}

/* Nodes unrelated to strings belong to the larger side. */
static void independent_nodes__go_along(void **state) {
    struct fixture f;
    struct tare_edge x, y;
    (void)state;
    set_up(&f);
    x = mini_arg(f.top, "x", TARE_DT_FLOAT);
    y = mini_node(f.top, "AddV2", "sum", 2, chain(f.top, x, 2), chain(f.top, through_text(f.top, x), 2));
    mini_return(f.top, "y", y);
    serve(&f);
    split(&f, 1);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 4);
    tear_down(&f);
}

/* model(x) = network(strings of x) */
static struct tare_graph *add_model_of_text(struct fixture *f, struct tare_graph **network) {
    struct tare_graph *model = tare_model_add_function(f->model, "model");
    struct tare_edge x = through_text(model, mini_arg(model, "x", TARE_DT_FLOAT));
    *network = tare_model_add_function(f->model, "network");
    mini_return(*network, "y", chain(*network, mini_arg(*network, "x", TARE_DT_FLOAT), 3));
    mini_return(model, "y", mini_call(model, "PartitionedCall", "network", *network, 1, x));
    return model;
}

/* The function of a signature that does nothing but call a method, with what the method captured: loaded.model(x) works
 * afterwards, and on the TPU. */
static void a_method_inside_a_wrapper__is_split_itself(void **state) {
    struct fixture f;
    struct tare_graph *network, *model;
    struct tare_edge y;
    (void)state;
    set_up(&f);
    model = add_model_of_text(&f, &network);
    mini_arg(model, "captured", TARE_DT_FLOAT);
    y = mini_call(f.top, "PartitionedCall", "model", model, 2, mini_arg(f.top, "x", TARE_DT_FLOAT),
                  mini_float(f.top, "constant", 1));
    mini_return(f.top, "y", mini_node(f.top, "Identity", "same", 1, y));
    serve(&f);
    split(&f, 1);
    assert_ptr_equal(tare_node_function(graph_only(f.top, "PartitionedCall"), "f"), model);
    assert_non_null(tare_graph_find(model, "parse"));
    assert_ptr_equal(tare_node_function(graph_only(part(&f, 0), "PartitionedCall"), "f"), network);
    tear_down(&f);
}

/* wrapper -> model -> strings and network: the calls on the way are opened, the clean one stays a call. */
static void calls_of_what_is_refused__are_opened(void **state) {
    struct fixture f;
    struct tare_graph *network, *model;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    model = add_model_of_text(&f, &network);
    x = mini_node(f.top, "Relu", "relu", 1, mini_arg(f.top, "x", TARE_DT_FLOAT));
    mini_return(f.top, "y", mini_call(f.top, "PartitionedCall", "model", model, 1, x));
    serve(&f);
    split(&f, 1);
    assert_ptr_equal(tare_node_function(graph_only(part(&f, 0), "PartitionedCall"), "f"), network);
    assert_non_null(tare_graph_find(f.top, "model/parse"));
    tear_down(&f);
}

/* Keras exports one function as "serve" and "serving_default": their part is one function, with one copy of its
 * weights. */
static void signatures_of_one_network__share_its_part(void **state) {
    static const char *const names[] = { "top", "again", "other" };
    struct fixture f;
    struct tare_binding out[3];
    struct tare_signature signatures[3];
    (void)state;
    set_up(&f);
    f.x = mini_placeholder(f.model->main, "x", TARE_DT_FLOAT);
    for (int i = 0; i < 3; i++) { /* the third one has another weight */
        struct tare_graph *graph = i ? tare_model_add_function(f.model, names[i]) : f.top;
        const struct tare_edge scaled =
            mini_node(graph, "Mul", "scale", 2, through_text(graph, mini_arg(graph, "x", TARE_DT_FLOAT)),
                      mini_float(graph, "weight", i == 2 ? 3 : 2));
        mini_return(graph, "y", chain(graph, scaled, 3));
        f.y = mini_call(f.model->main, "StatefulPartitionedCall", names[i], graph, 1, f.x);
        out[i] = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = f.y };
        signatures[i] = (struct tare_signature){ .key = names[i], .outputs = &out[i], .n_outputs = 1 };
    }
    f.y = out[1].edge;
    f.model->signatures = signatures;
    f.model->n_signatures = 3;
    split(&f, 2);
    assert_ptr_equal(
        tare_node_function(graph_only(tare_model_find_function(f.model, "again"), "StatefulPartitionedCall"), "f"),
        part(&f, 0));
    assert_ptr_equal(
        tare_node_function(graph_only(tare_model_find_function(f.model, "other"), "StatefulPartitionedCall"), "f"),
        part(&f, 1));
    assert_null(tare_model_find_function(f.model, "again_tpu"));
    tear_down(&f);
}

/* XLA pads what has as many rows as values decide, and not all of its kernels know of the padding. */
static void numbers_of_rows_that_values_decide__are_found_on_the_cpu(void **state) {
    struct fixture f;
    struct tare_graph *model;
    struct tare_edge x;
    (void)state;
    set_up(&f);
    model = tare_model_add_function(f.model, "model");
    x = mini_node(model, "Unique", "unique", 1, chain(model, mini_arg(model, "x", TARE_DT_FLOAT), 3));
    mini_return(model, "y", chain(model, x, 1));
    x = mini_node(f.top, "Reshape", "vector", 2, mini_arg(f.top, "x", TARE_DT_FLOAT),
                  mini_ints(f.top, "one", 1, (const int32_t[]){ 1 }));
    x = mini_call(f.top, "PartitionedCall", "model", model, 1, x);
    mini_return(f.top, "y", mini_node(f.top, "Max", "max", 2, x, mini_int(f.top, "axis", 0)));
    serve(&f);
    split(&f, 2);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 3);
    assert_int_equal(graph_count(f.top, "Unique"), 1);
    assert_non_null(strstr(f.split.notes[0], "'tf.Unique' has as many rows as values decide. (node 'unique'"));
    tear_down(&f);
}

/* Reshape must know its shape at compilation: a shape that comes out of a text cannot be an argument. */
static void what_must_be_known_at_compilation__stays_out_of_the_part(void **state) {
    static const int32_t axis[] = { 0 };
    struct fixture f;
    struct tare_edge x, shape;
    struct tare_node *cast;
    (void)state;
    set_up(&f);
    x = through_text(f.top, mini_arg(f.top, "x", TARE_DT_FLOAT));
    cast = mini_open(f.top, "Cast", "dim", 1, x);
    mini_ok(tare_node_set_type(cast, "SrcT", TARE_DT_FLOAT));
    mini_ok(tare_node_set_type(cast, "DstT", TARE_DT_INT32));
    shape = mini_done(cast);
    cast = mini_open(f.top, "ExpandDims", "shape", 2, shape, mini_int(f.top, "zero", axis[0]));
    mini_ok(tare_node_set_type(cast, "Tdim", TARE_DT_INT32));
    x = mini_node(f.top, "Reshape", "reshape", 2, chain(f.top, x, 2), mini_done(cast));
    mini_return(f.top, "y", chain(f.top, x, 5));
    f.x = mini_placeholder(f.model->main, "x", TARE_DT_FLOAT);
    f.y = mini_call(f.model->main, "StatefulPartitionedCall", "call", f.top, 1, f.x);
    f.out = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = f.y };
    f.signature = (struct tare_signature){ .key = "serving_default", .outputs = &f.out, .n_outputs = 1 };
    f.model->signatures = &f.signature;
    f.model->n_signatures = 1;
    mini_ok(tare_tpu_split(&f.split, &f.arena, f.model));
    assert_int_equal(graph_count(part(&f, 0), "Reshape"), 0);
    assert_int_equal(graph_count(f.top, "Reshape"), 1);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 5);
    tear_down(&f);
}

/* The TPU would write a copy that nothing reads, and read a copy that nothing writes. */
static void variables_that_are_written__stay_on_the_cpu(void **state) {
    struct fixture f;
    struct tare_edge x, handle, made;
    struct tare_node *call, *read;
    int types[] = { TARE_DT_FLOAT, TARE_DT_RESOURCE }, result = TARE_DT_FLOAT;
    (void)state;
    set_up(&f);
    handle = mini_variable(f.model, "v", 2);
    x = mini_arg(f.top, "x", TARE_DT_FLOAT);
    made = mini_arg(f.top, "v", TARE_DT_RESOURCE);
    read = mini_open(f.top, "ReadVariableOp", "read", 1, made);
    mini_ok(tare_node_set_type(read, "dtype", TARE_DT_FLOAT));
    mini_done(read);
    x = mini_node(f.top, "Mul", "mul", 2, chain(f.top, x, 3), (struct tare_edge){ read, 0 });
    mini_return(f.top, "y", x);
    call = mini_open(f.top, "AssignVariableOp", "assign", 2, made, x);
    mini_ok(tare_node_set_type(call, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_resolve(call));
    f.x = mini_placeholder(f.model->main, "x", TARE_DT_FLOAT);
    call = mini_open(f.model->main, "StatefulPartitionedCall", "call", 2, f.x, handle);
    mini_ok(tare_node_set_func(call, "f", "top"));
    mini_ok(tare_node_set_type_list(call, "Tin", types, 2));
    mini_ok(tare_node_set_type_list(call, "Tout", &result, 1));
    f.y = mini_done(call);
    f.out = (struct tare_binding){ .key = "y", .dtype = TARE_DT_FLOAT, .edge = f.y };
    f.signature = (struct tare_signature){ .key = "serving_default", .outputs = &f.out, .n_outputs = 1 };
    f.model->signatures = &f.signature;
    f.model->n_signatures = 1;
    split(&f, 1);
    assert_int_equal(graph_count(f.top, "AssignVariableOp"), 1);
    assert_int_equal(graph_count(f.top, "ReadVariableOp"), 1);
    assert_int_equal(graph_count(part(&f, 0), "ReadVariableOp"), 0);
    assert_int_equal(graph_count(part(&f, 0), "Tanh"), 3);
    tear_down(&f);
}

static void a_model_of_strings__stays_and_that_is_said(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_return(f.top, "y", through_text(f.top, mini_arg(f.top, "x", TARE_DT_FLOAT)));
    serve(&f);
    mini_fails(tare_tpu_split(&f.split, &f.arena, f.model),
               "nothing can be placed on the TPU: signature 'serving_default' stays on the CPU: no part that the TPU "
               "supports is "
               "worth a call");
    tear_down(&f);
}

static void a_model_without_work__says_what_it_lacks(void **state) {
    struct fixture f;
    (void)state;
    set_up(&f);
    mini_fails(tare_tpu_split(&f.split, &f.arena, f.model),
               "nothing can be placed on the TPU: the model has no signatures (name functions in tpu_functions");
    mini_return(f.top, "y", mini_arg(f.top, "x", TARE_DT_FLOAT));
    serve(&f);
    mini_fails(tare_tpu_split(&f.split, &f.arena, f.model),
               "nothing can be placed on the TPU: signature 'serving_default' stays on the CPU: its function top "
               "computes nothing");
    f.out.edge = f.x;
    mini_fails(tare_tpu_split(&f.split, &f.arena, f.model),
               "signature 'serving_default' stays on the CPU: its outputs do not come from one function call");
    tear_down(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_supported_signature__is_placed_whole),
        cmocka_unit_test(a_type_that_tpus_lack__does_not_cross),
        cmocka_unit_test(a_network_between_two_refused_ops__is_placed),
        cmocka_unit_test(strings_at_the_beginning__stay_on_the_cpu),
        cmocka_unit_test(strings_at_the_end__stay_on_the_cpu),
        cmocka_unit_test(constants_and_shapes__are_computed_on_the_cpu_for_the_cpu),
        cmocka_unit_test(weights__are_read_on_both_sides),
        cmocka_unit_test(strings_in_the_middle__make_three_parts),
        cmocka_unit_test(a_small_side__is_not_worth_a_second_call),
        cmocka_unit_test(independent_nodes__go_along),
        cmocka_unit_test(a_method_inside_a_wrapper__is_split_itself),
        cmocka_unit_test(calls_of_what_is_refused__are_opened),
        cmocka_unit_test(signatures_of_one_network__share_its_part),
        cmocka_unit_test(numbers_of_rows_that_values_decide__are_found_on_the_cpu),
        cmocka_unit_test(what_must_be_known_at_compilation__stays_out_of_the_part),
        cmocka_unit_test(variables_that_are_written__stay_on_the_cpu),
        cmocka_unit_test(a_model_of_strings__stays_and_that_is_said),
        cmocka_unit_test(a_model_without_work__says_what_it_lacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
