/* Sides of control flow, sorted by function, node and side. */
#include "calib/coverage.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

static int compare(const struct tare_coverage_side *a, const char *function, const char *node, int32_t side) {
    int order = strcmp(a->function, function);
    if (order == 0) order = strcmp(a->node, node);
    return order != 0 ? order : (a->side > side) - (a->side < side);
}

static void free_side(struct tare_coverage_side *side) {
    tare_free(side->function);
    tare_free(side->node);
    tare_free(side->op);
    tare_free(side->target);
}

/* The place of a side, or where it would be. */
static size_t place_of(const struct tare_coverage *coverage, const char *function, const char *node, int32_t side,
                       bool *found) {
    size_t low = 0, high = coverage->count;
    const size_t next = coverage->next; /* sides are mostly asked for in their order */
    *found = next < coverage->count && compare(&coverage->sides[next], function, node, side) == 0;
    if (*found) return next;
    if (next && next == coverage->count && compare(&coverage->sides[next - 1], function, node, side) < 0) return next;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&coverage->sides[middle], function, node, side) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *found = low < coverage->count && compare(&coverage->sides[low], function, node, side) == 0;
    return low;
}

tare_status tare_coverage_add(struct tare_coverage *coverage, const char *function, const char *node, const char *op,
                              int32_t side, const char *target) {
    bool found;
    size_t at = place_of(coverage, function, node, side, &found);
    if (found) return TARE_OK;
    if (!TARE_GROW(coverage->sides, coverage->count, coverage->capacity)) return TARE_NO_MEMORY;
    struct tare_coverage_side added = { .function = tare_strdup(function),
                                        .node = tare_strdup(node),
                                        .op = tare_strdup(op),
                                        .side = side,
                                        .target = tare_strdup(target) };
    if (!added.function || !added.node || !added.op || !added.target) {
        free_side(&added);
        return TARE_NO_MEMORY;
    }
    memmove(coverage->sides + at + 1, coverage->sides + at, (coverage->count - at) * sizeof *coverage->sides);
    coverage->sides[at] = added;
    coverage->count++;
    coverage->next = at + 1;
    return TARE_OK;
}

static tare_status add_attr(struct tare_coverage *coverage, const struct tare_node *node, const char *name,
                            int32_t first) {
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    if (!attr || attr->kind != TARE_ATTR_FUNC) return TARE_OK;
    for (size_t i = 0; i < attr->count && i < INT32_MAX; i++) {
        int32_t side = first + (int32_t)i;
        TARE_TRY(tare_coverage_add(coverage, node->graph->name, node->name, node->op, side, attr->items[i].func.name));
    }
    return TARE_OK;
}

static bool is_op(const struct tare_node *node, const char *op, const char *stateless) {
    return strcmp(node->op, op) == 0 || strcmp(node->op, stateless) == 0;
}

tare_status tare_coverage_add_node(struct tare_coverage *coverage, const struct tare_node *node) {
    if (is_op(node, "If", "StatelessIf")) {
        TARE_TRY(add_attr(coverage, node, "then_branch", 0));
        return add_attr(coverage, node, "else_branch", 1);
    }
    if (is_op(node, "While", "StatelessWhile")) {
        TARE_TRY(add_attr(coverage, node, "cond", 0));
        return add_attr(coverage, node, "body", 1);
    }
    return is_op(node, "Case", "StatelessCase") ? add_attr(coverage, node, "branches", 0) : TARE_OK;
}

size_t tare_coverage_side_count(const struct tare_node *node) {
    if (is_op(node, "If", "StatelessIf") || is_op(node, "While", "StatelessWhile")) return 2;
    const struct tare_attr *branches =
        is_op(node, "Case", "StatelessCase") ? tare_node_find_attr(node, "branches") : NULL;
    return branches ? branches->count : 0;
}

void tare_coverage_count(struct tare_coverage *coverage, const char *function, const char *node, int32_t side,
                         int64_t records) {
    bool found;
    size_t at = place_of(coverage, function, node, side, &found);
    /* Counts of forged files may be of any size. */
    if (found && __builtin_add_overflow(coverage->sides[at].records, records, &coverage->sides[at].records))
        coverage->sides[at].records = INT64_MAX;
    coverage->next = found ? at + 1 : coverage->next;
}

tare_status tare_coverage_merge(struct tare_coverage *coverage, const struct tare_coverage *other) {
    for (size_t i = 0; i < other->count; i++) {
        const struct tare_coverage_side *side = &other->sides[i];
        TARE_TRY(tare_coverage_add(coverage, side->function, side->node, side->op, side->side, side->target));
        tare_coverage_count(coverage, side->function, side->node, side->side, side->records);
    }
    return TARE_OK;
}

void tare_coverage_free(struct tare_coverage *coverage) {
    for (size_t i = 0; i < coverage->count; i++)
        free_side(&coverage->sides[i]);
    tare_free(coverage->sides);
    *coverage = (struct tare_coverage){ 0 };
}

const char *tare_coverage_side_text(char text[TARE_COVERAGE_SIDE_TEXT], const struct tare_coverage_side *side) {
    bool is_if = strstr(side->op, "If"), is_while = strstr(side->op, "While");
    if (is_if && side->side < 2) {
        snprintf(text, TARE_COVERAGE_SIDE_TEXT, "%s", side->side == 0 ? "then" : "else");
    } else if (is_while && side->side < 2) {
        snprintf(text, TARE_COVERAGE_SIDE_TEXT, "%s", side->side == 0 ? "condition" : "body");
    } else {
        snprintf(text, TARE_COVERAGE_SIDE_TEXT, "branch %d", (int)side->side);
    }
    return text;
}
