/* The options that most users need come first, below each heading and in the order of the headings. An option has the
 * same name in every command, so that one table serves all. */
#include "cli/headings.h"

const struct tare_option_heading tare_command_headings[] = {
    { "Data", "data eval input spec calibration label target signature function limit sample seed rest "
              "max-bad labels per-record feedback sequence" },
    { "Output", "output output-dir report json node-data overwrite dry-run explain wide quiet write-recipe worst "
                "keep-rejected" },
    { "Parts", "count fraction parts names model gzip" },
    { "Models", "input_model_dir output_model_dir with float tags" },
    { "Method",
      "method methods algorithm algorithms granularity granularities bits format activation-bits recipe rule passes "
      "symmetric full-range depthwise two-inputs integer-adds shared-ranges min-elements op-set keep-variables "
      "allow-unquantized" },
    { "Choice", "auto max-drop min-sqnr max-mae max-size max-time metric margin sensitivity sensitivity-limit" },
    { "Cloud TPU", "tpu tpu_functions converter_options_string converter_options_file bfloat16 bfloat16-outputs "
                   "keep-module stablehlo allow-incompatible allow-dependent-rows for chip chip-batch compile check "
                   "estimate shape top" },
    { "Checks", "reference check-numerics profile trace batching observe channels" },
    { "Execution",
      "threads batch jobs memory shard resume autosave state retries plugin allow-missing-variables verbose "
      "log-file" },
    { 0 },
};
