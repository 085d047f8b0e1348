/* Batches of strided matrix products. Float products run on the packed kernels of interpreter/kernels/gemm.h (a
 * transposed A is copied), double products on those of gemm_double.h, and complex products on both. Every path computes
 * the bits of the reference product. */
#include "interpreter/ops/linalg/product.h"

#include "base/alloc.h"
#include "interpreter/ops/support/split.h"
#include "interpreter/kernels/gemm.h"
#include "interpreter/kernels/gemm_double.h"
#include "interpreter/kernels/transpose.h"
#include "interpreter/ops/support/floats.h"

#include <math.h>
#include <string.h>

/* ---- reference ---- */

static int64_t fma_int64(int64_t a, int64_t b, int64_t sum) {
    return (int64_t)((uint64_t)sum + (uint64_t)a * (uint64_t)b);
}

/* Matrix `at` of the batch. Complex elements have two parts, and each part is one accumulation chain. */
#define PLAIN(name, type, parts, fma)                                                                                  \
    static void name(const struct tare_product *p, int64_t at) {                                                       \
        const type *a = (const type *)p->a + parts * p->a_first[at], *b = (const type *)p->b + parts * p->b_first[at]; \
        const type sign_a = p->conjugate_a ? -1 : 1, sign_b = p->conjugate_b ? -1 : 1;                                 \
        type *c = (type *)p->c + parts * at * p->m * p->n;                                                             \
        for (int64_t i = 0; i < p->m; i++)                                                                             \
            for (int64_t j = 0; j < p->n; j++)                                                                         \
                for (int part = 0; part < parts; part++, c++) {                                                        \
                    *c = 0;                                                                                            \
                    for (int64_t k = 0; k < p->k; k++) {                                                               \
                        const type *x = a + parts * (i * p->a_row + k * p->a_column);                                  \
                        const type *y = b + parts * (k * p->b_row + j * p->b_column);                                  \
                        *c = fma(x[0], part ? sign_b * y[1] : y[0], *c);                                               \
                        if (parts == 1) continue;                                                                      \
                        *c = part ? fma(sign_a * x[1], y[0], *c) : fma(-sign_a * x[1], sign_b * y[1], *c);             \
                    }                                                                                                  \
                }                                                                                                      \
    }
PLAIN(plain_float, float, 1, fmaf)
PLAIN(plain_double, double, 1, fma)
PLAIN(plain_int64, int64_t, 1, fma_int64)
PLAIN(plain_complex64, float, 2, fmaf)
PLAIN(plain_complex128, double, 2, fma)
#undef PLAIN

void tare_product_plain(const struct tare_product *product) {
    static void (*const functions[])(const struct tare_product *product, int64_t at) = {
        [TARE_DT_FLOAT] = plain_float,         [TARE_DT_DOUBLE] = plain_double,         [TARE_DT_INT64] = plain_int64,
        [TARE_DT_COMPLEX64] = plain_complex64, [TARE_DT_COMPLEX128] = plain_complex128,
    };
    for (int64_t at = 0; at < product->batch; at++)
        functions[product->dtype](product, at);
}

/* ---- fast ---- */

/* All batches have the same B, and A's rows of consecutive batches are contiguous. */
static bool is_one_tall_matrix(const struct tare_product *p) {
    for (int64_t i = 1; i < p->batch; i++) {
        if (p->b_first[i] != p->b_first[0] || p->a_first[i] != p->a_first[0] + i * p->m * p->a_row) return false;
    }
    return true;
}

const void *tare_product_packed(const struct tare_product *product, struct tare_weights *weights,
                                const struct tare_tensor *source) {
    return product->dtype != TARE_DT_FLOAT || product->k == 0 ? NULL : tare_weights_find(weights, source, 0);
}

/* The matrix of B that product `i` has, counted in memory. */
static int64_t matrix_of_b(const struct tare_product *p, int64_t i) {
    return p->b_first[i] / (p->k * p->n);
}

static tare_status pack_all(float **out, const struct tare_product *p, struct tare_weights *weights,
                            const struct tare_tensor *source, struct tare_arena *scratch) {
    float *packed = !weights ? NULL : tare_weights_find(weights, source, 0);
    *out = packed;
    if (packed) return TARE_OK;
    const size_t each = tare_gemm_packed_floats(p->k, p->n);
    int64_t count = 0;
    size_t bytes;
    for (int64_t i = 0; i < p->batch; i++)
        if (matrix_of_b(p, i) >= count) count = matrix_of_b(p, i) + 1;
    if (!tare_mul_size(&bytes, each, (size_t)count) || !tare_mul_size(&bytes, bytes, sizeof(float)))
        return TARE_FAIL(TARE_NO_MEMORY, "product too large");
    packed = !weights ? tare_arena_alloc(scratch, bytes) : tare_weights_make(weights, source, 0, bytes, scratch);
    if (!packed) return TARE_NO_MEMORY;
    for (int64_t j = 0; j < count; j++)
        tare_gemm_pack(packed + (size_t)j * each, (const float *)p->b + j * p->k * p->n, p->k, p->n, p->b_row,
                       p->b_column);
    *out = tare_weights_publish(weights, packed);
    return TARE_OK;
}

/* Matrix `i` of A with contiguous rows: in place, or transposed into `room`. */
static const void *rows_of(const struct tare_product *p, int64_t i, void *room) {
    const size_t size = tare_dtype_size(p->dtype);
    const char *a = (const char *)p->a + (size_t)p->a_first[i] * size;
    if (p->a_column == 1) return a;
    tare_transpose(room, a, size, p->k, p->m);
    return room;
}
static int64_t row_step(const struct tare_product *p) {
    return p->a_column == 1 ? p->a_row : p->k;
}
/* Elements of the room. */
static size_t room_of(const struct tare_product *p) {
    return p->a_column == 1 ? 0 : (size_t)(p->m * p->k);
}

struct float_run {
    const struct tare_product *product;
    const float *packed;
    float *scratch; /* of all parts, before the rooms */
    int parts;
};

static void run_matrices(void *arg, int part, int64_t first, int64_t end) {
    const struct float_run *r = arg;
    const struct tare_product *p = r->product;
    const enum tare_cpu_level level = tare_cpu_level();
    const size_t packed_size = tare_gemm_packed_floats(p->k, p->n), each = tare_gemm_scratch_floats();
    float *room = r->scratch + (size_t)r->parts * each + (size_t)part * room_of(p);
    for (int64_t i = first; i < end; i++) {
        const struct tare_gemm_rows rows = { .data = rows_of(p, i, room), .stride = row_step(p) };
        tare_gemm_at(level, (float *)p->c + i * p->m * p->n, p->n, &rows,
                     r->packed + (size_t)matrix_of_b(p, i) * packed_size, p->m, p->n, p->k, p->epilogue,
                     r->scratch + (size_t)part * each);
    }
}

/* Several matrices are divided between the threads, a single one is divided itself. */
static tare_status run_float(const struct tare_product *p, struct tare_weights *weights,
                             const struct tare_tensor *source, struct tare_arena *scratch) {
    const double work = (double)p->batch * (double)(p->m * p->n) * (double)p->k;
    const bool tall = is_one_tall_matrix(p);
    const int parts = tall ? 1 : tare_split_count(p->pool, work, p->batch);
    const size_t each = room_of(p) + (tall ? 0 : tare_gemm_scratch_floats());
    struct float_run run = { p, NULL, tare_arena_alloc(scratch, (size_t)parts * each * sizeof(float)), parts };
    float *packed;
    TARE_TRY(pack_all(&packed, p, weights, source, scratch));
    if (each > 0 && !run.scratch) return TARE_NO_MEMORY;
    run.packed = packed;
    if (!tall) return tare_split_range(p->pool, parts, p->batch, run_matrices, &run);
    const struct tare_gemm_rows rows = { .data = rows_of(p, 0, run.scratch), .stride = row_step(p) };
    const size_t first = (size_t)matrix_of_b(p, 0) * tare_gemm_packed_floats(p->k, p->n);
    const struct tare_split_product product = { p->c, p->n, &rows,      packed + first, p->m * p->batch,
                                                p->n, p->k, p->epilogue };
    return tare_split_gemm(p->pool, scratch, &product);
}

static tare_status run_double(const struct tare_product *p, struct tare_arena *scratch) {
    const bool tall = is_one_tall_matrix(p);
    const int64_t batches = tall ? 1 : p->batch, m = tall ? p->m * p->batch : p->m;
    const size_t count = tare_gemm_double_scratch(p->k, p->n);
    double *work = !count ? NULL : tare_arena_alloc(scratch, count * sizeof *work);
    if (!work) return TARE_NO_MEMORY;
    const enum tare_cpu_level level = tare_cpu_level();
    struct tare_gemm_double_matrix a = { NULL, p->a_row, p->a_column }, b = { NULL, p->b_row, p->b_column };
    for (int64_t i = 0; i < batches; i++) {
        a.data = (const double *)p->a + p->a_first[i];
        b.data = (const double *)p->b + p->b_first[i];
        tare_gemm_double(level, (double *)p->c + i * p->m * p->n, &a, &b, m, p->n, p->k, work);
    }
    return TARE_OK;
}

/* ---- complex products as real ones ----
 *
 * The parts of each element are columns of one real product of A [m, 2k], which is A as it is stored, and B [2k, 2n],
 * in which every element (r, i) becomes the block (r, i; -i, r), or (r, i; i, -r) for the conjugate of A. The chains
 * are those of tare_product_plain. */

#define BLOCKS(name, type)                                                                                             \
    static void name(type *to, const struct tare_product *p, int64_t at) {                                             \
        const type *b = (const type *)p->b + 2 * p->b_first[at];                                                       \
        const type sign_a = p->conjugate_a ? -1 : 1, sign_b = p->conjugate_b ? -1 : 1;                                 \
        for (int64_t k = 0; k < p->k; k++, to += 2 * p->n)                                                             \
            for (int64_t j = 0; j < p->n; j++, to += 2) {                                                              \
                const type *from = b + 2 * (k * p->b_row + j * p->b_column);                                           \
                to[0] = from[0], to[1] = sign_b * from[1];                                                             \
                to[2 * p->n] = -sign_a * to[1], to[2 * p->n + 1] = sign_a * to[0];                                     \
            }                                                                                                          \
    }
BLOCKS(float_blocks, float)
BLOCKS(double_blocks, double)
#undef BLOCKS

static tare_status run_complex(const struct tare_product *p, struct tare_arena *scratch) {
    const size_t size = tare_dtype_size(p->dtype);
    const bool is_float = p->dtype == TARE_DT_COMPLEX64;
    int64_t first[] = { 0 };
    struct tare_product real = { .dtype = is_float ? TARE_DT_FLOAT : TARE_DT_DOUBLE,
                                 .batch = 1,
                                 .m = p->m,
                                 .n = 2 * p->n,
                                 .k = 2 * p->k,
                                 .a_first = first,
                                 .b_first = first,
                                 .a_row = 2 * row_step(p),
                                 .a_column = 1,
                                 .b_row = 2 * p->n,
                                 .b_column = 1 };
    void *a = tare_arena_alloc(scratch, room_of(p) * size);
    void *b = tare_arena_alloc(scratch, (size_t)(p->k * p->n) * 2 * size);
    struct tare_arena work = { 0 };
    tare_status status = (a || room_of(p) == 0) && b ? TARE_OK : TARE_NO_MEMORY;
    for (int64_t i = 0; status == TARE_OK && i < p->batch; i++) {
        real.a = rows_of(p, i, a), real.b = b;
        real.c = (char *)p->c + (size_t)(i * p->m * p->n) * size;
        if (is_float)
            float_blocks(b, p, i);
        else
            double_blocks(b, p, i);
        status = tare_product_run(&real, NULL, NULL, &work);
        tare_arena_reset(&work);
    }
    tare_arena_free(&work);
    return status;
}

tare_status tare_product_run(const struct tare_product *product, struct tare_weights *weights,
                             const struct tare_tensor *source, struct tare_arena *scratch) {
    const bool is_empty = product->batch == 0 || product->k == 0 || product->n == 0;
    switch (is_empty ? TARE_DT_INVALID : product->dtype) {
    case TARE_DT_FLOAT:
        return run_float(product, weights, source, scratch);
    case TARE_DT_DOUBLE:
        return run_double(product, scratch);
    case TARE_DT_COMPLEX64:
    case TARE_DT_COMPLEX128:
        return run_complex(product, scratch);
    default:
        tare_product_plain(product);
        return TARE_OK;
    }
}

/* ---- ops ---- */

tare_status tare_product_set_dense(struct tare_product *p, struct tare_arena *memory) {
    p->a_first = TARE_NEW_ARRAY(memory, int64_t, (size_t)p->batch);
    p->b_first = TARE_NEW_ARRAY(memory, int64_t, (size_t)p->batch);
    if (!p->a_first || !p->b_first) return TARE_NO_MEMORY;
    p->a_row = p->k, p->b_row = p->n, p->a_column = p->b_column = 1;
    for (int64_t i = 0; i < p->batch; i++) {
        p->a_first[i] = i * p->m * p->k;
        p->b_first[i] = i * p->k * p->n;
    }
    return TARE_OK;
}

tare_status tare_product_prepare(struct tare_kernel *kernel) {
    struct tare_weights *weights = tare_calloc(1, sizeof *weights);
    kernel->state = weights;
    if (weights) weights->owner = kernel->node;
    return !weights ? TARE_NO_MEMORY : TARE_OK;
}

void tare_product_release(void *state) {
    if (state) tare_weights_reset(state);
    tare_free(state);
}

/* ---- element types ---- */

int tare_product_dtype(int dtype) {
    if (tare_floats_dtype(dtype)) return TARE_DT_FLOAT;
    if (dtype == TARE_DT_DOUBLE || dtype == TARE_DT_COMPLEX64 || dtype == TARE_DT_COMPLEX128) return dtype;
    return TARE_DT_INT64; /* wraps: the low bits equal those of any narrower type */
}

static void *scratch_elements(struct tare_kernel *kernel, int64_t count, int dtype) {
    size_t bytes;
    if (!tare_mul_size(&bytes, (size_t)count, tare_dtype_size(dtype))) return NULL;
    return tare_arena_alloc(kernel->scratch, bytes);
}

int64_t *tare_product_offsets(struct tare_arena *arena, int64_t batch, const struct tare_shape *output,
                              const struct tare_shape *input) {
    int64_t *offsets = tare_arena_calloc(arena, (size_t)batch, sizeof *offsets);
    if (!offsets) return NULL;
    int64_t strides[TARE_MAX_RANK] = { 0 }, at[TARE_MAX_RANK] = { 0 }; /* of the output's dimensions */
    int64_t stride = input->dims[input->rank - 1] * input->dims[input->rank - 2], offset = 0;
    for (int own = input->rank - 3; own >= 0; own--) {
        strides[own + output->rank - input->rank] = input->dims[own] == 1 ? 0 : stride;
        stride *= input->dims[own];
    }
    for (int64_t i = 0; i < batch; i++) {
        offsets[i] = offset;
        for (int axis = output->rank - 3; axis >= 0; axis--) {
            offset += strides[axis];
            if (++at[axis] < output->dims[axis]) break;
            offset -= strides[axis] * output->dims[axis];
            at[axis] = 0;
        }
    }
    return offsets;
}

const void *tare_product_operand(struct tare_kernel *kernel, const struct tare_tensor *tensor, int dtype) {
    static const double nothing[2];
    if (tensor->elements == 0) return nothing;
    if (tensor->dtype == dtype) return tensor->data;
    if (dtype == TARE_DT_FLOAT) return tare_floats_in(kernel, tensor);
    void *copy = scratch_elements(kernel, tensor->elements, dtype);
    for (int64_t i = 0; copy && i < tensor->elements; i++) {
        if (dtype == TARE_DT_INT64)
            ((int64_t *)copy)[i] = tare_tensor_get_i64(tensor, i);
        else
            ((double *)copy)[i] = tare_tensor_get_f64(tensor, i);
    }
    return copy;
}

void *tare_product_room(struct tare_kernel *kernel, size_t i) {
    struct tare_tensor *output = &kernel->outputs[i];
    const int dtype = tare_product_dtype(output->dtype);
    return dtype == output->dtype ? output->data : scratch_elements(kernel, output->elements, dtype);
}

void tare_product_store(struct tare_kernel *kernel, size_t i, const void *values) {
    struct tare_tensor *output = &kernel->outputs[i];
    const size_t size = tare_dtype_size(output->dtype);
    if (values == output->data) return;
    if (tare_floats_dtype(output->dtype)) {
        tare_floats_round(kernel, i, values);
        return;
    }
    for (int64_t j = 0; j < output->elements; j++)
        memcpy((char *)output->data + (size_t)j * size, (const int64_t *)values + j, size); /* little-endian */
}
