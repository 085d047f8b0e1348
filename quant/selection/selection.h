/* Weights that are chosen at run time from a stack of weights: the expert of a row, the layer of an iteration of a
 * loop. The stack is quantized as a whole, with scales for each entry and output channel; integers, scales and sums are
 * then chosen by the same index. */
#ifndef TARE_QUANT_SELECTION_H
#define TARE_QUANT_SELECTION_H

#include "calib/observed.h"
#include "graph/bindings.h"
#include "interpreter/inference/model_shapes.h"
#include "quant/product_form.h"

/* What an index out of range means. */
enum tare_quant_index_rule {
    TARE_INDEX_CHECKED,   /* an error */
    TARE_INDEX_CLAMPED,   /* the nearest entry */
    TARE_INDEX_FROM_BACK, /* a negative one counts from the end */
};

struct tare_quant_index {
    int axis; /* of the stack */
    int64_t size;
    struct tare_edge edge;
    int element; /* of `edge`, which is a vector; below 0: the index is all of `edge` */
    enum tare_quant_index_rule rule;
};

struct tare_quant_scaling;

enum { TARE_MOST_FACTORS = 4 };

/* What the model multiplies each chosen entry by, or whether it chooses it at all: one number for each index. The
 * layer's result is that of the entry times it. */
struct tare_quant_factor {
    const struct tare_node *node;  /* Mul, RealDiv, Div; SelectV2, whose condition is the number */
    size_t input;                  /* of the node: the number */
    bool selects, inverted;        /* true, or false, chooses the entry, and otherwise `fill` is chosen */
    float fill;                    /* 0 or NaN: the entry times it */
    int rank, from[TARE_MAX_RANK]; /* the number's axes: of the index (TARE_FROM_INDEX and below), or of one element */
};

struct tare_quant_selection {
    struct tare_edge stack;          /* a constant, or the read of a variable */
    const struct tare_node *chooser; /* the first op that chooses from it */
    bool is_scaled;                  /* the model computes the weight from the entry: */
    struct tare_quant_scaling *scalings;
    size_t n_scalings;
    struct tare_quant_index indices[TARE_MAX_RANK];
    int n_indices;
    int64_t count; /* entries: the product of their sizes */
    struct tare_quant_factor factors[TARE_MOST_FACTORS];
    int n_factors;

    /* The layer's operand: `from` is an axis of the stack, or one of the enum below. */
    struct tare_shape operand;
    int from[TARE_MAX_RANK];

    /* Set by tare_quant_select_product. The chosen weight has the axes of the index (at most one index has any), then
     * those of an entry in the order batch, contracted, free. */
    int index_rank;
    unsigned squeezed_index;   /* bits 1 << axis of the index, of one element, that are removed before choosing */
    struct tare_shape entry;   /* of the chosen weight, without the axes of the index */
    bool reshapes;             /* the entries of the arranged stack have other axes of one element */
    int spread_at, n_spread;   /* axes of one element that chosen channels get */
    struct tare_edge position; /* the index into the stack, once it is emitted */
};
enum { TARE_FROM_NOTHING = -1 /* one element */, TARE_FROM_INDEX = -2 /* and below: axis 0, 1 … of the index */ };

/* What an edge chooses from a stack, in arena memory; NULL: it is something else. */
tare_status tare_quant_find_selection(struct tare_quant_selection **out, struct tare_arena *arena,
                                      struct tare_edge edge, const struct tare_model_shapes *shapes) TARE_WARN_UNUSED;
/* The op that keeps an edge from being followed to its stack; NULL: it is followed. */
const struct tare_node *tare_quant_obstacle(struct tare_arena *arena, struct tare_edge edge,
                                            const struct tare_model_shapes *shapes);
/* The number of the chosen entry, from 0 to s->count - 1, as a sum of arguments of the function: the iterations of a
 * loop, in any order, of one around it, and parts of an iteration. False: the index is something else, or entries have
 * factors. */
bool tare_quant_find_counter(struct tare_observed_counter *counter, const struct tare_quant_selection *selection);
/* Whether both choose the same entry in every iteration, of as many. False: also if one is NULL or has no counter. */
bool tare_quant_same_counter(const struct tare_quant_selection *a, const struct tare_quant_selection *b);
/* Extends the description of the product with the chosen weight, which was described as a constant of the shape
 * `operand`, to that with the whole stack: its batches are those of all entries. TARE_UNSUPPORTED with the reason. */
tare_status tare_quant_select_product(struct tare_quant_product *product, struct tare_quant_selection *selection,
                                      const struct tare_shape *stack) TARE_WARN_UNUSED;
/* Whether two edges compute the same: exports repeat what computes an index. */
bool tare_quant_same_number(struct tare_edge a, struct tare_edge b);
/* Whether the node chooses from the stack, or from that of a scale. */
bool tare_quant_chooses_by(const struct tare_quant_selection *selection, const struct tare_node *chooser);
/* Whether all uses of a node's output lead to choices from the stack that `chooser` takes: `accepts` is asked for each
 * node and input that no such choice explains. */
bool tare_quant_only_selects(const struct tare_node *chooser, bool (*accepts)(void *arg, const struct tare_use *use),
                             void *arg);

#endif
