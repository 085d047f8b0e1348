/* Structural comparison of two models: op counts of the functions that signatures reach, weights matched by name,
 * signatures, and scalar constants. */
#include "eval/model_diff.h"
#include "base/alloc.h"
#include "base/map.h"
#include "eval/comparison.h"
#include "graph/calls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void tare_model_diff_free(struct tare_model_diff *diff) {
    tare_arena_free(&diff->arena);
    memset(diff, 0, sizeof *diff);
}

struct differ {
    struct tare_model_diff *out;
    struct tare_map ops;     /* name -> index + 1 into out->ops, as a pointer */
    struct tare_map weights; /* the same for weights */
    struct tare_map signatures, numbers;
    size_t ops_capacity, weights_capacity, signatures_capacity, numbers_capacity;
    const struct tare_tensor **values; /* of the first model's weights, by index */
};

/* The index of `name`, or a new index (*fresh is then true). SIZE_MAX: out of memory. */
static size_t index_of(struct tare_map *map, const char *name, size_t next, bool *fresh) {
    void *found = tare_map_get(map, name);
    *fresh = !found;
    if (found) return (size_t)(uintptr_t)found - 1;
    return tare_map_set(map, name, (void *)(uintptr_t)(next + 1)) ? next : SIZE_MAX;
}

/* Room for one more in an arena array. */
static bool make_room(struct tare_arena *arena, void **items, size_t count, size_t *capacity, size_t size) {
    void *grown;
    size_t extra = *capacity ? *capacity : 64;
    if (count < *capacity) return true;
    grown = tare_arena_extend(arena, *items, count, extra, size);
    if (!grown) return false;
    *items = grown;
    *capacity = count + extra;
    return true;
}

/* ---- ops ---- */

static tare_status count_op(struct differ *d, const char *op, int side) {
    struct tare_model_diff *out = d->out;
    const char *name = tare_arena_strdup(&out->arena, op);
    bool fresh;
    size_t i;
    if (!name || !make_room(&out->arena, (void **)&out->ops, out->n_ops, &d->ops_capacity, sizeof *out->ops))
        return TARE_NO_MEMORY;
    if ((i = index_of(&d->ops, name, out->n_ops, &fresh)) == SIZE_MAX) return TARE_NO_MEMORY;
    if (fresh) out->ops[out->n_ops++] = (struct tare_op_difference){ name, { 0, 0 } };
    out->ops[i].counts[side]++;
    out->nodes[side]++;
    return TARE_OK;
}

/* ---- weights ---- */

static const char *type_text(struct tare_arena *arena, const struct tare_tensor *value) {
    char shape[TARE_SHAPE_TEXT_SIZE];
    return tare_arena_printf(arena, "%s%s", tare_dtype_name(value->dtype), tare_shape_text(shape, &value->shape));
}

static int64_t bytes_of(const struct tare_tensor *value) {
    return (int64_t)(value->splat ? tare_dtype_size(value->dtype) : tare_tensor_bytes(value));
}

static bool is_real(int dtype) {
    return tare_dtype_is_floating(dtype) || tare_dtype_is_integer(dtype);
}

/* Both have the same dtype and shape. */
static void compare_values(struct tare_weight_difference *w, const struct tare_tensor *a, const struct tare_tensor *b) {
    double signal = 0, noise = 0;
    if (tare_tensor_same_bits(a, b)) {
        w->change = TARE_WEIGHT_SAME;
        return;
    }
    w->change = TARE_WEIGHT_CHANGED;
    if (!is_real(a->dtype)) return;
    w->max_abs = 0;
    for (int64_t i = 0; i < a->elements; i++) {
        const double x = tare_tensor_get_f64(a, i), difference = tare_tensor_difference(a, b, i);
        signal += x * x;
        noise += difference * difference;
        w->max_abs = fmax(w->max_abs, fabs(difference));
    }
    w->sqnr_db = noise > 0 ? signal > 0 ? 10 * log10(signal / noise) : -INFINITY : INFINITY;
}

static tare_status add_first(struct differ *d, const char *name, const struct tare_tensor *value) {
    struct tare_model_diff *out = d->out;
    size_t capacity = d->weights_capacity, index;
    bool fresh;
    if (!make_room(&out->arena, (void **)&out->weights, out->n_weights, &capacity, sizeof *out->weights) ||
        !make_room(&out->arena, (void **)&d->values, out->n_weights, &d->weights_capacity, sizeof *d->values))
        return TARE_NO_MEMORY;
    if ((index = index_of(&d->weights, name, out->n_weights, &fresh)) == SIZE_MAX) return TARE_NO_MEMORY;
    if (!fresh) return TARE_OK;
    d->values[index] = value;
    out->weights[out->n_weights++] = (struct tare_weight_difference){ .name = name,
                                                                      .change = TARE_WEIGHT_ONLY_FIRST,
                                                                      .types = { type_text(&out->arena, value), NULL },
                                                                      .bytes = { bytes_of(value), 0 },
                                                                      .max_abs = NAN,
                                                                      .sqnr_db = NAN };
    return TARE_OK;
}

static tare_status add_second(struct differ *d, const char *name, const struct tare_tensor *value) {
    struct tare_model_diff *out = d->out;
    struct tare_weight_difference *w;
    void *found = tare_map_get(&d->weights, name);
    if (!found) {
        TARE_TRY(add_first(d, name, value));
        w = &out->weights[out->n_weights - 1];
        *w = (struct tare_weight_difference){ .name = name,
                                              .change = TARE_WEIGHT_ONLY_SECOND,
                                              .types = { NULL, w->types[0] },
                                              .bytes = { 0, w->bytes[0] },
                                              .max_abs = NAN,
                                              .sqnr_db = NAN };
        return TARE_OK;
    }
    w = &out->weights[(size_t)(uintptr_t)found - 1];
    if (w->types[1]) return TARE_OK;
    w->types[1] = type_text(&out->arena, value);
    w->bytes[1] = bytes_of(value);
    if (!w->types[0] || !w->types[1]) return TARE_NO_MEMORY;
    w->change = TARE_WEIGHT_RETYPED;
    if (strcmp(w->types[0], w->types[1]) == 0) compare_values(w, d->values[w - out->weights], value);
    return TARE_OK;
}

static tare_status add_number(struct differ *d, const char *name, const struct tare_tensor *value, int side) {
    struct tare_model_diff *out = d->out;
    bool fresh;
    size_t i;
    if (!make_room(&out->arena, (void **)&out->numbers, out->n_numbers, &d->numbers_capacity, sizeof *out->numbers) ||
        (i = index_of(&d->numbers, name, out->n_numbers, &fresh)) == SIZE_MAX)
        return TARE_NO_MEMORY;
    if (fresh) out->numbers[out->n_numbers++] = (struct tare_number_difference){ .name = name, .values = { NAN, NAN } };
    out->numbers[i].values[side] = tare_tensor_get_f64(value, 0);
    if (value->dtype != TARE_DT_INT64 && value->dtype != TARE_DT_UINT64) return TARE_OK;
    const int64_t x = tare_tensor_get_i64(value, 0);
    out->numbers[i].integers[side] = value->dtype == TARE_DT_INT64
                                         ? tare_arena_printf(&out->arena, "%lld", (long long)x)
                                         : tare_arena_printf(&out->arena, "%llu", (unsigned long long)x);
    return out->numbers[i].integers[side] ? TARE_OK : TARE_NO_MEMORY;
}

static bool same_number(const struct tare_number_difference *n) {
    if (n->integers[0] && n->integers[1]) return strcmp(n->integers[0], n->integers[1]) == 0;
    return n->values[0] == n->values[1] || (isnan(n->values[0]) && isnan(n->values[1]));
}

static bool in_both(const struct tare_number_difference *n) {
    return !isnan(n->values[0]) && !isnan(n->values[1]);
}

static int numbers_by_name(const void *a, const void *b) {
    const struct tare_number_difference *x = a, *y = b;
    if (in_both(x) != in_both(y)) return in_both(x) ? -1 : 1;
    return strcmp(x->name, y->name);
}

static void keep_other_numbers(struct tare_model_diff *out) {
    size_t kept = 0;
    for (size_t i = 0; i < out->n_numbers; i++)
        if (!same_number(&out->numbers[i])) out->numbers[kept++] = out->numbers[i];
    out->n_numbers = kept;
    if (kept) qsort(out->numbers, kept, sizeof *out->numbers, numbers_by_name);
}

static tare_status add_weight(struct differ *d, const char *prefix, const char *name, const struct tare_tensor *value,
                              int side) {
    const char *full =
        *prefix ? tare_arena_printf(&d->out->arena, "%s/%s", prefix, name) : tare_arena_strdup(&d->out->arena, name);
    if (!full) return TARE_NO_MEMORY;
    if (value->dtype == TARE_DT_INVALID || value->elements < 1) return TARE_OK;
    if (value->elements == 1) return is_real(value->dtype) ? add_number(d, full, value, side) : TARE_OK;
    return side == 0 ? add_first(d, full, value) : add_second(d, full, value);
}

/* ---- signatures ---- */

static tare_status add_text(struct differ *d, const char *name, const char *text, int side) {
    struct tare_model_diff *out = d->out;
    bool fresh;
    size_t i;
    if (!name || !text ||
        !make_room(&out->arena, (void **)&out->signatures, out->n_signatures, &d->signatures_capacity,
                   sizeof *out->signatures))
        return TARE_NO_MEMORY;
    if ((i = index_of(&d->signatures, name, out->n_signatures, &fresh)) == SIZE_MAX) return TARE_NO_MEMORY;
    if (fresh) out->signatures[out->n_signatures++] = (struct tare_signature_difference){ name, { NULL, NULL } };
    out->signatures[i].texts[side] = text;
    return TARE_OK;
}

static tare_status add_bindings(struct differ *d, const struct tare_signature *s, const char *role,
                                const struct tare_binding *bindings, size_t count, int side) {
    struct tare_arena *arena = &d->out->arena;
    for (size_t i = 0; i < count; i++) {
        char shape[TARE_SHAPE_TEXT_SIZE];
        TARE_TRY(add_text(d, tare_arena_printf(arena, "%s %s %s", s->key, role, bindings[i].key),
                          tare_arena_printf(arena, "%s%s", tare_dtype_name(bindings[i].dtype),
                                            tare_shape_text(shape, &bindings[i].shape)),
                          side));
    }
    return TARE_OK;
}

static tare_status add_signatures(struct differ *d, const struct tare_graph_model *model, int side) {
    for (size_t i = 0; i < model->n_signatures; i++) {
        const struct tare_signature *s = &model->signatures[i];
        TARE_TRY(add_text(d, tare_arena_strdup(&d->out->arena, s->key), "present", side));
        TARE_TRY(add_bindings(d, s, "input", s->inputs, s->n_inputs, side));
        TARE_TRY(add_bindings(d, s, "output", s->outputs, s->n_outputs, side));
    }
    return TARE_OK;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void keep_differences(struct tare_model_diff *out) {
    size_t kept = 0;
    for (size_t i = 0; i < out->n_signatures; i++)
        if (!same_text(out->signatures[i].texts[0], out->signatures[i].texts[1]))
            out->signatures[kept++] = out->signatures[i];
    out->n_signatures = kept;
}

/* ---- models ---- */

static tare_status add_graph(struct differ *d, const struct tare_graph *graph, const char *prefix, int side) {
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct tare_node *node = graph->nodes[i];
        const struct tare_tensor *value;
        if (node->dead) continue;
        TARE_TRY(count_op(d, node->op, side));
        value = strcmp(node->op, "Const") == 0 ? tare_node_tensor(node, "value") : NULL;
        if (value) TARE_TRY(add_weight(d, prefix, node->name, value, side));
    }
    return TARE_OK;
}

static tare_status add_model(struct differ *d, const struct tare_graph_model *model, int side) {
    bool *live;
    TARE_TRY(tare_model_weight_bytes(&d->out->weight_bytes[side], model));
    TARE_TRY(tare_model_reachable_functions(&live, &d->out->arena, model, true));
    TARE_TRY(add_graph(d, model->main, "", side));
    for (size_t i = 0; i < model->n_functions; i++) {
        if (!live[i]) continue;
        d->out->functions[side]++;
        TARE_TRY(add_graph(d, model->functions[i], model->functions[i]->name, side));
    }
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct tare_variable *v = &model->variables[i];
        if (!v->removed) TARE_TRY(add_weight(d, "", v->key ? v->key : v->shared_name, &v->value, side));
    }
    return add_signatures(d, model, side);
}

static int ops_by_name(const void *a, const void *b) {
    return strcmp(((const struct tare_op_difference *)a)->op, ((const struct tare_op_difference *)b)->op);
}

static int by_weight(const void *a, const void *b) {
    static const int ranks[] = { [TARE_WEIGHT_SAME] = 4,
                                 [TARE_WEIGHT_CHANGED] = 0,
                                 [TARE_WEIGHT_RETYPED] = 1,
                                 [TARE_WEIGHT_ONLY_FIRST] = 2,
                                 [TARE_WEIGHT_ONLY_SECOND] = 2 };
    const struct tare_weight_difference *x = a, *y = b;
    int64_t p = x->bytes[0] + x->bytes[1], q = y->bytes[0] + y->bytes[1];
    if (ranks[x->change] != ranks[y->change]) return ranks[x->change] - ranks[y->change];
    if (p != q) return p > q ? -1 : 1;
    return strcmp(x->name, y->name);
}

tare_status tare_model_diff_make(struct tare_model_diff *out, const struct tare_graph_model *first,
                                 const char *first_name, const struct tare_graph_model *second,
                                 const char *second_name) {
    struct differ d = { .out = out };
    tare_status status;
    memset(out, 0, sizeof *out);
    out->names[0] = first_name;
    out->names[1] = second_name;
    status = add_model(&d, first, 0);
    if (status == TARE_OK) status = add_model(&d, second, 1);
    if (status == TARE_OK) status = tare_model_diff_layers(out, first, second);
    tare_map_free(&d.ops);
    tare_map_free(&d.weights);
    tare_map_free(&d.signatures);
    tare_map_free(&d.numbers);
    if (status != TARE_OK) return status;
    keep_differences(out);
    keep_other_numbers(out);
    if (out->n_ops) qsort(out->ops, out->n_ops, sizeof *out->ops, ops_by_name);
    if (out->n_weights) qsort(out->weights, out->n_weights, sizeof *out->weights, by_weight);
    return TARE_OK;
}

bool tare_model_diff_is_empty(const struct tare_model_diff *diff) {
    for (size_t i = 0; i < diff->n_ops; i++)
        if (diff->ops[i].counts[0] != diff->ops[i].counts[1]) return false;
    for (size_t i = 0; i < diff->n_weights; i++)
        if (diff->weights[i].change != TARE_WEIGHT_SAME) return false;
    return diff->n_signatures == 0 && diff->n_numbers == 0;
}
