/* Hessians of layer inputs: for a layer that multiplies rows x of K numbers by its weight, the sums over all rows of
 * all samples of x_i x_j and of x_i (up to a factor, the second derivatives of the squared output error with respect to
 * a column of the weight). Rows are those of a matrix, or the elements of a convolution's window at each position
 * (zeros in padding).
 *
 * Values are first rounded to integer multiples of `step`, a power of two chosen in advance from the calibration's
 * extremes: at most 2^13 steps. Products and their sums are then integers below 2^53, which doubles add without
 * rounding, so the sums do not depend on order, threads or batches. The values are rounded to 1/8192 of the largest
 * magnitude. Memory is 8 K² bytes (K rounded up to a multiple of 8), allocated before the run. A grouped convolution
 * has one Hessian per group, for the K elements of its window in the group's channels. */
#ifndef TARE_CALIB_HESSIAN_H
#define TARE_CALIB_HESSIAN_H

#include "graph/graph.h"
#include "base/tensor/tensor.h"

#include <stdbool.h>
#include <stdint.h>

enum { TARE_HESSIAN_WINDOW = 3 };

/* How rows map to the elements of the activation. */
struct tare_hessian_form {
    int spatial; /* of a convolution: 2 or 3, the activation is [batch, spatial…, channels]; 0: the activation's last
                    axes are the rows */
    int64_t channels; /* of a convolution's input; otherwise K */
    struct tare_hessian_window {
        int64_t size, stride, dilation, low, high, base; /* zeros between the elements: base - 1; base 0 is 1 */
    } window[TARE_HESSIAN_WINDOW];
    int64_t groups; /* of a convolution's channels; 0: one */
    int rank;       /* of an activation with another order of axes: axis i above is its axis order[i]; 0: none */
    int order[TARE_MAX_RANK];
};

struct tare_hessian {
    char *function, *node; /* of the activation; function "" is the main graph */
    int output;
    int64_t entry; /* of its counter (calib/observed.h), for an iteration of a loop; below 0: all */
    struct tare_hessian_form form;
    int64_t size;   /* K */
    int64_t groups; /* 1 or more */
    double step;
    int64_t rows;     /* counted */
    int64_t stride;   /* of `sums`: K, or a little more */
    double *sums;     /* by group: size rows of stride; only j >= i is right, in step² */
    double *row_sums; /* by group: stride; in steps */
};

struct tare_hessians; /* a set of Hessians; freed by tare_hessians_free */

struct tare_hessians *tare_hessians_new(void);
void tare_hessians_free(struct tare_hessians *set); /* by the last owner; NULL is fine */
/* Adds an owner, who releases the set with tare_hessians_free; NULL is fine. Thread-safe. */
struct tare_hessians *tare_hessians_share(struct tare_hessians *set);
/* K of a form. */
int64_t tare_hessian_size(const struct tare_hessian_form *form);
size_t tare_hessian_bytes(const struct tare_hessian_form *form);
/* Adds a Hessian for `edge` unless it exists; `reach` is the largest magnitude of the activation. */
tare_status tare_hessians_add(struct tare_hessians *set, struct tare_edge edge, int64_t entry,
                              const struct tare_hessian_form *form, double reach) TARE_WARN_UNUSED;
size_t tare_hessians_count(const struct tare_hessians *set);
size_t tare_hessians_total_bytes(const struct tare_hessians *set);
/* Found by names, so it works for any copy of the model; NULL if there is none or it has no rows. */
const struct tare_hessian *tare_hessians_find(const struct tare_hessians *set, struct tare_edge edge, int64_t entry,
                                              const struct tare_hessian_form *form);

/* True if a value is requested. Compares node pointers: `node` must belong to the model that the edges were added
 * from. */
bool tare_hessians_want(const struct tare_hessians *set, const struct tare_node *node, size_t output);
/* Adds the rows of an execution's value to all Hessians of that output and entry (below 0: it is not known).
 * Thread-safe. Values are clamped to `reach`, NaN counts as 0. TARE_SHAPE if the value does not match the form;
 * TARE_UNSUPPORTED beyond 2^27 rows. */
tare_status tare_hessians_observe(struct tare_hessians *set, const struct tare_node *node, size_t output, int64_t entry,
                                  const struct tare_tensor *value) TARE_WARN_UNUSED;

/* sums[i * size + j] += Σ_r x[r * stride + i] x[r * stride + j] for j >= i; may change others. `stride` is a multiple
 * of 8 not below size, columns from `size` on are zero; `sums` has rows of `stride`. */
typedef void tare_hessian_update(double *sums, int64_t size, int64_t stride, const double *x, int64_t rows);
tare_hessian_update tare_hessian_update_plain, tare_hessian_update_blas; /* blas: requires tare_lapack_open */

#endif
