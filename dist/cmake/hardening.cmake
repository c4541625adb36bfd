# SPDX-License-Identifier: MIT
#
# Flags that harden the binary and make builds reproducible.  dist/check-release.sh checks their
# effect on the archives.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
option(TERN_STATIC_BINARY "link programs without shared libraries, for release archives" OFF)

set(optimised $<NOT:$<CONFIG:Debug>>)
if(NOT TERN_SANITIZE)
    target_compile_options(tern_options INTERFACE -fstack-protector-strong
        $<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=2>)
endif()

if(WIN32)
    target_link_options(tern_options INTERFACE -fstack-protector-strong  # links libssp
        -Wl,--dynamicbase,--nxcompat,--high-entropy-va,--no-insert-timestamp)
elseif(NOT APPLE)
    target_link_options(tern_options INTERFACE
        -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--build-id=sha1)
endif()

# Assertions name source files; the map keeps paths of the build machine out of the binary.
target_compile_options(tern_options INTERFACE "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}=."
    -ffunction-sections -fdata-sections)

# Landing pads for indirect branches; no-ops on processors without support.
if(NOT WIN32 AND NOT APPLE)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
        target_compile_options(tern_options INTERFACE -mbranch-protection=standard)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        target_compile_options(tern_options INTERFACE -fcf-protection=full)
    endif()
endif()

# Release archives run the same instructions as any other optimised build.  They are linked
# statically, without unused functions and debug information.
if(TERN_STATIC_BINARY)
    target_compile_options(tern_options INTERFACE
        "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=." "-ffile-prefix-map=${CMAKE_BINARY_DIR}=build")
    if(APPLE)
        target_link_options(tern_options INTERFACE -Wl,-dead_strip)
    elseif(WIN32)
        target_link_options(tern_options INTERFACE -static -Wl,--gc-sections)
    else()
        target_link_options(tern_options INTERFACE -Wl,--gc-sections)
        # C code never unwinds, and the tables would be a tenth of the binary.
        target_compile_options(tern_options INTERFACE
            -fno-asynchronous-unwind-tables -fno-unwind-tables)
        if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
            # Packed relocations: need glibc 2.36 on the build system; GNU ld supports them on x86
            # only.
            target_link_options(tern_options INTERFACE -Wl,-z,pack-relative-relocs)
        endif()
        set(CMAKE_C_LINK_OPTIONS_PIE -static-pie)  # instead of -pie, which would undo it
    endif()
endif()
