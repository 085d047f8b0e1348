/* A library that says its ABI and has no entry point. */
#include <tare/op.h>

uint32_t tare_op_library_abi(void) {
    return TARE_OP_ABI;
}
