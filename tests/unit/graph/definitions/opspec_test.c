/* The registration grammar: what parses, to what, and what is refused with which words. */
#include "base/strbuf.h"
#include "graph/attr_text.h"
#include "graph/definitions/opspec.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct tare_opspec_memory memory;

static int tear_down(void **state) {
    (void)state;
    tare_opspec_memory_free(&memory);
    return 0;
}

static struct tare_op_def *parse(const char *inputs, const char *outputs, const char *attrs) {
    const struct tare_op row = { .name = "Foo", .inputs = inputs, .outputs = outputs, .attrs = attrs };
    struct tare_op_def *def;
    if (tare_opspec_parse(&def, &memory, &row) != TARE_OK) fail_msg("%s", tare_error_text());
    return def;
}

static void expect_fault(const char *inputs, const char *outputs, const char *attrs, const char *text) {
    const struct tare_op row = { .name = "Foo", .inputs = inputs, .outputs = outputs, .attrs = attrs };
    struct tare_op_def *def;
    if (tare_opspec_parse(&def, &memory, &row) == TARE_OK) fail_msg("parsed (expected: %s)", text);
    assert_string_equal(tare_error_text(), text);
}

/* "kind {allowed} >= minimum = default" of the first attribute. */
static void expect_attr(const char *attrs, const char *expected) {
    const struct tare_op_attr *attr = &parse(NULL, NULL, attrs)->attrs[0];
    struct tare_strbuf text = { 0 };
    tare_strbuf_puts(&text, tare_attr_kind_name(attr->kind, attr->is_list));
    if (attr->allowed) {
        tare_strbuf_puts(&text, " of ");
        tare_attr_print(&text, attr->allowed);
    }
    if (attr->has_minimum) tare_strbuf_printf(&text, " >= %lld", (long long)attr->minimum);
    if (attr->default_value) {
        tare_strbuf_puts(&text, " = ");
        tare_attr_print(&text, attr->default_value);
    }
    assert_string_equal(tare_strbuf_text(&text), expected);
    tare_strbuf_free(&text);
}

static void attr__every_kind(void **state) {
    (void)state;
    expect_attr("a: string", "string");
    expect_attr("a: int", "int");
    expect_attr("a: float", "float");
    expect_attr("a: bool", "bool");
    expect_attr("a: type", "type");
    expect_attr("a: shape", "shape");
    expect_attr("a: tensor", "tensor");
    expect_attr("a: func", "func");
    expect_attr("a: any", "any");
    expect_attr("a: list(string)", "list(string)");
    expect_attr("  a  :  list ( int )  ", "list(int)");
}

static void attr__sets_of_values(void **state) {
    (void)state;
    expect_attr("a: {'apple', \"orange\"}", "string of [\"apple\", \"orange\"]");
    expect_attr("a: { 'a;b', 'c' , }", "string of [\"a;b\", \"c\"]");
    expect_attr("a: {int32, float, bool}", "type of [int32, float, bool]");
    expect_attr("a: {half, float16, float32, double, float64}", "type of [half, half, float, double, double]");
    expect_attr("a: quantizedtype", "type of [qint8, quint8, qint32, qint16, quint16]");
    expect_attr("a: realnumbertype",
                "type of [float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64]");
    expect_attr("a: {quantizedtype, bool}", "type of [qint8, quint8, qint32, qint16, quint16, bool]");
    assert_int_equal(parse(NULL, NULL, "a: numbertype")->attrs[0].allowed->count, 19);
    assert_int_equal(parse(NULL, NULL, "a: numerictype")->attrs[0].allowed->count, 19);
    expect_attr("a: list({int32, float}) >= 3", "list(type) of [int32, float] >= 3");
}

static void attr__minimum_and_default(void **state) {
    (void)state;
    expect_attr("a: int >= 2", "int >= 2");
    expect_attr("a: int >= -5 = -3", "int >= -5 = -3");
    expect_attr("i: int >= 1 = 1", "int >= 1 = 1");
    expect_attr("s: string = 'foo'", "string = \"foo\"");
    expect_attr("s: string = 'a;b\\n\\x41\\101\"'", "string = \"a;b\\nAA\\\"\"");
    expect_attr("s: string = 'a' \"b\"", "string = \"ab\"");
    expect_attr("f: float = 1.0", "float = 1");
    expect_attr("f: float = -1e-05", "float = -9.99999975e-06");
    expect_attr("b: bool = true", "bool = true");
    expect_attr("ty: type = DT_INT32", "type = int32");
    expect_attr("ty: {float, int32} = DT_FLOAT", "type of [float, int32] = float");
    expect_attr("sh: shape = { dim { size: 1 } dim { size: 2 } }", "shape = [1,2]");
    expect_attr("sh: shape = { dim: < size: -1 >; dim { size: 0x10 } }", "shape = [?,16]");
    expect_attr("sh: shape = { unknown_rank: true }", "shape = <unknown>");
    expect_attr("te: tensor = { dtype: DT_INT32 int_val: 5 }", "tensor = Tensor<type: int32 shape: []>");
    expect_attr("fn: func = { name: 'f' }", "func = f");
    expect_attr("l: list(int) = []", "list(int) = []");
    expect_attr("l: list(int) >= 2 = [2, 3, 5, 7]", "list(int) >= 2 = [2, 3, 5, 7]");
    expect_attr("l: list(string) = ['a', \"b\"]", "list(string) = [\"a\", \"b\"]");
    expect_attr("l: list(shape) = [{ dim { size: 1 } }, { unknown_rank: true }]", "list(shape) = [[1], <unknown>]");
    expect_attr("l: list(type) = [DT_FLOAT, DT_INT32_REF]", "list(type) = [float, int32_ref]");
    expect_attr("l: list(bool) = [true, false]", "list(bool) = [true, false]");
    assert_true(isinf(parse(NULL, NULL, "f: float = -inf")->attrs[0].default_value->items[0].f));
}

static void attr__tensor_and_function_defaults_hold_values(void **state) {
    const struct tare_attr *value;
    const struct tare_tensor *tensor;
    (void)state;
    value = parse(NULL, NULL, "t: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [1.5, -2] }")
                ->attrs[0]
                .default_value;
    tensor = value->items[0].tensor;
    assert_int_equal(tensor->elements, 3);
    assert_float_equal(TARE_CONST_DATA(float, tensor)[0], 1.5, 0);
    assert_float_equal(TARE_CONST_DATA(float, tensor)[1], -2, 0);
    assert_float_equal(TARE_CONST_DATA(float, tensor)[2], -2, 0); /* the last one repeats */
    value =
        parse(NULL, NULL,
              "t: tensor = { dtype: DT_INT16 tensor_shape { dim { size: 2 } } tensor_content: '\\001\\000\\377\\377' }")
            ->attrs[0]
            .default_value;
    assert_int_equal(TARE_CONST_DATA(int16_t, value->items[0].tensor)[0], 1);
    assert_int_equal(TARE_CONST_DATA(int16_t, value->items[0].tensor)[1], -1);
    value = parse(NULL, NULL, "t: tensor = { dtype: DT_STRING string_val: 'x\\000y' }")->attrs[0].default_value;
    assert_int_equal(TARE_CONST_DATA(struct tare_str, value->items[0].tensor)[0].size, 3);
    value = parse(NULL, NULL,
                  "f: func = { name: 'g' attr { key: 'T' value { type: DT_FLOAT } } attr { key: 'n' value { list { i: "
                  "1 i: 2 } } } }")
                ->attrs[0]
                .default_value;
    assert_string_equal(value->items[0].func.name, "g");
    assert_int_equal(value->items[0].func.own->count, 2);
    assert_int_equal(value->items[0].func.own->attrs[0].items[0].type, TARE_DT_FLOAT);
    assert_int_equal(value->items[0].func.own->attrs[1].count, 2);
}

static void args__every_form(void **state) {
    const struct tare_op_def *def =
        parse("a: T, b: N * T, c: Ref(T), d: L, e: int32, f: N*float, g: Ref(string), h: float_ref, i: Ref(N * T)",
              "out: L", "T: type; N: int; L: list(type)");
    (void)state;
    assert_int_equal(def->n_inputs, 9);
    assert_string_equal(def->inputs[0].type_attr, "T");
    assert_string_equal(def->inputs[1].number_attr, "N");
    assert_string_equal(def->inputs[1].type_attr, "T");
    assert_true(def->inputs[2].is_ref);
    assert_string_equal(def->inputs[3].type_list_attr, "L");
    assert_int_equal(def->inputs[4].dtype, TARE_DT_INT32);
    assert_string_equal(def->inputs[5].number_attr, "N");
    assert_int_equal(def->inputs[5].dtype, TARE_DT_FLOAT);
    assert_true(def->inputs[6].is_ref && def->inputs[6].dtype == TARE_DT_STRING);
    assert_true(def->inputs[7].is_ref && def->inputs[7].dtype == TARE_DT_FLOAT);
    assert_true(def->inputs[8].is_ref && def->inputs[8].number_attr);
}

static void args__imply_minima_and_state(void **state) {
    const struct tare_op_def *def = parse("a: N * float, b: L", NULL, "N: int; L: list(type); M: int");
    (void)state;
    assert_true(def->attrs[0].has_minimum && def->attrs[0].minimum == 1);
    assert_true(def->attrs[1].has_minimum && def->attrs[1].minimum == 1);
    assert_false(def->attrs[2].has_minimum);
    assert_false(def->is_stateful);
    def = parse("a: L", NULL, "L: list(type) >= 0");
    assert_int_equal(def->attrs[0].minimum, 0);
    assert_true(parse("a: resource", NULL, NULL)->is_stateful);
    assert_true(parse(NULL, "a: resource", NULL)->is_stateful);
}

static void attr_faults__say_what_and_where(void **state) {
    (void)state;
    expect_fault(NULL, NULL, "a int",
                 "Trouble parsing '<name>:' from Attr(\"a int\") for Op Foo (at character 1 of \"a int\")");
    expect_fault(
        NULL, NULL, "a: foo",
        "Trouble parsing type string at 'foo' from Attr(\"a: foo\") for Op Foo (at character 4 of \"a: foo\")");
    expect_fault(
        NULL, NULL, "b: int; a: {foo}",
        "Unrecognized type string 'foo' from Attr(\"a: {foo}\") for Op Foo (at character 13 of \"b: int; a: {foo}\")");
    expect_fault(NULL, NULL, "a: {int32 float}",
                 "Expected , or } after types in list, not: 'float}' from Attr(\"a: {int32 float}\") for Op Foo (at "
                 "character 11 of \"a: {int32 float}\")");
    expect_fault(NULL, NULL, "a: {'x' 'y'}",
                 "Expected , or } after strings in list, not: ''y'}' from Attr(\"a: {'x' 'y'}\") for Op Foo (at "
                 "character 9 of \"a: {'x' 'y'}\")");
    expect_fault(NULL, NULL, "a: {'x', y}",
                 "Trouble parsing allowed string at 'y}' from Attr(\"a: {'x', y}\") for Op Foo (at character 10 of "
                 "\"a: {'x', y}\")");
    expect_fault(NULL, NULL, "a: list(int",
                 "Expected ) to close 'list(', not: '' from Attr(\"a: list(int\") for Op Foo (at character 12 of \"a: "
                 "list(int\")");
    expect_fault(NULL, NULL, "a: int >= x",
                 "Could not parse integer lower limit after '>=', found 'x' instead from Attr(\"a: int >= x\") for Op "
                 "Foo (at character 11 of \"a: int >= x\")");
    expect_fault(NULL, NULL, "a: int = 'x'",
                 "Could not parse default value ''x'' from Attr(\"a: int = 'x'\") for Op Foo (at character 10 of \"a: "
                 "int = 'x'\")");
    expect_fault(NULL, NULL, "a: int32",
                 "Extra '32' unparsed at the end from Attr(\"a: int32\") for Op Foo (at character 7 of \"a: int32\")");
    expect_fault(NULL, NULL, "a: float >= 2",
                 "Extra '>= 2' unparsed at the end from Attr(\"a: float >= 2\") for Op Foo (at character 10 of \"a: "
                 "float >= 2\")");
}

static void default_faults__of_every_kind(void **state) {
    static const char *const bad[] = {
        "a: int = 1.5",
        "a: int = 99999999999999999999",
        "a: float = x",
        "a: bool = yes",
        "a: type = DT_FOO",
        "a: string = foo",
        "a: string = 'x",
        "a: string = '\\q'",
        "a: list(int) = [1",
        "a: list(int) = [1,]",
        "a: list(int) = 1",
        "a: shape = { dim { size: -2 } }",
        "a: shape = { dm { } }",
        "a: shape = {",
        "a: tensor = { dtype: DT_INT32 int_val: 'x' }",
        "a: tensor = { int_val: 1 }",
        "a: tensor = { dtype: DT_INT32 tensor_shape { dim { size: 99999999 } } }",
        "a: func = 'f'",
        "a: any = 1",
        "a: int = 1 2",
        "a: tensor = { dtype: DT_INT32 int_val: 1 int_val: 2 }",
        "a: shape = {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct tare_op row = { .name = "Foo", .attrs = bad[i] };
        struct tare_op_def *def;
        if (tare_opspec_parse(&def, &memory, &row) == TARE_OK) fail_msg("parsed: %s", bad[i]);
        if (!strstr(tare_error_text(), "Could not parse default value")) fail_msg("%s: %s", bad[i], tare_error_text());
    }
}

static void arg_faults__say_what_and_where(void **state) {
    (void)state;
    expect_fault("a float", NULL, NULL,
                 "Trouble parsing 'name:' from Input(\"a float\") for Op Foo (at character 1 of \"a float\")");
    expect_fault("A: float", NULL, NULL,
                 "Trouble parsing 'name:' from Input(\"A: float\") for Op Foo (at character 1 of \"A: float\")");
    expect_fault("a: 7", NULL, NULL,
                 "Trouble parsing either a type or an attr name at '7' from Input(\"a: 7\") for Op Foo (at character 4 "
                 "of \"a: 7\")");
    expect_fault(
        "x: float, a: T", NULL, NULL,
        "Reference to unknown attr 'T' from Input(\"a: T\") for Op Foo (at character 14 of \"x: float, a: T\")");
    expect_fault(NULL, "a: N", "N: int",
                 "Reference to attr 'N' with type int that isn't type or list(type) from Output(\"a: N\") for Op Foo "
                 "(at character 4 of \"a: N\")");
    expect_fault("a: Ref(float", NULL, NULL,
                 "Did not find closing ')' for 'Ref(', instead found: '' from Input(\"a: Ref(float\") for Op Foo (at "
                 "character 13 of \"a: Ref(float\")");
    expect_fault(
        "a: float b", NULL, NULL,
        "Extra 'b' unparsed at the end from Input(\"a: float b\") for Op Foo (at character 10 of \"a: float b\")");
}

/* A registration gives each item in a string of its own: positions count within it, and one string holds one item. */
static void items__one_a_string(void **state) {
    const char *attrs[] = { "T: {float, int32} = DT_INT32", " preserve_index : int >= 0 = 0 " };
    const char *inputs[] = { "to_zero: T" }, *outputs[] = { "zeroed: T" };
    const char *two[] = { "b: int", "a: int; c: int" }, *unknown[] = { "x: int32", "  y: U" },
               *pair[] = { "x: T, y: T" };
    struct tare_opspec_source source = {
        .name = "ZeroOut", .attrs = { attrs, 2, 0 }, .inputs = { inputs, 1, 0 }, .outputs = { outputs, 1, 0 }
    };
    struct tare_op_def *def;
    (void)state;
    if (tare_opspec_parse_items(&def, &memory, &source) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_null(def->row);
    assert_int_equal(def->n_attrs, 2);
    assert_string_equal(def->attrs[1].name, "preserve_index");
    assert_int_equal(def->attrs[1].default_value->items[0].i, 0);
    assert_string_equal(def->inputs[0].type_attr, "T");
    source.attrs = (struct tare_opspec_items){ two, 2, 0 };
    assert_int_equal(tare_opspec_parse_items(&def, &memory, &source), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "Extra '; c: int' unparsed at the end from Attr(\"a: int; c: int\") for Op "
                                           "ZeroOut (at character 7 of \"a: int; c: int\")");
    source.attrs = (struct tare_opspec_items){ attrs, 1, 0 };
    source.outputs = (struct tare_opspec_items){ unknown, 2, 0 };
    assert_int_equal(tare_opspec_parse_items(&def, &memory, &source), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "Reference to unknown attr 'U' from Output(\"  y: U\") for Op ZeroOut (at "
                                           "character 6 of \"  y: U\")");
    source.inputs = (struct tare_opspec_items){ pair, 1, 0 };
    assert_int_equal(tare_opspec_parse_items(&def, &memory, &source), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "Extra ', y: T' unparsed at the end from Input(\"x: T, y: T\") for Op "
                                           "ZeroOut (at character 5 of \"x: T, y: T\")");
}

/* ---- writing ---- */

static void expect_printed(const char *attrs, const char *expected) {
    struct tare_strbuf text = { 0 };
    tare_opspec_print_attr(&text, &parse(NULL, NULL, attrs)->attrs[0]);
    assert_string_equal(tare_strbuf_text(&text), expected);
    tare_strbuf_free(&text);
}

static void print__is_the_registration(void **state) {
    struct tare_strbuf text = { 0 };
    const struct tare_op_def *def = parse("a: T, b: N * T, c: Ref(T), d: L, e: int32, f: N*float, i: Ref(N * T)", NULL,
                                          "T: type; N: int; L: list(type)");
    (void)state;
    for (size_t i = 0; i < def->n_inputs; i++) {
        if (i) tare_strbuf_puts(&text, ", ");
        tare_opspec_print_arg(&text, &def->inputs[i]);
    }
    assert_string_equal(tare_strbuf_text(&text),
                        "a: T, b: N * T, c: Ref(T), d: L, e: int32, f: N * float, i: Ref(N * T)");
    tare_strbuf_free(&text);
    expect_printed("a:{'apple','orange'}='apple'", "a: {\"apple\", \"orange\"} = \"apple\"");
    expect_printed("a: list({int32,float})>=3", "a: list({int32, float}) >= 3");
    expect_printed("ty: type = DT_INT32", "ty: type = DT_INT32");
    expect_printed("sh: shape = { dim { size: 1 } dim { size: -1 } }",
                   "sh: shape = { dim { size: 1 } dim { size: -1 } }");
    expect_printed("sh: shape = { unknown_rank: true }", "sh: shape = { unknown_rank: true }");
    expect_printed("te: tensor = { dtype: DT_INT32 int_val: 5 }", "te: tensor = { dtype: DT_INT32 int_val: 5 }");
    expect_printed("l: list(float) = [1, -2.5, inf]", "l: list(float) = [1, -2.5, inf]");
    expect_printed("s: string = 'a\\n\"b\\001'", "s: string = \"a\\n\\\"b\\001\"");
}

/* What is written reads as the same definition. */
static void print__reads_again(void **state) {
    static const char *const specs[] = {
        "s: string = 'foo'",
        "i: int = 0",
        "f: float = 1.0",
        "f: float = -1e-05",
        "b: bool = true",
        "t: {half, bfloat16, qint8} = DT_HALF",
        "l: list({'a', 'b;c'}) >= 1 = ['b;c', 'a']",
        "l: list(int) = []",
        "l: list(bool) = [true, false]",
        "l: list(type) = [DT_FLOAT, DT_INT32_REF]",
        "l: list(shape) = [{ dim { size: 1 } }, { unknown_rank: true }, { }]",
        "te: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } float_val: [1.5, -2, inf] }",
        "te: tensor = { dtype: DT_FLOAT tensor_shape { dim { size: 2 } } float_val: [nan, 1] }",
        "te: tensor = { dtype: DT_INT64 tensor_shape { dim { size: 40 } } int64_val: -9223372036854775807 }",
        "te: tensor = { dtype: DT_STRING tensor_shape { dim { size: 2 } } string_val: ['x\\000y', ''] }",
        "te: tensor = { dtype: DT_HALF half_val: 15360 }",
        "te: tensor = { dtype: DT_BOOL bool_val: true }",
        "te: tensor = { dtype: DT_INT32 tensor_shape { dim { size: 0 } } }",
        "te: list(tensor) = [{ dtype: DT_DOUBLE double_val: 0.1 }]",
        ("f: func = { name: 'g' attr { key: 'T' value { type: DT_FLOAT } } "
         "attr { key: 'n' value { list { i: 1 i: 2 } } } }"),
        "a: any",
        "i: int >= -5 = -3",
    };
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const struct tare_op_attr *first = &parse(NULL, NULL, specs[i])->attrs[0], *second;
        struct tare_strbuf text = { 0 };
        tare_opspec_print_attr(&text, first);
        second = &parse(NULL, NULL, tare_strbuf_text(&text))->attrs[0];
        if (first->kind != second->kind || first->is_list != second->is_list || first->minimum != second->minimum ||
            first->has_minimum != second->has_minimum || !first->allowed != !second->allowed ||
            (first->allowed && !tare_attr_equal(first->allowed, second->allowed)) ||
            !first->default_value != !second->default_value ||
            (first->default_value && !tare_attr_equal(first->default_value, second->default_value)))
            fail_msg("%s was written as %s", specs[i], tare_strbuf_text(&text));
        tare_strbuf_free(&text);
    }
}

static void definition_faults(void **state) {
    const struct tare_op lower = { .name = "foo" }, spaced = { .name = "Addons>Foo" }, internal = { .name = "_Foo" };
    struct tare_op_def *def;
    (void)state;
    expect_fault("a: float, a: float", NULL, NULL, "Duplicate name: a; in OpDef: Foo");
    expect_fault("a: float", NULL, "a: int", "Duplicate name: a; in OpDef: Foo");
    expect_fault(NULL, NULL, "float: type", "Attr can't have name float that matches a data type; in OpDef: Foo");
    expect_fault(NULL, NULL, "L: list(int) >= -1",
                 "Attr 'L' with list type must have a non-negative minimum, not -1; in OpDef: Foo");
    expect_fault(NULL, NULL, "a: int >= 2 = 1",
                 "Value for attr 'a' of 1 must be at least minimum 2 for attr 'a' in Op 'Foo'; in OpDef: Foo");
    expect_fault(NULL, NULL, "a: list(int) >= 1 = []",
                 "Length for attr 'a' of 0 must be at least minimum 1 for attr 'a' in Op 'Foo'; in OpDef: Foo");
    expect_fault(NULL, NULL, "a: {'x', 'y'} = 'z'",
                 "Value for attr 'a' of \"z\" is not in the list of allowed values: \"x\", \"y\" for attr 'a' in Op "
                 "'Foo'; in OpDef: Foo");
    expect_fault("a: N * float", NULL, "N: list(int)",
                 "Attr 'N' used as length is not of type int for input 'a'; in OpDef: Foo");
    expect_fault("a: N * float", NULL, "N: int >= -1",
                 "Attr 'N' used as length must have minimum >= 0 for input 'a'; in OpDef: Foo");
    expect_fault("a: N * L", NULL, "N: int; L: list(type)",
                 "Can't have both number_attr and type_list_attr for input 'a'; in OpDef: Foo");
    assert_int_equal(tare_opspec_parse(&def, &memory, &lower), TARE_INVALID_ARGUMENT);
    assert_string_equal(tare_error_text(), "Invalid name: foo (Did you use CamelCase?); in OpDef: foo");
    assert_int_equal(tare_opspec_parse(&def, &memory, &spaced), TARE_OK);
    assert_int_equal(tare_opspec_parse(&def, &memory, &internal), TARE_OK);
}

/* Whatever is cut off or changed in a specification, it parses or is refused, and never reads past its end. */
static void damaged_specs__never_crash(void **state) {
    static const char spec[] =
        "T: {half, float} = DT_HALF; s: {'a', \"b\\n\"} = 'a'; l: list(int) >= 1 = [1, 2]; "
        "sh: shape = { dim { size: 1 } }; te: tensor = { dtype: DT_INT32 tensor_shape { dim { size: 2 } } "
        "int_val: [1, 2] }; f: func = { name: 'f' attr { key: 'k' value { s: 'v' } } }";
    static const char replacements[] = "\"'{}[]();:,<>=#\\0aN ";
    struct tare_op_def *def;
    char damaged[sizeof spec];
    (void)state;
    for (size_t i = 0; i < sizeof spec - 1; i++)
        for (size_t k = 0; k < sizeof replacements; k++) {
            struct tare_op row = { .name = "Foo", .attrs = damaged };
            memcpy(damaged, spec, sizeof spec);
            damaged[i] = replacements[k]; /* the last one cuts the text */
            (void)!tare_opspec_parse(&def, &memory, &row);
            row = (struct tare_op){ .name = "Foo", .inputs = damaged };
            (void)!tare_opspec_parse(&def, &memory, &row);
            tare_opspec_memory_free(&memory);
        }
}

#define CASE(name) cmocka_unit_test_teardown(name, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(attr__every_kind),
        CASE(attr__sets_of_values),
        CASE(attr__minimum_and_default),
        CASE(attr__tensor_and_function_defaults_hold_values),
        CASE(args__every_form),
        CASE(args__imply_minima_and_state),
        CASE(attr_faults__say_what_and_where),
        CASE(default_faults__of_every_kind),
        CASE(arg_faults__say_what_and_where),
        CASE(items__one_a_string),
        CASE(print__is_the_registration),
        CASE(print__reads_again),
        CASE(definition_faults),
        CASE(damaged_specs__never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
