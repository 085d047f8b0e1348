/* What the AVX2 and VNNI variants of int8 depthwise convolutions in tiles share: blocks of channels, their packed
 * weights and their requantization. A variant defines the vector types, the functions on them and the kernels: `vec`
 * holds LANES int32 sums, `vec_float` as many floats, `vec_mask` the channels of a unit that exist.
 *
 * A tile is two adjacent output lines by two columns of a block of LANES * VECTORS channels, whose sums are in
 * registers. The instructions sum adjacent products, so adjacent inputs are interleaved by unpacking in registers.
 *
 * Unpacking orders the channels of a vector by its 128-bit parts: part q of vector v has channels LANES q + 4 v to
 * LANES q + 4 v + 3. The weights have the same order, and packing the sums to bytes restores the order of memory. A
 * unit is LANES channels. Channels that do not fill a block are computed for several tiles at once: two for half a
 * block, as many as a block has units for a unit or less. Each part of a vector then belongs to one of the tiles. */

enum { LINES = 2, COLUMNS = 2, BLOCK = LANES * VECTORS, VECTOR_BYTES = 4 * LANES };

/* Channels of the block before which `left` channels are left. */
static int64_t block_channels(int64_t left) {
    int64_t channels = BLOCK;
    while (channels > left && channels > LANES)
        channels /= 2;
    return left < channels ? left : channels;
}
/* Channels of a tile's part of a vector, with those that do not exist: a power of two. */
static int64_t part_channels(int64_t channels) {
    return channels < LANES ? LANES : channels;
}

/* ---- packing ---- */

/* Bytes of a packed block of channels: the starts of its sums, then the weights in the variant's order. */
static int64_t block_bytes(const struct tare_conv *conv);
/* The weights of channel `channel` as lane `lane` of vector `vector`. */
static void pack_lane(int8_t *block, const struct tare_conv *conv, const int8_t *filter, int64_t channel, int vector,
                      int lane);

static size_t packed_bytes(const struct tare_conv *conv) {
    size_t bytes = 0;
    for (int64_t left = conv->out_channels; left > 0; left -= block_channels(left))
        bytes += (size_t)block_bytes(conv);
    return bytes;
}

/* The first of the four channels in part `part` of vector `vector` of a block. */
static int64_t first_channel(int part, int vector, int64_t channels) {
    return (part * LANES & (part_channels(channels) - 1)) + 4 * vector;
}

static void pack(void *packed, const struct tare_conv *conv, const int8_t *filter) {
    int8_t *block = packed;
    memset(packed, 0, packed_bytes(conv));
    for (int64_t c = 0, channels; c < conv->out_channels; c += channels, block += block_bytes(conv)) {
        channels = block_channels(conv->out_channels - c);
        for (int i = 0; i < BLOCK; i++) {
            const int vector = i / LANES, lane = i % LANES;
            const int64_t channel = first_channel(lane / 4, vector, channels) + lane % 4;
            if (channel < channels) pack_lane(block, conv, filter, c + channel, vector, lane);
        }
    }
}

/* ---- blocks ---- */

/* Requantization of a block to bytes whose bounds packing with saturation and the bytes' maximum and minimum compute:
 * they are integers, and no result is beyond the range of int32. The sums start with the offsets. */
struct bytes {
    vec_float scale[VECTORS];
    vec_float add;
    vec low, high;
    bool is_possible, is_signed;
    bool has_bounds; /* `add` and the bounds permit it */
};

/* One block of channels of the lines of a call. */
struct work {
    const struct tare_igemm_output *output;
    const struct tare_conv *conv;
    const int8_t *x, *end; /* the image, at the block's first channel; its end */
    const char *packed;    /* the block's */
    int64_t line, channel; /* the call's first output line, the block's first channel */
    int64_t part_columns;  /* output columns from a tile to the next one that is computed together with it */
    vec start[VECTORS];    /* of the sums */
    struct bytes bytes;
    struct results results; /* other results, of the variant */
    vec_mask mask;
    void *scratch;
    int8_t padding[BLOCK];
};

/* The bytes of four vectors of sums, whose first belongs to vector 0 of the block. */
TARE_ALWAYS_INLINE TARGET vec requantize(const struct bytes *bytes, vec s0, vec s1, vec s2, vec s3) {
    vec x[] = { s0, s1, s2, s3 };
    TARE_UNROLL
    for (int i = 0; i < 4; i++)
        x[i] = rounded(add_floats(mul_floats(to_floats(x[i]), bytes->scale[i % VECTORS]), bytes->add));
    const vec low = packed_words(x[0], x[1]), high = packed_words(x[2], x[3]);
    if (bytes->is_signed) return min_bytes(max_bytes(packed_bytes_of(low, high), bytes->low), bytes->high);
    return min_unsigned(max_unsigned(packed_unsigned(low, high), bytes->low), bytes->high);
}

/* ---- results ---- */

/* The place of an output position of the block in the result, in elements from the call's first. */
TARE_ALWAYS_INLINE int64_t element_at(const struct work *work, int64_t line, int64_t column) {
    return ((line - work->line) * work->conv->out[2] + column) * work->conv->out_channels + work->channel;
}

/* Vectors of adjacent channels: the units of a column of the tiles. */
struct units {
    vec of[VECTORS];
};
TARE_ALWAYS_INLINE TARGET struct units units_of(const vec sums[VECTORS]);
/* Stores the result of the channels of a unit that exist, from element `element` of the call's result on, the first of
 * which has column `column` of the requantization. */
TARE_ALWAYS_INLINE TARGET void store_unit(struct work *work, vec sums, int64_t element, int64_t column);

/* Any result of the sums of column `column` of a line. */
TARE_ALWAYS_INLINE TARGET void store_any(struct work *work, const vec sums[VECTORS], int64_t line, int64_t column,
                                         int parts) {
    const struct units units = units_of(sums);
    for (int u = 0; u < VECTORS; u++) {
        const int64_t at = column + u * parts / VECTORS * work->part_columns, channel = u * LANES % (BLOCK / parts);
        if (at >= work->conv->out[2]) break;
        store_unit(work, units.of[u], element_at(work, line, at) + channel,
                   work->output->column + work->channel + channel);
    }
}

/* ---- requantization of a block ---- */

/* Values by channel from `values` on, in the order of the sums. Units of channels are a matrix of 128-bit parts, which
 * the order of the sums transposes. */
static TARGET struct units ordered(const void *values, int64_t channels) {
    vec units[VECTORS];
    for (int u = 0; u < VECTORS; u++)
        units[u] = load_vec((const int32_t *)values + first_channel(u, 0, channels));
    return units_of(units);
}

static bool is_byte_bound(float x) {
    return x >= -128 && x <= 255 && x == (float)(int)x;
}

/* True if the bounds are those of a signed byte or of an unsigned one. */
static TARGET bool has_bounds(struct bytes *bytes, const struct tare_quantize_stage *stage) {
    bytes->is_signed = stage->high <= 127;
    if (!is_byte_bound(stage->low) || !is_byte_bound(stage->high) || (!bytes->is_signed && stage->low < 0))
        return false;
    bytes->low = set_bytes((int)stage->low);
    bytes->high = set_bytes((int)stage->high);
    bytes->add = set_floats(stage->add);
    return stage->add > -0x1p29f && stage->add < 0x1p29f;
}

/* Sets the starts of the sums and the requantization to bytes of a block. */
static TARGET void prepare_bytes(struct work *work, int64_t channels) {
    const struct tare_requantize *r = work->output->requantize;
    struct bytes *bytes = &work->bytes;
    const vec_float most_sum = set_floats((float)(work->conv->kernel[1] * work->conv->kernel[2] * 128 * 128));
    bytes->is_possible = bytes->has_bounds;
    for (int v = 0; v < VECTORS; v++)
        work->start[v] = load_vec(work->packed + v * VECTOR_BYTES);
    if (!bytes->is_possible) return;
    const int64_t column = work->output->column + work->channel;
    const struct units offset = ordered(r->offset + column, channels), scale = ordered(r->scale + column, channels);
    for (int v = 0; v < VECTORS; v++) {
        bytes->scale[v] = as_floats(scale.of[v]);
        const vec_float most = add_floats(abs_floats(to_floats(offset.of[v])), most_sum);
        if (!are_below(mul_floats(most, abs_floats(bytes->scale[v])), 0x1p29f)) bytes->is_possible = false;
    }
    for (int v = 0; v < VECTORS && bytes->is_possible; v++)
        work->start[v] = add_ints(work->start[v], offset.of[v]);
}

/* ---- lines ---- */

/* Before and after the lines of a call, and of a block of it. */
static TARGET void open_results(struct work *work);
static TARGET void prepare_results(struct work *work, int64_t channels);
static TARGET void complete_results(const struct work *work);
/* The kernel for a block. */
static void (*kernel_of(const struct tare_conv *conv, int64_t channels))(struct work *work, int64_t count);

static TARGET void run(const struct tare_igemm_output *output, const struct tare_conv *conv, const int8_t *image,
                       int64_t line, int64_t count, const void *packed, void *scratch) {
    struct work work; /* not cleared: that takes longer than some tiles, and most of it is used by some results only */
    work.output = output;
    work.conv = conv;
    work.end = image + conv->in[1] * conv->in[2] * conv->in_channels;
    work.packed = packed;
    work.line = line;
    work.channel = 0;
    work.part_columns = COLUMNS;
    work.scratch = scratch;
    open_results(&work);
    memset(work.padding, conv->pad_value, sizeof work.padding);
    const struct tare_requantize *r = output->requantize;
    work.bytes.has_bounds = r && !r->is_real && !r->addend && has_bounds(&work.bytes, &r->first);
    for (int64_t channels; work.channel < conv->out_channels; work.channel += channels) {
        channels = block_channels(conv->out_channels - work.channel);
        work.x = image + work.channel;
        work.mask = mask_of(channels < LANES ? channels : LANES);
        prepare_bytes(&work, channels);
        prepare_results(&work, channels);
        kernel_of(conv, channels)(&work, count);
        work.packed += block_bytes(conv);
    }
    complete_results(&work);
}

/* Output lines of a call, a multiple of LINES: as few as possible, of which each has at most `most` of something that
 * the cache holds, divided equally. */
static int64_t even_lines(const struct tare_conv *conv, int64_t most) {
    const int64_t parts = most > 0 ? (conv->out[1] + most - 1) / most : conv->out[1];
    const int64_t even = parts > 0 ? (conv->out[1] + parts - 1) / parts : 1;
    return even < LINES ? LINES : (even + LINES - 1) / LINES * LINES;
}
