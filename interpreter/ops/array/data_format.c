/* DataFormatDimMap and DataFormatVecPermute: converts dimension numbers and per-dimension vectors between data
 * formats. Layout passes insert these ops. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

/* Source and destination format: permutations of the same 4 or 5 letters. */
struct formats {
    const char *from, *to;
    size_t rank;
};

static tare_status read_formats(struct formats *f, const struct tare_node *node) {
    f->from = tare_node_string(node, "src_format", "NHWC");
    f->to = tare_node_string(node, "dst_format", "NCHW");
    f->rank = strlen(f->from);
    bool good = f->rank == strlen(f->to) && (f->rank == 4 || f->rank == 5);
    for (size_t i = 0; good && i < f->rank; i++)
        good = strchr(f->to, f->from[i]) && !strchr(f->from + i + 1, f->from[i]);
    if (good) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Destination and source formats do not match: %s and %s", f->from, f->to);
}

static tare_status run_dim_map(struct tare_kernel *kernel) {
    const struct tare_tensor *x = &kernel->inputs[0];
    struct formats f;
    TARE_TRY(read_formats(&f, kernel->node));
    TARE_TRY(tare_kernel_output(kernel, 0, x->dtype, &x->shape));
    for (int64_t i = 0; i < x->elements; i++) {
        const int64_t rank = (int64_t)f.rank, dim = tare_tensor_get_i64(x, i);
        if (dim < -rank || dim >= rank)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "dimension %lld is not in [-%lld, %lld)", (long long)dim,
                             (long long)rank, (long long)rank);
        tare_text_set_index(&kernel->outputs[0], i, strchr(f.to, f.from[dim < 0 ? dim + rank : dim]) - f.to);
    }
    return TARE_OK;
}

/* Copies the letters of the spatial dimensions. */
static void spatial_letters(char out[8], const char *format) {
    size_t n = 0;
    for (; *format; format++)
        if (*format != 'N' && *format != 'C') out[n++] = *format;
    out[n] = '\0';
}

/* The input is [n] or [n, 2]; n is the rank or the number of spatial dimensions. */
static tare_status run_permute(struct tare_kernel *kernel) {
    const struct tare_tensor *x = &kernel->inputs[0];
    char from[8], to[8];
    struct formats f;
    TARE_TRY(read_formats(&f, kernel->node));
    if (x->shape.rank != 1 && x->shape.rank != 2)
        return TARE_FAIL(TARE_SHAPE, "input must be a vector or 2D tensor, but got shape with rank %d", x->shape.rank);
    const int64_t n = x->shape.dims[0], width = x->shape.rank == 2 ? x->shape.dims[1] : 1;
    if ((n != (int64_t)f.rank && n != (int64_t)f.rank - 2) || (x->shape.rank == 2 && width != 2)) {
        char shape[TARE_SHAPE_TEXT_SIZE];
        return TARE_FAIL(TARE_SHAPE, "input has shape %s (expected %zu or %zu rows, of one number or two)",
                         tare_shape_text(shape, &x->shape), f.rank, f.rank - 2);
    }
    if (n == (int64_t)f.rank) {
        memcpy(from, f.from, f.rank + 1);
        memcpy(to, f.to, f.rank + 1);
    } else {
        spatial_letters(from, f.from);
        spatial_letters(to, f.to);
    }
    TARE_TRY(tare_kernel_output(kernel, 0, x->dtype, &x->shape));
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++)
            tare_text_set_index(&kernel->outputs[0], i * width + k,
                                tare_tensor_get_i64(x, (strchr(from, to[i]) - from) * width + k));
    return TARE_OK;
}

const struct tare_op tare_ops_data_format[] = {
    { .name = "DataFormatDimMap", .infer = tare_infer_same, .run = run_dim_map },
    { .name = "DataFormatVecPermute", .infer = tare_infer_same, .run = run_permute },
    { 0 },
};
