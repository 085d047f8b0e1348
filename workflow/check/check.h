/* What a model costs on a TPU, by Google's compiler where it is installed (workflow/check/tpu_compiler.h), otherwise by
 * the estimate of tpu/cost/fused.h: the work of tare check. */
#ifndef TARE_WORKFLOW_CHECK_CHECK_H
#define TARE_WORKFLOW_CHECK_CHECK_H

#include "base/option.h"
#include "graph/model.h"
#include "tpu/chips.h"
#include "tpu/cost/schedule.h"

struct json_t;

struct tare_check_request {
    const char *signature;          /* NULL: serving_default, or the only one */
    int chip;                       /* index into tare_tpu_chips */
    int64_t batch;                  /* size of open first dimensions; at least 1 */
    struct tare_option_list shapes; /* "KEY=2,16": the shape of an input */
    bool estimate;                  /* without the compiler */
};
/* Options that fill a request: of tare check, and of the library. */
extern const struct tare_option tare_check_rows[];

/* An op of the compiled program with what the compiler fused into it. */
struct tare_check_op {
    const char *node;          /* of the model; NULL: the compiler's own, such as a copy of an argument */
    const char *op, *products; /* "fusion"; "s8 x s8 -> s32", "" without a matrix product */
    double cycles, seconds;    /* by the compiler, or by the estimate (NaN: the other one); of all iterations */
};

/* One computation on the TPU. */
struct tare_check_part {
    const char *function;
    const char *error;                /* the compiler's; NULL: it compiles, or was not asked */
    double cycles;                    /* NaN: only estimated */
    double seconds;                   /* estimated */
    double work[2][TARE_TPU_WORKS];   /* that the estimate counts (tpu/cost/fused.h) */
    double integer_macs, float8_macs; /* products of 8 or 4 bit integers, of eight-bit floats; 0 if not known */
    double code, arguments, results, temporary; /* bytes, by the compiler; NaN: only estimated */
    struct tare_check_op *ops;                  /* the compiler's, the dearest first; empty: only estimated */
    size_t n_ops;
    struct tare_check_op *estimated_ops; /* those of the estimate, likewise; always there */
    size_t n_estimated_ops;
    const char **products; /* kinds of matrix products, with their numbers: "9 s8 x s8 -> s32" */
    size_t n_products;
};

struct tare_check {
    struct tare_arena arena; /* all of it */
    const char *compiler;    /* "libtpu 0.0.42"; NULL: estimated */
    const char *why;         /* it is estimated */
    struct tare_check_part *parts;
    size_t n_parts;
};

/* Before the model is loaded: TARE_USAGE for a shape that cannot be read. */
tare_status tare_workflow_check_open(const struct tare_check_request *request) TARE_WARN_UNUSED;
/* Checks a loaded model, which is changed: one that is not converted is converted first, as tare convert does by
 * default. TARE_UNSUPPORTED if nothing of the signature runs on the TPU. Free `out` also after a failure.
 * `known` (may be NULL) keeps what the compiler says of programs (workflow/check/tpu_compiler.h). */
tare_status tare_workflow_check(struct tare_check *out, struct tare_graph_model *model,
                                const struct tare_check_request *request, struct json_t *known) TARE_WARN_UNUSED;
/* TARE_UNSUPPORTED if the compiler rejects a computation, with its error; `model`: for the message. */
tare_status tare_check_refuse(const struct tare_check *check, const char *model) TARE_WARN_UNUSED;
void tare_check_free(struct tare_check *check);

#endif
