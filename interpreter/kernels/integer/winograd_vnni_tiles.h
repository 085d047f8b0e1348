/* What winograd_vnni.c and winograd_vnni_store.c, which makes outputs of products, share. */
#ifndef TARE_INTERPRETER_KERNELS_WINOGRAD_VNNI_TILES_H
#define TARE_INTERPRETER_KERNELS_WINOGRAD_VNNI_TILES_H

#include "interpreter/kernels/integer/conv_int.h"
#include "interpreter/kernels/integer/requantize_rows.h"

#if TARE_KERNELS_X86
#include <immintrin.h>
#endif

enum {
    TARE_WINOGRAD_SIDE = 4,      /* positions of a tile's line */
    TARE_WINOGRAD_REACH = 6,     /* and of its input's */
    TARE_WINOGRAD_ELEMENTS = 36, /* of a transformed tile: matrix products */
    TARE_WINOGRAD_POSITIONS = TARE_WINOGRAD_SIDE * TARE_WINOGRAD_SIDE,
    TARE_WINOGRAD_CHUNK = 2 * TARE_ROW_LANES, /* output channels that are computed together: two panels */
};

static inline int64_t tare_winograd_tiles_of(int64_t positions) {
    return (positions + TARE_WINOGRAD_SIDE - 1) / TARE_WINOGRAD_SIDE;
}
/* Vectors from element to element of products of so many tiles; one more than needed, so that the elements of a tile
 * are in different sets of the cache. */
static inline int64_t tare_winograd_product_step(int64_t tiles) {
    return 2 * tiles + 1;
}

#if TARE_KERNELS_X86
/* Lines of tiles that are computed together. */
struct tare_winograd_run {
    const struct tare_conv *conv;
    const struct tare_requantize *requantize; /* NULL: sums are stored */
    struct tare_byte_bounds bounds;
    int32_t *sums;       /* of the block's first output line */
    int64_t element;     /* with `requantize`: that of the block's first position */
    int8_t *padding;     /* a position */
    __m512i *inputs;     /* [element, block of channels, tile] */
    __m512i *products;   /* [element, tile, panel of the chunk] */
    __m512i *partial;    /* [tile, position, panel] */
    int64_t line, tiles; /* of the block: the first line of tiles, counted over all images */
};

/* Makes sums of the products of the chunk of output channels from `column` on, and adds those of the passes before if
 * `adds`. The sums of the last pass are stored or requantized, others become `partial`. */
void tare_winograd_vnni_store(const struct tare_winograd_run *run, int64_t column, bool adds, bool is_last);
#endif

#endif
