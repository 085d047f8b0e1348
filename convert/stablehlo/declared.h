/* The types that a module declares for its values, and the shapes that the imported nodes compute. MLIR verifies a
 * module when it is written; a file of another origin may contradict itself, and would give results of other shapes
 * than it declares. */
#ifndef TARE_CONVERT_STABLEHLO_DECLARED_H
#define TARE_CONVERT_STABLEHLO_DECLARED_H

#include "base/map.h"
#include "convert/stablehlo/module.h"
#include "graph/graph.h"

struct tare_declared_graph;

/* The declarations of one import. A zeroed one is empty; free the map in the end, the rest is in the arena. */
struct tare_declarations {
    struct tare_arena *arena;
    struct tare_map by_graph;
    struct tare_declared_graph *first;
};

/* The edge is declared to be of the type: result `index` of the op, or an argument of its function (`op` is NULL).
 * TARE_CORRUPT if the dtypes differ. Types that are not tensors are left out. */
tare_status tare_declare(struct tare_declarations *declarations, struct tare_edge edge,
                         const struct tare_shlo_type *type, const struct tare_shlo_op *op,
                         size_t index) TARE_WARN_UNUSED;
/* TARE_CORRUPT with the op's name and place if the shape of a result, inferred from the declared shapes of its
 * function's arguments, is incompatible with its declaration. */
tare_status tare_check_declarations(const struct tare_declarations *declarations) TARE_WARN_UNUSED;

/* Of an op that works element by element: TARE_CORRUPT unless its operands have the shape of its result, which no op
 * broadcasts to. The condition of a select and the bounds of a clamp may be scalars. */
tare_status tare_check_alike(const struct tare_shlo_op *op) TARE_WARN_UNUSED;

#endif
