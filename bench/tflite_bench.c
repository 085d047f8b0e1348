/* The peer: throughput of a .tflite model in TensorFlow Lite on random inputs: tflite_bench LIBRARY MODEL [batch
 * [workers [seconds [write:FILE]]]]. LIBRARY is libtensorflowlite_c.so (the npm package tfjs-tflite-node brings one;
 * bench/peers.sh fetches it). Every worker has an interpreter of its own with one thread. Prints the same line as
 * model_bench, or, with write:FILE, runs once and writes output 0 as floats, as model_bench does. Inputs and outputs
 * are float or int8. */
#include "base/clock.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_WORKERS = 64, FLOAT32 = 1, INT8 = 9 }; /* the types are TfLiteType */

struct grid { /* TfLiteQuantizationParams */
    float scale;
    int zero_point;
};

/* The C API, as far as it is used here. */
static void *(*model_create)(const char *path);
static void *(*options_create)(void);
static void (*options_threads)(void *options, int threads);
static void *(*interpreter_create)(void *model, void *options);
static int (*allocate)(void *interpreter);
static int (*resize)(void *interpreter, int input, const int *dims, int rank);
static int (*invoke)(void *interpreter);
static void *(*input_tensor)(void *interpreter, int input);
static int (*rank_of)(void *tensor);
static int (*dim_of)(void *tensor, int axis);
static size_t (*bytes_of)(void *tensor);
static void *(*data_of)(void *tensor);
static void *(*output_tensor)(void *interpreter, int output);
static int (*type_of)(void *tensor);
static struct grid (*grid_of)(void *tensor);

struct worker {
    void *model;
    int batch;
    double seconds, took, busy;
    pthread_t thread;
};

static void check(int failed, const char *what) {
    if (!failed) return;
    fprintf(stderr, "tflite_bench: %s failed\n", what);
    exit(1);
}

static void bind_api(const char *path) {
    static const struct {
        void **slot;
        const char *name;
    } rows[] = {
        { (void **)&model_create, "TfLiteModelCreateFromFile" },
        { (void **)&options_create, "TfLiteInterpreterOptionsCreate" },
        { (void **)&options_threads, "TfLiteInterpreterOptionsSetNumThreads" },
        { (void **)&interpreter_create, "TfLiteInterpreterCreate" },
        { (void **)&allocate, "TfLiteInterpreterAllocateTensors" },
        { (void **)&resize, "TfLiteInterpreterResizeInputTensor" },
        { (void **)&invoke, "TfLiteInterpreterInvoke" },
        { (void **)&input_tensor, "TfLiteInterpreterGetInputTensor" },
        { (void **)&rank_of, "TfLiteTensorNumDims" },
        { (void **)&dim_of, "TfLiteTensorDim" },
        { (void **)&bytes_of, "TfLiteTensorByteSize" },
        { (void **)&data_of, "TfLiteTensorData" },
        { (void **)&output_tensor, "TfLiteInterpreterGetOutputTensor" },
        { (void **)&type_of, "TfLiteTensorType" },
        { (void **)&grid_of, "TfLiteTensorQuantizationParams" },
    };
    void *library = dlopen(path, RTLD_NOW);
    check(!library, path);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *rows[i].slot = dlsym(library, rows[i].name);
        check(!*rows[i].slot, rows[i].name);
    }
}

/* Fills the input with model_bench's numbers. */
static void fill(void *tensor) {
    const int type = type_of(tensor);
    const struct grid grid = grid_of(tensor);
    const size_t count = bytes_of(tensor) / (type == INT8 ? 1 : sizeof(float));
    unsigned seed = 1;
    check(type != INT8 && type != FLOAT32, "an input of float32 or int8");
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        const float x = (float)(seed >> 8) / (1 << 24) - 0.5f;
        if (type == INT8)
            ((int8_t *)data_of(tensor))[i] =
                (int8_t)fmaxf(-128, fminf(127, rintf(x / grid.scale) + (float)grid.zero_point));
        else
            ((float *)data_of(tensor))[i] = x;
    }
}

static void write_output(void *tensor, const char *path) {
    const int type = type_of(tensor);
    const struct grid grid = grid_of(tensor);
    const size_t count = bytes_of(tensor) / (type == INT8 ? 1 : sizeof(float));
    FILE *file = fopen(path, "wb");
    check(!file, path);
    check(type != INT8 && type != FLOAT32, "an output of float32 or int8");
    for (size_t i = 0; i < count; i++) {
        const float x = type == INT8 ? grid.scale * (float)(((int8_t *)data_of(tensor))[i] - grid.zero_point)
                                     : ((float *)data_of(tensor))[i];
        check(fwrite(&x, sizeof x, 1, file) != 1, path);
    }
    check(fclose(file) != 0, path);
}

static void *open_interpreter(const struct worker *w) {
    void *options = options_create(), *interpreter, *tensor;
    int dims[8], rank;
    options_threads(options, 1);
    interpreter = interpreter_create(w->model, options);
    check(!interpreter, "TfLiteInterpreterCreate");
    tensor = input_tensor(interpreter, 0);
    rank = rank_of(tensor);
    for (int i = 0; i < rank && i < 8; i++)
        dims[i] = i ? dim_of(tensor, i) : w->batch;
    if (rank > 0 && dim_of(tensor, 0) != w->batch) check(resize(interpreter, 0, dims, rank), "resize");
    check(allocate(interpreter), "TfLiteInterpreterAllocateTensors");
    fill(input_tensor(interpreter, 0));
    return interpreter;
}

static void *work(void *arg) {
    struct worker *w = arg;
    void *interpreter = open_interpreter(w);
    long runs = 0;
    double start, start_busy;
    check(invoke(interpreter), "TfLiteInterpreterInvoke");
    start = tare_clock_seconds(), start_busy = tare_clock_cpu_seconds();
    do {
        check(invoke(interpreter), "TfLiteInterpreterInvoke");
        runs++;
    } while (tare_clock_seconds() - start < w->seconds);
    w->took = (tare_clock_seconds() - start) / (double)runs;
    w->busy = (tare_clock_cpu_seconds() - start_busy) / (double)runs;
    return NULL;
}

int main(int argc, char **argv) {
    struct worker workers[MAX_WORKERS];
    int batch = argc > 3 ? atoi(argv[3]) : 1, count = argc > 4 ? atoi(argv[4]) : 1;
    struct rusage usage;
    double rate = 0, busy = 0;
    void *model;
    const char *answers = argc > 6 && strncmp(argv[6], "write:", 6) == 0 ? argv[6] + 6 : NULL;
    if (argc < 3 || count < 1 || count > MAX_WORKERS || batch < 1) {
        fprintf(stderr, "usage: tflite_bench LIBRARY MODEL.tflite [batch [workers [seconds [write:FILE]]]]\n");
        return 2;
    }
    bind_api(argv[1]);
    model = model_create(argv[2]);
    check(!model, argv[2]);
    if (answers) {
        struct worker once = { .model = model, .batch = batch };
        void *interpreter = open_interpreter(&once);
        check(invoke(interpreter), "TfLiteInterpreterInvoke");
        write_output(output_tensor(interpreter, 0), answers);
        return 0;
    }
    for (int i = 0; i < count; i++) {
        workers[i] = (struct worker){ .model = model, .batch = batch, .seconds = argc > 5 ? atof(argv[5]) : 2 };
        check(pthread_create(&workers[i].thread, NULL, work, &workers[i]), "pthread_create");
    }
    for (int i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        rate += batch / workers[i].took;
        busy += 1e3 * workers[i].busy / batch / count;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("batch %d, %d workers: %.3f ms a sample, %.3f of the processor, %.1f samples/s, %.1f MB\n", batch, count,
           1e3 * count / rate, busy, rate, (double)usage.ru_maxrss / 1024);
    return 0;
}
