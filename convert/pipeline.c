/* Preparation and quantization; the TPU half is in tpu_passes.c. */
#include "convert/pipeline.h"
#include "base/file.h"
#include "convert/prepared_model.h"
#include "proto/bundle.h"

#include <string.h>

const struct tare_pass *const tare_prepare_passes[] = {
    &tare_pass_keep_effects,
    &tare_pass_prune,
    &tare_pass_fuse_composites,
    &tare_pass_split_callers,
    &tare_pass_freeze,
    &tare_pass_localize_variables,
    &tare_pass_localize_constants,
    &tare_pass_inline_tables,
    &tare_pass_fold_constants,
    &tare_pass_localize_choices,
    &tare_pass_split_batch_groups, /* its Transposes may cancel */
    &tare_pass_cancel_transposes,  /* biases then follow their convolutions */
    &tare_pass_fold_batch_norm,
    &tare_pass_fold_constants, /* shapes and scales that folding left */
    &tare_pass_fold_fake_quant,
    &tare_pass_prune,
    NULL,
};

tare_status tare_pipeline_prepare(struct tare_graph_model *model, struct tare_pass_count *counts) {
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

tare_status tare_pipeline_quantize(struct tare_quant_report *report, struct tare_arena *arena,
                                   struct tare_graph_model *model, const struct tare_quant_plan *plan,
                                   const struct tare_calibration *calibration) {
    const struct tare_quant_ranges ranges = tare_ranges_of(calibration);
    struct tare_quant_plan own = *plan;
    memset(report, 0, sizeof *report);
    if (!tare_quant_plan_quantizes(plan)) return TARE_OK;
    TARE_TRY(tare_calibration_check_passes(calibration, plan->passes));
    if (!own.forget) own.forget = tare_pipeline_forget;
    return tare_quantize(report, arena, model, &ranges, &own);
}
