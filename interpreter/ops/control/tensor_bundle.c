/* Variants that contain tensors: TensorMap, optional values and composite tensors split into components. */
#include "interpreter/execution/variable.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"

#include "base/alloc.h"

#include <string.h>

/* Tensors of one variant. For a map: keys and values alternate. */
struct bundle {
    struct tare_object object;
    struct tare_tensor *items;
    size_t count;
    bool empty; /* an optional without a value */
};

static void destroy(struct tare_object *object) {
    struct bundle *bundle = (struct bundle *)object;
    for (size_t i = 0; i < bundle->count; i++)
        tare_tensor_reset(&bundle->items[i]);
    tare_free(bundle->items);
    tare_free(bundle);
}

static const struct tare_object_type map_type = { "TensorMap", destroy }, optional_type = { "Optional", destroy },
                                     composite_type = { "CompositeTensor", destroy };

static struct bundle *new_bundle(const struct tare_object_type *type, size_t capacity) {
    struct bundle *bundle = tare_calloc(1, sizeof *bundle);
    if (!bundle) return NULL;
    tare_object_init(&bundle->object, type);
    bundle->items = tare_calloc(capacity + 1, sizeof *bundle->items);
    if (bundle->items) return bundle;
    tare_object_unref(&bundle->object);
    return NULL;
}

/* Sets output 0 to a scalar variant; takes ownership of the reference. */
static tare_status return_bundle(struct tare_kernel *kernel, struct bundle *bundle) {
    const struct tare_shape scalar = tare_shape_scalar();
    if (!bundle) return TARE_NO_MEMORY;
    const tare_status status = tare_kernel_output(kernel, 0, TARE_DT_VARIANT, &scalar);
    if (status == TARE_OK)
        tare_tensor_set_object(&kernel->outputs[0], 0, &bundle->object);
    else
        tare_object_unref(&bundle->object);
    return status;
}

static tare_status open_bundle(struct bundle **out, const struct tare_kernel *kernel,
                               const struct tare_object_type *type) {
    struct tare_object *object = NULL;
    TARE_TRY(tare_handle_object(&object, &kernel->inputs[0], type));
    *out = (struct bundle *)object;
    return TARE_OK;
}

/* ---- maps: every update creates a new map ---- */

static bool same_value(const struct tare_tensor *a, const struct tare_tensor *b) {
    if (a->dtype != b->dtype || !tare_shape_equal(&a->shape, &b->shape)) return false;
    if (a->dtype != TARE_DT_STRING) return !a->elements || memcmp(a->data, b->data, tare_tensor_bytes(a)) == 0;
    for (int64_t i = 0; i < a->elements; i++) {
        const struct tare_str x = TARE_CONST_DATA(struct tare_str, a)[i], y = TARE_CONST_DATA(struct tare_str, b)[i];
        if (x.size != y.size || (x.size && memcmp(x.data, y.data, x.size) != 0)) return false;
    }
    return true;
}

/* Returns the position of the key, or map->count if it is absent. */
static size_t find_key(const struct bundle *map, const struct tare_tensor *key) {
    size_t i = 0;
    while (i < map->count && !same_value(&map->items[i], key))
        i += 2;
    return i;
}

static tare_status run_empty_map(struct tare_kernel *kernel) {
    return return_bundle(kernel, new_bundle(&map_type, 0));
}

static tare_status run_insert(struct tare_kernel *kernel) {
    struct bundle *map = NULL;
    TARE_TRY(open_bundle(&map, kernel, &map_type));
    struct bundle *made = new_bundle(&map_type, map->count + 2);
    if (!made) return TARE_NO_MEMORY;
    const size_t at = find_key(map, &kernel->inputs[1]);
    for (; made->count < map->count; made->count++)
        tare_tensor_share(&made->items[made->count], &map->items[made->count]);
    if (at == map->count) {
        tare_tensor_share(&made->items[at], &kernel->inputs[1]);
        made->count += 2;
    } else {
        tare_tensor_reset(&made->items[at + 1]);
    }
    tare_tensor_share(&made->items[at + 1], &kernel->inputs[2]);
    return return_bundle(kernel, made);
}

static tare_status run_erase(struct tare_kernel *kernel) {
    struct bundle *map = NULL;
    TARE_TRY(open_bundle(&map, kernel, &map_type));
    const size_t at = find_key(map, &kernel->inputs[1]);
    if (at == map->count) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Trying to erase non-existent item.");
    struct bundle *made = new_bundle(&map_type, map->count);
    if (!made) return TARE_NO_MEMORY;
    for (size_t i = 0; i < map->count; i++)
        if (i != at && i != at + 1) tare_tensor_share(&made->items[made->count++], &map->items[i]);
    return return_bundle(kernel, made);
}

static tare_status run_lookup(struct tare_kernel *kernel) {
    struct bundle *map = NULL;
    TARE_TRY(open_bundle(&map, kernel, &map_type));
    const size_t at = find_key(map, &kernel->inputs[1]);
    if (at == map->count) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Trying to lookup non-existent key.");
    if (map->items[at + 1].dtype != tare_dtype_base(kernel->node->output_dtypes[0]))
        return TARE_FAIL(TARE_TYPE, "the map contains %s (expected %s)", tare_dtype_name(map->items[at + 1].dtype),
                         tare_dtype_name(kernel->node->output_dtypes[0]));
    tare_tensor_share(&kernel->outputs[0], &map->items[at + 1]);
    return TARE_OK;
}

static tare_status run_has_key(struct tare_kernel *kernel) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct bundle *map = NULL;
    TARE_TRY(open_bundle(&map, kernel, &map_type));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &scalar));
    TARE_DATA(bool, &kernel->outputs[0])[0] = find_key(map, &kernel->inputs[1]) < map->count;
    return TARE_OK;
}

static tare_status run_size(struct tare_kernel *kernel) {
    struct bundle *map = NULL;
    TARE_TRY(open_bundle(&map, kernel, &map_type));
    return tare_tensor_scalar_i32(&kernel->outputs[0], (int32_t)(map->count / 2));
}

/* Stacks keys of one shape along a new axis 0. */
static tare_status run_stack_keys(struct tare_kernel *kernel) {
    struct bundle *map = NULL;
    TARE_TRY(open_bundle(&map, kernel, &map_type));
    if (!map->count) return TARE_FAIL(TARE_INVALID_ARGUMENT, "TensorMapStackKeys cannot be called on empty map.");
    const struct tare_tensor *first = &map->items[0];
    struct tare_shape shape = { .rank = first->shape.rank + 1, .dims = { (int64_t)(map->count / 2) } };
    if (shape.rank > TARE_MAX_RANK) return TARE_FAIL(TARE_SHAPE, "the result has too many dims");
    memcpy(shape.dims + 1, first->shape.dims, (size_t)first->shape.rank * sizeof *shape.dims);
    if (first->dtype != tare_dtype_base(kernel->node->output_dtypes[0]))
        return TARE_FAIL(TARE_TYPE, "the keys are %s", tare_dtype_name(first->dtype));
    TARE_TRY(tare_kernel_output(kernel, 0, first->dtype, &shape));
    for (size_t i = 0; i < map->count; i += 2) {
        if (map->items[i].dtype != first->dtype || !tare_shape_equal(&map->items[i].shape, &first->shape))
            return TARE_FAIL(TARE_SHAPE, "keys of different shapes cannot be stacked");
        TARE_TRY(
            tare_move_run(&kernel->outputs[0], (int64_t)(i / 2) * first->elements, &map->items[i], 0, first->elements));
    }
    return TARE_OK;
}

/* ---- optional values, and components of composite tensors ---- */

static tare_status pack(struct tare_kernel *kernel, const struct tare_object_type *type, bool empty) {
    struct bundle *bundle = new_bundle(type, kernel->n_inputs);
    if (!bundle) return TARE_NO_MEMORY;
    bundle->empty = empty;
    for (size_t i = 0; i < kernel->n_inputs; i++)
        tare_tensor_share(&bundle->items[bundle->count++], &kernel->inputs[i]);
    return return_bundle(kernel, bundle);
}

static tare_status unpack(struct tare_kernel *kernel, const struct tare_object_type *type) {
    struct bundle *bundle = NULL;
    TARE_TRY(open_bundle(&bundle, kernel, type));
    if (bundle->empty) return TARE_FAIL(TARE_INVALID_ARGUMENT, "The given optional does not have a value.");
    if (bundle->count != kernel->n_outputs)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "the variant contains %zu components (expected %zu)", bundle->count,
                         kernel->n_outputs);
    for (size_t i = 0; i < bundle->count; i++) {
        if (bundle->items[i].dtype != tare_dtype_base(kernel->node->output_dtypes[i]))
            return TARE_FAIL(TARE_TYPE, "component %zu is %s (expected %s)", i, tare_dtype_name(bundle->items[i].dtype),
                             tare_dtype_name(kernel->node->output_dtypes[i]));
        tare_tensor_share(&kernel->outputs[i], &bundle->items[i]);
    }
    return TARE_OK;
}

static tare_status run_optional(struct tare_kernel *kernel) {
    return pack(kernel, &optional_type, false);
}
static tare_status run_none(struct tare_kernel *kernel) {
    return pack(kernel, &optional_type, true);
}
static tare_status run_get(struct tare_kernel *kernel) {
    return unpack(kernel, &optional_type);
}
static tare_status run_has_value(struct tare_kernel *kernel) {
    const struct tare_shape scalar = tare_shape_scalar();
    struct bundle *bundle = NULL;
    TARE_TRY(open_bundle(&bundle, kernel, &optional_type));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &scalar));
    TARE_DATA(bool, &kernel->outputs[0])[0] = !bundle->empty;
    return TARE_OK;
}
static tare_status run_compose(struct tare_kernel *kernel) {
    return pack(kernel, &composite_type, false);
}
static tare_status run_decompose(struct tare_kernel *kernel) {
    return unpack(kernel, &composite_type);
}

static tare_status infer_any(struct tare_infer *infer) {
    (void)infer;
    return TARE_OK;
}

const struct tare_op tare_ops_tensor_bundle[] = {
    { .name = "EmptyTensorMap", .infer = tare_infer_scalar, .run = run_empty_map, .flags = TARE_OP_NO_FOLD },
    { .name = "TensorMapInsert", .infer = tare_infer_scalar, .run = run_insert },
    { .name = "TensorMapErase", .infer = tare_infer_scalar, .run = run_erase },
    { .name = "TensorMapLookup", .infer = infer_any, .run = run_lookup },
    { .name = "TensorMapHasKey", .infer = tare_infer_scalar, .run = run_has_key },
    { .name = "TensorMapSize", .infer = tare_infer_scalar, .run = run_size },
    { .name = "TensorMapStackKeys", .infer = infer_any, .run = run_stack_keys },
    { .name = "OptionalFromValue", .infer = tare_infer_scalar, .run = run_optional, .flags = TARE_OP_NO_FOLD },
    { .name = "OptionalNone", .infer = tare_infer_scalar, .run = run_none, .flags = TARE_OP_NO_FOLD },
    { .name = "OptionalGetValue", .infer = infer_any, .run = run_get },
    { .name = "OptionalHasValue", .infer = tare_infer_scalar, .run = run_has_value },
    { .name = "CompositeTensorVariantFromComponents",
      .infer = tare_infer_scalar,
      .run = run_compose,
      .flags = TARE_OP_NO_FOLD },
    { .name = "CompositeTensorVariantToComponents", .infer = infer_any, .run = run_decompose },
    { 0 },
};
