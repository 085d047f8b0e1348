/* A calibration lists the numbers of its records by file. */
#include "workflow/unused_records.h"
#include "base/file.h"
#include "calib/format/file.h"
#include "datasets/data_file.h"

#include <string.h>

static const char *signature_of(const struct tare_calibration *calibration) {
    static const char usual[] = "serving_default";
    for (size_t i = 0; i < calibration->n_inputs; i++)
        if (strcmp(calibration->inputs[i].signature, usual) == 0) return usual;
    return calibration->n_inputs ? calibration->inputs[0].signature : usual;
}

static tare_status check_files(const struct tare_unused_records *unused, const char *const *data, size_t n_data) {
    struct tare_file_list files = { 0 };
    size_t known = 0;
    tare_status status = TARE_OK;
    for (size_t i = 0; i < n_data; i++)
        TARE_CHECK(tare_data_files_add(&files, data[i]));
    for (size_t i = 0; i < files.count; i++)
        known += tare_calibration_find_input(unused->calibration, unused->signature, files.names[i]) >= 0;
    if (!known)
        status = TARE_FAIL(TARE_INVALID_ARGUMENT,
                           "--rest: the calibration has used no record of %s (calibrate with --sample on the same "
                           "files, by the same names%s%s)",
                           data[0], unused->calibration->n_inputs ? "; it used " : "",
                           unused->calibration->n_inputs ? unused->calibration->inputs[0].file : "");
done:
    tare_file_list_free(&files);
    return status;
}

tare_status tare_unused_records_open(struct tare_unused_records *out, const struct tare_calibration *calibration,
                                     const char *calibration_file, const char *signature, const char *const *data,
                                     size_t n_data) {
    *out = (struct tare_unused_records){ .calibration = calibration };
    if (!calibration && !calibration_file)
        return TARE_FAIL(TARE_USAGE, "--rest: which records are left follows from a calibration (give --calibration "
                                     "FILE.calib)");
    if (!calibration) TARE_TRY(tare_calibration_load(&out->owned, calibration_file));
    if (!calibration) out->calibration = out->owned;
    out->signature = signature ? signature : signature_of(out->calibration);
    return check_files(out, data, n_data);
}

void tare_unused_records_close(struct tare_unused_records *unused) {
    tare_calibration_free(unused->owned);
    *unused = (struct tare_unused_records){ 0 };
}

bool tare_unused_records_take(void *arg, const char *file, const struct tare_record *where) {
    const struct tare_unused_records *unused = arg;
    const int32_t input = tare_calibration_find_input(unused->calibration, unused->signature, file);
    return input < 0 || !tare_record_set_has(&unused->calibration->inputs[input].records, where->number);
}
