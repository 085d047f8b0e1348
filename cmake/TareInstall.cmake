# What `cmake --install` installs: the program with its pages and documents, and what a library of ops is built with
# (docs/custom-ops.md). tare.pc has
# include flags only: a library links nothing of tare's.
include(GNUInstallDirs)
# tare.pc finds the headers from where it lies itself, so that an installed tree can be moved; folders that were set to
# absolute paths stay where they are.
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(TARE_PC_INCLUDEDIR ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
  file(RELATIVE_PATH to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(TARE_PC_INCLUDEDIR "\${pcfiledir}/${to_prefix}${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/tare.pc.in ${PROJECT_BINARY_DIR}/tare.pc @ONLY)
install(TARGETS tare RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tare)
if(TARGET tare_mpi) # cli/team.c looks for it there
  install(TARGETS tare_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tare COMPONENT mpi)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/include/tare/op.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tare COMPONENT tare)
install(FILES ${PROJECT_BINARY_DIR}/tare.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT tare)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tare)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT tare)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT tare)
include(TarePages)
include(TarePackage)
