/* Observing the tensors at the ends of a block. Each sample has its own slot, so that the result does not depend on
 * which thread ran it. */
#include "quant/reconstruction/block_data.h"

#include "base/alloc.h"
#include "base/control.h"
#include "base/thread.h"
#include "calib/calibration.h"
#include "interpreter/session.h"

#include <string.h>

static const size_t MOST_BYTES = (size_t)256 << 20;

struct observation {
    struct tare_block_data *data;
    const struct tare_quant_work *work;
    const struct tare_block *block;
    size_t first, end; /* samples to run */
    int threads;
    bool *repeats; /* by sample: the block ran more than once */
};

/* One worker's session and the sample that it runs. */
struct runner {
    const struct observation *all;
    struct tare_session *session;
    size_t sample;
};

static struct tare_tensor *slot_of(const struct observation *o, struct tare_edge edge, size_t sample, bool output) {
    const struct tare_edge *edges = output ? o->block->outputs : o->block->inputs;
    const size_t count = output ? o->block->n_outputs : o->block->n_inputs;
    for (size_t i = 0; i < count; i++)
        if (tare_edge_equal(edges[i], edge))
            return output ? &o->data->samples[sample].outputs[i] : &o->data->samples[sample].inputs[i];
    return NULL;
}

static bool accepts(void *arg, const struct tare_node *node, size_t output) {
    const struct runner *r = arg;
    const struct tare_edge edge = { (struct tare_node *)(uintptr_t)node, (int)output };
    return slot_of(r->all, edge, r->all->first, false) || slot_of(r->all, edge, r->all->first, true);
}

static tare_status observe(void *arg, const struct tare_node *node, size_t output, const struct tare_tensor *value) {
    const struct runner *r = arg;
    const struct tare_edge edge = { (struct tare_node *)(uintptr_t)node, (int)output };
    for (int ends = 0; ends < 2; ends++) {
        struct tare_tensor *slot = slot_of(r->all, edge, r->sample, ends);
        if (!slot) continue;
        if (slot->dtype != TARE_DT_INVALID)
            r->all->repeats[r->sample] = true;
        else
            TARE_TRY(tare_tensor_copy(slot, value));
    }
    return TARE_OK;
}

static tare_status run_sample(struct runner *r) {
    const struct tare_kept_sample *sample = &r->all->work->ranges->samples->items[r->sample];
    const struct tare_signature *signature = tare_model_find_signature(r->all->work->model, sample->signature);
    size_t n_outputs;
    struct tare_tensor *outputs;
    tare_status status;
    if (!signature) return TARE_OK;
    n_outputs = 3 * signature->n_outputs; /* a sparse output has three tensors */
    outputs = tare_calloc(n_outputs + 1, sizeof *outputs);
    if (!outputs) return TARE_NO_MEMORY;
    status = tare_session_run_signature(r->session, signature, sample->feeds, outputs);
    for (size_t i = 0; i < n_outputs; i++)
        tare_tensor_reset(&outputs[i]);
    tare_free(outputs);
    return status;
}

static tare_status run_share(void *arg, int worker) {
    const struct observation *o = arg;
    struct runner r = { .all = o };
    tare_status status;
    TARE_TRY(tare_session_new(&r.session, o->work->model, NULL));
    tare_session_observe(r.session, observe, accepts, &r);
    status = TARE_OK;
    for (r.sample = o->first + (size_t)worker; r.sample < o->end && status == TARE_OK; r.sample += (size_t)o->threads) {
        status = tare_control_check();
        if (status == TARE_OK) status = run_sample(&r);
    }
    tare_session_free(r.session);
    return status;
}

static bool is_complete(const struct tare_block_data *data, const struct tare_block_sample *sample) {
    for (size_t i = 0; i < data->n_inputs; i++)
        if (sample->inputs[i].dtype == TARE_DT_INVALID) return false;
    for (size_t i = 0; i < data->n_outputs; i++)
        if (sample->outputs[i].dtype == TARE_DT_INVALID) return false;
    return true;
}

static size_t sample_bytes(const struct tare_block_data *data, const struct tare_block_sample *sample) {
    size_t bytes = 0;
    for (size_t i = 0; i < data->n_inputs; i++)
        bytes += tare_tensor_bytes(&sample->inputs[i]);
    for (size_t i = 0; i < data->n_outputs; i++)
        bytes += tare_tensor_bytes(&sample->outputs[i]);
    return bytes;
}

static void free_sample(const struct tare_block_data *data, struct tare_block_sample *sample) {
    for (size_t i = 0; sample->inputs && i < data->n_inputs; i++)
        tare_tensor_reset(&sample->inputs[i]);
    for (size_t i = 0; sample->outputs && i < data->n_outputs; i++)
        tare_tensor_reset(&sample->outputs[i]);
    tare_tensor_reset(&sample->quantized);
    tare_free(sample->inputs);
    tare_free(sample->outputs);
    *sample = (struct tare_block_sample){ 0 };
}

static tare_status allocate(struct tare_block_data *data, size_t count) {
    data->samples = tare_calloc(count + 1, sizeof *data->samples);
    if (!data->samples) return TARE_NO_MEMORY;
    for (data->count = 0; data->count < count; data->count++) {
        struct tare_block_sample *sample = &data->samples[data->count];
        sample->inputs = tare_calloc(data->n_inputs + 1, sizeof *sample->inputs);
        sample->outputs = tare_calloc(data->n_outputs + 1, sizeof *sample->outputs);
        if (sample->inputs && sample->outputs) continue;
        free_sample(data, sample);
        return TARE_NO_MEMORY;
    }
    return TARE_OK;
}

/* The first sample determines how many of them fit. */
static tare_status run_samples(struct observation *o) {
    size_t bytes;
    o->end = 1;
    o->threads = 1;
    TARE_TRY(run_share(o, 0));
    bytes = sample_bytes(o->data, &o->data->samples[0]);
    o->first = 1;
    o->end = bytes && MOST_BYTES / bytes < o->data->count ? MOST_BYTES / bytes : o->data->count;
    return TARE_OK;
}

tare_status tare_block_data_observe(struct tare_block_data *out, const char **reason,
                                    const struct tare_quant_work *work, const struct tare_block *block, int threads) {
    struct observation o = { .data = out, .work = work, .block = block };
    size_t kept = 0;
    tare_status status;
    *reason = NULL;
    *out = (struct tare_block_data){ .n_inputs = block->n_inputs, .n_outputs = block->n_outputs };
    TARE_TRY(allocate(out, work->ranges->samples->count));
    o.repeats = tare_calloc(out->count + 1, sizeof *o.repeats);
    if (!o.repeats) return TARE_NO_MEMORY;
    TARE_CHECK(run_samples(&o));
    o.threads = threads;
    TARE_CHECK(tare_threads_run(threads, run_share, &o));
    for (size_t i = 0; i < out->count; i++) {
        if (o.repeats[i]) *reason = "it runs more than once for a sample";
        if (!is_complete(out, &out->samples[i])) {
            free_sample(out, &out->samples[i]);
            continue;
        }
        if (i != kept) {
            out->samples[kept] = out->samples[i];
            out->samples[i] = (struct tare_block_sample){ 0 };
        }
        kept++;
    }
    out->count = kept;
done:
    tare_free(o.repeats);
    return status;
}

void tare_block_data_free(struct tare_block_data *data) {
    for (size_t i = 0; i < data->count; i++)
        free_sample(data, &data->samples[i]);
    tare_free(data->samples);
    *data = (struct tare_block_data){ 0 };
}
