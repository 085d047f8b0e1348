/* Permutes the axes of a dense array. */
#ifndef TARE_INTERPRETER_KERNELS_PERMUTE_H
#define TARE_INTERPRETER_KERNELS_PERMUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True when the order is 0, 1, 2 …: nothing moves. */
bool tare_permute_is_identity(int rank, const int *order);
/* Output axis i is input axis order[i]; `dims` are the input's. `order` must be a permutation. */
void tare_permute(void *to, const void *from, size_t element_size, int rank, const int64_t *dims, const int *order);
/* As tare_permute with the input's own steps (in elements) along each output axis; steps are arbitrary, so axes
 * can repeat (0) or follow a diagonal. `dims` are the output's. */
void tare_permute_steps(void *to, const void *from, size_t element_size, int rank, const int64_t *dims,
                        const int64_t *steps);

#endif
