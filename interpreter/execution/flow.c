/* Frames and targets of a plan. */
#include "interpreter/execution/flow.h"
#include "base/map.h"

#include <stdint.h>

struct flow_builder {
    struct tare_session *session;
    struct tare_arena *arena;
    const struct tare_plan *plan;
    struct tare_flow *flow;
    int *producer;          /* by slot: step, -1 for feeds */
    struct tare_map frames; /* index of each frame but the root, by "PARENT/NAME" */
    struct tare_arena keys;
};

static int add_frame(struct flow_builder *b, int parent, const char *name) {
    struct tare_flow *flow = b->flow;
    const char *key = tare_arena_printf(&b->keys, "%d/%s", parent, name);
    if (!key) return -1;
    const uintptr_t known = (uintptr_t)tare_map_get(&b->frames, key);
    if (known) return (int)known;
    struct tare_flow_frame *grown = tare_arena_append(b->arena, flow->frames, flow->n_frames, sizeof *grown);
    if (!grown || !tare_map_set(&b->frames, key, (void *)(uintptr_t)flow->n_frames)) return -1;
    grown[flow->n_frames] = (struct tare_flow_frame){ .name = name, .parent = parent };
    flow->frames = grown;
    return (int)flow->n_frames++;
}

/* The frame in which the outputs of step `s` are used. */
static int frame_after(const struct flow_builder *b, int s) {
    const struct tare_flow_step *step = &b->flow->steps[s];
    if (b->plan->steps[s].kind == TARE_STEP_ENTER) return step->child;
    if (b->plan->steps[s].kind == TARE_STEP_EXIT) return b->flow->frames[step->frame].parent;
    return step->frame;
}

static tare_status meet_frame(int *frame, int other) {
    if (*frame >= 0 && *frame != other)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "its inputs come from different frames: a loop is entered without Enter");
    *frame = other;
    return TARE_OK;
}

/* Steps are in topological order, with back edges last: the producers of a step already have their frames. */
static tare_status place(struct flow_builder *b, int s) {
    const struct tare_step *step = &b->plan->steps[s];
    struct tare_flow_step *flow_step = &b->flow->steps[s];
    int frame = -1;
    for (size_t i = 0; i < step->n_inputs; i++) {
        int from = step->inputs[i] >= 0 ? b->producer[step->inputs[i]] : -1;
        if (step->inputs[i] < 0 || from >= s) continue; /* a constant fits everywhere; a back edge */
        TARE_TRY(meet_frame(&frame, from < 0 ? 0 : frame_after(b, from)));
    }
    for (size_t i = 0; i < step->n_controls; i++)
        if (step->controls[i] < s) TARE_TRY(meet_frame(&frame, frame_after(b, step->controls[i])));
    flow_step->frame = frame < 0 ? 0 : frame;
    flow_step->child = -1;
    if (step->kind == TARE_STEP_EXIT && flow_step->frame == 0)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "it leaves a loop that nothing entered");
    if (step->kind != TARE_STEP_ENTER) return TARE_OK;
    flow_step->child = add_frame(b, flow_step->frame, tare_node_string(step->node, "frame_name", ""));
    if (flow_step->child < 0) return TARE_NO_MEMORY;
    b->flow->frames[flow_step->child].n_enters++;
    return TARE_OK;
}

static tare_status list_steps(struct flow_builder *b) {
    struct tare_flow *flow = b->flow;
    for (size_t s = 0; s < b->plan->n_steps; s++)
        flow->frames[flow->steps[s].frame].n_steps++;
    for (size_t f = 0; f < flow->n_frames; f++) {
        flow->frames[f].steps = TARE_NEW_ARRAY(b->arena, int, flow->frames[f].n_steps + 1);
        if (!flow->frames[f].steps) return TARE_NO_MEMORY;
        flow->frames[f].n_steps = 0;
    }
    for (size_t s = 0; s < b->plan->n_steps; s++) {
        struct tare_flow_step *step = &flow->steps[s];
        struct tare_flow_frame *frame = &flow->frames[step->frame];
        step->local = (int)frame->n_steps;
        step->first_input = (int)frame->n_inputs;
        frame->steps[frame->n_steps++] = (int)s;
        frame->n_inputs += b->plan->steps[s].n_inputs;
    }
    return TARE_OK;
}

/* ---- targets: counted, then filled ---- */

struct link {
    int from, output; /* output n_outputs: control */
    struct tare_flow_target to;
};

static void each_link(struct flow_builder *b, void (*visit)(struct flow_builder *b, const struct link *link)) {
    for (size_t s = 0; s < b->plan->n_steps; s++) {
        const struct tare_step *step = &b->plan->steps[s];
        for (size_t i = 0; i < step->n_inputs; i++) {
            int from = step->inputs[i] >= 0 ? b->producer[step->inputs[i]] : -1;
            if (from < 0) continue;
            visit(b, &(struct link){ from, step->inputs[i] - b->plan->steps[from].first_output, { (int)s, (int)i } });
        }
        for (size_t i = 0; i < step->n_controls; i++) {
            int from = step->controls[i];
            visit(b, &(struct link){ from, (int)b->plan->steps[from].n_outputs, { (int)s, TARE_FLOW_CONTROL } });
        }
    }
}

static void count_link(struct flow_builder *b, const struct link *link) {
    struct tare_flow_step *to = &b->flow->steps[link->to.step];
    bool control = link->to.input == TARE_FLOW_CONTROL;
    b->flow->steps[link->from].first_target[link->output + 1]++;
    to->data += !control;
    if (control || b->plan->steps[link->to.step].kind != TARE_STEP_MERGE) to->pending++;
}

static void fill_link(struct flow_builder *b, const struct link *link) {
    struct tare_flow_step *from = &b->flow->steps[link->from];
    from->targets[from->first_target[link->output]++] = link->to;
}

static tare_status make_targets(struct flow_builder *b) {
    for (size_t s = 0; s < b->plan->n_steps; s++) {
        size_t n = b->plan->steps[s].n_outputs;
        b->flow->steps[s].first_target = TARE_NEW_ARRAY(b->arena, size_t, n + 2);
        if (!b->flow->steps[s].first_target) return TARE_NO_MEMORY;
        if (n > b->flow->max_outputs) b->flow->max_outputs = n;
    }
    each_link(b, count_link);
    for (size_t s = 0; s < b->plan->n_steps; s++) {
        struct tare_flow_step *step = &b->flow->steps[s];
        size_t n = b->plan->steps[s].n_outputs;
        for (size_t k = 1; k <= n + 1; k++)
            step->first_target[k] += step->first_target[k - 1];
        step->targets = TARE_NEW_ARRAY(b->arena, struct tare_flow_target, step->first_target[n + 1] + 1);
        if (!step->targets) return TARE_NO_MEMORY;
    }
    each_link(b, fill_link); /* leaves each first_target one place on */
    for (size_t s = 0; s < b->plan->n_steps; s++) {
        struct tare_flow_step *step = &b->flow->steps[s];
        for (size_t k = b->plan->steps[s].n_outputs; k > 0; k--)
            step->first_target[k] = step->first_target[k - 1];
        step->first_target[0] = 0;
    }
    return TARE_OK;
}

static tare_status mark_fetches(struct flow_builder *b) {
    const struct tare_plan *plan = b->plan;
    for (size_t i = 0; i < plan->n_fetches; i++) {
        int slot = plan->fetches[i];
        if (slot < 0 || b->producer[slot] < 0) continue;
        if (frame_after(b, b->producer[slot]) != 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "result %zu lies inside a loop", i);
        b->flow->fetched[slot] = true;
    }
    return TARE_OK;
}

static tare_status place_all(struct flow_builder *b) {
    tare_status status = TARE_OK;
    for (size_t s = 0; s < b->plan->n_steps && status == TARE_OK; s++) {
        status = place(b, (int)s);
        if (status != TARE_OK) status = tare_exec_locate(b->session, b->plan->steps[s].node, status);
    }
    tare_map_free(&b->frames);
    tare_arena_free(&b->keys);
    return status;
}

tare_status tare_flow_new(struct tare_flow **out, struct tare_session *session, const struct tare_plan *plan) {
    struct flow_builder b = { .session = session, .arena = &session->arena, .plan = plan };
    b.flow = TARE_NEW(b.arena, struct tare_flow);
    if (!b.flow) return TARE_NO_MEMORY;
    b.flow->steps = TARE_NEW_ARRAY(b.arena, struct tare_flow_step, plan->n_steps + 1);
    b.flow->frames = tare_arena_append(b.arena, NULL, 0, sizeof *b.flow->frames);
    b.flow->fetched = TARE_NEW_ARRAY(b.arena, bool, plan->n_slots + 1);
    b.producer = TARE_NEW_ARRAY(b.arena, int, plan->n_slots + 1);
    if (!b.flow->steps || !b.flow->frames || !b.flow->fetched || !b.producer) return TARE_NO_MEMORY;
    b.flow->frames[0] = (struct tare_flow_frame){ .name = "", .parent = -1 };
    b.flow->n_frames = 1;
    for (size_t v = 0; v < plan->n_slots; v++)
        b.producer[v] = -1;
    for (size_t s = 0; s < plan->n_steps; s++)
        for (size_t k = 0; k < plan->steps[s].n_outputs; k++)
            b.producer[plan->steps[s].first_output + (int)k] = (int)s;
    TARE_TRY(place_all(&b));
    TARE_TRY(list_steps(&b));
    TARE_TRY(make_targets(&b));
    TARE_TRY(mark_fetches(&b));
    *out = b.flow;
    return TARE_OK;
}
