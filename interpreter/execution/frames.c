/* Executes TF1 loops as data flow. A step runs when all its inputs have arrived, a Merge when one has. Each frame runs
 * one iteration at a time: values of NextIteration are queued until the iteration is complete, so that the order of
 * execution, and with it the effects of stateful nodes, is the same in every run. */
#include "base/alloc.h"
#include "base/control.h"
#include "interpreter/execution/flow.h"
#include "interpreter/execution/step.h"
#include "interpreter/execution/variable.h"

#include <string.h>

struct step_state {
    int pending;
    int dead_inputs;
    bool dead, live, fired;
};

/* A value to be passed to the next iteration, or to every iteration. */
struct parcel {
    int step; /* whose output 0 it is */
    struct tare_tensor value;
};

struct parcel_list {
    struct parcel *items;
    size_t count, capacity;
};

/* A frame being executed. */
struct instance {
    int frame;
    struct instance *parent;
    struct instance *previous, *next; /* all that there are */
    struct step_state *steps;         /* by local number */
    struct tare_tensor *inputs;
    size_t queued;   /* steps that are ready or run */
    size_t children; /* frames inside that are at work */
    int enters;      /* that have not come yet */
    struct parcel_list next_values, invariants;
    int *dead_exits;
    size_t n_dead_exits, dead_exits_capacity;
};

struct ready {
    struct instance *instance;
    int step;
};

struct flow_run {
    struct tare_session *session;
    const struct tare_plan *plan;
    const struct tare_flow *flow;
    struct tare_exec_frame *frame;
    struct instance *instances;
    struct ready *queue; /* a ring */
    size_t head, count, capacity;
    struct tare_tensor *outputs;
};

static void drop_parcels(struct parcel_list *list) {
    for (size_t i = 0; i < list->count; i++)
        tare_tensor_reset(&list->items[i].value);
    list->count = 0;
}

static tare_status add_parcel(struct parcel_list *list, int step, struct tare_tensor *value) {
    if (!TARE_GROW(list->items, list->count, list->capacity)) return TARE_NO_MEMORY;
    list->items[list->count].step = step;
    list->items[list->count++].value = *value;
    memset(value, 0, sizeof *value);
    return TARE_OK;
}

/* ---- instances ---- */

static void begin_iteration(const struct flow_run *run, struct instance *instance) {
    const struct tare_flow_frame *frame = &run->flow->frames[instance->frame];
    for (size_t i = 0; i < frame->n_inputs; i++)
        if (instance->inputs[i].dtype) tare_tensor_reset(&instance->inputs[i]);
    for (size_t i = 0; i < frame->n_steps; i++)
        instance->steps[i] = (struct step_state){ .pending = run->flow->steps[frame->steps[i]].pending };
    instance->n_dead_exits = 0;
}

static void free_instance(struct flow_run *run, struct instance *instance) {
    const struct tare_flow_frame *frame = &run->flow->frames[instance->frame];
    for (size_t i = 0; i < frame->n_inputs && instance->inputs; i++)
        if (instance->inputs[i].dtype) tare_tensor_reset(&instance->inputs[i]);
    drop_parcels(&instance->next_values);
    drop_parcels(&instance->invariants);
    tare_free(instance->next_values.items);
    tare_free(instance->invariants.items);
    tare_free(instance->dead_exits);
    tare_free(instance->steps);
    tare_free(instance->inputs);
    if (instance->previous) instance->previous->next = instance->next;
    if (instance->next) instance->next->previous = instance->previous;
    if (run->instances == instance) run->instances = instance->next;
    tare_free(instance);
}

static struct instance *new_instance(struct flow_run *run, int frame, struct instance *parent) {
    const struct tare_flow_frame *described = &run->flow->frames[frame];
    struct instance *instance = tare_calloc(1, sizeof *instance);
    if (!instance) return NULL;
    instance->frame = frame;
    instance->parent = parent;
    instance->enters = described->n_enters;
    instance->next = run->instances;
    if (instance->next) instance->next->previous = instance;
    run->instances = instance;
    instance->steps = tare_calloc(described->n_steps + 1, sizeof *instance->steps);
    instance->inputs = tare_calloc(described->n_inputs + 1, sizeof *instance->inputs);
    if (!instance->steps || !instance->inputs) {
        free_instance(run, instance);
        return NULL;
    }
    begin_iteration(run, instance);
    if (parent) parent->children++;
    return instance;
}

static struct instance *child_of(struct flow_run *run, struct instance *parent, int frame) {
    for (struct instance *instance = run->instances; instance; instance = instance->next)
        if (instance->parent == parent && instance->frame == frame) return instance;
    return new_instance(run, frame, parent);
}

/* ---- what is ready ---- */

static tare_status enqueue(struct flow_run *run, struct instance *instance, int step) {
    if (run->count == run->capacity) {
        size_t capacity = run->capacity * 2 + 16;
        struct ready *grown = tare_calloc(capacity, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        for (size_t i = 0; i < run->count; i++)
            grown[i] = run->queue[(run->head + i) % run->capacity];
        tare_free(run->queue);
        run->queue = grown;
        run->head = 0;
        run->capacity = capacity;
    }
    run->queue[(run->head + run->count++) % run->capacity] = (struct ready){ instance, step };
    instance->queued++;
    return TARE_OK;
}

/* A Merge is ready when its control inputs and one value have arrived, or when all its inputs are dead. A dead Enter
 * alone is enough: the back edge of a loop on a branch that was not taken never has a value. */
static bool merge_is_ready(const struct flow_run *run, struct step_state *state, int step, bool dead_enter) {
    if (state->pending || state->fired) return false;
    if (state->live) return true;
    state->dead = dead_enter || state->dead_inputs == run->flow->steps[step].data;
    return state->dead;
}

static tare_status deliver(struct flow_run *run, struct instance *instance, const struct tare_flow_target *target,
                           const struct tare_tensor *value, bool dead, bool from_enter) {
    const struct tare_flow_step *flow_step = &run->flow->steps[target->step];
    struct step_state *state = &instance->steps[flow_step->local];
    bool merge = run->plan->steps[target->step].kind == TARE_STEP_MERGE;
    bool data = target->input != TARE_FLOW_CONTROL;
    bool ready;
    if (data && !dead) {
        struct tare_tensor *input = &instance->inputs[flow_step->first_input + target->input];
        if (merge && state->live) return TARE_OK; /* the first that comes is taken */
        if (input->dtype) tare_tensor_reset(input);
        tare_tensor_share(input, value);
        state->live = true;
    }
    if (data && dead) state->dead_inputs++;
    if (merge) {
        if (!data) state->pending--;
        ready = merge_is_ready(run, state, target->step, data && dead && from_enter);
    } else {
        state->dead |= dead;
        ready = --state->pending == 0;
    }
    if (!ready || state->fired) return TARE_OK;
    state->fired = true;
    return enqueue(run, instance, target->step);
}

/* Passes output k of a step (n_outputs: its completion, for control edges) to all users; NULL: the output is dead. */
static tare_status deliver_all(struct flow_run *run, struct instance *instance, int step, size_t k,
                               const struct tare_tensor *value, bool dead) {
    const struct tare_flow_step *from = &run->flow->steps[step];
    bool enter = run->plan->steps[step].kind == TARE_STEP_ENTER;
    for (size_t t = from->first_target[k]; t < from->first_target[k + 1]; t++)
        TARE_TRY(deliver(run, instance, &from->targets[t], value, dead, enter));
    return TARE_OK;
}

/* ---- iterations and the end of frames ---- */

static tare_status deliver_outputs(struct flow_run *run, struct instance *instance, int step,
                                   const struct tare_tensor *outputs, bool dead) {
    const struct tare_step *plan_step = &run->plan->steps[step];
    for (size_t k = 0; k < plan_step->n_outputs; k++) {
        bool missing = dead || !outputs[k].dtype;
        int slot = plan_step->first_output + (int)k;
        if (!missing && instance->frame == 0 && run->flow->fetched[slot]) {
            if (run->frame->slots[slot].dtype) tare_tensor_reset(&run->frame->slots[slot]);
            tare_tensor_share(&run->frame->slots[slot], &outputs[k]);
        }
        TARE_TRY(deliver_all(run, instance, step, k, missing ? NULL : &outputs[k], missing));
    }
    return deliver_all(run, instance, step, plan_step->n_outputs, NULL, dead);
}

static tare_status next_iteration(struct flow_run *run, struct instance *instance) {
    struct parcel_list values = instance->next_values;
    tare_status status = TARE_OK;
    instance->next_values = (struct parcel_list){ 0 };
    begin_iteration(run, instance);
    instance->queued++; /* holds the iteration open until all has been delivered */
    for (size_t i = 0; i < instance->invariants.count && status == TARE_OK; i++)
        status = deliver_outputs(run, instance, instance->invariants.items[i].step,
                                 &instance->invariants.items[i].value, false);
    for (size_t i = 0; i < values.count && status == TARE_OK; i++)
        status = deliver_outputs(run, instance, values.items[i].step, &values.items[i].value, false);
    drop_parcels(&values);
    tare_free(values.items);
    instance->queued--;
    return status;
}

/* Completes instances without pending steps: starts the next iteration, or delivers the dead exits and frees them. */
static tare_status settle(struct flow_run *run, struct instance *instance) {
    while (instance && instance->frame != 0 && !instance->queued && !instance->children && !instance->enters) {
        struct instance *parent = instance->parent;
        if (instance->next_values.count) {
            TARE_TRY(next_iteration(run, instance));
            continue;
        }
        parent->queued++; /* not to be settled before the dead exits are out */
        for (size_t i = 0; i < instance->n_dead_exits; i++)
            TARE_TRY(deliver_outputs(run, parent, instance->dead_exits[i], NULL, true));
        parent->queued--;
        parent->children--;
        free_instance(run, instance);
        instance = parent;
    }
    return TARE_OK;
}

static tare_status propagate(struct flow_run *run, struct instance *instance, int step, struct tare_tensor *outputs,
                             bool dead) {
    const struct tare_step *plan_step = &run->plan->steps[step];
    struct instance *child;
    switch (plan_step->kind) {
    case TARE_STEP_EXIT:
        if (!dead) return deliver_outputs(run, instance->parent, step, outputs, false);
        if (!TARE_GROW(instance->dead_exits, instance->n_dead_exits, instance->dead_exits_capacity))
            return TARE_NO_MEMORY;
        instance->dead_exits[instance->n_dead_exits++] = step;
        return TARE_OK;
    case TARE_STEP_NEXT:
        return dead ? TARE_OK : add_parcel(&instance->next_values, step, &outputs[0]);
    case TARE_STEP_ENTER:
        child = child_of(run, instance, run->flow->steps[step].child);
        if (!child) return TARE_NO_MEMORY;
        child->queued++;
        TARE_TRY(deliver_outputs(run, child, step, outputs, dead));
        child->queued--;
        child->enters--;
        if (!dead && tare_node_bool(plan_step->node, "is_constant", false))
            TARE_TRY(add_parcel(&child->invariants, step, &outputs[0]));
        return settle(run, child);
    default:
        return deliver_outputs(run, instance, step, outputs, dead);
    }
}

/* ---- running ---- */

static tare_status gather(struct flow_run *run, struct instance *instance, int s) {
    const struct tare_step *step = &run->plan->steps[s];
    struct tare_tensor *inputs = &instance->inputs[run->flow->steps[s].first_input];
    struct tare_exec_frame *frame = run->frame;
    frame->inputs = frame->any_inputs;
    for (size_t i = 0; i < step->n_inputs; i++) {
        int value = step->inputs[i];
        frame->last_use[i] = NULL;
        if (value < 0) {
            const struct tare_plan_constant *constant = &run->plan->constants[~value];
            frame->inputs[i] = constant->state->values[constant->output];
            continue;
        }
        if ((size_t)value < run->plan->n_feeds && !inputs[i].dtype) tare_tensor_share(&inputs[i], &frame->slots[value]);
        if (step->reads && step->reads[i] && inputs[i].dtype) {
            struct tare_tensor read;
            TARE_TRY(tare_reference_read(&read, &inputs[i], step->reads[i] == TARE_READ_WRITTEN));
            tare_tensor_reset(&inputs[i]);
            inputs[i] = read;
        }
        frame->inputs[i] = inputs[i];
        frame->last_use[i] = &inputs[i];
    }
    return TARE_OK;
}

static tare_status run_ready(struct flow_run *run, struct ready ready) {
    const struct tare_step *step = &run->plan->steps[ready.step];
    const struct tare_flow_step *flow_step = &run->flow->steps[ready.step];
    struct instance *instance = ready.instance;
    bool dead = instance->steps[flow_step->local].dead;
    tare_status status = TARE_OK;
    TARE_TRY(tare_control_check());
    if (!dead) {
        status = gather(run, instance, ready.step);
        if (status != TARE_OK) return tare_exec_locate(run->session, step->node, status);
        TARE_TRY(tare_step_run(run->session, step, run->frame, run->outputs, NULL, NULL));
    }
    for (size_t i = 0; i < step->n_inputs; i++) {
        struct tare_tensor *input = &instance->inputs[flow_step->first_input + (int)i];
        if (input->dtype) tare_tensor_reset(input);
    }
    status = propagate(run, instance, ready.step, run->outputs, dead);
    for (size_t k = 0; k < step->n_outputs; k++)
        if (run->outputs[k].dtype) tare_tensor_reset(&run->outputs[k]);
    instance->queued--;
    return status == TARE_OK ? settle(run, instance) : status;
}

/* The steps of the root frame without dependencies. */
static tare_status start(struct flow_run *run, struct instance *root) {
    const struct tare_flow_frame *frame = &run->flow->frames[0];
    for (size_t i = 0; i < frame->n_steps; i++) {
        int s = frame->steps[i];
        const struct tare_step *step = &run->plan->steps[s];
        struct step_state *state = &root->steps[i];
        bool given = step->kind != TARE_STEP_MERGE; /* a Merge of a feed or constant has what it needs */
        for (size_t k = 0; k < step->n_inputs && !given; k++)
            given = step->inputs[k] < (int)run->plan->n_feeds;
        if (state->pending || !given) continue;
        state->fired = true;
        TARE_TRY(enqueue(run, root, s));
    }
    return TARE_OK;
}

tare_status tare_flow_run(struct tare_session *session, struct tare_plan *plan, struct tare_exec_frame *frame) {
    struct flow_run run = { .session = session, .plan = plan, .frame = frame };
    struct instance *root;
    tare_status status = TARE_OK;
    if (!plan->flow) TARE_TRY(tare_flow_new(&plan->flow, session, plan));
    run.flow = plan->flow;
    run.outputs = tare_calloc(plan->flow->max_outputs + 1, sizeof *run.outputs);
    root = run.outputs ? new_instance(&run, 0, NULL) : NULL;
    status = root ? start(&run, root) : TARE_NO_MEMORY;
    while (status == TARE_OK && run.count) {
        struct ready ready = run.queue[run.head];
        run.head = (run.head + 1) % run.capacity;
        run.count--;
        status = run_ready(&run, ready);
    }
    for (size_t k = 0; k < plan->flow->max_outputs && run.outputs; k++)
        if (run.outputs[k].dtype) tare_tensor_reset(&run.outputs[k]);
    while (run.instances)
        free_instance(&run, run.instances);
    tare_free(run.queue);
    tare_free(run.outputs);
    return status;
}
