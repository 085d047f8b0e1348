#include "interpreter/kernels/permute.h"

#include <string.h>

enum { MOST_AXES = 64 };

bool tare_permute_is_identity(int rank, const int *order) {
    for (int i = 0; i < rank; i++) {
        if (order[i] != i) return false;
    }
    return true;
}

/* `count` elements, `step` elements apart. */
static void copy_line(char *to, const char *from, size_t size, int64_t count, int64_t step) {
    if (step == 1) {
        memcpy(to, from, (size_t)count * size);
        return;
    }
    switch (size) {
    case 1:
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i * step];
        break;
    case 4:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + 4 * i, from + 4 * i * step, 4);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            memcpy(to + (size_t)i * size, from + i * step * (int64_t)size, size);
        break;
    }
}

void tare_permute_steps(void *to, const void *from, size_t element_size, int rank, const int64_t *dims,
                        const int64_t *steps) {
    int64_t at[MOST_AXES] = { 0 };
    char *target = to;
    const char *source = from;
    const int64_t size = (int64_t)element_size;
    for (int i = 0; i < rank; i++) {
        if (dims[i] == 0) return;
    }
    if (rank == 0) {
        memcpy(to, from, element_size);
        return;
    }
    const int64_t length = dims[rank - 1];
    for (;;) {
        copy_line(target, source, element_size, length, steps[rank - 1]);
        target += length * size;
        int axis = rank - 2;
        for (; axis >= 0; axis--) {
            source += steps[axis] * size;
            if (++at[axis] < dims[axis]) break;
            source -= dims[axis] * steps[axis] * size;
            at[axis] = 0;
        }
        if (axis < 0) return;
    }
}

void tare_permute(void *to, const void *from, size_t element_size, int rank, const int64_t *dims, const int *order) {
    int64_t own[MOST_AXES], steps[MOST_AXES], out[MOST_AXES], step = 1;
    for (int i = rank - 1; i >= 0; i--) {
        own[i] = step;
        step *= dims[i];
    }
    for (int i = 0; i < rank; i++) {
        steps[i] = own[order[i]];
        out[i] = dims[order[i]];
    }
    tare_permute_steps(to, from, element_size, rank, out, steps);
}
