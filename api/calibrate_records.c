/* Calibration of the caller's records, which a callback returns one after the other. */
#include "api/calibrating.h"
#include "api/handles.h"

#include <string.h>

static tare_status push_all(tare_calibrator *calibrator, const tare_records *records) {
    for (int64_t i = 0;; i++) {
        const tare_array *arrays;
        size_t count;
        TARE_TRY(tare_public_next_record(records, &arrays, &count, i));
        if (!arrays) return TARE_OK;
        TARE_TRY(tare_error_prefix(tare_public_calibrator_push(calibrator, arrays, count, true), "record %lld",
                                   (long long)i));
    }
}

static tare_status stream(tare_calibration **out, const tare_model *model, const tare_records *records,
                          const char *options) {
    tare_calibrator *calibrator;
    tare_status status;
    TARE_TRY(tare_calibrator_open(&calibrator, model, options));
    status = push_all(calibrator, records);
    if (status == TARE_OK) status = tare_calibrator_finish(out, calibrator);
    tare_calibrator_close(calibrator);
    return status;
}

/* The name of the records comes first, so that the option text can override it. */
static tare_status name_records(const char **options, struct tare_arena *arena, const tare_records *records) {
    const char *given = *options ? *options : "";
    if (!records->name) return TARE_OK;
    if (strchr(records->name, '"'))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "tare_records: the name may not contain a double quote (%s)",
                         records->name);
    *options = tare_arena_printf(arena, "name=\"%s\" %s", records->name, given);
    return *options ? TARE_OK : TARE_NO_MEMORY;
}

/* Hessians need a second pass over the records, and a function is selected by the first one before they run. */
static tare_status calibrate_spooled(tare_calibration **out, const tare_model *model, const tare_records *records,
                                     const char *name, const char *options) {
    struct tare_public_spool spool = { 0 };
    tare_status status = tare_public_spool_write(&spool, records, name, model->context);
    if (status == TARE_OK)
        status = tare_public_calibrate_files(out, model, (const char *const *)&spool.path, 1, name, options);
    tare_public_spool_remove(&spool);
    return status;
}

static tare_status calibrate_records(tare_calibration **out, const tare_model *model, const tare_records *records,
                                     const char *options) {
    struct tare_public_calibrating calibrating = { 0 };
    struct tare_arena arena = { 0 };
    tare_status status;
    *out = NULL;
    TARE_TRY(tare_public_check_records(records));
    TARE_CHECK(name_records(&options, &arena, records));
    TARE_CHECK(tare_public_calibrating_read(&calibrating, model, options));
    if (calibrating.how.function && calibrating.state)
        TARE_CHECK(TARE_FAIL(TARE_USAGE, "state and function exclude each other for records of the caller"));
    status = calibrating.hessians || calibrating.how.function
                 ? calibrate_spooled(out, model, records, calibrating.name, options)
                 : stream(out, model, records, options);
done:
    tare_public_calibrating_free(&calibrating);
    tare_arena_free(&arena);
    return status;
}

tare_status tare_model_calibrate_records(tare_calibration **out, const tare_model *model, const tare_records *records,
                                         const char *options) {
    tare_public_begin(model->context, model->family);
    return tare_public_end(calibrate_records(out, model, records, options));
}
