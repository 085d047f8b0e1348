/* The profile of a run and its summary. */
#include "cli/run_report.h"
#include "cli/output/visible_output.h"
#include "eval/report/json_text.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_SHOWN = 25 };

/* ---- profile ---- */

static int by_node(const void *a, const void *b) {
    const struct tare_profile_row *x = a, *y = b;
    const uintptr_t p = (uintptr_t)x->node, q = (uintptr_t)y->node;
    return (p > q) - (p < q);
}

static int by_op(const void *a, const void *b) {
    const struct tare_profile_row *x = a, *y = b;
    return strcmp(x->node->op, y->node->op);
}

/* Rows with equal times are ordered by name, so that the table is deterministic except for the times. */
static int by_time(const void *a, const void *b) {
    const struct tare_profile_row *x = a, *y = b;
    if (x->nanoseconds != y->nanoseconds) return x->nanoseconds < y->nanoseconds ? 1 : -1;
    return strcmp(x->node->name, y->node->name);
}

/* Sorts, merges neighbours that compare equal, and returns the number of rows left. */
static size_t add_up(struct tare_profile_row *rows, size_t count, int (*compare)(const void *, const void *)) {
    size_t kept = 0;
    if (!count) return 0;
    qsort(rows, count, sizeof *rows, compare);
    for (size_t i = 1; i < count; i++) {
        if (compare(&rows[kept], &rows[i]) == 0) {
            rows[kept].calls += rows[i].calls;
            rows[kept].nanoseconds += rows[i].nanoseconds;
        } else {
            rows[++kept] = rows[i];
        }
    }
    return kept + 1;
}

tare_status tare_run_profile_make(struct tare_run_profile *out, struct tare_arena *arena,
                                  struct tare_session *const *sessions, int count) {
    memset(out, 0, sizeof *out);
    for (int i = 0; i < count; i++) {
        struct tare_profile_row *rows, *grown;
        size_t n;
        TARE_TRY(tare_session_profile(&rows, &n, arena, sessions[i]));
        grown = tare_arena_extend(arena, out->nodes, out->n_nodes, n, sizeof *grown);
        if (!grown) return TARE_NO_MEMORY;
        if (n) memcpy(grown + out->n_nodes, rows, n * sizeof *rows);
        out->nodes = grown;
        out->n_nodes += n;
    }
    out->n_nodes = add_up(out->nodes, out->n_nodes, by_node);
    out->ops = TARE_NEW_ARRAY(arena, struct tare_profile_row, out->n_nodes + 1);
    if (!out->ops) return TARE_NO_MEMORY;
    if (out->n_nodes) memcpy(out->ops, out->nodes, out->n_nodes * sizeof *out->ops);
    out->n_ops = add_up(out->ops, out->n_nodes, by_op);
    for (size_t i = 0; i < out->n_nodes; i++)
        out->nanoseconds += out->nodes[i].nanoseconds;
    if (out->n_nodes) qsort(out->nodes, out->n_nodes, sizeof *out->nodes, by_time);
    if (out->n_ops) qsort(out->ops, out->n_ops, sizeof *out->ops, by_time);
    return TARE_OK;
}

static void print_row(struct tare_arena *arena, const struct tare_profile_row *row, int64_t total) {
    fprintf(stderr, "%10.3f %6.2f %8lld  %-28s", (double)row->nanoseconds / 1e6,
            total ? 100.0 * (double)row->nanoseconds / (double)total : 0, (long long)row->calls,
            tare_visible_name(arena, row->node->op));
}

void tare_run_profile_print(const struct tare_run_profile *profile) {
    struct tare_arena arena = { 0 };
    fprintf(stderr, "%10s %6s %8s  %s\n", "ms", "%", "calls", "op kind");
    for (size_t i = 0; i < profile->n_ops; i++) {
        print_row(&arena, &profile->ops[i], profile->nanoseconds);
        fputc('\n', stderr);
    }
    fprintf(stderr, "%10s %6s %8s  %-28s %s\n", "ms", "%", "calls", "op", "node");
    for (size_t i = 0; i < profile->n_nodes && i < NODES_SHOWN; i++) {
        const struct tare_node *node = profile->nodes[i].node;
        print_row(&arena, &profile->nodes[i], profile->nanoseconds);
        fprintf(stderr, " %s%s%s\n", tare_visible_name(&arena, node->graph->name), *node->graph->name ? "/" : "",
                tare_visible_name(&arena, node->name));
    }
    tare_arena_free(&arena);
    if (profile->n_nodes > NODES_SHOWN)
        fprintf(stderr, "and %zu more nodes (--json lists them all)\n", profile->n_nodes - NODES_SHOWN);
}

/* ---- batching ---- */

static double padding_percent(const struct tare_served_batcher *batcher) {
    const int64_t computed = batcher->rows + batcher->padding;
    return computed ? 100.0 * (double)batcher->padding / (double)computed : 0;
}

void tare_run_batching_print(const struct tare_served_batches *batches) {
    size_t count;
    const struct tare_served_batcher *list = tare_served_batches_list(&count, batches);
    for (size_t i = 0; i < count; i++) {
        const struct tare_served_batcher *b = &list[i];
        fprintf(stderr, "batching: %s: %lld requests with %lld rows ran in %lld batches (", b->name,
                (long long)b->requests, (long long)b->rows, (long long)b->batches);
        for (size_t k = 0; k < b->n_sizes; k++)
            fprintf(stderr, "%s%lld of %lld rows", k ? ", " : "", (long long)b->sizes[k].batches,
                    (long long)b->sizes[k].size);
        fprintf(stderr, "); padding: %lld of %lld rows (%.1f %%); split requests: %lld\n", (long long)b->padding,
                (long long)(b->rows + b->padding), padding_percent(b), (long long)b->split);
    }
}

static json_t *batching_json(const struct tare_served_batches *batches) {
    json_t *list = json_array();
    size_t count;
    const struct tare_served_batcher *batchers = tare_served_batches_list(&count, batches);
    for (size_t i = 0; i < count; i++) {
        const struct tare_served_batcher *b = &batchers[i];
        json_t *entry = json_object(), *sizes = json_array();
        json_object_set_new(entry, "node", tare_json_text(b->name));
        json_object_set_new(entry, "requests", json_integer((json_int_t)b->requests));
        json_object_set_new(entry, "rows", json_integer((json_int_t)b->rows));
        json_object_set_new(entry, "padding_rows", json_integer((json_int_t)b->padding));
        json_object_set_new(entry, "padding_percent", json_real(padding_percent(b)));
        json_object_set_new(entry, "split_requests", json_integer((json_int_t)b->split));
        for (size_t k = 0; k < b->n_sizes; k++)
            json_array_append_new(sizes, json_pack("{s:I,s:I}", "size", (json_int_t)b->sizes[k].size, "batches",
                                                   (json_int_t)b->sizes[k].batches));
        json_object_set_new(entry, "batches", sizes);
        json_array_append_new(list, entry);
    }
    return list;
}

/* ---- summary ---- */

static json_t *shape_json(const struct tare_shape *shape, bool open_first) {
    json_t *dims = json_array();
    if (open_first) json_array_append_new(dims, json_null());
    for (int i = 0; i < shape->rank; i++)
        json_array_append_new(dims, json_integer((json_int_t)shape->dims[i]));
    return dims;
}

/* The shape of one record; null is a first dimension along which records are concatenated. */
static json_t *outputs_json(const struct tare_run_outputs *outputs, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        struct tare_run_output output;
        json_t *entry = json_object();
        tare_run_outputs_describe(&output, outputs, i);
        json_object_set_new(entry, "name", tare_json_text(output.key));
        if (output.dtype) {
            json_object_set_new(entry, "dtype", tare_json_text(tare_dtype_name(output.dtype)));
            json_object_set_new(entry, "shape", shape_json(&output.row, !output.stacked));
        }
        if (output.path) json_object_set_new(entry, "file", tare_json_text(output.path));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *rows_json(const struct tare_profile_row *rows, size_t count, bool nodes) {
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *entry = json_object();
        if (nodes) {
            json_object_set_new(entry, "function", tare_json_text(rows[i].node->graph->name));
            json_object_set_new(entry, "node", tare_json_text(rows[i].node->name));
        }
        json_object_set_new(entry, "op", tare_json_text(rows[i].node->op));
        json_object_set_new(entry, "calls", json_integer((json_int_t)rows[i].calls));
        json_object_set_new(entry, "nanoseconds", json_integer((json_int_t)rows[i].nanoseconds));
        json_array_append_new(list, entry);
    }
    return list;
}

tare_status tare_run_summary_print(const struct tare_run_summary *summary, const struct tare_run_outputs *outputs,
                                   const struct tare_run_profile *profile) {
    const double rate = summary->seconds > 0 ? (double)summary->records / summary->seconds : 0;
    json_t *root = json_object();
    char *text;
    json_object_set_new(root, "model", tare_json_text(summary->model));
    json_object_set_new(root, "signature", tare_json_text(summary->signature));
    json_object_set_new(root, "records", json_integer((json_int_t)summary->records));
    json_object_set_new(root, "threads", json_integer(summary->threads));
    json_object_set_new(root, "batch", json_integer(summary->batch));
    json_object_set_new(root, "stateful", json_boolean(summary->stateful));
    json_object_set_new(root, "seconds", json_real(summary->seconds));
    json_object_set_new(root, "records_per_second", json_real(rate));
    json_object_set_new(root, "outputs", outputs_json(outputs, summary->n_outputs));
    if (summary->batches) json_object_set_new(root, "batching", batching_json(summary->batches));
    if (profile) {
        json_object_set_new(root, "ops", rows_json(profile->ops, profile->n_ops, false));
        json_object_set_new(root, "nodes", rows_json(profile->nodes, profile->n_nodes, true));
    }
    text = tare_json_dump(root, JSON_INDENT(2));
    json_decref(root);
    if (!text) return TARE_FAIL(TARE_NO_MEMORY, "out of memory for JSON");
    puts(text);
    free(text);
    return TARE_OK;
}
