/* The strided copy used by every op that only moves elements. */
#include "interpreter/ops/support/move.h"

#include <string.h>

enum { TILE = 32 }; /* elements; two tiles of the widest element fit in a first-level cache */

void tare_move_dim(struct tare_move *move, int64_t dim, int64_t from_stride, int64_t to_stride) {
    move->dims[move->rank] = dim;
    move->from[move->rank] = from_stride;
    move->to[move->rank++] = to_stride;
}

void tare_move_strides(int64_t strides[TARE_MAX_RANK], const struct tare_shape *shape) {
    int64_t stride = 1;
    for (int d = shape->rank - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= shape->dims[d];
    }
}

int64_t tare_move_product(const struct tare_shape *shape, int first, int last) {
    int64_t product = 1;
    for (int d = first; d < last; d++)
        product *= shape->dims[d];
    return product;
}

/* Drops dimensions of one element and joins neighbours that step as one; false when there is nothing to move. */
static bool simplify(struct tare_move *out, const struct tare_move *move) {
    *out = (struct tare_move){ .from_offset = move->from_offset, .to_offset = move->to_offset };
    for (int d = 0; d < move->rank; d++) {
        int last = out->rank - 1;
        if (move->dims[d] <= 0) return false;
        if (move->dims[d] == 1) continue;
        if (last >= 0 && out->from[last] == move->from[d] * move->dims[d] &&
            out->to[last] == move->to[d] * move->dims[d]) {
            out->dims[last] *= move->dims[d];
            out->from[last] = move->from[d];
            out->to[last] = move->to[d];
        } else {
            tare_move_dim(out, move->dims[d], move->from[d], move->to[d]);
        }
    }
    if (!out->rank) tare_move_dim(out, 1, 1, 1);
    return true;
}

/* When the innermost dimension does not read neighbours but another one does, that one becomes the second innermost,
 * and the two are walked in tiles. */
static bool find_tiles(struct tare_move *move) {
    int last = move->rank - 1, found = -1;
    if (last < 1 || move->from[last] == 1 || move->from[last] == 0 || move->to[last] != 1) return false;
    for (int d = 0; d < last; d++)
        if (move->from[d] == 1) found = d;
    if (found < 0) return false;
    for (int d = found; d < last - 1; d++) {
        int64_t dim = move->dims[d], from = move->from[d], to = move->to[d];
        move->dims[d] = move->dims[d + 1], move->dims[d + 1] = dim;
        move->from[d] = move->from[d + 1], move->from[d + 1] = from;
        move->to[d] = move->to[d + 1], move->to[d + 1] = to;
    }
    return true;
}

static inline __attribute__((always_inline)) void copy_row(char *to, int64_t to_step, const char *from,
                                                           int64_t from_step, int64_t count, size_t size) {
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)count * size);
    } else if (to_step == 1) {
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * size, from + i * from_step * (int64_t)size, size);
    } else {
        for (int64_t i = 0; i < count; i++)
            memcpy(to + i * to_step * (int64_t)size, from + i * from_step * (int64_t)size, size);
    }
}

/* Four by four words turned round in registers; strides in bytes. */
static inline void turn_4x4(char *to, int64_t to_stride, const char *from, int64_t from_stride) {
    typedef uint32_t quad __attribute__((vector_size(16)));
    quad r[4], a, b, c, d;
    for (int k = 0; k < 4; k++)
        memcpy(&r[k], from + k * from_stride, sizeof r[k]);
    a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
    b = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
    c = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, b, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(c, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    for (int k = 0; k < 4; k++)
        memcpy(to + k * to_stride, &r[k], sizeof r[k]);
}

/* A tile of rows (their elements neighbours in `from`) and columns (neighbours in `to`); strides in bytes. */
static inline __attribute__((always_inline)) void copy_tile(char *to, int64_t to_stride, const char *from,
                                                            int64_t from_stride, int64_t rows, int64_t columns,
                                                            size_t size) {
    int64_t whole_rows = size == 4 ? rows & ~(int64_t)3 : 0, whole_columns = columns & ~(int64_t)3;
    for (int64_t y = 0; y < whole_rows; y += 4)
        for (int64_t x = 0; x < whole_columns; x += 4)
            turn_4x4(to + y * to_stride + x * 4, to_stride, from + y * 4 + x * from_stride, from_stride);
    for (int64_t y = 0; y < rows; y++)
        for (int64_t x = y < whole_rows ? whole_columns : 0; x < columns; x++)
            memcpy(to + y * to_stride + x * (int64_t)size, from + y * (int64_t)size + x * from_stride, size);
}

static inline __attribute__((always_inline)) void copy_tiles(char *to, const char *from, const int64_t *dims,
                                                             const int64_t *from_steps, const int64_t *to_steps,
                                                             size_t size) {
    int64_t to_stride = to_steps[0] * (int64_t)size, from_stride = from_steps[1] * (int64_t)size;
    for (int64_t i = 0; i < dims[0]; i += TILE)
        for (int64_t j = 0; j < dims[1]; j += TILE)
            copy_tile(to + i * to_stride + j * (int64_t)size, to_stride, from + i * (int64_t)size + j * from_stride,
                      from_stride, dims[0] - i < TILE ? dims[0] - i : TILE, dims[1] - j < TILE ? dims[1] - j : TILE,
                      size);
}

static inline __attribute__((always_inline)) void walk(char *to, const char *from, const struct tare_move *move,
                                                       bool tiles, size_t size) {
    int64_t index[TARE_MOVE_RANK] = { 0 }, from_at = move->from_offset, to_at = move->to_offset;
    int inner = move->rank - (tiles ? 2 : 1), d;
    for (;;) {
        char *target = to + to_at * (int64_t)size;
        const char *source = from + from_at * (int64_t)size;
        if (tiles)
            copy_tiles(target, source, move->dims + inner, move->from + inner, move->to + inner, size);
        else
            copy_row(target, move->to[inner], source, move->from[inner], move->dims[inner], size);
        for (d = inner - 1; d >= 0; d--) {
            from_at += move->from[d];
            to_at += move->to[d];
            if (++index[d] < move->dims[d]) break;
            from_at -= move->from[d] * move->dims[d];
            to_at -= move->to[d] * move->dims[d];
            index[d] = 0;
        }
        if (d < 0) return;
    }
}

static tare_status copy_owned(struct tare_tensor *to, int64_t to_at, const struct tare_tensor *from, int64_t from_at) {
    if (from->dtype == TARE_DT_STRING) {
        const struct tare_str *text = &TARE_CONST_DATA(struct tare_str, from)[from_at];
        return tare_tensor_set_string(to, to_at, text->data, text->size);
    }
    tare_tensor_set_object(to, to_at, tare_object_ref(TARE_DATA(struct tare_object *, from)[from_at]));
    return TARE_OK;
}

static tare_status walk_owned(struct tare_tensor *to, const struct tare_tensor *from, const struct tare_move *move) {
    int64_t index[TARE_MOVE_RANK] = { 0 }, from_at = move->from_offset, to_at = move->to_offset;
    for (;;) {
        int d;
        TARE_TRY(copy_owned(to, to_at, from, from_at));
        for (d = move->rank - 1; d >= 0; d--) {
            from_at += move->from[d];
            to_at += move->to[d];
            if (++index[d] < move->dims[d]) break;
            from_at -= move->from[d] * move->dims[d];
            to_at -= move->to[d] * move->dims[d];
            index[d] = 0;
        }
        if (d < 0) return TARE_OK;
    }
}

static bool is_owned(int dtype) {
    return dtype == TARE_DT_STRING || dtype == TARE_DT_RESOURCE || dtype == TARE_DT_VARIANT;
}

tare_status tare_move_apply(struct tare_tensor *to, const struct tare_tensor *from, const struct tare_move *move) {
    struct tare_move plan;
    bool tiles;
    if (!simplify(&plan, move)) return TARE_OK;
    if (is_owned(from->dtype)) return walk_owned(to, from, &plan);
    tiles = find_tiles(&plan);
    switch (tare_dtype_size(from->dtype)) {
    case 1:
        walk(to->data, from->data, &plan, tiles, 1);
        break;
    case 2:
        walk(to->data, from->data, &plan, tiles, 2);
        break;
    case 4:
        walk(to->data, from->data, &plan, tiles, 4);
        break;
    case 8:
        walk(to->data, from->data, &plan, tiles, 8);
        break;
    default:
        walk(to->data, from->data, &plan, tiles, 16);
        break;
    }
    return TARE_OK;
}

tare_status tare_move_run(struct tare_tensor *to, int64_t to_offset, const struct tare_tensor *from,
                          int64_t from_offset, int64_t count) {
    size_t size = tare_dtype_size(from->dtype);
    if (count <= 0) return TARE_OK;
    if (!is_owned(from->dtype)) {
        memcpy((char *)to->data + (size_t)to_offset * size, (const char *)from->data + (size_t)from_offset * size,
               (size_t)count * size);
        return TARE_OK;
    }
    for (int64_t i = 0; i < count; i++)
        TARE_TRY(copy_owned(to, to_offset + i, from, from_offset + i));
    return TARE_OK;
}

tare_status tare_move_fill(struct tare_tensor *to, int64_t to_offset, int64_t count, const struct tare_tensor *from,
                           int64_t from_offset) {
    struct tare_move move = { .from_offset = from_offset, .to_offset = to_offset };
    tare_move_dim(&move, count, 0, 1);
    return tare_move_apply(to, from, &move);
}

void tare_move_zero(struct tare_tensor *to, int64_t to_offset, int64_t count) {
    size_t size = tare_dtype_size(to->dtype);
    if (count > 0 && !is_owned(to->dtype)) memset((char *)to->data + (size_t)to_offset * size, 0, (size_t)count * size);
}
