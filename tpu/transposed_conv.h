/* Rewrites transposed convolutions as the convolutions that the TPU compiler generates for them. */
#ifndef TARE_TPU_TRANSPOSED_CONV_H
#define TARE_TPU_TRANSPOSED_CONV_H

#include "graph/model.h"

/* Replaces Conv2DBackpropInput, Conv3DBackpropInputV2 and DepthwiseConv2dNativeBackpropInput in the functions to place,
 * and in those that they call, by XlaConvV2: zeros between the elements (lhs_dilation), the filter reversed (in its
 * constant, else by ReverseV2), padding from input_sizes. Sizes that are not known yet are computed in the graph, from
 * shapes, which are constants when the program is compiled. Results are bit-identical. Ops that contradict their own
 * sizes, or whose number of groups is unknown, stay unchanged. *changes counts the nodes; arena memory is for scratch.
 */
tare_status tare_tpu_lower_transposed(size_t *changes, struct tare_arena *arena, struct tare_graph_model *model,
                                      struct tare_graph *const *functions, size_t count);

#endif
