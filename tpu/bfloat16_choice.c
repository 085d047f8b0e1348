/* Which nodes compute in bfloat16. */
#include "tpu/bfloat16_internal.h"
#include "interpreter/ops/builtin.h"
#include "graph/calls.h"
#include "graph/flags.h"
#include "graph/gradients.h"

#include <string.h>

static bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool tare_bf16_is_filtered(const struct tare_bfloat16_options *options, const char *op) {
    for (size_t i = 0; i < options->n_float_ops; i++)
        if (strcmp(options->float_ops[i], op) == 0) return true;
    return false;
}

bool tare_bf16_follows(const struct tare_node *node) {
    static const char *const ops[] = {
        "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase",
        "While",           "StatelessWhile"
    };
    if (!node->def) return true;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(node->op, ops[i]) == 0) return true;
    return false;
}

/* Ops whose dtype is not a compute dtype, and internal ops of the runtime. */
static bool is_bound_to_float(const struct tare_node *node) {
    return tare_node_has_flag(node, TARE_OP_FLOAT32) || begins_with(node->op, "_");
}

/* Interpolation weights, long sums and statistics: ops that stay float32 in the public converter (version 2), too,
 * though their definitions allow bfloat16. Its other 32 are those of is_bound_to_float, touches_state, names_function
 * and of definitions without bfloat16. */
static bool computes_in_float(const struct tare_node *node) {
    static const char *const ops[] = { "FusedBatchNormV3", "ResizeArea",         "ResizeBilinear",
                                       "SparseMatMul",     "SparseSegmentSqrtN", NULL };
    return tare_op_is_one_of(node->op, ops);
}

/* TensorFlow has no bfloat16 kernel for the CPU, which these may be left on, though their definitions allow bfloat16
 * (tests/golden/tensorflow/bfloat16_kernels.py lists them). */
static bool lacks_kernel(const struct tare_node *node) {
    static const char *const ops[] = { "ApproximateEqual",
                                       "BatchNormWithGlobalNormalization",
                                       "BesselI0",
                                       "BesselI0e",
                                       "BesselI1",
                                       "BesselI1e",
                                       "Dawsn",
                                       "Diag",
                                       "DiagPart",
                                       "Digamma",
                                       "Erfinv",
                                       "Expint",
                                       "FresnelCos",
                                       "FresnelSin",
                                       "Igamma",
                                       "Igammac",
                                       "LRN",
                                       "Lgamma",
                                       "LinSpace",
                                       "MatrixTriangularSolve",
                                       "Mod",
                                       "Ndtri",
                                       "QuantizeAndDequantizeV2",
                                       "QuantizeAndDequantizeV3",
                                       "QuantizeAndDequantizeV4",
                                       "RaggedRange",
                                       "Rint",
                                       "SparseAdd",
                                       "Spence",
                                       "TruncateMod",
                                       NULL };
    return tare_op_is_one_of(node->op, ops);
}

/* Moves or creates elements without arithmetic on them. */
static bool is_flexible(const struct tare_node *node) {
    return tare_node_has_flag(node, TARE_OP_MOVE | TARE_OP_CREATE) || strcmp(node->op, "Cast") == 0;
}

static bool allows_bfloat16(const struct tare_op_attr *attr) {
    if (!attr->allowed) return true;
    for (size_t i = 0; i < attr->allowed->count; i++)
        if (attr->allowed->items[i].type == TARE_DT_BFLOAT16) return true;
    return false;
}

/* Whether the node has a dtype attribute that can be set to bfloat16; *refuses: a float32 attribute cannot be. */
static bool can_convert(const struct tare_node *node, bool *refuses) {
    bool any = false;
    *refuses = false;
    for (size_t a = 0; a < node->def->n_attrs; a++) {
        const struct tare_op_attr *attr = &node->def->attrs[a];
        const struct tare_attr *list;
        bool is_float = false;
        if (attr->kind != TARE_ATTR_TYPE) continue;
        if (!attr->is_list) {
            is_float = tare_node_type(node, attr->name, 0) == TARE_DT_FLOAT;
        } else if ((list = tare_node_list(node, attr->name)) && list->kind == TARE_ATTR_TYPE) {
            for (size_t i = 0; i < list->count; i++)
                is_float |= list->items[i].type == TARE_DT_FLOAT;
        }
        if (is_float && !allows_bfloat16(attr)) *refuses = true;
        any |= is_float;
    }
    return any;
}

/* Variables store float32 whatever the dtype of their readers; references are TensorFlow 1 variables. */
static bool touches_state(const struct tare_node *node) {
    if (node->def->is_stateful) return true;
    for (size_t i = 0; i < node->n_inputs; i++) {
        struct tare_edge edge = node->inputs[i];
        if (tare_edge_dtype(edge) == TARE_DT_RESOURCE) return true;
        if ((size_t)edge.index < edge.node->n_outputs && tare_dtype_is_ref(edge.node->output_dtypes[edge.index]))
            return true;
    }
    return false;
}

static bool has_integer_operands(const struct tare_node *node) {
    if (!begins_with(node->op, "Xla")) return false;
    for (size_t i = 0; i < node->n_inputs && i < 2; i++) {
        int dtype = tare_edge_dtype(node->inputs[i]);
        if (dtype == TARE_DT_INT8 || dtype == TARE_DT_INT4 || dtype == TARE_DT_UINT8) return true;
    }
    return false;
}

/* Each dtype has other random numbers, which the model was not tested with: those of float32 are cast. */
static bool draws_numbers(const struct tare_node *node) {
    return begins_with(node->op, "StatelessRandom") || begins_with(node->op, "StatelessTruncatedNormal");
}

/* Gradients are functions of float32 values. */
static bool is_trained(const struct tare_node *node) {
    return node->graph->model->keep_gradients && (tare_node_keeps_gradient(node) || tare_node_is_captured(node));
}

static bool names_function(const struct tare_node *node) {
    for (size_t a = 0; a < node->def->n_attrs; a++)
        if (node->def->attrs[a].kind == TARE_ATTR_FUNC) return true;
    return false;
}

/* A look-up in a constant or variable: a table of float32 would be twice as large, so that its rows are cast. */
static bool looks_up_table(const struct tare_node *node) {
    const struct tare_node *table;
    if (strcmp(node->op, "GatherV2") != 0 && strcmp(node->op, "Gather") != 0) return false;
    table = node->inputs[0].node;
    while (tare_node_is(table, "Identity") && table->n_inputs)
        table = table->inputs[0].node;
    return tare_node_is(table, "Const") || tare_node_is(table, "ReadVariableOp");
}

static bool is_list_op(const struct tare_node *node) {
    return begins_with(node->op, "TensorList") || strcmp(node->op, "EmptyTensorList") == 0;
}

static enum tare_bf16_choice choose(const struct tare_bf16_job *job, const struct tare_node *node) {
    const struct tare_op_def *builtin = tare_ops_find(tare_ops_builtin(), node->op);
    bool refuses;
    if (tare_bf16_follows(node)) return TARE_BF16_CALL;
    if (tare_bf16_is_filtered(job->options, node->op)) return TARE_BF16_KEEP;
    if (strcmp(node->op, "Const") == 0)
        return tare_node_type(node, "dtype", 0) == TARE_DT_FLOAT ? TARE_BF16_CONST : TARE_BF16_KEEP;
    if (node->def != builtin) return TARE_BF16_KEEP; /* a custom op knows the dtypes that it was made for */
    if (names_function(node) || is_bound_to_float(node) || computes_in_float(node) || lacks_kernel(node) ||
        touches_state(node) || has_integer_operands(node) || draws_numbers(node) || is_trained(node))
        return TARE_BF16_KEEP;
    if (is_list_op(node) && !job->lists) return TARE_BF16_KEEP;
    if (!can_convert(node, &refuses) || refuses) return TARE_BF16_KEEP;
    return is_flexible(node) && !looks_up_table(node) ? TARE_BF16_FLEXIBLE : TARE_BF16_CONVERT;
}

/* Lists a node that would compute in bfloat16 otherwise. */
static tare_status list_kept(const struct tare_bf16_job *job, const struct tare_node *node, const char *reason) {
    struct tare_bf16_kept_list *list = job->options->kept;
    struct tare_bf16_kept *grown;
    if (!list) return TARE_OK;
    grown = tare_arena_append(list->arena, list->items, list->count, sizeof *grown);
    reason = tare_arena_strdup(list->arena, reason);
    if (!grown || !reason) return TARE_NO_MEMORY;
    grown[list->count++] = (struct tare_bf16_kept){ job->graph->name, node->name, node->op, reason };
    list->items = grown;
    return TARE_OK;
}

static tare_status list_kept_inputs(const struct tare_bf16_job *job) {
    for (size_t i = 0; i < job->graph->n_args; i++) {
        struct tare_node *arg = job->graph->args[i];
        const char *reason = tare_exact_edge(job->exact, (struct tare_edge){ arg, 0 });
        if (reason && arg->output_dtypes[0] == TARE_DT_FLOAT) TARE_TRY(list_kept(job, arg, reason));
    }
    return TARE_OK;
}

static tare_status choose_node(struct tare_bf16_job *job, struct tare_node *node, bool is_exact) {
    enum tare_bf16_choice *choice = &job->choices[node->position];
    const char *reason = tare_exact_node(job->exact, node);
    *choice = choose(job, node);
    if (*choice != TARE_BF16_CONVERT && *choice != TARE_BF16_FLEXIBLE) return TARE_OK;
    if (is_list_op(node)) return TARE_OK; /* job->lists decides for all of them, or lists and elements would differ */
    if (!reason && !is_exact) return TARE_OK;
    *choice = TARE_BF16_KEEP;
    return list_kept(job, node, reason ? reason : "scales or rounds quantized values");
}

tare_status tare_bf16_choose(struct tare_bf16_job *job) {
    const struct tare_graph_model *model = job->graph->model;
    bool *exact, *served = NULL;
    job->n_nodes = job->graph->n_nodes;
    job->choices = TARE_NEW_ARRAY(job->arena, enum tare_bf16_choice, job->n_nodes + 1);
    if (!job->choices) return TARE_NO_MEMORY;
    if (job->graph == model->main) TARE_TRY(tare_model_served_nodes(&served, job->arena, model));
    TARE_TRY(tare_bf16_mark_exact(&exact, job->arena, job->graph));
    TARE_TRY(list_kept_inputs(job));
    for (size_t i = 0; i < job->n_nodes; i++)
        if (!job->graph->nodes[i]->dead && (!served || served[i]))
            TARE_TRY(choose_node(job, job->graph->nodes[i], exact[i]));
    return TARE_OK;
}
