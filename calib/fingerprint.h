/* The fingerprint by which a calibration file is matched to its model. */
#ifndef TARE_CALIB_FINGERPRINT_H
#define TARE_CALIB_FINGERPRINT_H

#include "graph/model.h"

/* 128 bits over everything that calibration's numbers can depend on: names of functions and nodes, ops, edges,
 * attributes with the constants' bytes, signatures, and the values of variables that are not constants. Not over the
 * order of nodes, devices, or where the model came from. TARE_NO_MEMORY. */
tare_status tare_model_fingerprint(uint64_t out[2], const struct tare_graph_model *model) TARE_WARN_UNUSED;
/* The same; calls `forget` (may be NULL) with each variable's value once it is hashed, so that a checkpoint larger than
 * memory need not stay in memory. */
tare_status tare_model_fingerprint_forgetting(uint64_t out[2], const struct tare_graph_model *model,
                                              void (*forget)(const struct tare_tensor *value)) TARE_WARN_UNUSED;

#endif
