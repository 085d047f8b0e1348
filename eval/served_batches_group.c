/* A group of requests through batchers. The rules are those of TensorFlow's SharedBatchScheduler and BatchResourceBase:
 * requests are joined in order of arrival; with large batch splitting a batch is filled to the last row, otherwise a
 * request that does not fit begins a new one; rows of padding repeat the first row of the batch. */
#include "eval/served_batches_group.h"
#include "base/alloc.h"
#include "base/tensor/concat_rows.h"

#include <stdlib.h>
#include <string.h>

/* Rows of a request that run in one batch. */
struct slice {
    size_t request;
    int64_t first, rows;
    struct tare_tensor *outputs; /* of these rows */
};

struct group {
    struct tare_served_batches *b;
    struct tare_session *session;
    const struct tare_signature_edges *edges;
    struct tare_bound_record *records;
    size_t count;
    struct tare_tensor **between; /* by request: outputs of the batchers that it has passed */
    size_t n_outputs_passed;
    struct tare_edge *feeds; /* the record's, then the batchers' outputs */
    /* of the current batcher */
    struct tare_tensor **inputs; /* by request */
    struct slice *slices;
    size_t n_slices, slices_capacity;
};

static tare_status run_to(const struct group *g, size_t r, const struct tare_edge *fetches, struct tare_tensor *results,
                          size_t n_fetches) {
    const size_t n_feeds = g->edges->n_feeds;
    struct tare_tensor *values = tare_calloc(n_feeds + g->n_outputs_passed + 1, sizeof *values);
    tare_status status;
    if (!values) return TARE_NO_MEMORY;
    for (size_t i = 0; i < n_feeds; i++) /* borrowed */
        values[i] = g->records[r].values[i];
    for (size_t i = 0; i < g->n_outputs_passed; i++)
        values[n_feeds + i] = g->between[r][i];
    status = tare_session_run(g->session, g->feeds, values, n_feeds + g->n_outputs_passed, fetches, results, n_fetches,
                              NULL, 0);
    tare_free(values);
    return status;
}

static tare_status check_request(int64_t *rows, const struct tare_batcher *batcher, const struct tare_tensor *inputs) {
    for (size_t i = 0; i < batcher->n_in; i++) {
        if (inputs[i].shape.rank < 1)
            return TARE_FAIL(TARE_SHAPE, "Batching input tensors must have at least one dimension (input %zu of %s)", i,
                             batcher->node->name);
        if (inputs[i].shape.dims[0] != inputs[0].shape.dims[0])
            return TARE_FAIL(TARE_SHAPE,
                             "Batching input tensors supplied in a given op invocation must have equal 0th-dimension "
                             "size (%s: input 0 has %lld, input %zu has %lld)",
                             batcher->node->name, (long long)inputs[0].shape.dims[0], i,
                             (long long)inputs[i].shape.dims[0]);
    }
    *rows = inputs[0].shape.dims[0];
    return *rows <= batcher->max_request
               ? TARE_OK
               : TARE_FAIL(TARE_INVALID_ARGUMENT, "Task size %lld is larger than maximum input batch size %lld (%s)",
                           (long long)*rows, (long long)batcher->max_request, batcher->node->name);
}

static int64_t padded_size(const struct tare_batcher *batcher, int64_t rows) {
    for (size_t i = 0; batcher->allowed && i < batcher->allowed->count; i++)
        if (batcher->allowed->items[i].i >= rows) return batcher->allowed->items[i].i;
    return rows;
}

static int by_size(const void *a, const void *b) {
    const struct tare_served_size *x = a, *y = b;
    return (x->size > y->size) - (x->size < y->size);
}

static tare_status count_batch(struct tare_batcher *batcher, struct tare_served_batcher *report, int64_t rows,
                               int64_t size) {
    report->batches++;
    report->padding += size - rows;
    for (size_t i = 0; i < batcher->n_sizes; i++)
        if (batcher->sizes[i].size == size) {
            batcher->sizes[i].batches++;
            return TARE_OK;
        }
    if (!TARE_GROW(batcher->sizes, batcher->n_sizes, batcher->sizes_capacity)) return TARE_NO_MEMORY;
    batcher->sizes[batcher->n_sizes++] = (struct tare_served_size){ size, 1 };
    qsort(batcher->sizes, batcher->n_sizes, sizeof *batcher->sizes, by_size);
    return TARE_OK;
}

/* Joins input i of the slices, with the padding. parts[k] points to n_in tensors: the rows of slice k. */
static tare_status join_input(struct tare_tensor *out, const struct tare_tensor *const *parts, size_t count, size_t i) {
    const struct tare_shape *first = &parts[0][i].shape;
    bool fits;
    TARE_TRY(tare_concat_rows(out, parts, count, i, &fits, NULL));
    for (size_t k = 1; k < count && !fits; k++) {
        char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
        struct tare_shape shape = parts[k][i].shape;
        if (shape.rank != first->rank || shape.rank < 1)
            return TARE_FAIL(TARE_SHAPE, "Ranks of all input tensors should match: shape[0] = %s vs. shape[%zu] = %s",
                             tare_shape_text(expected, first), k, tare_shape_text(got, &shape));
        shape.dims[0] = first->dims[0];
        if (!tare_shape_equal(&shape, first))
            return TARE_FAIL(TARE_SHAPE, "Dimensions of inputs should match: shape[0] = %s vs. shape[%zu] = %s",
                             tare_shape_text(expected, first), k, tare_shape_text(got, &parts[k][i].shape));
    }
    return TARE_OK;
}

static tare_status join_slices(struct tare_tensor *args, const struct group *g, const struct tare_batcher *batcher,
                               const struct slice *slices, size_t count, int64_t padding) {
    const size_t n_in = batcher->n_in;
    struct tare_tensor *rows = tare_calloc((count + 1) * n_in, sizeof *rows);
    const struct tare_tensor **parts = tare_calloc(count + (size_t)padding + 1, sizeof *parts);
    tare_status status = rows && parts ? TARE_OK : TARE_NO_MEMORY;
    for (size_t k = 0; k <= count && status == TARE_OK; k++) { /* the last: one row of padding */
        const struct slice *slice = &slices[k < count ? k : 0];
        parts[k] = rows + k * n_in;
        for (size_t i = 0; i < n_in && status == TARE_OK; i++)
            status = tare_tensor_share_rows(&rows[k * n_in + i], &g->inputs[slice->request][i], slice->first,
                                            k < count ? slice->rows : 1);
    }
    for (int64_t p = 1; p < padding && status == TARE_OK; p++)
        parts[count + (size_t)p] = parts[count];
    for (size_t i = 0; i < n_in && status == TARE_OK; i++)
        status = join_input(&args[i], parts, count + (size_t)padding, i);
    tare_tensors_reset(rows, (count + 1) * n_in);
    tare_free(rows);
    tare_free(parts);
    return status;
}

static tare_status check_output(const struct tare_batcher *batcher, size_t i, const struct tare_tensor *output,
                                int64_t size) {
    if (output->shape.rank < 1)
        return TARE_FAIL(TARE_SHAPE, "Batched output tensor has 0 dimensions (output %zu of %s)", i,
                         batcher->node->name);
    return output->shape.dims[0] == size
               ? TARE_OK
               : TARE_FAIL(TARE_SHAPE,
                           "Batched output tensor's 0th dimension does not equal the sum of the 0th dimension sizes "
                           "of the input tensors. 0th dimension size: %lld; batch size: %lld (output %zu of %s)",
                           (long long)output->shape.dims[0], (long long)size, i, batcher->node->name);
}

/* Runs the function on the arguments and gives each slice its rows of the results. */
static tare_status call_batch(const struct group *g, const struct tare_batcher *batcher, struct slice *slices,
                              size_t count, const struct tare_tensor *args, int64_t size) {
    const size_t n_results = batcher->node->n_outputs;
    struct tare_tensor *results = tare_calloc(n_results + 1, sizeof *results);
    tare_status status = results ? TARE_OK : TARE_NO_MEMORY;
    int64_t at = 0;
    if (status == TARE_OK)
        status = tare_session_call(g->session, batcher->function, args, batcher->node->n_inputs, results, n_results);
    for (size_t i = 0; i < n_results && status == TARE_OK; i++)
        status = check_output(batcher, i, &results[i], size);
    for (size_t k = 0; k < count && status == TARE_OK; k++) {
        slices[k].outputs = tare_calloc(n_results + 1, sizeof *slices[k].outputs);
        if (!slices[k].outputs) status = TARE_NO_MEMORY;
        for (size_t i = 0; i < n_results && status == TARE_OK; i++)
            status = tare_tensor_share_rows(&slices[k].outputs[i], &results[i], at, slices[k].rows);
        at += slices[k].rows;
    }
    tare_tensors_reset(results, n_results);
    tare_free(results);
    return status;
}

/* Captured tensors are those of the first request. */
static tare_status run_batch(const struct group *g, size_t which, struct slice *slices, size_t count) {
    struct tare_batcher *batcher = &g->b->batchers[which];
    const size_t n_args = batcher->node->n_inputs;
    struct tare_tensor *args = tare_calloc(n_args + 1, sizeof *args);
    int64_t rows = 0, size;
    tare_status status = args ? TARE_OK : TARE_NO_MEMORY;
    for (size_t k = 0; k < count; k++)
        rows += slices[k].rows;
    size = padded_size(batcher, rows);
    if (status == TARE_OK) status = join_slices(args, g, batcher, slices, count, size - rows);
    for (size_t i = batcher->n_in; i < n_args && status == TARE_OK; i++)
        tare_tensor_share(&args[i], &g->inputs[slices[0].request][i]);
    if (status == TARE_OK) status = call_batch(g, batcher, slices, count, args, size);
    if (status == TARE_OK) status = count_batch(batcher, &g->b->reports[which], rows, size);
    tare_tensors_reset(args, n_args);
    tare_free(args);
    return status;
}

/* The slices from *from on are a complete batch. */
static tare_status flush(struct group *g, size_t which, size_t *from) {
    const size_t first = *from;
    *from = g->n_slices;
    return first < g->n_slices ? run_batch(g, which, g->slices + first, g->n_slices - first) : TARE_OK;
}

static tare_status add_slice(struct group *g, size_t request, int64_t first, int64_t rows) {
    if (!TARE_GROW(g->slices, g->n_slices, g->slices_capacity)) return TARE_NO_MEMORY;
    g->slices[g->n_slices++] = (struct slice){ .request = request, .first = first, .rows = rows };
    return TARE_OK;
}

static tare_status schedule(struct group *g, size_t which) {
    const struct tare_batcher *batcher = &g->b->batchers[which];
    struct tare_served_batcher *report = &g->b->reports[which];
    size_t from = 0;  /* slice that begins the open batch */
    int64_t open = 0; /* rows of the open batch */
    for (size_t r = 0; r < g->count; r++) {
        int64_t rows, first = 0;
        TARE_TRY(check_request(&rows, batcher, g->inputs[r]));
        report->requests++;
        report->rows += rows;
        report->split += batcher->splits && rows > batcher->max_batch - open % batcher->max_batch;
        while (first < rows) {
            int64_t take = rows - first;
            if (open == batcher->max_batch || (!batcher->splits && open + take > batcher->max_batch)) {
                TARE_TRY(flush(g, which, &from));
                open = 0;
            }
            if (take > batcher->max_batch - open) take = batcher->max_batch - open;
            TARE_TRY(add_slice(g, r, first, take));
            open += take;
            first += take;
        }
    }
    return flush(g, which, &from);
}

/* The outputs of a request: its slices joined. A request without rows gets empty vectors, as from TensorFlow. */
static tare_status gather(struct group *g, size_t r, size_t *at, const struct tare_batcher *batcher) {
    const size_t n_outputs = batcher->node->n_outputs, first = *at;
    const struct tare_shape empty = tare_shape_make(1, (int64_t)0);
    while (*at < g->n_slices && g->slices[*at].request == r)
        (*at)++;
    for (size_t i = 0; i < n_outputs; i++) {
        struct tare_tensor *out = &g->between[r][g->n_outputs_passed + i];
        const struct tare_tensor **parts;
        bool fits;
        tare_status status;
        if (*at == first) {
            TARE_TRY(tare_tensor_new(out, tare_dtype_base(batcher->node->output_dtypes[i]), &empty));
            continue;
        }
        parts = tare_calloc(*at - first, sizeof *parts);
        if (!parts) return TARE_NO_MEMORY;
        for (size_t k = first; k < *at; k++)
            parts[k - first] = g->slices[k].outputs;
        status = tare_concat_rows(out, parts, *at - first, i, &fits, NULL);
        tare_free(parts);
        if (status == TARE_OK && !fits)
            status =
                TARE_FAIL(TARE_SHAPE, "the parts of output %zu of %s have different shapes", i, batcher->node->name);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static void drop_slices(struct group *g, size_t n_outputs) {
    for (size_t k = 0; k < g->n_slices; k++) {
        tare_tensors_reset(g->slices[k].outputs, n_outputs);
        tare_free(g->slices[k].outputs);
    }
    g->n_slices = 0;
}

static void drop_inputs(struct group *g, size_t n_inputs) {
    for (size_t r = 0; r < g->count; r++) {
        tare_tensors_reset(g->inputs[r], n_inputs);
        tare_free(g->inputs[r]);
        g->inputs[r] = NULL;
    }
}

static tare_status pass_batcher(struct group *g, size_t which) {
    const struct tare_batcher *batcher = &g->b->batchers[which];
    const struct tare_node *node = batcher->node;
    size_t at = 0;
    tare_status status = TARE_OK;
    for (size_t r = 0; r < g->count && status == TARE_OK; r++) {
        g->inputs[r] = tare_calloc(node->n_inputs + 1, sizeof **g->inputs);
        status = g->inputs[r] ? run_to(g, r, node->inputs, g->inputs[r], node->n_inputs) : TARE_NO_MEMORY;
    }
    if (status == TARE_OK) status = schedule(g, which);
    for (size_t r = 0; r < g->count && status == TARE_OK; r++)
        status = gather(g, r, &at, batcher);
    drop_slices(g, node->n_outputs);
    drop_inputs(g, node->n_inputs);
    for (size_t i = 0; i < node->n_outputs; i++)
        g->feeds[g->edges->n_feeds + g->n_outputs_passed++] = (struct tare_edge){ batcher->node, (int)i };
    return status;
}

static tare_status run_requests(struct group *g) {
    for (size_t k = 0; k < g->b->n_batchers; k++)
        TARE_TRY(pass_batcher(g, k));
    for (size_t r = 0; r < g->count; r++)
        TARE_TRY(run_to(g, r, g->edges->fetches, g->records[r].outputs, g->edges->n_outputs));
    return TARE_OK;
}

static tare_status make_room(struct group *g) {
    g->feeds = tare_calloc(g->edges->n_feeds + g->b->n_between + 1, sizeof *g->feeds);
    g->between = tare_calloc(g->count + 1, sizeof *g->between);
    g->inputs = tare_calloc(g->count + 1, sizeof *g->inputs);
    if (!g->feeds || !g->between || !g->inputs) return TARE_NO_MEMORY;
    memcpy(g->feeds, g->edges->feeds, g->edges->n_feeds * sizeof *g->feeds);
    for (size_t r = 0; r < g->count; r++) {
        g->between[r] = tare_calloc(g->b->n_between + 1, sizeof **g->between);
        if (!g->between[r]) return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

tare_status tare_served_batches_run_group(struct tare_served_batches *b, struct tare_session *session,
                                          const struct tare_signature_edges *edges, struct tare_bound_record *records,
                                          size_t count) {
    struct group g = { .b = b, .session = session, .edges = edges, .records = records, .count = count };
    tare_status status = make_room(&g);
    if (status == TARE_OK) status = run_requests(&g);
    for (size_t r = 0; g.between && r < count; r++) {
        tare_tensors_reset(g.between[r], b->n_between);
        tare_free(g.between[r]);
    }
    tare_free(g.feeds);
    tare_free(g.between);
    tare_free(g.inputs);
    tare_free(g.slices);
    return status;
}
