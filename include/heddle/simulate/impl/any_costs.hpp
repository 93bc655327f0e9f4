// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AnyCosts: the costs of a program, for the simulator that is compiled once.

#include <concepts>
#include <utility>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/machine/level.hpp>
#include <heddle/machine/machine.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/internal/priced.hpp>

namespace heddle::inline v0::impl {

/// Costs of any type, in Seconds. What its functions return is checked.
class AnyCosts {
 public:
  using Time = Seconds;

  AnyCosts() = default;
  AnyCosts(const AnyCosts&) = delete;
  AnyCosts& operator=(const AnyCosts&) = delete;

  virtual void check() const = 0;
  [[nodiscard]] virtual Seconds time(const Schedule& schedule, ActionId id) const = 0;
  [[nodiscard]] virtual Seconds fused(const Schedule& schedule, ActionId id) const = 0;
  [[nodiscard]] virtual Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const = 0;
  /// Returns the Machine of SharingCosts, and nullptr for others.
  [[nodiscard]] virtual const Machine* machine() const = 0;
  [[nodiscard]] virtual Seconds occupancy(const Schedule& schedule, ActionId id,
                                          const Shared& shared) const = 0;

 protected:
  ~AnyCosts() = default;
};

/// The AnyCosts of `costs`, which must outlive it.
template <Costs C>
class CostsOf final : public AnyCosts {
 public:
  explicit CostsOf(const C& costs) : m_costs(costs) {}

  void check() const override {
    if constexpr (CheckedCosts<C>) m_costs.check();
  }
  [[nodiscard]] Seconds time(const Schedule& schedule, ActionId id) const override {
    return work_time(schedule, m_costs, id);
  }
  [[nodiscard]] Seconds fused(const Schedule& schedule, ActionId id) const override {
    return fused_time(schedule, m_costs, id);
  }
  [[nodiscard]] Transfer<Seconds> transfer(const Schedule& schedule, ActionId id) const override {
    return transfer_time(schedule, m_costs, id);
  }
  [[nodiscard]] const Machine* machine() const override {
    if constexpr (SharingCosts<C>)
      return &m_costs.machine();
    else
      return nullptr;
  }
  [[nodiscard]] Seconds occupancy([[maybe_unused]] const Schedule& schedule,
                                  [[maybe_unused]] ActionId id,
                                  [[maybe_unused]] const Shared& shared) const override {
    if constexpr (SharingCosts<C>)
      return shared_time(schedule, m_costs, id, shared);
    else
      return 0;
  }

 private:
  const C& m_costs;
};

/// Returns the Machine whose shared resources `costs` prices, or nullptr.
template <SharingCosts C>
[[nodiscard]] const Machine* machine_of(const C& costs) {
  return &costs.machine();
}
[[nodiscard]] inline const Machine* machine_of(const AnyCosts& costs) { return costs.machine(); }

/// Costs for which an EventEngine may be wanted.
template <class C>
concept PricesShared = SharingCosts<C> || std::same_as<C, AnyCosts>;

}  // namespace heddle::inline v0::impl
