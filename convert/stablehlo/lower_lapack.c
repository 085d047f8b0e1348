/* The LAPACK and BLAS custom calls of JAX up to 0.4.35, whose sizes and options are operands (jaxlib/lapack.py of these
 * versions), become the later calls lapack_<s|d|c|z><routine>_ffi, which have operands of matrices alone, options in
 * their backend_config, and no workspace among their results. */
#include "convert/stablehlo/lower.h"

#include "base/strbuf.h"

#include <string.h>

enum { MOST_RESULTS = 9, NAME_SIZE = 16 };

struct form {
    const char *target;  /* '?': the letter of the precision */
    const char *renamed; /* the later call */
    const char *options; /* a name for each operand before those of matrices; '-': a size */
    size_t n_matrices;   /* operands of matrices; others that follow are shapes of results */
    /* The results of the call and of the later one. "work" is workspace; '-' before a name: only of real matrices, '+':
     * only of complex ones. */
    const char *results, *later;
};

static const struct form forms[] = {
    { "lapack_?potrf", "lapack_?potrf_ffi", "uplo - -", 1, "a info", "a info" },
    { "lapack_?getrf", "lapack_?getrf_ffi", "- - -", 1, "a pivots info", "a pivots info" },
    { "lapack_?geqrf", "lapack_?geqrf_ffi", "- - - -", 1, "a tau info work", "a tau" },
    { "lapack_?orgqr", "lapack_?orgqr_ffi", "- - - - -", 2, "a info work", "a" },
    { "lapack_?ungqr", "lapack_?ungqr_ffi", "- - - - -", 2, "a info work", "a" },
    { "lapack_?gesdd", "lapack_?gesdd_ffi", "full vectors - - - -", 1, "a s u v info work work +work", "a s u v info" },
    { "lapack_?syevd", "lapack_?syevd_ffi", "uplo - -", 1, "a s info work work", "a s info" },
    { "lapack_?heevd", "lapack_?heevd_ffi", "uplo - -", 1, "a s info work work work", "a s info" },
    { "lapack_?geev", "lapack_?geev_ffi", "- - left right", 1, "work work -work w -wi vl v info", "w -wi vl v info" },
    { "lapack_?gees", "lapack_?gees_ffi", "- - mode sort", 1, "a +work w -wi v rank info", "a v w -wi rank info" },
    { "lapack_?gehrd", "lapack_?gehrd_ffi", "- low high - - -", 1, "a tau info work", "a tau info" },
    { "lapack_?sytrd", "lapack_?sytrd_ffi", "- uplo - - -", 1, "a s e tau info work", "a s e tau info" },
    { "lapack_?hetrd", "lapack_?hetrd_ffi", "- uplo - - -", 1, "a s e tau info work", "a s e tau info" },
    { "blas_?trsm", "lapack_?trsm_ffi", "side uplo op diag - - - alpha", 2, "b", "b" },
    { 0 },
};

struct call {
    struct tare_lowering *l;
    const struct form *form;
    char precision; /* s, d, c, z */
    size_t n_scalars;
};

/* The next word of a list; false: none is left. */
static bool next_word(char word[NAME_SIZE], const char **list) {
    size_t size;
    *list += strspn(*list, " ");
    size = strcspn(*list, " ");
    memcpy(word, *list, size);
    word[size] = '\0';
    *list += size;
    return size > 0;
}

/* The same for a list of results, without those of the other kind of elements. */
static bool next_result(char name[NAME_SIZE], const char **list, const struct call *c) {
    const bool is_complex = c->precision == 'c' || c->precision == 'z';
    while (next_word(name, list)) {
        if (*name != '-' && *name != '+') return true;
        if ((*name == '+') != is_complex) continue;
        memmove(name, name + 1, strlen(name));
        return true;
    }
    return false;
}

/* The place of a name among the results of the call; n_results: it has none. */
static size_t result_of(const struct call *c, const char *wanted) {
    const char *list = c->form->results;
    char name[NAME_SIZE];
    for (size_t i = 0; i < c->l->op->n_results && next_result(name, &list, c); i++)
        if (strcmp(name, wanted) == 0) return i;
    return c->l->op->n_results;
}

/* ---- options ---- */

/* An operand that is an option; 0 if there is none of the name. */
static int64_t option(const struct call *c, const char *wanted) {
    const char *list = c->form->options;
    char name[NAME_SIZE];
    for (size_t i = 0; next_word(name, &list); i++) {
        if (strcmp(name, wanted) != 0) continue;
        const int64_t value = tare_lower_known_index(c->l, c->l->op->operands[i]);
        if (value < 0) tare_lower_fail(c->l, TARE_UNSUPPORTED, "operand %zu is not constant", i);
        return value;
    }
    return 0;
}

static void put_option(struct tare_strbuf *out, const char *name, int64_t value, const char *type) {
    tare_strbuf_printf(out, "%s%s = %lld : %s", out->size > 1 ? ", " : "", name, (long long)value, type);
}

static void put_options(struct tare_strbuf *out, const struct call *c) {
    const char *list = c->form->options;
    char name[NAME_SIZE];
    tare_strbuf_putc(out, '{');
    while (next_word(name, &list)) {
        const int64_t value = *name == '-' || strcmp(name, "alpha") == 0 ? 0 : option(c, name);
        if (strcmp(name, "uplo") == 0)
            put_option(out, name, value ? 'L' : 'U', "ui8");
        else if (strcmp(name, "vectors") == 0)
            put_option(out, "mode", !value ? 'N' : option(c, "full") ? 'A' : 'S', "ui8");
        else if (strcmp(name, "left") == 0)
            put_option(out, "compute_left", value, "ui8");
        else if (strcmp(name, "right") == 0)
            put_option(out, "compute_right", value, "ui8");
        else if (strcmp(name, "mode") == 0 || strcmp(name, "sort") == 0)
            put_option(out, name, value, "ui8");
        else if (strcmp(name, "low") == 0 || strcmp(name, "high") == 0)
            put_option(out, name, value, "i32");
        else if (strcmp(name, "side") == 0)
            put_option(out, name, value ? 'L' : 'R', "ui8");
        else if (strcmp(name, "op") == 0)
            put_option(out, "trans_x", "NTC"[value < 3 ? value : 0], "ui8");
        else if (strcmp(name, "diag") == 0)
            put_option(out, name, value ? 'U' : 'N', "ui8");
    }
    if (strstr(c->form->renamed, "evd")) put_option(out, "mode", 'V', "ui8");
    tare_strbuf_putc(out, '}');
}

/* ---- the later call ---- */

static void set_options(const struct call *c, struct tare_node *node) {
    struct tare_strbuf config = { 0 };
    put_options(&config, c);
    if (config.failed) c->l->status = TARE_NO_MEMORY;
    tare_lower_attr_bytes(c->l, node, "backend_config", tare_strbuf_text(&config), config.size);
    tare_strbuf_free(&config);
}

static void set_target(const struct call *c, struct tare_node *node) {
    char target[32];
    const size_t size = strlen(c->form->renamed);
    for (size_t i = 0; i < size; i++)
        target[i] = c->form->renamed[i] == '?' ? c->precision : c->form->renamed[i];
    tare_lower_attr_bytes(c->l, node, "call_target_name", target, size);
}

static bool shape_of(struct tare_shape *out, const struct tare_shlo_type *type) {
    int64_t dims[TARE_MAX_RANK];
    for (size_t d = 0; d < type->rank && type->rank <= TARE_MAX_RANK; d++)
        dims[d] = type->dims[d] < 0 ? -1 : type->dims[d];
    return type->rank <= TARE_MAX_RANK && tare_shape_from_dims(out, (int)type->rank, dims) == TARE_OK;
}

/* The later call's results have the types of the call's. Sets the outputs that are among them. */
static void set_results(const struct call *c, struct tare_node *node) {
    const char *list = c->form->later;
    char name[NAME_SIZE];
    int dtypes[MOST_RESULTS];
    struct tare_shape shapes[MOST_RESULTS];
    size_t count = 0;
    for (; next_result(name, &list, c); count++) {
        const size_t i = result_of(c, name);
        if (!shape_of(&shapes[count], tare_lower_out_type(c->l, i)))
            tare_lower_fail(c->l, TARE_UNSUPPORTED, "result %zu has a type without TensorFlow dtype", i);
        dtypes[count] = tare_lower_out_dtype(c->l, i);
        c->l->outputs[i] = (struct tare_edge){ node, (int)count };
    }
    if (!node || c->l->status != TARE_OK) return;
    c->l->status = tare_node_set_type_list(node, "result_dtypes", dtypes, count);
    if (c->l->status == TARE_OK) c->l->status = tare_node_set_shape_list(node, "result_shapes", shapes, count);
    tare_lower_end(c->l, node);
}

/* The later calls of QR decompositions have no info: it is 0, an integer for each vector tau. */
static void set_info(const struct call *c) {
    const size_t info = result_of(c, "info"), tau = result_of(c, "tau");
    if (info == c->l->op->n_results || c->l->outputs[info].node) return;
    const struct tare_edge factors =
        tau < c->l->op->n_results ? c->l->outputs[tau] : tare_lower_in(c->l, c->n_scalars + 1);
    const int64_t axis = -1;
    const struct tare_edge zeros = tare_lower_unary(c->l, "ZerosLike", factors);
    c->l->outputs[info] =
        tare_lower_cast(c->l, tare_lower_binary(c->l, "Sum", zeros, tare_lower_longs(c->l, &axis, 1)), TARE_DT_INT32);
}

/* b, times the factor of trsm, which JAX sets to 1. */
static struct tare_edge last_matrix(const struct call *c) {
    const size_t last = c->n_scalars + c->form->n_matrices - 1;
    const struct tare_edge b = tare_lower_in(c->l, last);
    if (!strstr(c->form->options, "alpha") || tare_lower_is_constant(c->l, c->n_scalars - 1, 1)) return b;
    return tare_lower_binary(c->l, "Mul", tare_lower_in(c->l, c->n_scalars - 1), b);
}

static bool has_arity(const struct call *c) {
    const char *list = c->form->results;
    char name[NAME_SIZE];
    size_t n_results = 0;
    while (next_result(name, &list, c))
        n_results++;
    if (c->l->op->n_operands >= c->n_scalars + c->form->n_matrices && c->l->op->n_results == n_results) return true;
    tare_lower_fail(c->l, TARE_CORRUPT, "%zu operands and %zu results (expected %zu and %zu)", c->l->op->n_operands,
                    c->l->op->n_results, c->n_scalars + c->form->n_matrices, n_results);
    return false;
}

static void lower(struct call *c) {
    struct tare_edge inputs[2];
    const char *list = c->form->options;
    char name[NAME_SIZE];
    while (next_word(name, &list))
        c->n_scalars++;
    if (!has_arity(c)) return;
    inputs[0] = tare_lower_in(c->l, c->n_scalars);
    inputs[c->form->n_matrices - 1] = last_matrix(c);
    struct tare_node *node = tare_lower_begin(c->l, "XlaCustomCallV2", inputs, c->form->n_matrices);
    set_target(c, node);
    tare_lower_attr_bool(c->l, node, "has_side_effect", false);
    set_options(c, node);
    set_results(c, node);
    set_info(c);
}

/* The precision of a target; 0: it is not of the form. */
static char precision_of(const struct form *form, const char *target) {
    const char *mark = strchr(form->target, '?');
    const size_t before = (size_t)(mark - form->target);
    if (strncmp(form->target, target, before) != 0 || !target[before] || !strchr("sdcz", target[before])) return '\0';
    return strcmp(mark + 1, target + before + 1) == 0 ? target[before] : '\0';
}

bool tare_lower_lapack(struct tare_lowering *l, const char *target) {
    for (const struct form *form = forms; form->target; form++) {
        struct call c = { .l = l, .form = form, .precision = precision_of(form, target) };
        if (!c.precision) continue;
        lower(&c);
        return true;
    }
    return false;
}
