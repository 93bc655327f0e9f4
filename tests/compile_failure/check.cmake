# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# ${TARGET}_ok must build; ${TARGET}_fails must not, and the compiler must print ${SENTENCE}.
function(build target result output)
  execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --config "${CONFIG}" --target ${target}
                  RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${result} "${code}" PARENT_SCOPE)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

build(${TARGET}_ok code text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "does not compile with HEDDLE_OK either, so its failure proves nothing:\n${text}")
endif()
build(${TARGET}_fails code text)
if(code EQUAL 0)
  message(FATAL_ERROR "compiles, and must not; expected: ${SENTENCE}")
endif()
string(FIND "${text}" "${SENTENCE}" place)
if(place EQUAL -1)
  message(FATAL_ERROR "fails, but the compiler does not say: ${SENTENCE}\n${text}")
endif()
message(STATUS "fails and says: ${SENTENCE}")
