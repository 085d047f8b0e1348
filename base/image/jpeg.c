/* JPEG in memory by libjpeg-turbo, and BMP. Errors of libjpeg return through longjmp, so that memory to be freed is
 * never held in local variables. */
#include "base/alloc.h"
#include "base/image/codec.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <jpeglib.h>

struct jpeg_fault {
    struct jpeg_error_mgr manager; /* first member: callbacks of libjpeg get a pointer to it */
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
    unsigned char *row; /* freed by the function that called setjmp */
};

static void on_error(j_common_ptr jpeg) {
    struct jpeg_fault *fault = (struct jpeg_fault *)jpeg->err;
    jpeg->err->format_message(jpeg, fault->text);
    longjmp(fault->back, 1);
}

static void on_message(j_common_ptr jpeg) {
    (void)jpeg;
}

static void set_faults(struct jpeg_fault *fault) {
    jpeg_std_error(&fault->manager);
    fault->manager.error_exit = on_error;
    fault->manager.output_message = on_message;
}

/* CMYK rows as Adobe writes them (inverted) to RGB. */
static void cmyk_to_rgb(unsigned char *to, const unsigned char *from, int64_t width, bool inverted) {
    for (int64_t x = 0; x < width; x++, to += 3, from += 4)
        for (int c = 0; c < 3; c++)
            to[c] = (unsigned char)(inverted ? from[3] * from[c] / 255 : (255 - from[3]) * (255 - from[c]) / 255);
}

static tare_status check_window(const struct tare_jpeg_options *options, int64_t height, int64_t width) {
    if (options->height < 1 || options->width < 1 || options->top < 0 || options->left < 0 ||
        options->height > height - options->top || options->width > width - options->left)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Invalid crop window: y=%lld, x=%lld, %lldx%lld of an image of %lldx%lld",
                         (long long)options->top, (long long)options->left, (long long)options->height,
                         (long long)options->width, (long long)height, (long long)width);
    return TARE_OK;
}

static tare_status read_rows(struct jpeg_decompress_struct *jpeg, struct jpeg_fault *fault,
                             const struct tare_jpeg_options *options, tare_codec_make_fn make, void *arg) {
    bool cmyk = jpeg->out_color_space == JCS_CMYK;
    int channels = cmyk ? 3 : jpeg->output_components;
    int64_t top = options->crop ? options->top : 0, left = options->crop ? options->left : 0;
    int64_t height = options->crop ? options->height : jpeg->output_height;
    int64_t width = options->crop ? options->width : jpeg->output_width;
    unsigned char *pixels, *row;
    if (options->crop) TARE_TRY(check_window(options, jpeg->output_height, jpeg->output_width));
    pixels = make(arg, height, width, channels);
    if (!pixels) return TARE_NO_MEMORY;
    row = fault->row = tare_calloc(jpeg->output_width, 7); /* four channels as decoded, three after conversion to RGB */
    if (!row) return TARE_NO_MEMORY;
    for (int64_t y = 0; y < top + height; y++) {
        unsigned char *source = row;
        jpeg_read_scanlines(jpeg, &row, 1);
        if (jpeg->err->num_warnings && !options->recover_truncated)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid JPEG data: damaged or truncated at row %lld",
                             (long long)y);
        if (y < top) continue;
        if (cmyk) {
            source = row + 4 * (size_t)jpeg->output_width;
            cmyk_to_rgb(source, row, jpeg->output_width, jpeg->saw_Adobe_marker);
        }
        memcpy(pixels + (size_t)((y - top) * width * channels), source + (size_t)(left * channels),
               (size_t)(width * channels));
    }
    return TARE_OK;
}

static void read_header(struct jpeg_decompress_struct *jpeg, struct tare_str file) {
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, (const unsigned char *)file.data, file.size);
    jpeg_read_header(jpeg, TRUE);
}

/* The part that may longjmp; a separate function, so that no variables of the caller are in registers across the jump.
 */
static tare_status decompress(struct jpeg_decompress_struct *jpeg, struct jpeg_fault *fault, struct tare_str file,
                              int channels, const struct tare_jpeg_options *options, tare_codec_make_fn make,
                              void *arg) {
    read_header(jpeg, file);
    if (jpeg->jpeg_color_space == JCS_CMYK || jpeg->jpeg_color_space == JCS_YCCK)
        jpeg->out_color_space = JCS_CMYK;
    else if (channels == 1 || (channels == 0 && jpeg->num_components == 1))
        jpeg->out_color_space = JCS_GRAYSCALE;
    else
        jpeg->out_color_space = JCS_RGB;
    if (jpeg->out_color_space == JCS_CMYK && channels == 1)
        return TARE_FAIL(TARE_UNSUPPORTED, "a CMYK JPEG cannot be decoded to grayscale");
    jpeg->scale_num = 1;
    jpeg->scale_denom = (unsigned)options->ratio;
    jpeg->do_fancy_upsampling = options->fancy_upscaling;
    jpeg->dct_method = options->accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    jpeg_start_decompress(jpeg);
    return read_rows(jpeg, fault, options, make, arg);
}

tare_status tare_jpeg_decode(struct tare_str file, int channels, const struct tare_jpeg_options *options,
                             tare_codec_make_fn make, void *arg) {
    struct jpeg_decompress_struct jpeg = { 0 };
    struct jpeg_fault fault = { 0 };
    tare_status status;
    set_faults(&fault);
    jpeg.err = &fault.manager;
    if (setjmp(fault.back))
        status = TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid JPEG data, size %zu: %s", file.size, fault.text);
    else
        status = decompress(&jpeg, &fault, file, channels, options, make, arg);
    jpeg_destroy_decompress(&jpeg);
    tare_free(fault.row);
    return status;
}

tare_status tare_jpeg_size(struct tare_str file, int64_t *height, int64_t *width, int64_t *channels) {
    struct jpeg_decompress_struct jpeg = { 0 };
    struct jpeg_fault fault = { 0 };
    set_faults(&fault);
    jpeg.err = &fault.manager;
    if (setjmp(fault.back)) {
        jpeg_destroy_decompress(&jpeg);
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Invalid JPEG data, size %zu: %s", file.size, fault.text);
    }
    read_header(&jpeg, file);
    *height = jpeg.image_height;
    *width = jpeg.image_width;
    *channels = jpeg.num_components;
    jpeg_destroy_decompress(&jpeg);
    return TARE_OK;
}

/* Compressed bytes are appended to a growing buffer. */
struct sink {
    struct jpeg_destination_mgr manager; /* first member: callbacks of libjpeg get a pointer to it */
    struct tare_strbuf *out;
    JOCTET buffer[4096];
};

static void sink_start(j_compress_ptr jpeg) {
    struct sink *sink = (struct sink *)jpeg->dest;
    sink->manager.next_output_byte = sink->buffer;
    sink->manager.free_in_buffer = sizeof sink->buffer;
}

static boolean sink_full(j_compress_ptr jpeg) {
    struct sink *sink = (struct sink *)jpeg->dest;
    tare_strbuf_append(sink->out, sink->buffer, sizeof sink->buffer);
    sink_start(jpeg);
    return TRUE;
}

static void sink_end(j_compress_ptr jpeg) {
    struct sink *sink = (struct sink *)jpeg->dest;
    tare_strbuf_append(sink->out, sink->buffer, sizeof sink->buffer - sink->manager.free_in_buffer);
}

static void write_rows(struct jpeg_compress_struct *jpeg, const unsigned char *pixels, int quality, bool progressive,
                       bool optimize, bool downsample) {
    size_t row_size = (size_t)jpeg->image_width * (size_t)jpeg->input_components;
    jpeg_set_defaults(jpeg);
    jpeg_set_quality(jpeg, quality, TRUE);
    if (progressive) jpeg_simple_progression(jpeg);
    jpeg->optimize_coding = optimize;
    if (!downsample) jpeg->comp_info[0].h_samp_factor = jpeg->comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(jpeg, TRUE);
    while (jpeg->next_scanline < jpeg->image_height) {
        JSAMPROW row = (JSAMPROW)pixels + jpeg->next_scanline * row_size;
        jpeg_write_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_compress(jpeg);
}

tare_status tare_jpeg_encode(struct tare_strbuf *out, const void *pixels, int64_t height, int64_t width, int channels,
                             int quality, bool progressive, bool optimize, bool downsample) {
    struct jpeg_compress_struct jpeg = { 0 };
    struct jpeg_fault fault = { 0 };
    struct sink sink = { { NULL, 0, sink_start, sink_full, sink_end }, out, { 0 } };
    set_faults(&fault);
    jpeg.err = &fault.manager;
    if (setjmp(fault.back)) {
        jpeg_destroy_compress(&jpeg);
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "cannot encode the image as JPEG: %s", fault.text);
    }
    jpeg_create_compress(&jpeg);
    jpeg.dest = &sink.manager;
    jpeg.image_width = (JDIMENSION)width;
    jpeg.image_height = (JDIMENSION)height;
    jpeg.input_components = channels;
    jpeg.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    write_rows(&jpeg, pixels, quality, progressive, optimize, downsample);
    jpeg_destroy_compress(&jpeg);
    return TARE_OK;
}

/* ---- BMP: uncompressed, 8, 24 or 32 bits, either row order ---- */

static uint32_t le32(const unsigned char *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

tare_status tare_bmp_decode(struct tare_str file, int channels, tare_codec_make_fn make, void *arg) {
    const unsigned char *p = (const unsigned char *)file.data;
    int64_t width, height, rows, stride, offset;
    int depth;
    unsigned char *pixels;
    if (file.size < 54 || p[0] != 'B' || p[1] != 'M')
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Incomplete bmp content, requires at least 54 bytes, got %zu",
                         file.size);
    offset = le32(p + 10);
    width = (int32_t)le32(p + 18);
    height = (int32_t)le32(p + 22);
    depth = (int)(p[28] | p[29] << 8) / 8;
    rows = height < 0 ? -height : height;
    if (channels && channels != depth)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "channels attribute %d does not match bits per pixel from file %d",
                         channels, depth);
    if ((depth != 1 && depth != 3 && depth != 4) || width < 1 || rows < 1 || rows > INT32_MAX)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Number of channels must be 1, 3 or 4 and the image not empty, was %d",
                         depth);
    stride = (width * depth + 3) / 4 * 4;
    if (offset > (int64_t)file.size || stride > ((int64_t)file.size - offset) / rows)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Incomplete bmp content: %zu bytes for %lldx%lldx%d pixels", file.size,
                         (long long)rows, (long long)width, depth);
    pixels = make(arg, rows, width, depth);
    if (!pixels) return TARE_NO_MEMORY;
    for (int64_t y = 0; y < rows; y++) {
        const unsigned char *from = p + offset + (height < 0 ? y : rows - 1 - y) * stride;
        for (int64_t x = 0; x < width; x++, from += depth) {
            for (int c = 0; c < depth; c++)
                *pixels++ = from[depth > 1 && c < 3 ? 2 - c : c];
        }
    }
    return TARE_OK;
}
