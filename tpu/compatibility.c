/* The compatibility check: ops, dtypes, constants, variables, boundaries. */
#include "tpu/compatibility.h"
#include "base/ascii.h"
#include "graph/calls.h"
#include "graph/graph_table.h"
#include "graph/op.h"
#include "tpu/compatibility_internal.h"
#include "tpu/functions.h"
#include "tpu/shape_conflicts.h"
#include "tpu/written_variables.h"

#include <stdlib.h>
#include <string.h>

#define MOVE_OUT "keep it on the CPU: split the function so that this part runs before or after the TPU function"

#define QUANTIZE_FOR_TPU "quantize the float model with the op set xla, which a TPU compiles"

#define RETURN_DENSE "return a dense tensor, from which the CPU makes it"

#define MAKE_DENSE "call tf.sparse.to_dense on the CPU and pass the dense tensor to the TPU function"

/* A function that was checked with these constant arguments; its findings are in the list. */
struct checked {
    const struct tare_graph *graph;
    const bool *constant;
    struct checked *next; /* of the same graph */
};

struct checker {
    struct tare_arena *arena;
    struct tare_graph_table checked; /* function -> struct checked */
    struct tare_map texts;           /* node and text of each finding */
    struct origins *origins;         /* of the graph that is being checked */
    const struct tare_graph_model *model;
    struct tare_tpu_finding *found;
    size_t count, capacity;
    int depth;
    const struct tare_graph *part_of;    /* only a part of this graph is looked at; NULL: everything */
    const bool *part;                    /* its nodes by position; values of all others are dynamic */
    struct tare_graph *const *functions; /* all that are to be placed */
    size_t n_functions;
    const struct tare_graph *function;   /* that is being checked, with the functions that it calls */
    struct tare_tpu_conflicts conflicts; /* of it, found at its first loop or conditional */
    struct tare_tpu_written written;     /* on the CPU */
    bool knows_written;
};

static tare_status add(struct checker *checker, enum tare_tpu_finding_kind kind, const struct tare_graph *function,
                       const struct tare_node *node, const char *text) {
    const char *key = text ? tare_arena_printf(checker->arena, "%p %s", (const void *)node, text) : NULL;
    if (!key) return TARE_NO_MEMORY;
    if (tare_map_get(&checker->texts, key)) return TARE_OK; /* a function may be reached by several calls */
    if (!tare_map_set(&checker->texts, key, (void *)(uintptr_t)key)) return TARE_NO_MEMORY;
    if (checker->count == checker->capacity) {
        const size_t extra = checker->capacity + 4;
        struct tare_tpu_finding *grown =
            tare_arena_extend(checker->arena, checker->found, checker->count, extra, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        checker->found = grown;
        checker->capacity += extra;
    }
    checker->found[checker->count++] = (struct tare_tpu_finding){ kind, function, node, text };
    return TARE_OK;
}

/* ---- ops ---- */

static int compare_name(const void *name, const void *row) {
    return strcmp(name, ((const struct tare_xla_op *)row)->name);
}

const struct tare_xla_op *tare_tpu_find_op(const char *name) {
    return bsearch(name, tare_xla_ops, tare_n_xla_ops, sizeof *tare_xla_ops, compare_name);
}

/* Turned into functional control flow before compilation. */
static bool is_old_control_flow(const char *op) {
    static const char *const ops[] = { "Switch", "Merge", "Enter", "Exit", "NextIteration", "LoopCond", NULL };
    return tare_op_is_one_of(op, ops);
}

/* Functions called by name are checked as well. */
static bool is_lowered(const struct tare_node *node) {
    if (!node->def) return tare_model_find_function(node->graph->model, node->op);
    return is_old_control_flow(node->op);
}

static const char *way_out(const struct tare_node *node) {
    if (strstr(node->op, "Sparse") && !strstr(node->op, "SparseSegment")) return MAKE_DENSE; /* those take dense data */
    if (tare_node_is(node, "XlaCustomCallV2")) return TARE_TPU_OTHER_PLATFORM;
    if (strstr(node->op, "Hybrid")) return QUANTIZE_FOR_TPU; /* of the op set uniform_quantized */
    return node->def ? MOVE_OUT : "it is a custom op without definition; " MOVE_OUT;
}

bool tare_tpu_compiles(const char *op) {
    return tare_tpu_find_op(op) || is_old_control_flow(op);
}

bool tare_tpu_decides_rows(const struct tare_node *node) {
    static const char *const ops[] = { "DynamicPartition",
                                       "ListDiff",
                                       "NonMaxSuppression",
                                       "NonMaxSuppressionV2",
                                       "NonMaxSuppressionV3",
                                       "NonMaxSuppressionV4",
                                       "NonMaxSuppressionV5",
                                       "SegmentMax",
                                       "SegmentMean",
                                       "SegmentMin",
                                       "SegmentProd",
                                       "SegmentSum",
                                       "SparseSegmentMean",
                                       "SparseSegmentSqrtN",
                                       "SparseSegmentSum",
                                       "StringSplit",
                                       "StringSplitV2",
                                       "Unique",
                                       "UniqueV2",
                                       "UniqueWithCounts",
                                       "UniqueWithCountsV2",
                                       "Where",
                                       NULL };
    return tare_op_is_one_of(node->op, ops) && !tare_node_bool(node, "pad_to_max_output_size", false);
}

/* A custom call whose target exists on CPU only. */
static bool is_cpu_call(const struct tare_node *node) {
    if (!tare_node_is(node, "XlaCustomCallV2")) return false;
    return strncmp(tare_node_string(node, "call_target_name", ""), "lapack_", strlen("lapack_")) == 0;
}

/* Ops that XLA compiles for tensors of one scale alone, not for one scale per channel: the others are rejected by its
 * conversion to StableHLO ("failed to legalize operation"). */
static bool has_channel_scales(const struct tare_node *node) {
    static const struct {
        const char *op, *axis;
    } ops[] = { { "UniformQuantizedDot", "rhs_quantization_axis" },
                { "UniformQuantizedAdd", "lhs_quantization_axis" },
                { "UniformQuantizedAdd", "rhs_quantization_axis" },
                { "UniformQuantizedClipByValue", "quantization_axis" } };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tare_node_is(node, ops[i].op) && tare_node_int(node, ops[i].axis, -1) >= 0) return true;
    return false;
}

bool tare_tpu_calls_open_shape(const struct tare_node *node) {
    const struct tare_attr *shapes =
        tare_node_is(node, "XlaCustomCallV2") ? tare_node_list(node, "result_shapes") : NULL;
    for (size_t i = 0; shapes && shapes->kind == TARE_ATTR_SHAPE && i < shapes->count; i++)
        for (int d = 0; d < shapes->items[i].shape->rank; d++)
            if (shapes->items[i].shape->dims[d] < 0) return true;
    return false;
}

static tare_status check_op(struct checker *checker, const struct tare_node *node) {
    if (tare_tpu_calls_open_shape(node))
        return add(checker, TARE_TPU_NOT_COMPILABLE, node->graph, node,
                   tare_arena_printf(checker->arena,
                                     "'tf.%s' op isn't compilable for TPU device: the call of %s has results of open "
                                     "shapes, with which TensorFlow does not load the model. (node '%s' in function "
                                     "%s; export the model for a fixed batch size)",
                                     node->op, tare_node_string(node, "call_target_name", ""), node->name,
                                     node->graph->name));
    if (has_channel_scales(node))
        return add(
            checker, TARE_TPU_NOT_COMPILABLE, node->graph, node,
            tare_arena_printf(checker->arena,
                              "'tf.%s' op isn't compilable for TPU device with one scale per channel. (node '%s' "
                              "in function %s; quantize the float model with --granularity per_tensor, or with "
                              "the op set xla)",
                              node->op, node->name, node->graph->name));
    if (is_lowered(node) || (tare_tpu_find_op(node->op) && !is_cpu_call(node))) return TARE_OK;
    return add(checker, TARE_TPU_NOT_COMPILABLE, node->graph, node,
               tare_arena_printf(checker->arena,
                                 "'tf.%s' op isn't compilable for TPU device. (node '%s' in function %s; %s)", node->op,
                                 node->name, node->graph->name, way_out(node)));
}

/* ---- dtypes ---- */

bool tare_tpu_has_dtype(int dtype) {
    switch (tare_dtype_base(dtype)) {
    case TARE_DT_STRING:
    case TARE_DT_COMPLEX128:
    case TARE_DT_QINT16:
    case TARE_DT_QUINT16:
        return false;
    default:
        return true;
    }
}

/* The dtype sets named in kernel registrations; other names are treated as unrestricted. */
static const char *named_set(const char *name, size_t size) {
    static const char *const sets[][2] = {
        { "kFloatTypes", "half,float,double,bfloat16" },
        { "kFloatAndComplexTypes", "half,float,double,bfloat16,complex64,complex128" },
        { "kNumericTypes",
          "uint8,uint16,uint32,uint64,int8,int16,int32,int64,half,float,double,complex64,complex128,bfloat16" },
    };
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        if (strlen(sets[i][0]) == size && strncmp(sets[i][0], name, size) == 0) return sets[i][1];
    return NULL;
}

/* True if the list "DT_FLOAT,DT_HALF" or "half,float" contains the dtype. */
static bool list_has(const char *list, size_t size, int dtype) {
    char name[32];
    for (size_t at = 0; at < size;) {
        size_t length = 0;
        if (size - at > 3 && strncmp(list + at, "DT_", 3) == 0) at += 3;
        while (at < size && list[at] != ',' && length + 1 < sizeof name)
            name[length++] = tare_lower(list[at++]);
        if (tare_dtype_from_name(name, length) == dtype) return true;
        while (at < size && list[at] != ',')
            at++;
        at++;
    }
    return false;
}

/* Checks one clause "T={…}" against the node; true when it matches or does not apply. */
static bool clause_fits(const char *clause, size_t size, const struct tare_node *node) {
    const char *equals = memchr(clause, '=', size), *value, *set;
    char name[32];
    int dtype;
    if (!equals || (size_t)(equals - clause) >= sizeof name) return true;
    memcpy(name, clause, (size_t)(equals - clause));
    name[equals - clause] = '\0';
    dtype = tare_node_type(node, name, TARE_DT_INVALID);
    if (!tare_dtype_get(dtype)) return true;
    value = equals + 1;
    size -= (size_t)(value - clause);
    set = named_set(value, size);
    if (set) return list_has(set, strlen(set), dtype);
    if (value[0] == '{') {
        const char *end = memchr(value, '}', size);
        return !end || list_has(value + 1, (size_t)(end - value) - 1, dtype);
    }
    return value[0] == 'k' || list_has(value, size, dtype);
}

static tare_status check_constraints(struct checker *checker, const struct tare_node *node) {
    const struct tare_xla_op *op = tare_tpu_find_op(node->op);
    const char *clause = op ? op->types : NULL;
    while (clause && *clause) {
        size_t size = strcspn(clause, ";");
        if (!clause_fits(clause, size, node))
            TARE_TRY(add(
                checker, TARE_TPU_BAD_TYPE, node->graph, node,
                tare_arena_printf(checker->arena,
                                  "'tf.%s' op isn't compilable for TPU device with these types (expected %.*s; node "
                                  "'%s' in function %s; cast its inputs, or %s)",
                                  node->op, (int)size, clause, node->name, node->graph->name, MOVE_OUT)));
        clause += size + (clause[size] == ';');
    }
    return TARE_OK;
}

/* Messages of assertions, which compilation removes. */
static bool is_message(const struct tare_node *node) {
    const struct tare_graph *graph = node->graph;
    if (strcmp(node->op, "Const") != 0) return false;
    for (size_t i = 0; i < graph->n_nodes; i++)
        for (size_t k = 0; !graph->nodes[i]->dead && k < graph->nodes[i]->n_inputs; k++)
            if (graph->nodes[i]->inputs[k].node == node && strcmp(graph->nodes[i]->op, "Assert") != 0) return false;
    return true;
}

static tare_status check_dtypes(struct checker *checker, const struct tare_node *node) {
    bool is_slow = false;
    if (strcmp(node->op, "ReadVariableOp") == 0 && !tare_tpu_has_dtype(node->output_dtypes[0]))
        return add(
            checker, TARE_TPU_BAD_TYPE, node->graph, node,
            tare_arena_printf(checker->arena,
                              "node '%s' (ReadVariableOp) in function %s reads a %s variable, and such variables "
                              "must not be in a TPU function (%s)",
                              node->name, node->graph->name, tare_dtype_name(node->output_dtypes[0]), MOVE_OUT));
    for (size_t i = 0; i < node->n_outputs; i++) {
        int dtype = tare_dtype_base(node->output_dtypes[i]);
        is_slow |= dtype == TARE_DT_DOUBLE;
        if (tare_tpu_has_dtype(dtype) || is_message(node)) continue;
        return add(checker, TARE_TPU_BAD_TYPE, node->graph, node,
                   tare_arena_printf(checker->arena,
                                     "%s tensors are not supported on the TPU: node '%s' (%s) in function %s "
                                     "makes one (%s)",
                                     tare_dtype_name(dtype), node->name, node->op, node->graph->name, MOVE_OUT));
    }
    if (is_slow && strcmp(node->op, "Const") != 0)
        TARE_TRY(add(checker, TARE_TPU_SLOW_TYPE, node->graph, node,
                     tare_arena_printf(checker->arena,
                                       "float64 is computed in software on a TPU: node '%s' (%s) in function "
                                       "%s (use float32)",
                                       node->name, node->op, node->graph->name)));
    return check_constraints(checker, node);
}

/* ---- variables ---- */

static tare_status check_assignment(struct checker *checker, const struct tare_node *node) {
    if (!tare_tpu_assigns(node)) return TARE_OK;
    return add(checker, TARE_TPU_ASSIGNS, node->graph, node,
               tare_arena_printf(checker->arena,
                                 "node '%s' (%s) in function %s writes a variable: an inference TPU copies "
                                 "variables once and discards what is written (%s)",
                                 node->name, node->op, node->graph->name, MOVE_OUT));
}

/* What the CPU writes, found when the first read is checked. */
static tare_status find_written(struct checker *checker) {
    if (checker->knows_written) return TARE_OK;
    checker->knows_written = true;
    return tare_tpu_written_find(&checker->written, checker->arena, checker->model, checker->functions,
                                 checker->n_functions);
}

static tare_status check_read(struct checker *checker, const struct tare_node *node) {
    const struct tare_node *writer;
    if (!tare_tpu_reads(node)) return TARE_OK;
    TARE_TRY(find_written(checker));
    writer = tare_tpu_writer_of(&checker->written, node);
    if (!writer) return TARE_OK;
    return add(checker, TARE_TPU_STALE_VARIABLE, node->graph, node,
               tare_arena_printf(checker->arena,
                                 "node '%s' (%s) in function %s reads a variable that node '%s' (%s) in function %s "
                                 "writes: an inference TPU copies variables once and does not see what the CPU "
                                 "writes (read it on the CPU and pass the value to the TPU function)",
                                 node->name, node->op, node->graph->name, writer->name, writer->op,
                                 writer->graph->name));
}

/* ---- compile-time constants ---- */

enum origin_state { NOT_VISITED, BEING_VISITED, CONSTANT, DYNAMIC };

/* Which values of a graph are compile-time constants. Every node is visited once for all questions about the graph. */
struct origins {
    const struct tare_graph *graph;
    const bool *arg_constant;
    const bool *part;                /* NULL: all nodes */
    char *state;                     /* by position: enum origin_state */
    const struct tare_node **origin; /* by position: the node that makes a dynamic value dynamic */
    bool has_cycle;                  /* a value was assumed to be constant because a loop computes it from itself */
};

/* Shapes are known when a TPU program is compiled, whatever the values. */
static bool is_shape_op(const struct tare_node *node) {
    static const char *const ops[] = { "Shape",       "ShapeN",        "Size",          "Rank",
                                       "XlaSetBound", "BroadcastArgs", "VariableShape", NULL };
    return tare_op_is_one_of(node->op, ops);
}

/* Ops whose output has a value, or a shape, that only the run determines. */
static bool is_dynamic_op(const struct tare_node *node) {
    return !node->n_inputs || !node->def || node->def->is_stateful || strstr(node->op, "Random") ||
           strcmp(node->op, "Where") == 0 || strcmp(node->op, "Unique") == 0 || strcmp(node->op, "ReadVariableOp") == 0;
}

/* NULL: a compile-time constant. Otherwise the node that makes the value dynamic. */
static const struct tare_node *dynamic_origin(struct origins *origins, const struct tare_node *node, int depth) {
    enum { DEEPEST = 4000 };
    const struct tare_node *origin = NULL;
    if (tare_node_is_arg(node)) return origins->arg_constant[node->position] ? NULL : node;
    if (origins->part && !origins->part[node->position] && strcmp(node->op, "Const") != 0) return node;
    char *state = &origins->state[node->position];
    if (*state == BEING_VISITED) origins->has_cycle = true;
    if (*state) return *state == DYNAMIC ? origins->origin[node->position] : NULL;
    *state = BEING_VISITED;
    if (strcmp(node->op, "Const") != 0 && !is_shape_op(node)) {
        if (depth > DEEPEST || is_dynamic_op(node)) origin = node;
        for (size_t i = 0; i < node->n_inputs && !origin; i++)
            origin = dynamic_origin(origins, node->inputs[i].node, depth + 1);
    }
    *state = origin ? DYNAMIC : CONSTANT;
    origins->origin[node->position] = origin;
    return origin;
}

static tare_status open_origins(struct origins *origins, const struct checker *checker, const struct tare_graph *graph,
                                const bool *arg_constant) {
    *origins =
        (struct origins){ .graph = graph,
                          .arg_constant = arg_constant,
                          .part = graph == checker->part_of ? checker->part : NULL,
                          .state = TARE_NEW_ARRAY(checker->arena, char, graph->n_nodes + 1),
                          .origin = TARE_NEW_ARRAY(checker->arena, const struct tare_node *, graph->n_nodes + 1) };
    return origins->state && origins->origin ? TARE_OK : TARE_NO_MEMORY;
}

/* *dynamic: the node that makes the edge's value dynamic; NULL if it is a compile-time constant. */
static void find_dynamic(const struct tare_node **dynamic, const struct checker *checker, struct tare_edge edge) {
    struct origins *origins = checker->origins;
    *dynamic = dynamic_origin(origins, edge.node, 0);
    if (!origins->has_cycle) return;
    memset(origins->state, NOT_VISITED, origins->graph->n_nodes); /* the assumption holds for this question only */
    origins->has_cycle = false;
}

static bool is_listed(const char *names, const char *name) {
    size_t length = strlen(name);
    while (names && *names) {
        size_t size = strcspn(names, ",");
        if (size == length && strncmp(names, name, size) == 0) return true;
        names += size + (names[size] == ',');
    }
    return false;
}

static tare_status check_constant(struct checker *checker, const struct tare_node *node, size_t input,
                                  const char *name) {
    const struct tare_node *dynamic;
    if (tare_edge_dtype(node->inputs[input]) == TARE_DT_RESOURCE) return TARE_OK;
    find_dynamic(&dynamic, checker, node->inputs[input]);
    if (!dynamic) return TARE_OK;
    return add(
        checker, TARE_TPU_NOT_CONSTANT, node->graph, node,
        tare_arena_printf(checker->arena,
                          "input '%s' of node '%s' (%s) in function %s must be a compile-time constant, but '%s' (%s) "
                          "makes it dynamic (%s)",
                          name, node->name, node->op, node->graph->name, dynamic->name, dynamic->op,
                          strstr(node->op, "Sparse")
                              ? MAKE_DENSE
                              : "compute it from constants and shapes, or leave the op out of the TPU function"));
}

/* Slices may begin anywhere as long as their size is known. */
static bool may_be_dynamic(const struct tare_node *node, const char *input) {
    return (strcmp(node->op, "Slice") == 0 && strcmp(input, "begin") == 0) ||
           (strcmp(node->op, "StridedSlice") == 0 && (strcmp(input, "begin") == 0 || strcmp(input, "end") == 0));
}

static tare_status check_constants(struct checker *checker, const struct tare_node *node) {
    const struct tare_xla_op *op = tare_tpu_find_op(node->op);
    if (!op || !op->constants || !node->def) return TARE_OK;
    for (size_t a = 0; a < node->def->n_inputs; a++) {
        const char *name = node->def->inputs[a].name;
        size_t first, count;
        if (!is_listed(op->constants, name) || may_be_dynamic(node, name)) continue;
        TARE_TRY(tare_node_input_range(node, a, &first, &count));
        for (size_t i = first; i < first + count && i < node->n_inputs; i++)
            TARE_TRY(check_constant(checker, node, i, name));
    }
    return TARE_OK;
}

/* ---- graphs ---- */

static tare_status check_graph(struct checker *checker, const struct tare_graph *graph, const bool *arg_constant);

static bool passes_unchanged(const struct tare_graph *body, size_t i) {
    struct tare_edge edge = i < body->n_returns ? body->returns[i].edge : (struct tare_edge){ NULL, 0 };
    while (edge.node && strcmp(edge.node->op, "Identity") == 0 && edge.node->n_inputs)
        edge = edge.node->inputs[0];
    return edge.node == body->args[i];
}

/* ---- shapes ---- */

/* Of several branches, XLA compiles the only one that a constant index chooses. */
static bool has_known_branch(const struct checker *checker, const struct tare_node *node) {
    const struct tare_node *dynamic;
    if (!tare_node_is(node, "Case") && !tare_node_is(node, "StatelessCase")) return false;
    find_dynamic(&dynamic, checker, node->inputs[0]);
    return !dynamic;
}

static tare_status check_flow(struct checker *checker, const struct tare_node *node) {
    const struct tare_tpu_conflict *conflict;
    if (!checker->conflicts.is_known)
        TARE_TRY(tare_tpu_conflicts_find(&checker->conflicts, checker->arena, checker->function));
    conflict = tare_tpu_conflict_of(&checker->conflicts, node);
    if (!conflict || has_known_branch(checker, node)) return TARE_OK;
    return add(checker, TARE_TPU_BAD_SHAPE, node->graph, node, tare_tpu_conflict_text(checker->arena, conflict));
}

static tare_status check_list(struct checker *checker, const struct tare_node *node) {
    if (!tare_tpu_is_growing_list(node)) return TARE_OK;
    return add(checker, TARE_TPU_BAD_SHAPE, node->graph, node,
               tare_arena_printf(checker->arena,
                                 "node '%s' (%s) in function %s makes an empty list that grows, which a TPU does not "
                                 "support (give the TensorArray its final size)",
                                 node->name, node->op, node->graph->name));
}

static tare_status check_callees(struct checker *checker, const struct tare_node *node) {
    const struct tare_node *dynamic;
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, checker->arena, node));
    if (site.kind == TARE_CALL_LOOP || site.kind == TARE_CALL_BRANCH) TARE_TRY(check_flow(checker, node));
    for (size_t c = 0; c < site.n_callees; c++) {
        const struct tare_graph *callee = site.callees[c];
        bool *constant = TARE_NEW_ARRAY(checker->arena, bool, callee->n_args + 1);
        if (!constant) return TARE_NO_MEMORY;
        for (size_t i = 0; i < callee->n_args && i < site.n_args; i++) {
            if (site.kind == TARE_CALL_LOOP && !passes_unchanged(site.callees[site.n_callees - 1], i)) continue;
            find_dynamic(&dynamic, checker, node->inputs[site.first + i]);
            constant[i] = !dynamic;
        }
        TARE_TRY(check_graph(checker, callee, constant));
    }
    return TARE_OK;
}

static tare_status check_node(struct checker *checker, const struct tare_node *node) {
    TARE_TRY(check_op(checker, node));
    if (is_lowered(node) || tare_tpu_find_op(node->op)) TARE_TRY(check_dtypes(checker, node));
    TARE_TRY(check_assignment(checker, node));
    TARE_TRY(check_read(checker, node));
    TARE_TRY(check_constants(checker, node));
    TARE_TRY(check_list(checker, node));
    return check_callees(checker, node);
}

static bool was_checked(const struct checker *checker, const struct tare_graph *graph, const bool *arg_constant) {
    const struct checked *c = tare_graph_table_get(&checker->checked, graph);
    while (c && memcmp(c->constant, arg_constant, graph->n_args * sizeof *arg_constant) != 0)
        c = c->next;
    return c != NULL;
}

static tare_status add_checked(struct checker *checker, const struct tare_graph *graph, const bool *arg_constant) {
    struct checked *c = TARE_NEW(checker->arena, struct checked);
    if (!c) return TARE_NO_MEMORY;
    *c = (struct checked){ graph, arg_constant, tare_graph_table_get(&checker->checked, graph) };
    return tare_graph_table_set(&checker->checked, graph, c) ? TARE_OK : TARE_NO_MEMORY;
}

/* Each function is checked once for the same constant arguments, however many call paths lead to it. */
static tare_status check_graph(struct checker *checker, const struct tare_graph *graph, const bool *arg_constant) {
    struct origins origins, *outer = checker->origins;
    if (was_checked(checker, graph, arg_constant)) return TARE_OK;
    if (checker->depth > TARE_MOST_NESTED_CALLS) return TARE_FAIL(TARE_INVALID_ARGUMENT, "functions nest too deep");
    TARE_TRY(open_origins(&origins, checker, graph, arg_constant));
    checker->origins = &origins;
    checker->depth++;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (!graph->nodes[i]->dead) TARE_TRY(check_node(checker, graph->nodes[i]));
    checker->depth--;
    checker->origins = outer;
    return add_checked(checker, graph, arg_constant);
}

/* ---- boundary ---- */

/* A TPU function takes handles of variables, but does not return them: a loop body that is placed alone would. */
static bool crosses(int dtype, bool is_return) {
    const int base = tare_dtype_base(dtype);
    return tare_tpu_has_dtype(dtype) && base != TARE_DT_VARIANT && !(is_return && base == TARE_DT_RESOURCE);
}

static tare_status check_end(struct checker *checker, const struct tare_graph *function, const struct tare_node *node,
                             bool is_return, const char *name, int dtype) {
    const char *remedy =
        tare_dtype_base(dtype) == TARE_DT_RESOURCE ? "place a caller that does not return it" : MOVE_OUT;
    if (crosses(dtype, is_return)) return TARE_OK;
    return add(checker, TARE_TPU_BAD_BOUNDARY, function, node,
               tare_arena_printf(checker->arena,
                                 "%s '%s' of TPU function %s is %s, which the TPU does not support (parameters and "
                                 "returns must be dense numbers; %s)",
                                 is_return ? "return" : "parameter", name, function->name, tare_dtype_name(dtype),
                                 remedy));
}

/* A sparse tensor of a signature is passed as three dense ones, each of which a TPU would support. */
static tare_status check_sparse(struct checker *checker, const struct tare_graph *function,
                                const struct tare_signature *signature, bool outputs) {
    const struct tare_binding *bindings = outputs ? signature->outputs : signature->inputs;
    size_t count = outputs ? signature->n_outputs : signature->n_inputs;
    for (size_t i = 0; i < count; i++)
        if (bindings[i].whole && bindings[i].part == 0)
            TARE_TRY(add(checker, TARE_TPU_BAD_BOUNDARY, function, NULL,
                         tare_arena_printf(checker->arena,
                                           "%s '%s' of signature %s is a %s, which TPU function %s must not %s (%s)",
                                           outputs ? "output" : "input", bindings[i].whole->key, signature->key,
                                           bindings[i].whole->kind, function->name, outputs ? "return" : "take",
                                           outputs ? RETURN_DENSE : MAKE_DENSE)));
    return TARE_OK;
}

static tare_status check_signatures(struct checker *checker, const struct tare_graph *function) {
    for (size_t s = 0; s < checker->model->n_signatures; s++) {
        const struct tare_signature *signature = &checker->model->signatures[s];
        if (tare_signature_function(signature) != function) continue;
        TARE_TRY(check_sparse(checker, function, signature, false));
        TARE_TRY(check_sparse(checker, function, signature, true));
    }
    return TARE_OK;
}

bool tare_tpu_finding_is_error(enum tare_tpu_finding_kind kind) {
    return kind < TARE_TPU_ASSIGNS;
}

const char *tare_tpu_finding_name(enum tare_tpu_finding_kind kind) {
    static const char *const names[] = { "not_compilable",   "bad_type",       "bad_boundary",
                                         "not_constant",     "bad_shape",      "no_cpu_kernel",
                                         "assigns_variable", "stale_variable", "slow_type" };
    return names[kind];
}

/* One warning for all nodes of float64: the first node, and the number of the others. */
static tare_status merge_slow(struct checker *checker) {
    struct tare_tpu_finding *first = NULL;
    size_t kept = 0, others = 0;
    for (size_t i = 0; i < checker->count; i++) {
        if (checker->found[i].kind == TARE_TPU_SLOW_TYPE && first) {
            others++;
            continue;
        }
        checker->found[kept] = checker->found[i];
        if (checker->found[kept].kind == TARE_TPU_SLOW_TYPE) first = &checker->found[kept];
        kept++;
    }
    checker->count = kept;
    if (!others) return TARE_OK;
    first->text =
        tare_arena_printf(checker->arena,
                          "float64 is computed in software on a TPU: node '%s' (%s) in function %s and %zu "
                          "other%s (use float32)",
                          first->node->name, first->node->op, first->function->name, others, others == 1 ? "" : "s");
    return first->text ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status check_function(struct checker *checker, const struct tare_graph *function) {
    bool *constant = TARE_NEW_ARRAY(checker->arena, bool, function->n_args + 1);
    if (!constant) return TARE_NO_MEMORY;
    tare_tpu_conflicts_free(&checker->conflicts);
    checker->function = function;
    for (size_t i = 0; i < function->n_args; i++)
        TARE_TRY(check_end(checker, function, function->args[i], false, function->args[i]->name,
                           function->args[i]->output_dtypes[0]));
    for (size_t i = 0; i < function->n_returns; i++)
        TARE_TRY(check_end(checker, function, function->returns[i].edge.node, true, function->returns[i].name,
                           function->returns[i].dtype));
    TARE_TRY(check_signatures(checker, function));
    return check_graph(checker, function, constant);
}

/* Forgets what was found. */
static void reset_checker(struct checker *checker) {
    tare_graph_table_free(&checker->checked);
    tare_map_free(&checker->texts);
}

static void close_checker(struct checker *checker) {
    reset_checker(checker);
    tare_tpu_conflicts_free(&checker->conflicts);
    tare_tpu_written_free(&checker->written);
}

tare_status tare_tpu_check(struct tare_tpu_finding **out, size_t *count, struct tare_arena *arena,
                           const struct tare_graph_model *model, struct tare_graph *const *functions,
                           size_t n_functions) {
    struct checker checker = { .arena = arena, .model = model, .functions = functions, .n_functions = n_functions };
    tare_status status = TARE_OK;
    for (size_t f = 0; f < n_functions && status == TARE_OK; f++)
        status = check_function(&checker, functions[f]);
    close_checker(&checker);
    TARE_TRY(status);
    TARE_TRY(merge_slow(&checker));
    *out = checker.found;
    *count = checker.count;
    return TARE_OK;
}

static tare_status check_part(tare_tpu_finding_fn found, void *arg, struct tare_arena *arena,
                              const struct tare_graph *graph, const bool *part) {
    bool *constant = TARE_NEW_ARRAY(arena, bool, graph->n_args + 1);
    struct checker checker = {
        .arena = arena, .model = graph->model, .function = graph, .part_of = graph, .part = part
    };
    struct origins origins;
    tare_status status = TARE_OK;
    if (!constant) return TARE_NO_MEMORY;
    TARE_TRY(open_origins(&origins, &checker, graph, constant));
    checker.origins = &origins;
    for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++) {
        if (!part[i] || graph->nodes[i]->dead) continue;
        reset_checker(&checker);
        checker.found = NULL; /* the findings of this node only */
        checker.count = checker.capacity = 0;
        status = check_node(&checker, graph->nodes[i]);
        for (size_t k = 0; k < checker.count; k++)
            found(arg, graph->nodes[i], &checker.found[k]);
    }
    close_checker(&checker);
    return status;
}

static void refuse(void *arg, const struct tare_node *member, const struct tare_tpu_finding *f) {
    if (f->kind != TARE_TPU_SLOW_TYPE) ((bool *)arg)[member->position] = true;
}

tare_status tare_tpu_check_part(bool *refused, struct tare_arena *arena, const struct tare_graph *graph,
                                const bool *part) {
    return check_part(refuse, refused, arena, graph, part);
}

tare_status tare_tpu_check_cluster(tare_tpu_finding_fn found, void *arg, struct tare_arena *arena,
                                   const struct tare_graph *graph) {
    bool *part = TARE_NEW_ARRAY(arena, bool, graph->n_nodes + 1);
    if (!part) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes; i++)
        part[i] = !graph->nodes[i]->dead && !tare_node_is(graph->nodes[i], "TPUReplicateMetadata") &&
                  tare_node_string(graph->nodes[i], "_tpu_replicate", NULL);
    return check_part(found, arg, arena, graph, part);
}
