/* Shared by calibration from files and from memory: the parsed options and the prepared model. */
#ifndef TARE_API_CALIBRATING_H
#define TARE_API_CALIBRATING_H

#include "convert/prepared_model.h"
#include "workflow/calibrate.h"
#include "workflow/data_options.h"
#include "api/handles.h"

struct tare_public_calibrating {
    struct tare_arena arena; /* strings of the options */
    struct tare_calibrate_request how;
    struct tare_data_options records;
    const char *name;
    const char *state; /* file for the saved state; NULL: none */
    bool hessians;
    struct tare_calibrate_options options; /* without samples or files */
    struct tare_graph_model *prepared;
    const struct tare_context_handle *context; /* of the model; NULL: the defaults */
    struct tare_log log;                       /* of the context */
};

/* Parses the option text and loads the model. Release with tare_public_calibrating_free, also after a failure. */
tare_status tare_public_calibrating_read(struct tare_public_calibrating *out, const tare_model *model,
                                         const char *text) TARE_WARN_UNUSED;
/* Creates the calibration, or loads the saved state where there is one. */
tare_status tare_public_calibrating_start(struct tare_calibration **out,
                                          const struct tare_public_calibrating *calibrating,
                                          const struct tare_calibrate_job *job) TARE_WARN_UNUSED;
/* Removes the saved state of a finished calibration. */
void tare_public_calibrating_end(const struct tare_public_calibrating *calibrating);
void tare_public_calibrating_free(struct tare_public_calibrating *calibrating);
/* tare_model_calibrate. `name`: of the only file in the calibration; NULL: files have their paths. */
tare_status tare_public_calibrate_files(tare_calibration **out, const tare_model *model, const char *const *paths,
                                        size_t n_paths, const char *name, const char *options) TARE_WARN_UNUSED;
/* Makes the caller's handle and logs the warnings about the calibration, which it owns. */
tare_status tare_public_calibrated(tare_calibration **out, struct tare_calibration *calibration,
                                   const struct tare_context_handle *context) TARE_WARN_UNUSED;
/* tare_calibrator_push; `record`: as a record of a file, keys that the signature does not have are ignored. */
tare_status tare_public_calibrator_push(tare_calibrator *calibrator, const tare_array *inputs, size_t n_inputs,
                                        bool record) TARE_WARN_UNUSED;

#endif
