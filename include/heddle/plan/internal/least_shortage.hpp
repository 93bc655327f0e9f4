// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LeastShortage: of plans that do not fit, the one that needs the least memory.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/plan/internal/sites.hpp>
#include <heddle/plan/plan_problem.hpp>
#include <heddle/schedule/plan.hpp>

namespace heddle::inline v0::plan::impl {

/// The least capacity with which one of several plans would fit, and the rank that lacks most.
class LeastShortage {
 public:
  /// Notes the memory of a plan by rank. Returns whether it fits.
  bool note(const std::vector<Bytes>& memory, const Machine& machine) {
    std::optional<MemoryShortage> worst;
    Bytes needed = 0;
    for (std::size_t r = 0; r < memory.size(); ++r) {
      const Bytes capacity = capacity_of(machine.device(Rank{r}));
      if (capacity == 0 || memory[r] <= capacity) continue;
      needed = std::max(needed, memory[r]);
      if (!worst || memory[r] - capacity > worst->needed - worst->capacity)
        worst = MemoryShortage{Rank{r}, memory[r], capacity};
    }
    if (!worst) return true;
    if (!m_worst || needed < m_needed) {
      m_worst = worst;
      m_needed = needed;
    }
    return false;
  }

  /// Returns whether a plan was noted that does not fit.
  [[nodiscard]] bool any() const noexcept { return m_worst.has_value(); }

  /// Returns the rank that lacks most in the plan that needs least, or nothing.
  [[nodiscard]] const std::optional<MemoryShortage>& worst() const noexcept { return m_worst; }
  /// Returns the reason why there is no plan.
  [[nodiscard]] std::string reason() const {
    const MemoryShortage& worst = *m_worst;
    return text("rank ", worst.rank, " lacks ", worst.needed - worst.capacity,
                " bytes: it has a capacity of ", worst.capacity,
                " bytes; the smallest capacity that would do is ", m_needed, " bytes");
  }

 private:
  std::optional<MemoryShortage> m_worst;
  Bytes m_needed = 0;  ///< the most that a rank needs whose capacity is too small
};

}  // namespace heddle::inline v0::plan::impl
