/* Guesses of a quantization: a product guesses after a result whose range was that of its clamp, not after another one,
 * and waits longer after each guess that was wrong. */
#include "interpreter/execution/grouping_binding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct tare_stage stage = { .divisor = 0.25f, .reciprocal = 4, .add = -128, .is_bounded = true };

static struct tare_group_binding clamped(void) {
    return (struct tare_group_binding){ .requantizes = true,
                                        .requantize = { .is_real = true, .real = { .low = 0, .high = 6 } } };
}

/* A run with this range, in which the product guesses if it may; returns whether it did. */
static bool run(struct tare_group_binding *binding, float high) {
    const struct tare_shape shape = tare_shape_scalar();
    const bool guesses = tare_group_guesses(binding);
    if (guesses) assert_int_equal(tare_tensor_new(&binding->guessed, TARE_DT_INT8, &shape), TARE_OK);
    tare_group_note_range(binding, true, 0, high);
    assert_int_equal(binding->guessed.dtype != TARE_DT_INVALID, guesses && high == 6);
    tare_group_set_guess(binding, &stage);
    if (binding->guessed.dtype) tare_tensor_reset(&binding->guessed);
    return guesses;
}

static void guess__follows_a_result_with_the_range_of_the_clamp(void **unused) {
    (void)unused;
    struct tare_group_binding binding = clamped();
    assert_false(run(&binding, 5));
    assert_false(run(&binding, 6));
    assert_true(run(&binding, 6));
    assert_float_equal(binding.guess.add, -127.5f, 0);
    assert_true(run(&binding, 6));
}

static void guess__waits_longer_after_each_miss(void **unused) {
    (void)unused;
    struct tare_group_binding binding = clamped();
    assert_false(run(&binding, 6));
    for (int misses = 1; misses < 10; misses++) {
        const int waits = misses < 6 ? 1 << misses : 64;
        assert_true(run(&binding, 5));
        for (int i = 0; i < waits; i++)
            assert_false(run(&binding, 6));
    }
    assert_true(run(&binding, 6));
}

static void guess__of_another_quantization_is_wrong(void **unused) {
    (void)unused;
    struct tare_group_binding binding = clamped();
    binding.guessed.dtype = TARE_DT_INT8;
    binding.requantize.real.divisor = 0.25f, binding.requantize.real.add = -127.5f;
    assert_true(tare_group_is_guessed(&binding, &stage));
    struct tare_stage other = stage;
    other.divisor = 0.5f;
    assert_false(tare_group_is_guessed(&binding, &other));
    other = stage, other.add = -127;
    assert_false(tare_group_is_guessed(&binding, &other));
    other = stage, other.is_bounded = false;
    assert_false(tare_group_is_guessed(&binding, &other));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guess__follows_a_result_with_the_range_of_the_clamp),
        cmocka_unit_test(guess__waits_longer_after_each_miss),
        cmocka_unit_test(guess__of_another_quantization_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
