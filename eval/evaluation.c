/* Runs models over the records of an evaluation; see the header. */
#include "eval/evaluation.h"
#include "convert/saved_model.h"
#include "eval/model_inputs.h"

tare_status tare_evaluate(struct tare_comparison_row **out, struct tare_comparison *comparison,
                          const struct tare_graph_model *model, const struct tare_evaluation *evaluation) {
    const struct tare_signature *signature;
    TARE_TRY(tare_pick_signature(&signature, model, evaluation->signature));
    return tare_comparison_add(out, comparison, model, signature, evaluation);
}

static tare_status run_float(struct tare_comparison_row **out, struct tare_comparison *comparison,
                             const struct tare_evaluation *evaluation) {
    const struct tare_saved_model_options options = { .ops = evaluation->source->ops };
    struct tare_graph_model *model;
    TARE_TRY(tare_saved_model_load(&model, evaluation->source->model, &options));
    const tare_status status = tare_evaluate(out, comparison, model, evaluation);
    tare_model_free(model);
    return status;
}

tare_status tare_evaluate_float(struct tare_comparison_row **out, struct tare_comparison *comparison,
                                const struct tare_evaluation *evaluation, const struct tare_comparison *known) {
    const struct tare_signature *signature;
    const struct tare_graph_model *model;
    if (!known) return run_float(out, comparison, evaluation);
    TARE_TRY(tare_variant_source_prepared(&model, evaluation->source));
    TARE_TRY(tare_pick_signature(&signature, model, evaluation->signature));
    return tare_comparison_add_known(out, comparison, known, signature, evaluation);
}
