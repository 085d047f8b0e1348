/* Ops that read or write at positions: which of them mix the rows of a batch, and where the rows are in their outputs.
 */
#include "interpreter/ops/support/dims_wire.h"
#include "tpu/batching.h"
#include "support/mini_model.h"

#include <string.h>

/* rows(x): x has any number of rows of 3, ids an index in each of them. `batch` is the number of rows. */
struct rows {
    struct tare_graph *graph;
    struct tare_edge x, ids, batch;
};

static struct tare_edge ints_of(const struct rows *r, const char *name, int n, int32_t a, int32_t b) {
    return mini_ints(r->graph, name, n, (const int32_t[]){ a, b });
}

static struct tare_edge own_rows(const struct rows *r) {
    return mini_node(r->graph, "Range", "own", 3, mini_int(r->graph, "start", 0), r->batch,
                     mini_int(r->graph, "delta", 1));
}

static struct tare_edge pack(const struct rows *r, const char *name, struct tare_edge a, struct tare_edge b) {
    struct tare_node *node = mini_open(r->graph, "Pack", name, 2, a, b);
    mini_ok(tare_node_set_int(node, "axis", 1));
    return mini_done(node);
}

static struct tare_edge column(const struct rows *r, const char *name, struct tare_edge a) {
    return mini_node(r->graph, "ExpandDims", name, 2, a, mini_int(r->graph, "one", 1));
}

/* Whose reduction shows where the rows are: it is reported if they are on axis 0. */
static void reduce(const struct rows *r, struct tare_edge value) {
    mini_node(r->graph, "Max", "max", 2, value, mini_int(r->graph, "rows", 0));
}

/* ---- TensorFlow's ops ---- */

static void rows_of_ids(const struct rows *r) {
    mini_node(r->graph, "GatherNd", "mixes", 2, r->x, column(r, "indices", r->ids));
}

static void a_fixed_row(const struct rows *r) {
    mini_node(r->graph, "GatherNd", "mixes", 2, r->x, ints_of(r, "first", 1, 0, 0));
}

static void elements_of_own_rows(const struct rows *r) {
    reduce(r, mini_node(r->graph, "GatherNd", "mixes", 2, r->x, pack(r, "indices", own_rows(r), r->ids)));
}

static void own_elements_of_rows(const struct rows *r) {
    mini_node(r->graph, "GatherNd", "mixes", 2, r->x, pack(r, "indices", r->ids, own_rows(r)));
}

static void joined_indices(const struct rows *r) {
    const struct tare_edge indices = mini_node(r->graph, "ConcatV2", "indices", 3, column(r, "a", r->ids),
                                               column(r, "b", own_rows(r)), mini_int(r->graph, "last", -1));
    mini_node(r->graph, "GatherNd", "mixes", 2, r->x, indices);
}

static void positive_elements(const struct rows *r) {
    const struct tare_edge is_positive =
        mini_node(r->graph, "Greater", "is_positive", 2, r->x, mini_float(r->graph, "zero", 0));
    mini_node(r->graph, "GatherNd", "elements", 2, r->x, mini_node(r->graph, "Where", "indices", 1, is_positive));
}

static void a_table(const struct rows *r) {
    const struct tare_edge table = mini_ints(r->graph, "table", 5, (const int32_t[]){ 1, 2, 3, 4, 5 });
    reduce(r, mini_node(r->graph, "GatherNd", "table_rows", 2, table, column(r, "indices", r->ids)));
}

static void columns(const struct rows *r) {
    reduce(r, mini_node(r->graph, "GatherV2", "columns", 3, r->x, ints_of(r, "numbers", 2, 2, 0),
                        mini_int(r->graph, "axis", 1)));
}

static void columns_of_ids(const struct rows *r) {
    mini_node(r->graph, "GatherV2", "mixes", 3, r->x, r->ids, mini_int(r->graph, "axis", 1));
}

static void one_of_each_row(const struct rows *r) {
    struct tare_node *node = mini_open(r->graph, "GatherV2", "own_columns", 3, r->x, column(r, "indices", r->ids),
                                       mini_int(r->graph, "axis", 1));
    mini_ok(tare_node_set_int(node, "batch_dims", 1));
    reduce(r, mini_done(node));
}

static void rows_of_a_variable(const struct rows *r) {
    struct tare_node *node =
        mini_open(r->graph, "ResourceGather", "embedding", 2, mini_arg(r->graph, "handle", TARE_DT_RESOURCE), r->ids);
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    reduce(r, mini_done(node));
}

static void elements_of_a_variable(const struct rows *r) {
    struct tare_node *node = mini_open(r->graph, "ResourceGatherNd", "embedding", 2,
                                       mini_arg(r->graph, "handle", TARE_DT_RESOURCE), column(r, "indices", r->ids));
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    reduce(r, mini_done(node));
}

static struct tare_edge floats_of(const struct rows *r, const char *name, struct tare_edge ints) {
    struct tare_node *node = mini_open(r->graph, "Cast", name, 1, ints);
    mini_ok(tare_node_set_type(node, "DstT", TARE_DT_FLOAT));
    return mini_done(node);
}

static void a_write_to_the_first_row(const struct rows *r) {
    const struct tare_edge first =
        mini_node(r->graph, "Reshape", "first", 2, ints_of(r, "zeros", 2, 0, 0), ints_of(r, "shape", 2, 1, 2));
    mini_node(r->graph, "TensorScatterUpdate", "mixes", 3, r->x, first,
              floats_of(r, "update", ints_of(r, "value", 1, 5, 0)));
}

static void writes_to_own_rows(const struct rows *r) {
    reduce(r, mini_node(r->graph, "TensorScatterAdd", "written", 3, r->x, pack(r, "indices", own_rows(r), r->ids),
                        floats_of(r, "update", own_rows(r))));
}

/* ---- XLA's ops ---- */

static struct tare_node *numbered(struct tare_node *node, int window, int dropped, int vector) {
    struct tare_dims_wire wire = { .size = 0 };
    if (window >= 0) tare_dims_put_list(&wire, 1, &window, 1);
    tare_dims_put_list(&wire, 2, &dropped, 1);
    tare_dims_put_list(&wire, 3, &dropped, 1);
    tare_dims_put(&wire, 4, vector);
    mini_ok(tare_node_set_string(node, "dimension_numbers", wire.bytes, wire.size));
    return node;
}

static void xla_rows_of_ids(const struct rows *r) {
    mini_done(numbered(
        mini_open(r->graph, "XlaGather", "mixes", 3, r->x, column(r, "indices", r->ids), ints_of(r, "sizes", 2, 1, 3)),
        1, 0, 1));
}

static void xla_own_rows(const struct rows *r) {
    reduce(r, mini_done(numbered(mini_open(r->graph, "XlaGather", "own_rows", 3, r->x,
                                           column(r, "indices", own_rows(r)), ints_of(r, "sizes", 2, 1, 3)),
                                 1, 0, 1)));
}

/* The first column, of as many rows as there are. */
static void xla_columns(const struct rows *r) {
    const struct tare_edge one = mini_int(r->graph, "width", 1);
    struct tare_node *sizes = mini_open(r->graph, "Pack", "sizes", 2, r->batch, one);
    reduce(r, mini_done(numbered(
                  mini_open(r->graph, "XlaGather", "column", 3, r->x, ints_of(r, "zero", 1, 0, 0), mini_done(sizes)), 0,
                  1, 0)));
}

static void xla_first_row(const struct rows *r) {
    mini_node(r->graph, "XlaDynamicSlice", "mixes", 3, r->x, ints_of(r, "start", 2, 0, 0),
              ints_of(r, "sizes", 2, 1, 3));
}

static void xla_write_to_the_first_row(const struct rows *r) {
    const struct tare_edge row =
        mini_node(r->graph, "Reshape", "row", 2, floats_of(r, "values", ints_of(r, "ints", 2, 1, 2)),
                  ints_of(r, "shape", 2, 1, 2));
    mini_node(r->graph, "XlaDynamicUpdateSlice", "mixes", 3, r->x, row, ints_of(r, "start", 2, 0, 0));
}

static void xla_write_to_a_column(const struct rows *r) {
    const struct tare_edge update = floats_of(r, "update", column(r, "column", r->ids));
    reduce(r, mini_node(r->graph, "XlaDynamicUpdateSlice", "written", 3, r->x, update, ints_of(r, "start", 2, 0, 1)));
}

static void xla_writes_by_ids(const struct rows *r) {
    struct tare_graph *add = tare_model_add_function(r->graph->model, "add");
    mini_return(
        add, "sum",
        mini_node(add, "AddV2", "sum", 2, mini_arg(add, "a", TARE_DT_FLOAT), mini_arg(add, "b", TARE_DT_FLOAT)));
    struct tare_node *node = mini_open(r->graph, "XlaScatter", "mixes", 3, r->x, column(r, "indices", r->ids), r->x);
    mini_ok(tare_node_set_func(node, "update_computation", add->name));
    mini_done(numbered(node, 1, 0, 1));
}

/* A variable of three rows of 2. */
static struct tare_edge table_of(struct tare_graph_model *model) {
    const struct tare_shape shape = tare_shape_make(2, (int64_t)3, (int64_t)2);
    struct tare_node *node = mini_open(model->main, "VarHandleOp", "table", 0);
    struct tare_tensor value;
    mini_ok(tare_node_set_type(node, "dtype", TARE_DT_FLOAT));
    mini_ok(tare_node_set_shape(node, "shape", &shape));
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, &shape, (float[6]){ 0 }));
    mini_add_variable(model, node, value);
    return mini_done(node);
}

static void positions__mix_rows_unless_counted_by_row(void **state) {
    static const struct {
        void (*compute)(const struct rows *r);
        const char *text; /* NULL: nothing is found */
    } cases[] = {
        { rows_of_ids, "node 'mixes' (GatherNd) looks up rows by an index" },
        { a_fixed_row, "node 'mixes' (GatherNd) looks up rows by an index" },
        { elements_of_own_rows, "node 'max' (Max) reduces over the rows" },
        { own_elements_of_rows, "node 'mixes' (GatherNd) looks up rows by an index" },
        { joined_indices, "node 'mixes' (GatherNd) looks up rows by an index" },
        { positive_elements, NULL },
        { a_table, "node 'max' (Max) reduces over the rows" },
        { columns, "node 'max' (Max) reduces over the rows" },
        { columns_of_ids, "node 'mixes' (GatherV2) combines rows with each other" },
        { one_of_each_row, "node 'max' (Max) reduces over the rows" },
        { rows_of_a_variable, "node 'max' (Max) reduces over the rows" },
        { elements_of_a_variable, "node 'max' (Max) reduces over the rows" },
        { a_write_to_the_first_row, "node 'mixes' (TensorScatterUpdate) writes rows by an index" },
        { writes_to_own_rows, "node 'max' (Max) reduces over the rows" },
        { xla_rows_of_ids, "node 'mixes' (XlaGather) looks up rows by an index" },
        { xla_own_rows, NULL },
        { xla_columns, "node 'max' (Max) reduces over the rows" },
        { xla_first_row, "node 'mixes' (XlaDynamicSlice) looks up rows by an index" },
        { xla_write_to_the_first_row, "node 'mixes' (XlaDynamicUpdateSlice) writes rows by an index" },
        { xla_write_to_a_column, "node 'max' (Max) reduces over the rows" },
        { xla_writes_by_ids, "node 'mixes' (XlaScatter) writes rows by an index" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct tare_batch_options options = {
            .num_batch_threads = 1, .max_batch_size = 8, .component = TARE_BATCH_CONCRETE, .name = "rows"
        };
        struct tare_graph_model *model = mini_model_new();
        struct tare_batching_result result;
        struct tare_arena arena = { 0 };
        struct rows r = { .graph = tare_model_add_function(model, "rows") };
        const struct tare_shape shape = tare_shape_make(2, (int64_t)-1, (int64_t)3);
        struct tare_node *x = mini_open(model->main, "Placeholder", "x", 0), *ids;
        mini_ok(tare_node_set_type(x, "dtype", TARE_DT_FLOAT));
        mini_ok(tare_node_set_shape(x, "shape", &shape));
        r.x = mini_arg(r.graph, "x", TARE_DT_FLOAT);
        ids = mini_open(r.graph, "ArgMax", "ids", 2, r.x, mini_int(r.graph, "last", 1));
        mini_ok(tare_node_set_type(ids, "output_type", TARE_DT_INT32));
        r.ids = mini_done(ids);
        r.batch = mini_node(r.graph, "Size", "batch", 1, r.ids);
        mini_return(r.graph, "y", mini_node(r.graph, "Relu", "y", 1, r.x));
        cases[i].compute(&r);
        if (r.graph->n_args == 2)
            mini_call(model->main, "StatefulPartitionedCall", "call", r.graph, 2, mini_done(x), table_of(model));
        else
            mini_call(model->main, "StatefulPartitionedCall", "call", r.graph, 1, mini_done(x));
        mini_ok(tare_tpu_batch(&result, &arena, model, &options, 1));
        if (!result.mixing != !cases[i].text || (result.mixing && !strstr(result.mixing, cases[i].text)))
            fail_msg("case %zu: %s (expected %s)", i, result.mixing ? result.mixing : "nothing",
                     cases[i].text ? cases[i].text : "nothing");
        tare_model_free(model);
        tare_arena_free(&arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions__mix_rows_unless_counted_by_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
