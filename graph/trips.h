/* How often a loop runs its body. */
#ifndef TARE_GRAPH_TRIPS_H
#define TARE_GRAPH_TRIPS_H

#include "graph/calls.h"

/* The most trips of a While (a call site of TARE_CALL_LOOP) with a counter: a variable that begins with a constant,
 * that the body changes by a constant, and that the condition compares with a constant, alone or joined with other
 * conditions. -1: not known. */
int64_t tare_loop_trips(const struct tare_node *loop, const struct tare_call_site *site);

#endif
