/* Branch coverage of control flow (If, Case, While): the function of each side and the number of records that took it.
 * A side without records was not observed by any sample. */
#ifndef TARE_CALIB_COVERAGE_H
#define TARE_CALIB_COVERAGE_H

#include "graph/graph.h"

#include <stddef.h>
#include <stdint.h>

struct tare_coverage_side {
    char *function, *node, *op; /* the control-flow node; function "" is the main graph */
    int32_t side;               /* If: 0 then, 1 else; While: 0 condition, 1 body; Case: the branch's number */
    char *target;               /* the function that runs on this side */
    int64_t records;            /* that took it */
};

/* Zero it to start. Sorted by function, node, side. */
struct tare_coverage {
    struct tare_coverage_side *sides;
    size_t count, capacity;
    size_t next; /* the place after that of the side that was added or counted last */
};

/* Adds a side with no records; does nothing if it exists. */
tare_status tare_coverage_add(struct tare_coverage *coverage, const char *function, const char *node, const char *op,
                              int32_t side, const char *target) TARE_WARN_UNUSED;
/* Adds every side of an If, Case or While node; does nothing for other nodes. */
tare_status tare_coverage_add_node(struct tare_coverage *coverage, const struct tare_node *node) TARE_WARN_UNUSED;
/* Number of sides of a node: 0 unless it is an If, Case or While. */
size_t tare_coverage_side_count(const struct tare_node *node);
/* Counts records that took a side; the side must be there. */
void tare_coverage_count(struct tare_coverage *coverage, const char *function, const char *node, int32_t side,
                         int64_t records);
/* Adds another's sides and records. */
tare_status tare_coverage_merge(struct tare_coverage *coverage, const struct tare_coverage *other) TARE_WARN_UNUSED;
void tare_coverage_free(struct tare_coverage *coverage);

enum { TARE_COVERAGE_SIDE_TEXT = 24 };
/* "then", "else", "condition", "body", "branch 3"; returns `text`. */
const char *tare_coverage_side_text(char text[TARE_COVERAGE_SIDE_TEXT], const struct tare_coverage_side *side);

#endif
