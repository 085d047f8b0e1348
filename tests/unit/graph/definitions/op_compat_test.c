/* Which changes of a published op break old graphs, and which do not. */
#include "base/strbuf.h"
#include "graph/definitions/op_compat.h"
#include "graph/definitions/opspec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

struct spec {
    const char *inputs, *outputs, *attrs;
};

/* What breaks, joined by " | "; "" for nothing. */
static void expect(struct spec before, struct spec now, const char *expected) {
    struct tare_opspec_memory memory = { 0 };
    const struct tare_op rows[] = {
        { .name = "Foo", .inputs = before.inputs, .outputs = before.outputs, .attrs = before.attrs },
        { .name = "Foo", .inputs = now.inputs, .outputs = now.outputs, .attrs = now.attrs }
    };
    struct tare_op_def *defs[2];
    struct tare_op_changes changes = { 0 };
    struct tare_strbuf got = { 0 };
    for (int i = 0; i < 2; i++)
        if (tare_opspec_parse(&defs[i], &memory, &rows[i]) != TARE_OK) fail_msg("%s", tare_error_text());
    assert_int_equal(tare_op_compare(&changes, defs[0], defs[1]), TARE_OK);
    for (size_t i = 0; i < changes.count; i++)
        tare_strbuf_printf(&got, "%s%s", i ? " | " : "", changes.items[i]);
    assert_string_equal(tare_strbuf_text(&got), expected);
    tare_strbuf_free(&got);
    tare_op_changes_free(&changes);
    tare_opspec_memory_free(&memory);
}

static void attrs_expect(const char *before, const char *now, const char *expected) {
    expect((struct spec){ .attrs = before }, (struct spec){ .attrs = now }, expected);
}

static void attrs__what_is_allowed(void **state) {
    (void)state;
    attrs_expect("a: int", "a: int", "");
    attrs_expect(NULL, "a: int = 3", "");
    attrs_expect("a: int", "a: int = 3", "");
    attrs_expect("a: {int32, int64}", "a: {int32, int64, float}", "");
    attrs_expect("a: {int32, int64}", "a: type", "");
    attrs_expect("a: {int32, int64}", "a: {int64, int32}", "");
    attrs_expect("a: {'apple', 'orange'}", "a: {'apple', 'banana', 'orange'}", "");
    attrs_expect("a: {'apple', 'orange'}", "a: string", "");
    attrs_expect("a: int >= 2", "a: int >= 1", "");
    attrs_expect("a: int >= 2", "a: int", "");
    attrs_expect("a: list(int) >= 2", "a: list(int)", "");
    attrs_expect("b: int; a: int", "a: int; b: int", "");
}

static void attrs__what_breaks(void **state) {
    (void)state;
    attrs_expect(NULL, "a: int", "Attr 'a' added without default");
    attrs_expect("a: int", NULL, "Attr 'a' removed");
    attrs_expect("a: int", "a: float", "Attr 'a' changed type 'int' -> 'float'");
    attrs_expect("a: int", "a: list(int)", "Attr 'a' changed type 'int' -> 'list(int)'");
    attrs_expect("a: type", "a: {float, half}",
                 "Attr 'a' has a stricter set of allowed values; from no restriction to [float, half]");
    attrs_expect("a: {float, half}", "a: {float}",
                 "Attr 'a' has a stricter set of allowed values; from [float, half] to [float]");
    attrs_expect("a: {'x', 'y'}", "a: {'x', 'z'}",
                 "Attr 'a' has a stricter set of allowed values; from [\"x\", \"y\"] to [\"x\", \"z\"]");
    attrs_expect("a: list(type)", "a: list({float})",
                 "Attr 'a' has a stricter set of allowed values; from no restriction to [float]");
    attrs_expect("a: int >= 1", "a: int >= 2", "Attr 'a' has a higher minimum; from 1 to 2");
    attrs_expect("a: int", "a: int >= -5", "Attr 'a' has a higher minimum; from no minimum to -5");
    attrs_expect("a: list(int)", "a: list(int) >= 1", "Attr 'a' has a higher minimum; from no minimum to 1");
    attrs_expect("a: int = 3", "a: int", "Attr 'a' has lost its default; from 3 to no default");
    attrs_expect("a: int = 3", "a: int = 4", "Attr 'a' has changed its default; from 3 to 4");
    attrs_expect("a: list(int) = [1]", "a: list(int) = [1, 2]", "Attr 'a' has changed its default; from [1] to [1, 2]");
    attrs_expect("a: int = 3; b: int; c: type", "a: int = 4; d: string; c: {float}",
                 "Attr 'a' has changed its default; from 3 to 4 | Attr 'b' removed | Attr 'c' has a stricter set of "
                 "allowed values; from no restriction to [float] | Attr 'd' added without default");
}

static void sides__what_is_allowed(void **state) {
    (void)state;
    expect((struct spec){ "in: float", "out: float", NULL },
           (struct spec){ "in: T", "out: T", "T: numerictype = DT_FLOAT" }, "");
    expect((struct spec){ "in: float", "out: float", NULL }, (struct spec){ "other: float", "out: float", NULL }, "");
    expect((struct spec){ "in: float", NULL, NULL }, (struct spec){ "in: N * float", NULL, "N: int = 1" }, "");
    expect((struct spec){ "in: float", NULL, NULL }, (struct spec){ "in: L", NULL, "L: list(type) = [DT_FLOAT]" }, "");
    expect((struct spec){ "a: float, b: int32", NULL, NULL },
           (struct spec){ "in: L", NULL, "L: list(type) = [DT_FLOAT, DT_INT32]" }, "");
    expect((struct spec){ "a: float", NULL, NULL },
           (struct spec){ "a: float, more: N * int32", NULL, "N: int >= 0 = 0" }, "");
    expect((struct spec){ "a: float", "x: float", NULL },
           (struct spec){ "a: float", "x: float, more: L", "L: list(type) >= 0 = []" }, "");
    expect((struct spec){ "a: N * T", "x: L", "N: int; T: type; L: list(type)" },
           (struct spec){ "a: N * T", "x: L", "N: int; T: type; L: list(type)" }, "");
    expect((struct spec){ "a: N * float", NULL, "N: int" },
           (struct spec){ "a: N * T", NULL, "N: int; T: type = DT_FLOAT" }, "");
    expect((struct spec){ "a: Ref(float)", "x: float", NULL }, (struct spec){ "a: float", "x: Ref(float)", NULL }, "");
}

static void sides__what_breaks(void **state) {
    (void)state;
    expect((struct spec){ "a: float", NULL, NULL }, (struct spec){ "a: int32", NULL, NULL },
           "Input signature mismatch 'float' vs. 'int32'");
    expect((struct spec){ "a: float", NULL, NULL }, (struct spec){ NULL, NULL, NULL },
           "Input signature mismatch 'float' vs. ''");
    expect((struct spec){ NULL, NULL, NULL }, (struct spec){ "a: N * float", NULL, "N: int = 1" },
           "Input signature mismatch '' vs. 'float'");
    expect((struct spec){ "a: float, b: int32", NULL, NULL }, (struct spec){ "b: int32, a: float", NULL, NULL },
           "Input signature mismatch 'float, int32' vs. 'int32, float'");
    expect((struct spec){ "a: float", NULL, NULL }, (struct spec){ "a: T", NULL, "T: type = DT_HALF" },
           "Input signature mismatch 'float' vs. 'half'");
    expect((struct spec){ "a: N * T", NULL, "N: int; T: type" },
           (struct spec){ "a: L", NULL, "L: list(type) = [DT_FLOAT]" },
           "Attr 'N' removed | Attr 'T' removed | Input signature mismatch 'N * T' vs. 'float'");
    expect((struct spec){ NULL, "out: float", NULL }, (struct spec){ NULL, "result: float", NULL },
           "Output signature mismatch 'out: float' vs. 'result: float'");
    expect((struct spec){ NULL, "out: float", NULL }, (struct spec){ NULL, "out: float, more: float", NULL },
           "Output signature mismatch 'out: float' vs. 'out: float, more: float'");
    expect((struct spec){ "a: float, b: float", NULL, NULL }, (struct spec){ "a: float, b: Ref(float)", NULL, NULL },
           "Input 1 changed from non-ref to ref");
    expect((struct spec){ NULL, "x: Ref(float)", NULL }, (struct spec){ NULL, "x: float", NULL },
           "Output 0 changed from ref to non-ref");
    expect((struct spec){ "a: T", NULL, "T: type" }, (struct spec){ "a: T", NULL, "T: list(type)" },
           "Attr 'T' changed type 'type' -> 'list(type)'");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attrs__what_is_allowed),
        cmocka_unit_test(attrs__what_breaks),
        cmocka_unit_test(sides__what_is_allowed),
        cmocka_unit_test(sides__what_breaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
