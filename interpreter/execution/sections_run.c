/* Runs a section (sections.h). Each part takes views of some records of its inputs; results that later steps use go to
 * tensors of the whole batch, which groups of steps write in place (tare_exec_frame.placements). */
#include "interpreter/execution/sections.h"
#include "base/alloc.h"
#include "base/memory_size.h"

#include <string.h>

enum { IMAGE_RANK = 4 };

/* ---- the run that measures ---- */

struct measuring {
    struct tare_section *section;
    int64_t batch, live;
    bool fits; /* all values have an image for each record */
};

static bool is_batch(const struct tare_tensor *value, int64_t batch) {
    return tare_dtype_size(value->dtype) > 0 && value->shape.rank == IMAGE_RANK && value->shape.dims[0] == batch;
}

/* A constant operand of an element-wise step must be the same for each record. */
static void measure_constants(struct measuring *m, const struct tare_plan *plan, const struct tare_exec_frame *frame,
                              const struct tare_step *step, struct tare_section_piece *piece) {
    for (size_t i = 0; i < step->n_inputs; i++) {
        if (step->inputs[i] >= 0) continue;
        const struct tare_tensor *value = tare_plan_value(plan, frame, step->inputs[i]);
        const int rank = value->shape.rank;
        piece->weights += (int64_t)tare_tensor_bytes(value);
        if (tare_section_takes_images(step)) continue;
        m->fits &= rank < IMAGE_RANK || (rank == IMAGE_RANK && value->shape.dims[0] == 1);
    }
}

/* After step `s`: adds its value, if there is one; most steps of a group have none. Subtracts the values that it drops.
 */
static void measure_step(struct measuring *m, const struct tare_plan *plan, const struct tare_exec_frame *frame, int s,
                         struct tare_section_piece *piece) {
    const struct tare_section *section = m->section;
    const struct tare_step *step = &plan->steps[s];
    const int first_slot = plan->steps[section->first].first_output;
    const struct tare_tensor *value = &frame->slots[step->first_output];
    int64_t *bytes = &section->bytes[s - section->first];
    *bytes = value->dtype ? (int64_t)tare_tensor_bytes(value) : 0;
    if (*bytes) m->fits &= is_batch(value, m->batch);
    m->live += *bytes;
    piece->made += *bytes;
    if (piece->most_live < m->live) piece->most_live = m->live;
    for (size_t i = 0; i < step->n_drops; i++) {
        const int made = step->drops[i] - first_slot;
        if (made >= 0 && made <= s - section->first) m->live -= section->bytes[made];
        for (size_t e = 0; e < section->pieces[0].n_entries && made < 0; e++)
            if (section->pieces[0].entries[e] == step->drops[i]) m->live -= section->entry_bytes[e];
    }
    measure_constants(m, plan, frame, step, piece);
}

/* The entries of later pieces are exits of earlier ones. */
static tare_status measure_piece(struct measuring *m, struct tare_session *session, const struct tare_plan *plan,
                                 struct tare_exec_frame *frame, struct tare_section_piece *piece, tare_run_range *run) {
    piece->most_live = piece->made = piece->into = piece->weights = 0;
    for (size_t i = 0; i < piece->n_entries; i++) {
        const struct tare_tensor *value = &frame->slots[piece->entries[i]];
        m->fits &= is_batch(value, m->batch);
        piece->into += (int64_t)tare_tensor_bytes(value);
        if (piece == m->section->pieces) m->section->entry_bytes[i] = (int64_t)tare_tensor_bytes(value);
    }
    if (piece == m->section->pieces) m->live = piece->into;
    for (int s = piece->first; s <= piece->last; s++) {
        TARE_TRY(run(session, plan, frame, (size_t)s, (size_t)s));
        measure_step(m, plan, frame, s, piece);
    }
    return TARE_OK;
}

static tare_status measure(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                           struct tare_section *section, tare_run_range *run) {
    const int threads = session->options.op_threads > 1 ? session->options.op_threads : 1;
    const int64_t cache = (int64_t)(tare_cache_bytes() / 2) * threads; /* the other half has weights */
    const struct tare_tensor *input = &frame->slots[section->pieces[0].entries[0]];
    struct measuring m = { .section = section, .batch = input->shape.dims[0], .fits = true };
    section->is_measured = false;
    section->shape = input->shape;
    for (size_t p = 0; p < section->n_pieces; p++)
        TARE_TRY(measure_piece(&m, session, plan, frame, &section->pieces[p], run));
    section->n_parts = 0;
    if (m.fits) tare_section_choose(section, m.batch, cache);
    section->is_measured = true;
    if (section->n_parts) tare_buffer_pool_trim(session->pool); /* of the buffers of whole batches */
    return TARE_OK;
}

tare_status tare_placement_open(struct tare_placement *place, int dtype, const struct tare_shape *of,
                                struct tare_buffer_pool *pool) {
    struct tare_shape shape = *of;
    shape.dims[0] = place->batch;
    return place->whole.dtype ? TARE_OK : tare_tensor_new_pooled(&place->whole, dtype, &shape, pool);
}

/* ---- a part, some records at a time ---- */

struct part_run {
    struct tare_session *session;
    const struct tare_plan *plan;
    struct tare_exec_frame *frame;
    int first, last; /* steps */
    const struct tare_section_piece *begin;
    struct tare_tensor *inputs;     /* of the whole batch, by entry of the first piece */
    struct tare_placement *results; /* by exit */
    size_t n_results;
};

static tare_status take_records(const struct part_run *run, int64_t first, int64_t count) {
    for (size_t i = 0; i < run->begin->n_entries; i++)
        TARE_TRY(tare_tensor_share_rows(&run->frame->slots[run->begin->entries[i]], &run->inputs[i], first, count));
    return TARE_OK;
}

/* Stores a result that was not computed in its place. */
static tare_status store_records(const struct part_run *run, struct tare_placement *place) {
    const struct tare_tensor *value = &run->frame->slots[place->slot];
    TARE_TRY(tare_placement_open(place, value->dtype, &value->shape, run->session->pool));
    const size_t size = tare_tensor_bytes(value), record = size / (size_t)value->shape.dims[0];
    char *to = (char *)place->whole.data + (size_t)place->first * record;
    if (to != value->data) memcpy(to, value->data, size);
    return TARE_OK;
}

/* Frees what the steps have made, also values that no step has dropped. */
static void drop_made(const struct part_run *run) {
    for (int s = run->first; s <= run->last; s++) {
        struct tare_tensor *slot = &run->frame->slots[run->plan->steps[s].first_output];
        if (slot->dtype) tare_tensor_reset(slot);
    }
    for (size_t i = 0; i < run->begin->n_entries; i++) {
        struct tare_tensor *slot = &run->frame->slots[run->begin->entries[i]];
        if (slot->dtype) tare_tensor_reset(slot);
    }
}

static tare_status run_records(struct part_run *run, int64_t first, int64_t count, tare_run_range *range) {
    for (size_t i = 0; i < run->n_results; i++)
        run->results[i].first = first;
    TARE_TRY(take_records(run, first, count));
    TARE_TRY(range(run->session, run->plan, run->frame, (size_t)run->first, (size_t)run->last));
    for (size_t i = 0; i < run->n_results; i++)
        TARE_TRY(store_records(run, &run->results[i]));
    return TARE_OK;
}

/* Whether a step of the part drops the slot. */
static bool drops(const struct part_run *run, int slot) {
    for (int s = run->first; s <= run->last; s++)
        for (size_t i = 0; i < run->plan->steps[s].n_drops; i++)
            if (run->plan->steps[s].drops[i] == slot) return true;
    return false;
}

/* Puts back what later steps use. */
static void end_part(struct part_run *run, tare_status status) {
    drop_made(run);
    for (size_t i = 0; i < run->begin->n_entries; i++) {
        if (drops(run, run->begin->entries[i]))
            tare_tensor_reset(&run->inputs[i]);
        else
            run->frame->slots[run->begin->entries[i]] = run->inputs[i];
    }
    for (size_t i = 0; i < run->n_results; i++) {
        struct tare_placement *place = &run->results[i];
        if (status == TARE_OK)
            run->frame->slots[place->slot] = place->whole;
        else if (place->whole.dtype)
            tare_tensor_reset(&place->whole);
    }
}

static tare_status run_part(struct part_run *run, int64_t records, tare_run_range *range) {
    struct tare_exec_frame *frame = run->frame;
    const int64_t batch = frame->slots[run->begin->entries[0]].shape.dims[0];
    tare_status status = TARE_OK;
    for (size_t i = 0; i < run->begin->n_entries; i++) {
        run->inputs[i] = frame->slots[run->begin->entries[i]];
        frame->slots[run->begin->entries[i]] = (struct tare_tensor){ 0 };
    }
    for (size_t i = 0; i < run->n_results; i++)
        run->results[i].batch = batch;
    frame->placements = run->results;
    frame->n_placements = run->n_results;
    for (int64_t first = 0; first < batch && status == TARE_OK; first += records) {
        drop_made(run);
        status = run_records(run, first, records < batch - first ? records : batch - first, range);
    }
    frame->n_placements = 0;
    end_part(run, status);
    return status;
}

static void count_exit(void *arg, const struct tare_section_exit *exit) {
    (void)exit;
    ++*(size_t *)arg;
}

static void add_result(void *arg, const struct tare_section_exit *exit) {
    struct part_run *run = arg;
    run->results[run->n_results++] = (struct tare_placement){ .slot = exit->slot };
}

static tare_status open_part(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                             const struct tare_section *section, const struct tare_section_part *part,
                             tare_run_range *range) {
    struct part_run run = { .session = session,
                            .plan = plan,
                            .frame = frame,
                            .begin = &section->pieces[part->first_piece],
                            .first = section->pieces[part->first_piece].first,
                            .last = section->pieces[part->last_piece].last };
    size_t count = 0;
    tare_status status = TARE_NO_MEMORY;
    if (!part->records) return range(session, plan, frame, (size_t)run.first, (size_t)run.last);
    tare_section_for_exits(section, part->first_piece, part->last_piece, count_exit, &count);
    run.inputs = tare_calloc(run.begin->n_entries + 1, sizeof *run.inputs);
    run.results = tare_calloc(count + 1, sizeof *run.results);
    if (run.inputs && run.results) {
        tare_section_for_exits(section, part->first_piece, part->last_piece, add_result, &run);
        status = run_part(&run, part->records, range);
    }
    tare_free(run.inputs);
    tare_free(run.results);
    return status;
}

/* ---- the section ---- */

/* All entries have the same number of records, several. */
static bool has_batch(const struct tare_exec_frame *frame, const struct tare_section *section) {
    const struct tare_section_piece *piece = &section->pieces[0];
    if (piece->n_entries == 0) return false;
    const int64_t batch = frame->slots[piece->entries[0]].shape.dims[0];
    for (size_t i = 0; i < piece->n_entries; i++)
        if (!is_batch(&frame->slots[piece->entries[i]], batch)) return false;
    return batch > 1;
}

tare_status tare_section_run(struct tare_session *session, const struct tare_plan *plan, struct tare_exec_frame *frame,
                             struct tare_section *section, tare_run_range *run) {
    if (!section->active || !has_batch(frame, section))
        return run(session, plan, frame, (size_t)section->first, (size_t)section->last);
    const struct tare_tensor *input = &frame->slots[section->pieces[0].entries[0]];
    if (!section->is_measured || !tare_shape_equal(&section->shape, &input->shape))
        return measure(session, plan, frame, section, run);
    if (section->n_parts == 0) return run(session, plan, frame, (size_t)section->first, (size_t)section->last);
    for (size_t i = 0; i < section->n_parts; i++)
        TARE_TRY(open_part(session, plan, frame, section, &section->parts[i], run));
    return TARE_OK;
}
