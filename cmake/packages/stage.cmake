# What a Debian package has outside of /opt/npumesh: copyright, changelog, the reason for /opt, and of
# npumesh-tools the command, its manual pages and its completions where every shell looks. Run by
# cpack (CPACK_PRE_BUILD_SCRIPTS) on the staged files, before they are packed.
set(names ${CPACK_COMPONENTS_ALL})
list(TRANSFORM names TOUPPER)

function(set_readable)
  file(CHMOD ${ARGN} PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endfunction()

# compress(<file>): as Debian wants pages, <file>.gz without time and name.
function(compress file)
  execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
  set_readable(${file}.gz)
endfunction()

function(add_papers staged package)
  set(doc ${staged}/usr/share/doc/${package})
  file(WRITE ${doc}/copyright
       "Copyright 2026 the npumesh developers\n\n"
       "Licensed under the Apache License, Version 2.0; on Debian systems its text is in\n"
       "/usr/share/common-licenses/Apache-2.0.\n")
  file(WRITE ${doc}/changelog.Debian
       "npumesh (${CPACK_DEBIAN_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) stable; urgency=medium\n\n"
       "  * See CHANGELOG.md of npumesh-doc.\n\n"
       " -- ${CPACK_PACKAGE_CONTACT}  ${CPACK_NPUMESH_PACKAGE_DATE}\n")
  compress(${doc}/changelog.Debian)
  # Vendor-style programs expect the layout of the vendor's toolkit in a prefix, and its public names.
  file(WRITE ${staged}/usr/share/lintian/overrides/${package}
       "# A prefix laid out like the vendor's toolkit; programs name it in ASCEND_HOME_PATH.\n"
       "${package}: dir-or-file-in-opt *\n")
  set_readable(${doc}/copyright ${staged}/usr/share/lintian/overrides/${package})
endfunction()

function(add_manners staged)
  set(share ${staged}${CPACK_INSTALL_PREFIX}/share)
  file(MAKE_DIRECTORY ${staged}/usr/bin ${staged}/usr/share/man
       ${staged}/usr/share/bash-completion/completions ${staged}/usr/share/zsh/vendor-completions)
  file(CREATE_LINK ${CPACK_INSTALL_PREFIX}/bin/npumesh ${staged}/usr/bin/npumesh SYMBOLIC)
  file(RENAME ${share}/bash-completion/completions/npumesh
       ${staged}/usr/share/bash-completion/completions/npumesh)
  file(RENAME ${share}/zsh/site-functions/_npumesh
       ${staged}/usr/share/zsh/vendor-completions/_npumesh)
  file(RENAME ${share}/man/man1 ${staged}/usr/share/man/man1)
  file(REMOVE_RECURSE ${share}/bash-completion ${share}/zsh ${share}/man)
  file(GLOB pages ${staged}/usr/share/man/man1/*.1)
  foreach(page ${pages})
    compress(${page})
  endforeach()
endfunction()

foreach(component name IN ZIP_LISTS CPACK_COMPONENTS_ALL names)
  set(staged ${CPACK_TEMPORARY_DIRECTORY}/${component})
  add_papers(${staged} ${CPACK_DEBIAN_${name}_PACKAGE_NAME})
  if(component STREQUAL "tools")
    add_manners(${staged})
  endif()
endforeach()
