/* TensorFlow's rules for the values of a TensorProto, each by name, and back. */
#include "proto/message.h"
#include "proto/tensor_message.h"
#include "proto/text_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int setup(void **state) {
    *state = calloc(1, sizeof(struct tare_arena));
    return *state ? 0 : -1;
}

static int teardown(void **state) {
    tare_arena_free(*state);
    free(*state);
    return 0;
}

static Tensorflow__TensorProto *message(struct tare_arena *arena, const char *text) {
    ProtobufCMessage *read;
    if (tare_text_format_read(&read, &tensorflow__tensor_proto__descriptor, arena, text, strlen(text), TARE_TEXT_STRICT,
                              NULL) != TARE_OK)
        fail_msg("%s", tare_error_text());
    return (Tensorflow__TensorProto *)read;
}

static struct tare_tensor tensor(struct tare_arena *arena, const char *text) {
    struct tare_tensor out;
    if (tare_tensor_from_message(&out, message(arena, text), TARE_TENSOR_COPY) != TARE_OK)
        fail_msg("%s: %s", text, tare_error_text());
    return out;
}

static void expect_failure(struct tare_arena *arena, const char *text, tare_status expected, const char *wanted_text) {
    struct tare_tensor out;
    assert_int_equal(tare_tensor_from_message(&out, message(arena, text), TARE_TENSOR_COPY), expected);
    assert_string_equal(tare_error_text(), wanted_text);
    assert_null(out.buffer);
}

/* Reads, compares the bytes of all elements (of one for a splat), writes and reads again. */
static void expect_elements(struct tare_arena *arena, const char *text, int dtype, int64_t elements, bool splat,
                            const void *data, size_t size) {
    struct tare_tensor first = tensor(arena, text), second;
    Tensorflow__TensorProto *written;
    assert_int_equal(first.dtype, dtype);
    assert_int_equal(first.elements, elements);
    assert_int_equal(first.splat, splat);
    assert_memory_equal(first.data, data, size);
    assert_int_equal(tare_tensor_to_message(&written, arena, &first, TARE_TENSOR_COPY), TARE_OK);
    assert_int_equal(tare_tensor_from_message(&second, written, TARE_TENSOR_COPY), TARE_OK);
    assert_int_equal(second.dtype, dtype);
    assert_true(tare_shape_equal(&first.shape, &second.shape));
    assert_int_equal(second.splat, splat);
    assert_memory_equal(second.data, data, size);
    tare_tensor_reset(&first);
    tare_tensor_reset(&second);
}

#define EXPECT(arena, text, dtype, elements, splat, type, ...)                                                         \
    expect_elements((arena), (text), (dtype), (elements), (splat), ((const type[]){ __VA_ARGS__ }),                    \
                    sizeof((const type[]){ __VA_ARGS__ }))

static void content__wins_over_values(void **state) {
    EXPECT(
        *state,
        "dtype: DT_INT32 tensor_shape { dim { size: 2 } } tensor_content: '\\001\\000\\000\\000\\376\\377\\377\\377' "
        "int_val: 7",
        TARE_DT_INT32, 2, false, int32_t, 1, -2);
}

static void content__must_have_the_exact_size(void **state) {
    expect_failure(*state, "dtype: DT_FLOAT tensor_shape { dim { size: 2 } dim { size: 2 } } tensor_content: '123'",
                   TARE_SHAPE, "tensor_content has 3 bytes (expected 16 for float32 [2,2])");
    expect_failure(*state, "dtype: DT_FLOAT tensor_shape { dim { size: 0 } } tensor_content: '1234'", TARE_SHAPE,
                   "tensor_content has 4 bytes (expected 0 for float32 [0])");
}

static void content__int4_is_one_element_a_byte(void **state) {
    EXPECT(*state, "dtype: DT_INT4 tensor_shape { dim { size: 3 } } tensor_content: '\\001\\370\\007'", TARE_DT_INT4, 3,
           false, int8_t, 1, -8, 7);
}

static void content__is_borrowed_only_when_aligned(void **state) {
    _Alignas(16) static uint8_t memory[16] = { 0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 64, 64 };
    Tensorflow__TensorProto *made = message(*state, "dtype: DT_FLOAT tensor_shape { dim { size: 2 } }");
    struct tare_tensor out;
    made->tensor_content = (ProtobufCBinaryData){ .len = 8, .data = memory + 4 };
    assert_int_equal(tare_tensor_from_message(&out, made, TARE_TENSOR_BORROW), TARE_OK);
    assert_ptr_equal(out.data, memory + 4);
    tare_tensor_reset(&out);
    made->tensor_content.data = memory + 1;
    assert_int_equal(tare_tensor_from_message(&out, made, TARE_TENSOR_BORROW), TARE_OK);
    assert_ptr_not_equal(out.data, memory + 1);
    assert_memory_equal(out.data, memory + 1, 8);
    tare_tensor_reset(&out);
    made->tensor_content.data = memory;
    assert_int_equal(tare_tensor_from_message(&out, made, TARE_TENSOR_COPY), TARE_OK);
    assert_ptr_not_equal(out.data, memory);
    tare_tensor_reset(&out);
}

static void values__one_for_many_is_a_splat(void **state) {
    EXPECT(*state, "dtype: DT_FLOAT tensor_shape { dim { size: 1000000 } dim { size: 1000000 } } float_val: 1.5",
           TARE_DT_FLOAT, 1000000000000, true, float, 1.5f);
}

static void values__one_for_one_is_no_splat(void **state) {
    EXPECT(*state, "dtype: DT_FLOAT tensor_shape { } float_val: 1.5", TARE_DT_FLOAT, 1, false, float, 1.5f);
    EXPECT(*state, "dtype: DT_FLOAT float_val: 1.5", TARE_DT_FLOAT, 1, false, float, 1.5f);
}

static void values__none_are_zeros(void **state) {
    EXPECT(*state, "dtype: DT_INT64 tensor_shape { dim { size: 5 } }", TARE_DT_INT64, 5, true, int64_t, 0);
    EXPECT(*state, "dtype: DT_INT64 tensor_shape { }", TARE_DT_INT64, 1, false, int64_t, 0);
}

static void values__the_last_one_fills_up(void **state) {
    EXPECT(*state, "dtype: DT_INT32 tensor_shape { dim { size: 5 } } int_val: [1, 2, 3]", TARE_DT_INT32, 5, false,
           int32_t, 1, 2, 3, 3, 3);
}

static void values__beyond_the_elements_are_ignored(void **state) {
    EXPECT(*state, "dtype: DT_INT32 tensor_shape { dim { size: 2 } } int_val: [1, 2, 3]", TARE_DT_INT32, 2, false,
           int32_t, 1, 2);
}

static void values__for_an_empty_tensor(void **state) {
    struct tare_tensor out = tensor(*state, "dtype: DT_FLOAT tensor_shape { dim { size: 0 } } float_val: 1");
    assert_int_equal(out.elements, 0);
    assert_false(out.splat);
    tare_tensor_reset(&out);
}

static void values__expansion_is_bounded(void **state) {
    struct tare_tensor out = tensor(*state, "dtype: DT_INT8 tensor_shape { dim { size: 16777216 } } int_val: [1, 2]");
    assert_int_equal(TARE_DATA(int8_t, &out)[16777215], 2);
    tare_tensor_reset(&out);
    expect_failure(*state, "dtype: DT_INT8 tensor_shape { dim { size: 16777217 } } int_val: [1, 2]", TARE_SHAPE,
                   "a tensor has 16777217 elements but 2 values (expected at least one in 64)");
    out = tensor(*state, "dtype: DT_INT8 tensor_shape { dim { size: 16777217 } } int_val: [2, 2]");
    assert_true(out.splat);
    tare_tensor_reset(&out);
}

static void values__every_numeric_dtype_from_its_field(void **state) {
#define TWO "tensor_shape { dim { size: 2 } } "
    EXPECT(*state, "dtype: DT_FLOAT " TWO "float_val: [1, -2]", TARE_DT_FLOAT, 2, false, float, 1, -2);
    EXPECT(*state, "dtype: DT_DOUBLE " TWO "double_val: [1, -2]", TARE_DT_DOUBLE, 2, false, double, 1, -2);
    EXPECT(*state, "dtype: DT_INT32 " TWO "int_val: [1, -2]", TARE_DT_INT32, 2, false, int32_t, 1, -2);
    EXPECT(*state, "dtype: DT_QINT32 " TWO "int_val: [1, -2]", TARE_DT_QINT32, 2, false, int32_t, 1, -2);
    EXPECT(*state, "dtype: DT_INT16 " TWO "int_val: [1, -2]", TARE_DT_INT16, 2, false, int16_t, 1, -2);
    EXPECT(*state, "dtype: DT_QINT16 " TWO "int_val: [1, -2]", TARE_DT_QINT16, 2, false, int16_t, 1, -2);
    EXPECT(*state, "dtype: DT_UINT16 " TWO "int_val: [1, 65535]", TARE_DT_UINT16, 2, false, uint16_t, 1, 65535);
    EXPECT(*state, "dtype: DT_QUINT16 " TWO "int_val: [1, 65535]", TARE_DT_QUINT16, 2, false, uint16_t, 1, 65535);
    EXPECT(*state, "dtype: DT_INT8 " TWO "int_val: [1, -2]", TARE_DT_INT8, 2, false, int8_t, 1, -2);
    EXPECT(*state, "dtype: DT_QINT8 " TWO "int_val: [1, -2]", TARE_DT_QINT8, 2, false, int8_t, 1, -2);
    EXPECT(*state, "dtype: DT_UINT8 " TWO "int_val: [1, 255]", TARE_DT_UINT8, 2, false, uint8_t, 1, 255);
    EXPECT(*state, "dtype: DT_QUINT8 " TWO "int_val: [1, 255]", TARE_DT_QUINT8, 2, false, uint8_t, 1, 255);
    EXPECT(*state, "dtype: DT_INT4 " TWO "int_val: [7, -8]", TARE_DT_INT4, 2, false, int8_t, 7, -8);
    EXPECT(*state, "dtype: DT_UINT4 " TWO "int_val: [1, 15]", TARE_DT_UINT4, 2, false, uint8_t, 1, 15);
    EXPECT(*state, "dtype: DT_INT64 " TWO "int64_val: [1, -2]", TARE_DT_INT64, 2, false, int64_t, 1, -2);
    EXPECT(*state, "dtype: DT_UINT32 " TWO "uint32_val: [1, 4294967295]", TARE_DT_UINT32, 2, false, uint32_t, 1,
           UINT32_MAX);
    EXPECT(*state, "dtype: DT_UINT64 " TWO "uint64_val: [1, 18446744073709551615]", TARE_DT_UINT64, 2, false, uint64_t,
           1, UINT64_MAX);
    EXPECT(*state, "dtype: DT_BOOL " TWO "bool_val: [true, false]", TARE_DT_BOOL, 2, false, uint8_t, 1, 0);
    EXPECT(*state, "dtype: DT_COMPLEX64 " TWO "scomplex_val: [1, 2, 3, 4]", TARE_DT_COMPLEX64, 2, false, float, 1, 2, 3,
           4);
    EXPECT(*state, "dtype: DT_COMPLEX128 " TWO "dcomplex_val: [1, 2, 3, 4]", TARE_DT_COMPLEX128, 2, false, double, 1, 2,
           3, 4);
}

static void values__half_and_bfloat16_are_bits_in_half_val(void **state) {
    EXPECT(*state, "dtype: DT_HALF " TWO "half_val: [15360, 49152]", TARE_DT_HALF, 2, false, uint16_t, 0x3c00, 0xc000);
    EXPECT(*state, "dtype: DT_BFLOAT16 " TWO "half_val: [16256, 49152]", TARE_DT_BFLOAT16, 2, false, uint16_t, 0x3f80,
           0xc000);
    EXPECT(*state, "dtype: DT_BFLOAT16 " TWO "half_val: 49152", TARE_DT_BFLOAT16, 2, true, uint16_t, 0xc000);
}

static void values__float8_is_bytes(void **state) {
    EXPECT(*state, "dtype: DT_FLOAT8_E5M2 " TWO "float8_val: '\\074\\300'", TARE_DT_FLOAT8_E5M2, 2, false, uint8_t,
           0x3c, 0xc0);
    EXPECT(*state, "dtype: DT_FLOAT8_E4M3FN " TWO "float8_val: '\\070'", TARE_DT_FLOAT8_E4M3FN, 2, true, uint8_t, 0x38);
}

static void values__scalars_of_every_width_round_trip(void **state) {
    EXPECT(*state, "dtype: DT_INT8 int_val: -2", TARE_DT_INT8, 1, false, int8_t, -2);
    EXPECT(*state, "dtype: DT_UINT16 int_val: 65535", TARE_DT_UINT16, 1, false, uint16_t, 65535);
    EXPECT(*state, "dtype: DT_BOOL bool_val: true", TARE_DT_BOOL, 1, false, uint8_t, 1);
    EXPECT(*state, "dtype: DT_COMPLEX64 scomplex_val: [1, 2]", TARE_DT_COMPLEX64, 1, false, float, 1, 2);
    EXPECT(*state, "dtype: DT_FLOAT float_val: -0.0", TARE_DT_FLOAT, 1, false, float, -0.0f);
    EXPECT(*state, "dtype: DT_UINT64 uint64_val: 18446744073709551615", TARE_DT_UINT64, 1, false, uint64_t, UINT64_MAX);
}

static void values__complex_needs_pairs(void **state) {
    expect_failure(*state, "dtype: DT_COMPLEX64 scomplex_val: [1, 2, 3]", TARE_SHAPE,
                   "scomplex_val has 3 numbers (expected pairs)");
}

static void strings__in_full_filled_up_splat_and_none(void **state) {
    struct tare_tensor out = tensor(*state, "dtype: DT_STRING " TWO "string_val: ['a\\0b', '']");
    Tensorflow__TensorProto *written;
    assert_int_equal(TARE_DATA(struct tare_str, &out)[0].size, 3);
    assert_memory_equal(TARE_DATA(struct tare_str, &out)[0].data, "a\0b", 3);
    assert_int_equal(TARE_DATA(struct tare_str, &out)[1].size, 0);
    assert_int_equal(tare_tensor_to_message(&written, *state, &out, TARE_TENSOR_COPY), TARE_OK);
    assert_int_equal(written->n_string_val, 2);
    assert_memory_equal(written->string_val[0].data, "a\0b", 3);
    tare_tensor_reset(&out);

    out = tensor(*state, "dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: ['a', 'bc']");
    assert_false(out.splat);
    assert_memory_equal(TARE_DATA(struct tare_str, &out)[2].data, "bc", 2);
    tare_tensor_reset(&out);

    out = tensor(*state, "dtype: DT_STRING tensor_shape { dim { size: 3 } } string_val: 'a'");
    assert_true(out.splat);
    assert_int_equal(tare_tensor_to_message(&written, *state, &out, TARE_TENSOR_COPY), TARE_OK);
    assert_int_equal(written->n_string_val, 1);
    tare_tensor_reset(&out);

    out = tensor(*state, "dtype: DT_STRING tensor_shape { dim { size: 3 } }");
    assert_true(out.splat);
    assert_int_equal(TARE_DATA(struct tare_str, &out)[0].size, 0);
    tare_tensor_reset(&out);
    expect_failure(*state, "dtype: DT_STRING tensor_content: 'a'", TARE_UNSUPPORTED,
                   "a string tensor has tensor_content");
}

static void objects__only_empty_ones(void **state) {
    struct tare_tensor out = tensor(*state, "dtype: DT_RESOURCE tensor_shape { dim { size: 0 } }");
    assert_int_equal(out.elements, 0);
    tare_tensor_reset(&out);
    expect_failure(*state, "dtype: DT_RESOURCE resource_handle_val { name: 'v' }", TARE_UNSUPPORTED,
                   "a resource tensor cannot be read from a message");
    expect_failure(*state, "dtype: DT_VARIANT tensor_shape { }", TARE_UNSUPPORTED,
                   "a variant tensor cannot be read from a message");
}

static void shapes__that_are_refused(void **state) {
    char many[512] = "dtype: DT_FLOAT tensor_shape {";
    expect_failure(*state, "dtype: DT_FLOAT tensor_shape { dim { size: -2 } }", TARE_SHAPE,
                   "dimension 0 is negative (got -2)");
    expect_failure(*state, "dtype: DT_FLOAT tensor_shape { dim { size: -1 } }", TARE_SHAPE, "shape [?] is not known");
    expect_failure(*state, "dtype: DT_FLOAT tensor_shape { unknown_rank: true }", TARE_SHAPE,
                   "shape <unknown> is not known");
    expect_failure(*state, "dtype: DT_FLOAT tensor_shape { unknown_rank: true dim { size: 1 } }", TARE_SHAPE,
                   "a shape of unknown rank has 1 dims (expected none)");
    expect_failure(*state, "dtype: DT_FLOAT tensor_shape { dim { size: 4294967296 } dim { size: 4294967296 } }",
                   TARE_SHAPE, "shape [4294967296,4294967296] has too many elements");
    expect_failure(*state, "dtype: DT_FLOAT tensor_shape { dim { size: 4611686018427387904 } }", TARE_SHAPE,
                   "shape [4611686018427387904] has too many elements");
    expect_failure(*state, "dtype: DT_COMPLEX128 tensor_shape { dim { size: 288230376151711744 } }", TARE_SHAPE,
                   "a tensor of 288230376151711744 elements is too large");
    for (int i = 0; i < 13; i++)
        strcat(many, " dim { size: 1 }");
    strcat(many, " }");
    expect_failure(*state, many, TARE_SHAPE, "a shape has rank 13 (expected at most 12)");
}

static void dtypes__that_are_refused(void **state) {
    expect_failure(*state, "dtype: 77", TARE_TYPE, "dtype 77 is not a tensor dtype");
    expect_failure(*state, "dtype: DT_FLOAT_REF", TARE_TYPE, "float32_ref is not a tensor dtype");
    expect_failure(*state, "", TARE_TYPE, "dtype 0 is not a tensor dtype");
}

static void written__content_scalar_and_splat(void **state) {
    struct tare_tensor out = tensor(*state, "dtype: DT_INT32 " TWO "int_val: [1, 2]");
    Tensorflow__TensorProto *written;
    assert_int_equal(tare_tensor_to_message(&written, *state, &out, TARE_TENSOR_BORROW), TARE_OK);
    assert_int_equal(written->tensor_content.len, 8);
    assert_ptr_equal(written->tensor_content.data, out.data);
    assert_int_equal(written->n_int_val, 0);
    tare_tensor_reset(&out);

    out = tensor(*state, "dtype: DT_INT32 " TWO "int_val: -3");
    assert_int_equal(tare_tensor_to_message(&written, *state, &out, TARE_TENSOR_COPY), TARE_OK);
    assert_int_equal(written->tensor_content.len, 0);
    assert_int_equal(written->n_int_val, 1);
    assert_int_equal(written->int_val[0], -3);
    assert_int_equal(written->tensor_shape->n_dim, 1);
    tare_tensor_reset(&out);
}

static void shapes__round_trip(void **state) {
    const struct tare_shape shapes[] = { tare_shape_scalar(), tare_shape_unknown(), tare_shape_make(3, 2, -1, 0) };
    for (size_t i = 0; i < 3; i++) {
        struct tare_shape back;
        Tensorflow__TensorShapeProto *made = tare_shape_to_message(*state, &shapes[i]);
        assert_int_equal(tare_shape_from_message(&back, made), TARE_OK);
        assert_true(tare_shape_equal(&back, &shapes[i]));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(content__wins_over_values),
        TEST(content__must_have_the_exact_size),
        TEST(content__int4_is_one_element_a_byte),
        TEST(content__is_borrowed_only_when_aligned),
        TEST(values__one_for_many_is_a_splat),
        TEST(values__one_for_one_is_no_splat),
        TEST(values__none_are_zeros),
        TEST(values__the_last_one_fills_up),
        TEST(values__beyond_the_elements_are_ignored),
        TEST(values__for_an_empty_tensor),
        TEST(values__expansion_is_bounded),
        TEST(values__every_numeric_dtype_from_its_field),
        TEST(values__half_and_bfloat16_are_bits_in_half_val),
        TEST(values__float8_is_bytes),
        TEST(values__scalars_of_every_width_round_trip),
        TEST(values__complex_needs_pairs),
        TEST(strings__in_full_filled_up_splat_and_none),
        TEST(objects__only_empty_ones),
        TEST(shapes__that_are_refused),
        TEST(dtypes__that_are_refused),
        TEST(written__content_scalar_and_splat),
        TEST(shapes__round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
