/* GIF: frames with palettes, compressed by LZW. Written to be read beside the file format's description (GIF89a): a
 * header and screen, then blocks: extensions (0x21), frames (0x2c), and the end (0x3b). */
#include "base/image/codec.h"
#include "base/alloc.h"

#include <string.h>

/* A code has at least two bits and stands for at most as many pixels as there are codes. */
enum { CODES = 4096, NO_COLOUR = -1, MOST_PIXELS_A_BYTE = 4 * CODES };

struct reader {
    const unsigned char *at, *end;
};

/* A frame's description; its pixels are the codes behind it. */
struct frame {
    int64_t left, top, width, height;
    bool interlaced;
    const unsigned char *palette; /* three bytes a colour */
    int colours, transparent;     /* NO_COLOUR: none */
    struct reader data;           /* from the code size on */
};

struct gif {
    struct reader reader;
    const unsigned char *palette; /* for frames without one */
    int colours, transparent;     /* of the next frame */
};

static tare_status damaged(const char *what) {
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid GIF data: %s", what);
}

static bool take(const unsigned char **out, struct reader *reader, size_t size) {
    if ((size_t)(reader->end - reader->at) < size) return false;
    *out = reader->at;
    reader->at += size;
    return true;
}

static int64_t word(const unsigned char *bytes) {
    return bytes[0] | bytes[1] << 8;
}

/* Size-counted blocks up to an empty one. */
static bool skip_blocks(struct reader *reader) {
    const unsigned char *size, *body;
    do {
        if (!take(&size, reader, 1) || !take(&body, reader, *size)) return false;
    } while (*size);
    return true;
}

static tare_status read_palette(const unsigned char **out, int *colours, struct reader *reader, unsigned flags) {
    *out = NULL;
    *colours = 0;
    if (!(flags & 0x80)) return TARE_OK;
    *colours = 2 << (flags & 7);
    return take(out, reader, 3 * (size_t)*colours) ? TARE_OK : damaged("the palette is cut off");
}

static tare_status open_gif(struct gif *gif, struct tare_str file) {
    const unsigned char *head;
    gif->reader.at = (const unsigned char *)file.data;
    gif->reader.end = gif->reader.at + file.size;
    gif->transparent = NO_COLOUR;
    if (!take(&head, &gif->reader, 13) || (memcmp(head, "GIF87a", 6) != 0 && memcmp(head, "GIF89a", 6) != 0))
        return damaged("no header");
    return read_palette(&gif->palette, &gif->colours, &gif->reader, head[10]);
}

/* A graphics control extension says which colour of the next frame is none. */
static tare_status read_extension(struct gif *gif) {
    const unsigned char *label, *body;
    struct reader ahead;
    if (!take(&label, &gif->reader, 1)) return damaged("an extension is cut off");
    ahead = gif->reader;
    if (*label == 0xf9 && take(&body, &ahead, 5) && body[0] == 4) gif->transparent = body[1] & 1 ? body[4] : NO_COLOUR;
    return skip_blocks(&gif->reader) ? TARE_OK : damaged("an extension is cut off");
}

static tare_status read_frame(struct frame *out, struct gif *gif) {
    const unsigned char *head, *size;
    if (!take(&head, &gif->reader, 9)) return damaged("a frame is cut off");
    *out = (struct frame){ word(head), word(head + 2),   word(head + 4), word(head + 6), (head[8] & 0x40) != 0, NULL,
                           0,          gif->transparent, gif->reader };
    TARE_TRY(read_palette(&out->palette, &out->colours, &gif->reader, head[8]));
    if (!out->palette) {
        out->palette = gif->palette;
        out->colours = gif->colours;
    }
    gif->transparent = NO_COLOUR;
    out->data = gif->reader;
    if (!take(&size, &gif->reader, 1) || !skip_blocks(&gif->reader)) return damaged("a frame is cut off");
    if (!out->width || !out->height) return damaged("a frame without pixels");
    if (out->width * out->height > (int64_t)(gif->reader.at - out->data.at) * MOST_PIXELS_A_BYTE)
        return damaged("a frame of more pixels than its bytes can hold");
    return TARE_OK;
}

/* The next frame; *more is false at the end. A file that stops behind a frame ends there. */
static tare_status next_frame(struct frame *out, bool *more, struct gif *gif) {
    const unsigned char *kind;
    for (*more = false; take(&kind, &gif->reader, 1) && *kind != 0x3b;) {
        if (*kind == 0x21) {
            TARE_TRY(read_extension(gif));
        } else if (*kind == 0x2c) {
            *more = true;
            return read_frame(out, gif);
        } else if (*kind) {
            return damaged("an unknown block");
        }
    }
    return TARE_OK;
}

tare_status tare_gif_size(struct tare_str file, int64_t *frames, int64_t *height, int64_t *width) {
    struct gif gif;
    struct frame frame;
    bool more;
    *frames = *height = *width = 0;
    TARE_TRY(open_gif(&gif, file));
    for (;;) {
        TARE_TRY(next_frame(&frame, &more, &gif));
        if (!more) break;
        ++*frames;
        if (frame.width > *width) *width = frame.width;
        if (frame.height > *height) *height = frame.height;
    }
    return *frames ? TARE_OK : damaged("no frames");
}

/* ---- LZW ---- */

/* Codes of a growing number of bits out of size-counted blocks, the low bits first. */
struct bits {
    struct reader reader;
    unsigned block; /* bytes left in it */
    unsigned value, count;
};

static bool next_code(unsigned *code, struct bits *bits, unsigned size) {
    const unsigned char *byte;
    while (bits->count < size) {
        if (!bits->block) {
            if (!take(&byte, &bits->reader, 1) || !*byte) return false;
            bits->block = *byte;
        }
        if (!take(&byte, &bits->reader, 1)) return false;
        bits->block--;
        bits->value |= (unsigned)*byte << bits->count;
        bits->count += 8;
    }
    *code = bits->value & ((1u << size) - 1);
    bits->value >>= size;
    bits->count -= size;
    return true;
}

struct lzw {
    uint16_t prefix[CODES];
    uint8_t last[CODES], stack[CODES];
};

/* Writes the string of a code, of which `first` is the first byte, and gives how many fitted. */
static int64_t write_string(uint8_t *to, int64_t room, struct lzw *lzw, unsigned code, unsigned clear, uint8_t *first) {
    int64_t depth = 0, written = 0;
    while (code >= clear && depth < CODES - 1) {
        lzw->stack[depth++] = lzw->last[code];
        code = lzw->prefix[code];
    }
    lzw->stack[depth++] = *first = (uint8_t)code;
    while (depth && written < room)
        to[written++] = lzw->stack[--depth];
    return written;
}

/* Palette numbers, row by row as they come. Data that ends early is a fault. */
static tare_status inflate_frame(uint8_t *to, int64_t count, struct lzw *lzw, const struct frame *frame) {
    struct bits bits = { frame->data, 0, 0, 0 };
    const unsigned char *size;
    unsigned start, clear, next, width, code, before = CODES;
    uint8_t first = 0;
    int64_t at = 0;
    if (!take(&size, &bits.reader, 1) || *size < 1 || *size > 11) return damaged("a bad code size");
    start = *size;
    clear = 1u << start;
    next = clear + 2;
    width = start + 1;
    while (at < count) {
        if (!next_code(&code, &bits, width) || code == clear + 1) return damaged("a frame's pixels end early");
        if (code == clear) {
            next = clear + 2;
            width = start + 1;
            before = CODES;
            continue;
        }
        if (code > next || (code == next && before == CODES)) return damaged("a code that is not known");
        if (before != CODES && next < CODES) { /* the new string is the one before and this one's first byte */
            lzw->prefix[next] = (uint16_t)before;
            if (code == next) lzw->last[next] = first;
        }
        at += write_string(to + at, count - at, lzw, code, clear, &first);
        if (before != CODES && next < CODES) {
            lzw->last[next++] = first;
            if (next == 1u << width && width < 12) width++;
        }
        before = code;
    }
    return TARE_OK;
}

/* ---- pixels ---- */

/* The row of the frame that comes k-th in the file. */
static int64_t row_of(const struct frame *frame, int64_t k) {
    static const int starts[] = { 0, 4, 2, 1 }, steps[] = { 8, 8, 4, 2 };
    for (int pass = 0; frame->interlaced && pass < 4; pass++) {
        const int64_t rows = frame->height <= starts[pass] ? 0 : (frame->height - starts[pass] - 1) / steps[pass] + 1;
        if (k < rows) return starts[pass] + k * steps[pass];
        k -= rows;
    }
    return k;
}

/* Paints a frame over `canvas`, which holds the one before it. What lies outside is not painted. */
static tare_status paint(uint8_t *canvas, int64_t height, int64_t width, const struct frame *frame,
                         const uint8_t *numbers) {
    if (!frame->palette) return damaged("a frame without palette");
    for (int64_t k = 0; k < frame->height; k++) {
        const int64_t row = frame->top + row_of(frame, k);
        for (int64_t column = 0; column < frame->width && row < height; column++) {
            const int number = numbers[k * frame->width + column];
            if (frame->left + column >= width || number == frame->transparent) continue;
            if (number >= frame->colours) return damaged("a pixel outside of the palette");
            memcpy(canvas + 3 * (row * width + frame->left + column), frame->palette + 3 * number, 3);
        }
    }
    return TARE_OK;
}

static tare_status decode_frame(uint8_t *canvas, int64_t height, int64_t width, const struct frame *frame,
                                struct lzw *lzw) {
    const int64_t count = frame->width * frame->height; /* of 16 bits each */
    uint8_t *numbers = tare_calloc((size_t)count, 1);
    tare_status status = numbers ? inflate_frame(numbers, count, lzw, frame) : TARE_NO_MEMORY;
    if (status == TARE_OK) status = paint(canvas, height, width, frame, numbers);
    tare_free(numbers);
    return status;
}

tare_status tare_gif_decode(struct tare_str file, int64_t frames, int64_t height, int64_t width, uint8_t *pixels) {
    const size_t size = 3 * (size_t)height * (size_t)width;
    struct lzw *lzw = tare_calloc(1, sizeof *lzw);
    struct gif gif;
    struct frame frame;
    bool more = true;
    tare_status status = lzw ? open_gif(&gif, file) : TARE_NO_MEMORY;
    for (int64_t k = 0; k < frames && status == TARE_OK && more; k++) {
        uint8_t *canvas = pixels + (size_t)k * size;
        status = next_frame(&frame, &more, &gif);
        if (status != TARE_OK || !more) break;
        if (k == 0)
            memset(canvas, 0, size);
        else
            memcpy(canvas, canvas - size, size);
        status = decode_frame(canvas, height, width, &frame, lzw);
    }
    tare_free(lzw);
    if (status == TARE_OK && !more) return damaged("fewer frames than there were");
    return status;
}
