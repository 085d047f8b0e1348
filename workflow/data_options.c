/* --spec, --feedback and --sequence: parsed by the commands that read records. */
#include "workflow/data_options.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "datasets/data_file.h"

#include <string.h>

const struct tare_option tare_data_rows[] = {
    { TARE_OPTION(struct tare_data_options, "spec", STRING, spec_path), .placeholder = "FILE",
      .help = "DatasetSpec that maps tf.Example records, CSV rows, arrays and images to model inputs "
              "(docs/dataset-spec.md)" },
    { TARE_OPTION(struct tare_data_options, "feedback", LIST, feedback.pairs), .placeholder = "OUTPUT=INPUT",
      .help =
          "feed OUTPUT of each record to INPUT of the next one, the state of a streaming model; records run in order, "
          "and each file begins with the INPUT of its first record, or zeros" },
    { TARE_OPTION(struct tare_data_options, "sequence", STRING, feedback.sequence), .placeholder = "KEY",
      .needs = "feedback",
      .help = "record key: where its value changes, a new sequence begins (default: each file is a sequence)" },
    { 0 },
};

tare_status tare_data_options_open(struct tare_data_options *options) {
    TARE_TRY(tare_feedback_open(&options->feedback));
    return options->spec_path ? tare_dataset_spec_load(&options->spec, options->spec_path) : TARE_OK;
}

void tare_data_options_warn(const struct tare_log *log, const struct tare_dataset_spec *spec) {
    if (!tare_dataset_spec_met_rotated(spec)) return;
    tare_warn(log,
              "images have an EXIF orientation other than 1, which decoding ignores, as TensorFlow does (if the model "
              "was trained on upright images, rotate the pixels of the files; 'tare dataset info' counts them)");
}

void tare_data_options_close(struct tare_data_options *options) {
    tare_dataset_spec_free(options->spec);
    options->spec = NULL;
}

const struct tare_option tare_input_rows[] = {
    { TARE_OPTION(struct tare_input_files, "input", LIST, given), .placeholder = "NAME=FILE.npy",
      .help = "NPY file with the values of one input, one row per record, instead of --data" },
    { 0 },
};

tare_status tare_input_files_check(const struct tare_option_list *given) {
    for (size_t i = 0; i < given->count; i++) {
        const char *item = given->items[i], *file = tare_data_array_file(item);
        if (!file || file == item + 1 || !*file)
            return TARE_FAIL(TARE_USAGE, "--input %s: expected NAME=FILE.npy", item);
        const size_t named = (size_t)(file - item); /* with the sign */
        for (size_t k = 0; k < i; k++)
            if (strncmp(given->items[k], item, named) == 0 &&
                tare_data_array_file(given->items[k]) == given->items[k] + named)
                return TARE_FAIL(TARE_USAGE, "--input %.*s is given twice", (int)named - 1, item);
    }
    return TARE_OK;
}

/* "arrays:NAME=FILE,NAME=FILE" of the list. */
static tare_status join_names(char **out, const struct tare_option_list *given) {
    struct tare_strbuf text = { 0 };
    tare_status status = tare_input_files_check(given);
    tare_strbuf_puts(&text, TARE_DATA_ARRAYS);
    for (size_t i = 0; i < given->count && status == TARE_OK; i++) {
        const char *item = given->items[i];
        if (strchr(item, ',')) status = TARE_FAIL(TARE_USAGE, "--input %s: names with commas are not supported", item);
        tare_strbuf_printf(&text, "%s%s", i ? "," : "", item);
    }
    if (status == TARE_OK && text.failed) status = TARE_NO_MEMORY;
    if (status == TARE_OK && !(*out = tare_strdup(tare_strbuf_text(&text)))) status = TARE_NO_MEMORY;
    tare_strbuf_free(&text);
    return status;
}

tare_status tare_input_files_add(struct tare_option_list *data, struct tare_input_files *inputs) {
    if (!inputs->given.count)
        return data->count ? TARE_OK : TARE_FAIL(TARE_USAGE, "missing option '--data' (or --input NAME=FILE.npy)");
    if (data->count) return TARE_FAIL(TARE_USAGE, "--data and --input are mutually exclusive");
    TARE_TRY(join_names(&inputs->path, &inputs->given));
    if (!TARE_GROW(data->items, data->count, data->capacity)) return TARE_NO_MEMORY;
    data->items[data->count++] = inputs->path;
    return TARE_OK;
}

void tare_input_files_free(struct tare_input_files *inputs) {
    tare_free(inputs->path);
    inputs->path = NULL;
}
