/* Which checkpoint tensor a variable gets. Names repeat in real models (two metrics called "total"), and here they lie:
 * the right answer comes from the assignments of the restore operation, from captures and object graphs. */
#include "convert/saved_model.h"
#include "convert/pass.h"
#include "base/alloc.h"
#include "base/file.h"
#include "proto/bundle.h"
#include "proto/message.h"
#include "proto/tensorflow/object_graph.pb-c.h"
#include "proto/text_format.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#define VARIABLE(name, shared)                                                                                         \
    "node { name: '" name "' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }"                         \
    " attr { key: 'shape' value { shape { } } } attr { key: 'shared_name' value { s: '" shared "' } } }\n"
#define TEXTS(name, count, values)                                                                                     \
    "name: '" name                                                                                                     \
    "' op: 'Const' attr { key: 'dtype' value { type: DT_STRING } } attr { key: 'value' value { tensor {"               \
    " dtype: DT_STRING tensor_shape { dim { size: " count " } } " values " } } }"
#define FILE_NODE                                                                                                      \
    "node { name: 'file' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } }"                            \
    " attr { key: 'shape' value { shape { } } } }\n"

/* The stored scalars: key and value. Every test has these. */
static const struct {
    const char *key;
    float value;
} stored[] = { { "metrics/0/total", 10 }, { "metrics/1/total", 11 }, { "total", 12 }, { "total_1", 13 } };

static void write_checkpoint(const char *objects) {
    struct tare_shape scalar = tare_shape_scalar();
    struct tare_bundle_writer *writer;
    struct tare_tensor tensor;
    char prefix[1024];
    snprintf(prefix, sizeof prefix, "%s", temp_path("model/variables/variables"));
    assert_int_equal(tare_bundle_writer_open(&writer, prefix), TARE_OK);
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++) {
        assert_int_equal(tare_tensor_scalar_f32(&tensor, stored[i].value), TARE_OK);
        assert_int_equal(tare_bundle_writer_add(writer, stored[i].key, &tensor), TARE_OK);
        tare_tensor_reset(&tensor);
    }
    if (objects) {
        struct tare_arena arena = { 0 };
        ProtobufCMessage *message;
        uint8_t *bytes;
        size_t size;
        if (tare_text_format_read(&message, &tensorflow__trackable_object_graph__descriptor, &arena, objects,
                                  strlen(objects), TARE_TEXT_STRICT, "objects") != TARE_OK)
            fail_msg("%s", tare_error_text());
        assert_int_equal(tare_message_pack(&bytes, &size, message), TARE_OK);
        assert_int_equal(tare_tensor_new(&tensor, TARE_DT_STRING, &scalar), TARE_OK);
        assert_int_equal(tare_tensor_set_string(&tensor, 0, bytes, size), TARE_OK);
        assert_int_equal(tare_bundle_writer_add(writer, "_CHECKPOINTABLE_OBJECT_GRAPH", &tensor), TARE_OK);
        tare_tensor_reset(&tensor);
        tare_free(bytes);
        tare_arena_free(&arena);
    }
    assert_int_equal(tare_bundle_writer_close(writer), TARE_OK);
}

static struct tare_graph_model *open_model(const char *graph, const char *rest, const char *objects) {
    struct tare_graph_model *model;
    FILE *file;
    assert_int_equal(tare_file_remove_tree(temp_path("model")), TARE_OK);
    mkdir(temp_path("model"), 0700);
    mkdir(temp_path("model/variables"), 0700);
    file = fopen(temp_path("model/saved_model.pbtxt"), "w");
    assert_non_null(file);
    fprintf(file, "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def {\n%s}\n%s}\n",
            graph, rest);
    assert_int_equal(fclose(file), 0);
    write_checkpoint(objects);
    if (tare_saved_model_load(&model, temp_path("model"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    return model;
}

static const struct tare_variable *variable_of(const struct tare_graph_model *model, const char *node) {
    for (size_t i = 0; i < model->n_variables; i++)
        if (strcmp(model->variables[i].node->name, node) == 0) return &model->variables[i];
    fail_msg("no variable for node %s", node);
    return NULL;
}

static void check(const struct tare_graph_model *model, const char *node, const char *key, int object) {
    const struct tare_variable *variable = variable_of(model, node);
    if (!key) {
        assert_null(variable->key);
        assert_int_equal(variable->value.dtype, TARE_DT_INVALID);
        return;
    }
    assert_non_null(variable->key);
    assert_string_equal(variable->key, key);
    assert_int_equal(variable->object_id, object);
    for (size_t i = 0; i < sizeof stored / sizeof *stored; i++)
        if (strcmp(stored[i].key, key) == 0) assert_true(*TARE_CONST_DATA(float, &variable->value) == stored[i].value);
}

/* TF2: the call passes handles in one order, the function assigns them in the other. */
static void restore_function__decides_against_names(void **state) {
    /* clang-format off */
    struct tare_graph_model *model = open_model(
        VARIABLE("total", "total") VARIABLE("total_1", "total_1") FILE_NODE
        "node { name: 'restore' op: 'StatefulPartitionedCall' input: 'file' input: 'total' input: 'total_1'"
        " attr { key: 'Tin' value { list { type: [DT_STRING, DT_RESOURCE, DT_RESOURCE] } } }"
        " attr { key: 'Tout' value { list { type: DT_STRING } } } attr { key: 'f' value { func { name:"
        " 'traced_restore' } } } }\n"
        "library { function { signature { name: 'traced_restore' input_arg { name: 'prefix' type: DT_STRING }"
        "  input_arg { name: 'a' type: DT_RESOURCE } input_arg { name: 'b' type: DT_RESOURCE }"
        "  output_arg { name: 'out' type: DT_STRING } is_stateful: true }\n"
        "  node_def { " TEXTS("names", "2", "string_val: 'metrics/0/total' string_val: 'metrics/1/total'") " }\n"
        "  node_def { " TEXTS("slices", "2", "string_val: ''") " }\n"
        "  node_def { name: 'read' op: 'RestoreV2' input: 'prefix' input: 'names:output:0' input: 'slices:output:0'"
        "    attr { key: 'dtypes' value { list { type: [DT_FLOAT, DT_FLOAT] } } } }\n"
        "  node_def { name: 'first' op: 'Identity' input: 'read:tensors:0' attr { key: 'T' value { type: DT_FLOAT }"
        " } }\n"
        "  node_def { name: 'to_b' op: 'AssignVariableOp' input: 'b' input: 'first:output:0' attr { key: 'dtype'"
        " value { type: DT_FLOAT } } }\n"
        "  node_def { name: 'to_a' op: 'AssignVariableOp' input: 'a' input: 'read:tensors:1' attr { key: 'dtype'"
        " value { type: DT_FLOAT } } }\n"
        "  node_def { name: 'out' op: 'Identity' input: 'prefix' input: '^to_a' input: '^to_b' attr { key: 'T'"
        " value { type: DT_STRING } } }\n"
        "  ret { key: 'out' value: 'out:output:0' } } }\n",
        "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'restore' version: V2 }\n"
        "object_graph_def { nodes { children { node_id: 1 local_name: 'first' } children { node_id: 2 local_name:"
        " 'second' } user_object { } }\n"
        "  nodes { variable { dtype: DT_FLOAT shape { } name: 'total' } } nodes { variable { dtype: DT_FLOAT shape"
        " { } name: 'total' } } }\n",
        "nodes { children { node_id: 2 local_name: 'first' } children { node_id: 1 local_name: 'second' } }\n"
        "nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'total' checkpoint_key: 'metrics/1/total' } }\n"
        "nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'total' checkpoint_key: 'metrics/0/total' } }\n");
    (void)state;
    check(model, "total_1", "metrics/0/total", 1); /* object 1, "first", is node 2 of the checkpoint's graph */
    check(model, "total", "metrics/1/total", 2);
    tare_model_free(model);
}

/* No restore function: the signature's call passes the objects that its function captured. */
static void captures__tie_variables_to_objects(void **state) {
    struct tare_graph_model *model = open_model(
        VARIABLE("total", "total") VARIABLE("total_1", "total_1")
        "node { name: 'call' op: 'StatefulPartitionedCall' input: 'total_1' input: 'total'"
        " attr { key: 'Tin' value { list { type: [DT_RESOURCE, DT_RESOURCE] } } }"
        " attr { key: 'Tout' value { list { type: DT_FLOAT } } } attr { key: 'f' value { func { name: 'wrapper' } }"
        " } }\n"
        "library { function { signature { name: 'wrapper' input_arg { name: 'unknown' type: DT_RESOURCE }"
        "  input_arg { name: 'unknown_0' type: DT_RESOURCE } output_arg { name: 'y' type: DT_FLOAT } is_stateful:"
        " true }\n"
        "  node_def { name: 'read' op: 'ReadVariableOp' input: 'unknown' attr { key: 'dtype' value { type: DT_FLOAT"
        " } } }\n"
        "  ret { key: 'y' value: 'read:value:0' } } }\n",
        "object_graph_def { nodes { children { node_id: 1 local_name: 'first' } children { node_id: 2 local_name:"
        " 'second' } user_object { } }\n"
        "  nodes { variable { dtype: DT_FLOAT shape { } name: 'total' } } nodes { variable { dtype: DT_FLOAT shape"
        " { } name: 'total' } }\n"
        "  concrete_functions { key: 'wrapper' value { bound_inputs: [1, 2] } } }\n",
        "nodes { children { node_id: 1 local_name: 'first' } children { node_id: 2 local_name: 'second' } }\n"
        "nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'total' checkpoint_key: 'metrics/0/total' } }\n"
        "nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'total' checkpoint_key: 'metrics/1/total' } }\n");
    (void)state;
    check(model, "total_1", "metrics/0/total", 1);
    check(model, "total", "metrics/1/total", 2);
    tare_model_free(model);
}

/* TF1: Assign nodes behind RestoreV2, a reference variable beside a resource one. */
static void saver_nodes__decide_against_names(void **state) {
    struct tare_graph_model *model = open_model(
        "node { name: 'total' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape'"
        " value { shape { } } } }\n"
        VARIABLE("handle", "total_1") FILE_NODE
        "node { " TEXTS("names", "2", "string_val: 'total_1' string_val: 'total'") " }\n"
        "node { " TEXTS("slices", "2", "string_val: ''") " }\n"
        "node { name: 'save/RestoreV2' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'"
        " attr { key: 'dtypes' value { list { type: [DT_FLOAT, DT_FLOAT] } } } }\n"
        "node { name: 'save/Assign' op: 'Assign' input: 'total' input: 'save/RestoreV2' attr { key: 'T' value {"
        " type: DT_FLOAT } } }\n"
        "node { name: 'save/Assign_1' op: 'AssignVariableOp' input: 'handle' input: 'save/RestoreV2:1' attr { key:"
        " 'dtype' value { type: DT_FLOAT } } }\n"
        "node { name: 'save/restore_all' op: 'NoOp' input: '^save/Assign' input: '^save/Assign_1' }\n",
        "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'save/restore_all' version: V2 }\n", NULL);
    /* clang-format on */
    (void)state;
    check(model, "total", "total_1", -1);
    check(model, "handle", "total", -1);
    tare_model_free(model);
}

#define READ(name, variable)                                                                                           \
    "node { name: '" name "' op: 'ReadVariableOp' input: '" variable                                                   \
    "' attr { key: 'dtype' value { type: DT_FLOAT } } }\n"

static float frozen_input(const struct tare_graph_model *model, size_t i) {
    const struct tare_tensor *value = tare_edge_constant(tare_graph_find(model->main, "sub")->inputs[i]);
    assert_non_null(value);
    return *TARE_CONST_DATA(float, value);
}

/* Two variables of one name in one graph become two constants. */
static void freezing__keeps_variables_of_one_name_apart(void **state) {
    struct tare_graph_model *model =
        open_model(
            /* clang-format off */
            VARIABLE("first", "total") VARIABLE("second", "total") FILE_NODE READ("read", "first") READ("read_1",
            "second")
        "node { name: 'sub' op: 'Sub' input: 'read' input: 'read_1' attr { key: 'T' value { type: DT_FLOAT } } }\n"
        "node { " TEXTS("names", "2", "string_val: 'metrics/0/total' string_val: 'metrics/1/total'") " }\n"
        "node { " TEXTS("slices", "2", "string_val: ''") " }\n"
        "node { name: 'save/RestoreV2' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'"
        " attr { key: 'dtypes' value { list { type: [DT_FLOAT, DT_FLOAT] } } } }\n"
        "node { name: 'assign' op: 'AssignVariableOp' input: 'first' input: 'save/RestoreV2' attr { key: 'dtype'"
        " value { type: DT_FLOAT } } }\n"
        "node { name: 'assign_1' op: 'AssignVariableOp' input: 'second' input: 'save/RestoreV2:1' attr { key:"
        " 'dtype' value { type: DT_FLOAT } } }\n"
        "node { name: 'restore_all' op: 'NoOp' input: '^assign' input: '^assign_1' }\n",
        "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'restore_all' version: V2 }\n"
        "signature_def { key: 'serving_default' value { outputs { key: 'y' value { name: 'sub:0' dtype: DT_FLOAT }"
        " } } }\n",
            /* clang-format on */
            NULL);
    size_t changes = 0;
    (void)state;
    assert_int_equal(tare_pass_prune.run(model, &changes), TARE_OK);
    if (tare_pass_freeze.run(model, &changes) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_true(frozen_input(model, 0) == 10);
    assert_true(frozen_input(model, 1) == 11);
    tare_model_free(model);
}

/* Two handles of one resource are one variable, also if the second is not restored and has no object. */
static void handles_of_one_resource__are_one_variable(void **state) {
    struct tare_graph_model *model = open_model(
        VARIABLE("first", "total") VARIABLE("other", "total_1") VARIABLE("again", "total") READ("read", "first")
            READ("read_1", "again") "node { name: 'sub' op: 'Sub' input: 'read' input: 'read_1' attr { key: 'T' value "
                                    "{ type: DT_FLOAT } } }\n",
        "signature_def { key: 'serving_default' value { outputs { key: 'y' value { name: 'sub:0' dtype: DT_FLOAT } } "
        "} }\n",
        NULL);
    (void)state;
    assert_int_equal(model->n_variables, 2);
    check(model, "first", "total", -1);
    check(model, "other", "total_1", -1);
    assert_ptr_equal(tare_graph_find(model->main, "read_1")->inputs[0].node, tare_graph_find(model->main, "first"));
    /* an export stores its value once */
    assert_int_equal(tare_file_remove_tree(temp_path("out")), TARE_OK);
    if (tare_saved_model_export(model, temp_path("out"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    tare_model_free(model);
    assert_int_equal(tare_file_remove_tree(temp_path("out")), TARE_OK);
}

/* Anonymous handles have one name, but are variables of their own. */
static void anonymous_handles__are_not_one_variable(void **state) {
    struct tare_graph_model *model =
        open_model(VARIABLE("first", TARE_ANONYMOUS_VARIABLE) VARIABLE("second", TARE_ANONYMOUS_VARIABLE), "", NULL);
    (void)state;
    assert_int_equal(model->n_variables, 2);
    tare_model_free(model);
}

/* The key may be that of a later handle. */
static void restored_handle__may_be_the_second(void **state) {
    /* clang-format off */
    struct tare_graph_model *model = open_model(
        VARIABLE("first", "count") VARIABLE("second", "count") VARIABLE("third", "count") FILE_NODE
        "node { " TEXTS("names", "1", "string_val: 'total'") " }\n"
        "node { " TEXTS("slices", "1", "string_val: ''") " }\n"
        "node { name: 'save/RestoreV2' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'"
        " attr { key: 'dtypes' value { list { type: DT_FLOAT } } } }\n"
        "node { name: 'assign' op: 'AssignVariableOp' input: 'second' input: 'save/RestoreV2' attr { key: 'dtype'"
        " value { type: DT_FLOAT } } }\n"
        "node { name: 'restore_all' op: 'NoOp' input: '^assign' }\n",
        "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'restore_all' version: V2 }\n", NULL);
    /* clang-format on */
    (void)state;
    assert_int_equal(model->n_variables, 1);
    check(model, "first", "total", -1);
    tare_model_free(model);
}

/* Two variables that the restore operation fills from one tensor: an export stores a value for each. */
static void variables_of_one_tensor__are_stored_apart(void **state) {
    /* clang-format off */
    struct tare_graph_model *model = open_model(
        VARIABLE("first", "a") VARIABLE("second", "b") FILE_NODE READ("read", "first") READ("read_1", "second")
        "node { name: 'sub' op: 'Sub' input: 'read' input: 'read_1' attr { key: 'T' value { type: DT_FLOAT } } }\n"
        "node { " TEXTS("names", "2", "string_val: 'total'") " }\n"
        "node { " TEXTS("slices", "2", "string_val: ''") " }\n"
        "node { name: 'save/RestoreV2' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'"
        " attr { key: 'dtypes' value { list { type: [DT_FLOAT, DT_FLOAT] } } } }\n"
        "node { name: 'assign' op: 'AssignVariableOp' input: 'first' input: 'save/RestoreV2' attr { key: 'dtype'"
        " value { type: DT_FLOAT } } }\n"
        "node { name: 'assign_1' op: 'AssignVariableOp' input: 'second' input: 'save/RestoreV2:1' attr { key:"
        " 'dtype' value { type: DT_FLOAT } } }\n"
        "node { name: 'restore_all' op: 'NoOp' input: '^assign' input: '^assign_1' }\n",
        "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'restore_all' version: V2 }\n"
        "signature_def { key: 'serving_default' value { outputs { key: 'y' value { name: 'sub:0' dtype: DT_FLOAT }"
        " } } }\n", NULL);
    /* clang-format on */
    (void)state;
    check(model, "first", "total", -1);
    check(model, "second", "total", -1);
    assert_int_equal(tare_file_remove_tree(temp_path("out")), TARE_OK);
    if (tare_saved_model_export(model, temp_path("out"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    tare_model_free(model);
    if (tare_saved_model_load(&model, temp_path("out"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    check(model, "first", "total", -1);
    assert_string_equal(variable_of(model, "second")->key, "b");
    assert_true(*TARE_CONST_DATA(float, &variable_of(model, "second")->value) == 12);
    tare_model_free(model);
    assert_int_equal(tare_file_remove_tree(temp_path("out")), TARE_OK);
}

/* TF1: a partitioned variable is one tensor of the checkpoint, of which each part restores its rows. */
#define PART(name, rows)                                                                                               \
    "node { name: '" name                                                                                              \
    "' op: 'VariableV2' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value {"                    \
    " shape { dim { size: " rows " } dim { size: 2 } } } } }\n"
#define ASSIGN(name, variable, value)                                                                                  \
    "node { name: '" name "' op: 'Assign' input: '" variable "' input: '" value                                        \
    "' attr { key: 'T' value { type: DT_FLOAT } } }\n"
/* clang-format off */
static const char parts_graph[] =
    PART("table/part_0", "2") PART("table/part_1", "1") FILE_NODE
    "node { " TEXTS("names", "2", "string_val: 'table' string_val: 'table'") " }\n"
    "node { " TEXTS("slices", "2", "string_val: '3 2 0,2:-' string_val: '3 2 2,1:0,2'") " }\n"
    "node { name: 'save/RestoreV2' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'"
    " attr { key: 'dtypes' value { list { type: [DT_FLOAT, DT_FLOAT] } } } }\n"
    ASSIGN("save/Assign", "table/part_0", "save/RestoreV2") ASSIGN("save/Assign_1", "table/part_1", "save/RestoreV2:1")
    "node { name: 'save/restore_all' op: 'NoOp' input: '^save/Assign' input: '^save/Assign_1' }\n"
    "node { name: 'axis' op: 'Const' attr { key: 'dtype' value { type: DT_INT32 } }"
    " attr { key: 'value' value { tensor { dtype: DT_INT32 tensor_shape { } int_val: 0 } } } }\n"
    "node { name: 'table' op: 'ConcatV2' input: 'table/part_0' input: 'table/part_1' input: 'axis'"
    " attr { key: 'N' value { i: 2 } } attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'Tidx' value { type:"
    " DT_INT32 } } }\n";
/* clang-format on */
static const char parts_rest[] =
    "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'save/restore_all' version: V2 }\n"
    "signature_def { key: 'serving_default' value { outputs { key: 'table' value { name: 'table:0' dtype: DT_FLOAT } } "
    "} }\n";

static void write_table(void) {
    const float rows[] = { 1, 2, 3, 4, 5, 6 };
    struct tare_shape shape = tare_shape_make(2, 3, 2);
    struct tare_bundle_writer *writer;
    struct tare_tensor tensor;
    assert_int_equal(tare_bundle_writer_open(&writer, temp_path("model/variables/variables")), TARE_OK);
    assert_int_equal(tare_tensor_from(&tensor, TARE_DT_FLOAT, &shape, rows), TARE_OK);
    assert_int_equal(tare_bundle_writer_add(writer, "table", &tensor), TARE_OK);
    assert_int_equal(tare_bundle_writer_close(writer), TARE_OK);
    tare_tensor_reset(&tensor);
}

static void check_parts(const struct tare_graph_model *model, const char *const *keys, const char *const *slices) {
    const float first[] = { 1, 2, 3, 4 }, second[] = { 5, 6 };
    const struct tare_variable *a = variable_of(model, "table/part_0"), *b = variable_of(model, "table/part_1");
    assert_string_equal(a->key, keys[0]);
    assert_string_equal(b->key, keys[1]);
    assert_string_equal(a->slice ? a->slice : "", slices[0]);
    assert_string_equal(b->slice ? b->slice : "", slices[1]);
    assert_int_equal(a->value.elements, 4);
    assert_memory_equal(a->value.data, first, sizeof first);
    assert_int_equal(b->value.elements, 2);
    assert_memory_equal(b->value.data, second, sizeof second);
}

static void partitioned__variables_get_their_parts(void **state) {
    struct tare_graph_model *model;
    (void)state;
    tare_model_free(open_model(parts_graph, parts_rest, NULL));
    write_table();
    if (tare_saved_model_load(&model, temp_path("model"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    check_parts(model, (const char *const[]){ "table", "table" }, (const char *const[]){ "3 2 0,2:-", "3 2 2,1:0,2" });
    /* written anew, each is stored on its own */
    assert_int_equal(tare_file_remove_tree(temp_path("out")), TARE_OK);
    if (tare_saved_model_export(model, temp_path("out"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    tare_model_free(model);
    if (tare_saved_model_load(&model, temp_path("out"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    check_parts(model, (const char *const[]){ "table/part_0", "table/part_1" }, (const char *const[]){ "", "" });
    tare_model_free(model);
    assert_int_equal(tare_file_remove_tree(temp_path("out")), TARE_OK);
}

/* Nothing but names: the resource name is the key. A name that is not stored leaves a variable without value. */
static void names__are_asked_last(void **state) {
    struct tare_graph_model *model = open_model(VARIABLE("node", "total_1") VARIABLE("other", "count"), "", NULL);
    (void)state;
    check(model, "node", "total_1", -1);
    check(model, "other", NULL, -1);
    tare_model_free(model);
}

/* Keras 3 does not list its optimizer's step counter in the saved object graph; the checkpoint names it. */
static void full_name__finds_what_the_object_graph_does_not_reach(void **state) {
    struct tare_graph_model *model =
        open_model(VARIABLE("counter", "adam/iteration") VARIABLE("other", "adam/learning_rate"),
                   "object_graph_def { nodes { user_object { } } }\n",
                   "nodes { children { node_id: 1 local_name: 'optimizer' } }\n"
                   "nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'adam/iteration' "
                   "checkpoint_key: 'metrics/1/total' } }\n");
    (void)state;
    check(model, "counter", "metrics/1/total", -1);
    check(model, "other", NULL, -1);
    tare_model_free(model);
}

/* The name alone would give another key: an allocation that fails must not let it decide. */
static void failing_allocation__never_changes_the_mapping(void **state) {
    /* clang-format off */
    struct tare_graph_model *model = open_model(
        VARIABLE("total", "total") FILE_NODE
        "node { " TEXTS("names", "1", "string_val: 'metrics/0/total'") " }\n"
        "node { " TEXTS("slices", "1", "string_val: ''") " }\n"
        "node { name: 'read' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'"
        " attr { key: 'dtypes' value { list { type: DT_FLOAT } } } }\n"
        "node { name: 'assign' op: 'AssignVariableOp' input: 'total' input: 'read'"
        " attr { key: 'dtype' value { type: DT_FLOAT } } }\n",
        "saver_def { filename_tensor_name: 'file:0' restore_op_name: 'assign' }\n", NULL);
    /* clang-format on */
    size_t failures = 0;
    (void)state;
    check(model, "total", "metrics/0/total", -1);
    tare_model_free(model);
    for (int64_t n = 1; n < 10000; n++) {
        tare_status status;
        bool done;
        tare_alloc_fail_at(n);
        status = tare_saved_model_load(&model, temp_path("model"), NULL);
        done = tare_alloc_count() < n;
        tare_alloc_fail_at(0);
        if (status == TARE_OK) {
            check(model, "total", "metrics/0/total", -1);
            tare_model_free(model);
        } else {
            assert_int_equal(status, TARE_NO_MEMORY);
            tare_error_clear();
            failures++;
        }
        if (done) break;
    }
    assert_true(failures > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_allocation__never_changes_the_mapping),
        cmocka_unit_test(full_name__finds_what_the_object_graph_does_not_reach),
        cmocka_unit_test(restore_function__decides_against_names),
        cmocka_unit_test(captures__tie_variables_to_objects),
        cmocka_unit_test(saver_nodes__decide_against_names),
        cmocka_unit_test(freezing__keeps_variables_of_one_name_apart),
        cmocka_unit_test(handles_of_one_resource__are_one_variable),
        cmocka_unit_test(anonymous_handles__are_not_one_variable),
        cmocka_unit_test(variables_of_one_tensor__are_stored_apart),
        cmocka_unit_test(restored_handle__may_be_the_second),
        cmocka_unit_test(partitioned__variables_get_their_parts),
        cmocka_unit_test(names__are_asked_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
