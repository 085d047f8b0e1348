/* Decoding and encoding image files: DecodeJpeg, DecodePng, DecodeBmp, DecodeGif, DecodeImage, EncodePng, EncodeJpeg
 * and related ops. */
#include "base/alloc.h"
#include "base/image/codec.h"
#include "interpreter/ops/support/operand.h"
#include "interpreter/ops/string/text.h"

#include <string.h>

enum format { FORMAT_UNKNOWN, FORMAT_PNG, FORMAT_JPEG, FORMAT_BMP, FORMAT_GIF };

static enum format format_of(struct tare_str file) {
    if (file.size >= 8 && memcmp(file.data, "\211PNG\r\n\032\n", 8) == 0) return FORMAT_PNG;
    if (file.size >= 3 && memcmp(file.data, "\377\330\377", 3) == 0) return FORMAT_JPEG;
    if (file.size >= 2 && memcmp(file.data, "BM", 2) == 0) return FORMAT_BMP;
    if (file.size >= 4 && memcmp(file.data, "GIF8", 4) == 0) return FORMAT_GIF;
    return FORMAT_UNKNOWN;
}

struct target {
    struct tare_kernel *kernel;
    int dtype;
};

static void *make_output(void *arg, int64_t height, int64_t width, int64_t channels) {
    struct target *target = arg;
    struct tare_shape shape = { .rank = 3, .dims = { height, width, channels } };
    if (tare_kernel_output(target->kernel, 0, target->dtype, &shape) != TARE_OK) return NULL;
    return target->kernel->outputs[0].data;
}

static tare_status infer_decode(struct tare_infer *infer) {
    int64_t channels = tare_node_int(infer->node, "channels", 0);
    TARE_TRY(tare_operand_rank(infer, 0, "contents", 0));
    if (channels < 0 || channels > 4)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "channels must be 0, 1, 3 or 4, got %lld", (long long)channels);
    if (strcmp(infer->node->op, "DecodeImage") == 0 && tare_node_bool(infer->node, "expand_animations", true))
        return TARE_OK; /* an animation has one more dimension */
    infer->outputs[0] = tare_operand_unknown_dims(3);
    if (channels) infer->outputs[0].dims[2] = channels;
    if (infer->n_inputs > 1) { /* a crop window */
        int64_t window[TARE_MAX_RANK];
        int count;
        TARE_TRY(tare_operand_list(infer, 1, "crop_window", window, &count));
        if (count >= 0 && count != 4) return TARE_FAIL(TARE_INVALID_ARGUMENT, "crop_window must have four elements");
        if (count == 4 && window[2] > 0 && window[3] > 0) {
            infer->outputs[0].dims[0] = window[2];
            infer->outputs[0].dims[1] = window[3];
        }
    }
    return TARE_OK;
}

static tare_status jpeg_options(struct tare_jpeg_options *out, const struct tare_kernel *kernel) {
    const struct tare_node *node = kernel->node;
    const char *dct = tare_node_string(node, "dct_method", "");
    int64_t ratio = tare_node_int(node, "ratio", 1);
    *out = (struct tare_jpeg_options){ .ratio = (int)ratio,
                                       .fancy_upscaling = tare_node_bool(node, "fancy_upscaling", true),
                                       .accurate_dct = strcmp(dct, "INTEGER_ACCURATE") == 0,
                                       .recover_truncated = tare_node_bool(node, "try_recover_truncated", false) };
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "ratio must be 1, 2, 4, or 8, got %lld", (long long)ratio);
    if (kernel->n_inputs > 1) {
        const struct tare_tensor *window = &kernel->inputs[1];
        out->crop = true;
        out->top = tare_tensor_get_i64(window, 0);
        out->left = tare_tensor_get_i64(window, 1);
        out->height = tare_tensor_get_i64(window, 2);
        out->width = tare_tensor_get_i64(window, 3);
    }
    return TARE_OK;
}

/* Converts between image dtypes as TensorFlow does: uint8 to uint16, and uint8 and uint16 to float, by scaling the full
 * range. */
static tare_status widen(struct tare_kernel *kernel, int dtype) {
    struct tare_tensor narrow = kernel->outputs[0];
    const bool is_byte = narrow.dtype == TARE_DT_UINT8;
    const float scale = is_byte ? 1.0f / UINT8_MAX : 1.0f / UINT16_MAX;
    tare_status status;
    memset(&kernel->outputs[0], 0, sizeof kernel->outputs[0]);
    status = tare_kernel_output(kernel, 0, dtype, &narrow.shape);
    for (int64_t i = 0; status == TARE_OK && i < narrow.elements; i++) {
        const uint16_t value = is_byte ? TARE_CONST_DATA(uint8_t, &narrow)[i] : TARE_CONST_DATA(uint16_t, &narrow)[i];
        if (dtype == TARE_DT_FLOAT)
            TARE_DATA(float, &kernel->outputs[0])[i] = (float)value * scale;
        else
            TARE_DATA(uint16_t, &kernel->outputs[0])[i] = (uint16_t)(value * 256);
    }
    tare_tensor_reset(&narrow);
    return status;
}

/* Animations have one more dimension, except for ops that return a single image. */
static tare_status decode_gif(struct tare_kernel *kernel, struct tare_str file, int channels) {
    const bool is_gif_op = strcmp(kernel->node->op, "DecodeGif") == 0;
    const bool is_any = strcmp(kernel->node->op, "DecodeImage") == 0;
    const bool expand = is_gif_op || (is_any && tare_node_bool(kernel->node, "expand_animations", true));
    struct tare_shape shape = { .rank = expand ? 4 : 3 };
    int64_t frames, height, width;
    if (channels != 0 && channels != 3)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "channels must be 0 or 3 for GIF, got %d", channels);
    TARE_TRY(tare_gif_size(file, &frames, &height, &width));
    if (!is_gif_op && !is_any && frames > 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "Got %lld frames, but animated gifs can only be decoded by tf.io.decode_gif or "
                         "tf.io.decode_image",
                         (long long)frames);
    if (expand) shape.dims[0] = frames;
    shape.dims[shape.rank - 3] = height;
    shape.dims[shape.rank - 2] = width;
    shape.dims[shape.rank - 1] = 3;
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_UINT8, &shape));
    return tare_gif_decode(file, expand ? frames : 1, height, width, kernel->outputs[0].data);
}

/* A PNG file is decoded to 16 bits for float, too, so that deep ones keep their precision. */
static tare_status decode(struct tare_kernel *kernel, enum format format, int channels, int dtype) {
    struct tare_str file = tare_text_at(&kernel->inputs[0], 0);
    struct target target = { kernel, format == FORMAT_PNG && dtype != TARE_DT_UINT8 ? TARE_DT_UINT16 : TARE_DT_UINT8 };
    struct tare_jpeg_options options;
    switch (format) {
    case FORMAT_PNG:
        TARE_TRY(tare_png_decode(file, channels, target.dtype == TARE_DT_UINT16, make_output, &target));
        break;
    case FORMAT_JPEG:
        if (channels == 2 || channels == 4)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "channels must be 0, 1, or 3 for JPEG, got %d", channels);
        TARE_TRY(jpeg_options(&options, kernel));
        TARE_TRY(tare_jpeg_decode(file, channels, &options, make_output, &target));
        break;
    case FORMAT_BMP:
        TARE_TRY(tare_bmp_decode(file, channels, make_output, &target));
        break;
    case FORMAT_GIF:
        TARE_TRY(decode_gif(kernel, file, channels));
        break;
    default:
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "Unknown image file format. One of JPEG, PNG, GIF, BMP required.");
    }
    return target.dtype == dtype ? TARE_OK : widen(kernel, dtype);
}

/* Any other image format decodes to an animation of one frame. */
static tare_status run_decode_gif(struct tare_kernel *kernel) {
    struct tare_tensor image;
    struct tare_shape shape = { .rank = 4, .dims = { 1 } };
    struct tare_shape *shapes;
    tare_status status;
    TARE_TRY(tare_operand_shapes(kernel, &shapes)); /* input 0 is the contents of one file */
    const enum format format = format_of(tare_text_at(&kernel->inputs[0], 0));
    TARE_TRY(decode(kernel, format, format == FORMAT_GIF ? 0 : 3, TARE_DT_UINT8));
    if (format == FORMAT_GIF) return TARE_OK;
    image = kernel->outputs[0];
    memcpy(shape.dims + 1, image.shape.dims, 3 * sizeof *shape.dims);
    status = tare_tensor_share_as(&kernel->outputs[0], &image, &shape);
    tare_tensor_reset(&image);
    return status;
}

/* The format is detected from the contents, whatever the op's name, as in TensorFlow. */
static tare_status run_decode(struct tare_kernel *kernel) {
    int channels = (int)tare_node_int(kernel->node, "channels", 0);
    int dtype = tare_node_type(kernel->node, "dtype", TARE_DT_UINT8);
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    return decode(kernel, format_of(tare_text_at(&kernel->inputs[0], 0)), channels, dtype);
}

static tare_status run_crop(struct tare_kernel *kernel) {
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (kernel->inputs[1].elements != 4) return TARE_FAIL(TARE_INVALID_ARGUMENT, "crop_window must have four elements");
    return decode(kernel, FORMAT_JPEG, (int)tare_node_int(kernel->node, "channels", 0), TARE_DT_UINT8);
}

static tare_status infer_decode_gif(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 0, "contents", 0));
    infer->outputs[0] = tare_operand_unknown_dims(4);
    infer->outputs[0].dims[3] = 3;
    return TARE_OK;
}

static tare_status infer_jpeg_shape(struct tare_infer *infer) {
    TARE_TRY(tare_operand_rank(infer, 0, "contents", 0));
    infer->outputs[0] = tare_operand_vector_shape(3);
    return TARE_OK;
}

static tare_status run_jpeg_shape(struct tare_kernel *kernel) {
    int64_t dims[3] = { 0 };
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    TARE_TRY(tare_jpeg_size(tare_text_at(&kernel->inputs[0], 0), &dims[0], &dims[1], &dims[2]));
    TARE_TRY(tare_kernel_output(kernel, 0, tare_node_type(kernel->node, "output_type", TARE_DT_INT32), &shapes[0]));
    for (int d = 0; d < 3; d++)
        tare_text_set_index(&kernel->outputs[0], d, dims[d]);
    return TARE_OK;
}

static tare_status infer_encode(struct tare_infer *infer) {
    bool batched = strcmp(infer->node->op, "EncodePng") == 0;
    const struct tare_shape *in = &infer->inputs[0];
    if (in->rank == TARE_UNKNOWN_RANK) return TARE_OK;
    if (in->rank < 3 || (!batched && in->rank != 3))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "image must be 3-dimensional, got rank %d", in->rank);
    infer->outputs[0] = *in;
    infer->outputs[0].rank = in->rank - 3;
    return TARE_OK;
}

static tare_status encode_one(struct tare_strbuf *buf, const struct tare_kernel *kernel, const void *pixels,
                              const int64_t *dims) {
    const struct tare_node *node = kernel->node;
    const char *format = tare_node_string(node, "format", "");
    if (strcmp(node->op, "EncodePng") == 0)
        return tare_png_encode(buf, pixels, dims[0], dims[1], (int)dims[2], kernel->inputs[0].dtype == TARE_DT_UINT16,
                               (int)tare_node_int(node, "compression", -1));
    if ((dims[2] != 1 && dims[2] != 3) || (strcmp(format, "grayscale") == 0 && dims[2] != 1) ||
        (strcmp(format, "rgb") == 0 && dims[2] != 3))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "format '%s' does not support an image of %lld channels", format,
                         (long long)dims[2]);
    return tare_jpeg_encode(buf, pixels, dims[0], dims[1], (int)dims[2], (int)tare_node_int(node, "quality", 95),
                            tare_node_bool(node, "progressive", false), tare_node_bool(node, "optimize_size", false),
                            tare_node_bool(node, "chroma_downsampling", true));
}

static tare_status run_encode(struct tare_kernel *kernel) {
    const struct tare_tensor *in = &kernel->inputs[0];
    const int64_t *dims = in->shape.dims + in->shape.rank - 3;
    struct tare_strbuf buf = { 0 };
    struct tare_shape *shapes;
    tare_status status = TARE_OK;
    size_t image;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    if (dims[0] < 1 || dims[1] < 1 || dims[2] < 1 || dims[2] > 4 || dims[0] > 65500 || dims[1] > 65500)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "image must have 1 to 65500 rows and columns and 1 to 4 channels (got "
                         "%lldx%lldx%lld)",
                         (long long)dims[0], (long long)dims[1], (long long)dims[2]);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_STRING, &shapes[0]));
    image = (size_t)(dims[0] * dims[1] * dims[2]) * tare_dtype_size(in->dtype);
    for (int64_t i = 0; status == TARE_OK && i < kernel->outputs[0].elements; i++) {
        status = encode_one(&buf, kernel, (const char *)in->data + (size_t)i * image, dims);
        if (status == TARE_OK) status = tare_text_store(&kernel->outputs[0], i, &buf);
    }
    tare_strbuf_free(&buf);
    return status;
}

const struct tare_op tare_ops_image_file[] = {
    { .name = "DecodeAndCropJpeg", .infer = infer_decode, .run = run_crop },
    { .name = "DecodeBmp", .infer = infer_decode, .run = run_decode },
    { .name = "DecodeGif", .infer = infer_decode_gif, .run = run_decode_gif },
    { .name = "DecodeImage", .infer = infer_decode, .run = run_decode },
    { .name = "DecodeJpeg", .infer = infer_decode, .run = run_decode },
    { .name = "DecodePng", .infer = infer_decode, .run = run_decode },
    { .name = "EncodeJpeg", .infer = infer_encode, .run = run_encode },
    { .name = "EncodePng", .infer = infer_encode, .run = run_encode },
    { .name = "ExtractJpegShape", .infer = infer_jpeg_shape, .run = run_jpeg_shape },
    { 0 },
};
