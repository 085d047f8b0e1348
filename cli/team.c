/* Divides the records among the processes and merges their calibrations. */
#include "cli/team.h"
#include "base/alloc.h"
#include "base/file.h"
#include "calib/format/file.h"
#include "cli/mpi/team_backend.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- joining ---- */

/* Number of processes according to the launcher, without calling MPI. */
static int announced_size(void) {
    static const char *const names[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text) return atoi(text);
    }
    return 1;
}

/* In the folder of the program, as built, or in the installed library folder. */
static void *open_library(void) {
    static const char *const places[] = { "", "../" TARE_LIBRARY_FOLDER "/tare/" };
    char program[PATH_MAX], path[PATH_MAX + sizeof TARE_LIBRARY_FOLDER + 64];
    const ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
    if (size <= 0) return NULL;
    program[size] = '\0';
    char *folder = tare_path_folder(program);
    void *library = NULL;
    for (size_t i = 0; folder && !library && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%stare-mpi.so", folder, places[i]);
        library = dlopen(path, RTLD_NOW | RTLD_GLOBAL); /* Open MPI's plugins resolve their symbols against it */
    }
    tare_free(folder);
    return library;
}

tare_status tare_team_begin(struct tare_team *out) {
    const int announced = announced_size();
    *out = (struct tare_team){ 0 };
    if (announced < 2) return TARE_OK;
    void *library = open_library();
    const struct tare_team_backend *backend = library ? dlsym(library, TARE_TEAM_BACKEND_SYMBOL) : NULL;
    if (!backend)
        return TARE_FAIL(
            TARE_UNSUPPORTED,
            "%d processes were started together, but tare was built without MPI: tare-mpi.so is missing next to the "
            "program (build the target tare_mpi, or install the package tare-mpi; or run each process with --shard I/N "
            "and then tare merge)",
            announced);
    if (backend->begin(&out->rank, &out->size) != 0) return TARE_FAIL(TARE_INTERNAL, "cannot start MPI");
    out->backend = backend;
    if (out->size == announced) return TARE_OK;
    return TARE_FAIL(
        TARE_UNSUPPORTED,
        "%d processes were started together, but MPI reports %d: mpirun belongs to a different MPI than the "
        "one that tare was built with",
        announced, out->size);
}

void tare_team_end(struct tare_team *team) {
    if (team->backend) team->backend->end(); /* the library stays loaded: MPI does not support unloading */
    *team = (struct tare_team){ 0 };
}

/* ---- working together ---- */

bool tare_team_stopped(const struct tare_team *team) {
    return team->backend && team->backend->heard() != 0;
}

/* Message: one status byte, then the calibration or the error text. */
static tare_status send_result(const struct tare_team *team, tare_status status,
                               const struct tare_calibration *calibration) {
    struct tare_strbuf message = { 0 };
    tare_strbuf_putc(&message, (char)status);
    if (status != TARE_OK)
        tare_strbuf_puts(&message, tare_error_text());
    else if (tare_calibration_encode(&message, calibration) != TARE_OK)
        message.failed = true;
    if (message.failed) { /* otherwise rank 0 would wait forever */
        const char short_of_memory = TARE_NO_MEMORY;
        status = team->backend->send(&short_of_memory, 1) == 0 ? TARE_OK : TARE_NO_MEMORY;
    } else {
        status = team->backend->send(message.data, message.size) == 0
                     ? TARE_OK
                     : TARE_FAIL(TARE_IO, "rank %d cannot send to rank 0", team->rank);
    }
    tare_strbuf_free(&message);
    return status;
}

static tare_status take(struct tare_calibration *calibration, const char *message, size_t size) {
    const tare_status status = size > 0 ? (tare_status)message[0] : TARE_IO;
    struct tare_calibration *part;
    if (status != TARE_OK) return TARE_FAIL(status, "%s", size > 1 ? message + 1 : tare_status_name(status));
    TARE_TRY(tare_calibration_decode(&part, message + 1, size - 1));
    const tare_status merged = calibration ? tare_calibration_merge(calibration, part) : TARE_OK;
    tare_calibration_free(part);
    return merged;
}

static tare_status hear(struct tare_calibration *calibration, const struct tare_team *team, int from) {
    void *message;
    size_t size = 0;
    tare_status status = TARE_IO;
    const int failed = team->backend->receive(&message, &size, from);
    if (!failed) {
        ((char *)message)[size] = '\0'; /* its size was checked above */
        status = take(calibration, message, size);
    } else if (failed == TARE_TEAM_SILENT) {
        TARE_FAIL(TARE_IO,
                  "no sign of life for %d seconds: its process has ended or is stopped, or its machine cannot be "
                  "reached (start the same ranks again with --resume)",
                  TARE_TEAM_SILENCE);
    } else {
        TARE_FAIL(TARE_IO, "cannot receive from it");
    }
    team->backend->release(message);
    return tare_error_prefix(status, "rank %d", from);
}

tare_status tare_team_reduce(struct tare_calibration *calibration, const struct tare_team *team, tare_status status) {
    if (tare_team_alone(team) || !team->backend) return status;
    if (status != TARE_OK) team->backend->announce();
    if (team->rank != 0) return send_result(team, status, calibration);
    char *text = status != TARE_OK ? tare_strdup(tare_error_text()) : NULL;
    for (int from = 1; from < team->size; from++) {
        const tare_status other = hear(status == TARE_OK ? calibration : NULL, team, from);
        if (other == TARE_OK || (status != TARE_OK && (status != TARE_INTERRUPTED || other == TARE_INTERRUPTED)))
            continue;
        status = other;
        tare_free(text);
        text = tare_strdup(tare_error_text());
    }
    if (status != TARE_OK) tare_error_set(text ? text : tare_status_name(status));
    tare_free(text);
    return status;
}

bool tare_team_verdict(const struct tare_team *team, bool good) {
    int verdict = good;
    if (tare_team_alone(team) || !team->backend) return good;
    return team->backend->hear_verdict(&verdict) == 0 && verdict;
}
