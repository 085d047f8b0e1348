/* Int8 convolutions of a dilated input: one direct convolution of the input itself for each phase of the output
 * (conv_geometry.h). The padding between the elements contains pad_value, a zero point, as that around them does: the
 * taps of a position that are not those of its phase meet it everywhere, so the sums of a phase start at pad_value
 * times the sum of their weights.
 *
 * A block of output lines is complete when the phases of all its lines are: their positions are interleaved in a
 * buffer of sums, which the sink then takes. */
#include "interpreter/kernels/integer/conv_int_phases.h"

#include "base/alloc.h"
#include "interpreter/kernels/integer/conv_int_direct.h"

#include <string.h>

enum { BLOCK_SUMS = 1 << 15, ALIGNMENT = 64 };

enum tare_igemm_form tare_conv_int_phases_form(enum tare_cpu_level level) {
    const enum tare_igemm_form form = tare_igemm_form_at(level);
    return form == TARE_IGEMM_TILES ? TARE_IGEMM_QUADS : form; /* whose sums start at 0 */
}

static int64_t taps_of(const struct tare_conv_phase *phase) {
    const int64_t *kernel = phase->conv.kernel;
    return kernel[0] * kernel[1] * kernel[2];
}

bool tare_conv_int_has_phases(enum tare_igemm_form form, const struct tare_conv *conv) {
    struct tare_conv_phase phase;
    if (!tare_conv_has_phases(conv) || conv->base_dilation[0] != 1 || conv->stride[0] != 1) return false;
    if (conv->stride[1] != 1 || conv->stride[2] != 1) return false;
    for (int64_t p = 0; tare_conv_take_phase(&phase, conv, p); p++)
        if (taps_of(&phase) > 0 && !tare_conv_int_is_direct(form, &phase.conv)) return false;
    return true;
}

/* Those of one phase; a phase without taps has the starting sums alone. */
static size_t phase_bytes(enum tare_igemm_form form, const struct tare_conv_phase *phase) {
    const size_t bytes = taps_of(phase) > 0 ? tare_conv_int_direct_packed_bytes(form, &phase->conv)
                                            : (size_t)phase->conv.out_channels * sizeof(int32_t);
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

size_t tare_conv_int_phases_packed_bytes(enum tare_igemm_form form, const struct tare_conv *conv) {
    struct tare_conv_phase phase;
    size_t bytes = 0;
    for (int64_t p = 0; tare_conv_take_phase(&phase, conv, p); p++) {
        const size_t own = phase_bytes(form, &phase);
        if (own == 0 || !tare_add_size(&bytes, bytes, own)) return 0;
    }
    return bytes;
}

/* ---- packing ---- */

/* Adds pad_value times the weights of `taps` taps to a number for each output channel. */
static void add_taps(int32_t *to, const struct tare_conv *conv, const int8_t *filter, int64_t taps, int64_t sign) {
    const int64_t n = conv->out_channels;
    for (int64_t i = 0; i < taps * conv->in_channels; i++)
        for (int64_t c = 0; c < n; c++)
            to[c] = (int32_t)((uint32_t)to[c] + (uint32_t)(sign * conv->pad_value * filter[i * n + c]));
}

/* `taken`, `starts`: room for the taps of a phase and for a number of each output channel. */
static tare_status pack_phase(void *packed, enum tare_igemm_form form, const struct tare_conv *conv,
                              const struct tare_conv_phase *phase, const int8_t *filter, int8_t *taken,
                              int32_t *starts) {
    const int64_t taps = taps_of(phase), size = conv->in_channels * conv->out_channels;
    for (int64_t t = 0; t < taps; t++)
        memcpy(taken + t * size, filter + tare_conv_phase_tap(phase, conv, t) * size, (size_t)size);
    memset(starts, 0, (size_t)conv->out_channels * sizeof *starts);
    add_taps(starts, conv, filter, conv->kernel[0] * conv->kernel[1] * conv->kernel[2], 1);
    add_taps(starts, conv, taken, taps, -1);
    if (taps == 0) {
        memcpy(packed, starts, (size_t)conv->out_channels * sizeof *starts);
        return TARE_OK;
    }
    TARE_TRY(tare_conv_int_direct_pack(packed, form, &phase->conv, taken));
    tare_igemm_add_starts(packed, starts, conv->out_channels);
    return TARE_OK;
}

tare_status tare_conv_int_phases_pack(void *packed, enum tare_igemm_form form, const struct tare_conv *conv,
                                      const int8_t *filter) {
    int8_t *taken = tare_malloc((size_t)(tare_conv_patch(conv) * conv->out_channels) + 1);
    int32_t *starts = tare_malloc((size_t)conv->out_channels * sizeof *starts + 1);
    tare_status status = taken && starts ? TARE_OK : TARE_NO_MEMORY;
    struct tare_conv_phase phase;
    char *to = packed;
    for (int64_t p = 0; status == TARE_OK && tare_conv_take_phase(&phase, conv, p); p++) {
        status = pack_phase(to, form, conv, &phase, filter, taken, starts);
        to += phase_bytes(form, &phase);
    }
    tare_free(taken), tare_free(starts);
    return status;
}

/* ---- blocks ---- */

/* Lines of a phase that a block has, at least one. */
static int64_t block_lines(const struct tare_conv *conv) {
    const int64_t all = (conv->out[1] + conv->base_dilation[1] - 1) / conv->base_dilation[1];
    const int64_t most = BLOCK_SUMS / (conv->base_dilation[1] * conv->out[2] * conv->out_channels + 1);
    return most < 1 ? 1 : most > all ? all : most;
}

static int64_t interleaved_sums(const struct tare_conv *conv) {
    return block_lines(conv) * conv->base_dilation[1] * conv->out[2] * conv->out_channels;
}

/* A phase's convolution with the lines of a block. */
static struct tare_conv block_of(const struct tare_conv *conv, const struct tare_conv_phase *phase) {
    struct tare_conv block = phase->conv;
    block.batch = 1;
    if (block.out[1] > block_lines(conv)) block.out[1] = block_lines(conv);
    return block;
}

int64_t tare_conv_int_phases_sums(const struct tare_conv *conv) {
    struct tare_conv_phase phase;
    int64_t most = 0;
    if (tare_conv_rows(conv) == 0) return 0;
    for (int64_t p = 0; tare_conv_take_phase(&phase, conv, p); p++) {
        const struct tare_conv block = block_of(conv, &phase);
        const int64_t sums = taps_of(&phase) > 0 ? tare_conv_int_direct_sums(&block) : 0;
        if (sums > most) most = sums;
    }
    return interleaved_sums(conv) + most;
}

size_t tare_conv_int_phases_scratch(enum tare_igemm_form form, const struct tare_conv *conv) {
    struct tare_conv_phase phase;
    size_t most = 0;
    for (int64_t p = 0; tare_conv_rows(conv) > 0 && tare_conv_take_phase(&phase, conv, p); p++) {
        const struct tare_conv block = block_of(conv, &phase);
        const size_t bytes =
            taps_of(&phase) > 0 && tare_conv_rows(&block) > 0 ? tare_conv_int_direct_scratch(form, &block) : 0;
        if (bytes > most) most = bytes;
    }
    return most;
}

/* ---- running ---- */

/* Where a phase's lines are in the block. */
struct placed {
    const struct tare_conv *conv;
    int32_t *first;
    int64_t width; /* positions of a line of the phase */
};

static int32_t *position_of(const struct placed *at, int64_t position) {
    const struct tare_conv *conv = at->conv;
    const int64_t line = position / at->width * conv->base_dilation[1];
    const int64_t column = position % at->width * conv->base_dilation[2];
    return at->first + (line * conv->out[2] + column) * conv->out_channels;
}

static void place(void *arg, int32_t *sums, int64_t first, int64_t count) {
    const struct placed *at = arg;
    const int64_t n = at->conv->out_channels;
    for (int64_t p = first / n; p < (first + count) / n; p++, sums += n)
        memcpy(position_of(at, p), sums, (size_t)n * sizeof *sums);
}

/* Lines [first, first + count) of a phase; `first` counts those of all images. */
static void run_phase(enum tare_cpu_level level, const struct placed *at, const struct tare_conv_phase *phase,
                      const int8_t *input, enum tare_igemm_form form, const void *packed, int64_t first, int64_t count,
                      int32_t *sums, void *scratch) {
    const int64_t n = phase->conv.out_channels;
    if (taps_of(phase) == 0) {
        for (int64_t p = 0; p < count * at->width; p++)
            memcpy(position_of(at, p), packed, (size_t)n * sizeof *sums);
        return;
    }
    const struct tare_conv_int_sink sink = { .take = place, .arg = (void *)at };
    struct tare_conv lines;
    const int64_t offset = tare_conv_take_lines(&lines, &phase->conv, first, count);
    tare_conv_int_direct_at(level, &sink, &lines, input + offset, form, packed, sums, scratch);
}

/* Lines [line, line + count) of the output of an image, interleaved in `sums`; `line` is that of a first phase. */
static void run_block(enum tare_cpu_level level, const struct tare_conv *conv, const int8_t *input,
                      enum tare_igemm_form form, const void *packed, int64_t image, int64_t line, int64_t count,
                      int32_t *sums, void *scratch) {
    struct tare_conv_phase phase;
    const char *weights = packed;
    const int64_t every = conv->base_dilation[1];
    for (int64_t p = 0; tare_conv_take_phase(&phase, conv, p); p++) {
        const int64_t lines = (count - phase.offset[1] + every - 1) / every;
        const struct placed at = { conv, sums + (phase.offset[1] * conv->out[2] + phase.offset[2]) * conv->out_channels,
                                   phase.conv.out[2] };
        if (lines > 0 && at.width > 0)
            run_phase(level, &at, &phase, input, form, weights, image * phase.conv.out[1] + line / every, lines,
                      sums + interleaved_sums(conv), scratch);
        weights += phase_bytes(form, &phase);
    }
}

void tare_conv_int_phases_at(enum tare_cpu_level level, const struct tare_conv_int_sink *sink,
                             const struct tare_conv *conv, const int8_t *input, enum tare_igemm_form form,
                             const void *packed, int32_t *sums, void *scratch) {
    const int64_t most = block_lines(conv) * conv->base_dilation[1], line_sums = conv->out[2] * conv->out_channels;
    for (int64_t image = 0; line_sums > 0 && image < conv->batch * conv->in[0]; image++) {
        for (int64_t line = 0; line < conv->out[1]; line += most) {
            const int64_t count = conv->out[1] - line < most ? conv->out[1] - line : most;
            run_block(level, conv, input, form, packed, image, line, count, sums, scratch);
            sink->take(sink->arg, sums, (image * conv->out[1] + line) * line_sums, count * line_sums);
        }
    }
}
