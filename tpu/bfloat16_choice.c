/* Which nodes compute in bfloat16. */
#include "tpu/bfloat16_internal.h"
#include "interpreter/ops/builtin.h"
#include "graph/calls.h"

#include <string.h>

static bool begins_with(const char *text, const char *prefix) {
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool tare_bf16_is_filtered(const struct tare_bfloat16_options *options, const char *op) {
    for (size_t i = 0; i < options->n_float_ops; i++) {
        const char *name = options->float_ops[i];
        if (strcmp(begins_with(name, "tf.") ? name + 3 : name, op) == 0) return true;
    }
    return false;
}

bool tare_bf16_follows(const struct tare_node *node) {
    static const char *const ops[] = {
        "PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "Case", "StatelessCase",
        "While",           "StatelessWhile",          NULL
    };
    return !node->def || tare_op_is_one_of(node->op, ops);
}

/* Ops that hold on to a dtype for other reasons than computing in it: bits, formats, values made for the outside. */
static bool is_bound_to_float(const struct tare_node *node) {
    static const char *const ops[] = {
        "Placeholder",  "PlaceholderWithDefault", "Bitcast",   "Dequantize", "Range",     "LinSpace",
        "ParseExample", "ParseExampleV2",         "DecodeRaw", "SaveV2",     "RestoreV2", NULL
    };
    return tare_op_is_one_of(node->op, ops) || begins_with(node->op, "Quantize") || begins_with(node->op, "Uniform") ||
           begins_with(node->op, "FakeQuant") || begins_with(node->op, "_") || begins_with(node->op, "TPU");
}

/* Moves or makes elements without arithmetic on them. */
static bool is_flexible(const struct tare_node *node) {
    static const char *const ops[] = { "Identity", "IdentityN",  "StopGradient", "Snapshot",    "Cast",
                                       "Fill",     "ZerosLike",  "OnesLike",     "OneHot",      "Reshape",
                                       "Squeeze",  "ExpandDims", "Transpose",    "Pack",        "Unpack",
                                       "ConcatV2", "Slice",      "StridedSlice", "EnsureShape", "Reverse",
                                       NULL };
    return (node->def->row && node->def->row->flags & TARE_OP_MOVE) || tare_op_is_one_of(node->op, ops);
}

static bool allows_bfloat16(const struct tare_op_attr *attr) {
    if (!attr->allowed) return true;
    for (size_t i = 0; i < attr->allowed->count; i++)
        if (attr->allowed->items[i].type == TARE_DT_BFLOAT16) return true;
    return false;
}

/* Whether the node has an attribute by which it can become bfloat16; *refuses when one that is float32 cannot. */
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

/* Resources hold float32 whatever reads them; references are TensorFlow 1 variables. */
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

static bool names_function(const struct tare_node *node) {
    for (size_t a = 0; a < node->def->n_attrs; a++)
        if (node->def->attrs[a].kind == TARE_ATTR_FUNC) return true;
    return false;
}

static enum tare_bf16_choice choose(const struct tare_bf16_job *job, const struct tare_node *node) {
    const struct tare_op_def *builtin = tare_ops_find(tare_ops_builtin(), node->op);
    bool refuses;
    if (tare_bf16_follows(node)) return TARE_BF16_CALL;
    if (tare_bf16_is_filtered(job->options, node->op)) return TARE_BF16_KEEP;
    if (strcmp(node->op, "Const") == 0)
        return tare_node_type(node, "dtype", 0) == TARE_DT_FLOAT ? TARE_BF16_CONST : TARE_BF16_KEEP;
    if (node->def != builtin) return TARE_BF16_KEEP; /* a custom op knows the dtypes that it was made for */
    if (names_function(node) || is_bound_to_float(node) || touches_state(node) || has_integer_operands(node))
        return TARE_BF16_KEEP;
    if (begins_with(node->op, "TensorList") || strcmp(node->op, "EmptyTensorList") == 0) {
        if (!job->lists) return TARE_BF16_KEEP;
    }
    if (!can_convert(node, &refuses) || refuses) return TARE_BF16_KEEP;
    return is_flexible(node) ? TARE_BF16_FLEXIBLE : TARE_BF16_CONVERT;
}

tare_status tare_bf16_choose(struct tare_bf16_job *job) {
    bool *exact, *served = NULL;
    job->n_nodes = job->graph->n_nodes;
    job->choices = TARE_NEW_ARRAY(job->arena, enum tare_bf16_choice, job->n_nodes + 1);
    if (!job->choices) return TARE_NO_MEMORY;
    if (job->graph == job->graph->model->main)
        TARE_TRY(tare_model_served_nodes(&served, job->arena, job->graph->model));
    TARE_TRY(tare_bf16_mark_exact(&exact, job->arena, job->graph));
    for (size_t i = 0; i < job->n_nodes; i++) {
        if (job->graph->nodes[i]->dead || (served && !served[i])) continue;
        job->choices[i] = choose(job, job->graph->nodes[i]);
        if (exact[i] && (job->choices[i] == TARE_BF16_CONVERT || job->choices[i] == TARE_BF16_FLEXIBLE))
            job->choices[i] = TARE_BF16_KEEP;
    }
    return TARE_OK;
}
