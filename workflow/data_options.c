/* --spec: parsed by the commands that read records. */
#include "workflow/data_options.h"

const struct tare_option tare_data_rows[] = {
    { .name = "spec",
      .kind = TARE_OPTION_STRING,
      .offset = offsetof(struct tare_data_options, spec_path),
      .placeholder = "FILE",
      .help = "DatasetSpec that maps tf.Example records, arrays and images to model inputs (docs/dataset-spec.md)" },
    { 0 },
};

tare_status tare_data_options_open(struct tare_data_options *options) {
    return options->spec_path ? tare_dataset_spec_load(&options->spec, options->spec_path) : TARE_OK;
}

void tare_data_options_close(struct tare_data_options *options) {
    tare_dataset_spec_free(options->spec);
    options->spec = NULL;
}
