/* Invariants that every graph must satisfy after a pass. */
#ifndef TARE_TESTS_SUPPORT_GRAPH_CHECK_H
#define TARE_TESTS_SUPPORT_GRAPH_CHECK_H

#include "graph/model.h"

/* Asserts that each input has the dtype that its op or function expects, and that returns, signatures and calls have
 * their declared dtypes. */
void graph_check_dtypes(const struct tare_graph_model *model);
/* Number of nodes of that op in the graph. */
size_t graph_count(const struct tare_graph *graph, const char *op);
/* Returns the only node of that op; fails the test if there is not exactly one. */
struct tare_node *graph_only(const struct tare_graph *graph, const char *op);
/* Returns the node of that name; fails the test if it does not exist. */
struct tare_node *graph_node(const struct tare_graph *graph, const char *name);

#endif
