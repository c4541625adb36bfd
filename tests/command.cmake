# SPDX-License-Identifier: MIT
#
# tern_command_test(<name> <script>): a Python test that runs the built command, under the emulator
# when there is one.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
string(JOIN " " tern_runner ${CMAKE_CROSSCOMPILING_EMULATOR})

function(tern_command_test name script)
    add_test(NAME ${name}
        COMMAND ${Python3_EXECUTABLE} -B "${CMAKE_CURRENT_SOURCE_DIR}/${script}")
    set_tests_properties(${name} PROPERTIES LABELS command TIMEOUT 900 ENVIRONMENT
        "TERN=$<TARGET_FILE:tern_cmd>;TERN_RUNNER=${tern_runner};TERN_SHARED=${TERN_SHARED_DIR}")
endfunction()
