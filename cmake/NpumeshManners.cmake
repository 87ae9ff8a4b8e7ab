# What shells and man(1) know of the command, and its samples, made by the command itself when it is
# installed, so that they say what --help says. Run as a script (cmake -P) with NPUMESH and SHARE it
# writes below SHARE.
if(CMAKE_SCRIPT_MODE_FILE)
  # manners(<file> <words of npumesh...>): what they print.
  function(manners file)
    execute_process(COMMAND ${NPUMESH} ${ARGN} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
    file(WRITE ${SHARE}/${file} "${text}")
  endfunction()
  manners(bash-completion/completions/npumesh completion bash)
  manners(zsh/site-functions/_npumesh completion zsh)
  file(MAKE_DIRECTORY ${SHARE}/man/man1)
  execute_process(COMMAND ${NPUMESH} man --write ${SHARE}/man/man1 COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB pages ${SHARE}/man/man1/npumesh*.1)
  # The command writes what belongs to its user; these are for all users.
  file(CHMOD ${pages} ${SHARE}/bash-completion/completions/npumesh ${SHARE}/zsh/site-functions/_npumesh
       PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  set(samples ${SHARE}/npumesh/samples)
  file(REMOVE_RECURSE ${samples})
  file(MAKE_DIRECTORY ${SHARE}/npumesh)
  execute_process(COMMAND ${NPUMESH} samples --write ${samples} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD_RECURSE ${samples}
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
       DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE
                             WORLD_READ WORLD_EXECUTE)
  return()
endif()

install(CODE "
  execute_process(COMMAND \"${CMAKE_COMMAND}\" -D \"NPUMESH=$<TARGET_FILE:npumesh>\"
    -D \"SHARE=\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATAROOTDIR}\"
    -P \"${CMAKE_CURRENT_LIST_FILE}\" COMMAND_ERROR_IS_FATAL ANY)
" COMPONENT tools)
