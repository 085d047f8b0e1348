# The tiers of the tests. tests/tiers.txt lists the tests that take long, one a row: seconds, tier, name, and the paths that a nightly
# test examines. Tests without a row take about a second and belong to the quick tier.
#   quick    every commit: scripts/test.sh, .ci/run
#   release  quick in the Release build with gcc, nightly in others (sanitizers, clang, arm64): long computations by code that shorter
#            tests run, too
#   nightly  scripts/nightly.sh, and a change of what they examine: scripts/test.sh --since COMMIT
# With sanitizers the tests of the command line and of the Python package are all nightly: they start hundreds of processes, and
# unit tests and fuzz tests run the same code.
file(STRINGS ${PROJECT_SOURCE_DIR}/tests/tiers.txt TARE_TIERS REGEX "^[0-9]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tiers.txt)
if(TARE_SANITIZE OR CMAKE_CROSSCOMPILING OR CMAKE_C_COMPILER_ID MATCHES Clang)
  set(TARE_RELEASE_TIER nightly)
else()
  set(TARE_RELEASE_TIER quick)
endif()
# Seconds after which a test counts as hanging: none takes more than a third of it on a slow machine.
set(TARE_TEST_TIMEOUT $<IF:$<OR:$<BOOL:${TARE_SANITIZE}>,$<BOOL:${CMAKE_CROSSCOMPILING}>>,1800,900>)

# tare_test(NAME COMMAND … [ENVIRONMENT …])
# A test with its tier and the variables that all tests have. Exit status 77 is a skip.
function(tare_test name)
  cmake_parse_arguments(ARG "" "" "COMMAND;ENVIRONMENT" ${ARGN})
  set(cost 1)
  set(tier quick)
  foreach(row IN LISTS TARE_TIERS)
    if(row MATCHES "^([0-9]+) +(quick|release|nightly) +${name}( |$)")
      set(cost ${CMAKE_MATCH_1})
      set(tier ${CMAKE_MATCH_2})
    endif()
  endforeach()
  if(TARE_SANITIZE AND name MATCHES "^(cli|python)/")
    set(tier nightly)
  elseif(tier STREQUAL release)
    set(tier ${TARE_RELEASE_TIER})
  endif()
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${TARE_TEST_TIMEOUT} COST ${cost} LABELS ${tier} ENVIRONMENT
    "TARE_TEST_DATA_DEFAULT=${TARE_TEST_DATA};TARE_PROGRAM=${PROJECT_BINARY_DIR}/tare;TARE_BUILD_DIR=${PROJECT_BINARY_DIR};TARE_SOURCE_DIR=${PROJECT_SOURCE_DIR};${ARG_ENVIRONMENT}")
endfunction()
