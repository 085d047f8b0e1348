#include "calib/probe.h"

#include "base/alloc.h"

void tare_probe_shape(struct tare_probe *probe, size_t slot, const struct tare_shape *shape) {
    if (probe->alone[slot].rank != TARE_UNKNOWN_RANK && !tare_shape_equal(&probe->alone[slot], shape))
        probe->irregular = true;
    probe->alone[slot] = *shape;
    int64_t elements;
    if (tare_shape_elements(&elements, shape) == TARE_OK && elements > probe->most_elements)
        probe->most_elements = elements;
}

bool tare_probe_layout(struct tare_probe *probe, size_t slot, const struct tare_shape *shape) {
    struct tare_shape doubled = probe->alone[slot];
    if (tare_shape_equal(&doubled, shape)) {
        probe->layouts[slot] = TARE_BATCH_SHARED;
        return true;
    }
    if (doubled.rank >= 1) doubled.dims[0] *= 2;
    if (tare_shape_equal(&doubled, shape)) {
        probe->layouts[slot] = TARE_BATCH_SPLIT;
        return true;
    }
    probe->irregular = true;
    return false;
}

static tare_status run_alone(struct tare_worker *worker, const struct tare_batch_sample *const samples[2]) {
    for (int i = 0; i < 2; i++) {
        struct tare_batch_sample copy = *samples[i];
        const struct tare_batch one = { .samples = &copy, .count = 1, .room = 1, .n_feeds = worker->plan->n_feeds };
        TARE_TRY(tare_worker_run(worker, &one));
    }
    return TARE_OK;
}

static bool same_statistics(const struct tare_worker *a, const struct tare_worker *b) {
    for (size_t i = 0; i < a->plan->observed->n_slots; i++) {
        if (!tare_statistics_equal(&a->own[i], &b->own[i])) return false;
    }
    return true;
}

enum outcome { SAME, DIFFERENT, FAILED_ALONE };

/* Two samples through workers of their own. The plan's layouts are those of the pair together. */
static tare_status run_pair(enum outcome *outcome, struct tare_worker_plan *plan, struct tare_probe *probe,
                            const struct tare_batch_sample *const samples[2]) {
    struct tare_worker alone = { 0 }, together = { 0 };
    struct tare_batch_sample copies[2] = { *samples[0], *samples[1] };
    const struct tare_batch both = { .samples = copies, .count = 2, .room = 2, .n_feeds = plan->n_feeds };
    tare_status status;
    TARE_CHECK(tare_worker_init(&alone, plan, 2, true));
    alone.probe = probe;
    TARE_CHECK(tare_worker_init(&together, plan, 2, true));
    together.probe = probe;
    if (run_alone(&alone, samples) != TARE_OK)
        *outcome = FAILED_ALONE;
    else
        *outcome =
            tare_worker_run(&together, &both) == TARE_OK && !probe->irregular && same_statistics(&alone, &together)
                ? SAME
                : DIFFERENT;
    tare_error_clear();
done:
    tare_worker_free(&alone);
    tare_worker_free(&together);
    return status;
}

/* The pair again with other numbers in its second sample: extremes that both happen to share would show nothing. What
 * refuses such numbers is believed as it is. */
static tare_status run_contrast(bool *may, struct tare_worker_plan *plan, struct tare_probe *probe,
                                const struct tare_batch_sample *const samples[2]) {
    struct tare_batch_sample other = { .feeds = tare_calloc(plan->n_feeds + 1, sizeof *other.feeds),
                                       .record = samples[1]->record };
    const struct tare_batch_sample *const pair[2] = { samples[0], &other };
    enum outcome outcome = SAME;
    tare_status status = other.feeds ? TARE_OK : TARE_NO_MEMORY;
    for (size_t i = 0; i < plan->n_feeds && status == TARE_OK; i++)
        status = tare_batch_contrast(&other.feeds[i], &samples[1]->feeds[i]);
    if (status == TARE_OK) status = run_pair(&outcome, plan, probe, pair);
    *may = outcome != DIFFERENT;
    for (size_t i = 0; other.feeds && i < plan->n_feeds; i++)
        tare_tensor_reset(&other.feeds[i]);
    tare_free(other.feeds);
    return status;
}

tare_status tare_probe_run(bool *may, struct tare_worker_plan *plan, const struct tare_batch_sample *const samples[2]) {
    const size_t slots = plan->observed->n_slots;
    struct tare_probe probe = { .alone = tare_calloc(slots + 1, sizeof *probe.alone) };
    enum outcome outcome = DIFFERENT;
    tare_status status = TARE_NO_MEMORY;
    *may = false;
    plan->layouts = tare_calloc(slots + 1, sizeof *plan->layouts);
    if (probe.alone == NULL || plan->layouts == NULL) goto done;
    probe.layouts = plan->layouts;
    for (size_t i = 0; i < slots; i++)
        probe.alone[i] = tare_shape_unknown();
    /* A failure here is no failure of the run: one by one is worth a try, and will say which record is at fault. */
    TARE_CHECK(run_pair(&outcome, plan, &probe, samples));
    *may = outcome == SAME;
    if (*may) TARE_CHECK(run_contrast(may, plan, &probe, samples));
    plan->most_elements = probe.most_elements;
done:
    tare_free(probe.alone);
    if (!*may) {
        tare_free(plan->layouts);
        plan->layouts = NULL;
    }
    return status;
}
