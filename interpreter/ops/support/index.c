/* Indices that come from data. */
#include "interpreter/ops/support/index.h"

#include "interpreter/ops/support/move.h"

#include <stdio.h>
#include <string.h>

/* "[0,2]" for element i of a tensor of that shape, "" for a scalar's. */
static const char *index_text(char text[TARE_INDEX_TEXT_SIZE], const struct tare_shape *shape, int64_t i) {
    int64_t strides[TARE_MAX_RANK];
    size_t used = 0;
    tare_move_strides(strides, shape);
    text[0] = '\0';
    for (int d = 0; d < shape->rank && used < TARE_INDEX_TEXT_SIZE; d++)
        used += (size_t)snprintf(text + used, TARE_INDEX_TEXT_SIZE - used, "%s%lld%s", d ? "," : "[",
                                 (long long)(strides[d] ? i / strides[d] % shape->dims[d] : 0),
                                 d + 1 == shape->rank ? "]" : "");
    return text;
}

tare_status tare_index_fault(const char *what, const struct tare_tensor *indices, int64_t i, int64_t index,
                             int64_t limit) {
    char text[TARE_INDEX_TEXT_SIZE];
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s%s = %lld is not in [0, %lld)", what,
                     index_text(text, &indices->shape, i), (long long)index, (long long)limit);
}

void tare_tuples_make(struct tare_tuples *tuples, const struct tare_tensor *indices, const struct tare_shape *shape) {
    tuples->indices = indices;
    tuples->shape = *shape;
    tuples->depth = (int)indices->shape.dims[indices->shape.rank - 1];
    tuples->count = tare_move_product(&indices->shape, 0, indices->shape.rank - 1);
    tuples->inner = tare_move_product(shape, tuples->depth, shape->rank);
    if (!tuples->depth && !tuples->inner) tuples->count = 0; /* nothing to check or move, however many there are */
}

int64_t tare_tuples_row(const struct tare_tuples *tuples, int64_t k) {
    int64_t row = 0;
    for (int d = 0; d < tuples->depth; d++) {
        int64_t index = tare_index_at(tuples->indices, k * tuples->depth + d);
        if (index < 0 || index >= tuples->shape.dims[d]) return -1;
        row = row * tuples->shape.dims[d] + index;
    }
    return row;
}

tare_status tare_tuples_fault(const struct tare_tuples *tuples, int64_t k, const char *into) {
    char where[TARE_INDEX_TEXT_SIZE], shape[TARE_SHAPE_TEXT_SIZE], tuple[TARE_INDEX_TEXT_SIZE] = "";
    struct tare_shape outer = tuples->indices->shape;
    size_t used = 0;
    outer.rank--;
    for (int d = 0; d < tuples->depth && used < sizeof tuple; d++)
        used += (size_t)snprintf(tuple + used, sizeof tuple - used, "%s%lld", d ? ", " : "",
                                 (long long)tare_index_at(tuples->indices, k * tuples->depth + d));
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "indices%s = [%s] does not index into %s %s", index_text(where, &outer, k),
                     tuple, into, tare_shape_text(shape, &tuples->shape));
}

bool tare_index_ignores_bad(const struct tare_node *node) {
    const char *policy = tare_node_string(node, "bad_indices_policy", "");
    return strcmp(policy, "IGNORE") == 0;
}
