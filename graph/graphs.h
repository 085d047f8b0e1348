/* All graphs of a model: number 0 is the main graph, the functions follow, up to n_functions. */
#ifndef TARE_GRAPH_GRAPHS_H
#define TARE_GRAPH_GRAPHS_H

#include "graph/model.h"

static inline struct tare_graph *tare_model_graph(const struct tare_graph_model *model, size_t number) {
    return number ? model->functions[number - 1] : model->main;
}

#endif
