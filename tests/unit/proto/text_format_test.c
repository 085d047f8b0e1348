/* The text format: every way to write a message, every way to write a wrong one, and that writing reads back. */
#include "base/strbuf.h"
#include "base/alloc.h"
#include "proto/message.h"
#include "proto/tare/converter_options.pb-c.h"
#include "proto/tensorflow/object_graph.pb-c.h"
#include "proto/tensorflow/saved_model.pb-c.h"
#include "proto/text_format.h"
#include "support/text_writer.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

static void *read_as(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor, const char *text,
                     enum tare_text_mode mode) {
    ProtobufCMessage *message;
    /* Its own block without a NUL behind it, so that ASan sees a read past the end. */
    size_t size = strlen(text);
    char *copy = malloc(size ? size : 1);
    tare_status status;
    memcpy(copy, text, size);
    status = tare_text_format_read(&message, descriptor, arena, copy, size, mode, NULL);
    free(copy);
    if (status != TARE_OK) fail_msg("reading \"%s\": %s", text, tare_error_text());
    return message;
}

static void expect_failure(struct tare_arena *arena, const ProtobufCMessageDescriptor *descriptor, const char *text,
                           const char *expected) {
    ProtobufCMessage *message;
    tare_status status = tare_text_format_read(&message, descriptor, arena, text, strlen(text), TARE_TEXT_STRICT, NULL);
    assert_int_equal(status, TARE_INVALID_ARGUMENT);
    assert_null(message);
    assert_string_equal(tare_error_text(), expected);
}

static void expect_text(const void *message, const char *expected) {
    struct tare_strbuf out = { 0 };
    assert_int_equal(text_writer_put(&out, message), TARE_OK);
    assert_string_equal(tare_strbuf_text(&out), expected);
    tare_strbuf_free(&out);
}

static const ProtobufCMessageDescriptor *const options = &tare__converter_options__descriptor;
static const ProtobufCMessageDescriptor *const tensor = &tensorflow__tensor_proto__descriptor;

static void messages__braces_angles_and_optional_colons(void **state) {
    Tare__ConverterOptions *read =
        read_as(*state, options,
                "tpu_functions { function_alias: 'a' } tpu_functions: < concrete_function_name: \"b\" >\n"
                "batch_options: { num_batch_threads: 2 allowed_batch_sizes: 4, allowed_batch_sizes: 8; }",
                TARE_TEXT_STRICT);
    assert_int_equal(read->n_tpu_functions, 2);
    assert_int_equal(read->tpu_functions[0]->name_case, TARE__TPU_FUNCTION__NAME_FUNCTION_ALIAS);
    assert_string_equal(read->tpu_functions[1]->concrete_function_name, "b");
    assert_int_equal(read->batch_options[0]->n_allowed_batch_sizes, 2);
    assert_int_equal(read->batch_options[0]->allowed_batch_sizes[1], 8);
}

/* Editors may write one; it is not part of the line. */
static void byte_order_mark__is_skipped(void **state) {
    Tare__ConverterOptions *read = read_as(*state, options,
                                           "\xef\xbb\xbf"
                                           "batch_options { num_batch_threads: 2 }",
                                           TARE_TEXT_STRICT);
    assert_int_equal(read->batch_options[0]->num_batch_threads, 2);
    expect_failure(*state, options, "\xef\xbb\xbf}", "1:1: expected a name (got '}')");
    expect_failure(*state, options, "\xef\xbb", "1:1: expected a name (got byte 0xef)");
}

static void lists__of_scalars_and_of_messages(void **state) {
    Tare__ConverterOptions *read =
        read_as(*state, options,
                "tpu_functions: [{ function_alias: 'a' }, { function_alias: 'b' }]\n"
                "batch_options { allowed_batch_sizes: [1, 2,4] allowed_batch_sizes: [] allowed_batch_sizes: 8 }",
                TARE_TEXT_STRICT);
    assert_int_equal(read->n_tpu_functions, 2);
    assert_int_equal(read->batch_options[0]->n_allowed_batch_sizes, 4);
}

static void strings__escapes_quotes_and_neighbours(void **state) {
    Tensorflow__AttrValue *read = read_as(*state, &tensorflow__attr_value__descriptor,
                                          "s: \"a\\n\\t\\\\\\\"\\'\\?\\a\\b\\f\\v\\r\" '\\0\\101\\x41\\377\\xfFg' # c\n"
                                          " \"\\u00e9\\U0001F600\\ud83d\\ude00\"",
                                          TARE_TEXT_STRICT);
    static const char expected[] = "a\n\t\\\"'?\a\b\f\v\r\0AA\xff\xff"
                                   "g\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80";
    assert_int_equal(read->s.len, sizeof expected - 1);
    assert_memory_equal(read->s.data, expected, sizeof expected - 1);
}

static void numbers__decimal_hexadecimal_octal_and_signs(void **state) {
    Tensorflow__TensorProto *read =
        read_as(*state, tensor,
                "int_val: [10, -10, 0x1F, 017, - 5, -2147483648, 2147483647, -0x80000000]\n"
                "int64_val: [-9223372036854775808, 0x7fffffffffffffff] uint64_val: 18446744073709551615",
                TARE_TEXT_STRICT);
    const int32_t expected[] = { 10, -10, 31, 15, -5, INT32_MIN, INT32_MAX, INT32_MIN };
    assert_int_equal(read->n_int_val, 8);
    assert_memory_equal(read->int_val, expected, sizeof expected);
    assert_true(read->int64_val[0] == INT64_MIN && read->int64_val[1] == INT64_MAX);
    assert_true(read->uint64_val[0] == UINT64_MAX);
}

static void floats__every_spelling(void **state) {
    Tensorflow__TensorProto *read = read_as(
        *state, tensor, "float_val: [1, 1.5, .5, 1.0f, 2F, 1e-3, 1.5E+3f, -2.5, inf, -inf, Infinity, nan, -nan, 0.1]",
        TARE_TEXT_STRICT);
    const float expected[] = { 1, 1.5f, .5f, 1, 2, 1e-3f, 1500, -2.5f, INFINITY, -INFINITY, INFINITY };
    assert_int_equal(read->n_float_val, 14);
    assert_memory_equal(read->float_val, expected, sizeof expected);
    assert_true(isnan(read->float_val[11]) && isnan(read->float_val[12]));
    assert_true(read->float_val[13] == 0.1f);
}

static void bools__eight_spellings(void **state) {
    Tensorflow__TensorProto *read =
        read_as(*state, tensor, "bool_val: [true, True, t, 1, false, False, f, 0]", TARE_TEXT_STRICT);
    assert_int_equal(read->n_bool_val, 8);
    for (int i = 0; i < 8; i++)
        assert_int_equal(read->bool_val[i], i < 4);
}

static void enums__by_name_or_number(void **state) {
    Tare__ConverterOptions *read =
        read_as(*state, options, "io_shape_optimization: DISABLED bfloat16_optimization: 7", TARE_TEXT_STRICT);
    assert_int_equal(read->io_shape_optimization, TARE__CONVERTER_OPTIONS__STATE__DISABLED);
    assert_int_equal(read->bfloat16_optimization, 7);
    read = read_as(*state, options, "bfloat16_optimization: 2", TARE_TEXT_CLOSED);
    assert_int_equal(read->bfloat16_optimization, 2);
}

static void enums__closed_ones_take_only_their_values(void **state) {
    static const char *const numbers[] = { "7", "-1", "0x7fffffff", "-2147483648" };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ProtobufCMessage *message;
        char text[64], expected[128];
        snprintf(text, sizeof text, "bfloat16_optimization: %s", numbers[i]);
        snprintf(expected, sizeof expected, "1:24: State has no value '%s'; expected DEFAULT, ENABLED, DISABLED",
                 numbers[i]);
        assert_int_equal(tare_text_format_read(&message, options, *state, text, strlen(text), TARE_TEXT_CLOSED, NULL),
                         TARE_INVALID_ARGUMENT);
        assert_string_equal(tare_error_text(), expected);
        assert_int_equal(tare_text_format_read(&message, options, *state, text, strlen(text), TARE_TEXT_RELAXED, NULL),
                         TARE_INVALID_ARGUMENT);
        assert_string_equal(tare_error_text(), expected);
    }
}

static void any__is_expanded_when_the_message_is_known(void **state) {
    Tensorflow__CollectionDef *read = read_as(*state, &tensorflow__collection_def__descriptor,
                                              "any_list { value { [type.googleapis.com/tensorflow.AssetFileDef] "
                                              "{ filename: 'vocab.txt' } } }",
                                              TARE_TEXT_STRICT);
    Google__Protobuf__Any *any = read->any_list->value[0];
    assert_string_equal(any->type_url, "type.googleapis.com/tensorflow.AssetFileDef");
    assert_int_equal(any->value.len, 11);
    assert_memory_equal(any->value.data, "\x12\x09vocab.txt", 11);
    expect_failure(*state, &google__protobuf__any__descriptor, "[type.googleapis.com/a.B] { x: 1 }",
                   "1:1: 'type.googleapis.com/a.B' is not a known message type");
    expect_failure(*state, options, "[a.b]: 1", "1:1: ConverterOptions has no extensions");
}

static void relaxed__backslashes_and_equals_signs(void **state) {
    Tare__ConverterOptions *read =
        read_as(*state, options,
                " \\\n tpu_functions { \\\r\n function_alias = \"f\" \\\n } disable_default_optimizations=True \\ \\",
                TARE_TEXT_RELAXED);
    assert_string_equal(read->tpu_functions[0]->function_alias, "f");
    assert_true(read->disable_default_optimizations);
    expect_failure(*state, options, "disable_default_optimizations=True",
                   "1:30: expected ':' after 'disable_default_optimizations' (got '=')");
    expect_failure(*state, options, "\\\n", "1:1: expected a name (got '\\')");
}

static void relaxed__enumerators_in_quotes(void **state) {
    Tare__ConverterOptions *read = read_as(*state, options, "bfloat16_optimization: \"DISABLED\"", TARE_TEXT_RELAXED);
    ProtobufCMessage *message;
    assert_int_equal(read->bfloat16_optimization, TARE__CONVERTER_OPTIONS__STATE__DISABLED);
    assert_int_equal(
        tare_text_format_read(&message, options, *state, "bfloat16_optimization: 'OFF'", 28, TARE_TEXT_RELAXED, NULL),
        TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "1:24: State has no value 'OFF'; expected DEFAULT, ENABLED, DISABLED");
    expect_failure(*state, options, "bfloat16_optimization: 'DISABLED'",
                   "1:24: field 'bfloat16_optimization' of ConverterOptions takes a value of State (got a string)");
}

static Tensorflow__Quantization__QuantizationOptions *quantization(struct tare_arena *arena, const char *text) {
    return read_as(arena, &tensorflow__quantization__quantization_options__descriptor, text, TARE_TEXT_RELAXED);
}

static void quantization_options__the_documented_example(void **state) {
    Tare__ConverterOptions *read = read_as(*state, options,
                                           "tpu_functions { \\\n function_alias: \"tpu_func\" \\\n } \\\n"
                                           "external_feature_configs { \\\n quantization_options { \\\n"
                                           " signature_keys: \"serving_default\" \\\n representative_datasets: { \\\n"
                                           " key: \"serving_default\" \\\n value: { \\\n"
                                           " tfrecord_file_path: \"/tmp/data\" \\\n } \\\n } \\\n } \\\n } ",
                                           TARE_TEXT_RELAXED);
    Tensorflow__Quantization__QuantizationOptions *quantize = read->external_feature_configs[0]->quantization_options;
    assert_string_equal(quantize->signature_keys[0], "serving_default");
    assert_string_equal(quantize->representative_datasets[0]->key, "serving_default");
    assert_string_equal(quantize->representative_datasets[0]->value->tfrecord_file_path, "/tmp/data");
}

static void quantization_options__methods_of_every_layout(void **state) {
    Tensorflow__Quantization__QuantizationMethod *method =
        quantization(*state, "quantization_method { experimental_method: DYNAMIC_RANGE }")->quantization_method;
    assert_int_equal(method->experimental_method,
                     TENSORFLOW__QUANTIZATION__QUANTIZATION_METHOD__EXPERIMENTAL_METHOD__DYNAMIC_RANGE);
    method =
        quantization(*state, "quantization_method { preset_method: METHOD_STATIC_RANGE_INT8 }")->quantization_method;
    assert_int_equal(method->method_oneof_case,
                     TENSORFLOW__QUANTIZATION__QUANTIZATION_METHOD__METHOD_ONEOF_PRESET_METHOD);
    assert_int_equal(method->preset_method, 2);
    quantization(*state, "quantization_method { method: METHOD_UNSPECIFIED }");
    quantization(*state, "quantization_precision: PRECISION_W8A8");
    expect_failure(*state, &tensorflow__quantization__quantization_method__descriptor,
                   "experimental_method: STATIC_RANGE preset_method: METHOD_NO_QUANTIZE",
                   "1:35: fields 'experimental_method' and 'preset_method' of QuantizationMethod are both set (only "
                   "one of them may be)");
}

static void quantization_options__freeze_all_variables_as_bool_or_message(void **state) {
    Tensorflow__Quantization__QuantizationOptions *read = quantization(*state, "freeze_all_variables: false");
    assert_true(read->has_freeze_all_variables && !read->freeze_all_variables);
    read = quantization(*state, "freeze_all_variables { enabled: true }");
    assert_false(read->has_freeze_all_variables);
    assert_true(read->freeze_all_variables_message->enabled);
    assert_false(quantization(*state, "")->has_freeze_all_variables);
    expect_failure(*state, &tensorflow__quantization__quantization_options__descriptor,
                   "freeze_all_variables: true freeze_all_variables { enabled: true }",
                   "1:28: field 'freeze_all_variables' of QuantizationOptions is set twice");
}

static void quantization_options__other_older_and_newer_names(void **state) {
    Tensorflow__Quantization__QuantizationOptions *read = quantization(
        *state,
        "calibration_options { calibration_method: CALIBRATION_METHOD_HISTOGRAM_PERCENTILE calibration_parameters {"
        " initial_num_bins: 256 num_bins: 512 max_percentile: 99.9 } representative_datasets { tf_record { path: 'p' }"
        " signature_key: 's' } calibration_data_dir: 'd' force_regenerate_calibration_data: true }"
        "debugger_options { debugger_type: DEBUGGER_TYPE_WHOLE_MODEL log_dir_path: 'a' }"
        "debugger_config { unquantized_dump_model_path: 'b' }"
        "unit_wise_quantization_specs { unit { op_type: 'Conv2D' node_name: 'c.*' func_name: 'f' }"
        " quantization_method { preset_method: METHOD_NO_QUANTIZE } }"
        "unit_wise_quantization_spec { unit_type: UNIT_OP func_name: 'f' unit_name: 'u' quantization_component_spec {"
        " quantization_component: COMPONENT_WEIGHT tensor_type: TENSORTYPE_INT_4 } }"
        "unit_wise_quantization_precision { unit_type: UNIT_NODE quantization_precision: PRECISION_FULL }"
        "op_set: XLA tags: 'serve' min_num_elements_for_weights: 1024 enable_per_channel_quantization: true"
        " enable_two_input_tensors: true experimental_enable_tpu_model_support: true enable_legacy_weight_only: false"
        " force_graph_mode_calibration: true");
    assert_int_equal(read->calibration_options->calibration_parameters->initial_num_bins, 256);
    assert_int_equal(read->calibration_options->calibration_parameters->num_bins, 512);
    assert_string_equal(read->debugger_options->log_dir_path, "a");
    assert_string_equal(read->debugger_config->unquantized_dump_model_path, "b");
    assert_string_equal(read->unit_wise_quantization_specs[0]->unit[0]->node_name, "c.*");
    assert_int_equal(read->unit_wise_quantization_spec[0]->quantization_component_spec[0]->tensor_type, 1);
    assert_true(read->has_enable_legacy_weight_only && !read->enable_legacy_weight_only);
}

static void unknown_names__the_nearest_one_is_offered(void **state) {
    expect_failure(*state, options, "\n\n    tpu_function { }",
                   "3:5: ConverterOptions has no field 'tpu_function' (did you mean 'tpu_functions'?)");
    expect_failure(*state, options, "zebra: 1", "1:1: ConverterOptions has no field 'zebra'");
    expect_failure(
        *state, options, "io_shape_optimization: DISABLE",
        "1:24: State has no value 'DISABLE' (did you mean 'DISABLED'?); expected DEFAULT, ENABLED, DISABLED");
    /* TPU and GPU are as near. */
    expect_failure(*state, options, "xla_functions { device_type: CPU }",
                   "1:30: DeviceType has no value 'CPU'; expected DEVICE_TYPE_UNSPECIFIED, GPU, TPU");
    expect_failure(*state, options, "batch_options {\n  max_batch_sise: 4\n}",
                   "2:3: BatchOptions has no field 'max_batch_sise' (did you mean 'max_batch_size'?)");
}

static void wrong_values__say_the_place_and_what_is_wanted(void **state) {
    const ProtobufCMessageDescriptor *batch = &tare__batch_options__descriptor;
    expect_failure(*state, batch, "max_batch_size: 1.5",
                   "1:17: field 'max_batch_size' of BatchOptions takes an int32 (got '1.5')");
    expect_failure(*state, batch, "max_batch_size: \"8\"",
                   "1:17: field 'max_batch_size' of BatchOptions takes an int32 (got a string)");
    expect_failure(*state, batch, "max_batch_size { }", "1:16: expected ':' after 'max_batch_size' (got '{')");
    expect_failure(*state, batch, "max_batch_size: { }",
                   "1:17: field 'max_batch_size' of BatchOptions takes an int32 (got '{')");
    expect_failure(*state, batch, "max_batch_size: 2147483648",
                   "1:17: 2147483648 is out of range for field 'max_batch_size' of BatchOptions, an int32");
    expect_failure(*state, batch, "max_batch_size: -99999999999999999999",
                   "1:17: -99999999999999999999 is out of range for field 'max_batch_size' of BatchOptions, an int32");
    expect_failure(*state, tensor, "uint32_val: -1",
                   "1:13: -1 is out of range for field 'uint32_val' of TensorProto, a uint32");
    expect_failure(*state, tensor, "int_val: 08", "1:10: field 'int_val' of TensorProto takes an int32 (got '08')");
    expect_failure(*state, tensor, "float_val: 0x10",
                   "1:12: field 'float_val' of TensorProto takes a float (got '0x10')");
    expect_failure(*state, tensor, "float_val: one",
                   "1:12: field 'float_val' of TensorProto takes a float (got 'one')");
    expect_failure(*state, batch, "disable_large_batch_splitting: yes",
                   "1:32: field 'disable_large_batch_splitting' of BatchOptions takes a bool (got 'yes')");
    expect_failure(*state, options, "batch_options: 5",
                   "1:16: field 'batch_options' of ConverterOptions takes a message (got '5')");
    expect_failure(*state, &tare__tpu_function__descriptor, "function_alias: f",
                   "1:17: field 'function_alias' of TpuFunction takes a string (got 'f')");
    expect_failure(*state, options, "io_shape_optimization: 1.5",
                   "1:24: field 'io_shape_optimization' of ConverterOptions takes a value of State (got '1.5')");
    expect_failure(*state, batch, "max_batch_size: [1]",
                   "1:17: field 'max_batch_size' of BatchOptions takes one value (got a list)");
}

static void twice__singular_fields_and_oneofs(void **state) {
    expect_failure(*state, &tare__batch_options__descriptor, "max_batch_size: 0\nmax_batch_size: 0",
                   "2:1: field 'max_batch_size' of BatchOptions is set twice");
    expect_failure(*state, &tare__batch_options__descriptor, "experimental {} experimental {}",
                   "1:17: field 'experimental' of BatchOptions is set twice");
    expect_failure(*state, &tare__tpu_function__descriptor, "function_alias: 'f'\n  signature_name: 's'",
                   "2:3: fields 'function_alias' and 'signature_name' of TpuFunction are both set (only one of them "
                   "may be)");
}

static void syntax_errors__say_the_place(void **state) {
    expect_failure(*state, options, "batch_options {\n  max_batch_size: 1\n",
                   "1:15: the message is not closed (expected '}')");
    expect_failure(*state, options, "batch_options { >", "1:17: expected a name (got '>')");
    expect_failure(*state, options, "}", "1:1: expected a name (got '}')");
    expect_failure(*state, options, "tpu_functions { function_alias: 'ab\n' }",
                   "1:33: the string does not end on its line");
    expect_failure(*state, options, "tpu_functions { function_alias: \"ab",
                   "1:33: the string does not end on its line");
    expect_failure(*state, options, "tpu_functions { function_alias: \"a\\",
                   "1:33: the string does not end on its line");
    expect_failure(*state, options, "tpu_functions { function_alias: \"\\q\" }", "1:34: '\\q' is not an escape");
    expect_failure(*state, options, "tpu_functions { function_alias: \"\\xg\" }",
                   "1:34: '\\x' without hexadecimal digits");
    expect_failure(*state, options, "tpu_functions { function_alias: \"\\ud800\" }",
                   "1:34: '\\u' is not the escape of a character");
    expect_failure(*state, options, "tpu_functions { function_alias: \"a\\0b\" }",
                   "1:33: the string of field 'function_alias' of TpuFunction holds a NUL byte");
    expect_failure(*state, tensor, "int_val: [1 2]", "1:13: expected ',' or ']' in the list (got '2')");
    expect_failure(*state, tensor, "int_val: ", "1:10: expected a value (got end of text)");
    expect_failure(*state, tensor, "\x01", "1:1: expected a name (got byte 0x01)");
}

static void what__stands_before_the_place(void **state) {
    ProtobufCMessage *message;
    assert_int_equal(tare_text_format_read(&message, options, *state, "x", 1, TARE_TEXT_STRICT, "options.txt"),
                     TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "options.txt:1:1: ConverterOptions has no field 'x'");
}

static void nesting__a_hundred_levels_and_no_more(void **state) {
    char text[1024] = "";
    for (int i = 0; i < 99; i++)
        strcat(text, "args{");
    for (int i = 0; i < 99; i++)
        strcat(text, "}");
    read_as(*state, &tensorflow__full_type_def__descriptor, text, TARE_TEXT_STRICT);
    text[0] = '\0';
    for (int i = 0; i < 100; i++)
        strcat(text, "args{");
    expect_failure(*state, &tensorflow__full_type_def__descriptor, text, "1:500: messages are nested deeper than 100");
}

static void writer__lays_out_as_protobuf_does(void **state) {
    const char *text = "name: \"x\"\n"
                       "op: \"Const\"\n"
                       "input: \"a\"\n"
                       "input: \"^b\"\n"
                       "attr {\n"
                       "  key: \"value\"\n"
                       "  value {\n"
                       "    tensor {\n"
                       "      dtype: DT_FLOAT\n"
                       "      tensor_shape {\n"
                       "        dim {\n"
                       "          size: -1\n"
                       "        }\n"
                       "      }\n"
                       "      tensor_content: \"\\000\\001\\n\\\"\\'\\\\\\377\"\n"
                       "      float_val: 0.1\n"
                       "      float_val: 1e+20\n"
                       "      float_val: inf\n"
                       "      float_val: -0\n"
                       "      double_val: 0.1\n"
                       "      double_val: 3.141592653589793\n"
                       "      bool_val: true\n"
                       "      bool_val: false\n"
                       "    }\n"
                       "  }\n"
                       "}\n"
                       "attr {\n"
                       "  key: \"zero\"\n"
                       "  value {\n"
                       "    i: 0\n"
                       "  }\n"
                       "}\n";
    expect_text(read_as(*state, &tensorflow__node_def__descriptor, text, TARE_TEXT_STRICT), text);
}

static void writer__map_entries_show_default_keys_and_values(void **state) {
    const char *text = "resource_arg_unique_id {\n  key: 0\n  value: 0\n}\n";
    expect_text(read_as(*state, &tensorflow__function_def__descriptor, "resource_arg_unique_id { }", TARE_TEXT_STRICT),
                text);
}

static void writer__floats_read_back_to_the_same_bits(void **state) {
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t bits = i * 214013u * 7919u + 2531011u, back;
        Tensorflow__TensorProto message = TENSORFLOW__TENSOR_PROTO__INIT, *read;
        struct tare_strbuf out = { 0 };
        float value;
        memcpy(&value, &bits, 4);
        if (isnan(value)) continue;
        message.n_float_val = 1;
        message.float_val = &value;
        assert_int_equal(text_writer_put(&out, &message.base), TARE_OK);
        read = read_as(*state, tensor, tare_strbuf_text(&out), TARE_TEXT_STRICT);
        memcpy(&back, read->float_val, 4);
        assert_int_equal(back, bits);
        tare_strbuf_free(&out);
        tare_arena_reset(*state);
    }
}

static void writer__unknown_fields_and_values_read_back(void **state) {
    static const uint8_t data[] = { 0x08, 1, 0xf8, 0x07, 0xac, 0x02, 0x82, 0x08, 3, 'a', 0, 0xff, 0x8d, 0x08, 1, 2,
                                    3,    0, 0x91, 0x08, 1,    2,    3,    4,    5, 6,   7, 0,    0x82, 0x08, 0 };
    ProtobufCMessage *message;
    struct tare_strbuf out = { 0 };
    uint8_t *packed;
    size_t size;
    assert_int_equal(
        tare_message_unpack(&message, &tensorflow__version_def__descriptor, *state, data, sizeof data, "test"),
        TARE_OK);
    assert_int_equal(text_writer_put(&out, message), TARE_OK);
    assert_string_equal(tare_strbuf_text(&out), "producer: 1\n127: 300\n128: \"a\\000\\377\"\n129: 0x00030201\n"
                                                "130: 0x0007060504030201\n128: \"\"\n");
    message = read_as(*state, &tensorflow__version_def__descriptor, tare_strbuf_text(&out), TARE_TEXT_STRICT);
    assert_int_equal(tare_message_pack(&packed, &size, message), TARE_OK);
    assert_int_equal(size, sizeof data);
    assert_memory_equal(packed, data, size);
    tare_free(packed);
    tare_strbuf_free(&out);
}

static void writer__a_known_number_of_another_wire_type_reads_back(void **state) {
    const char *text = "producer: 3\n1: \"a\"\n2: 0x00000001\n";
    Tensorflow__VersionDef *read = read_as(*state, &tensorflow__version_def__descriptor, text, TARE_TEXT_STRICT);
    assert_int_equal(read->base.n_unknown_fields, 2);
    assert_int_equal(read->min_consumer, 0);
    expect_text(read, text);
    expect_failure(*state, &tensorflow__version_def__descriptor, "0: 1", "1:1: '0' is not a field number");
    expect_failure(*state, &tensorflow__version_def__descriptor, "9: x",
                   "1:4: unknown field 9 takes a whole number or a string (got 'x')");
}

static void mangled_text__never_crashes(void **state) {
    static const char text[] =
        "tpu_functions { function_alias: \"t\\x41\\u00e9\" 'p' } # c\nbatch_options <max_batch_size:"
        " 0x8, allowed_batch_sizes: [1, 2]; >\n"
        "external_feature_configs { quantization_options { freeze_all_variables { enabled: t } "
        "calibration_options { calibration_parameters { min_percentile: -1.5e-3f } } } }";
    ProtobufCMessage *message;
    char *copy = malloc(sizeof text - 1);
    int accepted = 0, refused = 0;
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (unsigned value = 0; value < 256; value++) {
            memcpy(copy, text, sizeof text - 1);
            copy[at] = (char)value;
            if (tare_text_format_read(&message, options, *state, copy, sizeof text - 1, TARE_TEXT_RELAXED, NULL) ==
                TARE_OK)
                accepted++;
            else
                refused++;
            tare_arena_reset(*state);
        }
    }
    free(copy);
    for (size_t cut = 0; cut < sizeof text; cut++) {
        copy = malloc(cut + !cut);
        memcpy(copy, text, cut);
        (void)!tare_text_format_read(&message, options, *state, copy, cut, TARE_TEXT_STRICT, NULL);
        free(copy);
    }
    assert_true(accepted > 1000 && refused > 1000);
}

static void memory__every_failing_allocation_is_reported(void **state) {
    const char *text = "tpu_functions { function_alias: 'f' } 77: 'abc' batch_options { allowed_batch_sizes: [1, 2] }";
    (void)state;
    for (int64_t n = 1; n < 100; n++) {
        struct tare_arena arena = { 0 };
        struct tare_strbuf out = { 0 };
        ProtobufCMessage *message = NULL;
        tare_status status;
        tare_alloc_fail_at(n);
        status = tare_text_format_read(&message, options, &arena, text, strlen(text), TARE_TEXT_STRICT, NULL);
        if (status == TARE_OK) status = text_writer_put(&out, message);
        tare_alloc_fail_at(0);
        tare_strbuf_free(&out);
        tare_arena_free(&arena);
        if (status == TARE_OK) {
            assert_true(n > 3);
            return;
        }
        assert_int_equal(status, TARE_NO_MEMORY);
    }
    fail();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(messages__braces_angles_and_optional_colons),
        TEST(byte_order_mark__is_skipped),
        TEST(lists__of_scalars_and_of_messages),
        TEST(strings__escapes_quotes_and_neighbours),
        TEST(numbers__decimal_hexadecimal_octal_and_signs),
        TEST(floats__every_spelling),
        TEST(bools__eight_spellings),
        TEST(enums__by_name_or_number),
        TEST(enums__closed_ones_take_only_their_values),
        TEST(any__is_expanded_when_the_message_is_known),
        TEST(relaxed__backslashes_and_equals_signs),
        TEST(relaxed__enumerators_in_quotes),
        TEST(quantization_options__the_documented_example),
        TEST(quantization_options__methods_of_every_layout),
        TEST(quantization_options__freeze_all_variables_as_bool_or_message),
        TEST(quantization_options__other_older_and_newer_names),
        TEST(unknown_names__the_nearest_one_is_offered),
        TEST(wrong_values__say_the_place_and_what_is_wanted),
        TEST(twice__singular_fields_and_oneofs),
        TEST(syntax_errors__say_the_place),
        TEST(what__stands_before_the_place),
        TEST(nesting__a_hundred_levels_and_no_more),
        TEST(writer__lays_out_as_protobuf_does),
        TEST(writer__map_entries_show_default_keys_and_values),
        TEST(writer__floats_read_back_to_the_same_bits),
        TEST(writer__unknown_fields_and_values_read_back),
        TEST(writer__a_known_number_of_another_wire_type_reads_back),
        TEST(mangled_text__never_crashes),
        TEST(memory__every_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
