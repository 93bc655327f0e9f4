// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// TiedParameter: a range of a stage's parameters that another layer of the model has, too.

#include <cstddef>
#include <string>

namespace heddle::inline v0 {

/// A parameter that two layers of a model have in common, such as an embedding that is also the
/// matrix of the head. Both layers hold a copy. Stages adds the sum of the two gradients to the
/// Schedule (see tie_parameters()), so both copies stay equal.
struct TiedParameter {
  std::string name;       ///< the name that both layers give it, of at most 55 characters
  std::size_t first = 0;  ///< where the copy begins among the parameters of its stage, in elements
  std::size_t count = 0;  ///< the elements of the copy
};

}  // namespace heddle::inline v0
