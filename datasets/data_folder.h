/* What a folder has as data: images, which are one data set with the names of folders as classes, or files of records,
 * in it and in the folders below. */
#ifndef TARE_DATASETS_DATA_FOLDER_H
#define TARE_DATASETS_DATA_FOLDER_H

#include "base/file.h"

/* Appends the folder itself if it has images or is a SavedModel, otherwise its files of records, in byte order of the
 * names in each folder. Hidden files, markers such as _SUCCESS, and descriptions such as README.md and
 * dataset_info.json are no records. TARE_NOT_FOUND if there is neither; TARE_UNSUPPORTED for images next to records. */
tare_status tare_data_folder_add(struct tare_file_list *files, const char *folder) TARE_WARN_UNUSED;

#endif
