/* The op families: each is a file interpreter/ops/<family>.c that defines `const struct tare_op tare_ops_<family>[]`,
 * ended by a row without name. Sorted, one a line. */
#ifndef TARE_INTERPRETER_OPS_FAMILIES_H
#define TARE_INTERPRETER_OPS_FAMILIES_H

#include "interpreter/kernel.h"

/* clang-format off */
#define TARE_OP_FAMILIES(X) \
    X(activation) \
    X(addn) \
    X(arg) \
    X(audio) \
    X(batching) \
    X(bias) \
    X(binary) \
    X(bins) \
    X(call) \
    X(cast) \
    X(checkpoint) \
    X(compare) \
    X(complex) \
    X(concat) \
    X(control) \
    X(conv) \
    X(conv_transposed) \
    X(count) \
    X(crop) \
    X(cross_entropy) \
    X(ctc) \
    X(cumulative) \
    X(custom_call) \
    X(data_format) \
    X(decompose) \
    X(diagonal) \
    X(distribution) \
    X(draw) \
    X(edit_distance) \
    X(einsum) \
    X(file) \
    X(fill) \
    X(fourier) \
    X(fourier_nd) \
    X(fused_conv) \
    X(gather) \
    X(gradient) \
    X(image) \
    X(image_file) \
    X(index_shuffle) \
    X(inplace) \
    X(linalg) \
    X(matmul) \
    X(morphology) \
    X(neighbors) \
    X(nms) \
    X(norm) \
    X(nth_element) \
    X(pad) \
    X(parse) \
    X(parse_sequence) \
    X(partition) \
    X(pool) \
    X(project) \
    X(quantize) \
    X(ragged) \
    X(ragged_dense) \
    X(ragged_variant) \
    X(random) \
    X(reduce) \
    X(reference) \
    X(regex) \
    X(regex_split) \
    X(resize) \
    X(rnn) \
    X(scatter) \
    X(search) \
    X(segment) \
    X(select) \
    X(serialize) \
    X(set_operations) \
    X(shape) \
    X(slice) \
    X(softmax) \
    X(solve) \
    X(space_batch) \
    X(space_depth) \
    X(sparse) \
    X(sparse_combine) \
    X(sparse_count) \
    X(sparse_cross) \
    X(sparse_math) \
    X(sparse_product) \
    X(sparse_reduce) \
    X(sparse_serialize) \
    X(special) \
    X(split) \
    X(string) \
    X(string_format) \
    X(string_number) \
    X(string_split) \
    X(structure) \
    X(table) \
    X(tensor_array) \
    X(tensor_bundle) \
    X(tensor_list) \
    X(tile) \
    X(tokenize) \
    X(tpu) \
    X(transpose) \
    X(truncated_normal) \
    X(unary) \
    X(unicode) \
    X(unicode_form) \
    X(unicode_script) \
    X(uniform_quantized) \
    X(unique) \
    X(variable) \
    X(window_gradient) \
    X(wordpiece) \
    X(xla_conv) \
    X(xla_dot) \
    X(xla_gather) \
    X(xla_move) \
    X(xla_random) \
    X(xla_reduce) \
    X(xla_scatter) \
    X(xla_shape)
/* clang-format on */

#define X(family) extern const struct tare_op tare_ops_##family[];
TARE_OP_FAMILIES(X)
#undef X

#endif
