/* Options of commands with records. */
#include "workflow/data_options.h"

tare_status tare_data_options_open(struct tare_data_options *options) {
    return options->spec_path ? tare_dataset_spec_load(&options->spec, options->spec_path) : TARE_OK;
}

void tare_data_options_close(struct tare_data_options *options) {
    tare_dataset_spec_free(options->spec);
    options->spec = NULL;
}
