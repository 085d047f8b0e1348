/* The sums of products of a chunk of rows. All terms are integers that doubles represent exactly, so every order of
 * addition yields the same bits, OpenBLAS's on any CPU included. */
#include "calib/hessian.h"
#include "interpreter/kernels/lapack.h"

void tare_hessian_update_plain(double *sums, int64_t size, int64_t stride, const double *x, int64_t rows) {
    for (int64_t r = 0; r < rows; r++, x += stride)
        for (int64_t i = 0; i < size; i++) {
            const double left = x[i];
            double *to = &sums[i * stride];
            if (left == 0) continue; /* about half of them after ReLU */
            for (int64_t j = i; j < size; j++)
                to[j] += left * x[j];
        }
}

/* In memory the sums for j >= i are the lower triangle of LAPACK's matrix. */
void tare_hessian_update_blas(double *sums, int64_t size, int64_t stride, const double *x, int64_t rows) {
    tare_lapack_syrk(TARE_DT_DOUBLE, "LN", (int)size, (int)rows, x, (int)stride, sums, (int)stride);
}
