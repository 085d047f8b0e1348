/* The replicated form that TPUPartitionedCall expects (docs/formats.md, "TPU functions"). */
#include "tpu/placement.h"
#include "graph/calls.h"
#include "graph/clone.h"
#include "graph/op.h"
#include "tpu/closure.h"

#include <string.h>

/* One function being placed. */
struct job {
    struct tare_graph_model *model;
    struct tare_graph *graph; /* the replicated function */
    const char *cluster;
    struct tare_node *pivot, *metadata;
    size_t n_body; /* nodes that came with the body: the cluster's */
};

static tare_status set_text(struct tare_node *node, const char *name, const char *text) {
    return tare_node_set_string(node, name, text, strlen(text));
}

static tare_status add_node(struct tare_node **out, struct job *job, const char *op, const char *name, int dtype) {
    *out = tare_graph_add(job->graph, op, name);
    if (!*out) return TARE_NO_MEMORY;
    return dtype ? tare_node_set_type(*out, "T", dtype) : TARE_OK;
}

static tare_status join_cluster(const struct job *job, struct tare_node *node) {
    return set_text(node, TARE_TPU_CLUSTER_ATTR, job->cluster);
}

/* ---- pivot and metadata ---- */

static tare_status add_metadata(struct job *job, const struct tare_tpu_sharding *sharding, bool is_soft) {
    int cores = sharding && sharding->num_cores_per_replica > 1 ? sharding->num_cores_per_replica : 1;
    struct tare_node *status;
    TARE_TRY(add_node(&job->pivot, job, "NoOp", tare_arena_printf(&job->model->arena, "%s/pivot", job->cluster), 0));
    TARE_TRY(set_text(job->pivot, "_pivot_for_cluster", job->cluster));
    TARE_TRY(tare_node_resolve(job->pivot));
    TARE_TRY(add_node(&job->metadata, job, "TPUReplicateMetadata", "TPUReplicateMetadata", 0));
    TARE_TRY(join_cluster(job, job->metadata));
    TARE_TRY(tare_node_set_int(job->metadata, "num_replicas", 1));
    TARE_TRY(tare_node_set_int(job->metadata, "num_cores_per_replica", cores));
    if (cores > 1) {
        TARE_TRY(tare_node_set_string(job->metadata, "topology", sharding->topology, sharding->topology_size));
        TARE_TRY(tare_node_set_int_list(job->metadata, "device_assignment", sharding->device_assignment,
                                        sharding->n_device_assignment));
        TARE_TRY(tare_node_set_bool(job->metadata, "use_spmd_for_xla_partitioning", true));
        if (sharding->uses_shardy) TARE_TRY(tare_node_set_bool(job->metadata, "use_shardy_partitioner", true));
    }
    if (is_soft) TARE_TRY(tare_node_set_bool(job->metadata, "allow_soft_placement", true));
    TARE_TRY(tare_node_add_control(job->metadata, job->pivot));
    TARE_TRY(tare_node_resolve(job->metadata));
    TARE_TRY(add_node(&status, job, "TPUCompilationResult", "TPUCompilationResult", 0));
    TARE_TRY(set_text(status, "_tpu_compilation_status", job->cluster));
    TARE_TRY(tare_node_add_control(status, job->metadata));
    return tare_node_resolve(status);
}

/* ---- cluster ---- */

static bool takes_handle(const struct tare_node *node) {
    for (size_t i = 0; i < node->n_inputs; i++)
        if (tare_node_is_arg(node->inputs[i].node) && tare_edge_dtype(node->inputs[i]) == TARE_DT_RESOURCE) return true;
    return false;
}

/* Nodes without inputs could run before the cluster begins: they get a control input from the pivot. Nodes that use a
 * variable's handle directly from an argument get a control input from the metadata, as inputs do. */
static tare_status mark_body(struct job *job) {
    for (size_t i = 0; i < job->n_body; i++) {
        struct tare_node *node = job->graph->nodes[i];
        TARE_TRY(join_cluster(job, node));
        if (takes_handle(node))
            TARE_TRY(tare_node_add_control(node, job->metadata));
        else if (!node->n_inputs && !node->n_controls)
            TARE_TRY(tare_node_add_control(node, job->pivot));
    }
    return TARE_OK;
}

/* Handles of variables are passed to the cluster's nodes unchanged: the runtime looks for a direct successor of the
 * argument there, and does not find the variable through a TPUReplicatedInput if an input is sharded. */
static tare_status replicate_input(struct job *job, struct tare_node *arg, size_t index) {
    int dtype = arg->output_dtypes[0];
    const char *name = tare_arena_printf(&job->model->arena, "input%zu", index);
    struct tare_node *input, *identity;
    if (dtype == TARE_DT_RESOURCE) return TARE_OK;
    if (!name) return TARE_NO_MEMORY;
    TARE_TRY(add_node(&input, job, "TPUReplicatedInput", name, dtype));
    TARE_TRY(tare_node_set_int(input, "N", 1));
    TARE_TRY(tare_node_resolve(input));
    tare_graph_replace_uses(job->graph, tare_node_output0(arg), tare_node_output0(input), NULL);
    TARE_TRY(tare_node_add_input(input, tare_node_output0(arg)));
    name = tare_arena_printf(&job->model->arena, "replicated_input_%zu", index);
    if (!name) return TARE_NO_MEMORY;
    TARE_TRY(add_node(&identity, job, "Identity", name, dtype));
    tare_graph_replace_uses(job->graph, tare_node_output0(input), tare_node_output0(identity), NULL);
    TARE_TRY(tare_node_add_input(identity, tare_node_output0(input)));
    TARE_TRY(join_cluster(job, identity));
    TARE_TRY(tare_node_set_bool(identity, "_tpu_input_identity", true));
    TARE_TRY(tare_node_add_control(identity, job->metadata));
    return tare_node_resolve(identity);
}

static tare_status replicate_output(struct job *job, size_t index) {
    const struct tare_return *ret = &job->graph->returns[index];
    struct tare_node *identity, *output, *shard;
    const char *output_name = tare_arena_printf(&job->model->arena, "output%zu", index);
    const char *shard_name = tare_arena_printf(&job->model->arena, "output_%zu_shard_0", index);
    if (!output_name || !shard_name) return TARE_NO_MEMORY;
    TARE_TRY(add_node(&identity, job, "Identity", "cluster_output", ret->dtype));
    TARE_TRY(tare_node_add_input(identity, ret->edge));
    TARE_TRY(join_cluster(job, identity));
    TARE_TRY(tare_node_set_bool(identity, "_tpu_output_identity", true));
    TARE_TRY(tare_node_resolve(identity));
    TARE_TRY(add_node(&output, job, "TPUReplicatedOutput", output_name, ret->dtype));
    TARE_TRY(tare_node_set_int(output, "num_replicas", 1));
    TARE_TRY(tare_node_add_input(output, tare_node_output0(identity)));
    TARE_TRY(tare_node_resolve(output));
    TARE_TRY(add_node(&shard, job, "Identity", shard_name, ret->dtype));
    TARE_TRY(tare_node_add_input(shard, tare_node_output0(output)));
    tare_graph_set_return(job->graph, index, tare_node_output0(shard));
    return tare_node_resolve(shard);
}

/* When a runtime instantiates a function, it prunes unused stateless nodes; the status must be kept. */
static tare_status keep_status(struct job *job) {
    struct tare_node *status = tare_graph_find(job->graph, "TPUCompilationResult");
    return tare_graph_add_control_return(job->graph, status->name, status);
}

static tare_status build_replicated(struct job *job, const struct tare_tpu_sharding *sharding, bool is_soft) {
    job->n_body = job->graph->n_nodes;
    TARE_TRY(add_metadata(job, sharding, is_soft));
    TARE_TRY(mark_body(job));
    for (size_t i = 0; i < job->graph->n_args; i++)
        TARE_TRY(replicate_input(job, job->graph->args[i], i));
    for (size_t i = 0; i < job->graph->n_returns; i++)
        TARE_TRY(replicate_output(job, i));
    return keep_status(job);
}

/* ---- stub ---- */

/* The runtime rejects a selector together with assigned devices. */
static tare_status add_ordinal(struct tare_node **out, struct tare_graph *stub,
                               const struct tare_tpu_sharding *sharding) {
    bool assigned = sharding && sharding->num_cores_per_replica > 1 && sharding->n_device_assignment;
    struct tare_tensor first;
    if (!assigned) {
        *out = tare_graph_add(stub, "TPUOrdinalSelector", "TPUOrdinalSelector");
        return *out ? tare_node_resolve(*out) : TARE_NO_MEMORY;
    }
    TARE_TRY(tare_tensor_scalar_i32(&first, 0));
    *out = tare_graph_add_const(stub, "device_ordinal", &first);
    tare_tensor_reset(&first);
    return *out ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status build_stub(struct tare_graph *stub, const struct tare_graph *replicated,
                              const struct tare_tpu_sharding *sharding) {
    struct tare_node *selector, *call;
    TARE_TRY(add_ordinal(&selector, stub, sharding));
    call = tare_graph_add(stub, "TPUPartitionedCall", "TPUPartitionedCall");
    if (!call) return TARE_NO_MEMORY;
    for (size_t i = 0; i < stub->n_args; i++)
        TARE_TRY(tare_node_add_input(call, tare_node_output0(stub->args[i])));
    TARE_TRY(tare_node_add_input(call, tare_node_output0(selector)));
    TARE_TRY(tare_node_set_func(call, "f", replicated->name));
    TARE_TRY(tare_call_set_types(call, replicated));
    TARE_TRY(tare_node_resolve(call));
    for (size_t i = 0; i < stub->n_returns; i++)
        tare_graph_set_return(stub, i, (struct tare_edge){ call, (int)i });
    stub->is_stateful = true;
    return TARE_OK;
}

/* ---- direct calls between TPU functions ---- */

struct redirect {
    const struct tare_tpu_function *functions;
    size_t count;
    struct tare_map plain; /* function -> a copy of its body as it was; made when first needed */
    struct tare_tpu_closure callers;
};

static tare_status copy_callee(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct redirect *redirect = arg;
    (void)node;
    for (size_t i = 0; i < redirect->count; i++) {
        const char *stem, *name;
        struct tare_graph *copy;
        if (redirect->functions[i].graph != callee || tare_map_get(&redirect->plain, callee->name)) continue;
        stem = tare_arena_printf(&callee->model->arena, "%s_on_tpu", callee->name);
        name = stem ? tare_model_unused_name(callee->model, stem) : NULL;
        if (!name) return TARE_NO_MEMORY;
        TARE_TRY(tare_function_clone(&copy, callee, name));
        redirect->callers.members[redirect->callers.count++].graph = copy;
        if (!tare_map_set(&redirect->plain, callee->name, copy)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* Before any body moves: calls inside TPU functions, by whatever op, are redirected to copies of the bodies, so that no
 * stub runs on the TPU. The copies themselves may call TPU functions as well. */
static tare_status redirect_direct_calls(struct redirect *redirect) {
    for (size_t f = 0; f < redirect->count; f++) {
        const struct tare_graph *graph = redirect->functions[f].graph;
        redirect->callers.members[redirect->callers.count++].graph = redirect->functions[f].graph;
        for (size_t i = 0; i < graph->n_nodes; i++)
            if (!graph->nodes[i]->dead) TARE_TRY(tare_node_each_function(graph->nodes[i], copy_callee, redirect));
    }
    return tare_tpu_closure_redirect(&redirect->callers, &redirect->plain);
}

/* ---- all of it ---- */

static tare_status place_one(struct tare_tpu_placed *out, struct tare_graph_model *model,
                             const struct tare_tpu_function *function, const struct tare_tpu_place_options *options) {
    struct job job = { .model = model };
    const char *old_name = function->graph->name;
    const char *stem =
        tare_arena_printf(&model->arena, "tpu_fn_icv2_%s%s", old_name, options->quantized ? "_tf_quant" : "");
    const char *name = stem ? tare_model_unused_name(model, stem) : NULL;
    if (!name) return TARE_NO_MEMORY;
    stem = options->shares_cluster ? "cluster" : tare_arena_printf(&model->arena, "cluster_%s", old_name);
    job.cluster = stem ? tare_node_name_from(&model->arena, stem) : NULL; /* the runtime names nodes after it */
    if (!job.cluster) return TARE_NO_MEMORY;
    TARE_TRY(tare_function_move_body(&job.graph, function->graph, name));
    TARE_TRY(tare_graph_remove_attr(job.graph, "_XlaMustCompile")); /* the runtime compiles the cluster alone */
    TARE_TRY(tare_graph_drop_arg_shapes(job.graph));                /* they may be flattened, or split between cores */
    TARE_TRY(build_replicated(&job, options->sharding, function->choice && function->choice->is_soft));
    TARE_TRY(build_stub(function->graph, job.graph, options->sharding));
    *out = (struct tare_tpu_placed){ function->graph, job.graph, function->label, job.cluster };
    return TARE_OK;
}

tare_status tare_tpu_place(struct tare_tpu_placed **out, struct tare_arena *arena, struct tare_graph_model *model,
                           const struct tare_tpu_function *functions, size_t count,
                           const struct tare_tpu_place_options *options) {
    struct redirect redirect = { .functions = functions, .count = count };
    struct tare_tpu_placed *placed = TARE_NEW_ARRAY(arena, struct tare_tpu_placed, count + 1);
    tare_status status;
    redirect.callers.members = TARE_NEW_ARRAY(arena, struct tare_tpu_member, 2 * count + 1);
    if (!placed || !redirect.callers.members) return TARE_NO_MEMORY;
    status = redirect_direct_calls(&redirect);
    tare_map_free(&redirect.plain);
    TARE_TRY(status);
    for (size_t i = 0; i < count; i++)
        TARE_TRY(tare_error_prefix(place_one(&placed[i], model, &functions[i], options), "function %s",
                                   functions[i].graph->name));
    *out = placed;
    return TARE_OK;
}
