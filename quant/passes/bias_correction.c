/* Bias correction: rounding weights shifts the mean of a layer's output by E[x] · (W - Ŵ); the bias compensates.
 *
 *     b'_c = b_c + Σ_rows E[x_row] · (W - Ŵ)_{row,c}
 *
 * with the mean of each input channel from calibration, or of each row where a Hessian was counted (Nagel et al.,
 * "Data-Free Quantization Through Weight Equalization and Bias Correction", ICCV 2019, section 4.2, with measured
 * means). Where a convolution pads with zeros, the mean at the border is smaller than the channel's; the full
 * correction is applied there as well. Methods that do not rewrite the bias add the correction to their result. */
#include "calib/statistics.h"
#include "quant/hessian.h"
#include "quant/layer.h"
#include "quant/pass.h"

#include <math.h>

/* Mean of the layer's input by input channel. NULL: not known. */
static const double *input_means(struct tare_quant_work *work, const struct tare_quant_layer *layer, int64_t matrix,
                                 int64_t *channels) {
    const struct tare_quant_ranges *ranges = work->ranges;
    const struct tare_statistics *s = tare_quant_input_statistics(work, layer), *own = NULL;
    const double *scale = tare_quant_input_scale(layer, matrix);
    double *means, count;
    if (!s || !tare_quant_has_input_channels(layer, s->channels)) return NULL;
    if (tare_quant_hessian_count(layer) > 1 && ranges->entry_statistics)
        own = ranges->entry_statistics(ranges->arg, layer->observed, matrix);
    if (own && own->channels == s->channels && tare_statistics_elements(own)) s = own;
    if (!(means = TARE_NEW_ARRAY(work->arena, double, (size_t)s->channels))) return NULL;
    count = (double)tare_statistics_elements(s) / (double)s->channels;
    for (int64_t c = 0; c < s->channels; c++) {
        means[c] = count > 0 ? tare_exact_sum_value(&s->channel_sum[c]) / count : 0;
        if (scale) means[c] /= scale[c];
    }
    *channels = s->channels;
    return means;
}

/* The mean of the inputs that each weight multiplies, including padding, if a pass requested Hessians: by group of
 * columns and row. NULL: none. */
static const double *row_means(struct tare_quant_work *work, const struct tare_quant_layer *layer, int64_t matrix,
                               int64_t *groups) {
    const struct tare_hessian *h =
        tare_quant_passes_need_hessians(work->plan->passes) ? tare_quant_hessian(work, layer, matrix) : NULL;
    const double *scale = tare_quant_input_scale(layer, matrix);
    double *means = h ? TARE_NEW_ARRAY(work->arena, double, (size_t)(h->groups * h->size)) : NULL;
    for (int64_t g = 0; means && g < h->groups; g++)
        for (int64_t r = 0; r < h->size; r++) {
            double *mean = &means[g * h->size + r];
            *mean = h->row_sums[g * h->stride + r] / (double)h->rows * h->step;
            if (scale) *mean /= scale[tare_quant_hessian_channel(h, layer, g, r)];
        }
    if (h) *groups = h->groups;
    return means;
}

/* Takes over `shift`. Layers of a loop have no bias of their own. */
static void put_shift(struct tare_quant_layer *layer, double *shift) {
    if (!layer->setting.method->takes_bias || layer->selection) {
        layer->shift = shift;
        return;
    }
    for (int64_t c = 0; c < layer->product.columns; c++)
        shift[c] += layer->bias_real    ? layer->bias_real[c]
                    : layer->bias_value ? tare_tensor_get_f64(layer->bias_value, c)
                                        : 0;
    layer->bias_real = shift;
}

/* Adds the correction of the columns of one matrix; *any: its means are known. */
static tare_status correct_matrix(double *shift, bool *any, struct tare_quant_work *work,
                                  struct tare_quant_layer *layer, int64_t matrix) {
    const struct tare_quantized_weight *weight = &layer->quantized;
    const int64_t columns = layer->product.columns, first = matrix * layer->product.rows * columns;
    int64_t channels = 0, groups = 0;
    const double *rows = row_means(work, layer, matrix, &groups),
                 *means = rows ? NULL : input_means(work, layer, matrix, &channels);
    const float *real;
    if (!means && !rows) return TARE_OK;
    *any = true;
    TARE_TRY(tare_quant_make_integers(work->arena, layer));
    TARE_TRY(tare_quant_make_real(layer));
    real = TARE_CONST_DATA(float, &layer->real) + first;
    for (int64_t r = 0; r < layer->product.rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            double scale = weight->scales[tare_weight_scale_index(weight, matrix, r, c)];
            double left = (double)real[r * columns + c] - scale * tare_weight_code(weight, first + r * columns + c);
            shift[c] += left * (rows ? rows[c / (columns / groups) * layer->product.rows + r]
                                     : means[tare_quant_input_channel(layer, channels, r, c)]);
        }
    return TARE_OK;
}

static tare_status correct(struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const int64_t matrices = tare_quant_hessian_count(layer), columns = layer->product.columns;
    double *shift;
    bool any = false;
    if (layer->product.batches != matrices) return TARE_OK;
    shift = TARE_NEW_ARRAY(work->arena, double, (size_t)(matrices * columns));
    if (!shift) return TARE_NO_MEMORY;
    for (int64_t matrix = 0; matrix < matrices; matrix++)
        TARE_TRY(correct_matrix(shift + matrix * columns, &any, work, layer, matrix));
    if (any) put_shift(layer, shift);
    work->changes += any;
    return TARE_OK;
}

static tare_status run(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    (void)self;
    return tare_quant_each_weight(work, correct);
}

const struct tare_quant_pass tare_quant_pass_bias_correction = {
    .name = "bias_correction",
    .help = "biases that take back what rounding the weights adds to the outputs' means",
    .needs_channels = true,
    .idle = "the means of the channels of the quantized layers' inputs are not known",
    .run = run,
};
