/* Block reconstruction (Li et al., "BRECQ: Pushing the Limit of Post-Training Quantization by Block Reconstruction",
 * ICLR 2021) with activation drop (QDrop, block_model.c).
 *
 * Blocks are processed in order of execution. A block's inputs are those that the quantized blocks before it compute,
 * for half of the samples during training, and its targets the float model's outputs. Three sets of integers are
 * compared on every fourth sample, which training does not see: those before the pass, those rounded layer by layer,
 * and those that training finds, starting from the better one of the others. The best one is kept. */
#include "quant/reconstruction/reconstruct.h"
#include "quant/reconstruction/batch.h"
#include "quant/reconstruction/learned_rounding.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/thread.h"
#include "calib/calibration.h"
#include "interpreter/session.h"

#include <math.h>
#include <string.h>

enum { HELD_OUT = 4, LEAST_SAMPLES = 8, MINIBATCH = 32 };
static const double DROP = 0.5;

/* The integers of one block's layers. */
struct snapshot {
    int8_t **values; /* by layer; arena memory */
    double **scales;
};

struct pass {
    struct tare_quant_work *work;
    const struct tare_reconstruction *how;
    struct tare_block_list list;
    struct snapshot *before; /* by block */
    bool *trains;            /* by layer of the work */
    const char *reason;      /* that holds for all blocks; NULL: none */
    struct tare_progress *progress;
    double deadline; /* of tare_clock_seconds; infinite: none */
    int threads;
    /* The output of the last block with quantized layers, if the next one begins there. */
    struct tare_edge chained;
    struct tare_tensor *chain; /* by sample of the last block */
    size_t n_chain;
};

/* One block while it is processed. */
struct task {
    struct pass *pass;
    const struct tare_block *block;
    struct tare_quant_block_outcome *outcome;
    struct tare_block_model model;
    struct tare_block_data data;
    struct tare_block_batches *batches;
    struct tare_learned_rounding *rounding; /* by layer; no layer: it is not trained */
    size_t *training, *held_out;
    size_t n_training, n_held_out;
    bool *trains; /* by layer of the block */
};

/* ---- integers ---- */

static tare_status save(struct snapshot *out, struct tare_arena *arena, const struct tare_block *block) {
    out->values = TARE_NEW_ARRAY(arena, int8_t *, block->n_layers);
    out->scales = TARE_NEW_ARRAY(arena, double *, block->n_layers);
    if (!out->values || !out->scales) return TARE_NO_MEMORY;
    for (size_t i = 0; i < block->n_layers; i++) {
        const struct tare_quantized_weight *q = &block->layers[i]->quantized;
        out->values[i] = TARE_NEW_ARRAY(arena, int8_t, (size_t)q->values.elements + 1);
        out->scales[i] = TARE_NEW_ARRAY(arena, double, (size_t)q->n_scales);
        if (!out->values[i] || !out->scales[i]) return TARE_NO_MEMORY;
        memcpy(out->values[i], q->values.data, (size_t)q->values.elements);
        memcpy(out->scales[i], q->scales, (size_t)q->n_scales * sizeof **out->scales);
    }
    return TARE_OK;
}

/* Of the layers that may change. */
static void restore(const struct snapshot *from, const struct tare_block *block, const bool *trains) {
    for (size_t i = 0; i < block->n_layers; i++) {
        struct tare_quantized_weight *q = &block->layers[i]->quantized;
        if (!trains[i]) continue;
        memcpy(q->values.data, from->values[i], (size_t)q->values.elements);
        memcpy(q->scales, from->scales[i], (size_t)q->n_scales * sizeof *q->scales);
    }
}

/* Layers that share their integers with others keep those of the layer form. */
static bool may_train(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    if (layer->product.batches != 1 || layer->weight->dtype != TARE_DT_FLOAT) return false;
    if (tare_quant_shares_variable(work, layer)) return false;
    for (size_t i = 0; i < work->n_layers; i++)
        if (&work->layers[i] != layer && tare_quant_same_integers(&work->layers[i], layer)) return false;
    return true;
}

static bool trains(const struct pass *p, const struct tare_quant_layer *layer) {
    return p->trains[layer - p->work->layers];
}

/* ---- errors on held-out samples ---- */

static double decibels(double error) {
    return error > 0 ? -10 * log10(error) : INFINITY;
}

static tare_status held_out_error(double *error, struct task *t) {
    const struct tare_block_batch batch = { .samples = t->held_out, .count = t->n_held_out };
    TARE_TRY(tare_block_batches_dequantize(t->batches));
    return tare_block_batches_error(error, t->batches, &batch);
}

/* ---- training ---- */

static uint64_t mixed(uint64_t x) { /* splitmix64 */
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/* The order of the samples in an epoch. */
static void shuffle(size_t *samples, size_t count, uint64_t seed) {
    for (size_t i = count; i > 1; i--) {
        const size_t k = (size_t)(mixed(seed + i) % i), other = samples[k];
        samples[k] = samples[i - 1];
        samples[i - 1] = other;
    }
}

static tare_status set_weights(struct task *t, struct tare_tensor *scratch) {
    for (size_t i = 0; i < t->block->n_layers; i++) {
        if (!t->rounding[i].layer) continue;
        tare_tensor_reset(scratch);
        TARE_TRY(tare_tensor_new(scratch, TARE_DT_FLOAT, &t->block->layers[i]->product.arranged));
        tare_learned_rounding_weight(scratch, &t->rounding[i]);
        TARE_TRY(tare_block_batches_set_weight(t->batches, i, scratch));
    }
    return TARE_OK;
}

static tare_status iterate(struct task *t, struct tare_tensor *gradients, int64_t iteration,
                           const struct tare_block_batch *batch) {
    const int64_t total = t->pass->how->iterations;
    const double done = (double)iteration / (double)total;
    const double rate = fmin(0.05, fmax(0.001, 10 / (double)total)); /* shares can move from 0 to 1 */
    struct tare_tensor weight = { 0 };
    tare_status status = set_weights(t, &weight);
    tare_tensor_reset(&weight);
    TARE_TRY(status);
    status = tare_block_batches_gradients(gradients, t->batches, batch);
    for (size_t i = 0; i < t->block->n_layers; i++) {
        if (status == TARE_OK && t->rounding[i].layer && gradients[i].dtype == TARE_DT_FLOAT)
            tare_learned_rounding_step(&t->rounding[i], TARE_CONST_DATA(float, &gradients[i]), done, rate);
        tare_tensor_reset(&gradients[i]);
    }
    return status;
}

/* *late: the time limit was reached, and the layers are unchanged. */
static tare_status train(bool *late, struct task *t) {
    const struct pass *p = t->pass;
    const size_t size = t->n_training < MINIBATCH ? t->n_training : MINIBATCH;
    struct tare_tensor *gradients = tare_calloc(t->block->n_layers + 1, sizeof *gradients);
    struct tare_block_batch batch = { .count = size, .drop = DROP, .float_input = true };
    tare_status status = gradients ? TARE_OK : TARE_NO_MEMORY;
    size_t next = t->n_training;
    *late = false;
    for (int64_t i = 0; i < p->how->iterations && status == TARE_OK; i++) {
        if (tare_clock_seconds() > p->deadline) {
            *late = true;
            break;
        }
        if (next + size > t->n_training) {
            shuffle(t->training, t->n_training, mixed((uint64_t)p->how->seed ^ (uint64_t)i << 20));
            next = 0;
        }
        batch.samples = t->training + next;
        batch.seed = p->how->seed + ((i + 1) << 16);
        next += size;
        status = iterate(t, gradients, i, &batch);
        tare_progress_advance(p->progress, 1);
    }
    tare_free(gradients);
    return status;
}

static tare_status learn(bool *late, struct task *t) {
    tare_status status = TARE_OK;
    t->rounding = tare_calloc(t->block->n_layers + 1, sizeof *t->rounding);
    if (!t->rounding) return TARE_NO_MEMORY;
    for (size_t i = 0; i < t->block->n_layers; i++)
        if (t->trains[i] && t->model.gradients[i].node)
            TARE_CHECK(tare_learned_rounding_open(&t->rounding[i], t->block->layers[i]));
    TARE_CHECK(train(late, t));
    for (size_t i = 0; i < t->block->n_layers && !*late; i++)
        if (t->rounding[i].layer) tare_learned_rounding_store(&t->rounding[i]);
done:
    for (size_t i = 0; i < t->block->n_layers; i++)
        tare_learned_rounding_close(&t->rounding[i]);
    tare_free(t->rounding);
    t->rounding = NULL;
    return status;
}

/* ---- one block ---- */

/* Takes the inputs that the quantized blocks before this one computed. */
static void take_chain(struct task *t) {
    struct pass *p = t->pass;
    const bool follows = t->block->n_inputs == 1 && p->n_chain == t->data.count && p->chained.node &&
                         tare_edge_equal(p->chained, t->block->inputs[0]);
    for (size_t i = 0; i < p->n_chain; i++) {
        if (follows && tare_shape_equal(&p->chain[i].shape, &t->data.samples[i].inputs[0].shape))
            tare_tensor_share(&t->data.samples[i].quantized, &p->chain[i]);
        tare_tensor_reset(&p->chain[i]);
    }
    tare_free(p->chain);
    p->chain = NULL;
    p->n_chain = 0;
}

static tare_status make_chain(struct task *t) {
    struct pass *p = t->pass;
    if (t->block->n_outputs != 1 || !t->model.outputs[0].node) return TARE_OK;
    p->chain = tare_calloc(t->data.count + 1, sizeof *p->chain);
    if (!p->chain) return TARE_NO_MEMORY;
    p->n_chain = t->data.count;
    p->chained = t->block->outputs[0];
    TARE_TRY(tare_block_batches_dequantize(t->batches));
    return tare_block_batches_outputs(p->chain, t->batches);
}

static tare_status split_samples(struct task *t) {
    struct tare_arena *arena = t->pass->work->arena;
    t->training = TARE_NEW_ARRAY(arena, size_t, t->data.count + 1);
    t->held_out = TARE_NEW_ARRAY(arena, size_t, t->data.count + 1);
    if (!t->training || !t->held_out) return TARE_NO_MEMORY;
    for (size_t i = 0; i < t->data.count; i++) {
        if (i % HELD_OUT == HELD_OUT - 1)
            t->held_out[t->n_held_out++] = i;
        else
            t->training[t->n_training++] = i;
    }
    return TARE_OK;
}

/* Keeps the best of the integers before the pass, those of the layer form, and those of the block, where it can be
 * trained. */
static tare_status choose(struct task *t, const struct snapshot *before) {
    struct tare_quant_block_outcome *o = t->outcome;
    struct snapshot layers, *best = &layers;
    double least, error;
    bool late = false;
    TARE_TRY(save(&layers, t->pass->work->arena, t->block));
    TARE_TRY(held_out_error(&least, t));
    o->layers_db = decibels(least);
    restore(before, t->block, t->trains);
    TARE_TRY(held_out_error(&error, t));
    o->before_db = decibels(error);
    o->result = "layers";
    if (error < least) {
        best = (struct snapshot *)(uintptr_t)before;
        least = error;
        o->result = "unchanged";
    }
    restore(best, t->block, t->trains);
    if (o->reason || !t->pass->how->iterations) return TARE_OK;
    TARE_TRY(learn(&late, t));
    if (late) {
        o->reason = "the time limit was reached";
        return TARE_OK;
    }
    TARE_TRY(held_out_error(&error, t));
    o->block_db = decibels(error);
    if (error < least)
        o->result = "block";
    else
        restore(best, t->block, t->trains);
    return TARE_OK;
}

static tare_status run_block(struct task *t, const struct snapshot *before) {
    struct tare_quant_block_outcome *o = t->outcome;
    const char *reason;
    TARE_TRY(tare_block_data_observe(&t->data, &reason, t->pass->work, t->block, t->pass->threads));
    if (!reason && t->data.count < LEAST_SAMPLES) reason = "fewer than 8 samples compute all its inputs and outputs";
    take_chain(t);
    if (reason) {
        o->reason = reason;
        return TARE_OK;
    }
    TARE_TRY(tare_block_model_new(&t->model, &o->reason, t->pass->work->arena, t->pass->work, t->block, t->trains));
    if (!t->model.runs) return TARE_OK;
    TARE_TRY(split_samples(t));
    TARE_TRY(tare_block_batches_open(&t->batches, t->block, &t->model, &t->data, t->pass->threads));
    TARE_TRY(choose(t, before));
    return make_chain(t);
}

static tare_status reconstruct_block(struct pass *p, size_t index) {
    const struct tare_block *block = &p->list.blocks[index];
    struct task t = { .pass = p, .block = block, .outcome = &p->work->report->blocks[index] };
    bool any = false;
    tare_status status = TARE_OK;
    t.trains = TARE_NEW_ARRAY(p->work->arena, bool, block->n_layers + 1);
    if (!t.trains) return TARE_NO_MEMORY;
    for (size_t i = 0; i < block->n_layers; i++)
        any |= t.trains[i] = trains(p, block->layers[i]);
    t.outcome->reason = p->reason;
    if (!any && !p->reason) t.outcome->reason = "other layers share its weights";
    if (!t.outcome->reason) status = run_block(&t, &p->before[index]);
    tare_block_batches_close(t.batches);
    tare_block_data_free(&t.data);
    tare_block_model_free(&t.model);
    return status;
}

/* ---- the pass ---- */

static bool scales_activations(const struct tare_quant_work *work) {
    for (size_t i = 0; i < work->n_layers; i++)
        if (work->layers[i].changed || work->layers[i].input_scale) return true;
    return false;
}

/* What prevents the training of any block. */
static tare_status find_reason(struct pass *p) {
    const struct tare_kept_samples *samples = p->work->ranges ? p->work->ranges->samples : NULL;
    bool stateful = false;
    p->reason = NULL;
    if (!p->how->iterations) p->reason = "0 iterations";
    if (!samples || samples->count < LEAST_SAMPLES) p->reason = "fewer than 8 samples";
    if (scales_activations(p->work)) p->reason = "another pass scales activations";
    if (p->reason) return TARE_OK;
    for (size_t i = 0; i < p->work->model->n_signatures && !stateful; i++)
        TARE_TRY(tare_session_state_ops(&stateful, p->work->model, &p->work->model->signatures[i], NULL));
    if (stateful) p->reason = "the model has state";
    return TARE_OK;
}

static tare_status add_outcomes(struct pass *p) {
    struct tare_quant_report *report = p->work->report;
    report->blocks = TARE_NEW_ARRAY(p->work->arena, struct tare_quant_block_outcome, p->list.count + 1);
    if (!report->blocks) return TARE_NO_MEMORY;
    for (size_t i = 0; i < p->list.count; i++) {
        const struct tare_block *block = &p->list.blocks[i];
        report->blocks[i] = (struct tare_quant_block_outcome){ .function = block->graph->name,
                                                               .first = block->layers[0]->op->name,
                                                               .last = block->layers[block->n_layers - 1]->op->name,
                                                               .n_layers = block->n_layers,
                                                               .result = "layers",
                                                               .before_db = NAN,
                                                               .layers_db = NAN,
                                                               .block_db = NAN };
    }
    report->n_blocks = p->list.count;
    return TARE_OK;
}

/* Blocks, the integers before the pass, and which layers may be trained. */
static tare_status prepare(struct pass *p) {
    struct tare_quant_work *work = p->work;
    TARE_TRY(tare_quant_find_blocks(&p->list, work->arena, work));
    TARE_TRY(add_outcomes(p));
    TARE_TRY(find_reason(p));
    p->before = TARE_NEW_ARRAY(work->arena, struct snapshot, p->list.count + 1);
    p->trains = TARE_NEW_ARRAY(work->arena, bool, work->n_layers + 1);
    if (!p->before || !p->trains) return TARE_NO_MEMORY;
    for (size_t i = 0; i < p->list.count && !p->reason; i++) {
        const struct tare_block *block = &p->list.blocks[i];
        for (size_t k = 0; k < block->n_layers; k++) {
            p->trains[block->layers[k] - work->layers] = may_train(work, block->layers[k]);
            TARE_TRY(tare_quant_make_integers(work->arena, block->layers[k]));
            TARE_TRY(tare_quant_make_real(block->layers[k]));
        }
        TARE_TRY(save(&p->before[i], work->arena, block));
    }
    return TARE_OK;
}

tare_status tare_quant_reconstruct(struct tare_quant_work *work, const struct tare_reconstruction *how) {
    struct pass p = { .work = work, .how = how, .deadline = INFINITY };
    const double seconds = work->plan->reconstruction_seconds;
    struct tare_progress_options look = { .label = "reconstructing", .unit = "iterations", .quiet = work->plan->quiet };
    tare_status status = TARE_OK;
    if (seconds > 0) p.deadline = tare_clock_seconds() + seconds;
    p.threads = work->plan->threads > 0 ? work->plan->threads : tare_cpu_count();
    TARE_TRY(prepare(&p));
    TARE_TRY(tare_quant_compensate_layers(work, &how->layers));
    look.total = (int64_t)p.list.count * how->iterations;
    p.progress = p.reason ? NULL : tare_progress_new(&look);
    for (size_t i = 0; i < p.list.count && status == TARE_OK; i++)
        status = tare_error_prefix(reconstruct_block(&p, i), "block of %s", p.list.blocks[i].layers[0]->op->name);
    for (size_t i = 0; i < p.n_chain; i++)
        tare_tensor_reset(&p.chain[i]);
    tare_free(p.chain);
    tare_progress_free(p.progress);
    return status;
}
