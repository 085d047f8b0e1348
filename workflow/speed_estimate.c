/* Estimated time before and after quantization. */
#include "workflow/speed_estimate.h"
#include "eval/model_inputs.h"
#include "quant/quantize.h"
#include "tpu/cost/fused.h"

#include <math.h>
#include <string.h>

/* The default of tare compare --chip-batch. */
enum { BATCH = 8 };

static const double NOTICEABLE = 1.15; /* smaller ratios are not reported: they are within the error of the estimate */

static tare_status estimate(double *seconds, struct tare_arena *scratch, const struct tare_graph_model *model) {
    const struct tare_signature *signature;
    struct tare_fused_cost cost;
    TARE_TRY(tare_pick_signature(&signature, model, NULL));
    TARE_TRY(tare_tpu_fused_cost(&cost, scratch, model, signature, BATCH, NULL, NULL));
    for (size_t i = 0; i < TARE_TPU_CHIPS; i++)
        if (strcmp(tare_tpu_chips[i].name, TARE_DEFAULT_CHIP) == 0 && cost.seconds[i] > 0)
            *seconds = cost.seconds[i] / BATCH;
    return TARE_OK;
}

tare_status tare_workflow_estimate_speed(double *seconds, const struct tare_graph_model *model) {
    struct tare_arena scratch = { 0 };
    tare_status status;
    *seconds = NAN;
    status = estimate(seconds, &scratch, model);
    tare_arena_free(&scratch);
    return tare_error_dismiss(status);
}

tare_status tare_workflow_warn_of_slower(struct tare_quant_report *report, struct tare_arena *arena, double before,
                                         double after) {
    if (!(after > NOTICEABLE * before)) return TARE_OK;
    return tare_quant_add_warning(
        report, arena,
        "the quantized model is estimated slower than the float model on a Cloud TPU %s: "
        "%.3g µs per example instead of %.3g in batches of %d (small layers do not become faster; tare compare "
        "--wide shows the estimate of each method)",
        TARE_DEFAULT_CHIP, 1e6 * after, 1e6 * before, BATCH);
}
