# Debian's cross compiler for arm64 with the libraries of a folder, TARE_ARM64_ROOT, that scripts/cross-arm64.sh fills, and qemu
# for programs that the build or the tests run.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TARE_ARM64_ROOT)
set(CMAKE_SYSROOT ${TARE_ARM64_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-L;${TARE_ARM64_ROOT})
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${TARE_ARM64_ROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${TARE_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${TARE_ARM64_ROOT}/usr/share/pkgconfig)
