// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// LayerChain: the part of a LayerStage that does not depend on the type of its
/// layers.

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <heddle/core/index.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/pipeline/impl/chain_sizes.hpp>
#include <heddle/pipeline/layer_place.hpp>

namespace heddle::inline v0::impl {

/// A pointer in a call of a stage, by the name of the member.
struct NamedPointer {
  const char* name;
  bool is_set;
};

/// The layout of the memory of a LayerStage, and the samples that it gets in a step. All sizes and
/// offsets are in elements.
class LayerChain {
 public:
  /// @throws contract_error as the constructor of LayerStage.
  LayerChain(std::vector<LayerNumbers> layers, LayerPlace place, bool split);

  [[nodiscard]] const LayerPlace& place() const noexcept { return m_place; }
  [[nodiscard]] const LayerNumbers& operator[](std::size_t layer) const { return m_sizes[layer]; }
  [[nodiscard]] std::size_t parameters() const noexcept { return m_sizes.parameters(); }
  [[nodiscard]] std::size_t widest() const noexcept { return m_widest; }

  // The sizes of a PipelineStage.
  [[nodiscard]] std::size_t input_size() const;
  [[nodiscard]] std::size_t output_size() const;
  [[nodiscard]] std::size_t saved_size() const;
  [[nodiscard]] std::size_t delta_size() const;

  /// Returns where the output of `layer` begins in the saved memory of so many rows.
  [[nodiscard]] std::size_t output_at(std::size_t layer, std::size_t rows) const {
    const ChainPlace& at = m_sizes.at(layer);
    return rows * (layer + 1 == m_sizes.layers() ? at.saved : at.output);
  }
  /// Returns where the gradient of the loss begins, behind the outputs.
  [[nodiscard]] std::size_t loss_gradient_at(std::size_t rows) const {
    return rows * (m_sizes.at(m_sizes.layers() - 1).saved + m_sizes.last().outputs);
  }
  /// Returns where the delta of `layer` begins in the delta of so many rows.
  [[nodiscard]] std::size_t delta_at(std::size_t layer, std::size_t rows) const {
    return rows * m_sizes.at(layer).delta;
  }

  /// Takes the shapes of a step's data. @throws contract_error as LayerStage::begin_step().
  void begin_step(std::size_t input_rows, std::size_t input_columns, std::size_t target_rows);
  [[nodiscard]] const std::optional<std::size_t>& microbatches() const { return m_microbatches; }
  /// Checks a call of the stage: its microbatch is one of the step, if the number is known, and its
  /// pointers are set. @throws contract_error that names the entry.
  void check_call(const char* call, Item item, std::initializer_list<NamedPointer> pointers) const;
  /// Returns the samples of a microbatch. @throws contract_error if the schedule has another
  /// number.
  [[nodiscard]] std::size_t rows(Item item, std::size_t scheduled) const;
  /// Returns the first sample of a microbatch among those of a step.
  [[nodiscard]] std::size_t begin_of(Item item) const;

  /// The losses of the microbatches of this step.
  void set_loss(Item item, double loss) { m_losses.at(+item) = loss; }
  [[nodiscard]] double loss(Item item) const {
    return +item < m_losses.size() ? m_losses[+item] : 0;
  }

  /// Checks the number of elements of a vector that an update keeps.
  void check_memory(const std::string& name, std::size_t elements) const;

 private:
  void check(const std::vector<LayerNumbers>& layers) const;
  void take_samples(const char* name, std::size_t samples);

  LayerPlace m_place;
  bool m_split;  ///< true if the backward passes of the layers are split
  ChainSizes m_sizes;
  std::size_t m_widest = 0;
  std::optional<std::size_t> m_microbatches;  ///< number in the last step, if it is known
  std::vector<double> m_losses;
};

}  // namespace heddle::inline v0::impl

#if HEDDLE_DEFINES_PIPELINE
#include <heddle/pipeline/impl/layer_chain.ipp>
#endif
