/* Reconstruction: scales and integers of the weights of each block of layers that together make the error of the
 * block's outputs least (quant/reconstruction/reconstruct.c). Starts from the integers and scales of the passes before
 * it, and keeps them where nothing better is found. */
#include "quant/pass.h"
#include "quant/reconstruction/reconstruct.h"

enum { DAMP, ITERATIONS, SEED }; /* parameters */

static tare_status run(struct tare_quant_work *work, const struct tare_quant_pass *self) {
    const struct tare_reconstruction how = {
        .layers = { .damp = self->parameters[DAMP].value, .act_order = true, .fits_scales = true },
        .iterations = (int64_t)self->parameters[ITERATIONS].value,
        .seed = (int64_t)self->parameters[SEED].value,
    };
    return tare_quant_reconstruct(work, &how);
}

const struct tare_quant_pass tare_quant_pass_reconstruction = {
    .name = "reconstruction",
    .help = "scales and integers of weights that together make the error of each block's outputs least",
    .needs_channels = true,
    .needs_hessians = true,
    .parameters = { { .name = "damp", .value = 0.01, .least = 0, .most = 10 },
                    { .name = "iterations", .value = 500, .least = 0, .most = 1e6 },
                    { .name = "seed", .value = 1, .least = 0, .most = 1e9 } },
    .run = run,
};
