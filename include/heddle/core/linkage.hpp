// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Selects where definitions that are not templates are compiled: in each program (header-only, the
/// default), or once, in a library.
///
/// The definitions of `x.hpp` are in `x.ipp` beside it. In a header-only program `x.hpp` includes
/// `x.ipp` at its end, and HEDDLE_INLINE is `inline`. If a program links the CMake target
/// `heddle::core_compiled`, HEDDLE_CORE_COMPILED is defined for all of its sources, and the
/// compiler reads declarations of heddle::core only.
///
/// The rooms that need Kokkos or MPI have macros and a target of their own: HEDDLE_FULL_INLINE and
/// `heddle::compiled`, which brings `heddle::core_compiled`. None of their `.ipp` files may depend
/// on a macro that a program can set, such as HEDDLE_CHECK_VIEWS.

#if defined(HEDDLE_CORE_COMPILED)
/// 1 if headers include their definitions, 0 if the program links heddle::core_compiled.
#define HEDDLE_HEADER_ONLY 0
/// Marks every definition in an `.ipp` file.
#define HEDDLE_INLINE
#else
/// 1 if headers include their definitions, 0 if the program links heddle::core_compiled.
#define HEDDLE_HEADER_ONLY 1
/// Stands before every definition of an `.ipp` file.
#define HEDDLE_INLINE inline
#endif

#if defined(HEDDLE_FULL_COMPILED)
/// HEDDLE_HEADER_ONLY of the rooms above heddle::core: 0 if the program links heddle::compiled.
#define HEDDLE_FULL_HEADER_ONLY 0
/// Marks every definition in an `.ipp` file of the rooms above heddle::core.
#define HEDDLE_FULL_INLINE
#else
/// HEDDLE_HEADER_ONLY of the rooms above heddle::core: 0 if the program links heddle::compiled.
#define HEDDLE_FULL_HEADER_ONLY 1
/// Stands before every definition of an `.ipp` file of the rooms above heddle::core.
#define HEDDLE_FULL_INLINE inline
#endif
