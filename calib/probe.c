/* Runs two records alone and together, and compares their statistics. */
#include "calib/probe.h"

#include "base/alloc.h"
#include "calib/shape_probe.h"

static tare_status run_alone(struct tare_worker *worker, struct tare_batch_sample samples[2]) {
    for (int i = 0; i < 2; i++) {
        const struct tare_batch one = {
            .samples = &samples[i], .count = 1, .room = 1, .n_feeds = worker->plan->edges.n_feeds
        };
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

struct trial {
    struct tare_worker_plan *plan;
    struct tare_shape_probe *probe;
    const struct tare_batch_sample *const *samples; /* the two records, for their numbers */
};

/* Runs the pair in separate workers with separate statistics. The plan's layouts become those of the batch. */
static tare_status try_pair(void *arg, enum tare_batch_verdict *verdict, const struct tare_tensor *const pair[2]) {
    const struct trial *trial = arg;
    struct tare_worker_plan *plan = trial->plan;
    struct tare_worker alone = { 0 }, together = { 0 };
    struct tare_batch_sample copies[2] = { *trial->samples[0], *trial->samples[1] };
    const struct tare_batch both = { .samples = copies, .count = 2, .room = 2, .n_feeds = plan->edges.n_feeds };
    tare_status status;
    for (int i = 0; i < 2; i++)
        copies[i].feeds = (struct tare_tensor *)pair[i]; /* only read */
    *verdict = TARE_BATCH_UNDECIDED;
    if (!tare_batch_fits(&copies[0], &copies[1], plan->edges.n_feeds)) return TARE_OK;
    TARE_CHECK(tare_worker_init(&alone, plan, 2, true));
    alone.probe = trial->probe;
    TARE_CHECK(tare_worker_init(&together, plan, 2, true));
    together.probe = trial->probe;
    TARE_CHECK(run_alone(&alone, copies));
    status = tare_worker_run(&together, &both);
    *verdict = status == TARE_OK && !trial->probe->irregular && same_statistics(&alone, &together)
                   ? TARE_BATCH_INDEPENDENT
                   : TARE_BATCH_DEPENDENT;
    status = tare_error_dismiss(status);
done:
    tare_worker_free(&alone);
    tare_worker_free(&together);
    return status;
}

tare_status tare_probe_run(enum tare_batch_verdict *verdict, struct tare_worker_plan *plan,
                           const struct tare_batch_sample *const samples[2]) {
    const size_t slots = plan->observed->n_slots;
    const struct tare_tensor *const pair[2] = { samples[0]->feeds, samples[1]->feeds };
    struct tare_shape_probe probe = { .alone = tare_calloc(slots + 1, sizeof *probe.alone) };
    struct trial trial = { plan, &probe, samples };
    tare_status status = TARE_NO_MEMORY;
    *verdict = TARE_BATCH_DEPENDENT;
    plan->layouts = tare_calloc(slots + 1, sizeof *plan->layouts);
    if (!probe.alone || !plan->layouts) goto done;
    probe.layouts = plan->layouts;
    for (size_t i = 0; i < slots; i++)
        probe.alone[i] = tare_shape_unknown();
    status = tare_batch_check_pair(verdict, pair, plan->edges.n_feeds, try_pair, &trial);
    /* A record that fails on its own does not end the run here: the run without batches reports it. */
    if (status != TARE_OK && status != TARE_NO_MEMORY) {
        tare_error_clear();
        *verdict = TARE_BATCH_DEPENDENT;
        status = TARE_OK;
    }
    plan->most_elements = probe.most_elements;
done:
    tare_free(probe.alone);
    if (*verdict != TARE_BATCH_INDEPENDENT) {
        tare_free(plan->layouts);
        plan->layouts = NULL;
    }
    return status;
}
