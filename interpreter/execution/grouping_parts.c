/* Running a bound expression without product on the threads of the session: each computes other elements, with a copy
 * of the expression. Elements do not depend on each other, and a range is that of the parts' ranges, so the bits are
 * those of one thread. */
#include "interpreter/execution/grouping_binding.h"
#include "interpreter/execution/step.h"
#include "interpreter/ops/support/split.h"

enum { UNIT = TARE_EXPRESSION_BLOCK };

struct parts {
    struct tare_bound_expression **bound;
    int64_t elements;
};

static void run_part(void *arg, int part, int64_t first, int64_t end) {
    const struct parts *parts = arg;
    const int64_t last = end * UNIT < parts->elements ? end * UNIT : parts->elements;
    tare_expression_run(parts->bound[part], NULL, first * UNIT, last - first * UNIT);
}

/* Multiply-adds of a convolution that take as long. */
static double work_of(const struct tare_bound_expression *bound) {
    enum { ELEMENT = 8, STAGE = 4 };
    int stages = 0;
    for (int b = 0; b < bound->expression->n_branches; b++)
        stages += bound->pipelines[b].n_stages;
    return (double)bound->elements * (ELEMENT + STAGE * stages);
}

tare_status tare_group_run_parts(struct tare_session *session, struct tare_exec_frame *frame,
                                 struct tare_bound_expression *bound) {
    struct tare_pool *threads = tare_session_op_pool(session);
    const int64_t units = (bound->elements + UNIT - 1) / UNIT;
    const int n = tare_split_count(threads, work_of(bound), units);
    if (n == 1) {
        tare_expression_run(bound, NULL, 0, bound->elements);
        return TARE_OK;
    }
    struct parts parts = { TARE_NEW_ARRAY(&frame->scratch, struct tare_bound_expression *, (size_t)n),
                           bound->elements };
    struct tare_value_range *ranges = TARE_NEW_ARRAY(&frame->scratch, struct tare_value_range, (size_t)n);
    tare_status status = parts.bound && ranges ? TARE_OK : TARE_NO_MEMORY;
    for (int i = 0; i < n && status == TARE_OK; i++) {
        tare_value_range_begin(&ranges[i]);
        parts.bound[i] = tare_expression_copy(bound, bound->range ? &ranges[i] : NULL, &frame->scratch);
        if (!parts.bound[i]) status = TARE_NO_MEMORY;
    }
    if (status == TARE_OK) status = tare_split_range(threads, n, units, run_part, &parts);
    for (int i = 0; i < n && status == TARE_OK && bound->range; i++)
        tare_value_range_merge(bound->range, &ranges[i]);
    tare_arena_reset(&frame->scratch);
    return status;
}
