/* The prepared model and the integer weights that variants share; see the header. */
#include "eval/variant_source.h"
#include "convert/prepared_model.h"
#include "convert/saved_model.h"
#include "graph/clone.h"

tare_status tare_variant_source_prepared(const struct tare_graph_model **out, struct tare_variant_source *source) {
    if (!source->prepared) TARE_TRY(tare_load_prepared_with(&source->prepared, source->model, source->ops));
    *out = source->prepared;
    return TARE_OK;
}

tare_status tare_variant_source_clone(struct tare_graph_model **out, struct tare_variant_source *source) {
    const struct tare_graph_model *prepared;
    *out = NULL;
    TARE_TRY(tare_variant_source_prepared(&prepared, source));
    return tare_model_clone(out, prepared);
}

/* The model that the variant changes: what is not quantized and has nothing to fold is converted as it was loaded. */
static tare_status begin(struct tare_graph_model **out, struct tare_variant_source *source,
                         const struct tare_variant *variant) {
    const struct tare_saved_model_options options = { .ops = source->ops };
    if (!variant->bfloat16 || tare_quant_plan_quantizes(&variant->plan)) return tare_variant_source_clone(out, source);
    TARE_TRY(tare_saved_model_load(out, source->model, &options));
    if (!tare_count_batch_norms(*out)) return TARE_OK;
    tare_model_free(*out);
    return tare_variant_source_clone(out, source);
}

tare_status tare_variant_source_make(struct tare_graph_model **out, struct tare_quant_report *report,
                                     struct tare_arena *arena, struct tare_variant_source *source,
                                     const struct tare_variant *variant, struct tare_calibration *calibration) {
    struct tare_variant sharing = *variant;
    tare_status status;
    TARE_TRY(begin(out, source, variant));
    sharing.plan.weights = &source->weights;
    status = tare_variant_apply(report, arena, *out, &sharing, calibration);
    if (status == TARE_OK) return TARE_OK;
    tare_model_free(*out);
    *out = NULL;
    return status;
}

void tare_variant_source_close(struct tare_variant_source *source) {
    tare_quant_weight_store_free(&source->weights);
    tare_model_free(source->prepared);
    source->prepared = NULL;
}
