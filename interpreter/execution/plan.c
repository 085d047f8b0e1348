/* Building plans: steps in order, slots, constants, lifetimes. */
#include "interpreter/execution/plan.h"
#include "base/alloc.h"
#include "interpreter/inference/evaluate.h"
#include "graph/definitions/opdef.h"

#include <limits.h>
#include <string.h>

struct builder {
    struct tare_session *session;
    struct tare_arena *arena;  /* the plan's */
    struct tare_arena scratch; /* the building's */
    const struct tare_plan_request *request;
    const struct tare_graph *graph;
    struct tare_exec_graph *states;
    struct tare_plan *plan;
    struct tare_node **order;
    size_t n_order;
    bool *constant, *parameter; /* by position */
    int *first_value;           /* by position: first slot, or first constant */
    size_t *feed_of;            /* by position: 1 + the first feed of an output of the node; 0: none is fed */
    int *step_of;               /* by position: index of the step; -1 */
};

static bool is_function(const struct builder *b) {
    return b->graph != b->graph->model->main;
}

/* Slot of a fed edge; -1 if it is not fed. */
static int feed_slot(const struct builder *b, struct tare_edge edge) {
    if (is_function(b)) return tare_node_is_arg(edge.node) ? (int)edge.node->position : -1;
    if (tare_node_is_arg(edge.node) || !b->feed_of[edge.node->position]) return -1;
    for (size_t i = b->feed_of[edge.node->position] - 1; i < b->request->n_feeds; i++) {
        if (b->request->feeds[i].node != edge.node) continue;
        if (b->request->feeds[i].index == edge.index) return (int)i;
        if (edge.node->n_outputs == 1) return -1;
    }
    return -1;
}

static void list_feeds(struct builder *b) {
    for (size_t i = is_function(b) ? 0 : b->request->n_feeds; i-- > 0;)
        if (!tare_node_is_arg(b->request->feeds[i].node)) b->feed_of[b->request->feeds[i].node->position] = i + 1;
}

static enum tare_step_kind kind_of(const char *op) {
    static const struct {
        const char *op;
        enum tare_step_kind kind;
    } kinds[] = {
        { "Switch", TARE_STEP_SWITCH }, { "Merge", TARE_STEP_MERGE },        { "Enter", TARE_STEP_ENTER },
        { "Exit", TARE_STEP_EXIT },     { "NextIteration", TARE_STEP_NEXT }, { "_SwitchN", TARE_STEP_SWITCH },
    };
    if (strncmp(op, "Ref", 3) == 0) op += 3;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(op, kinds[i].op) == 0) return kinds[i].kind;
    return TARE_STEP_PLAIN;
}

/* Where steps may be left out, a node with control inputs may be one of them, whatever its data inputs are. */
static bool is_constant(const struct builder *b, const struct tare_node *node) {
    const struct tare_op *op = node->def ? node->def->row : NULL;
    const bool is_fixed = op && (op->flags & TARE_OP_FIXED);
    if ((!is_fixed && !tare_node_is_pure(node)) || (b->plan->may_die && node->n_controls)) return false;
    for (size_t k = 0; k < node->n_outputs; k++)
        if (feed_slot(b, (struct tare_edge){ (struct tare_node *)node, (int)k }) >= 0) return false;
    for (size_t i = 0; i < node->n_inputs; i++) {
        struct tare_edge edge = node->inputs[i];
        if (!edge.node || feed_slot(b, edge) >= 0 || !b->constant[edge.node->position]) return false;
    }
    return true;
}

static tare_status check_nodes(struct builder *b) {
    for (size_t i = 0; i < b->n_order; i++) {
        const struct tare_node *node = b->order[i];
        struct tare_node_state *state = &b->states->nodes[node->position];
        tare_status status;
        if (state->checked) continue;
        status = tare_plan_check_node(&b->scratch, node);
        if (status != TARE_OK) return tare_exec_locate(b->session, node, status);
        state->checked = true;
    }
    return TARE_OK;
}

static void sort_out_constants(struct builder *b) {
    struct tare_plan *plan = b->plan;
    for (size_t i = 0; i < b->n_order; i++) {
        enum tare_step_kind kind = kind_of(b->order[i]->op);
        plan->may_die |= kind == TARE_STEP_SWITCH || kind == TARE_STEP_MERGE;
        plan->has_frames |= kind == TARE_STEP_ENTER;
    }
    for (size_t i = 0; i < b->n_order; i++) {
        bool constant = is_constant(b, b->order[i]);
        b->constant[b->order[i]->position] = constant;
        if (constant)
            plan->n_constant_steps++;
        else
            plan->n_steps++;
    }
}

/* Steps, and the slot of every output. Feeds have the first slots. */
static tare_status lay_out(struct builder *b) {
    struct tare_plan *plan = b->plan;
    size_t step = 0, constant = 0, constants = 0;
    plan->n_feeds = is_function(b) ? b->graph->n_args : b->request->n_feeds;
    plan->n_slots = plan->n_feeds;
    plan->steps = TARE_NEW_ARRAY(b->arena, struct tare_step, plan->n_steps + 1);
    plan->constant_steps = TARE_NEW_ARRAY(b->arena, struct tare_step, plan->n_constant_steps + 1);
    if (!plan->steps || !plan->constant_steps) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->n_order; i++) {
        const struct tare_node *node = b->order[i];
        bool is_const = b->constant[node->position];
        struct tare_step *s = is_const ? &plan->constant_steps[constant++] : &plan->steps[step];
        b->step_of[node->position] = is_const ? -1 : (int)step++;
        b->first_value[node->position] = (int)(is_const ? constants : plan->n_slots);
        *s = (struct tare_step){ .node = node,
                                 .op = node->def ? node->def->row : NULL,
                                 .callee = node->def ? NULL : tare_model_find_function(b->session->model, node->op),
                                 .state = &b->states->nodes[node->position],
                                 .kind = kind_of(node->op),
                                 .n_inputs = node->n_inputs,
                                 .first_output = is_const ? -1 : (int)plan->n_slots,
                                 .n_outputs = node->n_outputs,
                                 .is_parameter = b->parameter[node->position],
                                 .computed_with = TARE_NO_STEP };
        *(is_const ? &constants : &plan->n_slots) += node->n_outputs;
        if (node->n_inputs > plan->max_inputs) plan->max_inputs = node->n_inputs;
    }
    if (plan->n_slots > INT_MAX / 2) return TARE_FAIL(TARE_UNSUPPORTED, "a graph of %zu values", plan->n_slots);
    plan->n_constants = constants;
    plan->constants = TARE_NEW_ARRAY(b->arena, struct tare_plan_constant, constants + 1);
    if (!plan->constants) return TARE_NO_MEMORY;
    constants = 0;
    for (size_t i = 0; i < plan->n_constant_steps; i++)
        for (size_t k = 0; k < plan->constant_steps[i].n_outputs; k++)
            plan->constants[constants++] = (struct tare_plan_constant){ plan->constant_steps[i].state, (int)k };
    return TARE_OK;
}

static int value_of(const struct builder *b, struct tare_edge edge) {
    int slot = feed_slot(b, edge);
    if (slot >= 0) return slot;
    if (b->constant[edge.node->position]) return ~(b->first_value[edge.node->position] + edge.index);
    return b->first_value[edge.node->position] + edge.index;
}

static bool is_reference(struct tare_edge edge) {
    return tare_dtype_is_ref(edge.node->output_dtypes[edge.index]);
}

/* Marks the inputs that are references but are used as values by the op. */
static tare_status find_reads(struct builder *b, struct tare_step *step) {
    const struct tare_node *node = step->node;
    int *expected = NULL;
    size_t count = 0, references = 0;
    for (size_t i = 0; i < node->n_inputs; i++)
        references += is_reference(node->inputs[i]);
    if (!references) return TARE_OK;
    if (node->def) TARE_TRY(tare_opdef_input_dtypes(&b->scratch, node, &expected, &count));
    step->reads = TARE_NEW_ARRAY(b->arena, uint8_t, node->n_inputs);
    if (!step->reads) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++)
        step->reads[i] = is_reference(node->inputs[i]) && (i >= count || !tare_dtype_is_ref(expected[i]));
    return TARE_OK;
}

/* The node that declares the variable of a reference: ops pass on that of input 0. */
static const struct tare_node *variable_of(struct tare_edge edge) {
    for (size_t k = 0; k < edge.node->graph->n_nodes; k++) { /* of a cycle any node will do */
        if (!edge.node->n_inputs || !is_reference(edge.node->inputs[0])) break;
        edge = edge.node->inputs[0];
    }
    return edge.node;
}

static bool is_written(const struct tare_plan *plan, const struct tare_node *variable) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        if (step->op && step->op->flags & TARE_OP_WRITES && step->n_inputs && is_reference(step->node->inputs[0]) &&
            variable_of(step->node->inputs[0]) == variable)
            return true;
    }
    return false;
}

/* Readers of a variable that the plan writes see the change, as in TensorFlow, where they share its memory. */
static void find_written_reads(struct tare_plan *plan) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        for (size_t i = 0; step->reads && i < step->n_inputs; i++)
            if (step->reads[i] && is_written(plan, variable_of(step->node->inputs[i]))) {
                step->reads[i] = TARE_READ_WRITTEN;
                plan->writes_references = true;
            }
    }
}

static tare_status connect(struct builder *b, struct tare_step *step, bool constant) {
    const struct tare_node *node = step->node;
    step->inputs = TARE_NEW_ARRAY(b->arena, int, node->n_inputs + 1);
    if (!step->inputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_inputs; i++) {
        step->inputs[i] = value_of(b, node->inputs[i]);
        if (step->inputs[i] < 0 && !constant) b->plan->constants[~step->inputs[i]].state->keep = true;
    }
    if (constant) return TARE_OK;
    TARE_TRY(find_reads(b, step));
    if (!b->plan->may_die || !node->n_controls) return TARE_OK;
    step->controls = TARE_NEW_ARRAY(b->arena, int, node->n_controls);
    if (!step->controls) return TARE_NO_MEMORY;
    for (size_t i = 0; i < node->n_controls; i++) {
        const struct tare_node *before = node->controls[i];
        if (before->dead || tare_node_is_arg(before) || b->step_of[before->position] < 0) continue;
        step->controls[step->n_controls++] = b->step_of[before->position];
    }
    return TARE_OK;
}

static tare_status connect_fetches(struct builder *b) {
    struct tare_plan *plan = b->plan;
    plan->n_fetches = is_function(b) ? b->graph->n_returns : b->request->n_fetches;
    plan->fetches = TARE_NEW_ARRAY(b->arena, int, plan->n_fetches + 1);
    plan->fetch_reads = TARE_NEW_ARRAY(b->arena, bool, plan->n_fetches + 1);
    if (!plan->fetches || !plan->fetch_reads) return TARE_NO_MEMORY;
    for (size_t i = 0; i < plan->n_fetches; i++) {
        struct tare_edge edge = is_function(b) ? b->graph->returns[i].edge : b->request->fetches[i];
        if (!edge.node || edge.index < 0 || (size_t)edge.index >= edge.node->n_outputs)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "result %zu is output %d of %s (got %zu outputs)", i, edge.index,
                             edge.node ? edge.node->name : "no node", edge.node ? edge.node->n_outputs : 0);
        plan->fetches[i] = value_of(b, edge);
        plan->fetch_reads[i] = is_reference(edge);
        if (plan->fetches[i] < 0) plan->constants[~plan->fetches[i]].state->keep = true;
    }
    return TARE_OK;
}

/* ---- lifetimes ---- */

enum { NEVER_USED = -1, TO_THE_END = INT_MAX };

/* A feed without users exists to the end; one with users, like every value, until the last of them. */
static void extend_to(int *last, int *previous, int step) {
    if (*last == TO_THE_END) {
        *last = step;
    } else if (*last < step) {
        *previous = *last;
        *last = step;
    } else if (*previous < step) {
        *previous = step;
    }
}

/* last, previous: by slot, the steps that use it last and before that, where its definition counts as a use. A step
 * that uses it twice is both. */
static void find_last_uses(const struct tare_plan *plan, int *last, int *previous) {
    for (size_t v = 0; v < plan->n_slots; v++) {
        last[v] = v < plan->n_feeds ? TO_THE_END : NEVER_USED;
        previous[v] = NEVER_USED;
    }
    for (size_t s = 0; s < plan->n_steps; s++) {
        const struct tare_step *step = &plan->steps[s];
        for (size_t k = 0; k < step->n_outputs; k++)
            last[step->first_output + (int)k] = tare_plan_runs_at(plan, (int)s);
        for (size_t i = 0; i < step->n_inputs; i++)
            if (step->inputs[i] >= 0)
                extend_to(&last[step->inputs[i]], &previous[step->inputs[i]], tare_plan_runs_at(plan, (int)s));
    }
    for (size_t s = 0; s < plan->n_steps; s++) /* seldom exist, and have one element */
        if (plan->steps[s].is_internal || plan->steps[s].is_lent) last[plan->steps[s].first_output] = TO_THE_END;
    for (size_t i = 0; i < plan->n_fetches; i++)
        if (plan->fetches[i] >= 0) last[plan->fetches[i]] = TO_THE_END;
}

/* Sets step->last_use: inputs whose value is used here for the last time, and only once. count: zero for all values,
 * before and after. */
static void mark_last_uses(const struct tare_step *step, int s, const int *last, int *count) {
    for (size_t i = 0; i < step->n_inputs; i++)
        if (step->inputs[i] >= 0) count[step->inputs[i]]++;
    for (size_t i = 0; i < step->n_inputs; i++) {
        const int value = step->inputs[i];
        step->last_use[i] = value >= 0 && last[value] == s && count[value] == 1;
    }
    for (size_t i = 0; i < step->n_inputs; i++)
        if (step->inputs[i] >= 0) count[step->inputs[i]] = 0;
}

/* Such as XlaConvV2, of whose seven inputs six are constants. */
static bool keeps_inputs(const struct tare_step *step) {
    enum { LEAST_CONSTANTS = 3 };
    size_t constants = 0;
    for (size_t i = 0; i < step->n_inputs; i++)
        constants += step->inputs[i] < 0;
    return !step->reads && constants >= LEAST_CONSTANTS;
}

/* Sets fusion->addend_ends. */
static void mark_addends(const struct tare_plan *plan, const int *last, const int *previous) {
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_fusion *fusion = plan->steps[s].fusion;
        if (!fusion || !fusion->has_addend) continue;
        for (int i = 0; i < fusion->n_steps; i++)
            fusion->addend_ends |= last[fusion->addend] == fusion->steps[i] && previous[fusion->addend] < (int)s;
    }
}

static tare_status end_values(struct builder *b) {
    struct tare_plan *plan = b->plan;
    int *last = TARE_NEW_ARRAY(&b->scratch, int, plan->n_slots + 1);
    int *previous = TARE_NEW_ARRAY(&b->scratch, int, plan->n_slots + 1);
    int *count = TARE_NEW_ARRAY(&b->scratch, int, plan->n_slots + 1);
    if (!last || !previous || !count) return TARE_NO_MEMORY;
    find_last_uses(plan, last, previous);
    mark_addends(plan, last, previous);
    for (size_t v = 0; v < plan->n_slots; v++)
        if (last[v] >= 0 && last[v] != TO_THE_END) plan->steps[last[v]].n_drops++;
    for (size_t s = 0; s < plan->n_steps; s++) {
        struct tare_step *step = &plan->steps[s];
        step->drops = TARE_NEW_ARRAY(b->arena, int, step->n_drops + 1);
        step->last_use = TARE_NEW_ARRAY(b->arena, bool, step->n_inputs + 1);
        if (!step->drops || !step->last_use) return TARE_NO_MEMORY;
        step->n_drops = 0;
        mark_last_uses(step, (int)s, last, count);
        step->keeps_inputs = keeps_inputs(step);
    }
    plan->kept_slots = TARE_NEW_ARRAY(b->arena, int, plan->n_slots + 1);
    if (!plan->kept_slots) return TARE_NO_MEMORY;
    for (size_t v = 0; v < plan->n_slots; v++) {
        struct tare_step *step = last[v] >= 0 && last[v] != TO_THE_END ? &plan->steps[last[v]] : NULL;
        if (step)
            step->drops[step->n_drops++] = (int)v;
        else
            plan->kept_slots[plan->n_kept_slots++] = (int)v;
    }
    return TARE_OK;
}

static tare_status build(struct builder *b) {
    const size_t n = b->graph->n_nodes + 1;
    struct tare_plan_uses uses;
    TARE_TRY(tare_plan_order(&b->order, &b->n_order, &b->scratch, b->request));
    TARE_TRY(check_nodes(b));
    b->constant = TARE_NEW_ARRAY(&b->scratch, bool, n);
    b->parameter = TARE_NEW_ARRAY(&b->scratch, bool, n);
    b->first_value = TARE_NEW_ARRAY(&b->scratch, int, n);
    b->step_of = TARE_NEW_ARRAY(&b->scratch, int, n);
    b->feed_of = TARE_NEW_ARRAY(&b->scratch, size_t, n);
    if (!b->constant || !b->parameter || !b->first_value || !b->step_of || !b->feed_of) return TARE_NO_MEMORY;
    list_feeds(b);
    for (size_t i = 0; i < n; i++)
        b->step_of[i] = -1;
    sort_out_constants(b);
    if (!b->plan->may_die && !b->plan->has_frames) {
        TARE_TRY(tare_plan_hoist_parameters(b->parameter, b->order, b->n_order, b->graph->n_nodes, b->constant,
                                            &b->scratch));
        TARE_TRY(tare_plan_join_epilogues(b->order, b->n_order, b->constant, b->parameter, b->graph->n_nodes));
    }
    TARE_TRY(lay_out(b));
    for (size_t i = 0; i < b->plan->n_constant_steps; i++)
        TARE_TRY(connect(b, &b->plan->constant_steps[i], true));
    for (size_t i = 0; i < b->plan->n_steps; i++)
        TARE_TRY(connect(b, &b->plan->steps[i], false));
    TARE_TRY(connect_fetches(b));
    find_written_reads(b->plan);
    if (b->plan->may_die || b->plan->has_frames) return end_values(b);
    TARE_TRY(tare_plan_note_uses(&uses, b->plan, &b->scratch));
    TARE_TRY(tare_plan_find_fusions(b->plan, &uses, b->arena));
    TARE_TRY(tare_plan_find_tilings(b->plan, &uses, b->arena));
    TARE_TRY(tare_plan_find_ranges(b->plan, &uses, b->arena, &b->scratch));
    tare_plan_mark_scalars(b->plan, &uses);
    TARE_TRY(tare_plan_find_groups(b->plan, &uses, b->arena, &b->scratch));
    TARE_TRY(tare_plan_join_ranges(b->plan, &uses, &b->scratch));
    TARE_TRY(tare_plan_find_scalars(b->plan, &uses, b->arena, &b->scratch));
    TARE_TRY(tare_plan_find_next_groups(b->plan, &uses, &b->scratch));
    TARE_TRY(tare_plan_find_mixed(b->plan, &uses, b->arena));
    TARE_TRY(end_values(b));
    TARE_TRY(tare_plan_find_sections(b->plan, b->arena, &b->scratch));
    return tare_plan_find_shape_checks(b->plan, &uses, b->arena, &b->scratch);
}

tare_status tare_plan_new(struct tare_plan **out, struct tare_session *session,
                          const struct tare_plan_request *request) {
    struct builder b = { .session = session, .arena = &session->arena, .request = request, .graph = request->graph };
    tare_status status = TARE_NO_MEMORY;
    b.states = tare_exec_graph_of(session, request->graph);
    b.plan = TARE_NEW(&session->arena, struct tare_plan);
    if (b.states && b.plan) {
        b.plan->graph = request->graph;
        b.plan->observe_epoch = -1;
        status = build(&b);
        b.plan->quiet = TARE_NEW_ARRAY(&session->arena, int, b.plan->n_steps + 1);
        b.plan->next_step = TARE_NEW_ARRAY(&session->arena, int, b.plan->n_steps + 1);
        b.plan->next_run = TARE_NEW_ARRAY(&session->arena, int, b.plan->n_steps + 1);
        b.plan->may_have = TARE_NEW_ARRAY(&session->arena, bool, b.plan->n_slots + 1);
        const bool has_all = b.plan->quiet && b.plan->next_step && b.plan->next_run && b.plan->may_have;
        if (status == TARE_OK && !has_all) status = TARE_NO_MEMORY;
    }
    tare_arena_free(&b.scratch);
    if (status != TARE_OK) return status;
    b.plan->next = session->first_plan;
    session->first_plan = b.plan;
    *out = b.plan;
    return TARE_OK;
}

void tare_plan_release(struct tare_plan *plan) {
    tare_exec_frame_free(plan->spare);
}
