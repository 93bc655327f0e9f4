// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// BankCosts: the times of the actions of systems::bank_gemv().

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/systems/pim_gpt/bank_mapping.hpp>

namespace heddle::inline v0::systems {

/// The times of a memory that computes, in any unit of time.
template <class T>
struct BasicBankTimes {
  T activate = {};    ///< tRCD: to open a row
  T precharge = {};   ///< tRP: to close the row before
  T column = {};      ///< tCCD: from one burst to the next; the multipliers keep up with it
  T per_byte = {};    ///< the time in which a channel carries a byte, to or from the controller
  T latency = {};     ///< the latency of a message between channel and controller
  T controller = {};  ///< what the controller does after a product, whatever its size
  T per_result = {};  ///< the time in which the controller adds a partial sum
};

using BankTimes = BasicBankTimes<Seconds>;  ///< in seconds

/// The costs of products in banks: a bank takes activations * (activate + precharge) + bursts *
/// column.
template <class T>
class BasicBankCosts {
 public:
  using Time = T;  ///< the type of costs

  /// Constructs the costs of systems::bank_gemv() of the same grid and products.
  /// @throws contract_error as check() does for each product.
  BasicBankCosts(const DramGrid& grid, std::span<const Gemv> products,
                 const BasicBankTimes<T>& times)
      : m_times(times) {
    for (const Gemv& product : products) m_work.push_back(bank_work(grid, product));
  }

  /// Checks all times. @throws contract_error if one is negative, infinite or not a number.
  void check() const {
    const auto one = [](const char* name, const T& value) {
      heddle::impl::expect_time("heddle::systems::BankTimes", name, value);
    };
    one("activate", m_times.activate);
    one("precharge", m_times.precharge);
    one("column", m_times.column);
    one("per_byte", m_times.per_byte);
    one("latency", m_times.latency);
    one("controller", m_times.controller);
    one("per_result", m_times.per_result);
  }
  /// Returns the time of a bank for its part of a product.
  [[nodiscard]] T bank_time(const BankWork& work) const {
    return T(work.activations) * (m_times.activate + m_times.precharge) +
           T(work.bursts) * m_times.column;
  }
  /// Returns the work of the banks for a product.
  [[nodiscard]] const std::vector<BankWork>& work(std::size_t product) const {
    return m_work[product];
  }
  /// Returns the cost of a product of a bank or of a sum of the controller.
  [[nodiscard]] T time(const Schedule& schedule, ActionId id) const {
    const Action& action = schedule[id];
    if (schedule[action.queue].from == Rank{0})
      return m_times.controller + T(static_cast<std::int64_t>(+action.item)) * m_times.per_result;
    const std::size_t product = +action.stage, bank = +action.item;
    expects(product < m_work.size() && bank < m_work[product].size(), [&] {
      return ErrorInfo{
          "heddle::systems::BankCosts", "the schedule is of other products or banks",
          text("bank ", bank, " in product ", product, ", the costs have ", m_work.size(),
               " products in ", m_work.empty() ? 0 : m_work[0].size(), " banks")};
    });
    return bank_time(m_work[product][bank]);
  }
  /// Returns the cost of a message between the controller and a channel.
  [[nodiscard]] Transfer<T> transfer(const Schedule& schedule, ActionId id) const {
    const auto bytes = static_cast<std::int64_t>(schedule[schedule.uses(id)[1].buffer].bytes);
    return {T(bytes) * m_times.per_byte, m_times.latency};
  }

 private:
  std::vector<std::vector<BankWork>> m_work;  ///< by product and bank
  BasicBankTimes<T> m_times;
};

using BankCosts = BasicBankCosts<Seconds>;  ///< in seconds

}  // namespace heddle::inline v0::systems
