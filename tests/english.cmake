# Read by ctest before tests start: they compare messages in English, whatever the locale of who runs them.
if("$ENV{LC_ALL}$ENV{LC_MESSAGES}$ENV{LANG}$ENV{NPUMESH_LANG}" MATCHES "zh")
  set(ENV{NPUMESH_LANG} en)
endif()
