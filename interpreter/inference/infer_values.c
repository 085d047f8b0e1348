/* Small integer values during shape inference: constants, what is computed from shapes, and vectors of which only some
 * elements are known (the shape of a batch whose size is open). */
#include "base/clamp.h"
#include "interpreter/inference/evaluate.h"
#include "interpreter/inference/infer_walk.h"

enum { MOST_ELEMENTS = 64 };

static struct tare_tensor *new_value(struct tare_infer_walk *walk) {
    struct tare_kept_value *kept = TARE_NEW(&walk->root->arena, struct tare_kept_value);
    if (!kept) return NULL;
    kept->next = walk->root->values;
    walk->root->values = kept;
    return &kept->tensor;
}

static bool is_number(int dtype) {
    const struct tare_dtype_info *info = tare_dtype_is_ref(dtype) ? NULL : tare_dtype_get(dtype);
    return info && info->class != TARE_CLASS_STRING && info->class != TARE_CLASS_OBJECT;
}

/* ---- partly known vectors ---- */

/* Elements of a scalar or vector as far as known; false: nothing is. Values below 0 mean "unknown". */
static bool elements_of(struct tare_shape *out, const struct tare_fact *fact) {
    if (fact->value) {
        const struct tare_tensor *value = fact->value;
        if (value->shape.rank > 1 || value->elements > TARE_MAX_RANK || !tare_dtype_is_integer(value->dtype))
            return false;
        out->rank = (int)value->elements;
        for (int i = 0; i < out->rank; i++) {
            int64_t element = tare_tensor_get_i64(value, i);
            out->dims[i] = element < 0 ? TARE_UNKNOWN_DIM : element;
        }
        return true;
    }
    if (fact->partial) *out = *fact->partial;
    return fact->partial;
}

/* Inputs first … last-1 concatenated. An input of which nothing is known takes its length in unknown elements.
 */
static bool joined(struct tare_shape *out, const struct tare_fact *inputs, size_t first, size_t last) {
    out->rank = 0;
    for (size_t i = first; i < last; i++) {
        struct tare_shape part;
        if (!elements_of(&part, &inputs[i])) {
            const struct tare_shape *shape = &inputs[i].shape;
            if (shape->rank < 0 || shape->rank > 1 ||
                (shape->rank == 1 && (shape->dims[0] < 0 || shape->dims[0] > TARE_MAX_RANK)))
                return false;
            part.rank = shape->rank ? (int)shape->dims[0] : 1;
            for (int k = 0; k < part.rank; k++)
                part.dims[k] = TARE_UNKNOWN_DIM;
        }
        if (out->rank + part.rank > TARE_MAX_RANK) return false;
        for (int k = 0; k < part.rank; k++)
            out->dims[out->rank++] = part.dims[k];
    }
    return true;
}

static bool scalar_of(int64_t *out, const struct tare_fact *fact) {
    if (!fact->value || fact->value->elements != 1 || !tare_dtype_is_integer(fact->value->dtype)) return false;
    *out = tare_tensor_get_i64(fact->value, 0);
    return true;
}

/* A vector's slice with one begin, end and stride, as Python counts. */
static bool sliced(struct tare_shape *out, const struct tare_node *node, const struct tare_fact *inputs) {
    struct tare_shape vector;
    int64_t begin, end, stride, size;
    if (tare_node_int(node, "ellipsis_mask", 0) || tare_node_int(node, "new_axis_mask", 0)) return false;
    if (!elements_of(&vector, &inputs[0]) || inputs[0].shape.rank != 1 || !scalar_of(&begin, &inputs[1]) ||
        !scalar_of(&end, &inputs[2]) || !scalar_of(&stride, &inputs[3]) || stride == 0 || stride == INT64_MIN)
        return false;
    size = vector.rank;
    if (begin < 0) begin += size;
    if (end < 0) end += size;
    if (tare_node_int(node, "shrink_axis_mask", 0) & 1) {
        out->rank = 1;
        if (begin >= 0 && begin < size) out->dims[0] = vector.dims[begin];
        return begin >= 0 && begin < size;
    }
    begin = stride > 0 ? tare_clamp(begin, 0, size) : tare_clamp(begin, -1, size - 1);
    end = stride > 0 ? tare_clamp(end, 0, size) : tare_clamp(end, -1, size - 1);
    if (tare_node_int(node, "begin_mask", 0) & 1) begin = stride > 0 ? 0 : size - 1;
    if (tare_node_int(node, "end_mask", 0) & 1) end = stride > 0 ? size : -1;
    out->rank = 0;
    stride = tare_clamp(stride, -TARE_MAX_RANK, TARE_MAX_RANK);
    for (int64_t i = begin; stride > 0 ? i < end : i > end; i += stride)
        out->dims[out->rank++] = vector.dims[i];
    return true;
}

static bool gathered(struct tare_shape *out, const struct tare_fact *inputs) {
    const struct tare_tensor *indices = inputs[1].value;
    struct tare_shape vector;
    if (!indices || indices->elements > TARE_MAX_RANK || inputs[0].shape.rank != 1 || !elements_of(&vector, &inputs[0]))
        return false;
    out->rank = (int)indices->elements;
    for (int i = 0; i < out->rank; i++) {
        int64_t index = tare_tensor_get_i64(indices, i);
        if (index < 0 || index >= vector.rank) return false;
        out->dims[i] = vector.dims[index];
    }
    return true;
}

/* Elements of output 0 as far as they follow from the inputs'. */
static bool partial_of(struct tare_shape *out, const struct tare_node *node, const struct tare_fact *inputs) {
    static const char *const same[] = { "Identity",   "Cast",    "StopGradient", "PreventGradient", "Snapshot",
                                        "ExpandDims", "Reshape", "Squeeze",      "EnsureShape",     "Unpack" };
    if (node->n_inputs == 0) return false;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (tare_node_is(node, same[i])) return elements_of(out, &inputs[0]);
    if (tare_node_is(node, "Shape")) {
        *out = inputs[0].shape;
        return out->rank >= 0;
    }
    if (tare_node_is(node, "Pack")) {
        for (size_t i = 0; i < node->n_inputs; i++)
            if (inputs[i].shape.rank != 0) return false;
        return joined(out, inputs, 0, node->n_inputs);
    }
    if (tare_node_is(node, "ConcatV2")) return joined(out, inputs, 0, node->n_inputs - 1);
    if (tare_node_is(node, "StridedSlice") && node->n_inputs == 4) return sliced(out, node, inputs);
    return (tare_node_is(node, "GatherV2") || tare_node_is(node, "Gather")) && node->n_inputs > 1 &&
           gathered(out, inputs);
}

/* A value all of whose elements are known is a value. */
static tare_status promote(struct tare_infer_walk *walk, struct tare_fact *fact, int dtype) {
    const struct tare_shape *partial = fact->partial;
    struct tare_tensor *value;
    if (!partial || fact->value || fact->shape.rank > 1 || !tare_shape_is_known(partial) ||
        !tare_shape_is_known(&fact->shape))
        return TARE_OK;
    if (fact->shape.rank == 1 ? fact->shape.dims[0] != partial->rank : partial->rank != 1) return TARE_OK;
    if (dtype != TARE_DT_INT32 && dtype != TARE_DT_INT64) return TARE_OK;
    for (int i = 0; i < partial->rank && dtype == TARE_DT_INT32; i++)
        if (partial->dims[i] > INT32_MAX) return TARE_OK;
    if (!(value = new_value(walk))) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_new(value, dtype, &fact->shape));
    for (int i = 0; i < partial->rank; i++) {
        if (dtype == TARE_DT_INT32)
            TARE_DATA(int32_t, value)[i] = (int32_t)partial->dims[i];
        else
            TARE_DATA(int64_t, value)[i] = partial->dims[i];
    }
    fact->value = value;
    return TARE_OK;
}

static tare_status set_partial(struct tare_infer_walk *walk, struct tare_fact *fact, const struct tare_shape *partial,
                               int dtype) {
    if (fact->shape.rank != 1 && (fact->shape.rank != 0 || partial->rank != 1)) return TARE_OK;
    struct tare_shape *kept = TARE_NEW(&walk->root->arena, struct tare_shape);
    if (!kept) return TARE_NO_MEMORY;
    *kept = *partial;
    fact->partial = kept;
    return promote(walk, fact, dtype);
}

static tare_status add_partials(struct tare_infer_walk *walk, const struct tare_node *node,
                                const struct tare_fact *inputs, struct tare_fact *outputs) {
    struct tare_shape partial;
    if (node->n_inputs == 0 || node->n_outputs == 0 || !tare_dtype_is_integer(tare_dtype_base(node->output_dtypes[0])))
        return TARE_OK;
    if (tare_node_is(node, "ShapeN")) {
        for (size_t i = 0; i < node->n_outputs && i < node->n_inputs; i++)
            if (inputs[i].shape.rank >= 0)
                TARE_TRY(set_partial(walk, &outputs[i], &inputs[i].shape, node->output_dtypes[i]));
        return TARE_OK;
    }
    if (tare_node_is(node, "Rank") || tare_node_is(node, "Size")) {
        int64_t number = inputs[0].shape.rank;
        if (tare_node_is(node, "Size") && tare_shape_elements(&number, &inputs[0].shape) != TARE_OK) {
            tare_error_clear();
            number = TARE_UNKNOWN_DIM;
        }
        partial = (struct tare_shape){ .rank = 1, .dims = { number } };
        return number < 0 ? TARE_OK : set_partial(walk, &outputs[0], &partial, node->output_dtypes[0]);
    }
    if (!partial_of(&partial, node, inputs)) return TARE_OK;
    if (!tare_node_is(node, "Unpack")) return set_partial(walk, &outputs[0], &partial, node->output_dtypes[0]);
    for (size_t i = 0; i < node->n_outputs && (int)i < partial.rank && outputs[i].shape.rank == 0; i++) {
        struct tare_shape element = { .rank = 1, .dims = { partial.dims[i] } };
        TARE_TRY(set_partial(walk, &outputs[i], &element, node->output_dtypes[i]));
    }
    return TARE_OK;
}

/* ---- shapes from partly known values ---- */

/* The input that specifies the shape of output 0; -1: none. */
static int shape_input_of(const struct tare_node *node) {
    static const struct {
        const char *op;
        int input;
    } ops[] = {
        { "Reshape", 1 },
        { "Fill", 0 },
        { "BroadcastTo", 1 },
        { "Slice", 2 }, /* -1: to the end, is not known either */
        { "XlaDynamicSlice", 2 },
        { "RandomUniform", 0 },
        { "RandomStandardNormal", 0 },
        { "TruncatedNormal", 0 },
        { "StatelessRandomUniform", 0 },
        { "StatelessRandomNormal", 0 },
        { "Empty", 0 },
        { "Conv2DBackpropInput", 0 },
        { "Conv3DBackpropInputV2", 0 },
        { "DepthwiseConv2dNativeBackpropInput", 0 },
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (tare_node_is(node, ops[i].op)) return ops[i].input;
    return -1;
}

/* Reshape: the one dim that is not known follows from the number of elements. */
static void complete(struct tare_shape *shape, const struct tare_shape *input) {
    int64_t elements, known = 1;
    int open = -1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0 && open >= 0) return;
        if (shape->dims[i] < 0) open = i;
    }
    if (open < 0 || !tare_shape_is_known(input) || tare_shape_elements(&elements, input) != TARE_OK) {
        tare_error_clear();
        return;
    }
    for (int i = 0; i < shape->rank; i++)
        if (i != open && __builtin_mul_overflow(known, shape->dims[i], &known)) return;
    if (known > 0 && elements % known == 0) shape->dims[open] = elements / known;
}

static void refine_shape(const struct tare_node *node, const struct tare_fact *inputs, struct tare_fact *outputs) {
    int i = shape_input_of(node);
    struct tare_shape expected, merged;
    if (i < 0 || (size_t)i >= node->n_inputs || inputs[i].value || inputs[i].shape.rank != 1 || !inputs[i].partial)
        return;
    expected = *inputs[i].partial;
    if (tare_node_is(node, "Reshape")) complete(&expected, &inputs[0].shape);
    if (tare_shape_merge(&merged, &outputs[0].shape, &expected) == TARE_OK)
        outputs[0].shape = merged;
    else
        tare_error_clear();
}

/* ---- values ---- */

tare_status tare_infer_value(struct tare_infer_walk *walk, const struct tare_tensor *value, struct tare_fact *fact) {
    struct tare_tensor *copy;
    if (!value || !value->splat) {
        fact->value = value;
        return TARE_OK;
    }
    if (value->elements > MOST_ELEMENTS) return TARE_OK;
    copy = new_value(walk);
    if (!copy) return TARE_NO_MEMORY;
    TARE_TRY(tare_tensor_copy(copy, value));
    fact->value = copy;
    return TARE_OK;
}

static bool is_small(const struct tare_fact *fact, int dtype) {
    int64_t elements;
    if (!is_number(dtype)) return false;
    if (tare_shape_elements(&elements, &fact->shape) == TARE_OK) return elements <= MOST_ELEMENTS;
    tare_error_clear();
    return false;
}

static bool can_run(const struct tare_node *node, const struct tare_fact *inputs, const struct tare_fact *outputs) {
    if (!tare_node_is_pure(node) || node->n_inputs == 0) return false;
    for (size_t i = 0; i < node->n_inputs; i++)
        if (!inputs[i].value || inputs[i].value->elements > MOST_ELEMENTS || !is_number(inputs[i].value->dtype))
            return false;
    for (size_t i = 0; i < node->n_outputs; i++)
        if (!is_small(&outputs[i], node->output_dtypes[i])) return false;
    return true;
}

/* The node's own kernel on its known inputs. A kernel that fails on them leaves the shapes unknown. */
static tare_status run_kernel(struct tare_infer_walk *walk, const struct tare_node *node,
                              const struct tare_fact *inputs, struct tare_fact *outputs) {
    struct tare_arena *arena = &walk->root->arena;
    struct tare_tensor *values = TARE_NEW_ARRAY(arena, struct tare_tensor, node->n_inputs + 1);
    struct tare_tensor *results = TARE_NEW_ARRAY(arena, struct tare_tensor, node->n_outputs + 1);
    tare_status status;
    if (!values || !results) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++)
        values[i] = *inputs[i].value;
    status = tare_node_evaluate(node, values, results);
    if (status != TARE_OK) {
        if (status != TARE_NO_MEMORY) tare_error_clear();
        return status == TARE_NO_MEMORY ? status : TARE_OK;
    }
    for (size_t i = 0; i < node->n_outputs; i++) {
        struct tare_tensor *kept = new_value(walk);
        if (kept) *kept = results[i];
        if (!kept) {
            for (; i < node->n_outputs; i++)
                tare_tensor_reset(&results[i]);
            return TARE_NO_MEMORY;
        }
        outputs[i].value = kept;
    }
    return TARE_OK;
}

tare_status tare_infer_node_values(struct tare_infer_walk *walk, const struct tare_node *node,
                                   const struct tare_fact *inputs, struct tare_fact *outputs) {
    if (tare_node_is(node, "Const"))
        return node->n_outputs ? tare_infer_value(walk, tare_node_tensor(node, "value"), &outputs[0]) : TARE_OK;
    refine_shape(node, inputs, outputs);
    if (can_run(node, inputs, outputs)) return run_kernel(walk, node, inputs, outputs);
    return add_partials(walk, node, inputs, outputs);
}
