/* Quantizes a model: finds the layers, chooses the settings of each and calls its method. */
#include "base/option.h"
#include "base/control.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "quant/fake_quant.h"
#include "quant/float_layers.h"
#include "quant/layer.h"
#include "quant/layer_index.h"
#include "quant/quality_warnings.h"
#include "quant/range_cache.h"
#include "quant/recipe.h"
#include "quant/sweep.h"
#include "quant/tied_tables.h"
#include "quant/variables.h"
#include "quant/weight_store.h"
#include "quant/wide_inputs.h"
#include "quant/xla.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- planning ---- */

static tare_status plan_layer(struct tare_quant_work *work, struct tare_quant_layer *layer, bool *used_rules) {
    bool by_rule;
    layer->setting = work->plan->setting;
    TARE_TRY(tare_quant_recipe_apply(&layer->setting, &by_rule, used_rules, work->plan->recipe, layer->op));
    if (work->plan->adjust) work->plan->adjust(work->plan->adjust_arg, layer->op->graph, layer->op, &layer->setting);
    TARE_TRY(tare_quant_choose_form(&layer->setting, work->plan->op_set));
    TARE_TRY(tare_error_prefix(tare_quant_check_setting(&layer->setting), "%s (%s)", layer->op->name, layer->op->op));
    return layer->refused ? TARE_OK : tare_quant_float_reason(&layer->refused, work, layer, by_rule);
}

/* What a condition that no layer meets may mean: the layers' op or name that is spelled nearly so. */
static tare_status hint_of(const char **out, struct tare_quant_work *work, const struct tare_quant_rule *rule) {
    const char **names = TARE_NEW_ARRAY(work->arena, const char *, work->n_layers + 1), *nearest = NULL;
    *out = NULL;
    if (!names) return TARE_NO_MEMORY;
    for (size_t i = 0; i < work->n_layers; i++)
        names[i] = rule->op ? work->layers[i].op->op : work->layers[i].op->name;
    for (size_t i = 0; i < work->n_layers; i++)
        if (rule->op && strcmp(rule->op, names[i]) == 0) return TARE_OK; /* another condition is not met */
    if (rule->op || rule->name) nearest = tare_nearest_name(rule->op ? rule->op : rule->name, names);
    if (nearest) *out = tare_arena_printf(work->arena, "%s=%s", rule->op ? "op" : "name", nearest);
    return nearest && !*out ? TARE_NO_MEMORY : TARE_OK;
}

/* Rules that match no layer go to the report. */
static tare_status plan_all(struct tare_quant_work *work) {
    const struct tare_quant_recipe *recipe = work->plan->recipe;
    struct tare_quant_report *report = work->report;
    const size_t n_rules = tare_quant_recipe_count(recipe);
    bool *used = TARE_NEW_ARRAY(work->arena, bool, n_rules + 1);
    report->unused_rules = TARE_NEW_ARRAY(work->arena, const char *, n_rules + 1);
    report->unused_hints = TARE_NEW_ARRAY(work->arena, const char *, n_rules + 1);
    if (!used || !report->unused_rules || !report->unused_hints) return TARE_NO_MEMORY;
    for (size_t i = 0; i < work->n_layers; i++)
        TARE_TRY(plan_layer(work, &work->layers[i], used));
    for (size_t i = 0; i < n_rules; i++) {
        const struct tare_quant_rule *rule = tare_quant_recipe_rule(recipe, i);
        if (used[i]) continue;
        TARE_TRY(hint_of(&report->unused_hints[report->n_unused_rules], work, rule));
        report->unused_rules[report->n_unused_rules++] = rule->where;
    }
    return TARE_OK;
}

/* ---- accuracy passes ---- */

static tare_status run_pass(struct tare_quant_work *work, const struct tare_quant_pass *pass) {
    work->changes = 0;
    work->idle = pass->idle;
    TARE_TRY(tare_error_prefix(pass->run(work, pass), "%s", pass->name));
    if (work->changes) return TARE_OK;
    return tare_quant_add_note(work->report, work->arena, "pass %s changes nothing: %s", pass->name, work->idle);
}

/* The bits of activations are chosen as soon as no pass changes their scales any more. */
static tare_status run_passes(struct tare_quant_work *work) {
    const struct tare_quant_pass *const *pass = work->plan->passes;
    for (; pass && *pass && (*pass)->scales_inputs; pass++)
        TARE_TRY(run_pass(work, *pass));
    TARE_TRY(tare_quant_widen_inputs(work));
    for (; pass && *pass; pass++)
        TARE_TRY(run_pass(work, *pass));
    return TARE_OK;
}

/* ---- rewriting ---- */

static tare_status add_outcomes(struct tare_quant_work *work) {
    struct tare_quant_report *report = work->report;
    report->outcomes = TARE_NEW_ARRAY(work->arena, struct tare_quant_outcome, work->n_layers + 1);
    if (!report->outcomes) return TARE_NO_MEMORY;
    for (size_t i = 0; i < work->n_layers; i++) {
        struct tare_quant_layer *layer = &work->layers[i];
        layer->outcome = &report->outcomes[report->count++];
        *layer->outcome =
            (struct tare_quant_outcome){ .function = layer->op->graph->name,
                                         .node = layer->op->name,
                                         .op = layer->op->op,
                                         .refused = layer->refused,
                                         .input_node = layer->observed.node ? layer->observed.node->name : NULL,
                                         .input_output = layer->observed.index };
        if (layer->refused) continue;
        layer->outcome->method = layer->setting.method->name;
        layer->outcome->setting = layer->setting;
        report->quantized++;
    }
    return TARE_OK;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Columns that are all zero do not count. */
static tare_status channel_spread(double *out, struct tare_arena *arena, const struct tare_quant_layer *layer) {
    const struct tare_weight_layout *layout = &layer->quantized.layout;
    const float *values = TARE_CONST_DATA(float, &layer->real);
    const int64_t rows = layout->batches * layout->rows;
    double *magnitudes = TARE_NEW_ARRAY(arena, double, (size_t)layout->columns + 1);
    size_t count = 0;
    if (!magnitudes) return TARE_NO_MEMORY;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < layout->columns; c++, values++)
            if (fabsf(*values) > magnitudes[c]) magnitudes[c] = fabsf(*values);
    for (int64_t c = 0; c < layout->columns; c++)
        if (magnitudes[c] > 0) magnitudes[count++] = magnitudes[c];
    qsort(magnitudes, count, sizeof *magnitudes, by_size);
    *out = count ? magnitudes[count - 1] / magnitudes[count / 2] : 1;
    return TARE_OK;
}

static bool is_zero(const struct tare_quantized_weight *weight) {
    int64_t i = 0;
    while (i < weight->values.elements && tare_weight_code(weight, i) == 0)
        i++;
    return i == weight->values.elements;
}

static void describe_weight(const struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    struct tare_quant_outcome *outcome = layer->outcome;
    outcome->bits = q->bits;
    outcome->weight_elements = q->values.elements;
    outcome->weight_vanishes = isfinite(outcome->weight_sqnr_db) && is_zero(q); /* infinite: zeros before */
    outcome->weight_scale_min = outcome->weight_scale_max = q->scales[0];
    outcome->n_weight_scales = q->n_scales;
    outcome->weight_scales = q->scales;
    for (int64_t i = 1; i < q->n_scales; i++) {
        if (q->scales[i] < outcome->weight_scale_min) outcome->weight_scale_min = q->scales[i];
        if (q->scales[i] > outcome->weight_scale_max) outcome->weight_scale_max = q->scales[i];
    }
}

/* Takes the integers of an earlier layer of the graph with the same constant and the same settings, if there is one. */
static void share_integers(const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const struct tare_quant_layer *other = layer->twin           ? layer->twin
                                           : layer->own_integers ? NULL
                                                                 : tare_quant_same_weight(work, layer);
    if (layer->variable || !other) return;
    layer->integers = other->integers;
    layer->unarranged = other->unarranged;
}

/* The integers and what is reported of them: from an earlier quantization of the model, or from the weight's values. */
static tare_status quantize_weight(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    struct tare_quant_outcome *outcome = layer->outcome;
    bool found;
    TARE_TRY(tare_quant_weight_store_find(&found, work->plan->weights, work->arena, layer));
    share_integers(work, layer);
    if (!found) {
        TARE_TRY(tare_quant_make_integers(work->arena, layer));
        TARE_TRY(tare_quant_make_real(layer));
        outcome->weight_sqnr_db = tare_weight_sqnr_db(&layer->quantized, &layer->real);
        TARE_TRY(channel_spread(&outcome->channel_spread, work->arena, layer));
        tare_tensor_reset(&layer->real); /* one weight's floats at a time */
        TARE_TRY(tare_quant_weight_store_add(work->plan->weights, layer));
    }
    tare_quant_share_tied(layer);
    describe_weight(layer);
    return TARE_OK;
}

static tare_status rewrite_layer(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    tare_status status = TARE_OK;
    TARE_TRY(tare_control_check());
    layer->outcome->input = layer->left_params;
    if (layer->weight) {
        layer->own_integers = layer->real.dtype != TARE_DT_INVALID || layer->quantized.values.dtype != TARE_DT_INVALID;
        TARE_CHECK(quantize_weight(work, layer));
    }
    TARE_CHECK(layer->setting.method->rewrite(work, layer));
    status = tare_quant_index_rewritten(work, layer);
done:
    tare_tensor_reset(&layer->real);
    tare_tensor_reset(&layer->quantized.values);
    if (layer->weight && work->plan->forget) work->plan->forget(layer->weight);
    if (layer->held) tare_tensor_reset(layer->held);
    return tare_error_prefix(status, "%s (%s)", layer->op->name, layer->op->op);
}

/* ---- the model ---- */

static tare_status find_all(struct tare_quant_work *work, const struct tare_bindings *bindings) {
    struct tare_quant_layer_list list = { 0 };
    const struct tare_graph_model *model = work->model;
    tare_status status = tare_quant_find_layers(&list, work->arena, model->main, work->shapes, bindings);
    for (size_t i = 0; i < model->n_functions && status == TARE_OK; i++)
        status =
            tare_error_prefix(tare_quant_find_layers(&list, work->arena, model->functions[i], work->shapes, bindings),
                              "function %s", model->functions[i]->name);
    work->layers = list.layers; /* also on failure: they hold tensors */
    work->n_layers = list.count;
    return status;
}

tare_status tare_quantize(struct tare_quant_report *report, struct tare_arena *arena, struct tare_graph_model *model,
                          const struct tare_quant_ranges *ranges, const struct tare_quant_plan *plan) {
    struct tare_model_shapes *shapes = NULL;
    struct tare_bindings *bindings = NULL;
    struct tare_quant_range_cache cache = { .arena = arena };
    struct tare_quant_fakes fakes;
    struct tare_quant_work work = { .arena = arena,
                                    .model = model,
                                    .ranges = ranges,
                                    .plan = plan,
                                    .report = report,
                                    .fakes = &fakes,
                                    .cache = &cache };
    tare_status status;
    memset(report, 0, sizeof *report);
    tare_quant_fakes_open(&fakes, arena, model);
    TARE_CHECK(tare_model_shapes_new(&shapes, model));
    work.shapes = shapes;
    TARE_CHECK(tare_bindings_new(&bindings, model));
    TARE_CHECK(find_all(&work, bindings));
    TARE_CHECK(plan_all(&work));
    TARE_CHECK(tare_quant_find_tied(&work));
    TARE_CHECK(tare_quant_layer_index_new(&work.index, &work));
    TARE_CHECK(tare_quant_check_variables(&work, bindings));
    TARE_CHECK(run_passes(&work));
    TARE_CHECK(add_outcomes(&work));
    TARE_CHECK(tare_quant_note_integers(&work));
    if (plan->warns) TARE_CHECK(tare_quant_warn_of_ranges(&work));
    if (plan->warns) TARE_CHECK(tare_quant_warn_of_noisy_inputs(&work));
    for (size_t i = 0; i < work.n_layers; i++)
        if (!work.layers[i].refused) TARE_CHECK(rewrite_layer(&work, &work.layers[i]));
    TARE_CHECK(tare_quant_sweep(&work));
    TARE_CHECK(tare_quant_retype_reads(&work));
    if (plan->warns) status = tare_quant_warn_of_weights(&work);
done:
    tare_quant_fakes_close(&fakes);
    tare_quant_range_cache_close(&cache);
    tare_quant_layer_index_free(work.index);
    tare_quant_release_layers(work.layers, work.n_layers);
    tare_bindings_free(bindings);
    tare_model_shapes_free(shapes);
    return status;
}

/* ---- what to observe ---- */

struct noted_edge {
    const struct tare_node *node;
    size_t index; /* as wide as the pointer: the key has no padding */
};

static tare_status add_edge(struct tare_edge_list *list, struct tare_map *noted, struct tare_arena *arena,
                            struct tare_edge edge) {
    struct noted_edge *key = TARE_NEW(arena, struct noted_edge);
    if (!key) return TARE_NO_MEMORY;
    *key = (struct noted_edge){ edge.node, (size_t)edge.index };
    if (tare_map_get_n(noted, (const char *)key, sizeof *key)) return TARE_OK;
    if (!tare_map_set_n(noted, (const char *)key, sizeof *key, key)) return TARE_NO_MEMORY;
    list->edges[list->count++] = edge;
    return TARE_OK;
}

static void add_counter(struct tare_edge_list *list, const struct tare_quant_layer *layer, struct tare_edge edge) {
    struct tare_quant_counter counter = { .edge = edge };
    if (!layer->loop || layer->refused || !tare_quant_find_counter(&counter.counter, layer->loop)) return;
    list->counters[list->n_counters++] = counter;
}

/* The first counter of an edge is the one that counts: a result that another layer reads has the counter of that. */
static void add_counters(struct tare_edge_list *list, const struct tare_quant_work *work) {
    for (size_t i = 0; i < work->n_layers; i++) {
        const struct tare_quant_layer *layer = &work->layers[i];
        add_counter(list, layer, layer->input);
        if (!layer->weight) add_counter(list, layer, layer->second);
    }
    for (size_t i = 0; i < work->n_layers; i++)
        if (work->layers[i].weight) add_counter(list, &work->layers[i], work->layers[i].output);
}

tare_status tare_quant_observed_edges(struct tare_edge_list *out, struct tare_arena *arena,
                                      const struct tare_graph_model *model) {
    struct tare_model_shapes *shapes = NULL;
    struct tare_bindings *bindings = NULL;
    struct tare_map noted = { 0 };
    struct tare_quant_work work = { .arena = arena, .model = (struct tare_graph_model *)(uintptr_t)model };
    tare_status status;
    memset(out, 0, sizeof *out);
    TARE_CHECK(tare_model_shapes_new(&shapes, model));
    work.shapes = shapes;
    TARE_CHECK(tare_bindings_new(&bindings, model));
    TARE_CHECK(find_all(&work, bindings));
    out->edges = TARE_NEW_ARRAY(arena, struct tare_edge, 3 * work.n_layers + 1);
    out->counters = TARE_NEW_ARRAY(arena, struct tare_quant_counter, 2 * work.n_layers + 1);
    if (!out->edges || !out->counters) {
        status = TARE_NO_MEMORY;
        goto done;
    }
    for (size_t i = 0; i < work.n_layers; i++) {
        const struct tare_quant_layer *layer = &work.layers[i];
        if (layer->refused || layer->kind == TARE_KIND_GATHER) continue;
        TARE_CHECK(add_edge(out, &noted, arena, layer->input));
        if (!layer->weight) TARE_CHECK(add_edge(out, &noted, arena, layer->second));
        TARE_CHECK(add_edge(out, &noted, arena, layer->output));
    }
    add_counters(out, &work);
done:
    tare_map_free(&noted);
    tare_quant_release_layers(work.layers, work.n_layers);
    tare_bindings_free(bindings);
    tare_model_shapes_free(shapes);
    return status;
}
