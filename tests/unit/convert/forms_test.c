/* What a SavedModel may be made of on disk: text or binary, every dtype in the checkpoint, several data files,
 * partitioned variables, files that nobody here understands, unknown fields. What is not understood is carried along.
 */
#include "convert/saved_model.h"
#include "base/strbuf.h"
#include "base/tensor/narrow.h"
#include "base/alloc.h"
#include "base/file.h"
#include "proto/bundle.h"
#include "proto/field.h"
#include "proto/message.h"
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
#include <unistd.h>
#include <cmocka.h>

static const char *inner(const char *name) {
    char path[600];
    snprintf(path, sizeof path, "model/%s", name);
    return temp_path(path);
}

static void start_model(void) {
    assert_int_equal(tare_file_remove_tree(temp_path("model")), TARE_OK);
    assert_int_equal(mkdir(temp_path("model"), 0700), 0);
    assert_int_equal(mkdir(inner("variables"), 0700), 0);
}

static void put(const char *name, const void *data, size_t size) {
    FILE *file = fopen(inner(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static struct tare_graph_model *open_model(const char *path) {
    struct tare_graph_model *model;
    if (tare_saved_model_load(&model, path, NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    return model;
}

/* ---- dtypes ---- */

static const int dtypes[] = { TARE_DT_FLOAT,   TARE_DT_DOUBLE, TARE_DT_INT32,      TARE_DT_UINT8,    TARE_DT_INT16,
                              TARE_DT_INT8,    TARE_DT_STRING, TARE_DT_COMPLEX64,  TARE_DT_INT64,    TARE_DT_BOOL,
                              TARE_DT_QINT8,   TARE_DT_QUINT8, TARE_DT_QINT32,     TARE_DT_BFLOAT16, TARE_DT_QINT16,
                              TARE_DT_QUINT16, TARE_DT_UINT16, TARE_DT_COMPLEX128, TARE_DT_HALF,     TARE_DT_UINT32,
                              TARE_DT_UINT64,  TARE_DT_INT4,   TARE_DT_UINT4 };
enum { DTYPES = sizeof dtypes / sizeof *dtypes, ELEMENTS = 3 };

/* Three elements whose bytes depend on the dtype; bool and 4-bit values stay in their ranges. */
static struct tare_tensor make_value(int dtype) {
    struct tare_shape shape = tare_shape_make(1, ELEMENTS);
    struct tare_tensor tensor;
    assert_int_equal(tare_tensor_new(&tensor, dtype, &shape), TARE_OK);
    for (int i = 0; i < ELEMENTS && dtype == TARE_DT_STRING; i++) {
        char text[] = "word \0 0";
        text[7] = (char)('0' + i);
        assert_int_equal(tare_tensor_set_string(&tensor, i, text, i ? 8 : 0), TARE_OK);
    }
    for (size_t i = 0; dtype != TARE_DT_STRING && i < tare_tensor_bytes(&tensor); i++)
        ((uint8_t *)tensor.data)[i] = (uint8_t)(dtype == TARE_DT_BOOL ? i % 2 : i * 7 % 16);
    tare_tensor_narrow(&tensor);
    return tensor;
}

static void write_dtypes(void) {
    struct tare_strbuf text = { 0 };
    struct tare_bundle_writer *writer;
    tare_strbuf_puts(&text,
                     "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def {\n");
    assert_int_equal(tare_bundle_writer_open_shards(&writer, inner("variables/variables"), 3), TARE_OK);
    for (int i = 0; i < DTYPES; i++) {
        struct tare_tensor value = make_value(dtypes[i]);
        char name[32];
        snprintf(name, sizeof name, "v%d", dtypes[i]);
        tare_strbuf_printf(&text,
                           "node { name: '%s' op: 'VarHandleOp' attr { key: 'dtype' value { type: %d } } "
                           "attr { key: 'shape' value { shape { dim { size: 3 } } } } }\n",
                           name, dtypes[i]);
        tare_bundle_writer_use_shard(writer, i % 3);
        assert_int_equal(tare_bundle_writer_add(writer, name, &value), TARE_OK);
        tare_tensor_reset(&value);
    }
    tare_strbuf_puts(&text, "} }\n");
    assert_int_equal(tare_bundle_writer_close(writer), TARE_OK);
    put("saved_model.pbtxt", text.data, text.size);
    tare_strbuf_free(&text);
}

static void check_value(const struct tare_tensor *value, int dtype) {
    struct tare_tensor expected = make_value(dtype);
    assert_int_equal(value->dtype, dtype);
    assert_int_equal(value->elements, ELEMENTS);
    if (dtype == TARE_DT_STRING)
        for (int i = 0; i < ELEMENTS; i++) {
            const struct tare_str *a = &TARE_CONST_DATA(struct tare_str, value)[i],
                                  *b = &TARE_CONST_DATA(struct tare_str, &expected)[i];
            assert_int_equal(a->size, b->size);
            if (b->size) assert_memory_equal(a->data, b->data, b->size);
        }
    else
        assert_memory_equal(value->data, expected.data, tare_tensor_bytes(&expected));
    tare_tensor_reset(&expected);
}

static void checkpoints__hold_every_dtype_in_several_files(void **state) {
    struct tare_graph_model *model;
    (void)state;
    start_model();
    write_dtypes();
    model = open_model(temp_path("model"));
    assert_int_equal(model->n_variables, DTYPES);
    for (int i = 0; i < DTYPES; i++)
        check_value(&model->variables[i].value, dtypes[i]);
    tare_model_free(model);
}

static void values__stay_in_the_file_when_they_are_not_asked_for(void **state) {
    struct tare_saved_model_options options = { .without_values = true };
    struct tare_graph_model *model;
    (void)state;
    start_model();
    write_dtypes();
    assert_int_equal(tare_saved_model_load(&model, temp_path("model"), &options), TARE_OK);
    for (size_t i = 0; i < model->n_variables; i++) {
        assert_non_null(model->variables[i].key);
        assert_int_equal(model->variables[i].value.dtype, TARE_DT_INVALID);
    }
    tare_model_free(model);
    assert_int_equal(truncate(inner("variables/variables.data-00001-of-00003"), 1), 0);
    assert_int_equal(tare_saved_model_load(&model, temp_path("model"), &options), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "variables.data-00001-of-00003 is truncated"));
}

/* ---- files ---- */

static void same_file(const char *a, const char *b) {
    struct tare_mapping x, y;
    if (tare_file_map(&x, a) != TARE_OK || tare_file_map(&y, b) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    tare_file_unmap(&x);
    tare_file_unmap(&y);
}

static void copy__carries_what_it_does_not_understand(void **state) {
    static const char *const names[] = { "fingerprint.pb",
                                         "keras_metadata.pb",
                                         "assets.extra/tf_serving_warmup_requests",
                                         "debug/saved_model_debug_info.pb",
                                         "assets/vocabulary.txt",
                                         "notes" };
    (void)state;
    start_model();
    write_dtypes();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char folder[600];
        snprintf(folder, sizeof folder, "%s", names[i]);
        if (strchr(folder, '/')) {
            *strchr(folder, '/') = '\0';
            mkdir(inner(folder), 0700);
        }
        put(names[i], names[i], strlen(names[i]) + 1);
    }
    assert_int_equal(tare_saved_model_copy(temp_path("model"), temp_path("out")), TARE_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char out[600];
        snprintf(out, sizeof out, "out/%s", names[i]);
        same_file(inner(names[i]), temp_path(out));
    }
    same_file(inner("saved_model.pbtxt"), temp_path("out/saved_model.pbtxt"));
    same_file(inner("variables/variables.data-00002-of-00003"),
              temp_path("out/variables/variables.data-00002-of-00003"));
    assert_int_equal(tare_file_remove_tree(temp_path("out")), TARE_OK);
}

static void same_tree_is_copied(void) {
    if (tare_saved_model_copy(temp_path("model"), temp_path("out")) != TARE_OK) fail_msg("%s", tare_error_text());
    same_file(inner("saved_model.pbtxt"), temp_path("out/saved_model.pbtxt"));
    assert_int_equal(tare_file_remove_tree(temp_path("out")), TARE_OK);
}

/* Which MetaGraph nobody needs to say: all of them are copied. */
static void copy__takes_every_meta_graph(void **state) {
    static const char sound[] =
        "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'a' } graph_def { } }"
        " meta_graphs { meta_info_def { tags: 'b' } graph_def { } }";
    static const char broken[] =
        "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'a' } graph_def { } }"
        " meta_graphs { meta_info_def { tags: 'b' } graph_def { node { name: 'n' op: 'NoOp' input: '^m' } } }";
    struct tare_graph_model *model;
    (void)state;
    start_model();
    put("saved_model.pbtxt", sound, strlen(sound));
    same_tree_is_copied();
    assert_int_equal(tare_saved_model_load(&model, temp_path("model"), NULL), TARE_NOT_FOUND);
    assert_non_null(strstr(tare_error_text(), "several MetaGraphs, choose with --tags (the model has {a}, {b})"));
    put("saved_model.pbtxt", broken, strlen(broken));
    assert_int_equal(tare_saved_model_copy(temp_path("model"), temp_path("out")), TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "control input ^m names no node"));
}

/* ---- checkpoints that are none ---- */

static void fails_to_open(const char *part) {
    struct tare_graph_model *model = NULL;
    assert_int_not_equal(tare_saved_model_load(&model, temp_path("model"), NULL), TARE_OK);
    if (!strstr(tare_error_text(), part)) fail_msg("got '%s', expected '%s'", tare_error_text(), part);
}

static void checkpoints__without_index_are_explained(void **state) {
    static const char empty[] =
        "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def { } }";
    static const struct {
        const char *file, *part;
    } cases[] = {
        { "variables/variables", "variables/variables is a checkpoint of TensorFlow's first format" },
        { "variables/variables-00000-of-00002",
          "variables/variables-00000-of-00002 is a checkpoint of TensorFlow's first" },
        { "variables/variables.data-00001-of-00002",
          "variables/variables.index is missing, which says what variables/variables.data-00001-of-00002 holds" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start_model();
        put("saved_model.pbtxt", empty, strlen(empty));
        put(cases[i].file, "", 0);
        fails_to_open(cases[i].part);
    }
    start_model(); /* a folder without a checkpoint is one without variables */
    put("saved_model.pbtxt", empty, strlen(empty));
    put("variables/notes", "", 0);
    tare_model_free(open_model(temp_path("model")));
}

/* ---- unknown fields ---- */

static const char plain[] =
    "saved_model_schema_version: 1 meta_graphs { meta_info_def { tags: 'serve' } graph_def {"
    " node { name: 'x' op: 'Placeholder' attr { key: 'dtype' value { type: DT_FLOAT } } attr { key: 'shape' value { "
    "shape { } } } }"
    " node { name: 'call' op: 'PartitionedCall' input: 'x' attr { key: 'Tin' value { list { type: DT_FLOAT } } }"
    "   attr { key: 'Tout' value { list { type: DT_FLOAT } } } attr { key: 'f' value { func { name: 'f' } } } }"
    " versions { producer: 1205 }"
    " library { function { signature { name: 'f' input_arg { name: 'a' type: DT_FLOAT } output_arg { name: 'b' type: "
    "DT_FLOAT } }"
    "   node_def { name: 'n' op: 'Relu' input: 'a' attr { key: 'T' value { type: DT_FLOAT } } } ret { key: 'b' value: "
    "'n:activations:0' } } } }"
    " signature_def { key: 'serving_default' value { inputs { key: 'x' value { name: 'x:0' dtype: DT_FLOAT "
    "tensor_shape { } } }"
    "   outputs { key: 'y' value { name: 'call:0' dtype: DT_FLOAT tensor_shape { } } } method_name: "
    "'tensorflow/serving/predict' } } }";

/* The messages that get an unknown field 9999 with a number of their own; false past the last. */
static bool pick(ProtobufCMessage **out, Tensorflow__SavedModel *saved, int i) {
    Tensorflow__MetaGraphDef *meta = saved->meta_graphs[0];
    Tensorflow__FunctionDef *function = meta->graph_def->library->function[0];
    ProtobufCMessage *const messages[] = { &saved->base,
                                           &meta->base,
                                           &meta->meta_info_def->base,
                                           &meta->graph_def->base,
                                           &meta->graph_def->versions->base,
                                           &meta->graph_def->node[0]->base,
                                           &meta->graph_def->node[0]->attr[0]->value->base,
                                           &meta->graph_def->library->base,
                                           &function->base,
                                           &function->signature->base,
                                           &function->signature->input_arg[0]->base,
                                           &function->node_def[0]->base,
                                           &meta->signature_def[0]->value->base,
                                           &meta->signature_def[0]->value->inputs[0]->value->base };
    if (i >= (int)(sizeof messages / sizeof *messages)) return false;
    *out = messages[i];
    return true;
}

static void write_with_unknown_fields(void) {
    struct tare_arena arena = { 0 };
    ProtobufCMessage *message, *part;
    uint8_t *bytes;
    size_t size;
    if (tare_text_format_read(&message, &tensorflow__saved_model__descriptor, &arena, plain, strlen(plain),
                              TARE_TEXT_STRICT, "plain") != TARE_OK)
        fail_msg("%s", tare_error_text());
    for (int i = 0; pick(&part, (Tensorflow__SavedModel *)message, i); i++) {
        uint8_t value = (uint8_t)(i + 1);
        assert_int_equal(tare_message_add_unknown(part, &arena, 9999, PROTOBUF_C_WIRE_TYPE_VARINT, &value, 1), TARE_OK);
    }
    assert_int_equal(tare_message_pack(&bytes, &size, message), TARE_OK);
    put("saved_model.pb", bytes, size);
    tare_free(bytes);
    tare_arena_free(&arena);
}

static void export__keeps_unknown_fields(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_mapping file;
    struct tare_graph_model *model;
    ProtobufCMessage *message, *part;
    (void)state;
    start_model();
    write_with_unknown_fields();
    model = open_model(temp_path("model"));
    if (tare_saved_model_export(model, temp_path("exported"), NULL) != TARE_OK) fail_msg("%s", tare_error_text());
    tare_model_free(model);
    assert_int_equal(tare_file_map(&file, temp_path("exported/saved_model.pb")), TARE_OK);
    assert_int_equal(
        tare_message_unpack(&message, &tensorflow__saved_model__descriptor, &arena, file.data, file.size, "out"),
        TARE_OK);
    for (int i = 0; pick(&part, (Tensorflow__SavedModel *)message, i); i++) {
        if (part->n_unknown_fields != 1)
            fail_msg("message %d (%s) has %u unknown fields", i, part->descriptor->name, part->n_unknown_fields);
        assert_int_equal(part->unknown_fields[0].tag, 9999);
        assert_int_equal(part->unknown_fields[0].data[0], i + 1);
    }
    tare_file_unmap(&file);
    tare_arena_free(&arena);
    assert_int_equal(tare_file_remove_tree(temp_path("exported")), TARE_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checkpoints__hold_every_dtype_in_several_files),
        cmocka_unit_test(values__stay_in_the_file_when_they_are_not_asked_for),
        cmocka_unit_test(copy__carries_what_it_does_not_understand),
        cmocka_unit_test(copy__takes_every_meta_graph),
        cmocka_unit_test(checkpoints__without_index_are_explained),
        cmocka_unit_test(export__keeps_unknown_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
