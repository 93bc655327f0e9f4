// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// AnyChainLayer: a ChainLayer without its type.

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <heddle/pipeline/chain_calls.hpp>
#include <heddle/pipeline/impl/chain_sizes.hpp>

namespace heddle::inline v0::impl {

/// A ChainLayer of any type. Stages that hold the same layer share it, so it is not changed.
template <class T>
class AnyChainLayer {
 public:
  virtual ~AnyChainLayer() = default;
  [[nodiscard]] virtual std::size_t inputs() const = 0;
  [[nodiscard]] virtual std::size_t outputs() const = 0;
  [[nodiscard]] virtual std::size_t saved() const = 0;
  [[nodiscard]] virtual bool is_split() const = 0;
  [[nodiscard]] virtual std::size_t delta() const = 0;
  virtual void initialize(std::span<T> weights) = 0;
  /// Returns the loss, if the layer computes one.
  virtual double forward(const ChainForward<T>& call) = 0;
  /// Makes one call for both halves, or one for each.
  virtual void backward(const ChainBackward<T>& call) = 0;
  virtual void backward_input(const ChainBackward<T>& call) = 0;
  virtual void backward_weight(const ChainBackward<T>& call) = 0;
};

/// A layer of a Chain.
template <class T>
struct ChainEntry {
  std::vector<ChainArray> arrays;
  std::shared_ptr<AnyChainLayer<T>> layer;
};

/// Returns the sizes of layers.
template <class T>
[[nodiscard]] std::vector<LayerNumbers> chain_numbers(const std::vector<ChainEntry<T>>& layers) {
  std::vector<LayerNumbers> numbers;
  for (const ChainEntry<T>& each : layers) {
    const AnyChainLayer<T>& layer = *each.layer;
    LayerNumbers& added = numbers.emplace_back(LayerNumbers{
        layer.inputs(), layer.outputs(), layer.saved(), layer.delta(), !layer.is_split()});
    for (const ChainArray& array : each.arrays) added.parameters += array.size;
  }
  return numbers;
}

/// A layer of type L.
template <class T, ChainLayer<T> L>
class ChainLayerOf final : public AnyChainLayer<T> {
 public:
  explicit ChainLayerOf(L layer) : m_layer(std::move(layer)) {}

  std::size_t inputs() const override { return m_layer.inputs(); }
  std::size_t outputs() const override { return m_layer.outputs(); }
  std::size_t saved() const override { return m_layer.saved(); }
  bool is_split() const override { return SplitChainLayer<L, T>; }
  std::size_t delta() const override {
    if constexpr (SplitChainLayer<L, T>) return m_layer.delta();
    return 0;
  }
  void initialize(std::span<T> weights) override { m_layer.initialize(weights); }
  double forward(const ChainForward<T>& call) override {
    if constexpr (std::convertible_to<decltype(m_layer.forward(call)), double>)
      return m_layer.forward(call);
    else
      m_layer.forward(call);
    return 0;
  }
  void backward(const ChainBackward<T>& call) override {
    if constexpr (SplitChainLayer<L, T>) {
      ChainBackward<T> half = call;
      half.gradients = {};
      m_layer.backward_input(half);
      half = call;
      half.input_grad = {};
      m_layer.backward_weight(half);
    } else {
      m_layer.backward(call);
    }
  }
  void backward_input(const ChainBackward<T>& call) override {
    if constexpr (SplitChainLayer<L, T>) m_layer.backward_input(call);
  }
  void backward_weight(const ChainBackward<T>& call) override {
    if constexpr (SplitChainLayer<L, T>) m_layer.backward_weight(call);
  }

 private:
  L m_layer;
};

}  // namespace heddle::inline v0::impl
