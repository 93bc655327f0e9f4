# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# ${TARGET} must not build, and the compiler must print ${SENTENCE}.
execute_process(COMMAND "${CMAKE_COMMAND}" --build "${BUILD}" --config "${CONFIG}" --target ${TARGET}
                RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(code EQUAL 0)
  message(FATAL_ERROR "compiles, and must not; expected: ${SENTENCE}")
endif()
string(FIND "${text}" "${SENTENCE}" place)
if(place EQUAL -1)
  message(FATAL_ERROR "fails, but the compiler does not say: ${SENTENCE}\n${text}")
endif()
message(STATUS "fails and says: ${SENTENCE}")
