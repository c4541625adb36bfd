# SPDX-License-Identifier: MIT
#
# Writes tern_build.h: the commit and the libraries, which `tern version` prints.
if(NOT GIT)
    execute_process(COMMAND git -C "${SOURCE_DIR}" rev-parse --short=7 HEAD
        OUTPUT_VARIABLE GIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(prefix "")
if(GIT)
    set(prefix "git ${GIT}, ")
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT
"#define TERN_BUILD_GIT \"${prefix}\"
#define TERN_BUILD_LIBRARIES \"${LIBRARIES}\"
")
