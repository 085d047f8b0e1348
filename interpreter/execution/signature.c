/* Running a signature: its inputs and outputs are edges of the main graph with a dtype and a shape that must fit. */
#include "base/alloc.h"
#include "base/arena.h"
#include "interpreter/execution/state.h"
#include "interpreter/session.h"
#include "interpreter/signature_edges.h"
#include "interpreter/signature_target.h"

#include <string.h>

/* A signature may feed tensors that the graph computes; such an input is optional. */
static bool may_be_absent(struct tare_edge edge) {
    return edge.node && strcmp(edge.node->op, "Placeholder") != 0 && strcmp(edge.node->op, "PlaceholderV2") != 0;
}

static tare_status check_binding(const struct tare_binding *binding, const struct tare_tensor *value) {
    char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
    if (!value->dtype) return TARE_FAIL(TARE_INVALID_ARGUMENT, "input '%s' is missing", binding->key);
    if (value->dtype != tare_dtype_base(binding->dtype))
        return TARE_FAIL(TARE_TYPE, "input '%s' is %s (expected %s)", binding->key, tare_dtype_name(value->dtype),
                         tare_dtype_name(binding->dtype));
    if (!tare_shape_compatible(&value->shape, &binding->shape))
        return TARE_FAIL(TARE_SHAPE, "input '%s' has shape %s (expected %s)", binding->key,
                         tare_shape_text(got, &value->shape), tare_shape_text(expected, &binding->shape));
    return TARE_OK;
}

struct feed_list {
    struct tare_edge *edges;
    struct tare_tensor *values; /* borrowed */
    size_t count;
};

static void add_feed(struct feed_list *list, struct tare_edge edge, const struct tare_tensor *value) {
    if (!edge.node || !value->dtype) return;
    list->edges[list->count] = edge;
    list->values[list->count++] = *value;
}

static tare_status feed_bindings(struct feed_list *list, const struct tare_signature *signature,
                                 const struct tare_tensor *inputs) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *binding = &signature->inputs[i];
        if (inputs->dtype || !may_be_absent(binding->edge)) {
            TARE_TRY(check_binding(binding, inputs));
            add_feed(list, binding->edge, inputs);
        }
        inputs++;
    }
    return TARE_OK;
}

static tare_status check_results(const struct tare_signature *signature, const struct tare_tensor *outputs) {
    for (size_t i = 0; i < signature->n_outputs; i++) {
        const struct tare_binding *binding = &signature->outputs[i];
        char got[TARE_SHAPE_TEXT_SIZE], expected[TARE_SHAPE_TEXT_SIZE];
        if (binding->dtype && outputs->dtype != tare_dtype_base(binding->dtype))
            return TARE_FAIL(TARE_TYPE, "output '%s' is %s (expected %s)", binding->key,
                             tare_dtype_name(outputs->dtype), tare_dtype_name(binding->dtype));
        if (!tare_shape_compatible(&outputs->shape, &binding->shape))
            return TARE_FAIL(TARE_SHAPE, "output '%s' has shape %s (expected %s)", binding->key,
                             tare_shape_text(got, &outputs->shape), tare_shape_text(expected, &binding->shape));
        outputs++;
    }
    return TARE_OK;
}

struct tare_node *tare_signature_target(const struct tare_graph_model *model, const struct tare_signature *signature) {
    for (size_t i = model->main->n_nodes; i-- > 0 && !signature->n_outputs;) {
        struct tare_node *node = model->main->nodes[i];
        if (!node->dead && strcmp(node->op, signature->key) == 0) return node;
    }
    return NULL;
}

struct tare_node *tare_session_target(const struct tare_session *session, const struct tare_signature *signature) {
    return tare_signature_target(session->model, signature);
}

tare_status tare_signature_edges_of(struct tare_signature_edges *out, const struct tare_signature *signature) {
    const size_t n_feeds = signature->n_inputs, n_outputs = signature->n_outputs;
    *out = (struct tare_signature_edges){ .signature = signature, .n_feeds = n_feeds, .n_outputs = n_outputs };
    out->feeds = tare_calloc(n_feeds + n_outputs + 1, sizeof *out->feeds);
    if (!out->feeds) return TARE_NO_MEMORY;
    out->fetches = out->feeds + n_feeds;
    for (size_t i = 0; i < n_feeds; i++) {
        out->feeds[i] = signature->inputs[i].edge;
        if (!out->feeds[i].node) return TARE_FAIL(TARE_UNSUPPORTED, "input %s cannot be fed", signature->inputs[i].key);
    }
    for (size_t i = 0; i < n_outputs; i++) {
        out->fetches[i] = signature->outputs[i].edge;
        if (!out->fetches[i].node)
            return TARE_FAIL(TARE_UNSUPPORTED, "output %s cannot be fetched", signature->outputs[i].key);
    }
    return TARE_OK;
}

void tare_signature_edges_free(struct tare_signature_edges *edges) {
    tare_free(edges->feeds);
    *edges = (struct tare_signature_edges){ 0 };
}

tare_status tare_session_run_signature(struct tare_session *session, const struct tare_signature *signature,
                                       const struct tare_tensor *inputs, struct tare_tensor *outputs) {
    struct tare_arena scratch = { 0 };
    struct feed_list list = { TARE_NEW_ARRAY(&scratch, struct tare_edge, signature->n_inputs + 1),
                              TARE_NEW_ARRAY(&scratch, struct tare_tensor, signature->n_inputs + 1), 0 };
    struct tare_edge *fetches = TARE_NEW_ARRAY(&scratch, struct tare_edge, signature->n_outputs + 1);
    const size_t n_fetches = signature->n_outputs;
    struct tare_node *target = tare_session_target(session, signature);
    tare_status status = list.edges && list.values && fetches ? TARE_OK : TARE_NO_MEMORY;
    if (status != TARE_OK) goto done;
    for (size_t i = 0; i < n_fetches; i++) {
        fetches[i] = signature->outputs[i].edge;
        outputs[i] = (struct tare_tensor){ 0 };
    }
    TARE_CHECK(feed_bindings(&list, signature, inputs));
    TARE_CHECK(tare_session_run(session, list.edges, list.values, list.count, fetches, outputs, n_fetches, &target,
                                target != NULL));
    status = check_results(signature, outputs);
    for (size_t i = 0; i < n_fetches && status != TARE_OK; i++)
        tare_tensor_reset(&outputs[i]);
done:
    tare_arena_free(&scratch);
    return tare_error_prefix(status, "signature '%s'", signature->key);
}
