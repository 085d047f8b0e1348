#!/usr/bin/env bash
# Measures how the time and memory of each command grow with the size of a model, on all shapes of bench/scaling_model.c.
#   bench/scaling.sh BUILD_DIR [--markdown] [SHAPE[=N]…]
# See bench/scaling.py, which this script runs. Exit status: 0 if all exponents are at most 1.1, otherwise 1.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/scaling.py" "$@"
