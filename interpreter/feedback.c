/* Pairs of outputs and inputs, resolved for a signature, and the values between two runs. */
#include "interpreter/feedback.h"
#include "base/alloc.h"
#include "base/strbuf.h"

#include <string.h>

struct link {
    size_t output, input;     /* indices in the signature */
    struct tare_tensor value; /* of the last run */
};

struct tare_feedback_loop {
    const struct tare_feedback *feedback;
    const struct tare_signature *signature;
    struct link *links; /* by pair */
    bool begun;         /* the links have values, of the sequence of `where` */
    struct tare_record where;
};

bool tare_feedback_is_given(const struct tare_feedback *feedback) {
    return feedback && feedback->pairs.count > 0;
}

void tare_feedback_put(struct tare_strbuf *out, const struct tare_feedback *feedback) {
    if (!tare_feedback_is_given(feedback)) return;
    for (size_t i = 0; i < feedback->pairs.count; i++) {
        tare_strbuf_puts(out, " --feedback ");
        tare_strbuf_shell_word(out, feedback->pairs.items[i]);
    }
    if (!feedback->sequence) return;
    tare_strbuf_puts(out, " --sequence ");
    tare_strbuf_shell_word(out, feedback->sequence);
}

/* The input of "OUTPUT=INPUT"; NULL if the text is not of this form. */
static const char *input_of(const char *pair) {
    const char *sign = strchr(pair, '=');
    return sign && sign != pair && sign[1] ? sign + 1 : NULL;
}

bool tare_feedback_feeds(const struct tare_feedback *feedback, const char *input) {
    for (size_t i = 0; feedback && i < feedback->pairs.count; i++) {
        const char *fed = input_of(feedback->pairs.items[i]);
        if (fed && strcmp(fed, input) == 0) return true;
    }
    return false;
}

bool tare_feedback_reads(const struct tare_feedback *feedback, const char *output) {
    const size_t length = strlen(output);
    for (size_t i = 0; feedback && i < feedback->pairs.count; i++)
        if (strncmp(feedback->pairs.items[i], output, length) == 0 && feedback->pairs.items[i][length] == '=')
            return true;
    return false;
}

tare_status tare_feedback_open(const struct tare_feedback *feedback) {
    for (size_t i = 0; i < feedback->pairs.count; i++) {
        const char *pair = feedback->pairs.items[i], *input = input_of(pair);
        if (!input) return TARE_FAIL(TARE_USAGE, "--feedback %s: expected OUTPUT=INPUT", pair);
        for (size_t k = 0; k < i; k++)
            if (strcmp(input_of(feedback->pairs.items[k]), input) == 0)
                return TARE_FAIL(TARE_USAGE, "--feedback: input %s is given twice (expected one output for it)", input);
    }
    return TARE_OK;
}

/* ---- pairs of a signature ---- */

static size_t find(const struct tare_binding *bindings, size_t count, const char *name, size_t length) {
    size_t i = 0;
    while (i < count && (strlen(bindings[i].key) != length || strncmp(bindings[i].key, name, length) != 0))
        i++;
    return i;
}

static tare_status unknown(const char *pair, const char *what, const char *name, int length,
                           const struct tare_signature *signature, const struct tare_binding *bindings, size_t count) {
    struct tare_strbuf names = { 0 };
    for (size_t i = 0; i < count; i++)
        tare_strbuf_printf(&names, "%s%s", i ? ", " : "", bindings[i].key);
    const tare_status status = TARE_FAIL(TARE_NOT_FOUND, "--feedback %s: unknown %s %.*s (signature %s has %s)", pair,
                                         what, length, name, signature->key, count ? tare_strbuf_text(&names) : "none");
    tare_strbuf_free(&names);
    return status;
}

static tare_status check_types(const char *pair, const struct tare_binding *output, const struct tare_binding *input) {
    const int from = tare_dtype_base(output->dtype), to = tare_dtype_base(input->dtype);
    char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    if (from != to)
        return TARE_FAIL(TARE_TYPE, "--feedback %s: input %s is %s, output %s is %s (expected the same dtype)", pair,
                         input->key, tare_dtype_name(to), output->key, tare_dtype_name(from));
    if (tare_shape_compatible(&input->shape, &output->shape)) return TARE_OK;
    tare_shape_text(expected, &input->shape);
    tare_shape_text(got, &output->shape);
    return TARE_FAIL(TARE_SHAPE, "--feedback %s: output %s has shape %s (expected %s, as input %s)", pair, output->key,
                     got, expected, input->key);
}

static tare_status resolve(struct link *out, const char *pair, const struct tare_signature *signature) {
    const char *input = input_of(pair);
    const size_t length = (size_t)(input - pair) - 1;
    *out = (struct link){ find(signature->outputs, signature->n_outputs, pair, length),
                          find(signature->inputs, signature->n_inputs, input, strlen(input)),
                          { 0 } };
    if (out->output == signature->n_outputs)
        return unknown(pair, "output", pair, (int)length, signature, signature->outputs, signature->n_outputs);
    if (out->input == signature->n_inputs)
        return unknown(pair, "input", input, (int)strlen(input), signature, signature->inputs, signature->n_inputs);
    return check_types(pair, &signature->outputs[out->output], &signature->inputs[out->input]);
}

tare_status tare_feedback_loop_new(struct tare_feedback_loop **out, const struct tare_feedback *feedback,
                                   const struct tare_signature *signature) {
    const size_t count = feedback->pairs.count;
    struct tare_feedback_loop *loop = tare_calloc(1, sizeof *loop);
    tare_status status = TARE_NO_MEMORY;
    *out = NULL;
    if (loop) loop->links = tare_calloc(count + 1, sizeof *loop->links);
    if (!loop || !loop->links) goto done;
    loop->feedback = feedback;
    loop->signature = signature;
    status = tare_feedback_open(feedback);
    for (size_t i = 0; i < count && status == TARE_OK; i++)
        status = resolve(&loop->links[i], feedback->pairs.items[i], signature);
done:
    if (status == TARE_OK)
        *out = loop;
    else
        tare_feedback_loop_free(loop);
    return status;
}

tare_status tare_feedback_check(const struct tare_feedback *feedback, const struct tare_signature *signature) {
    struct tare_feedback_loop *loop;
    if (!tare_feedback_is_given(feedback)) return TARE_OK;
    TARE_TRY(tare_feedback_loop_new(&loop, feedback, signature));
    tare_feedback_loop_free(loop);
    return TARE_OK;
}

static void forget(struct tare_feedback_loop *loop) {
    for (size_t i = 0; i < loop->feedback->pairs.count; i++)
        tare_tensor_reset(&loop->links[i].value);
    loop->begun = false;
}

void tare_feedback_loop_free(struct tare_feedback_loop *loop) {
    if (!loop) return;
    if (loop->links && loop->feedback) forget(loop);
    tare_free(loop->links);
    tare_free(loop);
}

/* ---- values ---- */

/* Rows of the record: of an input with an open first dimension; 1 if no value has one. */
static int64_t rows_of(const struct tare_signature *signature, const struct tare_tensor *values) {
    for (size_t i = 0; i < signature->n_inputs; i++) {
        const struct tare_shape *shape = &signature->inputs[i].shape;
        const bool open = shape->rank == TARE_UNKNOWN_RANK || (shape->rank > 0 && shape->dims[0] < 0);
        if (open && values[i].dtype && values[i].shape.rank > 0) return values[i].shape.dims[0];
    }
    return 1;
}

static tare_status set_zeros(struct tare_tensor *out, const struct tare_signature *signature, size_t input,
                             int64_t rows) {
    const struct tare_binding *binding = &signature->inputs[input];
    struct tare_shape shape = binding->shape;
    char text[TARE_SHAPE_TEXT_SIZE];
    if (shape.rank > 0 && shape.dims[0] < 0) shape.dims[0] = rows;
    bool known = shape.rank != TARE_UNKNOWN_RANK;
    for (int i = 0; i < shape.rank; i++)
        known = known && shape.dims[i] >= 0;
    tare_shape_text(text, &binding->shape);
    if (!known)
        return TARE_FAIL(TARE_SHAPE,
                         "input %s: its shape %s does not determine the size of zeros to begin with (put the first "
                         "state into the first record of each sequence)",
                         binding->key, text);
    TARE_TRY(tare_tensor_new(out, tare_dtype_base(binding->dtype), &shape));
    if (out->dtype != TARE_DT_STRING && out->elements) memset(out->data, 0, tare_tensor_bytes(out));
    return TARE_OK;
}

/* An input that the graph also computes has a default. */
static bool has_default(const struct tare_binding *input) {
    return input->edge.node && !tare_node_is(input->edge.node, "Placeholder");
}

static tare_status begin(struct tare_feedback_loop *loop, struct tare_tensor *values) {
    const struct tare_signature *signature = loop->signature;
    const int64_t rows = rows_of(signature, values);
    for (size_t i = 0; i < loop->feedback->pairs.count; i++) {
        const size_t input = loop->links[i].input;
        if (values[input].dtype || has_default(&signature->inputs[input])) continue;
        TARE_TRY(set_zeros(&values[input], signature, input, rows));
    }
    return TARE_OK;
}

static tare_status check_shape(const struct link *link, const struct tare_signature *signature) {
    const struct tare_binding *input = &signature->inputs[link->input];
    char expected[TARE_SHAPE_TEXT_SIZE], got[TARE_SHAPE_TEXT_SIZE];
    if (tare_shape_compatible(&input->shape, &link->value.shape)) return TARE_OK;
    tare_shape_text(expected, &input->shape);
    tare_shape_text(got, &link->value.shape);
    return TARE_FAIL(TARE_SHAPE, "input %s: output %s of the previous record has shape %s (expected %s)", input->key,
                     signature->outputs[link->output].key, got, expected);
}

tare_status tare_feedback_feed(struct tare_feedback_loop *loop, struct tare_tensor *values,
                               const struct tare_record *where) {
    const bool follows = loop->begun && where->file == loop->where.file && where->sequence == loop->where.sequence;
    loop->where = *where;
    if (!follows) {
        forget(loop);
        return begin(loop, values);
    }
    for (size_t i = 0; i < loop->feedback->pairs.count; i++) {
        const struct link *link = &loop->links[i];
        TARE_TRY(check_shape(link, loop->signature));
        tare_tensor_reset(&values[link->input]);
        tare_tensor_share(&values[link->input], &link->value);
    }
    return TARE_OK;
}

/* Outputs may be views of the record's memory. */
tare_status tare_feedback_take(struct tare_feedback_loop *loop, const struct tare_tensor *outputs) {
    forget(loop);
    for (size_t i = 0; i < loop->feedback->pairs.count; i++)
        TARE_TRY(tare_tensor_copy(&loop->links[i].value, &outputs[loop->links[i].output]));
    loop->begun = true;
    return TARE_OK;
}
