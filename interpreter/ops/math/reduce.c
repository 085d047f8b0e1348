/* Reductions along axes: Sum, Mean, EuclideanNorm, Prod, Max, Min, All and Any.
 *
 * reduce-in-double (docs/numerics.md): real numbers accumulate in double, complex ones in complex double, integers
 * in 64 bits with wrap-around; the result is rounded to the dtype once. The order of the additions depends only on
 * the shape, so results do not depend on threads or vector width. */
#include "interpreter/kernels/extreme.h"
#include "interpreter/kernels/rowwise.h"
#include "interpreter/ops/support/axes.h"
#include "interpreter/kernel.h"
#include "interpreter/ops/families.h"
#include "base/alloc.h"
#include "base/tensor/number.h"

#include <complex.h>
#include <math.h>
#include <string.h>

enum reduction { SUM, MEAN, NORM, PROD, MAX, MIN }; /* NORM: sum of squares */
enum domain { REAL, SIGNED, UNSIGNED, COMPLEX };
enum { CHUNK = 512, LANES = 8 };

/* The aux value of an op row. */
struct reduce {
    enum reduction reduction;
};

typedef _Complex double complex128;

/* Accumulators, one per output element; the member in use depends on the domain. */
union accumulators {
    double *real;
    uint64_t *bits;
    complex128 *pairs;
};

static enum domain domain_of(int dtype) {
    switch (tare_dtype_get(dtype)->class) {
    case TARE_CLASS_FLOAT:
        return REAL;
    case TARE_CLASS_COMPLEX:
        return COMPLEX;
    case TARE_CLASS_UNSIGNED:
    case TARE_CLASS_BOOL:
        return UNSIGNED;
    default:
        return dtype == TARE_DT_QUINT8 || dtype == TARE_DT_QUINT16 ? UNSIGNED : SIGNED;
    }
}

/* ---- reading a chunk of elements into the accumulation domain ---- */

static void read_reals(double *to, const struct tare_tensor *from, int64_t first, int64_t n) {
    switch (from->dtype) {
    case TARE_DT_FLOAT:
        for (int64_t i = 0; i < n; i++)
            to[i] = (double)TARE_CONST_DATA(float, from)[first + i];
        return;
    case TARE_DT_DOUBLE:
        memcpy(to, TARE_CONST_DATA(double, from) + first, (size_t)n * sizeof *to);
        return;
    default:
        for (int64_t i = 0; i < n; i++)
            to[i] = tare_tensor_get_f64(from, first + i);
    }
}

static void read_bits(uint64_t *to, const struct tare_tensor *from, int64_t first, int64_t n) {
    if (from->dtype == TARE_DT_INT32) {
        for (int64_t i = 0; i < n; i++)
            to[i] = (uint64_t)TARE_CONST_DATA(int32_t, from)[first + i];
        return;
    }
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint64_t)tare_tensor_get_i64(from, first + i);
}

static void read_complex(complex128 *to, const struct tare_tensor *from, int64_t first, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (from->dtype == TARE_DT_COMPLEX64)
            to[i] = TARE_CONST_DATA(_Complex float, from)[first + i];
        else
            to[i] = TARE_CONST_DATA(complex128, from)[first + i];
    }
}

/* ---- combining: element-wise when the innermost axis is kept, into one value when it is reduced ---- */

static inline double greater(double a, double x) {
    return x > a || isnan(x) ? x : a;
}
static inline double lesser(double a, double x) {
    return x < a || isnan(x) ? x : a;
}

#define EACH(expression)                                                                                               \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        a[i] = (expression);                                                                                           \
    }                                                                                                                  \
    break

static void combine_reals(double *a, const double *x, int64_t n, enum reduction reduction) {
    switch (reduction) {
    case SUM:
    case MEAN:
        EACH(a[i] + x[i]);
    case NORM:
        EACH(a[i] + x[i] * x[i]);
    case PROD:
        EACH(a[i] * x[i]);
    case MAX:
        EACH(greater(a[i], x[i]));
    case MIN:
        EACH(lesser(a[i], x[i]));
    }
}

static void combine_bits(uint64_t *a, const uint64_t *x, int64_t n, enum reduction reduction, bool has_sign) {
    const uint64_t flip = has_sign ? UINT64_C(1) << 63 : 0; /* maps signed order to unsigned order */
    switch (reduction) {
    case SUM:
    case MEAN:
        EACH(a[i] + x[i]);
    case NORM:
        EACH(a[i] + x[i] * x[i]);
    case PROD:
        EACH(a[i] * x[i]);
    case MAX:
        EACH((x[i] ^ flip) > (a[i] ^ flip) ? x[i] : a[i]);
    case MIN:
        EACH((x[i] ^ flip) < (a[i] ^ flip) ? x[i] : a[i]);
    }
}

static void combine_complex(complex128 *a, const complex128 *x, int64_t n, enum reduction reduction) {
    switch (reduction) {
    case NORM:
        EACH(a[i] + creal(x[i]) * creal(x[i]) + cimag(x[i]) * cimag(x[i]));
    case PROD:
        EACH(a[i] * x[i]);
    default:
        EACH(a[i] + x[i]);
    }
}
#undef EACH

/* Reduces a row to one value: element i is accumulated in lane i mod 8, then the lanes are combined in order. */
static double fold_reals(const double *x, int64_t n, enum reduction reduction) {
    double lanes[LANES];
    const double start = reduction == PROD ? 1 : reduction == MAX ? -INFINITY : reduction == MIN ? INFINITY : 0;
    for (int k = 0; k < LANES; k++)
        lanes[k] = start;
    int64_t i = 0;
    if (reduction == SUM || reduction == MEAN) {
        for (; i + LANES <= n; i += LANES) {
            for (int k = 0; k < LANES; k++)
                lanes[k] += x[i + k];
        }
    } else {
        for (; i + LANES <= n; i += LANES)
            combine_reals(lanes, x + i, LANES, reduction);
    }
    combine_reals(lanes, x + i, n - i, reduction);
    const enum reduction join = reduction == NORM ? SUM : reduction;
    for (int k = 1; k < LANES; k++)
        combine_reals(lanes, lanes + k, 1, join);
    return lanes[0];
}

/* ---- one chunk of a row ---- */

struct job {
    const struct tare_tensor *input;
    enum reduction reduction;
    enum domain domain;
    union accumulators to;
    bool fold; /* the innermost axis is reduced */
};

static void reduce_chunk(const struct job *job, int64_t first, int64_t n, int64_t at) {
    const enum reduction join = job->reduction == NORM ? SUM : job->reduction;
    if (job->domain == REAL) {
        double x[CHUNK];
        read_reals(x, job->input, first, n);
        if (job->fold) x[0] = fold_reals(x, n, job->reduction);
        combine_reals(job->to.real + at, x, job->fold ? 1 : n, job->fold ? join : job->reduction);
    } else if (job->domain == COMPLEX) {
        complex128 x[CHUNK];
        read_complex(x, job->input, first, n);
        for (int64_t i = 0; job->fold && i < n; i++)
            combine_complex(job->to.pairs + at, x + i, 1, job->reduction);
        if (!job->fold) combine_complex(job->to.pairs + at, x, n, job->reduction);
    } else {
        uint64_t x[CHUNK];
        read_bits(x, job->input, first, n);
        for (int64_t i = 0; job->fold && i < n; i++)
            combine_bits(job->to.bits + at, x + i, 1, job->reduction, job->domain == SIGNED);
        if (!job->fold) combine_bits(job->to.bits + at, x, n, job->reduction, job->domain == SIGNED);
    }
}

/* The extreme of a row of float elements; false if they must be compared in the order of reduce_chunk. */
static bool fold_extreme(const struct job *job, int64_t first, int64_t n, int64_t at) {
    float extreme;
    if (!job->fold || job->input->dtype != TARE_DT_FLOAT || (job->reduction != MAX && job->reduction != MIN) ||
        !tare_extreme(&extreme, TARE_CONST_DATA(float, job->input) + first, n, job->reduction == MAX))
        return false;
    const double x = (double)extreme;
    combine_reals(job->to.real + at, &x, 1, job->reduction);
    return true;
}

/* Sums of floats whose last dimension is kept: the rows that are added together are adjacent. */
static void sum_rows(const struct job *job, const struct tare_axes_plan *plan) {
    const float *from = TARE_CONST_DATA(float, job->input);
    struct tare_axes_walk walk = { .output = 0 };
    const int64_t together = plan->runs > 1 ? plan->sizes[1] : 1;
    for (int64_t row = 0; row < plan->rows; row += together, from += together * plan->inner) {
        tare_rowwise_sum(job->to.real + walk.output, from, together, plan->inner);
        for (int64_t i = 0; i < together; i++)
            tare_axes_next(&walk, plan);
    }
}

static void reduce_all(struct job *job, const struct tare_axes_plan *plan) {
    struct tare_axes_walk walk = { .output = 0 };
    job->fold = plan->reduced[0];
    if (!job->fold && job->input->dtype == TARE_DT_FLOAT && (job->reduction == SUM || job->reduction == MEAN)) {
        sum_rows(job, plan);
        return;
    }
    for (int64_t row = 0; row < plan->rows; row++) {
        const bool done = fold_extreme(job, row * plan->inner, plan->inner, walk.output);
        for (int64_t i = 0; !done && i < plan->inner; i += CHUNK) {
            const int64_t n = plan->inner - i < CHUNK ? plan->inner - i : CHUNK;
            reduce_chunk(job, row * plan->inner + i, n, walk.output + (job->fold ? 0 : i));
        }
        tare_axes_next(&walk, plan);
    }
}

/* ---- initial values and finalization ---- */

/* The maximum or minimum of an integer dtype as 64 bits. */
static uint64_t integer_limit(int dtype, bool greatest) {
    const int bits = dtype == TARE_DT_BOOL ? 1 : (int)tare_dtype_size(dtype) * 8;
    if (domain_of(dtype) == UNSIGNED) return greatest ? UINT64_MAX >> (64 - bits) : 0;
    const uint64_t top = (UINT64_C(1) << (bits - 1)) - 1;
    return greatest ? top : ~top;
}

static void start(const struct job *job, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        const enum reduction r = job->reduction;
        if (job->domain == REAL)
            job->to.real[i] = r == PROD ? 1 : r == MAX ? -INFINITY : r == MIN ? INFINITY : 0;
        else if (job->domain == COMPLEX)
            job->to.pairs[i] = r == PROD;
        else
            job->to.bits[i] = r == MAX || r == MIN ? integer_limit(job->input->dtype, r == MIN) : r == PROD;
    }
}

static double finish_real(double value, enum reduction reduction, int64_t count) {
    return reduction == MEAN ? value / (double)count : reduction == NORM ? sqrt(value) : value;
}

static uint64_t finish_bits(uint64_t value, const struct job *job, int64_t count) {
    if (job->reduction == NORM) return (uint64_t)sqrt((double)value);
    if (job->reduction != MEAN || count == 0) return value;
    return job->domain == SIGNED ? (uint64_t)((int64_t)value / count) : value / (uint64_t)count;
}

static complex128 finish_complex(complex128 value, enum reduction reduction, int64_t count) {
    return reduction == MEAN ? value / (double)count : reduction == NORM ? sqrt(creal(value)) : value;
}

static void finish(const struct job *job, struct tare_tensor *to, int64_t reduced) {
    const size_t size = tare_dtype_size(to->dtype);
    for (int64_t i = 0; i < to->elements; i++) {
        if (job->domain == REAL) {
            tare_tensor_set_f64(to, i, finish_real(job->to.real[i], job->reduction, reduced));
        } else if (job->domain == COMPLEX) {
            const complex128 value = finish_complex(job->to.pairs[i], job->reduction, reduced);
            if (to->dtype == TARE_DT_COMPLEX64)
                TARE_DATA(_Complex float, to)[i] = (_Complex float)value;
            else
                TARE_DATA(complex128, to)[i] = value;
        } else {
            const uint64_t value = finish_bits(job->to.bits[i], job, reduced);
            memcpy((char *)to->data + (size_t)i * size, &value, size); /* little-endian: the low bytes */
        }
    }
}

static tare_status run_reduce(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct job job = { .input = input,
                       .reduction = ((const struct reduce *)kernel->op->aux)->reduction,
                       .domain = domain_of(input->dtype) };
    bool reduced[TARE_MAX_RANK];
    struct tare_shape shape;
    struct tare_axes_plan plan;
    TARE_TRY(tare_axes_read(reduced, &kernel->inputs[1], input->shape.rank));
    tare_axes_shape(&shape, &input->shape, reduced, tare_node_bool(kernel->node, "keep_dims", false));
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    struct tare_tensor *output = &kernel->outputs[0];
    int64_t count = 1;
    for (int d = 0; d < input->shape.rank; d++)
        if (reduced[d] && !tare_mul_i64(&count, count, input->shape.dims[d])) count = INT64_MAX; /* of no elements */
    void *memory = tare_arena_calloc(kernel->scratch, (size_t)output->elements, sizeof(complex128));
    if (!memory) return TARE_NO_MEMORY;
    job.to.real = memory;
    start(&job, output->elements);
    tare_axes_plan(&plan, &input->shape, reduced);
    if (input->elements > 0) reduce_all(&job, &plan);
    finish(&job, output, count);
    return TARE_OK;
}

static const struct reduce sum_op = { SUM }, mean_op = { MEAN }, norm_op = { NORM }, prod_op = { PROD },
                           max_op = { MAX }, min_op = { MIN };

#define ROW(op_name, table)                                                                                            \
    { .name = op_name, .infer = tare_axes_infer, .run = run_reduce, .aux = &table, .flags = TARE_OP_REDUCE }
#define BOOL_ROW(op_name, table)                                                                                       \
    { .name = op_name, .infer = tare_axes_infer, .run = run_reduce, .aux = &table }

const struct tare_op tare_ops_reduce[] = {
    ROW("Sum", sum_op),      ROW("Mean", mean_op),    ROW("EuclideanNorm", norm_op),
    ROW("Prod", prod_op),    ROW("Max", max_op),      ROW("Min", min_op),
    BOOL_ROW("All", min_op), BOOL_ROW("Any", max_op), { 0 },
};
