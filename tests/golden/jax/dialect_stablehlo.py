"""A module in the bytecode of the dialect stablehlo, which is not a portable artifact, for tests/cli/new_user_test.sh: run with
JAX (tests/judges/README.md). Writes dialect_stablehlo.mlirbc beside this script."""
import os

import jax
import jax.numpy as jnp

module = jax.jit(jnp.tanh).lower(jax.ShapeDtypeStruct((2,), jnp.float32)).compiler_ir("stablehlo")
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "dialect_stablehlo.mlirbc"), "wb") as out:
    module.operation.write_bytecode(out)
