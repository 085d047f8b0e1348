/* The accuracy passes and their names. */
#include "quant/pass.h"
#include "base/arena.h"
#include "base/option.h"

#include <string.h>

const struct tare_quant_pass *const tare_quant_passes[] = {
    &tare_quant_pass_equalization,    /* changes the floats */
    &tare_quant_pass_weight_clipping, /* then the scales */
    &tare_quant_pass_bias_correction, /* then what rounding left */
    NULL,
};
enum { N_PASSES = sizeof tare_quant_passes / sizeof *tare_quant_passes - 1 };

const struct tare_quant_pass *tare_quant_pass_find(const char *name) {
    for (size_t i = 0; tare_quant_passes[i]; i++)
        if (strcmp(tare_quant_passes[i]->name, name) == 0) return tare_quant_passes[i];
    return NULL;
}

static tare_status unknown(const char *name) {
    const char *known[N_PASSES + 1] = { NULL };
    const char *nearest;
    for (size_t i = 0; i < N_PASSES; i++) known[i] = tare_quant_passes[i]->name;
    nearest = tare_nearest_name(name, known);
    if (nearest) return TARE_FAIL(TARE_USAGE, "there is no accuracy pass '%s' (did you mean '%s'?)", name, nearest);
    return TARE_FAIL(TARE_USAGE, "there is no accuracy pass '%s' (known: equalization, weight_clipping, bias_correction)", name);
}

tare_status tare_quant_passes_parse(const struct tare_quant_pass *const **out, struct tare_arena *arena, const char *text) {
    const struct tare_quant_pass **list = TARE_NEW_ARRAY(arena, const struct tare_quant_pass *, N_PASSES + 1);
    char *copy = tare_arena_strdup(arena, text), *save = NULL;
    bool wanted[N_PASSES] = { false };
    size_t count = 0;
    if (!list || !copy) return TARE_NO_MEMORY;
    for (char *name = strtok_r(copy, ", ", &save); name; name = strtok_r(NULL, ", ", &save)) {
        if (!tare_quant_pass_find(name)) return unknown(name);
        for (size_t i = 0; i < N_PASSES; i++) wanted[i] |= tare_quant_passes[i] == tare_quant_pass_find(name);
    }
    for (size_t i = 0; i < N_PASSES; i++)
        if (wanted[i]) list[count++] = tare_quant_passes[i];
    *out = list;
    return TARE_OK;
}

bool tare_quant_passes_need_channels(const struct tare_quant_pass *const *passes) {
    for (size_t i = 0; passes && passes[i]; i++)
        if (passes[i]->needs_channels) return true;
    return false;
}
