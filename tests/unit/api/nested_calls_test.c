/* Chains of calls near the limit of 1,000: refused beyond it whatever the order of the functions, and in a thread with
 * a small stack an error instead of a crash. */
#include "include/tare/tare.h"

#include "base/clock.h"
#include "convert/saved_model.h"
#include "support/api_check.h"
#include "support/mini_model.h"
#include "support/temp.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { KILOBYTE = 1024 };

static struct tare_edge link_of(struct tare_graph *function, const struct tare_graph *callee, struct tare_edge value) {
    if (callee) return mini_call(function, "PartitionedCall", "call", callee, 1, value);
    return mini_node(function, "Relu", "relu", 1, value);
}

/* Each function calls the one that was added before it. */
static struct tare_graph_model *make_chain(int depth) {
    static struct tare_signature signature = {
        .key = "serving_default", .method_name = "tensorflow/serving/predict", .n_inputs = 1, .n_outputs = 1
    };
    static struct tare_binding input = { .key = "x", .dtype = TARE_DT_FLOAT, .shape = { .rank = 1, .dims = { 4 } } },
                               output = { .key = "y", .dtype = TARE_DT_FLOAT, .shape = { .rank = 1, .dims = { 4 } } };
    struct tare_graph_model *model = mini_model_new();
    struct tare_graph *inner = NULL;
    char name[32];
    for (int i = 0; i < depth; i++) {
        snprintf(name, sizeof name, "level_%d", i);
        struct tare_graph *function = tare_model_add_function(model, name);
        mini_return(function, "y", link_of(function, inner, mini_arg(function, "v", TARE_DT_FLOAT)));
        inner = function;
    }
    input.edge = mini_placeholder(model->main, "x", TARE_DT_FLOAT);
    output.edge = link_of(model->main, inner, input.edge);
    signature.inputs = &input;
    signature.outputs = &output;
    model->signatures = &signature;
    model->n_signatures = 1;
    return model;
}

static void chain__beyond_the_limit_is_refused_at_once(void **state) {
    struct tare_graph_model *model = make_chain(TARE_MOST_NESTED_CALLS);
    (void)state;
    mini_ok(tare_model_check_recursion(model));
    tare_model_free(model);
    for (int depth = TARE_MOST_NESTED_CALLS + 1; depth <= 1 << 14; depth *= 4) {
        model = make_chain(depth);
        const double start = tare_clock_seconds();
        mini_fails(tare_model_check_recursion(model), "functions nest too deep (more than 1000 calls)");
        assert_true(tare_clock_seconds() - start < 5); /* milliseconds; it took minutes */
        tare_model_free(model);
    }
}

struct attempt {
    const char *path;
    size_t stack;
    bool good;
};

/* True if the call succeeded, or failed because of the stack, for which no plugin is a remedy. */
static bool fits(tare_status status) {
    const char *text = tare_error_text();
    const bool good =
        status == TARE_OK || (strstr(text, "nest too deep for the stack of this thread") && !strstr(text, "--plugin"));
    if (!good) print_error("%s\n", tare_error_text());
    return good;
}

static bool run(tare_model *model) {
    static const float values[4] = { 1, -2, 3, -4 };
    const tare_array x = { .name = "x", .dtype = TARE_DTYPE_FLOAT, .rank = 1, .dims = { 4 }, .data = values };
    const tare_array *outputs;
    tare_runner *runner;
    size_t count;
    bool good = fits(tare_runner_open(&runner, model, NULL));
    if (runner) good = fits(tare_runner_run(runner, &x, 1, &outputs, &count)) && good;
    tare_runner_close(runner);
    return good;
}

static void *use(void *arg) {
    struct attempt *attempt = arg;
    tare_model *model, *made;
    char *json;
    attempt->good = fits(tare_model_open(&model, NULL, attempt->path));
    if (!model) return NULL;
    attempt->good = fits(tare_model_describe(&json, model)) && attempt->good;
    tare_text_free(json);
    attempt->good = run(model) && attempt->good;
    attempt->good = fits(tare_model_convert(&made, &json, model, "", NULL, 0)) && attempt->good;
    tare_text_free(json);
    tare_model_close(made);
    tare_model_close(model);
    return NULL;
}

static void chain__in_a_small_stack_is_an_error(void **state) {
    struct tare_graph_model *model = make_chain(TARE_MOST_NESTED_CALLS - 1);
    const char *path = temp_path("chain");
    (void)state;
    mini_ok(tare_saved_model_export(model, path, NULL));
    tare_model_free(model);
    for (size_t stack = PTHREAD_STACK_MIN < 128 * KILOBYTE ? 128 * KILOBYTE : PTHREAD_STACK_MIN; stack <= 1 << 23;
         stack *= 2) {
        struct attempt attempt = { .path = path, .stack = stack };
        pthread_attr_t attributes;
        pthread_t thread;
        pthread_attr_init(&attributes);
        assert_int_equal(pthread_attr_setstacksize(&attributes, stack), 0);
        assert_int_equal(pthread_create(&thread, &attributes, use, &attempt), 0);
        pthread_join(thread, NULL);
        pthread_attr_destroy(&attributes);
        assert_true(attempt.good);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chain__beyond_the_limit_is_refused_at_once),
        cmocka_unit_test(chain__in_a_small_stack_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
