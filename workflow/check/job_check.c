/* Checks the model of a job, and the float one that it was made from. */
#include "workflow/check/job_check.h"
#include "convert/saved_model.h"
#include "tpu/chips.h"
#include "workflow/check/report.h"

#include <math.h>

static tare_status check_model(struct tare_check *out, const char *path, const struct tare_job *job,
                               const struct tare_op_registry *ops) {
    const struct tare_saved_model_options open = { .ops = ops };
    const struct tare_check_request request = { .signature = job->signature,
                                                .chip = job->limits.chip - 1,
                                                .batch = job->limits.chip_batch };
    struct tare_graph_model *model;
    TARE_TRY(tare_saved_model_load(&model, path, &open));
    const tare_status status = tare_workflow_check(out, model, &request, NULL);
    tare_model_free(model);
    return tare_error_prefix(status, "%s", path);
}

/* The chip holds one computation at a time, and the constants of each. */
static double bytes_of(const struct tare_check *check) {
    double bytes = 0, most = 0;
    for (size_t i = 0; i < check->n_parts; i++) {
        const struct tare_check_part *part = &check->parts[i];
        bytes += part->code;
        most = fmax(most, part->arguments + part->results + part->temporary);
    }
    return bytes + most;
}

static const char *rejection_of(const struct tare_check *check) {
    for (size_t i = 0; i < check->n_parts; i++)
        if (check->parts[i].error) return check->parts[i].error;
    return NULL;
}

static tare_status set_made(const char **reason, struct tare_job_result *result, struct tare_arena *arena,
                            const struct tare_job *job, const struct tare_check *check) {
    const struct tare_tpu_chip *chip = &tare_tpu_chips[job->limits.chip - 1];
    const char *error = rejection_of(check);
    result->chip = chip->name;
    result->cycles = tare_check_cycles(check);
    result->tpu_seconds = tare_check_seconds(check);
    result->tpu_bytes = check->compiler ? bytes_of(check) : NAN;
    if (check->compiler && !(result->compiler = tare_arena_strdup(arena, check->compiler))) return TARE_NO_MEMORY;
    const double bytes = isnan(result->tpu_bytes) ? (double)result->size_bytes : result->tpu_bytes;
    if (error)
        *reason = tare_arena_printf(arena, "the TPU compiler rejects it for %s: %s", chip->name, error);
    else if (bytes > chip->hbm_bytes)
        *reason = tare_arena_printf(arena, "it takes %.0f MB on %s (the chip has %.0f MB)", bytes / 1e6, chip->name,
                                    chip->hbm_bytes / 1e6);
    return (error || bytes > chip->hbm_bytes) && !*reason ? TARE_NO_MEMORY : TARE_OK;
}

static tare_status set_float(const char **reason, struct tare_job_result *result, struct tare_arena *arena,
                             const struct tare_job *job, const struct tare_check *check) {
    const double most = job->limits.max_time;
    result->float_cycles = tare_check_cycles(check);
    result->float_tpu_seconds = tare_check_seconds(check);
    const bool compiled = result->cycles > 0 && result->float_cycles > 0;
    const double time =
        compiled ? result->cycles / result->float_cycles : result->tpu_seconds / result->float_tpu_seconds;
    if (time <= most) return TARE_OK;
    *reason = tare_arena_printf(arena,
                                "it takes %.2f times as long as the float model on %s in batches of %lld, by %s "
                                "(at most %.2f allowed)",
                                time, result->chip, (long long)job->limits.chip_batch,
                                compiled ? result->compiler : "the estimate", most);
    return *reason ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_check_job(const char **reason, struct tare_job_result *result, struct tare_arena *arena,
                           const struct tare_job *job, const char *folder, const struct tare_op_registry *ops) {
    struct tare_check made = { 0 }, original = { 0 };
    tare_status status;
    *reason = NULL;
    if (!job->limits.chip) return TARE_OK;
    TARE_CHECK(check_model(&made, folder, job, ops));
    TARE_CHECK(set_made(reason, result, arena, job, &made));
    if (*reason || job->limits.max_time < 0) goto done;
    TARE_CHECK(check_model(&original, job->model, job, ops));
    status = set_float(reason, result, arena, job, &original);
done:
    tare_check_free(&original);
    tare_check_free(&made);
    return status;
}
