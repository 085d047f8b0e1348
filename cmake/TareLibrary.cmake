# libtare for other programs, installed: headers, libraries, tare.pc, CMake package. Of a TARE_STATIC tree there is the program alone.
# tare.pc finds headers and library from where it lies itself, so that an installed tree can be moved; folders that were set to
# absolute paths stay where they are.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(TARE_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
  set(TARE_PC_LIBDIR ${CMAKE_INSTALL_FULL_LIBDIR})
else()
  file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(TARE_PC_INCLUDEDIR "\${pcfiledir}/${to_prefix}${CMAKE_INSTALL_INCLUDEDIR}")
  set(TARE_PC_LIBDIR "\${pcfiledir}/${to_prefix}${CMAKE_INSTALL_LIBDIR}")
endif()
# What a program that links libtare.a links, too. By name and not as Requires.private: a library of ops is built where the
# development files of these are not installed.
set(TARE_STATIC_LIBRARIES protobuf-c jansson isal z jpeg png gif pcre2-8 snappy)
if(BROTLI_FOUND)
  list(APPEND TARE_STATIC_LIBRARIES brotlidec)
endif()
list(APPEND TARE_STATIC_LIBRARIES pthread dl m)
list(TRANSFORM TARE_STATIC_LIBRARIES PREPEND -l OUTPUT_VARIABLE TARE_PC_LIBS)
list(JOIN TARE_PC_LIBS " " TARE_PC_LIBS)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tare.pc.in ${PROJECT_BINARY_DIR}/tare.pc @ONLY)
set(TARE_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/tare)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tareConfig.cmake.in ${PROJECT_BINARY_DIR}/tareConfig.cmake
                              INSTALL_DESTINATION ${TARE_CMAKEDIR} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tareConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(TARGETS tare_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tare)
install(FILES ${PROJECT_BINARY_DIR}/libtare.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tare)
install(FILES ${PROJECT_BINARY_DIR}/tareConfig.cmake ${PROJECT_BINARY_DIR}/tareConfigVersion.cmake
        DESTINATION ${TARE_CMAKEDIR} COMPONENT tare)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tare DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT tare)
install(FILES ${PROJECT_BINARY_DIR}/tare.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT tare)
