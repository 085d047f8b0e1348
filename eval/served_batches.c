/* Records through batchers; see the header. Finds the batchers of a signature and reads the records in groups. */
#include "eval/served_batches_group.h"
#include "base/control.h"
#include "base/alloc.h"
#include "base/strbuf.h"
#include "eval/model_inputs.h"
#include "eval/record_batch.h"
#include "graph/calls.h"
#include "graph/inline.h"

#include <string.h>

/* ---- the batchers of a signature ---- */

/* Outputs through Identity nodes: inlining changes their inputs, and the signature stays valid. */
static tare_status keep_outputs(struct tare_served_batches *b, struct tare_graph_model *model,
                                const struct tare_signature *signature) {
    b->signature = *signature;
    b->signature.outputs = TARE_NEW_ARRAY(&b->arena, struct tare_binding, signature->n_outputs + 1);
    if (!b->signature.outputs) return TARE_NO_MEMORY;
    for (size_t i = 0; i < signature->n_outputs; i++) {
        struct tare_node *node;
        b->signature.outputs[i] = signature->outputs[i];
        if (!signature->outputs[i].edge.node) continue;
        node = tare_graph_add(model->main, "Identity", "served_output");
        if (!node) return TARE_NO_MEMORY;
        TARE_TRY(tare_node_set_type(node, "T", tare_edge_dtype(signature->outputs[i].edge)));
        TARE_TRY(tare_node_add_input(node, signature->outputs[i].edge));
        TARE_TRY(tare_node_resolve(node));
        b->signature.outputs[i].edge = (struct tare_edge){ node, 0 };
    }
    return TARE_OK;
}

static tare_status read_batcher(struct tare_batcher *out, struct tare_node *node) {
    const struct tare_attr *types = tare_node_list(node, "Tin");
    const int64_t most = tare_node_int(node, "max_batch_size", 0);
    *out = (struct tare_batcher){ .node = node,
                                  .function = tare_node_function(node, "f"),
                                  .n_in = types ? types->count : 0,
                                  .max_request = most,
                                  .max_batch = most,
                                  .max_enqueued = tare_node_int(node, "max_enqueued_batches", 10),
                                  .splits = tare_node_bool(node, "enable_large_batch_splitting", false),
                                  .allowed = tare_node_list(node, "allowed_batch_sizes") };
    if (!out->function)
        return TARE_FAIL(TARE_NOT_FOUND, "%s: attribute f does not name a function of the model", node->name);
    if (!out->n_in || out->n_in > node->n_inputs || most < 1)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: %zu inputs to batch up to %lld rows (expected at least 1)",
                         node->name, out->n_in, (long long)most);
    if (out->splits && out->allowed && out->allowed->count)
        out->max_batch = out->allowed->items[out->allowed->count - 1].i;
    if (out->max_batch < 1 || out->max_batch > most)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "%s: the last of allowed_batch_sizes is %lld (expected 1 to %lld)",
                         node->name, (long long)out->max_batch, (long long)most);
    return TARE_OK;
}

/* Marks the nodes of the main graph that the outputs need. Reports a batcher that requests reach only conditionally. */
static tare_status mark_needed(bool **out, struct tare_served_batches *b, struct tare_node *const *order,
                               size_t count) {
    struct tare_call_site site;
    bool *needed = TARE_NEW_ARRAY(&b->arena, bool, count + 1);
    *out = needed;
    if (!needed) return TARE_NO_MEMORY;
    for (size_t i = 0; i < b->signature.n_outputs; i++)
        if (b->signature.outputs[i].edge.node) needed[b->signature.outputs[i].edge.node->position] = true;
    for (size_t i = count; i-- > 0;) {
        const struct tare_node *node = order[i];
        if (!node || !needed[node->position]) continue;
        for (size_t k = 0; k < node->n_inputs; k++)
            needed[node->inputs[k].node->position] = true;
        for (size_t k = 0; k < node->n_controls; k++)
            needed[node->controls[k]->position] = true;
        TARE_TRY(tare_call_site(&site, &b->arena, node));
        for (size_t f = 0; f < site.n_callees; f++)
            for (size_t k = 0; k < site.callees[f]->n_nodes; k++)
                if (tare_node_is(site.callees[f]->nodes[k], "BatchFunction"))
                    return TARE_FAIL(TARE_UNSUPPORTED,
                                     "batcher %s is called by %s (%s): only batchers that every request reaches can be "
                                     "joined",
                                     site.callees[f]->nodes[k]->name, node->name, node->op);
    }
    return TARE_OK;
}

static tare_status find_batchers(struct tare_served_batches *b, const struct tare_graph *main) {
    struct tare_node **order;
    bool *needed;
    TARE_TRY(tare_graph_order(&order, &b->arena, main));
    TARE_TRY(mark_needed(&needed, b, order, main->n_nodes));
    b->batchers = TARE_NEW_ARRAY(&b->arena, struct tare_batcher, main->n_nodes + 1);
    b->reports = TARE_NEW_ARRAY(&b->arena, struct tare_served_batcher, main->n_nodes + 1);
    if (!b->batchers || !b->reports) return TARE_NO_MEMORY;
    for (size_t i = 0; i < main->n_nodes; i++) {
        if (!order[i] || !needed[order[i]->position] || !tare_node_is(order[i], "BatchFunction")) continue;
        TARE_TRY(read_batcher(&b->batchers[b->n_batchers], order[i]));
        b->reports[b->n_batchers].name = order[i]->name;
        b->n_between += order[i]->n_outputs;
        b->n_batchers++;
    }
    return b->n_batchers
               ? TARE_OK
               : TARE_FAIL(TARE_UNSUPPORTED, "%s reaches no BatchFunction (convert the model with batch_options)",
                           b->signature.key);
}

static tare_status check_state(const struct tare_graph_model *model, const struct tare_signature *signature) {
    struct tare_strbuf found = { 0 };
    bool stateful;
    tare_status status = tare_session_state_ops(&stateful, model, signature, &found);
    if (status == TARE_OK && stateful) {
        const char *text = tare_strbuf_text(&found), *end = strchr(text, '\n');
        status = TARE_FAIL(TARE_UNSUPPORTED, "batches of %s cannot be simulated, because it is stateful (%.*s)",
                           signature->key, end ? (int)(end - text) : (int)strlen(text), text);
    }
    tare_strbuf_free(&found);
    return status;
}

tare_status tare_served_batches_new(struct tare_served_batches **out, struct tare_graph_model *model,
                                    const struct tare_signature *signature) {
    struct tare_served_batches *b = tare_calloc(1, sizeof *b);
    tare_status status;
    *out = NULL;
    if (!b) return TARE_NO_MEMORY;
    TARE_CHECK(check_state(model, signature));
    TARE_CHECK(keep_outputs(b, model, signature));
    TARE_CHECK(tare_model_inline_calls(model));
    TARE_CHECK(find_batchers(b, model->main));
    *out = b;
    return TARE_OK;
done:
    tare_served_batches_free(b);
    return status;
}

void tare_served_batches_free(struct tare_served_batches *b) {
    if (!b) return;
    for (size_t i = 0; i < b->n_batchers; i++)
        tare_free(b->batchers[i].sizes);
    tare_arena_free(&b->arena);
    tare_free(b);
}

const struct tare_signature *tare_served_batches_signature(const struct tare_served_batches *b) {
    return &b->signature;
}

const struct tare_served_batcher *tare_served_batches_list(size_t *count, const struct tare_served_batches *b) {
    *count = b->n_batchers;
    for (size_t i = 0; i < b->n_batchers; i++) {
        b->reports[i].sizes = b->batchers[i].sizes;
        b->reports[i].n_sizes = b->batchers[i].n_sizes;
    }
    return b->reports;
}

/* ---- records ---- */

/* Rows that the smallest queue of the batchers holds. */
static int64_t queue_rows(const struct tare_served_batches *b) {
    enum { MOST = 4096 }; /* bounds the memory of one group */
    int64_t rows = MOST;
    for (size_t i = 0; i < b->n_batchers; i++) {
        const int64_t batches = b->batchers[i].max_enqueued > 0 ? b->batchers[i].max_enqueued : 1;
        if (batches < rows / b->batchers[i].max_batch) rows = batches * b->batchers[i].max_batch;
    }
    return rows;
}

static int64_t rows_of(const struct tare_bound_record *record) {
    const struct tare_tensor *first = &record->values[0];
    return first->dtype && first->shape.rank > 0 ? first->shape.dims[0] : 1;
}

struct reader {
    struct tare_source *source;
    const struct tare_signature_edges *edges;
    const char *const *files;
    const struct tare_runner_options *options;
    struct tare_bound_record *records;
    size_t count, capacity;
    bool end;
};

static tare_status read_group(struct reader *reader, int64_t most_rows) {
    int64_t rows = 0;
    while (!reader->end && rows < most_rows) {
        struct tare_sample sample;
        struct tare_record where;
        TARE_TRY(tare_flag_check(reader->options->interrupted));
        TARE_TRY(tare_source_next(&sample, &where, &reader->end, reader->source, NULL, NULL));
        if (reader->end) break;
        if (!TARE_GROW(reader->records, reader->count, reader->capacity)) {
            tare_sample_reset(&sample);
            return TARE_NO_MEMORY;
        }
        TARE_TRY(tare_records_locate(tare_record_take(&reader->records[reader->count], reader->edges, &sample, &where),
                                     reader->files, &where, &where));
        rows += rows_of(&reader->records[reader->count++]);
    }
    return TARE_OK;
}

static void drop_group(struct reader *reader) {
    for (size_t r = 0; r < reader->count; r++)
        tare_record_reset(&reader->records[r], reader->edges);
    reader->count = 0;
}

static tare_status run_all(struct tare_served_batches *b, struct tare_session *session, struct reader *reader,
                           tare_record_fn fn, void *arg) {
    while (!reader->end) {
        TARE_TRY(read_group(reader, queue_rows(b)));
        if (!reader->count) break;
        TARE_TRY(tare_records_locate(
            tare_served_batches_run_group(b, session, reader->edges, reader->records, reader->count), reader->files,
            &reader->records[0].where, &reader->records[reader->count - 1].where));
        for (size_t r = 0; r < reader->count; r++)
            TARE_TRY(fn(arg, &reader->records[r].sample, &reader->records[r].where, reader->records[r].outputs));
        drop_group(reader);
    }
    return TARE_OK;
}

tare_status tare_served_batches_run(struct tare_served_batches *b, struct tare_session *session,
                                    const struct tare_runner_options *options, tare_record_fn fn, void *arg) {
    struct tare_source_options source = { .limit = options->limit, .spec = options->spec };
    struct tare_signature_edges edges = { 0 };
    struct reader reader = { .edges = &edges, .options = options };
    size_t n_files;
    tare_status status;
    TARE_CHECK(tare_signature_edges_of(&edges, &b->signature));
    TARE_CHECK(tare_rows_at_a_time(&source.rows, &b->signature, options->paths, options->n_paths, options->spec));
    TARE_CHECK(tare_source_new(&reader.source, options->paths, options->n_paths, &source));
    reader.files = tare_source_files(reader.source, &n_files);
    status = run_all(b, session, &reader, fn, arg);
done:
    drop_group(&reader);
    tare_free(reader.records);
    tare_source_free(reader.source);
    tare_signature_edges_free(&edges);
    return status;
}
