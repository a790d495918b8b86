# The two native Python modules share this: classifierd._core and streamfs_lab._lab. pip drives each
# build through scikit-build-core (pyproject.toml), apart from the project's own build.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
find_package(pybind11 CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(ZLIB REQUIRED)
find_package(fmt REQUIRED)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)

cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH STREAMFS_ROOT)

# streamfs_python_module(NAME PACKAGE SOURCE...): a module of PACKAGE, with the project's warnings.
# Without errno, square roots are vectorised (learning/logistic.cc).
# NO_EXTRAS: link-time optimisation costs more to build than it saves to run.
function(streamfs_python_module name package)
  pybind11_add_module(${name} NO_EXTRAS ${ARGN})
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON)
  target_include_directories(${name} PRIVATE ${STREAMFS_ROOT})
  target_compile_options(${name} PRIVATE -O2 -fno-math-errno -UNDEBUG -Wall -Wextra -Wpedantic
                                         -Wshadow -Wconversion -Werror)
  target_link_libraries(${name} PRIVATE PkgConfig::ISAL ZLIB::ZLIB fmt::fmt)
  install(TARGETS ${name} LIBRARY DESTINATION ${package})
endfunction()
