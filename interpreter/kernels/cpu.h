/* CPU dispatch of the fast kernels. The library is built for the baseline of x86-64 or arm64; kernels for other
 * instruction sets have target attributes and are selected here at run time. Every variant of a kernel computes the
 * same bits. */
#ifndef TARE_INTERPRETER_KERNELS_CPU_H
#define TARE_INTERPRETER_KERNELS_CPU_H

#include <stdbool.h>

struct tare_strbuf;

/* A level has the instructions of all lower ones, except that AVX-VNNI is an extension of AVX2 alone: processors with
 * AVX-512 may lack it. Kernels that use it are chosen with `level == TARE_CPU_AVX_VNNI`, all others with `level >=`. */
enum tare_cpu_level {
    TARE_CPU_PLAIN,    /* portable C */
    TARE_CPU_NEON,     /* arm64; the others are x86-64's */
    TARE_CPU_AVX2,     /* AVX2 and FMA */
    TARE_CPU_AVX_VNNI, /* AVX2, FMA and AVX-VNNI: vpdpbusd and vpdpwssd of 256 bits */
    TARE_CPU_AVX512,   /* F, BW, VL, DQ */
    TARE_CPU_VNNI,     /* AVX-512 with VNNI */
    TARE_CPU_AMX,      /* the same with AMX: tiles of int8, where the operating system permits their use */
};

/* The highest level that this machine has; the environment variable TARE_CPU (a name of tare_cpu_level_name) lowers it
 * to that level, or to the next lower one that the machine has. Constant from the first call on, which requests the use
 * of the tile registers for the process unless TARE_CPU excludes AMX: Linux refuses it where a thread has a signal
 * stack that is too small for them. */
enum tare_cpu_level tare_cpu_level(void);
/* True if the level is not above tare_cpu_level() and the machine has it. */
bool tare_cpu_has_level(enum tare_cpu_level level);
/* The lowest level above `level` that the machine has; a value above tare_cpu_level() if there is none. All levels:
 * for (level = TARE_CPU_PLAIN; level <= tare_cpu_level(); level = tare_cpu_next_level(level)). */
enum tare_cpu_level tare_cpu_next_level(enum tare_cpu_level level);
/* True for a name that TARE_CPU may have. */
bool tare_cpu_is_level_name(const char *name);
/* "plain", "avx2", … */
const char *tare_cpu_level_name(enum tare_cpu_level level);
/* All names: "plain, avx2, … or amx". */
void tare_cpu_put_level_names(struct tare_strbuf *out);

#if defined(__x86_64__)
#define TARE_KERNELS_X86 1
#define TARE_TARGET_AVX2 __attribute__((target("avx2,fma")))
#define TARE_TARGET_AVX512 __attribute__((target("avx2,fma,prfchw,avx512f,avx512bw,avx512vl,avx512dq")))
#define TARE_TARGET_VNNI __attribute__((target("avx2,fma,prfchw,avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
#else
#define TARE_KERNELS_X86 0
#endif

/* Loops that the compiler vectorizes, written once: FORM(suffix, target) defines a function name_suffix with the
 * attribute `target`, and TARE_FORM(level, name) is that of a level. On arm64 the baseline has the vectors of NEON. */
#if TARE_KERNELS_X86
#define TARE_EVERY_FORM(FORM)                                                                                          \
    FORM(plain, )                                                                                                      \
    FORM(avx2, TARE_TARGET_AVX2)                                                                                       \
    FORM(avx512, TARE_TARGET_AVX512)
#define TARE_FORM(level, name)                                                                                         \
    ((level) >= TARE_CPU_AVX512 ? name##_avx512 : (level) >= TARE_CPU_AVX2 ? name##_avx2 : name##_plain)
#else
#define TARE_EVERY_FORM(FORM) FORM(plain, )
#define TARE_FORM(level, name) ((void)(level), name##_plain)
#endif

/* Loops over registers must be fully unrolled; otherwise the accumulators are spilled to memory. clang optimizes an
 * inline function before its constant arguments are known: `unroll` alone would unroll its loops partially, `full`
 * keeps them until they are. */
#if defined(__clang__)
#define TARE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TARE_UNROLL _Pragma("GCC unroll 16")
#endif
/* Before a loop whose iterations are independent (output and input may be the same memory): the vectorised loop then
 * needs no overlap check. clang's equivalent warns about loops that it does not vectorise. */
#if defined(__clang__)
#define TARE_INDEPENDENT
#else
#define TARE_INDEPENDENT _Pragma("GCC ivdep")
#endif
#define TARE_ALWAYS_INLINE static inline __attribute__((always_inline))

#endif
