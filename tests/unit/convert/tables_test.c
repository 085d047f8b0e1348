/* Lookup tables that the checkpoint fills: what the restore operation imports is there when the model runs, and in what
 * is written of it. */
#include "convert/saved_model.h"
#include "base/file.h"
#include "interpreter/session.h"
#include "proto/bundle.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* clang-format off */
#define TYPE(key, type) " attr { key: '" key "' value { type: " type " } }"
#define TEXTS(name, count, values)                                                                                     \
    "name: '" name "' op: 'Const'" TYPE("dtype", "DT_STRING") " attr { key: 'value' value { tensor { dtype: DT_STRING" \
    " tensor_shape { dim { size: " count " } } " values " } } }"
#define FILE_NODE "node { name: 'file' op: 'Placeholder'" TYPE("dtype", "DT_STRING") " attr { key: 'shape' value {" \
    " shape { } } } }\n"
#define LOOKUP(op, table)                                                                                              \
    "node { name: 'ids' op: 'Placeholder'" TYPE("dtype", "DT_INT64") " attr { key: 'shape' value { shape { dim {" \
    " size: -1 } } } } }\n" \
    "node { name: 'none' op: 'Const'" TYPE("dtype", "DT_FLOAT") \
    " attr { key: 'value' value { tensor { dtype: DT_FLOAT tensor_shape { } float_val: -1 } } } }\n"                   \
    "node { name: 'find' op: '" op "' input: '" table "' input: 'ids' input: 'none'" TYPE("Tin", "DT_INT64") \
    TYPE("Tout", "DT_FLOAT") " }\n"
/* clang-format on */
#define NAMES TEXTS("names", "2", "string_val: 'words-keys' string_val: 'words-values'")
#define SLICES TEXTS("slices", "2", "string_val: ''")
#define DTYPES " attr { key: 'dtypes' value { list { type: [DT_INT64, DT_FLOAT] } } }"
static const char signature[] =
    "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'restore_all' version: V2 }\n"
    "signature_def { key: 'serving_default' value {\n"
    " inputs { key: 'ids' value { name: 'ids:0' dtype: DT_INT64 tensor_shape { dim { size: -1 } } } }\n"
    " outputs { key: 'values' value { name: 'find:0' dtype: DT_FLOAT tensor_shape { dim { size: -1 } } } } } }\n";

/* ---- the model ---- */

static const char *objects = ""; /* the object graph of models that have one */

static void write_text(const char *graph) {
    FILE *file;
    mini_ok(tare_file_remove_tree(temp_path("model")));
    mkdir(temp_path("model"), 0700);
    mkdir(temp_path("model/variables"), 0700);
    file = fopen(temp_path("model/saved_model.pbtxt"), "w");
    assert_non_null(file);
    fprintf(file,
            "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def {\n%s}\n%s%s}\n",
            graph, signature, objects);
    assert_int_equal(fclose(file), 0);
}

static void add(struct tare_bundle_writer *writer, const char *key, int dtype, const void *values) {
    struct tare_shape shape = tare_shape_make(1, 3);
    struct tare_tensor tensor;
    mini_ok(tare_tensor_from(&tensor, dtype, &shape, values));
    mini_ok(tare_bundle_writer_add(writer, key, &tensor));
    tare_tensor_reset(&tensor);
}

static void write_model(const char *graph, int key_dtype) {
    struct tare_bundle_writer *writer;
    write_text(graph);
    mini_ok(tare_bundle_writer_open(&writer, temp_path("model/variables/variables")));
    add(writer, "words-keys", key_dtype, (const int64_t[]){ 5, 7, 9 });
    add(writer, "words-values", TARE_DT_FLOAT, (const float[]){ 1.5f, 2.5f, 3.5f });
    mini_ok(tare_bundle_writer_close(writer));
}

static struct tare_graph_model *load(const char *name) {
    struct tare_graph_model *model;
    mini_ok(tare_saved_model_load(&model, temp_path(name), NULL));
    return model;
}

static void finds_what_is_stored(const char *name) {
    struct tare_graph_model *model = load(name);
    struct tare_session *session = mini_session(model);
    const int64_t ids[] = { 9, 6, 5 };
    const float expected[] = { 3.5f, -1, 1.5f };
    struct tare_shape shape = tare_shape_make(1, 3);
    struct tare_tensor input, output;
    mini_ok(tare_tensor_from(&input, TARE_DT_INT64, &shape, ids));
    mini_ok(tare_session_run_signature(session, &model->signatures[0], &input, &output));
    assert_int_equal(output.elements, 3);
    assert_memory_equal(output.data, expected, sizeof expected);
    tare_tensor_reset(&input);
    tare_tensor_reset(&output);
    tare_session_free(session);
    tare_model_free(model);
}

static void is_filled_here_and_when_written(const char *graph) {
    struct tare_graph_model *model;
    write_model(graph, TARE_DT_INT64);
    finds_what_is_stored("model");
    model = load("model");
    mini_ok(tare_file_remove_tree(temp_path("out")));
    mini_ok(tare_saved_model_export(model, temp_path("out"), NULL));
    tare_model_free(model);
    finds_what_is_stored("out");
    mini_ok(tare_file_remove_tree(temp_path("out")));
}

/* ---- by nodes of the main graph, with both kinds of handle ---- */

/* clang-format off */
#define BY_NODES(make, find, import)                                                                                   \
    "node { name: 'words' op: '" make "'" TYPE("key_dtype", "DT_INT64") TYPE("value_dtype", "DT_FLOAT") " }\n" \
    LOOKUP(find, "words") FILE_NODE "node { " NAMES " }\nnode { " SLICES " }\n"                                        \
    "node { name: 'restore' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'" DTYPES " }\n"                \
    "node { name: 'import' op: '" import "' input: 'words' input: 'restore' input: 'restore:1'" TYPE("Tin", \
    "DT_INT64") \
    TYPE("Tout", "DT_FLOAT") " }\n" \
    "node { name: 'restore_all' op: 'NoOp' input: '^import' }\n"
/* clang-format on */
static const char by_nodes[] = BY_NODES("MutableHashTableV2", "LookupTableFindV2", "LookupTableImportV2");
static const char by_references[] = BY_NODES("MutableHashTable", "LookupTableFind", "LookupTableImport");

static void nodes__fill_tables(void **state) {
    (void)state;
    is_filled_here_and_when_written(by_nodes);
    is_filled_here_and_when_written(by_references);
}

/* ---- by functions: one restores and calls another one, which imports ---- */

/* clang-format off */
static const char by_functions[] =
    "node { name: 'words' op: 'MutableHashTableV2'" TYPE("key_dtype", "DT_INT64") TYPE("value_dtype", "DT_FLOAT")
    " attr { key: 'shared_name' value { s: 'words' } } }\n"
    LOOKUP("LookupTableFindV2", "words") FILE_NODE
    "node { name: 'restore_all' op: 'StatefulPartitionedCall' input: 'file' input: 'words'"
    " attr { key: 'f' value { func { name: 'outer' } } } attr { key: 'Tin' value { list { type: [DT_STRING,"
    " DT_RESOURCE] } } }"
    " attr { key: 'Tout' value { list { type: DT_STRING } } } }\n"
    "library { function { signature { name: 'outer' is_stateful: true input_arg { name: 'file' type: DT_STRING }"
    " input_arg { name: 'table' type: DT_RESOURCE } output_arg { name: 'done' type: DT_STRING } }\n"
    "node_def { " NAMES " }\nnode_def { " SLICES " }\n"
    "node_def { name: 'restore' op: 'RestoreV2' input: 'file' input: 'names:output:0' input: 'slices:output:0'"
    DTYPES " }\n"
    "node_def { name: 'call' op: 'StatefulPartitionedCall' input: 'restore:tensors:1' input: 'table' input:"
    " 'restore:tensors:0'"
    " attr { key: 'f' value { func { name: 'inner' } } }"
    " attr { key: 'Tin' value { list { type: [DT_FLOAT, DT_RESOURCE, DT_INT64] } } } attr { key: 'Tout' value {"
    " list { } } } }\n"
    "node_def { name: 'id' op: 'Identity' input: 'file' input: '^call'" TYPE("T", "DT_STRING") " }\n"
    "ret { key: 'done' value: 'id:output:0' } }\n"
    "function { signature { name: 'inner' is_stateful: true input_arg { name: 'v' type: DT_FLOAT }"
    " input_arg { name: 't' type: DT_RESOURCE } input_arg { name: 'k' type: DT_INT64 } }\n"
    "node_def { name: 'same' op: 'Identity' input: 'k'" TYPE("T", "DT_INT64") " }\n"
    "node_def { name: 'import' op: 'LookupTableImportV2' input: 't' input: 'same:output:0' input: 'v'" TYPE("Tin",
    "DT_INT64")
    TYPE("Tout", "DT_FLOAT") " } } }\n";
/* clang-format on */
static void functions__fill_tables(void **state) {
    (void)state;
    is_filled_here_and_when_written(by_functions);
}

/* A loader of objects saves and restores the table by functions that nothing else calls: they stay. */
static void saveables__keep_their_functions(void **state) {
    static const char named[] =
        "object_graph_def { nodes { children { node_id: 1 local_name: 'words' } user_object { } }\n"
        " nodes { resource { } saveable_objects { key: 'table' value { save_function: 2 restore_function: 3 } } }\n"
        " nodes { function { concrete_functions: 'inner' } } nodes { function { concrete_functions: 'outer' } }\n"
        " concrete_functions { key: 'inner' value { } } concrete_functions { key: 'outer' value { } } }\n";
    const char *const functions[] = { "inner", "outer" };
    struct tare_graph_model *model;
    (void)state;
    objects = named;
    is_filled_here_and_when_written(by_functions);
    model = load("model");
    mini_ok(tare_saved_model_export(model, temp_path("out"), NULL));
    tare_model_free(model);
    model = load("out");
    for (size_t i = 0; i < 2; i++)
        assert_non_null(tare_model_find_function(model, functions[i]));
    tare_model_free(model);
    mini_ok(tare_file_remove_tree(temp_path("out")));
    objects = "";
}

/* ---- what is wrong ---- */

static void dtypes__must_be_those_of_the_table(void **state) {
    struct tare_graph_model *model;
    (void)state;
    write_model(by_nodes, TARE_DT_UINT64);
    mini_fails(tare_saved_model_load(&model, temp_path("model"), NULL),
               "table words: words-keys: the checkpoint has uint64 (expected int64)");
}

static void tables__that_are_not_stored_stay_empty(void **state) {
    struct tare_bundle_writer *writer;
    struct tare_graph_model *model;
    (void)state;
    write_text(by_nodes);
    mini_ok(tare_bundle_writer_open(&writer, temp_path("model/variables/variables")));
    add(writer, "words-keys", TARE_DT_INT64, (const int64_t[]){ 5, 7, 9 });
    mini_ok(tare_bundle_writer_close(writer));
    model = load("model");
    assert_int_equal(model->n_tables, 0);
    tare_model_free(model);
}

/* An import whose target is not a table is left in the graph: running it reports the error. */
static void imports__into_no_table_are_left(void **state) {
    /* clang-format off */
    static const char variable[] =
        "node { name: 'words' op: 'VariableV2'" TYPE("dtype", "DT_STRING") " attr { key: 'shape' value { shape { } } } }\n"
        LOOKUP("LookupTableFind", "words") FILE_NODE "node { " NAMES " }\nnode { " SLICES " }\n"
        "node { name: 'restore' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'" DTYPES " }\n"
        "node { name: 'import' op: 'LookupTableImport' input: 'words' input: 'restore' input: 'restore:1'"
        TYPE("Tin", "DT_INT64") TYPE("Tout", "DT_FLOAT") " }\n"
        "node { name: 'restore_all' op: 'NoOp' input: '^import' }\n";
    /* clang-format on */
    struct tare_graph_model *model;
    (void)state;
    write_model(variable, TARE_DT_INT64);
    model = load("model");
    assert_int_equal(model->n_tables, 0);
    tare_session_free(mini_session(model));
    tare_model_free(model);
}

/* A value that comes from itself has no origin; looking for it ends. */
static void circles__have_no_origin(void **state) {
    /* clang-format off */
    static const char circle[] =
        "node { name: 'a' op: 'Identity' input: 'b'" TYPE("T", "DT_FLOAT") " }\n"
        "node { name: 'b' op: 'Identity' input: 'a'" TYPE("T", "DT_FLOAT") " }\n"
        "node { name: 'v' op: 'VarHandleOp'" TYPE("dtype", "DT_FLOAT") " attr { key: 'shape' value { shape { } } } }\n"
        "node { name: 'h' op: 'Identity' input: 'i'" TYPE("T", "DT_RESOURCE") " }\n"
        "node { name: 'i' op: 'Identity' input: 'h'" TYPE("T", "DT_RESOURCE") " }\n"
        "node { name: 'assign' op: 'AssignVariableOp' input: 'v' input: 'a'" TYPE("dtype", "DT_FLOAT") " }\n"
        "node { name: 'assign_1' op: 'AssignVariableOp' input: 'h' input: 'a'" TYPE("dtype", "DT_FLOAT") " }\n"
        "node { name: 'file' op: 'NoOp' }\nnode { name: 'restore_all' op: 'NoOp' input: '^assign' input:"
        " '^assign_1' }\n"
        "node { name: 'ids' op: 'NoOp' }\nnode { name: 'find' op: 'NoOp' }\n";
    /* clang-format on */
    struct tare_graph_model *model = NULL;
    (void)state;
    write_model(circle, TARE_DT_INT64);
    assert_int_not_equal(tare_saved_model_load(&model, temp_path("model"), NULL), TARE_OK); /* ids has no output */
    assert_null(model);
}

/* Functions that call the next one eight times each: nobody can look at every call. */
static void calls__beyond_number_end(void **state) {
    enum { DEPTH = 12, CALLS = 8 };
    static char graph[200000];
    char *at = graph, *end = graph + sizeof graph;
    struct tare_graph_model *model;
    (void)state;
    /* clang-format off */
    at += snprintf(at, (size_t)(end - at),
        "node { name: 'file' op: 'Placeholder'" TYPE("dtype", "DT_STRING") " attr { key: 'shape' value { shape { }"
        " } } }\n"
        "node { name: 'v' op: 'VarHandleOp'" TYPE("dtype", "DT_FLOAT") " attr { key: 'shape' value { shape { } } } }\n"
        "node { name: 'restore_all' op: 'StatefulPartitionedCall' input: 'file' input: 'v'"
        " attr { key: 'f' value { func { name: 'f0' } } }"
        " attr { key: 'Tin' value { list { type: [DT_STRING, DT_RESOURCE] } } } attr { key: 'Tout' value { list { }"
        " } } }\n"
        "node { name: 'ids' op: 'Placeholder'" TYPE("dtype", "DT_INT64") " attr { key: 'shape' value { shape { } }"
        " } }\n"
        "node { name: 'find' op: 'Identity' input: 'ids'" TYPE("T", "DT_INT64") " }\nlibrary {\n");
    /* clang-format on */
    for (int d = 0; d < DEPTH; d++) {
        /* clang-format off */
        at += snprintf(at, (size_t)(end - at),
            "function { signature { name: 'f%d' is_stateful: true input_arg { name: 'p' type: DT_STRING }"
            " input_arg { name: 'v' type: DT_RESOURCE } }\n"
            "node_def { " NAMES " }\nnode_def { " SLICES " }\n"
            "node_def { name: 'r' op: 'RestoreV2' input: 'p' input: 'names:output:0' input: 'slices:output:0'"
            DTYPES " }\n"
            "node_def { name: 'a' op: 'AssignVariableOp' input: 'v' input: 'r:tensors:1'" TYPE("dtype", "DT_FLOAT")
            " }\n",
            d);
        /* clang-format on */
        for (int c = 0; c < CALLS && d + 1 < DEPTH; c++)
            at += snprintf(
                at, (size_t)(end - at),
                "node_def { name: 'c%d' op: 'StatefulPartitionedCall' input: 'p' input: 'v' attr { key: 'f' value {"
                " func { name: 'f%d' } } } attr { key: 'Tin' value { list { type: [DT_STRING, DT_RESOURCE] } } }"
                " attr { key: 'Tout' value { list { } } } }\n",
                c, d + 1);
        at += snprintf(at, (size_t)(end - at), "}\n");
    }
    snprintf(at, (size_t)(end - at), "}\n");
    write_model(graph, TARE_DT_INT64);
    assert_int_not_equal(tare_saved_model_load(&model, temp_path("model"), NULL), TARE_OK); /* [3] is no scalar */
    assert_non_null(strstr(tare_error_text(), "variable v: the checkpoint has shape [3] (expected [])"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes__fill_tables),
        cmocka_unit_test(functions__fill_tables),
        cmocka_unit_test(saveables__keep_their_functions),
        cmocka_unit_test(dtypes__must_be_those_of_the_table),
        cmocka_unit_test(tables__that_are_not_stored_stay_empty),
        cmocka_unit_test(imports__into_no_table_are_left),
        cmocka_unit_test(calls__beyond_number_end),
        cmocka_unit_test(circles__have_no_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
