/* Lists in an arena. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list__takes_memory_in_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
