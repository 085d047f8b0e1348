#include "interpreter/ops/support/dims_wire.h"

#include "base/varint.h"

struct reader {
    const unsigned char *at, *end;
};

static tare_status read_varint(uint64_t *out, struct reader *reader) {
    if (tare_varint_next(out, &reader->at, reader->end)) return TARE_OK;
    return TARE_FAIL(TARE_CORRUPT, "dimension numbers: a number ends early");
}

static tare_status add_value(struct tare_dims_field *field, uint64_t value) {
    if (!field) return TARE_OK;
    if (field->count == TARE_MAX_RANK)
        return TARE_FAIL(TARE_CORRUPT, "dimension numbers: more than %d in field %d", TARE_MAX_RANK, field->number);
    field->values[field->count++] = (int64_t)value;
    return TARE_OK;
}

/* One field: single numbers (wire type 0) or packed ones (2). */
static tare_status read_field(struct reader *reader, struct tare_dims_field *fields, size_t count) {
    uint64_t tag, value;
    struct tare_dims_field *field = NULL;
    TARE_TRY(read_varint(&tag, reader));
    for (size_t i = 0; i < count; i++) {
        if ((uint64_t)fields[i].number == tag >> 3) field = &fields[i];
    }
    TARE_TRY(read_varint(&value, reader)); /* the number itself, or the length */
    if ((tag & 7) == 0) return add_value(field, value);
    if ((tag & 7) != 2) return TARE_FAIL(TARE_CORRUPT, "dimension numbers: wire type %d", (int)(tag & 7));
    if (value > (uint64_t)(reader->end - reader->at))
        return TARE_FAIL(TARE_CORRUPT, "dimension numbers: a list ends early");
    struct reader packed = { reader->at, reader->at + value };
    reader->at += value;
    while (field && packed.at < packed.end) {
        TARE_TRY(read_varint(&value, &packed));
        TARE_TRY(add_value(field, value));
    }
    return TARE_OK;
}

static const struct tare_attr *text_of(const struct tare_node *node, const char *name) {
    const struct tare_attr *attr = tare_node_find_attr(node, name);
    return attr && attr->kind == TARE_ATTR_STRING && !attr->is_list && attr->count == 1 ? attr : NULL;
}

tare_status tare_dims_read(struct tare_dims_field *fields, size_t count, const struct tare_node *node,
                           const char *name) {
    const struct tare_attr *attr = text_of(node, name);
    for (size_t i = 0; i < count; i++)
        fields[i].count = 0;
    if (!attr || attr->items[0].s.size == 0) return TARE_OK;
    const unsigned char *data = (const unsigned char *)attr->items[0].s.data;
    struct reader reader = { data, data + attr->items[0].s.size };
    while (reader.at < reader.end)
        TARE_TRY(read_field(&reader, fields, count));
    return TARE_OK;
}

int64_t tare_dims_single(const struct tare_dims_field *field) {
    return field->count == 0 ? 0 : field->values[field->count - 1];
}

/* ---- convolutions ---- */

static tare_status take_axes(int *first, int *second, int *spatial, const struct tare_dims_field *first_field,
                             const struct tare_dims_field *second_field, const struct tare_dims_field *spatial_field,
                             int rank, const char *what) {
    unsigned seen = 0;
    if (spatial_field->count != (size_t)(rank - 2))
        return TARE_FAIL(TARE_INVALID_ARGUMENT, "dimension numbers: %s has %zu spatial dimensions (expected %d)", what,
                         spatial_field->count, rank - 2);
    for (int i = 0; i < rank; i++) {
        const int64_t axis = i == 0   ? tare_dims_single(first_field)
                             : i == 1 ? tare_dims_single(second_field)
                                      : spatial_field->values[i - 2];
        if (axis < 0 || axis >= rank || (seen >> axis & 1))
            return TARE_FAIL(TARE_INVALID_ARGUMENT, "dimension numbers: %s must contain dimension %lld exactly once",
                             what, (long long)axis);
        seen |= 1u << axis;
        *(i == 0 ? first : i == 1 ? second : &spatial[i - 2]) = (int)axis;
    }
    return TARE_OK;
}

static void set_default(struct tare_conv_dims *dims) {
    dims->input_feature = dims->output_feature = dims->kernel_input = 1;
    dims->input_batch = dims->output_batch = dims->kernel_output = 0;
    for (int i = 0; i < dims->spatial; i++)
        dims->input_spatial[i] = dims->output_spatial[i] = dims->kernel_spatial[i] = i + 2;
}

/* Field numbers of the two messages. */
enum {
    IN_BATCH,
    IN_FEATURE,
    IN_SPATIAL,
    KERNEL_IN,
    KERNEL_OUT,
    KERNEL_SPATIAL,
    OUT_BATCH,
    OUT_FEATURE,
    OUT_SPATIAL,
    N_FIELDS
};
static const int field_numbers[2][N_FIELDS] = {
    [TARE_CONV_XLA] = { 7, 8, 11, 3, 4, 6, 9, 10, 12 },
    [TARE_CONV_UNIFORM] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 },
};

tare_status tare_conv_dims_read(struct tare_conv_dims *dims, const struct tare_node *node, const char *name, int rank,
                                enum tare_conv_message message) {
    struct tare_dims_field fields[N_FIELDS];
    if (rank < 2 || rank > 5) return TARE_FAIL(TARE_SHAPE, "a convolution of rank %d (expected 2 to 5)", rank);
    *dims = (struct tare_conv_dims){ .spatial = rank - 2 };
    const struct tare_attr *attr = text_of(node, name);
    if (message == TARE_CONV_UNIFORM && (!attr || attr->items[0].s.size == 0)) {
        set_default(dims);
        return TARE_OK;
    }
    for (int i = 0; i < N_FIELDS; i++)
        fields[i].number = field_numbers[message][i];
    TARE_TRY(tare_dims_read(fields, N_FIELDS, node, name));
    TARE_TRY(take_axes(&dims->input_batch, &dims->input_feature, dims->input_spatial, &fields[IN_BATCH],
                       &fields[IN_FEATURE], &fields[IN_SPATIAL], rank, "the input"));
    TARE_TRY(take_axes(&dims->kernel_input, &dims->kernel_output, dims->kernel_spatial, &fields[KERNEL_IN],
                       &fields[KERNEL_OUT], &fields[KERNEL_SPATIAL], rank, "the kernel"));
    return take_axes(&dims->output_batch, &dims->output_feature, dims->output_spatial, &fields[OUT_BATCH],
                     &fields[OUT_FEATURE], &fields[OUT_SPATIAL], rank, "the output");
}

/* ---- writing ---- */

void tare_dims_put(struct tare_dims_wire *wire, int field, int value) {
    if (value == 0) return;
    wire->bytes[wire->size++] = (unsigned char)(field << 3);
    wire->bytes[wire->size++] = (unsigned char)value;
}

void tare_dims_put_list(struct tare_dims_wire *wire, int field, const int *values, int count) {
    if (count == 0) return;
    wire->bytes[wire->size++] = (unsigned char)(field << 3 | 2);
    wire->bytes[wire->size++] = (unsigned char)count;
    for (int i = 0; i < count; i++)
        wire->bytes[wire->size++] = (unsigned char)values[i];
}

void tare_conv_dims_write(struct tare_dims_wire *wire, const struct tare_conv_dims *dims,
                          enum tare_conv_message message) {
    const int *const values[N_FIELDS] = {
        [IN_BATCH] = &dims->input_batch,      [IN_FEATURE] = &dims->input_feature,
        [IN_SPATIAL] = dims->input_spatial,   [KERNEL_IN] = &dims->kernel_input,
        [KERNEL_OUT] = &dims->kernel_output,  [KERNEL_SPATIAL] = dims->kernel_spatial,
        [OUT_BATCH] = &dims->output_batch,    [OUT_FEATURE] = &dims->output_feature,
        [OUT_SPATIAL] = dims->output_spatial,
    };
    wire->size = 0;
    for (int number = 1; number <= 12; number++) /* a message has its fields in this order */
        for (int f = 0; f < N_FIELDS; f++) {
            if (field_numbers[message][f] != number) continue;
            if (f == IN_SPATIAL || f == KERNEL_SPATIAL || f == OUT_SPATIAL)
                tare_dims_put_list(wire, number, values[f], dims->spatial);
            else
                tare_dims_put(wire, number, *values[f]);
        }
}
