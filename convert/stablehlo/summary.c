/* Counting the ops of a module. */
#include "convert/stablehlo/summary.h"

#include "base/map.h"

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
};

static tare_status count_op(struct counter *c, const struct tare_shlo_op *op) {
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
    c->summary->n_products += tare_shlo_op_is(op, "dot") || tare_shlo_op_is(op, "dot_general");
    c->summary->n_convolutions += tare_shlo_op_is(op, "convolution") || tare_shlo_op_is(op, "dynamic_conv");
    if (tare_shlo_op_is(op, "constant")) c->summary->constant_bytes += tare_shlo_op_attr(op, "value")->size;
    return TARE_OK;
}

static tare_status count_block(struct counter *c, const struct tare_shlo_block *block) {
    for (size_t i = 0; i < block->n_ops; i++) {
        const struct tare_shlo_op *op = &block->ops[i];
        if (tare_shlo_op_is(op, "func"))
            c->summary->n_functions++;
        else
            TARE_TRY(count_op(c, op));
        for (size_t k = 0; k < op->n_regions; k++)
            TARE_TRY(count_block(c, &op->regions[k]));
    }
    return TARE_OK;
}

static int by_count(const void *a, const void *b) {
    const struct tare_shlo_op_count *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->name, y->name);
}

static tare_status collect(struct counter *c, const struct tare_shlo_module *module) {
    struct tare_shlo_summary *s = c->summary;
    size_t n = 0;
    TARE_TRY(count_block(c, &module->root->regions[0]));
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
