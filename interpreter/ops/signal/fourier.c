/* FFT, IFFT, RFFT and IRFFT in one to three dimensions, over the last axes. Computed in complex double and rounded
 * once. */
#include "base/alloc.h"
#include "interpreter/kernel.h"
#include "interpreter/kernels/fourier.h"
#include "interpreter/ops/families.h"

#include <complex.h>
#include <string.h>

typedef _Complex double complex128;

enum transform { COMPLEX_TO_COMPLEX, REAL_TO_COMPLEX, COMPLEX_TO_REAL };
struct fourier_op {
    enum transform kind;
    int axes;
    bool inverse;
};

/* ---- shapes ---- */

/* Lengths of the transform: those of the input, or fft_length; -1 if unknown. */
static tare_status read_lengths(int64_t *lengths, const struct fourier_op *op, const struct tare_shape *input,
                                const struct tare_tensor *fft_length) {
    for (int i = 0; i < op->axes; i++)
        lengths[i] = op->kind == COMPLEX_TO_COMPLEX ? input->dims[input->rank - op->axes + i] : -1;
    if (op->kind == COMPLEX_TO_COMPLEX || !fft_length) return TARE_OK;
    if (fft_length->shape.rank != 1 || fft_length->elements != op->axes)
        return TARE_FAIL(TARE_SHAPE, "fft_length must have shape [%d]", op->axes);
    for (int i = 0; i < op->axes; i++) {
        lengths[i] = tare_tensor_get_i64(fft_length, i);
        if (lengths[i] < 0)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "fft_length[%d] must >= 0, but got: %lld", i,
                             (long long)lengths[i]);
    }
    return TARE_OK;
}

/* Number of elements in the half spectrum of a real signal of this length: the others are conjugates. */
static int64_t half_of(int64_t length) {
    return length < 0 ? -1 : length == 0 ? 0 : length / 2 + 1;
}

static tare_status output_shape(struct tare_shape *out, const struct fourier_op *op, const struct tare_shape *input,
                                const int64_t *lengths) {
    *out = *input;
    for (int i = 0; i < op->axes; i++) {
        const int d = input->rank - op->axes + i;
        const bool last = i == op->axes - 1;
        const int64_t needed = last && op->kind == COMPLEX_TO_REAL ? half_of(lengths[i]) : lengths[i];
        if (needed >= 0 && input->dims[d] >= 0 && input->dims[d] < needed)
            return TARE_FAIL(TARE_INVALID_ARGUMENT,
                             "Input dimension %d must have length of at least %lld but got: %lld", d, (long long)needed,
                             (long long)input->dims[d]);
        out->dims[d] = last && op->kind == REAL_TO_COMPLEX ? half_of(lengths[i]) : lengths[i];
    }
    return TARE_OK;
}

static tare_status infer_fourier(struct tare_infer *infer) {
    const struct fourier_op *op = infer->node->def->row->aux;
    const struct tare_shape *input = &infer->inputs[0];
    int64_t lengths[3];
    if (input->rank < 0) return TARE_OK;
    if (input->rank < op->axes) return TARE_FAIL(TARE_SHAPE, "Input must have rank of at least %d", op->axes);
    TARE_TRY(read_lengths(lengths, op, input, infer->n_inputs > 1 ? infer->input_values[1] : NULL));
    return output_shape(&infer->outputs[0], op, input, lengths);
}

/* ---- one transform of `axes` dimensions ---- */

struct job {
    const struct fourier_op *op;
    struct tare_fourier *fourier[3];
    int64_t lengths[3]; /* outer axes first; unused ones are 1 */
    int64_t elements;
    complex128 *data, *line;
};

static tare_status open_job(struct job *job, struct tare_kernel *kernel, const int64_t *lengths) {
    int64_t longest = 1;
    job->elements = 1;
    for (int i = 0; i < 3; i++) {
        const int own = i - (3 - job->op->axes);
        job->lengths[i] = own < 0 ? 1 : lengths[own];
        if (!tare_mul_i64(&job->elements, job->elements, job->lengths[i]))
            return TARE_FAIL(TARE_SHAPE, "the transform is too large");
        if (job->lengths[i] > longest) longest = job->lengths[i];
        job->fourier[i] = job->lengths[i] > 0 ? tare_fourier_new(kernel->scratch, job->lengths[i]) : NULL;
        if (job->lengths[i] > 0 && !job->fourier[i]) return TARE_NO_MEMORY;
    }
    job->data = TARE_NEW_ARRAY(kernel->scratch, complex128, (size_t)job->elements);
    job->line = TARE_NEW_ARRAY(kernel->scratch, complex128, (size_t)longest);
    return job->data && job->line ? TARE_OK : TARE_NO_MEMORY;
}

static void transform_axis(struct job *job, int axis) {
    const int64_t n = job->lengths[axis];
    int64_t inner = 1;
    for (int i = axis + 1; i < 3; i++)
        inner *= job->lengths[i];
    if (n == 1) return;
    for (int64_t first = 0; first < job->elements; first++) {
        if (first / inner % n != 0) continue;
        for (int64_t k = 0; k < n; k++)
            job->line[k] = job->data[first + k * inner];
        tare_fourier_run(job->fourier[axis], job->line, job->op->inverse);
        for (int64_t k = 0; k < n; k++)
            job->data[first + k * inner] = job->line[k];
    }
}

static complex128 read_number(const struct tare_tensor *tensor, int64_t i) {
    switch (tensor->dtype) {
    case TARE_DT_COMPLEX64:
        return (complex128)TARE_CONST_DATA(_Complex float, tensor)[i];
    case TARE_DT_COMPLEX128:
        return TARE_CONST_DATA(complex128, tensor)[i];
    default:
        return tare_tensor_get_f64(tensor, i);
    }
}

static void write_number(struct tare_tensor *tensor, int64_t i, complex128 value) {
    switch (tensor->dtype) {
    case TARE_DT_COMPLEX64:
        TARE_DATA(_Complex float, tensor)[i] = (_Complex float)value;
        break;
    case TARE_DT_COMPLEX128:
        TARE_DATA(complex128, tensor)[i] = value;
        break;
    case TARE_DT_FLOAT:
        TARE_DATA(float, tensor)[i] = (float)creal(value);
        break;
    default:
        TARE_DATA(double, tensor)[i] = creal(value);
    }
}

/* Reads the dimensions of the transformed axes, padded to three; returns their product. */
static int64_t last_dims(int64_t dims[3], const struct tare_shape *shape, int axes) {
    int64_t product = 1;
    for (int i = 0; i < 3; i++) {
        const int own = i - (3 - axes);
        dims[i] = own < 0 ? 1 : shape->dims[shape->rank - axes + own];
        product *= dims[i];
    }
    return product;
}

/* Index of element `i` of the job's box in a box with other dimensions; -1 if it is outside. */
static int64_t place_in(const int64_t dims[3], const struct job *job, int64_t i) {
    int64_t at[3], place = 0;
    for (int d = 3; d-- > 0;) {
        at[d] = i % job->lengths[d];
        i /= job->lengths[d];
    }
    for (int d = 0; d < 3; d++) {
        if (at[d] >= dims[d]) return -1;
        place = place * dims[d] + at[d];
    }
    return place;
}

/* Fills the missing half of the last axis with conjugates in reverse order. */
static void extend_half(struct job *job) {
    const int64_t n = job->lengths[2];
    for (int64_t row = 0; row < job->elements; row += n) {
        for (int64_t k = half_of(n); k < n; k++)
            job->data[row + k] = conj(job->data[row + n - k]);
        job->data[row] = creal(job->data[row]);
        if (n % 2 == 0) job->data[row + n / 2] = creal(job->data[row + n / 2]);
    }
}

static void transform_block(struct job *job, struct tare_tensor *to, int64_t to_first, const int64_t to_dims[3],
                            const struct tare_tensor *from, int64_t from_first, const int64_t from_dims[3]) {
    for (int64_t i = 0; i < job->elements; i++) {
        const int64_t place = place_in(from_dims, job, i);
        job->data[i] = place < 0 ? 0 : read_number(from, from_first + place);
    }
    for (int axis = 0; axis < 2; axis++)
        transform_axis(job, axis);
    if (job->op->kind == COMPLEX_TO_REAL) extend_half(job);
    transform_axis(job, 2);
    for (int64_t i = 0; i < job->elements; i++) {
        const int64_t place = place_in(to_dims, job, i);
        if (place >= 0) write_number(to, to_first + place, job->data[i]);
    }
}

static tare_status run_fourier(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct job job = { .op = kernel->op->aux };
    struct tare_shape shape;
    int64_t lengths[3], from_dims[3], to_dims[3];
    const int to = tare_dtype_base(kernel->node->output_dtypes[0]);
    const bool wide = input->dtype == TARE_DT_COMPLEX128 || input->dtype == TARE_DT_DOUBLE;
    if (wide != (to == TARE_DT_COMPLEX128 || to == TARE_DT_DOUBLE))
        return TARE_FAIL(TARE_TYPE, "Wrong types for FFT: in=%s out=%s", tare_dtype_name(input->dtype),
                         tare_dtype_name(to));
    if (input->shape.rank < job.op->axes)
        return TARE_FAIL(TARE_SHAPE, "Input must have rank of at least %d", job.op->axes);
    TARE_TRY(read_lengths(lengths, job.op, &input->shape, kernel->n_inputs > 1 ? &kernel->inputs[1] : NULL));
    TARE_TRY(output_shape(&shape, job.op, &input->shape, lengths));
    TARE_TRY(tare_kernel_output(kernel, 0, to, &shape));
    struct tare_tensor *output = &kernel->outputs[0];
    if (output->elements == 0) return TARE_OK;
    TARE_TRY(open_job(&job, kernel, lengths));
    const int64_t from = last_dims(from_dims, &input->shape, job.op->axes);
    const int64_t block = last_dims(to_dims, &shape, job.op->axes);
    for (int64_t b = 0; b < output->elements / block; b++)
        transform_block(&job, output, b * block, to_dims, input, b * from, from_dims);
    return TARE_OK;
}

static const struct fourier_op fft_1 = { COMPLEX_TO_COMPLEX, 1, false }, fft_2 = { COMPLEX_TO_COMPLEX, 2, false },
                               fft_3 = { COMPLEX_TO_COMPLEX, 3, false }, ifft_1 = { COMPLEX_TO_COMPLEX, 1, true },
                               ifft_2 = { COMPLEX_TO_COMPLEX, 2, true }, ifft_3 = { COMPLEX_TO_COMPLEX, 3, true },
                               rfft_1 = { REAL_TO_COMPLEX, 1, false }, rfft_2 = { REAL_TO_COMPLEX, 2, false },
                               rfft_3 = { REAL_TO_COMPLEX, 3, false }, irfft_1 = { COMPLEX_TO_REAL, 1, true },
                               irfft_2 = { COMPLEX_TO_REAL, 2, true }, irfft_3 = { COMPLEX_TO_REAL, 3, true };

#define ROW(op_name, table)                                                                                            \
    { .name = op_name, .infer = infer_fourier, .run = run_fourier, .aux = &table }

const struct tare_op tare_ops_fourier[] = {
    ROW("FFT", fft_1),
    ROW("FFT2D", fft_2),
    ROW("FFT3D", fft_3),
    ROW("IFFT", ifft_1),
    ROW("IFFT2D", ifft_2),
    ROW("IFFT3D", ifft_3),
    ROW("BatchFFT", fft_1),
    ROW("BatchFFT2D", fft_2),
    ROW("BatchFFT3D", fft_3),
    ROW("BatchIFFT", ifft_1),
    ROW("BatchIFFT2D", ifft_2),
    ROW("BatchIFFT3D", ifft_3),
    ROW("RFFT", rfft_1),
    ROW("RFFT2D", rfft_2),
    ROW("RFFT3D", rfft_3),
    ROW("IRFFT", irfft_1),
    ROW("IRFFT2D", irfft_2),
    ROW("IRFFT3D", irfft_3),
    { 0 },
};
