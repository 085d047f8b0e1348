#include "support/op_family.h"

#include "base/alloc.h"
#include "base/arena.h"
#include "base/map.h"
#include "support/case_file.h"
#include "support/golden.h"
#include "support/script.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_GOLDENS = 2 };

/* The cases of one family as one list: those of the text file, then the golden ones. */
struct family {
    struct case_file *texts;
    struct golden_file *goldens[N_GOLDENS]; /* NULL: no such file */
};

struct op_test {
    const struct family *family;
    const char *op;
};

static size_t count_texts(const struct family *family) {
    return family->texts ? case_file_count(family->texts) : 0;
}

static size_t count_goldens(const struct golden_file *file) {
    return file ? golden_count(file) : 0;
}

static size_t count_cases(const struct family *family) {
    size_t count = count_texts(family);
    for (size_t k = 0; k < N_GOLDENS; k++)
        count += count_goldens(family->goldens[k]);
    return count;
}

/* The golden file of case *i, which becomes the number in that file. */
static const struct golden_file *golden_of(const struct family *family, size_t *i) {
    size_t k = 0;
    *i -= count_texts(family);
    for (; *i >= count_goldens(family->goldens[k]); k++)
        *i -= count_goldens(family->goldens[k]);
    return family->goldens[k];
}

static const char *op_of(const struct family *family, size_t i) {
    if (i < count_texts(family)) return case_file_op(family->texts, i);
    const struct golden_file *file = golden_of(family, &i);
    return golden_op(file, i);
}

static tare_status read_case(struct op_case *out, const struct family *family, size_t i) {
    if (i < count_texts(family)) return case_file_read(out, family->texts, i);
    const struct golden_file *file = golden_of(family, &i);
    return golden_read(out, file, i);
}

static bool run_one(const struct family *family, size_t i) {
    struct op_case *test = tare_calloc(1, sizeof *test);
    bool good = false;
    if (!test) return false;
    if (read_case(test, family, i) == TARE_OK)
        good = op_case_run(test);
    else
        fprintf(stderr, "%s\n", tare_error_text());
    op_case_reset(test);
    tare_free(test);
    return good;
}

static void op__matches_its_cases(void **state) {
    const struct op_test *test = *state;
    size_t failed = 0;
    for (size_t i = 0; i < count_cases(test->family); i++) {
        if (strcmp(op_of(test->family, i), test->op) == 0 && !run_one(test->family, i)) failed++;
    }
    assert_int_equal(failed, 0);
}

/* ---- one test per op ---- */

struct plan {
    struct tare_arena arena;
    struct CMUnitTest *tests;
    size_t count;
};

static bool add_test(struct plan *plan, const struct family *family, const char *op) {
    const char *only = getenv("TARE_OP");
    size_t cases = 0;
    if (only && strcmp(only, op) != 0) return true;
    for (size_t i = 0; i < plan->count; i++) {
        if (strcmp(((struct op_test *)plan->tests[i].initial_state)->op, op) == 0) return true;
    }
    for (size_t i = 0; i < count_cases(family); i++)
        cases += strcmp(op_of(family, i), op) == 0;
    struct op_test *test = TARE_NEW(&plan->arena, struct op_test);
    const char *name = tare_arena_printf(&plan->arena, "%s__matches_%zu_cases", op, cases);
    if (!test || !name) return false;
    *test = (struct op_test){ family, op };
    plan->tests[plan->count++] =
        (struct CMUnitTest){ .name = name, .test_func = op__matches_its_cases, .initial_state = test };
    return true;
}

static bool make_plan(struct plan *plan, const struct family *family, const struct CMUnitTest *more, size_t n_more) {
    plan->tests = TARE_NEW_ARRAY(&plan->arena, struct CMUnitTest, count_cases(family) + n_more);
    if (!plan->tests) return false;
    for (size_t i = 0; i < count_cases(family); i++) {
        if (!add_test(plan, family, op_of(family, i))) return false;
    }
    for (size_t i = 0; i < n_more && !getenv("TARE_OP"); i++)
        plan->tests[plan->count++] = more[i];
    return true;
}

static bool open_family(struct family *out, const char *source_dir, const char *family) {
    static const char *const folders[N_GOLDENS] = { "golden", "golden/tensorflow" };
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/ops/%s.cases", source_dir, family);
    tare_status status = case_file_open(&out->texts, path);
    bool any = status == TARE_OK;
    for (size_t k = 0; k < N_GOLDENS && (status == TARE_OK || status == TARE_NOT_FOUND); k++) {
        snprintf(path, sizeof path, "%s/tests/%s/%s.bin", source_dir, folders[k], family);
        status = golden_open(&out->goldens[k], path);
        any = any || status == TARE_OK;
    }
    return any && (status == TARE_OK || status == TARE_NOT_FOUND);
}

int op_family_main(const char *source_dir, const char *family, const struct CMUnitTest *more, size_t n_more) {
    struct family cases = { 0 };
    struct plan plan = { 0 };
    int failed = 1;
    if (!open_family(&cases, source_dir, family) || !make_plan(&plan, &cases, more, n_more))
        fprintf(stderr, "family %s: %s\n", family, tare_error_text());
    else
        failed = _cmocka_run_group_tests(family, plan.tests, plan.count, NULL, NULL);
    tare_arena_free(&plan.arena);
    case_file_close(cases.texts);
    for (size_t k = 0; k < N_GOLDENS; k++)
        golden_close(cases.goldens[k]);
    return failed;
}

/* ---- coverage ---- */

struct covered {
    const char *op;
    size_t count;
};

struct op_coverage {
    struct tare_arena arena;
    struct tare_map by_op;
    struct covered **ops;
    size_t n_ops, capacity;
};

static bool add_covered(struct op_coverage *coverage, const char *op, size_t count) {
    struct covered *covered = tare_map_get(&coverage->by_op, op);
    if (!covered) {
        covered = TARE_NEW(&coverage->arena, struct covered);
        if (!covered || !TARE_GROW(coverage->ops, coverage->n_ops, coverage->capacity)) return false;
        covered->op = tare_arena_strdup(&coverage->arena, op);
        if (!covered->op || !tare_map_set(&coverage->by_op, covered->op, covered)) return false;
        coverage->ops[coverage->n_ops++] = covered;
    }
    covered->count += count;
    return true;
}

static bool cover_texts(struct op_coverage *coverage, const char *path) {
    struct case_file *file;
    bool good = case_file_open(&file, path) == TARE_OK;
    for (size_t i = 0; good && i < case_file_count(file); i++)
        good = add_covered(coverage, case_file_op(file, i), 1);
    if (good) case_file_close(file);
    return good;
}

static bool cover_goldens(struct op_coverage *coverage, const char *path) {
    struct golden_file *file;
    bool good = golden_open(&file, path) == TARE_OK;
    for (size_t i = 0; good && i < golden_count(file); i++)
        good = add_covered(coverage, golden_op(file, i), 1);
    if (good) golden_close(file);
    return good;
}

struct script_cover {
    struct op_coverage *coverage;
    bool good;
};

static void cover_script_op(void *arg, const char *op) {
    struct script_cover *cover = arg;
    cover->good = cover->good && add_covered(cover->coverage, op, 1);
}

static bool cover_scripts(struct op_coverage *coverage, const char *path) {
    struct script_file *file = script_file_open(path);
    struct script_cover cover = { coverage, file };
    for (size_t i = 0; file && i < script_file_count(file); i++)
        script_file_each_op(file, i, cover_script_op, &cover);
    script_file_close(file);
    return cover.good;
}

static bool cover_elsewhere(struct op_coverage *coverage, const char *path) {
    char op[128], line[512];
    size_t count;
    FILE *stream = fopen(path, "r");
    bool good = true;
    if (!stream) return true;
    while (good && fgets(line, sizeof line, stream)) {
        if (line[0] != '#' && sscanf(line, "%127s %zu", op, &count) == 2) good = add_covered(coverage, op, count);
    }
    fclose(stream);
    return good;
}

static bool cover_each(struct op_coverage *coverage, const char *source_dir, const char *pattern,
                       bool (*fn)(struct op_coverage *, const char *)) {
    char path[4096];
    glob_t found;
    bool good = true;
    snprintf(path, sizeof path, "%s/%s", source_dir, pattern);
    if (glob(path, 0, NULL, &found) != 0) return true; /* the file does not exist */
    for (size_t i = 0; i < found.gl_pathc && good; i++)
        good = fn(coverage, found.gl_pathv[i]);
    globfree(&found);
    return good;
}

struct op_coverage *op_coverage_load(const char *source_dir) {
    struct op_coverage *coverage = tare_calloc(1, sizeof *coverage);
    if (!coverage) return NULL;
    if (cover_each(coverage, source_dir, "tests/ops/*.cases", cover_texts) &&
        cover_each(coverage, source_dir, "tests/golden/*.bin", cover_goldens) &&
        cover_each(coverage, source_dir, "tests/golden/tensorflow/*.bin", cover_goldens) &&
        cover_each(coverage, source_dir, "tests/ops/*.graphs", cover_scripts) &&
        cover_each(coverage, source_dir, "tests/ops/elsewhere.txt", cover_elsewhere))
        return coverage;
    op_coverage_free(coverage);
    return NULL;
}

size_t op_coverage_count(const struct op_coverage *coverage, const char *op) {
    const struct covered *covered = tare_map_get(&coverage->by_op, op);
    return covered ? covered->count : 0;
}

void op_coverage_each(const struct op_coverage *coverage, void (*fn)(void *arg, const char *op, size_t count),
                      void *arg) {
    for (size_t i = 0; i < coverage->n_ops; i++)
        fn(arg, coverage->ops[i]->op, coverage->ops[i]->count);
}

void op_coverage_free(struct op_coverage *coverage) {
    if (!coverage) return;
    tare_map_free(&coverage->by_op);
    tare_free(coverage->ops);
    tare_arena_free(&coverage->arena);
    tare_free(coverage);
}
