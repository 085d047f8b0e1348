/* Measures a variant at each level and turns the differences into steps by layer. */
#include "workflow/precision_levels.h"

#include <math.h>
#include <string.h>

enum { MOST_LEVELS = 4 };               /* the variant's own settings, two others, float */
static const double WORTH_LEVEL_DB = 3; /* half a bit */

/* One precision and its measured layers. */
struct level {
    int bits, activation_bits; /* 0: as in the variant */
    struct tare_sensitivity measured;
};

struct levels {
    struct level items[MOST_LEVELS];
    size_t count;
};

static int bits_of(const struct tare_variant *variant) {
    return variant->plan.setting.bits == 4 ? 4 : 8;
}

/* The precisions between the variant's own settings and float. */
static void list_levels(struct levels *out, const struct tare_variant *variant) {
    const struct tare_quant_plan *options = &variant->plan;
    const bool wide = options->setting.method->takes_wide && !options->setting.format &&
                      options->op_set == TARE_OP_SET_XLA && options->setting.activation_bits != 16;
    if (bits_of(variant) == 4) out->items[out->count++] = (struct level){ .bits = 8 };
    if (wide) out->items[out->count++] = (struct level){ .bits = 8, .activation_bits = 16 };
}

static void set_level(void *arg, const struct tare_graph *graph, const struct tare_node *op,
                      struct tare_quant_setting *setting) {
    const struct level *level = arg;
    (void)graph;
    (void)op;
    if (level->bits) setting->bits = level->bits;
    if (level->activation_bits && setting->method && setting->method->takes_wide && !setting->format)
        setting->activation_bits = level->activation_bits;
}

static tare_status measure_level(struct level *level, const struct tare_sensitivity_task *task) {
    struct tare_sensitivity_task alone = *task;
    struct tare_variant variant = *task->variant;
    variant.plan.adjust = set_level;
    variant.plan.adjust_arg = level;
    alone.variant = &variant;
    alone.alone_only = true;
    return tare_sensitivity_measure(&level->measured, &alone);
}

/* SQNR of the output with only this layer quantized at a precision; NaN if the precision does not apply to it. */
static double db_at(const struct level *level, const struct tare_sensitive_layer *layer) {
    for (size_t i = 0; i < level->measured.count; i++) {
        const struct tare_sensitive_layer *other = &level->measured.layers[i];
        if (strcmp(other->node, layer->node) == 0 && strcmp(other->function, layer->function) == 0)
            return other->alone.sqnr_db;
    }
    return NAN;
}

/* Bytes of a weight element. */
static double bytes_of(int bits) {
    return bits / 8.0;
}

/* Adds the steps of one layer: from each precision to the next that is worth it, and to float. */
static void add_steps(struct tare_sensitivity *steps, const struct tare_sensitive_layer *layer,
                      const struct levels *levels, const struct tare_variant *variant) {
    double db = layer->alone.sqnr_db, bytes = bytes_of(bits_of(variant));
    const double weights = (double)layer->weight_elements;
    size_t number = 0;
    for (size_t i = 0; i <= levels->count; i++) {
        const struct level *level = i < levels->count ? &levels->items[i] : NULL;
        const double next = level ? db_at(level, layer) : INFINITY, after = level ? bytes_of(level->bits) : 4;
        struct tare_sensitive_layer *step = &steps->layers[steps->count];
        if (!(next >= db + WORTH_LEVEL_DB) && level) continue;
        *step = *layer;
        step->alone.sqnr_db = db;
        step->weight_elements = (int64_t)fmax(1, weights * (after - bytes)); /* a step costs bytes */
        step->level = number++;
        step->quantized = level != NULL;
        step->bits = level ? level->bits : 0;
        step->activation_bits = level ? level->activation_bits : 0;
        steps->count++;
        db = next;
        bytes = after;
    }
}

tare_status tare_workflow_precision_steps(struct tare_sensitivity *steps, const struct tare_sensitivity *base,
                                          const struct tare_sensitivity_task *task) {
    struct levels levels = { .count = 0 };
    tare_status status = TARE_OK;
    list_levels(&levels, task->variant);
    for (size_t i = 0; i < levels.count && status == TARE_OK; i++)
        status = measure_level(&levels.items[i], task);
    *steps = *base;
    steps->arena = (struct tare_arena){ 0 };
    steps->count = 0;
    steps->layers = TARE_NEW_ARRAY(&steps->arena, struct tare_sensitive_layer, MOST_LEVELS * base->count + 1);
    if (!steps->layers) status = TARE_NO_MEMORY;
    for (size_t i = 0; i < base->count && status == TARE_OK; i++)
        add_steps(steps, &base->layers[i], &levels, task->variant);
    for (size_t i = 0; i < levels.count; i++)
        tare_sensitivity_free(&levels.items[i].measured);
    return status;
}
