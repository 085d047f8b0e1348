/* Options that every command with records has: how records become inputs. */
#ifndef TARE_WORKFLOW_DATA_OPTIONS_H
#define TARE_WORKFLOW_DATA_OPTIONS_H

#include "base/option.h"
#include "datasets/spec.h"

struct tare_data_options {
    const char *spec_path;
    struct tare_dataset_spec *spec; /* set by open; NULL: none was given */
};

extern const struct tare_option tare_data_rows[];

/* Reads the spec that was given. The parser does not know `spec`: it must be NULL before. */
tare_status tare_data_options_open(struct tare_data_options *options) TARE_WARN_UNUSED;
/* Safe when open did not come. */
void tare_data_options_close(struct tare_data_options *options);

#endif
