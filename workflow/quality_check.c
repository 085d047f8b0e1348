/* Runs float and quantized model on a few samples; see the header. */
#include "workflow/quality_check.h"
#include "base/strbuf.h"
#include "datasets/data_file.h"
#include "eval/model_inputs.h"
#include "eval/verdict.h"
#include "workflow/calibration_data.h"

#include <math.h>
enum { RECORDS = 8 };

static tare_status compare(double *db, int64_t *records, const struct tare_graph_model *model,
                           const struct tare_evaluation *evaluation) {
    struct tare_comparison comparison = { 0 };
    struct tare_comparison_row *row;
    tare_status status = tare_evaluate_float(&row, &comparison, evaluation, NULL);
    if (status == TARE_OK) status = tare_evaluate(&row, &comparison, model, evaluation);
    if (status == TARE_OK) *db = tare_worst_sqnr_db(NULL, &comparison, comparison.rows[1].outputs);
    *records = comparison.records;
    tare_comparison_free(&comparison);
    return status;
}

/* *db stays NaN where nothing can be measured. */
static tare_status measure(double *db, int64_t *records, const struct tare_graph_model *model,
                           const struct tare_quantize_task *task) {
    const struct tare_quantize_request *request = task->request;
    const struct tare_signature *plain = NULL;
    struct tare_data_groups groups = { 0 };
    tare_status status = TARE_OK;
    if (request->signature) status = tare_pick_signature(&plain, model, request->signature);
    if (status == TARE_OK)
        status = tare_data_groups_make(&groups, model, request->data.items, request->data.count, plain);
    if (status == TARE_OK && groups.count && groups.items[0].files.count) {
        const struct tare_file_list *files = &groups.items[0].files;
        struct tare_variant_source source = { .model = task->path, .ops = task->ops };
        const struct tare_evaluation evaluation = { .source = &source,
                                                    .signature = groups.items[0].signature->key,
                                                    .records = { .paths = (const char *const *)files->names,
                                                                 .n_paths = files->count,
                                                                 .limit = RECORDS,
                                                                 .spec = request->records.spec,
                                                                 .feedback = &request->records.feedback,
                                                                 .interrupted = task->interrupted } };
        if (!tare_data_read_once(evaluation.records.paths, files->count))
            status = compare(db, records, model, &evaluation);
    }
    tare_data_groups_free(&groups);
    return status == TARE_INTERRUPTED || status == TARE_NO_MEMORY ? status : tare_error_dismiss(status);
}

/* What --auto measured by the labels of the samples. */
static tare_status check_loss(struct tare_quantized *out, struct tare_arena *arena, double margin) {
    const struct tare_autotune *automatic = &out->automatic;
    struct tare_strbuf loss = { 0 };
    tare_status status;
    if (!automatic->measure || !(automatic->least_loss > margin)) return TARE_OK;
    tare_measure_put_points(&loss, automatic->measure, margin, 3);
    status = tare_quant_add_warning(&out->report, arena,
                                    "--auto loses more than %s on %lld samples (--max-drop with --eval keeps layers in "
                                    "higher precision)",
                                    tare_strbuf_text(&loss), (long long)automatic->records);
    tare_strbuf_free(&loss);
    return status;
}

tare_status tare_workflow_check_quality(struct tare_quantized *out, struct tare_arena *arena,
                                        const struct tare_graph_model *model, const struct tare_quantize_task *task) {
    double db = NAN;
    int64_t records = out->automatic.records;
    if (!task->log || !task->request->data.count || out->targeting.result.points) return TARE_OK;
    if (out->automatic.method)
        db = out->automatic.db;
    else
        TARE_TRY(measure(&db, &records, model, task));
    if (out->automatic.method) TARE_TRY(check_loss(out, arena, task->request->margin));
    if (!(db < TARE_VERDICT_DB)) return TARE_OK;
    return tare_quant_add_warning(
        &out->report, arena,
        "the worst output has an SQNR of %.1f dB against float on %lld samples (expected %d or "
        "more; %s)",
        db, (long long)records, TARE_VERDICT_DB,
        out->automatic.method ? "--min-sqnr 20 with --eval keeps layers in higher precision"
                              : "--auto chooses settings by measuring, 'tare compare --explain' shows the layers");
}
