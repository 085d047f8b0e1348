/* tare merge: merges calibration files of one model. */
#include "calib/format/file.h"
#include "cli/log.h"
#include "workflow/calibrate.h"
#include "cli/command.h"
#include "cli/hint.h"

#include <stdio.h>
#include <string.h>

struct merge_options {
    const char *output;
    struct tare_option_list files;
    struct tare_log_options logging;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct merge_options, "output", STRING, output), .letter = 'o', .placeholder = "FILE",
      .help = "calibration file to write", .flags = TARE_OPTION_REQUIRED },
    TARE_LOG_OPTIONS(struct merge_options),
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct merge_options, "FILE", files), .help = "calibration files to merge",
      .flags = TARE_OPTION_REQUIRED | TARE_OPTION_REPEATABLE },
    { 0 },
};
static const char *const examples[] = { "tare merge part1.calib part2.calib -o all.calib", NULL };
static const struct tare_option_set set = {
    .program = "tare merge",
    .summary = "Merges calibration files of one model, for example those of --shard runs. The result is byte-identical "
               "for any order of the files.",
    .options = rows,
    .arguments = arguments,
    .examples = examples,
};

static tare_status load(struct tare_calibration **out, const char *path) {
    TARE_TRY(tare_calibration_load(out, path));
    if (!(*out)->unfinished) return TARE_OK;
    return TARE_FAIL(TARE_INVALID_ARGUMENT,
                     "%s: the state of an interrupted run is not a calibration (finish the run with tare calibrate "
                     "--resume)",
                     path);
}

static tare_status run(int argc, char *const *argv) {
    struct merge_options options;
    struct tare_calibration *sum = NULL, *next = NULL;
    bool done;
    tare_status status;
    TARE_CHECK(tare_command_parse(&options, &done, &set, argc, argv));
    if (done) goto done;
    TARE_CHECK(load(&sum, options.files.items[0]));
    for (size_t i = 1; i < options.files.count; i++) {
        TARE_CHECK(load(&next, options.files.items[i]));
        status = tare_error_prefix(tare_calibration_merge(sum, next), "%s", options.files.items[i]);
        if (status != TARE_OK) goto done;
        tare_calibration_free(next);
        next = NULL;
    }
    TARE_CHECK(tare_calibration_save(sum, options.output));
    const struct tare_log log = tare_command_log(false);
    TARE_CHECK(tare_workflow_calibrate_log(&log, sum));
    if (strcmp(options.output, "-") != 0)
        tare_hint(&log, "convert", "MODEL", "OUT", "--calibration", options.output, NULL);
done:
    tare_calibration_free(next);
    tare_calibration_free(sum);
    tare_options_free(&options, &set);
    return status;
}

const struct tare_command tare_command_merge = {
    .name = "merge", .summary = "merge calibration files of one model", .run = run, .options = &set
};
