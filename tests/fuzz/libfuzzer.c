/* The libFuzzer program of all targets; the environment variable TARE_FUZZ_TARGET names one. scripts/fuzz.sh runs it.
 */
#include "fuzz/target.h"
#include "fuzz/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                                 size_t most, unsigned seed);

static const struct fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc, (void)argv;
    target = fuzz_target_find(getenv("TARE_FUZZ_TARGET"));
    if (!target) {
        fprintf(stderr, "TARE_FUZZ_TARGET must be one of:");
        for (const struct fuzz_target *row = fuzz_targets; row->name; row++)
            fprintf(stderr, " %s", row->name);
        fprintf(stderr, "\n");
        exit(2);
    }
    fuzz_begin();
    atexit(fuzz_end);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size <= target->largest) target->run(data, size);
    return 0;
}

/* One change in eight leaves the checksums as they are. */
static size_t repaired(uint8_t *data, size_t size, unsigned seed) {
    if (target->repair && seed % 8) target->repair(data, size);
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed) {
    if (most > target->largest) most = target->largest;
    if (size > most) size = most;
    size = target->is_message && size ? wire_mutate(data, size, most, seed, LLVMFuzzerMutate)
                                      : LLVMFuzzerMutate(data, size, most);
    return repaired(data, size, seed);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
                                 size_t most, unsigned seed) {
    size_t size = 0;
    if (target->is_message) size = wire_cross(out, most, a, a_size, b, b_size, seed);
    if (!size) { /* the first part of one, the last part of the other */
        const size_t first = a_size ? seed % a_size : 0, from = b_size ? (seed >> 8) % b_size : 0;
        const size_t last = b_size - from;
        if (first > most || last > most - first) return 0;
        if (first) memcpy(out, a, first);
        if (last) memcpy(out + first, b + from, last);
        size = first + last;
    }
    return repaired(out, size, seed);
}
