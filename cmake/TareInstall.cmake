# What `cmake --install` installs: the program with its pages and documents, libtare with its headers (docs/library.md), and
# what a library of ops is built with (docs/custom-ops.md), which links nothing of tare's.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
file(STRINGS ${PROJECT_SOURCE_DIR}/include/tare/version.h header_version REGEX "define TARE_VERSION \"")
if(NOT header_version MATCHES "\"${PROJECT_VERSION}\"")
  message(FATAL_ERROR "include/tare/version.h says another version than CMakeLists.txt (${PROJECT_VERSION})")
endif()

if(TARE_STATIC)
  # What has no archive (ISA-L) goes beside the program, which looks there first.
  set_target_properties(tare PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/tare")
  pkg_get_variable(isal_folder libisal libdir)
  file(GLOB isal_library ${isal_folder}/libisal.so.[0-9])
  file(REAL_PATH "${isal_library}" isal_file)
  get_filename_component(isal_name "${isal_library}" NAME)
  install(FILES ${isal_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/tare RENAME ${isal_name} COMPONENT tare)
  install(FILES /usr/share/doc/libisal2/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright.libisal COMPONENT tare OPTIONAL)
  # So do OpenBLAS and utf8proc, which ops load at run time, with what it is linked with: DT_RPATH, unlike DT_RUNPATH, is
  # also searched for the libraries that a loaded library needs.
  target_link_options(tare PRIVATE -Wl,--disable-new-dtags)
  foreach(name libopenblas.so.0 libgfortran.so.5 libquadmath.so.0 libgcc_s.so.1 libutf8proc.so.2)
    find_file(file_${name} ${name} PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /lib/${CMAKE_LIBRARY_ARCHITECTURE} REQUIRED)
    file(REAL_PATH "${file_${name}}" library_file)
    install(FILES ${library_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/tare RENAME ${name} COMPONENT tare)
  endforeach()
  foreach(package libopenblas0-pthread libgfortran5 libutf8proc2)
    install(FILES /usr/share/doc/${package}/copyright DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright.${package} COMPONENT tare OPTIONAL)
  endforeach()
  install(FILES ${PROJECT_SOURCE_DIR}/include/tare/op.h ${PROJECT_SOURCE_DIR}/include/tare/dtype.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tare COMPONENT tare)
else()
  include(TareLibrary)
endif()
install(TARGETS tare RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tare)
if(TARGET tare_mpi) # cli/team.c looks for it there
  install(TARGETS tare_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tare COMPONENT mpi)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tare)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT tare)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tare)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples/c ${PROJECT_SOURCE_DIR}/examples/glyphs
        DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT tare PATTERN weights EXCLUDE PATTERN "*.md" EXCLUDE
        PATTERN make_savedmodel.c EXCLUDE PATTERN train.py EXCLUDE PATTERN __pycache__ EXCLUDE)
include(TarePages)
include(TarePackage)
