/* Python values as Python writes them. Expected texts follow Python's repr and str, and TensorFlow's TypeSpec. */
#include "convert/structured.h"
#include "base/strbuf.h"
#include "proto/text_format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

typedef void write(struct tare_strbuf *out, const Tensorflow__StructuredValue *value);

static void check(write *put, const char *text, const char *expected) {
    struct tare_arena arena = { 0 };
    struct tare_strbuf out = { 0 };
    ProtobufCMessage *message;
    if (tare_text_format_read(&message, &tensorflow__structured_value__descriptor, &arena, text, strlen(text),
                              TARE_TEXT_STRICT, "value") != TARE_OK)
        fail_msg("%s", tare_error_text());
    put(&out, (const Tensorflow__StructuredValue *)message);
    assert_string_equal(tare_strbuf_text(&out), expected);
    tare_strbuf_free(&out);
    tare_arena_free(&arena);
}

static void repr__of_plain_values(void **state) {
    (void)state;
    check(tare_structured_repr, "none_value { }", "None");
    check(tare_structured_repr, "", "None");
    check(tare_structured_repr, "bool_value: true", "True");
    check(tare_structured_repr, "int64_value: -9223372036854775808", "-9223372036854775808");
    check(tare_structured_repr, "float64_value: 2", "2.0");
    check(tare_structured_repr, "float64_value: 0.1", "0.1");
    check(tare_structured_repr, "float64_value: 1e-5", "1e-05");
    check(tare_structured_repr, "float64_value: 1e15", "1000000000000000.0");
    check(tare_structured_repr, "float64_value: 1e16", "1e+16");
    check(tare_structured_repr, "float64_value: 0.30000000000000004", "0.30000000000000004");
    check(tare_structured_repr, "float64_value: -inf", "-inf");
    check(tare_structured_repr, "string_value: 'a\\'b\\n'", "\"a'b\\n\"");
    check(tare_structured_repr, "string_value: 'plain'", "'plain'");
    check(tare_structured_repr, "tensor_dtype_value: DT_BFLOAT16", "tf.bfloat16");
    check(tare_structured_repr, "tensor_shape_value { dim { size: 3 } dim { size: -1 } }", "TensorShape([3, None])");
    check(tare_structured_repr, "tensor_shape_value { unknown_rank: true }", "TensorShape(None)");
}

static void str__drops_quotes_and_names(void **state) {
    (void)state;
    check(tare_structured_str, "string_value: 'plain'", "plain");
    check(tare_structured_str, "tensor_dtype_value: DT_FLOAT", "<dtype: 'float32'>");
    check(tare_structured_str, "tensor_shape_value { dim { size: 3 } }", "(3,)");
    check(tare_structured_str, "list_value { values { string_value: 'a' } }", "['a']");
}

static void repr__of_nests(void **state) {
    (void)state;
    check(tare_structured_repr, "tuple_value { }", "()");
    check(tare_structured_repr, "tuple_value { values { int64_value: 1 } }", "(1,)");
    check(tare_structured_repr, "list_value { values { int64_value: 1 } values { tuple_value { } } }", "[1, ()]");
    check(tare_structured_repr, "dict_value { fields { key: 'b' value { int64_value: 2 } } fields { key: 'a' } }",
          "{'a': None, 'b': 2}");
    check(tare_structured_repr, "named_tuple_value { name: 'Pair' values { key: 'x' value { bool_value: false } } }",
          "Pair(x=False)");
}

static void repr__of_specs(void **state) {
    (void)state;
    check(tare_structured_repr, "tensor_spec_value { name: 'x' shape { dim { size: -1 } } dtype: DT_INT64 }",
          "TensorSpec(shape=(None,), dtype=tf.int64, name='x')");
    check(tare_structured_repr, "tensor_spec_value { shape { unknown_rank: true } dtype: DT_STRING }",
          "TensorSpec(shape=<unknown>, dtype=tf.string, name=None)");
    check(tare_structured_repr,
          "type_spec_value { type_spec_class: RAGGED_TENSOR_SPEC type_state { tuple_value { "
          "values { tensor_shape_value { dim { size: -1 } dim { size: -1 } } } values { tensor_dtype_value: DT_FLOAT } "
          "values { int64_value: 1 } values { tensor_dtype_value: DT_INT64 } } } }",
          "RaggedTensorSpec(TensorShape([None, None]), tf.float32, 1, tf.int64)");
    check(tare_structured_repr,
          "type_spec_value { type_spec_class: EXTENSION_TYPE_SPEC type_spec_class_name: 'MaskedSpec' "
          "type_state { tuple_value { values { bool_value: true } } } }",
          "MaskedSpec(True,)");
}

static void spec__is_a_line_or_a_nest_with_markers(void **state) {
    (void)state;
    check(tare_structured_spec, "tensor_spec_value { shape { dim { size: 2 } dim { size: -1 } } dtype: DT_HALF }",
          "float16 Tensor, shape=(2, None)");
    check(tare_structured_spec, "int64_value: 5", "5");
    check(tare_structured_spec,
          "tuple_value { values { tensor_spec_value { dtype: DT_BOOL } } values { list_value { "
          "values { string_value: 'n' } values { tensor_spec_value { dtype: DT_FLOAT shape { unknown_rank: true } } } "
          "} } }",
          "(<1>, [<2>, <3>])\n      <1>: bool Tensor, shape=()\n      <2>: 'n'\n      <3>: float32 Tensor, "
          "shape=<unknown>");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repr__of_plain_values),
        cmocka_unit_test(str__drops_quotes_and_names),
        cmocka_unit_test(repr__of_nests),
        cmocka_unit_test(repr__of_specs),
        cmocka_unit_test(spec__is_a_line_or_a_nest_with_markers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
