/* The vector form of a pipeline, included by its AVX2 and AVX-512 variants, which define the vector types and the
 * functions on them: `vec` holds LANES floats, `ivec` LANES int32. Each stage is a loop over the vectors of a tile,
 * which stay in the first-level cache: a dispatch for every few vectors in registers takes longer than most stages. */

enum { TILE = 256 / LANES }; /* vectors that pass each stage together */

/* For j from 0 to n, whole groups of VECTORS. */
#define FOR_EACH(j, n)                                                                                                 \
    for (int64_t j##_0 = 0; j##_0 < (n); j##_0 += VECTORS)                                                             \
        TARE_UNROLL                                                                                                    \
    for (int64_t j = j##_0; j < j##_0 + VECTORS; j++)

/* n vectors of elements as lanes: at `from` itself if they are lanes, otherwise in `lanes`. */
TARE_ALWAYS_INLINE TARGET const float *load_tile(float *lanes, const void *from, enum tare_lane_type type, int64_t n) {
    switch (type) {
    case TARE_LANE_INT8:
        FOR_EACH(j, n) store_vec(lanes + j * LANES, as_vec(load_int8((const int8_t *)from + j * LANES)));
        return lanes;
    case TARE_LANE_UINT8:
        FOR_EACH(j, n) store_vec(lanes + j * LANES, as_vec(load_uint8((const uint8_t *)from + j * LANES)));
        return lanes;
    case TARE_LANE_INT16:
        FOR_EACH(j, n) store_vec(lanes + j * LANES, as_vec(load_int16((const int16_t *)from + j * LANES)));
        return lanes;
    case TARE_LANE_BFLOAT16:
        FOR_EACH(j, n)
        store_vec(lanes + j * LANES, as_vec(shift_left_16(load_uint16((const uint16_t *)from + j * LANES))));
        return lanes;
    default:
        return from;
    }
}

/* n vectors of lanes as elements; they may be at `to` already. */
TARE_ALWAYS_INLINE TARGET void store_tile(void *to, enum tare_lane_type type, const float *lanes, int64_t n) {
    switch (type) {
    case TARE_LANE_INT8:
    case TARE_LANE_UINT8:
        for (int64_t at = 0; at < n * LANES; at += (int64_t)VECTORS * LANES) {
            ivec x[VECTORS];
            TARE_UNROLL
            for (int j = 0; j < VECTORS; j++)
                x[j] = as_ivec(load_vec(lanes + at + j * LANES));
            store_bytes((uint8_t *)to + at, x);
        }
        break;
    case TARE_LANE_INT16:
        FOR_EACH(j, n) store_low_halves((uint16_t *)to + j * LANES, as_ivec(load_vec(lanes + j * LANES)));
        break;
    case TARE_LANE_BFLOAT16:
        FOR_EACH(j, n)
        store_low_halves((uint16_t *)to + j * LANES, shift_right_16(as_ivec(load_vec(lanes + j * LANES))));
        break;
    default:
        if (to != lanes) FOR_EACH(j, n) store_vec((float *)to + j * LANES, load_vec(lanes + j * LANES));
        break;
    }
}

/* bfloat16-rtne, as a float whose low half is zero. */
TARE_ALWAYS_INLINE TARGET vec round_bfloat16(vec x) {
    const ivec bits = as_ivec(x), odd = and_int(shift_right_16(bits), set_int(1));
    const ivec rounded = and_int(add_int(bits, add_int(odd, set_int(0x7fff))), set_int((int32_t)0xffff0000));
    return select_nan(x, as_vec(sign_or(bits, set_int(0x7fc00000))), as_vec(rounded));
}

TARE_ALWAYS_INLINE TARGET vec clamped(vec x, const struct tare_stage *stage) {
    const vec y = add_vec(x, set_vec(stage->add));
    return min_vec(set_vec(stage->high), max_vec(set_vec(stage->low), y));
}

/* The integers of QUANTIZE_QUOTIENT and QUANTIZE_RATIO. With the rounded reciprocal z of d, q = x z and then q + (x - q
 * d) z, with fused operations, is the rounded quotient (Brisebarre, Muller and Raina, "Accelerating correctly rounded
 * floating-point division when the divisor is known in advance", 2004), unless something is too small or too large to
 * be exact. The divisor is in [2^-60, 2^60] and x is clamped first, so quotients are at most 2^21; from 2^-30 on they
 * are exact, and smaller ones do not change the integer after the addition of an integer and 0.5, or of an integer
 * before rounding to the nearest. NaN remains NaN. */
struct quotient {
    vec least, most, divisor, reciprocal, add;
};

TARE_ALWAYS_INLINE TARGET struct quotient load_quotient(const struct tare_stage *stage) {
    return (struct quotient){ set_vec(stage->least), set_vec(stage->most), set_vec(stage->divisor),
                              set_vec(stage->reciprocal), set_vec(stage->add) };
}

TARE_ALWAYS_INLINE TARGET ivec quantized(vec x, const struct quotient *by, const bool is_ratio) {
    x = min_vec(by->most, max_vec(by->least, x));
    const vec q = mul_vec(x, by->reciprocal);
    const vec quotient = fused_add(fused_sub_from(q, by->divisor, x), by->reciprocal, q);
    const vec sum = add_vec(quotient, by->add);
    return is_ratio ? round_to_int(sum) : floor_to_int(add_vec(sum, set_vec(0.5f)));
}

/* The same for values whose quotients are at most 2^20, with a single addition: `add` is the integer a plus 0.5. The
 * result is that of two additions: let s be the exact sum of the quotient and a. The integer changes where s is close
 * to n - 0.5. If n is not 0, the floats near s and s + 0.5 have the same distance there, of which 0.5 is an even
 * multiple, so rounding commutes with the addition of 0.5. If n is 0 and a is not, the magnitude of the quotient is at
 * least 0.5, s is therefore a multiple of 2^-24, and all sums are exact. Only for a = -1 it can be 0.5 - 2^-25, where
 * the results differ; tare_pipeline_set_bounds excludes that a. */
TARE_ALWAYS_INLINE TARGET ivec quantized_bounded(vec x, const struct quotient *by) {
    const vec q = mul_vec(x, by->reciprocal);
    const vec quotient = fused_add(fused_sub_from(q, by->divisor, x), by->reciprocal, q);
    return floor_to_int(add_vec(quotient, by->add));
}

#define EACH(expression)                                                                                               \
    FOR_EACH(j, n) {                                                                                                   \
        const vec x = load_vec(from + j * LANES);                                                                      \
        store_vec(to + j * LANES, expression);                                                                         \
    }                                                                                                                  \
    break
#define EACH_INT(expression) EACH(as_vec(expression))
#define Y load_vec(operand + j * step)
#define IY as_ivec(Y)
#define IX as_ivec(x)

/* The stage's n vectors from element `at` of its operand on. */
TARE_ALWAYS_INLINE TARGET void run_stage(float *to, const float *from, const struct tare_stage *stage, int64_t at,
                                         int64_t n) {
    float one[LANES];
    const int64_t step = stage->is_one ? 0 : LANES;
    const float *operand = !stage->operand ? NULL : stage->is_one ? one : (const float *)stage->operand + at;
    if (stage->operand && stage->is_one) store_vec(one, set_vec(*(const float *)stage->operand));
    switch (stage->code) {
    case TARE_STAGE_INT_ADD:
        EACH_INT(add_int(IX, IY));
    case TARE_STAGE_INT_SUB:
        EACH_INT(sub_int(IX, IY));
    case TARE_STAGE_INT_MUL:
        EACH_INT(mul_int(IX, IY));
    case TARE_STAGE_INT_MAXIMUM:
        EACH_INT(max_int(IX, IY));
    case TARE_STAGE_INT_MINIMUM:
        EACH_INT(min_int(IX, IY));
    case TARE_STAGE_INT8:
        EACH_INT(sign_extend(IX, 24));
    case TARE_STAGE_UINT8:
        EACH_INT(and_int(IX, set_int(0xff)));
    case TARE_STAGE_INT16:
        EACH_INT(sign_extend(IX, 16));
    case TARE_STAGE_TO_FLOAT:
        EACH(int_to_float(IX));
    case TARE_STAGE_ADD:
        EACH(add_vec(x, Y));
    case TARE_STAGE_SUB:
        EACH(sub_vec(x, Y));
    case TARE_STAGE_SUB_FROM:
        EACH(sub_vec(Y, x));
    case TARE_STAGE_MUL:
        EACH(mul_vec(x, Y));
    case TARE_STAGE_DIV:
        EACH(div_vec(x, Y));
    case TARE_STAGE_MAXIMUM: /* max_vec and min_vec return the second operand if the values are equal or one is NaN */
        EACH(max_vec(Y, x));
    case TARE_STAGE_MINIMUM:
        EACH(min_vec(Y, x));
    case TARE_STAGE_RELU:
        EACH(max_vec(set_vec(0), x));
    case TARE_STAGE_RELU6:
        EACH(min_vec(set_vec(6), max_vec(set_vec(0), x)));
    case TARE_STAGE_ROUND:
        EACH(round_vec(x));
    case TARE_STAGE_FLOOR:
        EACH(floor_vec(x));
    case TARE_STAGE_NEG:
        EACH(as_vec(xor_int(IX, set_int(INT32_MIN))));
    case TARE_STAGE_EXP:
    case TARE_STAGE_TANH:
    case TARE_STAGE_SIGMOID:
    case TARE_STAGE_ERF:
    case TARE_STAGE_ERFC:
        tare_elementary_at(LEVEL, (enum tare_elementary)(stage->code - TARE_STAGE_EXP), to, from, n * LANES);
        break;
    case TARE_STAGE_BFLOAT16:
        EACH(round_bfloat16(x));
    case TARE_STAGE_TO_INT:
        EACH_INT(float_to_int(x));
    case TARE_STAGE_QUANTIZE:
        EACH(round_vec(clamped(x, stage)));
    case TARE_STAGE_QUANTIZE_TO_INT:
        EACH_INT(round_to_int(clamped(x, stage)));
    case TARE_STAGE_QUANTIZE_QUOTIENT: {
        const struct quotient by = load_quotient(stage);
        EACH_INT(quantized(x, &by, false));
    }
    case TARE_STAGE_QUANTIZE_RATIO: {
        const struct quotient by = load_quotient(stage);
        EACH_INT(quantized(x, &by, true));
    }
    }
}
#undef EACH
#undef EACH_INT
#undef Y
#undef IY
#undef IX

/* The pipelines between bfloat16 and float arrays, which need no dispatch. */
static TARGET void widen_bfloat16(float *to, const uint16_t *from, int64_t count) {
    for (int64_t at = 0; at < count; at += LANES)
        store_vec(to + at, as_vec(shift_left_16(load_uint16(from + at))));
}

/* Two vectors at a time. What rounding adds to the bits does not depend on the low half of the result, which is not
 * stored. */
static TARGET void narrow_to_bfloat16(uint16_t *to, const float *from, int64_t count) {
    for (int64_t at = 0; at < count; at += 2 * LANES) {
        vec x = load_vec(from + at), y = load_vec(from + at + LANES);
        if (is_any_nan(x, y))
            x = round_bfloat16(x), y = round_bfloat16(y);
        else
            x = as_vec(add_rounding(as_ivec(x))), y = as_vec(add_rounding(as_ivec(y)));
        store_high_halves(to + at, as_ivec(x), as_ivec(y));
    }
}

static TARGET bool convert_bfloat16(void *to, const void *from, const struct tare_pipeline *pipeline, int64_t count) {
    if (pipeline->n_stages == 0 && pipeline->from == TARE_LANE_BFLOAT16 && tare_lane_size(pipeline->to) == 4) {
        widen_bfloat16(to, from, count);
        return true;
    }
    if (pipeline->n_stages != 1 || pipeline->stages[0].code != TARE_STAGE_BFLOAT16 ||
        pipeline->from != TARE_LANE_FLOAT || pipeline->to != TARE_LANE_BFLOAT16)
        return false;
    narrow_to_bfloat16(to, from, count);
    return true;
}

enum { AHEAD = 512, LINE = 16 }; /* floats: how far ahead of its use an array is prefetched; a cache line */

TARE_ALWAYS_INLINE TARGET void prefetch_unit(const float *from) {
    TARE_UNROLL
    for (int j = 0; j < VECTORS * LANES; j += LINE)
        __builtin_prefetch(from + AHEAD + j);
}

static TARGET void quantize_bounded(int8_t *to, const float *from, const struct tare_stage *stage, int64_t count) {
    struct quotient by = load_quotient(stage);
    by.add = set_vec(stage->add + 0.5f);
    for (int64_t at = 0; at < count; at += (int64_t)VECTORS * LANES) {
        ivec x[VECTORS];
        TARE_UNROLL
        for (int j = 0; j < VECTORS; j++)
            x[j] = quantized_bounded(load_vec(from + at + j * LANES), &by);
        prefetch_unit(from + at);
        store_saturated(to + at, x);
    }
}

TARE_ALWAYS_INLINE TARGET void quantize_clamped(uint8_t *to, const float *from, const struct tare_stage *stage,
                                                int64_t count, const enum tare_stage_code code) {
    const struct quotient by = load_quotient(stage);
    for (int64_t at = 0; at < count; at += (int64_t)VECTORS * LANES) {
        ivec x[VECTORS];
        TARE_UNROLL
        for (int j = 0; j < VECTORS; j++) {
            const vec y = load_vec(from + at + j * LANES);
            x[j] = code == TARE_STAGE_QUANTIZE_TO_INT ? round_to_int(clamped(y, stage))
                                                      : quantized(y, &by, code == TARE_STAGE_QUANTIZE_RATIO);
        }
        prefetch_unit(from + at);
        store_bytes(to + at, x);
    }
}

/* The stages whose integers become bytes without being stored as lanes are the last ones. */
static bool is_to_bytes(const struct tare_stage *stage) {
    return stage->code >= TARE_STAGE_QUANTIZE_TO_INT;
}

TARE_ALWAYS_INLINE TARGET void quantize(void *to, const float *from, const struct tare_stage *stage, int64_t count) {
    if (stage->is_bounded)
        quantize_bounded(to, from, stage, count);
    else if (stage->code == TARE_STAGE_QUANTIZE_RATIO)
        quantize_clamped(to, from, stage, count, TARE_STAGE_QUANTIZE_RATIO);
    else if (stage->code == TARE_STAGE_QUANTIZE_QUOTIENT)
        quantize_clamped(to, from, stage, count, TARE_STAGE_QUANTIZE_QUOTIENT);
    else
        quantize_clamped(to, from, stage, count, TARE_STAGE_QUANTIZE_TO_INT);
}

/* The last stage writes to the result itself if its elements are lanes. */
TARGET void RUN(void *to, const void *from, const struct tare_pipeline *pipeline, int64_t count) {
    if (!pipeline->range && convert_bfloat16(to, from, pipeline, count)) return;
    _Alignas(64) float lanes[TILE * LANES];
    const int64_t from_size = (int64_t)tare_lane_size(pipeline->from), to_size = (int64_t)tare_lane_size(pipeline->to);
    const struct tare_stage *end = pipeline->stages + pipeline->n_stages;
    const struct tare_stage *bytes = to_size == 1 && end > pipeline->stages && is_to_bytes(&end[-1]) ? &end[-1] : NULL;
    range_lanes seen;
    if (pipeline->range) seen = range_load(pipeline->range);
    for (int64_t at = 0; at < count; at += TILE * LANES) {
        const int64_t n = (count - at < TILE * LANES ? count - at : TILE * LANES) / LANES;
        char *result = (char *)to + at * to_size;
        const float *x = load_tile(lanes, (const char *)from + at * from_size, pipeline->from, n);
        for (const struct tare_stage *stage = pipeline->stages; stage < end && stage != bytes; stage++) {
            float *next = stage + 1 == end && to_size == sizeof *lanes ? (float *)(void *)result : lanes;
            run_stage(next, x, stage, at, n);
            x = next;
        }
        if (bytes)
            quantize(result, x, bytes, n * LANES);
        else
            store_tile(result, pipeline->to, x, n);
        if (pipeline->range) FOR_EACH(j, n) range_add(&seen, load_vec(x + j * LANES));
    }
    if (pipeline->range) range_store(pipeline->range, &seen);
}
