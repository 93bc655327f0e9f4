// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Selects where the definitions of heddle::core are compiled: in each program (header-only, the
/// default), or once, in the library of the CMake target `heddle::core_compiled`.
///
/// The definitions of `x.hpp` are in `x.ipp` beside it. In a header-only program `x.hpp` includes
/// `x.ipp` at its end, and HEDDLE_INLINE is `inline`. If a program links `heddle::core_compiled`,
/// HEDDLE_CORE_COMPILED is defined for all of its sources, and the compiler reads declarations
/// only.

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
