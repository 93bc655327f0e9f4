// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// ChainSizes: where the values of a chain of layers lie in the memory of a stage.

#include <cstddef>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/layout/index_set.hpp>
#include <heddle/pipeline/chain_calls.hpp>
#include <heddle/pipeline/stage_place.hpp>

namespace heddle::inline v0::impl {

/// The elements for each sample of a layer, and the number of its parameters.
struct LayerNumbers {
  std::size_t inputs, outputs;
  std::size_t saved;     ///< kept for the backward pass, besides the values between layers
  std::size_t delta;     ///< kept between the halves of the backward pass
  bool keeps_gradients;  ///< true if its gradients are kept between the halves instead
  std::size_t parameters = 0;
};

/// The begin of each value of a layer: those of `saved` and `output` in the stage's saved memory,
/// those of `delta` and `output_grad` in its delta, in elements for each sample, and its
/// parameters. The last layer has no place for its output and the gradient of that.
struct ChainPlace {
  std::size_t saved, output, delta, output_grad, parameters;
};

/// The layout of the memory of a chain of layers, for Chain and LayerStage. Memory for the samples
/// of a microbatch has all elements for each sample.
class ChainSizes {
 public:
  ChainSizes() = default;
  /// If a layer keeps its gradients in delta, a microbatch of `least` samples has room for them. If
  /// `between`, delta also has the gradients of the values between layers.
  ChainSizes(std::vector<LayerNumbers> layers, std::size_t least, bool between);

  [[nodiscard]] const LayerNumbers& operator[](std::size_t layer) const { return m_layers[layer]; }
  [[nodiscard]] const LayerNumbers& last() const { return m_layers.back(); }
  [[nodiscard]] const ChainPlace& at(std::size_t layer) const { return m_places[layer]; }
  [[nodiscard]] std::size_t layers() const noexcept { return m_layers.size(); }

  // The elements for each sample, and the parameters, of all layers.
  [[nodiscard]] std::size_t saved() const noexcept { return m_saved; }
  [[nodiscard]] std::size_t delta() const noexcept { return m_delta; }
  [[nodiscard]] std::size_t parameters() const noexcept { return m_parameters; }

 private:
  std::vector<LayerNumbers> m_layers;
  std::vector<ChainPlace> m_places;
  std::size_t m_saved = 0, m_delta = 0, m_parameters = 0;
};

/// Returns the elements for each sample with which `least` samples have room for `parameters`.
/// Every sample has whole elements, because StageShares divide the memory that a stage keeps.
[[nodiscard]] constexpr std::size_t kept_for_each(std::size_t parameters, std::size_t least) {
  return (parameters + least - 1) / least;
}

/// The part of the parameters of a stage that its updates change: all, or a share of the replica.
struct ChainPart {
  std::size_t first = 0;
  std::size_t count = static_cast<std::size_t>(-1);  ///< all, until an update says otherwise

  /// Takes the part of an update of `all` parameters. @throws contract_error if it is another one
  /// than that of the update before.
  void check_next(std::size_t from, std::size_t size, std::size_t all);
  /// Returns the elements of an array in this part, which has `size` parameters from `from` on.
  [[nodiscard]] IndexSet of_array(std::size_t from, std::size_t size) const;
};

/// Throws contract_error if layer `number` of `where` has other inputs than the one before has
/// outputs.
void check_neighbours(const char* where, std::size_t number, std::size_t before,
                      std::size_t inputs);
/// Checks the layers of a stage of a Chain. Only the first layer of the model may have no inputs,
/// and only the last one no outputs. @throws contract_error that names another one.
void check_chain_ends(const std::vector<LayerNumbers>& layers, const StagePlace& place,
                      bool takes_data, bool computes_loss);
/// Checks the samples of a call of a Chain that has `own`. @throws contract_error if they differ.
void check_chain_samples(Item item, std::size_t samples, std::size_t own);
/// Throws contract_error unless a Chain can be made.
void check_chain_options(std::size_t samples, bool updates);
/// Throws contract_error unless layer `number` fits behind one of `before` outputs.
void check_chain_layer(std::size_t before, std::size_t inputs, std::size_t number,
                       const std::vector<ChainArray>& arrays);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/impl/chain_sizes.ipp>
#endif
