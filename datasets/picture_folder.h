/* A folder of pictures as records: one a file, with the features that data sets of pictures usually have.
 *
 * image/encoded: the file's bytes; image/filename: its path in the folder; and where labels are known image/class/label
 * (int64, from 0) and image/class/text. */
#ifndef TARE_DATASETS_PICTURE_FOLDER_H
#define TARE_DATASETS_PICTURE_FOLDER_H

#include "datasets/features.h"

struct tare_picture_folder;

/* `path`: a folder, or a single picture. Files that end in .jpg, .jpeg, .png or .bmp count, in byte order of their
 * paths. Labels come from `labels`, a text file with lines "path label" (white space or a comma between; label a number
 * or a word; only the files that it names count, in its order), else from the names of the folders that the pictures
 * stand in directly under `path`. Words become numbers by their place in byte order. TARE_NOT_FOUND when there is no
 * picture. */
tare_status tare_picture_folder_open(struct tare_picture_folder **out, const char *path,
                                     const char *labels) TARE_WARN_UNUSED;
void tare_picture_folder_close(struct tare_picture_folder *folder);
int64_t tare_picture_folder_count(const struct tare_picture_folder *folder);
/* Reads picture i; *out is the caller's to reset, also after a failure. */
tare_status tare_picture_folder_read(struct tare_features *out, const struct tare_picture_folder *folder,
                                     int64_t i) TARE_WARN_UNUSED;
/* Its path in the folder. */
const char *tare_picture_folder_name(const struct tare_picture_folder *folder, int64_t i);
/* The classes' names in the order of their numbers; none when labels are numbers or not known. */
const char *const *tare_picture_folder_classes(const struct tare_picture_folder *folder, size_t *count);

#endif
