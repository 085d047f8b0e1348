/* A folder of images as records, one per file, with the usual features of image data sets.
 *
 * image/encoded: the bytes of the file; image/filename: its path in the folder; with labels also image/class/label
 * (int64, from 0) and image/class/text. */
#ifndef TARE_DATASETS_IMAGE_FOLDER_H
#define TARE_DATASETS_IMAGE_FOLDER_H

#include "datasets/features.h"

struct tare_image_folder;

/* `path`: a folder, or a single image. Uses the files that end in .jpg, .jpeg, .png or .bmp, in byte order of their
 * paths. Labels are read from `labels`, a text file with lines "path label" (separated by white space or a comma; the
 * label is a number or a word; only the listed files are used, in this order); without it, they are the names of the
 * folders directly below `path`. The class index of a word is its index in byte order. TARE_NOT_FOUND if there are no
 * images; without `labels`, TARE_UNSUPPORTED for images of other kinds, TARE_INVALID_ARGUMENT for a folder directly
 * below `path` without images. */
tare_status tare_image_folder_open(struct tare_image_folder **out, const char *path,
                                   const char *labels) TARE_WARN_UNUSED;
/* Whether a file of this name is an image, also of a kind that is not read. */
bool tare_image_folder_takes(const char *name);
void tare_image_folder_close(struct tare_image_folder *folder);
int64_t tare_image_folder_count(const struct tare_image_folder *folder);
/* Reads image i; reset *out also after a failure. */
tare_status tare_image_folder_read(struct tare_features *out, const struct tare_image_folder *folder,
                                   int64_t i) TARE_WARN_UNUSED;
/* The path of image i in the folder. */
const char *tare_image_folder_name(const struct tare_image_folder *folder, int64_t i);
/* The names of the classes by class index; none if labels are numbers or unknown. */
const char *const *tare_image_folder_classes(const struct tare_image_folder *folder, size_t *count);

#endif
