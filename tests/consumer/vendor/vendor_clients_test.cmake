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
run("link without an rpath" ${MPI_CXX} -std=c++11 ${CLIENTS}/allreduce.cc -o ${SCRATCH}/no_rpath
    -I${SCRATCH}/moved/include -L${SCRATCH}/moved/lib64 -lhccl -lascendcl -pthread)
run("set_env.sh" bash -euc ". ${SCRATCH}/moved/set_env.sh && test -f $ASCEND_HOME_PATH/include/acl/acl.h \
&& npumesh version && NPUMESH_DEVICE_COUNT=2 ${SCRATCH}/no_rpath threads")
