/* Random networks give the same bits however they are run: fused and step by step, with some values observed, at each
 * CPU level, with 1 to 3 threads, in batches of any size, and after images of another size; as they are, and in each
 * form that the conversion and quantization of this project makes of them. In every sixth network some inputs are not
 * finite.
 *
 *   networks [--first SEED] [--count N] [--variant NAME] [--layers N] [--text]
 *
 * --layers builds only the first layers of each network, --variant takes one form, and --text describes the networks:
 * these reduce a failure. The environment variable TARE_CPU selects one CPU level, otherwise all of the machine are
 * compared. */
#include "differential/network.h"
#include "differential/variant.h"
#include "differential/ways.h"
#include "interpreter/kernels/cpu.h"
#include "support/process.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AT_A_TIME = 20, SPOILED = 6 };

/* Largest noise of reference kernels, relative to the signal: a difference in the last bits may change what it is
 * rounded to. */
static const double EXACT = 1e-8, ROUNDED = 0.03;

struct request {
    const char *program, *variant; /* NULL: all variants */
    uint64_t first, count;
    int layers;
    bool describes;
};

/* ---- one CPU level ---- */

/* The network's input, and inputs of the same model that must not disturb each other in one session: without examples,
 * and of another size. */
static int make_inputs(struct tare_tensor *inputs, const struct network *network, uint64_t seed) {
    struct tare_shape shape = network->shape;
    int count = 0;
    inputs[count++] = variant_examples(&shape, seed);
    if (seed % SPOILED == 0) variant_spoil(&inputs[0], seed);
    shape.dims[0] = 0;
    inputs[count++] = variant_examples(&shape, seed);
    shape = network->shape;
    if (!network->is_open) return count;
    for (int i = 1; i < shape.rank - 1; i++)
        shape.dims[i] = shape.dims[i] > 1 && seed % 2 ? shape.dims[i] - 1 : shape.dims[i] + i;
    inputs[count++] = variant_examples(&shape, seed + 1);
    return count;
}

/* Folding constants and the like change the last bits only. */
static void compare_built(struct tare_strbuf *errors, const struct request *request, uint64_t seed,
                          const struct tare_graph_model *prepared, const struct tare_tensor *x) {
    struct network built;
    network_build(&built, seed, request->layers);
    ways_compare_models(errors, prepared, built.model, x, built.rounds ? ROUNDED : EXACT);
    network_free(&built);
}

static bool run_variant(const struct request *request, const struct variant *variant, uint64_t seed) {
    struct tare_tensor inputs[WAYS_INPUTS] = { 0 };
    struct tare_strbuf errors = { 0 };
    struct network network;
    printf("seed %" PRIu64 " %s", seed, variant->name);
    fflush(stdout);
    network_build(&network, seed, request->layers);
    if (request->describes) printf(" (%s)", tare_strbuf_text(&network.text));
    variant_apply(variant, network.model, &network.shape, seed);
    const int count = make_inputs(inputs, &network, seed);
    if (variant->prepares && !variant->quantize && !variant->to_bfloat16 && seed % SPOILED)
        compare_built(&errors, request, seed, network.model, &inputs[0]);
    const bool rounds = variant->quantize || variant->to_bfloat16 || network.rounds;
    printf(" %016" PRIx64 "\n", ways_compare(&errors, network.model, inputs, count, variant->mixes || network.mixes,
                                             rounds ? ROUNDED : EXACT));
    const bool is_right = errors.size == 0;
    if (!is_right)
        fprintf(stderr, "seed %" PRIu64 " %s: %s\n%s", seed, variant->name, tare_strbuf_text(&network.text),
                tare_strbuf_text(&errors));
    for (int i = 0; i < count; i++)
        tare_tensor_reset(&inputs[i]);
    tare_strbuf_free(&errors);
    network_free(&network);
    return is_right;
}

/* Prints one line for each variant, which is the same at every level: the seed, the name and a checksum. Differences
 * between ways go to standard error. */
static bool run_network(const struct request *request, uint64_t seed) {
    bool is_right = true;
    for (const struct variant *v = variants; v->name; v++)
        if (!request->variant || strcmp(request->variant, v->name) == 0) is_right &= run_variant(request, v, seed);
    return is_right;
}

static int run_level(const struct request *request) {
    bool is_right = true;
    for (uint64_t i = 0; i < request->count; i++)
        is_right &= run_network(request, request->first + i);
    return is_right ? 0 : 1;
}

/* ---- all levels ---- */

/* Runs this program at a level. */
static void start_level(struct process *out, const struct request *request, enum tare_cpu_level level, uint64_t first,
                        uint64_t count) {
    char texts[3][32];
    const char *argv[12] = { request->program, "--first", texts[0], "--count", texts[1], "--layers", texts[2] };
    snprintf(texts[0], sizeof texts[0], "%" PRIu64, first);
    snprintf(texts[1], sizeof texts[1], "%" PRIu64, count);
    snprintf(texts[2], sizeof texts[2], "%d", request->layers);
    if (request->variant) argv[7] = "--variant", argv[8] = request->variant;
    setenv("TARE_CPU", tare_cpu_level_name(level), 1);
    process_run(out, argv);
    unsetenv("TARE_CPU");
}

static bool differs(const char *a, const char *b) {
    while (*a && *b) {
        const size_t n = strcspn(a, "\n"), m = strcspn(b, "\n");
        if (n != m || memcmp(a, b, n) != 0) {
            fprintf(stderr, "%.*s at the lowest level, %.*s\n", (int)n, a, (int)m, b);
            return true;
        }
        a += n + (a[n] != 0), b += m + (b[m] != 0);
    }
    return *a != *b;
}

static bool compare_levels(const struct request *request, uint64_t first, uint64_t count) {
    struct process lowest = { 0 };
    bool is_right = true;
    for (enum tare_cpu_level level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)) {
        struct process process;
        start_level(&process, request, level, first, count);
        if (process.status != 0) {
            const size_t size = strlen(process.out), line = size < 100 ? 0 : size - 100;
            fprintf(stderr, "level %s: status %d\n%s…%s\n", tare_cpu_level_name(level), process.status, process.err,
                    process.status == 1 ? "" : process.out + line);
            is_right = false;
        }
        if (lowest.out && process.status <= 1 && differs(lowest.out, process.out)) {
            fprintf(stderr, "level %s differs\n", tare_cpu_level_name(level));
            is_right = false;
        }
        if (lowest.out)
            process_free(&process);
        else
            lowest = process;
    }
    process_free(&lowest);
    return is_right;
}

static int run_levels(const struct request *request) {
    uint64_t failed = 0;
    for (uint64_t done = 0; done < request->count; done += AT_A_TIME) {
        const uint64_t left = request->count - done, count = left < AT_A_TIME ? left : AT_A_TIME;
        failed += !compare_levels(request, request->first + done, count);
        printf("%" PRIu64 " networks from seed %" PRIu64 "\n", count, request->first + done);
        fflush(stdout);
    }
    printf("%" PRIu64 " networks, %" PRIu64 " groups failed\n", request->count, failed);
    return failed != 0;
}

static bool read_arguments(struct request *request, int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        if (strcmp(name, "--text") == 0) {
            request->describes = true;
            continue;
        }
        if (++i == argc) return false;
        if (strcmp(name, "--first") == 0)
            request->first = strtoull(argv[i], NULL, 10);
        else if (strcmp(name, "--count") == 0)
            request->count = strtoull(argv[i], NULL, 10);
        else if (strcmp(name, "--layers") == 0)
            request->layers = atoi(argv[i]);
        else if (strcmp(name, "--variant") == 0)
            request->variant = argv[i];
        else
            return false;
    }
    return true;
}

int main(int argc, char **argv) {
    char program[4096] = { 0 };
    struct request request = { .program = program, .first = 1, .count = 8, .layers = 100 };
    if (!read_arguments(&request, argc, argv) || readlink("/proc/self/exe", program, sizeof program - 1) < 0) {
        fprintf(stderr, "usage: networks [--first SEED] [--count N] [--variant NAME] [--layers N] [--text]\n");
        return 2;
    }
    return getenv("TARE_CPU") ? run_level(&request) : run_levels(&request);
}
