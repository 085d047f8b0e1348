/* The check of what stays on the CPU, for models that are quantized without being placed on a TPU. */
#include "workflow/cpu_check.h"
#include "tpu/compatibility.h"

tare_status tare_workflow_warn_of_left(struct tare_quant_report *report, struct tare_arena *arena,
                                       const struct tare_graph_model *model) {
    struct tare_tpu_finding *left;
    size_t count;
    if (model->module_note) TARE_TRY(tare_quant_add_warning(report, arena, "%s", model->module_note));
    TARE_TRY(tare_tpu_check_left(&left, &count, arena, model));
    for (size_t i = 0; i < count; i++)
        if (tare_tpu_calls_open_shape(left[i].node))
            return TARE_FAIL(
                TARE_UNSUPPORTED,
                "node '%s' in function %s calls %s with results of open shapes, with which TensorFlow does "
                "not load the model (export the model for a fixed batch size)",
                left[i].node->name, left[i].function->name, tare_node_string(left[i].node, "call_target_name", ""));
    if (count == 1) return tare_quant_add_warning(report, arena, "%s", left->text);
    if (count) return tare_quant_add_warning(report, arena, "%s; %zu more", left->text, count - 1);
    return TARE_OK;
}
