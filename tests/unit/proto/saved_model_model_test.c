/* Every real saved_model.pb and saved_model.pbtxt: reads, packs again, goes through text, and nothing is lost. */
#include "base/strbuf.h"
#include "base/alloc.h"
#include "base/file.h"
#include "proto/field.h"
#include "proto/message.h"
#include "proto/tensor_message.h"
#include "proto/tensorflow/saved_model.pb-c.h"
#include "proto/text_format.h"
#include "support/text_writer.h"
#include "support/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *folder_of_models;

/* Files whose writer did not put fields in number order; repacking puts them in order. */
static const char *const other_order[] = { "tf-nonchunked", "tfx-tft-v2", NULL };
static bool is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

static void expect_same_fields(const ProtobufCMessage *a, const ProtobufCMessage *b);

static void expect_same_value(const ProtobufCFieldDescriptor *field, const void *a, const void *b) {
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        expect_same_fields(*(ProtobufCMessage *const *)a, *(ProtobufCMessage *const *)b);
    } else if (field->type == PROTOBUF_C_TYPE_STRING) {
        assert_string_equal(*(char *const *)a, *(char *const *)b);
    } else if (field->type == PROTOBUF_C_TYPE_BYTES) {
        const ProtobufCBinaryData *left = a, *right = b;
        assert_int_equal(left->len, right->len);
        if (left->len) assert_memory_equal(left->data, right->data, left->len);
    } else {
        assert_memory_equal(a, b, tare_field_value_size(field));
    }
}

static void expect_same_fields(const ProtobufCMessage *a, const ProtobufCMessage *b) {
    assert_ptr_equal(a->descriptor, b->descriptor);
    assert_int_equal(a->n_unknown_fields, b->n_unknown_fields);
    for (unsigned f = 0; f < a->descriptor->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &a->descriptor->fields[f];
        size_t count = tare_field_count(a, field);
        assert_int_equal(count, tare_field_count(b, field));
        for (size_t i = 0; i < count; i++)
            expect_same_value(field, tare_field_value(a, field, i), tare_field_value(b, field, i));
    }
}

static ProtobufCMessage *read_file(struct tare_arena *arena, const char *path, bool is_text,
                                   struct tare_mapping *file) {
    ProtobufCMessage *message;
    tare_status status;
    assert_int_equal(tare_file_map(file, path), TARE_OK);
    status = is_text ? tare_text_format_read(&message, &tensorflow__saved_model__descriptor, arena,
                                             (const char *)file->data, file->size, TARE_TEXT_STRICT, path)
                     : tare_message_unpack(&message, &tensorflow__saved_model__descriptor, arena, file->data,
                                           file->size, path);
    return status == TARE_OK ? message : NULL;
}

/* Packs and unpacks, writes as text and reads; compares field by field. Returns whether the bytes are the file's. */
static bool check_round_trips(struct tare_arena *arena, const ProtobufCMessage *message,
                              const struct tare_mapping *file) {
    struct tare_strbuf text = { 0 };
    ProtobufCMessage *again;
    uint8_t *packed;
    size_t size;
    bool identical;
    assert_int_equal(tare_message_pack(&packed, &size, message), TARE_OK);
    identical = size == file->size && memcmp(packed, file->data, size) == 0;
    assert_int_equal(tare_message_unpack(&again, message->descriptor, arena, packed, size, "packed"), TARE_OK);
    expect_same_fields(message, again);
    tare_free(packed);
    assert_int_equal(text_writer_put(&text, message), TARE_OK);
    if (tare_text_format_read(&again, message->descriptor, arena, text.data, text.size, TARE_TEXT_STRICT, "written") !=
        TARE_OK)
        fail_msg("%s", tare_error_text());
    expect_same_fields(message, again);
    tare_strbuf_free(&text);
    return identical;
}

typedef void visit(const char *model, const char *path);

static void for_each(const char *file_name, visit *check) {
    struct tare_file_list names = { 0 };
    assert_int_equal(tare_file_list(&names, folder_of_models), TARE_OK);
    for (size_t i = 0; i < names.count; i++) {
        char *folder = tare_path_join(folder_of_models, names.names[i]), *path = tare_path_join(folder, file_name);
        if (tare_file_kind_of(path) == TARE_FILE_REGULAR) check(names.names[i], path);
        tare_free(folder);
        tare_free(path);
    }
    tare_file_list_free(&names);
}

static void check_binary(const char *model, const char *path) {
    struct tare_arena arena = { 0 };
    struct tare_mapping file;
    ProtobufCMessage *message = read_file(&arena, path, false, &file);
    bool identical;
    if (!message) fail_msg("%s", tare_error_text());
    identical = check_round_trips(&arena, message, &file);
    if (identical == is_one_of(model, other_order))
        fail_msg("%s: repacked bytes are %s", model, identical ? "the same" : "others");
    tare_file_unmap(&file);
    tare_arena_free(&arena);
}

static void check_text(const char *model, const char *path) {
    struct tare_arena arena = { 0 };
    struct tare_mapping file;
    ProtobufCMessage *message = read_file(&arena, path, true, &file);
    (void)model;
    if (!message) fail_msg("%s", tare_error_text());
    assert_true(((Tensorflow__SavedModel *)message)->n_meta_graphs > 0);
    check_round_trips(&arena, message, &file);
    tare_file_unmap(&file);
    tare_arena_free(&arena);
}

static void check_tensors(const Tensorflow__NodeDef *const *nodes, size_t count, const char *model) {
    for (size_t n = 0; n < count; n++) {
        for (size_t a = 0; a < nodes[n]->n_attr; a++) {
            const Tensorflow__AttrValue *value = nodes[n]->attr[a]->value;
            struct tare_tensor tensor;
            if (value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR) continue;
            if (strcmp(model, "tf-fuzz-shape") == 0 && strcmp(nodes[n]->name, "b/initial_value") == 0)
                assert_int_equal(tare_tensor_from_message(&tensor, value->tensor, TARE_TENSOR_BORROW), TARE_SHAPE);
            else if (tare_tensor_from_message(&tensor, value->tensor, TARE_TENSOR_BORROW) != TARE_OK)
                fail_msg("%s: node '%s': %s", model, nodes[n]->name, tare_error_text());
            tare_tensor_reset(&tensor);
        }
    }
}

static void check_constants(const char *model, const char *path) {
    struct tare_arena arena = { 0 };
    struct tare_mapping file;
    ProtobufCMessage *message = read_file(&arena, path, false, &file);
    const Tensorflow__SavedModel *saved = (const Tensorflow__SavedModel *)message;
    for (size_t m = 0; saved && m < saved->n_meta_graphs; m++) {
        const Tensorflow__GraphDef *graph = saved->meta_graphs[m]->graph_def;
        check_tensors((const Tensorflow__NodeDef *const *)graph->node, graph->n_node, model);
        for (size_t f = 0; graph->library && f < graph->library->n_function; f++)
            check_tensors((const Tensorflow__NodeDef *const *)graph->library->function[f]->node_def,
                          graph->library->function[f]->n_node_def, model);
    }
    tare_file_unmap(&file);
    tare_arena_free(&arena);
}

static void every_saved_model__repacks_to_the_same(void **state) {
    (void)state;
    for_each("saved_model.pb", check_binary);
}

static void every_text_model__reads_and_repacks(void **state) {
    (void)state;
    for_each("saved_model.pbtxt", check_text);
}

static void every_constant__becomes_a_tensor(void **state) {
    (void)state;
    for_each("saved_model.pb", check_constants);
}

/* The same model in one file and as text says the same. */
static void text_and_binary_of_one_model__are_equal(void **state) {
    struct tare_arena arena = { 0 };
    struct tare_mapping text_file, binary_file;
    char *text = tare_path_join(folder_of_models, "tf-chunked/saved_model.pbtxt");
    char *binary = tare_path_join(folder_of_models, "tf-nonchunked/saved_model.pb");
    (void)state;
    if (tare_file_kind_of(text) == TARE_FILE_REGULAR && tare_file_kind_of(binary) == TARE_FILE_REGULAR) {
        ProtobufCMessage *a = read_file(&arena, text, true, &text_file);
        ProtobufCMessage *b = read_file(&arena, binary, false, &binary_file);
        assert_non_null(a);
        assert_non_null(b);
        assert_int_equal(protobuf_c_message_get_packed_size(a), protobuf_c_message_get_packed_size(b));
        tare_file_unmap(&text_file);
        tare_file_unmap(&binary_file);
    }
    tare_free(text);
    tare_free(binary);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_saved_model__repacks_to_the_same),
        cmocka_unit_test(every_text_model__reads_and_repacks),
        cmocka_unit_test(every_constant__becomes_a_tensor),
        cmocka_unit_test(text_and_binary_of_one_model__are_equal),
    };
    folder_of_models = test_data("models");
    return folder_of_models ? cmocka_run_group_tests(tests, NULL, NULL) : TEST_SKIPPED;
}
