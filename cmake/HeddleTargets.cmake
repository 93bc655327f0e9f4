# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# SPDX-FileCopyrightText: The Heddle contributors

# What Heddle's own programs have in common. None of it reaches a user's target.

# Options of our own programs: warnings, and where the examples find a text to train on.
add_library(heddle_own INTERFACE)
target_compile_options(heddle_own INTERFACE -Wall -Wextra -Wpedantic -Wshadow)
if(HEDDLE_WERROR)
  target_compile_options(heddle_own INTERFACE -Werror)
endif()
target_compile_options(heddle_own INTERFACE ${HEDDLE_PROGRAM_FLAGS})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # False alarms of optimised builds, mended in g++ 13: on `"text" + std::string`, and on the counts
  # of references that Kokkos' Serial keeps.
  target_compile_options(heddle_own INTERFACE -Wno-restrict -Wno-use-after-free)
endif()
find_path(HEDDLE_DEFAULT_TEXT vector PATHS ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES} NO_DEFAULT_PATH
          DOC "Folder of the C++ standard headers: the text that examples train on by default")
target_compile_definitions(heddle_own INTERFACE HEDDLE_DEFAULT_TEXT="${HEDDLE_DEFAULT_TEXT}")
if(HEDDLE_SPACE)
  target_compile_definitions(heddle_own INTERFACE HEDDLE_SPACE=${HEDDLE_SPACE})
endif()
if(HEDDLE_DISTINCT_MIRRORS)
  target_compile_definitions(heddle_own INTERFACE HEDDLE_DISTINCT_MIRRORS)
endif()
target_include_directories(heddle_own INTERFACE "${HEDDLE_SOURCE_DIR}/examples/common"
                                                "${HEDDLE_SOURCE_DIR}/tests")

# The environment of every test program: one thread a rank and no binding, since ranks share cores;
# root and more ranks than cores allowed, and a waiting rank gives its core away. Open MPI 4 and 5
# read the first and second set; the other MPIs need nothing. All ranks are on this machine: ob1, with
# shared memory, is what Open MPI takes in the end, after 0.2 s of looking for network cards.
set(HEDDLE_MPI_ENVIRONMENT
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
    OMPI_MCA_pml=ob1 OMPI_MCA_hwloc_base_binding_policy=none
    PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
    OMP_NUM_THREADS=1 HEDDLE_ATHREAD_HOST_THREADS=1 OMP_PROC_BIND=false KOKKOS_DISABLE_WARNINGS=true
    # MPI libraries keep memory until the process ends; leaks are looked for where no MPI runs.
    ASAN_OPTIONS=detect_leaks=0)
# Two threads where no ranks are, which sleep when they wait: tests run beside others, and where both
# threads are given one core, one that spins keeps the other from it for milliseconds at each region.
set(HEDDLE_SERIAL_ENVIRONMENT OMP_NUM_THREADS=2 OMP_PROC_BIND=false OMP_WAIT_POLICY=passive)
# Where tests write the results that scripts/backends compares: only in the environment of tests that it reads.
set(HEDDLE_RESULTS "HEDDLE_RESULTS=${CMAKE_BINARY_DIR}/results")

# The GPT of the examples, compiled once for each type of number, with the systems that it uses.
if(TARGET heddle::heddle)
  set(sources gpt_float.cpp gpt_double.cpp gpt_travel_float.cpp gpt_travel_double.cpp)
  list(TRANSFORM sources PREPEND "${HEDDLE_SOURCE_DIR}/examples/common/")
  add_library(heddle_gpt STATIC EXCLUDE_FROM_ALL ${sources} $<TARGET_OBJECTS:heddle_gpt_systems_core>
                                                 $<TARGET_OBJECTS:heddle_gpt_systems>)
  target_link_libraries(heddle_gpt PUBLIC heddle::compiled PRIVATE heddle_own)
endif()

# heddle_reached(RESULT sources...): the text of all include lines of the sources, and of the files of this
# repository that they include by quotes. It is read when CMake configures.
function(heddle_reached result)
  set(waiting ${ARGN})
  set(seen)
  set(text "")
  while(waiting)
    list(POP_FRONT waiting file)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" NORMALIZE)
    if("${file}" IN_LIST seen OR NOT EXISTS "${file}")
      continue()
    endif()
    list(APPEND seen "${file}")
    cmake_path(GET file PARENT_PATH folder)
    file(STRINGS "${file}" lines REGEX "^ *# *include *[<\"]")
    string(APPEND text "${lines};")
    foreach(line IN LISTS lines)
      if(line MATCHES "\"(.+)\"")
        set(name "${CMAKE_MATCH_1}")
        foreach(place "${folder}" "${CMAKE_CURRENT_SOURCE_DIR}" "${HEDDLE_SOURCE_DIR}/examples/common"
                      "${HEDDLE_SOURCE_DIR}/tests")
          if(EXISTS "${place}/${name}")
            list(APPEND waiting "${place}/${name}")
            break()
          endif()
        endforeach()
      endif()
    endforeach()
  endwhile()
  set(${result} "${text};${seen}" PARENT_SCOPE)
endfunction()

# heddle_own_executable(TARGET [HEADER_ONLY] SOURCES a.cpp ... LINK libraries ...)
# Programs link the compiled libraries of what they include, except those that are about headers, and all
# without Kokkos if these are not built: heddle::core_compiled; for headers of heddle/systems/ or heddle/json/,
# heddle::systems_core; and if they link heddle::heddle, heddle::compiled, heddle::systems for the former, and
# the GPT of the examples for its headers, which has the systems that it uses. A program that begins to include
# one of these must be configured again by hand. Includes are read line by line; other folders than these and
# macros are not followed.
function(heddle_own_executable target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HEADER_ONLY" "" "SOURCES;LINK")
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LINK} heddle_own)
  if(arg_HEADER_ONLY OR NOT (HEDDLE_COMPILED OR TARGET heddle_gpt))
    return()
  endif()
  heddle_reached(reached ${arg_SOURCES})
  set(full FALSE)
  set(gpt FALSE)
  if(TARGET heddle_gpt AND NOT "heddle::core" IN_LIST arg_LINK AND NOT "heddle::memory" IN_LIST arg_LINK AND NOT "heddle_mpi" IN_LIST arg_LINK
     AND NOT "heddle::json" IN_LIST arg_LINK)
    set(full TRUE)
    if(reached MATCHES "/examples/common/gpt")
      set(gpt TRUE)
      target_link_libraries(${target} PRIVATE heddle_gpt)
    endif()
  endif()
  string(REGEX MATCHALL "<heddle/(systems|json)[/.][^>]*>" systems "${reached}")
  if(gpt)
    list(FILTER systems EXCLUDE REGEX "${HEDDLE_GPT_SYSTEMS}")
    if(systems MATCHES "<heddle/json/" AND TARGET heddle::json)
      target_link_libraries(${target} PRIVATE heddle::json)
      list(FILTER systems EXCLUDE REGEX "<heddle/json/")
    endif()
  endif()
  if(systems)
    target_link_libraries(${target} PRIVATE heddle::systems_core)
  endif()
  target_link_libraries(${target} PRIVATE heddle::core_compiled)
  if(full)
    if(systems)
      target_link_libraries(${target} PRIVATE heddle::systems)
    endif()
    target_link_libraries(${target} PRIVATE heddle::compiled)
  endif()
endfunction()

# A source may say how it is to be run, in a comment line of its first 20: `// key: value`.
function(heddle_source_option source key default result)
  file(STRINGS "${source}" lines REGEX "^// ${key}: " LIMIT_COUNT 1)
  if(lines)
    string(REGEX REPLACE "^// ${key}: *" "" value "${lines}")
    string(STRIP "${value}" value)
  else()
    set(value "${default}")
  endif()
  set(${result} "${value}" PARENT_SCOPE)
endfunction()

# heddle_join(RESULT NAME TOGETHER sources... [STRICT headers...]): units NAME_1.cpp, ... that include up
# to TOGETHER of the sources each, which pay for their headers once (docs/decisions/0039). The STRICT
# headers come first, and have the warnings of conversions, whatever instantiates their templates: users
# may include ours with these warnings on. The sources do not have them. Units name their sources below
# this folder, among the directories of whose includes it must be, so that a compiler cache finds
# in one clone what it has seen in another; CMake's own UNITY_BUILD writes whole paths.
function(heddle_join result name together)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "STRICT")
  set(units)
  set(sources ${arg_UNPARSED_ARGUMENTS})
  set(head "")
  if(arg_STRICT)
    list(TRANSFORM arg_STRICT REPLACE ".+" "#include <\\0>\n" OUTPUT_VARIABLE includes)
    string(CONCAT head "#pragma GCC diagnostic warning \"-Wconversion\"\n"
                       "#pragma GCC diagnostic warning \"-Wsign-conversion\"\n" ${includes}
                       "#pragma GCC diagnostic ignored \"-Wconversion\"\n"
                       "#pragma GCC diagnostic ignored \"-Wsign-conversion\"\n")
    if(HEDDLE_WERROR)
      string(REPLACE "diagnostic warning" "diagnostic error" head "${head}")
    endif()
  endif()
  if(NOT HEDDLE_JOIN_TESTS OR together EQUAL 1)
    set(${result} ${sources} PARENT_SCOPE)
    return()
  endif()
  set(number 0)
  while(sources)
    math(EXPR number "${number} + 1")
    list(SUBLIST sources 0 ${together} some)
    list(REMOVE_ITEM sources ${some})
    set(text "${head}")
    foreach(source IN LISTS some)
      cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
      string(APPEND text "#include \"${source}\"\n")
    endforeach()
    set(unit "${CMAKE_CURRENT_BINARY_DIR}/joined/${name}_${number}.cpp")
    file(CONFIGURE OUTPUT "${unit}" CONTENT "${text}" @ONLY)
    list(APPEND units "${unit}")
  endwhile()
  set(${result} "${units}" PARENT_SCOPE)
endfunction()

# What a test on `ranks` ranks counts as beside others: ranks wait for each other half of the time.
function(heddle_mpi_processors result ranks)
  math(EXPR processors "(${ranks} + 1) / 2")
  set(${result} ${processors} PARENT_SCOPE)
endfunction()

# The command line that starts `program` on `ranks` ranks.
function(heddle_mpi_command result ranks program)
  set(${result} ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS}
                ${program} ${MPIEXEC_POSTFLAGS} ${ARGN} PARENT_SCOPE)
endfunction()
