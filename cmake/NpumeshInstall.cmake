# Installation: libraries, headers, the command, and what find_package(npumesh) reads. The components
# are packages (cmake/NpumeshPackages.cmake).
# tests/consumer installs into an empty folder and builds a project against it.
include(CMakePackageConfigHelpers)

get_property(npumesh_targets GLOBAL PROPERTY NPUMESH_LIBRARIES)
list(APPEND npumesh_targets npumesh_flags)
# The generated code of the wire formats, and the command.
foreach(target npumesh_proto npumesh)
  if(TARGET ${target})
    list(APPEND npumesh_targets ${target})
  endif()
endforeach()
list(REMOVE_DUPLICATES npumesh_targets)

install(TARGETS ${npumesh_targets} EXPORT npumeshTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)

# Everything that `cmake --install` copies.
add_custom_target(npumesh_installed)
add_dependencies(npumesh_installed ${npumesh_targets} acl_rt acl_mdl npumesh_proto_shared acl_dvpp c_sec ge_runner ge_compiler hccl npumesh_shared npumesh_torchair npu-smi msprof)

# It names the folder that is installed into, known only then.
install(CODE "
  set(NPUMESH_PREFIX \${CMAKE_INSTALL_PREFIX})
  set(CMAKE_INSTALL_BINDIR ${CMAKE_INSTALL_BINDIR})
  set(NPUMESH_PYTHON_DIR ${NPUMESH_PYTHON_DIR})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/set_env.sh.in
                 \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/set_env.sh @ONLY)"
  COMPONENT runtime)

# The folders that clients of the vendor's toolkit look for, each with the release whose interface this
# is: the one that aclsysGetVersionStr gives.
file(STRINGS ${PROJECT_SOURCE_DIR}/runtime/acl/acl_information.cc release REGEX "kPackageVersion = ")
string(REGEX MATCH "[0-9]+[.][0-9]+[.][0-9]+" release "${release}")
foreach(folder runtime compiler opp)
  file(WRITE ${PROJECT_BINARY_DIR}/${folder}/version.info "Version=${release}\n")
  install(FILES ${PROJECT_BINARY_DIR}/${folder}/version.info DESTINATION ${folder} COMPONENT runtime)
endforeach()

# Where build scripts of the vendor's samples look for headers and libraries: links, made in the prefix.
set(NPUMESH_VENDOR_FOLDERS devlib=lib64 runtime/include=../include runtime/lib64/stub=../../lib64 acllib=runtime)
foreach(folder ${NPUMESH_VENDOR_FOLDERS})
  string(REGEX MATCH "^(.*)=(.*)$" ignored ${folder})
  set(link ${CMAKE_MATCH_1})
  set(leads_to ${CMAKE_MATCH_2})
  install(CODE "
    set(link \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${link})
    get_filename_component(parent \${link} DIRECTORY)
    file(MAKE_DIRECTORY \${parent})
    file(CREATE_LINK ${leads_to} \${link} SYMBOLIC)" COMPONENT development)
endforeach()

install(FILES ${PROJECT_SOURCE_DIR}/cmake/setenv.bash DESTINATION ${CMAKE_INSTALL_BINDIR}
        COMPONENT runtime)
# Where the vendor's toolkit has the file of that name.
install(FILES ${PROJECT_SOURCE_DIR}/cmake/ascendc.cmake DESTINATION tikcpp/ascendc_kernel_cmake
        COMPONENT development)
install(TARGETS msprof RUNTIME DESTINATION tools/profiler/bin COMPONENT tools)
install(FILES ${PROJECT_SOURCE_DIR}/launch/msprof/msprof.py
        DESTINATION tools/profiler/profiler_tool/analysis/msprof COMPONENT tools)
install(TARGETS npu-smi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tools)
# `npumesh atc` by the vendor's name; after the command, whose folder is there then. (A wheel holds no links.)
if(NOT SKBUILD)
  install(CODE "execute_process(COMMAND ${CMAKE_COMMAND} -E create_symlink npumesh
  \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/atc COMMAND_ERROR_IS_FATAL ANY)" COMPONENT tools)
endif()

# Headers keep their folders: the includes of an installed project read like ours.
install(DIRECTORY runtime collectives graph
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/npumesh COMPONENT development
  FILES_MATCHING PATTERN "*.h")

set(npumesh_config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/npumesh)
install(EXPORT npumeshTargets NAMESPACE npumesh:: DESTINATION ${npumesh_config_folder}
  COMPONENT development)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/npumeshConfig.cmake.in ${PROJECT_BINARY_DIR}/npumeshConfig.cmake
  INSTALL_DESTINATION ${npumesh_config_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/npumeshConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/npumeshConfig.cmake
              ${PROJECT_BINARY_DIR}/npumeshConfigVersion.cmake
  DESTINATION ${npumesh_config_folder} COMPONENT development)
