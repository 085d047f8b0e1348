/* The edges that a signature feeds and fetches, for all that runs it over many records. */
#ifndef TARE_INTERPRETER_SIGNATURE_EDGES_H
#define TARE_INTERPRETER_SIGNATURE_EDGES_H

#include "graph/model.h"
#include "interpreter/feedback.h"

struct tare_signature_edges {
    const struct tare_signature *signature;
    struct tare_edge *feeds, *fetches; /* one block, from base/alloc.h */
    size_t n_feeds, n_outputs;
    const struct tare_feedback *feedback; /* whose inputs records may lack; NULL: none */
};

/* TARE_UNSUPPORTED names an input that cannot be fed or an output that cannot be fetched. Release with
 * tare_signature_edges_free, also after a failure. */
tare_status tare_signature_edges_of(struct tare_signature_edges *out,
                                    const struct tare_signature *signature) TARE_WARN_UNUSED;
void tare_signature_edges_free(struct tare_signature_edges *edges);

#endif
