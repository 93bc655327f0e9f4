// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Where the definitions that are not templates are compiled. Those of `x.hpp` are in `x.ipp`
/// beside it, and a program has them in one of three ways.
///
/// - From a library: the CMake targets `heddle::core_compiled` and `heddle::compiled` define
///   HEDDLE_CORE_COMPILED and HEDDLE_FULL_COMPILED for all sources of the program.
/// - From one source of the program, without a library to build: it defines HEDDLE_IMPLEMENTATION
///   before it includes the rooms that the program uses. To compile them side by side, one source
///   for each room defines HEDDLE_IMPLEMENTATION_SCHEDULE, HEDDLE_IMPLEMENTATION_PLAN, and so on.
///   Rooms within rooms that are large have a name of their own: SCHEDULE_ATTENTION,
///   SCHEDULE_COLLECTIVE, SCHEDULE_GENERATOR, SCHEDULE_PASS, SCHEDULE_REDISTRIBUTION, PLAN_PLANNER
///   and PLAN_SOLVER. SYSTEMS is that of all published systems, of which a source compiles those
///   that it includes.
/// - In every source, where HEDDLE_HEADER_ONLY is 1 for all of them, as the CMake targets
///   `heddle::core`, `heddle::memory` and `heddle::heddle` define it.
///
/// In the first two, all other sources read declarations only. No `.ipp` file may depend on a macro
/// that a program can set, such as HEDDLE_CHECK_VIEWS.

#ifndef HEDDLE_HEADER_ONLY
#define HEDDLE_HEADER_ONLY 0
#endif

#if defined(HEDDLE_FULL_COMPILED)
#define HEDDLE_FULL_HEADER_ONLY 0
#else
/// HEDDLE_HEADER_ONLY of the rooms that need Kokkos or MPI.
#define HEDDLE_FULL_HEADER_ONLY HEDDLE_HEADER_ONLY
#endif
#if defined(HEDDLE_CORE_COMPILED)
#if HEDDLE_HEADER_ONLY && !defined(HEDDLE_FULL_COMPILED)
#undef HEDDLE_FULL_HEADER_ONLY
#define HEDDLE_FULL_HEADER_ONLY 1
#endif
#undef HEDDLE_HEADER_ONLY
/// 1 if every source of the program compiles the definitions, as inline ones.
#define HEDDLE_HEADER_ONLY 0
#endif

#if HEDDLE_HEADER_ONLY
/// Stands before every definition of an `.ipp` file.
#define HEDDLE_INLINE inline
#else
#define HEDDLE_INLINE
#endif
#if HEDDLE_FULL_HEADER_ONLY
/// Stands before every definition of an `.ipp` file of the rooms that need Kokkos or MPI.
#define HEDDLE_FULL_INLINE inline
#else
#define HEDDLE_FULL_INLINE
#endif

// HEDDLE_DEFINES_ROOM is 1 if this source compiles the definitions of a room, HEDDLE_DEFINES_ALL or
// HEDDLE_DEFINES_FULL_ALL those of all rooms without or with Kokkos and MPI.
/// @cond
#if HEDDLE_HEADER_ONLY || (defined(HEDDLE_IMPLEMENTATION) && !defined(HEDDLE_CORE_COMPILED))
#define HEDDLE_DEFINES_ALL 1
#else
#define HEDDLE_DEFINES_ALL 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_CORE)
#define HEDDLE_DEFINES_CORE 1
#else
#define HEDDLE_DEFINES_CORE 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_MACHINE)
#define HEDDLE_DEFINES_MACHINE 1
#else
#define HEDDLE_DEFINES_MACHINE 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_LAYOUT)
#define HEDDLE_DEFINES_LAYOUT 1
#else
#define HEDDLE_DEFINES_LAYOUT 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_SCHEDULE)
#define HEDDLE_DEFINES_SCHEDULE 1
#else
#define HEDDLE_DEFINES_SCHEDULE 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_SCHEDULE_ATTENTION)
#define HEDDLE_DEFINES_SCHEDULE_ATTENTION 1
#else
#define HEDDLE_DEFINES_SCHEDULE_ATTENTION 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_SCHEDULE_COLLECTIVE)
#define HEDDLE_DEFINES_SCHEDULE_COLLECTIVE 1
#else
#define HEDDLE_DEFINES_SCHEDULE_COLLECTIVE 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_SCHEDULE_GENERATOR)
#define HEDDLE_DEFINES_SCHEDULE_GENERATOR 1
#else
#define HEDDLE_DEFINES_SCHEDULE_GENERATOR 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_SCHEDULE_PASS)
#define HEDDLE_DEFINES_SCHEDULE_PASS 1
#else
#define HEDDLE_DEFINES_SCHEDULE_PASS 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_SCHEDULE_REDISTRIBUTION)
#define HEDDLE_DEFINES_SCHEDULE_REDISTRIBUTION 1
#else
#define HEDDLE_DEFINES_SCHEDULE_REDISTRIBUTION 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_SIMULATE)
#define HEDDLE_DEFINES_SIMULATE 1
#else
#define HEDDLE_DEFINES_SIMULATE 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_PLAN)
#define HEDDLE_DEFINES_PLAN 1
#else
#define HEDDLE_DEFINES_PLAN 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_PLAN_PLANNER)
#define HEDDLE_DEFINES_PLAN_PLANNER 1
#else
#define HEDDLE_DEFINES_PLAN_PLANNER 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_PLAN_SOLVER)
#define HEDDLE_DEFINES_PLAN_SOLVER 1
#else
#define HEDDLE_DEFINES_PLAN_SOLVER 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_TRACE)
#define HEDDLE_DEFINES_TRACE 1
#else
#define HEDDLE_DEFINES_TRACE 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_TIER)
#define HEDDLE_DEFINES_TIER 1
#else
#define HEDDLE_DEFINES_TIER 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_EXECUTE)
#define HEDDLE_DEFINES_EXECUTE 1
#else
#define HEDDLE_DEFINES_EXECUTE 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_PATTERN)
#define HEDDLE_DEFINES_PATTERN 1
#else
#define HEDDLE_DEFINES_PATTERN 0
#endif
#if HEDDLE_DEFINES_ALL || defined(HEDDLE_IMPLEMENTATION_SYSTEMS)
#define HEDDLE_DEFINES_SYSTEMS 1
#else
#define HEDDLE_DEFINES_SYSTEMS 0
#endif
#if HEDDLE_FULL_HEADER_ONLY || (defined(HEDDLE_IMPLEMENTATION) && !defined(HEDDLE_FULL_COMPILED))
#define HEDDLE_DEFINES_FULL_ALL 1
#else
#define HEDDLE_DEFINES_FULL_ALL 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_DEVICE)
#define HEDDLE_DEFINES_DEVICE 1
#else
#define HEDDLE_DEFINES_DEVICE 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_MEMORY)
#define HEDDLE_DEFINES_MEMORY 1
#else
#define HEDDLE_DEFINES_MEMORY 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_KERNEL)
#define HEDDLE_DEFINES_KERNEL 1
#else
#define HEDDLE_DEFINES_KERNEL 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_COMM)
#define HEDDLE_DEFINES_COMM 1
#else
#define HEDDLE_DEFINES_COMM 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_COLLECTIVE)
#define HEDDLE_DEFINES_COLLECTIVE 1
#else
#define HEDDLE_DEFINES_COLLECTIVE 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_TENSOR)
#define HEDDLE_DEFINES_TENSOR 1
#else
#define HEDDLE_DEFINES_TENSOR 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_PIPELINE)
#define HEDDLE_DEFINES_PIPELINE 1
#else
#define HEDDLE_DEFINES_PIPELINE 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_SEQUENCE)
#define HEDDLE_DEFINES_SEQUENCE 1
#else
#define HEDDLE_DEFINES_SEQUENCE 0
#endif
#if HEDDLE_DEFINES_FULL_ALL || defined(HEDDLE_IMPLEMENTATION_SYSTEMS)
#define HEDDLE_DEFINES_FULL_SYSTEMS 1
#else
#define HEDDLE_DEFINES_FULL_SYSTEMS 0
#endif
/// @endcond

#if !HEDDLE_HEADER_ONLY && !defined(HEDDLE_CORE_COMPILED)
namespace heddle {
/// Every source asks for it, so that a linker without the definitions names what to do.
extern const char define_HEDDLE_IMPLEMENTATION_in_one_source_or_link_heddle_core_compiled;
#if HEDDLE_DEFINES_CORE
const char define_HEDDLE_IMPLEMENTATION_in_one_source_or_link_heddle_core_compiled = 0;
#endif
namespace {
[[maybe_unused, gnu::used]] const char* const definitions_of_heddle =
    &define_HEDDLE_IMPLEMENTATION_in_one_source_or_link_heddle_core_compiled;
}  // namespace
}  // namespace heddle
#endif
