/* A rounded float is a small error; a rounded value that selects a bin or a row is not. Records are run in the same
 * order before and after, so that the stored values are compared one by one. */
#include "workflow/integer_outputs.h"
#include "eval/model_inputs.h"
#include "eval/runner.h"
#include "workflow/dataset_path.h"

#include <string.h>

enum { RECORDS = 8 }; /* of each data set */

struct tare_integer_value {
    struct tare_tensor tensor;
    struct tare_integer_value *next;
};

/* One data set, run before or after the conversion. */
struct pass {
    struct tare_integer_outputs *outputs;
    const struct tare_signature *signature;
    const struct tare_tpu_split *split; /* NULL: before */
    struct tare_integer_value **at;     /* after: the next value to compare */
};

static bool is_exact(const struct tare_tensor *tensor) {
    return tare_dtype_is_integer(tensor->dtype) || tensor->dtype == TARE_DT_BOOL;
}

static tare_status store(struct tare_integer_outputs *outputs, const struct tare_tensor *tensor) {
    struct tare_integer_value *value = TARE_NEW(&outputs->arena, struct tare_integer_value);
    if (!value) return TARE_NO_MEMORY;
    tare_tensor_share(&value->tensor, tensor);
    if (outputs->last)
        outputs->last->next = value;
    else
        outputs->first = value;
    outputs->last = value;
    return TARE_OK;
}

/* The names of the functions that were split off, as one text. */
static const char *cuts(struct pass *pass) {
    const char *text = "";
    for (size_t i = 0; text && i < pass->split->count; i++)
        text = tare_arena_printf(&pass->outputs->arena, "%s%s%s", text, i ? ", " : "", pass->split->choices[i].name);
    return text ? text : "";
}

static tare_status compare(struct pass *pass, const struct tare_binding *output, int64_t record,
                           const struct tare_tensor *before, const struct tare_tensor *after) {
    if (before->elements != after->elements)
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "record %lld: output '%s' has %lld elements (expected %lld) after %s",
                         (long long)record, output->key, (long long)after->elements, (long long)before->elements,
                         cuts(pass));
    for (int64_t i = 0; i < before->elements; i++) {
        const int64_t x = tare_tensor_get_i64(before, i), y = tare_tensor_get_i64(after, i);
        if (x == y) continue;
        return TARE_FAIL(TARE_INVALID_ARGUMENT,
                         "record %lld: element %lld of integer output '%s' is changed by the functions that were moved "
                         "to the TPU, %s (expected %lld, got %lld; set bfloat16_optimization: DISABLED, or name the "
                         "functions in tpu_functions)",
                         (long long)record, (long long)i, output->key, cuts(pass), (long long)x, (long long)y);
    }
    return TARE_OK;
}

static tare_status take(void *arg, const struct tare_sample *sample, const struct tare_record *where,
                        const struct tare_tensor *outputs) {
    struct pass *pass = arg;
    (void)sample;
    for (size_t i = 0; i < pass->signature->n_outputs; i++) {
        if (!is_exact(&outputs[i])) continue;
        if (!pass->split) {
            TARE_TRY(store(pass->outputs, &outputs[i]));
            continue;
        }
        if (!*pass->at) return TARE_OK;
        TARE_TRY(compare(pass, &pass->signature->outputs[i], where->number, &(*pass->at)->tensor, &outputs[i]));
        *pass->at = (*pass->at)->next;
    }
    return TARE_OK;
}

static tare_status run_dataset(struct pass *pass, const struct tare_graph_model *model,
                               const struct tare_dataset_file *dataset) {
    struct tare_session_options plain = { .seed = 1 };
    struct tare_session *session = NULL;
    struct tare_strbuf path = { 0 };
    struct tare_runner_options options = { .n_paths = 1, .limit = RECORDS };
    const char *text;
    tare_status status;
    TARE_CHECK(tare_pick_signature(&pass->signature, model, dataset->signature));
    TARE_CHECK(tare_workflow_dataset_path(&path, dataset->path));
    TARE_CHECK(tare_session_new(&session, model, &plain));
    text = tare_strbuf_text(&path);
    options.paths = &text;
    status = tare_error_prefix(tare_run_records(session, pass->signature, &options, take, pass), "signature '%s'",
                               pass->signature->key);
done:
    tare_session_free(session);
    tare_strbuf_free(&path);
    return status;
}

static tare_status run_all(struct pass *pass, const struct tare_graph_model *model,
                           const struct tare_quantization *quantization) {
    for (size_t i = 0; i < quantization->n_datasets; i++)
        TARE_TRY(run_dataset(pass, model, &quantization->datasets[i]));
    return TARE_OK;
}

tare_status tare_integer_outputs_record(struct tare_integer_outputs *outputs, const struct tare_graph_model *model,
                                        const struct tare_quantization *quantization) {
    struct pass pass = { .outputs = outputs };
    tare_status status = run_all(&pass, model, quantization);
    outputs->skipped = status == TARE_UNSUPPORTED;
    return outputs->skipped ? TARE_OK : status;
}

tare_status tare_integer_outputs_check(struct tare_integer_outputs *outputs, const struct tare_graph_model *model,
                                       const struct tare_quantization *quantization,
                                       const struct tare_tpu_split *split) {
    struct tare_integer_value *at = outputs->first;
    struct pass pass = { .outputs = outputs, .split = split, .at = &at };
    return outputs->skipped ? TARE_OK : run_all(&pass, model, quantization);
}

void tare_integer_outputs_free(struct tare_integer_outputs *outputs) {
    for (struct tare_integer_value *value = outputs->first; value; value = value->next)
        tare_tensor_reset(&value->tensor);
    tare_arena_free(&outputs->arena);
}
