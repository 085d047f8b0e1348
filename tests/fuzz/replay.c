/* Runs the targets on the inputs of a corpus, without libFuzzer:
 *
 *   fuzz_replay CORPUS [TARGET [FILE…]]   all targets, or one; CORPUS/TARGET/ contains its inputs
 *   fuzz_replay --repair TARGET FILE…     corrects the checksums of files in place
 *
 * An input that crashes or takes longer than the limit ends the program, after a line that names it. A target without
 * an input that it uses fails, so that a corpus which is refused as a whole is noticed; so does an input whose
 * checksums are right and which repairing changes. */
#include "fuzz/target.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SECONDS = 20 };

static char running[1024]; /* the input, for the line that names it */

static void report(int number) {
    char line[1200];
    const int size = snprintf(line, sizeof line, "FAILED: %s: %s\n", running,
                              number == SIGALRM   ? "takes too long"
                              : number == SIGABRT ? "aborts"
                                                  : "crashes");
    if (write(STDOUT_FILENO, line, (size_t)size) < 0) _exit(2);
    signal(number, SIG_DFL);
    _exit(1);
}

static void catch_signals(void) {
    signal(SIGALRM, report);
    signal(SIGABRT, report);
#if !defined(__SANITIZE_ADDRESS__) /* which reports more */
    signal(SIGSEGV, report);
    signal(SIGBUS, report);
    signal(SIGFPE, report);
#endif
}

struct totals {
    size_t inputs, used, failures;
    double longest;
};

/* Repairing must not change an input that was used: its checksums are right. */
static bool repair_keeps(const struct fuzz_target *target, const struct tare_mapping *file) {
    uint8_t *copy;
    bool same;
    if (!target->repair) return true;
    copy = malloc(file->size + 1);
    if (!copy) abort();
    memcpy(copy, file->data, file->size);
    target->repair(copy, file->size);
    same = memcmp(copy, file->data, file->size) == 0;
    free(copy);
    return same;
}

static void run_input(struct totals *totals, const struct fuzz_target *target, const char *path, bool check_repair) {
    struct tare_mapping file;
    const double began = tare_clock_seconds();
    enum fuzz_depth depth;
    double seconds;
    if (tare_file_map(&file, path) != TARE_OK) {
        printf("FAILED: %s\n", tare_error_text());
        totals->failures++;
        return;
    }
    snprintf(running, sizeof running, "%s", path);
    alarm(MAX_SECONDS);
    depth = file.size <= target->largest ? target->run(file.data, file.size) : FUZZ_REFUSED;
    alarm(0);
    totals->inputs++;
    totals->used += depth == FUZZ_USED;
    seconds = tare_clock_seconds() - began;
    if (seconds > totals->longest) totals->longest = seconds;
    if (check_repair && depth == FUZZ_USED && !repair_keeps(target, &file)) {
        printf("FAILED: %s: repairing changes a valid input\n", path);
        totals->failures++;
    }
    tare_file_unmap(&file);
}

/* The whole-file checksums of these are all verified by their readers, so that what is used is valid. */
static bool is_fully_checked(const struct fuzz_target *target) {
    return strcmp(target->name, "calibration") == 0 || strcmp(target->name, "npz") == 0;
}

static void run_corpus(struct totals *all, const struct fuzz_target *target, const char *corpus) {
    struct tare_file_list list = { 0 };
    struct totals totals = { 0 };
    char folder[512], path[1024];
    snprintf(folder, sizeof folder, "%s/%s", corpus, target->name);
    if (tare_file_list(&list, folder) != TARE_OK) tare_error_clear();
    for (size_t i = 0; i < list.count; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, list.names[i]);
        run_input(&totals, target, path, is_fully_checked(target));
    }
    tare_file_list_free(&list);
    printf("%s: %zu inputs, %zu used, longest %.2f s\n", target->name, totals.inputs, totals.used, totals.longest);
    if (!totals.used) {
        printf("FAILED: %s: no input is used\n", target->name);
        totals.failures++;
    }
    fflush(stdout);
    all->inputs += totals.inputs;
    all->failures += totals.failures;
}

static int repair_files(const struct fuzz_target *target, int count, char **paths) {
    for (int i = 0; i < count; i++) {
        FILE *file = fopen(paths[i], "r+b");
        static uint8_t data[1 << 20];
        const size_t size = file ? fread(data, 1, sizeof data, file) : 0;
        if (!file) {
            perror(paths[i]);
            return 1;
        }
        if (target->repair) target->repair(data, size);
        rewind(file);
        if (fwrite(data, 1, size, file) != size || fclose(file) != 0) return 1;
    }
    return 0;
}

int main(int argc, char **argv) {
    const bool repair = argc > 2 && strcmp(argv[1], "--repair") == 0;
    const struct fuzz_target *only = argc > 2 ? fuzz_target_find(argv[2]) : NULL;
    struct totals all = { 0 };
    if (argc < 2 || (argc > 2 && !only)) {
        fprintf(stderr, "usage: fuzz_replay CORPUS [TARGET [FILE…]] | --repair TARGET FILE…\n");
        return 2;
    }
    if (repair) return repair_files(only, argc - 3, argv + 3);
    catch_signals();
    fuzz_begin();
    for (int i = 3; i < argc; i++)
        run_input(&all, only, argv[i], false);
    for (const struct fuzz_target *target = fuzz_targets; argc <= 3 && target->name; target++)
        if (!only || only == target) run_corpus(&all, target, argv[1]);
    fuzz_end();
    printf("%zu inputs, %zu failures\n", all.inputs, all.failures);
    return all.failures || !all.inputs;
}
