// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ModelNames: rejects a model whose optional member has a mistyped name, which nothing would call.

#include <type_traits>

namespace heddle::inline v0::impl {

/// Fails to compile if `M` has a member function with a name that probably means an optional member
/// of a model. C++ cannot list the members of a class, so these are the usual mistakes: another
/// form of a word, swapped words or letters, camel case. It does not find members that are private,
/// overloaded or templates.
template <class M>
struct ModelNames {
#define HEDDLE_NO_MEMBER(mistyped, meant)                                                       \
  static_assert(                                                                                \
      !requires { requires std::is_member_function_pointer_v<decltype(&M::mistyped)>; },        \
      "heddle::Runner: nothing calls the model's member '" #mistyped "', did you mean '" #meant \
      "'?")
  HEDDLE_NO_MEMBER(begin_steps, begin_step);
  HEDDLE_NO_MEMBER(begins_step, begin_step);
  HEDDLE_NO_MEMBER(beginStep, begin_step);
  HEDDLE_NO_MEMBER(being_step, begin_step);
  HEDDLE_NO_MEMBER(start_step, begin_step);
  HEDDLE_NO_MEMBER(step_begin, begin_step);
  HEDDLE_NO_MEMBER(end_steps, end_step);
  HEDDLE_NO_MEMBER(ends_step, end_step);
  HEDDLE_NO_MEMBER(endStep, end_step);
  HEDDLE_NO_MEMBER(finish_step, end_step);
  HEDDLE_NO_MEMBER(step_end, end_step);
  HEDDLE_NO_MEMBER(prepares, prepare);
  HEDDLE_NO_MEMBER(perpare, prepare);
  HEDDLE_NO_MEMBER(memroy, memory);
  HEDDLE_NO_MEMBER(allocates, allocate);
  HEDDLE_NO_MEMBER(alocate, allocate);
  HEDDLE_NO_MEMBER(carriers, carrier);
  HEDDLE_NO_MEMBER(used_byte, used_bytes);
  HEDDLE_NO_MEMBER(use_bytes, used_bytes);
  HEDDLE_NO_MEMBER(usedBytes, used_bytes);
  HEDDLE_NO_MEMBER(bytes_used, used_bytes);
  HEDDLE_NO_MEMBER(begin_plans, begin_plan);
  HEDDLE_NO_MEMBER(beginPlan, begin_plan);
#undef HEDDLE_NO_MEMBER
};

}  // namespace heddle::inline v0::impl
