/* Op libraries for test programs: tests/plugins, loaded into a new registry for each test. */
#ifndef TARE_TESTS_SUPPORT_PLUGIN_FIXTURE_H
#define TARE_TESTS_SUPPORT_PLUGIN_FIXTURE_H

#include "interpreter/plugins/plugin.h"
#include "support/mini_model.h"

/* The registry of the current test. */
extern struct tare_plugins *plugins;
/* For cmocka: creates an empty registry; the teardown frees it and the variables that the test set for the library
 * "asked". */
int plugin_set_up(void **state);
int plugin_tear_down(void **state);
/* The path of the library of tests/plugins/NAME.c, in a static buffer. */
const char *plugin_path(const char *name);
/* An empty model whose registry includes the ops of the library "everything". */
struct tare_graph_model *plugin_model(void);
/* Adds a constant to the main graph. */
struct tare_edge plugin_constant(struct tare_graph *graph, int dtype, struct tare_shape shape, const void *values);
/* Asserts that running `fetch` fails with exactly this text. */
void plugin_run_fails(struct tare_graph_model *model, struct tare_edge fetch, const char *text);

#define PLUGIN_CASE(name) cmocka_unit_test_setup_teardown(name, plugin_set_up, plugin_tear_down)

#endif
