/* Warnings about layers whose quantization error is clearly larger than with other options. */
#ifndef TARE_QUANT_QUALITY_WARNINGS_H
#define TARE_QUANT_QUALITY_WARNINGS_H

#include "quant/layer.h"

/* Compares the error of each static activation range on the calibration histogram with that of the range of least
 * squared error, and adds a warning to the report for every activation whose clipping or whose rounding, as its
 * range is too wide, costs more than quant/advice.h says, or that had one value only.
 * Whatever algorithm chose the range is judged the same way. Before the rewrites: edges still name statistics. Does
 * nothing without statistics. */
tare_status tare_quant_warn_of_ranges(struct tare_quant_work *work);
/* After the rewrites: adds a warning for every layer whose weight is poor (quant/advice.h). */
tare_status tare_quant_warn_of_weights(struct tare_quant_work *work);
/* Before the rewrites: counts the products of integers that the model has itself, and adds a note if there are any. */
tare_status tare_quant_note_integers(struct tare_quant_work *work);

#endif
