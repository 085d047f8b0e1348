/* The places where a model chooses what it runs - If, Case, While - and the function that each of their sides is. The
 * records that took each side tell what no sample has shown. */
#ifndef TARE_CALIB_COVERAGE_H
#define TARE_CALIB_COVERAGE_H

#include "graph/graph.h"

#include <stddef.h>
#include <stdint.h>

struct tare_coverage_side {
    char *function, *node, *op; /* the node that chooses; function "" is the main graph */
    int32_t side;               /* If: 0 then, 1 else; While: 0 condition, 1 body; Case: the branch's number */
    char *target;               /* the function that runs on this side */
    int64_t records;            /* that took it */
};

/* Zero it to start. Sorted by function, node, side. */
struct tare_coverage {
    struct tare_coverage_side *sides;
    size_t count, capacity;
};

/* Adds a side that no record took; nothing when it is there. */
tare_status tare_coverage_add(struct tare_coverage *coverage, const char *function, const char *node, const char *op,
                              int32_t side, const char *target) TARE_WARN_UNUSED;
/* Adds every side of an If, Case or While node; nothing for other nodes. */
tare_status tare_coverage_add_node(struct tare_coverage *coverage, const struct tare_node *node) TARE_WARN_UNUSED;
/* How many sides a node has: 0 for one that is no If, Case or While. */
size_t tare_coverage_side_count(const struct tare_node *node);
/* Counts records that took a side; the side must be there. */
void tare_coverage_count(struct tare_coverage *coverage, const char *function, const char *node, int32_t side,
                         int64_t records);
/* Adds another's sides and records. */
tare_status tare_coverage_merge(struct tare_coverage *coverage, const struct tare_coverage *other) TARE_WARN_UNUSED;
void tare_coverage_free(struct tare_coverage *coverage);

enum { TARE_COVERAGE_SIDE_TEXT = 24 };
/* "then", "else", "condition", "body", "branch 3"; gives `text`. */
const char *tare_coverage_side_text(char text[TARE_COVERAGE_SIDE_TEXT], const struct tare_coverage_side *side);

#endif
