# shellcheck shell=bash
# Sourced by scripts that build for arm64 on x86-64 (cross-arm64.sh, wheel.sh): `arm64_root` installs Debian's cross compiler and qemu
# where they are missing, and unpacks the libraries of arm64, Python and NumPy into build-arm64/root ($libraries); nothing else is installed.
# Where no package source can be reached: one line, and exit 77. A download that breaks off is a failure. $root: the tree.
libraries=$root/build-arm64/root
arm64_packages=(libc6-dev libgcc-12-dev libprotobuf-c-dev zlib1g-dev libsnappy-dev libbrotli-dev libisal-dev libjansson-dev libjpeg-dev
    libpng-dev libgif-dev libpcre2-dev libopenblas-dev libutf8proc2 libcmocka-dev libpython3.11-dev python3.11-minimal python3-numpy)

skip() {
    echo "arm64: skipped, $1"
    exit 77
}

has_tools() { command -v aarch64-linux-gnu-gcc >/dev/null && command -v qemu-aarch64-static >/dev/null; }

install_tools() {
    local as_root=()
    [ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
    "${as_root[@]}" apt-get update -qq -o APT::Update::Error-Mode=any || skip "there is no cross compiler, and apt has no package lists"
    echo "installing: gcc-aarch64-linux-gnu qemu-user-static"
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends \
        gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static >/dev/null
}

# An apt of its own state, so that the packages of this machine stay as they are: many -dev packages exist for one architecture only.
unpack_libraries() {
    local apt=$root/build-arm64/apt package
    [ "$(cat "$libraries/complete" 2>/dev/null)" != "${arm64_packages[*]}" ] || return 0
    rm -rf "$apt" "$libraries"
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$libraries"
    : >"$apt/state/status"
    cat >"$apt/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "$(id -un)";
APT::Install-Recommends "false";
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
CONF
    APT_CONFIG=$apt/apt.conf apt-get update -qq -o APT::Update::Error-Mode=any || skip "apt has no package lists of arm64"
    APT_CONFIG=$apt/apt.conf apt-get install -y -qq --download-only "${arm64_packages[@]}" >/dev/null
    for package in "$apt"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$libraries"
    done
    # What the installation of the packages would link.
    ln -sf openblas-pthread/libopenblas.so.0 "$libraries/usr/lib/aarch64-linux-gnu/libopenblas.so.0"
    ln -sf openblas-pthread/libblas.so.3 "$libraries/usr/lib/aarch64-linux-gnu/libblas.so.3"
    ln -sf openblas-pthread/liblapack.so.3 "$libraries/usr/lib/aarch64-linux-gnu/liblapack.so.3"
    rm -rf "$apt"
    echo "${arm64_packages[*]}" >"$libraries/complete"
}

arm64_root() {
    [ "$(uname -m)" = x86_64 ] || skip "this is not an x86-64 machine"
    has_tools || install_tools
    unpack_libraries
}
# For CMake, with the libraries that arm64_root unpacked.
arm64_options=("-DTARE_ARM64_ROOT=$libraries" "-DCMAKE_TOOLCHAIN_FILE=$root/cmake/aarch64-linux-gnu.cmake")
