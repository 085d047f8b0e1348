/* Modification of variables (assign.h). A variable's tensor may be shared with other edges; it is copied before the
 * first write if this is not the only reference. */
#include "interpreter/ops/state/assign.h"

#include "base/map.h"
#include "interpreter/execution/state.h"
#include "interpreter/ops/support/index.h"
#include "interpreter/ops/support/move.h"

#include <string.h>

static tare_status declare(struct tare_variable_object **out, const struct tare_kernel *kernel, const char *name) {
    struct tare_shape shape = tare_shape_unknown();
    struct tare_variable_object *variable;
    tare_node_shape(kernel->node, "shape", &shape);
    variable = tare_variable_object_new(name, tare_node_type(kernel->node, "dtype", TARE_DT_INVALID), &shape);
    if (!variable) return TARE_NO_MEMORY;
    *out = variable;
    return TARE_OK;
}

tare_status tare_assign_declared(struct tare_variable_object **out, const struct tare_kernel *kernel) {
    struct tare_session *session = kernel->session;
    const struct tare_node *node = kernel->node;
    const char *name = tare_node_string(node, "shared_name", ""), *container = tare_node_string(node, "container", "");
    struct tare_object *object;
    if (!session) return TARE_FAIL(TARE_INTERNAL, "a variable outside a session");
    object = tare_map_get_n(&session->variables, (const char *)&node, sizeof node);
    if (!object && strcmp(name, TARE_ANONYMOUS_VARIABLE) == 0) return declare(out, kernel, node->name);
    if (!*name) name = node->name;
    if (*container) name = tare_arena_printf(kernel->scratch, "%s/%s", container, name);
    if (!name) return TARE_NO_MEMORY;
    if (!object) object = tare_session_find_resource(session, TARE_VARIABLE_KIND, name);
    if (!object) {
        TARE_TRY(declare(out, kernel, name));
        tare_object_ref(&(*out)->object);
        return tare_session_add_resource(session, TARE_VARIABLE_KIND, name, &(*out)->object);
    }
    *out = (struct tare_variable_object *)tare_object_ref(object);
    return TARE_OK;
}

tare_status tare_assign_check(const struct tare_variable_object *variable, const struct tare_tensor *value,
                              bool validate) {
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    if (value->dtype != variable->dtype)
        return TARE_FAIL(TARE_TYPE, "variable '%s' gets a %s value (expected %s)", variable->name,
                         tare_dtype_name(value->dtype), tare_dtype_name(variable->dtype));
    if (validate && !tare_shape_compatible(&value->shape, &variable->shape))
        return TARE_FAIL(TARE_SHAPE, "variable '%s' gets a value of shape %s (expected %s)", variable->name,
                         tare_shape_text(got, &value->shape), tare_shape_text(expected, &variable->shape));
    return TARE_OK;
}

tare_status tare_assign_value(struct tare_variable_object *variable, const struct tare_tensor *value, bool validate) {
    TARE_TRY(tare_assign_check(variable, value, validate));
    tare_variable_assign(variable, value);
    return TARE_OK;
}

tare_status tare_assign_accumulate(struct tare_variable_object *variable, const struct tare_tensor *operand,
                                   enum tare_accumulate how) {
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    struct tare_tensor *value = &variable->value;
    TARE_TRY(tare_variable_own(variable));
    if (operand->dtype != value->dtype || !tare_shape_equal(&operand->shape, &value->shape))
        return TARE_FAIL(TARE_SHAPE, "variable '%s' is changed by a %s %s tensor (expected %s %s)", variable->name,
                         tare_dtype_name(operand->dtype), tare_shape_text(got, &operand->shape),
                         tare_dtype_name(value->dtype), tare_shape_text(expected, &value->shape));
    return tare_accumulate(how, value->dtype, value->data, operand->data, value->elements, false);
}

/* Combines `rows` elements of `updates` (one element if `scalar`) with the value's elements from `first` on. */
static tare_status change(struct tare_tensor *value, int64_t first, const struct tare_tensor *updates, int64_t from,
                          int64_t count, bool scalar, int how) {
    size_t size = tare_dtype_size(value->dtype);
    if (how == TARE_ASSIGN_SET)
        return scalar ? tare_move_fill(value, first, count, updates, 0)
                      : tare_move_run(value, first, updates, from, count);
    return tare_accumulate((enum tare_accumulate)how, value->dtype, (char *)value->data + (size_t)first * size,
                           (const char *)updates->data + (size_t)(scalar ? 0 : from) * size, count, scalar);
}

static tare_status check_updates(const struct tare_variable_object *variable, const struct tare_tensor *updates,
                                 const struct tare_shape *expected) {
    char got[TARE_SHAPE_TEXT_SIZE], text[TARE_SHAPE_TEXT_SIZE];
    if (updates->dtype != variable->value.dtype)
        return TARE_FAIL(TARE_TYPE, "updates are %s (expected %s)", tare_dtype_name(updates->dtype),
                         tare_dtype_name(variable->value.dtype));
    if (updates->shape.rank == 0 || tare_shape_equal(&updates->shape, expected)) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "updates have shape %s (expected %s)", tare_shape_text(got, &updates->shape),
                     tare_shape_text(text, expected));
}

/* `head` followed by dimensions first … of `tail`. */
static tare_status join(struct tare_shape *out, const struct tare_shape *head, int head_rank,
                        const struct tare_shape *tail, int first) {
    int64_t dims[2 * TARE_MAX_RANK];
    int rank = 0;
    for (int d = 0; d < head_rank; d++)
        dims[rank++] = head->dims[d];
    for (int d = first; d < tail->rank; d++)
        dims[rank++] = tail->dims[d];
    return tare_shape_from_dims(out, rank, dims);
}

tare_status tare_assign_rows(struct tare_variable_object *variable, const struct tare_tensor *indices,
                             const struct tare_tensor *updates, int how) {
    struct tare_tensor *value = &variable->value;
    struct tare_shape expected;
    int64_t limit, row;
    TARE_TRY(tare_variable_own(variable));
    if (value->shape.rank < 1)
        return TARE_FAIL(TARE_SHAPE, "variable '%s' is a scalar: it has no rows", variable->name);
    TARE_TRY(join(&expected, &indices->shape, indices->shape.rank, &value->shape, 1));
    TARE_TRY(check_updates(variable, updates, &expected));
    limit = value->shape.dims[0];
    row = limit ? value->elements / limit : 0;
    for (int64_t i = 0; i < indices->elements; i++) {
        int64_t index = tare_index_at(indices, i);
        if (index < 0 || index >= limit) return tare_index_fault("indices", indices, i, index, limit);
    }
    for (int64_t i = 0; i < indices->elements; i++)
        TARE_TRY(change(value, tare_index_at(indices, i) * row, updates, i * row, row, updates->shape.rank == 0, how));
    return TARE_OK;
}

tare_status tare_assign_tuples(struct tare_variable_object *variable, const struct tare_tensor *indices,
                               const struct tare_tensor *updates, int how) {
    struct tare_tensor *value = &variable->value;
    struct tare_tuples tuples;
    struct tare_shape expected;
    int rank = indices->shape.rank;
    TARE_TRY(tare_variable_own(variable));
    if (rank < 1 || indices->shape.dims[rank - 1] > value->shape.rank)
        return TARE_FAIL(TARE_SHAPE, "index tuples of %lld numbers (expected at most %d)",
                         (long long)(rank < 1 ? 0 : indices->shape.dims[rank - 1]), value->shape.rank);
    TARE_TRY(join(&expected, &indices->shape, rank - 1, &value->shape, (int)indices->shape.dims[rank - 1]));
    TARE_TRY(check_updates(variable, updates, &expected));
    tare_tuples_make(&tuples, indices, &value->shape);
    for (int64_t k = 0; k < tuples.count; k++)
        if (tare_tuples_row(&tuples, k) < 0) return tare_tuples_fault(&tuples, k, "ref");
    for (int64_t k = 0; k < tuples.count; k++)
        TARE_TRY(change(value, tare_tuples_row(&tuples, k) * tuples.inner, updates, k * tuples.inner, tuples.inner,
                        updates->shape.rank == 0, how));
    return TARE_OK;
}

tare_status tare_assign_count(struct tare_kernel *kernel) {
    const int64_t limit = tare_node_int(kernel->node, "limit", 0);
    struct tare_variable_object *variable;
    int64_t value;
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    TARE_TRY(tare_variable_own(variable));
    if (variable->value.dtype != tare_dtype_base(kernel->node->output_dtypes[0]))
        return TARE_FAIL(TARE_TYPE, "variable '%s' is %s", variable->name, tare_dtype_name(variable->value.dtype));
    if (variable->value.shape.rank != 0)
        return TARE_FAIL(TARE_SHAPE, "input is not a scalar: variable '%s'", variable->name);
    value = tare_tensor_get_i64(&variable->value, 0);
    if (value >= limit) return TARE_FAIL(TARE_INVALID_ARGUMENT, "Reached limit of %lld", (long long)limit);
    TARE_TRY(tare_tensor_copy(&kernel->outputs[0], &variable->value));
    tare_tensor_set_i64(&variable->value, 0, value + 1);
    return TARE_OK;
}

tare_status tare_assign_is_initialized(struct tare_kernel *kernel) {
    struct tare_variable_object *variable = NULL;
    struct tare_shape scalar = tare_shape_scalar();
    TARE_TRY(tare_variable_from_handle(&variable, &kernel->inputs[0]));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_BOOL, &scalar));
    TARE_DATA(bool, &kernel->outputs[0])[0] = variable->value.dtype != TARE_DT_INVALID;
    return TARE_OK;
}
