/* Finding look-ups and products of one table. */
#include "quant/tied_tables.h"
#include "quant/product.h"

/* A product of arrays with the transposed weight: entries are columns. */
static bool multiplies_entries(const struct tare_quant_layer *layer) {
    const struct tare_quant_product *p = &layer->product;
    return tare_quant_multiplies_arrays(layer->kind) && !layer->selection && !layer->n_parts && !p->reversed &&
           layer->weight->shape.rank == 2 && p->n_order == 2 && p->order[0] == 1 && p->n_batch == 0 &&
           p->n_contracted == 1;
}

static bool same_values(const struct tare_quant_layer *a, const struct tare_quant_layer *b) {
    if (a->variable || b->variable) return a->variable == b->variable && a->op->graph == b->op->graph;
    if (a->weight->dtype != b->weight->dtype || !tare_shape_equal(&a->weight->shape, &b->weight->shape)) return false;
    return a->op->graph == b->op->graph &&
           (a->weight->data == b->weight->data || tare_tensor_same_bits(a->weight, b->weight));
}

static bool can_tie(const struct tare_quant_layer *table, const struct tare_quant_layer *product) {
    return multiplies_entries(product) && table->product.batches == product->product.columns &&
           table->product.rows == product->product.rows && table->setting.granularity != TARE_PER_BLOCK &&
           tare_quant_same_weight_settings(&table->setting, &product->setting) && same_values(table, product);
}

void tare_quant_find_tied(struct tare_quant_work *work) {
    if (work->plan->op_set != TARE_OP_SET_XLA) return;
    for (size_t t = 0; t < work->n_layers; t++) {
        struct tare_quant_layer *table = &work->layers[t];
        if (table->refused || table->kind != TARE_KIND_GATHER || !table->weight) continue;
        for (size_t i = 0; i < work->n_layers; i++) {
            struct tare_quant_layer *product = &work->layers[i];
            if (product->refused || product->kind == TARE_KIND_GATHER || !product->weight || product->tied) continue;
            if (!can_tie(table, product)) continue;
            product->tied = table;
            if (!table->tied) table->tied = product;
        }
    }
}

bool tare_quant_is_tied(const struct tare_quant_work *work, const struct tare_quant_layer *a,
                        const struct tare_quant_layer *b) {
    const struct tare_quant_layer *table = a->kind == TARE_KIND_GATHER ? a : b, *product = table == a ? b : a;
    const bool passes = work->plan->passes && work->plan->passes[0];
    return !passes && a->setting.bits != 4 && table->kind == TARE_KIND_GATHER && product->kind != TARE_KIND_GATHER &&
           product->tied && table->weight && can_tie(table, product) &&
           !(product->setting.method->takes_bias && product->bias);
}

/* Integers follow from the scales, unless a pass computed them. */
static bool has_same_integers(const struct tare_quant_layer *a, const struct tare_quant_layer *b) {
    const struct tare_quantized_weight *x = &a->quantized, *y = &b->quantized;
    if (a->own_integers || b->own_integers || a->changed || b->changed || x->n_scales != y->n_scales) return false;
    for (int64_t i = 0; i < x->n_scales; i++)
        if (x->scales[i] != y->scales[i]) return false;
    return true;
}

struct tare_edge tare_quant_tied_integers(const struct tare_quant_layer *layer) {
    const struct tare_quant_layer *other = layer->tied;
    const bool in_order = other && (other->kind == TARE_KIND_GATHER || other->unarranged);
    if (!in_order || !other->integers.node || !has_same_integers(layer, other)) return (struct tare_edge){ NULL, 0 };
    return other->integers;
}
