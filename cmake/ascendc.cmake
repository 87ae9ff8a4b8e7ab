# Read by projects that would compile kernels for the cores of an NPU: include(${ASCENDC_CMAKE_DIR}/ascendc.cmake).
# npumesh compiles no such code. A project that calls none of these functions builds as it is; in the others
# host functions stand in for kernels, when the environment or the cache names their files:
#
#   NPUMESH_HOST_KERNELS="FILE FILE..." cmake ...
#
# The functions have the names and parameters by which the project launches its kernels.
include_guard(GLOBAL)
get_filename_component(NPUMESH_PREFIX ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)

# ascendc_library(<name> STATIC|SHARED <kernel files>...): a library of the host functions. What links it has the
# headers and libacl_rt.
function(ascendc_library name type)
  set(files "${NPUMESH_HOST_KERNELS}")
  if(NOT files)
    string(REPLACE " " ";" files "$ENV{NPUMESH_HOST_KERNELS}")
  endif()
  if(NOT files)
    message(FATAL_ERROR "ascendc_library(${name}): npumesh compiles no code for the cores of an NPU; write host "
                        "functions of the same names, and name their files in NPUMESH_HOST_KERNELS")
  endif()
  add_library(${name} ${type} ${files})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} PUBLIC ${NPUMESH_PREFIX}/include)
  target_link_libraries(${name} PUBLIC ${NPUMESH_PREFIX}/lib64/libacl_rt.so)
endfunction()

# Kernels in a file that a program loads when it runs: there is nothing that could run them.
function(ascendc_fatbin_library name)
  message(FATAL_ERROR "ascendc_fatbin_library(${name}): npumesh loads no code for the cores of an NPU")
endfunction()

# Settings of the compiler of kernels, which there is not.
function(ascendc_include_directories name)
endfunction()
function(ascendc_compile_definitions name)
endfunction()
function(ascendc_compile_options name)
endfunction()
