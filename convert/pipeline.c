/* The pipeline. */
#include "convert/pipeline.h"
#include "convert/advice.h"
#include "convert/saved_model.h"
#include "base/file.h"
#include "proto/bundle.h"
#include "tpu/bfloat16.h"
#include "tpu/detect_converted.h"
#include "tpu/sharding.h"
#include "tpu/topology.h"
#include "tpu/transposed_conv.h"

#include <string.h>

const struct tare_pass *const tare_prepare_passes[] = {
    &tare_pass_prune,           &tare_pass_fuse_composites,
    &tare_pass_freeze,          &tare_pass_localize_constants,
    &tare_pass_fold_constants,  &tare_pass_cancel_transposes, /* biases then stand behind their convolutions */
    &tare_pass_fold_batch_norm, &tare_pass_fold_constants,    /* what folding left of shapes and scales */
    &tare_pass_prune,           NULL,
};

tare_status tare_pipeline_prepare(struct tare_model *model, struct tare_pass_count *counts) {
    for (size_t i = 0; tare_prepare_passes[i]; i++) {
        const struct tare_pass *pass = tare_prepare_passes[i];
        size_t changes = 0;
        TARE_TRY(tare_error_prefix(pass->run(model, &changes), "pass %s", pass->name));
        if (counts) counts[i] = (struct tare_pass_count){ pass->name, changes };
    }
    return TARE_OK;
}

void tare_pipeline_forget(const struct tare_tensor *weight) {
    if (tare_bundle_is_view(weight)) tare_file_forget(weight->data, tare_tensor_bytes(weight));
}

tare_status tare_pipeline_quantize(struct tare_quant_report *report, struct tare_arena *arena, struct tare_model *model,
                                   const struct tare_quantization *quantization,
                                   const struct tare_quant_ranges *ranges) {
    struct tare_quant_options options;
    memset(report, 0, sizeof *report);
    if (!quantization->options.setting.method && !quantization->options.recipe) return TARE_OK;
    options = quantization->options;
    if (!options.forget) options.forget = tare_pipeline_forget;
    return tare_quantize(report, arena, model, ranges, &options);
}

/* A TensorFlow 1 model has no functions to place, and none that the model promises to keep. */
static tare_status check_is_tf2(const struct tare_model *model, const struct tare_converter_options *options) {
    struct tare_saved_model_info info;
    tare_saved_model_info(&info, model);
    if ((!options->n_functions && !options->automatic) || (model->n_functions && !info.is_tf1)) return TARE_OK;
    return TARE_FAIL(
        TARE_UNSUPPORTED,
        "The converter does not support TensorFlow 1 models. TensorFlow 1 models should be migrated to "
        "TensorFlow 2 (this one has %s: load it in TensorFlow 2, wrap what it computes in a tf.function of a "
        "tf.Module, and export that with a function alias)",
        model->n_functions ? "no object graph" : "no functions to place on the TPU");
}

/* The functions that go to the TPU, with room for one more. */
static struct tare_graph **graphs_of(struct tare_arena *arena, const struct tare_tpu_function *functions,
                                     size_t count) {
    struct tare_graph **graphs = TARE_NEW_ARRAY(arena, struct tare_graph *, count + 1);
    for (size_t i = 0; graphs && i < count; i++)
        graphs[i] = functions[i].graph;
    return graphs;
}

/* With scope ALL, everything that signatures run. */
static tare_status to_bfloat16(size_t *changes, struct tare_model *model, const struct tare_converter_options *options,
                               struct tare_graph **graphs, size_t count) {
    struct tare_bfloat16_options bfloat16 = {
        .skip_safety_checks = options->skip_safety_checks,
        .float_ops = options->float_ops,
        .n_float_ops = options->n_float_ops,
        .forget = tare_pipeline_forget,
    };
    if (options->bfloat16_all) graphs[count++] = model->main;
    return tare_tpu_bfloat16(model, graphs, count, &bfloat16, changes);
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

tare_status tare_pipeline_memory(struct tare_tpu_memory *out, struct tare_arena *arena, const struct tare_model *model,
                                 const struct tare_converter_options *options) {
    struct tare_tpu_function *functions;
    struct tare_graph **graphs;
    size_t count;
    TARE_TRY(tare_tpu_find_functions(&functions, &count, arena, model, options->functions, options->n_functions));
    graphs = graphs_of(arena, functions, count);
    if (!graphs) return TARE_NO_MEMORY;
    return tare_tpu_memory(out, arena, model, graphs, count, largest_batch(options));
}

static tare_status report(struct tare_conversion *out, struct tare_arena *arena, const struct tare_model *model,
                          const struct tare_converter_options *options) {
    struct tare_graph **placed = TARE_NEW_ARRAY(arena, struct tare_graph *, out->n_placed + 1);
    if (!placed) return TARE_NO_MEMORY;
    for (size_t i = 0; i < out->n_placed; i++)
        placed[i] = out->placed[i].replicated;
    TARE_TRY(tare_tpu_memory(&out->after, arena, model, placed, out->n_placed, largest_batch(options)));
    TARE_TRY(tare_cost_report(&out->cost, arena, model, out->placed, out->n_placed, 1));
    if (largest_batch(options) > 1)
        return tare_cost_report(&out->full, arena, model, out->placed, out->n_placed, largest_batch(options));
    out->full = out->cost;
    return TARE_OK;
}

size_t tare_pipeline_counts(struct tare_pass_count out[static TARE_PIPELINE_STEPS],
                            const struct tare_conversion *conversion, const struct tare_pass_count *prepared) {
    const struct tare_pass_count steps[] = {
        { "fuse_composites", conversion->composites.fused },
        { "localize_constants", conversion->localized },
        { "split", conversion->split.count },
        { "drop_assertions", conversion->dropped.assertions },
        { "drop_handle_identities", conversion->dropped.identities },
        { "bfloat16", conversion->bfloat16_changes },
        { "lower_transposed_conv", conversion->transposed_convs },
        { "place", conversion->n_placed },
        { "io_shape_inputs", conversion->io_shapes.inputs },
        { "io_shape_outputs", conversion->io_shapes.outputs },
        { "io_shape_narrowed", conversion->io_shapes.narrowed },
        { "shard_inputs", conversion->sharded_inputs },
        { "batch_inserted", conversion->batching.inserted },
        { "batch_updated", conversion->batching.updated },
    };
    size_t count = 0;
    for (size_t i = 0; prepared && tare_prepare_passes[i]; i++)
        out[count++] = prepared[i];
    for (size_t i = prepared ? 2 : 0; i < sizeof steps / sizeof *steps; i++) /* preparing fuses and localizes, too */
        out[count++] = steps[i];
    return count;
}

/* Whether every batch that reaches a TPU function divides between the cores of a replica: one batcher stands before
 * each, and pads to sizes that all do. */
static bool batches_divide(const struct tare_conversion *out, const struct tare_converter_options *options) {
    const struct tare_batch_options *batch = options->batches;
    const int cores = options->sharding.num_cores_per_replica;
    if (cores < 2 || options->n_batches != 1 || batch->component != TARE_BATCH_TPU || out->existing.batchers)
        return false;
    for (size_t i = 0; i < batch->n_allowed; i++)
        if (batch->allowed_batch_sizes[i] % cores) return false;
    return batch->n_allowed > 0;
}

/* What a TPU would refuse stops the conversion, unless the user knows better. */
static tare_status refuse_incompatible(const struct tare_conversion *conversion) {
    const struct tare_tpu_finding *first = NULL;
    size_t errors = 0;
    for (size_t i = 0; i < conversion->n_findings; i++) {
        if (!tare_tpu_finding_is_error(conversion->findings[i].kind)) continue;
        if (!first) first = &conversion->findings[i];
        errors++;
    }
    if (errors == 0) return TARE_OK;
    if (errors == 1) return TARE_FAIL(TARE_UNSUPPORTED, "%s (--allow_incompatible converts all the same)", first->text);
    return TARE_FAIL(TARE_UNSUPPORTED,
                     "%zu things keep the functions off the TPU (--allow_incompatible converts all the same), the "
                     "first: %s",
                     errors, first->text);
}

/* What functions capture of constants moves into them: it would cross to the TPU with every request, and what must be
 * known at compilation would not be. A model that was converted before stays as it is. */
static tare_status localize(struct tare_conversion *out, struct tare_model *model,
                            const struct tare_converter_options *options) {
    if ((!options->n_functions && !options->automatic) || out->existing.tpu_calls || out->existing.batchers)
        return TARE_OK;
    return tare_error_prefix(tare_pass_localize_constants.run(model, &out->localized), "captured constants");
}

/* What the user named, or what is found. */
static tare_status find_functions(struct tare_tpu_function **out, size_t *count, struct tare_conversion *conversion,
                                  struct tare_arena *arena, struct tare_model *model,
                                  const struct tare_converter_options *options) {
    if (!options->automatic)
        return tare_tpu_find_functions(out, count, arena, model, options->functions, options->n_functions);
    if (conversion->existing.tpu_calls)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "functions cannot be found automatically: the model has been converted for TPU before");
    TARE_TRY(tare_tpu_split(&conversion->split, arena, model));
    return tare_tpu_find_functions(out, count, arena, model, conversion->split.choices, conversion->split.count);
}

tare_status tare_pipeline_place(struct tare_conversion *out, struct tare_arena *arena, struct tare_model *model,
                                const struct tare_converter_options *options) {
    struct tare_tpu_function *functions;
    struct tare_graph **graphs;
    size_t count;
    memset(out, 0, sizeof *out);
    TARE_TRY(check_is_tf2(model, options));
    TARE_TRY(tare_tpu_existing(&out->existing, arena, model));
    TARE_TRY(tare_composites_fuse(&out->composites, arena, model));
    TARE_TRY(localize(out, model, options));
    if (options->has_sharding) TARE_TRY(tare_tpu_sharding_check(&options->sharding));
    TARE_TRY(find_functions(&functions, &count, out, arena, model, options));
    graphs = graphs_of(arena, functions, count);
    if (!graphs) return TARE_NO_MEMORY;
    TARE_TRY(tare_tpu_memory(&out->before, arena, model, graphs, count, largest_batch(options)));
    TARE_TRY(tare_tpu_refuse_existing(arena, graphs, count));
    TARE_TRY(tare_tpu_batch_check(arena, model, graphs, count, options->batches, options->n_batches));
    TARE_TRY(tare_tpu_check(&out->findings, &out->n_findings, arena, model, graphs, count));
    if (!options->allow_incompatible) TARE_TRY(refuse_incompatible(out));
    TARE_TRY(tare_tpu_drop(&out->dropped, arena, graphs, count));
    if (options->bfloat16) TARE_TRY(to_bfloat16(&out->bfloat16_changes, model, options, graphs, count));
    TARE_TRY(tare_tpu_lower_transposed(&out->transposed_convs, arena, model, graphs, count));
    TARE_TRY(tare_tpu_place(&out->placed, arena, model, functions, count,
                            options->has_sharding ? &options->sharding : NULL, options->has_quantization));
    out->n_placed = count;
    if (options->io_shapes) TARE_TRY(tare_tpu_io_shapes(&out->io_shapes, model, out->placed, count));
    if (options->has_sharding)
        TARE_TRY(tare_tpu_shard_inputs(model, out->placed, count, options->sharding.num_cores_per_replica,
                                       batches_divide(out, options), &out->sharded_inputs));
    TARE_TRY(tare_tpu_batch(&out->batching, arena, model, options->batches, options->n_batches));
    TARE_TRY(report(out, arena, model, options));
    return tare_conversion_advise(out, arena, model, options);
}
