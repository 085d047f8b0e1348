/* The wire reader: what it accepts, what it refuses and where, and that nothing crashes it. */
#include "base/alloc.h"
#include "proto/field.h"
#include "proto/message.h"
#include "proto/tensorflow/debug_info.pb-c.h"
#include "proto/tensorflow/graph.pb-c.h"
#include "proto/tensorflow/saved_model.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

static int setup(void **state) {
    *state = calloc(1, sizeof(struct tare_arena));
    return *state ? 0 : -1;
}

static int teardown(void **state) {
    tare_arena_free(*state);
    free(*state);
    return 0;
}

static void *unpack(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
                    size_t size) {
    ProtobufCMessage *message;
    if (tare_message_unpack(&message, descriptor, arena, data, size, "test") != TARE_OK)
        fail_msg("unpack: %s", tare_error_text());
    return message;
}

static void expect_failure(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor, const uint8_t *data,
                           size_t size, tare_status expected, const char *text) {
    ProtobufCMessage *message;
    tare_status status = tare_message_unpack(&message, descriptor, arena, data, size, "file.pb");
    assert_int_equal(status, expected);
    assert_null(message);
    assert_string_equal(tare_error_text(), text);
}

static void expect_packs_to(const void *message, const uint8_t *data, size_t size) {
    uint8_t *packed;
    size_t packed_size;
    assert_int_equal(tare_message_pack(&packed, &packed_size, message), TARE_OK);
    assert_int_equal(packed_size, size);
    assert_memory_equal(packed, data, size);
    tare_free(packed);
}

static void repeated_numbers__packed_and_unpacked_read_alike(void **state) {
    Tensorflow__VersionDef *packed =
        unpack(*state, &tensorflow__version_def__descriptor, BYTES(0x1a, 3, 1, 0xac, 0x02));
    Tensorflow__VersionDef *unpacked =
        unpack(*state, &tensorflow__version_def__descriptor, BYTES(0x18, 1, 0x18, 0xac, 0x02));
    assert_int_equal(packed->n_bad_consumers, 2);
    assert_int_equal(packed->bad_consumers[1], 300);
    assert_int_equal(unpacked->n_bad_consumers, 2);
    assert_int_equal(unpacked->bad_consumers[1], 300);
}

static void repeated_numbers__mixed_forms_append_in_order(void **state) {
    Tensorflow__VersionDef *version = unpack(*state, &tensorflow__version_def__descriptor,
                                             BYTES(0x18, 1, 0x1a, 4, 2, 3, 4, 5, 0x18, 6, 0x1a, 0, 0x1a, 1, 7));
    assert_int_equal(version->n_bad_consumers, 7);
    for (int i = 0; i < 7; i++)
        assert_int_equal(version->bad_consumers[i], i + 1);
}

static void repeated_floats__packed_and_unpacked_read_alike(void **state) {
    Tensorflow__TensorProto *packed =
        unpack(*state, &tensorflow__tensor_proto__descriptor, BYTES(0x2a, 8, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0));
    Tensorflow__TensorProto *unpacked =
        unpack(*state, &tensorflow__tensor_proto__descriptor, BYTES(0x2d, 0, 0, 0x80, 0x3f, 0x2d, 0, 0, 0, 0xc0));
    assert_int_equal(packed->n_float_val, 2);
    assert_int_equal(unpacked->n_float_val, 2);
    assert_true(packed->float_val[0] == 1.0f && packed->float_val[1] == -2.0f);
    assert_memory_equal(packed->float_val, unpacked->float_val, 8);
}

static void repeated_fixed64__unpacked_reads_into_a_packed_field(void **state) {
    Tensorflow__GraphDebugInfo__StackTrace *trace =
        unpack(*state, &tensorflow__graph_debug_info__stack_trace__descriptor,
               BYTES(0x11, 1, 2, 3, 4, 5, 6, 7, 8, 0x12, 8, 9, 0, 0, 0, 0, 0, 0, 0));
    assert_int_equal(trace->n_frame_id, 2);
    assert_true(trace->frame_id[0] == 0x0807060504030201u && trace->frame_id[1] == 9);
}

static void integers__take_their_width_and_sign(void **state) {
    Tensorflow__StructuredValue *zigzag = unpack(*state, &tensorflow__structured_value__descriptor, BYTES(0x60, 0x03));
    Tensorflow__TensorShapeProto__Dim *dim =
        unpack(*state, &tensorflow__tensor_shape_proto__dim__descriptor,
               BYTES(0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01));
    assert_int_equal(zigzag->kind_case, TENSORFLOW__STRUCTURED_VALUE__KIND_INT64_VALUE);
    assert_int_equal(zigzag->int64_value, -2);
    assert_int_equal(dim->size, -1);
}

static void unknown_fields__survive_in_every_wire_type(void **state) {
    static const uint8_t data[] = { 0x08, 1, 0xf8, 0x07, 5,    0x82, 0x08, 3, 'a', 'b', 'c', 0x8d, 0x08, 1,
                                    2,    3, 4,    0x91, 0x08, 1,    2,    3, 4,   5,   6,   7,    8 };
    Tensorflow__VersionDef *version = unpack(*state, &tensorflow__version_def__descriptor, data, sizeof data);
    assert_int_equal(version->producer, 1);
    assert_int_equal(version->base.n_unknown_fields, 4);
    expect_packs_to(version, data, sizeof data);
}

static void unknown_fields__a_known_number_of_another_wire_type_is_kept(void **state) {
    static const uint8_t data[] = { 0x10, 7, 0x0a, 2, 'h', 'i' };
    Tensorflow__VersionDef *version = unpack(*state, &tensorflow__version_def__descriptor, data, sizeof data);
    assert_int_equal(version->producer, 0);
    assert_int_equal(version->min_consumer, 7);
    expect_packs_to(version, data, sizeof data);
}

static void enums__unknown_numbers_survive(void **state) {
    static const uint8_t data[] = { 0x30, 0xe8, 0x07 };
    Tensorflow__AttrValue *attr = unpack(*state, &tensorflow__attr_value__descriptor, data, sizeof data);
    assert_int_equal(attr->type, 1000);
    expect_packs_to(attr, data, sizeof data);
}

static void messages__a_singular_one_that_comes_twice_is_merged(void **state) {
    Tensorflow__GraphDef *graph =
        unpack(*state, &tensorflow__graph_def__descriptor, BYTES(0x22, 4, 8, 9, 0x18, 1, 0x22, 4, 16, 4, 0x18, 2));
    assert_int_equal(graph->versions->producer, 9);
    assert_int_equal(graph->versions->min_consumer, 4);
    assert_int_equal(graph->versions->n_bad_consumers, 2);
}

static void oneofs__the_last_member_wins(void **state) {
    Tensorflow__AttrValue *attr = unpack(*state, &tensorflow__attr_value__descriptor, BYTES(0x18, 5, 0x3a, 2, 0x18, 1));
    assert_int_equal(attr->value_case, TENSORFLOW__ATTR_VALUE__VALUE_SHAPE);
    assert_true(attr->shape->unknown_rank);
}

/* An entry of NodeDef.attr: key -> an integer. */
#define ATTR_ENTRY(key, number) 0x2a, 7, 0x0a, 1, key, 0x12, 2, 0x18, number

static void maps__the_last_entry_of_a_key_wins(void **state) {
    enum { KEYS = 40, ENTRY = 9 };
    const Tensorflow__NodeDef *node =
        unpack(*state, &tensorflow__node_def__descriptor,
               BYTES(ATTR_ENTRY('a', 1), ATTR_ENTRY('b', 2), ATTR_ENTRY('a', 3), ATTR_ENTRY('c', 4)));
    const uint8_t last[] = { ATTR_ENTRY('a', 3), ATTR_ENTRY('b', 2), ATTR_ENTRY('c', 4) };
    uint8_t many[2 * KEYS * ENTRY];
    assert_int_equal(node->n_attr, 3);
    expect_packs_to(node, last, sizeof last);
    for (int i = 0; i < 2 * KEYS; i++) /* every key twice */
        memcpy(&many[i * ENTRY], (const uint8_t[]){ ATTR_ENTRY((uint8_t)('0' + i % KEYS), (uint8_t)i) }, ENTRY);
    node = unpack(*state, &tensorflow__node_def__descriptor, many, sizeof many);
    assert_int_equal(node->n_attr, KEYS);
    expect_packs_to(node, &many[KEYS * ENTRY], KEYS * ENTRY);
}

static void maps__keys_that_are_numbers_have_one_entry_too(void **state) {
    const Tensorflow__FunctionDef *function =
        unpack(*state, &tensorflow__function_def__descriptor,
               BYTES(0x42, 4, 8, 0, 16, 5, 0x42, 4, 8, 1, 16, 6, 0x42, 4, 8, 0, 16, 7));
    assert_int_equal(function->n_resource_arg_unique_id, 2);
    assert_int_equal(function->resource_arg_unique_id[0]->value, 7);
    assert_int_equal(function->resource_arg_unique_id[1]->value, 6);
}

static void empty_input__is_the_default_message(void **state) {
    Tensorflow__NodeDef *node = unpack(*state, &tensorflow__node_def__descriptor, NULL, 0);
    assert_string_equal(node->name, "");
    expect_packs_to(node, (const uint8_t *)"", 0);
}

static void failures__say_the_field_and_the_byte(void **state) {
    const ProtobufCMessageDescriptor *node = &tensorflow__node_def__descriptor;
    expect_failure(*state, node, BYTES(0x0a, 1, 'n', 0x12, 77, 'C', 'o'), TARE_CORRUPT,
                   "file.pb: field 2 at byte 3 runs past the end (needs 77 bytes, 2 are left)");
    expect_failure(*state, node, BYTES(0x0a, 1, 'n', 0x80), TARE_CORRUPT, "file.pb: the tag at byte 3 is cut off");
    expect_failure(*state, node, BYTES(0x00, 1), TARE_CORRUPT, "file.pb: byte 0 is not a field tag");
    expect_failure(*state, node, BYTES(0x0b), TARE_UNSUPPORTED, "file.pb: field 1 at byte 0 is a group");
    expect_failure(*state, node, BYTES(0x0f), TARE_CORRUPT,
                   "file.pb: field 1 at byte 0 has wire type 7 (expected 0 to 5)");
    expect_failure(*state, node, BYTES(0x0a, 2, 'a', 0), TARE_UNSUPPORTED,
                   "file.pb: the string of field 1 at byte 0 holds a NUL byte");
    expect_failure(*state, &tensorflow__version_def__descriptor, BYTES(0x08, 0x80), TARE_CORRUPT,
                   "file.pb: field 1 at byte 0 is cut off");
    expect_failure(*state, &tensorflow__version_def__descriptor, BYTES(0x1a, 2, 1, 0x80), TARE_CORRUPT,
                   "file.pb: field 3 at byte 0 is cut off");
    expect_failure(*state, &tensorflow__tensor_proto__descriptor, BYTES(0x2a, 3, 0, 0, 0), TARE_CORRUPT,
                   "file.pb: packed field 5 at byte 0 has 3 bytes (expected a multiple of 4)");
}

static void failures__a_varint_of_eleven_bytes(void **state) {
    expect_failure(*state, &tensorflow__version_def__descriptor,
                   BYTES(0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01), TARE_CORRUPT,
                   "file.pb: field 1 at byte 0 is cut off");
}

/* `depth` FullTypeDef messages in each other, written from the innermost outwards. */
static const uint8_t *nested(uint8_t *buffer, size_t capacity, int depth, size_t *size) {
    uint8_t *at = buffer + capacity;
    for (int i = 1; i < depth; i++) {
        size_t inner = (size_t)(buffer + capacity - at);
        if (inner > 127) {
            *--at = (uint8_t)(inner >> 7);
            *--at = (uint8_t)(inner & 0x7f) | 0x80;
        } else {
            *--at = (uint8_t)inner;
        }
        *--at = 0x12;
    }
    *size = (size_t)(buffer + capacity - at);
    return at;
}

static void nesting__a_hundred_levels_and_no_more(void **state) {
    uint8_t buffer[1024];
    size_t size;
    const uint8_t *data = nested(buffer, sizeof buffer, 100, &size);
    unpack(*state, &tensorflow__full_type_def__descriptor, data, size);
    data = nested(buffer, sizeof buffer, 101, &size);
    expect_failure(*state, &tensorflow__full_type_def__descriptor, data, size, TARE_CORRUPT,
                   "file.pb: messages are nested deeper than 100 at byte 234");
}

static void growth__small_input_does_not_take_much_memory(void **state) {
    /* Two bytes a tensor, some 300 in memory. */
    struct tare_arena *arena = *state;
    size_t count = 1 << 17;
    uint8_t *data = malloc(2 * count);
    ProtobufCMessage *message;
    for (size_t i = 0; i < count; i++)
        memcpy(data + 2 * i, "\x42\x00", 2);
    assert_int_equal(
        tare_message_unpack(&message, &tensorflow__attr_value__list_value__descriptor, arena, data, 2 * count, "bomb"),
        TARE_CORRUPT);
    assert_non_null(strstr(tare_error_text(), "bomb: takes more than 64 times its size in memory"));
    assert_true(arena->bytes < 2 * (2 * count * TARE_MESSAGE_MAX_GROWTH + TARE_MESSAGE_FREE_GROWTH));
    free(data);
}

/* Packs a small SavedModel: a node with a tensor, a function, a signature. Release with tare_free. */
static uint8_t *small_model(size_t *size) {
    Tensorflow__TensorShapeProto__Dim dim = TENSORFLOW__TENSOR_SHAPE_PROTO__DIM__INIT, *dims = &dim;
    Tensorflow__TensorShapeProto shape = TENSORFLOW__TENSOR_SHAPE_PROTO__INIT;
    Tensorflow__TensorProto tensor = TENSORFLOW__TENSOR_PROTO__INIT;
    Tensorflow__AttrValue value = TENSORFLOW__ATTR_VALUE__INIT;
    Tensorflow__AttrEntry attr = TENSORFLOW__ATTR_ENTRY__INIT, *attrs = &attr;
    Tensorflow__NodeDef node = TENSORFLOW__NODE_DEF__INIT, *nodes = &node;
    Tensorflow__OpDef signature = TENSORFLOW__OP_DEF__INIT;
    Tensorflow__FunctionDef function = TENSORFLOW__FUNCTION_DEF__INIT, *functions = &function;
    Tensorflow__FunctionDefLibrary library = TENSORFLOW__FUNCTION_DEF_LIBRARY__INIT;
    Tensorflow__GraphDef graph = TENSORFLOW__GRAPH_DEF__INIT;
    Tensorflow__TensorInfo info = TENSORFLOW__TENSOR_INFO__INIT;
    Tensorflow__TensorInfoEntry output = TENSORFLOW__TENSOR_INFO_ENTRY__INIT, *outputs = &output;
    Tensorflow__SignatureDef signature_def = TENSORFLOW__SIGNATURE_DEF__INIT;
    Tensorflow__MetaGraphDef__SignatureDefEntry entry = TENSORFLOW__META_GRAPH_DEF__SIGNATURE_DEF_ENTRY__INIT;
    Tensorflow__MetaGraphDef__SignatureDefEntry *entries = &entry;
    Tensorflow__MetaGraphDef meta = TENSORFLOW__META_GRAPH_DEF__INIT, *metas = &meta;
    Tensorflow__SavedModel model = TENSORFLOW__SAVED_MODEL__INIT;
    float values[] = { 1.5f, -2.0f, 3.0f };
    uint8_t *data;

    dim.size = 3;
    shape.n_dim = 1, shape.dim = &dims;
    tensor.dtype = TENSORFLOW__DATA_TYPE__DT_FLOAT, tensor.tensor_shape = &shape;
    tensor.n_float_val = 3, tensor.float_val = values;
    value.value_case = TENSORFLOW__ATTR_VALUE__VALUE_TENSOR, value.tensor = &tensor;
    attr.key = "value", attr.value = &value;
    node.name = "x", node.op = "Const", node.n_attr = 1, node.attr = &attrs;
    signature.name = "f";
    function.signature = &signature, function.n_node_def = 1, function.node_def = &nodes;
    library.n_function = 1, library.function = &functions;
    graph.n_node = 1, graph.node = &nodes, graph.library = &library;
    info.encoding_case = TENSORFLOW__TENSOR_INFO__ENCODING_NAME, info.name = "x:0", info.dtype = tensor.dtype;
    info.tensor_shape = &shape;
    output.key = "y", output.value = &info;
    signature_def.n_outputs = 1, signature_def.outputs = &outputs;
    entry.key = "default", entry.value = &signature_def;
    meta.graph_def = &graph, meta.n_signature_def = 1, meta.signature_def = &entries;
    model.saved_model_schema_version = 1, model.n_meta_graphs = 1, model.meta_graphs = &metas;
    assert_int_equal(tare_message_pack(&data, size, &model.base), TARE_OK);
    return data;
}

static void mangled_input__never_crashes(void **state) {
    struct tare_arena *arena = *state;
    size_t model_size;
    uint8_t *model = small_model(&model_size), *data = malloc(model_size);
    ProtobufCMessage *message;
    int accepted = 0;
    for (size_t cut = 0; cut <= model_size; cut++) {
        uint8_t *part = malloc(cut ? cut : 1); /* its own block, so that ASan sees a read past the end */
        memcpy(part, model, cut);
        accepted +=
            tare_message_unpack(&message, &tensorflow__saved_model__descriptor, arena, part, cut, "cut") == TARE_OK;
        free(part);
        tare_arena_reset(arena);
    }
    assert_int_equal(accepted, 3); /* nothing, the version alone, the whole */
    for (size_t at = 0; at < model_size; at++) {
        for (unsigned value = 0; value < 256; value++) {
            memcpy(data, model, model_size);
            data[at] = (uint8_t)value;
            if (tare_message_unpack(&message, &tensorflow__saved_model__descriptor, arena, data, model_size,
                                    "changed") == TARE_OK) {
                uint8_t *packed;
                size_t size;
                assert_int_equal(tare_message_pack(&packed, &size, message), TARE_OK);
                tare_free(packed);
            } else {
                assert_string_not_equal(tare_error_text(), "");
            }
            tare_arena_reset(arena);
        }
    }
    free(data);
    tare_free(model);
}

static void memory__every_failing_allocation_is_reported(void **state) {
    static const uint8_t data[] = { 0x0a, 1, 'n', 0x1a, 1, 'a',  0x1a, 1,    'b',  0x2a, 7,
                                    0x0a, 1, 'T', 0x12, 2, 0x30, 1,    0xf8, 0x07, 5 };
    ProtobufCMessage *message;
    (void)state;
    for (int64_t n = 1; n < 100; n++) {
        struct tare_arena arena = { 0 };
        tare_status status;
        tare_alloc_fail_at(n);
        status = tare_message_unpack(&message, &tensorflow__node_def__descriptor, &arena, data, sizeof data, "memory");
        tare_alloc_fail_at(0);
        tare_arena_free(&arena);
        if (status == TARE_OK) return;
        assert_int_equal(status, TARE_NO_MEMORY);
    }
    fail();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(repeated_numbers__packed_and_unpacked_read_alike),
        TEST(repeated_numbers__mixed_forms_append_in_order),
        TEST(repeated_floats__packed_and_unpacked_read_alike),
        TEST(repeated_fixed64__unpacked_reads_into_a_packed_field),
        TEST(integers__take_their_width_and_sign),
        TEST(unknown_fields__survive_in_every_wire_type),
        TEST(unknown_fields__a_known_number_of_another_wire_type_is_kept),
        TEST(enums__unknown_numbers_survive),
        TEST(messages__a_singular_one_that_comes_twice_is_merged),
        TEST(oneofs__the_last_member_wins),
        TEST(maps__the_last_entry_of_a_key_wins),
        TEST(maps__keys_that_are_numbers_have_one_entry_too),
        TEST(empty_input__is_the_default_message),
        TEST(failures__say_the_field_and_the_byte),
        TEST(failures__a_varint_of_eleven_bytes),
        TEST(nesting__a_hundred_levels_and_no_more),
        TEST(growth__small_input_does_not_take_much_memory),
        TEST(mangled_input__never_crashes),
        TEST(memory__every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
