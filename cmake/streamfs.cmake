# The shapes a folder can have: a floor's library, a program, a test binary.
# Sources are globbed with CONFIGURE_DEPENDS: adding a file needs no edit here.

add_library(streamfs_warnings INTERFACE)
target_compile_options(streamfs_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                                   -Werror)

set(STREAMFS_SANITIZE "" CACHE STRING "Value of -fsanitize= for everything built here")
if(STREAMFS_SANITIZE)
  # Lines are what a report needs of debug information; the rest is a quarter of the build's time.
  add_compile_options(-fsanitize=${STREAMFS_SANITIZE} -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${STREAMFS_SANITIZE})
  if(STREAMFS_SANITIZE MATCHES undefined)
    # Half of the build's time; a pointer that is null or beyond its object ends in the address
    # sanitizer's report when it is followed.
    add_compile_options(-fno-sanitize=vptr,null,object-size,pointer-overflow)
  endif()
  if(STREAMFS_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # gcc says that TSan cannot follow a bare fence. Ours order stores to media, not threads.
    add_compile_options(-Wno-tsan)
  endif()
endif()

# streamfs_sources(<variable> [EXCLUDE <folder>...])
# Every .cc under the current folder, without the named subfolders.
function(streamfs_sources variable)
  cmake_parse_arguments(ARG "" "" "EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(folder IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/")
  endforeach()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# streamfs_static_library(<target> SOURCES ... DEPS ...)
# A library without sources yet is an INTERFACE library, so that its users need not know.
function(streamfs_static_library target)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_SOURCES)
    add_library(${target} STATIC ${ARG_SOURCES})
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR})
    target_link_libraries(${target} PUBLIC ${ARG_DEPS} PRIVATE streamfs_warnings)
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${target} INTERFACE ${ARG_DEPS})
  endif()
endfunction()

# streamfs_library(<floor> [EXCLUDE <subfolder>...] DEPS ...)
# The floor's one library, streamfs_<floor>, from the current folder and its subfolders.
function(streamfs_library floor)
  cmake_parse_arguments(ARG "" "" "EXCLUDE;DEPS" ${ARGN})
  streamfs_sources(sources EXCLUDE ${ARG_EXCLUDE})
  streamfs_static_library(streamfs_${floor} SOURCES ${sources} DEPS ${ARG_DEPS})
endfunction()

# streamfs_program(<name> SOURCES ... DEPS ...)
# build/<preset>/bin/<name>; nothing at all while it has no sources.
function(streamfs_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(NOT ARG_SOURCES)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} streamfs_warnings)
endfunction()

# streamfs_archives(<variable> <target>...): the static libraries built here that the targets are or
# need, the lowest first.
function(streamfs_archives variable)
  set(found ${${variable}})
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target} OR target IN_LIST found)
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    get_target_property(imported ${target} IMPORTED)
    if(imported)
      continue()
    endif()
    get_target_property(needed ${target} INTERFACE_LINK_LIBRARIES)
    streamfs_archives(found ${needed})
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND found ${target})
    endif()
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# streamfs_compile_quickly(<test> <dependency>...)
# The code under test is sanitized thoroughly; the tests' own code only for memory and threads, as
# compiling it was a quarter of the gate. Shared code (templates, inline functions) comes from the
# libraries, where it is optimized: so they are linked first.
function(streamfs_compile_quickly test)
  target_compile_options(${test} PRIVATE -O0 -fno-sanitize=undefined ${STREAMFS_UNCOUNTED})
  set(archives)
  streamfs_archives(archives ${ARGN})
  if(archives)
    list(TRANSFORM archives PREPEND "$<TARGET_FILE:")
    list(TRANSFORM archives APPEND ">")
    list(JOIN archives "," archives)
    target_link_options(${test} PRIVATE LINKER:--whole-archive,${archives},--no-whole-archive)
  endif()
endfunction()

# streamfs_test(<name> DIR <folder> LABEL <label> TIMEOUT <seconds> DEPS ...)
# Makes a binary from all .cc in the folder; ctest knows its tests as <name>.<Suite>.<Promise>.
function(streamfs_test name)
  cmake_parse_arguments(ARG "" "DIR;LABEL;TIMEOUT" "DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${ARG_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "_main\\.cc$")
  if(NOT "${sources}" MATCHES "_test\\.cc")
    return()
  endif()
  streamfs_program(${name} SOURCES ${sources} DEPS ${ARG_DEPS} GTest::gmock_main)
  if(STREAMFS_SANITIZE)
    streamfs_compile_quickly(${name} ${ARG_DEPS})
  endif()
  gtest_discover_tests(
    ${name}
    TEST_PREFIX ${name}.
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABEL STREQUAL unit)
    add_dependencies(unit_tests ${name})
  endif()
  if(name IN_LIST STREAMFS_THREADED_TESTS)
    add_dependencies(threaded_tests ${name})
  endif()
endfunction()

include(GoogleTest)
add_custom_target(unit_tests)
# Tests that start threads: the thread sanitizer is built for these.
set(STREAMFS_THREADED_TESTS base_test pmem_test uring_test trace_test ssd_test lab_test blockdev_test meta_test placement_test data_test)
add_custom_target(threaded_tests)
