/* Reads the rank from environment variables. */
#include "cli/ranks.h"

#include <stdlib.h>

static const struct {
    const char *rank, *count, *run;
} starters[] = {
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE" },
    { "PMI_RANK", "PMI_SIZE", "PMI_PORT" },
    { "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID" },
};

struct tare_ranks tare_ranks_of_environment(void) {
    struct tare_ranks ranks = { 0, 1, "" };
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        const char *rank = getenv(starters[i].rank), *count = getenv(starters[i].count), *run = getenv(starters[i].run);
        if (!rank || !count) continue;
        ranks.rank = atoi(rank);
        ranks.count = atoi(count);
        ranks.run = run ? run : "";
        if (ranks.count < 1 || ranks.rank < 0 || ranks.rank >= ranks.count) return (struct tare_ranks){ 0, 1, "" };
        break;
    }
    return ranks;
}

void tare_ranks_leave(void) {
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        unsetenv(starters[i].rank);
        unsetenv(starters[i].count);
    }
}
