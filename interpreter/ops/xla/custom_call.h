/* Custom calls that the interpreter computes. */
#ifndef TARE_INTERPRETER_OPS_XLA_CUSTOM_CALL_H
#define TARE_INTERPRETER_OPS_XLA_CUSTOM_CALL_H

/* NULL if the interpreter does not know the target. */
struct tare_custom_call;
const struct tare_custom_call *tare_custom_call_find(const char *target);

#endif
