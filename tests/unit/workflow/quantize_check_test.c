/* The error for a model of which nothing was quantized. */
#include "workflow/quantize.h"

#include "quant/quantize.h"
#include "support/mini_model.h"

static void quantize_check__names_the_most_frequent_reason(void **state) {
    static char copy[] = "few elements"; /* of equal text, at another address */
    struct tare_quant_outcome outcomes[] = { { .refused = "not constant" }, { .refused = "few elements" },
                                             { .refused = NULL },           { .refused = "rank 1" },
                                             { .refused = copy },           { .refused = "rank 1" } };
    struct tare_quant_report report = { .outcomes = outcomes, .count = 6 };
    (void)state;
    mini_fails(tare_workflow_quantize_check(&report),
               "none of 6 quantizable ops was quantized; reason for 2 of them: few elements");
    outcomes[0].refused = "rank 1";
    mini_fails(tare_workflow_quantize_check(&report), "reason for 3 of them: rank 1");
    report.quantized = 1;
    assert_int_equal(tare_workflow_quantize_check(&report), TARE_OK);
}

static void quantize_check__of_a_model_without_quantizable_ops(void **state) {
    struct tare_quant_outcome without_reason[] = { { .refused = NULL } };
    struct tare_quant_report report = { 0 };
    (void)state;
    mini_fails(tare_workflow_quantize_check(&report), "the model has no quantizable op");
    report.integer_products = 2;
    mini_fails(tare_workflow_quantize_check(&report), "(2 products multiply integers already)");
    report = (struct tare_quant_report){ .outcomes = without_reason, .count = 1 };
    mini_fails(tare_workflow_quantize_check(&report), "reason for 0 of them: unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantize_check__names_the_most_frequent_reason),
        cmocka_unit_test(quantize_check__of_a_model_without_quantizable_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
