// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
// expect: there is one size for each dimension
// links: heddle::heddle

// A size that was forgotten is no size of 0.

#include <heddle/tensor.hpp>

void make(const heddle::DeviceMesh& mesh) {
#ifdef HEDDLE_OK
  heddle::Sharded<double**> tensor(mesh, {3, 4}, {heddle::Shard{0}});
#else
  heddle::Sharded<double**> tensor(mesh, {3}, {heddle::Shard{0}});
#endif
}
