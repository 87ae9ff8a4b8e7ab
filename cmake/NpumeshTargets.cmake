# npumesh_library(<target> [DEPENDS ...] [LIBRARIES ...] [PRECOMPILE ...]
#                 [REUSES <target>] [BATCH <n>] [COLD])
# One library for each folder: all its *.cc. DEPENDS names folders of this project and is the
# complete list of what the folder may include; LIBRARIES names third-party targets; PRECOMPILE
# names heavy headers that all its files share, REUSES a target that has precompiled such headers,
# instead of npumesh_pch. With NPUMESH_UNITY up to BATCH files are compiled as one: 16,
# or 8 operators, so that a changed one is there again in seconds. COLD: no loop
# of the folder is ever long, so a release compiles it with -O1, a quarter faster.
option(NPUMESH_UNITY "Compile the files of a library in batches" OFF)

add_library(npumesh_flags INTERFACE)
target_include_directories(npumesh_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/npumesh>)
target_compile_features(npumesh_flags INTERFACE cxx_std_20)
target_compile_options(npumesh_flags INTERFACE
  $<BUILD_INTERFACE:-Wall -Wextra -Wno-missing-field-initializers
  # GCC 12 warns without cause about "literal" + std::string (GCC bug 105651), in three ways.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>>)
# GCC collects garbage from 128 MB on; 400 MB save one compiler second in twenty.
target_compile_options(npumesh_flags INTERFACE
  $<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:GNU>:SHELL:--param=ggc-min-heapsize=400000>>)
if(NPUMESH_WERROR)
  target_compile_options(npumesh_flags INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()
if(NPUMESH_SANITIZE)
  target_compile_options(npumesh_flags INTERFACE
    $<BUILD_INTERFACE:-fsanitize=${NPUMESH_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=undefined>)
  target_link_options(npumesh_flags INTERFACE $<BUILD_INTERFACE:-fsanitize=${NPUMESH_SANITIZE}>)
  # protobuf's headers lay out maps differently where they see this macro, and the library of the
  # system was built without it.
  target_compile_options(npumesh_flags INTERFACE $<BUILD_INTERFACE:-U__SANITIZE_THREAD__>)
  target_compile_definitions(npumesh_flags INTERFACE $<BUILD_INTERFACE:NPUMESH_SANITIZED>)
endif()

# Code of a library is position independent, so every call of a function within it went through the
# linker's table, and none was inlined: no program replaces functions of ours. Measured: a
# small collective of the C interface takes 166 ns instead of 184 (bench_hccl).
target_compile_options(npumesh_flags INTERFACE $<BUILD_INTERFACE:-fno-semantic-interposition>)

# Fused multiply-add would let two compilers round differently; results must be the same bits.
target_compile_options(npumesh_flags INTERFACE $<BUILD_INTERFACE:-ffp-contract=off>)

function(npumesh_library name)
  cmake_parse_arguments(ARG "COLD" "REUSES;BATCH" "DEPENDS;LIBRARIES;PRECOMPILE;ROOMS" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(room ${ARG_ROOMS}) # folders below that belong to the library
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${room}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  if(sources)
    add_library(${name} STATIC ${sources})
    set(visibility PUBLIC)
  else()
    add_library(${name} INTERFACE)
    set(visibility INTERFACE)
  endif()
  add_library(npumesh::${name} ALIAS ${name})
  target_link_libraries(${name} ${visibility} npumesh_flags ${ARG_DEPENDS} ${ARG_LIBRARIES})
  if(ARG_PRECOMPILE AND NPUMESH_PRECOMPILED)
    target_precompile_headers(${name} PRIVATE ${ARG_PRECOMPILE})
  elseif(ARG_REUSES AND NPUMESH_PRECOMPILED)
    target_precompile_headers(${name} REUSE_FROM ${ARG_REUSES})
  elseif(sources AND NPUMESH_PRECOMPILED AND ARG_LIBRARIES MATCHES nlohmann
         AND NOT name STREQUAL npumesh_base) # where two files read JSON and the others do not
    target_precompile_headers(${name} REUSE_FROM npumesh_json_pch)
  elseif(sources AND NPUMESH_PRECOMPILED)
    target_precompile_headers(${name} REUSE_FROM npumesh_pch)
  endif()
  if(ARG_COLD)
    target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(sources AND NPUMESH_UNITY)
    if(NOT ARG_BATCH AND NOT name MATCHES "^npumesh_ops")
      set(ARG_BATCH 16)
    endif()
    npumesh_batches(${name} "${ARG_BATCH}")
  endif()
  set_property(GLOBAL APPEND PROPERTY NPUMESH_LIBRARIES ${name})
endfunction()

# npumesh_other_names(<target> <names...>)
# Other names of a library of lib64, in the build folder and installed: links to the same file, so that a process that
# names two of them loads one. A wheel (pyproject.toml) holds no links: a name is a small library there that needs
# the one.
function(npumesh_other_names target)
  foreach(name ${ARGN})
    set(file ${PROJECT_BINARY_DIR}/lib64/lib${name}.so)
    set(make ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE_NAME:${target}> ${file})
    if(SKBUILD) # a link of an earlier build would be written through
      set(make ${CMAKE_COMMAND} -E rm -f ${file} COMMAND ${CMAKE_C_COMPILER} -shared -nostdlib -Wl,--no-as-needed -Wl,-rpath,$ORIGIN
          -Wl,-soname,lib${name}.so -o ${file} $<TARGET_FILE:${target}>)
    endif()
    add_custom_command(TARGET ${target} POST_BUILD BYPRODUCTS ${file} COMMAND ${make} VERBATIM)
    install(FILES ${file} DESTINATION lib64 COMPONENT runtime)
  endforeach()
endfunction()

# npumesh_takes_any_number(<target>): its functions are called from C, where an enumeration may hold
# any number, as wrong calls do; a sanitizer takes the reading of one for a fault. (A library of the
# options alone: they have to come behind those of npumesh_flags.)
add_library(npumesh_any_number INTERFACE)
if(NPUMESH_SANITIZE MATCHES "undefined")
  target_compile_options(npumesh_any_number INTERFACE $<BUILD_INTERFACE:-fno-sanitize=enum>)
endif()
function(npumesh_takes_any_number target)
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:npumesh_any_number>)
endfunction()

# npumesh_batches(<target> <files>)
# Compiles the target's files in batches of <files>, or 8: one reading of the headers, and each
# template once. A file that Highway compiles again for each instruction set stays alone, and so does
# one with separate options (CMake sees to that).
function(npumesh_batches target files)
  if(NOT files)
    set(files 8)
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  get_target_property(sources ${target} SOURCES)
  foreach(source ${sources})
    file(STRINGS ${source} again REGEX "define HWY_TARGET_INCLUDE" LIMIT_COUNT 1)
    if(again)
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endforeach()
endfunction()

# npumesh_only_calls(<target> [REUSES <target>])
# What it calls is optimised; the target itself only has to be built. -Og compiles a sixth faster than
# -O1, and -O0 no faster than that. Gold links a test in 0.17 s where GNU ld takes 0.42. REUSES: whose
# precompiled headers it reads, if there are any.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=gold NPUMESH_GOLD)
function(npumesh_only_calls target)
  cmake_parse_arguments(ARG "" "REUSES" "" ${ARGN})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Og>)
  get_target_property(type ${target} TYPE)
  if(NPUMESH_GOLD AND NOT NPUMESH_SANITIZE AND type STREQUAL "EXECUTABLE")
    target_link_options(${target} PRIVATE $<$<CONFIG:Release>:-fuse-ld=gold>)
  endif()
  if(ARG_REUSES AND NPUMESH_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM ${ARG_REUSES})
  endif()
endfunction()

# npumesh_test(<name> RING <1|2|3|4> LEVEL <smoke|ci|nightly> [SOURCES ... | ALSO ...] DEPENDS ...
#              [RANKS n] [COST c] [UNITY] [ANY_ISA] [ARGS ...])
# Without SOURCES all *.cc of the folder, and ALSO files of others.
# Rings 1 and 2 are GoogleTest programs; ring 3 starts one with RANKS ranks under mpirun and brings
# its own main. Ring 4 registers its own commands (tests/hosts). UNITY: its files can be compiled in
# batches, as those of a library. ANY_ISA: what it shows depends on no kernel.
set(mpirun_words --allow-run-as-root --oversubscribe --bind-to none)
# For tests in Python (tests/mpi/launcher.py); Debian's own, because it has Debian's numpy and onnx.
set(NPUMESH_PYTHON /usr/bin/python3 CACHE FILEPATH "The Python of tests that need packages")
set(NPUMESH_PYTHON_TEST PYTHONDONTWRITEBYTECODE=1)
if(NPUMESH_MPI_NAME STREQUAL "MPICH")
  set(mpirun_words)
  list(APPEND NPUMESH_PYTHON_TEST NPUMESH_TEST_MPICH=${MPIEXEC_EXECUTABLE})
endif()
set(NPUMESH_MPIRUN ${MPIEXEC_EXECUTABLE} ${mpirun_words}
    CACHE STRING "How tests start several ranks")

# Tests of these libraries meet kernels: launch/run_tests runs them (label isa) once more as on a
# processor with AVX2, those of the kernels themselves (label kernels) also as on one with SSE4.
set(NPUMESH_COMPUTING
    "npumesh_(ops|engine|session|model_tests|reduce|collectives|compare|dump|export|inject)(;|$)")
set(NPUMESH_KERNELS "npumesh_(ops|model_tests|reduce)(;|$)")

# ctest takes two tests of one name for one, and their labels too.
function(npumesh_new_test name)
  get_property(known GLOBAL PROPERTY NPUMESH_TEST_NAMES)
  if(name IN_LIST known)
    message(FATAL_ERROR "two tests are called ${name}")
  endif()
  set_property(GLOBAL APPEND PROPERTY NPUMESH_TEST_NAMES ${name})
endfunction()

function(npumesh_test name)
  cmake_parse_arguments(ARG "UNITY;ANY_ISA" "RING;LEVEL;RANKS;COST" "SOURCES;ALSO;DEPENDS;ARGS" ${ARGN})
  if(ARG_RING EQUAL 3 AND NOT NPUMESH_MPI_TESTS)
    return()
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 120)
  endif()
  npumesh_new_test(${name})
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  endif()
  add_executable(${name} ${ARG_SOURCES} ${ARG_ALSO})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock)
  if(ARG_DEPENDS MATCHES "${NPUMESH_COMPUTING}")
    npumesh_only_calls(${name} REUSES npumesh_graph_test_pch)
  else()
    npumesh_only_calls(${name} REUSES npumesh_test_pch)
  endif()
  if(ARG_UNITY AND NPUMESH_UNITY)
    npumesh_batches(${name} "")
  endif()
  if(ARG_RING EQUAL 3)
    add_test(NAME ${name}
             COMMAND ${NPUMESH_MPIRUN} -n ${ARG_RANKS} $<TARGET_FILE:${name}> ${ARG_ARGS})
    set_tests_properties(${name} PROPERTIES PROCESSORS ${ARG_RANKS})
  else()
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS})
  endif()
  set(labels ring${ARG_RING} ${ARG_LEVEL})
  if(ARG_DEPENDS MATCHES "${NPUMESH_COMPUTING}" AND NOT ARG_ANY_ISA)
    list(APPEND labels isa)
  endif()
  if(ARG_DEPENDS MATCHES "${NPUMESH_KERNELS}" AND NOT ARG_ANY_ISA)
    list(APPEND labels kernels)
  endif()
  set_tests_properties(${name} PROPERTIES COST ${ARG_COST} LABELS "${labels}")
  npumesh_sanitized_test(${name})
endfunction()

# npumesh_sanitized_test(<name>)
# What a test without ranks needs under a sanitizer: to know what is not ours.
function(npumesh_sanitized_test name)
  if(NPUMESH_SANITIZE STREQUAL "thread")
    set_tests_properties(${name} PROPERTIES ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.suppressions")
  endif()
endfunction()

# npumesh_mpi_test(<name> PROGRAM <target> RANKS <n> LEVEL <smoke|ci|nightly>
#                  [ENVIRONMENT VAR=value ...] [ARGS ...])
# One more ring-3 test of a program that exists already.
function(npumesh_mpi_test name)
  cmake_parse_arguments(ARG "" "PROGRAM;LEVEL;RANKS" "ENVIRONMENT;ARGS" ${ARGN})
  npumesh_new_test(${name})
  add_test(NAME ${name}
           COMMAND ${NPUMESH_MPIRUN} -n ${ARG_RANKS} $<TARGET_FILE:${ARG_PROGRAM}> ${ARG_ARGS})
  set_tests_properties(${name} PROPERTIES PROCESSORS ${ARG_RANKS} LABELS "ring3;${ARG_LEVEL}" ENVIRONMENT "${ARG_ENVIRONMENT}")
endfunction()
