/* Accuracy passes (mathematics in docs/algorithms.md): one file in quant/passes/ and one row each. */
#ifndef TARE_QUANT_PASS_H
#define TARE_QUANT_PASS_H

#include "base/status.h"

#include <stdbool.h>

struct tare_quant_work; /* quant/layer.h */

enum { TARE_QUANT_PASS_PARAMETERS = 3 };

/* A numeric parameter that may follow the pass's name: "smooth_quant:alpha=0.7". */
struct tare_quant_pass_parameter {
    const char *name; /* NULL: end of the list */
    double value;     /* the default; for a requested pass, the value from the options */
    double least, most;
    bool flag; /* true and false */
};

/* Runs when every layer is planned and nothing is rewritten yet, and changes what the methods then use
 * (docs/architecture.md, "Accuracy passes"). It counts in work->changes the layers that it changed. */
struct tare_quant_pass {
    const char *name;    /* "bias_correction": as options and reports have it */
    const char *help;    /* one line */
    bool needs_channels; /* requires per-channel statistics from calibration */
    bool needs_hessians; /* requires the Hessians of the layers' inputs (calib/hessian.h) */
    bool scales_inputs; /* changes the scales of activations: runs before their bits are chosen (quant/wide_inputs.h) */
    const char *idle;   /* why it changed nothing, if it did not set work->idle */
    struct tare_quant_pass_parameter parameters[TARE_QUANT_PASS_PARAMETERS];
    tare_status (*run)(struct tare_quant_work *work, const struct tare_quant_pass *self);
};

/* The passes in the order of execution, which does not depend on the order of the request: those that change the
 * floats, then the scales, then the integers, then what rounding left. */
#define TARE_QUANT_PASSES(X) X(equalization) X(smooth_quant) X(weight_clipping) X(gptq) X(bias_correction)
#define TARE_QUANT_PASS_ROW(name) extern const struct tare_quant_pass tare_quant_pass_##name;
TARE_QUANT_PASSES(TARE_QUANT_PASS_ROW)
#undef TARE_QUANT_PASS_ROW

/* Every pass, and their names; both in that order and terminated by NULL. */
extern const struct tare_quant_pass *const tare_quant_passes[];
extern const char *const tare_quant_pass_names[];
/* By name; NULL when there is none. */
const struct tare_quant_pass *tare_quant_pass_find(const char *name);

/* The passes in a comma-separated list of names, each once and in the order of tare_quant_passes, terminated by NULL;
 * arena memory. Parameters may follow a name: "gptq:damp=0.1,act_order=true"; a pass with parameters is a copy of its
 * row. For TARE_USAGE the message names the unknown item and the nearest known one. */
struct tare_arena;
tare_status tare_quant_passes_parse(const struct tare_quant_pass *const **out, struct tare_arena *arena,
                                    const char *text) TARE_WARN_UNUSED;
/* Appends the names of a list (NULL: none), each after `separator` but for the first, with the parameters that differ
 * from the defaults: "gptq:damp=0.1,bias_correction". */
struct tare_strbuf;
void tare_quant_passes_print(struct tare_strbuf *out, const struct tare_quant_pass *const *passes, char separator);
/* True if the list (NULL: empty) contains the pass, with any parameters. */
bool tare_quant_passes_have(const struct tare_quant_pass *const *passes, const struct tare_quant_pass *pass);
/* True if a pass in the list (NULL: empty) requires per-channel statistics; Hessians. */
bool tare_quant_passes_need_channels(const struct tare_quant_pass *const *passes);
bool tare_quant_passes_need_hessians(const struct tare_quant_pass *const *passes);

#endif
