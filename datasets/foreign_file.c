/* Formats of other programs, and the way from each to one that tare reads. */
#include "datasets/foreign_file.h"

#include <string.h>

static const struct {
    const char *mark;
    size_t size, offset; /* of the mark in the file */
    const char *format, *remedy;
} formats[] = {
    { "TARECAL\n", 8, 0, "a calibration file", "give it after --calibration, or print it with 'tare show'" },
    { "\x89HDF\r\n\x1a\n", 8, 0, "an HDF5 file",
      "in Python: numpy.savez('data.npz', NAME=h5py.File('FILE')['DATASET'][:])" },
    { "PAR1", 4, 0, "a Parquet file", "in Python: pandas.read_parquet('FILE').to_csv('data.csv', index=False)" },
    { "ARROW1", 6, 0, "an Arrow file", "in Python: pandas.read_feather('FILE').to_csv('data.csv', index=False)" },
    { "\x80\x02", 2, 0, "a Python pickle", "load it in Python and write its arrays with numpy.savez" },
    { "\x80\x03", 2, 0, "a Python pickle", "load it in Python and write its arrays with numpy.savez" },
    { "\x80\x04", 2, 0, "a Python pickle", "load it in Python and write its arrays with numpy.savez" },
    { "\x80\x05", 2, 0, "a Python pickle", "load it in Python and write its arrays with numpy.savez" },
    { "MATLAB 5", 8, 0, "a MATLAB file", "in Python: numpy.savez('data.npz', NAME=scipy.io.loadmat('FILE')['NAME'])" },
    { "GIF8", 4, 0, "a GIF image", "convert it to PNG" },
    { "WEBP", 4, 8, "a WebP image", "convert it to PNG or JPEG" },
    { "II*\0", 4, 0, "a TIFF image", "convert it to PNG" },
    { "MM\0*", 4, 0, "a TIFF image", "convert it to PNG" },
    { "WAVE", 4, 8, "a WAV file", "in Python: numpy.save('data.npy', samples), one row per example" },
    { "fLaC", 4, 0, "a FLAC file", "in Python: numpy.save('data.npy', samples), one row per example" },
    { "SQLite format 3", 15, 0, "an SQLite database", "export the table as CSV: sqlite3 -header -csv FILE 'SELECT …'" },
    { "{\"", 2, 0, "a JSON file", "convert it to CSV or NPZ" },
    { "{\n", 2, 0, "a JSON file", "convert it to CSV or NPZ" },
    { "[{", 2, 0, "a JSON file", "convert it to CSV or NPZ" },
};

tare_status tare_foreign_path_check(const char *path) {
    if (strncmp(path, "gs://", 5) == 0)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "%s: files in a bucket are not read directly (copy it with 'gcloud storage cp %s .', or pipe "
                         "it: 'gcloud storage cat %s | tare … --data -')",
                         path, path, path);
    if (strncmp(path, "s3://", 5) == 0)
        return TARE_FAIL(TARE_UNSUPPORTED,
                         "%s: files in a bucket are not read directly (copy it with 'aws s3 cp %s .', or pipe it: 'aws "
                         "s3 cp %s - | tare … --data -')",
                         path, path, path);
    return TARE_OK;
}

tare_status tare_foreign_file_check(const char *path, const uint8_t *head, size_t size) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (size >= formats[i].offset + formats[i].size &&
            memcmp(head + formats[i].offset, formats[i].mark, formats[i].size) == 0)
            return TARE_FAIL(TARE_UNSUPPORTED, "%s: %s (expected TFRecord, NPY, NPZ, CSV, JPEG, PNG or BMP; %s)", path,
                             formats[i].format, formats[i].remedy);
    return TARE_OK;
}
