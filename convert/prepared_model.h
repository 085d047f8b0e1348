/* A model in the form that is calibrated and quantized, and its activation ranges computed by a calibration. */
#ifndef TARE_CONVERT_PREPARED_MODEL_H
#define TARE_CONVERT_PREPARED_MODEL_H

#include "calib/algorithm.h"
#include "calib/calibration.h"
#include "graph/model.h"
#include "graph/op.h"
#include "quant/quantize.h"

/* Loads a SavedModel and runs the passes that precede calibration (convert/pipeline.h). Errors name the path. */
tare_status tare_load_prepared(struct tare_graph_model **out, const char *path) TARE_WARN_UNUSED;
/* The same with the caller's op registry. */
tare_status tare_load_prepared_with(struct tare_graph_model **out, const char *path,
                                    const struct tare_op_registry *ops) TARE_WARN_UNUSED;
/* Number of batch normalizations of a loaded model, as one op or of their parts. A float model that has any is prepared
 * before it is converted, so that they are folded; one without keeps its variables. */
size_t tare_count_batch_norms(const struct tare_graph_model *model);
/* Checks that a calibration belongs to this prepared model; `what` names it in errors. A model with kept variables also
 * accepts the calibration of the same model without: as nothing is folded into its weights, *fitted (owned by the
 * caller) is a copy with the tensor names of this model. *fitted NULL: the calibration matches unchanged. */
tare_status tare_calibration_fit(struct tare_calibration **fitted, const struct tare_calibration *calibration,
                                 const struct tare_graph_model *model, const char *what) TARE_WARN_UNUSED;
/* Reads a calibration file of this prepared model, as above. */
tare_status tare_calibration_load_for(struct tare_calibration **out, const struct tare_graph_model *model,
                                      const char *path) TARE_WARN_UNUSED;
/* TARE_INVALID_ARGUMENT if an accuracy pass of the list (NULL: none) requires per-channel statistics that the
 * calibration does not have, or requires a calibration and there is none. */
tare_status tare_calibration_check_passes(const struct tare_calibration *calibration,
                                          const struct tare_quant_pass *const *passes) TARE_WARN_UNUSED;
/* The ranges of a calibration (NULL: none). Tensors are found by function, node and output, so that the ranges apply to
 * any prepared copy of the model. Borrows the calibration. */
struct tare_quant_ranges tare_ranges_of(const struct tare_calibration *calibration);

#endif
