/* Reshapes between the choice and the product that split or join axes of an entry: groups of channels with scales of
 * their own. The stack is reshaped as its entries are. */
#include "quant/selection/scaling.h"

#include <string.h>

static int without_ones(int *axes, const struct tare_shape *shape) {
    int count = 0;
    for (int i = 0; i < shape->rank; i++)
        if (shape->dims[i] != 1) axes[count++] = i;
    return count;
}

static void shift(int *from, int count, int behind, int change) {
    for (int i = 0; i < count; i++)
        if (from[i] >= behind) from[i] += change;
}

/* Replaces `removed` axes of the stack, from `at` on, by `added` ones of the sizes `dims`. */
static bool replace_axes(struct tare_quant_selection *s, struct tare_shape *stack, int at, int removed,
                         const int64_t *dims, int added) {
    const int behind = at + removed;
    if (stack->rank + added - removed > TARE_MAX_RANK) return false;
    memmove(&stack->dims[at + added], &stack->dims[behind], (size_t)(stack->rank - behind) * sizeof *stack->dims);
    memcpy(&stack->dims[at], dims, (size_t)added * sizeof *dims);
    stack->rank += added - removed;
    for (int i = 0; i < s->n_indices; i++)
        shift(&s->indices[i].axis, 1, behind, added - removed);
    return true;
}

bool tare_quant_regroup(struct tare_quant_selection *s, struct tare_shape *stack, const struct tare_shape *shape,
                        int *from, const struct tare_shape *to) {
    int old[TARE_MAX_RANK], now[TARE_MAX_RANK], result[TARE_MAX_RANK];
    const int n_old = without_ones(old, shape), n_now = without_ones(now, to);
    int i = 0, j = 0;
    for (int axis = 0; axis < to->rank; axis++)
        result[axis] = TARE_FROM_NOTHING;
    while (i < n_old && j < n_now) {
        int64_t before = shape->dims[old[i]], after = to->dims[now[j]], dims[TARE_MAX_RANK] = { after };
        const int at = from[old[i]];
        int removed = 1, added = 1;
        while (before != after) {
            if (before < after ? i + removed == n_old : j + added == n_now) return false;
            if (before < after)
                before *= shape->dims[old[i + removed++]];
            else
                after *= dims[added] = to->dims[now[j + added]], added++;
        }
        if (removed > 1 || added > 1) {
            for (int k = 0; k < removed; k++)
                if (at < 0 || from[old[i + k]] != at + k) return false;
            if (!replace_axes(s, stack, at, removed, dims, added)) return false;
            shift(from, shape->rank, at + removed, added - removed);
            shift(result, to->rank, at + removed, added - removed);
        }
        for (int k = 0; k < added; k++)
            result[now[j + k]] = at < 0 ? at : at + k;
        i += removed;
        j += added;
    }
    if (i < n_old || j < n_now) return false;
    memcpy(from, result, (size_t)to->rank * sizeof *from);
    return true;
}
