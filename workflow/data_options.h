/* --spec, the option of every command that reads records: how records map to model inputs; --feedback and --sequence,
 * of those that run a model: what records have from the one before. */
#ifndef TARE_WORKFLOW_DATA_OPTIONS_H
#define TARE_WORKFLOW_DATA_OPTIONS_H

#include "base/log.h"
#include "base/option.h"
#include "datasets/spec.h"
#include "interpreter/feedback.h"

struct tare_data_options {
    const char *spec_path;
    struct tare_dataset_spec *spec; /* set by open; NULL: not given */
    struct tare_feedback feedback;
};

/* Rows of tare_data_rows that commands without a model leave out. */
#define TARE_MODEL_DATA_ROWS "feedback sequence"

extern const struct tare_option tare_data_rows[];

/* --input NAME=FILE.npy, repeatable: NPY files as records, each the values of one input. */
struct tare_input_files {
    struct tare_option_list given;
    char *path; /* set by add: the data file that stands for them (datasets/data_file.h) */
};

extern const struct tare_option tare_input_rows[];

/* Checks that each item of --input is NAME=FILE.npy with a name of its own (else TARE_USAGE). */
tare_status tare_input_files_check(const struct tare_option_list *given) TARE_WARN_UNUSED;
/* Appends the files to the list of data files, which must not be empty afterwards (else TARE_USAGE). `inputs` must
 * outlive the use of the list; release it with tare_input_files_free. */
tare_status tare_input_files_add(struct tare_option_list *data, struct tare_input_files *inputs) TARE_WARN_UNUSED;
void tare_input_files_free(struct tare_input_files *inputs);

/* Checks the pairs of --feedback and loads the spec, if given. `spec` must be NULL; the option parser does not set it.
 */
tare_status tare_data_options_open(struct tare_data_options *options) TARE_WARN_UNUSED;
/* After records were read: warns of images that were decoded without their EXIF rotation. */
void tare_data_options_warn(const struct tare_log *log, const struct tare_dataset_spec *spec);
/* Safe if open was not called. */
void tare_data_options_close(struct tare_data_options *options);

#endif
