/* Numbers the observed outputs of a signature (slots), its functions and the sides of its control flow. */
#include "calib/observed.h"

#include "base/alloc.h"
#include "calib/coverage.h"

#include <stdlib.h>
#include <string.h>

/* Branches and loops: their coverage is counted (calib/coverage.h). */
static bool is_choice(const struct tare_node *node) {
    static const char *const ops[] = { "If",  "StatelessIf", "Case",  "StatelessCase", "While",   "StatelessWhile",
                                       "For", "Switch",      "Merge", "RefSwitch",     "RefMerge" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(node->op, ops[i]) == 0) return true;
    }
    return false;
}

static bool accepts_output(const struct tare_observed *observed, const struct tare_node *node, size_t output) {
    if (!tare_dtype_is_floating(tare_dtype_base(node->output_dtypes[output]))) return false;
    if (observed->accepts) return observed->accepts(observed->accepts_arg, node, output);
    return strcmp(node->op, "Const") != 0;
}

/* *is_new: the thing was not seen before. */
static tare_status visit(struct tare_observed *observed, const void *thing, bool *is_new) {
    *is_new = !tare_map_get_n(&observed->visited, (const char *)&thing, sizeof thing);
    if (!*is_new) return TARE_OK;
    const void **key = TARE_NEW(&observed->arena, const void *);
    if (!key) return TARE_NO_MEMORY;
    *key = thing;
    return tare_map_set_n(&observed->visited, (const char *)key, sizeof *key, observed) ? TARE_OK : TARE_NO_MEMORY;
}

static tare_status add_slots(struct tare_observed *observed, const struct tare_node *node) {
    for (size_t i = 0; i < node->n_outputs; i++) {
        if (!accepts_output(observed, node, i)) continue;
        if (!TARE_GROW(observed->slots, observed->n_slots, observed->slots_capacity)) return TARE_NO_MEMORY;
        observed->slots[observed->n_slots++] = (struct tare_observed_slot){ node, i, -1 };
    }
    return TARE_OK;
}

static tare_status add_function(void *arg, const struct tare_node *caller, struct tare_graph *callee);

static tare_status add_node(struct tare_observed *observed, const struct tare_node *node) {
    if (node->dead) return TARE_OK;
    if (is_choice(node)) {
        if (!TARE_GROW(observed->choices, observed->n_choices, observed->choices_capacity)) return TARE_NO_MEMORY;
        observed->choices[observed->n_choices++] = node;
        observed->n_sides += tare_coverage_side_count(node);
    }
    TARE_TRY(add_slots(observed, node));
    return tare_node_each_function(node, add_function, observed);
}

static tare_status add_function(void *arg, const struct tare_node *caller, struct tare_graph *callee) {
    struct tare_observed *observed = arg;
    bool is_new;
    (void)caller;
    TARE_TRY(visit(observed, callee, &is_new));
    if (!is_new) return TARE_OK;
    if (!TARE_GROW(observed->functions, observed->n_functions, observed->functions_capacity)) return TARE_NO_MEMORY;
    observed->functions[observed->n_functions++] = callee;
    for (size_t i = 0; i < callee->n_args; i++)
        TARE_TRY(add_node(observed, callee->args[i]));
    for (size_t i = 0; i < callee->n_nodes; i++)
        TARE_TRY(add_node(observed, callee->nodes[i]));
    return TARE_OK;
}

/* Nodes of the main graph still to be visited. */
struct stack {
    const struct tare_node **nodes;
    size_t count, capacity;
};

static tare_status push(struct tare_observed *observed, struct stack *stack, const struct tare_node *node) {
    bool is_new;
    if (!node) return TARE_OK;
    TARE_TRY(visit(observed, node, &is_new));
    if (!is_new) return TARE_OK;
    if (!TARE_GROW(stack->nodes, stack->count, stack->capacity)) return TARE_NO_MEMORY;
    stack->nodes[stack->count++] = node;
    return TARE_OK;
}

static tare_status push_bindings(struct tare_observed *observed, struct stack *stack,
                                 const struct tare_binding *bindings, size_t count) {
    for (size_t i = 0; i < count; i++)
        TARE_TRY(push(observed, stack, bindings[i].edge.node));
    return TARE_OK;
}

static tare_status walk(struct tare_observed *observed, struct stack *stack) {
    while (stack->count > 0) {
        const struct tare_node *node = stack->nodes[--stack->count];
        TARE_TRY(add_node(observed, node));
        for (size_t i = 0; i < node->n_inputs; i++)
            TARE_TRY(push(observed, stack, node->inputs[i].node));
        for (size_t i = 0; i < node->n_controls; i++)
            TARE_TRY(push(observed, stack, node->controls[i]));
    }
    return TARE_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp((*(const struct tare_graph *const *)a)->name, (*(const struct tare_graph *const *)b)->name);
}

static int compare_nodes(const struct tare_node *a, const struct tare_node *b) {
    const int order = a->graph == b->graph ? 0 : strcmp(a->graph->name, b->graph->name);
    return order != 0 ? order : strcmp(a->name, b->name);
}

static int by_node(const void *a, const void *b) {
    return compare_nodes(*(const struct tare_node *const *)a, *(const struct tare_node *const *)b);
}

static int by_output(const void *a, const void *b) {
    const struct tare_observed_slot *x = a, *y = b;
    const int order = compare_nodes(x->node, y->node);
    return order != 0 ? order : (x->output > y->output) - (x->output < y->output);
}

/* Sorted as in a calibration, so that each is added there at the end of its list. */
static void sort(struct tare_observed *observed) {
    if (observed->n_slots > 1) qsort(observed->slots, observed->n_slots, sizeof *observed->slots, by_output);
    if (observed->n_functions > 1)
        qsort(observed->functions, observed->n_functions, sizeof *observed->functions, by_name);
    if (observed->n_choices > 1) qsort(observed->choices, observed->n_choices, sizeof *observed->choices, by_node);
}

/* Where the node is in the list of its graph (observed->by_graph). */
static size_t place_of(const struct tare_node *node) {
    return tare_node_is_arg(node) ? node->position : node->graph->n_args + node->position;
}

static tare_status index_slots(struct tare_observed *observed) {
    for (size_t i = 0; i < observed->n_slots; i++) {
        const struct tare_node *node = observed->slots[i].node;
        const struct tare_graph *graph = node->graph;
        size_t *first = tare_graph_table_get(&observed->by_graph, graph);
        if (!first) {
            first = TARE_NEW_ARRAY(&observed->arena, size_t, graph->n_args + graph->n_nodes);
            if (!first || !tare_graph_table_set(&observed->by_graph, graph, first)) return TARE_NO_MEMORY;
        }
        if (!first[place_of(node)]) first[place_of(node)] = i + 1;
    }
    return TARE_OK;
}

/* Arguments are observed before the nodes of their function, integers before floats. */
static bool is_known_before(const struct tare_observed_counter *counter, const struct tare_observed_slot *slot) {
    for (size_t i = 0; i < counter->n_terms; i++)
        if (!tare_node_is_arg(counter->terms[i].arg) || counter->terms[i].arg->graph != slot->node->graph) return false;
    return counter->n_terms > 0;
}

/* The values that the counter may have: the greatest divisor of its factors apart. */
static void set_step(struct tare_observed_counter *counter) {
    int64_t step = 0;
    for (size_t i = 0; i < counter->n_terms; i++) {
        int64_t a = step, b = llabs(counter->terms[i].factor);
        while (b) {
            const int64_t rest = a % b;
            a = b;
            b = rest;
        }
        step = a;
    }
    counter->step = step ? step : 1;
    counter->least = ((counter->offset % counter->step) + counter->step) % counter->step;
}

static tare_status add_entries(struct tare_observed *observed) {
    const size_t count = observed->n_slots;
    observed->counters = TARE_NEW_ARRAY(&observed->arena, struct tare_observed_counter, count + 1);
    observed->n_counters = count;
    if (!observed->counters) return TARE_NO_MEMORY;
    for (size_t i = 0; i < count && observed->counter; i++) {
        struct tare_observed_counter *counter = &observed->counters[i];
        const struct tare_observed_slot slot = observed->slots[i];
        if (!observed->counter(observed->accepts_arg, slot.node, slot.output, counter) ||
            !is_known_before(counter, &slot)) {
            counter->n_terms = 0;
            continue;
        }
        set_step(counter);
        counter->first = (int64_t)observed->n_slots;
        for (int64_t entry = counter->least; entry < counter->count; entry += counter->step) {
            if (!TARE_GROW(observed->slots, observed->n_slots, observed->slots_capacity)) return TARE_NO_MEMORY;
            observed->slots[observed->n_slots++] = (struct tare_observed_slot){ slot.node, slot.output, entry };
        }
    }
    return TARE_OK;
}

tare_status tare_observed_make(struct tare_observed *out, const struct tare_signature *signature,
                               bool (*accepts)(void *arg, const struct tare_node *node, size_t output),
                               tare_counter_fn counter, void *arg) {
    struct stack stack = { 0 };
    *out = (struct tare_observed){ .accepts = accepts, .counter = counter, .accepts_arg = arg };
    tare_status status = push_bindings(out, &stack, signature->outputs, signature->n_outputs);
    if (status == TARE_OK) status = walk(out, &stack);
    tare_free(stack.nodes);
    if (status != TARE_OK) return status;
    sort(out);
    TARE_TRY(index_slots(out));
    return add_entries(out);
}

void tare_observed_free(struct tare_observed *observed) {
    tare_graph_table_free(&observed->by_graph);
    tare_map_free(&observed->visited);
    tare_free(observed->slots);
    tare_free(observed->functions);
    tare_free(observed->choices);
    tare_arena_free(&observed->arena);
    *observed = (struct tare_observed){ 0 };
}

ptrdiff_t tare_observed_find(const struct tare_observed *observed, const struct tare_node *node, size_t output) {
    const size_t *first = tare_graph_table_get(&observed->by_graph, node->graph);
    const size_t found = first ? first[place_of(node)] : 0;
    if (!found) return -1;
    for (size_t i = found - 1; i < observed->n_counters && observed->slots[i].node == node; i++) {
        if (observed->slots[i].output == output) return (ptrdiff_t)i;
    }
    return -1;
}

bool tare_observed_counts(const struct tare_observed *observed, const struct tare_node *node) {
    if (!observed->counter || !tare_node_is_arg(node)) return false;
    for (size_t i = 0; i < observed->n_counters; i++)
        for (size_t k = 0; k < observed->counters[i].n_terms; k++)
            if (observed->counters[i].terms[k].arg == node) return true;
    return false;
}
