/* What Google's compiler says of the models of a comparison (compare --compile). */
#ifndef TARE_WORKFLOW_CHECK_COMPILED_ROW_H
#define TARE_WORKFLOW_CHECK_COMPILED_ROW_H

#include "eval/comparison.h"
#include "graph/model.h"

struct json_t;

/* Sets the row's cycles on the comparison's chip and batch, with the model converted as tare convert does by default.
 * Where the compiler is not there, or the model cannot be converted or compiled, they stay unknown and the comparison
 * gets the reason. `signature`: a key; NULL: serving_default, or the only one. The model is not changed.
 * `known`: programs that are compiled (workflow/check/check.h). */
tare_status tare_check_compile_row(struct tare_comparison_row *row, struct tare_comparison *comparison,
                                   const struct tare_graph_model *model, const char *signature,
                                   struct json_t *known) TARE_WARN_UNUSED;

#endif
