/* Integer outputs of a model before and after a conversion. */
#ifndef TARE_WORKFLOW_INTEGER_OUTPUTS_H
#define TARE_WORKFLOW_INTEGER_OUTPUTS_H

#include "convert/options.h"
#include "tpu/split.h"

struct tare_integer_value;

/* Zero it to start; release with tare_integer_outputs_free. */
struct tare_integer_outputs {
    struct tare_arena arena;
    struct tare_integer_value *first, *last;
    bool skipped; /* the model could not be run */
};

/* Runs the first records of every data set of the options and stores the integer and boolean outputs. A model with ops
 * that the interpreter does not support is skipped; other errors are those of the records. */
tare_status tare_integer_outputs_record(struct tare_integer_outputs *outputs, const struct tare_graph_model *model,
                                        const struct tare_quantization *quantization);
/* Runs the same records through the converted model. TARE_INVALID_ARGUMENT with signature, record, output and the
 * functions of `split` when a value differs. */
tare_status tare_integer_outputs_check(struct tare_integer_outputs *outputs, const struct tare_graph_model *model,
                                       const struct tare_quantization *quantization,
                                       const struct tare_tpu_split *split);
void tare_integer_outputs_free(struct tare_integer_outputs *outputs);

#endif
