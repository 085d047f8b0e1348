/* FFTND, IFFTND, RFFTND and IRFFTND: Fourier transforms over given axes with given lengths. The input is truncated
 * or padded with zeros first. Computed in complex double and rounded once; a real spectrum contains half of the last
 * of the axes. */
#include "base/alloc.h"
#include "interpreter/kernels/fourier.h"
#include "interpreter/ops/support/axes.h"
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/move.h"
#include "interpreter/ops/support/operand.h"

#include <complex.h>
#include <string.h>

typedef _Complex double complex128;

enum transform { COMPLEX_TO_COMPLEX, REAL_TO_COMPLEX, COMPLEX_TO_REAL };
struct fourier_nd {
    enum transform kind;
    bool inverse;
};
static const struct fourier_nd forward = { COMPLEX_TO_COMPLEX, false }, backward = { COMPLEX_TO_COMPLEX, true },
                               from_real = { REAL_TO_COMPLEX, false }, to_real = { COMPLEX_TO_REAL, true };

/* The transformed axes in order, and the transform lengths along all dimensions of the input. */
struct plan {
    int count, axes[TARE_MAX_RANK];
    struct tare_shape box;
};

static int64_t half_of(int64_t length) {
    return length == 0 ? 0 : length / 2 + 1;
}

static tare_status open_plan(struct plan *plan, const struct tare_shape *input, const struct tare_tensor *lengths,
                             const struct tare_tensor *axes) {
    bool seen[TARE_MAX_RANK] = { false };
    *plan = (struct plan){ .box = *input };
    if (axes->shape.rank != 1 || lengths->shape.rank != 1 || axes->elements != lengths->elements)
        return TARE_FAIL(TARE_SHAPE, "fft_length and axes must have the same shape");
    if (axes->elements < 1 || axes->elements > input->rank)
        return TARE_FAIL(TARE_SHAPE, "%lld axes for an input of rank %d", (long long)axes->elements, input->rank);
    plan->count = (int)axes->elements;
    for (int i = 0; i < plan->count; i++) {
        const int64_t length = tare_tensor_get_i64(lengths, i);
        TARE_TRY(tare_axis_resolve(&plan->axes[i], tare_tensor_get_i64(axes, i), input->rank));
        if (seen[plan->axes[i]]) return TARE_FAIL(TARE_INVALID_ARGUMENT, "axes contains %d twice", plan->axes[i]);
        if (length < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "fft_length[%d] must >= 0, but got: %lld", i, (long long)length);
        seen[plan->axes[i]] = true;
        plan->box.dims[plan->axes[i]] = length;
    }
    return TARE_OK;
}

static struct tare_shape output_of(const struct plan *plan, enum transform kind) {
    struct tare_shape out = plan->box;
    if (kind == REAL_TO_COMPLEX) {
        int64_t *last = &out.dims[plan->axes[plan->count - 1]];
        *last = half_of(*last);
    }
    return out;
}

static tare_status infer_nd(struct tare_infer *infer) {
    struct plan plan;
    if (infer->inputs[0].rank < 0) return TARE_OK;
    infer->outputs[0] = tare_operand_unknown_dims(infer->inputs[0].rank);
    if (!infer->input_values[1] || !infer->input_values[2]) return TARE_OK;
    TARE_TRY(open_plan(&plan, &infer->inputs[0], infer->input_values[1], infer->input_values[2]));
    infer->outputs[0] = output_of(&plan, ((const struct fourier_nd *)infer->node->def->row->aux)->kind);
    return TARE_OK;
}

/* Copies the elements that exist in both `from` and `to`; strides in elements. */
static void copy_box(complex128 *box, const struct tare_shape *shape, struct tare_tensor *tensor, bool into_box) {
    int64_t at[TARE_MAX_RANK] = { 0 }, box_steps[TARE_MAX_RANK], steps[TARE_MAX_RANK];
    tare_move_strides(box_steps, shape);
    tare_move_strides(steps, &tensor->shape);
    for (int64_t i = 0; i < tensor->elements; i++) {
        int64_t place = 0;
        for (int d = 0; d < shape->rank; d++)
            place = place < 0 || at[d] >= shape->dims[d] ? -1 : place + at[d] * box_steps[d];
        if (place >= 0 && into_box) box[place] = tare_tensor_get_c128(tensor, i);
        if (place >= 0 && !into_box) tare_tensor_set_c128(tensor, i, box[place]);
        for (int d = shape->rank - 1; d >= 0 && ++at[d] == tensor->shape.dims[d]; d--)
            at[d] = 0;
    }
}

/* Transforms one axis of the box; `half`: the line is the half spectrum of a real signal, which is completed first. */
static tare_status transform_axis(complex128 *box, const struct tare_shape *shape, int axis, bool inverse, bool half,
                                  struct tare_arena *scratch) {
    const struct tare_axis_split split = tare_axis_split(shape, axis);
    const int64_t n = split.size;
    struct tare_fourier *fourier = tare_fourier_new(scratch, n);
    complex128 *line = TARE_NEW_ARRAY(scratch, complex128, (size_t)n);
    if (!fourier || !line) return TARE_NO_MEMORY;
    for (int64_t i = 0; i < split.outer * split.inner; i++) {
        complex128 *first = box + i / split.inner * n * split.inner + i % split.inner;
        for (int64_t k = 0; k < n; k++)
            line[k] = first[k * split.inner];
        for (int64_t k = half ? half_of(n) : n; k < n; k++)
            line[k] = conj(line[n - k]);
        if (half) line[0] = creal(line[0]);
        if (half && n % 2 == 0) line[n / 2] = creal(line[n / 2]);
        tare_fourier_run(fourier, line, inverse);
        for (int64_t k = 0; k < n; k++)
            first[k * split.inner] = line[k];
    }
    return TARE_OK;
}

static tare_status run_nd(struct tare_kernel *kernel) {
    const struct fourier_nd *op = kernel->op->aux;
    struct tare_tensor input = kernel->inputs[0]; /* a view */
    const int to = tare_dtype_base(kernel->node->output_dtypes[0]);
    const bool wide = input.dtype == TARE_DT_COMPLEX128 || input.dtype == TARE_DT_DOUBLE;
    struct plan plan;
    int64_t elements;
    if (wide != (to == TARE_DT_COMPLEX128 || to == TARE_DT_DOUBLE))
        return TARE_FAIL(TARE_TYPE, "Wrong types for FFT: in=%s out=%s", tare_dtype_name(input.dtype),
                         tare_dtype_name(to));
    TARE_TRY(open_plan(&plan, &input.shape, &kernel->inputs[1], &kernel->inputs[2]));
    const struct tare_shape shape = output_of(&plan, op->kind);
    TARE_TRY(tare_shape_elements(&elements, &plan.box));
    TARE_TRY(tare_kernel_output(kernel, 0, to, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    complex128 *box = TARE_NEW_ARRAY(kernel->scratch, complex128, (size_t)elements);
    if (!box) return TARE_NO_MEMORY;
    copy_box(box, &plan.box, &input, true);
    for (int i = 0; i < plan.count; i++) {
        const bool half = op->kind == COMPLEX_TO_REAL && i == plan.count - 1;
        TARE_TRY(transform_axis(box, &plan.box, plan.axes[i], op->inverse, half, kernel->scratch));
    }
    copy_box(box, &plan.box, &kernel->outputs[0], false);
    return TARE_OK;
}

#define ROW(op_name, table)                                                                                            \
    { .name = op_name, .infer = infer_nd, .run = run_nd, .aux = &table }

const struct tare_op tare_ops_fourier_nd[] = {
    ROW("FFTND", forward), ROW("IFFTND", backward), ROW("RFFTND", from_real), ROW("IRFFTND", to_real), { 0 },
};
