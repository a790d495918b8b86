# Run by cpack on the files that it is going to pack: compresses manual pages and strips the native parts of the
# Python packages, which pip installed with their debug information.
# Each component has a folder of its own, with the prefix in it.
set(folders ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/* ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/*)
list(TRANSFORM folders APPEND /share/man/man*/*.[1-8] OUTPUT_VARIABLE pages)
file(GLOB pages ${pages})
foreach(page IN LISTS pages)
  execute_process(COMMAND gzip -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
list(TRANSFORM folders APPEND /lib/streamfs/classifierd/*/_*.so OUTPUT_VARIABLE modules)
file(GLOB modules ${modules})
foreach(module IN LISTS modules)
  execute_process(COMMAND strip --strip-unneeded --remove-section=.comment ${module}
                  COMMAND_ERROR_IS_FATAL ANY)
endforeach()
