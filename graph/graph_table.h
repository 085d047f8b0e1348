/* A table with a value for each of some graphs of a model: by the graph's number, so that neither storing nor looking
 * up reads a name. Pages of values are allocated where they are needed: a table of few graphs is small. */
#ifndef TARE_GRAPH_GRAPH_TABLE_H
#define TARE_GRAPH_GRAPH_TABLE_H

#include "graph/graph.h"

/* A zeroed table is empty. */
struct tare_graph_table {
    void ***pages;
    size_t n_pages;
};

/* Sets or replaces a value. False, with the table unchanged, if out of memory. All graphs of a table belong to one
 * model. */
bool tare_graph_table_set(struct tare_graph_table *table, const struct tare_graph *graph, void *value) TARE_WARN_UNUSED;
/* NULL: no value was set. */
void *tare_graph_table_get(const struct tare_graph_table *table, const struct tare_graph *graph);
void tare_graph_table_free(struct tare_graph_table *table);

#endif
