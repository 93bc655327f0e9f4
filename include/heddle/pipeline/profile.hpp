// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// profile_layers(): measures what each layer of a model costs on every rank. For planners.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <heddle/core/contract.hpp>
#include <heddle/core/index.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/device/mirror.hpp>
#include <heddle/execute/clock.hpp>
#include <heddle/execute/exchange.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0 {

/// The options of profile_layers().
struct ProfileOptions {
  std::vector<std::int64_t> samples = {1};  ///< the numbers of samples to measure with
  int repeats = 5;         ///< measurements of each pass, after one that does not count; 0: none
  double tolerance = 0.2;  ///< ranks are of one kind if their times differ by at most this share
  int tensor = 1;          ///< the ranks that divide each layer, if the stages are built so
  std::string model = "model";  ///< Profile::model
  std::string device = "rank";  ///< the name of the first kind; see LinkOptions::name
  ExecuteOptions execute = {};  ///< how ranks exchange what they have measured
};

/// A Profile that was measured, and what it was measured on.
struct LayerProfile : Profile {
  /// The kind of every rank: a Device::name. measure_links() takes it as LinkOptions::names.
  std::vector<std::string> device_of_rank = {};
  /// The greatest spread of a pass on any rank: the range between the quartiles over the median.
  double spread = 0;
};

namespace impl {

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
template <PipelineStage S>
class ProfiledCalls {
  using T = typename S::scalar_type;
  using Elements = Kokkos::View<T*, typename S::memory_space>;

 public:
  explicit ProfiledCalls(const S& stage)
      : m_input(random("input", stage.input_size())),
        m_output("heddle::profile::output", stage.output_size()),
        m_saved("heddle::profile::saved", stage.saved_size()),
        m_output_grad(random("output_grad", stage.output_size())),
        m_input_grad("heddle::profile::input_grad", stage.input_size()),
        m_delta("heddle::profile::delta", stage.delta_size()) {}

  /// Runs all passes once and returns what they took.
  [[nodiscard]] PassTimes run(S& stage, std::size_t samples) {
    const BackwardCall<T> backward{
        Item{0},       data(m_input), data(m_saved), data(m_output_grad), data(m_input_grad),
        data(m_delta), samples};
    stage.zero_gradients();
    stage.fence();
    const auto timed = [&](auto&& pass) {
      const Seconds begin = steady_seconds();
      pass();
      stage.fence();
      return steady_seconds() - begin;
    };
    PassTimes times{};
    times[0] = timed([&] {
      stage.forward({Item{0}, data(m_input), data(m_output), data(m_saved), samples});
    });
    times[1] = timed([&] { stage.backward_input(backward); });
    times[2] = timed([&] { stage.backward_weight(backward); });
    times[3] = timed([&] { stage.update(); });
    return times;
  }

 private:
  static T* data(const Elements& elements) {
    return elements.size() == 0 ? nullptr : elements.data();
  }
  static Elements random(const char* name, std::size_t count) {
    const Elements elements(text("heddle::profile::", name), count);
    const auto host = host_mirror(elements);
    const Random numbers(1, name);
    for (std::size_t i = 0; i < count; ++i) host(i) = static_cast<T>(numbers.normal(i));
    Kokkos::deep_copy(elements, host);
    return elements;
  }

  Elements m_input, m_output, m_saved, m_output_grad, m_input_grad, m_delta;
};

/// Sets the bytes of a layer by its stage for `samples` samples, or compares them with those that
/// another number of samples has given. @throws contract_error if they differ.
template <PipelineStage S>
void set_bytes(ProfiledLayer& layer, Bytes& input, bool first, const S& stage, std::int64_t samples,
               int tensor) {
  constexpr Bytes size = sizeof(typename S::scalar_type);
  const auto degree = static_cast<Bytes>(tensor), count = static_cast<Bytes>(samples);
  const auto set = [&](const char* name, Bytes& bytes, std::size_t elements, Bytes divisor) {
    const Bytes each = elements * size * degree / divisor;
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
  set("input", input, stage.input_size(), count);
  set("output", layer.output, stage.output_size(), count);
  set("saved", layer.saved, stage.saved_size(), count);
  set("delta", layer.delta, stage.delta_size(), count);
  set("parameters", layer.parameters, stage.parameter_count(), 1);
}

/// Begins no step: for stages that need no data.
struct BeginsNothing {
  template <class S>
  void operator()(S&, std::int64_t) const {}
};

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

}  // namespace impl

/// Measures the layers of `model` on all ranks of `place` at once, and returns their Profile, which
/// is the same on all ranks. Each layer is built alone, by the function that Stages builds stages
/// with, for each number of samples: `make({.layers = {l, l + 1}, .samples = {0, n}})`. Then
/// `begin(stage, samples)` begins a step of one microbatch, if the stages need data for that. A
/// time is the median over ProfileOptions::repeats. Inputs and gradients are normal random numbers.
///
/// Ranks whose sum of all times differs by at most ProfileOptions::tolerance from that of the first
/// rank of a kind are of that kind. Its times are the medians over its ranks. The kinds are called
/// "rank", "rank-2" and so on; LayerProfile::device_of_rank has the kind of each rank.
///
/// The bytes of a layer alone may be fewer than its part of a stage of several layers, which may
/// keep values between its layers. Collective over the ranks of `place`.
///
/// @throws contract_error if the options are invalid, or if the sizes of a stage are not
///         proportional to its samples.
template <PipelineStage S, Place P, class Begin = impl::BeginsNothing>
[[nodiscard]] LayerProfile profile_layers(const Stages<S>& model, P& place,
                                          const ProfileOptions& options = {}, Begin&& begin = {}) {
  expects(!options.samples.empty() && std::ranges::min(options.samples) >= 1 &&
              options.repeats >= 0 && options.tensor >= 1 && options.tolerance >= 0,
          [&] {
            return ErrorInfo{
                "heddle::profile_layers",
                "ProfileOptions needs at least one number of samples, all positive, "
                "no negative number of repeats or tolerance, and a tensor degree",
                text(options.samples.size(), " numbers of samples, repeats ", options.repeats,
                     ", tolerance ", options.tolerance, ", tensor ", options.tensor)};
          });
  LayerProfile profile;
  profile.model = options.model;
  std::vector<Seconds> mine;
  for (int l = 0; l < model.layers(); ++l) {
    ProfiledLayer layer{.name = text("layer ", l)};
    Bytes input = 0;
    for (const std::int64_t samples : options.samples) {
      S stage = model.make({Stage{l}, {l, l + 1}, {0, samples}});
      impl::set_bytes(layer, input, samples == options.samples.front(), stage, samples,
                      options.tensor);
      if (options.repeats == 0) continue;
      begin(stage, samples);
      impl::ProfiledCalls<S> calls(stage);
      (void)calls.run(stage, static_cast<std::size_t>(samples));
      std::array<std::vector<Seconds>, 4> times;
      for (int i = 0; i < options.repeats; ++i) {
        const impl::PassTimes once = calls.run(stage, static_cast<std::size_t>(samples));
        for (std::size_t k = 0; k < once.size(); ++k) times[k].push_back(once[k]);
      }
      for (std::size_t k = 0; k < times.size(); ++k) {
        const impl::MedianTime median(std::move(times[k]));
        mine.push_back(median.median);
        if (k < 3) profile.spread = std::max(profile.spread, median.spread);
      }
    }
    if (l == 0) profile.input = input;
    profile.layers.push_back(std::move(layer));
  }

  const std::size_t each = mine.size();
  mine.push_back(profile.spread);
  const std::vector<std::vector<Seconds>> all = all_gather_values<Seconds>(
      transport_of(place), std::span<const Seconds>(mine), options.execute);
  std::vector<Seconds> totals;
  for (const std::vector<Seconds>& of_rank : all) {
    Seconds& total = totals.emplace_back(0);
    for (std::size_t i = 0; i < each; ++i) total += of_rank[i];
    profile.spread = std::max(profile.spread, of_rank.back());
  }
  const std::vector<std::size_t> kinds = impl::kinds_of(totals, options.tolerance);
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
      return impl::MedianTime(std::move(times)).median;
    };
    for (ProfiledLayer& layer : profile.layers)
      for (const std::int64_t samples : options.samples) {
        LayerMeasurement& measured = layer.measured.emplace_back();
        measured = {names[kind], options.tensor, samples, {}};
        for (Seconds* const time : {&measured.times.forward, &measured.times.backward_input,
                                    &measured.times.backward_weight, &measured.times.update})
          *time = next();
      }
  }
  return profile;
}

}  // namespace heddle::inline v0
