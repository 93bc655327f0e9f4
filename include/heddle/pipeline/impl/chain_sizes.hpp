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

/// The elements for each sample of a layer, and of its parameters.
struct ChainNumbers {
  std::size_t inputs, outputs, saved, delta;
  bool split;
  std::size_t parameters = 0;
};

/// The sizes of a layer for all samples in elements, and where its values begin: those of `saved`
/// and `output` in the stage's saved memory, those of `delta` and `output_grad` in its delta, and
/// its parameters. The last layer has no place for its output and the gradient of that.
struct ChainPlace {
  std::size_t input, output, saved, delta, parameters;
  std::size_t saved_at, output_at, delta_at, output_grad_at, parameters_at;
};

/// The places of the values of a stage.
class ChainSizes {
 public:
  /// `samples` is the size of a microbatch, of which `place` may have a part. The first and the
  /// last layer of the model need no inputs and no outputs.
  /// @throws contract_error if another layer has none.
  ChainSizes(const std::vector<ChainNumbers>& layers, std::size_t samples, const StagePlace& place,
             bool takes_data, bool computes_loss);

  [[nodiscard]] const ChainPlace& operator[](std::size_t layer) const { return m_layers[layer]; }
  [[nodiscard]] std::size_t first() const noexcept { return m_first; }
  [[nodiscard]] std::size_t samples() const noexcept { return m_samples; }

  // The sizes of a PipelineStage.
  [[nodiscard]] std::size_t input() const { return m_layers.front().input; }
  [[nodiscard]] std::size_t output() const { return m_layers.back().output; }
  [[nodiscard]] std::size_t saved() const noexcept { return m_saved; }
  [[nodiscard]] std::size_t delta() const noexcept { return m_delta; }
  [[nodiscard]] std::size_t parameters() const noexcept { return m_parameters; }

  /// Checks the samples of a call. @throws contract_error if they differ from samples().
  void check_samples(Item item, std::size_t samples) const;

 private:
  std::vector<ChainPlace> m_layers;
  std::size_t m_first, m_samples;
  std::size_t m_saved = 0, m_delta = 0, m_parameters = 0;
};

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

/// Throws contract_error unless a Chain can be made.
void check_chain_options(std::size_t samples, bool updates);
/// Throws contract_error unless layer `number` fits behind one of `before` outputs.
void check_chain_layer(std::size_t before, std::size_t inputs, std::size_t number,
                       const std::vector<ChainArray>& arrays);

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/impl/chain_sizes.ipp>
#endif
