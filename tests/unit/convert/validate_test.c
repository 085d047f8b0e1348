/* The rules of a SavedModel's files: each is broken once in a model that is sound otherwise. */
#include "convert/validation/validate.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "proto/bundle.h"
#include "proto/message.h"
#include "proto/tensorflow/object_graph.pb-c.h"
#include "proto/tensorflow/saved_model.pb-c.h"
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

/* A variable "v" that is captured by f and restored by name, an asset, and object graphs on both sides. */
static const char sound[] =
    "saved_model_schema_version: 1\n"
    "meta_graphs {\n"
    "  meta_info_def { tags: 'serve' function_aliases { key: 'f' value: 'tpu_func' } }\n"
    "  graph_def {\n"
    "    node { name: 'v' op: 'VarHandleOp' attr { key: 'dtype' value { type: DT_FLOAT } }\n"
    "           attr { key: 'shape' value { shape { dim { size: 2 } } } } attr { key: 'shared_name' value { s: 'v' } } "
    "}\n"
    "    node { name: 'file' op: 'Placeholder' attr { key: 'dtype' value { type: DT_STRING } }\n"
    "           attr { key: 'shape' value { shape { } } } }\n"
    "    node { name: 'names' op: 'Const' attr { key: 'dtype' value { type: DT_STRING } }\n"
    "           attr { key: 'value' value { tensor { dtype: DT_STRING tensor_shape { dim { size: 1 } } string_val: "
    "'v/KEY' } } } }\n"
    "    node { name: 'slices' op: 'Const' attr { key: 'dtype' value { type: DT_STRING } }\n"
    "           attr { key: 'value' value { tensor { dtype: DT_STRING tensor_shape { dim { size: 1 } } string_val: '' "
    "} } } }\n"
    "    node { name: 'restore' op: 'RestoreV2' input: 'file' input: 'names' input: 'slices'\n"
    "           attr { key: 'dtypes' value { list { type: DT_FLOAT } } } }\n"
    "    node { name: 'assign' op: 'AssignVariableOp' input: 'v' input: 'restore' attr { key: 'dtype' value { type: "
    "DT_FLOAT } } }\n"
    "    library { function {\n"
    "      signature { name: 'f' input_arg { name: 'x' type: DT_FLOAT } input_arg { name: 'r' type: DT_RESOURCE }\n"
    "                  output_arg { name: 'y' type: DT_FLOAT } }\n"
    "      node_def { name: 'id' op: 'Identity' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }\n"
    "      ret { key: 'y' value: 'id:output:0' } } }\n"
    "  }\n"
    "  saver_def { filename_tensor_name: 'file:0' restore_op_name: 'assign' version: V2 }\n"
    "  signature_def { key: 'serving_default' value { outputs { key: 'y' value { name: 'restore:0' dtype: DT_FLOAT } } "
    "} }\n"
    "  asset_file_def { tensor_info { name: 'file:0' } filename: 'words.txt' }\n"
    "  object_graph_def {\n"
    "    nodes { children { node_id: 1 local_name: 'f' } children { node_id: 2 local_name: 'v' } user_object { } }\n"
    "    nodes { function { concrete_functions: 'f'\n"
    "                       function_spec { fullargspec { named_tuple_value { name: 'FullArgSpec' } } } } }\n"
    "    nodes { variable { dtype: DT_FLOAT shape { dim { size: 2 } } name: 'v' } }\n"
    "    nodes { asset { asset_file_def_index: 0 } }\n"
    "    nodes { bare_concrete_function { concrete_function_name: 'f' } }\n"
    "    concrete_functions { key: 'f' value { bound_inputs: 2 } }\n"
    "  }\n"
    "}\n";

static const char trackable[] =
    "nodes { children { node_id: 1 local_name: 'v' } }\n"
    "nodes { attributes { name: 'VARIABLE_VALUE' full_name: 'v' checkpoint_key: 'v/KEY' } }\n";

/* ---- making models ---- */

static void put(const char *path, const char *text) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* `text` with `from` (which must be in it) replaced by `to`. */
static void replace(struct tare_strbuf *out, const char *text, const char *from, const char *to) {
    const char *at = from ? strstr(text, from) : NULL;
    if (from && !at) fail_msg("the model has no: %s", from);
    if (!at) {
        tare_strbuf_puts(out, text);
        return;
    }
    tare_strbuf_append(out, text, (size_t)(at - text));
    tare_strbuf_puts(out, to);
    tare_strbuf_puts(out, at + strlen(from));
}

static void write_checkpoint(const char *prefix, const char *objects, const char *key) {
    static const float values[] = { 1, 2 };
    struct tare_shape two = tare_shape_make(1, 2), scalar = tare_shape_scalar();
    struct tare_arena arena = { 0 };
    struct tare_bundle_writer *writer;
    struct tare_tensor tensor;
    ProtobufCMessage *message;
    uint8_t *bytes;
    size_t size;
    assert_int_equal(tare_text_format_read(&message, &tensorflow__trackable_object_graph__descriptor, &arena, objects,
                                           strlen(objects), TARE_TEXT_STRICT, "objects"),
                     TARE_OK);
    assert_int_equal(tare_message_pack(&bytes, &size, message), TARE_OK);
    assert_int_equal(tare_bundle_writer_open(&writer, prefix), TARE_OK);
    assert_int_equal(tare_tensor_from(&tensor, TARE_DT_FLOAT, &two, values), TARE_OK);
    assert_int_equal(tare_bundle_writer_add(writer, key, &tensor), TARE_OK);
    tare_tensor_reset(&tensor);
    assert_int_equal(tare_tensor_new(&tensor, TARE_DT_STRING, &scalar), TARE_OK);
    assert_int_equal(tare_tensor_set_string(&tensor, 0, bytes, size), TARE_OK);
    assert_int_equal(tare_bundle_writer_add(writer, "_CHECKPOINTABLE_OBJECT_GRAPH", &tensor), TARE_OK);
    tare_tensor_reset(&tensor);
    assert_int_equal(tare_bundle_writer_close(writer), TARE_OK);
    tare_free(bytes);
    tare_arena_free(&arena);
}

struct change {
    const char *from, *to;                 /* in saved_model.pbtxt */
    const char *objects_from, *objects_to; /* in the checkpoint's object graph */
    const char *key;                       /* of the stored variable; NULL: v/KEY */
    bool damage;                           /* of the first byte of data */
    bool without_asset;
};

static const char *make_model(const struct change *change) {
    const char *folder = temp_path("model");
    char path[1024];
    struct tare_strbuf text = { 0 }, objects = { 0 };
    assert_int_equal(tare_file_remove_tree(folder), TARE_OK);
    mkdir(folder, 0700);
    mkdir(temp_path("model/variables"), 0700);
    mkdir(temp_path("model/assets"), 0700);
    replace(&text, sound, change->from, change->to);
    replace(&objects, trackable, change->objects_from, change->objects_to);
    put(temp_path("model/saved_model.pbtxt"), tare_strbuf_text(&text));
    if (!change->without_asset) put(temp_path("model/assets/words.txt"), "a b\n");
    snprintf(path, sizeof path, "%s/variables/variables", folder);
    write_checkpoint(path, tare_strbuf_text(&objects), change->key ? change->key : "v/KEY");
    if (change->damage) {
        FILE *file = fopen(temp_path("model/variables/variables.data-00000-of-00001"), "r+b");
        assert_non_null(file);
        fputc(0x55, file);
        assert_int_equal(fclose(file), 0);
    }
    tare_strbuf_free(&text);
    tare_strbuf_free(&objects);
    return folder;
}

/* The model as saved_model.pb, of which nodes are read one by one. */
static void make_binary(void) {
    struct tare_arena arena = { 0 };
    struct tare_mapping text;
    ProtobufCMessage *message;
    uint8_t *bytes;
    size_t size;
    assert_int_equal(tare_file_map(&text, temp_path("model/saved_model.pbtxt")), TARE_OK);
    assert_int_equal(tare_text_format_read(&message, &tensorflow__saved_model__descriptor, &arena,
                                           (const char *)text.data, text.size, TARE_TEXT_STRICT, "text"),
                     TARE_OK);
    assert_int_equal(tare_message_pack(&bytes, &size, message), TARE_OK);
    assert_int_equal(tare_file_write(temp_path("model/saved_model.pb"), bytes, size), TARE_OK);
    tare_file_unmap(&text);
    tare_free(bytes);
    tare_arena_free(&arena);
}

static void expect_now(const char *const *expected) {
    struct tare_faults faults = { 0 };
    size_t count = 0;
    if (tare_saved_model_validate(&faults, temp_path("model"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    for (; expected[count]; count++) {
        bool found = false;
        for (size_t i = 0; i < faults.count; i++)
            found = found || strcmp(faults.items[i], expected[count]) == 0;
        if (!found) print_error("not found: %s\n", expected[count]);
        if (!found)
            for (size_t i = 0; i < faults.count; i++)
                print_error("  got: %s\n", faults.items[i]);
        assert_true(found);
    }
    if (faults.count != count)
        for (size_t i = 0; i < faults.count; i++)
            print_error("  got: %s\n", faults.items[i]);
    assert_int_equal(faults.count, count);
    tare_faults_free(&faults);
}

/* The model's faults are these, in any order; ends with NULL. */
static void expect(const struct change *change, const char *const *expected) {
    make_model(change);
    expect_now(expected);
    make_binary();
    expect_now(expected);
}
#define EXPECT(with, ...) expect(&(struct change)with, (const char *const[]){ __VA_ARGS__ })
#define CHANGE(...)                                                                                                    \
    { __VA_ARGS__ }
/* saved_model.pbtxt with one text for another. */
#define TEXT(old, new)                                                                                                 \
    { .from = old, .to = new }

static void sound_model__has_no_fault(void **state) {
    (void)state;
    EXPECT(CHANGE(.key = NULL), NULL);
}

static void file__rules(void **state) {
    (void)state;
    EXPECT(TEXT("saved_model_schema_version: 1", "saved_model_schema_version: 2"),
           "saved_model: schema version 2 (expected 1)", NULL);
    EXPECT(TEXT("filename_tensor_name: 'file:0'", "filename_tensor_name: 'nowhere:0'"),
           "saver_def: tensor nowhere:0 is not in the graph", NULL);
    EXPECT(TEXT("restore_op_name: 'assign'", "restore_op_name: 'restore_all'"),
           "saver_def: tensor restore_all is not in the graph", NULL);
    EXPECT(CHANGE(.without_asset = true), "assets: words.txt is missing", NULL);
    EXPECT(TEXT("key: 'f' value: 'tpu_func'", "key: 'g' value: 'tpu_func'"), NULL); /* a note */
    EXPECT(TEXT("op: 'VarHandleOp'",
                "op: 'VarHandleOp' attr { key: '_class' value { list { s: 'loc:@file' s: 'loc:@gone' s: 'x' } } }"),
           "graph/v (VarHandleOp): expects to be colocated with unknown node 'gone'", NULL);
}

static void object_graph__rules(void **state) {
    (void)state;
    EXPECT(TEXT("node_id: 2 local_name: 'v'", "node_id: 9 local_name: 'v'"), "object graph: node 0 has child 9 of 5",
           NULL);
    EXPECT(TEXT("function { concrete_functions: 'f'", "function { concrete_functions: 'g'"),
           "object graph: function g has no concrete function entry", NULL);
    EXPECT(TEXT("function_spec { fullargspec { named_tuple_value { name: 'FullArgSpec' } } }", ""),
           "object graph: node 1 is function f without a function_spec", NULL);
    EXPECT(TEXT("concrete_function_name: 'f'", "concrete_function_name: 'g'"),
           "object graph: bare function g has no entry", NULL);
    EXPECT(
        TEXT("    concrete_functions { key: 'f'", "    concrete_functions { key: 'g' } concrete_functions { key: 'f'"),
        "object graph: concrete function g is not in the library", NULL);
    EXPECT(TEXT("asset_file_def_index: 0", "asset_file_def_index: 1"), "object graph: node 3 is asset 1 of 1", NULL);
    EXPECT(TEXT("bound_inputs: 2", "bound_inputs: 1 bound_inputs: 2 bound_inputs: 2"),
           "object graph: f has more bound inputs than arguments (3, 2)", NULL);
    EXPECT(TEXT("bound_inputs: 2", "bound_inputs: 7"), "object graph: f is bound to node 7 of 5", NULL);
    EXPECT(TEXT("bound_inputs: 2", "bound_inputs: 2 bound_inputs: 2"),
           "object graph: f binds a variable to argument x of float32", NULL);
}

/* The objects that functions capture. */
static void captures__rules(void **state) {
    static const char bound[] = "concrete_functions { key: 'f' value { bound_inputs: 2 } }";
    (void)state;
    EXPECT(TEXT(bound, "concrete_functions { key: 'f' value { bound_inputs: 5 } }\n"
                       "    nodes { user_object { identifier: '_generic_user_object' } }"),
           "object graph: f captures node 5, which has no value", NULL);
    EXPECT(TEXT(bound, "concrete_functions { key: 'f' value { bound_inputs: 5 } }\n"
                       "    nodes { captured_tensor { name: 'id:1' concrete_function: 'f' } }"),
           "object graph: node 5 is tensor id:1 of f, which does not exist", NULL);
    EXPECT(TEXT(bound, "concrete_functions { key: 'f' value { bound_inputs: 5 } }\n"
                       "    nodes { captured_tensor { name: 'id:0' concrete_function: 'f' } }"),
           NULL);
    EXPECT(TEXT(bound, "concrete_functions { key: 'f' value { bound_inputs: 5 } }\n"
                       "    nodes { constant { operation: 'gone' } }"),
           "object graph: node 5 is the constant gone, which is not in the graph", NULL);
    EXPECT(CHANGE(.objects_from = "name: 'VARIABLE_VALUE'", .objects_to = "name: 'OTHER_VALUE'"),
           "checkpoint: f captures variable v (node 2), for which its object graph has no key", NULL);
    EXPECT(CHANGE(.objects_from = "local_name: 'v'", .objects_to = "local_name: 'w'"),
           "checkpoint: f captures variable v (node 2), for which its object graph has no key", NULL);
    EXPECT(TEXT("nodes { variable { dtype: DT_FLOAT shape { dim { size: 2 } }",
                "nodes { variable { dtype: DT_INT32 shape { dim { size: 3 } }"),
           "checkpoint: v/KEY is float32 [2], the variable v of the object graph (node 2) int32 [3]", NULL);
}

static void function_that_implements_an_op__takes_values(void **state) {
    (void)state;
    EXPECT(TEXT("ret { key: 'y' value: 'id:output:0' }",
                "ret { key: 'y' value: 'id:output:0' } attr { key: '_implements' value { s: 'my.op' } }"),
           "f: has the attribute _implements and takes a resource", NULL);
}

/* Nests of Python values against the tensors of the function. */
static void structured__rules(void **state) {
#define SPEC(name, dtype) "tensor_spec_value { name: '" name "' shape { } dtype: " dtype " }"
#define DESCRIBED(text) TEXT("{ bound_inputs: 2 }", "{ bound_inputs: 2 " text " }")
    (void)state;
    EXPECT(DESCRIBED("canonicalized_input_signature { tuple_value { values { " SPEC(
               "x", "DT_FLOAT") " } } }"
                                "output_signature { dict_value { fields { key: 'y' value { " SPEC(
                                    "y", "DT_FLOAT") " } } } }"),
           NULL);
    EXPECT(DESCRIBED("canonicalized_input_signature { tuple_value { values { " SPEC("x", "DT_INT32") " } } }"),
           "object graph: argument x of f is float32, its structured signature has int32", NULL);
    EXPECT(DESCRIBED("canonicalized_input_signature { list_value { values { " SPEC("x", "DT_FLOAT") " } values { " SPEC(
               "z", "DT_FLOAT") " } } }"),
           "object graph: f has 1 arguments, its structured signature 2 tensors", NULL);
    EXPECT(DESCRIBED("output_signature { " SPEC("y", "DT_HALF") " }"),
           "object graph: result y of f is float32, its structured outputs have float16", NULL);
    EXPECT(DESCRIBED("output_signature { none_value { } }"),
           "object graph: f has 1 results, its structured outputs 0 tensors", NULL);
}

/* f computes y from x [2]. */
static void shapes_of_functions__agree_with_what_is_written_down(void **state) {
#define WITH(node, output)                                                                                             \
    TEXT("      node_def { name: 'id' op: 'Identity' input: 'x' attr { key: 'T' value { type: DT_FLOAT } } }",         \
         "attr { key: '_input_shapes' value { list { shape { dim { size: 2 } } shape { unknown_rank: true } } } }"     \
         "node_def { name: 'id' " node " attr { key: 'T' value { type: DT_FLOAT } }"                                   \
         "           attr { key: '_output_shapes' value { list { shape { dim { size: " output " } } } } } }")
    (void)state;
    EXPECT(WITH("op: 'Identity' input: 'x'", "2"), NULL);
    EXPECT(WITH("op: 'Identity' input: 'x'", "-1"), NULL);
    EXPECT(WITH("op: 'Identity' input: 'x'", "3"), "f/id (Identity): output 0 has shape [2], _output_shapes has [3]",
           NULL);
    EXPECT(TEXT("      node_def { name: 'id'",
                "node_def { name: 'core' op: 'TPUOrdinalSelector' attr { key: '_output_shapes' value { list { shape { "
                "dim { size: -1 } } } } } } node_def { name: 'id'"),
           NULL); /* as TensorFlow saves converted models again */
    EXPECT(WITH("op: 'Squeeze' input: 'x' attr { key: 'squeeze_dims' value { list { i: 0 } } }", "-1"),
           "f: Squeeze 'id': Can not squeeze dim[0], expected a dimension of 1, got 2", NULL);
}

static void checkpoint__rules(void **state) {
    (void)state;
    EXPECT(CHANGE(.objects_from = "'v/KEY'", .objects_to = "'w/KEY'"),
           "checkpoint: object graph names w/KEY, which is not stored", NULL);
    EXPECT(CHANGE(.objects_from = "node_id: 1", .objects_to = "node_id: 2"),
           "checkpoint: object graph: node 0 has child 2 of 2", NULL);
    EXPECT(CHANGE(.objects_from = trackable, .objects_to = ""),
           "checkpoint: its object graph has 0 nodes for 1 variables", NULL);
    EXPECT(CHANGE(.key = "other"), "graph/v (VarHandleOp): variable v has no value in the checkpoint",
           "graph/restore (RestoreV2): restores v/KEY, which the checkpoint lacks",
           "checkpoint: object graph names v/KEY, which is not stored", NULL);
}

static void checkpoint__checksums(void **state) {
    struct tare_faults faults = { 0 };
    (void)state;
    assert_int_equal(tare_saved_model_validate(&faults, make_model(&(struct change){ .damage = true }), NULL), TARE_OK);
    assert_int_equal(faults.count, 1);
    assert_non_null(strstr(faults.items[0], "checkpoint: v/KEY: "));
    assert_non_null(strstr(faults.items[0], "Checksum does not match"));
    tare_faults_free(&faults);
}

static void variables__must_fit_what_is_stored(void **state) {
    (void)state;
    EXPECT(TEXT("value { shape { dim { size: 2 } } }", "value { shape { dim { size: 3 } } }"),
           "graph/v (VarHandleOp): variable v: the checkpoint has shape [2] (expected [3])", NULL);
}

static void nodes__are_named_with_their_faults(void **state) {
    (void)state;
    EXPECT(TEXT("name: 'id' op: 'Identity'", "name: 'id' op: 'Identify'"), "f/id (Identify): unknown op", NULL);
    EXPECT(TEXT("input: 'x' attr { key: 'T' value { type: DT_FLOAT } }",
                "input: 'x' attr { key: 'T' value { type: DT_INT32 } }"),
           "f/id (Identity): input 0 is float32 (expected int32)", "f: output y has int32, declared float32", NULL);
    EXPECT(TEXT("attr { key: 'dtypes' value { list { type: DT_FLOAT } } }",
                "attr { key: 'dtypes' value { list { type: DT_FLOAT } } } attr { key: 'speed' value { i: 1 } }"),
           "graph/restore (RestoreV2): NodeDef mentions attribute speed which is not in the op definition", NULL);
}

/* Errors that prevent a graph are all reported; errors that follow from them are not. */
static void names__are_all_checked(void **state) {
    (void)state;
    EXPECT(TEXT("input: 'x' attr { key: 'T' value { type: DT_FLOAT } }",
                "input: 'y' input: 'x:1' input: '^z' input: 'x' attr { key: 'T' value { type: DT_FLOAT } }"),
           "f/id (Identity): Unknown input node 'y'", "f/id (Identity): input x:1: an argument has one output",
           "f/id (Identity): control input ^z names no node", NULL);
    EXPECT(TEXT("name: 'id' op: 'Identity'", "name: 'id' op: ''"), "f/id (): a node without an op", NULL);
    EXPECT(TEXT("name: 'id' op: 'Identity'", "name: 'x' op: 'Identity'"), "f: two nodes named x",
           "f/ret y: Unknown input node 'id:output:0'", NULL);
    EXPECT(TEXT("op: 'Identity' input: 'x' attr { key: 'T' value { type: DT_FLOAT } }",
                "op: 'Identity' input: 'x' input: '^n'"),
           "f/id (Identity): Identity 'id': NodeDef missing attr 'T' from Op Identity",
           "f/id (Identity): control input ^n names no node", NULL);
    EXPECT(TEXT("ret { key: 'y' value", "ret { key: 'w' value"), "f: no ret for output y", NULL);
}

static void signatures__are_named_with_their_faults(void **state) {
    (void)state;
    EXPECT(TEXT("key: 'y' value { name: 'restore:0'", "key: 'y' value { name: 'nowhere:0'"),
           "signature serving_default: y: Unknown input node 'nowhere:0'", NULL);
}

/* In the main graph and where a function gets the handle. */
static void accesses__have_the_dtype_of_the_variable(void **state) {
    (void)state;
    EXPECT(TEXT("input: 'restore' attr { key: 'dtype' value { type: DT_FLOAT",
                "input: 'restore' attr { key: 'dtype' value { type: DT_INT32"),
           "graph/assign (AssignVariableOp): input 1 is float32 (expected int32)",
           "graph/assign (AssignVariableOp): has dtype int32, the variable v is float32", NULL);
    EXPECT(TEXT("ret { key: 'y'", "node_def { name: 'read' op: 'ReadVariableOp' input: 'r' attr { key: 'dtype' value { "
                                  "type: DT_INT8 } } } ret { key: 'y'"),
           "f/read (ReadVariableOp): has dtype int8, the variable v is float32", NULL);
}

static void shape_hints__are_as_many_as_what_they_describe(void **state) {
    (void)state;
    EXPECT(TEXT("ret { key: 'y'", "attr { key: '_input_shapes' value { list { shape { } } } } ret { key: 'y'"),
           "f: _input_shapes has 1 shapes, the function 2 arguments", NULL);
    /* of two values for one key the last one holds, as in protobuf's maps */
    EXPECT(TEXT("ret { key: 'y'", "attr { key: '_input_shapes' value { list { shape { } shape { } } } }"
                                  "attr { key: '_input_shapes' value { list { shape { } } } } ret { key: 'y'"),
           "f: _input_shapes has 1 shapes, the function 2 arguments", NULL);
    EXPECT(TEXT("ret { key: 'y'",
                "attr { key: '_input_shapes' value { list { shape { } } } }"
                "attr { key: '_input_shapes' value { list { shape { } shape { } } } } ret { key: 'y'"),
           NULL);
    EXPECT(
        TEXT("ret { key: 'y'", "attr { key: '_input_shapes' value { list { shape { } shape { } } } } ret { key: 'y'"),
        NULL);
    EXPECT(TEXT("input: 'x' attr {", "input: 'x' attr { key: '_output_shapes' value { list { } } } attr {"),
           "f/id (Identity): has 1 outputs but the _output_shapes attribute specifies shapes for 0 outputs", NULL);
}

static void variable_without_value_that_nothing_reads__is_a_note(void **state) {
    struct tare_faults faults = { 0 };
    const struct change change = { .key = "other", .from = "bound_inputs: 2", .to = "" };
    (void)state;
    assert_int_equal(tare_saved_model_validate(&faults, make_model(&change), NULL), TARE_OK);
    assert_int_equal(faults.count, 2); /* v/KEY is restored, and named by the object graph */
    assert_int_equal(faults.n_notes, 1);
    assert_string_equal(faults.notes[0], "graph/v (VarHandleOp): variable v has no value in the checkpoint, and "
                                         "nothing reads it");
    tare_faults_free(&faults);
}

/* What the source has, too, is not the writer's error; anything else is. */
static void written_model__may_have_the_violations_of_its_source(void **state) {
    const struct change damaged = { .from = "name: 'id' op: 'Identity'", .to = "name: 'id' op: 'Identify'" };
    const struct change sound_one = { .key = NULL };
    (void)state;
    assert_int_equal(tare_saved_model_check_written(make_model(&sound_one), NULL, NULL), TARE_OK);
    make_model(&damaged);
    assert_int_equal(tare_saved_model_check_written(temp_path("model"), temp_path("model"), NULL), TARE_OK);
    assert_int_equal(tare_saved_model_check_written(temp_path("model"), NULL, NULL), TARE_INTERNAL);
    assert_non_null(strstr(tare_error_text(), "f/id (Identify): unknown op"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses__have_the_dtype_of_the_variable),
        cmocka_unit_test(shape_hints__are_as_many_as_what_they_describe),
        cmocka_unit_test(variable_without_value_that_nothing_reads__is_a_note),
        cmocka_unit_test(written_model__may_have_the_violations_of_its_source),
        cmocka_unit_test(sound_model__has_no_fault),
        cmocka_unit_test(file__rules),
        cmocka_unit_test(object_graph__rules),
        cmocka_unit_test(captures__rules),
        cmocka_unit_test(function_that_implements_an_op__takes_values),
        cmocka_unit_test(structured__rules),
        cmocka_unit_test(shapes_of_functions__agree_with_what_is_written_down),
        cmocka_unit_test(checkpoint__rules),
        cmocka_unit_test(checkpoint__checksums),
        cmocka_unit_test(variables__must_fit_what_is_stored),
        cmocka_unit_test(names__are_all_checked),
        cmocka_unit_test(signatures__are_named_with_their_faults),
        cmocka_unit_test(nodes__are_named_with_their_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
