/* Image resizing with TensorFlow's sampling rules: the source coordinate of an output pixel depends on align_corners
 * and half_pixel_centers; the method determines the weights of the neighbouring pixels. Images are [batch, height,
 * width, channels]; arithmetic is in float. */
#include "interpreter/ops/image/resize.h"

#include "interpreter/ops/families.h"
#include "interpreter/ops/support/floats.h"

#include "base/alloc.h"
#include "base/tensor/number.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- shapes ---- */

/* `batch` images resized from `in` to `out`; index 0 is the height. */
struct images {
    int64_t batch, in[2], out[2], channels;
};

static tare_status size_of(int64_t out[2], const struct tare_tensor *size) {
    if (size->shape.rank != 1 || size->elements != 2)
        return TARE_FAIL(TARE_SHAPE, "size has %lld elements (expected 2)", (long long)size->elements);
    for (int i = 0; i < 2; i++) {
        out[i] = tare_tensor_get_i64(size, i);
        if (out[i] <= 0 || out[i] > INT32_MAX)
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "size contains %lld (expected a positive number)",
                             (long long)out[i]);
    }
    return TARE_OK;
}

static tare_status images_of(struct images *images, const struct tare_shape *shape, const struct tare_tensor *size) {
    if (shape->rank != 4) return TARE_FAIL(TARE_SHAPE, "images has rank %d (expected 4)", shape->rank);
    *images = (struct images){ .batch = shape->dims[0],
                               .in = { shape->dims[1], shape->dims[2] },
                               .channels = shape->dims[3] };
    for (int i = 0; i < 2; i++) {
        if (images->in[i] < 1 || images->in[i] > INT32_MAX)
            return TARE_FAIL(TARE_SHAPE, "images of %lld by %lld pixels", (long long)images->in[0],
                             (long long)images->in[1]);
    }
    return size_of(images->out, size);
}

static tare_status infer_resize(struct tare_infer *infer) {
    const struct tare_shape *shape = &infer->inputs[0];
    struct tare_shape out = tare_shape_make(4, -1, -1, -1, -1);
    int64_t size[2] = { 0 };
    if (shape->rank >= 0 && shape->rank != 4)
        return TARE_FAIL(TARE_SHAPE, "images has rank %d (expected 4)", shape->rank);
    if (shape->rank == 4) {
        out.dims[0] = shape->dims[0];
        out.dims[3] = shape->dims[3];
    }
    if (infer->input_values[1]) {
        TARE_TRY(size_of(size, infer->input_values[1]));
        out.dims[1] = size[0];
        out.dims[2] = size[1];
    }
    infer->outputs[0] = out;
    return TARE_OK;
}

/* ---- weights of one axis ---- */

enum { MOST_TAPS = 4 };

/* The samples of one output position. Bilinear uses low, high and lerp; bicubic uses all four taps. */
struct sample {
    int64_t low, high;
    float lerp;
    int64_t taps[MOST_TAPS];
    float weights[MOST_TAPS];
};

struct sampling {
    bool align_corners, half_pixel;
};

static float scale_of(int64_t in, int64_t out, bool align_corners) {
    return align_corners && out > 1 ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
}

static float place_of(int64_t at, float scale, bool half_pixel) {
    return half_pixel ? ((float)at + 0.5f) * scale - 0.5f : (float)at * scale;
}

static int64_t bound(int64_t at, int64_t size) {
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

static void linear_samples(struct sample *samples, int64_t in, int64_t out, struct sampling how) {
    const float scale = scale_of(in, out, how.align_corners);
    for (int64_t i = 0; i < out; i++) {
        const float place = place_of(i, scale, how.half_pixel), whole = floorf(place);
        samples[i].low = bound((int64_t)whole, in);
        samples[i].high = bound((int64_t)ceilf(place), in);
        samples[i].lerp = place - whole;
    }
}

static void nearest_samples(struct sample *samples, int64_t in, int64_t out, struct sampling how) {
    const float scale = scale_of(in, out, how.align_corners);
    for (int64_t i = 0; i < out; i++) {
        const float place = how.half_pixel ? ((float)i + 0.5f) * scale : (float)i * scale;
        samples[i].low = bound((int64_t)(how.align_corners ? roundf(place) : floorf(place)), in);
    }
}

/* Keys' cubic kernel with parameter `a` at distances t (near) and 1 + t (far), with t a multiple of 1/1024
 * (TensorFlow's coefficient table). */
static void cubic_pair(float *near, float *far, float t, float a) {
    *near = ((a + 2) * t - (a + 3)) * t * t + 1;
    t += 1;
    *far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

/* With half-pixel centers, taps outside the image have weight 0 and the others are rescaled; without, they repeat
 * the border pixel. */
static void cubic_samples(struct sample *samples, int64_t in, int64_t out, struct sampling how) {
    enum { STEPS = 1024 };
    const float scale = scale_of(in, out, how.align_corners), a = how.half_pixel ? -0.5f : -0.75f;
    for (int64_t i = 0; i < out; i++) {
        struct sample *sample = &samples[i];
        const float place = place_of(i, scale, how.half_pixel), whole = floorf(place);
        const float step = tare_round_half_even_f((place - whole) * STEPS);
        cubic_pair(&sample->weights[1], &sample->weights[0], step / STEPS, a);
        cubic_pair(&sample->weights[2], &sample->weights[3], (STEPS - step) / STEPS, a);
        float sum = 0;
        for (int k = 0; k < MOST_TAPS; k++) {
            const int64_t at = (int64_t)whole - 1 + k;
            sample->taps[k] = bound(at, in);
            if (how.half_pixel && sample->taps[k] != at) sample->weights[k] = 0;
            sum += sample->weights[k];
        }
        if (!how.half_pixel || fabsf(sum) < 1000.0f * FLT_MIN) continue;
        for (int k = 0; k < MOST_TAPS; k++)
            sample->weights[k] *= 1.0f / sum;
    }
}

/* ---- images ---- */

static void bilinear_image(float *to, const float *image, const struct images *images, const struct sample *ys,
                           const struct sample *xs) {
    const int64_t channels = images->channels, line = images->in[1] * channels;
    for (int64_t y = 0; y < images->out[0]; y++) {
        const float *top = image + ys[y].low * line, *bottom = image + ys[y].high * line;
        for (int64_t x = 0; x < images->out[1]; x++, to += channels) {
            const int64_t left = xs[x].low * channels, right = xs[x].high * channels;
            for (int64_t c = 0; c < channels; c++) {
                const float upper = top[left + c] + (top[right + c] - top[left + c]) * xs[x].lerp;
                const float lower = bottom[left + c] + (bottom[right + c] - bottom[left + c]) * xs[x].lerp;
                to[c] = upper + (lower - upper) * ys[y].lerp;
            }
        }
    }
}

static float weighted(const float *values, int64_t stride, const struct sample *sample) {
    return values[sample->taps[0] * stride] * sample->weights[0] +
           values[sample->taps[1] * stride] * sample->weights[1] +
           values[sample->taps[2] * stride] * sample->weights[2] +
           values[sample->taps[3] * stride] * sample->weights[3];
}

/* Interpolates along columns first, then along the line. */
static void bicubic_image(float *to, const float *image, const struct images *images, const struct sample *ys,
                          const struct sample *xs) {
    const int64_t channels = images->channels, line = images->in[1] * channels;
    for (int64_t y = 0; y < images->out[0]; y++) {
        for (int64_t x = 0; x < images->out[1]; x++, to += channels) {
            for (int64_t c = 0; c < channels; c++) {
                float sum = 0;
                for (int k = 0; k < MOST_TAPS; k++)
                    sum += weighted(image + xs[x].taps[k] * channels + c, line, &ys[y]) * xs[x].weights[k];
                to[c] = sum;
            }
        }
    }
}

typedef void samples_function(struct sample *samples, int64_t in, int64_t out, struct sampling how);
typedef void image_function(float *to, const float *image, const struct images *images, const struct sample *ys,
                            const struct sample *xs);

/* A row's aux. */
struct resizer {
    samples_function *samples;
    image_function *image;
};
static const struct resizer bilinear = { linear_samples, bilinear_image }, bicubic = { cubic_samples, bicubic_image };

tare_status tare_resize_bilinear(float *to, const struct tare_shape *out, const float *from,
                                 const struct tare_shape *in, bool align_corners, struct tare_arena *scratch) {
    const struct images images = { .batch = in->dims[0],
                                   .in = { in->dims[1], in->dims[2] },
                                   .out = { out->dims[1], out->dims[2] },
                                   .channels = in->dims[3] };
    const struct sampling how = { align_corners, false };
    struct sample *ys = TARE_NEW_ARRAY(scratch, struct sample, (size_t)images.out[0]);
    struct sample *xs = TARE_NEW_ARRAY(scratch, struct sample, (size_t)images.out[1]);
    if (!ys || !xs) return TARE_NO_MEMORY;
    linear_samples(ys, images.in[0], images.out[0], how);
    linear_samples(xs, images.in[1], images.out[1], how);
    const int64_t pixels_in = images.in[0] * images.in[1], pixels_out = images.out[0] * images.out[1];
    for (int64_t b = 0; b < images.batch; b++)
        bilinear_image(to + b * pixels_out * images.channels, from + b * pixels_in * images.channels, &images, ys, xs);
    return TARE_OK;
}

static tare_status sampling_of(struct sampling *how, const struct tare_node *node) {
    how->align_corners = tare_node_bool(node, "align_corners", false);
    how->half_pixel = tare_node_bool(node, "half_pixel_centers", false);
    if (how->align_corners && how->half_pixel)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "both align_corners and half_pixel_centers");
    return TARE_OK;
}

static tare_status open_samples(struct tare_kernel *kernel, struct sample **ys, struct sample **xs,
                                const struct images *images, samples_function *samples) {
    struct sampling how;
    TARE_TRY(sampling_of(&how, kernel->node));
    *ys = TARE_NEW_ARRAY(kernel->scratch, struct sample, (size_t)images->out[0]);
    *xs = TARE_NEW_ARRAY(kernel->scratch, struct sample, (size_t)images->out[1]);
    if (!*ys || !*xs) return TARE_NO_MEMORY;
    samples(*ys, images->in[0], images->out[0], how);
    samples(*xs, images->in[1], images->out[1], how);
    return TARE_OK;
}

static struct tare_shape output_shape(const struct images *images) {
    return (struct tare_shape){ .rank = 4,
                                .dims = { images->batch, images->out[0], images->out[1], images->channels } };
}

static tare_status run_resize(struct tare_kernel *kernel) {
    const struct resizer *resizer = kernel->op->aux;
    struct images images;
    struct sample *ys, *xs;
    TARE_TRY(images_of(&images, &kernel->inputs[0].shape, &kernel->inputs[1]));
    const struct tare_shape shape = output_shape(&images);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_FLOAT, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(open_samples(kernel, &ys, &xs, &images, resizer->samples));
    const float *from = tare_floats_in(kernel, &kernel->inputs[0]);
    if (!from) return TARE_NO_MEMORY;
    if (resizer == &bilinear && images.in[0] == images.out[0] && images.in[1] == images.out[1]) {
        /* the pixels themselves, as in TensorFlow, since inf - inf would be NaN */
        memcpy(kernel->outputs[0].data, from, (size_t)kernel->outputs[0].elements * sizeof *from);
        return TARE_OK;
    }
    const int64_t in = images.in[0] * images.in[1] * images.channels;
    const int64_t out = images.out[0] * images.out[1] * images.channels;
    for (int64_t b = 0; b < images.batch; b++)
        resizer->image((float *)kernel->outputs[0].data + b * out, from + b * in, &images, ys, xs);
    return TARE_OK;
}

/* Copies elements of any dtype. */
static tare_status run_nearest(struct tare_kernel *kernel) {
    const struct tare_tensor *input = &kernel->inputs[0];
    struct images images;
    struct sample *ys, *xs;
    TARE_TRY(images_of(&images, &input->shape, &kernel->inputs[1]));
    const struct tare_shape shape = output_shape(&images);
    TARE_TRY(tare_kernel_output(kernel, 0, input->dtype, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    TARE_TRY(open_samples(kernel, &ys, &xs, &images, nearest_samples));
    const size_t pixel = (size_t)images.channels * tare_dtype_size(input->dtype);
    char *to = kernel->outputs[0].data;
    for (int64_t b = 0; b < images.batch; b++) {
        for (int64_t y = 0; y < images.out[0]; y++) {
            const char *line =
                (const char *)input->data + (size_t)((b * images.in[0] + ys[y].low) * images.in[1]) * pixel;
            for (int64_t x = 0; x < images.out[1]; x++, to += pixel)
                memcpy(to, line + (size_t)xs[x].low * pixel, pixel);
        }
    }
    return TARE_OK;
}

/* ---- area resizing: means over boxes ---- */

struct area {
    float start, end; /* the output pixel's extent in the input */
    int64_t first, last;
};

static struct area area_at(int64_t at, float scale) {
    struct area area = { .start = (float)at * scale, .end = (float)(at + 1) * scale };
    area.first = (int64_t)floorf(area.start);
    area.last = (int64_t)ceilf(area.end);
    return area;
}

/* The fraction of input pixel `at` that the box covers. */
static float covered(const struct area *area, int64_t at, float scale) {
    if ((float)at < area->start) return (float)(at + 1) > area->end ? scale : (float)(at + 1) - area->start;
    return (float)(at + 1) > area->end ? area->end - (float)at : 1.0f;
}

static void area_pixel(float *to, const float *image, const struct images *images, const struct area *y,
                       const struct area *x, const float scale[2]) {
    memset(to, 0, (size_t)images->channels * sizeof *to);
    for (int64_t i = y->first; i < y->last; i++) {
        const float *line = image + bound(i, images->in[0]) * images->in[1] * images->channels;
        const float weight_y = covered(y, i, scale[0]);
        for (int64_t j = x->first; j < x->last; j++) {
            const float *pixel = line + bound(j, images->in[1]) * images->channels;
            const float weight = weight_y * covered(x, j, scale[1]);
            for (int64_t c = 0; c < images->channels; c++)
                to[c] += pixel[c] * weight;
        }
    }
    for (int64_t c = 0; c < images->channels; c++)
        to[c] *= 1.0f / (scale[0] * scale[1]);
}

static tare_status run_area(struct tare_kernel *kernel) {
    struct images images;
    TARE_TRY(images_of(&images, &kernel->inputs[0].shape, &kernel->inputs[1]));
    const struct tare_shape shape = output_shape(&images);
    const bool align = tare_node_bool(kernel->node, "align_corners", false);
    TARE_TRY(tare_kernel_output(kernel, 0, TARE_DT_FLOAT, &shape));
    if (kernel->outputs[0].elements == 0) return TARE_OK;
    const float *from = tare_floats_in(kernel, &kernel->inputs[0]);
    if (!from) return TARE_NO_MEMORY;
    float *to = kernel->outputs[0].data;
    const float scale[2] = { scale_of(images.in[0], images.out[0], align),
                             scale_of(images.in[1], images.out[1], align) };
    for (int64_t b = 0; b < images.batch; b++) {
        const float *image = from + b * images.in[0] * images.in[1] * images.channels;
        for (int64_t y = 0; y < images.out[0]; y++) {
            const struct area area_y = area_at(y, scale[0]);
            for (int64_t x = 0; x < images.out[1]; x++, to += images.channels) {
                const struct area area_x = area_at(x, scale[1]);
                area_pixel(to, image, &images, &area_y, &area_x, scale);
            }
        }
    }
    return TARE_OK;
}

/* ---- gradients: distributes each output gradient to the pixels it was computed from; sums in double ---- */

typedef void spread_function(double *to, const struct tare_tensor *grads, int64_t at, const struct images *images,
                             const struct sample *y, const struct sample *x);

static void spread_linear(double *to, const struct tare_tensor *grads, int64_t at, const struct images *images,
                          const struct sample *y, const struct sample *x) {
    const int64_t channels = images->channels, line = images->in[1] * channels;
    for (int64_t c = 0; c < channels; c++) {
        const double g = tare_tensor_get_f64(grads, at + c), top = g * (1.0 - (double)y->lerp),
                     low = g * (double)y->lerp;
        to[y->low * line + x->low * channels + c] += top * (1.0 - (double)x->lerp);
        to[y->low * line + x->high * channels + c] += top * (double)x->lerp;
        to[y->high * line + x->low * channels + c] += low * (1.0 - (double)x->lerp);
        to[y->high * line + x->high * channels + c] += low * (double)x->lerp;
    }
}

static void spread_nearest(double *to, const struct tare_tensor *grads, int64_t at, const struct images *images,
                           const struct sample *y, const struct sample *x) {
    for (int64_t c = 0; c < images->channels; c++)
        to[(y->low * images->in[1] + x->low) * images->channels + c] += tare_tensor_get_f64(grads, at + c);
}

static void spread_cubic(double *to, const struct tare_tensor *grads, int64_t at, const struct images *images,
                         const struct sample *y, const struct sample *x) {
    for (int i = 0; i < MOST_TAPS * MOST_TAPS; i++) {
        const double weight = (double)y->weights[i / MOST_TAPS] * (double)x->weights[i % MOST_TAPS];
        double *pixel = to + (y->taps[i / MOST_TAPS] * images->in[1] + x->taps[i % MOST_TAPS]) * images->channels;
        for (int64_t c = 0; c < images->channels; c++)
            pixel[c] += weight * tare_tensor_get_f64(grads, at + c);
    }
}

/* A row's aux. */
struct resize_gradient {
    samples_function *samples;
    spread_function *spread;
};
static const struct resize_gradient bilinear_gradient = { linear_samples, spread_linear },
                                    nearest_gradient = { nearest_samples, spread_nearest },
                                    bicubic_gradient = { cubic_samples, spread_cubic };

static tare_status infer_like_image(struct tare_infer *infer) {
    infer->outputs[0] = infer->inputs[1];
    if (infer->inputs[1].rank < 0 || infer->inputs[1].rank == 4) return TARE_OK;
    return TARE_FAIL(TARE_SHAPE, "original_image has rank %d (expected 4)", infer->inputs[1].rank);
}

/* Computes the gradient of `grads` with respect to the images. `original`: an array with their shape; NULL: operand
 * 1 contains the size. */
static tare_status run_gradient(struct tare_kernel *kernel, const struct tare_shape *original) {
    const struct resize_gradient *how = kernel->op->aux;
    const struct tare_tensor *grads = &kernel->inputs[0];
    struct images images = { 0 };
    struct sample *ys, *xs;
    int64_t size[2];
    if (grads->shape.rank != 4 || (original && original->rank != 4))
        return TARE_FAIL(TARE_SHAPE, "grads has rank %d (expected 4)", grads->shape.rank);
    if (original)
        memcpy(size, original->dims + 1, sizeof size);
    else
        TARE_TRY(size_of(size, &kernel->inputs[1]));
    if (original && (original->dims[0] != grads->shape.dims[0] || original->dims[3] != grads->shape.dims[3]))
        return TARE_FAIL(TARE_SHAPE, "original_image and grads differ in batch or channels");
    images = (struct images){ .batch = grads->shape.dims[0],
                              .in = { size[0], size[1] },
                              .out = { grads->shape.dims[1], grads->shape.dims[2] },
                              .channels = grads->shape.dims[3] };
    const struct tare_shape shape = tare_shape_make(4, images.batch, size[0], size[1], images.channels);
    TARE_TRY(tare_kernel_output(kernel, 0, tare_dtype_base(kernel->node->output_dtypes[0]), &shape));
    struct tare_tensor *output = &kernel->outputs[0];
    double *sums = TARE_NEW_ARRAY(kernel->scratch, double, (size_t)output->elements);
    if (!sums) return TARE_NO_MEMORY;
    if (output->elements && grads->elements) {
        TARE_TRY(open_samples(kernel, &ys, &xs, &images, how->samples));
        int64_t at = 0;
        for (int64_t b = 0; b < images.batch; b++)
            for (int64_t i = 0; i < images.out[0] * images.out[1]; i++, at += images.channels)
                how->spread(sums + b * size[0] * size[1] * images.channels, grads, at, &images, &ys[i / images.out[1]],
                            &xs[i % images.out[1]]);
    }
    for (int64_t i = 0; i < output->elements; i++)
        tare_tensor_set_f64(output, i, sums[i]);
    return TARE_OK;
}

static tare_status run_image_gradient(struct tare_kernel *kernel) {
    return run_gradient(kernel, &kernel->inputs[1].shape);
}
static tare_status run_size_gradient(struct tare_kernel *kernel) {
    return run_gradient(kernel, NULL);
}

const struct tare_op tare_ops_resize[] = {
    { .name = "ResizeBilinear", .infer = infer_resize, .run = run_resize, .aux = &bilinear },
    { .name = "ResizeBicubic", .infer = infer_resize, .run = run_resize, .aux = &bicubic },
    { .name = "ResizeNearestNeighbor", .infer = infer_resize, .run = run_nearest, .flags = TARE_OP_MOVE },
    { .name = "ResizeArea", .infer = infer_resize, .run = run_area },
    { .name = "ResizeBilinearGrad", .infer = infer_like_image, .run = run_image_gradient, .aux = &bilinear_gradient },
    { .name = "ResizeBicubicGrad", .infer = infer_like_image, .run = run_image_gradient, .aux = &bicubic_gradient },
    { .name = "ResizeNearestNeighborGrad", .infer = infer_resize, .run = run_size_gradient, .aux = &nearest_gradient },
    { 0 },
};
