# SPDX-License-Identifier: MIT
#
# tern's dependencies as imported targets tern::hwloc, tern::utf8proc, tern::jansson, tern::xxhash
# (header only), tern::cmocka (tests), and the system's threads. They are found with pkg-config;
# cross builds set PKG_CONFIG_LIBDIR to their prefix.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

function(tern_find_library name module package)
    pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(NOT ${name}_FOUND)
        message(FATAL_ERROR "${module} was not found; on Debian install ${package}")
    endif()
    add_library(tern::${name} ALIAS PkgConfig::${name})
endfunction()

tern_find_library(hwloc "hwloc>=2.8" libhwloc-dev)
tern_find_library(utf8proc libutf8proc libutf8proc-dev)
tern_find_library(jansson "jansson>=2.12" libjansson-dev)
tern_find_library(xxhash libxxhash libxxhash-dev)
if(TERN_TESTS)
    tern_find_library(cmocka cmocka libcmocka-dev)
endif()
