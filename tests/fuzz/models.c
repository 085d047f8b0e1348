/* Damaged SavedModels: every file of every model below a folder is changed in single bytes and cut short, one change at
 * a time, and the damaged model goes through inspect, validate and copy. Whatever they answer, they must not crash,
 * must not ask for more than 1 GiB at once, and must end within 10 seconds; built with sanitizers, nothing may be
 * reported.
 *
 * Changes follow from the file's name, the seed and their number, so that a failure can be made again with --only and
 * --first. The runs of one file share a process; when it dies the next one goes on behind the change that killed it. */
#include "base/alloc.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/option.h"
#include "base/strbuf.h"
#include "cli/command.h"
#include "convert/saved_model.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SECONDS = 10, COPY_EVERY = 10, SKIPPED = 77 };
static const size_t MAX_ALLOCATION = (size_t)1 << 30;

struct fuzz_options {
    const char *folder, *scratch, *only;
    int flips, cuts, first;
    int64_t max_bytes, seed;
};

static const struct tare_option rows[] = {
    { TARE_OPTION(struct fuzz_options, "flips", INT, flips), .fallback = "200",
      .help = "changed bytes a file, one at a time" },
    { TARE_OPTION(struct fuzz_options, "cuts", INT, cuts), .fallback = "50", .help = "truncations a file" },
    { TARE_OPTION(struct fuzz_options, "seed", INT64, seed), .fallback = "1",
      .help = "another seed makes other changes" },
    { TARE_OPTION(struct fuzz_options, "max_bytes", INT64, max_bytes),
      .help = "leave out models of more bytes; 0: take all" },
    { TARE_OPTION(struct fuzz_options, "only", STRING, only), .placeholder = "TEXT",
      .help = "files whose MODEL/PATH holds this text" },
    { TARE_OPTION(struct fuzz_options, "first", INT, first), .help = "number of the first change of each file" },
    { 0 },
};
static const struct tare_argument arguments[] = {
    { TARE_ARGUMENT(struct fuzz_options, "FOLDER", folder), .help = "folder of models", .flags = TARE_OPTION_REQUIRED },
    { TARE_ARGUMENT(struct fuzz_options, "SCRATCH", scratch), .help = "folder to work in, made and removed",
      .flags = TARE_OPTION_REQUIRED },
    { 0 },
};
static const struct tare_option_set set = {
    .program = "fuzz_models", .summary = "Damages SavedModels and opens them.", .options = rows, .arguments = arguments
};

/* What the processes tell each other. */
struct shared {
    int number; /* of the change that runs */
    int64_t runs, accepted;
    double longest;
    size_t largest;
    char change[128]; /* the change that runs, in words */
    char worst_time[512], worst_size[512];
};

struct fuzz {
    struct fuzz_options options;
    struct shared *shared;
    char model[1024]; /* the damaged model, below scratch */
    char copy[1024];
    int64_t files, failures;
    size_t peak_bytes;
};

/* ---- changes ---- */

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t draw(const struct fuzz *fuzz, const char *label, int number, int what) {
    uint64_t x = mix((uint64_t)fuzz->options.seed);
    for (; *label; label++)
        x = mix(x ^ (uint8_t)*label);
    return mix(mix(x ^ (uint64_t)number) ^ (uint64_t)what);
}

static void must(bool done, const char *what) {
    if (done) return;
    perror(what);
    _exit(3);
}

static void damage(const struct fuzz *fuzz, int fd, const struct tare_mapping *original, const char *label,
                   int number) {
    size_t at = (size_t)(draw(fuzz, label, number, 0) % original->size);
    if (number < fuzz->options.flips) {
        uint8_t byte = original->data[at] ^ (uint8_t)(1 + draw(fuzz, label, number, 1) % 255);
        snprintf(fuzz->shared->change, sizeof fuzz->shared->change, "byte %zu: %02x for %02x", at, byte,
                 original->data[at]);
        must(pwrite(fd, &byte, 1, (off_t)at) == 1, "pwrite");
    } else {
        snprintf(fuzz->shared->change, sizeof fuzz->shared->change, "cut to %zu of %zu bytes", at, original->size);
        must(ftruncate(fd, (off_t)at) == 0, "ftruncate");
    }
}

/* Puts back what damage changed. */
static void repair(const struct fuzz *fuzz, int fd, const struct tare_mapping *original, const char *label,
                   int number) {
    size_t at = (size_t)(draw(fuzz, label, number, 0) % original->size);
    size_t size = number < fuzz->options.flips ? 1 : original->size - at;
    must(pwrite(fd, original->data + at, size, (off_t)at) == (ssize_t)size, "pwrite");
}

/* ---- runs ---- */

static int command(const char *name, const char *model, const char *a, const char *b, const char *c) {
    const char *argv[] = { "tare", name, model, a, b, c, NULL };
    int argc = 3 + (a != NULL) + (b != NULL) + (c != NULL);
    return tare_main(argc, (char **)(uintptr_t)argv);
}

static bool run_commands(struct fuzz *fuzz, int number) {
    bool accepted = command("inspect", fuzz->model, "--functions", "--variables", number % 2 ? "--json" : "--ops") == 0;
    command("validate", fuzz->model, NULL, NULL, NULL);
    if (number % COPY_EVERY == 0) {
        command("copy", fuzz->model, fuzz->copy, NULL, NULL);
        must(tare_file_remove_tree(fuzz->copy) == TARE_OK, "remove copy");
    } else {
        struct tare_graph_model *model = NULL;
        if (tare_saved_model_load(&model, fuzz->model, NULL) == TARE_OK) tare_model_free(model);
        tare_error_clear();
    }
    return accepted;
}

static void run_change(struct fuzz *fuzz, const char *label, int number) {
    struct shared *shared = fuzz->shared;
    double start = tare_clock_seconds(), seconds;
    size_t largest;
    tare_alloc_largest();
    alarm(MAX_SECONDS);
    shared->accepted += run_commands(fuzz, number);
    alarm(0);
    seconds = tare_clock_seconds() - start;
    largest = tare_alloc_largest();
    shared->runs++;
    if (seconds > shared->longest) {
        shared->longest = seconds;
        snprintf(shared->worst_time, sizeof shared->worst_time, "%s: %s", label, shared->change);
    }
    if (largest > shared->largest) {
        shared->largest = largest;
        snprintf(shared->worst_size, sizeof shared->worst_size, "%s: %s", label, shared->change);
    }
    if (largest > MAX_ALLOCATION) _exit(4);
}

/* One process: changes from `first` on. Ends normally, so that a leak checker has its say. */
static void work(struct fuzz *fuzz, const char *label, const char *path, const struct tare_mapping *original,
                 int first) {
    int fd = open(path, O_RDWR), null = open("/dev/null", O_WRONLY);
    must(fd >= 0 && null >= 0 && dup2(null, 1) == 1, "open");
    if (!getenv("FUZZ_VERBOSE")) {
        char log[1100];
        int errors;
        snprintf(log, sizeof log, "%s/stderr", fuzz->options.scratch);
        errors = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
        must(errors >= 0 && dup2(errors, 2) == 2, "open");
        close(errors);
    }
    for (int i = first; i < fuzz->options.flips + fuzz->options.cuts; i++) {
        fuzz->shared->number = i;
        must(ftruncate(2, 0) == 0 || getenv("FUZZ_VERBOSE"), "ftruncate"); /* what a sanitizer says last stays */
        damage(fuzz, fd, original, label, i);
        run_change(fuzz, label, i);
        repair(fuzz, fd, original, label, i);
    }
    fuzz->shared->number = -1;
    close(null);
    close(fd);
    exit(0);
}

static void show_stderr(const struct fuzz *fuzz) {
    char log[1100];
    struct tare_mapping text;
    snprintf(log, sizeof log, "%s/stderr", fuzz->options.scratch);
    if (tare_file_map(&text, log) != TARE_OK) return;
    fwrite(text.data, 1, text.size < 6000 ? text.size : 6000, stdout);
    tare_file_unmap(&text);
}

static void report(struct fuzz *fuzz, const char *label, int status) {
    const struct shared *shared = fuzz->shared;
    fuzz->failures++;
    printf("FAILED: %s, change %d (%s): ", label, shared->number, shared->change);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("more than %d s\n", MAX_SECONDS);
    else if (WIFSIGNALED(status))
        printf("signal %d\n", WTERMSIG(status));
    else if (WEXITSTATUS(status) == 4)
        printf("asked for %zu bytes at once\n", shared->largest);
    else
        printf("exit status %d\n", WEXITSTATUS(status));
    show_stderr(fuzz);
    fflush(stdout);
}

static void fuzz_file(struct fuzz *fuzz, const char *label, const char *from, const char *path) {
    struct tare_mapping original;
    int first = fuzz->options.first;
    must(tare_file_map(&original, from) == TARE_OK, from);
    while (original.size && first >= 0 && first < fuzz->options.flips + fuzz->options.cuts) {
        struct rusage usage;
        int status;
        pid_t child;
        fflush(stdout);
        must(unlink(path) == 0 && tare_file_copy_tree(from, from, path) == TARE_OK && chmod(path, 0600) == 0, path);
        child = fork();
        must(child >= 0, "fork");
        if (child == 0) work(fuzz, label, path, &original, first);
        must(wait4(child, &status, 0, &usage) == child, "wait4");
        if ((size_t)usage.ru_maxrss * 1024 > fuzz->peak_bytes) fuzz->peak_bytes = (size_t)usage.ru_maxrss * 1024;
        if (status == 0) break;
        report(fuzz, label, status);
        first = fuzz->shared->number < 0 ? -1 : fuzz->shared->number + 1;
    }
    fuzz->files++;
    tare_file_unmap(&original);
}

/* ---- models ---- */

/* Folders of `from` made anew below `to`, with links to its files. */
static void mirror(const char *from, const char *to) {
    struct tare_file_list names = { 0 };
    must(mkdir(to, 0700) == 0, to);
    must(tare_file_list(&names, from) == TARE_OK, from);
    for (size_t i = 0; i < names.count; i++) {
        char a[2048], b[2048];
        snprintf(a, sizeof a, "%s/%s", from, names.names[i]);
        snprintf(b, sizeof b, "%s/%s", to, names.names[i]);
        if (tare_file_kind_of(a) == TARE_FILE_DIRECTORY)
            mirror(a, b);
        else
            must(tare_file_copy_tree(a, a, b) == TARE_OK, b);
    }
    tare_file_list_free(&names);
}

static void fuzz_folder(struct fuzz *fuzz, const char *label, const char *from, const char *to) {
    struct tare_file_list names = { 0 };
    must(tare_file_list(&names, from) == TARE_OK, from);
    for (size_t i = 0; i < names.count; i++) {
        char a[2048], b[2048], name[2048];
        snprintf(a, sizeof a, "%s/%s", from, names.names[i]);
        snprintf(b, sizeof b, "%s/%s", to, names.names[i]);
        snprintf(name, sizeof name, "%s/%s", label, names.names[i]);
        if (tare_file_kind_of(a) == TARE_FILE_DIRECTORY) {
            fuzz_folder(fuzz, name, a, b);
        } else if (!fuzz->options.only || strstr(name, fuzz->options.only)) {
            fuzz_file(fuzz, name, a, b);
            must(unlink(b) == 0 && tare_file_copy_tree(a, a, b) == TARE_OK, b);
        }
    }
    tare_file_list_free(&names);
}

static int64_t tree_bytes(const char *path) {
    struct tare_file_list names = { 0 };
    int64_t bytes = 0;
    if (tare_file_kind_of(path) != TARE_FILE_DIRECTORY) return tare_file_size(path);
    must(tare_file_list(&names, path) == TARE_OK, path);
    for (size_t i = 0; i < names.count; i++) {
        char inner[2048];
        snprintf(inner, sizeof inner, "%s/%s", path, names.names[i]);
        bytes += tree_bytes(inner);
    }
    tare_file_list_free(&names);
    return bytes;
}

static void fuzz_models(struct fuzz *fuzz) {
    struct tare_file_list names = { 0 };
    must(tare_file_list(&names, fuzz->options.folder) == TARE_OK, fuzz->options.folder);
    for (size_t i = 0; i < names.count; i++) {
        char from[2048];
        double start = tare_clock_seconds();
        int64_t files = fuzz->files;
        snprintf(from, sizeof from, "%s/%s", fuzz->options.folder, names.names[i]);
        if (fuzz->options.max_bytes && tree_bytes(from) > fuzz->options.max_bytes) continue;
        mirror(from, fuzz->model);
        fuzz_folder(fuzz, names.names[i], from, fuzz->model);
        must(tare_file_remove_tree(fuzz->model) == TARE_OK, fuzz->model);
        if (fuzz->files == files) continue;
        printf("%s: %lld files, %.1f s\n", names.names[i], (long long)(fuzz->files - files),
               tare_clock_seconds() - start);
        fflush(stdout);
    }
    tare_file_list_free(&names);
}

int main(int argc, char **argv) {
    struct fuzz fuzz = { 0 };
    struct tare_option_outcome outcome;
    const struct shared *shared;
    size_t existed;
    if (tare_options_parse(&fuzz.options, &outcome, &set, argc - 1, argv + 1) != TARE_OK || outcome.help) {
        struct tare_strbuf text = { 0 };
        tare_options_help(&text, &set, NULL);
        fprintf(stderr, "%s\n%s", tare_error_text(), tare_strbuf_text(&text));
        return 2;
    }
    if (tare_file_kind_of(fuzz.options.folder) != TARE_FILE_DIRECTORY) return SKIPPED;
    must(tare_file_make_folders(fuzz.options.scratch, &existed) == TARE_OK, fuzz.options.scratch);
    snprintf(fuzz.model, sizeof fuzz.model, "%s/model", fuzz.options.scratch);
    snprintf(fuzz.copy, sizeof fuzz.copy, "%s/copy", fuzz.options.scratch);
    must(tare_file_remove_tree(fuzz.model) == TARE_OK, fuzz.model);
    fuzz.shared = mmap(NULL, sizeof *fuzz.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(fuzz.shared != MAP_FAILED, "mmap");
    fuzz_models(&fuzz);
    shared = fuzz.shared;
    printf("%lld files, %lld changes, %lld still opened, %lld failures\n", (long long)fuzz.files,
           (long long)shared->runs, (long long)shared->accepted, (long long)fuzz.failures);
    printf("longest run %.2f s (%s)\nlargest allocation %zu bytes (%s)\npeak memory %zu bytes\n", shared->longest,
           shared->worst_time, shared->largest, shared->worst_size, fuzz.peak_bytes);
    must(tare_file_remove_tree(fuzz.options.scratch) == TARE_OK, fuzz.options.scratch);
    return fuzz.failures != 0 || !shared->runs;
}
