/* Ops with inputs and attributes that do not fit. Every case of tests/ops and tests/golden is changed at random: other
 * dims and ranks, empty tensors, extreme values, other numbers in the attributes, attributes left out. Whatever comes
 * of it, nothing may crash, hang, overrun or fail without saying why (support/op_case.h, op_case_survive).
 *
 *   fuzz_ops [--rounds N] [--cases N an op] [--seed S] [--op NAME] */
#include "base/alloc.h"
#include "support/case_file.h"
#include "support/draw.h"
#include "support/golden.h"

#include <ctype.h>
#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

/* Seconds of processor time, so that a busy machine is no fault. */
#ifdef __SANITIZE_ADDRESS__
enum { SECONDS_A_RUN = 150 };
#else
enum { SECONDS_A_RUN = 10 };
#endif
enum { MOST_ATTRS = 4096, MOST_ELEMENTS = 100000 };

struct options {
    size_t rounds, cases;
    uint64_t seed;
    const char *op;
};

struct totals {
    size_t runs, successes, failures;
};

static struct op_case current; /* what runs, for the handler */

static void set_alarm(int seconds) {
    const struct itimerval timer = { .it_value = { .tv_sec = seconds } };
    setitimer(ITIMER_PROF, &timer, NULL);
}

static void on_alarm(int number) {
    (void)number;
    char text[TARE_SHAPE_TEXT_SIZE];
    fprintf(stderr, "%s {%s} ran for %d seconds\n", current.op, current.attrs ? current.attrs : "", SECONDS_A_RUN);
    for (size_t i = 0; i < current.n_inputs; i++)
        fprintf(stderr, "    input %zu: %s%s\n", i, tare_dtype_name(current.inputs[i].dtype),
                tare_shape_text(text, &current.inputs[i].shape));
    _exit(3);
}

static uint64_t below(uint64_t *seed, uint64_t limit) {
    return draw_bits(seed) % limit;
}

/* ---- tensors ---- */

static int64_t another_dim(uint64_t *seed, int64_t dim) {
    const int64_t choices[] = { 0, 1, dim - 1, dim + 1, 2 * dim, 2, 3, 5 };
    const int64_t chosen = choices[below(seed, sizeof choices / sizeof *choices)];
    return chosen < 0 ? 0 : chosen;
}

/* No elements, between dims that no loop can visit. */
static void empty_between_huge(struct tare_shape *shape, uint64_t *seed) {
    static const int64_t huge[] = { 1, 2, 65536, INT32_MAX, 1LL << 40, INT64_MAX };
    const int zero = shape->rank > 0 ? (int)below(seed, (uint64_t)shape->rank) : -1;
    for (int d = 0; d < shape->rank; d++)
        if (d == zero)
            shape->dims[d] = 0;
        else if (below(seed, 3) > 0)
            shape->dims[d] = huge[below(seed, sizeof huge / sizeof *huge)];
}

/* Another shape, with the old elements over and over. */
static void reshape(struct tare_tensor *tensor, uint64_t *seed) {
    struct tare_shape shape = tensor->shape;
    struct tare_tensor made = { 0 };
    int64_t elements;
    switch (below(seed, 5)) {
    case 0: /* a dim less */
        if (shape.rank > 0) shape.rank--;
        break;
    case 1: /* a dim more */
        if (shape.rank < TARE_MAX_RANK) shape.dims[shape.rank++] = (int64_t)below(seed, 4);
        break;
    case 2:
        empty_between_huge(&shape, seed);
        break;
    default:
        if (shape.rank > 0) {
            int64_t *dim = &shape.dims[below(seed, (uint64_t)shape.rank)];
            *dim = another_dim(seed, *dim);
        }
    }
    if (tare_shape_elements(&elements, &shape) != TARE_OK || elements > MOST_ELEMENTS) return;
    if (tare_tensor_new(&made, tensor->dtype, &shape) != TARE_OK) return;
    const size_t size = tare_dtype_size(tensor->dtype);
    for (int64_t i = 0; i < elements; i++) {
        const int64_t from = tensor->elements ? i % tensor->elements : -1;
        if (tensor->dtype == TARE_DT_STRING) {
            if (from < 0) continue;
            const struct tare_str text = TARE_CONST_DATA(struct tare_str, tensor)[from];
            if (tare_tensor_set_string(&made, i, text.data ? text.data : "", text.size) != TARE_OK) break;
        } else if (from >= 0 && tare_dtype_get(tensor->dtype)->class != TARE_CLASS_OBJECT) {
            memcpy((char *)made.data + (size_t)i * size, (const char *)tensor->data + (size_t)from * size, size);
        } else if (from < 0) {
            memset((char *)made.data + (size_t)i * size, 0, size);
        }
    }
    tare_tensor_reset(tensor);
    *tensor = made;
}

static void change_value(struct tare_tensor *tensor, uint64_t *seed) {
    static const int64_t wholes[] = { -1,      0,        1,         2,           3,         7,
                                      -2,      100,      INT32_MIN, INT32_MAX,   INT64_MIN, INT64_MAX,
                                      1 << 20, -1000000, 1LL << 40, -(1LL << 40) };
    static const double reals[] = {
        0, -0.0, 1, -1, 1e30, -1e30, 1e-30, (double)NAN, (double)INFINITY, -(double)INFINITY, 0.5
    };
    static const char *const texts[] = { "", "a", "\xff\xfe", "0", "-1", "\x08\x01", "(", "1e99", "日" };
    struct tare_tensor copy = { 0 };
    if (!tensor->elements || tare_tensor_copy(&copy, tensor) != TARE_OK) return;
    const int64_t i = (int64_t)below(seed, (uint64_t)copy.elements);
    const enum tare_dtype_class class = tare_dtype_get(copy.dtype)->class;
    if (class == TARE_CLASS_STRING) {
        const char *text = texts[below(seed, sizeof texts / sizeof *texts)];
        if (tare_tensor_set_string(&copy, i, text, strlen(text)) != TARE_OK) tare_error_clear();
    } else if (class == TARE_CLASS_FLOAT && tare_dtype_size(copy.dtype) > 1) {
        tare_tensor_set_f64(&copy, i, reals[below(seed, sizeof reals / sizeof *reals)]);
    } else if (class == TARE_CLASS_SIGNED || class == TARE_CLASS_UNSIGNED || class == TARE_CLASS_QUANTIZED) {
        const int64_t value = wholes[below(seed, sizeof wholes / sizeof *wholes)];
        if (tare_dtype_size(copy.dtype) < 8)
            tare_tensor_set_f64(&copy, i, (double)value); /* saturates */
        else
            tare_tensor_set_i64(&copy, i, value);
    }
    tare_tensor_reset(tensor);
    *tensor = copy;
}

/* ---- attributes, as text ---- */

/* Another number in place of one. */
static void change_number(char *text, uint64_t *seed) {
    static const char *const numbers[] = {
        "0",          "-1",     "1", "2", "3", "9", "2147483647", "9223372036854775807", "-9223372036854775808",
        "4294967296", "1000000"
    };
    size_t places[256], count = 0;
    bool quoted = false;
    for (size_t i = 0; text[i] && count < 256; i++) {
        if (text[i] == '\'') quoted = !quoted;
        const bool number = isdigit((unsigned char)text[i]) || (text[i] == '-' && isdigit((unsigned char)text[i + 1]));
        const bool start = i == 0 || strchr(" [,:", text[i - 1]);
        if (number && start && !quoted) places[count++] = i;
    }
    if (!count) return;
    const size_t at = places[below(seed, count)];
    const char *with = numbers[below(seed, sizeof numbers / sizeof *numbers)];
    size_t end = at + 1;
    while (text[end] && (isalnum((unsigned char)text[end]) || strchr(".+-", text[end])))
        end++;
    char changed[MOST_ATTRS + 64];
    snprintf(changed, sizeof changed, "%.*s%s%s", (int)at, text, with, text + end);
    if (strlen(changed) < MOST_ATTRS) strcpy(text, changed);
}

/* A list loses its first entry, or an attribute goes. */
static void drop_something(char *text, uint64_t *seed) {
    char *list = strchr(text, '[');
    if (list && below(seed, 2)) {
        char *comma = strpbrk(list, ",]");
        if (comma && *comma == ',') memmove(list + 1, comma + 1, strlen(comma));
        return;
    }
    size_t parts = 1;
    for (const char *at = text; *at; at++)
        parts += *at == ';';
    size_t which = below(seed, parts);
    char *from = text;
    while (which-- > 0)
        from = strchr(from, ';') + 1;
    char *end = strchr(from, ';');
    if (end)
        memmove(from, end + 1, strlen(end));
    else
        from[from > text ? -1 : 0] = '\0';
}

/* ---- rounds ---- */

static void mutate(struct op_case *test, char *attrs, uint64_t *seed) {
    for (uint64_t k = 1 + below(seed, 3); k > 0; k--) {
        struct tare_tensor *input = test->n_inputs ? &test->inputs[below(seed, test->n_inputs)] : NULL;
        switch (below(seed, 6)) {
        case 0:
        case 1:
            if (input) reshape(input, seed);
            break;
        case 2:
        case 3:
            if (input) change_value(input, seed);
            break;
        case 4:
            change_number(attrs, seed);
            break;
        default:
            drop_something(attrs, seed);
        }
    }
}

static void fuzz_case(struct totals *totals, struct op_case *test, const struct options *options, uint64_t seed) {
    char attrs[MOST_ATTRS];
    for (size_t round = 0; round < options->rounds; round++) {
        struct op_case changed = *test;
        bool ran = false;
        for (size_t i = 0; i < test->n_inputs; i++) {
            memset(&changed.inputs[i], 0, sizeof changed.inputs[i]);
            tare_tensor_share(&changed.inputs[i], &test->inputs[i]);
        }
        memset(changed.outputs, 0, sizeof changed.outputs);
        if (!test->attrs || strlen(test->attrs) < MOST_ATTRS) {
            strcpy(attrs, test->attrs ? test->attrs : "");
            mutate(&changed, attrs, &seed);
            changed.attrs = attrs;
            current = changed;
            set_alarm(SECONDS_A_RUN);
            totals->failures += !op_case_survive(&ran, &changed);
            set_alarm(0);
            totals->runs++;
            totals->successes += ran;
        }
        op_case_reset(&changed);
    }
}

static bool expected(const struct options *options, const char *op, size_t seen) {
    return seen < options->cases && (!options->op || strcmp(op, options->op) == 0);
}

/* How many cases of the op at `i` come before it. */
#define SEEN_BEFORE(op_at, i)                                                                                          \
    ({                                                                                                                 \
        size_t seen_ = 0;                                                                                              \
        for (size_t k_ = 0; k_ < (i); k_++)                                                                            \
            seen_ += strcmp(op_at(k_), op_at(i)) == 0;                                                                 \
        seen_;                                                                                                         \
    })

static bool fuzz_texts(struct totals *totals, const struct options *options, const char *path) {
    struct case_file *file = NULL;
    if (case_file_open(&file, path) != TARE_OK) return false;
#define OP_AT(i) case_file_op(file, i)
    for (size_t i = 0; i < case_file_count(file); i++) {
        struct op_case test = { 0 };
        if (expected(options, OP_AT(i), SEEN_BEFORE(OP_AT, i)) && case_file_read(&test, file, i) == TARE_OK)
            fuzz_case(totals, &test, options, options->seed + i);
        op_case_reset(&test);
    }
#undef OP_AT
    case_file_close(file);
    return true;
}

static bool fuzz_goldens(struct totals *totals, const struct options *options, const char *path) {
    struct golden_file *file = NULL;
    if (golden_open(&file, path) != TARE_OK) return false;
#define OP_AT(i) golden_op(file, i)
    for (size_t i = 0; i < golden_count(file); i++) {
        struct op_case test = { 0 };
        if (expected(options, OP_AT(i), SEEN_BEFORE(OP_AT, i)) && golden_read(&test, file, i) == TARE_OK)
            fuzz_case(totals, &test, options, options->seed + i);
        op_case_reset(&test);
    }
#undef OP_AT
    golden_close(file);
    return true;
}

static bool fuzz_all(struct totals *totals, const struct options *options, const char *pattern,
                     bool (*fn)(struct totals *, const struct options *, const char *)) {
    glob_t found = { 0 };
    char full[4096];
    bool good = true;
    snprintf(full, sizeof full, "%s/%s", TARE_SOURCE_DIR, pattern);
    if (glob(full, 0, NULL, &found) != 0) return false;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!fn(totals, options, found.gl_pathv[i])) {
            fprintf(stderr, "%s: %s\n", found.gl_pathv[i], tare_error_text());
            good = false;
        }
    globfree(&found);
    return good;
}

int main(int argc, char **argv) {
    struct options options = { .rounds = 12, .cases = (size_t)-1, .seed = 1 };
    struct totals totals = { 0 };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--rounds") == 0) options.rounds = (size_t)strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--cases") == 0) options.cases = (size_t)strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--seed") == 0) options.seed = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--op") == 0) options.op = argv[i + 1];
    }
#ifndef __SANITIZE_ADDRESS__ /* whose shadow memory needs far more */
    /* what fits is computed within SECONDS_A_RUN */
    const struct rlimit limit = { (rlim_t)512 << 20, (rlim_t)512 << 20 };
    setrlimit(RLIMIT_AS, &limit);
#endif
    signal(SIGPROF, on_alarm);
    const bool texts = fuzz_all(&totals, &options, "tests/ops/*.cases", fuzz_texts);
    const bool goldens = fuzz_all(&totals, &options, "tests/golden/*.bin", fuzz_goldens);
    printf("%zu runs, %zu of them succeeded, %zu broke a rule\n", totals.runs, totals.successes, totals.failures);
    return texts && goldens && totals.runs > 0 && totals.failures == 0 ? 0 : 1;
}
