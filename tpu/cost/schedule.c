/* Adds up work, and its time on a chip. */
#include "tpu/cost/schedule.h"
#include "tpu/cost/fitted.h"

#include <math.h>
#include <string.h>

enum { LANES = 128, SUBLANES = 8, INTEGER_ROWS = 32, WIDE = 256 };

/* Results of fewer channels than images have the images in the lanes; the channels are rows of a tile. */
static bool is_tall(const struct tare_tpu_product *p) {
    return p->kind == TARE_TPU_CONV &&
           ceil(p->columns / SUBLANES) * ceil(p->rows / LANES) < ceil(p->rows / SUBLANES) * ceil(p->columns / LANES);
}

/* A convolution of few channels is of its own kind where its images are moved into the lanes, up to 128 for a quarter
 * of the cycles: many of them, integers as they are padded, and floats of one channel. */
static bool is_stem(const struct tare_tpu_product *p, bool integer) {
    const bool is_many = p->rows >= TARE_TPU_MANY_IMAGES;
    const bool is_moved = integer ? is_many && (p->is_padded || is_tall(p)) : is_many || p->depth <= 1;
    return p->kind == TARE_TPU_CONV && p->depth <= TARE_TPU_FEW_CHANNELS && is_moved;
}

static double stem_groups(double images) {
    return images < TARE_TPU_MANY_IMAGES ? ceil(images / SUBLANES) : ceil(images / LANES) / 4;
}

void tare_tpu_add_product(struct tare_tpu_work_amounts *work, const struct tare_tpu_product *p) {
    const double groups = ceil(p->rows / (work->integer ? INTEGER_ROWS : SUBLANES));
    const double results = p->places * ceil(p->rows / SUBLANES) * ceil(p->columns / LANES);
    const double narrow = tare_tpu_product_tiles(p, LANES), wide = tare_tpu_product_tiles(p, WIDE);
    float *amount = work->amount;
    switch (p->kind) {
    case TARE_TPU_NO_PRODUCT:
        return;
    case TARE_TPU_DENSE:
    case TARE_TPU_CONV:
        break;
    case TARE_TPU_DEPTHWISE:
        amount[TARE_TPU_DEPTHWISE_TILES] += (float)(results * p->taps);
        return;
    }
    if (is_tall(p) && !(work->integer && is_stem(p, true))) {
        const double channels = ceil(p->columns / (work->integer ? INTEGER_ROWS : SUBLANES));
        amount[TARE_TPU_TALL] +=
            (float)(p->places * p->taps * ceil(p->depth / LANES) * channels * ceil(p->rows / LANES));
        return;
    }
    if (is_stem(p, work->integer)) {
        amount[TARE_TPU_STEM] += (float)(p->places * stem_groups(p->rows) * (is_tall(p) ? p->taps : 1));
        return;
    }
    if (p->kind == TARE_TPU_CONV) amount[TARE_TPU_GROUPS] += (float)(p->places * groups * ceil(p->columns / LANES));
    const double matrices = p->kind == TARE_TPU_DENSE ? p->places : 1;
    amount[TARE_TPU_LATCHED] += (float)(narrow * matrices);
    amount[TARE_TPU_LATCHED_WIDE] += (float)(wide * matrices);
    amount[TARE_TPU_STREAMED] += (float)(narrow * p->places * groups);
    amount[TARE_TPU_STREAMED_WIDE] += (float)(wide * p->places * groups);
}

double tare_tpu_tiles(const struct tare_shape *shape) {
    const double channels = shape->rank > 0 ? (double)shape->dims[shape->rank - 1] : 1;
    const double images = shape->rank > 1 ? (double)shape->dims[0] : 1;
    const double places = tare_tpu_elements(shape) / fmax(channels * images, 1);
    return places *
           fmin(ceil(images / SUBLANES) * ceil(channels / LANES), ceil(channels / SUBLANES) * ceil(images / LANES));
}

/* The chip that the compiler was asked about, or the nearest one. */
static const struct tare_tpu_fitted *fitted_of(const char *chip) {
    static const char *const nearest[][2] = {
        { "v2", "v5e" }, { "v3", "v5e" }, { "v4", "v5p" }, { "8i", "tpu7x" }, { "8t", "tpu7x" }
    };
    for (size_t i = 0; i < sizeof nearest / sizeof *nearest; i++)
        if (strcmp(nearest[i][0], chip) == 0) chip = nearest[i][1];
    for (size_t i = 0; i < TARE_TPU_FITTED_CHIPS; i++)
        if (strcmp(tare_tpu_fitted[i].chip, chip) == 0) return &tare_tpu_fitted[i];
    return &tare_tpu_fitted[0];
}

static const struct tare_tpu_chip *chip_named(const char *name) {
    const struct tare_tpu_chip *chip = tare_tpu_chips;
    while (strcmp(chip->name, name) != 0)
        chip++;
    return chip;
}

/* How much longer the chip takes for this kind of work than the one that was fitted. */
static double slower(enum tare_tpu_work kind, const struct tare_tpu_chip *chip, const struct tare_tpu_chip *fitted,
                     bool float8) {
    switch (kind) {
    case TARE_TPU_READ_TILES:
    case TARE_TPU_WRITTEN_TILES:
    case TARE_TPU_WEIGHT_BYTES:
        return fitted->hbm_bytes_second / chip->hbm_bytes_second;
    case TARE_TPU_GROUPS:
    case TARE_TPU_LATCHED:
    case TARE_TPU_STREAMED:
    case TARE_TPU_LATCHED_WIDE:
    case TARE_TPU_STREAMED_WIDE:
    case TARE_TPU_TALL:
    case TARE_TPU_STEM:
    case TARE_TPU_TURNED:
        return fitted->bf16_ops_second /
               (float8 && chip->fp8_ops_second > 0 ? chip->fp8_ops_second : chip->bf16_ops_second);
    default:
        return 1;
    }
}

double tare_tpu_work_seconds(const struct tare_tpu_work_amounts *work, int chip, double bytes) {
    const struct tare_tpu_chip *wanted = &tare_tpu_chips[chip];
    const struct tare_tpu_fitted *fitted = fitted_of(wanted->name);
    /* A chip without integer units is not faster by integers, as the one whose cycles it has. */
    const bool has_none = !(wanted->int8_ops_second > 0) && chip_named(fitted->chip)->int8_ops_second > 0;
    const double *cycles = work->integer && !has_none ? fitted->integer : fitted->real;
    const double moving = bytes / wanted->hbm_bytes_second;
    double sum = 0;
    for (int w = 0; w < TARE_TPU_WORKS; w++) {
        const double amount = work->amount[w];
        sum += amount * cycles[w] * slower(w, wanted, chip_named(fitted->chip), work->float8);
    }
    sum /= fitted->clock;
    return bytes > fitted->vector / 2 ? fmax(sum, moving) : sum;
}

double tare_tpu_chip_clock(int chip) {
    const struct tare_tpu_fitted *fitted = fitted_of(tare_tpu_chips[chip].name);
    return strcmp(fitted->chip, tare_tpu_chips[chip].name) == 0 ? fitted->clock : NAN;
}
