# Debian packages by `cpack --config build/release/CPackConfig.cmake`: streamfs (the programs and the
# units), streamfs-doc (the documents of this tree), libstream and python3-libstream (hints for programs),
# classifierd (the learning daemon), streamfs-lab (replays of traces) and streamfs-source (what it takes to link streamfs with another
# libfuse, which is LGPL and linked statically). Each is for the Debian that it was built on: libfmt and
# Python have other names in the next.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME streamfs)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "streamfs maintainers <streamfs@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL core doc libstream python source)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_LIST_DIR}/debian/finish.cmake)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_CORE_PACKAGE_NAME streamfs)
set(CPACK_DEBIAN_CORE_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_CORE_PACKAGE_RECOMMENDS "fuse3, libstream")
set(CPACK_DEBIAN_CORE_PACKAGE_SUGGESTS "classifierd, streamfs-doc, streamfs-lab")
set(CPACK_COMPONENT_CORE_DESCRIPTION
    "file system for persistent memory and SSDs that separate data by lifetime
Metadata lives on a little byte-addressable persistent memory; every write to
the SSD is tagged with the stream of data that will die with it.")
set(CPACK_DEBIAN_CORE_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/postinst
    ${CMAKE_CURRENT_LIST_DIR}/debian/prerm ${CMAKE_CURRENT_LIST_DIR}/debian/postrm)

set(CPACK_DEBIAN_DOC_PACKAGE_NAME streamfs-doc)
set(CPACK_DEBIAN_DOC_PACKAGE_SECTION doc)
set(CPACK_DEBIAN_DOC_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DOC_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DOC_PACKAGE_SUGGESTS streamfs)
set(CPACK_COMPONENT_DOC_DESCRIPTION
    "documents of streamfs
Operation, tuning and design, examples for libstream and placement policies,
and a Grafana dashboard.")

set(CPACK_DEBIAN_LIBSTREAM_PACKAGE_NAME libstream)
set(CPACK_DEBIAN_LIBSTREAM_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBSTREAM_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/triggers)
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
install(FILES ${CMAKE_SOURCE_DIR}/third_party/README.md
        DESTINATION share/doc/streamfs-source COMPONENT source EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/third_party/README.md DESTINATION share/doc/streamfs
        RENAME README.libfuse.md COMPONENT core)

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-libstream)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3, libstream")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_LIST_DIR}/debian/python/prerm)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
    "hints about the lifetime of data, for Python programs on streamfs
A module for Python over the C library libstream.")

# package_documents(<component> <package>): what Debian wants in /usr/share/doc, and why lintian is
# overruled where it is.
function(package_documents component package)
  set(overrides ${CMAKE_SOURCE_DIR}/cmake/debian/overrides)
  if(EXISTS ${overrides}.${package})
    set(overrides ${overrides}.${package})
  endif()
  set(made ${CMAKE_BINARY_DIR}/debian/${package})
  file(MAKE_DIRECTORY ${made})
  execute_process(COMMAND sed "s/^streamfs (/${package} (/" ${CMAKE_SOURCE_DIR}/cmake/debian/changelog
                  COMMAND gzip -9n OUTPUT_FILE ${made}/changelog.gz COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${CMAKE_SOURCE_DIR}/cmake/debian/copyright ${made}/changelog.gz
          DESTINATION share/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES ${overrides} DESTINATION share/lintian/overrides RENAME ${package}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()
package_documents(core streamfs)
package_documents(doc streamfs-doc)
package_documents(libstream libstream)
package_documents(python python3-libstream)
package_documents(source streamfs-source)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/doc/streamfs COMPONENT documents)

# The documents lie in one folder when they are installed, so that README.md's links lose their docs/.
file(GLOB documents CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CONTRIBUTING.md ${documents}
        DESTINATION share/doc/streamfs COMPONENT doc)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/design ${CMAKE_SOURCE_DIR}/docs/examples
                  ${CMAKE_SOURCE_DIR}/docs/grafana ${CMAKE_SOURCE_DIR}/docs/pictures
        DESTINATION share/doc/streamfs COMPONENT doc)
install(CODE [[
file(GLOB pages $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/doc/streamfs/*.md)
execute_process(COMMAND sed -i -E "s,\\<docs/([A-Z]+\\.md|design|examples|grafana|pictures),\\1,g" ${pages} COMMAND_ERROR_IS_FATAL ANY)
]] COMPONENT doc)

# python_package(<component> <package> <module>): a Python package as scripts/setup installed it into the
# folder `site`. All share one folder of modules; their libraries are Debian's.
function(python_package component package module)
  file(GLOB metadata ${site}/${module}-*.dist-info)
  get_filename_component(metadata_name ${metadata} NAME)
  set(modules lib/streamfs/classifierd)
  install(DIRECTORY ${site}/${module} DESTINATION ${modules} COMPONENT ${component}
          EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE PATTERN "*.pyi" EXCLUDE)
  install(FILES ${metadata}/METADATA DESTINATION ${modules}/${metadata_name}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  configure_file(cmake/debian/program.py.in ${CMAKE_BINARY_DIR}/debian/${package}.py @ONLY)
  install(PROGRAMS ${CMAKE_BINARY_DIR}/debian/${package}.py DESTINATION bin RENAME ${package}
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  package_documents(${component} ${package})
endfunction()

# "ninja install" leaves both Python packages out, because build/venv has them. The minimum versions of libraries are
# Debian 12's; both files pyproject.toml have the same.
file(GLOB site ${CMAKE_SOURCE_DIR}/build/venv/lib/python3.*/site-packages)
if(site AND EXISTS ${site}/classifierd/cli.py AND EXISTS ${site}/streamfs_lab/cli.py)
  string(REGEX REPLACE ".*/python3\\.([0-9]+)/.*" "\\1" python_minor ${site})
  math(EXPR python_next "${python_minor} + 1")
  set(python "python3 (>= 3.${python_minor}), python3 (<< 3.${python_next}), python3-numpy (>= 1:1.24), \
python3-sklearn (>= 1.2)")
  list(APPEND CPACK_COMPONENTS_ALL classifierd lab)

  python_package(classifierd classifierd classifierd)
  set(CPACK_DEBIAN_CLASSIFIERD_PACKAGE_NAME classifierd)
  set(CPACK_DEBIAN_CLASSIFIERD_PACKAGE_SECTION admin)
  set(CPACK_DEBIAN_CLASSIFIERD_PACKAGE_CONTROL_EXTRA
      ${CMAKE_CURRENT_LIST_DIR}/debian/classifierd/postinst
      ${CMAKE_CURRENT_LIST_DIR}/debian/classifierd/prerm)
  set(CPACK_DEBIAN_CLASSIFIERD_PACKAGE_DEPENDS
      "streamfs, ${python}, python3-prometheus-client (>= 0.16)")
  set(CPACK_DEBIAN_CLASSIFIERD_PACKAGE_RECOMMENDS "python3-matplotlib (>= 3.6)")  # only pictures need it
  set(CPACK_DEBIAN_CLASSIFIERD_PACKAGE_SUGGESTS streamfs-lab)
  set(CPACK_COMPONENT_CLASSIFIERD_DESCRIPTION
      "learning daemon of streamfs
Measures how long what is written lives, and publishes which stream it should
go to. The filesystem does without it at any moment.")

  python_package(lab streamfs-lab streamfs_lab)
  set(CPACK_DEBIAN_LAB_PACKAGE_NAME streamfs-lab)
  set(CPACK_DEBIAN_LAB_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_LAB_PACKAGE_CONTROL_EXTRA
      ${CMAKE_CURRENT_LIST_DIR}/debian/streamfs-lab/postinst
      ${CMAKE_CURRENT_LIST_DIR}/debian/streamfs-lab/prerm)
  set(CPACK_DEBIAN_LAB_PACKAGE_DEPENDS "classifierd (= ${PROJECT_VERSION}), ${python}")
  set(CPACK_DEBIAN_LAB_PACKAGE_RECOMMENDS "python3-matplotlib (>= 3.6)")
  set(CPACK_COMPONENT_LAB_DESCRIPTION
      "replays of traces under placements that learn
Says what the learning of streamfs would have saved on a recorded trace,
beside other placements and oracles, and draws the results of ssd-sim.")
endif()
include(CPack)
