# Man pages and completion, made from the programs' own command lines (scripts/manual).
# The pages of the Python packages need the Python that scripts/setup installed them into; without it they are left out.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
include(GNUInstallDirs)

set(manual ${CMAKE_BINARY_DIR}/manual)
set(manual_programs streamfs mkfs.streamfs fsck.streamfs mount.streamfs streamctl ssd-sim)
string(TIMESTAMP manual_date "%Y-%m-%d" UTC)  # SOURCE_DATE_EPOCH, where it is set
set(manual_files)
foreach(program ${manual_programs})
  list(APPEND manual_files $<TARGET_FILE:${program}>)
endforeach()
set(manual_python ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
set(manual_modules)
if(EXISTS ${manual_python})
  execute_process(COMMAND ${manual_python} -c "import classifierd.cli, streamfs_lab.cli" RESULT_VARIABLE missing
                  OUTPUT_QUIET ERROR_QUIET)
  if(missing EQUAL 0)
    set(manual_modules --python ${manual_python})
  endif()
endif()

file(GLOB manual_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/man/*)
add_custom_command(
  OUTPUT ${manual}/stamp
  COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/scripts/manual --version ${PROJECT_VERSION}
          --date ${manual_date} --out ${manual} ${manual_modules} ${manual_files}
  COMMAND ${CMAKE_COMMAND} -E touch ${manual}/stamp
  DEPENDS ${manual_programs} ${manual_sources} ${CMAKE_SOURCE_DIR}/scripts/manual
          ${CMAKE_SOURCE_DIR}/classifierd/src/classifierd/cli.py
          ${CMAKE_SOURCE_DIR}/lab/python/src/streamfs_lab/cli.py
  COMMENT "Man pages and completion" VERBATIM)
add_custom_target(manual ALL DEPENDS ${manual}/stamp)
add_custom_target(programs DEPENDS ${manual_programs})  # everything that needs no Python package

foreach(section 1 5 7 8)
  install(DIRECTORY ${manual}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
          COMPONENT core FILES_MATCHING PATTERN "*.${section}")
endforeach()
install(DIRECTORY ${manual}/bash/ DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        COMPONENT core)
install(DIRECTORY ${manual}/zsh/ DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
        COMPONENT core)
install(DIRECTORY ${manual}/fish/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
        COMPONENT core)
