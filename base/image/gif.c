/* GIF in memory, by giflib: the frames of an animation, each composed over the one before it into an RGB image.
 *
 * giflib reads the file record by record through read_input and does not read ahead, so that `input` always is at the
 * next unread byte. tare_gif_size skips the compressed pixels, checks that each frame's size is possible for its number
 * of bytes, and thereby bounds what tare_gif_decode works on: that one decodes row by row and holds one row of palette
 * indices. Damaged codes that giflib accepts decode to arbitrary indices, as they do in TensorFlow. */
#include "base/image/codec.h"
#include "base/alloc.h"

#include <gif_lib.h>
#include <string.h>

/* A code has at least two bits and encodes at most as many pixels as there are codes. */
enum { CODES = 4096, MAX_PIXELS_PER_BYTE = 4 * CODES, MAX_CODE_SIZE = 8 };

struct input {
    const unsigned char *at, *end;
};

struct gif {
    GifFileType *file;
    struct input input;
    int transparent; /* palette index of the next frame that is not painted; NO_TRANSPARENT_COLOR: none */
};

static tare_status damaged(const char *what) {
    return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid GIF data: %s", what);
}

/* Failure of a call of giflib. */
static tare_status failed(int error, const char *what) {
    return error == D_GIF_ERR_NOT_ENOUGH_MEM ? TARE_NO_MEMORY : damaged(what);
}

static int read_input(GifFileType *file, GifByteType *to, int size) {
    struct input *input = file->UserData;
    if (size > input->end - input->at) size = (int)(input->end - input->at);
    if (size > 0) memcpy(to, input->at, (size_t)size);
    input->at += size;
    return size;
}

/* Release with close_gif, after a failure too. */
static tare_status open_gif(struct gif *gif, struct tare_str file) {
    int error = 0;
    *gif = (struct gif){ .transparent = NO_TRANSPARENT_COLOR };
    if (file.size < 6 || (memcmp(file.data, "GIF87a", 6) != 0 && memcmp(file.data, "GIF89a", 6) != 0))
        return damaged("no header");
    gif->input.at = (const unsigned char *)file.data;
    gif->input.end = gif->input.at + file.size;
    gif->file = DGifOpen(&gif->input, read_input, &error);
    return gif->file ? TARE_OK : failed(error, "truncated header or palette");
}

static void close_gif(struct gif *gif) {
    if (gif->file) DGifCloseFile(gif->file, NULL);
}

/* A graphics control extension names the transparent colour of the next frame. */
static tare_status read_extension(struct gif *gif) {
    GraphicsControlBlock control;
    GifByteType *block;
    int label;
    int result = DGifGetExtension(gif->file, &label, &block);
    if (result == GIF_OK && block && label == GRAPHICS_EXT_FUNC_CODE &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        gif->transparent = control.TransparentColor;
    while (result == GIF_OK && block)
        result = DGifGetExtensionNext(gif->file, &block);
    return result == GIF_OK ? TARE_OK : failed(gif->file->Error, "truncated extension");
}

/* Reads the description of a frame; its compressed pixels come next. */
static tare_status read_frame(struct gif *gif) {
    if (DGifGetImageDesc(gif->file) != GIF_OK) return failed(gif->file->Error, "truncated frame");
    if (gif->input.at[-1] < 1 || gif->input.at[-1] > MAX_CODE_SIZE) return damaged("invalid code size");
    if (gif->file->Image.Width < 1 || gif->file->Image.Height < 1) return damaged("a frame without pixels");
    return TARE_OK;
}

/* Reads up to the pixels of the next frame; *more is false at the end. A file that stops after a complete frame ends
 * there, and zero bytes between records are skipped. */
static tare_status next_frame(bool *more, struct gif *gif) {
    GifRecordType type;
    for (*more = false;;) {
        while (gif->input.at < gif->input.end && !*gif->input.at)
            gif->input.at++;
        if (gif->input.at == gif->input.end) return TARE_OK;
        if (DGifGetRecordType(gif->file, &type) != GIF_OK) return failed(gif->file->Error, "unknown record type");
        if (type == TERMINATE_RECORD_TYPE) return TARE_OK;
        if (type == IMAGE_DESC_RECORD_TYPE) {
            *more = true;
            return read_frame(gif);
        }
        TARE_TRY(read_extension(gif));
    }
}

/* Skips the frame's compressed pixels and checks that they can encode so many. */
static tare_status skip_pixels(struct gif *gif) {
    const unsigned char *start = gif->input.at - 1; /* the code size belongs to the data */
    GifByteType *block;
    int code_size, result = DGifGetCode(gif->file, &code_size, &block);
    while (result == GIF_OK && block)
        result = DGifGetCodeNext(gif->file, &block);
    if (result != GIF_OK) return failed(gif->file->Error, "truncated frame");
    const int64_t pixels = (int64_t)gif->file->Image.Width * gif->file->Image.Height;
    if (pixels > (gif->input.at - start) * MAX_PIXELS_PER_BYTE)
        return damaged("a frame has more pixels than its bytes can encode");
    gif->transparent = NO_TRANSPARENT_COLOR;
    return TARE_OK;
}

tare_status tare_gif_size(struct tare_str file, int64_t *frames, int64_t *height, int64_t *width) {
    struct gif gif;
    bool more = true;
    *frames = *height = *width = 0;
    tare_status status = open_gif(&gif, file);
    while (status == TARE_OK) {
        status = next_frame(&more, &gif);
        if (status != TARE_OK || !more) break;
        ++*frames;
        if (gif.file->Image.Width > *width) *width = gif.file->Image.Width;
        if (gif.file->Image.Height > *height) *height = gif.file->Image.Height;
        status = skip_pixels(&gif);
    }
    close_gif(&gif);
    return status != TARE_OK || *frames ? status : damaged("no frames");
}

/* ---- pixels ---- */

/* The row of the image that is the k-th in the file. */
static int64_t row_of(const GifImageDesc *image, int64_t k) {
    static const int starts[] = { 0, 4, 2, 1 }, steps[] = { 8, 8, 4, 2 };
    for (int pass = 0; image->Interlace && pass < 4; pass++) {
        const int64_t rows = image->Height <= starts[pass] ? 0 : (image->Height - starts[pass] - 1) / steps[pass] + 1;
        if (k < rows) return starts[pass] + k * steps[pass];
        k -= rows;
    }
    return k;
}

/* Paints one row of palette indices over row `row` of the canvas. Transparent pixels and those outside of the canvas
 * are left out. */
static tare_status paint(uint8_t *canvas, int64_t row, int64_t width, const struct gif *gif,
                         const GifByteType *indices) {
    const GifImageDesc *image = &gif->file->Image;
    const ColorMapObject *palette = image->ColorMap ? image->ColorMap : gif->file->SColorMap;
    if (!palette) return damaged("a frame without palette");
    for (int64_t column = 0; column < image->Width && image->Left + column < width; column++) {
        uint8_t *pixel = canvas + 3 * (row * width + image->Left + column);
        if (indices[column] == gif->transparent) continue;
        if (indices[column] >= palette->ColorCount) return damaged("a pixel outside of the palette");
        const GifColorType *colour = &palette->Colors[indices[column]];
        pixel[0] = colour->Red;
        pixel[1] = colour->Green;
        pixel[2] = colour->Blue;
    }
    return TARE_OK;
}

/* `indices` has space for a row. */
static tare_status decode_frame(uint8_t *canvas, int64_t height, int64_t width, struct gif *gif, GifByteType *indices) {
    const GifImageDesc *image = &gif->file->Image;
    if (image->Width > width || image->Height > height) return damaged("larger frames than before");
    for (int64_t k = 0; k < image->Height; k++) {
        const int64_t row = image->Top + row_of(image, k);
        if (DGifGetLine(gif->file, indices, image->Width) != GIF_OK)
            return failed(gif->file->Error, "the pixels of a frame are truncated or damaged");
        if (row < height) TARE_TRY(paint(canvas, row, width, gif, indices));
    }
    gif->transparent = NO_TRANSPARENT_COLOR;
    return TARE_OK;
}

tare_status tare_gif_decode(struct tare_str file, int64_t frames, int64_t height, int64_t width, uint8_t *pixels) {
    const size_t size = 3 * (size_t)height * (size_t)width;
    GifByteType *indices = tare_malloc((size_t)width);
    struct gif gif = { 0 };
    tare_status status = indices ? open_gif(&gif, file) : TARE_NO_MEMORY;
    for (int64_t k = 0; k < frames && status == TARE_OK; k++) {
        uint8_t *canvas = pixels + (size_t)k * size;
        bool more;
        if (k == 0)
            memset(canvas, 0, size);
        else
            memcpy(canvas, canvas - size, size);
        status = next_frame(&more, &gif);
        if (status == TARE_OK && !more) status = damaged("fewer frames than before");
        if (status == TARE_OK) status = decode_frame(canvas, height, width, &gif, indices);
    }
    close_gif(&gif);
    tare_free(indices);
    return status;
}
