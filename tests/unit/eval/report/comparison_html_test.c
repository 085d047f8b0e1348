/* The page of a comparison: the order in which it lists the layers. */
#include "base/strbuf.h"
#include "eval/comparison.h"
#include "eval/metrics.h"
#include "eval/sensitivity.h"
#include "support/mini_model.h"

#include <string.h>

static struct tare_explanation layer(const char *function, const char *node, double db) {
    return (struct tare_explanation){
        .function = function, .node = node, .op = "MatMul", .weight_elements = 1, .weight_sqnr_db = db
    };
}

/* The page lists the nodes in the order of `nodes`. */
static void expect_order(struct tare_comparison *c, size_t count, const char *const *nodes) {
    struct tare_strbuf page = { 0 };
    struct tare_metrics metrics = { 0 };
    struct tare_comparison_row row = { .method = "float", .outputs = &metrics };
    c->model = "m", c->signature = "serving_default";
    c->rows = &row, c->n_rows = 1;
    tare_comparison_html(&page, c);
    const char *at = strstr(tare_strbuf_text(&page), "Layers of");
    assert_non_null(at);
    for (size_t i = 0; i < count; i++) {
        const char *next = strstr(at, nodes[i]);
        if (!next) fail_msg("'%s' is missing or before '%s'", nodes[i], i ? nodes[i - 1] : "the table");
        at = next;
    }
    tare_strbuf_free(&page);
}

static void layers__are_listed_by_their_noise(void **state) {
    (void)state;
    static const char *const expected[] = { "gamma", "beta", "delta", "alpha" };
    struct tare_explanation layers[] = { layer("", "alpha", 50), layer("", "beta", 30), layer("", "gamma", 20),
                                         layer("", "delta", 30) };
    struct tare_comparison c = { .explanations = { layers, 4 } };
    expect_order(&c, 4, expected);
}

/* A layer of a search has one step for each precision; its first one counts. A function has nodes of its own. */
static void measured_layers__come_first_by_their_sensitivity(void **state) {
    (void)state;
    static const char *const expected[] = { "alpha", "beta", "gamma", "delta", "omega" };
    struct tare_explanation layers[] = { layer("", "omega", 50), layer("", "gamma", 10), layer("", "delta", 20),
                                         layer("f", "alpha", 60), layer("", "beta", 70) };
    struct tare_sensitive_layer measured[] = { { .function = "f", .node = "alpha", .op = "MatMul" },
                                               { .function = "", .node = "beta", .op = "MatMul" },
                                               { .function = "f", .node = "gamma", .op = "MatMul" },
                                               { .function = "", .node = "gamma", .op = "MatMul" },
                                               { .function = "", .node = "beta", .op = "MatMul", .level = 1 } };
    struct tare_sensitivity sensitivity = { .method = "int8", .layers = measured, .count = 5 };
    struct tare_comparison c = { .explanations = { layers, 5 }, .sensitivity = &sensitivity };
    expect_order(&c, 5, expected);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers__are_listed_by_their_noise),
        cmocka_unit_test(measured_layers__come_first_by_their_sensitivity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
