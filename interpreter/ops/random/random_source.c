/* Sources of random words (random_source.h): derives generators from seeds, keys, the session, or a variable. */
#include "interpreter/ops/random/random_source.h"

#include "interpreter/execution/variable.h"

enum { ANY_ALGORITHM = 3 };

static tare_status check_algorithm(int64_t algorithm) {
    if (algorithm == TARE_RANDOM_PHILOX || algorithm == ANY_ALGORITHM) return TARE_OK;
    return TARE_FAIL(TARE_UNSUPPORTED, "random algorithm %lld (expected 1, Philox)", (long long)algorithm);
}

tare_status tare_random_from_key(struct tare_philox *out, const struct tare_kernel *kernel, int first) {
    const struct tare_tensor *key = &kernel->inputs[first], *counter = &kernel->inputs[first + 1];
    const struct tare_tensor *algorithm = &kernel->inputs[first + 2];
    TARE_TRY(check_algorithm(algorithm->elements == 1 ? tare_tensor_get_i64(algorithm, 0) : -1));
    if (key->elements < 1 || counter->elements < 2)
        return TARE_FAIL(TARE_SHAPE, "key and counter have %lld and %lld numbers (expected 1 and 2)",
                         (long long)key->elements, (long long)counter->elements);
    *out = tare_philox_from((uint64_t)tare_tensor_get_i64(key, 0), (uint64_t)tare_tensor_get_i64(counter, 0),
                            (uint64_t)tare_tensor_get_i64(counter, 1));
    return TARE_OK;
}

tare_status tare_random_from_seeds(struct tare_philox *out, const struct tare_tensor *seeds) {
    if (seeds->shape.rank != 1 || seeds->elements != 2)
        return TARE_FAIL(TARE_SHAPE, "seed must have shape [2], not %lld elements", (long long)seeds->elements);
    *out = tare_philox_from_seeds((uint64_t)tare_tensor_get_i64(seeds, 0), (uint64_t)tare_tensor_get_i64(seeds, 1));
    return TARE_OK;
}

tare_status tare_random_from_session(struct tare_philox *out, const struct tare_kernel *kernel) {
    uint64_t seed = (uint64_t)tare_node_int(kernel->node, "seed", 0),
             seed2 = (uint64_t)tare_node_int(kernel->node, "seed2", 0);
    if (!kernel->session) return TARE_FAIL(TARE_INTERNAL, "random numbers outside a session");
    *out = tare_philox_from_seeds(seed ^ tare_session_next_random(kernel->session), seed2);
    return TARE_OK;
}

/* ---- generators stored in variables ---- */

enum { COUNTER_LOW, COUNTER_HIGH, KEY, STATE_SIZE };

/* Each number reserves this many counter steps, as in TensorFlow: more than any distribution draws for one number. */
enum { STEP = 256 };

/* `algorithm` NULL: the variable contains it before the state. */
static tare_status open_state(uint64_t **out, struct tare_variable_object **variable, struct tare_kernel *kernel,
                              const struct tare_tensor *algorithm) {
    const int first = algorithm ? 0 : 1;
    if (algorithm) TARE_TRY(check_algorithm(algorithm->elements == 1 ? tare_tensor_get_i64(algorithm, 0) : -1));
    TARE_TRY(tare_variable_from_handle(variable, &kernel->inputs[0]));
    TARE_TRY(tare_variable_own(*variable));
    const struct tare_tensor *value = &(*variable)->value;
    if (value->dtype != TARE_DT_INT64 || value->shape.rank != 1 || value->elements < first + STATE_SIZE)
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "For the Philox algorithm, the size of state must be at least %d; got %lld elements of %s",
                         first + (int)STATE_SIZE, (long long)value->elements, tare_dtype_name(value->dtype));
    if (!algorithm) TARE_TRY(check_algorithm(tare_tensor_get_i64(value, 0)));
    *out = (uint64_t *)value->data + first;
    return TARE_OK;
}

static void move_on(uint64_t *state, uint64_t numbers) {
    const uint64_t before = state[COUNTER_LOW], carry = numbers >> 56; /* times 256 */
    state[COUNTER_LOW] += numbers * STEP;
    state[COUNTER_HIGH] += carry + (state[COUNTER_LOW] < before);
}

tare_status tare_random_from_state(struct tare_philox *out, struct tare_kernel *kernel,
                                   const struct tare_tensor *algorithm, uint64_t numbers) {
    struct tare_variable_object *variable = NULL;
    uint64_t *state;
    TARE_TRY(open_state(&state, &variable, kernel, algorithm));
    *out = tare_philox_from(state[KEY], state[COUNTER_LOW], state[COUNTER_HIGH]);
    move_on(state, numbers);
    return TARE_OK;
}

tare_status tare_random_skip(struct tare_kernel *kernel, const struct tare_tensor *algorithm, uint64_t delta,
                             struct tare_tensor *before) {
    struct tare_variable_object *variable = NULL;
    uint64_t *state;
    TARE_TRY(open_state(&state, &variable, kernel, algorithm));
    if (before) TARE_TRY(tare_tensor_copy(before, &variable->value));
    move_on(state, delta);
    return TARE_OK;
}
