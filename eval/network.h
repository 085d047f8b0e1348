/* The network as a reader sees it: its layers in the order of execution, what each of them reads, and where branches
 * meet. For the picture of the network in report pages. */
#ifndef TARE_EVAL_NETWORK_H
#define TARE_EVAL_NETWORK_H

#include "eval/explain.h"

enum tare_network_kind {
    TARE_NETWORK_INPUT,  /* an input of the signature; `node` is its key */
    TARE_NETWORK_LAYER,  /* an op that quantization considers: `layer` is set */
    TARE_NETWORK_MERGE,  /* any other op that reads several of these: an addition, a concatenation */
    TARE_NETWORK_CALL,   /* a loop or a choice of branches; its layers follow, one level deeper */
    TARE_NETWORK_OUTPUT, /* an output of the signature; `node` is its key */
};

struct tare_network_unit {
    enum tare_network_kind kind;
    const char *function, *node, *op;     /* op is "" for inputs and outputs */
    const struct tare_explanation *layer; /* NULL: quantization does not consider it */
    size_t *sources;                      /* the units that it reads, ascending, without duplicates */
    size_t n_sources;
    int depth;             /* number of loops and branches around it */
    const char **followed; /* ops that are computed from its result alone before the next unit, in their order */
    size_t n_followed;
    double seconds; /* estimate with the ops after it (tare_network_add_cost); 0: none */
};

struct tare_network {
    struct tare_network_unit *units; /* arena memory */
    size_t count;
    bool cut; /* the model has more than TARE_NETWORK_MOST: the rest is missing */
};
enum { TARE_NETWORK_MOST = 4000 };

/* Lists the units of a signature of the model that `layers` explains, calls inlined (a function that is called twice
 * is listed twice). Ops that read one unit only, such as a bias, an activation or a pooling, belong to it; what follows
 * from constants or shapes alone is left out. Strings are in the arena; `layers` must outlive the network. */
tare_status tare_network_make(struct tare_network *out, struct tare_arena *arena, const struct tare_graph_model *model,
                              const struct tare_signature *signature,
                              const struct tare_explanation_list *layers) TARE_WARN_UNUSED;
/* Adds the time of an op of the quantized model to the unit that it was made from: of the same name, or whose name it
 * begins with. */
void tare_network_add_cost(struct tare_network *network, const char *node, double seconds);

#endif
