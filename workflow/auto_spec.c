#include "workflow/auto_spec.h"
#include "base/file.h"
#include "base/output.h"
#include "base/strbuf.h"
#include "datasets/data_file.h"
#include "eval/evaluation.h"
#include "eval/measure.h"
#include "workflow/spec_draft.h"

#include <string.h>
#include <unistd.h>

struct search {
    struct tare_auto_job *job;
    const struct tare_option_list *records; /* to evaluate with */
    struct tare_survey survey;
    struct tare_spec_draft_options options;
    struct tare_strbuf tried; /* what the float model reaches with each scale */
};

static bool needs_spec(const struct tare_survey *survey) {
    static const char *const kinds[] = { "image", "CSV row", "tf.Example", "tf.SequenceExample", NULL };
    for (const char *const *kind = kinds; *kind && survey->kind; kind++)
        if (strcmp(survey->kind, *kind) == 0) return true;
    return false;
}

static tare_status survey(struct search *s, int64_t limit) {
    const struct tare_survey_options options = { .limit = limit, .interrupted = s->job->task->interrupted };
    tare_survey_free(&s->survey);
    return tare_survey_files(&s->survey, s->records->items, s->records->count, &options);
}

static tare_status draft(struct tare_strbuf *text, struct tare_spec_draft_found *found, struct search *s) {
    const struct tare_auto_job *job = s->job;
    return tare_workflow_draft_spec(text, found, &s->survey, job->task->model, job->request->signature, &s->options);
}

static const char *word_of(const struct tare_auto_task *task) {
    return tare_workflow_model_word(task->model, task->model_name);
}

/* ---- the scale of images ---- */

/* The measure of the float model with a spec; NULL: the records have no labels or expected values. */
static tare_status measure_float(const struct tare_measure **measure, double *value, const struct search *s,
                                 struct tare_dataset_spec *spec) {
    const struct tare_auto_request *request = s->job->request;
    const struct tare_auto_task *task = s->job->task;
    struct tare_variant_source source = { .model = task->model, .ops = task->ops };
    const struct tare_evaluation evaluation = { .source = &source,
                                                .signature = request->signature,
                                                .records = { .paths = s->records->items,
                                                             .n_paths = s->records->count,
                                                             .spec = spec,
                                                             .interrupted = task->interrupted },
                                                .label = request->label,
                                                .target_key = request->target_key,
                                                .metric = request->metric,
                                                .threads = task->threads };
    struct tare_comparison comparison = { .metric = request->metric };
    struct tare_comparison_row *row;
    const tare_status status = tare_evaluate_float(&row, &comparison, &evaluation, NULL);
    *measure = NULL;
    if (status == TARE_OK) {
        *measure = tare_measure_of(&comparison);
        *value = tare_measure_value(*measure, tare_measured_of(&comparison, row));
        if ((*measure)->kind == TARE_MEASURE_SQNR) *measure = NULL;
    }
    tare_comparison_free(&comparison);
    return status;
}

static tare_status try_scale(const struct tare_measure **measure, double *value, struct search *s) {
    struct tare_spec_draft_found found;
    struct tare_strbuf text = { 0 };
    struct tare_dataset_spec *spec = NULL;
    tare_status status;
    TARE_CHECK(draft(&text, &found, s));
    tare_strbuf_free(&found.summary);
    TARE_CHECK(tare_dataset_spec_parse(&spec, tare_strbuf_text(&text), text.size, s->job->spec));
    status = measure_float(measure, value, s, spec);
done:
    tare_dataset_spec_free(spec);
    tare_strbuf_free(&text);
    return status;
}

static tare_status choose_scale(struct search *s) {
    enum tare_spec_draft_scale best = TARE_SPEC_SCALE_OPEN;
    double best_value = 0;
    for (int scale = TARE_SPEC_SCALE_NONE; scale < TARE_SPEC_SCALES; scale++) {
        const struct tare_measure *measure;
        double value;
        s->options.scale = (enum tare_spec_draft_scale)scale;
        TARE_TRY(try_scale(&measure, &value, s));
        if (!measure)
            return TARE_FAIL(
                TARE_NOT_FOUND,
                "%s: images without labels do not show the scale that the model expects (give --spec FILE; "
                "'tare dataset info %s --draft-spec FILE --model %s' writes a draft)",
                s->records->items[0], s->records->items[0], word_of(s->job->task));
        if (!best || (measure->lower_is_better ? value < best_value : value > best_value)) {
            best = s->options.scale;
            best_value = value;
        }
        tare_strbuf_printf(&s->tried, s->tried.size ? ", " : "%s of the float model: ", measure->name);
        tare_measure_put(&s->tried, measure, value);
        tare_strbuf_printf(&s->tried, " with %s", tare_spec_draft_scale_texts[scale]);
    }
    s->options.scale = best;
    return TARE_OK;
}

/* ---- the spec ---- */

static void log_spec(const struct search *s, const struct tare_spec_draft_found *found) {
    const struct tare_auto_job *job = s->job;
    struct tare_strbuf text = { 0 };
    tare_strbuf_puts(&text, tare_strbuf_text(&found->summary));
    if (found->images)
        tare_strbuf_printf(&text, "; pixels as %s (%s)", tare_spec_draft_scale_texts[s->options.scale],
                           tare_strbuf_text(&s->tried));
    tare_note(job->task->log, "%s is assumed, because there is no --spec: %s", job->spec, tare_strbuf_text(&text));
    tare_strbuf_free(&text);
}

static tare_status load(struct tare_auto_job *job) {
    TARE_TRY(tare_dataset_spec_load(&job->request->records.spec, job->spec));
    job->request->records.spec_path = job->spec;
    return TARE_OK;
}

static tare_status use(struct search *s, struct tare_strbuf *text, struct tare_spec_draft_found *found) {
    struct tare_auto_job *job = s->job;
    TARE_TRY(draft(text, found, s));
    if (found->missing)
        return TARE_FAIL(
            TARE_NOT_FOUND,
            "%s: %zu of the model's inputs have no feature in the records (name the labels or expected values by "
            "--label "
            "or --target, or give --spec FILE; 'tare dataset info %s --draft-spec FILE --model %s' writes a draft)",
            s->records->items[0], found->missing, s->records->items[0], word_of(job->task));
    if (found->images && !s->options.scale) {
        TARE_TRY(choose_scale(s));
        tare_strbuf_free(&found->summary);
        tare_strbuf_free(text);
        return use(s, text, found);
    }
    TARE_TRY(tare_file_write(job->spec, tare_strbuf_text(text), text->size));
    log_spec(s, found);
    return load(job);
}

tare_status tare_workflow_auto_find_spec(struct tare_auto_job *job) {
    const struct tare_auto_request *request = job->request;
    const struct tare_option_list samples = { .items = (const char **)(uintptr_t)job->task->data,
                                              .count = job->task->n_data };
    struct search s = { .job = job,
                        .records = request->eval.count ? &request->eval : &samples,
                        .options = { .label = strcmp(request->label, "label") != 0 ? request->label : NULL,
                                     .target = request->target_key,
                                     .decides = true } };
    struct tare_spec_draft_found found = { 0 };
    struct tare_strbuf text = { 0 };
    tare_status status = TARE_OK;
    if (request->records.spec_path || tare_data_read_once(s.records->items, s.records->count)) return TARE_OK;
    TARE_CHECK(survey(&s, 1));
    if (!needs_spec(&s.survey)) goto done;
    if (access(job->spec, F_OK) == 0) { /* of an earlier run, and perhaps edited */
        tare_note(job->task->log, "%s is used, because there is no --spec", job->spec);
        status = load(job);
        goto done;
    }
    TARE_CHECK(survey(&s, 0));
    status = use(&s, &text, &found);
done:
    tare_survey_free(&s.survey);
    tare_strbuf_free(&found.summary);
    tare_strbuf_free(&text);
    tare_strbuf_free(&s.tried);
    return tare_error_prefix(status, "no --spec");
}
