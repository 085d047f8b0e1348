/* WordpieceTokenizeWithOffsets of the TensorFlow Text library: each word becomes the longest pieces of a vocabulary,
 * from left to right. Pieces after the first one have a prefix. */
#include "interpreter/ops/state/hash_table.h"
#include "interpreter/ops/string/codepoint.h"
#include "interpreter/ops/string/text.h"
#include "interpreter/ops/string/tokens.h"
#include "interpreter/ops/support/operand.h"

#include <string.h>

struct vocabulary {
    struct tare_table *table;
    struct tare_tensor key, fallback, value; /* scalars */
    const char *prefix, *unknown;            /* of the pieces inside a word; of what is not in the vocabulary */
    bool use_unknown, split_unknown;
    int64_t most_bytes, most_chars; /* of a word; of a piece, 0: any number */
    struct tare_strbuf piece;
    struct tare_tokens *tokens;
};

/* Sets `piece` to what the bytes from `first` to `last` of a word are in the vocabulary. */
static void set_piece(struct vocabulary *v, struct tare_str word, size_t first, size_t last) {
    v->piece.size = 0;
    if (first > 0) tare_strbuf_puts(&v->piece, v->prefix);
    tare_strbuf_append(&v->piece, word.data + first, last - first);
}

static tare_status is_piece(bool *out, struct vocabulary *v) {
    TARE_TRY(tare_strbuf_status(&v->piece));
    TARE_TRY(tare_tensor_set_string(&v->key, 0, tare_strbuf_text(&v->piece), v->piece.size));
    TARE_TRY(tare_table_find(v->table, &v->key, &v->fallback, &v->value));
    *out = tare_tensor_get_i64(&v->value, 0) != -1;
    return TARE_OK;
}

static size_t next_character(struct tare_str word, size_t at) {
    uint32_t code;
    bool bad;
    return at +
           tare_codepoint_read(&code, &bad, TARE_ENCODING_UTF8, (const unsigned char *)word.data + at, word.size - at);
}

/* The end of the longest piece at `first`; with a piece of one character, *known: whether it is in the vocabulary. */
static tare_status longest(size_t *end, bool *known, struct vocabulary *v, struct tare_str word, size_t first,
                           size_t *ends) {
    size_t count = 0;
    for (size_t at = first; at < word.size && (v->most_chars <= 0 || (int64_t)count < v->most_chars);)
        ends[count++] = at = next_character(word, at);
    *known = false;
    while (count > 0 && !*known) {
        *end = ends[--count];
        set_piece(v, word, first, *end);
        TARE_TRY(is_piece(known, v));
    }
    return TARE_OK;
}

static tare_status add_whole(struct vocabulary *v, struct tare_str word, int64_t limit) {
    TARE_TRY(tare_tokens_begin(v->tokens, 0, limit));
    tare_tokens_append(v->tokens, v->use_unknown ? v->unknown : word.data,
                       v->use_unknown ? strlen(v->unknown) : word.size);
    return TARE_OK;
}

static tare_status add_piece(struct vocabulary *v, bool known, size_t first, size_t end) {
    if (!known && v->use_unknown) {
        v->piece.size = 0;
        if (first > 0) tare_strbuf_puts(&v->piece, v->prefix);
        tare_strbuf_puts(&v->piece, v->unknown);
    }
    TARE_TRY(tare_tokens_begin(v->tokens, (int64_t)first, (int64_t)end));
    tare_tokens_append(v->tokens, tare_strbuf_text(&v->piece), v->piece.size);
    return tare_strbuf_status(&v->piece);
}

/* A word with an unknown piece is unknown, unless characters may be. */
static tare_status split_word(struct vocabulary *v, struct tare_str word, struct tare_arena *scratch) {
    const size_t before = v->tokens->count;
    size_t *ends = TARE_NEW_ARRAY(scratch, size_t, word.size + 1);
    if (!ends) return TARE_NO_MEMORY;
    for (size_t at = 0, end = 0; at < word.size; at = end) {
        bool known;
        TARE_TRY(longest(&end, &known, v, word, at, ends));
        if (!known && !v->split_unknown) {
            v->tokens->count = before;
            return add_whole(v, word, (int64_t)word.size);
        }
        TARE_TRY(add_piece(v, known, at, end));
    }
    return TARE_OK;
}

static tare_status tokenize(struct vocabulary *v, struct tare_kernel *kernel, bool splits) {
    const struct tare_tensor *words = &kernel->inputs[0];
    const struct tare_shape shape = tare_operand_vector_shape(words->elements + splits);
    TARE_TRY(tare_kernel_output(kernel, 1, TARE_DT_INT64, &shape));
    int64_t *rows = TARE_DATA(int64_t, &kernel->outputs[1]);
    if (splits) *rows++ = 0;
    for (int64_t i = 0; i < words->elements; i++) {
        const struct tare_str word = tare_text_at(words, i);
        const size_t before = v->tokens->count;
        if ((int64_t)word.size > v->most_bytes)
            TARE_TRY(add_whole(v, word, (int64_t)(v->use_unknown ? strlen(v->unknown) : word.size)));
        else
            TARE_TRY(split_word(v, word, kernel->scratch));
        rows[i] = (int64_t)(splits ? v->tokens->count : v->tokens->count - before);
    }
    return tare_tokens_write(kernel, v->tokens, 0, 2, 3);
}

static tare_status open_vocabulary(struct vocabulary *v, const struct tare_kernel *kernel) {
    const struct tare_shape scalar = tare_shape_scalar();
    const struct tare_node *node = kernel->node;
    TARE_TRY(tare_table_from_handle(&v->table, &kernel->inputs[1]));
    if (tare_table_key_dtype(v->table) != TARE_DT_STRING || tare_table_value_dtype(v->table) != TARE_DT_INT64)
        return TARE_FAIL(TARE_TYPE, "the vocabulary maps %s to %s (expected string to int64)",
                         tare_dtype_name(tare_table_key_dtype(v->table)),
                         tare_dtype_name(tare_table_value_dtype(v->table)));
    v->prefix = tare_node_string(node, "suffix_indicator", "");
    v->unknown = tare_node_string(node, "unknown_token", "");
    v->use_unknown = tare_node_bool(node, "use_unknown_token", false);
    v->split_unknown = tare_node_bool(node, "split_unknown_characters", false);
    v->most_bytes = tare_node_int(node, "max_bytes_per_word", 0);
    v->most_chars = tare_node_int(node, "max_chars_per_token", 0);
    TARE_TRY(tare_tensor_new(&v->key, TARE_DT_STRING, &scalar));
    TARE_TRY(tare_tensor_new(&v->value, TARE_DT_INT64, &scalar));
    TARE_TRY(tare_tensor_new(&v->fallback, TARE_DT_INT64, &scalar));
    *TARE_DATA(int64_t, &v->fallback) = -1;
    return TARE_OK;
}

static tare_status infer_wordpiece(struct tare_infer *infer) {
    const bool splits = strcmp(tare_node_string(infer->node, "output_row_partition_type", ""), "row_splits") == 0;
    int64_t rows;
    TARE_TRY(tare_operand_vector(infer, 0, "input_values", &rows));
    for (int i = 0; i < 4; i++)
        infer->outputs[i] = tare_operand_vector_shape(-1);
    if (rows >= 0) infer->outputs[1] = tare_operand_vector_shape(rows + splits);
    return TARE_OK;
}

static tare_status run_wordpiece(struct tare_kernel *kernel) {
    const char *type = tare_node_string(kernel->node, "output_row_partition_type", "row_lengths");
    struct tare_tokens tokens = { 0 };
    struct vocabulary v = { .tokens = &tokens };
    struct tare_shape *shapes;
    TARE_TRY(tare_operand_shapes(kernel, &shapes));
    tare_status status = open_vocabulary(&v, kernel);
    if (status == TARE_OK) status = tokenize(&v, kernel, strcmp(type, "row_splits") == 0);
    tare_tensor_reset(&v.key);
    tare_tensor_reset(&v.value);
    tare_tensor_reset(&v.fallback);
    tare_strbuf_free(&v.piece);
    tare_tokens_free(&tokens);
    return status;
}

const struct tare_op tare_ops_wordpiece[] = {
    { .name = "WordpieceTokenizeWithOffsets",
      .inputs = "input_values: string, vocab_lookup_table: resource",
      .outputs = "output_values: string, output_row_lengths: int64, start_values: int64, limit_values: int64",
      .attrs =
          "suffix_indicator: string; max_bytes_per_word: int; max_chars_per_token: int = 0; use_unknown_token: bool; "
          "unknown_token: string; split_unknown_characters: bool = false; output_row_partition_type: "
          "{'row_lengths', 'row_splits'} = 'row_lengths'",
      .infer = infer_wordpiece,
      .run = run_wordpiece,
      .flags = TARE_OP_STATEFUL },
    { 0 },
};
