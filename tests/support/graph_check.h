/* What holds for every graph that a pass leaves behind. */
#ifndef TARE_TESTS_SUPPORT_GRAPH_CHECK_H
#define TARE_TESTS_SUPPORT_GRAPH_CHECK_H

#include "graph/model.h"

/* Every input has the dtype that its op or function wants, every return, signature and call the dtypes that it says. */
void graph_check_dtypes(const struct tare_model *model);
/* Nodes of that op in the graph. */
size_t graph_count(const struct tare_graph *graph, const char *op);
/* The only node of that op; fails the test when there is none or more. */
struct tare_node *graph_only(const struct tare_graph *graph, const char *op);
/* The node of that name; fails the test when there is none. */
struct tare_node *graph_node(const struct tare_graph *graph, const char *name);

#endif
