/* Elementary functions of eight floats: tare_exp_v8 and so on. */
#ifndef TARE_INTERPRETER_KERNELS_SIMD_FUNCTIONS_V8_H
#define TARE_INTERPRETER_KERNELS_SIMD_FUNCTIONS_V8_H

#include "interpreter/kernels/simd/v8.h"

#if TARE_KERNELS_V8
#define VEC tare_v8
#define IVEC tare_i8
#define V(name) tare_v8_##name
#define FUNCTION(name) tare_##name##_v8
#define TARGET TARE_TARGET_V8
#include "interpreter/kernels/simd/functions.h"
#undef VEC
#undef IVEC
#undef V
#undef FUNCTION
#undef TARGET
#endif

#endif
