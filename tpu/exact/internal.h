/* Shared by the files of the analysis of exact values. */
#ifndef TARE_TPU_EXACT_INTERNAL_H
#define TARE_TPU_EXACT_INTERNAL_H

#include "base/map.h"
#include "graph/calls.h"
#include "graph/flags.h"
#include "graph/graph_table.h"
#include "graph/op.h"
#include "tpu/exact/values.h"
#include "tpu/exact/facts.h"
#include "tpu/exact/weights.h"

/* How far a use that needs exact values reaches back. Uses are followed in this order, so that no value is visited
 * again for a weaker reason. */
enum tare_exact_level {
    TARE_EXACT_PRODUCT,    /* through arithmetic; the product before it is float32, with operands linear in inputs */
    TARE_EXACT_RESULT,     /* the same, with operands that are inputs; others may be rounded */
    TARE_EXACT_ARITHMETIC, /* to the product before, which computes in bfloat16 */
    TARE_EXACT_OUTPUT,     /* the same, but a residual sum with other users may be bfloat16 */
    TARE_EXACT_LOCAL,      /* the same, but any value of a small mean may be bfloat16 */
    TARE_EXACT_LEVELS
};

/* Why a value must stay exact. */
struct tare_exact_why {
    const char *reason;
    enum tare_exact_level level;
};

/* A node that calls a function. */
struct tare_exact_caller {
    struct tare_node *node;
    struct tare_call_site site;
    struct tare_exact_caller *next;
};

/* The analysis of one graph. */
struct tare_exact_view {
    struct tare_graph *graph;
    bool converted;
    bool *served; /* of the main graph; NULL: all nodes count */
    struct tare_exact_caller *callers;
};

struct tare_exact_values {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    const struct tare_exact_options *options;
    struct tare_value_facts *facts;
    struct tare_exact_view *views; /* the main graph first */
    size_t n_views;
    struct tare_graph_table by_graph; /* -> struct tare_exact_view */
    struct tare_map by_edge, by_node, final, terms, limited;
    struct tare_exact_slot *worklist;
    bool has_lists;
};

/* An exact value: an edge, or the return of a function (tpu/exact/values.c); in by_node, a node that keeps its dtype.
 */
struct tare_exact_slot {
    struct tare_edge edge; /* its bytes are the key */
    struct tare_exact_why why;
    struct tare_exact_slot *next; /* in the worklist */
};

/* One kind of use, or of node, that needs exact values. */
struct tare_exact_kind {
    const char *reason; /* completes "the value …" */
    enum tare_exact_level level;
    bool always; /* also where only integers, ranks and final probabilities are exact (--bfloat16 all) */
    bool (*applies)(const struct tare_exact_values *values, const struct tare_exact_view *view,
                    const struct tare_node *node);
};

/* tpu/exact/kinds.c: the table; the last has no reason. */
extern const struct tare_exact_kind tare_exact_kinds[];
/* Floor, Ceil, Rint, Round. */
bool tare_exact_rounds_to_integers(const struct tare_node *node);

/* A test of one kind of node: the type of tare_exact_kind.applies. */
#define TARE_EXACT_TEST(name)                                                                                          \
    bool name(const struct tare_exact_values *values, const struct tare_exact_view *view, const struct tare_node *node)

/* Whether a check has found that the node, which may be an argument, changes outputs. */
TARE_EXACT_TEST(tare_exact_is_found);

/* tpu/exact/distances.c: x², (x − y)²; */
bool tare_exact_is_square(const struct tare_node *node);
/* x² + c² − 2 x·c: a sum of squares of x, and a product of x; */
TARE_EXACT_TEST(tare_exact_is_expanded_distance);
/* E[x · xᵀ] − m · mᵀ of a mean m of x; */
TARE_EXACT_TEST(tare_exact_is_covariance);
/* 1 − a·b and acos(a·b), where a or b is divided by its norm; */
TARE_EXACT_TEST(tare_exact_is_cosine_distance);
/* a value that is divided by its norm; */
bool tare_exact_is_unit(const struct tare_exact_values *values, struct tare_edge edge);
/* the value before moves and arithmetic with constants: max(x, ε), x + ε, 2 x, −x, max over an axis. */
struct tare_edge tare_exact_before_constants(const struct tare_exact_values *values, struct tare_edge edge);

/* tpu/exact/angles.c: sines and cosines, of large arguments, exp(i a); exponents; parts of complex numbers. */
TARE_EXACT_TEST(tare_exact_is_angle);
TARE_EXACT_TEST(tare_exact_is_large_angle);
TARE_EXACT_TEST(tare_exact_is_complex_angle);
TARE_EXACT_TEST(tare_exact_is_exponent);
TARE_EXACT_TEST(tare_exact_is_large_exponent);
TARE_EXACT_TEST(tare_exact_becomes_complex);

/* tpu/exact/norms.c: x − mean(x) of a product x of inputs. */
TARE_EXACT_TEST(tare_exact_normalizes_product);

/* tpu/exact/differences.c */
TARE_EXACT_TEST(tare_exact_differs_from_itself);
TARE_EXACT_TEST(tare_exact_differs_by_weights);
TARE_EXACT_TEST(tare_exact_is_weighted_variance);
TARE_EXACT_TEST(tare_exact_compares_probabilities);
/* Whether the logarithm of the node's value is taken, after at most `steps` moves and limits. */
bool tare_exact_has_logarithm(const struct tare_node *node, int steps);

/* tpu/exact/linear.c: a product with at most 16 weights, or with weights of one sign, and kinds of linear functions of
 * inputs. */
bool tare_exact_is_small_matrix(const struct tare_exact_values *values, const struct tare_node *node);
bool tare_exact_is_weighted_mean(const struct tare_exact_values *values, const struct tare_node *node);
TARE_EXACT_TEST(tare_exact_averages_inputs);
TARE_EXACT_TEST(tare_exact_averages_large_values);
TARE_EXACT_TEST(tare_exact_removes_mean);
TARE_EXACT_TEST(tare_exact_multiplies_inputs);
TARE_EXACT_TEST(tare_exact_compares_products);
TARE_EXACT_TEST(tare_exact_is_projection);
TARE_EXACT_TEST(tare_exact_is_log_spectrum);
TARE_EXACT_TEST(tare_exact_is_solved);

/* tpu/exact/results.c: outputs that are linear in the inputs (level TARE_EXACT_PRODUCT), final probabilities and
 * outputs with a large mean (TARE_EXACT_RESULT), other outputs (TARE_EXACT_OUTPUT). */
tare_status tare_exact_linear_outputs(struct tare_exact_values *values);
tare_status tare_exact_probabilities(struct tare_exact_values *values);
tare_status tare_exact_large_outputs(struct tare_exact_values *values);
tare_status tare_exact_outputs(struct tare_exact_values *values);

/* tpu/exact/loops.c: states that a loop adds to (TARE_EXACT_ARITHMETIC). */
tare_status tare_exact_loop_states(struct tare_exact_values *values);

/* tpu/exact/limits.c: edges of inputs that are limited to the range of bfloat16. */
tare_status tare_exact_limits(struct tare_exact_values *values);

/* tpu/exact/forward.c: arithmetic after exact values, and values that pass from one op to another. */
tare_status tare_exact_forward(struct tare_exact_values *values);
/* Why an operand is exact, looking through moves, which have the dtype of their neighbours; NULL: it is not. */
const struct tare_exact_slot *tare_exact_operand(const struct tare_exact_values *values, struct tare_edge edge);

/* tpu/exact/boundaries.c: arguments and results that are computed and read in float32. */
tare_status tare_exact_boundaries(struct tare_exact_values *values);

static inline struct tare_edge tare_exact_before_moves(struct tare_edge edge) {
    while (!tare_node_is_arg(edge.node) && tare_node_has_flag(edge.node, TARE_OP_MOVE) && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    return edge;
}

/* tpu/exact/values.c, for those. */
struct tare_exact_slot *tare_exact_find(const struct tare_map *map, const void *node, int index);
/* Adds a slot to one of the maps; *added: NULL if it is known. */
tare_status tare_exact_add(struct tare_exact_slot **added, struct tare_exact_values *values, struct tare_map *map,
                           const void *node, int index, struct tare_exact_why why);
/* The node keeps its dtype. */
tare_status tare_exact_keep(struct tare_exact_values *values, const struct tare_node *node, struct tare_exact_why why);
/* The edge stays float32, or the return of a graph, whose index is tare_exact_return_index. */
tare_status tare_exact_mark(struct tare_exact_values *values, const void *node, int index, struct tare_exact_why why);
static inline int tare_exact_return_index(size_t i) {
    return -1 - (int)i;
}
struct tare_exact_view *tare_exact_view_of(const struct tare_exact_values *values, const struct tare_graph *graph);
/* Whether node i of the graph runs. */
bool tare_exact_counts(const struct tare_exact_view *view, size_t i);
/* Whether the edge is an argument of the body of a loop, and the view is of that body. */
bool tare_exact_is_loop_variable(const struct tare_exact_view *view, struct tare_edge edge);
bool tare_exact_carries_floats(int dtype);
tare_status tare_exact_push(struct tare_exact_values *values, struct tare_edge edge, struct tare_exact_why why);
/* Pushes the inputs of a node, which itself keeps its dtype; the reason gets the node's name. */
tare_status tare_exact_push_inputs(struct tare_exact_values *values, const struct tare_node *node, const char *what,
                                   enum tare_exact_level level);
const char *tare_exact_reason(struct tare_exact_values *values, const char *what, const struct tare_node *node);

#endif
