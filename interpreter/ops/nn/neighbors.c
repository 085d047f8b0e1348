/* NearestNeighbors: the centers closest to each point by squared distance, which a k-means estimator uses for
 * prediction. */
#include "interpreter/ops/families.h"
#include "interpreter/ops/support/operand.h"

#include "base/alloc.h"

#include <math.h>
#include <stdlib.h>

/* The number of centers to return, out of `centers`. */
static tare_status expected(int64_t *out, const struct tare_tensor *k, int64_t centers) {
    if (k->elements != 1) return TARE_FAIL(TARE_SHAPE, "k is not a scalar");
    *out = tare_tensor_get_i64(k, 0);
    if (*out < 1) return TARE_FAIL(TARE_INVALID_ARGUMENT, "k must be positive (got %lld)", (long long)*out);
    if (centers >= 0 && *out > centers) *out = centers;
    return TARE_OK;
}

static tare_status infer_neighbors(struct tare_infer *infer) {
    const struct tare_shape *points = &infer->inputs[0], *centers = &infer->inputs[1];
    struct tare_shape out = tare_shape_make(2, (int64_t)-1, (int64_t)-1);
    TARE_TRY(tare_operand_rank(infer, 0, "points", 2));
    TARE_TRY(tare_operand_rank(infer, 1, "centers", 2));
    if (points->rank == 2) out.dims[0] = points->dims[0];
    if (infer->input_values[2] && centers->rank == 2 && centers->dims[0] >= 0)
        TARE_TRY(expected(&out.dims[1], infer->input_values[2], centers->dims[0]));
    if (points->rank == 2 && centers->rank == 2 && points->dims[1] >= 0 && centers->dims[1] >= 0 &&
        points->dims[1] != centers->dims[1])
        return TARE_FAIL(TARE_SHAPE, "points have %lld coordinates, centers %lld", (long long)points->dims[1],
                         (long long)centers->dims[1]);
    infer->outputs[0] = infer->outputs[1] = out;
    return TARE_OK;
}

struct neighbor {
    double distance;
    int64_t center;
};

static int nearer(const void *a, const void *b) {
    const struct neighbor *x = a, *y = b;
    if (isnan(x->distance) != isnan(y->distance)) return isnan(x->distance) ? 1 : -1;
    if (x->distance != y->distance && !isnan(x->distance)) return x->distance < y->distance ? -1 : 1;
    return (x->center > y->center) - (x->center < y->center);
}

static tare_status run_neighbors(struct tare_kernel *kernel) {
    const struct tare_tensor *points = &kernel->inputs[0], *centers = &kernel->inputs[1];
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_INT64, &shapes[0]));
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_FLOAT, &shapes[0]));
    const int64_t count = centers->shape.dims[0], width = centers->shape.dims[1], k = shapes[0].dims[1];
    struct neighbor *all = TARE_NEW_ARRAY(kernel->scratch, struct neighbor, (size_t)count);
    if (!all) return TARE_NO_MEMORY;
    for (int64_t p = 0; p < points->shape.dims[0]; p++) {
        const float *point = TARE_CONST_DATA(float, points) + p * width;
        for (int64_t c = 0; c < count; c++) {
            const float *center = TARE_CONST_DATA(float, centers) + c * width;
            double sum = 0;
            for (int64_t i = 0; i < width; i++)
                sum += ((double)point[i] - (double)center[i]) * ((double)point[i] - (double)center[i]);
            all[c] = (struct neighbor){ sum, c };
        }
        if (count > 0) qsort(all, (size_t)count, sizeof *all, nearer);
        for (int64_t i = 0; i < k; i++) {
            TARE_DATA(int64_t, &kernel->outputs[0])[p * k + i] = all[i].center;
            TARE_DATA(float, &kernel->outputs[1])[p * k + i] = (float)all[i].distance;
        }
    }
    return TARE_OK;
}

const struct tare_op tare_ops_neighbors[] = {
    { .name = "NearestNeighbors", .infer = infer_neighbors, .run = run_neighbors },
    { 0 },
};
