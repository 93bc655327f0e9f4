// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of stream_law.hpp.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>

#include <heddle/core/contract.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/parscale/stream_law.hpp>

namespace heddle::inline v0::systems {

namespace impl {

inline double stream_factor(double gain, int streams) { return gain * std::log(streams) + 1; }

inline void expect_loss(const char* where, std::span<const StreamLoss> losses) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const StreamLoss& one = losses[i];
    expects(one.parameters > 0 && std::isfinite(one.parameters) && one.streams >= 1 &&
                one.loss > 0 && std::isfinite(one.loss),
            [&] {
              return ErrorInfo{where, "a loss has a number that is not above 0 and finite",
                               text("losses[", i, "]: parameters = ", one.parameters,
                                    ", streams = ", one.streams, ", loss = ", one.loss)};
            });
  }
}

/// A law and its sum of squared errors of log(L - least).
struct FittedLaw {
  StreamLaw law;
  double error = std::numeric_limits<double>::infinity();
};

inline FittedLaw regress(std::span<const StreamLoss> losses, double least, double gain) {
  // log(L - E) = power log A - power log(N (k ln P + 1) / 1e9)
  FittedLaw fitted{{.least = least, .gain = gain}};
  double mean_x = 0;
  double mean_y = 0;
  const auto n = static_cast<double>(losses.size());
  const auto x_of = [&](const StreamLoss& one) {
    return std::log(one.parameters / 1e9 * stream_factor(gain, one.streams));
  };
  for (const StreamLoss& one : losses) {
    if (one.loss <= least) return fitted;
    mean_x += x_of(one) / n;
    mean_y += std::log(one.loss - least) / n;
  }
  double xx = 0;
  double xy = 0;
  for (const StreamLoss& one : losses) {
    xx += (x_of(one) - mean_x) * (x_of(one) - mean_x);
    xy += (x_of(one) - mean_x) * (std::log(one.loss - least) - mean_y);
  }
  const double slope = xy / xx;
  if (!(slope < 0)) return fitted;
  fitted.law.power = -slope;
  fitted.law.scale = std::exp((mean_y - slope * mean_x) / -slope);
  fitted.error = 0;
  for (const StreamLoss& one : losses) {
    const double error = (std::log(one.loss - least) - mean_y - slope * (x_of(one) - mean_x)) *
                         (one.loss - least);  // of the loss itself, to first order
    fitted.error += error * error;
  }
  return fitted;
}

}  // namespace impl

HEDDLE_INLINE double StreamLaw::factor(int streams) const {
  constexpr const char* where = "heddle::systems::StreamLaw";
  expects(streams >= 1, [&] {
    return ErrorInfo{where, "there must be at least one stream", text("streams = ", streams)};
  });
  const double found = impl::stream_factor(gain, streams);
  expects(std::isfinite(least) && scale > 0 && std::isfinite(scale) && std::isfinite(power) &&
              found > 0 && std::isfinite(found),
          [&] {
            return ErrorInfo{where, "a member is out of range",
                             text("least = ", least, ", scale = ", scale, ", power = ", power,
                                  ", gain = ", gain),
                             "use finite numbers, a scale above 0 and a gain of at least 0"};
          });
  return found;
}

HEDDLE_INLINE double StreamLaw::loss(double parameters, int streams) const {
  expects(parameters > 0 && std::isfinite(parameters), [&] {
    return ErrorInfo{"heddle::systems::StreamLaw", "a number of parameters is above 0 and finite",
                     text("parameters = ", parameters)};
  });
  return least + std::pow(scale * 1e9 / (parameters * factor(streams)), power);
}

HEDDLE_INLINE StreamLaw StreamLaw::fit(std::span<const StreamLoss> losses) {
  constexpr const char* where = "heddle::systems::StreamLaw::fit";
  impl::expect_loss(where, losses);
  const auto differ = [&](auto member) {
    return std::ranges::any_of(
        losses, [&](const StreamLoss& one) { return one.*member != losses.front().*member; });
  };
  expects(losses.size() >= 4 && differ(&StreamLoss::streams) && differ(&StreamLoss::parameters),
          [&] {
            return ErrorInfo{where, "these losses do not determine a law",
                             text(losses.size(), " losses"),
                             "give at least four losses, with several numbers of "
                             "parameters and of streams"};
          });
  const double least_loss = std::ranges::min(losses, {}, &StreamLoss::loss).loss;
  constexpr int points = 20;
  double e_low = 0;
  double e_high = least_loss;
  double k_low = 0;
  double k_high = 2;
  impl::FittedLaw best;
  for (int round = 0; round < 40; ++round) {
    const double e_step = (e_high - e_low) / points;
    const double k_step = (k_high - k_low) / points;
    for (int i = 0; i <= points; ++i)
      for (int j = 0; j <= points; ++j) {
        const impl::FittedLaw next = impl::regress(losses, e_low + i * e_step, k_low + j * k_step);
        if (next.error < best.error) best = next;
      }
    // The error has a narrow valley across the grid, so the grid shrinks slowly.
    e_low = std::max(0.0, best.law.least - 6 * e_step);
    e_high = std::min(least_loss, best.law.least + 6 * e_step);
    k_low = std::max(0.0, best.law.gain - 6 * k_step);
    k_high = std::min(2.0, best.law.gain + 6 * k_step);
  }
  return best.law;
}

HEDDLE_INLINE double explained(const StreamLaw& law, std::span<const StreamLoss> losses) {
  constexpr const char* where = "heddle::systems::explained";
  impl::expect_loss(where, losses);
  double mean = 0;
  for (const StreamLoss& one : losses) mean += one.loss / static_cast<double>(losses.size());
  double total = 0;
  double rest = 0;
  for (const StreamLoss& one : losses) {
    const double error = one.loss - law.loss(one.parameters, one.streams);
    total += (one.loss - mean) * (one.loss - mean);
    rest += error * error;
  }
  expects(total > 0, [&] {
    return ErrorInfo{where, "losses that do not differ have no variance",
                     text(losses.size(), " losses"), "give several losses that differ"};
  });
  return 1 - rest / total;
}

HEDDLE_INLINE Bytes StreamMemory::added(int streams) const {
  expects(streams >= 1, [&] {
    return ErrorInfo{"heddle::systems::StreamMemory", "there must be at least one stream",
                     text("streams = ", streams)};
  });
  if (streams == 1) return 0;
  const auto p = static_cast<Bytes>(streams);
  const auto d = [](Bytes bytes) { return static_cast<double>(bytes); };
  const double tokens = d(p) * d(prefix) + d(p - 1) * d(context);
  const double all =
      d(number) * (tokens * 2 * d(layers) * d(keys) + d(hidden) * (d(p) * d(width) + d(p)));
  expects(all < 0x1p63, [&] {
    return ErrorInfo{"heddle::systems::StreamMemory", "the bytes do not fit in 63 bits",
                     text("streams = ", streams, ", layers = ", layers, ", keys = ", keys,
                          ", width = ", width, ", prefix = ", prefix, ", context = ", context,
                          ", hidden = ", hidden, ", number = ", number)};
  });
  const Bytes token = 2 * layers * keys;
  return number * (p * prefix * token + (p - 1) * context * token + hidden * (p * width + p));
}

}  // namespace heddle::inline v0::systems
