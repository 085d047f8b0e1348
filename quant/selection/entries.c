/* Ranges by iteration. */
#include "quant/selection/entries.h"
#include "calib/statistics.h"
#include "graph/calls.h"
#include "graph/graphs.h"
#include "quant/fake_quant.h"
#include "quant/range_cache.h"
#include "quant/selection/emit_selection.h"

#include <string.h>

/* ---- loops ---- */

/* An activation has statistics by one counter: that of the first layer that reads it. */
static bool reads_by_another(const struct tare_quant_layer *layers, const struct tare_quant_layer *layer) {
    for (const struct tare_quant_layer *other = layers; other < layer; other++) {
        const bool reads = tare_edge_equal(other->input, layer->input) ||
                           (!other->weight && tare_edge_equal(other->second, layer->input)) ||
                           (!layer->weight && (tare_edge_equal(other->input, layer->second) ||
                                               (!other->weight && tare_edge_equal(other->second, layer->second))));
        if (reads && other->kind != TARE_KIND_GATHER && !other->refused &&
            !tare_quant_same_counter(other->loop, layer->loop))
            return true;
    }
    return false;
}

/* Whether a node runs a function in each iteration of a loop: as its body, or in a branch of one. */
static tare_status is_in_loop(bool *out, struct tare_arena *arena, const struct tare_graph *function, int depth);

static tare_status runs_in_loop(bool *out, struct tare_arena *arena, const struct tare_node *node,
                                const struct tare_graph *function, int depth) {
    struct tare_call_site site;
    TARE_TRY(tare_call_site(&site, arena, node));
    for (size_t c = 0; c < site.n_callees && !*out; c++) {
        if (site.callees[c] != function) continue;
        *out = site.kind == TARE_CALL_LOOP && c == site.n_callees - 1;
        if (site.kind == TARE_CALL_BRANCH) TARE_TRY(is_in_loop(out, arena, node->graph, depth + 1));
    }
    return TARE_OK;
}

/* The number of an entry is that of an iteration only there; elsewhere a request chooses it, and some entries have seen
 * few samples, or none. */
static tare_status is_in_loop(bool *out, struct tare_arena *arena, const struct tare_graph *function, int depth) {
    enum { DEEPEST = 4 };
    const struct tare_graph_model *model = function->model;
    if (depth == DEEPEST) return TARE_OK;
    for (size_t g = 0; g <= model->n_functions && !*out; g++) {
        const struct tare_graph *graph = tare_model_graph(model, g);
        for (size_t i = 0; i < graph->n_nodes && !*out; i++)
            if (!graph->nodes[i]->dead) TARE_TRY(runs_in_loop(out, arena, graph->nodes[i], function, depth));
    }
    return TARE_OK;
}

tare_status tare_quant_find_loop(struct tare_arena *arena, struct tare_quant_layer *layers, size_t count) {
    struct tare_quant_selection *first = NULL;
    bool in_loop = false;
    struct tare_observed_counter counter;
    for (size_t i = 0; i < count && !first; i++)
        if (layers[i].selection && tare_quant_find_counter(&counter, layers[i].selection)) first = layers[i].selection;
    if (first) TARE_TRY(is_in_loop(&in_loop, arena, layers[0].op->graph, 0));
    if (!in_loop) return TARE_OK;
    for (size_t i = 0; i < count; i++) {
        struct tare_quant_layer *layer = &layers[i];
        if (layer->kind == TARE_KIND_GATHER || layer->refused) continue;
        layer->loop = layer->selection ? layer->selection : first;
        if (!tare_quant_find_counter(&counter, layer->loop) || reads_by_another(layers, layer)) layer->loop = NULL;
    }
    return TARE_OK;
}

/* ---- ranges ---- */

/* The range of an entry of the input, or, where the layer does not use this entry, of the input of another layer that
 * chooses from the same stack: layers of one iteration then have the same tables. */
static tare_status find_range(bool *found, bool *own, double *low, double *high, const struct tare_quant_work *work,
                              const struct tare_quant_layer *layer, struct tare_edge edge, int64_t entry) {
    TARE_TRY(tare_quant_find_entry_range(found, low, high, work->cache, work->ranges, edge, entry, &layer->setting));
    *own = *found;
    for (size_t i = 0; i < work->n_layers && !*found && layer->weight; i++) {
        const struct tare_quant_layer *other = &work->layers[i];
        if (other == layer || !other->weight || other->weight->data != layer->weight->data || !other->loop ||
            other->loop->count != layer->loop->count || other->op->graph != layer->op->graph)
            continue;
        TARE_TRY(tare_quant_find_entry_range(found, low, high, work->cache, work->ranges, other->input, entry,
                                             &layer->setting));
    }
    return TARE_OK;
}

/* *differ: the parameters are not those of all iterations together. An iteration that no sample reached has these. */
static tare_status find_params(struct tare_qparams **out, bool **own, bool *differ, const struct tare_quant_work *work,
                               const struct tare_quant_layer *layer, struct tare_edge edge,
                               const struct tare_qparams *all) {
    const struct tare_qscheme scheme = tare_quant_activation_scheme(&layer->setting);
    struct tare_qparams *params = TARE_NEW_ARRAY(work->arena, struct tare_qparams, (size_t)layer->loop->count);
    double low, high;
    bool found;
    *own = TARE_NEW_ARRAY(work->arena, bool, (size_t)layer->loop->count);
    if (!params || !*own) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < layer->loop->count; i++) {
        params[i] = *all;
        TARE_TRY(find_range(&found, &(*own)[i], &low, &high, work, layer, edge, i));
        if (found && tare_qparams_from_range(&params[i], low, high, &scheme) != TARE_OK) {
            tare_error_clear(); /* not finite */
            params[i] = *all;
        }
        *differ |= params[i].scale != all->scale || params[i].zero_point != all->zero_point;
    }
    *out = params;
    return TARE_OK;
}

tare_status tare_quant_find_entries(const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_quant_entries entries = { .by = layer->loop, .count = layer->loop ? layer->loop->count : 0 };
    bool trained, differ = false;
    double low, high;
    layer->entries = NULL;
    if (!layer->loop || work->plan->shared_ranges || !work->ranges || !work->ranges->find_entry) return TARE_OK;
    TARE_TRY(tare_quant_fake_range(&trained, &low, &high, work->fakes, layer->input));
    if (trained) return TARE_OK;
    TARE_TRY(find_params(&entries.left, &entries.own, &differ, work, layer, layer->input, &layer->left_params));
    if (!layer->weight)
        TARE_TRY(find_params(&entries.right, &entries.own, &differ, work, layer, layer->second, &layer->right_params));
    if (!differ) return TARE_OK;
    layer->entries = TARE_NEW(work->arena, struct tare_quant_entries);
    if (!layer->entries) return TARE_NO_MEMORY;
    *layer->entries = entries;
    return TARE_OK;
}

tare_status tare_quant_scale_entries(const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const struct tare_quant_ranges *ranges = work->ranges;
    struct tare_quant_entries *entries;
    layer->entries = NULL;
    if (!layer->loop || !layer->weight || work->plan->shared_ranges || !ranges->find_entry || !ranges->entry_statistics)
        return TARE_OK;
    entries = TARE_NEW(work->arena, struct tare_quant_entries);
    if (!entries) return TARE_NO_MEMORY;
    *entries = (struct tare_quant_entries){ .by = layer->loop, .count = layer->loop->count };
    entries->left = TARE_NEW_ARRAY(work->arena, struct tare_qparams, (size_t)entries->count);
    if (!entries->left) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < entries->count; i++) {
        const struct tare_statistics *s = ranges->entry_statistics(ranges->arg, layer->observed, i);
        bool found;
        entries->left[i] = layer->left_params;
        if (!s || s->channels != layer->input_channels) continue;
        TARE_TRY(tare_quant_scaled_params(&found, &entries->left[i], work, layer->observed, i, s,
                                          tare_quant_input_scale(layer, i), &layer->setting));
    }
    layer->entries = entries;
    return TARE_OK;
}

struct tare_quant_selection *tare_quant_chooser(const struct tare_quant_layer *layer) {
    return layer->entries ? layer->entries->by : layer->selection;
}

static bool same_params(const struct tare_qparams *a, const struct tare_qparams *b, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (a[i].scale != b[i].scale || a[i].zero_point != b[i].zero_point || a[i].qmin != b[i].qmin) return false;
    return true;
}

bool tare_quant_same_entries(const struct tare_quant_entries *a, const struct tare_quant_entries *b) {
    return a && b && tare_quant_same_counter(a->by, b->by) && same_params(a->left, b->left, a->count);
}

bool tare_quant_has_zero_point(const struct tare_quant_entries *entries, const struct tare_qparams *params) {
    for (int64_t i = 0; i < entries->count; i++)
        if (params[i].zero_point) return true;
    return false;
}

/* ---- nodes ---- */

static struct tare_edge emit_chosen(struct tare_emit *emit, const char *name, const struct tare_quant_entries *entries,
                                    struct tare_edge values) {
    const char *chosen = tare_arena_printf(&emit->graph->model->arena, "%s/chosen", name);
    if (!chosen) emit->status = TARE_NO_MEMORY;
    return tare_emit_chosen(emit, chosen, entries->by, values);
}

struct tare_edge tare_emit_entry_floats(struct tare_emit *emit, const char *name,
                                        const struct tare_quant_entries *entries, const double *values) {
    const struct tare_shape shape = tare_shape_make(1, entries->count);
    return emit_chosen(emit, name, entries, tare_emit_floats(emit, name, &shape, values));
}

enum part { SCALE, ZERO_POINT };

static struct tare_edge emit_part(struct tare_emit *emit, const char *name, const struct tare_quant_entries *entries,
                                  const struct tare_qparams *params, enum part part) {
    double *values = TARE_NEW_ARRAY(&emit->graph->model->arena, double, (size_t)entries->count);
    if (!values) {
        emit->status = TARE_NO_MEMORY;
        return (struct tare_edge){ NULL, 0 };
    }
    for (int64_t i = 0; i < entries->count; i++)
        values[i] = part == SCALE ? params[i].scale : params[i].zero_point;
    return tare_emit_entry_floats(emit, name, entries, values);
}

struct tare_edge tare_emit_entry_scale(struct tare_emit *emit, const char *name,
                                       const struct tare_quant_entries *entries, const struct tare_qparams *params) {
    return emit_part(emit, name, entries, params, SCALE);
}

struct tare_edge tare_emit_entry_zero_point(struct tare_emit *emit, const char *name,
                                            const struct tare_quant_entries *entries,
                                            const struct tare_qparams *params) {
    return emit_part(emit, name, entries, params, ZERO_POINT);
}
