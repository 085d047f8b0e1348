/* The mutator and the repair of checksums, which decide how far fuzzing gets. */
#include "base/varint.h"
#include "fuzz/repair.h"
#include "fuzz/target.h"
#include "fuzz/wire.h"
#include "proto/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { MOST = 65536 };

static uint8_t original[MOST], data[MOST];

static size_t read_seed(const char *name) {
    char path[1024];
    FILE *file;
    size_t size;
    snprintf(path, sizeof path, "%s/tests/corpus/%s", TARE_SOURCE_DIR, name);
    file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    size = fread(original, 1, sizeof original, file);
    fclose(file);
    memcpy(data, original, size);
    return size;
}

/* The target refuses the input with a changed byte, and repairing makes it usable again. */
static void expect_repaired(const char *target_name, const char *seed, size_t changed) {
    const struct fuzz_target *target = fuzz_target_find(target_name);
    const size_t size = read_seed(seed);
    assert_non_null(target);
    assert_int_equal(target->run(data, size), FUZZ_USED);
    data[changed < size ? changed : size - 1] ^= 0x10;
    if (target->run(data, size) == FUZZ_USED) fail_msg("%s: the change is not noticed", seed);
    target->repair(data, size);
    if (target->run(data, size) != FUZZ_USED) fail_msg("%s: refused after repair", seed);
    assert_memory_equal(data, original, size);
}

static void repair__corrects_checksums(void **state) {
    (void)state;
    expect_repaired("calibration", "calibration/seed-network1", SIZE_MAX);
    expect_repaired("chunked", "chunked/seed-main_whole", 24);      /* hash of the first header */
    expect_repaired("chunked", "chunked/seed-main_whole", 64 + 16); /* hash of the data of the second chunk */
    expect_repaired("image", "image/seed-gray.png", 29);            /* checksum of IHDR */
}

static void repair__corrects_the_checksums_of_records(void **state) {
    const size_t size = read_seed("tfrecord/seed-example");
    (void)state;
    data[8] ^= 1;
    data[size - 1] ^= 1;
    repair_tfrecord(data, size);
    assert_memory_equal(data, original, size);
    data[12] ^= 0xff; /* data: its checksum changes, that of the length does not */
    repair_tfrecord(data, size);
    assert_memory_equal(data, original, 12);
    const uint64_t length = data[0];
    const uint32_t crc = tare_crc32c_mask(tare_crc32c(data + 12, length));
    assert_memory_equal(data + 12 + length, &crc, 4);
}

/* The checksum of the last block is the five bytes before the footer, that of tensors is inside the blocks. */
static void repair__corrects_the_checksums_of_checkpoints(void **state) {
    const struct fuzz_target *target = fuzz_target_find("checkpoint");
    const size_t size = read_seed("checkpoint/seed-network1");
    const struct fuzz_part index = fuzz_part(data, size, 1), tensors = fuzz_part(data, size, 2);
    (void)state;
    data[(size_t)(index.data - data) + index.size - 48 - 1] ^= 1;
    assert_int_equal(target->run(data, size), FUZZ_REFUSED);
    target->repair(data, size);
    assert_memory_equal(data, original, size);
    data[(size_t)(tensors.data - data) + tensors.size / 2] ^= 1;
    target->repair(data, size);
    assert_memory_not_equal(index.data, original + (index.data - data), index.size);
    assert_int_equal(target->run(data, size), FUZZ_USED);
}

static size_t flip(uint8_t *bytes, size_t size, size_t most) {
    (void)most;
    if (size) bytes[size / 2] ^= 1;
    return size;
}

/* Whether all bytes are fields, at the top level. */
static bool is_message(const uint8_t *at, size_t size) {
    const uint8_t *end = at + size;
    while (at < end) {
        uint64_t tag, value = 0;
        if (!tare_varint_next(&tag, &at, end) || !(tag >> 3)) return false;
        if ((tag & 7) == 5 || (tag & 7) == 1)
            value = (tag & 7) == 5 ? 4 : 8;
        else if ((tag & 7) > 2 || !tare_varint_next(&value, &at, end))
            return false;
        if ((tag & 7) && value > (uint64_t)(end - at)) return false;
        if (tag & 7) at += value;
    }
    return true;
}

static void mutation__changes_fields(void **state) {
    enum { ROUNDS = 2000 };
    const size_t size = read_seed("saved_model/seed-captures");
    int messages = 0, changed = 0, deep = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        size_t got;
        memcpy(data, original, size);
        got = wire_mutate(data, size, size + 100, seed, flip);
        assert_true(got <= size + 100);
        messages += is_message(data, got);
        changed += got != size || memcmp(data, original, size) != 0;
        deep += got != size && got + 32 > size; /* a small change inside a large message: lengths were written anew */
    }
    if (messages < ROUNDS * 8 / 10 || changed < ROUNDS / 2 || deep < ROUNDS / 10)
        fail_msg("of %d mutants %d are messages, %d changed, %d deep inside", ROUNDS, messages, changed, deep);
}

static void mutation__is_repeatable(void **state) {
    static uint8_t again[MOST];
    const size_t size = read_seed("saved_model/seed-captures");
    (void)state;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        memcpy(data, original, size);
        memcpy(again, original, size);
        const size_t a = wire_mutate(data, size, MOST, seed, flip), b = wire_mutate(again, size, MOST, seed, flip);
        assert_int_equal(a, b);
        assert_memory_equal(data, again, a);
    }
}

static void crossover__takes_fields_of_both(void **state) {
    static uint8_t other[MOST], out[MOST];
    const size_t other_size = read_seed("saved_model/seed-main");
    int messages = 0, results = 0;
    (void)state;
    memcpy(other, original, other_size);
    const size_t size = read_seed("saved_model/seed-captures");
    for (uint64_t seed = 1; seed <= 300; seed++) {
        const size_t got = wire_cross(out, MOST, original, size, other, other_size, seed);
        results += got > 0;
        messages += got && is_message(out, got);
    }
    if (results < 150 || messages != results) fail_msg("%d results, %d of them messages", results, messages);
}

static int begin(void **state) {
    (void)state;
    fuzz_begin();
    return 0;
}

static int end(void **state) {
    (void)state;
    fuzz_end();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repair__corrects_checksums),
        cmocka_unit_test(repair__corrects_the_checksums_of_records),
        cmocka_unit_test(repair__corrects_the_checksums_of_checkpoints),
        cmocka_unit_test(mutation__changes_fields),
        cmocka_unit_test(mutation__is_repeatable),
        cmocka_unit_test(crossover__takes_fields_of_both),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
