/* The EXIF orientation of a JPEG or PNG file: tag 0x0112 of the first directory of the TIFF structure in its APP1
 * segment or eXIf chunk (PNG specification, third edition, section 11.3.3.5). */
#include "base/image/image.h"

#include <string.h>

enum { MARKER_EOI = 0xd9, MARKER_SOS = 0xda, MARKER_APP1 = 0xe1, TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3 };

/* Bytes of the TIFF structure, in its byte order. */
struct tiff {
    const unsigned char *data;
    size_t size;
    bool little;
};

static uint32_t number(const struct tiff *tiff, size_t at, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; i++)
        value |= (uint32_t)tiff->data[at + i] << 8 * (tiff->little ? i : bytes - 1 - i);
    return value;
}

/* 0: none. */
static int orientation_in(const unsigned char *data, size_t size) {
    static const size_t HEADER = 8, ENTRY = 12;
    struct tiff tiff = { data, size, size > 0 && data[0] == 'I' };
    if (size < HEADER || memcmp(data, tiff.little ? "II" : "MM", 2) != 0 || number(&tiff, 2, 2) != 42) return 0;
    const size_t first = number(&tiff, 4, 4);
    if (first > size || size - first < 2) return 0;
    const size_t count = number(&tiff, first, 2), most = (size - first - 2) / ENTRY;
    for (size_t i = 0; i < count && i < most; i++) {
        const size_t at = first + 2 + i * ENTRY;
        if (number(&tiff, at, 2) != TAG_ORIENTATION) continue;
        const uint32_t value = number(&tiff, at + 8, 2);
        return number(&tiff, at + 2, 2) == TYPE_SHORT && value >= 1 && value <= 8 ? (int)value : 0;
    }
    return 0;
}

static int orientation_of_jpeg(struct tare_str file) {
    static const char exif[6] = "Exif\0";
    const unsigned char *data = (const unsigned char *)file.data;
    size_t at = 2;
    while (at + 4 <= file.size && data[at] == 0xff) {
        const unsigned char marker = data[at + 1];
        const size_t length = (size_t)data[at + 2] << 8 | data[at + 3]; /* with its own two bytes */
        if (marker == MARKER_SOS || marker == MARKER_EOI || length < 2 || length > file.size - at - 2) return 1;
        if (marker == MARKER_APP1 && length >= 2 + sizeof exif && memcmp(data + at + 4, exif, sizeof exif) == 0) {
            const int found = orientation_in(data + at + 4 + sizeof exif, length - 2 - sizeof exif);
            if (found) return found;
        }
        at += 2 + length;
    }
    return 1;
}

/* Chunks: length, type, data, checksum. */
static int orientation_of_png(struct tare_str file) {
    enum { SIGNATURE = 8, HEAD = 8, CHECKSUM = 4 };
    const struct tiff png = { (const unsigned char *)file.data, file.size, false };
    size_t at = SIGNATURE;
    while (file.size >= HEAD && at <= file.size - HEAD) {
        const size_t length = number(&png, at, 4);
        const char *type = file.data + at + 4;
        at += HEAD;
        if (length > file.size - at) return 1;
        if (memcmp(type, "eXIf", 4) == 0) {
            const int found = orientation_in(png.data + at, length);
            return found ? found : 1;
        }
        at += length;
        if (file.size - at < CHECKSUM) return 1;
        at += CHECKSUM;
    }
    return 1;
}

int tare_image_orientation(struct tare_str file) {
    const enum tare_image_format format = tare_image_format_of(file);
    return format == TARE_IMAGE_JPEG  ? orientation_of_jpeg(file)
           : format == TARE_IMAGE_PNG ? orientation_of_png(file)
                                      : 1;
}
