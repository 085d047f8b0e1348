/* Finding blocks.
 *
 * Nodes that carry data (those that depend on an input and that an output depends on) are visited in their order of
 * execution. A value is live from its node to its last user. Where one float32 value alone is live, it carries all
 * data: a cut. Every path from an input to an output contains it, so any topological order finds the same cuts.
 *
 * A segment is what is between two cuts. Segments without layers (bias, activation function, pooling) belong to the
 * block before them, so that its output is what the next layer reads, except from a softmax or sigmoid on, whose
 * outputs hide errors. A residual block is one segment with several layers. Segments of one layer that follow each
 * other are joined into blocks of up to MOST_JOINED layers. */
#include "quant/reconstruction/block.h"

#include "base/alloc.h"
#include "calib/calibration.h"

#include <limits.h>
#include <string.h>

enum { MOST_JOINED = 3 };

/* A value that carries data. */
struct value {
    struct tare_edge edge;
    int last; /* place of its last user; INT_MAX: it is returned */
};

struct search {
    const struct tare_graph *graph;
    const struct tare_signature *signature; /* whose outputs are the results; NULL: returned values */
    struct tare_arena *arena;
    struct tare_node **order;
    bool *data;                     /* by node: carries data */
    int *place;                     /* by node: in the order */
    size_t *first_node, *first_arg; /* index of output 0 in `values` */
    struct value *values;
    size_t n_values;
    size_t live, sum; /* number of live values, and the sum of their indices */
    struct tare_block_list *out;
    struct tare_quant_layer **layers; /* of the graph, by place */
    size_t n_layers;
};

static bool is_input(const struct tare_node *node) {
    return tare_node_is_arg(node) ? tare_node_type(node, "T", TARE_DT_INVALID) != TARE_DT_RESOURCE
                                  : tare_node_is(node, "Placeholder") || tare_node_is(node, "PlaceholderWithDefault");
}

static bool carries(const struct search *s, const struct tare_node *node) {
    return tare_node_is_arg(node) ? is_input(node) : s->data[node->position];
}

static struct value *value_of(const struct search *s, struct tare_edge edge) {
    const size_t first =
        tare_node_is_arg(edge.node) ? s->first_arg[edge.node->position] : s->first_node[edge.node->position];
    return &s->values[first + (size_t)edge.index];
}

/* ---- lifetimes ---- */

static void use(struct search *s, struct tare_edge edge, int place) {
    if (edge.node && carries(s, edge.node) && value_of(s, edge)->last < place) value_of(s, edge)->last = place;
}

static void note_outputs(struct search *s, struct tare_node *node, size_t *index) {
    *index = s->n_values;
    for (size_t i = 0; i < node->n_outputs; i++)
        s->values[s->n_values++] = (struct value){ { node, (int)i }, -1 };
}

/* Uses by returned values, or by the signature. */
static void use_results(struct search *s) {
    for (size_t i = 0; !s->signature && i < s->graph->n_returns; i++)
        use(s, s->graph->returns[i].edge, INT_MAX);
    for (size_t i = 0; s->signature && i < s->signature->n_outputs; i++)
        use(s, s->signature->outputs[i].edge, INT_MAX);
}

static bool is_used(const struct search *s, struct tare_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++)
        if (value_of(s, (struct tare_edge){ node, (int)i })->last >= 0) return true;
    return false;
}

static tare_status find_lifetimes(struct search *s) {
    const struct tare_graph *graph = s->graph;
    size_t outputs = graph->n_args;
    for (size_t i = 0; i < graph->n_nodes; i++)
        outputs += graph->nodes[i]->n_outputs;
    s->values = TARE_NEW_ARRAY(s->arena, struct value, outputs + 1);
    s->first_node = TARE_NEW_ARRAY(s->arena, size_t, graph->n_nodes + 1);
    s->first_arg = TARE_NEW_ARRAY(s->arena, size_t, graph->n_args + 1);
    s->data = TARE_NEW_ARRAY(s->arena, bool, graph->n_nodes + 1);
    s->place = TARE_NEW_ARRAY(s->arena, int, graph->n_nodes + 1);
    if (!s->values || !s->first_node || !s->first_arg || !s->data || !s->place) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_args; i++)
        note_outputs(s, graph->args[i], &s->first_arg[i]);
    TARE_TRY(tare_graph_order(&s->order, s->arena, graph));
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = s->order[i];
        note_outputs(s, node, &s->first_node[node->position]);
        s->place[node->position] = (int)i;
        s->data[node->position] = is_input(node);
        for (size_t k = 0; k < node->n_inputs && !s->data[node->position]; k++)
            s->data[node->position] = carries(s, node->inputs[k].node);
    }
    use_results(s);
    for (size_t i = graph->n_nodes; i-- > 0;) {
        const struct tare_node *node = s->order[i];
        s->data[node->position] = s->data[node->position] && is_used(s, s->order[i]);
        for (size_t k = 0; s->data[node->position] && k < node->n_inputs; k++)
            use(s, node->inputs[k], (int)i);
    }
    return TARE_OK;
}

/* ---- segments ---- */

/* What is between two cuts: its end, its layers, and whether it ends the blocks before it. */
struct segment {
    const struct value *cut; /* NULL: the end of the graph */
    int end;                 /* place of its last node */
    size_t layers;
    bool hides_errors;
};

static void begin_life(struct search *s, struct value *value) {
    if (value->last < 0) return;
    s->live++;
    s->sum += (size_t)(value - s->values);
}

static void end_life(struct search *s, const struct tare_node *node, int place) {
    for (size_t k = 0; k < node->n_inputs; k++) {
        struct value *value;
        if (!carries(s, node->inputs[k].node)) continue;
        value = value_of(s, node->inputs[k]);
        if (value->last != place) continue;
        value->last = -2; /* a node may read it twice */
        s->live--;
        s->sum -= (size_t)(value - s->values);
    }
}

static const struct value *cut_here(const struct search *s) {
    const struct value *value = s->live == 1 ? &s->values[s->sum] : NULL;
    return value && tare_edge_dtype(value->edge) == TARE_DT_FLOAT ? value : NULL;
}

static bool hides_errors(const struct tare_node *node) {
    static const char *const ops[] = { "Softmax", "LogSoftmax", "Sigmoid", "ArgMax", "TopKV2", NULL };
    return tare_op_is_one_of(node->op, ops);
}

static size_t layers_until(const struct search *s, size_t first, int end) {
    size_t count = 0;
    while (first + count < s->n_layers && s->place[s->layers[first + count]->op->position] <= end)
        count++;
    return count;
}

static tare_status find_segments(struct segment **out, size_t *count, struct search *s) {
    const struct tare_graph *graph = s->graph;
    struct segment *segments = TARE_NEW_ARRAY(s->arena, struct segment, graph->n_nodes + 1);
    size_t layers = 0;
    bool hides = false;
    if (!segments) return TARE_NO_MEMORY;
    *count = 0;
    for (size_t i = 0; i < s->n_values; i++)
        if (is_input(s->values[i].edge.node)) begin_life(s, &s->values[i]);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct tare_node *node = s->order[i];
        const struct value *cut;
        if (!s->data[node->position] || is_input(node)) continue;
        for (size_t k = 0; k < node->n_outputs; k++)
            begin_life(s, value_of(s, (struct tare_edge){ node, (int)k }));
        end_life(s, node, (int)i);
        hides = hides || hides_errors(node);
        cut = cut_here(s);
        if (!cut) continue;
        segments[*count] = (struct segment){ cut, (int)i, layers_until(s, layers, (int)i), hides };
        layers += segments[(*count)++].layers;
        hides = false;
    }
    if (layers < s->n_layers)
        segments[(*count)++] = (struct segment){ NULL, (int)graph->n_nodes, s->n_layers - layers, false };
    *out = segments;
    return TARE_OK;
}

/* ---- blocks ---- */

/* By node: it depends on a layer of the block. */
static bool *depends_on_layers(const struct search *s, const struct tare_block *block) {
    bool *depends = TARE_NEW_ARRAY(s->arena, bool, s->graph->n_nodes + 1);
    for (size_t i = 0; depends && i < block->n_layers; i++)
        depends[block->layers[i]->op->position] = true;
    for (size_t i = 0; depends && i < s->graph->n_nodes; i++) {
        const struct tare_node *node = s->order[i];
        for (size_t k = 0; k < node->n_inputs && !depends[node->position]; k++) {
            const struct tare_node *from = node->inputs[k].node;
            depends[node->position] = from && !tare_node_is_arg(from) && depends[from->position];
        }
    }
    return depends;
}

static bool has_edge(const struct tare_edge *edges, size_t count, struct tare_edge edge) {
    for (size_t i = 0; i < count; i++)
        if (tare_edge_equal(edges[i], edge)) return true;
    return false;
}

/* What the block reads that does not depend on its layers. So a block at the beginning of the graph does not contain
 * the preprocessing before the first layer, which may have no derivative and does not need one. */
static tare_status list_inputs(struct tare_block *block, const struct search *s, const bool *depends, int end) {
    block->inputs = TARE_NEW_ARRAY(s->arena, struct tare_edge, s->n_values + 1);
    if (!block->inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < s->graph->n_nodes && (int)i <= end; i++) {
        const struct tare_node *node = s->order[i];
        for (size_t k = 0; k < node->n_inputs && depends[node->position] && s->data[node->position]; k++) {
            const struct tare_edge edge = node->inputs[k];
            if (!edge.node || !carries(s, edge.node)) continue;
            if (!tare_node_is_arg(edge.node) && depends[edge.node->position]) continue;
            if (!has_edge(block->inputs, block->n_inputs, edge)) block->inputs[block->n_inputs++] = edge;
        }
    }
    return TARE_OK;
}

/* The results that depend on the layers; `depends` NULL: all results. */
static tare_status list_results(struct tare_block *block, const struct search *s, const bool *depends) {
    block->outputs = TARE_NEW_ARRAY(s->arena, struct tare_edge, s->n_values + 1);
    if (!block->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < s->n_values; i++) {
        const struct tare_edge edge = s->values[i].edge;
        if (s->values[i].last != INT_MAX) continue;
        if (!depends || (!tare_node_is_arg(edge.node) && depends[edge.node->position]))
            block->outputs[block->n_outputs++] = edge;
    }
    return TARE_OK;
}

static tare_status one_edge(struct tare_edge **out, size_t *count, const struct search *s, const struct value *cut) {
    *out = TARE_NEW(s->arena, struct tare_edge);
    if (!*out) return TARE_NO_MEMORY;
    **out = cut->edge;
    *count = 1;
    return TARE_OK;
}

static tare_status add_block(struct search *s, const struct value *begin, const struct value *end, size_t first_layer,
                             size_t n_layers) {
    struct tare_block *grown = tare_arena_append(s->arena, s->out->blocks, s->out->count, sizeof *s->out->blocks);
    struct tare_block *block;
    if (!grown) return TARE_NO_MEMORY;
    s->out->blocks = grown;
    block = &grown[s->out->count++];
    *block = (struct tare_block){ .graph = s->graph, .layers = s->layers + first_layer, .n_layers = n_layers };
    const int last = end ? s->place[end->edge.node->position] : INT_MAX;
    const bool *depends = begin ? NULL : depends_on_layers(s, block);
    if (!begin && !depends) return TARE_NO_MEMORY;
    if (begin)
        TARE_TRY(one_edge(&block->inputs, &block->n_inputs, s, begin));
    else
        TARE_TRY(list_inputs(block, s, depends, last));
    if (end) return one_edge(&block->outputs, &block->n_outputs, s, end);
    return list_results(block, s, depends);
}

/* The index of the first segment after the block that begins with segment i, which has layers. */
static size_t block_end(const struct segment *segments, size_t count, size_t i) {
    const bool joins = segments[i].layers == 1;
    size_t layers = segments[i].layers;
    for (i++; i < count; i++) {
        const bool takes = segments[i].layers == 0 ? !segments[i].hides_errors
                                                   : joins && segments[i].layers == 1 && layers < MOST_JOINED;
        if (!takes || !segments[i].cut) return i;
        layers += segments[i].layers;
    }
    return i;
}

static tare_status join_segments(struct search *s, const struct segment *segments, size_t count) {
    const struct value *begin = NULL;
    for (size_t i = 0, layer = 0; i < count;) {
        const size_t end = segments[i].layers ? block_end(segments, count, i) : i + 1;
        size_t layers = 0;
        for (size_t k = i; k < end; k++)
            layers += segments[k].layers;
        if (layers) TARE_TRY(add_block(s, begin, segments[end - 1].cut, layer, layers));
        layer += layers;
        begin = segments[end - 1].cut;
        i = end;
    }
    return TARE_OK;
}

/* Finds blocks with the layers that are not `taken` yet, by index in `work`, and takes them. */
static tare_status search_results(struct tare_block_list *out, struct tare_arena *arena,
                                  const struct tare_quant_work *work, const struct tare_graph *graph,
                                  const struct tare_signature *signature, bool *taken) {
    struct search s = { .graph = graph, .signature = signature, .arena = arena, .out = out };
    struct segment *segments;
    size_t count;
    s.layers = TARE_NEW_ARRAY(arena, struct tare_quant_layer *, work->n_layers + 1);
    if (!s.layers) return TARE_NO_MEMORY;
    TARE_TRY(find_lifetimes(&s));
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        if (layer->op->graph != graph || layer->refused || !layer->weight || layer->kind == TARE_KIND_GATHER) continue;
        if (taken[i] || !s.data[layer->op->position]) continue;
        taken[i] = true;
        size_t at = s.n_layers++;
        for (; at > 0 && s.place[s.layers[at - 1]->op->position] > s.place[layer->op->position]; at--)
            s.layers[at] = s.layers[at - 1];
        s.layers[at] = layer;
    }
    if (!s.n_layers) return TARE_OK;
    TARE_TRY(find_segments(&segments, &count, &s));
    return join_segments(&s, segments, count);
}

static size_t samples_of(const struct tare_quant_work *work, const struct tare_signature *signature) {
    const struct tare_kept_samples *samples = work->ranges ? work->ranges->samples : NULL;
    size_t count = 0;
    for (size_t i = 0; samples && i < samples->count; i++)
        count += strcmp(samples->items[i].signature, signature->key) == 0;
    return count;
}

/* A sample computes the results of its signature only, so that the blocks of the main graph are those of one signature
 * after the other, the one with the most samples first. */
static tare_status search_graph(struct tare_block_list *out, struct tare_arena *arena,
                                const struct tare_quant_work *work, const struct tare_graph *graph, bool *taken) {
    const struct tare_graph_model *model = graph->model;
    const size_t n_signatures = graph == model->main ? model->n_signatures : 0;
    bool *searched = TARE_NEW_ARRAY(arena, bool, n_signatures + 1);
    if (!searched) return TARE_NO_MEMORY;
    for (size_t n = 0; n < n_signatures; n++) {
        size_t next = n_signatures, most = 0;
        for (size_t i = 0; i < n_signatures; i++) {
            const size_t count = samples_of(work, &model->signatures[i]);
            if (searched[i] || (next < n_signatures && count <= most)) continue;
            next = i;
            most = count;
        }
        searched[next] = true;
        TARE_TRY(search_results(out, arena, work, graph, &model->signatures[next], taken));
    }
    return search_results(out, arena, work, graph, NULL, taken);
}

tare_status tare_quant_find_blocks(struct tare_block_list *out, struct tare_arena *arena,
                                   const struct tare_quant_work *work) {
    bool *taken = TARE_NEW_ARRAY(arena, bool, work->n_layers + 1);
    *out = (struct tare_block_list){ 0 };
    if (!taken) return TARE_NO_MEMORY;
    for (size_t i = 0; i < work->n_layers; i++)
        if (i == 0 || work->layers[i].op->graph != work->layers[i - 1].op->graph)
            TARE_TRY(search_graph(out, arena, work, work->layers[i].op->graph, taken));
    return TARE_OK;
}
