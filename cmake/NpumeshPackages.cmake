# Debian packages of what is installed, made by cpack (launch/package):
#
#   npumesh-runtime  libhccl.so, libacl_rt.so, ... that vendor-style programs load, set_env.sh
#   npumesh-tools    the command
#   npumesh-dev      headers, archives, what find_package(npumesh) reads
#   npumesh-doc      the pages
#   python3-npumesh  import npumesh, acl, npu_bridge, hccl, torch_npu
#
# They lie in /opt/npumesh, because vendor-style programs expect their layout there as in a prefix.
# Included after every install(): an install() belongs to one of the components.
set(NPUMESH_PACKAGE_PREFIX /opt/npumesh)

# The release a package is made for is part of its version: libraries differ.
set(release)
if(EXISTS /etc/os-release)
  file(STRINGS /etc/os-release line REGEX "^VERSION_ID=")
  string(REGEX MATCH "[0-9]+" release "${line}")
endif()
if(NOT release)
  set(release 0) # testing has no number
endif()
set(version ${PROJECT_VERSION}-1~deb${release})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME npumesh)
set(CPACK_PACKAGE_VENDOR npumesh)
set(CPACK_PACKAGE_CONTACT "npumesh developers <developers@npumesh.example>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
# The prefix is written into set_env.sh, so files are staged with DESTDIR.
set(CPACK_SET_DESTDIR ON)
set(CPACK_INSTALL_PREFIX ${NPUMESH_PACKAGE_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime tools development doc python)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/packages/stage.cmake)
string(TIMESTAMP CPACK_NPUMESH_PACKAGE_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1~deb${release})
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

if(NPUMESH_MPI_NAME STREQUAL "MPICH")
  set(mpi_bin mpich)
  set(mpi_dev libmpich-dev)
else()
  set(mpi_bin openmpi-bin)
  set(mpi_dev libopenmpi-dev)
endif()

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME npumesh-runtime)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION
    "Libraries for HCCL and AscendCL programs.\n Programs written for real NPUs run on CPUs with them.")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
# libhccl.so and libmsprofiler.so need libacl_rt.so, which is of no package yet.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib64)

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME npumesh-tools)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION
    "The command npumesh.\n Runs, compares and profiles Ascend graphs on any MPI cluster.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS ${mpi_bin})
# Static kernels are compiled where they run; ranks of other hosts are started through ssh.
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "g++, openssh-client")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME npumesh-dev)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "Headers and libraries of npumesh.\n For programs that use it through CMake or the vendor's interfaces.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
string(JOIN ", " CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "npumesh-runtime (= ${version})" "npumesh-tools (= ${version})" ${mpi_dev} libprotobuf-dev
  libhwloc-dev libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev libssl-dev libdnnl-dev
  ocl-icd-opencl-dev libhwy-dev libxxhash-dev pkg-config)

set(CPACK_DEBIAN_DOC_PACKAGE_NAME npumesh-doc)
set(CPACK_COMPONENT_DOC_DESCRIPTION "Pages of npumesh.\n Manual, formats, architecture.")
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-npumesh)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
    "npumesh in Python.\n Runs Ascend graphs; /opt/npumesh/set_env.sh puts it on the path.")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.9), npumesh-runtime (>= ${version})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-numpy)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/packages/python/prerm)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)

# Messages name pages ("see docs/config.md"), so they lie beside the program wherever it is installed.
install(FILES README.md README.zh.md CHANGELOG.md CODE_OF_CONDUCT.md CONTRIBUTING.md LICENSE SECURITY.md
        DESTINATION share/doc/npumesh COMPONENT doc)
install(DIRECTORY docs DESTINATION share/doc/npumesh COMPONENT doc)

include(CPack)
