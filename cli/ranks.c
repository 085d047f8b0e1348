/* Reads the rank from environment variables. */
#include "cli/ranks.h"

#include <stdlib.h>

static const struct {
    const char *rank, *count;
    const char *step; /* NULL: none. The script of sbatch, a single process, has the other variables, too. */
} starters[] = {
    { "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL },
    { "PMI_RANK", "PMI_SIZE", NULL },
    { "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID" },
};

struct tare_ranks tare_ranks_of_environment(void) {
    const struct tare_ranks single = { 0, 1 };
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        const char *rank = getenv(starters[i].rank), *count = getenv(starters[i].count);
        if (!rank || !count || (starters[i].step && !getenv(starters[i].step))) continue;
        const struct tare_ranks ranks = { atoi(rank), atoi(count) };
        return ranks.count < 1 || ranks.rank < 0 || ranks.rank >= ranks.count ? single : ranks;
    }
    return single;
}

void tare_ranks_leave(void) {
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++) {
        unsetenv(starters[i].rank);
        unsetenv(starters[i].count);
    }
}
