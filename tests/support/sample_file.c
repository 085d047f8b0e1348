#include "support/sample_file.h"

#include "base/alloc.h"
#include "datasets/sample.h"
#include "support/mini_model.h"

void write_float_sample(struct tare_tfrecord_writer *writer, const char *key, const struct tare_shape *shape,
                        const float *x) {
    struct tare_tensor value;
    void *data;
    size_t size;
    mini_ok(tare_tensor_from(&value, TARE_DT_FLOAT, shape, x));
    mini_ok(tare_sample_encode(&data, &size, &key, &value, 1));
    mini_ok(tare_tfrecord_write(writer, data, size));
    tare_tensor_reset(&value);
    tare_free(data);
}
