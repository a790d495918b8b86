# Run by cpack on what it is going to pack: manual pages are compressed in a Debian package.
# Each component has a folder of its own, with the prefix in it.
file(GLOB pages ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/share/man/man*/*.[1-8]
     ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*/*/share/man/man*/*.[1-8])
foreach(page IN LISTS pages)
  execute_process(COMMAND gzip -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
