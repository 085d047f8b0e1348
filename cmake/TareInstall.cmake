# What `cmake --install` installs: the program, and what a library of ops is built with (docs/custom-ops.md). tare.pc has
# include flags only: a library links nothing of tare's.
include(GNUInstallDirs)
# from ${libdir}/pkgconfig up to the prefix; an absolute libdir has no such way
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR} OR IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  message(FATAL_ERROR "CMAKE_INSTALL_LIBDIR and CMAKE_INSTALL_INCLUDEDIR must be relative to the prefix")
endif()
file(RELATIVE_PATH TARE_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tare.pc.in ${PROJECT_BINARY_DIR}/tare.pc @ONLY)
install(TARGETS tare RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET tare_mpi) # cli/team.c looks for it there
  install(TARGETS tare_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tare)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/include/tare/op.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tare)
install(FILES ${PROJECT_BINARY_DIR}/tare.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
