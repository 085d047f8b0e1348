/* The TPU half of a conversion: from a prepared, perhaps quantized model to one whose functions are on the TPU.
 *
 * Passes that only check have no counts. A pass that does not apply counts zero changes, so that every report has the
 * same rows. */
#include "convert/tpu_passes.h"
#include "tpu/devices.h"
#include "convert/advice.h"
#include "convert/saved_model.h"
#include "graph/calls.h"
#include "tpu/bfloat16.h"
#include "tpu/callers.h"
#include "tpu/sharding.h"
#include "tpu/transposed_conv.h"

#include <string.h>

/* ---- helpers ---- */

static bool places_functions(const struct tare_converter_options *options) {
    return options->n_functions || options->automatic;
}

/* Rows of the largest batch. */
static int64_t largest_batch(const struct tare_converter_options *options) {
    int64_t largest = 1;
    for (size_t i = 0; i < options->n_batches; i++) {
        const struct tare_batch_options *batch = &options->batches[i];
        int64_t size = batch->n_allowed ? batch->allowed_batch_sizes[batch->n_allowed - 1] : batch->max_batch_size;
        if (size > largest) largest = size;
    }
    return largest;
}

/* The graphs of `functions`, with space for one more. */
static struct tare_graph **graphs_of(struct tare_arena *arena, const struct tare_tpu_function *functions,
                                     size_t count) {
    struct tare_graph **graphs = TARE_NEW_ARRAY(arena, struct tare_graph *, count + 1);
    for (size_t i = 0; graphs && i < count; i++)
        graphs[i] = functions[i].graph;
    return graphs;
}

/* A TensorFlow 1 model has no functions to place, no aliases, and no functions that must be kept. */
bool tare_pipeline_can_place(const struct tare_graph_model *model) {
    return model->n_functions && !tare_saved_model_is_tf1(model);
}

tare_status tare_pipeline_refuse_tf1(const struct tare_graph_model *model,
                                     const struct tare_converter_options *options) {
    if (!places_functions(options) || tare_pipeline_can_place(model)) return TARE_OK;
    return TARE_FAIL(
        TARE_UNSUPPORTED,
        "The converter does not support TensorFlow 1 models. TensorFlow 1 models should be migrated to "
        "TensorFlow 2 (this one has %s: load it in TensorFlow 2, wrap what it computes in a tf.function of a "
        "tf.Module, and export that with a function alias)",
        model->n_functions ? "no object graph" : "no functions to place on the TPU");
}

tare_status tare_pipeline_memory(struct tare_tpu_memory *out, struct tare_arena *arena,
                                 const struct tare_graph_model *model, const struct tare_converter_options *options) {
    struct tare_tpu_function *functions;
    struct tare_graph **graphs;
    size_t count;
    TARE_TRY(tare_pipeline_refuse_tf1(model, options));
    TARE_TRY(tare_tpu_find_functions(&functions, &count, arena, model, options->functions, options->n_functions));
    graphs = graphs_of(arena, functions, count);
    if (!graphs) return TARE_NO_MEMORY;
    return tare_tpu_memory(out, arena, model, graphs, count, largest_batch(options));
}

/* ---- before placement ---- */

static tare_status check_model(struct tare_place *place, size_t *changes) {
    const struct tare_graph_model *model = place->model;
    (void)changes;
    TARE_TRY(tare_pipeline_refuse_tf1(model, place->options));
    return tare_tpu_detect_converted(&place->out->existing, place->arena, model);
}

static tare_status fuse_composites(struct tare_place *place, size_t *changes) {
    struct tare_composites composites;
    TARE_TRY(tare_composites_fuse(&composites, place->model));
    changes[0] += composites.fused;
    place->out->composites = place->model->composites;
    return TARE_OK;
}

static bool drops_seeds(const struct tare_converter_options *options) {
    return places_functions(options) && !options->keeps_variables;
}

static tare_status drop_seed_states(struct tare_place *place, size_t *changes) {
    struct tare_dropped_seeds *seeds = &place->out->seeds;
    (void)changes;
    TARE_TRY(tare_model_drop_seed_states(seeds, place->model));
    if (seeds->first) seeds->first = tare_arena_strdup(place->arena, seeds->first); /* the model may be freed before */
    return seeds->count && !seeds->first ? TARE_NO_MEMORY : TARE_OK;
}

/* Nodes without effect in functions that a loader can call: a TPU would get them as well, and what it does not support
 * among them would keep a function off it. */
static tare_status remove_unused(struct tare_place *place, size_t *changes) {
    struct tare_graph_model *model = place->model;
    bool *live;
    if (place->out->existing.tpu_calls || place->out->existing.batchers) return TARE_OK;
    TARE_TRY(tare_model_reachable_functions(&live, place->arena, model, true));
    for (size_t i = 0; i < model->n_functions; i++)
        if (live[i]) TARE_TRY(tare_graph_remove_unreachable(model->functions[i], &changes[0]));
    return TARE_OK;
}

/* Captured constants move into the functions that use them: as arguments they would cross to the TPU with every
 * request, and shapes among them would not be known at compilation. A model that was converted before stays as it is.
 */
static tare_status localize_constants(struct tare_place *place, size_t *changes) {
    if (place->out->existing.tpu_calls || place->out->existing.batchers) return TARE_OK;
    return tare_error_prefix(tare_pass_localize_constants.run(place->model, &changes[0]), "captured constants");
}

static bool is_sharded(const struct tare_converter_options *options) {
    return options->has_sharding;
}

/* What the TPU does not support in functions with enable_soft_device_placement stays on the CPU: they are split. */
static tare_status split_soft(struct tare_place *place) {
    struct tare_tpu_split *split = &place->out->split;
    bool any = false;
    for (size_t i = 0; i < place->n_functions; i++)
        any |= place->functions[i].choice->is_soft;
    if (!any) return TARE_OK;
    TARE_TRY(tare_tpu_split_soft(split, place->arena, place->model, place->functions, place->n_functions));
    if (!split->n_notes) return TARE_OK; /* the TPU supports all of them */
    return tare_tpu_find_functions(&place->functions, &place->n_functions, place->arena, place->model, split->choices,
                                   split->count);
}

/* The functions that the user named, or those that are found. */
static tare_status find_functions(struct tare_place *place, size_t *changes) {
    const struct tare_converter_options *options = place->options;
    struct tare_tpu_split *split = &place->out->split;
    const bool automatic = options->automatic;
    if (automatic && place->out->existing.tpu_calls)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "functions cannot be found automatically: the model has been converted for TPU before");
    if (automatic) TARE_TRY(tare_tpu_split(split, place->arena, place->model));
    TARE_TRY(tare_tpu_find_functions(&place->functions, &place->n_functions, place->arena, place->model,
                                     automatic ? split->choices : options->functions,
                                     automatic ? split->count : options->n_functions));
    if (!automatic && !place->out->existing.tpu_calls) TARE_TRY(split_soft(place));
    if (split->n_notes) changes[0] += split->count;
    place->graphs = graphs_of(place->arena, place->functions, place->n_functions);
    return place->graphs ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status measure_memory(struct tare_place *place, size_t *changes) {
    (void)changes;
    if (place->before) place->out->before = *place->before;
    if (place->before) return TARE_OK;
    return tare_tpu_memory(&place->out->before, place->arena, place->model, place->graphs, place->n_functions,
                           largest_batch(place->options));
}

/* Ops that a TPU does not support fail the conversion, unless the user allows them. */
static tare_status refuse_incompatible(const struct tare_conversion *conversion) {
    const struct tare_tpu_finding *first = NULL;
    size_t errors = 0;
    for (size_t i = 0; i < conversion->n_findings; i++) {
        if (!tare_tpu_finding_is_error(conversion->findings[i].kind)) continue;
        if (!first) first = &conversion->findings[i];
        errors++;
    }
    if (errors == 0) return TARE_OK;
    if (errors == 1) return TARE_FAIL(TARE_UNSUPPORTED, "%s (--allow-incompatible converts anyway)", first->text);
    return TARE_FAIL(TARE_UNSUPPORTED,
                     "%zu reasons keep the functions off the TPU (--allow-incompatible converts anyway), the "
                     "first: %s",
                     errors, first->text);
}

static tare_status check_functions(struct tare_place *place, size_t *changes) {
    const struct tare_converter_options *options = place->options;
    struct tare_conversion *out = place->out;
    (void)changes;
    TARE_TRY(tare_tpu_refuse_converted(place->arena, place->graphs, place->n_functions));
    TARE_TRY(tare_tpu_batch_check(place->arena, place->model, place->graphs, place->n_functions, options->batches,
                                  options->n_batches));
    TARE_TRY(tare_tpu_check(&out->findings, &out->n_findings, place->arena, place->model, place->graphs,
                            place->n_functions));
    return options->allow_incompatible ? TARE_OK : refuse_incompatible(out);
}

static tare_status strip_asserts(struct tare_place *place, size_t *changes) {
    struct tare_tpu_stripped *stripped = &place->out->stripped;
    TARE_TRY(tare_tpu_strip_asserts(stripped, place->arena, place->graphs, place->n_functions));
    changes[0] += stripped->assertions;
    changes[1] += stripped->identities;
    return TARE_OK;
}

static tare_status clear_devices(struct tare_place *place, size_t *changes) {
    return tare_tpu_clear_devices(&changes[0], place->arena, place->graphs, place->n_functions);
}

static bool uses_bfloat16(const struct tare_converter_options *options) {
    return options->bfloat16;
}

/* The ops of modules are ops like others by now, and modules are as a rule whole models. */
static bool filters_modules(const struct tare_converter_options *options) {
    for (size_t i = 0; i < options->n_float_ops; i++)
        if (strcmp(options->float_ops[i], "XlaCallModule") == 0) return true;
    return false;
}

/* With scope ALL, everything that signatures run. A model with bfloat16 of its own stays as its author made it, unless
 * the options request the optimization. */
static tare_status to_bfloat16(struct tare_place *place, size_t *changes) {
    const struct tare_converter_options *options = place->options;
    struct tare_bfloat16_options bfloat16 = {
        .skip_safety_checks = options->skip_safety_checks,
        .found = options->requests_bfloat16 ? NULL : &place->out->bfloat16,
        .float_ops = options->float_ops,
        .n_float_ops = options->n_float_ops,
        .nodes = options->float_nodes,
        .n_nodes = options->n_float_nodes,
        .rounds_outputs = options->rounds_outputs,
        .rounds_magnitudes = options->extent == TARE_BF16_ALL,
        .kept = &place->out->kept,
        .forget = tare_pipeline_forget,
    };
    size_t count = place->n_functions;
    place->out->keeps_modules = place->model->n_modules && filters_modules(options);
    if (place->out->keeps_modules) return TARE_OK;
    if (options->bfloat16_all) place->graphs[count++] = place->model->main;
    place->out->kept.arena = place->arena;
    TARE_TRY(tare_tpu_bfloat16(place->model, place->graphs, count, &bfloat16, &changes[0]));
    changes[1] += place->out->kept.count;
    return TARE_OK;
}

static tare_status lower_transposed(struct tare_place *place, size_t *changes) {
    return tare_tpu_lower_transposed(&changes[0], place->arena, place->model, place->graphs, place->n_functions);
}

/* ---- placement and after ---- */

static tare_status place_functions(struct tare_place *place, size_t *changes) {
    const struct tare_converter_options *options = place->options;
    TARE_TRY(tare_tpu_place(&place->out->placed, place->arena, place->model, place->functions, place->n_functions,
                            &(struct tare_tpu_place_options){
                                .sharding = options->has_sharding ? &options->sharding : NULL,
                                .quantized = options->has_quantization,
                                .shares_cluster = options->shares_cluster,
                            }));
    place->out->n_placed = changes[0] = place->n_functions;
    return TARE_OK;
}

/* What stays on the CPU must run there: in a model that this conversion places, or that was converted before. */
static tare_status check_left(struct tare_place *place, size_t *changes) {
    struct tare_conversion *out = place->out;
    struct tare_tpu_finding *left, *all;
    size_t count;
    (void)changes;
    TARE_TRY(tare_tpu_check_left(&left, &count, place->arena, place->model));
    if (!count) return TARE_OK;
    all = tare_arena_extend(place->arena, out->findings, out->n_findings, count, sizeof *all);
    if (!all) return TARE_NO_MEMORY;
    memcpy(all + out->n_findings, left, count * sizeof *all);
    out->findings = all;
    out->n_findings += count;
    return place->options->allow_incompatible ? TARE_OK : refuse_incompatible(out);
}

/* Servers with TPUs look for the tags "serve" and "tpu". Without new TPU functions the model keeps its tags. */
static tare_status choose_tags(struct tare_place *place, size_t *changes) {
    const struct tare_converter_options *options = place->options;
    const char *tags = options->tags ? options->tags : "serve,tpu";
    (void)changes;
    if (options->keeps_tags || (!options->tags && !place->n_functions)) return TARE_OK;
    place->model->tags = tare_arena_strdup(&place->model->arena, tags);
    return place->model->tags ? TARE_OK : TARE_NO_MEMORY;
}

static bool shapes_io(const struct tare_converter_options *options) {
    return options->io_shapes || options->casts_outside;
}

static tare_status shape_io(struct tare_place *place, size_t *changes) {
    struct tare_io_shapes_result result;
    TARE_TRY(
        tare_tpu_io_shapes(&result, place->model, place->out->placed, place->out->n_placed, place->options->io_shapes));
    changes[0] += result.inputs;
    changes[1] += result.outputs;
    changes[2] += result.narrowed;
    return TARE_OK;
}

/* Whether every batch of a TPU function is divisible by the number of cores of a replica: each function has one
 * batcher, which pads to divisible sizes only. */
static bool batches_divide(const struct tare_conversion *out, const struct tare_converter_options *options) {
    const struct tare_batch_options *batch = options->batches;
    const int cores = options->sharding.num_cores_per_replica;
    if (cores < 2 || options->n_batches != 1 || batch->component != TARE_BATCH_TPU || out->existing.batchers)
        return false;
    for (size_t i = 0; i < batch->n_allowed; i++)
        if (batch->allowed_batch_sizes[i] % cores) return false;
    return batch->n_allowed > 0;
}

static tare_status shard_inputs(struct tare_place *place, size_t *changes) {
    const struct tare_conversion *out = place->out;
    return tare_tpu_shard_inputs(&changes[0], place->arena, place->model, out->placed, out->n_placed,
                                 &place->options->sharding, batches_divide(out, place->options));
}

static tare_status insert_batchers(struct tare_place *place, size_t *changes) {
    struct tare_batching_result *result = &place->out->batching;
    TARE_TRY(tare_tpu_batch(result, place->arena, place->model, place->options->batches, place->options->n_batches));
    changes[0] += result->inserted;
    changes[1] += result->updated;
    return TARE_OK;
}

static tare_status adapt_callers(struct tare_place *place, size_t *changes) {
    return tare_tpu_adapt_callers(place->model, &changes[0]);
}

static tare_status measure_cost(struct tare_place *place, size_t *changes) {
    struct tare_conversion *out = place->out;
    const int64_t batch = largest_batch(place->options);
    struct tare_graph **placed = TARE_NEW_ARRAY(place->arena, struct tare_graph *, out->n_placed + 1);
    (void)changes;
    if (!placed) return TARE_NO_MEMORY;
    for (size_t i = 0; i < out->n_placed; i++)
        placed[i] = out->placed[i].replicated;
    TARE_TRY(tare_tpu_memory(&out->after, place->arena, place->model, placed, out->n_placed, batch));
    TARE_TRY(tare_cost_report(&out->cost, place->arena, place->model, out->placed, out->n_placed, 1));
    if (batch > 1) return tare_cost_report(&out->full, place->arena, place->model, out->placed, out->n_placed, batch);
    out->full = out->cost;
    return TARE_OK;
}

static tare_status advise(struct tare_place *place, size_t *changes) {
    (void)changes;
    return tare_conversion_advise(place->out, place->arena, place->model, place->options);
}

/* ---- the order ---- */

static const struct tare_place_pass place_passes[] = {
    { "check_model", { NULL }, NULL, check_model },
    { "fuse_composites", { "fuse_composites" }, NULL, fuse_composites },
    { "drop_seed_states", { NULL }, drops_seeds, drop_seed_states },
    { "prune", { "prune" }, places_functions, remove_unused },
    { "localize_constants", { "localize_constants" }, places_functions, localize_constants },
    { "find_functions", { "split" }, NULL, find_functions },
    { "measure_memory", { NULL }, NULL, measure_memory },
    { "check_functions", { NULL }, NULL, check_functions },
    { "strip_asserts", { "strip_asserts", "strip_handle_identities" }, NULL, strip_asserts },
    { "clear_devices", { "clear_devices" }, NULL, clear_devices },
    { "bfloat16", { "bfloat16", "keep_float32" }, uses_bfloat16, to_bfloat16 },
    { "lower_transposed_conv", { "lower_transposed_conv" }, NULL, lower_transposed },
    { "place", { "place" }, NULL, place_functions },
    { "check_left", { NULL }, NULL, check_left },
    { "tags", { NULL }, NULL, choose_tags },
    { "shard_inputs", { "shard_inputs" }, is_sharded, shard_inputs }, /* a vector could not be split */
    { "io_shapes", { "io_shape_inputs", "io_shape_outputs", "io_shape_narrowed" }, shapes_io, shape_io },
    { "batch", { "batch_inserted", "batch_updated" }, NULL, insert_batchers },
    { "adapt_callers", { "adapt_callers" }, NULL, adapt_callers },
    { "measure_cost", { NULL }, NULL, measure_cost },
    { "advise", { NULL }, NULL, advise },
    { NULL, { NULL }, NULL, NULL },
};

/* All passes, or those before `until`. */
static tare_status run_passes(struct tare_conversion *out, struct tare_arena *arena, struct tare_graph_model *model,
                              const struct tare_converter_options *options, const struct tare_tpu_memory *before,
                              const char *until) {
    struct tare_place place = { .out = out, .arena = arena, .model = model, .options = options, .before = before };
    memset(out, 0, sizeof *out);
    for (size_t f = 0; f < model->n_functions; f++)
        model->functions[f]->body_of = NULL; /* float_nodes name functions as they are now */
    for (const struct tare_place_pass *pass = place_passes; pass->name; pass++) {
        if (until && strcmp(pass->name, until) == 0) break;
        size_t changes[TARE_PLACE_COUNTS] = { 0 };
        if (!pass->applies || pass->applies(options)) TARE_TRY(pass->run(&place, changes));
        for (size_t i = 0; i < TARE_PLACE_COUNTS && pass->counts[i]; i++)
            out->counts[out->n_counts++] = (struct tare_pass_count){ pass->counts[i], changes[i] };
    }
    return TARE_OK;
}

tare_status tare_pipeline_place(struct tare_conversion *out, struct tare_arena *arena, struct tare_graph_model *model,
                                const struct tare_converter_options *options, const struct tare_tpu_memory *before) {
    return run_passes(out, arena, model, options, before, NULL);
}

tare_status tare_pipeline_compute(struct tare_conversion *out, struct tare_arena *arena, struct tare_graph_model *model,
                                  const struct tare_converter_options *options) {
    return run_passes(out, arena, model, options, NULL, "place");
}

/* Preparation also runs some of the passes; its count is the one reported. */
static bool is_counted(const struct tare_pass_count *counts, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(counts[i].name, name) == 0) return true;
    return false;
}

size_t tare_pipeline_counts(struct tare_pass_count out[static TARE_PIPELINE_STEPS],
                            const struct tare_conversion *conversion, const struct tare_pass_count *prepared) {
    size_t count = 0, n_prepared;
    for (size_t i = 0; prepared && tare_prepare_passes[i]; i++)
        out[count++] = prepared[i];
    n_prepared = count;
    for (size_t i = 0; i < conversion->n_counts; i++)
        if (!is_counted(out, n_prepared, conversion->counts[i].name)) out[count++] = conversion->counts[i];
    return count;
}
