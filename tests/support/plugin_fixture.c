#include "support/plugin_fixture.h"
#include "interpreter/ops/builtin.h"

#include <stdio.h>
#include <stdlib.h>

struct tare_plugins *plugins;

const char *plugin_path(const char *name) {
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", TARE_TEST_PLUGINS, name);
    return path;
}

int plugin_set_up(void **state) {
    (void)state;
    plugins = tare_plugins_new(tare_ops_builtin());
    return plugins ? 0 : -1;
}

int plugin_tear_down(void **state) {
    static const char *const asked[] = { "ASKED_OP",     "ASKED_ATTR",    "ASKED_INPUT",       "ASKED_OUTPUT",
                                         "ASKED_KERNEL", "ASKED_KERNEL2", "ASKED_NULL_KERNEL", "ASKED_FAIL",
                                         "ASKED_TWICE",  "ASKED_NOTHING" };
    (void)state;
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        unsetenv(asked[i]);
    tare_plugins_free(plugins);
    return 0;
}

struct tare_graph_model *plugin_model(void) {
    struct tare_graph_model *model = tare_model_new(tare_ops_builtin());
    mini_ok(tare_plugins_load(plugins, plugin_path("everything")));
    assert_non_null(model);
    model->custom_ops = tare_ops_new(tare_plugins_ops(plugins));
    assert_non_null(model->custom_ops);
    return model;
}

struct tare_edge plugin_constant(struct tare_graph *graph, int dtype, struct tare_shape shape, const void *values) {
    struct tare_tensor tensor;
    struct tare_node *node;
    mini_ok(tare_tensor_from(&tensor, dtype, &shape, values));
    node = tare_graph_add_const(graph, "constant", &tensor);
    assert_non_null(node);
    tare_tensor_reset(&tensor);
    return (struct tare_edge){ node, 0 };
}

void plugin_run_fails(struct tare_graph_model *model, struct tare_edge fetch, const char *text) {
    struct tare_session *session = mini_session(model);
    struct tare_tensor result;
    if (tare_session_run(session, NULL, NULL, 0, &fetch, &result, 1, NULL, 0) == TARE_OK)
        fail_msg("no fault: %s", text);
    assert_string_equal(tare_error_text(), text);
    tare_session_free(session);
}
