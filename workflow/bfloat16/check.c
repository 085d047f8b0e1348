/* Both forms run the same few records. Every float tensor of the float form is stored and compared with the tensor of
 * the same node in the converted form, by what varies between records: a mean of 300 would hide an error of 1.
 *
 * A node is a cause if it is below the limit and none of its inputs is; its values and the product before it become
 * float32, and if they already are, those of its inputs. Where that does not help, rounding adds up over the network,
 * which amplifies what its first layers add: products become float32 from the inputs on, until the outputs are above
 * the limit. */
#include "workflow/bfloat16/check.h"
#include "datasets/data_file.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"
#include "graph/clone.h"
#include "graph/flags.h"
#include "graph/op.h"
#include "workflow/bfloat16/places.h"
#include "workflow/calibration_data.h"

#include <math.h>
#include <string.h>

enum { MOST_ROUNDS = 32 };
static const double HELPS = 6; /* dB */

struct check {
    struct tare_arena *arena;
    const struct tare_graph_model *model;
    const struct tare_converter_options *converter;
    const struct tare_quantize_request *request;
    const struct tare_signature *signature; /* of the form that runs */
    struct tare_bf16_places places;
    int record;
    bool converted, observes;
    struct tare_bfloat16_checked *out;
};

/* ---- running ---- */

static bool is_observed(void *arg, const struct tare_node *node, size_t output) {
    (void)arg;
    return output == 0 && tare_dtype_is_floating(tare_dtype_base(node->output_dtypes[0]));
}

static tare_status take(struct check *check, const char *function, const char *name, const struct tare_node *node,
                        const struct tare_tensor *value) {
    struct tare_bf16_place *place = tare_bf16_place_of(&check->places, function, name, !check->converted);
    if (!place) return check->converted ? TARE_OK : TARE_NO_MEMORY;
    if (check->converted) {
        tare_bf16_place_compare(place, check->record, value);
        return TARE_OK;
    }
    place->node = node;
    return tare_bf16_place_store(&check->places, place, check->record, value);
}

static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    const struct check *check = arg;
    const char *function = check->converted ? tare_graph_body_name(node->graph) : node->graph->name;
    (void)output;
    if (!tare_dtype_is_floating(value->dtype)) return TARE_OK;
    return take(arg, function, node->name, node, value);
}

static tare_status add_record(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                              const struct tare_tensor *outputs) {
    struct check *check = arg;
    (void)sample;
    (void)where;
    for (size_t i = 0; i < check->signature->n_outputs; i++) {
        if (tare_dtype_is_floating(outputs[i].dtype))
            TARE_TRY(take(check, check->signature->key, check->signature->outputs[i].key, NULL, &outputs[i]));
    }
    check->record++;
    return TARE_OK;
}

static tare_status run_group(struct check *check, const struct tare_graph_model *model,
                             const struct tare_data_group *group) {
    const struct tare_session_options plain = { .seed = 1 };
    const struct tare_runner_options options = { .paths = (const char *const *)group->files.names,
                                                 .n_paths = group->files.count,
                                                 .limit = TARE_BF16_RECORDS,
                                                 .spec = check->request->records.spec,
                                                 .feedback = &check->request->records.feedback };
    struct tare_session *session = NULL;
    tare_status status = tare_session_new(&session, model, &plain);
    check->record = 0;
    check->signature = tare_model_find_signature(model, group->signature->key);
    if (status == TARE_OK && check->observes) tare_session_observe(session, observe, is_observed, check);
    if (status == TARE_OK && check->signature)
        status = tare_error_prefix(tare_run_records(session, check->signature, &options, add_record, check),
                                   "signature '%s'", group->signature->key);
    if (check->record > check->out->records) check->out->records = check->record;
    tare_session_free(session);
    return status;
}

static tare_status run_all(struct check *check, const struct tare_graph_model *model,
                           const struct tare_data_groups *groups, bool converted) {
    check->converted = converted;
    for (size_t i = 0; i < check->places.count && converted; i++)
        check->places.items[i].noise = check->places.items[i].compared = 0;
    for (size_t i = 0; i < groups->count; i++)
        TARE_TRY(run_group(check, model, &groups->items[i]));
    return TARE_OK;
}

/* ---- what stays float32 ---- */

/* The place of an input: the node that computes it, through calls not looked at. */
static struct tare_bf16_place *place_before(struct check *check, struct tare_edge edge) {
    return tare_bf16_place_of(&check->places, edge.node->graph->name, edge.node->name, false);
}

/* Of an argument, the callers would be the inputs: it is a cause where no node is one. */
static bool is_cause(struct check *check, const struct tare_bf16_place *place, bool arguments) {
    if (!place->node || tare_bf16_place_sqnr(place) >= TARE_BFLOAT16_DB || tare_node_is_arg(place->node) != arguments)
        return false;
    if (arguments) return true;
    for (size_t i = 0; i < place->node->n_inputs; i++) {
        const struct tare_bf16_place *before = place_before(check, place->node->inputs[i]);
        if (before && before->compared && tare_bf16_place_sqnr(before) < TARE_BFLOAT16_DB) return false;
    }
    return true;
}

static tare_status force(struct check *check, struct tare_bf16_place *place, bool *added) {
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

static tare_status force_kind(struct check *check, bool arguments, bool *added) {
    for (size_t i = 0; i < check->places.count; i++) {
        struct tare_bf16_place *place = &check->places.items[i];
        if (!is_cause(check, place, arguments)) continue;
        if (!place->forced) {
            TARE_TRY(force(check, place, added));
            continue;
        }
        for (size_t k = 0; !arguments && k < place->node->n_inputs; k++) {
            struct tare_bf16_place *before = place_before(check, place->node->inputs[k]);
            if (before) TARE_TRY(force(check, before, added));
        }
    }
    return TARE_OK;
}

/* *added: whether the next conversion keeps more in float32. */
static tare_status force_causes(struct check *check, bool *added) {
    TARE_TRY(force_kind(check, false, added));
    return *added ? TARE_OK : force_kind(check, true, added);
}

static void forget_causes(struct check *check) {
    check->out->n_nodes = 0;
    for (size_t i = 0; i < check->places.count; i++)
        check->places.items[i].forced = false;
}

static bool is_product(const struct tare_bf16_place *place) {
    return place->node && !tare_node_is_arg(place->node) && tare_node_has_flag(place->node, TARE_OP_PRODUCT);
}

/* The first products in the order in which they run: one more, and half of what there is already. */
static tare_status force_products(struct check *check, bool *added) {
    size_t most = 1;
    for (size_t i = 0; i < check->places.count; i++)
        most += check->places.items[i].forced && is_product(&check->places.items[i]);
    most = (most + 1) / 2;
    for (size_t i = 0; i < check->places.count && most; i++) {
        bool forced = false;
        if (is_product(&check->places.items[i])) TARE_TRY(force(check, &check->places.items[i], &forced));
        most -= forced;
        *added |= forced;
    }
    return TARE_OK;
}

/* ---- all of it ---- */

static double least(const struct check *check) {
    double q = 999;
    for (size_t i = 0; i < check->places.count; i++)
        if (!check->places.items[i].node) q = fmin(q, tare_bf16_place_sqnr(&check->places.items[i]));
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

/* Once more, node by node. */
static tare_status observe_nodes(struct check *check, const struct tare_data_groups *groups) {
    check->observes = true;
    TARE_TRY(run_all(check, check->model, groups, false));
    return run_converted(check, groups);
}

static tare_status find_nodes(struct check *check, const struct tare_data_groups *groups) {
    bool adds_up = false;
    TARE_TRY(run_converted(check, groups));
    check->out->before = least(check);
    if (check->out->before >= TARE_BFLOAT16_DB) return TARE_OK;
    TARE_TRY(observe_nodes(check, groups));
    for (int round = 0; round < MOST_ROUNDS && least(check) < TARE_BFLOAT16_DB; round++) {
        bool added = false;
        if (!adds_up && round > 0 && least(check) < check->out->before + HELPS) {
            forget_causes(check);
            adds_up = true;
        }
        if (!adds_up) TARE_TRY(force_causes(check, &added));
        if (!added) TARE_TRY(force_products(check, &added));
        if (!added) return TARE_OK;
        TARE_TRY(run_converted(check, groups));
    }
    return TARE_OK;
}

static tare_status list_outputs(const struct check *check) {
    struct tare_bfloat16_checked *out = check->out;
    out->outputs = TARE_NEW_ARRAY(check->arena, struct tare_bfloat16_output, check->places.count + 1);
    if (!out->outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < check->places.count; i++) {
        const struct tare_bf16_place *place = &check->places.items[i];
        if (!place->node)
            out->outputs[out->n_outputs++] =
                (struct tare_bfloat16_output){ place->function, place->name, tare_bf16_place_sqnr(place) };
    }
    return TARE_OK;
}

static bool can_run_twice(const struct tare_data_groups *groups) {
    for (size_t i = 0; i < groups->count; i++)
        if (tare_data_read_once((const char *const *)groups->items[i].files.names, groups->items[i].files.count))
            return false;
    return groups->count > 0;
}

static tare_status check_groups(struct check *check, const struct tare_data_groups *groups) {
    tare_status status = run_all(check, check->model, groups, false);
    if (status == TARE_UNSUPPORTED) {
        check->out->skipped = tare_arena_strdup(check->arena, tare_error_text());
        if (!check->out->skipped) return TARE_NO_MEMORY;
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
    struct check check = { .arena = arena,
                           .model = model,
                           .converter = converter,
                           .request = request,
                           .out = out,
                           .places = { .arena = arena } };
    struct tare_data_groups groups = { 0 };
    const struct tare_signature *plain = NULL;
    tare_status status = TARE_OK;
    memset(out, 0, sizeof *out);
    if (!request->data.count) return TARE_OK;
    if (request->signature) TARE_TRY(tare_pick_signature(&plain, model, request->signature));
    TARE_CHECK(tare_data_groups_make(&groups, model, request->data.items, request->data.count, plain));
    if (can_run_twice(&groups))
        status = check_groups(&check, &groups);
    else if (groups.count)
        out->skipped = "the samples can be read only once";
done:
    tare_bf16_places_free(&check.places);
    tare_data_groups_free(&groups);
    return status;
}
