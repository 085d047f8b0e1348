/* Two requests of drawn numbers are enough: what a row's result depends on besides the row shows in its bits. */
#include "workflow/batching/rows_check.h"
#include "base/alloc.h"
#include "datasets/data_file.h"
#include "eval/model_inputs.h"
#include "eval/served_batches.h"
#include "graph/clone.h"
#include "graph/graphs.h"
#include "interpreter/session.h"
#include "workflow/calibration_data.h"

#include <math.h>

#define DEPEND                                                                                                         \
    "the results of a request depend on the requests that are batched with it, and on the padding (compute each row "  \
    "by itself, or do not batch the function"

enum { OPEN_SIZE = 8 };            /* of dimensions that the signature leaves open */
static const double CERTAIN = 0.1; /* of the largest number: quantization of a whole batch changes less */

/* ---- requests ---- */

/* Between -2 and 2, and other numbers for other rows, places and inputs. */
static double drawn(size_t input, int row, int64_t place) {
    const uint64_t x = ((uint64_t)place * 2 + (uint64_t)row + (uint64_t)input * 7919 + 1) * 0x9E3779B97F4A7C15ULL;
    return (double)(x >> 40) / (1 << 22) - 2;
}

static tare_status draw_input(struct tare_tensor *out, const struct tare_binding *binding, size_t input, int row) {
    struct tare_shape shape = binding->shape;
    for (int d = 0; d < shape.rank; d++)
        if (shape.dims[d] < 0) shape.dims[d] = d ? OPEN_SIZE : 1;
    TARE_TRY(tare_tensor_new(out, tare_dtype_base(binding->dtype), &shape));
    for (int64_t i = 0; i < out->elements; i++) {
        const double value = drawn(input, row, i);
        if (tare_dtype_is_floating(out->dtype))
            tare_tensor_set_f64(out, i, value);
        else if (out->dtype == TARE_DT_STRING)
            TARE_TRY(tare_tensor_set_string(out, i, row ? "b" : "a", 1));
        else
            tare_tensor_set_i64(out, i, (i + row + (value > 0)) % 2); /* identifiers that every table has */
    }
    return TARE_OK;
}

static bool has_ranks(const struct tare_signature *signature) {
    for (size_t i = 0; i < signature->n_inputs; i++)
        if (signature->inputs[i].shape.rank < 0) return false;
    return true;
}

static tare_status draw_requests(struct tare_bound_record *two, const struct tare_signature_edges *edges) {
    for (int row = 0; row < 2; row++) {
        two[row].values = tare_calloc(edges->n_feeds + edges->n_outputs + 1, sizeof *two[row].values);
        if (!two[row].values) return TARE_NO_MEMORY;
        two[row].outputs = two[row].values + edges->n_feeds;
        for (size_t i = 0; i < edges->n_feeds; i++)
            TARE_TRY(draw_input(&two[row].values[i], &edges->signature->inputs[i], i, row));
    }
    return TARE_OK;
}

static tare_status read_requests(size_t *count, struct tare_bound_record *two, const struct tare_signature_edges *edges,
                                 const struct tare_data_group *group, const struct tare_dataset_spec *spec) {
    const char *const *files = (const char *const *)group->files.names;
    struct tare_source *source = NULL;
    bool end = false;
    *count = 0;
    if (tare_data_read_once(files, group->files.count)) return TARE_OK;
    tare_status status =
        tare_source_new(&source, files, group->files.count, &(struct tare_source_options){ .limit = 2, .spec = spec });
    while (status == TARE_OK && *count < 2) {
        struct tare_sample sample;
        struct tare_record where;
        status = tare_source_next(&sample, &where, &end, source, NULL, NULL);
        if (status != TARE_OK || end) break;
        status = tare_record_take(&two[*count], edges, &sample, &where);
        *count += status == TARE_OK;
    }
    tare_source_free(source);
    return status;
}

/* ---- one trial ---- */

struct trial {
    struct tare_served_batches *batches;
    struct tare_session *session;
    struct tare_signature_edges edges;
    double difference; /* of what the batch changes: a part of the largest number; 1: other integers or texts */
    char *failure;     /* of the batch, where the requests alone do not fail */
};

static double part_that_differs(const struct tare_tensor *a, const struct tare_tensor *b) {
    double most = 0, largest = 0;
    if (tare_tensor_same_bits(a, b)) return 0;
    if (!tare_dtype_is_floating(a->dtype) || a->dtype != b->dtype || a->elements != b->elements) return 1;
    for (int64_t i = 0; i < a->elements; i++) {
        const double x = tare_tensor_get_f64(a, i), y = tare_tensor_get_f64(b, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        if (!isfinite(x) || !isfinite(y)) return 1;
        largest = fmax(largest, fmax(fabs(x), fabs(y)));
        most = fmax(most, fabs(x - y));
    }
    for (int64_t i = 0; i < a->elements; i++)
        if (isfinite(tare_tensor_get_f64(a, i))) largest = fmax(largest, fabs(tare_tensor_get_f64(a, i)));
    return most > 0 ? most / largest : 0;
}

static tare_status run(const struct trial *trial, struct tare_bound_record *requests, size_t count) {
    return tare_served_batches_run_group(trial->batches, trial->session, &trial->edges, requests, count);
}

/* `alone` and `together`: the same two requests with outputs of their own. */
static tare_status compare(struct trial *trial, struct tare_bound_record *alone, struct tare_bound_record *together) {
    for (size_t r = 0; r < 2; r++)
        TARE_TRY(run(trial, &alone[r], 1));
    const tare_status status = run(trial, together, 2);
    if (status != TARE_OK && !trial->failure) trial->failure = tare_strdup(tare_error_text());
    TARE_TRY(tare_error_dismiss(status));
    trial->difference = status != TARE_OK;
    for (size_t r = 0; r < 2 && status == TARE_OK; r++)
        for (size_t i = 0; i < trial->edges.n_outputs; i++)
            trial->difference =
                fmax(trial->difference, part_that_differs(&alone[r].outputs[i], &together[r].outputs[i]));
    return TARE_OK;
}

static tare_status try_pair(void *arg, enum tare_batch_verdict *verdict, const struct tare_tensor *const pair[2]) {
    struct trial *trial = arg;
    const size_t n_outputs = trial->edges.n_outputs;
    struct tare_tensor *outputs = tare_calloc(4 * n_outputs + 1, sizeof *outputs);
    struct tare_bound_record copies[4] = { 0 };
    if (!outputs) return TARE_NO_MEMORY;
    for (size_t r = 0; r < 4; r++) {
        copies[r].values = (struct tare_tensor *)pair[r % 2]; /* only read */
        copies[r].outputs = outputs + r * n_outputs;
    }
    const tare_status status = compare(trial, copies, copies + 2);
    *verdict = trial->difference > 0 ? TARE_BATCH_DEPENDENT : TARE_BATCH_INDEPENDENT;
    tare_tensors_reset(outputs, 4 * n_outputs);
    tare_free(outputs);
    return status;
}

static tare_status try_requests(struct trial *trial, const struct tare_bound_record *two) {
    const struct tare_tensor *const pair[2] = { two[0].values, two[1].values };
    enum tare_batch_verdict verdict;
    return tare_batch_check_pair(&verdict, pair, trial->edges.n_feeds, try_pair, trial);
}

static bool fit(const struct tare_bound_record *two, const struct tare_signature_edges *edges) {
    for (size_t i = 0; i < edges->n_feeds; i++) {
        struct tare_shape first = two[0].values[i].shape;
        const struct tare_shape *second = &two[1].values[i].shape;
        if (first.rank > 0 && second->rank > 0) first.dims[0] = second->dims[0];
        if (!tare_shape_equal(&first, second)) return false;
    }
    return true;
}

static tare_status try_samples(struct trial *trial, const struct tare_graph_model *model,
                               const struct tare_signature *signature, const struct tare_quantize_request *samples) {
    struct tare_bound_record two[2] = { 0 };
    struct tare_data_groups groups = { 0 };
    const struct tare_signature *plain = NULL;
    tare_status status = TARE_OK;
    if (samples->signature) TARE_CHECK(tare_pick_signature(&plain, model, samples->signature));
    TARE_CHECK(tare_data_groups_make(&groups, model, samples->data.items, samples->data.count, plain));
    for (size_t i = 0; i < groups.count && status == TARE_OK; i++) {
        size_t count;
        if (groups.items[i].signature != signature) continue;
        status = read_requests(&count, two, &trial->edges, &groups.items[i], samples->records.spec);
        if (status == TARE_OK && count == 2 && fit(two, &trial->edges)) status = try_requests(trial, two);
    }
done:
    for (int row = 0; row < 2; row++)
        tare_record_reset(&two[row], &trial->edges);
    tare_data_groups_free(&groups);
    return status;
}

static tare_status try_drawn(struct trial *trial, const struct tare_signature *signature) {
    struct tare_bound_record two[2] = { 0 };
    if (!has_ranks(signature)) return TARE_OK;
    tare_status status = draw_requests(two, &trial->edges);
    if (status == TARE_OK) status = try_requests(trial, two);
    for (int row = 0; row < 2; row++)
        tare_record_reset(&two[row], &trial->edges);
    return status;
}

/* ---- signatures ---- */

/* Batches of any size, without padding. */
static tare_status open_batchers(struct tare_graph_model *model) {
    for (size_t f = 0; f <= model->n_functions; f++) {
        const struct tare_graph *graph = tare_model_graph(model, f);
        for (size_t i = 0; i < graph->n_nodes; i++) {
            if (graph->nodes[i]->dead || !tare_node_is(graph->nodes[i], "BatchFunction")) continue;
            TARE_TRY(tare_node_set_int(graph->nodes[i], "max_batch_size", 1 << 20));
            TARE_TRY(tare_node_set_int_list(graph->nodes[i], "allowed_batch_sizes", NULL, 0));
            TARE_TRY(tare_node_set_bool(graph->nodes[i], "enable_large_batch_splitting", false));
        }
    }
    return TARE_OK;
}

/* An error says that the signature cannot be tried. */
static tare_status try_signature(struct trial *trial, const struct tare_graph_model *model,
                                 const struct tare_signature *signature, const struct tare_rows_check *options) {
    const struct tare_session_options plain = { .seed = 1 };
    struct tare_graph_model *clone = NULL;
    tare_status status;
    TARE_CHECK(tare_model_clone(&clone, model));
    TARE_CHECK(open_batchers(clone));
    TARE_CHECK(tare_served_batches_new(&trial->batches, clone, tare_model_find_signature(clone, signature->key)));
    TARE_CHECK(tare_signature_edges_of(&trial->edges, tare_served_batches_signature(trial->batches)));
    TARE_CHECK(tare_session_new(&trial->session, clone, &plain));
    if (options->samples && options->samples->data.count)
        TARE_CHECK(tare_error_dismiss(try_samples(trial, model, signature, options->samples)));
    if (!trial->difference) TARE_CHECK(try_drawn(trial, signature));
done:
    tare_session_free(trial->session);
    tare_signature_edges_free(&trial->edges);
    tare_served_batches_free(trial->batches);
    tare_model_free(clone);
    return status;
}

/* Whether a model draws random numbers: for a whole batch, so that each row of another batch has others. */
static bool draws_numbers(const struct tare_graph_model *model) {
    static const char *const parts[] = { "Random", "TruncatedNormal", "Multinomial", "XlaRng" };
    for (size_t f = 0; f <= model->n_functions; f++) {
        const struct tare_graph *graph = tare_model_graph(model, f);
        for (size_t i = 0; i < graph->n_nodes; i++)
            for (size_t k = 0; k < sizeof parts / sizeof *parts && !graph->nodes[i]->dead; k++)
                if (strstr(graph->nodes[i]->op, parts[k])) return true;
    }
    return false;
}

static const char *finding(struct tare_arena *arena, const struct tare_batching_result *result,
                           const struct tare_signature *signature, const struct trial *trial) {
    if (trial->failure)
        return tare_arena_printf(arena, "signature %s: two requests fail as one batch: %s (they do not fail alone",
                                 signature->key, trial->failure);
    if (result->mixing) return tare_arena_printf(arena, "%s: " DEPEND, result->mixing);
    return tare_arena_printf(arena,
                             "signature %s: two requests give other numbers as one batch than alone, by %.3g %% of the "
                             "largest: " DEPEND,
                             signature->key, 100 * trial->difference);
}

static tare_status check_signature(bool *told, struct tare_batching_result *result, struct tare_arena *arena,
                                   const struct tare_graph_model *model, const struct tare_signature *signature,
                                   const struct tare_rows_check *options) {
    struct trial trial = { 0 };
    tare_status status = tare_error_dismiss(try_signature(&trial, model, signature, options));
    const char *text = status == TARE_OK && trial.difference > 0 ? finding(arena, result, signature, &trial) : NULL;
    const bool is_random = !trial.failure && draws_numbers(model);
    tare_free(trial.failure);
    if (status != TARE_OK || !(trial.difference > 0)) return status;
    if (!text) return TARE_NO_MEMORY;
    if (trial.difference > CERTAIN && !options->allows && !is_random)
        return TARE_FAIL(TARE_UNSUPPORTED, "batching of %s; --allow-dependent-rows converts anyway)", text);
    *told = true;
    return tare_batch_add_warning(result, arena, tare_arena_printf(arena, "batching of %s)", text));
}

tare_status tare_workflow_check_rows(struct tare_batching_result *result, struct tare_arena *arena,
                                     const struct tare_graph_model *model, const struct tare_rows_check *options) {
    bool told = false;
    if (!result->inserted && !result->updated) return TARE_OK;
    for (size_t i = 0; i < model->n_signatures && !told; i++)
        TARE_TRY(check_signature(&told, result, arena, model, &model->signatures[i], options));
    if (told || !result->mixing) return TARE_OK;
    return tare_batch_add_warning(result, arena,
                                  tare_arena_printf(arena, "batching of %s: " DEPEND ")", result->mixing));
}
