/* The ops of one graph by the groups in which they are computed; internal to tpu/cost.
 *
 * An elementwise op belongs to the group of its latest input if it has as many results as that; identities and other
 * views to that of their input; every other op begins a group. Then groups become parts of others (tare_fused_join):
 *
 * - Elementwise ops and slices that at most two groups read, and not as integers of a product, are computed by these.
 * - A mean over all positions is computed by the convolution before it.
 * - A float argument is converted by an op of its own for a convolution of more columns than a matrix unit has.
 * - A convolution is computed inside the next one if that reads no value more than nine times; one of images with few
 *   channels only if it has a stride, and of many images. In int8, whose padding with the zero point comes between,
 *   only one of several taps is, inside a 1 × 1 one. */
#ifndef TARE_TPU_COST_GROUPS_H
#define TARE_TPU_COST_GROUPS_H

#include "graph/bindings.h"
#include "tpu/cost/fused.h"
#include "tpu/cost/product.h"
#include "tpu/cost/schedule.h"

struct tare_fusing {
    struct tare_arena *arena;
    struct tare_bindings *bindings;
    struct tare_inference *inference; /* of all graphs */
    struct tare_fused_cost *total;
    void (*each)(void *arg, const struct tare_node *first, const struct tare_fused_cost *group);
    void *arg;
    int64_t batch; /* open first dimensions */
    double times;  /* that the graph runs: the trips of the loops around it */
    int depth;
    size_t visited; /* nodes, once per call path, and constants, once per use */
};

enum tare_fused_kind {
    TARE_FUSED_OTHER,
    TARE_FUSED_PRODUCT,
    TARE_FUSED_ELEMENTWISE,
    TARE_FUSED_REDUCTION,
    TARE_FUSED_SOFTMAX,
    TARE_FUSED_SLICE, /* reads a part */
    TARE_FUSED_PADDING,
    TARE_FUSED_JOINT,  /* a concatenation */
    TARE_FUSED_REPEAT, /* an image enlarged, say */
    TARE_FUSED_GATHER,
};

enum {
    TARE_FUSED_USERS = 2,
    TARE_FUSED_FIRST_LEVELS = 2,
    TARE_FUSED_MOST_READ = 8,
    TARE_FUSED_MOST_NODES = 400000 /* of all call paths */
};

/* One op with those that are computed with it. */
struct tare_fused_group {
    struct tare_fused_cost cost;
    struct tare_tpu_work_amounts work;
    enum tare_fused_kind kind;                       /* of its first op */
    struct tare_tpu_product product;                 /* its last one */
    bool integer;                                    /* a product of integers */
    double again;                                    /* how often its convolution reads a value */
    const struct tare_node *users[TARE_FUSED_USERS]; /* first ops of groups that read it */
    size_t n_users;                                  /* more than TARE_FUSED_USERS: of many */
    struct tare_edge output;                         /* that others read */
    bool has_bias, has_epilogue;                     /* ops after its product that add a constant, and others */
    bool has_more_outputs, is_result, reads_argument;
    bool gives_integers;              /* of 8 or 4 bits, that others read */
    const struct tare_node *argument; /* that it reads, the last one */
    int level; /* products and others before it that take time, on the longest way from an argument */
    const struct tare_node *before; /* the first op of the group that a reduction reads */
    const struct tare_node *inside; /* the first op of the group that computes it, or NULL */
    bool is_inner, has_inner;       /* of two convolutions, the one computed inside the other */
};

/* Nodes by position. */
struct tare_fused_graph {
    struct tare_fusing *f;
    const struct tare_graph *graph;
    const struct tare_shape *arg_shapes;
    struct tare_shape **shapes;
    struct tare_node **order;
    size_t n_order;
    bool *needed, *constant;                            /* a result needs it; it is computed of constants alone */
    const struct tare_node **leader;                    /* the first op of its group */
    bool **written;                                     /* by output */
    struct tare_fused_group *groups;                    /* at their leaders */
    bool has_first[TARE_FUSED_FIRST_LEVELS];            /* a matrix product of this level */
    const struct tare_node *read[TARE_FUSED_MOST_READ]; /* arguments that an op quantizes or converts, the first ones */
    size_t n_read;
};

/* An op on known shapes. */
struct tare_fused_op {
    struct tare_infer infer;
    struct tare_cost cost;
    struct tare_tpu_product product;
    bool integer;
};

tare_status tare_fused_read_op(struct tare_fused_op *out, const struct tare_fused_graph *g,
                               const struct tare_node *node) TARE_WARN_UNUSED;

/* Adds an op to its group; the work of a call is that of what it calls. */
tare_status tare_fused_count(struct tare_fused_graph *g, const struct tare_node *node, bool is_call) TARE_WARN_UNUSED;

/* Adds a product, an op of its own group `own`, to the work of the group that computes it. */
void tare_fused_add_product(struct tare_fused_graph *g, const struct tare_fused_op *op, struct tare_fused_group *group,
                            const struct tare_fused_group *own);

/* A convolution whose float32 sums are the signature's result: what follows it takes no time of its own. */
bool tare_fused_gives_sums(const struct tare_fused_group *own);

/* Of a value, with open sizes closed. */
struct tare_shape tare_fused_shape(const struct tare_fused_graph *g, struct tare_edge edge);
double tare_fused_bytes(const struct tare_fused_graph *g, struct tare_edge edge);

bool tare_fused_is_integer(int dtype); /* of 8 or 4 bits */
bool tare_fused_is_elementwise(const struct tare_node *node);
bool tare_fused_reads_shape(const char *op);
enum tare_fused_kind tare_fused_kind_of(const struct tare_node *node);

/* The node that computes a value, skipping identities, reshapes and transpositions, which choose a layout. */
struct tare_edge tare_fused_source(struct tare_edge edge);

/* Marks constants and sets the groups' leaders. */
tare_status tare_fused_choose(struct tare_fused_graph *g) TARE_WARN_UNUSED;

/* Decides which groups are parts of others. Results are those of the signature, or, if NULL, of the graph. */
tare_status tare_fused_join(struct tare_fused_graph *g, const struct tare_signature *signature) TARE_WARN_UNUSED;

/* Whether an op is computed for a result, and takes time. */
bool tare_fused_is_counted(const struct tare_fused_graph *g, const struct tare_node *node);

/* The group that computes a node in the end. */
struct tare_fused_group *tare_fused_group_of(const struct tare_fused_graph *g, const struct tare_node *node);

/* The source of a result. */
struct tare_edge tare_fused_result(const struct tare_fused_graph *g, const struct tare_signature *signature, size_t i);

#endif
