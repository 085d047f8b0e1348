/* How many records run together. Every model must allow batches, since models share values of whole batches. The check
 * takes eight runs of a record, so it is omitted for a model whose ops have all been checked: one with at most as many
 * nodes of each op that may mix the rows of a batch as a model checked before. Of the models of a sensitivity
 * measurement these are all but a few. */
#include "eval/prefix_cache/prefix_cache_run.h"
#include "base/alloc.h"
#include "eval/joined_run.h"
#include "graph/op.h"

struct op_count {
    const char *op;
    size_t here, checked; /* nodes of this model; the most in a model that allows batches */
};

struct batch_check {
    struct tare_cached_run *r;
    size_t *batch;
    struct tare_arena arena;
    struct tare_map counts;   /* op -> struct op_count */
    struct op_count **listed; /* all of them */
    size_t n_listed, capacity;
    bool allowed, refused; /* by a model */
};

static tare_status count_node(struct batch_check *check, const struct tare_node *node) {
    struct op_count *count = tare_map_get(&check->counts, node->op);
    if (node->dead || (node->def && node->def->row && node->def->row->flags & TARE_OP_ELEMENTWISE)) return TARE_OK;
    if (!count) {
        count = TARE_NEW(&check->arena, struct op_count);
        if (!count || !TARE_GROW(check->listed, check->n_listed, check->capacity)) return TARE_NO_MEMORY;
        count->op = tare_arena_strdup(&check->arena, node->op);
        if (!count->op || !tare_map_set(&check->counts, count->op, count)) return TARE_NO_MEMORY;
        check->listed[check->n_listed++] = count;
    }
    count->here++;
    return TARE_OK;
}

static tare_status count_nodes(struct batch_check *check, const struct tare_graph_model *model) {
    for (size_t i = 0; i < check->n_listed; i++)
        check->listed[i]->here = 0;
    for (size_t g = 0; g <= model->n_functions; g++) {
        const struct tare_graph *graph = g < model->n_functions ? model->functions[g] : model->main;
        for (size_t i = 0; i < graph->n_nodes; i++)
            TARE_TRY(count_node(check, graph->nodes[i]));
    }
    return TARE_OK;
}

static bool needs_check(const struct batch_check *check) {
    for (size_t i = 0; i < check->n_listed; i++)
        if (check->listed[i]->here > check->listed[i]->checked) return true;
    return false;
}

static void note_checked(struct batch_check *check) {
    for (size_t i = 0; i < check->n_listed; i++)
        if (check->listed[i]->here > check->listed[i]->checked) check->listed[i]->checked = check->listed[i]->here;
}

/* The first model also determines the batch size. */
static tare_status check_model(struct batch_check *check, const struct tare_prefix_cache_model *made, size_t number) {
    struct tare_cached_run *r = check->r;
    enum tare_batch_verdict verdict = TARE_BATCH_UNDECIDED;
    struct tare_session **sessions;
    const char *one_by_one;
    tare_status status;
    TARE_TRY(tare_batch_check_graph(&one_by_one, made->model, made->signature));
    if (!one_by_one) {
        TARE_TRY(tare_sessions_new(&sessions, 1, made->model, NULL));
        if (number == 0) {
            status = tare_records_choose_batch(check->batch, *check->batch, sessions[0], &made->edges, r->records);
            tare_prefix_cache_reset_outputs(r);
        } else {
            status = TARE_OK;
        }
        if (status == TARE_OK && *check->batch > 1)
            status = tare_records_check_pair(&verdict, sessions[0], &made->edges, NULL, r->records);
        tare_sessions_free(sessions, 1);
        TARE_TRY(tare_records_locate(status, r->reader.files, &r->records[0].where, &r->records[1].where));
    }
    if (verdict == TARE_BATCH_INDEPENDENT) note_checked(check);
    check->allowed |= verdict == TARE_BATCH_INDEPENDENT;
    check->refused |= verdict != TARE_BATCH_INDEPENDENT;
    if (r->task->dependent) r->task->dependent[number] = verdict != TARE_BATCH_INDEPENDENT;
    return TARE_OK;
}

static tare_status check_models(struct batch_check *check) {
    struct tare_cached_run *r = check->r;
    const size_t n_models = r->task->n_models;
    for (size_t i = 0; i<n_models && * check->batch> 1 && (!check->refused || r->task->dependent); i++) {
        struct tare_prefix_cache_model made = r->kept[i];
        tare_status status = TARE_OK;
        if (!made.model) status = tare_prefix_cache_make(&made, r, i);
        if (status == TARE_OK) status = count_nodes(check, made.model);
        if (status == TARE_OK && needs_check(check)) status = check_model(check, &made, i);
        if (!r->kept[i].model) tare_prefix_cache_unmake(&made);
        TARE_TRY(status);
    }
    return TARE_OK;
}

tare_status tare_prefix_cache_check_batch(struct tare_cached_run *r, size_t *batch) {
    struct batch_check check = { .r = r, .batch = batch };
    tare_status status = TARE_OK;
    if (*batch > 1 && r->count > 1 && r->binding.n_outputs > 0)
        status = check_models(&check);
    else
        check.refused = true;
    if (check.refused && check.allowed && r->task->dependent) r->report->unsuited = true;
    if (check.refused) *batch = 1;
    tare_map_free(&check.counts);
    tare_free(check.listed);
    tare_arena_free(&check.arena);
    return status;
}

tare_status tare_prefix_cache_choose_batch(struct tare_cached_run *r, size_t expected) {
    struct tare_tensor *joined = tare_calloc(r->binding.n_feeds + 1, sizeof *joined);
    bool fits = expected > 1;
    tare_status status = joined ? TARE_OK : TARE_NO_MEMORY;
    r->batch = expected;
    for (size_t first = 0; first < r->count && fits && status == TARE_OK; first += expected) {
        const size_t count = r->count - first < expected ? r->count - first : expected;
        int64_t rows;
        status = tare_records_join(joined, &rows, &fits, &r->records[first], count, &r->binding);
        tare_tensors_reset(joined, r->binding.n_feeds);
    }
    if (!fits) r->batch = 1;
    tare_free(joined);
    return status;
}
