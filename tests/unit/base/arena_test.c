/* Arenas and lists in them. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* Appends 0 … count - 1, checks them, and returns the bytes allocated. */
static size_t bytes_of_list(size_t count) {
    struct tare_arena arena = { 0 };
    uint64_t *items = NULL;
    for (size_t i = 0; i < count; i++) {
        items = tare_arena_append(&arena, items, i, sizeof *items);
        assert_non_null(items);
        assert_int_equal(items[i], 0);
        items[i] = i;
    }
    for (size_t i = 0; i < count; i++)
        assert_int_equal(items[i], i);
    const size_t bytes = arena.bytes;
    tare_arena_free(&arena);
    return bytes;
}

static void a_list__takes_memory_in_its_length(void **state) {
    (void)state;
    for (size_t count = 1; count < 20000; count = count * 3 + 1)
        assert_in_range(bytes_of_list(count), count * sizeof(uint64_t), 4 * count * sizeof(uint64_t) + 512);
}

/* Allocations that took several blocks fit in one after a reset, which the arena keeps from then on. */
static void reset__leaves_room_for_the_same_allocations(void **state) {
    (void)state;
#ifndef TARE_ARENA_DEBUG
    struct tare_arena arena = { 0 };
    const struct tare_arena_block *block = NULL;
    for (int round = 0; round < 3; round++) {
        assert_non_null(tare_arena_alloc(&arena, 100));
        const struct tare_arena_block *first = arena.blocks;
        assert_non_null(tare_arena_alloc(&arena, 3 << 20));
        assert_non_null(tare_arena_alloc(&arena, 1 << 20));
        assert_int_equal(arena.bytes, (4 << 20) + 100);
        assert_true(round == 0 || arena.blocks == first);
        assert_true(round < 2 || first == block);
        block = first;
        tare_arena_reset(&arena);
        assert_int_equal(arena.bytes, 0);
    }
    tare_arena_free(&arena);
    assert_null(arena.blocks);
    assert_int_equal(arena.room, 0);
#endif
}

/* Memory beyond a limit is returned. */
static void reset__does_not_keep_much(void **state) {
    (void)state;
    struct tare_arena arena = { 0 };
    for (int i = 0; i < 64; i++)
        assert_non_null(tare_arena_alloc(&arena, 1 << 20));
    tare_arena_reset(&arena);
    assert_in_range(arena.room, 0, 8 << 20);
    tare_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list__takes_memory_in_its_length),
        cmocka_unit_test(reset__leaves_room_for_the_same_allocations),
        cmocka_unit_test(reset__does_not_keep_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
