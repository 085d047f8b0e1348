/* Error-compensated rounding of layers: which Hessian each layer's columns are rounded with (mathematics in
 * quant/gptq_rounding.c). The Hessian is computed from the float model's activations. With bias_correction, which
 * removes the mean error in any case, only the error around the mean matters: the Hessian is then the covariance.
 * Damping is at least what the number of samples requires (shrinkage below) and includes the rounding error of the
 * input; a column keeps the integers that it has where these have the smaller error. Each group of a convolution, and
 * each channel of a depthwise convolution, has its own Hessian; a variable that several layers read gets the integers
 * that minimize their total error. */
#include "quant/compensation.h"
#include "quant/gptq_rounding.h"
#include "quant/hessian.h"
#include "quant/pass.h"
#include "quant/selection/entries.h"

#include "base/alloc.h"

#include <math.h>
#include <string.h>

static const double MOST_DAMPING = 1000;

static bool corrects_means(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    return layer->kind != TARE_KIND_GATHER &&
           tare_quant_passes_have(work->plan->passes, &tare_quant_pass_bias_correction);
}

/* Layers with the same integers (tare_quant_same_integers) whose inputs have a Hessian: the total error of the
 * integers in all of them is minimized. */
struct readers {
    const struct tare_quant_layer **layers;
    const struct tare_hessian **hessians;
    size_t count;
    double rows; /* that all Hessians have counted */
};

static tare_status find_readers(struct readers *out, const struct tare_quant_work *work,
                                const struct tare_quant_layer *first, int64_t matrix) {
    *out = (struct readers){ .layers = TARE_NEW_ARRAY(work->arena, const struct tare_quant_layer *, work->n_layers),
                             .hessians = TARE_NEW_ARRAY(work->arena, const struct tare_hessian *, work->n_layers) };
    if (!out->layers || !out->hessians) return TARE_NO_MEMORY;
    for (const struct tare_quant_layer *layer = first; layer < work->layers + work->n_layers; layer++) {
        const struct tare_hessian *h =
            layer == first || tare_quant_same_integers(first, layer) ? tare_quant_hessian(work, layer, matrix) : NULL;
        if (!h || (out->count && (h->size != out->hessians[0]->size || h->groups != out->hessians[0]->groups)))
            continue;
        out->rows += (double)h->rows;
        out->hessians[out->count] = h;
        out->layers[out->count++] = layer;
    }
    return TARE_OK;
}

/* Adds a share of E[x_i x_j] of the layer's input, or of its covariance. */
static void add_hessian(double *out, const struct tare_hessian *h, const struct tare_quant_layer *layer, int64_t matrix,
                        int64_t group, double share, bool centred) {
    const double *scale = tare_quant_input_scale(layer, matrix);
    const double *sums = &h->sums[group * h->size * h->stride], *row_sums = &h->row_sums[group * h->stride];
    const double rows = (double)h->rows;
    for (int64_t i = 0; i < h->size; i++)
        for (int64_t j = i; j < h->size; j++) {
            double value = sums[i * h->stride + j] / rows;
            if (centred) value -= row_sums[i] / rows * (row_sums[j] / rows);
            if (scale)
                value /= scale[tare_quant_hessian_channel(h, layer, group, i)] *
                         scale[tare_quant_hessian_channel(h, layer, group, j)];
            out[i * h->size + j] += share * value * h->step * h->step;
            out[j * h->size + i] = out[i * h->size + j];
        }
}

/* Mean of the diagonal. */
static double mean_square(const double *hessian, int64_t size) {
    double trace = 0;
    for (int64_t i = 0; i < size; i++)
        trace += hessian[i * size + i];
    return trace / (double)size;
}

/* The share of mean * I in the best estimate (1 - share) H + share * mean * I of the second moments that other samples
 * have (oracle approximating shrinkage: Chen et al., "Shrinkage Algorithms for MMSE Covariance Estimation", IEEE TSP
 * 2010). With few samples for the size, rounding would otherwise fit these samples: in directions that they do not
 * show, the error of the weights may be anything. */
static double shrinkage(const double *hessian, int64_t size, double samples) {
    const double n = (double)size, trace = n * mean_square(hessian, size);
    double squares = 0, spread;
    for (int64_t i = 0; i < size * size; i++)
        squares += hessian[i] * hessian[i];
    spread = (samples + 1 - 2 / n) * (squares - trace * trace / n);
    if (!(spread > 0)) return 0;
    return fmin(1, ((1 - 2 / n) * squares + trace * trace) / spread);
}

/* Mean square of the error that rounding to integers adds to the layer's input; 0 if it stays float, or becomes float8,
 * whose error is a share of each value. It is independent of the input, so the error of the output grows by it times
 * the squares of the weights. */
static double input_noise(const struct tare_quant_layer *layer, int64_t matrix) {
    const struct tare_qparams *params =
        layer->entries && matrix < layer->entries->count ? &layer->entries->left[matrix] : &layer->left_params;
    const double step = layer->setting.method->integer_inputs && !params->format ? params->scale : 0;
    return step * step / 12;
}

/* Damping relative to the mean of the diagonal. */
static double damping_of(const double *hessian, const struct readers *readers, int64_t matrix, double least) {
    const int64_t size = readers->hessians[0]->size;
    const double mean = mean_square(hessian, size);
    double samples = readers->rows, share, noise = 0;
    for (int i = 0; i < readers->hessians[0]->form.spatial; i++) /* windows overlap */
        samples /= (double)readers->hessians[0]->form.window[i].size;
    share = shrinkage(hessian, size, samples);
    for (size_t i = 0; i < readers->count; i++)
        noise += input_noise(readers->layers[i], matrix) * (double)readers->hessians[i]->rows / readers->rows;
    if (!(mean > 0)) return least;
    return fmax(least, share < 1 ? fmin(share / (1 - share), MOST_DAMPING) : MOST_DAMPING) + noise / mean;
}

/* A matrix of the weight, which shares integers and scales with it. */
static tare_status view_matrix(struct tare_quantized_weight *view, const struct tare_quant_layer *layer,
                               int64_t matrix) {
    const struct tare_quantized_weight *whole = &layer->quantized;
    *view = *whole;
    if (layer->product.batches == 1) {
        tare_tensor_share(&view->values, &whole->values);
        return TARE_OK;
    }
    view->layout.batches = 1;
    if (!whole->layout.per_tensor) {
        view->n_scales = whole->n_scales / layer->product.batches;
        view->scales = whole->scales + matrix * view->n_scales;
    }
    /* the matrices of a stack with several axes that choose are one after another */
    struct tare_tensor stack = { 0 };
    const struct tare_shape shape =
        tare_shape_make(2, layer->product.batches, whole->values.elements / layer->product.batches);
    TARE_TRY(tare_tensor_share_as(&stack, &whole->values, &shape));
    const tare_status status = tare_tensor_share_rows(&view->values, &stack, matrix, 1);
    tare_tensor_reset(&stack);
    return status;
}

/* Rounds the columns of each group of a matrix with the group's Hessian. */
static tare_status round_groups(struct tare_quantized_weight *weight, struct tare_quant_layer *layer, int64_t matrix,
                                const struct readers *readers, const struct tare_quant_compensation *wanted,
                                bool centred) {
    const struct tare_qscheme scheme = tare_quant_weight_scheme(&layer->setting);
    const int64_t size = readers->hessians[0]->size, groups = readers->hessians[0]->groups;
    const size_t bytes = (size_t)size * (size_t)size * sizeof(double);
    double *hessian = tare_malloc(bytes);
    struct tare_compensation how = { .act_order = wanted->act_order,
                                     .hessian = hessian,
                                     .real = TARE_CONST_DATA(float, &layer->real) +
                                             matrix * layer->product.rows * layer->product.columns,
                                     .count = layer->product.columns / groups };
    tare_status status = hessian ? TARE_OK : TARE_NO_MEMORY;
    for (int64_t group = 0; group < groups && status == TARE_OK; group++) {
        struct tare_compensated result;
        memset(hessian, 0, bytes);
        for (size_t i = 0; i < readers->count; i++)
            add_hessian(hessian, readers->hessians[i], readers->layers[i], matrix, group,
                        (double)readers->hessians[i]->rows / readers->rows, centred);
        how.first = group * how.count;
        how.damp = damping_of(hessian, readers, matrix, wanted->damp);
        status = tare_round_compensated(&result, weight, &scheme, &how);
    }
    tare_free(hessian);
    return status;
}

/* Every later layer that uses the same integers gets these, whether or not its input has a Hessian. */
static void share_integers(struct tare_quant_work *work, const struct tare_quant_layer *made) {
    for (struct tare_quant_layer *layer = work->layers; layer < work->layers + work->n_layers; layer++) {
        if (layer <= made || layer->twin || !tare_quant_same_integers(made, layer)) continue;
        tare_tensor_reset(&layer->quantized.values);
        layer->quantized = made->quantized;
        tare_tensor_share(&layer->quantized.values, &made->quantized.values);
        layer->twin = made;
    }
}

static tare_status round_matrix(struct tare_quant_work *work, struct tare_quant_layer *layer, int64_t matrix,
                                const struct tare_quant_compensation *wanted) {
    struct tare_quantized_weight view;
    struct readers readers;
    tare_status status;
    TARE_TRY(find_readers(&readers, work, layer, matrix));
    if (!readers.count) return TARE_OK;
    TARE_TRY(tare_quant_make_integers(work->arena, layer));
    TARE_TRY(tare_quant_make_real(layer));
    TARE_TRY(view_matrix(&view, layer, matrix));
    status = round_groups(&view, layer, matrix, &readers, wanted, corrects_means(work, layer));
    tare_tensor_reset(&view.values);
    return status;
}

static tare_status round_layer(struct tare_quant_work *work, struct tare_quant_layer *layer,
                               const struct tare_quant_compensation *wanted) {
    if (layer->refused || layer->twin) return TARE_OK;
    for (int64_t matrix = 0; matrix < tare_quant_hessian_count(layer); matrix++)
        TARE_TRY(round_matrix(work, layer, matrix, wanted));
    if (layer->quantized.values.dtype == TARE_DT_INVALID || layer->real.dtype == TARE_DT_INVALID) return TARE_OK;
    share_integers(work, layer);
    work->changes++;
    return TARE_OK;
}

tare_status tare_quant_compensate_layers(struct tare_quant_work *work, const struct tare_quant_compensation *wanted) {
    for (size_t i = 0; i < work->n_layers; i++)
        TARE_TRY(tare_error_prefix(round_layer(work, &work->layers[i], wanted), "%s", work->layers[i].op->name));
    return TARE_OK;
}
