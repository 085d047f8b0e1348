/* tare inspect of StableHLO: files of portable artifacts, and the modules that XlaCallModule nodes carry. */
#ifndef TARE_CLI_INSPECT_MODULE_H
#define TARE_CLI_INSPECT_MODULE_H

#include "graph/model.h"
#include "workflow/inspection.h"

/* True for a file of a StableHLO module that is inspected as a module: --graph, --signature, --variables, --suggest and
 * --tags inspect it as a model. */
bool tare_inspect_is_module(const struct inspect_options *options);
/* Prints what the file contains: version, functions, ops, layers; with options->functions its text, with options->json
 * as JSON. */
tare_status tare_inspect_module(const struct inspect_options *options) TARE_WARN_UNUSED;
/* A paragraph for each XlaCallModule node of the model; with `text` also the modules' text. Prints nothing for a model
 * without such nodes. A module that cannot be read is a line with the reason, not a failure. */
tare_status tare_inspect_call_modules(const struct tare_graph_model *model, bool text) TARE_WARN_UNUSED;

#endif
