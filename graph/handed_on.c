/* Follows results back to arguments, also through calls, branches and loops in functions. */
#include "graph/handed_on.h"

#include <string.h>

enum { MOST_STEPS = 512 };

struct walk {
    struct tare_arena arena;
    int steps; /* that are left: a file can nest branches so that there are no end of ways */
};

static size_t handed_on(struct walk *walk, const struct tare_node *node, size_t output);

/* The argument whose value result i of a function has; SIZE_MAX: none is known. */
static size_t argument_of(struct walk *walk, const struct tare_graph *function, size_t i) {
    struct tare_edge edge = i < function->n_returns ? function->returns[i].edge : (struct tare_edge){ 0 };
    while (edge.node && !tare_node_is_arg(edge.node)) {
        size_t from = (size_t)edge.index;
        if (edge.index < 0 || walk->steps-- <= 0) return SIZE_MAX;
        if (!tare_node_is(edge.node, "Identity") && !tare_node_is(edge.node, "IdentityN"))
            from = handed_on(walk, edge.node, from);
        if (from >= edge.node->n_inputs) return SIZE_MAX;
        edge = edge.node->inputs[from];
    }
    return edge.node ? edge.node->position : SIZE_MAX;
}

/* The argument that all callees return; SIZE_MAX: none. */
static size_t common_argument(struct walk *walk, const struct tare_call_site *site, size_t output) {
    const size_t first = argument_of(walk, site->callees[0], output);
    for (size_t c = 1; c < site->n_callees && first != SIZE_MAX; c++)
        if (argument_of(walk, site->callees[c], output) != first) return SIZE_MAX;
    return first < site->n_args ? first : SIZE_MAX;
}

/* BatchFunction is none: its function gets other batches. */
static size_t handed_on(struct walk *walk, const struct tare_node *node, size_t output) {
    struct tare_call_site site;
    if (tare_node_is(node, "BatchFunction")) return SIZE_MAX;
    if (tare_call_site(&site, &walk->arena, node) != TARE_OK) {
        tare_error_clear(); /* of memory: what is not known is not used */
        return SIZE_MAX;
    }
    if (site.kind == TARE_CALL_NONE || site.kind == TARE_CALL_OTHER) return SIZE_MAX;
    if (site.kind == TARE_CALL_LOOP)
        return site.n_callees == 2 && argument_of(walk, site.callees[1], output) == output ? output : SIZE_MAX;
    const size_t argument = common_argument(walk, &site, output);
    return argument == SIZE_MAX ? SIZE_MAX : site.first + argument;
}

bool tare_loop_keeps(const struct tare_graph *body, size_t i) {
    struct walk walk = { .steps = MOST_STEPS };
    const bool keeps = argument_of(&walk, body, i) == i;
    tare_arena_free(&walk.arena);
    return keeps;
}

size_t tare_call_hands_on(const struct tare_node *node, size_t output) {
    struct walk walk = { .steps = MOST_STEPS };
    const size_t input = handed_on(&walk, node, output);
    tare_arena_free(&walk.arena);
    return input < node->n_inputs ? input : SIZE_MAX;
}
