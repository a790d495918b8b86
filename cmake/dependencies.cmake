# Everything that is linked from outside the tree. scripts/setup installs all of it.

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)

pkg_check_modules(URING REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(ISAL REQUIRED IMPORTED_TARGET libisal)
pkg_check_modules(BLKID REQUIRED IMPORTED_TARGET blkid)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
pkg_check_modules(NVME REQUIRED IMPORTED_TARGET libnvme)
pkg_check_modules(TOMLPP REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(ARCHIVE REQUIRED IMPORTED_TARGET libarchive)
pkg_check_modules(NCURSES REQUIRED IMPORTED_TARGET ncursesw)
pkg_check_modules(SMARTCOLS REQUIRED IMPORTED_TARGET smartcols)

# libfuse: the one scripts/setup built (io_uring, static), else the distribution's. The two results
# live under different names in the cache, so a build directory made before setup picks up the new one.
set(STREAMFS_DEPS_PREFIX ${CMAKE_SOURCE_DIR}/build/deps CACHE PATH "Where scripts/setup put what it built")
add_library(streamfs_fuse3 INTERFACE)
target_compile_definitions(streamfs_fuse3 INTERFACE FUSE_USE_VERSION=312)
if(EXISTS ${STREAMFS_DEPS_PREFIX}/lib/pkgconfig/fuse3.pc)
  set(ENV{PKG_CONFIG_PATH} "${STREAMFS_DEPS_PREFIX}/lib/pkgconfig:$ENV{PKG_CONFIG_PATH}")
  pkg_check_modules(FUSE3_BUILT REQUIRED fuse3)
  target_include_directories(streamfs_fuse3 SYSTEM INTERFACE ${FUSE3_BUILT_INCLUDE_DIRS})
  # By path, so that programs are linked again when it was built again.
  list(REMOVE_ITEM FUSE3_BUILT_STATIC_LDFLAGS -lfuse3)
  target_link_libraries(streamfs_fuse3 INTERFACE ${STREAMFS_DEPS_PREFIX}/lib/libfuse3.a
                                                 ${FUSE3_BUILT_STATIC_LDFLAGS})
  target_compile_definitions(streamfs_fuse3 INTERFACE STREAMFS_FUSE_IO_URING=1)
  message(STATUS "libfuse ${FUSE3_BUILT_VERSION} from ${STREAMFS_DEPS_PREFIX}, with io_uring")
else()
  pkg_check_modules(FUSE3_SYSTEM REQUIRED IMPORTED_TARGET fuse3>=3.14)
  target_link_libraries(streamfs_fuse3 INTERFACE PkgConfig::FUSE3_SYSTEM)
  message(STATUS "libfuse ${FUSE3_SYSTEM_VERSION} of the distribution, without io_uring")
endif()
