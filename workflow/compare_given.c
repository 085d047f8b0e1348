/* Models that are given as folders (compare --with): converted or quantized versions of the float model. They run on
 * the same records as the float model; inputs and outputs are matched by their keys in the signature. */
#include "base/file.h"
#include "convert/saved_model.h"
#include "eval/model_inputs.h"
#include "interpreter/session.h"
#include "workflow/check/compiled_row.h"
#include "workflow/compare_internal.h"

#include <string.h>

/* ---- names ---- */

static const char *last_part(struct tare_arena *arena, const char *path) {
    size_t size;
    const char *last = tare_path_last(&size, path);
    return tare_arena_strndup(arena, last, size);
}

/* The last part of the path, or the whole path if a variant or another given model has that name. */
static tare_status name_given(struct tare_compare_job *c) {
    const struct tare_option_list *with = &c->options->with;
    c->given = TARE_NEW_ARRAY(&c->result.arena, const char *, with->count + 1);
    if (!c->given) return TARE_NO_MEMORY;
    for (size_t i = 0; i < with->count; i++) {
        const char *name = last_part(&c->result.arena, with->items[i]);
        if (!name) return TARE_NO_MEMORY;
        for (size_t k = 0; k < with->count; k++) {
            const char *other = last_part(&c->result.arena, with->items[k]);
            if (!other) return TARE_NO_MEMORY;
            if (k != i && strcmp(other, name) == 0) name = with->items[i];
        }
        for (size_t k = 0; k < c->variants.count; k++)
            if (strcmp(c->variants.variants[k].name, name) == 0) name = with->items[i];
        c->given[i] = name;
    }
    return TARE_OK;
}

/* ---- signatures ---- */

static const struct tare_binding *find_binding(const struct tare_binding *bindings, size_t count, const char *key) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(bindings[i].key, key) == 0) return &bindings[i];
    return NULL;
}

static tare_status check_inputs(const struct tare_signature *signature, const struct tare_signature *reference) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const char *key = signature->inputs[i].key;
        if (!find_binding(reference->inputs, reference->n_inputs, key))
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "signature %s has the input '%s', which the compared model does not have (expected the "
                             "same model, converted or quantized)",
                             signature->key, key);
    }
    return TARE_OK;
}

/* `out`: the signature of the given model with the outputs of the comparison, in their order. */
static tare_status match_outputs(struct tare_signature *out, struct tare_arena *arena,
                                 const struct tare_signature *signature, const char *const *keys, size_t n_keys) {
    struct tare_binding *outputs = TARE_NEW_ARRAY(arena, struct tare_binding, n_keys + 1);
    if (!outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_keys; i++) {
        const struct tare_binding *found = find_binding(signature->outputs, signature->n_outputs, keys[i]);
        if (!found)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "signature %s has no output '%s', which the compared model has (expected the same model, "
                             "converted or quantized)",
                             signature->key, keys[i]);
        outputs[i] = *found;
    }
    *out = *signature;
    out->outputs = outputs;
    out->n_outputs = n_keys;
    return TARE_OK;
}

static tare_status find_signature(const struct tare_signature **out, const struct tare_graph_model *model,
                                  const char *key) {
    *out = tare_model_find_signature(model, key);
    return *out ? TARE_OK : TARE_FAIL(TARE_NOT_FOUND, "there is no signature '%s', which the compared model has", key);
}

/* ---- before the run ---- */

static tare_status check_one(const struct tare_graph_model *model, const struct tare_signature *reference) {
    const char **keys;
    struct tare_arena arena = { 0 };
    const struct tare_signature *signature;
    struct tare_signature matched;
    tare_status status;
    TARE_TRY(find_signature(&signature, model, reference->key));
    TARE_TRY(tare_session_check_ops(model, signature));
    TARE_TRY(check_inputs(signature, reference));
    keys = TARE_NEW_ARRAY(&arena, const char *, reference->n_outputs + 1);
    for (size_t i = 0; keys && i < reference->n_outputs; i++)
        keys[i] = reference->outputs[i].key;
    status = keys ? match_outputs(&matched, &arena, signature, keys, reference->n_outputs) : TARE_NO_MEMORY;
    tare_arena_free(&arena);
    return status;
}

static bool has_modules(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (tare_node_is(graph->nodes[i], "XlaCallModule")) return true;
    return false;
}

/* A model to look at, unless it has StableHLO modules: their ops are known once they are expanded. */
static tare_status load_given(struct tare_graph_model **out, const char *path,
                              const struct tare_saved_model_options *look) {
    const struct tare_saved_model_options whole = { .ops = look->ops, .without_values = true };
    TARE_TRY(tare_saved_model_load(out, path, look));
    bool found = has_modules((*out)->main);
    for (size_t i = 0; i < (*out)->n_functions && !found; i++)
        found = has_modules((*out)->functions[i]);
    if (!found) return TARE_OK;
    tare_model_free(*out);
    return tare_saved_model_load(out, path, &whole);
}

tare_status tare_workflow_compare_check_given(struct tare_compare_job *c) {
    const struct tare_saved_model_options look = { .ops = c->task->ops, .without_values = true, .read_only = true };
    const struct tare_option_list *with = &c->options->with;
    const struct tare_signature *reference;
    struct tare_graph_model *model, *other;
    tare_status status;
    if (!with->count) return TARE_OK;
    TARE_TRY(name_given(c));
    TARE_TRY(tare_saved_model_load(&model, c->task->model, &look));
    TARE_CHECK(tare_pick_signature(&reference, model, c->options->signature));
    for (size_t i = 0; i < with->count && status == TARE_OK; i++) {
        TARE_CHECK(load_given(&other, with->items[i], &look));
        status = tare_error_prefix(check_one(other, reference), "%s", with->items[i]);
        tare_model_free(other);
    }
done:
    tare_model_free(model);
    return status;
}

/* ---- the run ---- */

static tare_status run_on(struct tare_compare_job *c, struct tare_graph_model *model, size_t index) {
    struct tare_comparison *result = &c->result;
    const struct tare_signature *found;
    struct tare_signature signature;
    struct tare_comparison_row *row;
    TARE_TRY(find_signature(&found, model, result->signature));
    TARE_TRY(match_outputs(&signature, &result->arena, found, result->output_keys, result->n_outputs));
    TARE_TRY(tare_comparison_add(&row, result, model, &signature, &c->evaluation));
    row->method = c->given[index];
    row->path = tare_arena_strdup(&result->arena, c->options->with.items[index]);
    if (!row->path) return TARE_NO_MEMORY;
    if (c->options->compile) TARE_TRY(tare_check_compile_row(row, result, model, found->key, c->compiled));
    return tare_comparison_estimate(row, result, model, found, false);
}

tare_status tare_workflow_compare_run_given(struct tare_compare_job *c, size_t index) {
    const struct tare_saved_model_options options = { .ops = c->task->ops };
    struct tare_graph_model *model;
    tare_status status;
    TARE_TRY(tare_saved_model_load(&model, c->options->with.items[index], &options)); /* errors name the path */
    status = run_on(c, model, index);
    tare_model_free(model);
    return tare_error_prefix(status, "%s", c->options->with.items[index]);
}
