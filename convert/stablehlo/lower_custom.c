/* Custom calls: one row per target. Targets that the interpreter computes become XlaCustomCallV2, the others graphs of
 * TensorFlow ops. Calling conventions: jax/_src/export, stablehlo's documentation of dynamic custom calls, and modules
 * recorded from JAX. */
#include "convert/stablehlo/lower.h"

#include "base/strbuf.h"
#include "interpreter/ops/xla/custom_call.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_RESULTS = 64 };

/* ---- annotations ---- */

static bool same_shape(const struct tare_shlo_type *a, const struct tare_shlo_type *b) {
    if (a->kind != b->kind || a->rank != b->rank) return false;
    for (size_t d = 0; d < a->rank; d++)
        if (a->dims[d] >= 0 && b->dims[d] >= 0 && a->dims[d] != b->dims[d]) return false;
    return true;
}

/* Annotations of sharding and placement, which have no effect on one device. Between a whole array and the part of one
 * of several devices, the shape changes. */
static void lower_annotation(struct tare_lowering *l, const void *arg) {
    (void)arg;
    if (l->op->n_operands < l->op->n_results) tare_lower_fail(l, TARE_CORRUPT, "fewer operands than results");
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        if (!same_shape(tare_lower_in_type(l, i), tare_lower_out_type(l, i)))
            tare_lower_fail(l, TARE_UNSUPPORTED, "communication between several devices");
    for (size_t i = 0; i < l->op->n_results && l->status == TARE_OK; i++)
        l->outputs[i] = tare_lower_unary(l, "Identity", tare_lower_in(l, i));
}

/* ---- assertions ---- */

/* The text of a shape assertion around its placeholders {0}, {1} …, which stand for operands after the condition. */
static size_t message_parts(struct tare_lowering *l, struct tare_edge *parts, size_t capacity, const char *text) {
    size_t count = 0;
    while (*text && count + 2 < capacity) {
        const char *brace = strchr(text, '{');
        char *end = NULL;
        size_t index = 0;
        while (brace) {
            index = strtoul(brace + 1, &end, 10);
            if (end != brace + 1 && *end == '}' && index + 1 < l->op->n_operands) break;
            brace = strchr(brace + 1, '{');
        }
        parts[count++] = tare_lower_string(l, text, brace ? (size_t)(brace - text) : strlen(text));
        if (!brace) break;
        parts[count++] = tare_lower_in(l, index + 1);
        text = end + 1;
    }
    return count;
}

/* shape_assertion(condition, values…): where it does not hold, the module is not defined for the shapes of its inputs.
 */
static void lower_shape_assertion(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_attr *message = tare_shlo_find(l->op->extra, "error_message");
    const bool has_text = message && message->kind == TARE_SHLO_ATTR_STRING && message->text.size;
    struct tare_edge inputs[MOST_RESULTS];
    (void)arg;
    if (!l->op->n_operands || l->op->n_results || tare_lower_in_dtype(l, 0) != TARE_DT_BOOL) {
        tare_lower_fail(l, TARE_CORRUPT, "a shape assertion without a condition");
        return;
    }
    inputs[0] = tare_lower_in(l, 0);
    const size_t count = message_parts(l, inputs + 1, MOST_RESULTS - 1,
                                       has_text ? message->text.data : "a shape assertion does not hold");
    struct tare_node *node = tare_lower_begin(l, "Assert", inputs, count + 1);
    tare_lower_end(l, node);
    tare_lower_effect(l, node);
}

/* ---- targets of the interpreter ---- */

/* "{uplo = 76 : ui8, low = 1 : i32}", the form that XLA's typed calls read. */
static void print_config(struct tare_strbuf *out, const struct tare_shlo_attr *config) {
    tare_strbuf_puts(out, "{");
    for (size_t i = 0; i + 1 < config->n_items; i += 2) {
        const struct tare_shlo_attr *value = config->items[i + 1];
        if (value->kind != TARE_SHLO_ATTR_INTEGER && value->kind != TARE_SHLO_ATTR_BOOL) continue;
        const bool is_unsigned =
            value->type && value->type->kind >= TARE_SHLO_UI4 && value->type->kind <= TARE_SHLO_UI64;
        tare_strbuf_printf(out, "%s%s = %lld : %si%d", out->size > 1 ? ", " : "", config->items[i]->text.data,
                           (long long)value->bits, is_unsigned ? "u" : "",
                           value->type ? tare_shlo_type_bits(value->type) : 1);
    }
    tare_strbuf_puts(out, "}");
}

/* Options are a dictionary (an attribute of the op, or a discardable one before there were dictionaries) or a text. */
static const struct tare_shlo_attr *config_of(const struct tare_lowering *l) {
    const struct tare_shlo_attr *own = tare_shlo_op_attr(l->op, "backend_config");
    const struct tare_shlo_attr *extra = tare_shlo_find(l->op->extra, "mhlo.backend_config");
    return extra ? extra : own;
}

static void set_config(struct tare_lowering *l, struct tare_node *node) {
    const struct tare_shlo_attr *config = config_of(l);
    struct tare_strbuf text = { 0 };
    if (config && config->kind == TARE_SHLO_ATTR_DICTIONARY) print_config(&text, config);
    if (config && config->kind == TARE_SHLO_ATTR_STRING)
        tare_strbuf_append(&text, config->text.data, config->text.size);
    if (text.failed) l->status = TARE_NO_MEMORY;
    if (l->status == TARE_OK) tare_lower_attr_bytes(l, node, "backend_config", tare_strbuf_text(&text), text.size);
    tare_strbuf_free(&text);
}

/* The tensors among the results: those of a tuple count one by one. */
static size_t result_types(const struct tare_lowering *l, const struct tare_shlo_type **types, size_t capacity) {
    size_t count = 0;
    for (size_t i = 0; i < l->op->n_results; i++) {
        const struct tare_shlo_type *type = tare_lower_out_type(l, i);
        if (type->kind != TARE_SHLO_TUPLE && count < capacity) types[count++] = type;
        for (size_t k = 0; type->kind == TARE_SHLO_TUPLE && k < type->inputs.count && count < capacity; k++)
            types[count++] = type->inputs.items[k];
    }
    return count;
}

static void set_results(struct tare_lowering *l, struct tare_node *node) {
    const struct tare_shlo_type *types[MOST_RESULTS];
    int dtypes[MOST_RESULTS];
    struct tare_shape shapes[MOST_RESULTS];
    int64_t dims[TARE_MAX_RANK];
    const size_t count = result_types(l, types, MOST_RESULTS);
    for (size_t i = 0; i < count && l->status == TARE_OK; i++) {
        dtypes[i] = tare_shlo_dtype(types[i]);
        if (dtypes[i] == TARE_DT_INVALID || types[i]->rank > TARE_MAX_RANK) {
            tare_lower_fail(l, TARE_UNSUPPORTED, "result %zu has a type without TensorFlow dtype", i);
            return;
        }
        for (size_t d = 0; d < types[i]->rank; d++)
            dims[d] = types[i]->dims[d] < 0 ? -1 : types[i]->dims[d];
        l->status = tare_shape_from_dims(&shapes[i], (int)types[i]->rank, dims);
    }
    if (!node || l->status != TARE_OK) return;
    l->status = tare_node_set_type_list(node, "result_dtypes", dtypes, count);
    if (l->status == TARE_OK) l->status = tare_node_set_shape_list(node, "result_shapes", shapes, count);
}

/* Operands that hold the shapes of results, where dimensions are open: the kernel has them from its other operands. */
static bool is_shape_operand(const struct tare_lowering *l, size_t operand) {
    const struct tare_shlo_attr *shapes = tare_shlo_find(l->op->extra, "indices_of_shape_operands");
    size_t count = 0;
    if (!shapes || shapes->kind != TARE_SHLO_ATTR_TENSOR || !tare_shlo_tensor_count(&count, shapes)) return false;
    for (size_t i = 0; i < count; i++)
        if (tare_shlo_tensor_integer(shapes, i) == (int64_t)operand) return true;
    return false;
}

static void lower_kernel(struct tare_lowering *l, const char *target) {
    struct tare_edge inputs[MOST_RESULTS];
    size_t count = 0;
    if (l->op->n_operands > MOST_RESULTS) {
        tare_lower_fail(l, TARE_UNSUPPORTED, "%zu operands", l->op->n_operands);
        return;
    }
    for (size_t i = 0; i < l->op->n_operands; i++)
        if (!is_shape_operand(l, i)) inputs[count++] = tare_lower_in(l, i);
    struct tare_node *node = tare_lower_begin(l, "XlaCustomCallV2", inputs, count);
    tare_lower_attr_bytes(l, node, "call_target_name", target, strlen(target));
    tare_lower_attr_bool(l, node, "has_side_effect", false);
    set_config(l, node);
    set_results(l, node);
    tare_lower_set_all(l, node);
}

/* ---- the largest elements ---- */

/* An integer option of the dictionary that a row names, or of the configuration. */
static int64_t config_int(struct tare_lowering *l, const struct tare_shlo_attr *config, const char *key) {
    const struct tare_shlo_attr *value = tare_shlo_find(config, key);
    if (value && (value->kind == TARE_SHLO_ATTR_INTEGER || value->kind == TARE_SHLO_ATTR_BOOL))
        return (int64_t)value->bits;
    tare_lower_fail(l, TARE_CORRUPT, "option '%s' is missing", key);
    return 0;
}

/* The first k elements of the last dimension in descending (or ascending) order and their indices; equal elements in
 * the order of their indices. Floating-point numbers are in total order, NaN first. */
static void top_k(struct tare_lowering *l, struct tare_edge k, bool largest) {
    const int dtype = tare_lower_in_dtype(l, 0);
    const struct tare_edge x = tare_lower_in(l, 0);
    const size_t rank = tare_lower_in_type(l, 0)->rank;
    struct tare_edge keys = tare_lower_total_order(l, x, dtype);
    if (!largest) keys = tare_lower_unary(l, "Invert", keys); /* -x - 1: reverses the order of integers */
    const struct tare_edge inputs[] = { keys, k };
    struct tare_node *node = tare_lower_begin(l, "TopKV2", inputs, 2);
    tare_lower_attr_type(l, node, "index_type", TARE_DT_INT32);
    tare_lower_end(l, node);
    const struct tare_edge indices = { node, 1 };
    const struct tare_edge gather[] = { x, indices, tare_lower_scalar(l, TARE_DT_INT32, (double)rank - 1) };
    struct tare_node *values = tare_lower_begin(l, "GatherV2", gather, 3);
    tare_lower_attr_int(l, values, "batch_dims", (int64_t)rank - 1);
    l->outputs[0] = tare_lower_end(l, values);
    l->outputs[1] = indices;
}

static bool has_two_results(struct tare_lowering *l, size_t n_operands) {
    if (l->op->n_operands >= n_operands && l->op->n_results == 2 && tare_lower_in_type(l, 0)->rank) return true;
    tare_lower_fail(l, TARE_CORRUPT, "%zu operands and %zu results", l->op->n_operands, l->op->n_results);
    return false;
}

static void lower_top_k(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_attr *options = tare_shlo_find(l->op->extra, "mhlo.attributes");
    (void)arg;
    if (!has_two_results(l, 1)) return;
    const int64_t k = config_int(l, options, "k");
    const struct tare_shlo_attr *largest = tare_shlo_find(options, "largest");
    top_k(l, tare_lower_scalar(l, TARE_DT_INT32, (double)k), !largest || largest->bits);
}

static void lower_dynamic_top_k(struct tare_lowering *l, const void *arg) {
    (void)arg;
    if (has_two_results(l, 2)) top_k(l, tare_lower_cast(l, tare_lower_in(l, 1), TARE_DT_INT32), true);
}

/* ApproxTopK(operands…, initial values…): the first k elements in the order of the comparator. The exact ones are among
 * those that it may return. With a `dynamic` row k is an operand. */
static void lower_approx_top_k(struct tare_lowering *l, const void *arg) {
    const bool dynamic = arg != NULL;
    const struct tare_shlo_attr *config = config_of(l);
    const size_t count = l->op->n_results;
    struct tare_edge inputs[MOST_RESULTS];
    if (!count || count + 1 > MOST_RESULTS || l->op->n_operands < 2 * count + dynamic) {
        tare_lower_fail(l, TARE_CORRUPT, "%zu operands and %zu results", l->op->n_operands, count);
        return;
    }
    const size_t rank = tare_lower_in_type(l, 0)->rank;
    int64_t axis = config_int(l, config, "reduction_dim");
    const struct tare_edge k = dynamic ? tare_lower_cast(l, tare_lower_in(l, 2 * count), TARE_DT_INT32)
                                       : tare_lower_scalar(l, TARE_DT_INT32, (double)config_int(l, config, "top_k"));
    if (axis < 0) axis += (int64_t)rank;
    if (axis < 0 || axis >= (int64_t)rank) tare_lower_fail(l, TARE_CORRUPT, "reduction_dim is out of range");
    for (size_t i = 0; i < count; i++)
        inputs[i] = tare_lower_in(l, i);
    inputs[count] = tare_lower_scalar(l, TARE_DT_INT32, (double)axis);
    struct tare_node *sorted = tare_lower_begin(l, "XlaVariadicSort", inputs, count + 1);
    tare_lower_attr_func(l, sorted, "comparator", tare_lower_called(l));
    tare_lower_attr_bool(l, sorted, "is_stable", true);
    tare_lower_end(l, sorted);
    const struct tare_edge range[] = { tare_lower_scalar(l, TARE_DT_INT32, 0), k,
                                       tare_lower_scalar(l, TARE_DT_INT32, 1) };
    const struct tare_edge first = tare_lower_end(l, tare_lower_begin(l, "Range", range, 3));
    for (size_t i = 0; i < count && l->status == TARE_OK; i++) {
        const struct tare_edge gather[] = { { sorted, (int)i }, first, inputs[count] };
        l->outputs[i] = tare_lower_end(l, tare_lower_begin(l, "GatherV2", gather, 3));
    }
}

/* ---- random bits ---- */

static void lower_dynamic_rng(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_attr *algorithm = tare_shlo_find(l->op->extra, "rng_algorithm");
    (void)arg;
    if (l->op->n_operands < 2 || l->op->n_results != 2) {
        tare_lower_fail(l, TARE_CORRUPT, "%zu operands and %zu results", l->op->n_operands, l->op->n_results);
        return;
    }
    tare_lower_random_bits(l, algorithm && algorithm->kind == TARE_SHLO_ATTR_ENUM ? algorithm->text.data : "DEFAULT",
                           tare_lower_cast(l, tare_lower_in(l, 1), TARE_DT_INT64));
}

/* ---- functions of the SavedModel ---- */

/* The discardable dictionary tf.backend_config names the function by its index in the call's function_list. */
static void lower_tf_function(struct tare_lowering *l, const void *arg) {
    const struct tare_shlo_attr *config = tare_shlo_find(l->op->extra, "tf.backend_config");
    const struct tare_shlo_attr *token = tare_shlo_find(config, "has_token_input_output");
    const size_t skipped = token && token->bits ? 1 : 0;
    struct tare_edge inputs[MOST_RESULTS];
    (void)arg;
    struct tare_graph *function = tare_lower_caller_function(l, config_int(l, config, "called_index"));
    if (l->status != TARE_OK) return;
    if (l->op->n_operands < skipped || l->op->n_operands > MOST_RESULTS ||
        function->n_args != l->op->n_operands - skipped || function->n_returns != l->op->n_results - skipped) {
        tare_lower_fail(l, TARE_CORRUPT, "the called function has other arguments or results");
        return;
    }
    for (size_t i = skipped; i < l->op->n_operands; i++)
        inputs[i - skipped] = tare_lower_in(l, i);
    struct tare_node *node = tare_lower_call(l, function, inputs, l->op->n_operands - skipped);
    if (skipped) l->outputs[0] = tare_lower_in(l, 0);
    for (size_t i = skipped; i < l->op->n_results && node; i++)
        l->outputs[i] = (struct tare_edge){ node, (int)(i - skipped) };
}

/* ---- the table ---- */

static const struct tare_lowering_row rows[] = {
    { "Sharding", lower_annotation, NULL },
    { "SPMDFullToShardShape", lower_annotation, NULL },
    { "SPMDShardToFullShape", lower_annotation, NULL },
    { "LayoutConstraint", lower_annotation, NULL },
    { "xla.sdy.FuncResultSharding", lower_annotation, NULL },
    { "annotate_device_placement", lower_annotation, NULL },
    { "stablehlo.shape_refinement_operand_wrapper", lower_annotation, NULL },
    { "shape_assertion", lower_shape_assertion, NULL },
    { "mhlo.acos", tare_lower_elementary_call, "Acos" },
    { "mhlo.acosh", tare_lower_elementary_call, "Acosh" },
    { "mhlo.asin", tare_lower_elementary_call, "Asin" },
    { "mhlo.asinh", tare_lower_elementary_call, "Asinh" },
    { "mhlo.atanh", tare_lower_elementary_call, "Atanh" },
    { "mhlo.cosh", tare_lower_elementary_call, "Cosh" },
    { "mhlo.erf", tare_lower_elementary_call, "Erf" },
    { "mhlo.sinh", tare_lower_elementary_call, "Sinh" },
    { "mhlo.tan", tare_lower_elementary_call, "Tan" },
    { "mhlo.topk", lower_top_k, NULL },
    { "stablehlo.dynamic_top_k", lower_dynamic_top_k, NULL },
    { "ApproxTopK", lower_approx_top_k, NULL },
    { "stablehlo.dynamic_approx_top_k", lower_approx_top_k, "dynamic" },
    { "stablehlo.dynamic_rng_bit_generator", lower_dynamic_rng, NULL },
    { "stablehlo.dynamic_reduce_window", tare_lower_dynamic_reduce_window, NULL },
    { "cu_threefry2x32_ffi", tare_lower_threefry, NULL },
    { "hip_threefry2x32_ffi", tare_lower_threefry, NULL },
    { "tf.call_tf_function", lower_tf_function, NULL },
    { 0 },
};

void tare_lower_custom_call(struct tare_lowering *l, const void *arg) {
    const char *target = tare_lower_text(l, "call_target_name");
    for (const struct tare_lowering_row *row = rows; row->name; row++)
        if (strcmp(row->name, target) == 0) {
            row->lower(l, row->arg);
            return;
        }
    (void)arg;
    if (tare_lower_is_check(target))
        tare_lower_check(l, target);
    else if (tare_custom_call_find(target))
        lower_kernel(l, target);
    else if (!tare_lower_lapack(l, target))
        tare_lower_fail(l, TARE_UNSUPPORTED,
                        "custom call '%s' is not supported (an export with platforms=(\"cpu\",) has none of GPUs)",
                        target);
}
