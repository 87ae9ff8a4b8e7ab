# Every library npumesh stands on, found once. Debian names: launch/install_deps.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(MPI REQUIRED COMPONENTS C)
# Which MPI, by its mpirun: tests, `npumesh launch` and packages speak its words.
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpi_text ERROR_QUIET)
if(mpi_text MATCHES "(Open MPI|OpenRTE)[^0-9]*([0-9.]+)")
  set(NPUMESH_MPI_NAME "Open MPI")
  set(NPUMESH_MPI_VERSION ${CMAKE_MATCH_2})
elseif(mpi_text MATCHES "HYDRA build details:[^0-9]*([0-9.]+)")
  set(NPUMESH_MPI_NAME "MPICH")
  set(NPUMESH_MPI_VERSION ${CMAKE_MATCH_1})
else()
  set(NPUMESH_MPI_NAME "MPI")
  set(NPUMESH_MPI_VERSION ${MPI_C_VERSION})
endif()
get_filename_component(NPUMESH_MPIEXEC "${MPIEXEC_EXECUTABLE}" NAME)
find_package(Protobuf REQUIRED)
# Debian's libonnx-dev: generated messages and their library. It has no CMake package.
find_path(ONNX_INCLUDE_DIR onnx/onnx_pb.h REQUIRED)
find_library(ONNX_PROTO_LIBRARY onnx_proto REQUIRED)
add_library(npumesh_onnx_proto INTERFACE)
add_library(npumesh::npumesh_onnx_proto ALIAS npumesh_onnx_proto)
target_compile_definitions(npumesh_onnx_proto INTERFACE
  $<BUILD_INTERFACE:ONNX_ML=1> $<BUILD_INTERFACE:ONNX_NAMESPACE=onnx>)
# SYSTEM: warnings in generated headers are not ours to mend.
target_include_directories(npumesh_onnx_proto SYSTEM INTERFACE
  $<BUILD_INTERFACE:${ONNX_INCLUDE_DIR}>)
target_link_libraries(npumesh_onnx_proto INTERFACE
  $<BUILD_INTERFACE:${ONNX_PROTO_LIBRARY}> $<INSTALL_INTERFACE:onnx_proto> protobuf::libprotobuf)
set_property(GLOBAL APPEND PROPERTY NPUMESH_LIBRARIES npumesh_onnx_proto)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(dnnl REQUIRED CONFIG)
find_package(HWY REQUIRED CONFIG NAMES hwy)
find_package(nlohmann_json REQUIRED)
# Compiled into the one file that uses it.
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
