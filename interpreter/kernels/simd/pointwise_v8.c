/* Programs of element-wise steps on vectors of eight lanes. */
#include "interpreter/kernels/simd/functions_v8.h"
#include "interpreter/kernels/simd/pointwise.h"

#if TARE_KERNELS_V8

#define EACH(expression)                                                                                               \
    do {                                                                                                               \
        for (int j = 0; j < count; j++)                                                                                \
            to[j] = (expression);                                                                                      \
    } while (0);                                                                                                       \
    break
#define Y (step->y < 0 ? constant : y[j])

/* Of max and min the second operand is the result where they are equal or one is NaN. */
TARE_ALWAYS_INLINE TARE_TARGET_V8 void run(tare_v8 *to, const struct tare_pointwise_step *step, const tare_v8 *x,
                                           const tare_v8 *y, int count) {
    const tare_v8 constant = tare_v8_set(step->constant);
    switch (step->code) {
    case TARE_STAGE_ADD:
        EACH(tare_v8_add(x[j], Y));
    case TARE_STAGE_SUB:
        EACH(tare_v8_sub(x[j], Y));
    case TARE_STAGE_SUB_FROM:
        EACH(tare_v8_sub(Y, x[j]));
    case TARE_STAGE_MUL:
        EACH(tare_v8_mul(x[j], Y));
    case TARE_STAGE_DIV:
        EACH(tare_v8_div(x[j], Y));
    case TARE_STAGE_MAXIMUM:
        EACH(tare_v8_max(Y, x[j]));
    case TARE_STAGE_MINIMUM:
        EACH(tare_v8_min(Y, x[j]));
    case TARE_STAGE_RELU:
        EACH(tare_v8_max(tare_v8_set(0), x[j]));
    case TARE_STAGE_RELU6:
        EACH(tare_v8_min(tare_v8_set(6), tare_v8_max(tare_v8_set(0), x[j])));
    case TARE_STAGE_NEG:
        EACH(tare_v8_neg(x[j]));
    case TARE_STAGE_EXP:
        EACH(tare_exp_v8(x[j]));
    case TARE_STAGE_TANH:
        EACH(tare_tanh_v8(x[j]));
    case TARE_STAGE_SIGMOID:
        EACH(tare_sigmoid_v8(x[j]));
    case TARE_STAGE_ERF:
        EACH(tare_erf_v8(x[j]));
    case TARE_STAGE_ERFC:
        EACH(tare_erfc_v8(x[j]));
    default: /* not in a program */
        break;
    }
}
#undef EACH
#undef Y

/* More vectors at a time take fewer calls, and their values more of the first-level cache. */
enum { LANES = 8, VECTORS = 48 };

static TARE_TARGET_V8 void run_vectors(const struct tare_pointwise *program, tare_v8 *x, int count) {
    tare_v8 values[TARE_POINTWISE_MOST][VECTORS];
    for (int i = 0; i < program->n_steps; i++) {
        const struct tare_pointwise_step *step = &program->steps[i];
        const tare_v8 *y = step->y <= 0 ? x : values[step->y - 1];
        run(i + 1 < program->n_steps ? values[i] : x, step, step->x == 0 ? x : values[step->x - 1], y, count);
    }
}

/* Rows of `whole` vectors and one of `rest` columns; 0: none. */
TARE_ALWAYS_INLINE TARE_TARGET_V8 void run_block(const struct tare_pointwise *program, float *c, int64_t ldc, int rows,
                                                 int whole, int rest) {
    const tare_m8 mask = tare_v8_first(rest);
    tare_v8 x[VECTORS];
    int n = 0;
    for (int i = 0; i < rows; i++) {
        for (int w = 0; w < whole; w++)
            x[n++] = tare_v8_load(c + i * ldc + w * LANES);
        if (rest) x[n++] = tare_v8_load_lanes(c + i * ldc + whole * LANES, mask);
    }
    run_vectors(program, x, n);
    n = 0;
    for (int i = 0; i < rows; i++) {
        for (int w = 0; w < whole; w++)
            tare_v8_store(c + i * ldc + w * LANES, x[n++]);
        if (rest) tare_v8_store_lanes(c + i * ldc + whole * LANES, x[n++], mask);
    }
}

/* x * sigmoid(x) is frequent, and its values need not pass through memory. */
static bool is_swish(const struct tare_pointwise *program) {
    const struct tare_pointwise_step *first = &program->steps[0], *second = &program->steps[1];
    return program->n_steps == 2 && first->code == TARE_STAGE_SIGMOID && second->code == TARE_STAGE_MUL &&
           second->y >= 0 && second->x != second->y;
}

static TARE_TARGET_V8 void swish(float *c, int64_t ldc, int64_t rows, int64_t columns) {
    const int64_t whole = columns - columns % LANES;
    const tare_m8 mask = tare_v8_first(columns - whole);
    for (int64_t i = 0; i < rows; i++, c += ldc) {
        for (int64_t j = 0; j < whole; j += LANES) {
            const tare_v8 x = tare_v8_load(c + j);
            tare_v8_store(c + j, tare_v8_mul(x, tare_sigmoid_v8(x)));
        }
        if (whole == columns) continue;
        const tare_v8 x = tare_v8_load_lanes(c + whole, mask);
        tare_v8_store_lanes(c + whole, tare_v8_mul(x, tare_sigmoid_v8(x)), mask);
    }
}

TARE_TARGET_V8 void tare_pointwise_rows_v8(const struct tare_pointwise *program, float *c, int64_t ldc, int64_t rows,
                                           int64_t columns) {
    if (columns == ldc) columns *= rows, rows = 1;
    if (is_swish(program)) {
        swish(c, ldc, rows, columns);
        return;
    }
    for (int64_t j = 0; j < columns; j += VECTORS * LANES) {
        const int64_t left = columns - j < VECTORS * LANES ? columns - j : VECTORS * LANES;
        const int whole = (int)left / LANES, rest = (int)left % LANES, together = VECTORS / (whole + (rest > 0));
        for (int64_t i = 0; i < rows; i += together) {
            const int height = rows - i < together ? (int)(rows - i) : together;
            float *at = c + i * ldc + j;
            if (whole == 2 && rest == 0)
                run_block(program, at, ldc, height, 2, 0);
            else
                run_block(program, at, ldc, height, whole, rest);
        }
    }
}
#endif
