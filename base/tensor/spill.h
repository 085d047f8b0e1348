/* Results that are looked at once more, when they are written: a file without a name holds them instead of memory. */
#ifndef TARE_BASE_TENSOR_SPILL_H
#define TARE_BASE_TENSOR_SPILL_H

#include "base/tensor/tensor.h"

/* Moves the elements of a numeric tensor into an unlinked file in $TMPDIR (else /var/tmp) and maps them from there. The
 * tensor stays as it is where no such file can be made: it takes memory then, and nothing else. */
void tare_tensor_spill(struct tare_tensor *tensor);
/* True for a tensor of tare_tensor_spill: its pages may be given back (tare_file_forget). */
bool tare_tensor_is_spilled(const struct tare_tensor *tensor);

#endif
