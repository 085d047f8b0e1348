/* From files of samples to a calibration. */
#include "cli/calibrating.h"
#include "base/alloc.h"
#include "calib/fingerprint.h"
#include "calib/observed.h"
#include "cli/command.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"
#include "quant/rewrite.h"

struct observation {
    struct tare_calibration *calibration;
    struct tare_tally *tally;
    const char *signature, *file;
    int64_t record, index; /* that runs now: its number in the file, and in all files */
    const struct tare_session *session;
    struct tare_observed reach; /* the functions that the signature can reach */
    int64_t *runs;              /* of each of them so far */
};

/* The calibration is the caller's own: the lookup only promises not to change it. */
static struct tare_calibration_tensor *observed(const struct observation *o, const struct tare_node *node, size_t output) {
    const struct tare_edge edge = { .node = (struct tare_node *)(uintptr_t)node, .index = (int)output };
    return (struct tare_calibration_tensor *)(uintptr_t)tare_calibration_find_edge(o->calibration, edge);
}

static bool wants(void *arg, const struct tare_node *node, size_t output) {
    return observed(arg, node, output) != NULL;
}

static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    const struct observation *o = arg;
    struct tare_calibration_tensor *tensor = observed(o, node, output);
    const struct tare_place place = { .input = tare_calibration_find_input(o->calibration, o->signature, o->file),
                                      .record = o->record, .index = o->index };
    if (!tensor || !tare_dtype_is_floating(value->dtype)) return TARE_OK;
    return tare_statistics_add(&tensor->statistics, o->tally, value, &place, 1, TARE_BATCH_SHARED);
}

static tare_status add_tensors(struct tare_calibration *calibration, const struct tare_model *model) {
    struct tare_arena arena = { 0 };
    struct tare_edge_list edges;
    tare_status status;
    TARE_CHECK(tare_quant_observed_edges(&edges, &arena, model));
    for (size_t i = 0; i < edges.count; i++) {
        struct tare_calibration_tensor *tensor;
        const struct tare_node *node = edges.edges[i].node;
        TARE_CHECK(tare_calibration_add_tensor(calibration, node->graph->name, node->name, edges.edges[i].index, &tensor));
    }
done:
    tare_arena_free(&arena);
    return status;
}

static bool wants_none(void *arg, const struct tare_node *node, size_t output) {
    (void)arg;
    (void)node;
    (void)output;
    return false;
}

/* Lists the functions, and which of them are sides of branches, so that those stand in the file that no record takes. */
static tare_status add_functions(struct observation *o, const struct tare_signature *signature) {
    TARE_TRY(tare_observed_make(&o->reach, signature, wants_none, NULL));
    if (!(o->runs = tare_calloc(o->reach.n_functions + 1, sizeof *o->runs))) return TARE_NO_MEMORY;
    for (size_t i = 0; i < o->reach.n_functions; i++)
        TARE_TRY(tare_calibration_add_function(o->calibration, o->reach.functions[i]->name, NULL));
    for (size_t i = 0; i < o->reach.n_choices; i++)
        TARE_TRY(tare_coverage_add_node(&o->calibration->coverage, o->reach.choices[i]));
    return TARE_OK;
}

static tare_status count_functions(struct observation *o) {
    for (size_t i = 0; i < o->reach.n_functions; i++) {
        const int64_t runs = tare_session_function_runs(o->session, o->reach.functions[i]);
        struct tare_calibration_function *function;
        TARE_TRY(tare_calibration_add_function(o->calibration, o->reach.functions[i]->name, &function));
        if (runs > o->runs[i]) function->records++;
        o->runs[i] = runs;
    }
    return TARE_OK;
}

static tare_status count_record(void *arg, const struct tare_sample *sample, const struct tare_provenance *where,
                                const struct tare_tensor *outputs) {
    struct observation *o = arg;
    const int32_t input = tare_calibration_find_input(o->calibration, o->signature, o->file);
    (void)sample;
    (void)where;
    (void)outputs;
    TARE_TRY(tare_record_set_add(&o->calibration->inputs[input].records, o->record, o->record + 1));
    TARE_TRY(count_functions(o));
    o->record++;
    o->index++;
    return TARE_OK;
}

/* One record at a time, so that each extreme and NaN is known by its record. */
static tare_status observe_file(struct observation *o, struct tare_session *session,
                                const struct tare_signature *signature, int64_t limit,
                                const struct tare_dataset_spec *spec) {
    struct tare_runner_options options = { .paths = &o->file, .n_paths = 1, .batch = 1, .limit = limit, .spec = spec,
                                           .interrupted = &tare_interrupted };
    TARE_TRY(tare_calibration_add_input(o->calibration, o->signature, o->file, NULL));
    o->record = 0;
    return tare_run_records(session, signature, &options, count_record, o);
}

tare_status tare_calibrate_files(struct tare_calibration **out, const struct tare_model *model, const char *signature,
                                 const char *const *paths, size_t n_paths, int64_t limit,
                                 const struct tare_dataset_spec *spec) {
    struct observation o = { 0 };
    const struct tare_signature *chosen;
    struct tare_session *session = NULL;
    uint64_t fingerprint[2];
    tare_status status;
    TARE_CHECK(tare_pick_signature(&chosen, model, signature));
    TARE_CHECK(tare_model_fingerprint(fingerprint, model));
    status = TARE_NO_MEMORY;
    if (!(o.calibration = tare_calibration_new(fingerprint, "observe=quantizable", false)) || !(o.tally = tare_tally_new()))
        goto done;
    o.signature = chosen->key;
    TARE_CHECK(add_tensors(o.calibration, model));
    TARE_CHECK(add_functions(&o, chosen));
    TARE_CHECK(tare_session_new(&session, model, NULL));
    o.session = session;
    tare_session_observe(session, observe, wants, &o);
    for (size_t i = 0; i < n_paths && (!limit || o.index < limit); i++) {
        o.file = paths[i];
        TARE_CHECK(observe_file(&o, session, chosen, limit ? limit - o.index : 0, spec));
    }
done:
    tare_session_free(session);
    tare_tally_free(o.tally);
    tare_observed_free(&o.reach);
    tare_free(o.runs);
    if (status == TARE_OK)
        *out = o.calibration;
    else
        tare_calibration_free(o.calibration);
    return status;
}
