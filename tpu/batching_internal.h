/* Shared by the files of batching. */
#ifndef TARE_TPU_BATCHING_INTERNAL_H
#define TARE_TPU_BATCHING_INTERNAL_H

#include "interpreter/inference/model_shapes.h"
#include "tpu/batching.h"

/* Which outputs of the function's nodes depend on the marked arguments: (*out)[position][output]. Arena memory. */
tare_status tare_batch_find_dependent(bool ***out, struct tare_arena *arena, const struct tare_graph *function,
                                      const bool *args);
/* captured[i]: argument i is passed on as it is instead of being batched: a resource, or a value that is the same for
 * every request, such as the size of a table. Arena memory. */
tare_status tare_batch_captured(bool **captured, struct tare_arena *arena, const struct tare_graph *function);
/* The demands on the shapes of a function's arguments and returns. */
tare_status tare_batch_check_shapes(const struct tare_graph *function, const bool *captured,
                                    const struct tare_model_shapes *shapes);
/* Each return has to depend on a batched argument: the number of rows of another one cannot follow the batch. */
tare_status tare_batch_check_dependence(struct tare_arena *arena, const struct tare_graph *function,
                                        const bool *captured);
/* TARE_SHAPE if a caller passes batched arguments that have different numbers of rows. */
tare_status tare_batch_check_callers(struct tare_arena *arena, const struct tare_graph *function, const bool *captured,
                                     const struct tare_model_shapes *shapes);
/* Infers the returns for two batch sizes, and for the ranks 1 to 8 of arguments whose rank is unknown: an error when
 * the first dimension of a return never follows the batch, a note when nothing shows that it does. */
tare_status tare_batch_try_sizes(struct tare_batching_result *out, struct tare_arena *arena,
                                 const struct tare_graph *function, const bool *captured,
                                 const struct tare_model_shapes *shapes);
/* Adds a note for each batched argument whose rank or further dimensions only requests will show; arena memory. */
tare_status tare_batch_note_shapes(struct tare_batching_result *out, struct tare_arena *arena,
                                   const struct tare_graph *function, const bool *captured,
                                   const struct tare_model_shapes *shapes);
/* Sets out->mixing to the first node that mixes the rows of a batch (tpu/batching_rows.c). */
tare_status tare_batch_find_mixing(struct tare_batching_result *out, struct tare_arena *arena,
                                   const struct tare_graph *function, const bool *captured,
                                   const struct tare_model_shapes *shapes);
/* A signature's inputs and outputs: dense, with an open first dimension. */
tare_status tare_batch_check_signature(const struct tare_signature *signature);

#endif
