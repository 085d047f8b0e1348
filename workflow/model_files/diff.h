/* Differences of two models, of arrays or of reports, as `tare diff` and libtare print them. */
#ifndef TARE_WORKFLOW_MODEL_FILES_DIFF_H
#define TARE_WORKFLOW_MODEL_FILES_DIFF_H

#include "base/strbuf.h"
#include "graph/model.h"

enum tare_diff_kind {
    TARE_DIFF_MODELS,
    TARE_DIFF_ARRAYS,  /* .npy files, or folders of them */
    TARE_DIFF_REPORTS, /* JSON of a comparison or a batch */
};

/* The forms to make. */
struct tare_diff_request {
    bool text, json, html;
    bool all;          /* the text lists every weight and number */
    size_t text_width; /* characters per line that tables should fit into; 0: unlimited */
};

/* Those that were requested. */
struct tare_diff_texts {
    struct tare_strbuf text, json, html;
};

/* What two paths are. TARE_USAGE if one is a SavedModel and the other has arrays. */
tare_status tare_workflow_diff_kind(enum tare_diff_kind *out, const char *first, const char *second) TARE_WARN_UNUSED;
/* Adds to zeroed texts, which the caller frees, also after a failure. */
tare_status tare_workflow_diff_models(struct tare_diff_texts *out, const struct tare_diff_request *request,
                                      const struct tare_graph_model *first, const char *first_name,
                                      const struct tare_graph_model *second, const char *second_name) TARE_WARN_UNUSED;
/* The same for paths of another kind than models. */
tare_status tare_workflow_diff_files(struct tare_diff_texts *out, const struct tare_diff_request *request,
                                     enum tare_diff_kind kind, const char *first, const char *second) TARE_WARN_UNUSED;
void tare_diff_texts_free(struct tare_diff_texts *texts);

#endif
