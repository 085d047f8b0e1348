/* Finds the sections of a plan (sections.h): longest sequences of steps that treat records separately, between which
 * and inside which no fusion, group, tiling or group with the next one is divided. Requires the lifetimes of the slots.
 */
#include "interpreter/execution/mixed.h"
#include "interpreter/execution/sections.h"
#include "interpreter/execution/stages.h"
#include "interpreter/ops/support/dims_wire.h"

#include <string.h>

enum { IMAGE_RANK = 4, LEAST_CONVOLUTIONS = 2 };

struct finder {
    struct tare_plan *plan;
    struct tare_arena *arena;
    bool *joined;    /* by step: in the same fusion, group or tiling as the step before it */
    int *crossing;   /* by step of the present section: values made before it and used by it or later */
    int *made_by;    /* by slot: step, TARE_NO_STEP for a feed */
    int *dropped_by; /* by slot: step; n_steps: none */
    int *used_last;  /* by slot: TARE_NO_STEP, or the last step of the present section that uses it */
};

/* ---- which steps ---- */

static bool is_convolution(const struct tare_step *step) {
    const char *op = step->node->op;
    return strcmp(op, "Conv2D") == 0 || strcmp(op, "DepthwiseConv2dNative") == 0 || strcmp(op, "XlaConvV2") == 0;
}

/* Images are the first dimension of input and output, and are not divided into groups. */
static bool has_records_first(const struct tare_node *node) {
    struct tare_conv_dims dims;
    if (strcmp(node->op, "XlaConvV2") != 0) return true;
    if (tare_conv_dims_read(&dims, node, "dimension_numbers", IMAGE_RANK, TARE_CONV_XLA) != TARE_OK) {
        tare_error_clear();
        return false;
    }
    return dims.input_batch == 0 && dims.output_batch == 0 && tare_node_int(node, "batch_group_count", 1) == 1;
}

/* The constant has axes of images, without the first. */
static bool are_axes_within(struct tare_edge edge) {
    const struct tare_tensor *axes = tare_edge_constant(edge);
    for (int64_t i = 0; axes && i < axes->elements; i++) {
        const int64_t axis = tare_tensor_get_i64(axes, i);
        if (axis == 0 || axis <= -IMAGE_RANK || axis >= IMAGE_RANK) return false;
    }
    return axes && axes->elements > 0;
}

/* A slice with all records. */
static bool takes_all_records(const struct tare_node *node) {
    static const char *const other_masks[] = { "ellipsis_mask", "new_axis_mask", "shrink_axis_mask" };
    const struct tare_tensor *strides = tare_edge_constant(node->inputs[3]);
    for (size_t i = 0; i < sizeof other_masks / sizeof *other_masks; i++)
        if (tare_node_int(node, other_masks[i], 0) != 0) return false;
    return strides && strides->elements > 0 && tare_tensor_get_i64(strides, 0) == 1 &&
           (tare_node_int(node, "begin_mask", 0) & tare_node_int(node, "end_mask", 0) & 1);
}

/* Concatenation of images along another axis than that of the records. */
static bool joins_images(const struct tare_step *step) {
    if (strcmp(step->node->op, "ConcatV2") != 0 || step->n_inputs < 2) return false;
    for (size_t i = 0; i < step->n_inputs; i++)
        if ((step->inputs[i] >= 0) != (i + 1 < step->n_inputs)) return false;
    return are_axes_within(step->node->inputs[step->n_inputs - 1]);
}

bool tare_section_takes_images(const struct tare_step *step) {
    static const char *const others[] = { "Pad", "PadV2", "MaxPool", "AvgPool", NULL };
    const struct tare_node *node = step->node;
    if (joins_images(step)) return true;
    for (size_t i = 0; i < step->n_inputs; i++)
        if ((step->inputs[i] >= 0) != (i == 0)) return false;
    if (is_convolution(step)) return has_records_first(node);
    if (strcmp(node->op, "StridedSlice") == 0) return takes_all_records(node);
    if (strcmp(node->op, "Mean") == 0 || strcmp(node->op, "Max") == 0)
        return tare_node_bool(node, "keep_dims", false) && are_axes_within(node->inputs[1]);
    return tare_op_is_one_of(node->op, others);
}

static bool is_elementwise(const struct tare_step *step) {
    struct tare_step_stages stages;
    int main = 0;
    while (main < (int)step->n_inputs && step->inputs[main] < 0)
        main++;
    return main < (int)step->n_inputs && tare_plan_stages_of(&stages, step, main);
}

/* Ranges are those of the whole batch. */
static bool has_range(const struct tare_step *step) {
    const struct tare_step_group *group = step->group;
    return step->range || step->flattens || step->scalars || step->is_scalar || step->is_internal ||
           (step->mixed && step->mixed->range) || (group && (group->range || group->source_range));
}

static bool is_separate(const struct tare_step *step) {
    if (step->kind != TARE_STEP_PLAIN || !step->op || !step->op->run || step->n_outputs != 1 || step->reads)
        return false;
    return !has_range(step) && (tare_section_takes_images(step) || is_elementwise(step));
}

/* ---- where they may be divided ---- */

static void join(struct finder *f, int a, int b) {
    for (int s = (a < b ? a : b) + 1; s <= (a < b ? b : a); s++)
        f->joined[s] = true;
}

static void join_units(struct finder *f, int s) {
    const struct tare_step *step = &f->plan->steps[s];
    for (int i = 0; step->fusion && i < step->fusion->n_steps; i++)
        join(f, s, step->fusion->steps[i]);
    for (int i = 0; step->tiled && i < step->tiled->n_heads; i++)
        join(f, s, step->tiled->heads[i]);
    if (step->group) join(f, s, step->group->sink);
    if (step->group && step->group->next) join(f, s, step->group->next->sink);
    if (step->mixed) join(f, step->mixed->product->sink, tare_mixed_last(f->plan, step->mixed));
}

/* ---- sections ---- */

/* Longest range from `first` whose steps treat records separately; shortened so that it divides no unit. */
static int end_of_range(const struct finder *f, int first) {
    int end = first;
    while (end < (int)f->plan->n_steps && is_separate(&f->plan->steps[end]))
        end++;
    while (end > first && end < (int)f->plan->n_steps && f->joined[end])
        end--;
    return end;
}

static int count_convolutions(const struct tare_plan *plan, const struct tare_section *section) {
    int count = 0;
    for (int s = section->first; s <= section->last; s++)
        count += is_convolution(&plan->steps[s]);
    return count;
}

/* Sets used_last of the slots that the section uses. */
static void note_uses(struct finder *f, const struct tare_section *section) {
    for (int s = section->first; s <= section->last; s++) {
        const struct tare_step *step = &f->plan->steps[s];
        const int until = tare_plan_runs_at(f->plan, s);
        for (size_t i = 0; i < step->n_inputs; i++)
            if (step->inputs[i] >= 0 && f->used_last[step->inputs[i]] < until) f->used_last[step->inputs[i]] = until;
    }
}

static void count_crossing(struct finder *f, const struct tare_section *section) {
    int *crossing = f->crossing;
    for (int s = section->first; s <= section->last + 1; s++)
        crossing[s] = 0;
    for (int s = section->first; s <= section->last; s++) {
        const struct tare_step *step = &f->plan->steps[s];
        for (size_t i = 0; i < step->n_inputs; i++) {
            const int slot = step->inputs[i];
            if (slot < 0 || f->used_last[slot] < section->first) continue;
            crossing[f->made_by[slot] < section->first ? section->first : f->made_by[slot] + 1]++;
            crossing[f->used_last[slot] + 1]--;
            f->used_last[slot] = TARE_NO_STEP; /* counted once */
        }
    }
    for (int s = section->first + 1; s <= section->last + 1; s++)
        crossing[s] += crossing[s - 1];
}

static bool may_divide(const struct finder *f, int s) {
    return !f->joined[s] && f->crossing[s] == 1;
}

/* Adds the slots that the piece uses and does not make. */
static tare_status list_entries(struct finder *f, struct tare_section_piece *piece) {
    size_t most = 0;
    for (int s = piece->first; s <= piece->last; s++)
        most += f->plan->steps[s].n_inputs;
    piece->entries = TARE_NEW_ARRAY(f->arena, int, most + 1);
    if (!piece->entries) return TARE_NO_MEMORY;
    for (int s = piece->first; s <= piece->last; s++) {
        const struct tare_step *step = &f->plan->steps[s];
        for (size_t i = 0; i < step->n_inputs; i++) {
            const int slot = step->inputs[i];
            if (slot < 0 || f->made_by[slot] >= piece->first || f->used_last[slot] >= 0) continue;
            f->used_last[slot] = s;
            piece->entries[piece->n_entries++] = slot;
        }
    }
    for (size_t i = 0; i < piece->n_entries; i++)
        f->used_last[piece->entries[i]] = TARE_NO_STEP;
    return TARE_OK;
}

static tare_status list_exits(struct finder *f, struct tare_section_piece *piece) {
    piece->exits = TARE_NEW_ARRAY(f->arena, struct tare_section_exit, (size_t)(piece->last - piece->first) + 1);
    if (!piece->exits) return TARE_NO_MEMORY;
    for (int s = piece->first; s <= piece->last; s++) {
        const struct tare_section_exit exit = { .step = s,
                                                .slot = f->plan->steps[s].first_output,
                                                .until = f->dropped_by[f->plan->steps[s].first_output] };
        if (exit.until > piece->last) piece->exits[piece->n_exits++] = exit;
    }
    return TARE_OK;
}

void tare_section_for_exits(const struct tare_section *section, size_t first, size_t last,
                            void (*see)(void *arg, const struct tare_section_exit *exit), void *arg) {
    for (size_t p = first; p <= last; p++)
        for (size_t i = 0; i < section->pieces[p].n_exits; i++)
            if (section->pieces[p].exits[i].until > section->pieces[last].last) see(arg, &section->pieces[p].exits[i]);
}

static tare_status divide(struct finder *f, struct tare_section *section) {
    note_uses(f, section);
    count_crossing(f, section);
    size_t count = 1;
    for (int s = section->first + 1; s <= section->last; s++)
        count += may_divide(f, s);
    section->pieces = TARE_NEW_ARRAY(f->arena, struct tare_section_piece, count);
    section->parts = TARE_NEW_ARRAY(f->arena, struct tare_section_part, count);
    section->bytes = TARE_NEW_ARRAY(f->arena, int64_t, (size_t)(section->last - section->first) + 1);
    if (!section->pieces || !section->parts || !section->bytes) return TARE_NO_MEMORY;
    for (int s = section->first; s <= section->last; s++) {
        if (s == section->first || may_divide(f, s))
            section->pieces[section->n_pieces++] = (struct tare_section_piece){ .first = s };
        section->pieces[section->n_pieces - 1].last = s;
    }
    for (size_t p = 0; p < section->n_pieces; p++) {
        TARE_TRY(list_entries(f, &section->pieces[p]));
        TARE_TRY(list_exits(f, &section->pieces[p]));
    }
    section->entry_bytes = TARE_NEW_ARRAY(f->arena, int64_t, section->pieces[0].n_entries + 1);
    if (!section->entry_bytes) return TARE_NO_MEMORY;
    return TARE_OK;
}

static tare_status prepare(struct finder *f, struct tare_arena *scratch) {
    const struct tare_plan *plan = f->plan;
    f->joined = TARE_NEW_ARRAY(scratch, bool, plan->n_steps + 1);
    f->crossing = TARE_NEW_ARRAY(scratch, int, plan->n_steps + 2);
    f->made_by = TARE_NEW_ARRAY(scratch, int, plan->n_slots + 1);
    f->dropped_by = TARE_NEW_ARRAY(scratch, int, plan->n_slots + 1);
    f->used_last = TARE_NEW_ARRAY(scratch, int, plan->n_slots + 1);
    if (!f->joined || !f->crossing || !f->made_by || !f->dropped_by || !f->used_last) return TARE_NO_MEMORY;
    for (size_t v = 0; v < plan->n_slots; v++) {
        f->made_by[v] = f->used_last[v] = TARE_NO_STEP;
        f->dropped_by[v] = (int)plan->n_steps;
    }
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        join_units(f, (int)s);
        for (size_t k = 0; k < step->n_outputs; k++)
            f->made_by[step->first_output + (int)k] = (int)s;
        for (size_t i = 0; i < step->n_drops; i++)
            f->dropped_by[step->drops[i]] = (int)s;
    }
    return TARE_OK;
}

tare_status tare_plan_find_sections(struct tare_plan *plan, struct tare_arena *arena, struct tare_arena *scratch) {
    struct finder f = { .plan = plan, .arena = arena };
    struct tare_section **end_of_list = &plan->sections;
    TARE_TRY(prepare(&f, scratch));
    for (int s = 0, end; s<(int)plan->n_steps; s = end> s ? end : s + 1) {
        end = f.joined[s] ? s : end_of_range(&f, s);
        struct tare_section found = { .first = s, .last = end - 1 };
        if (count_convolutions(plan, &found) < LEAST_CONVOLUTIONS) continue;
        struct tare_section *section = tare_arena_alloc(arena, sizeof *section);
        if (!section) return TARE_NO_MEMORY;
        *section = found;
        *end_of_list = section;
        end_of_list = &section->next;
        TARE_TRY(divide(&f, section));
    }
    return TARE_OK;
}

void tare_plan_select_sections(const struct tare_session *session, const struct tare_plan *plan) {
    const struct tare_session_options *options = &session->options;
    const bool any = !options->trace && !options->check_numerics && !options->use_reference_kernels;
    for (struct tare_section *section = plan->sections; section; section = section->next) {
        section->active = any;
        section->is_measured = false; /* groups and tilings may be others now */
        for (int i = section->first; i <= section->last; i++)
            if (plan->steps[i].observed) section->active = false;
    }
}
