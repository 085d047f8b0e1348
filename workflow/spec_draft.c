#include "workflow/spec_draft.h"
#include "base/alloc.h"
#include "convert/saved_model.h"
#include "eval/model_inputs.h"

tare_status tare_workflow_draft_spec(struct tare_strbuf *out, struct tare_spec_draft_found *found,
                                     const struct tare_survey *survey, const char *path, const char *key,
                                     const struct tare_spec_draft_options *options) {
    const struct tare_saved_model_options look = { .without_values = true, .read_only = true };
    const struct tare_signature *signature;
    struct tare_spec_draft_input *inputs = NULL;
    struct tare_graph_model *model;
    tare_status status;
    *found = (struct tare_spec_draft_found){ 0 };
    TARE_TRY(tare_saved_model_load(&model, path, &look));
    TARE_CHECK(tare_pick_signature(&signature, model, key));
    inputs = tare_calloc(signature->n_inputs + 1, sizeof *inputs);
    if (!inputs) TARE_CHECK(TARE_NO_MEMORY);
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_binding *input = &signature->inputs[i];
        inputs[i] = (struct tare_spec_draft_input){ input->key, tare_dtype_base(input->dtype), input->shape };
    }
    tare_dataset_spec_draft_for(out, found, survey, inputs, signature->n_inputs, options);
    status = tare_strbuf_status(out);
done:
    tare_free(inputs);
    tare_model_free(model);
    return status;
}
