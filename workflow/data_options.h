/* --spec, the option of every command that reads records: how records map to model inputs. */
#ifndef TARE_WORKFLOW_DATA_OPTIONS_H
#define TARE_WORKFLOW_DATA_OPTIONS_H

#include "base/option.h"
#include "datasets/spec.h"

struct tare_data_options {
    const char *spec_path;
    struct tare_dataset_spec *spec; /* set by open; NULL: not given */
};

extern const struct tare_option tare_data_rows[];

/* Loads the spec, if given. `spec` must be NULL; the option parser does not set it. */
tare_status tare_data_options_open(struct tare_data_options *options) TARE_WARN_UNUSED;
/* Safe if open was not called. */
void tare_data_options_close(struct tare_data_options *options);

#endif
