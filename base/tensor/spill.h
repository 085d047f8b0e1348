/* Moves results that are needed only once more, when they are written, from memory to unnamed files. */
#ifndef TARE_BASE_TENSOR_SPILL_H
#define TARE_BASE_TENSOR_SPILL_H

#include "base/tensor/tensor.h"

/* Moves the elements of a numeric tensor into an unnamed file (tare_file_open_unnamed) and maps that. If no such
 * file can be created, the tensor stays in memory. */
void tare_tensor_spill(struct tare_tensor *tensor);
/* True for a tensor that was spilled: its pages may be released with tare_file_forget. */
bool tare_tensor_is_spilled(const struct tare_tensor *tensor);

#endif
