/* Files that contain one StableHLO module: portable artifacts (.mlirbc) and what jax.export's serialize() returns. They
 * are recognised by their content. */
#ifndef TARE_CONVERT_STABLEHLO_ARTIFACT_H
#define TARE_CONVERT_STABLEHLO_ARTIFACT_H

#include "base/file.h"
#include "convert/stablehlo/exported.h"
#include "graph/model.h"

struct tare_shlo_artifact {
    struct tare_mapping file;
    struct tare_shlo_exported exported; /* its module is a part of the file; no platforms: not known */
};

/* True for a regular file of either kind. */
bool tare_shlo_is_artifact(const char *path);
/* Maps the file; close with tare_shlo_artifact_close. TARE_UNSUPPORTED for other files. */
tare_status tare_shlo_artifact_open(struct tare_shlo_artifact *out, const char *path) TARE_WARN_UNUSED;
void tare_shlo_artifact_close(struct tare_shlo_artifact *artifact);

/* A model with the signature serving_default, whose inputs arg0, arg1 … are the arguments of the module's main (tokens
 * and the platform index excepted) and whose outputs output_0, output_1 … are its results. A main without results has
 * the output `done`, which is true. The signature calls function `main`, which contains one XlaCallModule node; the
 * model keeps the file mapped. Errors name the file. */
tare_status tare_shlo_artifact_load(struct tare_graph_model **out, const char *path,
                                    const struct tare_op_registry *ops) TARE_WARN_UNUSED;
/* The same for an artifact in memory, which must live as long as the model, with names for arguments and results. */
tare_status tare_shlo_artifact_wrap(struct tare_graph_model **out, const void *artifact, size_t size,
                                    const char *const *arguments, const char *const *results,
                                    const struct tare_op_registry *ops) TARE_WARN_UNUSED;
/* The file of a model that was loaded so; NULL for other models. */
const struct tare_shlo_artifact *tare_shlo_artifact_of(const struct tare_graph_model *model);

#endif
