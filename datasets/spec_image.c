/* Images in features: decoding and processing steps. */
#include "datasets/spec_input.h"
#include "base/image/image.h"

/* size · to / from, rounded half up to whole pixels. */
static int64_t scaled(int64_t size, int64_t to, int64_t from) {
    const int64_t pixels = (2 * to * size + from) / (2 * from);
    return pixels > 0 ? pixels : 1;
}

/* The size that the image of rows x columns gets before it is padded. */
static void find_size(int64_t *height, int64_t *width, int64_t rows, int64_t columns,
                      const Tare__DatasetResize *resize) {
    const int64_t shorter = resize->shorter_side, longer = resize->longer_side;
    bool by_rows; /* the rows decide, the columns follow */
    *height = resize->height;
    *width = resize->width;
    if (shorter || longer) {
        *height = *width = shorter ? shorter : longer;
        by_rows = shorter ? rows <= columns : rows >= columns;
    } else if (resize->n_pad) {
        by_rows = *height * columns <= *width * rows;
    } else {
        return;
    }
    if (by_rows)
        *width = scaled(columns, *height, rows);
    else
        *height = scaled(rows, *width, columns);
}

static tare_status run_resize(struct tare_tensor *image, const Tare__DatasetResize *resize) {
    static const enum tare_resize_rule rules[] = {
        [TARE__DATASET_RESIZE__METHOD__BILINEAR] = TARE_RESIZE_BILINEAR,
        [TARE__DATASET_RESIZE__METHOD__NEAREST] = TARE_RESIZE_NEAREST,
        [TARE__DATASET_RESIZE__METHOD__AREA] = TARE_RESIZE_AREA,
        [TARE__DATASET_RESIZE__METHOD__ANTIALIAS] = TARE_RESIZE_BILINEAR,
        [TARE__DATASET_RESIZE__METHOD__BICUBIC] = TARE_RESIZE_BICUBIC,
        [TARE__DATASET_RESIZE__METHOD__LANCZOS3] = TARE_RESIZE_LANCZOS3,
        [TARE__DATASET_RESIZE__METHOD__LANCZOS5] = TARE_RESIZE_LANCZOS5,
        [TARE__DATASET_RESIZE__METHOD__GAUSSIAN] = TARE_RESIZE_GAUSSIAN,
        [TARE__DATASET_RESIZE__METHOD__MITCHELLCUBIC] = TARE_RESIZE_MITCHELL,
    };
    const struct tare_resize how = {
        .rule = rules[resize->method],
        .antialias =
            resize->filter_case ? resize->antialias : resize->method >= TARE__DATASET_RESIZE__METHOD__ANTIALIAS,
        .pil = resize->convention == TARE__DATASET_RESIZE__CONVENTION__PIL,
    };
    const int64_t rows = image->shape.dims[0], columns = image->shape.dims[1];
    int64_t height, width;
    find_size(&height, &width, rows, columns, resize);
    if (height > INT16_MAX || width > INT16_MAX)
        return TARE_FAIL(TARE_SHAPE, "an image of %lld x %lld would be resized to %lld x %lld (expected at most %d)",
                         (long long)rows, (long long)columns, (long long)height, (long long)width, INT16_MAX);
    TARE_TRY(tare_image_resize(image, height, width, &how));
    if (!resize->n_pad) return TARE_OK;
    return tare_image_pad(image, resize->height, resize->width, resize->pad, resize->n_pad);
}

static tare_status run_pad(struct tare_tensor *image, const Tare__DatasetPad *pad) {
    static const double black = 0;
    return tare_image_pad(image, pad->height, pad->width, pad->n_value ? pad->value : &black,
                          pad->n_value ? pad->n_value : 1);
}

static tare_status run_step(struct tare_tensor *image, const Tare__DatasetImageStep *step) {
    if (step->kind_case == TARE__DATASET_IMAGE_STEP__KIND_RESIZE) return run_resize(image, step->resize);
    if (step->kind_case == TARE__DATASET_IMAGE_STEP__KIND_PAD) return run_pad(image, step->pad);
    if (step->crop->fraction != 0) return tare_image_crop_fraction(image, step->crop->fraction);
    return tare_image_crop(image, step->crop->height, step->crop->width);
}

static tare_status swap_colours(struct tare_tensor *image) {
    int64_t channels = image->shape.dims[2];
    struct tare_tensor copy;
    if (!tare_tensor_is_exclusive(image)) { /* an array's own pixels */
        TARE_TRY(tare_tensor_copy(&copy, image));
        tare_tensor_reset(image);
        *image = copy;
    }
    for (int64_t i = 0; i + 2 < image->elements; i += channels) {
        if (image->dtype == TARE_DT_FLOAT) {
            float *pixel = TARE_DATA(float, image) + i, red = pixel[0];
            pixel[0] = pixel[2];
            pixel[2] = red;
        } else {
            uint8_t *pixel = TARE_DATA(uint8_t, image) + i, red = pixel[0];
            pixel[0] = pixel[2];
            pixel[2] = red;
        }
    }
    return TARE_OK;
}

tare_status tare__spec_edit_image(struct tare_tensor *pixels, const Tare__DatasetInput *input) {
    const Tare__DatasetImage *image = input->image;
    if (image && image->channels && pixels->shape.rank == 3 && pixels->shape.dims[2] != image->channels)
        return TARE_FAIL(TARE_SHAPE,
                         "an image of %lld channels (expected channels: %d, which only the decoders of files "
                         "convert)",
                         (long long)pixels->shape.dims[2], (int)image->channels);
    for (size_t i = 0; image && i < image->n_step; i++)
        TARE_TRY(run_step(pixels, image->step[i]));
    if (!image || image->order != TARE__DATASET_IMAGE__ORDER__BGR || pixels->shape.dims[2] < 3) return TARE_OK;
    return swap_colours(pixels);
}

tare_status tare__spec_make_image(struct tare_tensor *out, const Tare__DatasetInput *input, struct tare_str file) {
    enum tare_image_format format = TARE_IMAGE_ANY;
    if (input->source == TARE__DATASET_INPUT__SOURCE__JPEG) format = TARE_IMAGE_JPEG;
    if (input->source == TARE__DATASET_INPUT__SOURCE__PNG) format = TARE_IMAGE_PNG;
    TARE_TRY(tare_image_decode(out, file, format, input->image ? input->image->channels : 0));
    return tare__spec_edit_image(out, input);
}
