/* Counting the ops of a module. */
#include "convert/stablehlo/summary.h"

#include "base/map.h"
#include "convert/stablehlo/known_index.h"

#include <stdlib.h>
#include <string.h>

struct entry {
    struct tare_shlo_op_count count;
    struct entry *next;
};

struct counter {
    struct tare_arena *arena;
    struct tare_map by_name; /* name -> struct entry */
    struct entry *entries;
    struct tare_shlo_summary *summary;
    struct tare_known_indices known; /* with the platform */
};

static tare_status count_op(struct counter *c, const struct tare_shlo_op *op, bool runs) {
    struct entry *entry = tare_map_get(&c->by_name, op->name);
    if (!entry) {
        entry = TARE_NEW(c->arena, struct entry);
        if (!entry || !tare_map_set(&c->by_name, op->name, entry)) return TARE_NO_MEMORY;
        entry->count.name = op->name;
        entry->next = c->entries;
        c->entries = entry;
        c->summary->n_kinds++;
    }
    entry->count.count++;
    c->summary->n_ops++;
    c->summary->n_products += runs && (tare_shlo_op_is(op, "dot") || tare_shlo_op_is(op, "dot_general"));
    c->summary->n_convolutions += runs && (tare_shlo_op_is(op, "convolution") || tare_shlo_op_is(op, "dynamic_conv"));
    if (tare_shlo_op_is(op, "constant")) c->summary->constant_bytes += tare_shlo_op_attr(op, "value")->size;
    return TARE_OK;
}

/* Whether a region runs on one platform: JAX writes a product once for each of the module's platforms. */
static bool is_taken(const struct counter *c, const struct tare_shlo_op *op, size_t region) {
    const bool chooses = tare_shlo_op_is(op, "case") && op->n_operands;
    const int64_t known = chooses ? tare_known_index(&c->known, op->operands[0]) : -1;
    return known < 0 || region == ((size_t)known < op->n_regions ? (size_t)known : op->n_regions - 1);
}

static tare_status count_block(struct counter *c, const struct tare_shlo_block *block, bool runs) {
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct tare_shlo_op *op = &block->ops[i];
        if (tare_shlo_op_is(op, "func"))
            c->summary->n_functions++;
        else
            TARE_TRY(count_op(c, op, runs));
        for (size_t k = 0; k < op->n_regions; k++)
            TARE_TRY(count_block(c, &op->regions[k], runs && is_taken(c, op, k)));
    }
    return TARE_OK;
}

/* Whether main's first argument is the index of the platform. */
static bool takes_platform(const struct tare_shlo_module *module) {
    const struct tare_shlo_op *function = tare_shlo_function(module, "main");
    const struct tare_shlo_attr *attrs = function ? tare_shlo_op_attr(function, "arg_attrs") : NULL;
    return attrs && attrs->n_items && tare_shlo_find(attrs->items[0], "jax.global_constant");
}

static int by_count(const void *a, const void *b) {
    const struct tare_shlo_op_count *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->name, y->name);
}

static tare_status collect(struct counter *c, const struct tare_shlo_module *module) {
    struct tare_shlo_summary *s = c->summary;
    size_t n = 0;
    if (takes_platform(module)) TARE_TRY(tare_known_indices_make(&c->known, c->arena, module, 0));
    TARE_TRY(count_block(c, &module->root->regions[0], true));
    s->ops = TARE_NEW_ARRAY(c->arena, struct tare_shlo_op_count, s->n_kinds + 1);
    if (!s->ops) return TARE_NO_MEMORY;
    for (const struct entry *entry = c->entries; entry; entry = entry->next)
        s->ops[n++] = entry->count;
    qsort(s->ops, n, sizeof *s->ops, by_count);
    return TARE_OK;
}

tare_status tare_shlo_summarize(struct tare_shlo_summary *out, struct tare_arena *arena,
                                const struct tare_shlo_module *module) {
    struct counter counter = { .arena = arena, .summary = out };
    *out = (struct tare_shlo_summary){ 0 };
    tare_status status = collect(&counter, module);
    tare_map_free(&counter.by_name);
    return status;
}
