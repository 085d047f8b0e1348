/* Advice that the converter reports on the chosen TPU functions: TPU calls per request, random numbers, batches of
 * integers, and memory. */
#include "convert/advice.h"
#include "graph/devices.h"
#include "graph/shared_names.h"
#include "base/strbuf.h"
#include "graph/graphs.h"
#include "tpu/chips.h"
#include "tpu/closure.h"

#include <string.h>

struct adviser {
    struct tare_conversion *conversion;
    struct tare_arena *arena;
    const struct tare_graph_model *model;
};

static tare_status add(struct adviser *a, const char *text) {
    struct tare_conversion *out = a->conversion;
    const char **grown = tare_arena_append(a->arena, out->advice, out->n_advice, sizeof *grown);
    if (!text || !grown) return TARE_NO_MEMORY;
    grown[out->n_advice++] = text;
    out->advice = grown;
    return TARE_OK;
}

/* ---- calls a request ---- */

/* Functions and main-graph nodes that a signature runs. */
struct request {
    struct tare_map functions;
    const struct tare_graph **stack;
    size_t depth, calls;
};

static tare_status enter(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    struct request *r = arg;
    (void)node;
    if (tare_map_get(&r->functions, callee->name)) return TARE_OK;
    r->stack[r->depth++] = callee; /* each at most once: there is room for all */
    return tare_map_set(&r->functions, callee->name, callee) ? TARE_OK : TARE_NO_MEMORY;
}

/* Counts a TPU call, or enters the called functions. The contents of a TPU function are not on the host. */
static tare_status count_calls_of(struct request *r, const struct tare_node *node) {
    if (node->dead) return TARE_OK;
    if (strcmp(node->op, "TPUPartitionedCall") == 0) {
        r->calls++;
        return TARE_OK;
    }
    return tare_node_each_function(node, enter, r);
}

/* The main-graph nodes before the signature's outputs. */
static tare_status count_main_calls(struct request *r, struct adviser *a, const struct tare_signature *signature) {
    const struct tare_graph *main = a->model->main;
    bool *seen = TARE_NEW_ARRAY(a->arena, bool, main->n_nodes + 1);
    struct tare_node **stack = TARE_NEW_ARRAY(a->arena, struct tare_node *, main->n_nodes + signature->n_outputs + 1);
    size_t depth = 0;
    if (!seen || !stack) return TARE_NO_MEMORY;
    for (size_t i = 0; i < signature->n_outputs; i++) {
        struct tare_node *node = signature->outputs[i].edge.node;
        if (!node || seen[node->position]) continue;
        seen[node->position] = true;
        stack[depth++] = node;
    }
    while (depth) {
        struct tare_node *node = stack[--depth];
        TARE_TRY(count_calls_of(r, node));
        for (size_t i = 0; i < node->n_inputs; i++) {
            struct tare_node *before = node->inputs[i].node;
            if (seen[before->position]) continue;
            seen[before->position] = true;
            stack[depth++] = before;
        }
    }
    return TARE_OK;
}

static tare_status count_calls(size_t *calls, struct adviser *a, const struct tare_signature *signature) {
    struct request r = { .stack = TARE_NEW_ARRAY(a->arena, const struct tare_graph *, a->model->n_functions + 1) };
    tare_status status = r.stack ? count_main_calls(&r, a, signature) : TARE_NO_MEMORY;
    while (r.depth && status == TARE_OK) {
        const struct tare_graph *graph = r.stack[--r.depth];
        for (size_t i = 0; i < graph->n_nodes && status == TARE_OK; i++)
            status = count_calls_of(&r, graph->nodes[i]);
    }
    tare_map_free(&r.functions);
    *calls = r.calls;
    return status;
}

static tare_status advise_on_calls(struct adviser *a) {
    for (size_t i = 0; i < a->model->n_signatures; i++) {
        size_t calls;
        TARE_TRY(count_calls(&calls, a, &a->model->signatures[i]));
        if (calls < 2) continue;
        TARE_TRY(add(
            a, tare_arena_printf(a->arena,
                                 "signature %s calls %zu TPU functions a request, and each sends tensors between CPU "
                                 "and TPU: where the model allows it, one function that holds them all is faster",
                                 a->model->signatures[i].key, calls)));
    }
    return TARE_OK;
}

/* ---- memory ---- */

static const struct tare_variable *largest_variable(const struct tare_graph_model *model) {
    const struct tare_variable *largest = NULL;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct tare_variable *variable = &model->variables[i];
        if (variable->removed || variable->value.dtype == TARE_DT_INVALID) continue;
        if (!largest || tare_tensor_bytes(&variable->value) > tare_tensor_bytes(&largest->value)) largest = variable;
    }
    return largest;
}

static tare_status advise_on_memory(struct adviser *a) {
    const struct tare_tpu_memory *memory = &a->conversion->after;
    const double bytes = memory->weights + memory->activations;
    const struct tare_variable *largest = largest_variable(a->model);
    struct tare_strbuf chips = { 0 };
    tare_status status = TARE_OK;
    for (size_t i = 0; i < TARE_TPU_CHIPS; i++)
        if (bytes > tare_tpu_chips[i].hbm_bytes)
            tare_strbuf_printf(&chips, "%s%s", chips.size ? ", " : "", tare_tpu_chips[i].name);
    if (chips.size)
        status = add(
            a,
            tare_arena_printf(
                a->arena,
                "the TPU functions need %.1f GB of HBM at a batch of %lld, more than a chip of %s has: embedding "
                "tables that are too large stay on the CPU with their look-ups%s%s%s",
                bytes / 1e9, (long long)a->conversion->full.batch, tare_strbuf_text(&chips),
                largest ? " (the largest variable is " : "", largest ? largest->shared_name : "", largest ? ")" : ""));
    tare_strbuf_free(&chips);
    return status;
}

static tare_status advise_on_sharding(struct adviser *a, const struct tare_converter_options *options) {
    const int cores = options->has_sharding ? options->sharding.num_cores_per_replica : 1;
    if (cores < 2 || tare_conversion_changes(a->conversion, "shard_inputs") || !a->conversion->n_placed) return TARE_OK;
    return add(
        a, tare_arena_printf(a->arena,
                             "no input is split between the %d cores of a replica: none has a number of rows that is "
                             "known and divides by %d (the compiler shards as it sees fit; batch_options without "
                             "experimental, all of whose allowed_batch_sizes divide by %d, split the batch)",
                             cores, cores, cores));
}

static void count_devices(const struct tare_graph *graph, size_t *count, const struct tare_node **first) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        if (node->dead || !tare_device_is_foreign(node->device)) continue;
        if (!*count) *first = node;
        ++*count;
    }
}

/* What is left outside of the TPU functions: a server without that device refuses the model. */
static tare_status advise_on_devices(struct adviser *a) {
    const struct tare_node *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i <= a->model->n_functions; i++)
        count_devices(tare_model_graph(a->model, i), &count, &first);
    if (!count) return TARE_OK;
    return add(a,
               tare_arena_printf(a->arena,
                                 "%zu node%s outside of the TPU functions %s assigned to a device, as '%s' of node "
                                 "'%s': a server without it needs soft placement, or an export with clear_devices",
                                 count, count == 1 ? "" : "s", count == 1 ? "is" : "are", first->device, first->name));
}

/* ---- shared names ---- */

static tare_status advise_on_names(struct adviser *a) {
    struct tare_name_twins *twins;
    size_t count;
    TARE_TRY(tare_model_name_twins(&twins, &count, a->arena, a->model));
    if (!count) return TARE_OK;
    return add(a,
               tare_arena_printf(a->arena,
                                 "%zu node%s the shared_name of another, as '%s' of nodes '%s' and '%s': a server %s "
                                 "(give each a name of its own)",
                                 count, count == 1 ? " has" : "s have", twins->name, twins->first->name,
                                 twins->second->name, twins->effect));
}

/* ---- random numbers ---- */

static bool draws(const struct tare_node *node) {
    static const char *const ops[] = { "StatelessRandom", "StatelessTruncated", "StatelessMultinomial",
                                       "StatelessParameterized" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strncmp(node->op, ops[i], strlen(ops[i])) == 0) return !strstr(node->op, "Get");
    return false;
}

/* XLA has its own way from a seed to random numbers. */
static tare_status advise_on_random(struct adviser *a, const struct tare_tpu_closure *closure) {
    for (size_t i = 0; i < closure->count; i++)
        for (size_t k = 0; k < closure->members[i].graph->n_nodes; k++) {
            const struct tare_node *node = closure->members[i].graph->nodes[k];
            if (node->dead || !draws(node)) continue;
            return add(a, tare_arena_printf(a->arena,
                                            "node '%s' (%s) draws random numbers on the TPU: from the same seed, XLA "
                                            "draws others than TensorFlow's kernels, which tare run has, too",
                                            node->name, node->op));
        }
    return TARE_OK;
}

/* ---- batches of integers ---- */

enum { INTEGER_ROWS = 32 }; /* to which the compiler rounds the batch of a convolution of 8 bits up */

static bool is_integer_conv(const struct tare_node *node) {
    if (node->dead || !strstr(node->op, "Conv") || node->n_inputs < 2) return false;
    for (size_t i = 0; i < 2; i++) {
        const int dtype = tare_edge_dtype(node->inputs[i]);
        if (dtype != TARE_DT_INT8 && dtype != TARE_DT_QINT8) return false;
    }
    return true;
}

/* "8, 16": the sizes that are padded to such batches without need; of few of them. */
static void put_uneven(struct tare_strbuf *out, const struct tare_batch_options *batch) {
    enum { SHOWN = 6 };
    size_t count = 0;
    for (size_t i = 0; i < batch->n_allowed; i++)
        if (batch->allowed_batch_sizes[i] % INTEGER_ROWS && count++ < SHOWN)
            tare_strbuf_printf(out, "%s%lld", out->size ? ", " : "", (long long)batch->allowed_batch_sizes[i]);
    if (count > SHOWN) tare_strbuf_puts(out, ", …");
    if (!batch->n_allowed && batch->max_batch_size % INTEGER_ROWS)
        tare_strbuf_printf(out, "%s%d", out->size ? ", " : "", batch->max_batch_size);
}

static tare_status advise_on_integer_rows(struct adviser *a, const struct tare_tpu_closure *closure,
                                          const struct tare_converter_options *options) {
    struct tare_strbuf sizes = { 0 };
    size_t convolutions = 0;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < closure->count; i++)
        for (size_t k = 0; k < closure->members[i].graph->n_nodes; k++)
            convolutions += is_integer_conv(closure->members[i].graph->nodes[k]);
    for (size_t b = 0; b < options->n_batches && convolutions; b++)
        put_uneven(&sizes, &options->batches[b]);
    if (sizes.size)
        status =
            add(a, tare_arena_printf(a->arena,
                                     "the TPU compiler rounds the batch of a convolution of 8 bits up to %d rows, and "
                                     "the model has %zu: batches of %s take as long there as the next multiple of %d "
                                     "(as allowed_batch_sizes, multiples of %d waste none)",
                                     INTEGER_ROWS, convolutions, tare_strbuf_text(&sizes), INTEGER_ROWS, INTEGER_ROWS));
    tare_strbuf_free(&sizes);
    return status;
}

static tare_status advise_on_ops(struct adviser *a, const struct tare_converter_options *options) {
    struct tare_conversion *out = a->conversion;
    struct tare_graph **entries = TARE_NEW_ARRAY(a->arena, struct tare_graph *, out->n_placed + 1);
    struct tare_tpu_closure closure;
    if (!entries) return TARE_NO_MEMORY;
    for (size_t i = 0; i < out->n_placed; i++)
        entries[i] = out->placed[i].replicated;
    TARE_TRY(tare_tpu_closure(&closure, a->arena, entries, out->n_placed));
    TARE_TRY(advise_on_random(a, &closure));
    return advise_on_integer_rows(a, &closure, options);
}

tare_status tare_conversion_advise(struct tare_conversion *conversion, struct tare_arena *arena,
                                   const struct tare_graph_model *model, const struct tare_converter_options *options) {
    struct adviser a = { conversion, arena, model };
    if (!conversion->n_placed && !conversion->existing.tpu_calls)
        TARE_TRY(add(&a, "nothing is on the TPU: tpu_functions names no function (tare inspect --suggest names some)"));
    TARE_TRY(advise_on_calls(&a));
    TARE_TRY(advise_on_sharding(&a, options));
    TARE_TRY(advise_on_devices(&a));
    TARE_TRY(advise_on_names(&a));
    TARE_TRY(advise_on_ops(&a, options));
    return advise_on_memory(&a);
}
