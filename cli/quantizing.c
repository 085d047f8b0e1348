/* What quantize, convert and compare share. */
#include "cli/quantizing.h"
#include "base/alloc.h"
#include "cli/command.h"
#include "convert/saved_model.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct range {
    const char *key; /* "function/node:output" */
    float low, high;
    bool seen;
};

struct tare_observed_ranges {
    struct tare_arena arena;
    struct tare_map by_key; /* -> struct range */
};

static const char *key_of(struct tare_arena *arena, const struct tare_node *node, size_t output) {
    return tare_arena_printf(arena, "%s/%s:%zu", node->graph->name, node->name, output);
}

static struct range *find_range(const struct tare_observed_ranges *ranges, const struct tare_node *node, size_t output) {
    struct tare_arena scratch = { 0 };
    const char *key = key_of(&scratch, node, output);
    struct range *range = key ? tare_map_get(&ranges->by_key, key) : NULL;
    tare_arena_free(&scratch);
    return range;
}

tare_status tare_load_prepared(struct tare_model **out, const char *path) {
    tare_status status;
    TARE_TRY(tare_saved_model_load(out, path, NULL));
    status = tare_pipeline_prepare(*out, NULL);
    if (status == TARE_OK) return TARE_OK;
    tare_model_free(*out);
    *out = NULL;
    return tare_error_prefix(status, "%s", path);
}

/* ---- observing ---- */

static bool wants(void *arg, const struct tare_node *node, size_t output) {
    return find_range(arg, node, output) != NULL;
}

static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct range *range = find_range(arg, node, output);
    const float *x = TARE_CONST_DATA(float, value);
    float low = range->low, high = range->high;
    if (value->dtype != TARE_DT_FLOAT) return TARE_OK;
    for (int64_t i = 0; i < value->elements; i++) {
        if (!isfinite(x[i])) continue;
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    range->low = low;
    range->high = high;
    range->seen = low <= high;
    return TARE_OK;
}

static tare_status add_ranges(struct tare_observed_ranges *ranges, const struct tare_model *model) {
    const struct tare_quant_options options = { .depthwise = true };
    struct tare_edge_list edges;
    TARE_TRY(tare_quant_observed_edges(&edges, &ranges->arena, model, &options));
    for (size_t i = 0; i < edges.count; i++) {
        struct range *range = TARE_NEW(&ranges->arena, struct range);
        if (!range) return TARE_NO_MEMORY;
        range->key = key_of(&ranges->arena, edges.edges[i].node, (size_t)edges.edges[i].index);
        range->low = FLT_MAX;
        range->high = -FLT_MAX;
        if (!range->key || !tare_map_set(&ranges->by_key, range->key, range)) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static tare_status ignore_record(void *arg, const struct tare_sample *sample, const struct tare_provenance *where,
                                 const struct tare_tensor *outputs) {
    (void)arg;
    (void)sample;
    (void)where;
    (void)outputs;
    return TARE_OK;
}

tare_status tare_observe_ranges(struct tare_observed_ranges **out, const struct tare_model *model,
                                const char *signature, const char *const *paths, size_t n_paths, int batch,
                                int64_t limit) {
    struct tare_observed_ranges *ranges = tare_calloc(1, sizeof *ranges);
    struct tare_runner_options options = { .paths = paths, .n_paths = n_paths, .batch = batch, .limit = limit,
                                           .interrupted = &tare_interrupted };
    const struct tare_signature *chosen;
    struct tare_session *session = NULL;
    tare_status status = TARE_NO_MEMORY;
    if (!ranges) return status;
    TARE_CHECK(tare_pick_signature(&chosen, model, signature));
    TARE_CHECK(add_ranges(ranges, model));
    TARE_CHECK(tare_session_new(&session, model, NULL));
    tare_session_observe(session, observe, wants, ranges);
    status = tare_run_records(session, chosen, &options, ignore_record, NULL);
done:
    tare_session_free(session);
    if (status == TARE_OK)
        *out = ranges;
    else
        tare_observed_ranges_free(ranges);
    return status;
}

void tare_observed_ranges_free(struct tare_observed_ranges *ranges) {
    if (!ranges) return;
    tare_map_free(&ranges->by_key);
    tare_arena_free(&ranges->arena);
    tare_free(ranges);
}

static bool find(void *arg, struct tare_edge edge, double *low, double *high) {
    const struct range *range = find_range(arg, edge.node, (size_t)edge.index);
    if (!range || !range->seen) return false;
    *low = range->low;
    *high = range->high;
    return true;
}

struct tare_quant_ranges tare_ranges_of(const struct tare_observed_ranges *ranges) {
    return (struct tare_quant_ranges){ find, (void *)(uintptr_t)ranges };
}

/* ---- report ---- */

void tare_print_quant_report(const struct tare_quant_report *report) {
    fprintf(stderr, "%zu of %zu quantizable ops quantized\n", report->quantized, report->count);
    for (size_t i = 0; i < report->count; i++) {
        const struct tare_quant_outcome *o = &report->outcomes[i];
        if (o->refused) {
            fprintf(stderr, "  %-44s Quantization disabled on this op: %s\n", o->node, o->refused);
            continue;
        }
        fprintf(stderr, "  %-44s ", o->node);
        if (o->input.scale > 0) fprintf(stderr, "scale %.6g zero point %d, ", o->input.scale, o->input.zero_point);
        fprintf(stderr, "weight scales %.4g … %.4g, weight SQNR %.1f dB\n", o->weight_scale_min, o->weight_scale_max,
                o->weight_sqnr_db);
    }
}
