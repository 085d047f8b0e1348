/* The computation of a TPUPartitionedCall: one cluster, its metadata, and the ops and outputs allowed in it. */
#include "interpreter/validation/validate_internal.h"

#include <string.h>

/* Ends of the computation that stay on the host. */
static const char *const host_ops[] = { "TPUReplicatedInput", "TPUReplicatedOutput", "TPUCompilationResult",
                                        "TPUOrdinalSelector", NULL };
/* Ops that the bridge lowers itself, whatever kernels there are. */
static const char *const lowered_ops[] = { "PartitionedCall",
                                           "StatefulPartitionedCall",
                                           "If",
                                           "StatelessIf",
                                           "While",
                                           "StatelessWhile",
                                           "Case",
                                           "StatelessCase",
                                           "NoOp",
                                           "Const",
                                           "Identity",
                                           "IdentityN",
                                           "ReadVariableOp",
                                           "Assert",
                                           "VarHandleOp",
                                           "TPUReplicateMetadata",
                                           NULL };
static const char *const nested_ops[] = { "TPUPartitionedCall", "BatchFunction", "TPUOrdinalSelector", NULL };

static bool is_tpu_dtype(int dtype) {
    switch (tare_dtype_base(dtype)) {
    case TARE_DT_STRING:
    case TARE_DT_COMPLEX128:
    case TARE_DT_QINT16:
    case TARE_DT_QUINT16:
    case TARE_DT_VARIANT:
        return false;
    default:
        return true;
    }
}

static const char *cluster_of(const struct tare_node *node) {
    return tare_node_string(node, "_tpu_replicate", NULL);
}

/* ---- inside ---- */

struct inside {
    struct tare_validator *validator;
    struct tare_map seen; /* functions */
};

static void check_inside(struct inside *inside, const struct tare_node *node);

static tare_status check_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct inside *inside = arg;
    (void)node;
    if (tare_map_get(&inside->seen, callee->name)) return TARE_OK;
    if (!tare_map_set(&inside->seen, callee->name, callee)) return TARE_NO_MEMORY;
    for (size_t i = 0; i < callee->n_nodes; i++)
        if (!callee->nodes[i]->dead) check_inside(inside, callee->nodes[i]);
    return TARE_OK;
}

static void check_inside(struct inside *inside, const struct tare_node *node) {
    static const char *const type_attrs[] = { "T", "dtype", "DstT", "SrcT" };
    struct tare_validator *validator = inside->validator;
    bool (*compiles)(const char *) = validator->options->compiles;
    if (strcmp(node->op, "Placeholder") == 0 || tare_op_is_one_of(node->op, nested_ops))
        tare_fault_at(validator, node, "is inside a TPU computation");
    else if (compiles && node->def && !tare_op_is_one_of(node->op, lowered_ops) &&
             !tare_op_is_one_of(node->op, host_ops) && !compiles(node->op))
        tare_fault_at(validator, node, "op isn't compilable for TPU device");
    for (size_t i = 0; i < sizeof type_attrs / sizeof *type_attrs; i++) {
        int dtype = tare_node_type(node, type_attrs[i], TARE_DT_FLOAT);
        if (!validator->options->any_tpu_dtypes && !is_tpu_dtype(dtype))
            tare_fault_at(validator, node, "attr %s is %s, which a TPU lacks", type_attrs[i], tare_dtype_name(dtype));
    }
    if (tare_node_each_function(node, check_callee, inside) != TARE_OK) validator->out_of_memory = true;
}

/* ---- the cluster's edge ---- */

/* The clusters of a function, from the attributes of its nodes. */
struct cluster {
    const char *name;
    size_t others;   /* nodes of clusters of another name */
    size_t metadata; /* TPUReplicateMetadata nodes in the cluster */
};

static struct cluster find_cluster(const struct tare_graph *graph) {
    struct cluster found = { 0 };
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        const char *name = node->dead ? NULL : cluster_of(node);
        if (!name) continue;
        if (!found.name) found.name = name;
        found.others += strcmp(found.name, name) != 0;
        found.metadata += strcmp(node->op, "TPUReplicateMetadata") == 0 && strcmp(found.name, name) == 0;
    }
    return found;
}

static void check_boundary(struct tare_validator *validator, const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead) continue;
        if (cluster_of(node) && tare_op_is_one_of(node->op, host_ops))
            tare_fault_at(validator, node, "is marked as part of the cluster");
        if (cluster_of(node) || strcmp(node->op, "TPUReplicatedOutput") == 0) continue;
        for (size_t k = 0; k < node->n_inputs; k++) {
            const struct tare_node *input = node->inputs[k].node;
            if (input && cluster_of(input))
                tare_fault_at(
                    validator, node,
                    "Undeclared output of TPU computation: takes %s:%d out of the cluster, only TPUReplicatedOutput "
                    "may",
                    input->name, node->inputs[k].index);
        }
    }
    for (size_t i = 0; i < graph->n_returns; i++) {
        const struct tare_node *node = graph->returns[i].edge.node;
        if (node && cluster_of(node))
            tare_fault(validator, graph->name, "returns %s straight out of the cluster", node->name);
    }
}

void tare_validate_tpu(struct tare_validator *validator, const struct tare_node *node) {
    const struct tare_graph *graph = strcmp(node->op, "TPUPartitionedCall") == 0 ? tare_node_function(node, "f") : NULL;
    struct inside inside = { .validator = validator };
    struct cluster cluster;
    if (!graph || tare_map_get(&validator->tpu_functions, graph->name)) return;
    if (!tare_map_set(&validator->tpu_functions, graph->name, (void *)graph)) validator->out_of_memory = true;
    cluster = find_cluster(graph);
    if (!cluster.name || cluster.others) {
        tare_fault(validator, graph->name, "runs on a TPU with %s",
                   cluster.name ? "more than one cluster" : "no cluster");
        return;
    }
    if (cluster.metadata == 0) tare_fault(validator, graph->name, "Missing TPUReplicateMetadata node");
    if (cluster.metadata > 1)
        tare_fault(validator, graph->name, "has %zu TPUReplicateMetadata nodes in its cluster", cluster.metadata);
    check_boundary(validator, graph);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *member = graph->nodes[i];
        if (!member->dead && cluster_of(member) && strcmp(member->op, "TPUReplicateMetadata") != 0)
            check_inside(&inside, member);
    }
    tare_map_free(&inside.seen);
}
