/* Variables that signatures write on the CPU: a TPU copies each variable once, and does not see what is written later.
 */
#ifndef TARE_TPU_WRITTEN_VARIABLES_H
#define TARE_TPU_WRITTEN_VARIABLES_H

#include "base/map.h"
#include "graph/bindings.h"

struct tare_tpu_written {
    struct tare_bindings *bindings; /* NULL: no variable is written */
    struct tare_map by_variable;    /* the bytes of its address -> the write; internal */
};

/* Whether the node writes a variable. */
bool tare_tpu_assigns(const struct tare_node *node);
/* Finds what the functions of signatures write, without those below `placed`, which run on the TPU. Valid until a graph
 * changes. */
tare_status tare_tpu_written_find(struct tare_tpu_written *out, struct tare_arena *arena,
                                  const struct tare_graph_model *model, struct tare_graph *const *placed,
                                  size_t n_placed) TARE_WARN_UNUSED;
void tare_tpu_written_free(struct tare_tpu_written *written);
/* Whether the node reads the value of a variable. */
bool tare_tpu_reads(const struct tare_node *node);
/* The node that writes the variable that `read` reads; NULL: none, or the variable is not known. */
const struct tare_node *tare_tpu_writer_of(const struct tare_tpu_written *written, const struct tare_node *read);

#endif
