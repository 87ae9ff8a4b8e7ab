# npumesh_api_site: a page for each declaration of the headers, made from the contracts above them by Doxygen, in
# <build>/api/html. It is there when Doxygen is (launch/install_deps --lint), and built when it is asked for, as
# launch/package does; then the package npumesh-doc has it.
find_program(NPUMESH_DOXYGEN doxygen)
mark_as_advanced(NPUMESH_DOXYGEN)

# What launch/package builds.
add_custom_target(npumesh_packaged)
add_dependencies(npumesh_packaged npumesh_installed)

set(NPUMESH_API_FOLDER ${PROJECT_BINARY_DIR}/api)
configure_file(${PROJECT_SOURCE_DIR}/cmake/api/Doxyfile.in ${NPUMESH_API_FOLDER}/Doxyfile @ONLY)
if(NPUMESH_DOXYGEN)
  add_custom_target(npumesh_api_site
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${NPUMESH_API_FOLDER}/html
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/api/contracts.py ${PROJECT_SOURCE_DIR} ${NPUMESH_API_FOLDER}/headers
    COMMAND ${NPUMESH_DOXYGEN} ${NPUMESH_API_FOLDER}/Doxyfile
    COMMENT "Writing ${NPUMESH_API_FOLDER}/html/index.html" VERBATIM)
  add_dependencies(npumesh_packaged npumesh_api_site)
endif()

install(DIRECTORY ${NPUMESH_API_FOLDER}/html/ DESTINATION share/doc/npumesh/api COMPONENT doc OPTIONAL)
