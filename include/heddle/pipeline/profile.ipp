// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of profile.hpp.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/pipeline/profile.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0::impl {

/// The times of F, I, W and an update of one layer with one number of samples.
using PassTimes = std::array<Seconds, 4>;

/// The median of some times, and the range between their quartiles over it.
struct MedianTime {
  Seconds median = 0;
  double spread = 0;

  explicit MedianTime(std::vector<Seconds> times) {
    std::ranges::sort(times);
    const std::size_t n = times.size();
    median = (times[(n - 1) / 2] + times[n / 2]) / 2;
    if (median > 0) spread = (times[n - 1 - n / 4] - times[n / 4]) / median;
  }
};

/// The memory of the calls of a stage.
class ProfiledCalls {
 public:
  ProfiledCalls(const StageTraits& traits, const StageElements& sizes)
      : m_traits(traits),
        m_input(random("input", sizes.input)),
        m_output(allocated(sizes.output)),
        m_saved(allocated(sizes.saved)),
        m_output_grad(random("output_grad", sizes.output)),
        m_input_grad(allocated(sizes.input)),
        m_delta(allocated(sizes.delta)) {}

  /// Runs all passes once and returns what they took.
  [[nodiscard]] PassTimes run(AnyStage& stage, std::size_t samples) {
    const AnyStage::Backward backward{
        Item{0},       m_input.get(), m_saved.get(), m_output_grad.get(), m_input_grad.get(),
        m_delta.get(), samples};
    stage.zero_gradients();
    stage.fence();
    const auto timed = [&](FunctionRef<void()> pass) {
      const Seconds begin = steady_seconds();
      pass();
      stage.fence();
      return steady_seconds() - begin;
    };
    PassTimes times{};
    times[0] = timed([&] {
      stage.forward({Item{0}, m_input.get(), m_output.get(), m_saved.get(), samples});
    });
    times[1] = timed([&] { stage.backward(Kind::backward_input, backward); });
    times[2] = timed([&] { stage.backward(Kind::backward_weight, backward); });
    times[3] = timed([&] { stage.update(); });
    return times;
  }

 private:
  using Block = std::shared_ptr<std::byte>;

  /// Returns zeros; null for none.
  [[nodiscard]] Block allocated(std::size_t count) const {
    if (count == 0) return {};
    const Bytes bytes = count * size_of(m_traits.type);
    Block block = m_traits.space->allocate("heddle::profile", bytes);
    m_traits.space->clear(block.get(), bytes);
    return block;
  }
  [[nodiscard]] Block random(const char* name, std::size_t count) const {
    Block block = allocated(count);
    const Random numbers(1, name);
    const auto fill = [&]<class T>(T) {
      std::vector<T> values(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(numbers.normal(i));
      m_traits.space->copy_from_host(reinterpret_cast<const std::byte*>(values.data()), block.get(),
                                     count * sizeof(T));
    };
    switch (m_traits.type) {
      case Scalar::f32: fill(float{}); break;
      case Scalar::f64: fill(double{}); break;
      case Scalar::i32: fill(std::int32_t{}); break;
      case Scalar::i64: fill(std::int64_t{}); break;
      default: break;  // zeros
    }
    return block;
  }

  StageTraits m_traits;
  Block m_input, m_output, m_saved, m_output_grad, m_input_grad, m_delta;
};

/// Sets the bytes of a layer by the sizes of its stage for `samples` samples, or compares them with
/// those that another number of samples has given. @throws contract_error if they differ.
inline void set_bytes(plan::ProfiledLayer& layer, Bytes& input, bool first,
                      const StageElements& sizes, Bytes element, std::int64_t samples, int tensor) {
  const auto degree = static_cast<Bytes>(tensor), count = static_cast<Bytes>(samples);
  const auto set = [&](const char* name, Bytes& bytes, std::size_t elements, Bytes divisor) {
    const Bytes each = elements * element * degree / divisor;
    expects(elements * degree % divisor == 0 && (first || bytes == each), [&] {
      return ErrorInfo{"heddle::profile_layers",
                       "a stage does not have the samples that it was made for",
                       text("'", name, "' of ", layer.name, " has ", elements, " elements for ",
                            samples, " samples"),
                       "construct Stages with a function of a StagePlace and heed its samples, or "
                       "measure the one number of samples that the stages have"};
    });
    bytes = each;
  };
  set("input", input, sizes.input, count);
  set("output", layer.output, sizes.output, count);
  set("saved", layer.saved, sizes.saved, count);
  set("delta", layer.delta, sizes.delta, count);
  set("parameters", layer.parameters, sizes.parameters, 1);
}

/// Returns for every rank the first rank of its kind. `totals[r]` is the time of rank r.
[[nodiscard]] inline std::vector<std::size_t> kinds_of(const std::vector<Seconds>& totals,
                                                       double tolerance) {
  std::vector<std::size_t> kinds;
  for (std::size_t r = 0; r < totals.size(); ++r) {
    std::size_t kind = 0;
    while (kind < r &&
           (kinds[kind] != kind || std::abs(totals[r] - totals[kind]) > tolerance * totals[kind]))
      ++kind;
    kinds.push_back(kind);
  }
  return kinds;
}

HEDDLE_FULL_INLINE LayerProfile
profile_layers(int layers, const StageTraits& traits,
               FunctionRef<std::unique_ptr<AnyStage>(const StagePlace&)> make,
               FunctionRef<void(AnyStage&, std::int64_t)> begin, const TransportRef& transport,
               const ProfileOptions& options) {
  constexpr const char* where = "heddle::profile_layers";
  expect_valid(options.wait, where);
  expects(!options.samples.empty() && options.repeats >= 0 && options.tensor >= 1 &&
              options.tolerance >= 0,
          [&] {
            return ErrorInfo{
                where,
                "ProfileOptions needs at least one number of samples, no negative number of "
                "repeats or tolerance, and a tensor degree",
                text(options.samples.size(), " numbers of samples, repeats = ", options.repeats,
                     ", tolerance = ", options.tolerance, ", tensor = ", options.tensor)};
          });
  for (std::size_t i = 0; i < options.samples.size(); ++i) {
    const std::int64_t samples = options.samples[i];
    const auto before = std::span(options.samples).first(i);
    expects(samples >= 1 && std::ranges::find(before, samples) == before.end(), [&] {
      return ErrorInfo{where, "the numbers of samples must be positive and different",
                       text("samples[", i, "] = ", samples)};
    });
  }
  expects(!options.device.empty(), [] {
    return ErrorInfo{where, "ProfileOptions::device is an empty name"};
  });
  LayerProfile profile;
  profile.model = options.model;
  std::vector<Seconds> mine;
  for (int l = 0; l < layers; ++l) {
    plan::ProfiledLayer layer{.name = text("layer ", l)};
    Bytes input = 0;
    for (const std::int64_t samples : options.samples) {
      const std::unique_ptr<AnyStage> stage = make({Stage{l}, {l, l + 1}, {0, samples}});
      const StageElements sizes = stage->sizes(Stage{l});
      set_bytes(layer, input, samples == options.samples.front(), sizes, size_of(traits.type),
                samples, options.tensor);
      if (options.repeats == 0) continue;
      begin(*stage, samples);
      ProfiledCalls calls(traits, sizes);
      (void)calls.run(*stage, static_cast<std::size_t>(samples));
      std::array<std::vector<Seconds>, 4> times;
      for (int i = 0; i < options.repeats; ++i) {
        const PassTimes once = calls.run(*stage, static_cast<std::size_t>(samples));
        for (std::size_t k = 0; k < once.size(); ++k) times[k].push_back(once[k]);
      }
      for (std::size_t k = 0; k < times.size(); ++k) {
        const MedianTime median(std::move(times[k]));
        mine.push_back(median.median);
        if (k < 3) profile.spread = std::max(profile.spread, median.spread);
      }
    }
    if (l == 0) profile.input = input;
    profile.layers.push_back(std::move(layer));
  }

  const std::size_t each = mine.size();
  mine.push_back(profile.spread);
  const std::vector<std::vector<Seconds>> all =
      all_gather<Seconds>(transport, std::span<const Seconds>(mine), options.wait);
  std::vector<Seconds> totals;
  for (const std::vector<Seconds>& of_rank : all) {
    Seconds& total = totals.emplace_back(0);
    for (std::size_t i = 0; i < each; ++i) total += of_rank[i];
    profile.spread = std::max(profile.spread, of_rank.back());
  }
  const std::vector<std::size_t> kinds = kinds_of(totals, options.tolerance);
  std::vector<std::string> names(kinds.size());
  int number = 0;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    if (kinds[kind] == kind)
      names[kind] = ++number == 1 ? options.device : text(options.device, '-', number);
    profile.device_of_rank.push_back(names[kinds[kind]]);
    if (kinds[kind] != kind || options.repeats == 0) continue;
    std::size_t at = 0;
    const auto next = [&] {
      std::vector<Seconds> times;
      for (std::size_t r = kind; r < all.size(); ++r)
        if (kinds[r] == kind) times.push_back(all[r][at]);
      ++at;
      return MedianTime(std::move(times)).median;
    };
    for (plan::ProfiledLayer& layer : profile.layers)
      for (const std::int64_t samples : options.samples) {
        plan::LayerMeasurement& measured = layer.measured.emplace_back();
        measured = {names[kind], options.tensor, samples, {}};
        for (Seconds* const time : {&measured.times.forward, &measured.times.backward_input,
                                    &measured.times.backward_weight, &measured.times.update})
          *time = next();
      }
  }
  return profile;
}

}  // namespace heddle::inline v0::impl
