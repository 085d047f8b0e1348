/* Jobs as read from a file: defaults, which are those of single fields, and methods as options of a command. */
#include "convert/jobs.h"

#include "support/mini_model.h"
#include "support/temp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct tare_jobs read_jobs(struct tare_arena *arena, const char *text) {
    struct tare_jobs jobs;
    mini_ok(tare_jobs_read(&jobs, arena, temp_file("jobs.txt", text, strlen(text))));
    return jobs;
}

/* keep_rejected has four bytes, and the pointer behind it, target, is the job's own. */
static void scalars__are_copied_with_their_size(void **state) {
    struct tare_arena arena = { 0 };
    (void)state;
    const struct tare_jobs jobs =
        read_jobs(&arena, "defaults { model: '/m' method: 'dynamic' output: '/o/{name}' keep_rejected: true "
                          "target: 'common' evaluation_limit: 7 evaluation: '/e' }\n"
                          "job { name: 'a' } job { name: 'b' evaluation_limit: 9 target: "
                          "'own' } job { name: 'c' keep_rejected: false }\n");
    static const int64_t limits[] = { 7, 9, 7 };
    static const bool kept[] = { true, true, false };
    static const char *const targets[] = { "common", "own", "common" };
    assert_int_equal(jobs.count, 3);
    for (size_t i = 0; i < jobs.count; i++) {
        assert_int_equal(jobs.jobs[i].evaluation_limit, limits[i]);
        assert_int_equal(jobs.jobs[i].keep_rejected, kept[i]);
        assert_int_equal(jobs.jobs[i].name[0], 'a' + (int)i);
        assert_string_equal(jobs.jobs[i].target, targets[i]);
    }
    tare_arena_free(&arena);
}

static void limits__have_defaults_one_by_one(void **state) {
    struct tare_arena arena = { 0 };
    (void)state;
    const struct tare_jobs jobs =
        read_jobs(&arena, "defaults { model: '/m' method: 'dynamic' output: '/o/{name}' evaluation: '/e' "
                          "limits { max_size_bytes: 1000 chip: 'v6e' } }\n"
                          "job { name: 'a' limits { max_drop: 90.5 } } job { name: 'b' }"
                          "job { name: 'c' limits { max_size_bytes: 7 } }\n");
    static const int64_t sizes[] = { 1000, 1000, 7 };
    static const double drops[] = { 90.5, -1, -1 };
    for (size_t i = 0; i < jobs.count; i++) {
        assert_int_equal(jobs.jobs[i].limits.max_size_bytes, sizes[i]);
        assert_float_equal(jobs.jobs[i].limits.max_drop, drops[i], 0);
        assert_int_equal(jobs.jobs[i].limits.chip, jobs.jobs[1].limits.chip);
    }
    assert_int_not_equal(jobs.jobs[1].limits.chip, 0);
    tare_arena_free(&arena);
}

/* The words of the plan, with spaces between them; a conversion begins with '!'. */
static void expect_plan(const char *job, const char *name, const char *words) {
    struct tare_arena arena = { 0 };
    char text[512] = "";
    snprintf(text, sizeof text, "job { model: '/m' output: '/o' %s }", job);
    const struct tare_jobs jobs = read_jobs(&arena, text);
    strcpy(text, jobs.jobs[0].converts ? "!" : "");
    for (size_t i = 0; i < jobs.jobs[0].plan.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "", jobs.jobs[0].plan.items[i]);
    assert_string_equal(text, words);
    assert_string_equal(jobs.jobs[0].name, name);
    tare_arena_free(&arena);
}

static void methods__are_named_as_the_rows_of_a_comparison(void **state) {
    (void)state;
    expect_plan("method: 'w4a8'", "m-w4a8", "--method=w4a8");
    expect_plan("method: 'static' algorithm: 'percentile:p=99.9'", "m-static-percentile:p=99.9",
                "--method=static --algorithm=percentile:p=99.9");
    expect_plan("method: 'weight_only:bits=4:block=32+gptq:damp=0.1,act_order=false+bias_correction'",
                "m-weight_only-bits-4-block-32+gptq-damp-0.1-act_order-false+bias_correction",
                "--method=weight_only --bits=4 --granularity=per_block:32 "
                "--passes=gptq:damp=0.1,act_order=false,bias_correction");
    expect_plan("method: 'static+bfloat16'", "m-static+bfloat16", "!--method=static --bfloat16=analysis");
    expect_plan("method: 'bfloat16'", "m-bfloat16", "!--bfloat16=analysis");
}

static void conversions_and_recipes__may_have_a_method(void **state) {
    (void)state;
    expect_plan("converter_options: ''", "m-convert", "!");
    expect_plan("converter_options: '' method: 'static'", "m-static-convert", "!--method=static");
    expect_plan("recipe: '/r.txt'", "m-quantize", "--recipe=/r.txt");
    expect_plan("recipe: '/r.txt' method: 'dynamic'", "m-dynamic", "--method=dynamic --recipe=/r.txt");
    expect_plan("arguments: '--auto'", "m-quantize", "");
}

static void samples__are_not_given_to_a_conversion_to_bfloat16(void **state) {
    struct tare_arena arena = { 0 };
    (void)state;
    const struct tare_jobs jobs = read_jobs(&arena, "defaults { model: '/m' output: '/o/{name}' data: '/d' }\n"
                                                    "job { method: 'bfloat16' } job { method: 'static+bfloat16' }");
    assert_int_equal(jobs.jobs[0].data.count, 0);
    assert_int_equal(jobs.jobs[1].data.count, 1);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(methods__are_named_as_the_rows_of_a_comparison),
                                        cmocka_unit_test(conversions_and_recipes__may_have_a_method),
                                        cmocka_unit_test(samples__are_not_given_to_a_conversion_to_bfloat16),
                                        cmocka_unit_test(scalars__are_copied_with_their_size),
                                        cmocka_unit_test(limits__have_defaults_one_by_one) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
