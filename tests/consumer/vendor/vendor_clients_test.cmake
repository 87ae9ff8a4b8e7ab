# Installs NPUMESH_BUILD into an empty folder, builds every client there by their Makefile, and runs
# each under mpirun with 2 and 4 ranks and as 4 threads. Everything happens below SCRATCH.
cmake_minimum_required(VERSION 3.22)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE exit_code OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT exit_code EQUAL 0)
    message(FATAL_ERROR "${what} failed (${exit_code}):\n${output}")
  endif()
endfunction()

string(REPLACE "|" ";" MPIRUN "${MPIRUN}")
file(REMOVE_RECURSE ${SCRATCH})
run("install" ${CMAKE_COMMAND} --install ${NPUMESH_BUILD} --prefix ${SCRATCH}/prefix)
run("make" ${MAKE} -C ${CLIENTS} ASCEND_DIR=${SCRATCH}/prefix BIN_DIR=${SCRATCH}/bin
    MPI_CXX=${MPI_CXX})

set(ENV{NPUMESH_HBM_SIZE} 16M)
set(ENV{HCCL_CONNECT_TIMEOUT} 60)
file(GLOB clients ${SCRATCH}/bin/*)
foreach(client ${clients})
  foreach(ranks 2 4)
    run("${client} on ${ranks} ranks" ${MPIRUN} -n ${ranks} ${client})
  endforeach()
  run("${client} on threads" ${CMAKE_COMMAND} -E env NPUMESH_DEVICE_COUNT=4 ${client} threads)
endforeach()

# Without an rpath a program finds the libraries through set_env.sh, also of a folder that was moved.
file(RENAME ${SCRATCH}/prefix ${SCRATCH}/moved)
# The other names are those of link lines of the vendor's samples.
run("link without an rpath" ${MPI_CXX} -std=c++11 ${CLIENTS}/allreduce.cc -o ${SCRATCH}/no_rpath
    -I${SCRATCH}/moved/include -L${SCRATCH}/moved/lib64 -lhccl -lhcomm -lascendcl
    -lacl_tdt_channel -lacl_tdt_queue -lascend_dump -lacl_dvpp -lnnopbase -lopapi -pthread)
run("set_env.sh" bash -euc ". ${SCRATCH}/moved/set_env.sh && test -f $ASCEND_HOME_PATH/include/acl/acl.h \
&& npumesh version && NPUMESH_DEVICE_COUNT=2 ${SCRATCH}/no_rpath threads")

# Projects that read ascendc.cmake: without kernels they build; with some they want host functions.
set(kernels ${SCRATCH}/kernels)
file(WRITE ${kernels}/CMakeLists.txt "cmake_minimum_required(VERSION 3.16)\nproject(kernels CXX)
include(${SCRATCH}/moved/tikcpp/ascendc_kernel_cmake/ascendc.cmake)
add_executable(main main.cc)
if(KERNELS)
  ascendc_library(add_kernel STATIC add_kernel.cpp)
  ascendc_include_directories(add_kernel PRIVATE .)
  target_link_libraries(main PRIVATE add_kernel)
  target_compile_definitions(main PRIVATE KERNELS)
endif()\n")
file(WRITE ${kernels}/main.cc "int Add(int a, int b);\n#ifdef KERNELS\nint main() { return Add(1, 2) - 3; }
#else\nint main() { return 0; }\n#endif\n")
file(WRITE ${kernels}/host.cc "#include \"acl/acl.h\"\nint Add(int a, int b) {\n  return a + b + aclInit(0);\n}\n")
foreach(words "" "-DKERNELS=ON;-DNPUMESH_HOST_KERNELS=host.cc")
  file(REMOVE_RECURSE ${kernels}/build)
  run("configure ${words}" ${CMAKE_COMMAND} -S ${kernels} -B ${kernels}/build ${words})
  run("build ${words}" ${CMAKE_COMMAND} --build ${kernels}/build)
  run("main ${words}" ${kernels}/build/main)
endforeach()
execute_process(COMMAND ${CMAKE_COMMAND} -S ${kernels} -B ${kernels}/refused -DKERNELS=ON
                RESULT_VARIABLE exit_code OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(exit_code EQUAL 0 OR NOT output MATCHES "ascendc_library\\(add_kernel\\): npumesh compiles no code")
  message(FATAL_ERROR "a kernel without host functions ended with ${exit_code}:\n${output}")
endif()
