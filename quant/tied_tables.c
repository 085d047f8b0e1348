/* Finding look-ups and products of one table. */
#include "quant/tied_tables.h"
#include "base/tensor/number.h"
#include "quant/product.h"

/* A product of arrays with a matrix: entries are its columns, along axis `entries` of the weight. */
static bool multiplies_entries(const struct tare_quant_layer *layer, int entries) {
    const struct tare_quant_product *p = &layer->product;
    return tare_quant_multiplies_arrays(layer->kind) && !layer->selection && !layer->n_parts && !p->reversed &&
           layer->weight->shape.rank == 2 && p->n_order == 2 && p->order[1] == entries && p->n_batch == 0 &&
           p->n_contracted == 1;
}

static bool same_values(const struct tare_quant_layer *a, const struct tare_quant_layer *b) {
    if (!tare_shape_equal(&a->weight->shape, &b->weight->shape)) return false;
    if (a->variable || b->variable) return a->variable == b->variable;
    return a->op->graph == b->op->graph && a->weight->dtype == b->weight->dtype &&
           (a->weight->data == b->weight->data || tare_tensor_same_bits(a->weight, b->weight));
}

static bool is_in_blocks(const struct tare_quant_layer *layer) {
    return layer->setting.granularity == TARE_PER_BLOCK && layer->setting.block < layer->product.rows;
}

/* Blocks of an entry are rows of its column; one block is a scale per entry. */
static bool same_settings(const struct tare_quant_layer *table, const struct tare_quant_layer *product) {
    struct tare_quant_setting a = table->setting, b = product->setting;
    if (a.granularity == TARE_PER_BLOCK && !is_in_blocks(table)) a.granularity = TARE_PER_CHANNEL;
    if (b.granularity == TARE_PER_BLOCK && !is_in_blocks(product)) b.granularity = TARE_PER_CHANNEL;
    if (a.granularity != TARE_PER_BLOCK) a.block = 0;
    if (b.granularity != TARE_PER_BLOCK) b.block = 0;
    return tare_quant_same_weight_settings(&a, &b);
}

static bool has_entries(const struct tare_quant_layer *table, const struct tare_quant_layer *product) {
    return table->product.batches == product->product.columns && table->product.rows == product->product.rows;
}

static bool can_tie(const struct tare_quant_layer *table, const struct tare_quant_layer *product) {
    return multiplies_entries(product, 0) && has_entries(table, product) && same_settings(table, product) &&
           same_values(table, product);
}

/* ---- constants that folding has computed from a table ---- */

static double as_dtype(double value, int dtype) {
    if (dtype == TARE_DT_BFLOAT16) return tare_float_from_bfloat16(tare_bfloat16_from_double(value));
    return dtype == TARE_DT_HALF ? tare_float_from_half(tare_half_from_double(value)) : value;
}

/* Whether a weight has the values of a table, in its own dtype, with entries along axis `entries`. */
static bool is_from_table(const struct tare_tensor *weight, const struct tare_tensor *table, int entries) {
    const int64_t count = weight->shape.dims[entries], width = weight->shape.dims[1 - entries];
    const int64_t next = entries ? 1 : width, step = entries ? count : 1;
    if (weight->splat || table->splat || table->elements != weight->elements) return false;
    for (int64_t e = 0; e < count; e++)
        for (int64_t k = 0; k < width; k++)
            if (tare_tensor_get_f64(weight, e * next + k * step) !=
                as_dtype(tare_tensor_get_f64(table, e * width + k), weight->dtype))
                return false;
    return true;
}

/* A product whose weight is the table after a transposition or a conversion multiplies by the table itself. */
static void take_table(struct tare_quant_layer *product, const struct tare_quant_layer *table) {
    struct tare_quant_product *p = &product->product;
    const int entries = multiplies_entries(product, 1);
    if ((!entries && !multiplies_entries(product, 0)) || product->variable || table->variable ||
        product->op->graph != table->op->graph || table->weight->shape.rank != 2 || !has_entries(table, product) ||
        product->weight->data == table->weight->data || !is_from_table(product->weight, table->weight, entries))
        return;
    product->weight = table->weight;
    p->order[0] = p->right_contracted[0] = 1;
    p->order[1] = 0;
}

/* ---- finding them ---- */

/* Entries that blocks do not divide have one scale each. With 8 bits so have the columns of the product: blocks would
 * gain less than a second copy of the table costs. */
static tare_status give_up_blocks(struct tare_quant_work *work, struct tare_quant_layer *product,
                                  const struct tare_quant_layer *table) {
    struct tare_quant_setting *setting = &product->setting;
    const struct tare_quant_setting before = *setting;
    if (!is_in_blocks(product) || is_in_blocks(table) || setting->bits == 4) return TARE_OK;
    setting->granularity = TARE_PER_CHANNEL;
    if (can_tie(table, product))
        return tare_quant_add_note(work->report, work->arena,
                                   "%s (%s) has a scale per channel instead of blocks, as its table has: blocks of "
                                   "%lld do not divide the %lld "
                                   "values of an entry, and the table is stored once",
                                   product->op->name, product->op->op, (long long)before.block,
                                   (long long)table->product.rows);
    *setting = before;
    return TARE_OK;
}

static tare_status tie(struct tare_quant_work *work, struct tare_quant_layer *table, struct tare_quant_layer *product) {
    take_table(product, table);
    TARE_TRY(give_up_blocks(work, product, table));
    if (!can_tie(table, product)) return TARE_OK;
    product->tied = table;
    if (!table->tied) table->tied = product;
    return TARE_OK;
}

tare_status tare_quant_find_tied(struct tare_quant_work *work) {
    if (work->plan->op_set != TARE_OP_SET_XLA) return TARE_OK;
    for (size_t t = 0; t < work->n_layers; t++) {
        struct tare_quant_layer *table = &work->layers[t];
        if (table->refused || table->kind != TARE_KIND_GATHER || !table->weight) continue;
        for (size_t i = 0; i < work->n_layers; i++) {
            struct tare_quant_layer *product = &work->layers[i];
            if (product->refused || product->kind == TARE_KIND_GATHER || !product->weight || product->tied) continue;
            TARE_TRY(tie(work, table, product));
        }
    }
    return TARE_OK;
}

bool tare_quant_is_tied(const struct tare_quant_work *work, const struct tare_quant_layer *a,
                        const struct tare_quant_layer *b) {
    const struct tare_quant_layer *table = a->kind == TARE_KIND_GATHER ? a : b, *product = table == a ? b : a;
    const bool passes = work->plan->passes && work->plan->passes[0];
    return !passes && table->kind == TARE_KIND_GATHER && product->kind != TARE_KIND_GATHER && product->tied &&
           table->weight && can_tie(table, product) && !(product->setting.method->takes_bias && product->bias);
}

/* ---- sharing what they store ---- */

static double scale_of(const struct tare_quant_layer *layer, int64_t entry, int64_t block) {
    const struct tare_quantized_weight *q = &layer->quantized;
    const bool is_table = layer->kind == TARE_KIND_GATHER;
    return q->scales[tare_weight_scale_index(q, is_table ? entry : 0, block * q->layout.block, is_table ? 0 : entry)];
}

/* Integers follow from the scales, unless a pass computed them. */
static bool has_same_integers(const struct tare_quant_layer *a, const struct tare_quant_layer *b) {
    const struct tare_quantized_weight *x = &a->quantized, *y = &b->quantized;
    if (a->own_integers || b->own_integers || a->changed || b->changed || x->n_scales != y->n_scales ||
        x->n_blocks != y->n_blocks)
        return false;
    for (int64_t i = 0; i < x->n_scales; i++)
        if (scale_of(a, i / x->n_blocks, i % x->n_blocks) != scale_of(b, i / x->n_blocks, i % x->n_blocks))
            return false;
    return true;
}

void tare_quant_share_tied(struct tare_quant_layer *layer) {
    const struct tare_quant_layer *other = layer->tied;
    const bool is_product = layer->kind != TARE_KIND_GATHER;
    if (!other || layer->twin || layer->own_integers || layer->changed || layer->integers.node) return;
    layer->unarranged = is_product;
    if ((is_product || other->unarranged) && other->integers.node && layer->op->graph == other->op->graph &&
        has_same_integers(layer, other)) {
        if (!layer->variable) layer->integers = other->integers;
        layer->block_scales = other->block_scales;
    }
}
