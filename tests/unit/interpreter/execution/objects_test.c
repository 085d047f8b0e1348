/* Tables, tensor lists, tensor arrays, random numbers, checkpoints read from a graph. */
#include "support/mini_model.h"
#include "support/temp.h"

#include "base/file.h"
#include "interpreter/ops/random/philox.h"
#include "proto/bundle.h"

#include <string.h>

static const struct tare_edge none = { NULL, 0 };

/* ---- tables ---- */

static struct tare_edge table(struct tare_graph *g, const char *op, const char *name, int key, int value) {
    struct tare_node *node = mini_open(g, op, name, 0);
    mini_ok(tare_node_set_type(node, "key_dtype", key));
    mini_ok(tare_node_set_type(node, "value_dtype", value));
    mini_ok(tare_node_set_string(node, "shared_name", name, strlen(name)));
    return mini_done(node);
}

static struct tare_node *fill_from_file(struct tare_graph *g, struct tare_edge t, struct tare_edge path, int key,
                                        int value) {
    struct tare_node *node = mini_open(g, "InitializeTableFromTextFileV2", "fill", 2, t, path);
    mini_ok(tare_node_set_int(node, "key_index", key));
    mini_ok(tare_node_set_int(node, "value_index", value));
    mini_done(node);
    return node;
}

static struct tare_edge string_asset(struct tare_graph_model *model, const char *name) {
    struct tare_edge edge = mini_placeholder(model->main, "asset_path", TARE_DT_STRING);
    struct tare_asset *asset = TARE_NEW(&model->arena, struct tare_asset);
    *asset = (struct tare_asset){ name, edge };
    model->assets = asset;
    model->n_assets = 1;
    return edge;
}

static void table__is_filled_from_an_asset(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const char *words[3] = { "b", "", "nothing" };
    mini_ok(tare_file_make_folders(temp_path("assets"), NULL));
    temp_file("assets/words.txt", "a\r\nb\n\nd", 7);
    model->path = tare_arena_strdup(&model->arena, temp_folder());
    struct tare_edge path = string_asset(model, "words.txt");
    struct tare_edge t = table(g, "HashTableV2", "words", TARE_DT_STRING, TARE_DT_INT64);
    struct tare_node *fill = fill_from_file(g, t, path, -2, -1);
    struct tare_edge keys = mini_strings(g, "keys", 3, words);
    struct tare_tensor minus = mini_scalar(TARE_DT_INT64, -1);
    struct tare_edge fallback = { tare_graph_add_const(g, "fallback", &minus), 0 };
    tare_tensor_reset(&minus);
    struct tare_edge found = mini_node(g, "LookupTableFindV2", "find", 3, t, keys, fallback);
    struct tare_edge size = mini_node(g, "LookupTableSizeV2", "size", 1, t);
    struct tare_session *session = mini_session(model);
    struct tare_tensor result;
    mini_fails(tare_session_run(session, NULL, NULL, 0, &found, &result, 1, NULL, 0), "Table not initialized.");
    tare_session_free(session);
    model->table_inits = &fill;
    model->n_table_inits = 1;
    session = mini_session(model);
    result = mini_run(session, none, 0, found);
    assert_int_equal(TARE_DATA(int64_t, &result)[0], 1);
    assert_int_equal(TARE_DATA(int64_t, &result)[1], 2);
    assert_int_equal(TARE_DATA(int64_t, &result)[2], -1);
    tare_tensor_reset(&result);
    assert_float_equal(mini_number(session, none, 0, size), 4, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void table__columns_of_a_file(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    mini_ok(tare_file_make_folders(temp_path("assets"), NULL));
    temp_file("assets/map.txt", "x\t7\t1.5\ny\t8\t2.5\n", 16);
    temp_file("assets/bad.txt", "x\t7\ny\n", 6);
    model->path = tare_arena_strdup(&model->arena, temp_folder());
    struct tare_edge path = string_asset(model, "map.txt");
    struct tare_edge t = table(g, "HashTableV2", "map", TARE_DT_INT64, TARE_DT_FLOAT);
    struct tare_node *fill = fill_from_file(g, t, path, 1, 2);
    struct tare_edge key = mini_placeholder(g, "key", TARE_DT_INT64);
    struct tare_edge found = mini_node(g, "LookupTableFindV2", "find", 3, t, key, mini_float(g, "d", 0));
    model->init_node = fill;
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, key, 8, found), 2.5, 0);
    assert_float_equal(mini_number(session, key, 9, found), 0, 0);
    tare_session_free(session);
    model->assets[0].filename = "bad.txt";
    mini_ok(tare_node_set_int(fill, "value_index", 0));
    mini_ok(tare_node_set_int(fill, "key_index", 1));
    mini_fails(tare_session_new(&session, model, NULL), "Field x in line 0 is not a valid float32");
    mini_ok(tare_node_set_int(fill, "value_index", 1));
    mini_fails(tare_session_new(&session, model, NULL), "line 1: expected at least 2 got 1");
    model->assets[0].filename = "absent.txt";
    mini_fails(tare_session_new(&session, model, NULL), "initialisation: fill (InitializeTableFromTextFileV2)");
    tare_model_free(model);
}

static void table__mutable_one_takes_new_values_and_gives_them_out(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const int32_t keys[3] = { 5, 6, 5 }, values[3] = { 50, 60, 51 };
    struct tare_edge t = table(g, "MutableHashTableV2", "m", TARE_DT_INT32, TARE_DT_INT32);
    struct tare_edge k = mini_ints(g, "k", 3, keys), v = mini_ints(g, "v", 3, values);
    struct tare_edge insert = mini_node(g, "LookupTableInsertV2", "insert", 3, t, k, v);
    struct tare_edge remove = mini_node(g, "LookupTableRemoveV2", "remove", 2, t, mini_int(g, "six", 6));
    struct tare_node *node = mini_open(g, "LookupTableExportV2", "export", 1, t);
    mini_ok(tare_node_set_type(node, "Tkeys", TARE_DT_INT32));
    mini_ok(tare_node_set_type(node, "Tvalues", TARE_DT_INT32));
    struct tare_edge export_keys = mini_done(node);
    struct tare_edge size = mini_node(g, "LookupTableSizeV2", "size", 1, t);
    struct tare_session *session = mini_session(model);
    struct tare_edge fetches[2] = { export_keys, mini_output(export_keys, 1) };
    struct tare_tensor results[2];
    assert_float_equal(mini_number(session, none, 0, size), 0, 0);
    mini_ok(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &insert.node, 1));
    mini_ok(tare_session_run(session, NULL, NULL, 0, fetches, results, 2, NULL, 0));
    assert_int_equal(results[0].elements, 2);
    assert_int_equal(TARE_DATA(int32_t, &results[0])[0], 5);
    assert_int_equal(TARE_DATA(int32_t, &results[1])[0], 51);
    assert_int_equal(TARE_DATA(int32_t, &results[1])[1], 60);
    tare_tensor_reset(&results[0]);
    tare_tensor_reset(&results[1]);
    mini_ok(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &remove.node, 1));
    assert_float_equal(mini_number(session, none, 0, size), 1, 0);
    mini_ok(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &insert.node, 1));
    assert_float_equal(mini_number(session, none, 0, size), 2, 0);
    tare_session_free(session);
    tare_model_free(model);
}

static void table__static_one_refuses_a_second_value(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const int32_t keys[2] = { 5, 5 }, values[2] = { 1, 2 };
    struct tare_edge t = table(g, "HashTable", "old", TARE_DT_INT32, TARE_DT_INT32);
    struct tare_edge fill =
        mini_node(g, "InitializeTable", "fill", 3, t, mini_ints(g, "k", 2, keys), mini_ints(g, "v", 2, values));
    struct tare_session *session = mini_session(model);
    mini_fails(tare_session_run(session, NULL, NULL, 0, NULL, NULL, 0, &fill.node, 1), "another value for key 1");
    tare_session_free(session);
    tare_model_free(model);
}

/* ---- lists ---- */

static struct tare_edge reserve(struct tare_graph *g, struct tare_edge shape, int32_t count) {
    struct tare_node *node = mini_open(g, "TensorListReserve", "list", 2, shape, mini_int(g, "count", count));
    mini_ok(tare_node_set_type(node, "element_dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

static void set_element(struct tare_node *node) {
    mini_ok(tare_node_set_type(node, "element_dtype", TARE_DT_FLOAT));
}

static void list__is_a_value_that_old_holders_keep(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge shape = mini_ints(g, "shape", 0, NULL);
    struct tare_edge list = reserve(g, shape, 3), x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_edge one = mini_int(g, "one", 1);
    struct tare_edge set = mini_node(g, "TensorListSetItem", "set", 3, list, one, x);
    struct tare_edge twice = mini_node(g, "TensorListSetItem", "twice", 3, set, mini_int(g, "two", 2), x);
    struct tare_node *old = mini_open(g, "TensorListStack", "old", 2, list, shape);
    struct tare_node *new = mini_open(g, "TensorListStack", "new", 2, twice, shape);
    set_element(old);
    set_element(new);
    mini_ok(tare_node_add_control(old, twice.node));
    struct tare_edge fetches[2] = { mini_done(old), mini_done(new) };
    struct tare_session *session = mini_session(model);
    struct tare_tensor fed = mini_scalar(TARE_DT_FLOAT, 4), results[2];
    mini_ok(tare_session_run(session, &x, &fed, 1, fetches, results, 2, NULL, 0));
    const float before[3] = { 0, 0, 0 }, after[3] = { 0, 4, 4 };
    assert_memory_equal(results[0].data, before, sizeof before);
    assert_memory_equal(results[1].data, after, sizeof after);
    tare_tensor_reset(&results[0]);
    tare_tensor_reset(&results[1]);
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

static void list__pushes_pops_gathers_and_resizes(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge shape = mini_ints(g, "shape", 0, NULL), x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_node *empty = mini_open(g, "EmptyTensorList", "empty", 2, shape, mini_int(g, "most", -1));
    set_element(empty);
    struct tare_edge list = mini_done(empty);
    list = mini_node(g, "TensorListPushBack", "p1", 2, list, x);
    list = mini_node(g, "TensorListPushBack", "p2", 2, list, mini_float(g, "c", 9));
    struct tare_node *pop = mini_open(g, "TensorListPopBack", "pop", 2, list, shape);
    set_element(pop);
    struct tare_edge popped = mini_done(pop);
    struct tare_edge grown = mini_node(g, "TensorListResize", "grown", 2, popped, mini_int(g, "three", 3));
    const int32_t at[2] = { 2, 0 };
    struct tare_node *gather = mini_open(g, "TensorListGather", "gather", 3, grown, mini_ints(g, "at", 2, at), shape);
    set_element(gather);
    struct tare_edge gathered = mini_done(gather), length = mini_node(g, "TensorListLength", "n", 1, grown);
    struct tare_session *session = mini_session(model);
    assert_float_equal(mini_number(session, x, 3, mini_output(popped, 1)), 9, 0);
    assert_float_equal(mini_number(session, x, 3, length), 3, 0);
    struct tare_tensor result = mini_run(session, x, 3, gathered);
    const float expected[2] = { 0, 3 };
    assert_memory_equal(result.data, expected, sizeof expected);
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
}

static void list__from_a_tensor_and_back_by_concatenation(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_shape matrix = tare_shape_make(2, 3, 2);
    const float values[6] = { 1, 2, 3, 4, 5, 6 };
    const int32_t row[1] = { 2 };
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_FLOAT, &matrix, values));
    struct tare_edge m = { tare_graph_add_const(g, "m", &tensor), 0 };
    tare_tensor_reset(&tensor);
    struct tare_edge list = mini_node(g, "TensorListFromTensor", "list", 2, m, mini_ints(g, "shape", 1, row));
    struct tare_tensor no_dims;
    struct tare_shape none_long = tare_shape_make(1, 0);
    mini_ok(tare_tensor_new(&no_dims, TARE_DT_INT64, &none_long));
    struct tare_edge leading = { tare_graph_add_const(g, "leading", &no_dims), 0 };
    tare_tensor_reset(&no_dims);
    struct tare_node *concat = mini_open(g, "TensorListConcatV2", "concat", 3, list, mini_int(g, "any", -1), leading);
    set_element(concat);
    struct tare_edge whole = mini_done(concat);
    struct tare_session *session = mini_session(model);
    struct tare_tensor result = mini_run(session, none, 0, whole);
    assert_int_equal(result.shape.rank, 1);
    assert_int_equal(result.elements, 6);
    assert_memory_equal(result.data, values, sizeof values);
    tare_tensor_reset(&result);
    result = mini_run(session, none, 0, mini_output(whole, 1));
    assert_int_equal(TARE_DATA(int64_t, &result)[2], 2);
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
}

static void list__faults_say_what_was_asked(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge shape = mini_int(g, "shape", -1), list = reserve(g, shape, 2);
    struct tare_node *get = mini_open(g, "TensorListGetItem", "get", 3, list, mini_int(g, "i", 2), shape);
    struct tare_node *unset = mini_open(g, "TensorListGetItem", "unset", 3, list, mini_int(g, "j", 1), shape);
    struct tare_node *length = mini_open(g, "TensorListLength", "length", 1, mini_placeholder(g, "v", TARE_DT_VARIANT));
    set_element(get);
    set_element(unset);
    struct tare_edge a = mini_done(get), b = mini_done(unset), c = mini_done(length);
    struct tare_session *session = mini_session(model);
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_tensor result, nothing;
    mini_fails(tare_session_run(session, NULL, NULL, 0, &a, &result, 1, NULL, 0),
               "get (TensorListGetItem): Trying to access element 2 in a list with 2 elements.");
    mini_fails(tare_session_run(session, NULL, NULL, 0, &b, &result, 1, NULL, 0),
               "cannot read an element that was not set");
    mini_ok(tare_tensor_new(&nothing, TARE_DT_VARIANT, &scalar));
    mini_fails(tare_session_run(session, &length->inputs[0], &nothing, 1, &c, &result, 1, NULL, 0),
               "the handle holds nothing (expected TensorList)");
    tare_tensor_reset(&nothing);
    tare_session_free(session);
    tare_model_free(model);
}

/* ---- arrays ---- */

static void array__writes_once_and_stacks(void **state) {
    (void)state;
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_edge x = mini_placeholder(g, "x", TARE_DT_FLOAT);
    struct tare_node *node = mini_open(g, "TensorArrayV3", "array", 1, mini_int(g, "size", 2));
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    struct tare_edge array = mini_done(node), zero = mini_int(g, "zero", 0), one = mini_int(g, "one", 1);
    struct tare_edge flow = mini_node(g, "TensorArrayWriteV3", "w0", 4, array, zero, x, mini_output(array, 1));
    struct tare_edge again = mini_node(g, "TensorArrayWriteV3", "again", 4, array, zero, x, flow);
    struct tare_edge outside = mini_node(g, "TensorArrayWriteV3", "outside", 4, array, mini_int(g, "two", 2), x, flow);
    flow = mini_node(g, "TensorArrayWriteV3", "w1", 4, array, one, x, flow);
    const int32_t both[3] = { 1, 0, 1 };
    node = mini_open(g, "TensorArrayGatherV3", "gather", 3, array, mini_ints(g, "both", 3, both), flow);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    struct tare_edge gathered = mini_done(node), size = mini_node(g, "TensorArraySizeV3", "n", 2, array, flow);
    struct tare_session *session = mini_session(model);
    struct tare_tensor result = mini_run(session, x, 7, gathered), fed = mini_scalar(TARE_DT_FLOAT, 1);
    assert_int_equal(result.elements, 3);
    assert_float_equal(TARE_DATA(float, &result)[2], 7, 0);
    tare_tensor_reset(&result);
    assert_float_equal(mini_number(session, x, 7, size), 2, 0);
    mini_fails(tare_session_run(session, &x, &fed, 1, &again, &result, 1, NULL, 0), "has already been written to");
    mini_fails(tare_session_run(session, &x, &fed, 1, &outside, &result, 1, NULL, 0),
               "index 2 but array is not resizeable");
    tare_tensor_reset(&fed);
    tare_session_free(session);
    tare_model_free(model);
}

/* ---- random numbers ---- */

static void philox__gives_the_published_words(void **state) {
    /* known answers that come with the paper's own library (Random123, kat_vectors) */
    static const struct {
        uint64_t key, low, high;
        uint32_t words[4];
    } cases[] = {
        { 0, 0, 0, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
        { UINT64_MAX, UINT64_MAX, UINT64_MAX, { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
        { 0x299f31d0a4093822,
          0x85a308d3243f6a88,
          0x0370734413198a2e,
          { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_philox philox = tare_philox_from(cases[i].key, cases[i].low, cases[i].high);
        for (int k = 0; k < 4; k++) {
            uint32_t got = tare_philox_next(&philox);
            if (got != cases[i].words[k])
                fail_msg("case %zu word %d: %08x (expected %08x)", i, k, got, cases[i].words[k]);
        }
    }
}

static struct tare_edge drawn(struct tare_graph *g, const char *op, int32_t count) {
    struct tare_node *node = mini_open(g, op, op, 1, mini_ints(g, "shape", 1, &count));
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    return mini_done(node);
}

static void moments(const struct tare_tensor *tensor, double *mean, double *variance, double *least, double *most) {
    double sum = 0, squares = 0;
    *least = *most = TARE_DATA(float, tensor)[0];
    for (int64_t i = 0; i < tensor->elements; i++) {
        double x = TARE_DATA(float, tensor)[i];
        sum += x;
        squares += x * x;
        if (x < *least) *least = x;
        if (x > *most) *most = x;
    }
    *mean = sum / (double)tensor->elements;
    *variance = squares / (double)tensor->elements - *mean * *mean;
}

static void random__has_its_distribution_and_repeats_in_each_run(void **state) {
    static const struct {
        const char *op;
        double mean, variance, least, most;
    } cases[] = {
        { "RandomUniform", 0.5, 1.0 / 12, 0, 1 },
        { "RandomStandardNormal", 0, 1, -6, 6 },
        { "TruncatedNormal", 0, 0.7737, -2, 2 }, /* 1 - 4 phi(2) / (2 Phi(2) - 1) */
    };
    const double tolerance = 0.02; /* about five standard errors of the mean of 100,000 */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tare_graph_model *model = mini_model_new();
        struct tare_edge y = drawn(model->main, cases[i].op, 100000);
        struct tare_session *session = mini_session(model);
        double mean, variance, least, most;
        struct tare_tensor a = mini_run(session, none, 0, y), b = mini_run(session, none, 0, y);
        assert_memory_equal(a.data, b.data, tare_tensor_bytes(&a));
        moments(&a, &mean, &variance, &least, &most);
        assert_float_equal(mean, cases[i].mean, tolerance);
        assert_float_equal(variance, cases[i].variance, tolerance);
        assert_true(least >= cases[i].least && most <= cases[i].most);
        tare_tensor_reset(&a);
        tare_tensor_reset(&b);
        tare_session_free(session);
        tare_model_free(model);
    }
}

static void random__stateless_ops_agree_on_seeds_and_keys(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    const int32_t shape[2] = { 2, 3 }, seeds[2] = { 12, 34 };
    (void)state;
    struct tare_edge s = mini_ints(g, "shape", 2, shape), seed = mini_ints(g, "seed", 2, seeds);
    struct tare_edge plain = mini_node(g, "StatelessRandomUniform", "plain", 2, s, seed);
    struct tare_edge key = mini_node(g, "StatelessRandomGetKeyCounter", "key", 1, seed);
    struct tare_edge alg = mini_node(g, "StatelessRandomGetAlg", "alg", 0);
    struct tare_edge keyed = mini_node(g, "StatelessRandomUniformV2", "keyed", 4, s, key, mini_output(key, 1), alg);
    struct tare_session *session = mini_session(model);
    struct tare_tensor a = mini_run(session, none, 0, plain), b = mini_run(session, none, 0, keyed);
    assert_int_equal(a.elements, 6);
    assert_memory_equal(a.data, b.data, tare_tensor_bytes(&a));
    tare_tensor_reset(&a);
    tare_tensor_reset(&b);
    tare_session_free(session);
    tare_model_free(model);
}

static void random__classes_come_as_often_as_their_share(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_shape one_row = tare_shape_make(2, 1, 3);
    const float logits[3] = { 0, 0.6931472f, -1000 }; /* 1/3, 2/3, never */
    struct tare_tensor tensor;
    int count[3] = { 0 };
    (void)state;
    mini_ok(tare_tensor_from(&tensor, TARE_DT_FLOAT, &one_row, logits));
    struct tare_edge l = { tare_graph_add_const(g, "l", &tensor), 0 };
    tare_tensor_reset(&tensor);
    struct tare_edge y = mini_node(g, "Multinomial", "y", 2, l, mini_int(g, "n", 30000));
    struct tare_session *session = mini_session(model);
    struct tare_tensor result = mini_run(session, none, 0, y);
    for (int64_t i = 0; i < result.elements; i++)
        count[TARE_DATA(int64_t, &result)[i]]++;
    assert_in_range(count[0], 9500, 10500);
    assert_in_range(count[1], 19500, 20500);
    assert_int_equal(count[2], 0);
    tare_tensor_reset(&result);
    tare_session_free(session);
    tare_model_free(model);
}

/* ---- checkpoints ---- */

static void restore__reads_named_tensors(void **state) {
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *g = model->main;
    struct tare_bundle_writer *writer;
    struct tare_tensor value = mini_scalar(TARE_DT_FLOAT, 2.5);
    const char *prefix = temp_path("checkpoint"), *names[1] = { "v" }, *missing[1] = { "w" }, *slices[1] = { "" };
    int type = TARE_DT_FLOAT;
    (void)state;
    mini_ok(tare_bundle_writer_open(&writer, prefix));
    mini_ok(tare_bundle_writer_add(writer, "v", &value));
    mini_ok(tare_bundle_writer_close(writer));
    tare_tensor_reset(&value);
    struct tare_edge where = mini_strings(g, "prefix", 1, &prefix), none_at = mini_strings(g, "slices", 1, slices);
    struct tare_node *node =
        mini_open(g, "RestoreV2", "restore", 3, where, mini_strings(g, "names", 1, names), none_at);
    struct tare_node *wrong =
        mini_open(g, "RestoreV2", "wrong", 3, where, mini_strings(g, "missing", 1, missing), none_at);
    mini_ok(tare_node_set_type_list(node, "dtypes", &type, 1));
    mini_ok(tare_node_set_type_list(wrong, "dtypes", &type, 1));
    struct tare_edge restored = mini_done(node), absent = mini_done(wrong);
    struct tare_session *session = mini_session(model);
    struct tare_tensor result;
    assert_float_equal(mini_number(session, none, 0, restored), 2.5, 0);
    mini_fails(tare_session_run(session, NULL, NULL, 0, &absent, &result, 1, NULL, 0), "wrong (RestoreV2)");
    tare_session_free(session);
    tare_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table__is_filled_from_an_asset),
        cmocka_unit_test(table__columns_of_a_file),
        cmocka_unit_test(table__mutable_one_takes_new_values_and_gives_them_out),
        cmocka_unit_test(table__static_one_refuses_a_second_value),
        cmocka_unit_test(list__is_a_value_that_old_holders_keep),
        cmocka_unit_test(list__pushes_pops_gathers_and_resizes),
        cmocka_unit_test(list__from_a_tensor_and_back_by_concatenation),
        cmocka_unit_test(list__faults_say_what_was_asked),
        cmocka_unit_test(array__writes_once_and_stacks),
        cmocka_unit_test(philox__gives_the_published_words),
        cmocka_unit_test(random__has_its_distribution_and_repeats_in_each_run),
        cmocka_unit_test(random__stateless_ops_agree_on_seeds_and_keys),
        cmocka_unit_test(random__classes_come_as_often_as_their_share),
        cmocka_unit_test(restore__reads_named_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
