/* Notes on models that load, but that the programs that serve them take for something else. */
#include "convert/validation/internal.h"

#include <string.h>

/* ---- functions that the runtime exchanges ---- */

struct search {
    struct tare_map seen;
    bool integers;
};

static tare_status enter(void *arg, const struct tare_node *node, struct tare_graph *callee);

/* Whether a function, or one that it calls, computes with the integers of quantization. */
static tare_status search(struct search *s, const struct tare_graph *graph) {
    if (s->integers || tare_map_get(&s->seen, graph->name)) return TARE_OK;
    if (!tare_map_set(&s->seen, graph->name, s)) return TARE_NO_MEMORY;
    for (size_t i = 0; i < graph->n_nodes && !s->integers; i++) {
        const struct tare_node *node = graph->nodes[i];
        for (size_t k = 0; k < node->n_outputs; k++)
            s->integers |= node->output_dtypes[k] == TARE_DT_INT8 || node->output_dtypes[k] == TARE_DT_QINT8;
        TARE_TRY(tare_node_each_function(node, enter, s));
    }
    return TARE_OK;
}

static tare_status enter(void *arg, const struct tare_node *node, struct tare_graph *callee) {
    (void)node;
    return search(arg, callee);
}

static tare_status check_implementation(struct tare_file_validator *v, const struct tare_graph *graph) {
    const struct tare_attr *name = tare_graph_find_attr(graph, "api_implements");
    struct search s = { .integers = false };
    tare_status status;
    if (!name || name->is_list || name->kind != TARE_ATTR_STRING) return TARE_OK;
    status = search(&s, graph);
    tare_map_free(&s.seen);
    if (status == TARE_OK && s.integers)
        tare_file_note(v, graph->name,
                       "is quantized and implements %s, as the function that it was made from does: where both models "
                       "are loaded, the runtime may call either for the other",
                       name->items[0].s.data);
    return status;
}

/* ---- tags ---- */

static bool has_tag(const Tensorflow__MetaGraphDef__MetaInfoDef *info, const char *tag) {
    for (size_t i = 0; info && i < info->n_tags; i++)
        if (strcmp(info->tags[i], tag) == 0) return true;
    return false;
}

static bool calls_tpu(const struct tare_graph *graph) {
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (strcmp(graph->nodes[i]->op, "TPUPartitionedCall") == 0) return true;
    return false;
}

static void check_tags(struct tare_file_validator *v) {
    const Tensorflow__MetaGraphDef__MetaInfoDef *info = v->source->meta->meta_info_def;
    bool calls = calls_tpu(v->model->main);
    for (size_t f = 0; f < v->model->n_functions && !calls; f++)
        calls = calls_tpu(v->model->functions[f]);
    if (calls && !has_tag(info, "tpu"))
        tare_file_note(v, "tags",
                       "there are TPU functions, but no tag 'tpu': Vertex AI and TensorFlow Serving for TPUs load the "
                       "tags serve and tpu");
}

void tare_validate_serving(struct tare_file_validator *v) {
    tare_status status = TARE_OK;
    check_tags(v);
    for (size_t f = 0; f < v->model->n_functions && status == TARE_OK; f++)
        status = check_implementation(v, v->model->functions[f]);
    tare_file_check(v, "functions", "", status);
}
