/* Runs the models of a comparison over the records: the first model is the reference, whose outputs are stored; the
 * outputs of every later model are measured against them and against labels as they come. */
#include "eval/evaluation.h"
#include "base/control.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/strbuf.h"
#include "datasets/label.h"
#include "eval/measure.h"
#include "eval/record_store.h"
#include "graph/calls.h"
#include "graph/data_dependence.h"

#include <string.h>

void tare_comparison_free(struct tare_comparison *comparison) {
    for (size_t r = 0; r < comparison->n_rows; r++)
        for (size_t i = 0; i < comparison->n_outputs; i++)
            tare_metrics_reset(&comparison->rows[r].outputs[i]);
    tare_reference_store_free(&comparison->references);
    tare_warnings_free(&comparison->warnings);
    tare_free(comparison->rows);
    tare_arena_free(&comparison->arena);
    memset(comparison, 0, sizeof *comparison);
}

tare_status tare_comparison_skip(struct tare_comparison *c, const char *method, const char *algorithm,
                                 const char *granularity, const char *reason) {
    struct tare_comparison_skipped *grown = tare_arena_append(&c->arena, c->skipped, c->n_skipped, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    c->skipped = grown;
    grown[c->n_skipped] = (struct tare_comparison_skipped){
        .method = tare_arena_strdup(&c->arena, method),
        .algorithm = algorithm ? tare_arena_strdup(&c->arena, algorithm) : NULL,
        .granularity = granularity ? tare_arena_strdup(&c->arena, granularity) : NULL,
        .reason = tare_arena_strdup(&c->arena, reason),
    };
    if (!grown[c->n_skipped].method || !grown[c->n_skipped].reason) return TARE_NO_MEMORY;
    c->n_skipped++;
    return TARE_OK;
}

/* ---- sizes ---- */

/* `served`: by position of the nodes; NULL: all count. */
static int64_t constant_bytes(const struct tare_graph *graph, const bool *served) {
    int64_t total = 0;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        const bool counts = !node->dead && (!served || served[i]) && strcmp(node->op, "Const") == 0;
        const struct tare_tensor *value = counts ? tare_node_tensor(node, "value") : NULL;
        if (value && value->dtype != TARE_DT_STRING)
            total += (int64_t)(value->splat ? tare_dtype_size(value->dtype) : tare_tensor_bytes(value));
    }
    return total;
}

/* Training leaves variables that no signature uses: slots of optimizers, metrics, second copies of the layers' own. */
static int64_t variable_bytes(const struct tare_graph_model *model, const bool *served) {
    int64_t total = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct tare_variable *variable = &model->variables[i];
        if (variable->removed || (served && variable->node && !served[variable->node->position])) continue;
        total += (int64_t)tare_tensor_bytes(&variable->value);
    }
    return total;
}

tare_status tare_model_weight_bytes(int64_t *bytes, const struct tare_graph_model *model) {
    struct tare_arena arena = { 0 };
    bool *live, *served = NULL;
    tare_status status = tare_model_reachable_functions(&live, &arena, model, false);
    *bytes = 0;
    if (status == TARE_OK && model->n_signatures) status = tare_model_served_nodes(&served, &arena, model);
    if (status == TARE_OK) *bytes = constant_bytes(model->main, served) + variable_bytes(model, served);
    for (size_t i = 0; i < model->n_functions && status == TARE_OK; i++)
        if (live[i]) *bytes += constant_bytes(model->functions[i], NULL);
    tare_arena_free(&arena);
    return status;
}

/* ---- records ---- */

/* Hashes dtype, shape and elements; a splat is hashed as its expanded elements. */
static void hash_answer(struct tare_hash *hash, const struct tare_tensor *answer) {
    const struct tare_dtype_info *info = tare_dtype_get(answer->dtype);
    tare_hash_add_u64(hash, (uint64_t)answer->dtype);
    tare_hash_add_u64(hash, (uint64_t)answer->shape.rank);
    for (int i = 0; i < answer->shape.rank; i++)
        tare_hash_add_u64(hash, (uint64_t)answer->shape.dims[i]);
    if (!info || info->class == TARE_CLASS_OBJECT) return; /* a handle is an address */
    if (answer->dtype != TARE_DT_STRING && !answer->splat) {
        tare_hash_add(hash, answer->data, tare_tensor_bytes(answer));
        return;
    }
    for (int64_t i = 0; i < answer->elements; i++) {
        const int64_t at = answer->splat ? 0 : i;
        const struct tare_str *strings = answer->data;
        if (answer->dtype == TARE_DT_STRING)
            tare_hash_add_bytes(hash, strings[at].data, strings[at].size);
        else
            tare_hash_add(hash, (const char *)answer->data + (size_t)at * info->size, info->size);
    }
}

/* The first dimension of all inputs, if it is the same and they have further ones; 0 if not. An input of one dimension
 * is as a rule an example itself, such as the tokens of a sentence. */
static int64_t fixed_batch(const struct tare_signature *signature) {
    int64_t batch = 0;
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        if (input->whole || input->shape.rank < 2 || input->shape.dims[0] < 2) return 0;
        if (batch && input->shape.dims[0] != batch) return 0;
        batch = input->shape.dims[0];
    }
    return batch;
}

/* Whether the label has a value, or a row, for each example of a fixed batch. A single one is too few: tare_label_class
 * refuses it. */
static bool labels_each(const struct tare_comparison_pass *pass, const struct tare_sample *sample) {
    const struct tare_tensor *label = pass->fixed_batch ? tare_sample_find(sample, pass->label) : NULL;
    if (!label) return false;
    return label->elements == pass->fixed_batch || label->elements == 1 ||
           (label->shape.rank > 0 && label->shape.dims[0] == pass->fixed_batch);
}

/* Number of examples in a record: its rows, if the signature leaves the first dimension open, or fixes it and the label
 * has as many. */
static int64_t examples_of(const struct tare_comparison_pass *pass, const struct tare_sample *sample,
                           const struct tare_tensor *outputs) {
    if (!pass->batches && !labels_each(pass, sample)) return 1;
    if (!pass->batches && (outputs[0].shape.rank < 1 || outputs[0].shape.dims[0] != pass->fixed_batch)) return 1;
    for (size_t i = 0; i < pass->comparison->n_outputs; i++)
        if (outputs[i].shape.rank < 1 || outputs[i].shape.dims[0] != outputs[0].shape.dims[0]) return 1;
    return outputs[0].shape.dims[0];
}

/* Whether the label is the expected value of the output of that name, and not a class: an integer for each example, of
 * an output with several elements or an integer. */
static bool is_value(const struct tare_comparison_pass *pass, const struct tare_sample *sample,
                     const struct tare_tensor *outputs, int64_t examples) {
    const struct tare_tensor *label = tare_sample_find(sample, pass->label);
    if (pass->expected_output < 0) return false;
    const struct tare_tensor *output = &outputs[pass->expected_output];
    const bool is_class = label && tare_dtype_is_integer(label->dtype) && label->elements == examples;
    return !is_class || (output->elements == examples && !tare_dtype_is_integer(output->dtype));
}

/* The labels of a record if it has one per pixel or token of an output; NULL if not. */
static const struct tare_tensor *position_labels(const struct tare_comparison_pass *pass,
                                                 const struct tare_sample *sample, const struct tare_tensor *outputs,
                                                 int64_t examples) {
    const struct tare_tensor *labels =
        is_value(pass, sample, outputs, examples) ? NULL : tare_sample_find(sample, pass->label);
    int classes;
    for (size_t i = 0; labels && i < pass->comparison->n_outputs; i++)
        if (tare_positions_fit(&classes, &outputs[i], labels, examples)) return labels;
    return NULL;
}

/* Class indices by example; *out is NULL when the record has none. */
static tare_status read_labels(int64_t **out, const struct tare_comparison_pass *pass, const struct tare_sample *sample,
                               const struct tare_tensor *outputs, int64_t examples) {
    *out = NULL;
    if (is_value(pass, sample, outputs, examples) || !tare_sample_find(sample, pass->label)) return TARE_OK;
    if (position_labels(pass, sample, outputs, examples)) return TARE_OK;
    if (!(*out = tare_calloc((size_t)examples + 1, sizeof **out))) return TARE_NO_MEMORY;
    for (int64_t r = 0; r < examples; r++)
        TARE_TRY(tare_label_class(&(*out)[r], sample, pass->label, r, examples));
    return TARE_OK;
}

/* The output that --target belongs to: the one of that name, otherwise the first floating-point one with as many
 * elements as the expected values, then the first floating-point one. */
static size_t target_output(const struct tare_comparison_pass *pass, const struct tare_sample *sample,
                            const struct tare_tensor *outputs) {
    const struct tare_tensor *expected = tare_sample_find(sample, pass->comparison->target_key);
    size_t first = pass->comparison->n_outputs;
    for (size_t i = 0; i < pass->comparison->n_outputs; i++)
        if (strcmp(pass->comparison->output_keys[i], pass->comparison->target_key) == 0) return i;
    for (size_t i = pass->comparison->n_outputs; i-- > 0;)
        if (tare_dtype_is_floating(outputs[i].dtype)) first = i;
    for (size_t i = first; i < pass->comparison->n_outputs; i++)
        if (expected && tare_dtype_is_floating(outputs[i].dtype) && outputs[i].elements == expected->elements) return i;
    return first < pass->comparison->n_outputs ? first : 0;
}

static tare_status check_expected(const struct tare_comparison_pass *pass, const struct tare_tensor *expected,
                                  const char *key, const struct tare_tensor *value, size_t output) {
    if (expected->dtype == TARE_DT_STRING && value->dtype != TARE_DT_STRING)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "target '%s' is not numeric (--target, or --label)", key);
    if (expected->elements != value->elements)
        return TARE_FAIL(TARE_SHAPE, "target '%s' has %lld elements (expected %lld, as output %s)", key,
                         (long long)expected->elements, (long long)value->elements,
                         pass->comparison->output_keys[output]);
    return TARE_OK;
}

/* The expected value of an output: by --target, or by a label that is the output's key. */
static tare_status find_expected(const struct tare_tensor **out, const struct tare_comparison_pass *pass,
                                 const struct tare_sample *sample, const struct tare_tensor *outputs, size_t output,
                                 int64_t examples) {
    const char *target = pass->comparison->target_key;
    *out = NULL;
    if ((int)output == pass->expected_output && is_value(pass, sample, outputs, examples))
        *out = tare_sample_find(sample, pass->label);
    if (*out) TARE_TRY(check_expected(pass, *out, pass->label, &outputs[output], output));
    if (!target || target_output(pass, sample, outputs) != output) return TARE_OK;
    *out = tare_sample_find(sample, target);
    if (!*out) return TARE_FAIL(TARE_NOT_FOUND, "the record has no '%s' (--target)", target);
    return check_expected(pass, *out, target, &outputs[output], output);
}

static tare_status measure(struct tare_comparison_pass *pass, const struct tare_sample *sample,
                           const struct tare_tensor *outputs, int64_t examples, const int64_t *labels) {
    struct tare_comparison *c = pass->comparison;
    const struct tare_tensor *references = tare_reference_store_get(&c->references, pass->record);
    const struct tare_tensor *positions = position_labels(pass, sample, outputs, examples);
    if (!references) return TARE_FAIL(TARE_INTERNAL, "more records than the first model saw");
    for (size_t i = 0; i < c->n_outputs; i++) {
        const struct tare_tensor *expected;
        TARE_TRY(find_expected(&expected, pass, sample, outputs, i, examples));
        const struct tare_measured measured = {
            .value = &outputs[i],
            .reference = pass->is_reference ? NULL : &references[i],
            .rows = examples,
            .labels = labels,
            .positions = positions,
            .expected = expected,
            .record = pass->record,
        };
        TARE_TRY(tare_metrics_add(&pass->outputs[i], &measured));
        if (pass->changed)
            TARE_TRY(tare_changed_add(&pass->changed[i], &c->arena, sample, &outputs[i], &references[i], examples,
                                      labels, pass->record));
    }
    return TARE_OK;
}

/* Of the float model: whether an output depends on the record, which that of anchors or a bias does not. */
static void find_variation(struct tare_comparison_pass *pass, const struct tare_tensor *outputs) {
    for (size_t i = 0; i < pass->comparison->n_outputs; i++) {
        struct tare_hash hash;
        char key[TARE_KEY_SIZE];
        if (pass->outputs[i].varies) continue;
        tare_hash_begin(&hash);
        hash_answer(&hash, &outputs[i]);
        tare_key_finish(key, &hash);
        if (!pass->record)
            strcpy(pass->first[i], key);
        else
            pass->outputs[i].varies = strcmp(pass->first[i], key) != 0;
    }
}

tare_status tare_comparison_pass_record(struct tare_comparison_pass *pass, const struct tare_sample *sample,
                                        const struct tare_tensor *outputs) {
    int64_t examples = examples_of(pass, sample, outputs), *labels = NULL;
    tare_status status = read_labels(&labels, pass, sample, outputs, examples);
    if (status == TARE_OK && pass->is_reference)
        status = tare_reference_store_add(&pass->comparison->references, outputs);
    if (status == TARE_OK) status = measure(pass, sample, outputs, examples, labels);
    status = tare_error_prefix(status, "record %lld", (long long)pass->record);
    tare_free(labels);
    for (size_t i = 0; i < pass->comparison->n_outputs; i++)
        hash_answer(&pass->answers, &outputs[i]);
    if (pass->is_reference) find_variation(pass, outputs);
    pass->record++;
    tare_progress_advance(pass->comparison->progress, 1);
    return status;
}

static tare_status on_record(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                             const struct tare_tensor *outputs) {
    const struct tare_comparison *c = ((const struct tare_comparison_pass *)arg)->comparison;
    (void)where;
    if (c->custom) TARE_TRY(c->custom->record(c->custom->arg, c, sample, outputs));
    return tare_comparison_pass_record(arg, sample, outputs);
}

static tare_status name_outputs(struct tare_comparison *c, const struct tare_signature *signature) {
    c->n_outputs = c->references.n_outputs = signature->n_outputs;
    c->output_keys = TARE_NEW_ARRAY(&c->arena, const char *, c->n_outputs + 1);
    if (!c->output_keys) return TARE_NO_MEMORY;
    for (size_t i = 0; i < c->n_outputs; i++) {
        c->output_keys[i] = tare_arena_strdup(&c->arena, signature->outputs[i].key);
        if (!c->output_keys[i]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

static int output_named(const struct tare_signature *signature, const char *key) {
    for (size_t i = 0; i < signature->n_outputs; i++)
        if (strcmp(signature->outputs[i].key, key) == 0) return (int)i;
    return -1;
}

/* The outputs of a model with state depend on the order of the records: one worker. */
static tare_status choose_threads(int *out, const struct tare_evaluation *evaluation,
                                  const struct tare_graph_model *model, const struct tare_signature *signature) {
    bool stateful;
    TARE_TRY(tare_session_state_ops(&stateful, model, signature, NULL));
    *out = stateful || evaluation->threads < 1 ? 1 : evaluation->threads;
    return TARE_OK;
}

/* A pass reads as many outputs of each record as the comparison has. */
static tare_status check_outputs(size_t count, const struct tare_comparison *comparison) {
    return count == comparison->n_outputs
               ? TARE_OK
               : TARE_FAIL(TARE_INTERNAL, "a model has %zu outputs (expected %zu)", count, comparison->n_outputs);
}

/* The default key of labels is also a name that inputs have: conditional models take a class. */
static const char *label_key(const struct tare_signature *signature, const char *label) {
    for (size_t i = 0; label && strcmp(label, "label") == 0 && i < signature->n_inputs; i++)
        if (strcmp(signature->inputs[i].key, label) == 0) return "";
    return label;
}

tare_status tare_comparison_pass_begin(struct tare_comparison_pass *out, struct tare_comparison *comparison,
                                       const struct tare_signature *signature, const char *label) {
    label = label_key(signature, label);
    *out = (struct tare_comparison_pass){ .comparison = comparison,
                                          .label = label,
                                          .is_reference = !comparison->n_rows,
                                          .expected_output = output_named(signature, label),
                                          .batches = tare_signature_batches(signature, false),
                                          .fixed_batch = fixed_batch(signature) };
    if (out->is_reference) TARE_TRY(name_outputs(comparison, signature));
    TARE_TRY(check_outputs(signature->n_outputs, comparison));
    tare_hash_begin(&out->answers);
    out->outputs = TARE_NEW_ARRAY(&comparison->arena, struct tare_metrics, comparison->n_outputs + 1);
    out->first = tare_arena_calloc(&comparison->arena, comparison->n_outputs + 1, sizeof *out->first);
    if (!out->outputs || !out->first) return TARE_NO_MEMORY;
    if (out->is_reference || !comparison->keeps_changed) return TARE_OK;
    out->changed = TARE_NEW_ARRAY(&comparison->arena, struct tare_changed, comparison->n_outputs + 1);
    return out->changed ? TARE_OK : TARE_NO_MEMORY;
}

void tare_comparison_pass_end(struct tare_comparison_pass *pass) {
    for (size_t i = 0; pass->outputs && i < pass->comparison->n_outputs; i++)
        tare_metrics_reset(&pass->outputs[i]);
}

/* Runs all records, and computes the caller's metric of the first output. */
static tare_status run_pass(struct tare_comparison_pass *pass, struct tare_session **sessions, int threads,
                            const struct tare_signature *signature, const struct tare_runner_options *options) {
    const struct tare_custom_metric *custom = pass->comparison->custom;
    if (custom) TARE_TRY(custom->begin(custom->arg));
    TARE_TRY(tare_run_records_on(sessions, threads, signature, options, on_record, pass));
    if (!custom || !pass->comparison->n_outputs) return TARE_OK;
    /* A value of the whole model: every output has it, so that the measured one does. */
    TARE_TRY(custom->end(custom->arg, &pass->outputs[0].custom));
    for (size_t i = 0; i < pass->comparison->n_outputs; i++) {
        pass->outputs[i].has_custom = true;
        pass->outputs[i].custom = pass->outputs[0].custom;
    }
    return TARE_OK;
}

/* `bytes`: of the model. */
static tare_status add_pass(struct tare_comparison_row **out, struct tare_comparison_pass *pass, int64_t bytes,
                            double seconds) {
    struct tare_comparison *comparison = pass->comparison;
    struct tare_comparison_row *row;
    if (!TARE_GROW(comparison->rows, comparison->n_rows, comparison->capacity)) return TARE_NO_MEMORY;
    row = &comparison->rows[comparison->n_rows];
    *row = (struct tare_comparison_row){
        .outputs = pass->outputs, .changed = pass->changed, .size_bytes = bytes, .seconds = seconds
    };
    for (size_t i = 0; i < comparison->n_outputs; i++)
        tare_metrics_finish(&row->outputs[i], comparison->n_rows ? &comparison->rows[0].outputs[i] : NULL);
    tare_key_finish(row->answers, &pass->answers);
    pass->outputs = NULL;
    comparison->records = pass->record;
    comparison->n_rows++;
    *out = row;
    return TARE_OK;
}

static tare_status begin(struct tare_comparison_pass *out, struct tare_comparison *comparison,
                         const struct tare_signature *signature, const struct tare_evaluation *evaluation) {
    if (!comparison->n_rows) {
        comparison->target_key = evaluation->target_key;
        comparison->metric = evaluation->metric;
    }
    /* What is expected of an output is no class, also under the key "label". */
    const bool labelled =
        evaluation->label && !(evaluation->target_key && strcmp(evaluation->label, evaluation->target_key) == 0);
    return tare_comparison_pass_begin(out, comparison, signature, labelled ? evaluation->label : "");
}

tare_status tare_comparison_add(struct tare_comparison_row **out, struct tare_comparison *comparison,
                                const struct tare_graph_model *model, const struct tare_signature *signature,
                                const struct tare_evaluation *evaluation) {
    struct tare_comparison_pass pass;
    struct tare_session **sessions;
    int64_t bytes;
    int threads;
    double seconds;
    tare_status status;
    TARE_TRY(tare_session_check_ops(model, signature));
    TARE_TRY(choose_threads(&threads, evaluation, model, signature));
    TARE_TRY(begin(&pass, comparison, signature, evaluation));
    status = tare_sessions_new(&sessions, threads, model, NULL);
    seconds = tare_clock_seconds();
    if (status == TARE_OK) status = run_pass(&pass, sessions, threads, signature, &evaluation->records);
    seconds = tare_clock_seconds() - seconds;
    tare_sessions_free(sessions, threads);
    if (status == TARE_OK) status = tare_model_weight_bytes(&bytes, model);
    if (status == TARE_OK) status = add_pass(out, &pass, bytes, seconds);
    if (status == TARE_OK && comparison->n_rows == 1) status = tare_measure_check_requested(comparison);
    tare_comparison_pass_end(&pass);
    return status;
}

/* ---- outputs that are known ---- */

static tare_status replay_records(struct tare_comparison_pass *pass, const struct tare_comparison *known,
                                  struct tare_record_reader *reader, const struct tare_runner_options *options) {
    for (;;) {
        struct tare_sample sample;
        struct tare_record where;
        bool end = false;
        TARE_TRY(tare_flag_check(options->interrupted));
        TARE_TRY(tare_record_reader_next(&sample, &where, &end, reader));
        if (end) return TARE_OK;
        const struct tare_tensor *outputs = tare_reference_store_get(&known->references, pass->record);
        const tare_status status = outputs ? tare_comparison_pass_record(pass, &sample, outputs)
                                           : TARE_FAIL(TARE_INTERNAL, "more records than the first model saw");
        tare_sample_reset(&sample);
        TARE_TRY(status);
    }
}

static tare_status replay(struct tare_comparison_pass *pass, const struct tare_comparison *known,
                          const struct tare_signature *signature, const struct tare_runner_options *options) {
    struct tare_runner_options reading = *options;
    struct tare_record_reader reader = { 0 };
    tare_status status = tare_runner_find_rows(&reading, signature);
    if (status == TARE_OK) status = tare_record_reader_open(&reader, &reading);
    if (status == TARE_OK) status = replay_records(pass, known, &reader, &reading);
    tare_record_reader_close(&reader);
    return status;
}

tare_status tare_comparison_add_known(struct tare_comparison_row **out, struct tare_comparison *comparison,
                                      const struct tare_comparison *known, const struct tare_signature *signature,
                                      const struct tare_evaluation *evaluation) {
    struct tare_comparison_pass pass;
    tare_status status;
    TARE_TRY(begin(&pass, comparison, signature, evaluation));
    TARE_TRY(check_outputs(known->references.n_outputs, comparison));
    status = replay(&pass, known, signature, &evaluation->records);
    if (status == TARE_OK) status = add_pass(out, &pass, known->rows[0].size_bytes, known->rows[0].seconds);
    if (status == TARE_OK) status = tare_measure_check_requested(comparison);
    tare_comparison_pass_end(&pass);
    return status;
}
