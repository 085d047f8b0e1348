/* Running chunks of samples. The samples of a chunk run together if that changes the outputs by rounding alone, which
 * the first samples show, and one after another otherwise. */
#include "quant/reconstruction/batch.h"

#include "base/alloc.h"
#include "base/control.h"
#include "base/thread.h"
#include "interpreter/session.h"

#include <math.h>
#include <string.h>

enum { CHUNK = 8, JOIN_CHECK = 4 };

struct tare_block_batches {
    const struct tare_block *block;
    const struct tare_block_model *model;
    struct tare_block_data *data;
    struct tare_pool *pool;
    int threads;
    struct tare_session **sessions; /* by worker */
    struct tare_tensor *weights;    /* by layer, in the shape of the op's operand */
    double *energies;               /* by output: mean square sum of a sample's target */
    bool joins;
};

/* Results of one chunk. */
struct chunk_result {
    struct tare_tensor *values; /* by fetch: sums over the runs of the chunk */
};

/* One call: what is fetched, for which samples. */
struct call {
    struct tare_block_batches *batches;
    const struct tare_block_batch *batch;
    struct tare_edge *fetches;
    size_t n_fetches, n_chunks;
    struct chunk_result *results; /* by chunk */
};

/* ---- feeds ---- */

struct feeds {
    struct tare_edge *edges;
    struct tare_tensor *values;
    size_t count;
};

static struct tare_tensor *add_feed(struct feeds *feeds, struct tare_edge edge) {
    feeds->edges[feeds->count] = edge;
    return &feeds->values[feeds->count++];
}

static const struct tare_tensor *input_of(const struct call *c, size_t sample, size_t input) {
    const struct tare_block_sample *s = &c->batches->data->samples[sample];
    const bool real = c->batch->float_input && sample % 2 == 1;
    return input == 0 && !real && s->quantized.dtype != TARE_DT_INVALID ? &s->quantized : &s->inputs[input];
}

static const struct tare_tensor *end_of(const struct call *c, size_t sample, size_t index, bool output) {
    return output ? &c->batches->data->samples[sample].outputs[index] : input_of(c, sample, index);
}

/* The tensors of samples, one after another along the first axis. */
static tare_status join(struct tare_tensor *out, const struct call *c, const size_t *samples, size_t count,
                        size_t index, bool output) {
    const struct tare_tensor *first = end_of(c, samples[0], index, output);
    struct tare_shape shape = first->shape;
    char *to;
    if (count == 1) {
        tare_tensor_share(out, first);
        return TARE_OK;
    }
    shape.dims[0] *= (int64_t)count;
    TARE_TRY(tare_tensor_new(out, first->dtype, &shape));
    to = out->data;
    for (size_t i = 0; i < count; i++) {
        const struct tare_tensor *part = end_of(c, samples[i], index, output);
        memcpy(to, part->data, tare_tensor_bytes(part));
        to += tare_tensor_bytes(part);
    }
    return TARE_OK;
}

static tare_status feed_draws(struct feeds *feeds, const struct call *c, size_t first) {
    const struct tare_shape pair = tare_shape_make(1, 2);
    const int64_t seed[] = { c->batch->seed, (int64_t)first };
    TARE_TRY(tare_tensor_scalar_f32(add_feed(feeds, c->batches->model->drop), (float)c->batch->drop));
    return tare_tensor_from(add_feed(feeds, c->batches->model->seed), TARE_DT_INT64, &pair, seed);
}

/* `first`: place of the first sample in the batch. */
static tare_status make_feeds(struct feeds *feeds, const struct call *c, size_t first, size_t count) {
    const struct tare_block_batches *b = c->batches;
    const size_t *samples = c->batch->samples + first;
    for (size_t i = 0; i < b->block->n_inputs; i++)
        TARE_TRY(join(add_feed(feeds, b->model->inputs[i]), c, samples, count, i, false));
    for (size_t i = 0; i < b->block->n_outputs; i++) {
        if (!b->model->outputs[i].node) continue;
        TARE_TRY(join(add_feed(feeds, b->model->targets[i]), c, samples, count, i, true));
        TARE_TRY(tare_tensor_scalar_f32(add_feed(feeds, b->model->shares[i]),
                                        b->energies[i] > 0 ? (float)(2 / b->energies[i]) : 0));
    }
    for (size_t i = 0; i < b->block->n_layers; i++)
        tare_tensor_share(add_feed(feeds, b->model->weights[i]), &b->weights[i]);
    return feed_draws(feeds, c, first);
}

/* ---- runs ---- */

/* Adds the values of a run to those of its chunk. */
static tare_status add_values(struct tare_tensor *sums, struct tare_tensor *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (sums[i].dtype == TARE_DT_INVALID) {
            sums[i] = values[i];
            values[i] = (struct tare_tensor){ 0 };
            continue;
        }
        if (sums[i].elements != values[i].elements || sums[i].dtype != TARE_DT_FLOAT)
            return TARE_FAIL(TARE_INTERNAL, "a sample has other results than those before it");
        if (!tare_tensor_is_exclusive(&sums[i])) {
            struct tare_tensor copy;
            TARE_TRY(tare_tensor_copy(&copy, &sums[i]));
            tare_tensor_reset(&sums[i]);
            sums[i] = copy;
        }
        for (int64_t k = 0; k < sums[i].elements; k++)
            TARE_DATA(float, &sums[i])[k] += TARE_CONST_DATA(float, &values[i])[k];
    }
    return TARE_OK;
}

static tare_status run_samples(struct tare_tensor *sums, const struct call *c, struct tare_session *session,
                               size_t first, size_t count) {
    const struct tare_block *block = c->batches->block;
    const size_t most = block->n_inputs + 2 * block->n_outputs + block->n_layers + 2;
    struct feeds feeds = { tare_calloc(most, sizeof *feeds.edges), tare_calloc(most, sizeof *feeds.values), 0 };
    struct tare_tensor *values = tare_calloc(c->n_fetches + 1, sizeof *values);
    tare_status status = feeds.edges && feeds.values && values ? TARE_OK : TARE_NO_MEMORY;
    if (status == TARE_OK) status = make_feeds(&feeds, c, first, count);
    if (status == TARE_OK)
        status = tare_session_run(session, feeds.edges, feeds.values, feeds.count, c->fetches, values, c->n_fetches,
                                  NULL, 0);
    if (status == TARE_OK) status = add_values(sums, values, c->n_fetches);
    for (size_t i = 0; feeds.values && i < feeds.count; i++)
        tare_tensor_reset(&feeds.values[i]);
    for (size_t i = 0; values && i < c->n_fetches; i++)
        tare_tensor_reset(&values[i]);
    tare_free(feeds.edges);
    tare_free(feeds.values);
    tare_free(values);
    return status;
}

static tare_status run_chunks(void *arg, int worker) {
    const struct call *c = arg;
    struct tare_block_batches *b = c->batches;
    for (size_t chunk = (size_t)worker; chunk < c->n_chunks; chunk += (size_t)b->threads) {
        const size_t first = chunk * CHUNK, left = c->batch->count - first, count = left < CHUNK ? left : CHUNK;
        struct tare_tensor *sums = c->results[chunk].values;
        TARE_TRY(tare_control_check());
        if (b->joins) TARE_TRY(run_samples(sums, c, b->sessions[worker], first, count));
        for (size_t i = 0; !b->joins && i < count; i++)
            TARE_TRY(run_samples(sums, c, b->sessions[worker], first + i, 1));
    }
    return TARE_OK;
}

static void close_call(struct call *c) {
    for (size_t i = 0; c->results && i < c->n_chunks; i++) {
        for (size_t k = 0; c->results[i].values && k < c->n_fetches; k++)
            tare_tensor_reset(&c->results[i].values[k]);
        tare_free(c->results[i].values);
    }
    tare_free(c->results);
    c->results = NULL;
}

/* Runs all chunks. Close the call in any case. */
static tare_status run_call(struct call *c) {
    c->n_chunks = (c->batch->count + CHUNK - 1) / CHUNK;
    c->results = tare_calloc(c->n_chunks + 1, sizeof *c->results);
    if (!c->results) return TARE_NO_MEMORY;
    for (size_t i = 0; i < c->n_chunks; i++)
        if (!(c->results[i].values = tare_calloc(c->n_fetches + 1, sizeof *c->results[i].values)))
            return TARE_NO_MEMORY;
    return tare_pool_run(c->batches->pool, run_chunks, c);
}

/* ---- results ---- */

/* The energy of an output's targets over the samples of a batch. */
static double energy_of(const struct tare_block_batches *b, const struct tare_block_batch *batch, size_t output) {
    double energy = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const struct tare_tensor *target = &b->data->samples[batch->samples[i]].outputs[output];
        for (int64_t k = 0; k < target->elements; k++)
            energy += (double)TARE_CONST_DATA(float, target)[k] * (double)TARE_CONST_DATA(float, target)[k];
    }
    return energy;
}

tare_status tare_block_batches_error(double *error, struct tare_block_batches *batches,
                                     const struct tare_block_batch *batch) {
    struct call c = { .batches = batches, .batch = batch };
    size_t *outputs = tare_calloc(batches->block->n_outputs + 1, sizeof *outputs);
    tare_status status = TARE_OK;
    *error = 0;
    c.fetches = tare_calloc(batches->block->n_outputs + 1, sizeof *c.fetches);
    if (!c.fetches || !outputs) TARE_CHECK(TARE_NO_MEMORY);
    for (size_t i = 0; i < batches->block->n_outputs; i++) {
        if (!batches->model->outputs[i].node) continue;
        outputs[c.n_fetches] = i;
        c.fetches[c.n_fetches++] = batches->model->errors[i];
    }
    TARE_CHECK(run_call(&c));
    for (size_t k = 0; k < c.n_fetches; k++) {
        const double energy = energy_of(batches, batch, outputs[k]);
        double sum = 0;
        for (size_t i = 0; i < c.n_chunks; i++)
            sum += tare_tensor_get_f64(&c.results[i].values[k], 0);
        *error += energy > 0 ? sum / energy : sum;
    }
done:
    close_call(&c);
    tare_free(c.fetches);
    tare_free(outputs);
    return status;
}

/* The sum over the chunks of gradient k, arranged. */
static tare_status sum_gradient(struct tare_tensor *out, const struct call *c, size_t k,
                                const struct tare_quant_layer *layer) {
    struct tare_tensor *first = &c->results[0].values[k];
    for (size_t i = 1; i < c->n_chunks; i++)
        TARE_TRY(add_values(first, &c->results[i].values[k], 1));
    return tare_quant_arrange(out, &layer->product, first);
}

tare_status tare_block_batches_gradients(struct tare_tensor *gradients, struct tare_block_batches *batches,
                                         const struct tare_block_batch *batch) {
    const struct tare_block *block = batches->block;
    struct call c = { .batches = batches, .batch = batch };
    tare_status status = TARE_OK;
    memset(gradients, 0, block->n_layers * sizeof *gradients);
    c.fetches = tare_calloc(block->n_layers + 1, sizeof *c.fetches);
    if (!c.fetches) return TARE_NO_MEMORY;
    for (size_t i = 0; i < block->n_layers; i++)
        if (batches->model->gradients[i].node) c.fetches[c.n_fetches++] = batches->model->gradients[i];
    TARE_CHECK(run_call(&c));
    for (size_t i = 0, k = 0; i < block->n_layers; i++)
        if (batches->model->gradients[i].node) TARE_CHECK(sum_gradient(&gradients[i], &c, k++, block->layers[i]));
done:
    close_call(&c);
    tare_free(c.fetches);
    return status;
}

/* One output of samples together. */
static tare_status run_output(struct tare_tensor *out, struct tare_block_batches *b, struct tare_session *session,
                              const size_t *samples, size_t count, double drop, size_t output) {
    const struct tare_block_batch batch = { .samples = samples, .count = count, .drop = drop };
    struct tare_edge fetch = b->model->outputs[output];
    const struct call c = { .batches = b, .batch = &batch, .fetches = &fetch, .n_fetches = 1 };
    *out = (struct tare_tensor){ 0 };
    return run_samples(out, &c, session, 0, count);
}

struct all_outputs {
    struct tare_block_batches *batches;
    struct tare_tensor *outputs;
};

static tare_status run_outputs(void *arg, int worker) {
    const struct all_outputs *all = arg;
    struct tare_block_batches *b = all->batches;
    for (size_t i = (size_t)worker; i < b->data->count; i += (size_t)b->threads) {
        TARE_TRY(tare_control_check());
        TARE_TRY(run_output(&all->outputs[i], b, b->sessions[worker], &i, 1, 0, 0));
    }
    return TARE_OK;
}

tare_status tare_block_batches_outputs(struct tare_tensor *outputs, struct tare_block_batches *batches) {
    struct all_outputs all = { batches, outputs };
    memset(outputs, 0, batches->data->count * sizeof *outputs);
    return tare_pool_run(batches->pool, run_outputs, &all);
}

/* ---- weights ---- */

tare_status tare_block_batches_set_weight(struct tare_block_batches *batches, size_t layer,
                                          const struct tare_tensor *arranged) {
    const struct tare_quant_layer *l = batches->block->layers[layer];
    tare_tensor_reset(&batches->weights[layer]);
    return tare_quant_restore(&batches->weights[layer], &l->product, arranged, &l->weight->shape);
}

static tare_status dequantize(struct tare_tensor *out, const struct tare_quant_layer *layer) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const int64_t columns = q->layout.columns;
    TARE_TRY(tare_tensor_new(out, TARE_DT_FLOAT, &layer->product.arranged));
    for (int64_t i = 0; i < out->elements; i++) {
        const int64_t matrix = i / columns / q->layout.rows, row = i / columns % q->layout.rows;
        TARE_DATA(float, out)
        [i] = (float)(q->scales[tare_weight_scale_index(q, matrix, row, i % columns)] *
                      TARE_CONST_DATA(int8_t, &q->values)[i]);
    }
    return TARE_OK;
}

tare_status tare_block_batches_dequantize(struct tare_block_batches *batches) {
    for (size_t i = 0; i < batches->block->n_layers; i++) {
        struct tare_tensor weight;
        tare_status status;
        TARE_TRY(dequantize(&weight, batches->block->layers[i]));
        status = tare_block_batches_set_weight(batches, i, &weight);
        tare_tensor_reset(&weight);
        TARE_TRY(status);
    }
    return TARE_OK;
}

/* ---- opening ---- */

static bool same_ends(const struct tare_tensor *a, const struct tare_tensor *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (a[i].shape.rank < 1 || !tare_shape_equal(&a[i].shape, &b[i].shape)) return false;
    return true;
}

/* The shape of JOIN_CHECK samples one after another along the first axis. */
static bool is_joined_shape(const struct tare_shape *all, const struct tare_shape *one) {
    struct tare_shape joined = *one;
    if (one->rank < 1) return false;
    joined.dims[0] *= JOIN_CHECK;
    return tare_shape_equal(all, &joined);
}

/* Compares an output of the first samples together with that of each alone. */
static tare_status compare_joined(struct tare_block_batches *b, const struct tare_tensor *all, size_t output) {
    double difference = 0, largest = 0;
    for (size_t i = 0; i < JOIN_CHECK && b->joins; i++) {
        struct tare_tensor one;
        TARE_TRY(run_output(&one, b, b->sessions[0], &i, 1, 1, output));
        b->joins = is_joined_shape(&all->shape, &one.shape);
        for (int64_t k = 0; k < one.elements && b->joins; k++) {
            const double x = (double)TARE_CONST_DATA(float, &one)[k];
            difference = fmax(difference, fabs(x - (double)TARE_CONST_DATA(float, all)[(int64_t)i * one.elements + k]));
            largest = fmax(largest, fabs(x));
        }
        tare_tensor_reset(&one);
    }
    b->joins = b->joins && difference <= 1e-4 * largest;
    return TARE_OK;
}

/* Whether the outputs of several samples together are those of each alone. */
static tare_status check_join(struct tare_block_batches *b) {
    static const size_t samples[JOIN_CHECK] = { 0, 1, 2, 3 };
    b->joins = b->data->count >= JOIN_CHECK && b->model->outputs[0].node;
    for (size_t i = 1; i < b->data->count && b->joins; i++)
        b->joins = same_ends(b->data->samples[0].inputs, b->data->samples[i].inputs, b->data->n_inputs) &&
                   same_ends(b->data->samples[0].outputs, b->data->samples[i].outputs, b->data->n_outputs);
    for (size_t output = 0; output < b->block->n_outputs && b->joins; output++) {
        struct tare_tensor all;
        if (!b->model->outputs[output].node) continue;
        if (run_output(&all, b, b->sessions[0], samples, JOIN_CHECK, 1, output) != TARE_OK) {
            b->joins = false; /* shapes that need one sample */
            tare_error_clear();
            return tare_control_check();
        }
        const tare_status status = compare_joined(b, &all, output);
        tare_tensor_reset(&all);
        TARE_TRY(status);
    }
    return TARE_OK;
}

static tare_status open_all(struct tare_block_batches *b) {
    b->weights = tare_calloc(b->block->n_layers + 1, sizeof *b->weights);
    b->energies = tare_calloc(b->block->n_outputs + 1, sizeof *b->energies);
    b->sessions = tare_calloc((size_t)b->threads + 1, sizeof *b->sessions);
    if (!b->weights || !b->energies || !b->sessions) return TARE_NO_MEMORY;
    b->pool = tare_pool_new(b->threads);
    if (!b->pool) return TARE_NO_MEMORY;
    for (int i = 0; i < b->threads; i++)
        TARE_TRY(tare_session_new(&b->sessions[i], b->model->model, NULL));
    for (size_t i = 0; i < b->block->n_outputs; i++)
        for (size_t k = 0; b->model->outputs[i].node && k < b->data->count; k++) {
            const struct tare_block_batch one = { .samples = &k, .count = 1 };
            b->energies[i] += energy_of(b, &one, i) / (double)b->data->count;
        }
    TARE_TRY(tare_block_batches_dequantize(b));
    return check_join(b);
}

tare_status tare_block_batches_open(struct tare_block_batches **out, const struct tare_block *block,
                                    const struct tare_block_model *model, struct tare_block_data *data, int threads) {
    struct tare_block_batches *b = tare_calloc(1, sizeof *b);
    tare_status status;
    *out = NULL;
    if (!b) return TARE_NO_MEMORY;
    *b = (struct tare_block_batches){ .block = block, .model = model, .data = data, .threads = threads };
    status = open_all(b);
    if (status == TARE_OK)
        *out = b;
    else
        tare_block_batches_close(b);
    return status;
}

void tare_block_batches_close(struct tare_block_batches *b) {
    if (!b) return;
    for (int i = 0; b->sessions && i < b->threads; i++)
        tare_session_free(b->sessions[i]);
    for (size_t i = 0; b->weights && i < b->block->n_layers; i++)
        tare_tensor_reset(&b->weights[i]);
    tare_pool_free(b->pool);
    tare_free(b->sessions);
    tare_free(b->weights);
    tare_free(b->energies);
    tare_free(b);
}
