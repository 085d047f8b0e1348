/* Counting products of layer inputs. */
#include "calib/hessian.h"

#include "base/alloc.h"
#include "interpreter/kernels/lapack.h"
#include "interpreter/kernels/permute.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static const double STEPS = 8192;         /* of the greatest magnitude */
static const int64_t MOST_ROWS = 1 << 27; /* STEPS² * MOST_ROWS = 2^53 */
enum { CHUNK = 128, LANES = 8 };          /* rows that are added at a time */

struct entry {
    struct tare_hessian hessian;
    const struct tare_node *from; /* of the model that is run */
    pthread_mutex_t lock;         /* of the sums */
};

struct tare_hessians {
    struct entry **entries;
    size_t count, capacity;
    tare_hessian_update *update;
    _Atomic int shares; /* further owners */
};

/* ---- the set ---- */

struct tare_hessians *tare_hessians_new(void) {
    struct tare_hessians *set = tare_calloc(1, sizeof *set);
    if (!set) return NULL;
    set->update = tare_hessian_update_blas;
    if (tare_lapack_open() != TARE_OK) { /* only slower */
        tare_error_clear();
        set->update = tare_hessian_update_plain;
    }
    return set;
}

static void free_entry(struct entry *entry) {
    if (!entry) return;
    tare_free(entry->hessian.function);
    tare_free(entry->hessian.node);
    tare_free(entry->hessian.sums);
    tare_free(entry->hessian.row_sums);
    pthread_mutex_destroy(&entry->lock);
    tare_free(entry);
}

void tare_hessians_free(struct tare_hessians *set) {
    if (!set || atomic_fetch_sub(&set->shares, 1) > 0) return;
    for (size_t i = 0; i < set->count; i++)
        free_entry(set->entries[i]);
    tare_free(set->entries);
    tare_free(set);
}

struct tare_hessians *tare_hessians_share(struct tare_hessians *set) {
    if (set) atomic_fetch_add(&set->shares, 1);
    return set;
}

static int64_t groups_of(const struct tare_hessian_form *form) {
    return form->groups > 1 ? form->groups : 1;
}

int64_t tare_hessian_size(const struct tare_hessian_form *form) {
    int64_t size = form->channels / groups_of(form);
    for (int i = 0; i < form->spatial; i++)
        size *= form->window[i].size;
    return size;
}

static int64_t stride_of(int64_t size) {
    return (size + LANES - 1) / LANES * LANES;
}

size_t tare_hessian_bytes(const struct tare_hessian_form *form) {
    const int64_t size = tare_hessian_size(form);
    return 8 * (size_t)groups_of(form) * (size_t)stride_of(size) * (size_t)(size + 1);
}

static bool is_form(const struct tare_hessian_form *a, const struct tare_hessian_form *b) {
    if (a->spatial != b->spatial || a->channels != b->channels || groups_of(a) != groups_of(b)) return false;
    if (a->rank != b->rank || memcmp(a->order, b->order, sizeof a->order) != 0) return false;
    for (int i = 0; i < a->spatial; i++)
        if (memcmp(&a->window[i], &b->window[i], sizeof a->window[i]) != 0) return false;
    return true;
}

static struct entry *find(const struct tare_hessians *set, struct tare_edge edge, int64_t number,
                          const struct tare_hessian_form *form) {
    for (size_t i = 0; set && i < set->count; i++) {
        struct entry *entry = set->entries[i];
        if (entry->hessian.entry == number && entry->hessian.output == edge.index &&
            strcmp(entry->hessian.node, edge.node->name) == 0 &&
            strcmp(entry->hessian.function, edge.node->graph->name) == 0 && is_form(&entry->hessian.form, form))
            return entry;
    }
    return NULL;
}

/* The power of two that yields at most STEPS steps. */
static double step_of(double reach) {
    int exponent;
    if (!(reach > 0) || !isfinite(reach)) return 1;
    frexp(reach / STEPS, &exponent);
    return ldexp(1, exponent);
}

static tare_status fill(struct entry *entry, struct tare_edge edge, int64_t number,
                        const struct tare_hessian_form *form, double reach) {
    struct tare_hessian *h = &entry->hessian;
    *h = (struct tare_hessian){ .function = tare_strdup(edge.node->graph->name),
                                .node = tare_strdup(edge.node->name),
                                .output = edge.index,
                                .entry = number,
                                .form = *form,
                                .size = tare_hessian_size(form),
                                .groups = groups_of(form),
                                .step = step_of(reach) };
    h->stride = stride_of(h->size);
    h->sums = tare_calloc((size_t)h->groups * (size_t)h->size * (size_t)h->stride, sizeof *h->sums);
    h->row_sums = tare_calloc((size_t)h->groups * (size_t)h->stride, sizeof *h->row_sums);
    return h->function && h->node && h->sums && h->row_sums ? TARE_OK : TARE_NO_MEMORY;
}

tare_status tare_hessians_add(struct tare_hessians *set, struct tare_edge edge, int64_t number,
                              const struct tare_hessian_form *form, double reach) {
    struct entry *entry = find(set, edge, number, form);
    if (entry) {
        entry->from = edge.node;
        return TARE_OK;
    }
    if (!TARE_GROW(set->entries, set->count, set->capacity)) return TARE_NO_MEMORY;
    entry = tare_calloc(1, sizeof *entry);
    if (!entry) return TARE_NO_MEMORY;
    entry->from = edge.node;
    pthread_mutex_init(&entry->lock, NULL);
    tare_status status = fill(entry, edge, number, form, reach);
    if (status == TARE_OK)
        set->entries[set->count++] = entry;
    else
        free_entry(entry);
    return status;
}

size_t tare_hessians_count(const struct tare_hessians *set) {
    return !set ? 0 : set->count;
}

size_t tare_hessians_total_bytes(const struct tare_hessians *set) {
    size_t bytes = 0;
    for (size_t i = 0; i < tare_hessians_count(set); i++)
        bytes += tare_hessian_bytes(&set->entries[i]->hessian.form);
    return bytes;
}

const struct tare_hessian *tare_hessians_find(const struct tare_hessians *set, struct tare_edge edge, int64_t number,
                                              const struct tare_hessian_form *form) {
    const struct entry *entry = find(set, edge, number, form);
    return entry && entry->hessian.rows > 0 ? &entry->hessian : NULL;
}

bool tare_hessians_want(const struct tare_hessians *set, const struct tare_node *node, size_t output) {
    for (size_t i = 0; i < set->count; i++)
        if (set->entries[i]->from == node && set->entries[i]->hessian.output == (int)output) return true;
    return false;
}

/* ---- numbers as steps ---- */

static double to_steps(double value, double inverse) {
    static const double MAGIC = 6755399441055744.0; /* 1.5 * 2^52: adding and subtracting it rounds half to even */
    const double scaled = value * inverse;
    if (!(fabs(scaled) < STEPS)) return isnan(scaled) ? 0 : scaled > 0 ? STEPS : -STEPS;
    return (scaled + MAGIC) - MAGIC;
}

static double *steps_of(const struct tare_tensor *value, double step) {
    double *out = tare_malloc(((size_t)value->elements + 1) * sizeof *out);
    const double inverse = 1 / step;
    if (!out) return NULL;
    if (value->dtype == TARE_DT_FLOAT && !value->splat) {
        const float *from = TARE_CONST_DATA(float, value);
        for (int64_t i = 0; i < value->elements; i++)
            out[i] = to_steps((double)from[i], inverse);
    } else {
        for (int64_t i = 0; i < value->elements; i++)
            out[i] = to_steps(tare_tensor_get_f64(value, i), inverse);
    }
    return out;
}

/* ---- rows ---- */

/* Rows are gathered into a chunk and added when it is full. */
struct gathering {
    struct entry *entry;
    tare_hessian_update *update;
    double *chunk; /* by group: CHUNK rows of `stride` */
    double *whole; /* a row of all groups, channels last */
    int64_t filled;
};

static void flush(struct gathering *g) {
    struct tare_hessian *h = &g->entry->hessian;
    pthread_mutex_lock(&g->entry->lock);
    for (int64_t group = 0; group < h->groups; group++) {
        const double *chunk = &g->chunk[group * CHUNK * h->stride];
        double *row_sums = &h->row_sums[group * h->stride];
        g->update(&h->sums[group * h->size * h->stride], h->size, h->stride, chunk, g->filled);
        for (int64_t r = 0; r < g->filled; r++)
            for (int64_t i = 0; i < h->size; i++)
                row_sums[i] += chunk[r * h->stride + i];
    }
    h->rows += g->filled;
    pthread_mutex_unlock(&g->entry->lock);
    g->filled = 0;
}

static double *next_row(struct gathering *g) {
    if (g->filled == CHUNK) flush(g);
    return &g->chunk[g->filled++ * g->entry->hessian.stride];
}

/* The channels of each group, tap by tap, into the group's next row. */
static void share_out(struct gathering *g) {
    const struct tare_hessian *h = &g->entry->hessian;
    const int64_t channels = h->form.channels, each = channels / h->groups;
    double *row = next_row(g);
    for (int64_t group = 0; group < h->groups; group++, row += CHUNK * h->stride)
        for (int64_t tap = 0; tap < h->size / each; tap++)
            memcpy(&row[tap * each], &g->whole[tap * channels + group * each], (size_t)each * sizeof *row);
}

/* A convolution's input: sizes of its spatial axes, before and after the window is applied. */
struct field {
    const struct tare_hessian_form *form;
    int64_t in[TARE_HESSIAN_WINDOW], out[TARE_HESSIAN_WINDOW];
    int64_t images, positions; /* of one image */
};

static int64_t base_of(const struct tare_hessian_window *window) {
    return window->base > 1 ? window->base : 1;
}

static tare_status measure_field(struct field *field, const struct tare_hessian_form *form,
                                 const struct tare_shape *shape) {
    *field = (struct field){ .form = form, .images = shape->rank > 0 ? shape->dims[0] : 0, .positions = 1 };
    if (shape->rank != form->spatial + 2 || shape->dims[shape->rank - 1] != form->channels)
        return TARE_FAIL(TARE_SHAPE, "an activation of rank %d does not fit the window", shape->rank);
    for (int i = 0; i < TARE_HESSIAN_WINDOW; i++)
        field->in[i] = field->out[i] = 1;
    for (int i = 0; i < form->spatial; i++) {
        const struct tare_hessian_window *w = &form->window[i];
        const int64_t size = shape->dims[i + 1] > 0 ? (shape->dims[i + 1] - 1) * base_of(w) + 1 : 0;
        const int64_t space = size + w->low + w->high - ((w->size - 1) * w->dilation + 1);
        field->in[i] = shape->dims[i + 1];
        field->out[i] = space < 0 ? 0 : space / w->stride + 1;
        field->positions *= field->out[i];
    }
    return TARE_OK;
}

/* The elements of the window at a position; zeros beyond the border. */
static void gather_window(double *row, const struct field *field, const double *image, int64_t position) {
    const struct tare_hessian_form *form = field->form;
    int64_t at[TARE_HESSIAN_WINDOW] = { 0 }, taps = 1;
    for (int i = form->spatial - 1; i >= 0; i--) {
        at[i] = position % field->out[i] * form->window[i].stride - form->window[i].low;
        position /= field->out[i];
        taps *= form->window[i].size;
    }
    for (int64_t tap = 0; tap < taps; tap++, row += form->channels) {
        int64_t rest = tap, pixel = 0, step = 1;
        bool inside = true;
        for (int i = form->spatial - 1; i >= 0; i--) {
            const int64_t base = base_of(&form->window[i]);
            const int64_t x = at[i] + rest % form->window[i].size * form->window[i].dilation;
            rest /= form->window[i].size;
            inside = inside && x >= 0 && x % base == 0 && x / base < field->in[i];
            pixel += x / base * step;
            step *= field->in[i];
        }
        if (inside)
            memcpy(row, &image[pixel * form->channels], (size_t)form->channels * sizeof *row);
        else
            memset(row, 0, (size_t)form->channels * sizeof *row);
    }
}

static tare_status gather_windows(struct gathering *g, const double *steps, const struct tare_shape *shape) {
    struct field field;
    int64_t pixels = 1;
    TARE_TRY(measure_field(&field, &g->entry->hessian.form, shape));
    for (int i = 0; i < field.form->spatial; i++)
        pixels *= field.in[i];
    for (int64_t n = 0; n < field.images; n++)
        for (int64_t p = 0; p < field.positions; p++) {
            const double *image = &steps[n * pixels * field.form->channels];
            gather_window(g->entry->hessian.groups > 1 ? g->whole : next_row(g), &field, image, p);
            if (g->entry->hessian.groups > 1) share_out(g);
        }
    return TARE_OK;
}

static tare_status gather_rows(struct gathering *g, const double *steps, int64_t elements) {
    const int64_t size = g->entry->hessian.size;
    if (elements % size)
        return TARE_FAIL(TARE_SHAPE, "an activation of %lld numbers is not of rows of %lld", (long long)elements,
                         (long long)size);
    for (int64_t i = 0; i < elements; i += size)
        memcpy(next_row(g), &steps[i], (size_t)size * sizeof *steps);
    return TARE_OK;
}

/* Brings the numbers of an activation into the order of axes of the form; *shape becomes theirs. */
static tare_status reorder(double **steps, struct tare_shape *shape, const struct tare_hessian_form *form) {
    const struct tare_shape from = *shape;
    int64_t count = 1;
    double *moved;
    if (!form->rank || !*steps) return TARE_OK;
    if (from.rank != form->rank)
        return TARE_FAIL(TARE_SHAPE, "an activation of rank %d (expected %d)", from.rank, form->rank);
    for (int i = 0; i < from.rank; i++) {
        shape->dims[i] = from.dims[form->order[i]];
        count *= from.dims[i];
    }
    moved = tare_calloc((size_t)count + 1, sizeof *moved);
    if (!moved) return TARE_NO_MEMORY;
    tare_permute(moved, *steps, sizeof *moved, from.rank, from.dims, form->order);
    tare_free(*steps);
    *steps = moved;
    return TARE_OK;
}

static bool has_too_many_rows(struct entry *entry) {
    bool many;
    pthread_mutex_lock(&entry->lock);
    many = entry->hessian.rows > MOST_ROWS;
    pthread_mutex_unlock(&entry->lock);
    return many;
}

static tare_status count(struct tare_hessians *set, struct entry *entry, const struct tare_tensor *value) {
    const struct tare_hessian *h = &entry->hessian;
    struct gathering g = { .entry = entry, .update = set->update };
    struct tare_shape shape = value->shape;
    double *steps = steps_of(value, h->step);
    tare_status status = reorder(&steps, &shape, &h->form);
    g.chunk = tare_calloc((size_t)h->groups * CHUNK * (size_t)h->stride, sizeof *g.chunk);
    g.whole = tare_calloc((size_t)(h->groups * h->size), sizeof *g.whole);
    if (status == TARE_OK && !(steps && g.chunk && g.whole)) status = TARE_NO_MEMORY;
    if (status == TARE_OK)
        status = h->form.spatial ? gather_windows(&g, steps, &shape) : gather_rows(&g, steps, value->elements);
    if (status == TARE_OK) flush(&g);
    tare_free(steps);
    tare_free(g.chunk);
    tare_free(g.whole);
    TARE_TRY(status);
    if (has_too_many_rows(entry))
        return TARE_FAIL(TARE_UNSUPPORTED, "more than 2^27 rows for a Hessian: give fewer samples");
    return TARE_OK;
}

tare_status tare_hessians_observe(struct tare_hessians *set, const struct tare_node *node, size_t output, int64_t entry,
                                  const struct tare_tensor *value) {
    for (size_t i = 0; i < set->count; i++) {
        const struct tare_hessian *h = &set->entries[i]->hessian;
        if (set->entries[i]->from != node || h->output != (int)output || (h->entry >= 0 && h->entry != entry)) continue;
        TARE_TRY(tare_error_prefix(count(set, set->entries[i], value), "%s '%s'", node->op, node->name));
    }
    return TARE_OK;
}
