/* Noise of a layer.
 *
 * Rounding an activation to a grid of step s adds an error of mean square s²/12 to each element that is not 0. The
 * errors of different elements are nearly independent, so that the output of a layer gets an error of mean square
 * s²/12 ‖W‖² / channels times the share of elements that are not 0, with ‖W‖² the sum of the squares of all weights. It
 * is compared with the variance of the output over the samples, not with its mean square: a mean carries no
 * information. Where a pass has divided the channels of the activation, s is the step of the divided one, and W the
 * weights multiplied accordingly: an error of channel c is input_scale[c] times as large in the layer's own output. */
#include "quant/layers/output_noise.h"
#include "calib/statistics.h"
#include "quant/fake_quant.h"
#include "quant/product.h"
#include "quant/selection/entries.h"
#include "quant/weight_store.h"

#include <math.h>

/* The iterations of a loop in which a layer has weights of their own; 1: there is no loop. */
static int64_t iterations_of(const struct tare_quant_work *work, const struct tare_quant_layer *layer) {
    const bool by_entry = layer->selection && layer->loop == layer->selection && work->ranges->entry_statistics;
    return by_entry ? layer->loop->count : 1;
}

/* The squares of the weights of each iteration. */
static tare_status squares_by_entry(double *out, int64_t entries, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    struct tare_tensor arranged;
    int64_t i = 0;
    TARE_TRY(tare_quant_arrange(&arranged, p, layer->weight));
    for (int64_t b = 0; b < p->batches; b++) {
        const double *scale = tare_quant_input_scale(layer, b * layer->input_entries / p->batches);
        double sum = 0;
        for (int64_t r = 0; r < p->rows; r++)
            for (int64_t k = 0; k < p->columns; k++, i++) {
                const double factor = scale ? scale[tare_quant_input_channel(layer, layer->input_channels, r, k)] : 1;
                const double w = tare_tensor_get_f64(&arranged, i) * factor;
                sum += w * w;
            }
        out[b * entries / p->batches] += sum;
    }
    tare_tensor_reset(&arranged);
    return TARE_OK;
}

static tare_status find_squares(double *out, int64_t entries, const struct tare_quant_work *work,
                                struct tare_quant_layer *layer) {
    if (layer->input_scale || entries > 1) return squares_by_entry(out, entries, layer);
    struct tare_quant_weight_store *store = layer->held && !layer->variable ? NULL : work->plan->weights;
    if (layer->weight_squares == 0)
        TARE_TRY(tare_quant_weight_store_squares(&layer->weight_squares, store, layer->weight));
    *out = layer->weight_squares;
    return TARE_OK;
}

static double variance(const struct tare_statistics *s) {
    const double count = (double)tare_statistics_elements(s), mean = tare_exact_sum_value(&s->sum) / count;
    return tare_exact_sum_value(&s->sum_of_squares) / count - mean * mean;
}

/* The statistics of an iteration, or of all of them. */
static const struct tare_statistics *statistics_of(const struct tare_quant_ranges *ranges, struct tare_edge edge,
                                                   int64_t entry, int64_t entries) {
    const struct tare_statistics *own = entries > 1 ? ranges->entry_statistics(ranges->arg, edge, entry) : NULL;
    if (!own || !tare_statistics_elements(own)) own = ranges->statistics(ranges->arg, edge);
    return own && tare_statistics_elements(own) ? own : NULL;
}

/* The mean square of the step of the activation's grid: in an iteration, or over the layer's own ones. */
static double square_step(const struct tare_quant_layer *layer, int64_t entry, int64_t count) {
    const struct tare_quant_entries *entries = layer->entries;
    double sum = 0, own = 0;
    if (entries && count > 1) return entries->left[entry].scale * entries->left[entry].scale;
    for (int64_t i = 0; entries && i < entries->count; i++)
        if (!entries->own || entries->own[i]) {
            sum += entries->left[i].scale * entries->left[i].scale;
            own++;
        }
    return own > 0 ? sum / own : layer->left_params.scale * layer->left_params.scale;
}

static double noise_of(const struct tare_quant_layer *layer, double square, double squares, double channels,
                       const struct tare_statistics *input) {
    double noise = square / 12 * squares / channels;
    for (int i = 0; i < layer->product.spatial; i++) /* zeros between the elements of the input have no error */
        noise /= (double)layer->product.window[i].base;
    return noise * (1 - (double)input->histogram.zeros / (double)tare_statistics_elements(input));
}

static tare_status signal_to_noise(double *db, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const int64_t count = iterations_of(work, layer);
    const double channels = (double)tare_quant_channels(&layer->product) / (double)count;
    double *squares = TARE_NEW_ARRAY(work->arena, double, (size_t)count);
    if (!squares) return TARE_NO_MEMORY;
    if (!statistics_of(work->ranges, layer->observed, 0, 1) || !statistics_of(work->ranges, layer->output, 0, 1))
        return TARE_OK;
    TARE_TRY(find_squares(squares, count, work, layer));
    for (int64_t i = 0; i < count; i++) {
        if (count > 1 && layer->entries && layer->entries->own && !layer->entries->own[i]) continue;
        const struct tare_statistics *input = statistics_of(work->ranges, layer->observed, i, count);
        const double noise = noise_of(layer, square_step(layer, i, count), squares[i], channels, input);
        const double signal = variance(statistics_of(work->ranges, layer->output, i, count));
        if (signal > 0 && noise > 0) *db = fmin(*db, 10 * log10(signal / noise));
    }
    return TARE_OK;
}

tare_status tare_quant_output_db(double *db, const struct tare_quant_work *work, struct tare_quant_layer *layer) {
    const struct tare_quant_ranges *ranges = work->ranges;
    double low, high;
    bool trained;
    *db = INFINITY; /* also of float8, whose steps are not equal */
    if (layer->refused || layer->setting.format || !layer->weight || !layer->setting.method->needs_ranges ||
        !(layer->left_params.scale > 0))
        return TARE_OK;
    if (layer->kind == TARE_KIND_GATHER || !ranges || !ranges->statistics) return TARE_OK;
    TARE_TRY(tare_quant_fake_range(&trained, &low, &high, work->fakes, layer->observed));
    return trained ? TARE_OK : signal_to_noise(db, work, layer);
}
