/* Builds the forms of a model, adds up their costs by layer, and asks the compiler. */
#include "workflow/check/fastest.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "convert/pipeline.h"
#include "eval/model_inputs.h"
#include "graph/clone.h"
#include "graph/inline.h"
#include "quant/recipe.h"
#include "quant/weight_store.h"
#include "tpu/cost/fused.h"
#include "workflow/check/report.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

struct choosing {
    const struct tare_fastest_task *task;
    struct tare_fastest *out;
    struct tare_arena *arena;
    struct tare_map by_name; /* FUNCTION, a line break, NODE: a layer */
    struct tare_quant_weight_store weights;
    json_t *known;  /* programs that are compiled */
    bool by_cycles; /* decides by the compiler's cycles of a layer, not by the estimate */
};

/* ---- layers ---- */

static struct tare_fastest_layer *find_named(const struct choosing *c, const char *function, const char *node,
                                             size_t size) {
    struct tare_strbuf key = { 0 };
    struct tare_fastest_layer *found;
    tare_strbuf_printf(&key, "%s\n%.*s", function, (int)size, node);
    found = key.failed ? NULL : tare_map_get(&c->by_name, tare_strbuf_text(&key));
    tare_strbuf_free(&key);
    return found;
}

/* The layer that a node computes, or that it was made for: "conv", "conv/XlaConvV2", "conv/quantize/cast". */
static struct tare_fastest_layer *layer_of(const struct choosing *c, const char *function, const char *node) {
    size_t size = strlen(node);
    for (;;) {
        struct tare_fastest_layer *found = find_named(c, function, node, size);
        if (found) return found;
        while (size && node[size - 1] != '/')
            size--;
        if (!size) return NULL;
        size--;
    }
}

/* By the compiler, whose names have no function: the first layer of that name. */
static struct tare_fastest_layer *layer_named(const struct choosing *c, const char *node) {
    struct tare_fastest_layer *found = NULL;
    for (size_t i = 0; i < c->out->n_layers && !found; i++)
        found = layer_of(c, c->out->layers[i].function, node);
    return found;
}

static tare_status add_layers(struct choosing *c, const struct tare_quant_report *report) {
    struct tare_fastest *out = c->out;
    out->layers = TARE_NEW_ARRAY(c->arena, struct tare_fastest_layer, report->count + 1);
    if (!out->layers) return TARE_NO_MEMORY;
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_quant_outcome *outcome = &report->outcomes[i];
        struct tare_fastest_layer *layer = &out->layers[out->n_layers];
        const char *key;
        if (outcome->refused) continue;
        *layer = (struct tare_fastest_layer){ .function = tare_arena_strdup(c->arena, outcome->function),
                                              .node = tare_arena_strdup(c->arena, outcome->node) };
        key = tare_arena_printf(c->arena, "%s\n%s", outcome->function, outcome->node);
        if (!layer->function || !layer->node || !key || !tare_map_set(&c->by_name, key, layer)) return TARE_NO_MEMORY;
        out->n_layers++;
    }
    return TARE_OK;
}

/* The estimate decides on a layer that the compiler does not name: it is a part of another one's op. */
static bool pays(const struct choosing *c, const struct tare_fastest_layer *layer) {
    const bool is_known = layer->cycles[0] + layer->cycles[1] > 0;
    return c->by_cycles && is_known ? layer->cycles[0] < layer->cycles[1] : layer->quantized < layer->real;
}

static bool accepts(void *arg, const struct tare_graph *graph, const struct tare_node *op) {
    const struct choosing *c = arg;
    const struct tare_fastest_layer *layer = find_named(c, graph->name, op->name, strlen(op->name));
    return !layer || pays(c, layer);
}

/* ---- estimates ---- */

struct adding {
    const struct choosing *c;
    bool quantized;
};

static void add_group(void *arg, const struct tare_node *first, const struct tare_fused_cost *group) {
    const struct adding *adding = arg;
    struct tare_fastest_layer *layer = layer_of(adding->c, first->graph->name, first->name);
    if (layer) *(adding->quantized ? &layer->quantized : &layer->real) += group->seconds[adding->c->task->chip];
}

/* *seconds of the model, whose calls are inlined; before that, its layers where `adding` is given. */
static tare_status estimate(double *seconds, struct choosing *c, struct tare_graph_model *model,
                            struct adding *adding) {
    const struct tare_fastest_task *task = c->task;
    const struct tare_signature *signature;
    struct tare_fused_cost cost;
    struct tare_arena scratch = { 0 };
    tare_status status = TARE_OK;
    TARE_TRY(tare_pick_signature(&signature, model, task->signature));
    if (adding) status = tare_tpu_fused_cost(&cost, &scratch, model, signature, task->batch, add_group, adding);
    if (status == TARE_OK) status = tare_model_inline_calls(model);
    if (status == TARE_OK) status = tare_tpu_fused_cost(&cost, &scratch, model, signature, task->batch, NULL, NULL);
    if (status == TARE_OK) *seconds = cost.seconds[task->chip];
    tare_arena_free(&scratch);
    return status;
}

/* ---- forms ---- */

static tare_status make(struct tare_graph_model **out, struct tare_quant_report *report, struct choosing *c,
                        enum tare_fastest_form form) {
    struct tare_quant_plan plan = *c->task->plan;
    tare_status status;
    TARE_TRY(tare_model_clone(out, c->task->model));
    if (form == TARE_FASTEST_FLOAT) return TARE_OK;
    plan.weights = &c->weights;
    plan.quiet = true;
    c->by_cycles = form == TARE_FASTEST_BY_PARTS;
    if (form != TARE_FASTEST_ALL) {
        plan.accepts = accepts;
        plan.accepts_arg = c;
    }
    status = tare_pipeline_quantize(report, c->arena, *out, &plan, c->task->calibration);
    if (status != TARE_OK) tare_model_free(*out);
    return status;
}

static tare_status estimate_forms(struct choosing *c) {
    for (enum tare_fastest_form form = 0; form <= TARE_FASTEST_SOME; form++) {
        static const enum tare_fastest_form order[] = { TARE_FASTEST_ALL, TARE_FASTEST_FLOAT, TARE_FASTEST_SOME };
        struct adding adding = { c, order[form] == TARE_FASTEST_ALL };
        struct tare_quant_report report = { 0 };
        struct tare_graph_model *model;
        tare_status status;
        TARE_TRY(make(&model, &report, c, order[form]));
        status = order[form] == TARE_FASTEST_ALL ? add_layers(c, &report) : TARE_OK;
        if (status == TARE_OK)
            status = estimate(&c->out->cost[order[form]], c, model, order[form] == TARE_FASTEST_SOME ? NULL : &adding);
        tare_model_free(model);
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* ---- the compiler ---- */

static void add_cycles(const struct choosing *c, const struct tare_check *check, bool is_real) {
    for (size_t p = 0; p < check->n_parts; p++)
        for (size_t i = 0; i < check->parts[p].n_ops; i++) {
            const struct tare_check_op *op = &check->parts[p].ops[i];
            struct tare_fastest_layer *layer = op->node ? layer_named(c, op->node) : NULL;
            if (layer) layer->cycles[is_real] += op->cycles;
        }
}

/* A model that cannot be converted or compiled is left to the estimate; memory and interruptions are failures. */
static tare_status dismiss(struct choosing *c, tare_status status) {
    if (status == TARE_OK) return status;
    c->out->why = tare_arena_strdup(c->arena, tare_error_text());
    return c->out->why ? tare_error_dismiss(status) : TARE_NO_MEMORY;
}

/* *cycles stays NaN where the compiler is not there, or rejects the model. */
static tare_status compile(double *cycles, struct choosing *c, enum tare_fastest_form form) {
    const struct tare_fastest_task *task = c->task;
    const struct tare_check_request request = { .signature = task->signature,
                                                .chip = task->chip,
                                                .batch = task->batch };
    struct tare_fastest *out = c->out;
    struct tare_quant_report report;
    struct tare_graph_model *model;
    struct tare_check check = { 0 };
    tare_status status;
    TARE_TRY(make(&model, &report, c, form));
    status = tare_workflow_check(&check, model, &request, c->known);
    if (status == TARE_OK && check.compiler) {
        *cycles = tare_check_cycles(&check); /* NaN with a part that is rejected */
        out->compiler = tare_arena_strdup(c->arena, check.compiler);
        if (form <= TARE_FASTEST_ALL) add_cycles(c, &check, form == TARE_FASTEST_FLOAT);
        if (!out->compiler) status = TARE_NO_MEMORY;
    } else if (status == TARE_OK && !(out->why = tare_arena_strdup(c->arena, check.why))) {
        status = TARE_NO_MEMORY;
    }
    tare_check_free(&check);
    tare_model_free(model);
    return dismiss(c, status);
}

static size_t count_float(const struct choosing *c) {
    size_t count = 0;
    for (size_t i = 0; i < c->out->n_layers; i++)
        count += !pays(c, &c->out->layers[i]);
    return count;
}

/* Forms that quantize no layer or all of them have the cost of those that do. */
static tare_status compile_some(double cycles[], struct choosing *c, enum tare_fastest_form form) {
    size_t count;
    c->by_cycles = form == TARE_FASTEST_BY_PARTS;
    count = count_float(c);
    if (count && count < c->out->n_layers) return compile(&cycles[form], c, form);
    cycles[form] = cycles[count ? TARE_FASTEST_FLOAT : TARE_FASTEST_ALL];
    return TARE_OK;
}

/* Replaces the estimates by cycles if the compiler is there and takes the float model. */
static tare_status compile_forms(struct choosing *c) {
    double cycles[TARE_FASTEST_FORMS] = { NAN, NAN, NAN, NAN };
    struct tare_fastest *out = c->out;
    TARE_TRY(compile(&cycles[TARE_FASTEST_FLOAT], c, TARE_FASTEST_FLOAT));
    if (out->compiler && isnan(cycles[TARE_FASTEST_FLOAT])) out->why = "the compiler rejects the float model";
    if (isnan(cycles[TARE_FASTEST_FLOAT])) {
        out->compiler = NULL;
        return TARE_OK;
    }
    TARE_TRY(compile(&cycles[TARE_FASTEST_ALL], c, TARE_FASTEST_ALL));
    TARE_TRY(compile_some(cycles, c, TARE_FASTEST_SOME));
    TARE_TRY(compile_some(cycles, c, TARE_FASTEST_BY_PARTS));
    memcpy(out->cost, cycles, sizeof cycles);
    return TARE_OK;
}

/* ---- the choice ---- */

static void choose(struct choosing *c) {
    struct tare_fastest *out = c->out;
    const double factor = out->compiler ? 1 : TARE_TPU_CERTAIN;
    double least = out->cost[TARE_FASTEST_FLOAT] * factor;
    for (enum tare_fastest_form form = TARE_FASTEST_ALL; form < TARE_FASTEST_FORMS; form++)
        if (out->cost[form] < least) {
            out->chosen = form;
            least = out->cost[form];
        }
    c->by_cycles = out->chosen == TARE_FASTEST_BY_PARTS;
    for (size_t i = 0; i < out->n_layers; i++) {
        struct tare_fastest_layer *layer = &out->layers[i];
        layer->keeps = out->chosen == TARE_FASTEST_FLOAT || (out->chosen != TARE_FASTEST_ALL && !pays(c, layer));
        out->n_float += layer->keeps;
    }
}

tare_status tare_workflow_fastest(struct tare_fastest *out, struct tare_arena *arena,
                                  const struct tare_fastest_task *task) {
    struct choosing c = { .task = task, .out = out, .arena = arena };
    tare_status status;
    c.known = task->known ? json_incref(task->known) : json_object();
    if (!c.known) return TARE_NO_MEMORY;
    *out = (struct tare_fastest){ .chip = tare_tpu_chips[task->chip].name, .batch = task->batch };
    out->cost[TARE_FASTEST_BY_PARTS] = NAN;
    status = estimate_forms(&c);
    if (status == TARE_OK && out->n_layers && !task->estimates) status = compile_forms(&c);
    if (status == TARE_OK) choose(&c);
    if (status != TARE_OK) out->chip = NULL;
    tare_map_free(&c.by_name);
    tare_quant_weight_store_free(&c.weights);
    json_decref(c.known);
    return status;
}

/* ---- what becomes of it ---- */

tare_status tare_workflow_fastest_apply(struct tare_quant_plan *plan, struct tare_arena *arena,
                                        const struct tare_fastest *fastest) {
    const struct tare_quant_layer_names names = TARE_QUANT_LAYER_NAMES(fastest->layers, fastest->n_layers);
    struct tare_strbuf text = { 0 };
    for (size_t i = 0; i < fastest->n_layers; i++) {
        const struct tare_fastest_layer *layer = &fastest->layers[i];
        if (!layer->keeps) continue;
        tare_quant_recipe_put_layer(&text, &names, i);
        tare_strbuf_printf(&text, " -> float  # estimated on %s: %.3g µs quantized, %.3g µs in float\n", fastest->chip,
                           1e6 * layer->quantized, 1e6 * layer->real);
    }
    return tare_quant_recipe_extend(plan, arena, &text, "for");
}

void tare_workflow_fastest_put(struct tare_strbuf *out, const struct tare_fastest *fastest) {
    const double scale = fastest->compiler ? 1 : 1e6;
    tare_strbuf_printf(out, "%s, batches of %lld, by %s%s%s%s: %zu of %zu layers quantized, ", fastest->chip,
                       (long long)fastest->batch, fastest->compiler ? fastest->compiler : "the estimate",
                       fastest->why ? " (" : "", fastest->why ? fastest->why : "", fastest->why ? ")" : "",
                       fastest->n_layers - fastest->n_float, fastest->n_layers);
    tare_strbuf_printf(out, fastest->compiler ? "%.0f cycles (all %.0f, none %.0f)" : "%.3g µs (all %.3g, none %.3g)",
                       scale * fastest->cost[fastest->chosen], scale * fastest->cost[TARE_FASTEST_ALL],
                       scale * fastest->cost[TARE_FASTEST_FLOAT]);
}

tare_status tare_workflow_fastest_explain(struct tare_quant_report *report, struct tare_arena *arena,
                                          const struct tare_fastest *fastest) {
    const char *reason = tare_arena_printf(arena, "it does not become faster on a Cloud TPU %s in batches of %lld",
                                           fastest->chip, (long long)fastest->batch);
    if (!reason) return TARE_NO_MEMORY;
    for (size_t i = 0; i < report->count; i++) {
        struct tare_quant_outcome *outcome = &report->outcomes[i];
        for (size_t k = 0; k < fastest->n_layers && outcome->refused; k++) {
            const struct tare_fastest_layer *layer = &fastest->layers[k];
            if (layer->keeps && strcmp(layer->node, outcome->node) == 0 &&
                strcmp(layer->function, outcome->function) == 0)
                outcome->refused = reason;
        }
    }
    return TARE_OK;
}
