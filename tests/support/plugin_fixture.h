/* Libraries of ops for test programs: tests/plugins, loaded into a fresh registry for each test. */
#ifndef TARE_TESTS_SUPPORT_PLUGIN_FIXTURE_H
#define TARE_TESTS_SUPPORT_PLUGIN_FIXTURE_H

#include "interpreter/plugins/plugin.h"
#include "support/mini_model.h"

/* The registry of the running test. */
extern struct tare_plugins *plugins;
/* For cmocka: a registry with nothing loaded; its end, and that of what the test asked the library "asked" for. */
int plugin_set_up(void **state);
int plugin_tear_down(void **state);
/* The path of tests/plugins/NAME.c's library, in a static buffer. */
const char *plugin_path(const char *name);
/* An empty model that knows the ops of the library "everything". */
struct tare_model *plugin_model(void);
/* A constant of the main graph. */
struct tare_edge plugin_constant(struct tare_graph *graph, int dtype, struct tare_shape shape, const void *values);
/* The run of `fetch` fails with exactly this text. */
void plugin_run_fails(struct tare_model *model, struct tare_edge fetch, const char *text);

#define PLUGIN_CASE(name) cmocka_unit_test_setup_teardown(name, plugin_set_up, plugin_tear_down)

#endif
