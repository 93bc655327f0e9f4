// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ClassPrices: the prices of the actions of a Schedule that are the same for all microbatches, for
/// the definition of simulate_periodic().

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action_text.hpp>
#include <heddle/schedule/schedule.hpp>
#include <heddle/simulate/costs.hpp>
#include <heddle/simulate/impl/any_costs.hpp>

namespace heddle::inline v0::impl {

/// A time as a whole number of ticks. The length of a tick is a power of two in seconds.
__extension__ using PeriodTicks = __int128;

/// The error of a step without a period.
[[noreturn]] inline void no_period(const std::string& name, std::string why) {
  throw infeasible({"heddle::simulate_periodic",
                    text("'", name, "' has no period that can be skipped"), std::move(why),
                    "use simulate()"});
}

/// The prices by rank, kind and stage. They hold for every microbatch.
class ClassPrices {
 public:
  /// Prices the actions of `sample`. @throws infeasible if microbatches have different prices.
  ClassPrices(const Schedule& sample, const AnyCosts& costs) {
    costs.check();
    for (std::size_t i = 0; i < sample.size(); ++i) {
      const ActionId id{i};
      const Action& action = sample[id];
      const Queue& queue = sample[action.queue];
      Key key = {queue.from.value, queue.to.value, number(action.kind), action.stage.value, 0, 0};
      Transfer<Seconds> price;
      if (action.kind == Kind::move) {
        key[4] = action.flags;
        price = costs.transfer(sample, id);
      } else if (action.flags & flag::with_next) {
        const Action& next = sample[ActionId{++i}];
        key[4] = 1 + number(next.kind);
        key[5] = next.stage.value;
        price.occupancy = costs.fused(sample, id);
      } else {
        price.occupancy = costs.time(sample, id);
      }
      const auto [entry, fresh] = m_prices.try_emplace(key, price);
      if (!fresh &&
          (entry->second.occupancy != price.occupancy || entry->second.latency != price.latency))
        no_period(sample.name(), text("the microbatches of ", schedule::action_text(sample, id),
                                      " have different costs"));
    }
  }

  /// Chooses the ticks. `additions` is the greatest number of prices that a time is the sum of.
  void choose_ticks(double additions) {
    int lowest = 0;  // the exponent of the last bit of any price, but at most 0
    double most = 1;
    for (const auto& [key, price] : m_prices)
      for (const Seconds time : {price.occupancy, price.latency}) {
        if (time == 0) continue;
        most = std::max(most, time);
        int exponent = 0;
        auto bits = static_cast<std::int64_t>(std::ldexp(std::frexp(time, &exponent), 53));
        exponent -= 53;
        for (; bits % 2 == 0; bits /= 2) ++exponent;
        lowest = std::min(lowest, exponent);
      }
    constexpr int most_bits = 120;
    const auto bits = static_cast<int>(std::ceil(std::log2(most * additions)));  // of seconds
    m_shift = std::min(-lowest, most_bits - bits);
  }
  [[nodiscard]] PeriodTicks ticks(Seconds time) const {
    return static_cast<PeriodTicks>(std::rint(std::ldexp(time, m_shift)));
  }
  [[nodiscard]] Seconds seconds(PeriodTicks ticks) const {
    return std::ldexp(static_cast<Seconds>(ticks), -m_shift);
  }

  [[nodiscard]] PeriodTicks work(std::uint32_t rank, Kind kind, std::uint32_t stage) const {
    return ticks(m_prices.at({rank, rank, number(kind), stage, 0, 0}).occupancy);
  }
  [[nodiscard]] PeriodTicks pair(std::uint32_t rank, Kind kind, std::uint32_t stage, Kind next,
                                 std::uint32_t next_stage) const {
    return ticks(
        m_prices.at({rank, rank, number(kind), stage, 1 + number(next), next_stage}).occupancy);
  }
  [[nodiscard]] const Transfer<Seconds>& move(std::uint32_t from, std::uint32_t to,
                                              std::uint32_t stage, std::uint8_t flags) const {
    return m_prices.at({from, to, number(Kind::move), stage, flags, 0});
  }

 private:
  /// The ranks of the queue, the kind and the stage; then the flags of a move, or one more than the
  /// kind of the second action of a pair, and its stage.
  using Key = std::array<std::uint32_t, 6>;
  [[nodiscard]] static std::uint32_t number(Kind kind) { return static_cast<std::uint32_t>(kind); }

  std::map<Key, Transfer<Seconds>> m_prices;
  int m_shift = 0;  ///< a second has 2 to the power of it ticks
};

}  // namespace heddle::inline v0::impl
