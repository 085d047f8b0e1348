/* Reading and printing StableHLO modules. The modules are written by tests/golden/stablehlo.py; the expected text is
 * the notation of the StableHLO specification for what the script builds. */
#include "support/mini_model.h"

#include "base/alloc.h"
#include "base/file.h"
#include "convert/stablehlo/print.h"
#include "convert/stablehlo/summary.h"

#include <stdio.h>
#include <string.h>

static const char *const names[] = { "constants", "regions", "network" };

static char *load(size_t *size, const char *name) {
    char path[512], *data;
    snprintf(path, sizeof path, "%s/tests/golden/stablehlo/%s.mlirbc", TARE_SOURCE_DIR, name);
    mini_ok(tare_file_read(&data, size, path));
    return data;
}

static tare_status append(void *arg, const char *text, size_t size) {
    tare_strbuf_append(arg, text, size);
    return TARE_OK;
}

/* The printed module contains each of the lines, in this order. */
static void assert_prints(const char *name, const char *const *lines, size_t count) {
    size_t size;
    char *data = load(&size, name);
    struct tare_shlo_module *module;
    struct tare_strbuf text = { 0 };
    const struct tare_shlo_print_options options = { .write = append, .arg = &text };
    mini_ok(tare_shlo_read(&module, (const uint8_t *)data, size));
    mini_ok(tare_shlo_print(module, &options));
    const char *at = tare_strbuf_text(&text);
    for (size_t i = 0; i < count; i++) {
        const char *found = strstr(at, lines[i]);
        if (!found) fail_msg("%s: no '%s' in:\n%s", name, lines[i], at);
        at = found + strlen(lines[i]);
    }
    tare_strbuf_free(&text);
    tare_shlo_free(module);
    tare_free(data);
}

static void print__constants_of_every_element_type(void **state) {
    static const char *const lines[] = {
        "func.func public @main() -> (tensor<3xf32>, tensor<1xf64>, tensor<2xi8>",
        "%0 = stablehlo.constant dense<[1.5, -2.0, inf]> : tensor<3xf32>\n",
        "%1 = stablehlo.constant dense<[0.10000000000000001]> : tensor<1xf64>\n",
        "%2 = stablehlo.constant dense<[1, -1]> : tensor<2xi8>\n",
        "%3 = stablehlo.constant dense<[255, 0]> : tensor<2xui8>\n",
        "%4 = stablehlo.constant dense<[[-3, 4]]> : tensor<1x2xi32>\n",
        "%5 = stablehlo.constant dense<18446744073709551615> : tensor<ui64>\n",
        "%6 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>\n",
        "%7 = stablehlo.constant dense<true> : tensor<20xi1>\n",
        "%8 = stablehlo.constant dense<false> : tensor<20xi1>\n",
        "%9 = stablehlo.constant dense<__elided__> : tensor<17xi1>\n",
        "%10 = stablehlo.constant dense<[]> : tensor<0x2xf32>\n",
        "%11 = stablehlo.constant dense<7> : tensor<4x5xi64>\n",
        "%12 = stablehlo.constant dense<__elided__> : tensor<100xi16>\n",
    };
    (void)state;
    assert_prints("constants", lines, sizeof lines / sizeof *lines);
}

static void print__functions_and_regions(void **state) {
    static const char *const lines[] = {
        "module {\n  func.func private @helper(%arg0: tensor<f32>) -> (tensor<f32>) {\n",
        "    %0 = stablehlo.negate %arg0 : (tensor<f32>) -> tensor<f32>\n    return %0 : tensor<f32>\n  }\n",
        "@main(%arg0: tensor<2x3xf32> {jax.arg_info = \"x\"}, %arg1: tensor<f32>) -> (tensor<f32> {jax.result_info = ",
        "%1 = stablehlo.reduce %arg0, %0 {dimensions = [0, 1]} : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32> ({\n",
        "    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):\n",
        "      %2 = stablehlo.add %arg2, %arg3 : (tensor<f32>, tensor<f32>) -> tensor<f32>\n",
        "      stablehlo.return %2 : tensor<f32>\n    })\n",
        "%3 = stablehlo.while %1 : (tensor<f32>) -> tensor<f32> ({\n",
        "%4 = stablehlo.compare %arg4, %arg1 {compare_type = FLOAT, comparison_direction = LT}",
        "    }, {\n    ^bb0(%arg5: tensor<f32>):\n",
        "%6 = call @helper(%3) : (tensor<f32>) -> tensor<f32>\n",
        "%8 = stablehlo.if %7 : (tensor<i1>) -> tensor<f32> ({\n      stablehlo.return %3 : tensor<f32>\n    }, {\n",
        "    return %8, %arg0 : tensor<f32>, tensor<2x3xf32>\n  }\n}\n",
    };
    (void)state;
    assert_prints("regions", lines, sizeof lines / sizeof *lines);
}

static void print__attributes_and_open_dimensions(void **state) {
    static const char *const lines[] = {
        "@main(%arg0: tensor<?x8x8x2xf32>, %arg1: tensor<3x3x2x4xf32>) -> (tensor<?x8x8x4xf32>)",
        "input_spatial_dimensions = [1, 2]",
        "padding = [[1, 1], [1, 1]], precision_config = [DEFAULT, HIGH]",
        "window_reversal = [false, false]",
        ("backend_config = \"a\\\"b\\n\", call_target_name = \"Sharding\", has_side_effect = false, "
         "mhlo.sharding = \"{replicated}\"}"),
    };
    (void)state;
    assert_prints("network", lines, sizeof lines / sizeof *lines);
}

static void summary__counts_ops_of_all_regions(void **state) {
    size_t size;
    char *data = load(&size, "regions");
    struct tare_arena arena = { 0 };
    struct tare_shlo_module *module;
    struct tare_shlo_summary summary;
    (void)state;
    mini_ok(tare_shlo_read(&module, (const uint8_t *)data, size));
    mini_ok(tare_shlo_summarize(&summary, &arena, module));
    assert_int_equal(summary.n_functions, 2);
    assert_int_equal(summary.n_ops, 2 + 15); /* of helper and main */
    assert_string_equal(summary.ops[0].name, "vhlo.return_v1");
    assert_int_equal(summary.ops[0].count, 7);
    assert_int_equal(summary.constant_bytes, 4);
    assert_int_equal(module->version, TARE_VHLO_VERSION(1, 8, 0));
    assert_non_null(tare_shlo_function(module, "helper"));
    assert_null(tare_shlo_function(module, "none"));
    tare_arena_free(&arena);
    tare_shlo_free(module);
    tare_free(data);
}

static void op_table__is_sorted_and_counts_its_attributes(void **state) {
    (void)state;
    for (size_t i = 0; i < tare_vhlo_n_ops; i++) {
        const struct tare_vhlo_op *op = &tare_vhlo_ops[i];
        size_t words = op->attrs[0] != '\0';
        for (const char *at = op->attrs; *at; at++)
            words += *at == ' ';
        if (words != op->n_attrs) fail_msg("%s: %zu attributes (expected %d)", op->name, words, op->n_attrs);
        if (i && strcmp(tare_vhlo_ops[i - 1].name, op->name) >= 0) fail_msg("%s is not sorted", op->name);
        assert_ptr_equal(tare_vhlo_find_op(op->name), op);
    }
    assert_null(tare_vhlo_find_op("add_v9"));
}

/* ---- damage ---- */

static tare_status discard(void *arg, const char *text, size_t size) {
    *(size_t *)arg += size + (text == NULL);
    return TARE_OK;
}

/* A module that is read can be printed; one that is not has a text. */
static bool survives(const uint8_t *data, size_t size) {
    struct tare_shlo_module *module;
    size_t printed = 0;
    const struct tare_shlo_print_options options = { .write = discard, .arg = &printed };
    const tare_status status = tare_shlo_read(&module, data, size);
    if (status == TARE_OK) {
        mini_ok(tare_shlo_print(module, &options));
        tare_shlo_free(module);
        return true;
    }
    assert_null(module);
    assert_true(strlen(tare_error_text()) > 0);
    tare_error_clear();
    return false;
}

static void damaged_modules__fail_with_a_text(void **state) {
    size_t refused = 0;
    (void)state;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        size_t size;
        char *data = load(&size, names[n]);
        for (size_t cut = 0; cut < size; cut++) {
            uint8_t *part = tare_malloc(cut + 1); /* of exactly this size, so that AddressSanitizer sees an overrun */
            memcpy(part, data, cut);
            if (survives(part, cut)) fail_msg("%s is read when cut at %zu of %zu bytes", names[n], cut, size);
            tare_free(part);
        }
        for (size_t at = 0; at < size; at++)
            for (int bit = 0; bit < 8; bit++) {
                data[at] = (char)(data[at] ^ 1 << bit);
                refused += !survives((const uint8_t *)data, size);
                data[at] = (char)(data[at] ^ 1 << bit);
            }
        assert_true(survives((const uint8_t *)data, size));
        tare_free(data);
    }
    assert_true(refused > 3000);
}

static void newer_versions__are_refused_by_name(void **state) {
    static const struct {
        const char *from, *to, *expected;
    } cases[] = {
        { "StableHLO_v1.8.0", "StableHLO_v1.99.", "too new" },
        { "StableHLO_v1.8.0", "StableHLO_v9.8.0", "VHLO version 9.8.0 is too new (expected 0.9.0 to 1.20.0)" },
        { "negate_v1", "negate_v7", "unknown op 'vhlo.negate_v7'" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        char *data = load(&size, "regions"), *at = memmem(data, size, cases[i].from, strlen(cases[i].from));
        struct tare_shlo_module *module;
        assert_non_null(at);
        memcpy(at, cases[i].to, strlen(cases[i].to));
        tare_status status = tare_shlo_read(&module, (const uint8_t *)data, size);
        if (i == 0) { /* "1.99." is no version: the module counts as the oldest */
            assert_int_equal(status, TARE_OK);
            assert_int_equal(module->version, TARE_VHLO_OLDEST);
            tare_shlo_free(module);
        } else {
            assert_int_equal(status, TARE_UNSUPPORTED);
            if (!strstr(tare_error_text(), cases[i].expected)) fail_msg("%s", tare_error_text());
            tare_error_clear();
        }
        tare_free(data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(print__constants_of_every_element_type),
        cmocka_unit_test(print__functions_and_regions),
        cmocka_unit_test(print__attributes_and_open_dimensions),
        cmocka_unit_test(summary__counts_ops_of_all_regions),
        cmocka_unit_test(op_table__is_sorted_and_counts_its_attributes),
        cmocka_unit_test(damaged_modules__fail_with_a_text),
        cmocka_unit_test(newer_versions__are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
