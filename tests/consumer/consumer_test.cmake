# Installs NPUMESH_BUILD into an empty folder, then configures, builds and runs CONSUMER_SOURCE and the
# project of docs/install.md against it with the same compilers. Everything happens below SCRATCH.
cmake_minimum_required(VERSION 3.22)

function(run what)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE exit_code OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  if(NOT exit_code EQUAL 0)
    message(FATAL_ERROR "${what} failed (${exit_code}):\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${SCRATCH})
run("install" ${CMAKE_COMMAND} --install ${NPUMESH_BUILD} --prefix ${SCRATCH}/prefix)

# What shells and man(1) know of the command: readable by all users, and about every command. The samples.
foreach(file man/man1/npumesh.1 man/man1/npumesh-dump-compare.1 bash-completion/completions/npumesh
             zsh/site-functions/_npumesh npumesh/samples/decoder_4/package/mp_rank3.air
             npumesh/samples/training/README.md)
  if(NOT EXISTS ${SCRATCH}/prefix/share/${file})
    message(FATAL_ERROR "share/${file} was not installed")
  endif()
endforeach()
run("completion" ${SCRATCH}/prefix/bin/npumesh completion bash)
file(READ ${SCRATCH}/prefix/share/bash-completion/completions/npumesh installed)
if(NOT installed STREQUAL output)
  message(FATAL_ERROR "the completion that was installed is not what the command prints")
endif()

# Static libraries that were built with a sanitizer ask for its runtime.
set(sanitizer_flags)
if(SANITIZE)
  set(sanitizer_flags -D CMAKE_CXX_FLAGS=-fsanitize=${SANITIZE})
endif()
set(settings -G ${GENERATOR}
    -D CMAKE_PREFIX_PATH=${SCRATCH}/prefix
    -D CMAKE_C_COMPILER=${C_COMPILER}
    -D CMAKE_CXX_COMPILER=${CXX_COMPILER}
    -D CMAKE_CXX_COMPILER_LAUNCHER=${CXX_LAUNCHER}
    -D CMAKE_BUILD_TYPE=${BUILD_TYPE}
    ${sanitizer_flags})
run("configure" ${CMAKE_COMMAND} -S ${CONSUMER_SOURCE} -B ${SCRATCH}/build ${settings})
run("build" ${CMAKE_COMMAND} --build ${SCRATCH}/build)
run("consumer" ${SCRATCH}/build/consumer)
if(NOT output MATCHES "npumesh consumer: a graph over 16-bit elements")
  message(FATAL_ERROR "the consumer printed:\n${output}")
endif()

run("operator library" ${SCRATCH}/prefix/bin/npumesh ops
    --op-library ${SCRATCH}/build/libconsumer_operators.so)
if(NOT output MATCHES "FromOutside\\(x\\) -> y")
  message(FATAL_ERROR "the command does not know the operator of a library:\n${output}")
endif()

# The project of docs/install.md as it is typed there, and without its first line.
file(READ ${PAGE} text)
if(NOT text MATCHES "```cmake\n([^`]+)```")
  message(FATAL_ERROR "${PAGE} shows no CMake project")
endif()
set(lines "${CMAKE_MATCH_1}")
file(WRITE ${SCRATCH}/mine/CMakeLists.txt "${lines}")
file(WRITE ${SCRATCH}/mine/mine.cc "#include \"graph/session/session.h\"\nint main() { return 0; }\n")
run("configure of the page's project" ${CMAKE_COMMAND} -S ${SCRATCH}/mine -B ${SCRATCH}/mine/build
    ${settings})
run("build of the page's project" ${CMAKE_COMMAND} --build ${SCRATCH}/mine/build)
run("the page's project" ${SCRATCH}/mine/build/mine)
string(REGEX REPLACE "cmake_minimum_required[^\n]*\n" "" lines "${lines}")
file(WRITE ${SCRATCH}/old/CMakeLists.txt "${lines}")
file(WRITE ${SCRATCH}/old/mine.cc "int main() { return 0; }\n")
run("configure without cmake_minimum_required" ${CMAKE_COMMAND} -Wno-dev -S ${SCRATCH}/old
    -B ${SCRATCH}/old/build ${settings})

# The C example against the installed header and library, by npumesh.pc alone.
find_program(pkg_config pkg-config REQUIRED)
file(GLOB_RECURSE pc ${SCRATCH}/prefix/npumesh.pc)
get_filename_component(pc_folder ${pc} DIRECTORY)
function(ask_pkg_config words variable)
  run("pkg-config ${words}" ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc_folder}
      ${pkg_config} ${words} npumesh)
  string(STRIP "${output}" output)
  separate_arguments(output)
  set(${variable} ${output} PARENT_SCOPE)
endfunction()
ask_pkg_config(--cflags cflags)
ask_pkg_config(--libs libs)
ask_pkg_config(--variable=libdir libdir)
if(NOT SANITIZE)
  run("build of the C example" ${C_COMPILER} -std=c99 ${C_EXAMPLE} ${cflags} ${libs}
      -Wl,-rpath,${libdir} -o ${SCRATCH}/c_add)
  execute_process(COMMAND ${SCRATCH}/c_add ${SCRATCH}/none.air RESULT_VARIABLE exit_code
                  ERROR_VARIABLE output)
  if(NOT exit_code EQUAL 3 OR NOT output MATCHES "npumesh_load_file: .*none.air")
    message(FATAL_ERROR "the C example ended with ${exit_code}:\n${output}")
  endif()
endif()

# A program of AscendCL, from the folders in which build scripts look for headers and libraries.
if(NOT SANITIZE)
  get_filename_component(examples ${C_EXAMPLE} DIRECTORY)
  foreach(folders "include lib64" "include devlib" "runtime/include runtime/lib64/stub"
                  "acllib/include acllib/lib64/stub")
    separate_arguments(folders)
    list(GET folders 0 headers)
    list(GET folders 1 libraries)
    run("build of execute_om with ${folders}" ${C_COMPILER} -std=c99 ${examples}/execute_om.c
        -I${SCRATCH}/prefix/${headers} -L${SCRATCH}/prefix/${libraries} -lascendcl -lacl_cblas -lacl_op_executor
        -Wl,-rpath,${SCRATCH}/prefix/${libraries} -o ${SCRATCH}/execute_om)
    execute_process(COMMAND ${SCRATCH}/execute_om ${SCRATCH}/none.om RESULT_VARIABLE exit_code
                    OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(exit_code EQUAL 0 OR NOT output MATCHES "none.om")
      message(FATAL_ERROR "execute_om with ${folders} ended with ${exit_code}:\n${output}")
    endif()
  endforeach()
endif()

# The Python packages where they are installed, through set_env.sh alone.
if(NOT SANITIZE)
  run("python3 -m npumesh" bash -c
      ". ${SCRATCH}/prefix/set_env.sh && unset LD_LIBRARY_PATH && ${PYTHON} -m npumesh")
  if(NOT output MATCHES "${SCRATCH}/prefix/.*libnpumesh.so")
    message(FATAL_ERROR "python3 -m npumesh found another library:\n${output}")
  endif()
  run("pyACL and npu-smi after setenv.bash" bash -euc
      ". ${SCRATCH}/prefix/bin/setenv.bash && unset LD_LIBRARY_PATH && atc --help >/dev/null && npu-smi info -l \
&& ${PYTHON} -c 'import acl
print(acl.get_soc_name(), acl._library.libraries()[0]._name)'")
  if(NOT output MATCHES "Total Count +: 1\n.*Ascend910B1 ${SCRATCH}/prefix/lib64/libascendcl.so")
    message(FATAL_ERROR "bin/setenv.bash does not lead to this installation:\n${output}")
  endif()
  run("the version that pip sees" bash -c
      ". ${SCRATCH}/prefix/set_env.sh && ${PYTHON} -c 'import importlib.metadata as of, npumesh
assert of.version(\"npumesh\") == npumesh.__version__, of.version(\"npumesh\")'")
endif()
