// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// profile_layers(): measures what each layer of a model costs on every rank. For planners.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <heddle/core/internal/function_ref.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/execute/execute_options.hpp>
#include <heddle/execute/runner.hpp>
#include <heddle/execute/transport_ref.hpp>
#include <heddle/pipeline/impl/any_stage.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/stages.hpp>
#include <heddle/plan/profile.hpp>

namespace heddle::inline v0 {

/// The options of profile_layers(), which throws contract_error for other values than these.
struct ProfileOptions {
  /// The numbers of samples to measure with: one or more, at least 1 each, and all different.
  std::vector<std::int64_t> samples = {1};
  int repeats = 5;  ///< measurements of each pass, after one that does not count; 0: none
  /// Ranks are of one kind if their times differ by at most this share, which is at least 0.
  double tolerance = 0.2;
  int tensor = 1;  ///< the ranks that divide each layer, at least 1, if the stages are built so
  std::string model = "model";  ///< Profile::model
  std::string device = "rank";  ///< the name of the first kind, not empty; see LinkOptions::name
  ExecuteOptions wait = {};     ///< how ranks exchange what they have measured
};

/// A Profile that was measured, and what it was measured on.
struct LayerProfile : plan::Profile {
  /// The kind of every rank: a Device::name. measure_links() takes it as LinkOptions::names.
  std::vector<std::string> device_of_rank = {};
  /// The greatest spread of a pass on any rank: the range between the quartiles over the median.
  double spread = 0;
};

namespace impl {

/// Begins no step: for stages that need no data.
struct BeginsNothing {
  template <class S>
  void operator()(S&, std::int64_t) const {}
};

/// Measures a model of `layers` layers. `begin(stage, samples)` begins a step of a stage that
/// `make` has made.
[[nodiscard]] LayerProfile profile_layers(
    int layers, const StageTraits& traits,
    FunctionRef<std::unique_ptr<AnyStage>(const StagePlace&)> make,
    FunctionRef<void(AnyStage&, std::int64_t)> begin, const TransportRef& transport,
    const ProfileOptions& options);

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
  using Any = impl::StageOf<S>;
  return impl::profile_layers(
      model.layers(), impl::stage_traits<S>(),
      [&](const StagePlace& at) { return std::make_unique<Any>(model.make(at)); },
      [&](impl::AnyStage& stage, std::int64_t samples) {
        begin(static_cast<Any&>(stage).stage, samples);
      },
      transport_of(place), options);
}

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/profile.ipp>
#endif
