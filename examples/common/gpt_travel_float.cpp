// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <heddle/tensor.hpp>

#include "space.hpp"

template class heddle::TensorLine<float, examples::Space::execution_space>;
template class heddle::ParameterShards<float, examples::Space::execution_space>;
