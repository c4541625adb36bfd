# SPDX-License-Identifier: MIT
# The native compiler with the libraries of the release prefix; the binary is fully static.
set(tern_target linux-x86_64)
set(CMAKE_C_COMPILER gcc)
include("${CMAKE_CURRENT_LIST_DIR}/target-prefix.cmake")
