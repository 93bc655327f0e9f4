// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AnyStage: a PipelineStage of any type, for the code of Stages that is compiled once.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/units.hpp>
#include <heddle/layout/layer_range.hpp>
#include <heddle/layout/share.hpp>
#include <heddle/pipeline/impl/held_array.hpp>
#include <heddle/pipeline/impl/stage_space.hpp>
#include <heddle/pipeline/stage.hpp>
#include <heddle/pipeline/stage_place.hpp>
#include <heddle/pipeline/state.hpp>
#include <heddle/pipeline/tied_parameter.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {
struct PlannedLines;
}

namespace heddle::inline v0::impl {

// What a stage may have. Concepts, and not requirements in place, for the reason that stands beside
// those of the Runner.

/// A stage whose begin_step() accepts `Arguments` at the start of a step.
template <class S, class... Arguments>
concept StageBeginsSteps = requires(S& stage, const Arguments&... arguments) {
  stage.begin_step(arguments...);
};
/// A stage that returns the number of microbatches of the last begin_step(), if it knows it.
template <class S>
concept CountsMicrobatches = requires(const S& stage) {
  { stage.microbatches() } -> std::convertible_to<std::optional<std::size_t>>;
};
/// A stage that returns its share of the loss.
template <class S>
concept HasLoss = requires(const S& stage) {
  stage.loss(Item{});
};
/// A stage that shares its loss with several others.
template <class S>
concept HasLossPartners = requires(const S& stage) {
  { stage.loss_partners() } -> std::convertible_to<std::size_t>;
};
/// A stage that does a forward and a backward pass at once.
template <class S>
concept InterleavesPasses = requires(S& stage, const ForwardCall<typename S::scalar_type>& forward,
                                     const BackwardCall<typename S::scalar_type>& backward) {
  stage.forward_and_backward(forward, stage, backward);
};
/// A stage that computes both gradients of a backward pass at once.
template <class S>
concept HasWholeBackward = requires(S& stage, const BackwardCall<typename S::scalar_type>& call) {
  stage.backward(call);
};
/// A stage that can compute with parameters which lie elsewhere.
template <class S>
concept UsesParameters = requires(S& stage, typename S::scalar_type* parameters) {
  stage.use_parameters(parameters);
};
/// A stage that can update a part of its parameters.
template <class S>
concept UpdatesParts = requires(S& stage, std::size_t first, std::size_t count) {
  stage.update(first, count);
};
/// A stage with parameters that another layer of the model has, too.
template <class S>
concept TiesParameters = requires(S& stage) {
  stage.tied_parameters();
};
/// A stage whose backward passes add to other memory than gradients().
template <class S>
concept AddsGradientsElsewhere = requires(S& stage) {
  stage.added_gradients();
};

/// A stage that can sum its gradients over other ranks before it updates its part of them.
template <class S>
concept SumsGradients = requires(S& stage) {
  stage.sum_gradients();
  { stage.owned() } -> std::convertible_to<Share>;
};

/// The properties of a type of stages.
struct StageTraits {
  Scalar type;              ///< the type of parameters and activations
  const StageSpace* space;  ///< the memory that holds them
  bool interleaves_passes, uses_parameters, updates_parts, has_state, sums_gradients;
};

template <PipelineStage S>
[[nodiscard]] StageTraits stage_traits() {
  return {scalar_of<typename S::scalar_type>,
          &stage_space<typename S::memory_space>(),
          InterleavesPasses<S>,
          UsesParameters<S>,
          UpdatesParts<S>,
          HasState<S>,
          SumsGradients<S>};
}

/// The sizes of a stage in elements, in the form in which ranks exchange them.
struct StageElements {
  std::uint32_t stage;
  std::uint64_t input, output, saved, delta, parameters, gradients;
  std::uint64_t partners;         ///< most partners in the loss
  std::uint64_t first_owned = 0;  ///< where its rank's parameters begin among those of the stage
  std::uint64_t owned_at = 0;     ///< where their gradients begin among the added gradients
};

/// A PipelineStage without its type: the addresses in its calls are those of bytes. It has all
/// optional members, and StageTraits say which of them must not be called.
class AnyStage {
 public:
  using Forward = ForwardCall<std::byte>;
  using Backward = BackwardCall<std::byte>;

  virtual ~AnyStage() = default;
  [[nodiscard]] virtual StageElements sizes(Stage number) = 0;
  [[nodiscard]] virtual std::byte* parameters() = 0;
  [[nodiscard]] virtual std::byte* added_gradients() = 0;
  /// From now on the stage computes with `parameters`, if it can.
  virtual void use_parameters(std::byte* parameters) = 0;
  virtual void forward(const Forward& call) = 0;
  /// Makes the calls of an I, W or B.
  virtual void backward(Kind kind, const Backward& call) = 0;
  virtual void forward_and_backward(const Forward& forward, AnyStage& other,
                                    const Backward& backward) = 0;
  virtual void zero_gradients() = 0;
  virtual void sum_gradients() = 0;
  virtual void update() = 0;
  virtual void update(std::size_t first, std::size_t count) = 0;
  virtual void fence() = 0;
  [[nodiscard]] virtual double loss(Item item) const = 0;
  [[nodiscard]] virtual std::optional<std::size_t> microbatches() const = 0;
  [[nodiscard]] virtual std::vector<TiedParameter> tied_parameters() = 0;
  [[nodiscard]] virtual std::vector<HeldArray> arrays() = 0;
  virtual void state_written() = 0;
};

/// Returns a stage for its place.
using MakeStage = std::function<std::unique_ptr<AnyStage>(const StagePlace&)>;

/// A stage that this rank holds.
struct HeldStage {
  Stage number;
  LayerRange layers;
  std::shared_ptr<const PlannedLines> lines;  ///< to which the stage may refer
  std::unique_ptr<AnyStage> stage;
  StageElements sizes = {};
  std::shared_ptr<std::byte> versions = {};  ///< the versions of its parameters, if several
  SampleRange samples = {};                  ///< its samples of a microbatch, if divided
};

/// A stage of type S.
template <PipelineStage S>
class StageOf final : public AnyStage {
  using T = typename S::scalar_type;

 public:
  explicit StageOf(S made) : stage(std::move(made)) {}

  StageElements sizes(Stage number) override {
    std::size_t added = stage.parameter_count();
    if constexpr (AddsGradientsElsewhere<S>) added = stage.added_gradients().size();
    std::size_t partners = 1;
    if constexpr (HasLossPartners<S>) partners = stage.loss_partners();
    std::size_t first = 0, at = 0;
    if constexpr (SumsGradients<S>) {
      first = Share(stage.owned()).first;
      if constexpr (AddsGradientsElsewhere<S>)
        at = static_cast<std::size_t>(stage.gradients() - stage.added_gradients().data());
    }
    return {number.value,
            stage.input_size(),
            stage.output_size(),
            stage.saved_size(),
            stage.delta_size(),
            stage.parameter_count(),
            added,
            partners,
            first,
            at};
  }
  std::byte* parameters() override { return reinterpret_cast<std::byte*>(stage.parameters()); }
  std::byte* added_gradients() override {
    if constexpr (AddsGradientsElsewhere<S>)
      return reinterpret_cast<std::byte*>(stage.added_gradients().data());
    else
      return reinterpret_cast<std::byte*>(stage.gradients());
  }
  void use_parameters(std::byte* parameters) override {
    if constexpr (UsesParameters<S>)
      if (T* const used = reinterpret_cast<T*>(parameters); used != stage.parameters())
        stage.use_parameters(used);
  }
  void forward(const Forward& call) override { stage.forward(typed(call)); }
  void backward(Kind kind, const Backward& any) override {
    const BackwardCall<T> call = typed(any);
    if constexpr (HasWholeBackward<S>)
      if (kind == Kind::backward) return static_cast<void>(stage.backward(call));
    if (kind != Kind::backward_weight) stage.backward_input(call);
    if (kind != Kind::backward_input) stage.backward_weight(call);
  }
  void forward_and_backward(const Forward& forward, AnyStage& other,
                            const Backward& backward) override {
    if constexpr (InterleavesPasses<S>)
      stage.forward_and_backward(typed(forward), static_cast<StageOf&>(other).stage,
                                 typed(backward));
  }
  void zero_gradients() override { stage.zero_gradients(); }
  void sum_gradients() override {
    if constexpr (SumsGradients<S>) stage.sum_gradients();
  }
  void update() override { stage.update(); }
  void update(std::size_t first, std::size_t count) override {
    if constexpr (UpdatesParts<S>) stage.update(first, count);
  }
  void fence() override { stage.fence(); }
  double loss(Item item) const override {
    if constexpr (HasLoss<S>) return stage.loss(item);
    return 0;
  }
  std::optional<std::size_t> microbatches() const override {
    if constexpr (CountsMicrobatches<S>) return stage.microbatches();
    return std::nullopt;
  }
  std::vector<TiedParameter> tied_parameters() override {
    if constexpr (TiesParameters<S>) return stage.tied_parameters();
    return {};
  }
  std::vector<HeldArray> arrays() override {
    if constexpr (HasState<S>) return held_arrays(stage);
    return {};
  }
  void state_written() override { impl::state_written(stage); }

  S stage;

 private:
  static ForwardCall<T> typed(const Forward& call) {
    return {call.item, reinterpret_cast<const T*>(call.input), reinterpret_cast<T*>(call.output),
            reinterpret_cast<T*>(call.saved), call.samples};
  }
  static BackwardCall<T> typed(const Backward& call) {
    return {call.item,
            reinterpret_cast<const T*>(call.input),
            reinterpret_cast<const T*>(call.saved),
            reinterpret_cast<const T*>(call.output_grad),
            reinterpret_cast<T*>(call.input_grad),
            reinterpret_cast<T*>(call.delta),
            call.samples};
  }
};

}  // namespace heddle::inline v0::impl
