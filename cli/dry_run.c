/* Prints the time and the peak memory of the process. */
#include "cli/dry_run.h"

#include <stdio.h>
#include <sys/resource.h>

static double seconds_of(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

void tare_dry_run_took(void) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return;
    fprintf(
        stderr,
        "dry run: %.2f s of processor time and %.0f MB of memory at most, as the run itself takes before it writes\n",
        seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime), (double)usage.ru_maxrss * 1024 / 1e6);
}
