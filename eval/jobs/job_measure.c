/* Measures the output of a batch job: sizes, and accuracy against the float model on the job's evaluation records. */
#include "eval/jobs/job_measure.h"
#include "base/format.h"
#include "convert/saved_model.h"
#include "eval/measure.h"
#include "eval/sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static tare_status measure_model(struct tare_comparison_row **row, struct tare_comparison *comparison, const char *path,
                                 const struct tare_saved_model_options *open,
                                 const struct tare_evaluation *evaluation) {
    struct tare_graph_model *model;
    TARE_TRY(tare_saved_model_load(&model, path, open));
    const tare_status status = tare_evaluate(row, comparison, model, evaluation);
    tare_model_free(model);
    return tare_error_prefix(status, "%s", path);
}

static void set_figures(struct tare_job_result *result, const struct tare_comparison *c) {
    const struct tare_metrics *base = tare_measured_of(c, &c->rows[0]), *made = tare_measured_of(c, &c->rows[1]);
    const struct tare_measure *measure = tare_measure_of(c);
    const struct tare_sensitivity_figures before = tare_sensitivity_figures_of(c, c->rows[0].outputs),
                                          after = tare_sensitivity_figures_of(c, c->rows[1].outputs);
    struct tare_paired paired;
    tare_measure_paired(&paired, measure, made, base, TARE_TAIL_95);
    result->loss_high = paired.high / tare_measure_point(measure, base);
    result->records = c->records;
    result->measure = tare_measure_key(measure);
    if (tare_measure_is_tested(measure)) result->float_measure_value = tare_measure_value(measure, base);
    result->measure_value = tare_measure_value(measure, made);
    result->loss = 100 * (before.score - after.score);
    result->mae = after.mae;
    if (base->labelled) result->float_top1 = (double)base->top1 / (double)base->labelled;
    if (made->labelled) result->top1 = (double)made->top1 / (double)made->labelled;
    if (made->ranked) result->agreement = (double)made->agree / (double)made->ranked;
    result->sqnr_db = tare_metrics_sqnr_db(made);
    result->float_bytes = c->rows[0].size_bytes;
    result->size_bytes = c->rows[1].size_bytes;
}

static tare_status weigh(int64_t *out, const char *path, const struct tare_saved_model_options *open) {
    struct tare_graph_model *model;
    TARE_TRY(tare_saved_model_load(&model, path, open));
    const tare_status status = tare_model_weight_bytes(out, model);
    tare_model_free(model);
    return status;
}

tare_status tare_job_measure(struct tare_job_result *result, const struct tare_job *job, const char *folder,
                             const struct tare_dataset_spec *spec, const struct tare_op_registry *ops,
                             const volatile sig_atomic_t *interrupted) {
    const struct tare_saved_model_options open = { .ops = ops };
    struct tare_evaluation evaluation = { .signature = job->signature,
                                          .records = { .paths = job->evaluation.items,
                                                       .n_paths = job->evaluation.count,
                                                       .limit = job->evaluation_limit,
                                                       .spec = spec,
                                                       .batch = TARE_RUNNER_BATCH,
                                                       .interrupted = interrupted },
                                          .label = job->label,
                                          .target_key = job->target };
    struct tare_comparison comparison = { 0 };
    struct tare_comparison_row *row;
    tare_status status;
    if (!job->evaluation.count) {
        TARE_TRY(weigh(&result->float_bytes, job->model, &open));
        return weigh(&result->size_bytes, folder, &open);
    }
    if (job->metric) TARE_TRY(tare_measure_read(&evaluation.metric, job->metric));
    status = measure_model(&row, &comparison, job->model, &open, &evaluation);
    if (status == TARE_OK) status = measure_model(&row, &comparison, folder, &open, &evaluation);
    if (status == TARE_OK) set_figures(result, &comparison);
    tare_comparison_free(&comparison);
    return status;
}

/* NaN and infinities: see tare_metrics_sqnr_db. */
static bool breaks_sqnr(char reason[160], double db, double least) {
    if (least == -HUGE_VAL || db >= least) return false;
    if (isnan(db))
        snprintf(reason, 160,
                 "the measured output has no SQNR, as it is a string or has no finite elements (use "
                 "max_drop instead of min_sqnr_db)");
    else if (isinf(db))
        tare_format(
            reason, 160,
            "the output has NaN, infinite or missing elements where float's is finite (SQNR of at least %.2f dB "
            "expected)",
            least);
    else
        tare_format(reason, 160, "SQNR is %.2f dB (at least %.2f expected)", db, least);
    return true;
}

/* The loss is in points (eval/sensitivity.h), that of an error in percent of it. */
static void write_drop(char reason[160], const struct tare_measure *measure, double drop, double most) {
    const double unit = *measure->unit || measure->lower_is_better ? 1 : 100;
    const char *name = measure->lower_is_better ? " %" : strcmp(measure->unit, " %") == 0 ? " points" : measure->unit;
    tare_format(reason, 160, "%s %s by %.*f%s (at most %.*f allowed)", measure->title,
                measure->lower_is_better ? "rises" : "falls", unit > 1 ? 4 : 2, drop / unit, name, unit > 1 ? 4 : 2,
                most / unit);
}

static bool breaks_drop(char reason[160], const struct tare_job_result *result, double most) {
    const bool measured = !isnan(result->loss);
    const double drop = measured ? result->loss : 100 * (1 - result->agreement);
    int kind;
    if (most < 0 || drop <= most + TARE_POINTS_SLACK) return false;
    if (isnan(drop))
        snprintf(reason, 160,
                 "max_drop has no measure: the output is no classes, and no labels or expected values are given (use "
                 "min_sqnr_db)");
    else if (measured && result->measure && tare_measure_read(&kind, result->measure) == TARE_OK)
        write_drop(reason, tare_measure_find((enum tare_measure_kind)(kind - 1)), drop, most);
    else
        tare_format(reason, 160, "agreement with float falls by %.2f points (at most %.2f allowed)", drop, most);
    return true;
}

static bool breaks_margin(char reason[160], const struct tare_job_result *result, double most) {
    int kind;
    if (most < 0 || result->loss_high <= most + TARE_POINTS_SLACK) return false;
    if (isnan(result->loss_high) || tare_measure_read(&kind, result->measure) != TARE_OK) {
        snprintf(reason, 160,
                 "the records do not limit the loss (margin needs labels or expected values, of %d or more)",
                 TARE_FEWEST_EXAMPLES);
        return true;
    }
    tare_format(reason, 160, "%s may lose %.2f points (at most %.2f allowed, by %lld records)",
                tare_measure_find((enum tare_measure_kind)(kind - 1))->title, result->loss_high, most,
                (long long)result->records);
    return true;
}

bool tare_job_breaks_limit(char reason[160], const struct tare_job_result *result,
                           const struct tare_job_limits *limits) {
    if (breaks_drop(reason, result, limits->max_drop)) return true;
    if (breaks_margin(reason, result, limits->margin)) return true;
    if (limits->max_mae >= 0 && !(result->mae <= limits->max_mae)) {
        tare_format(reason, 160, "mean absolute error is %.4g (at most %.4g allowed)", result->mae, limits->max_mae);
        return true;
    }
    if (breaks_sqnr(reason, result->sqnr_db, limits->min_sqnr_db)) return true;
    if (limits->max_size_bytes >= 0 && result->size_bytes > limits->max_size_bytes) {
        snprintf(reason, 160, "weights take %lld bytes (at most %lld allowed)", (long long)result->size_bytes,
                 (long long)limits->max_size_bytes);
        return true;
    }
    return false;
}
