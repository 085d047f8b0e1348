/* Measures what bfloat16 does to the outputs of a model, and finds the nodes that must stay float32. */
#ifndef TARE_WORKFLOW_BFLOAT16_CHECK_H
#define TARE_WORKFLOW_BFLOAT16_CHECK_H

#include "convert/options.h"
#include "convert/pipeline.h"
#include "workflow/requests.h"

/* The least that bfloat16 may leave an output, in dB of what varies between records. */
enum { TARE_BFLOAT16_DB = 30 };

/* One output; arena memory. */
struct tare_bfloat16_output {
    const char *signature, *key;
    double sqnr; /* dB of what varies between records, with what stays float32; 999: equal */
};

struct tare_bfloat16_checked {
    int64_t records; /* 0: nothing was run */
    struct tare_bfloat16_output *outputs;
    size_t n_outputs;
    struct tare_bf16_node *nodes; /* that must stay float32 in addition to what the analysis finds */
    size_t n_nodes;
    double before;       /* the least SQNR without them */
    const char *skipped; /* why nothing was run (an op that the interpreter lacks, samples in a pipe); NULL: it was */
};

/* Converts copies of the model and runs the first records of `request` (its data, spec and signature) in both forms.
 * While an output has less than TARE_BFLOAT16_DB, the nodes at which it falls below first are added
 * to out->nodes. Nothing is run without data, for standard input, or if the interpreter lacks an op. */
tare_status tare_workflow_bfloat16_check(struct tare_bfloat16_checked *out, struct tare_arena *arena,
                                         const struct tare_graph_model *model,
                                         const struct tare_converter_options *converter,
                                         const struct tare_quantize_request *request) TARE_WARN_UNUSED;

#endif
