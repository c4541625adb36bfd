# SPDX-License-Identifier: MIT
#
# Flags that make the binary harder to attack and the same on every build.  dist/check-release.sh
# checks their effect on what is shipped.
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)
option(TERN_STATIC_BINARY "link programs without shared libraries, for release archives" OFF)

set(optimised $<NOT:$<CONFIG:Debug>>)
if(NOT TERN_SANITIZE)
    target_compile_options(tern_options INTERFACE -fstack-protector-strong
        $<${optimised}:-U_FORTIFY_SOURCE> $<${optimised}:-D_FORTIFY_SOURCE=2>)
endif()

if(WIN32)
    target_link_options(tern_options INTERFACE -fstack-protector-strong  # brings libssp in
        -Wl,--dynamicbase,--nxcompat,--high-entropy-va,--no-insert-timestamp)
elseif(NOT APPLE)
    target_link_options(tern_options INTERFACE
        -Wl,-z,relro,-z,now,-z,noexecstack -Wl,--build-id=sha1)
endif()

# No path of the building machine gets into the binary: assertions name files of the tree.
target_compile_options(tern_options INTERFACE "-fmacro-prefix-map=${CMAKE_SOURCE_DIR}=."
    -ffunction-sections -fdata-sections)

# Landing pads for indirect branches; no-ops on processors that do not know them.
if(NOT WIN32 AND NOT APPLE)
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
        target_compile_options(tern_options INTERFACE -mbranch-protection=standard)
    elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
        target_compile_options(tern_options INTERFACE -fcf-protection=full)
    endif()
endif()

# What is shipped runs the same instructions as any other optimised build.  It is linked statically;
# unused functions and the tables of debuggers are left out.
if(TERN_STATIC_BINARY)
    target_compile_options(tern_options INTERFACE
        "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=." "-ffile-prefix-map=${CMAKE_BINARY_DIR}=build")
    if(APPLE)
        target_link_options(tern_options INTERFACE -Wl,-dead_strip)
    elseif(WIN32)
        target_link_options(tern_options INTERFACE -static -Wl,--gc-sections)
    else()
        target_link_options(tern_options INTERFACE -Wl,--gc-sections)
        # C is never unwound, and the tables would be a tenth of the binary.
        target_compile_options(tern_options INTERFACE
            -fno-asynchronous-unwind-tables -fno-unwind-tables)
        if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
            # Packed relocations: glibc 2.36 or newer where the release is built; GNU ld has them
            # for x86 only.
            target_link_options(tern_options INTERFACE -Wl,-z,pack-relative-relocs)
        endif()
        set(CMAKE_C_LINK_OPTIONS_PIE -static-pie)  # in place of -pie, which would undo it
    endif()
endif()
