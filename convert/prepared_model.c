/* Prepared models and their ranges. */
#include "convert/prepared_model.h"
#include "base/alloc.h"
#include "calib/format/file.h"
#include "calib/fingerprint.h"
#include "convert/pipeline.h"
#include "convert/saved_model.h"
#include "quant/layer.h"

#include <string.h>

tare_status tare_load_prepared(struct tare_graph_model **out, const char *path) {
    return tare_load_prepared_with(out, path, NULL);
}

tare_status tare_load_prepared_with(struct tare_graph_model **out, const char *path,
                                    const struct tare_op_registry *ops) {
    const struct tare_saved_model_options options = { .ops = ops };
    tare_status status;
    TARE_TRY(tare_saved_model_load(out, path, &options));
    status = tare_pipeline_prepare(*out, NULL);
    if (status == TARE_OK) return TARE_OK;
    tare_model_free(*out);
    *out = NULL;
    return tare_error_prefix(status, "%s", path);
}

/* ---- batch normalizations ---- */

/* A constant or a variable's value, of which *variable is set. */
static bool is_parameter(struct tare_edge edge, bool *variable) {
    const struct tare_node *node = edge.node;
    while (tare_node_is(node, "Identity") && node->n_inputs)
        node = node->inputs[0].node;
    *variable |= tare_node_is(node, "ReadVariableOp");
    return tare_node_is(node, "ReadVariableOp") || tare_node_is(node, "Const");
}

/* Rsqrt(variance + epsilon) of parameters: as Keras writes them behind dense layers. */
static bool is_composed_norm(const struct tare_node *node) {
    const struct tare_node *sum = tare_node_is(node, "Rsqrt") && node->n_inputs ? node->inputs[0].node : NULL;
    bool variable = false;
    if ((!tare_node_is(sum, "AddV2") && !tare_node_is(sum, "Add")) || sum->n_inputs < 2) return false;
    return is_parameter(sum->inputs[0], &variable) && is_parameter(sum->inputs[1], &variable) && variable;
}

static bool is_fused_norm(const struct tare_node *node) {
    static const char *const ops[] = { "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", NULL };
    return tare_op_is_one_of(node->op, ops) && !tare_node_bool(node, "is_training", true);
}

size_t tare_count_batch_norms(const struct tare_graph_model *model) {
    size_t count = 0;
    for (size_t f = 0; f < model->n_functions; f++)
        for (size_t i = 0; i < model->functions[f]->n_nodes; i++)
            count += is_fused_norm(model->functions[f]->nodes[i]) || is_composed_norm(model->functions[f]->nodes[i]);
    return count;
}

/* ---- calibrations of a model ---- */

static bool same_fingerprint(const struct tare_calibration *calibration, const uint64_t fingerprint[2]) {
    return calibration->fingerprint[0] == fingerprint[0] && calibration->fingerprint[1] == fingerprint[1];
}

/* The MetaGraph that the model was loaded from, prepared like a model without kept variables. */
static tare_status load_frozen(struct tare_graph_model **out, const struct tare_graph_model *model) {
    struct tare_saved_model_options options = { .ops = model->custom_ops };
    struct tare_saved_model_info info;
    const char *tags[64];
    char *text, *next = NULL;
    tare_status status;
    tare_saved_model_info(&info, model);
    text = tare_strdup(info.tags ? info.tags : "");
    if (!text) return TARE_NO_MEMORY;
    for (char *tag = strtok_r(text, ",", &next); tag && options.n_tags < 64; tag = strtok_r(NULL, ",", &next))
        tags[options.n_tags++] = tag;
    if (info.all_tags) options.tags = tags;
    status = tare_saved_model_load(out, model->path, &options);
    tare_free(text);
    TARE_TRY(status);
    status = tare_pipeline_prepare(*out, NULL);
    if (status == TARE_OK) return TARE_OK;
    tare_model_free(*out);
    *out = NULL;
    return status;
}

/* A copy with the tensor names of the model without folding. A function that was copied for its callers has the
 * statistics of only one of them. */
static tare_status rename_tensors(struct tare_calibration **out, const struct tare_calibration *calibration,
                                  const struct tare_graph_model *model, const struct tare_graph_model *frozen,
                                  const char *what) {
    for (size_t i = 0; i < frozen->n_functions; i++)
        if (!tare_model_find_function(model, frozen->functions[i]->name))
            return TARE_FAIL(TARE_UNSUPPORTED,
                             "%s: it counts copies of functions that do not exist where variables are kept "
                             "(%s); samples are needed",
                             what, frozen->functions[i]->name);
    *out = tare_calibration_new(calibration->fingerprint, calibration->settings, calibration->channels);
    if (!*out) return TARE_NO_MEMORY;
    TARE_TRY(tare_calibration_merge(*out, calibration));
    for (size_t i = 0; i < frozen->n_stand_ins; i++) {
        const struct tare_node *node = frozen->stand_ins[i].node;
        TARE_TRY(tare_calibration_rename_tensor(*out, node->graph->name, node->name, 0, frozen->stand_ins[i].original));
    }
    return TARE_OK;
}

tare_status tare_calibration_fit(struct tare_calibration **fitted, const struct tare_calibration *calibration,
                                 const struct tare_graph_model *model, const char *what) {
    uint64_t fingerprint[2], frozen_fingerprint[2];
    struct tare_graph_model *frozen;
    tare_status status;
    *fitted = NULL;
    TARE_TRY(tare_model_fingerprint_forgetting(fingerprint, model, tare_pipeline_forget));
    if (!model->keep_variables_from || !model->path || calibration->unfinished ||
        same_fingerprint(calibration, fingerprint))
        return tare_calibration_check_model(calibration, fingerprint, what);
    TARE_TRY(load_frozen(&frozen, model));
    TARE_CHECK(tare_model_fingerprint_forgetting(frozen_fingerprint, frozen, tare_pipeline_forget));
    TARE_CHECK(tare_calibration_check_model(calibration, frozen_fingerprint, what));
    status = rename_tensors(fitted, calibration, model, frozen, what);
    if (status == TARE_OK) memcpy((*fitted)->fingerprint, fingerprint, sizeof fingerprint);
done:
    tare_model_free(frozen);
    if (status == TARE_OK) return TARE_OK;
    tare_calibration_free(*fitted);
    *fitted = NULL;
    return status;
}

tare_status tare_calibration_load_for(struct tare_calibration **out, const struct tare_graph_model *model,
                                      const char *path) {
    struct tare_calibration *fitted, *loaded;
    tare_status status;
    *out = NULL;
    TARE_TRY(tare_calibration_load(&loaded, path));
    status = tare_calibration_fit(&fitted, loaded, model, path);
    if (status == TARE_OK && !fitted) {
        *out = loaded;
        return TARE_OK;
    }
    tare_calibration_free(loaded);
    *out = fitted;
    return status;
}

/* ---- ranges ---- */

tare_status tare_calibration_check_passes(const struct tare_calibration *calibration,
                                          const struct tare_quant_pass *const *passes) {
    for (size_t i = 0; passes && passes[i]; i++)
        if (passes[i]->needs_hessians && !(calibration && calibration->hessians))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "accuracy pass %s needs samples: a calibration file holds no Hessians", passes[i]->name);
    for (size_t i = 0; passes && passes[i]; i++) {
        if (!passes[i]->needs_channels || (calibration && calibration->channels)) continue;
        if (!calibration)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "accuracy pass %s needs samples or a calibration", passes[i]->name);
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "accuracy pass %s needs statistics per channel, which the calibration does not "
                         "have (tare calibrate --channels)",
                         passes[i]->name);
    }
    return TARE_OK;
}

static tare_status find_entry(void *arg, struct tare_edge edge, int64_t entry, const struct tare_quant_setting *setting,
                              bool *found, double *low, double *high) {
    const struct tare_calibration_tensor *tensor = tare_calibration_find_entry(arg, edge, entry);
    const struct tare_qscheme scheme = tare_quant_activation_scheme(setting);
    struct tare_range range;
    tare_status status;
    *found = false;
    if (!tensor) return TARE_OK;
    status = tare_algorithm_range(&range, &setting->algorithm, &tensor->statistics, &scheme);
    if (status == TARE_NOT_FOUND) tare_error_clear();
    if (status != TARE_OK) return status == TARE_NOT_FOUND ? TARE_OK : status;
    *low = range.low;
    *high = range.high;
    *found = true;
    return TARE_OK;
}

static tare_status find(void *arg, struct tare_edge edge, const struct tare_quant_setting *setting, bool *found,
                        double *low, double *high) {
    return find_entry(arg, edge, -1, setting, found, low, high);
}

static const struct tare_statistics *statistics_of(void *arg, struct tare_edge edge) {
    const struct tare_calibration_tensor *tensor = tare_calibration_find_edge(arg, edge);
    return tensor ? &tensor->statistics : NULL;
}

static const struct tare_statistics *entry_statistics_of(void *arg, struct tare_edge edge, int64_t entry) {
    const struct tare_calibration_tensor *tensor = tare_calibration_find_entry(arg, edge, entry);
    return tensor ? &tensor->statistics : NULL;
}

static const struct tare_hessian *hessian_of(void *arg, struct tare_edge edge, int64_t entry,
                                             const struct tare_hessian_form *form) {
    const struct tare_calibration *calibration = arg;
    return tare_hessians_find(calibration->hessians, edge, entry, form);
}

struct tare_quant_ranges tare_ranges_of(const struct tare_calibration *calibration) {
    if (!calibration) return (struct tare_quant_ranges){ 0 };
    return (struct tare_quant_ranges){ .find = find,
                                       .find_entry = find_entry,
                                       .arg = (void *)(uintptr_t)calibration,
                                       .statistics = statistics_of,
                                       .entry_statistics = entry_statistics_of,
                                       .hessian = hessian_of };
}
