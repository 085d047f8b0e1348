/* Layers and the Hessians of their inputs. */
#include "quant/hessian.h"
#include "calib/calibration.h"
#include "graph/graphs.h"
#include "interpreter/kernels/permute.h"

#include <math.h>
#include <string.h>

static void conv_form(struct tare_hessian_form *out, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    const struct tare_shape *filter = tare_quant_operand(layer);
    out->spatial = p->spatial;
    out->channels = filter->dims[p->spatial] * p->groups;
    out->groups = p->groups > 1 ? p->groups : 0;
    for (int i = 0; i < p->spatial; i++)
        out->window[i] = (struct tare_hessian_window){ filter->dims[i],  p->window[i].stride, p->window[i].dilation,
                                                       p->window[i].low, p->window[i].high,   p->window[i].base };
    out->rank = p->spatial + 2;
    out->order[0] = p->dims.input_batch;
    for (int i = 0; i < p->spatial; i++)
        out->order[i + 1] = p->dims.input_spatial[i];
    out->order[p->spatial + 1] = p->dims.input_feature;
}

/* The contracted axes come last, in the order of the weight's rows; the order of the others does not matter. */
static void dot_form(struct tare_hessian_form *out, const struct tare_quant_product *p) {
    const int rank = p->n_batch + p->n_free_left + p->n_contracted;
    out->channels = p->rows;
    for (int axis = 0; axis < rank; axis++) {
        bool contracted = false;
        for (int i = 0; i < p->n_contracted; i++)
            contracted = contracted || p->left_contracted[i] == axis;
        if (!contracted) out->order[out->rank++] = axis;
    }
    for (int i = 0; i < p->n_contracted; i++)
        out->order[out->rank++] = p->left_contracted[i];
}

int64_t tare_quant_hessian_count(const struct tare_quant_layer *layer) {
    return layer->selection && layer->loop == layer->selection ? layer->selection->count : 1;
}

/* How the layer's rows map to its activation. False if the layer has no Hessian: two activations, tables, several
 * batches of weights, an activation whose last axes are not the contracted ones. */
static bool quant_hessian_form(struct tare_hessian_form *out, const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    memset(out, 0, sizeof *out);
    if (layer->refused || !layer->weight || layer->kind == TARE_KIND_GATHER) return false;
    if (p->batches != tare_quant_hessian_count(layer)) return false;
    if (p->spatial)
        conv_form(out, layer);
    else
        dot_form(out, p);
    if (tare_permute_is_identity(out->rank, out->order)) out->rank = 0;
    if (out->rank && p->squeezed_left) return false; /* the order is that of the axes that are left */
    return p->spatial || (p->n_contracted > 0 && p->rows > 0);
}

/* ---- what to count ---- */

static double reach_of(const struct tare_calibration *calibration, struct tare_edge edge) {
    const struct tare_calibration_tensor *tensor = tare_calibration_find_edge(calibration, edge);
    double low, high;
    if (!tensor || !tare_statistics_extremes(&low, &high, &tensor->statistics)) return 0;
    return fmax(fabs(low), fabs(high));
}

static tare_status find_layers(struct tare_quant_layer_list *list, struct tare_arena *arena,
                               const struct tare_graph_model *model, const struct tare_model_shapes *shapes,
                               const struct tare_bindings *bindings) {
    for (size_t i = 0; i <= model->n_functions; i++)
        TARE_TRY(tare_quant_find_layers(list, arena, tare_model_graph(model, i), shapes, bindings));
    return TARE_OK;
}

static tare_status want_all(struct tare_hessians *set, size_t *left_out, const struct tare_quant_layer_list *list,
                            const struct tare_calibration *calibration, size_t limit) {
    for (size_t i = 0; i < list->count; i++) {
        const struct tare_quant_layer *layer = &list->layers[i];
        const double reach = reach_of(calibration, layer->input);
        struct tare_hessian_form form;
        if (!quant_hessian_form(&form, layer) || !(reach > 0)) continue;
        const int64_t count = tare_quant_hessian_count(layer);
        /* first, as a product of sizes may not fit */
        const bool fits = tare_hessian_size(&form) <= 1 << 20;
        const size_t bytes = fits ? tare_hessian_bytes(&form) : 0, room = limit - tare_hessians_total_bytes(set);
        if (!fits || bytes > room) {
            ++*left_out;
        } else if (count == 1 || bytes > room / (size_t)count) {
            TARE_TRY(tare_hessians_add(set, layer->input, -1, &form, reach));
        } else {
            for (int64_t entry = 0; entry < count; entry++)
                TARE_TRY(tare_hessians_add(set, layer->input, entry, &form, reach));
        }
    }
    return TARE_OK;
}

tare_status tare_quant_want_hessians(struct tare_hessians *set, size_t *left_out, const struct tare_graph_model *model,
                                     const struct tare_calibration *calibration, size_t limit) {
    struct tare_quant_layer_list list = { 0 };
    struct tare_model_shapes *shapes = NULL;
    struct tare_bindings *bindings = NULL;
    struct tare_arena arena = { 0 };
    tare_status status;
    *left_out = 0;
    TARE_CHECK(tare_model_shapes_new(&shapes, model));
    TARE_CHECK(tare_bindings_new(&bindings, model));
    TARE_CHECK(find_layers(&list, &arena, model, shapes, bindings));
    status = want_all(set, left_out, &list, calibration, limit);
done:
    tare_quant_release_layers(list.layers, list.count);
    tare_bindings_free(bindings);
    tare_model_shapes_free(shapes);
    tare_arena_free(&arena);
    return status;
}

const struct tare_hessian *tare_quant_hessian(const struct tare_quant_work *work, const struct tare_quant_layer *layer,
                                              int64_t matrix) {
    const struct tare_quant_ranges *ranges = work->ranges;
    const struct tare_hessian *h = NULL;
    struct tare_hessian_form form;
    if (!ranges || !ranges->hessian || !quant_hessian_form(&form, layer)) return NULL;
    if (tare_quant_hessian_count(layer) > 1) h = ranges->hessian(ranges->arg, layer->observed, matrix, &form);
    return h ? h : ranges->hessian(ranges->arg, layer->observed, -1, &form);
}

int64_t tare_quant_hessian_channel(const struct tare_hessian *h, const struct tare_quant_layer *layer, int64_t group,
                                   int64_t row) {
    const int64_t each = h->groups > 1 ? h->form.channels / h->groups : layer->input_channels;
    return group * each + row % each;
}
