/* Checks evaluation records before anything runs. Leakage compares the tensors that reach the model with the digests in
 * the calibration (calib/sample_digest.h). */
#include "workflow/evaluation_data.h"
#include "base/control.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "datasets/data_file.h"
#include "datasets/label.h"
#include "eval/model_inputs.h"
#include "workflow/sample_feed.h"

#include <inttypes.h>
#include <string.h>

static bool is_interrupted(const struct tare_evaluation *evaluation) {
    return tare_flag_is_set(evaluation->records.interrupted);
}

/* ---- labels ---- */

tare_status tare_workflow_keep_expected(struct tare_dataset_spec *spec, const char *label, const char *target) {
    if (!spec) return TARE_OK;
    if (label && !tare_dataset_spec_reads(spec, label)) TARE_TRY(tare_dataset_spec_keep(spec, label));
    return tare_dataset_spec_keep(spec, target);
}

static void add_integer_keys(struct tare_strbuf *keys, const struct tare_sample *sample) {
    for (size_t i = 0; i < sample->count; i++)
        if (tare_dtype_is_integer(sample->values[i].dtype))
            tare_strbuf_printf(keys, "%s%s", keys->size ? ", " : "", sample->keys[i]);
}

/* Reads records until one has the label. `keys`: the integer keys of the first record. */
static tare_status search_label(bool *found, struct tare_strbuf *keys, struct tare_source *source,
                                const struct tare_evaluation *evaluation) {
    for (int64_t n = 0; !*found && !is_interrupted(evaluation); n++) {
        struct tare_record where;
        struct tare_sample sample;
        bool end = false;
        TARE_TRY(tare_source_next(&sample, &where, &end, source, NULL, NULL));
        if (end) return TARE_OK;
        if (n == 0) add_integer_keys(keys, &sample);
        *found = tare_sample_find(&sample, evaluation->label);
        tare_sample_reset(&sample);
    }
    return TARE_OK;
}

tare_status tare_workflow_check_label(const struct tare_evaluation *evaluation) {
    const struct tare_runner_options *records = &evaluation->records;
    const struct tare_source_options options = { .stop = records->limit, .spec = records->spec };
    struct tare_source *source = NULL;
    struct tare_strbuf keys = { 0 };
    bool found = false;
    tare_status status;
    if (!evaluation->label || strcmp(evaluation->label, "label") == 0 ||
        tare_data_read_once(records->paths, records->n_paths))
        return TARE_OK;
    TARE_CHECK(tare_source_new(&source, records->paths, records->n_paths, &options));
    TARE_CHECK(search_label(&found, &keys, source, evaluation));
    if (!found && !is_interrupted(evaluation))
        status = TARE_FAIL(TARE_NOT_FOUND, "--label %s: no record has this key (%s%s)", evaluation->label,
                           keys.size ? "integer keys of the first record: " : "the first record has no integer key",
                           tare_strbuf_text(&keys));
done:
    tare_strbuf_free(&keys);
    tare_source_free(source);
    return status;
}

/* ---- leakage ---- */

static tare_status compare_feed(struct tare_leakage *out, struct tare_tensor *inputs, size_t n_inputs,
                                const struct tare_sample_feed *feed, const struct tare_digest_set *digests,
                                const struct tare_evaluation *evaluation) {
    while (!is_interrupted(evaluation)) {
        struct tare_record record = { .number = -1 };
        bool end = false;
        TARE_TRY(feed->source.next(feed->source.arg, inputs, &record, &end, NULL, NULL));
        if (end) return TARE_OK;
        const uint64_t digest = tare_sample_digest(inputs, n_inputs);
        const bool found = tare_digest_set_has(digests, digest);
        out->shared += found;
        out->records += found || tare_digest_set_decides(digests, digest);
        for (size_t i = 0; i < n_inputs; i++)
            tare_tensor_reset(&inputs[i]);
    }
    return TARE_OK;
}

/* Invalid records are skipped: the run itself reports them. */
tare_status tare_workflow_find_leakage(struct tare_leakage *out, const struct tare_graph_model *model,
                                       const struct tare_evaluation *evaluation) {
    const struct tare_runner_options *records = &evaluation->records;
    const struct tare_source_options options = { .limit = records->limit,
                                                 .takes = records->takes,
                                                 .takes_arg = records->takes_arg,
                                                 .max_bad = INT64_MAX,
                                                 .spec = records->spec };
    const struct tare_digest_set *digests;
    const struct tare_signature *signature;
    struct tare_sample_feed feed;
    struct tare_tensor *inputs;
    tare_status status;
    *out = (struct tare_leakage){ 0 };
    TARE_TRY(tare_pick_signature(&signature, model, evaluation->signature));
    const size_t n_inputs = signature->n_inputs;
    digests = evaluation->calibration ? tare_calibration_find_digests(evaluation->calibration, signature->key) : NULL;
    if (!digests || !digests->count || tare_data_read_once(records->paths, records->n_paths)) return TARE_OK;
    inputs = tare_calloc(n_inputs + 1, sizeof *inputs);
    if (!inputs) return TARE_NO_MEMORY;
    status = tare_sample_feed_open(&feed, signature, records->paths, records->n_paths, &options, records->feedback);
    if (status == TARE_OK) status = compare_feed(out, inputs, n_inputs, &feed, digests, evaluation);
    tare_sample_feed_close(&feed);
    tare_free(inputs);
    return status;
}

void tare_workflow_warn_of_leakage(const struct tare_log *log, const struct tare_leakage *leakage) {
    if (leakage->shared)
        tare_warn(log,
                  "%" PRId64 " of %" PRId64 " evaluation records have the same inputs as calibration samples, so that "
                  "their accuracy is optimistic (evaluate with other records)",
                  leakage->shared, leakage->records);
}

/* ---- after the run of the float model ---- */

void tare_workflow_warn_of_nan(const struct tare_log *log, const struct tare_comparison *c) {
    for (size_t i = 0; i < c->n_outputs; i++) {
        const struct tare_metrics *m = &c->rows[0].outputs[i];
        if (!m->undefined) continue;
        tare_warn(log,
                  "output %s of the float model has %" PRId64
                  " elements that are NaN, which are not compared (find the "
                  "node with 'tare run --check-numerics')",
                  c->output_keys[i], m->undefined);
    }
}

void tare_workflow_warn_of_labels(const struct tare_log *log, const struct tare_metrics *metrics) {
    const int64_t classes = metrics->rows ? metrics->elements / metrics->rows : 0;
    if (!metrics->unlabelled || !classes) return;
    tare_warn(log,
              "%" PRId64 " of %" PRId64 " labels are not classes of the output and are not counted (got %" PRId64
              ", expected 0 to %" PRId64 "; check the labels with 'tare dataset head'%s)",
              metrics->unlabelled, metrics->unlabelled + metrics->labelled, metrics->largest_label,
              classes > 1 ? classes - 1 : 1, metrics->labelled ? "" : "; expected values are given with --target");
}

static bool is_input(const struct tare_signature *signature, const char *key) {
    for (size_t i = 0; i < signature->n_inputs; i++)
        if (strcmp(signature->inputs[i].key, key) == 0) return true;
    return false;
}

/* A key of the sample that may have its label; NULL: none. */
static const char *likely_label(const struct tare_sample *sample, const struct tare_signature *signature,
                                const char *read) {
    for (size_t i = 0; i < sample->count && sample->count > 1; i++) {
        const struct tare_tensor *value = &sample->values[i];
        const char *key = sample->keys[i];
        if (value->elements == 1 && tare_dtype_is_integer(value->dtype) && !is_input(signature, key) &&
            strcmp(key, read) != 0 && (tare_label_is_name(key) || strcmp(key, "y") == 0))
            return key;
    }
    return NULL;
}

tare_status tare_workflow_warn_of_unread_label(const struct tare_log *log, const struct tare_graph_model *model,
                                               const struct tare_evaluation *evaluation) {
    const struct tare_runner_options *records = &evaluation->records;
    const struct tare_source_options options = { .limit = 1, .spec = records->spec };
    const struct tare_signature *signature;
    struct tare_source *source = NULL;
    struct tare_sample sample = { 0 };
    struct tare_record where;
    bool end = false;
    tare_status status;
    if (evaluation->target_key) return TARE_OK;
    TARE_CHECK(tare_pick_signature(&signature, model, evaluation->signature));
    const bool is_taken = evaluation->label && strcmp(evaluation->label, "label") == 0 && is_input(signature, "label");
    if (is_taken)
        tare_warn(log,
                  "'label' is an input of the model and is not read as the label (--label KEY names another key of "
                  "the records; without labels: --metric sqnr)");
    if (is_taken || tare_data_read_once(records->paths, records->n_paths)) goto done;
    TARE_CHECK(tare_source_new(&source, records->paths, records->n_paths, &options));
    TARE_CHECK(tare_source_next(&sample, &where, &end, source, NULL, NULL));
    const char *key = end ? NULL : likely_label(&sample, signature, evaluation->label);
    if (key)
        tare_warn(log, "'%s' of the records is not read (--label %s measures the accuracy, --target %s the error)", key,
                  key, key);
done:
    tare_sample_reset(&sample);
    tare_source_free(source);
    return status;
}
