# Debian packages by `cpack --config build/release/CPackConfig.cmake`: streamfs (the programs and the
# units), libstream (hints for programs) and streamfs-source (what it takes to link streamfs with
# another libfuse, which is LGPL and linked statically). The learning daemon is no package: it wants a
# scikit-learn that Debian 12 does not have.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME streamfs)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "streamfs maintainers <streamfs@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL core libstream source)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_CORE_PACKAGE_NAME streamfs)
set(CPACK_DEBIAN_CORE_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_CORE_PACKAGE_RECOMMENDS "fuse3, libstream")
set(CPACK_COMPONENT_CORE_DESCRIPTION
    "file system for persistent memory and SSDs that separate data by lifetime
Metadata lives on a little byte-addressable persistent memory; every write to
the SSD is tagged with the stream of data that will die with it.")
set(CPACK_DEBIAN_CORE_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/postinst
    ${CMAKE_CURRENT_LIST_DIR}/debian/prerm ${CMAKE_CURRENT_LIST_DIR}/debian/postrm)

set(CPACK_DEBIAN_LIBSTREAM_PACKAGE_NAME libstream)
set(CPACK_DEBIAN_LIBSTREAM_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBSTREAM_DESCRIPTION
    "hints about the lifetime of data, for programs on streamfs
A small C library, one to preload, and stream-run, which does that.")

set(CPACK_DEBIAN_SOURCE_PACKAGE_NAME streamfs-source)
set(CPACK_DEBIAN_SOURCE_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_SOURCE_PACKAGE_ARCHITECTURE all)
set(CPACK_COMPONENT_SOURCE_DESCRIPTION
    "source of streamfs and of the libfuse that is linked into it
third_party/README.md says how to link the programs with another libfuse.")

install(DIRECTORY ${CMAKE_SOURCE_DIR}/ DESTINATION src/streamfs COMPONENT source EXCLUDE_FROM_ALL
        USE_SOURCE_PERMISSIONS
        PATTERN .git EXCLUDE PATTERN build EXCLUDE PATTERN __pycache__ EXCLUDE
        PATTERN .*_cache EXCLUDE PATTERN *.egg-info EXCLUDE)
install(FILES ${STREAMFS_DEPS_PREFIX}/libfuse-source.tar.gz DESTINATION src/streamfs/third_party
        COMPONENT source EXCLUDE_FROM_ALL OPTIONAL)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/third_party/README.md
        DESTINATION share/doc/streamfs-source COMPONENT source EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/doc/streamfs RENAME copyright
        COMPONENT core)
install(FILES ${CMAKE_SOURCE_DIR}/third_party/README.md DESTINATION share/doc/streamfs
        RENAME README.libfuse.md COMPONENT core)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/doc/libstream RENAME copyright
        COMPONENT libstream)
include(CPack)
