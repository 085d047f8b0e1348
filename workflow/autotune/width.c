/* Automatic choice of activations of 16 bits in all layers, where nothing that costs less has helped. */
#include "workflow/autotune/measure.h"
#include "base/tensor/dtype.h"
#include "eval/measure.h"
#include "eval/model_inputs.h"
#include "quant/advice.h"
#include "quant/method.h"

#include <string.h>

bool tare_autotune_can_widen(const struct tare_autotune_search *c) {
    const struct tare_quant_plan *options = &c->task->variant->plan;
    return options->setting.method->takes_wide && !options->setting.format && options->op_set == TARE_OP_SET_XLA &&
           !options->setting.activation_bits;
}

static bool has_shape_of_input(const struct tare_signature *signature, const struct tare_binding *output) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        if (tare_dtype_is_floating(input->dtype) && input->shape.rank >= 2 &&
            tare_shape_equal(&input->shape, &output->shape))
            return true;
    }
    return false;
}

/* Whether errors of the outputs add to those of the model, as in a regression, instead of only being large enough or
 * not to change a class. Without labels or expected values: each output has the shape of an input, as in autoencoders
 * and filters. */
static tare_status predicts_numbers(bool *out, const struct tare_autotune_search *c) {
    const struct tare_signature *signature;
    const struct tare_graph_model *model;
    size_t numbers = 0, others = 0;
    if (c->out->measure) {
        *out = tare_measured_of(&c->task_comparison, &c->task_comparison.rows[0])->expected.count > 0;
        return TARE_OK;
    }
    TARE_TRY(tare_variant_source_prepared(&model, c->evaluation.source));
    TARE_TRY(tare_pick_signature(&signature, model, c->evaluation.signature));
    for (size_t i = 0; i < signature->n_outputs; i++) {
        const bool number = has_shape_of_input(signature, &signature->outputs[i]);
        if (tare_dtype_is_floating(signature->outputs[i].dtype)) ++*(number ? &numbers : &others);
    }
    *out = numbers > 0 && others == 0;
    return TARE_OK;
}

tare_status tare_autotune_choose_width(struct tare_autotune_search *c) {
    struct tare_autotune *out = c->out;
    const char *algorithm = out->algorithm;
    struct tare_autotune_layer *before;
    bool numbers;
    double db;
    if (!tare_autotune_can_widen(c)) return TARE_OK;
    TARE_TRY(predicts_numbers(&numbers, c));
    if (!(out->db < (numbers ? TARE_LEAST_DB_OF_NUMBERS : TARE_LEAST_DB))) return TARE_OK;
    before = TARE_NEW_ARRAY(&out->arena, struct tare_autotune_layer, out->count + 1);
    if (!before) return TARE_NO_MEMORY;
    memcpy(before, out->layers, out->count * sizeof *before);
    out->algorithm = "min_max"; /* others clip values for the sake of finer steps, of which 16 bits have enough */
    for (size_t i = 0; i < out->count; i++) {
        out->layers[i].algorithm = NULL;
        out->layers[i].activation_bits = 16;
        out->layers[i].why = "activations of 16 bits, as all layers";
    }
    TARE_TRY(tare_autotune_measure(&db, c, NULL));
    if (tare_autotune_improves(c, db, c->best, TARE_WORTH_EXCEPTION_DB)) {
        tare_autotune_keep(c, db);
        return TARE_OK;
    }
    out->algorithm = algorithm;
    memcpy(out->layers, before, out->count * sizeof *before);
    return TARE_OK;
}
