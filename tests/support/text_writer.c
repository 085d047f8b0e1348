/* The writer of the text format. */
#include "support/text_writer.h"
#include "base/format.h"
#include "proto/field.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The fewest digits that read back to the same float: 6 to 9 are always enough. */
static void write_float(struct tare_strbuf *out, float value) {
    char text[32];
    if (isnan(value)) {
        tare_strbuf_puts(out, "nan");
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        tare_format(text, sizeof text, "%.*g", digits, (double)value);
        if (tare_read_float(text, NULL) == value) break;
    }
    tare_strbuf_puts(out, text);
}

static void write_double(struct tare_strbuf *out, double value) {
    char text[40];
    if (isnan(value)) {
        tare_strbuf_puts(out, "nan");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        tare_format(text, sizeof text, "%.*g", digits, value);
        if (tare_read_double(text, NULL) == value) break;
    }
    tare_strbuf_puts(out, text);
}

static void write_string(struct tare_strbuf *out, const void *data, size_t size) {
    tare_strbuf_putc(out, '"');
    tare_strbuf_escape(out, data, size);
    tare_strbuf_putc(out, '"');
}

static void write_enum(struct tare_strbuf *out, const ProtobufCEnumDescriptor *values, int number) {
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(values, number);
    if (value)
        tare_strbuf_puts(out, value->name);
    else
        tare_strbuf_printf(out, "%d", number);
}

static void write_scalar(struct tare_strbuf *out, const ProtobufCFieldDescriptor *field, const void *value) {
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        tare_strbuf_printf(out, "%" PRId32, *(const int32_t *)value);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        tare_strbuf_printf(out, "%" PRId64, *(const int64_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        tare_strbuf_printf(out, "%" PRIu32, *(const uint32_t *)value);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        tare_strbuf_printf(out, "%" PRIu64, *(const uint64_t *)value);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        write_float(out, *(const float *)value);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        write_double(out, *(const double *)value);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        tare_strbuf_puts(out, *(const protobuf_c_boolean *)value ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        write_enum(out, field->descriptor, *(const int *)value);
        break;
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(const char *const *)value;
        write_string(out, text, strlen(text));
        break;
    }
    default: {
        const ProtobufCBinaryData *bytes = value;
        write_string(out, bytes->data, bytes->len);
        break;
    }
    }
}

static void indent_by(struct tare_strbuf *out, int levels) {
    for (int i = 0; i < levels; i++)
        tare_strbuf_append(out, "  ", 2);
}

static void write_unknown(struct tare_strbuf *out, const ProtobufCMessageUnknownField *field) {
    uint64_t value = 0;
    size_t prefix = 0;
    switch (field->wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        for (size_t i = 0; i < field->len && i < 10; i++)
            value |= (uint64_t)(field->data[i] & 0x7f) << (7 * i);
        tare_strbuf_printf(out, "%" PRIu32 ": %" PRIu64, field->tag, value);
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        memcpy(&value, field->data, field->len < 8 ? field->len : 8);
        tare_strbuf_printf(out, "%" PRIu32 ": 0x%0*" PRIx64, field->tag, (int)(2 * field->len), value);
        break;
    default:
        while (prefix < field->len && field->data[prefix] & 0x80)
            prefix++;
        prefix++;
        tare_strbuf_printf(out, "%" PRIu32 ": ", field->tag);
        write_string(out, field->data + prefix, field->len - prefix);
    }
}

static void write_message(struct tare_strbuf *out, const ProtobufCMessage *message, int level) {
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    for (unsigned f = 0; f < descriptor->n_fields; f++) {
        const ProtobufCFieldDescriptor *field = &descriptor->fields[f];
        size_t count = tare_field_count(message, field);
        for (size_t i = 0; i < count; i++) {
            const void *value = tare_field_value(message, field, i);
            indent_by(out, level);
            tare_strbuf_puts(out, field->name);
            if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
                tare_strbuf_puts(out, " {\n");
                write_message(out, *(const ProtobufCMessage *const *)value, level + 1);
                indent_by(out, level);
                tare_strbuf_puts(out, "}\n");
            } else {
                tare_strbuf_puts(out, ": ");
                write_scalar(out, field, value);
                tare_strbuf_putc(out, '\n');
            }
        }
    }
    for (unsigned i = 0; i < message->n_unknown_fields; i++) {
        indent_by(out, level);
        write_unknown(out, &message->unknown_fields[i]);
        tare_strbuf_putc(out, '\n');
    }
}

tare_status text_writer_put(struct tare_strbuf *out, const ProtobufCMessage *message) {
    write_message(out, message, 0);
    return out->failed ? TARE_NO_MEMORY : TARE_OK;
}
