/* What one calibration run observes: the requested floating-point tensors of a signature, and the functions that the
 * signature can reach. */
#ifndef TARE_CALIB_OBSERVED_H
#define TARE_CALIB_OBSERVED_H

#include "base/map.h"
#include "graph/graph_table.h"
#include "graph/model.h"

struct tare_observed_slot {
    const struct tare_node *node;
    size_t output;
    int64_t entry; /* the value of its counter; below 0: all values of the tensor */
};

/* A whole number from 0 to count - 1 whose values have statistics of their own: the number of an iteration, a sum of
 * arguments of the function of a tensor, or of elements of them, times factors. */
enum { TARE_COUNTER_TERMS = 4 };
struct tare_counter_term {
    const struct tare_node *arg;
    int64_t element, factor;
};
struct tare_observed_counter {
    struct tare_counter_term terms[TARE_COUNTER_TERMS];
    size_t n_terms; /* 0: there is no counter */
    int64_t offset, count;
    /* Set when slots are made, for one tensor: its values are least, least + step …, and their slots begin at first. */
    int64_t least, step, first;
};
/* The counter of a tensor; false: it has none. */
typedef bool (*tare_counter_fn)(void *arg, const struct tare_node *node, size_t output,
                                struct tare_observed_counter *counter);

struct tare_observed {
    struct tare_arena arena;
    struct tare_observed_slot *slots; /* sorted by function, node and output; then those of entries */
    size_t n_slots, slots_capacity;
    struct tare_observed_counter *counters; /* by slot of a whole tensor; without terms: it has none */
    size_t n_counters;
    struct tare_graph_table by_graph;    /* -> size_t by argument, then by node: its first slot + 1; 0: it has none */
    const struct tare_graph **functions; /* sorted by name */
    size_t n_functions, functions_capacity;
    /* Nodes whose work depends on values: If, Case, While, Switch …; sorted like slots. */
    const struct tare_node **choices;
    size_t n_choices, choices_capacity;
    size_t n_sides; /* of all of them together (calib/coverage.h) */
    struct tare_map visited;
    bool (*accepts)(void *arg, const struct tare_node *node, size_t output);
    tare_counter_fn counter; /* NULL: no tensor has one */
    void *accepts_arg;
};

/* Traverses the graph from the signature's outputs. `accepts` NULL: every floating-point tensor that is not a constant.
 * `counter` NULL: none has statistics by entry. Free with tare_observed_free, also after a failure. */
tare_status tare_observed_make(struct tare_observed *out, const struct tare_signature *signature,
                               bool (*accepts)(void *arg, const struct tare_node *node, size_t output),
                               tare_counter_fn counter, void *arg) TARE_WARN_UNUSED;
void tare_observed_free(struct tare_observed *observed);
/* The slot of an output, -1 when it is not observed. */
ptrdiff_t tare_observed_find(const struct tare_observed *observed, const struct tare_node *node, size_t output);
/* Whether a node is a term of the counter of a slot. */
bool tare_observed_counts(const struct tare_observed *observed, const struct tare_node *node);

#endif
