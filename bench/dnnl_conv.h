/* Convolutions by oneDNN (Debian's libdnnl-dev, its C API of version 2), for comparison: bias, ReLU and, for int8,
 * scales per channel are fused, and oneDNN chooses all memory layouts. Without the library (TARE_HAVE_DNNL undefined)
 * nothing can be opened. */
#ifndef TARE_BENCH_DNNL_CONV_H
#define TARE_BENCH_DNNL_CONV_H

#include "interpreter/kernels/conv.h"

#include <stdbool.h>

#ifdef TARE_HAVE_DNNL

#include <dlfcn.h>
#include <dnnl.h>
#include <stdlib.h>
#include <string.h>

enum { DNNL_CONV_ARGS = 4 };

struct dnnl_conv {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t args[DNNL_CONV_ARGS]; /* source, weights, bias, destination */
};

/* One thread, and at most the instructions of `level` unless ONEDNN_MAX_CPU_ISA is set. Call it before anything else of
 * oneDNN. */
static void dnnl_conv_begin(enum tare_cpu_level level) {
    union {
        void *object;
        void (*function)(int);
    } set = { dlsym(RTLD_DEFAULT, "omp_set_num_threads") };
    if (set.object) set.function(1);
    if (!getenv("ONEDNN_MAX_CPU_ISA"))
        dnnl_set_max_cpu_isa(level < TARE_CPU_AVX512 ? dnnl_cpu_isa_avx2
                             : level < TARE_CPU_AMX  ? dnnl_cpu_isa_avx512_core_vnni
                                                     : dnnl_cpu_isa_avx512_core_amx);
}

static bool dnnl_conv_describe(dnnl_convolution_desc_t *out, const struct tare_conv *conv, bool is_int8) {
    const dnnl_data_type_t type = is_int8 ? dnnl_s8 : dnnl_f32, sums = is_int8 ? dnnl_s32 : dnnl_f32;
    const bool grouped = conv->groups > 1;
    const dnnl_dims_t source = { conv->batch, conv->in_channels, conv->in[1], conv->in[2] };
    const dnnl_dims_t result = { conv->batch, conv->out_channels, conv->out[1], conv->out[2] };
    const dnnl_dims_t dense = { conv->out_channels, conv->in_channels, conv->kernel[1], conv->kernel[2] };
    const dnnl_dims_t parts = { conv->groups, conv->out_channels / conv->groups, conv->in_channels / conv->groups,
                                conv->kernel[1], conv->kernel[2] };
    const dnnl_dims_t bias = { conv->out_channels }, strides = { conv->stride[1], conv->stride[2] };
    const dnnl_dims_t dilations = { conv->dilation[1] - 1, conv->dilation[2] - 1 };
    const dnnl_dims_t before = { conv->pad[1], conv->pad[2] };
    dnnl_dims_t after;
    dnnl_memory_desc_t mds[DNNL_CONV_ARGS];
    for (int i = 0; i < 2; i++)
        after[i] = (conv->out[i + 1] - 1) * conv->stride[i + 1] + (conv->kernel[i + 1] - 1) * conv->dilation[i + 1] +
                   1 - conv->in[i + 1] - conv->pad[i + 1];
    return dnnl_memory_desc_init_by_tag(&mds[0], 4, source, type, dnnl_format_tag_any) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&mds[1], grouped ? 5 : 4, grouped ? parts : dense, type, dnnl_format_tag_any) ==
               dnnl_success &&
           dnnl_memory_desc_init_by_tag(&mds[2], 1, bias, sums, dnnl_x) == dnnl_success &&
           dnnl_memory_desc_init_by_tag(&mds[3], 4, result, type, dnnl_format_tag_any) == dnnl_success &&
           dnnl_dilated_convolution_forward_desc_init(out, dnnl_forward_inference, dnnl_convolution_direct, &mds[0],
                                                      &mds[1], &mds[2], &mds[3], strides, dilations, before,
                                                      after) == dnnl_success;
}

static bool dnnl_conv_set_epilogue(dnnl_primitive_attr_t attr, const struct tare_conv *conv, bool is_int8) {
    enum { MOST_CHANNELS = 4096 };
    static float scales[MOST_CHANNELS];
    dnnl_post_ops_t ops;
    if (conv->out_channels > MOST_CHANNELS || dnnl_post_ops_create(&ops) != dnnl_success) return false;
    for (int64_t i = 0; i < conv->out_channels; i++)
        scales[i] = 1e-3f;
    bool good = dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0) == dnnl_success &&
                dnnl_primitive_attr_set_post_ops(attr, ops) == dnnl_success;
    if (good && is_int8)
        good = dnnl_primitive_attr_set_output_scales(attr, conv->out_channels, 1 << 1, scales) == dnnl_success;
    dnnl_post_ops_destroy(ops);
    return good;
}

/* Fills the arrays with small numbers. */
static bool dnnl_conv_allocate(struct dnnl_conv *d, const_dnnl_primitive_desc_t description) {
    static const struct {
        dnnl_query_t query;
        int arg;
    } arrays[DNNL_CONV_ARGS] = { { dnnl_query_src_md, DNNL_ARG_SRC },
                                 { dnnl_query_weights_md, DNNL_ARG_WEIGHTS },
                                 { dnnl_query_weights_md, DNNL_ARG_BIAS },
                                 { dnnl_query_dst_md, DNNL_ARG_DST } };
    for (int i = 0; i < DNNL_CONV_ARGS; i++) {
        const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(description, arrays[i].query, i == 2);
        void *data;
        d->args[i].arg = arrays[i].arg;
        if (!md || dnnl_memory_create(&d->args[i].memory, md, d->engine, DNNL_MEMORY_ALLOCATE) != dnnl_success ||
            dnnl_memory_get_data_handle(d->args[i].memory, &data) != dnnl_success)
            return false;
        unsigned char *bytes = data;
        const size_t size = dnnl_memory_desc_get_size(md);
        for (size_t k = 0; k < size; k++)
            bytes[k] = (unsigned char)(k % 4 == 3 ? 0x3e : k * 37);
    }
    return true;
}

/* False if oneDNN has no such convolution. */
static bool dnnl_conv_open(struct dnnl_conv *d, const struct tare_conv *conv, bool is_int8) {
    dnnl_convolution_desc_t described;
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_attr_t attr = NULL;
    memset(d, 0, sizeof *d);
    const bool good =
        dnnl_engine_create(&d->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags) == dnnl_success &&
        dnnl_conv_describe(&described, conv, is_int8) && dnnl_primitive_attr_create(&attr) == dnnl_success &&
        dnnl_conv_set_epilogue(attr, conv, is_int8) &&
        dnnl_primitive_desc_create(&description, &described, attr, d->engine, NULL) == dnnl_success &&
        dnnl_conv_allocate(d, description) && dnnl_primitive_create(&d->primitive, description) == dnnl_success;
    if (description) dnnl_primitive_desc_destroy(description);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return good;
}

static void dnnl_conv_run(const struct dnnl_conv *d) {
    dnnl_primitive_execute(d->primitive, d->stream, DNNL_CONV_ARGS, d->args);
    dnnl_stream_wait(d->stream);
}

static void dnnl_conv_close(struct dnnl_conv *d) {
    if (d->primitive) dnnl_primitive_destroy(d->primitive);
    for (int i = 0; i < DNNL_CONV_ARGS; i++)
        if (d->args[i].memory) dnnl_memory_destroy(d->args[i].memory);
    if (d->stream) dnnl_stream_destroy(d->stream);
    if (d->engine) dnnl_engine_destroy(d->engine);
}

#else

struct dnnl_conv {
    int none;
};
static void dnnl_conv_begin(enum tare_cpu_level level) {
    (void)level;
}
static bool dnnl_conv_open(struct dnnl_conv *d, const struct tare_conv *conv, bool is_int8) {
    (void)d, (void)conv, (void)is_int8;
    return false;
}
static void dnnl_conv_run(const struct dnnl_conv *d) {
    (void)d;
}
static void dnnl_conv_close(struct dnnl_conv *d) {
    (void)d;
}

#endif

#endif
