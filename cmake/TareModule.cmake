# Warnings and sanitizers are target-scoped: they hold for our code, not for generated code.
add_library(tare_flags INTERFACE)
target_compile_definitions(tare_flags INTERFACE _GNU_SOURCE)
target_compile_options(tare_flags INTERFACE -Wall -Wextra -Wshadow -Wpointer-arith -Wstrict-prototypes
                                            -Wmissing-prototypes -Wvla -fno-math-errno -ffp-contract=off)
# False alarms of one compiler, under names that the other does not know.
include(CheckCCompilerFlag)
foreach(warning format-truncation maybe-uninitialized)
  check_c_compiler_flag(-W${warning} TARE_HAS_WARNING_${warning}) # gcc accepts any -Wno-
  if(TARE_HAS_WARNING_${warning})
    target_compile_options(tare_flags INTERFACE -Wno-${warning})
  endif()
endforeach()
# gcc zeroes structs of more than 64 bytes with `rep stos`, whose start takes longer than the stores: tensors have 144
# bytes, and each step of a plan zeroes several.
check_c_compiler_flag(-mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign TARE_HAS_MEMSET_STRATEGY)
function(tare_zero_by_stores)
  if(TARE_HAS_MEMSET_STRATEGY)
    set_property(SOURCE ${ARGN} APPEND PROPERTY
                 COMPILE_OPTIONS -mmemset-strategy=unrolled_loop:256:noalign,libcall:-1:noalign)
  endif()
endfunction()
if(TARE_WERROR)
  target_compile_options(tare_flags INTERFACE -Werror)
endif()
if(TARE_ARENA_DEBUG)
  target_compile_definitions(tare_flags INTERFACE TARE_ARENA_DEBUG=1)
endif()
if(TARE_FUZZ) # coverage for libFuzzer in all of our code; tests/CMakeLists.txt links the driver
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(TARE_SANITIZE OR TARE_FUZZ)
  # -O2 takes minutes for a vectorized kernel and twice the time for other files, without faster tests. Reports show
  # lines, for which -g1 is enough; with -g the test programs take 20 GB.
  set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O1 -g1")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
endif()

# tare_module(NAME DEPENDS module... LIBRARIES imported-target...)
# Builds every .c file of the current folder and its subfolders into the static library tare_NAME. Headers are
# included as "NAME/file.h". The glob is checked at each build, so a new file needs no edit here.
function(tare_module name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LIBRARIES;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  foreach(file IN LISTS ARG_EXCLUDE)
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  if(NOT sources)
    add_library(tare_${name} INTERFACE)
    set(scope INTERFACE)
  else()
    add_library(tare_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(tare_${name} PRIVATE tare_flags)
  endif()
  target_include_directories(tare_${name} ${scope} ${PROJECT_SOURCE_DIR})
  foreach(module IN LISTS ARG_DEPENDS)
    target_link_libraries(tare_${name} ${scope} tare_${module})
  endforeach()
  target_link_libraries(tare_${name} ${scope} ${ARG_LIBRARIES})
endfunction()
