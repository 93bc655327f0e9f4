// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// Text profiles of PipeDream and DAPPLE.

#include <heddle/plan/profile.hpp>
#include <heddle/systems/pipedream/graph_profile.hpp>

#include "support.hpp"

using namespace heddle;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::accepts([&] {
    const plan::Profile profile = systems::read_graph_profile(fuzz::text_of(data, size));
    fuzz::check(!profile.layers.empty(), "a profile has no layers");
    plan::check(profile);
  });
  return 0;
}
