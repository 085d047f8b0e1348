# Packages: 'cpack -G DEB' and 'cpack -G TGZ' in the build folder; scripts/release.sh makes all that a release has. The
# package tare-mpi is of its own, so that tare does not depend on Open MPI (cli/team.c loads it only under mpirun).
set(CPACK_PACKAGE_NAME tare)
set(CPACK_PACKAGE_VENDOR tare)
set(CPACK_PACKAGE_CONTACT "tare developers <tare@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "calibrates, quantizes and converts TensorFlow models for Cloud TPU")
set(CPACK_PACKAGE_DESCRIPTION
    "Counts what values the tensors of a TensorFlow 2 SavedModel take over representative samples, shows what each \
quantization method costs in accuracy, and writes the quantized model that a Cloud TPU runs. Needs neither \
TensorFlow nor Python.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL tare)
if(TARGET tare_mpi)
  list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TARE_PACKAGE_NAME tare)
set(CPACK_DEBIAN_MPI_PACKAGE_NAME tare-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "tare (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_MPI_DESCRIPTION "calibration on many machines, by mpirun")
include(CPack)
