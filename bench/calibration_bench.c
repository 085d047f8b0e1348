/* What statistics cost: processor time of `tare calibrate` against `tare run` over the same records, one worker each,
 * in turn; and the peak memory of calibrating few and many records.
 *
 * calibration_bench TARE MODEL FILE.tfrecord: the file is given 10 times (100 for the memory) under different names. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 7, COPIES = 10, MANY = 100 };

static const char *tare, *model;
static char folder[] = "/tmp/calibration_bench_XXXXXX";

struct cost {
    double seconds; /* of processors, user and system */
    long peak_kib;
};

static struct cost run(const char *const *arguments) {
    struct rusage usage;
    int how;
    const pid_t child = fork();
    if (child == 0) {
        const int nowhere = open("/dev/null", O_WRONLY);
        if (nowhere < 0 || dup2(nowhere, 1) < 0 || dup2(nowhere, 2) < 0) _exit(126);
        execv(tare, (char *const *)(size_t)arguments);
        _exit(127);
    }
    if (child < 0 || wait4(child, &how, 0, &usage) != child || !WIFEXITED(how) || WEXITSTATUS(how) != 0) {
        fprintf(stderr, "%s %s failed\n", tare, arguments[1]);
        exit(1);
    }
    return (struct cost){ (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec +
                              (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec,
                          usage.ru_maxrss };
}

static struct cost calibrate(const char *data, const char *batch, const char *threads) {
    char out[PATH_MAX];
    snprintf(out, sizeof out, "%s/out.calib", folder);
    const char *const arguments[] = { "tare",    "calibrate", model,   "--data",  data,  "-o", out,
                                      "--quiet", "--threads", threads, "--batch", batch, NULL };
    return run(arguments);
}

static void keep_least(struct cost *least, struct cost cost) {
    if (least->seconds == 0 || cost.seconds < least->seconds) *least = cost;
}

/* One round of every way, again and again, so that whatever else the machine does hits them alike. */
static void compare_time(const char *data) {
    const char *const plain[] = { "tare", "run", model, "--data", data, "--quiet", "--json", "--threads", "1", NULL };
    struct cost base = { 0 }, one = { 0 }, several = { 0 };
    for (int round = 0; round < ROUNDS; round++) {
        keep_least(&base, run(plain));
        keep_least(&one, calibrate(data, "1", "1"));
        keep_least(&several, calibrate(data, "0", "1"));
    }
    printf("%-34s %7.3f s\n", "run", base.seconds);
    printf("%-34s %7.3f s  %+6.1f %%\n", "calibrate --batch 1", one.seconds, 100 * (one.seconds / base.seconds - 1));
    printf("%-34s %7.3f s  %+6.1f %%\n", "calibrate", several.seconds, 100 * (several.seconds / base.seconds - 1));
}

int main(int argc, char **argv) {
    char original[PATH_MAX], path[PATH_MAX], few[PATH_MAX], many[PATH_MAX], single[PATH_MAX];
    if (argc != 4 || !realpath(argv[3], original) || !mkdtemp(folder)) {
        fprintf(stderr, "usage: calibration_bench TARE MODEL FILE.tfrecord\n");
        return 2;
    }
    tare = argv[1];
    model = argv[2];
    for (int i = 0; i < MANY; i++) {
        snprintf(path, sizeof path, "%s/%c-%02d.tfrecord", folder, i < COPIES ? 'a' : 'b', i);
        if (symlink(original, path) != 0) return 1;
    }
    snprintf(single, sizeof single, "%s/a-00.tfrecord", folder);
    snprintf(few, sizeof few, "%s/a-*.tfrecord", folder);
    snprintf(many, sizeof many, "%s/*.tfrecord", folder);
    compare_time(few);
    printf("%-34s %7ld KiB\n", "peak, the file once", calibrate(single, "0", "2").peak_kib);
    printf("%-34s %7ld KiB\n", "peak, a hundred times", calibrate(many, "0", "2").peak_kib);
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    return system(path) != 0;
}
