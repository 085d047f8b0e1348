/* Guessing the quantization of a product's result before its range is known.
 *
 * The values of a clamped layer, such as those of Relu6, often reach both bounds of the clamp. Their range is then the
 * clamp's, and the quantization that follows from it is that of any other run with this range. A product whose last
 * result had this range therefore quantizes its values as then, in the pass that collects their range. If the range is
 * another one, the bytes are dropped, and the product runs again; after each such miss, more results must have the
 * clamp's range before the next guess. */
#include "interpreter/execution/grouping_binding.h"

enum { MOST_MISSES = 6 };

bool tare_group_guesses(const struct tare_group_binding *binding) {
    return binding->guess.is_set && binding->guess.waits == 0;
}

void tare_group_note_range(struct tare_group_binding *binding, bool is_known, float low, float high) {
    struct tare_group_guess *guess = &binding->guess;
    const struct tare_real_stage *real = &binding->requantize.real;
    const bool is_clamps =
        is_known && binding->requantizes && binding->requantize.is_real && low == real->low && high == real->high;
    guess->may_set = is_clamps;
    if (is_clamps && guess->waits > 0) guess->waits--;
    if (is_clamps) return;
    guess->is_set = false;
    if (!binding->guessed.dtype) return;
    tare_tensor_reset(&binding->guessed);
    if (guess->misses < MOST_MISSES) guess->misses++;
    guess->waits = 1 << guess->misses;
}

void tare_group_set_guess(struct tare_group_binding *binding, const struct tare_stage *stage) {
    struct tare_group_guess *guess = &binding->guess;
    if (!guess->may_set || !stage->is_bounded) return;
    guess->is_set = true;
    guess->divisor = stage->divisor;
    guess->reciprocal = stage->reciprocal;
    guess->add = stage->add + 0.5f;
}

bool tare_group_is_guessed(const struct tare_group_binding *binding, const struct tare_stage *stage) {
    const struct tare_real_stage *real = &binding->requantize.real;
    return binding->guessed.dtype && stage->is_bounded && stage->divisor == real->divisor &&
           stage->add + 0.5f == real->add;
}
