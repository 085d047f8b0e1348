/* Matrix products with weights packed once: C = A·B, A is m×k in rows (activations), B is k×n (weights).
 *
 * Rule dot-fma-chain (docs/numerics.md): an output element is one chain of fused multiply-adds in float, in the order
 * of k, starting at +0. Blocking never splits the chain where a result would be rounded, and vector lanes hold
 * different outputs, so the bits depend neither on m, n, blocking nor on the instruction set. This file does not depend
 * on tensors or ops. */
#ifndef TARE_INTERPRETER_KERNELS_GEMM_H
#define TARE_INTERPRETER_KERNELS_GEMM_H

#include "interpreter/kernels/cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TARE_GEMM_PANEL = 16,       /* columns of B that are packed side by side */
    TARE_GEMM_TILE_ROWS = 14,   /* of the highest tile: a divisor of the lines and images that networks have */
    TARE_GEMM_BLOCK_ROWS = 140, /* rows of A that are gathered at a time, whole tiles */
    TARE_GEMM_BLOCK_K = 512,
};

struct tare_pointwise; /* simd/pointwise.h */

/* Rows of A: either a matrix in memory, or a function that gathers a block of it (a convolution's patches). */
struct tare_gemm_rows {
    const float *data; /* element (i, j) at data[i * stride + j]; NULL: gather */
    int64_t stride;
    /* Writes rows first_row … and columns first_k … into block, `stride` floats per row. */
    void (*gather)(const void *source, float *block, int64_t stride, int64_t first_row, int64_t rows, int64_t first_k,
                   int64_t count_k);
    const void *source;
};

/* The epilogue: applied to each finished element before it is stored, with each step rounded as the separate op would:
 * x * scale and x + bias of its column, (x - mean) * factor + offset of its column, x + addend, then with `relu`
 * x < 0 ? 0 : x and x > limit ? limit : x, or with an activation its function. If it is general, a pass over each tile
 * computes it while the tile is in the first-level cache; otherwise it has no normalization and is computed in
 * registers. Of an epilogue that rounds, NaNs among the sums and in the vectors have a low half of zero, as those of
 * bfloat16 values have. */
struct tare_gemm_epilogue {
    const float *scale;  /* one a column; NULL: none */
    const float *bias;   /* one a column; NULL: none */
    const float *addend; /* as C, with its row stride; NULL: none. C itself only if k is not cut. Not if `rounds` */
    bool relu;
    float limit;     /* INFINITY: none */
    bool is_general; /* the fields below are used */
    bool rounds;     /* to bfloat16: the product, and after each step; `limit` is a bfloat16 value */
    bool
        is_repeated; /* the vectors have eight columns, twice, so that two rows fill a vector of 16; false: not known */
    bool is_bounded; /* the result of tare_epilogue_is_bounded, which allows faster rounding; false: not known */
    bool is_certain; /* all sums are known to be at most TARE_EPILOGUE_MOST in magnitude; false: they are tested */
    const float *mean, *factor, *offset;     /* one a column; NULL: no normalization */
    const uint16_t *addend_bfloat16;         /* instead of `addend`, if `rounds` */
    const struct tare_pointwise *activation; /* computed after the addend, instead of a clamp; not if `rounds` */
    uint16_t *to; /* as C, with its row stride: the bfloat16 result, if `rounds`; C then is scratch. NULL: C */
};

/* True if all but the activation is simple: vectors, addend and clamp in registers. */
static inline bool tare_epilogue_is_simple(const struct tare_gemm_epilogue *epilogue) {
    return !epilogue->is_general || (!epilogue->mean && !epilogue->rounds);
}

/* Number of floats of the packed weights; 0 if the product overflows or a size is negative. */
size_t tare_gemm_packed_floats(int64_t k, int64_t n);
/* Packs B, element (i, j) at b[i * row_stride + j * column_stride], into panels of 16 columns; the last panel is padded
 * with zeros. `packed` should be aligned to 64 bytes. */
void tare_gemm_pack(float *packed, const float *b, int64_t k, int64_t n, int64_t row_stride, int64_t column_stride);
/* As tare_gemm_pack with int8 weights, converted exactly. */
void tare_gemm_pack_int8(float *packed, const int8_t *b, int64_t k, int64_t n, int64_t row_stride,
                         int64_t column_stride);
/* Floats of scratch that tare_gemm needs. */
size_t tare_gemm_scratch_floats(void);
/* C (m×n, ldc floats per row) = A · packed B, with an epilogue (NULL: none). k = 0 yields zeros. */
void tare_gemm(float *c, int64_t ldc, const struct tare_gemm_rows *a, const float *packed, int64_t m, int64_t n,
               int64_t k, const struct tare_gemm_epilogue *epilogue, float *scratch);
/* As tare_gemm at a level, for tests and benchmarks; the machine must have the level. */
void tare_gemm_at(enum tare_cpu_level level, float *c, int64_t ldc, const struct tare_gemm_rows *a, const float *packed,
                  int64_t m, int64_t n, int64_t k, const struct tare_gemm_epilogue *epilogue, float *scratch);

/* ---- for the variants and convolutions only ---- */

/* Rows of A that the block after this one reads: `rows` rows of `length` floats, `stride` floats apart. Variants may
 * prefetch them. */
struct tare_gemm_ahead {
    const float *data;
    int64_t rows, length, stride; /* rows 0: not known, or cached already */
};
/* C block (+)= A block · panels. The rows are `lines` lines of `rows` each (a matrix is one line; a convolution's
 * output has several, which are not adjacent in the input). k is cut into `segments` of `length` floats, `step` apart
 * in A. */
struct tare_gemm_block {
    float *c;
    int64_t ldc, c_line; /* floats from row to row and from line to line */
    const float *a;
    int64_t lda, a_line;
    int64_t lines, rows, n;
    int64_t segments, length, step;
    const float *panels;
    int64_t panel_stride;     /* floats between two panels; 16 between two k */
    const float *next_panels; /* what the next block uses, to prefetch; NULL: not known */
    struct tare_gemm_ahead ahead;
    bool panels_are_cached; /* in the second-level cache: not prefetched */
    bool output_is_cached;  /* C and the addend probably are, too */
    bool accumulate;
    const struct tare_gemm_epilogue
        *epilogue; /* of C's first row and column; NULL: more of k comes, or nothing is to do */
};
typedef void tare_gemm_block_function(const struct tare_gemm_block *block);
tare_gemm_block_function tare_gemm_block_plain, tare_gemm_block_v8, tare_gemm_block_avx512;
tare_gemm_block_function *tare_gemm_block_at(enum tare_cpu_level level);
/* True if all packed weights stay in the second-level cache while blocks of rows are multiplied. */
bool tare_gemm_panels_stay_cached(int64_t n, int64_t k);
/* True if an output of this many elements probably is in the second-level cache, from the values before it. */
bool tare_gemm_output_stays_cached(int64_t elements);
/* The rows of A that are read next, for struct tare_gemm_block: none if all `elements` of A probably are in the
 * second-level cache. */
struct tare_gemm_ahead tare_gemm_rows_ahead(const float *data, int64_t rows, int64_t length, int64_t stride,
                                            int64_t elements);
/* Divides `expected` into blocks of nearly equal size, at most `limit`: returns the block size, rounded up to a
 * multiple of `unit`. */
int64_t tare_gemm_even_piece(int64_t expected, int64_t limit, int64_t unit);

/* The same epilogue for the part of C that begins `elements` and `columns` further on. */
struct tare_gemm_epilogue tare_epilogue_shifted(const struct tare_gemm_epilogue *epilogue, int64_t elements,
                                                int64_t columns);
/* True if the epilogue rounds and no intermediate value is subnormal, negative zero or beyond 2^112, except that sums
 * may be tiny, and the addend anything, if all sums are at most TARE_EPILOGUE_MOST in magnitude. This depends on its
 * vectors, which have `columns` elements. */
bool tare_epilogue_is_bounded(const struct tare_gemm_epilogue *epilogue, int64_t columns);
#define TARE_EPILOGUE_MOST 0x1p60f
/* Computes a general epilogue for the sums in `c`, which are elements [at, …) of C in rows of ldc floats, beginning
 * with column `column`. `to` and the addend must not overlap. */
typedef void tare_epilogue_function(const struct tare_gemm_epilogue *epilogue, float *c, int64_t ldc, int64_t rows,
                                    int64_t columns, int64_t at, int64_t column);
tare_epilogue_function tare_epilogue_plain, tare_epilogue_v8, tare_epilogue_avx512;

/* A simple epilogue of one element: the scalar form of the vector code. */
static inline float tare_gemm_apply_epilogue(const struct tare_gemm_epilogue *epilogue, float x, int64_t addend_at,
                                             int64_t column) {
    if (epilogue->scale) x *= epilogue->scale[column];
    if (epilogue->bias) x += epilogue->bias[column];
    if (epilogue->addend) x += epilogue->addend[addend_at];
    if (!epilogue->relu) return x;
    if (x < 0) x = 0;
    return x > epilogue->limit ? epilogue->limit : x;
}

#endif
