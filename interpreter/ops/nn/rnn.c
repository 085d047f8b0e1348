/* Fused recurrent cells: GRUBlockCell, LSTMBlockCell, and BlockLSTM over a whole sequence. Computed in float. */
#include "interpreter/kernels/elementary_double.h"
#include "interpreter/kernels/gemm.h"
#include "interpreter/kernels/rowwise.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"
#include "interpreter/ops/support/weights.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

struct rnn_state {
    struct tare_weights weights[2];
};

static tare_status prepare_rnn(struct tare_kernel *kernel) {
    struct rnn_state *state = tare_calloc(1, sizeof *state);
    kernel->state = state;
    for (int i = 0; state && i < 2; i++)
        state->weights[i].owner = (const char *)kernel->node + i;
    return !state ? TARE_NO_MEMORY : TARE_OK;
}

static void release_rnn(void *pointer) {
    struct rnn_state *state = pointer;
    if (!state) return;
    tare_weights_reset(&state->weights[0]);
    tare_weights_reset(&state->weights[1]);
    tare_free(state);
}

static float sigmoid(float x) {
    return (float)tare_sigmoid((double)x);
}

static float hyperbolic_tangent(float x) {
    return (float)tare_tanh((double)x);
}

static tare_status want_shape(const struct tare_tensor *tensor, const char *what, int rank, int64_t a, int64_t b) {
    const int64_t dims[2] = { a, b };
    bool good = tensor->shape.rank == rank;
    for (int i = 0; good && i < rank; i++)
        good = tensor->shape.dims[i] == dims[i];
    if (good) return TARE_OK;
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    const struct tare_shape shape = { .rank = rank, .dims = { a, b } };
    return TARE_FAIL(TARE_SHAPE, "%s has shape %s (expected %s)", what, tare_shape_text(got, &tensor->shape),
                     tare_shape_text(expected, &shape));
}

/* to [batch, n] = [x, h] · w + bias, for x [batch, in], h [batch, cell], w [in + cell, n]. */
struct affine {
    int64_t batch, in, cell, n;
    const float *bias;
    float *packed, *joined, *block;
};

/* Packs w, or reuses the cached packing, and allocates the row buffers. */
static tare_status open_affine(struct affine *affine, struct tare_kernel *kernel, struct tare_weights *weights,
                               const struct tare_tensor *source, const float *w) {
    const int64_t k = affine->in + affine->cell;
    affine->joined = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)(affine->batch * k));
    affine->block = TARE_NEW_ARRAY(kernel->scratch, float, tare_gemm_scratch_floats());
    if (!affine->joined || !affine->block) return TARE_NO_MEMORY;
    affine->packed = tare_weights_find(weights, source, 0);
    if (affine->packed) return TARE_OK;
    const size_t bytes = tare_gemm_packed_floats(k, affine->n) * sizeof(float);
    affine->packed = tare_weights_make(weights, source, 0, bytes, kernel->scratch);
    if (!affine->packed) return TARE_NO_MEMORY;
    tare_gemm_pack(affine->packed, w, k, affine->n, affine->n, 1);
    affine->packed = tare_weights_publish(weights, affine->packed);
    return TARE_OK;
}

static void run_affine(float *to, const struct affine *affine, const float *x, const float *h) {
    const int64_t k = affine->in + affine->cell;
    for (int64_t b = 0; b < affine->batch; b++) {
        memcpy(affine->joined + b * k, x + b * affine->in, (size_t)affine->in * sizeof *x);
        memcpy(affine->joined + b * k + affine->in, h + b * affine->cell, (size_t)affine->cell * sizeof *h);
    }
    const struct tare_gemm_rows rows = { .data = affine->joined, .stride = k };
    tare_gemm(to, affine->n, &rows, affine->packed, affine->batch, affine->n, k, NULL, affine->block);
    tare_rowwise_add(to, to, affine->bias, affine->batch, affine->n);
}

/* ---- GRU ---- */

static tare_status infer_gru(struct tare_infer *infer) {
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = infer->inputs[1];
    return TARE_OK;
}

static tare_status run_gru(struct tare_kernel *kernel) {
    const struct tare_tensor *inputs = kernel->inputs;
    struct rnn_state *state = kernel->state;
    if (inputs[0].shape.rank != 2 || inputs[1].shape.rank != 2)
        return TARE_FAIL(TARE_SHAPE, "x and h_prev must have rank 2");
    const int64_t batch = inputs[0].shape.dims[0], in = inputs[0].shape.dims[1], cell = inputs[1].shape.dims[1];
    TARE_TRY(want_shape(&inputs[1], "h_prev", 2, batch, cell));
    TARE_TRY(want_shape(&inputs[2], "w_ru", 2, in + cell, 2 * cell));
    TARE_TRY(want_shape(&inputs[3], "w_c", 2, in + cell, cell));
    TARE_TRY(want_shape(&inputs[4], "b_ru", 1, 2 * cell, 0));
    TARE_TRY(want_shape(&inputs[5], "b_c", 1, cell, 0));
    for (size_t i = 0; i < 4; i++)
        TARE_TRY(tare_kernel_output(kernel, i, TARE_DT_FLOAT, &inputs[1].shape));
    float *gates = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)(batch * 2 * cell));
    float *reset = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)(batch * cell));
    if (!gates || !reset) return TARE_NO_MEMORY;
    if (batch == 0 || cell == 0) return TARE_OK;
    const float *x = inputs[0].data, *h = inputs[1].data;
    float *r = kernel->outputs[0].data, *u = kernel->outputs[1].data, *c = kernel->outputs[2].data;
    float *next = kernel->outputs[3].data;
    struct affine affine = { .batch = batch, .in = in, .cell = cell, .n = 2 * cell, .bias = inputs[4].data };
    TARE_TRY(open_affine(&affine, kernel, &state->weights[0], &inputs[2], inputs[2].data));
    run_affine(gates, &affine, x, h);
    for (int64_t i = 0; i < batch * cell; i++) {
        const float *row = gates + i / cell * 2 * cell + i % cell;
        r[i] = sigmoid(row[0]);
        u[i] = sigmoid(row[cell]);
        reset[i] = r[i] * h[i];
    }
    affine = (struct affine){ .batch = batch, .in = in, .cell = cell, .n = cell, .bias = inputs[5].data };
    TARE_TRY(open_affine(&affine, kernel, &state->weights[1], &inputs[3], inputs[3].data));
    run_affine(c, &affine, x, reset);
    for (int64_t i = 0; i < batch * cell; i++) {
        c[i] = hyperbolic_tangent(c[i]);
        next[i] = u[i] * h[i] + (1 - u[i]) * c[i];
    }
    return TARE_OK;
}

/* ---- LSTM ---- */

/* A row's aux. */
struct lstm_kind {
    bool sequence;                   /* x has a leading time axis, and input 0 is the number of steps */
    int input, cell, forget, output; /* order of the gates in w and b */
};
static const struct lstm_kind kind_cell = { false, 0, 1, 2, 3 }, kind_block = { true, 0, 1, 2, 3 },
                              kind_block_v2 = { true, 0, 2, 1, 3 };

enum lstm_input { X, CS_PREV, H_PREV, W, WCI, WCF, WCO, B, N_LSTM_INPUTS };
enum lstm_output { OUT_I, OUT_CS, OUT_F, OUT_O, OUT_CI, OUT_CO, OUT_H, N_LSTM_OUTPUTS };

struct lstm {
    const struct lstm_kind *kind;
    int64_t steps, batch, in, cell;
    float forget_bias, clip;
    bool peephole;
    const float *inputs[N_LSTM_INPUTS];
    float *outputs[N_LSTM_OUTPUTS];
};

static tare_status infer_lstm(struct tare_infer *infer) {
    const struct lstm_kind *kind = infer->node->def->row->aux;
    const struct tare_shape *x = &infer->inputs[kind->sequence], *cell = &infer->inputs[kind->sequence + CS_PREV];
    struct tare_shape out = { .rank = kind->sequence ? 3 : 2, .dims = { -1, -1, -1 } };
    if (x->rank >= 0 && x->rank != out.rank)
        return TARE_FAIL(TARE_SHAPE, "x has rank %d (expected %d)", x->rank, out.rank);
    for (int i = 0; x->rank >= 0 && i < out.rank - 1; i++)
        out.dims[i] = x->dims[i];
    if (cell->rank == 2) out.dims[out.rank - 1] = cell->dims[1];
    for (size_t i = 0; i < infer->n_outputs; i++)
        infer->outputs[i] = out;
    return TARE_OK;
}

/* Computes the outputs of one step from its gates. `previous` is the cell state before the step. */
static void lstm_step(const struct lstm *l, const float *gates, const float *previous, int64_t first) {
    const int64_t cell = l->cell;
    for (int64_t i = 0; i < l->batch * cell; i++) {
        const float *row = gates + i / cell * 4 * cell + i % cell;
        const int64_t at = first + i, unit = i % cell;
        float in = row[l->kind->input * cell], forget = row[l->kind->forget * cell] + l->forget_bias;
        if (l->peephole) {
            in += l->inputs[WCI][unit] * previous[i];
            forget += l->inputs[WCF][unit] * previous[i];
        }
        l->outputs[OUT_I][at] = sigmoid(in);
        l->outputs[OUT_F][at] = sigmoid(forget);
        l->outputs[OUT_CI][at] = hyperbolic_tangent(row[l->kind->cell * cell]);
        float state = l->outputs[OUT_CI][at] * l->outputs[OUT_I][at] + previous[i] * l->outputs[OUT_F][at];
        if (l->clip > 0) state = state > l->clip ? l->clip : state < -l->clip ? -l->clip : state;
        l->outputs[OUT_CS][at] = state;
        float out = row[l->kind->output * cell];
        if (l->peephole) out += l->inputs[WCO][unit] * state;
        l->outputs[OUT_O][at] = sigmoid(out);
        l->outputs[OUT_CO][at] = hyperbolic_tangent(state);
        l->outputs[OUT_H][at] = l->outputs[OUT_CO][at] * l->outputs[OUT_O][at];
    }
}

static tare_status check_lstm(struct lstm *l, const struct tare_kernel *kernel) {
    const struct tare_tensor *inputs = kernel->inputs + l->kind->sequence;
    const int rank = l->kind->sequence ? 3 : 2;
    if (inputs[X].shape.rank != rank || inputs[CS_PREV].shape.rank != 2)
        return TARE_FAIL(TARE_SHAPE, "x and cs_prev must have ranks %d and 2", rank);
    l->batch = inputs[X].shape.dims[rank - 2];
    l->in = inputs[X].shape.dims[rank - 1];
    l->cell = inputs[CS_PREV].shape.dims[1];
    l->steps = 1;
    if (l->kind->sequence) {
        if (kernel->inputs[0].elements != 1) return TARE_FAIL(TARE_SHAPE, "seq_len_max is not a scalar");
        l->steps = tare_tensor_get_i64(&kernel->inputs[0], 0);
        if (l->steps < 0 || l->steps > inputs[X].shape.dims[0])
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "seq_len_max is %lld (expected 0 to %lld)", (long long)l->steps,
                             (long long)inputs[X].shape.dims[0]);
    }
    TARE_TRY(want_shape(&inputs[CS_PREV], "cs_prev", 2, l->batch, l->cell));
    TARE_TRY(want_shape(&inputs[H_PREV], "h_prev", 2, l->batch, l->cell));
    TARE_TRY(want_shape(&inputs[W], "w", 2, l->in + l->cell, 4 * l->cell));
    TARE_TRY(want_shape(&inputs[B], "b", 1, 4 * l->cell, 0));
    l->peephole = tare_node_bool(kernel->node, "use_peephole", false);
    for (int i = WCI; l->peephole && i <= WCO; i++)
        TARE_TRY(want_shape(&inputs[i], "a peephole weight", 1, l->cell, 0));
    l->clip = tare_node_float(kernel->node, "cell_clip", 0);
    l->forget_bias = tare_node_float(kernel->node, "forget_bias", 0);
    return TARE_OK;
}

static tare_status open_lstm(struct lstm *l, struct tare_kernel *kernel) {
    const struct tare_tensor *inputs = kernel->inputs + l->kind->sequence;
    struct tare_shape shape = inputs[X].shape;
    shape.dims[shape.rank - 1] = l->cell;
    for (int i = 0; i < N_LSTM_INPUTS; i++) {
        l->inputs[i] = tare_floats_in(kernel, &inputs[i]);
        if (!l->inputs[i]) return TARE_NO_MEMORY;
    }
    for (size_t i = 0; i < N_LSTM_OUTPUTS; i++) {
        TARE_TRY(tare_kernel_output(kernel, i, inputs[X].dtype, &shape));
        if (kernel->outputs[i].elements == 0) continue;
        l->outputs[i] = tare_floats_out(kernel, i);
        if (!l->outputs[i]) return TARE_NO_MEMORY;
        memset(l->outputs[i], 0, (size_t)kernel->outputs[i].elements * sizeof(float)); /* steps that are not run */
    }
    return TARE_OK;
}

static tare_status run_lstm(struct tare_kernel *kernel) {
    struct lstm l = { .kind = kernel->op->aux };
    struct rnn_state *state = kernel->state;
    const struct tare_tensor *w = &kernel->inputs[l.kind->sequence + W];
    TARE_TRY(check_lstm(&l, kernel));
    TARE_TRY(open_lstm(&l, kernel));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    float *gates = TARE_NEW_ARRAY(kernel->scratch, float, (size_t)(l.batch * 4 * l.cell));
    struct affine affine = { .batch = l.batch, .in = l.in, .cell = l.cell, .n = 4 * l.cell, .bias = l.inputs[B] };
    if (!gates) return TARE_NO_MEMORY;
    TARE_TRY(open_affine(&affine, kernel, &state->weights[0], w, l.inputs[W]));
    const float *previous = l.inputs[CS_PREV], *h = l.inputs[H_PREV];
    for (int64_t step = 0; step < l.steps; step++) {
        const int64_t first = step * l.batch * l.cell;
        run_affine(gates, &affine, l.inputs[X] + step * l.batch * l.in, h);
        lstm_step(&l, gates, previous, first);
        previous = l.outputs[OUT_CS] + first;
        h = l.outputs[OUT_H] + first;
    }
    for (size_t i = 0; i < N_LSTM_OUTPUTS; i++)
        tare_floats_round(kernel, i, l.outputs[i]);
    return TARE_OK;
}

const struct tare_op tare_ops_rnn[] = {
    { .name = "GRUBlockCell", .infer = infer_gru, .run = run_gru, .prepare = prepare_rnn, .release = release_rnn },
    { .name = "LSTMBlockCell",
      .infer = infer_lstm,
      .run = run_lstm,
      .prepare = prepare_rnn,
      .release = release_rnn,
      .aux = &kind_cell },
    { .name = "BlockLSTM",
      .infer = infer_lstm,
      .run = run_lstm,
      .prepare = prepare_rnn,
      .release = release_rnn,
      .aux = &kind_block },
    { .name = "BlockLSTMV2",
      .infer = infer_lstm,
      .run = run_lstm,
      .prepare = prepare_rnn,
      .release = release_rnn,
      .aux = &kind_block_v2 },
    { 0 },
};
