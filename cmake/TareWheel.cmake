# What a wheel contains runs with glibc 2.28, and finds other libraries in the folder lib of the package: tare/bin/tare, tare/lib/libtare.so,
# tare/_native.abi3.so (python/tare_build.py).
function(tare_for_wheel target rpath)
  add_library(${target}_glibc OBJECT ${PROJECT_SOURCE_DIR}/cmake/glibc_2_28.c)
  target_compile_options(${target}_glibc PRIVATE -fno-builtin -Wno-builtin-declaration-mismatch)
  target_compile_definitions(${target}_glibc PRIVATE ${ARGN})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_glibc>)
  # Threads and dlopen were in libraries of their own, which a newer linker takes for empty.
  target_link_options(${target} PRIVATE -Wl,--disable-new-dtags,--no-as-needed,-l:libpthread.so.0,-l:libdl.so.2,--as-needed)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "${rpath}")
endfunction()
set_property(TARGET tare_shared PROPERTY VERSION) # wheels have no symbolic links: the soname is libtare.so
set_property(TARGET tare_shared PROPERTY SOVERSION)
tare_for_wheel(tare "$ORIGIN/../lib" TARE_PROGRAM)
tare_for_wheel(tare_shared "$ORIGIN")
tare_for_wheel(tare_python "$ORIGIN/lib")
