/* Both forms run the same few records. Every float tensor of the float form is stored and compared with the tensor of
 * the same node in the converted form, by what varies between records: a mean of 300 would hide an error of 1. A node
 * is a cause if it is below the limit and none of its inputs is; its values and the product before it become float32,
 * and if they already are, those of its inputs. */
#include "workflow/bfloat16_check.h"
#include "base/map.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"
#include "graph/clone.h"
#include "workflow/calibration_data.h"

#include <math.h>
#include <string.h>

enum { RECORDS = 8, MOST_ROUNDS = 12, MOST_BYTES = 1 << 30 };
static const double LIMIT = 30;

/* One node's first float output, or an output of the signature. */
struct place {
    const char *function, *name;
    const struct tare_node *node; /* of the float form; NULL: an output */
    struct tare_tensor values[RECORDS];
    double noise;
    int count, compared;
    bool forced;
};

struct check {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    const struct tare_converter_options *converter;
    const struct tare_quantize_request *request;
    const struct tare_signature *signature; /* of the form that runs */
    struct place *places;
    size_t count, capacity;
    struct tare_map by_name; /* "function/node" -> index + 1 */
    int64_t bytes;
    int record;
    bool converted, observes;
    struct tare_bfloat16_checked *out;
};

/* ---- places ---- */

static struct place *place_of(struct check *check, const char *function, const char *name) {
    const char *stem = tare_bf16_function_stem(check->arena, function);
    const char *key = stem ? tare_arena_printf(check->arena, "%s\n%s", stem, name) : NULL;
    const uintptr_t found = key ? (uintptr_t)tare_map_get(&check->by_name, key) : 0;
    struct place *grown;
    if (!key || found) return key ? &check->places[found - 1] : NULL;
    if (check->converted) return NULL;
    grown = tare_arena_append(check->arena, check->places, check->count, sizeof *grown);
    if (!grown || !tare_map_set(&check->by_name, key, (void *)(uintptr_t)(check->count + 1))) return NULL;
    check->places = grown;
    check->places[check->count] = (struct place){ .function = stem, .name = name };
    return &check->places[check->count++];
}

static double squared_error(const struct tare_tensor *want, const struct tare_tensor *got) {
    double noise = 0;
    for (int64_t i = 0; i < want->elements; i++) {
        const double x = tare_tensor_get_f64(want, i), y = tare_tensor_get_f64(got, i);
        if (x != y && !(isnan(x) && isnan(y))) noise += isfinite(x - y) ? (x - y) * (x - y) : INFINITY;
    }
    return noise;
}

static bool same_shapes(const struct place *place) {
    for (int r = 1; r < place->count; r++)
        if (!tare_shape_equal(&place->values[r].shape, &place->values[0].shape)) return false;
    return place->count > 1;
}

static double sum_of(const struct place *place, int64_t i, double *squares) {
    double sum = 0;
    for (int r = 0; r < place->count; r++) {
        const double x = tare_tensor_get_f64(&place->values[r], i);
        sum += isfinite(x) ? x : 0;
        *squares += isfinite(x) ? x * x : 0;
    }
    return sum;
}

/* The sum of squared distances from the mean over records, element by element; over all elements if records differ in
 * shape. */
static double signal_of(const struct place *place) {
    double signal = 0, sum = 0, squares = 0;
    int64_t count = 0;
    for (int64_t i = 0; same_shapes(place) && i < place->values[0].elements; i++) {
        double own = 0;
        const double total = sum_of(place, i, &own);
        signal += own - total * total / place->count;
    }
    if (same_shapes(place)) return signal;
    for (int r = 0; r < place->count; r++)
        for (int64_t i = 0; i < place->values[r].elements; i++, count++) {
            const double x = tare_tensor_get_f64(&place->values[r], i);
            sum += isfinite(x) ? x : 0;
            squares += isfinite(x) ? x * x : 0;
        }
    return count ? squares - sum * sum / (double)count : 0;
}

/* 999: no error, or a value that is the same in all records, of which nothing varies. */
static double sqnr_of(const struct place *place) {
    const double signal = place->compared ? signal_of(place) : 0;
    if (!place->compared || place->noise == 0 || signal <= 0) return 999;
    return 10 * log10(signal / place->noise);
}

/* ---- running ---- */

static bool is_observed(void *arg, const struct tare_node *node, size_t output) {
    (void)arg;
    return output == 0 && tare_dtype_is_floating(tare_dtype_base(node->output_dtypes[0]));
}

/* Loops run a node several times: the first is compared. */
static tare_status take(struct check *check, struct place *place, const struct tare_tensor *value) {
    if (!check->converted && place->count == check->record && check->record < RECORDS) {
        check->bytes += tare_tensor_bytes(value);
        if (check->bytes > MOST_BYTES) return TARE_OK;
        return tare_tensor_copy(&place->values[place->count++], value);
    }
    if (check->converted && place->compared == check->record && check->record < place->count &&
        tare_shape_equal(&value->shape, &place->values[check->record].shape)) {
        place->noise += squared_error(&place->values[check->record], value);
        place->compared++;
    }
    return TARE_OK;
}

static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    struct check *check = arg;
    struct place *place;
    (void)output;
    if (!tare_dtype_is_floating(value->dtype)) return TARE_OK;
    place = place_of(check, node->graph->name, node->name);
    if (!place) return check->converted ? TARE_OK : TARE_NO_MEMORY;
    if (!check->converted) place->node = node;
    return take(check, place, value);
}

static tare_status take_record(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                               const struct tare_tensor *outputs) {
    struct check *check = arg;
    (void)sample;
    (void)where;
    for (size_t i = 0; i < check->signature->n_outputs; i++) {
        struct place *place;
        if (!tare_dtype_is_floating(outputs[i].dtype)) continue;
        place = place_of(check, check->signature->key, check->signature->outputs[i].key);
        if (!place) return check->converted ? TARE_OK : TARE_NO_MEMORY;
        TARE_TRY(take(check, place, &outputs[i]));
    }
    check->record++;
    return TARE_OK;
}

static tare_status run_group(struct check *check, const struct tare_graph_model *model,
                             const struct tare_data_group *group) {
    const struct tare_session_options plain = { .seed = 1 };
    const struct tare_runner_options options = { .paths = (const char *const *)group->files.names,
                                                 .n_paths = group->files.count,
                                                 .limit = RECORDS,
                                                 .spec = check->request->records.spec,
                                                 .feedback = &check->request->records.feedback };
    struct tare_session *session = NULL;
    tare_status status = tare_session_new(&session, model, &plain);
    check->record = 0;
    check->signature = tare_model_find_signature(model, group->signature->key);
    if (status == TARE_OK && check->observes) tare_session_observe(session, observe, is_observed, check);
    if (status == TARE_OK && check->signature)
        status = tare_error_prefix(tare_run_records(session, check->signature, &options, take_record, check),
                                   "signature '%s'", group->signature->key);
    if (check->record > check->out->records) check->out->records = check->record;
    tare_session_free(session);
    return status;
}

static tare_status run_all(struct check *check, const struct tare_graph_model *model,
                           const struct tare_data_groups *groups, bool converted) {
    check->converted = converted;
    for (size_t i = 0; i < check->count && converted; i++)
        check->places[i].noise = check->places[i].compared = 0;
    for (size_t i = 0; i < groups->count; i++)
        TARE_TRY(run_group(check, model, &groups->items[i]));
    return TARE_OK;
}

/* ---- what stays float32 ---- */

/* The place of an input: the node that computes it, through calls not looked at. */
static struct place *place_before(struct check *check, struct tare_edge edge) {
    check->converted = true; /* adds none */
    return place_of(check, edge.node->graph->name, edge.node->name);
}

/* Of an argument, the callers would be the inputs: it is a cause where no node is one. */
static bool is_cause(struct check *check, const struct place *place, bool arguments) {
    if (!place->node || sqnr_of(place) >= LIMIT || tare_node_is_arg(place->node) != arguments) return false;
    if (arguments) return true;
    for (size_t i = 0; i < place->node->n_inputs; i++) {
        const struct place *before = place_before(check, place->node->inputs[i]);
        if (before && before->compared && sqnr_of(before) < LIMIT) return false;
    }
    return true;
}

static tare_status force(struct check *check, struct place *place, bool *added) {
    struct tare_bfloat16_checked *out = check->out;
    struct tare_bf16_node *grown;
    if (place->forced || !place->node) return TARE_OK;
    grown = tare_arena_append(check->arena, out->nodes, out->n_nodes, sizeof *grown);
    if (!grown) return TARE_NO_MEMORY;
    out->nodes = grown;
    out->nodes[out->n_nodes++] = (struct tare_bf16_node){ place->function, place->name };
    place->forced = *added = true;
    return TARE_OK;
}

/* *added: whether the next conversion keeps more in float32. */
static tare_status force_causes(struct check *check, bool arguments, bool *added) {
    for (size_t i = 0; i < check->count; i++) {
        struct place *place = &check->places[i];
        if (!is_cause(check, place, arguments)) continue;
        if (!place->forced) {
            TARE_TRY(force(check, place, added));
            continue;
        }
        for (size_t k = 0; !arguments && k < place->node->n_inputs; k++) {
            struct place *before = place_before(check, place->node->inputs[k]);
            if (before) TARE_TRY(force(check, before, added));
        }
    }
    return TARE_OK;
}

/* ---- all of it ---- */

static double least(const struct check *check) {
    double q = 999;
    for (size_t i = 0; i < check->count; i++)
        if (!check->places[i].node) q = fmin(q, sqnr_of(&check->places[i]));
    return q;
}

static tare_status run_converted(struct check *check, const struct tare_data_groups *groups) {
    struct tare_converter_options converter = *check->converter;
    struct tare_graph_model *clone = NULL;
    struct tare_conversion conversion;
    tare_status status = tare_model_clone(&clone, check->model);
    converter.float_nodes = check->out->nodes;
    converter.n_float_nodes = check->out->n_nodes;
    if (status == TARE_OK) status = tare_pipeline_place(&conversion, check->arena, clone, &converter, NULL);
    if (status == TARE_OK) status = run_all(check, clone, groups, true);
    tare_model_free(clone);
    return status;
}

static tare_status find_nodes(struct check *check, const struct tare_data_groups *groups) {
    for (int round = 0; round < MOST_ROUNDS; round++) {
        bool added = false;
        TARE_TRY(run_converted(check, groups));
        if (!check->observes) check->out->before = least(check);
        if (least(check) >= LIMIT) return TARE_OK;
        if (!check->observes) { /* once more, node by node */
            check->observes = true;
            TARE_TRY(run_all(check, check->model, groups, false));
            TARE_TRY(run_converted(check, groups));
        }
        TARE_TRY(force_causes(check, false, &added));
        if (!added) TARE_TRY(force_causes(check, true, &added));
        if (!added) return TARE_OK;
    }
    return run_converted(check, groups);
}

static tare_status list_outputs(const struct check *check) {
    struct tare_bfloat16_checked *out = check->out;
    out->outputs = TARE_NEW_ARRAY(check->arena, struct tare_bfloat16_output, check->count + 1);
    if (!out->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < check->count; i++)
        if (!check->places[i].node)
            out->outputs[out->n_outputs++] =
                (struct tare_bfloat16_output){ check->places[i].function, check->places[i].name,
                                               sqnr_of(&check->places[i]) };
    return TARE_OK;
}

static bool can_run_twice(const struct tare_data_groups *groups) {
    for (size_t i = 0; i < groups->count; i++)
        for (size_t k = 0; k < groups->items[i].files.count; k++)
            if (strcmp(groups->items[i].files.names[k], "-") == 0) return false;
    return groups->count > 0;
}

static tare_status check_groups(struct check *check, const struct tare_data_groups *groups) {
    tare_status status = run_all(check, check->model, groups, false);
    if (status == TARE_UNSUPPORTED) {
        check->out->skipped = tare_arena_strdup(check->arena, tare_error_text());
        check->out->records = 0;
        return tare_error_dismiss(status);
    }
    if (status == TARE_OK) status = find_nodes(check, groups);
    return status == TARE_OK ? list_outputs(check) : status;
}

tare_status tare_workflow_bfloat16_check(struct tare_bfloat16_checked *out, struct tare_arena *arena,
                                         const struct tare_graph_model *model,
                                         const struct tare_converter_options *converter,
                                         const struct tare_quantize_request *request) {
    struct check check = { .arena = arena, .model = model, .converter = converter, .request = request, .out = out };
    struct tare_data_groups groups = { 0 };
    const struct tare_signature *plain = NULL;
    tare_status status = TARE_OK;
    memset(out, 0, sizeof *out);
    if (!request->data.count) return TARE_OK;
    if (request->signature) TARE_TRY(tare_pick_signature(&plain, model, request->signature));
    TARE_CHECK(tare_data_groups_make(&groups, model, request->data.items, request->data.count, plain));
    if (can_run_twice(&groups)) status = check_groups(&check, &groups);
done:
    for (size_t i = 0; i < check.count; i++)
        for (int r = 0; r < check.places[i].count; r++)
            tare_tensor_reset(&check.places[i].values[r]);
    tare_map_free(&check.by_name);
    tare_data_groups_free(&groups);
    return status;
}
