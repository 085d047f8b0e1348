/* What runs for a signature besides its outputs. */
#ifndef TARE_INTERPRETER_SIGNATURE_TARGET_H
#define TARE_INTERPRETER_SIGNATURE_TARGET_H

#include "graph/model.h"
#include "interpreter/session.h"

/* The call of a function without results (tare_function_signature), which no output needs; NULL for other signatures.
 */
struct tare_node *tare_signature_target(const struct tare_graph_model *model, const struct tare_signature *signature);
struct tare_node *tare_session_target(const struct tare_session *session, const struct tare_signature *signature);

#endif
