#!/usr/bin/env bash
# Installs the Debian packages that the build and the tests need and that are missing. Does nothing the second time. --program: only
# what the program is built from. --dev: also what some tests try where it is there (shells, NumPy, C++) and what CONTRIBUTING.md and
# .ci/run name.
set -euo pipefail

packages=(
    gcc cmake ninja-build pkg-config
    protobuf-c-compiler libprotobuf-c-dev # wire messages
    libopenblas-dev                       # linear algebra (loaded at run time); a peak for the benchmarks
    zlib1g-dev                            # GZIP and ZLIB records
    libsnappy-dev                         # snappy blocks in checkpoints found in the wild
    libbrotli-dev                         # chunked models (saved_model.cpb)
    libisal-dev                           # CRC-32C
    libjansson-dev                        # JSON
    libjpeg-dev libpng-dev libgif-dev     # images in tf.Example and image ops
    libpcre2-dev                          # regular expressions of string ops and recipes
    libutf8proc2                          # normalization forms (loaded at run time)
)
[ "${1:-}" = --program ] || packages+=(
    libopenmpi-dev openmpi-bin            # calibration under mpirun, in a library of its own
    libcmocka-dev                         # tests
    dpkg-dev file git                     # packages: cpack finds the libraries of the program; sources of a release
    python3 python3-numpy                 # tests: independent readers of the JSON and images that commands write
    python3-protobuf protobuf-compiler    # tests: the independent checker of SavedModels
    python3-dev python3-pip python3-venv  # the Python package and its installation
)
[ "${1:-}" != --dev ] || packages+=(
    zsh fish                 # completions are tried in them
    groff g++                # manual pages, headers in C++
    clang clang-format clang-tidy valgrind
    libclang-rt-14-dev       # libFuzzer and the sanitizers of clang: scripts/fuzz.sh
    debootstrap              # scripts/smoke-test.sh
    libdnnl-dev              # bench/conv_bench: convolutions to compare with
    mypy python3-pandas python3-tqdm ipython3 # types, DataFrames, progress bars, notebooks of the Python package
)

missing=()
for package in "${packages[@]}"; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
# "Need to get 12.3 MB of archives." and "After this operation, 45.6 MB of additional disk space will be used."
LC_ALL=C apt-get install --assume-no --no-install-recommends "${missing[@]}" | grep -E '^(Need to get|After this operation)' || true
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
