/* What calls hand on: loops that keep a variable, and functions and branches that return an argument. */
#ifndef TARE_GRAPH_HANDED_ON_H
#define TARE_GRAPH_HANDED_ON_H

#include "graph/calls.h"

/* Whether variable i of a loop with this body has its first value in every turn. */
bool tare_loop_keeps(const struct tare_graph *body, size_t i);
/* The input of a call, branch or loop whose value an output has, whichever way it goes; SIZE_MAX: none is known. */
size_t tare_call_hands_on(const struct tare_node *node, size_t output);

#endif
