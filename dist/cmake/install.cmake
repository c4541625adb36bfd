# SPDX-License-Identifier: MIT
#
# The files that `cmake --install` installs, the packages made of them (CPack), the Windows
# resources of the command, and the target demo_model (demo.tern beside the command).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(packaging "${CMAKE_CURRENT_SOURCE_DIR}/dist/packaging")
set(package_config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tern")

# An emulator makes this work for cross builds too.
add_custom_command(OUTPUT "${CMAKE_BINARY_DIR}/demo.tern"
    COMMAND tern_cmd convert "${CMAKE_CURRENT_SOURCE_DIR}/dist/demo"
            -o "${CMAKE_BINARY_DIR}/demo.tern"
    DEPENDS tern_cmd dist/demo/model.safetensors dist/demo/config.json
            dist/demo/generation_config.json dist/demo/tokenizer.json
            dist/demo/tokenizer_config.json
    VERBATIM)
add_custom_target(demo_model DEPENDS "${CMAKE_BINARY_DIR}/demo.tern")

if(WIN32)
    enable_language(RC)
    configure_file("${packaging}/tern.rc.in" tern.rc @ONLY)
    configure_file("${packaging}/tern.manifest" tern.manifest COPYONLY)
    target_sources(tern_cmd PRIVATE "${CMAKE_BINARY_DIR}/tern.rc")
endif()

# The demo model if it was built, and the C library for find_package and pkg-config.
install(FILES "${CMAKE_BINARY_DIR}/demo.tern" DESTINATION "${CMAKE_INSTALL_DATADIR}/tern" OPTIONAL)
install(FILES README.md LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${CMAKE_BINARY_DIR}/THIRD_PARTY_LICENSES"
    DESTINATION "${CMAKE_INSTALL_DOCDIR}" OPTIONAL)
install(TARGETS tern EXPORT tern-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/tern DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
    FILES_MATCHING PATTERN "*.h")
install(EXPORT tern-targets NAMESPACE tern:: DESTINATION "${package_config_dir}")
configure_package_config_file("${packaging}/tern-config.cmake.in" tern-config.cmake
    INSTALL_DESTINATION "${package_config_dir}")
write_basic_package_version_file(tern-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
    "${CMAKE_BINARY_DIR}/tern-config.cmake" "${CMAKE_BINARY_DIR}/tern-config-version.cmake"
    DESTINATION "${package_config_dir}")
# hwloc is in Libs, not in Requires: a shared hwloc loads its own dependencies, whereas with
# Requires `pkg-config --static` would list -ludev, which Debian's hwloc package does not depend on.
set(pc_hwloc ${hwloc_LDFLAGS})
if(hwloc_LINK_LIBRARIES MATCHES "libhwloc\\.a")
    set(pc_hwloc ${hwloc_STATIC_LDFLAGS})
endif()
list(JOIN pc_hwloc " " pc_hwloc)
file(RELATIVE_PATH pc_to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${packaging}/tern.pc.in" tern.pc @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/tern.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

set(CPACK_PACKAGE_NAME tern)
set(CPACK_PACKAGE_VENDOR tern)
set(CPACK_PACKAGE_CONTACT "the tern project")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run ternary language models on ordinary CPUs")
set(CPACK_PACKAGE_VERSION "${TERN_VERSION}")
set(CPACK_RESOURCE_FILE_LICENSE "${CMAKE_CURRENT_SOURCE_DIR}/LICENSE")
set(CPACK_RESOURCE_FILE_README "${CMAKE_CURRENT_SOURCE_DIR}/README.md")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "the tern project <tern@example.org>")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
include(CPack)
