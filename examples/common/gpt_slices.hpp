// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// SlicedBatches: the microbatches of a training whose sequences are cut into slices, each of which
/// is a microbatch of the schedule.

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpt_packed.hpp"
#include "gpt_training.hpp"

namespace examples {

/// The slices of every microbatch of a training, from the first slice of the first microbatch on.
template <class Real>
class SlicedBatches {
 public:
  using Stage = GptStage<Real>;
  using Packed = GptPacked<Real, typename Stage::execution_space>;

  /// Cuts each sequence into `slices` slices. `tensor` are the ranks that divide the layers.
  SlicedBatches(const GptTraining& training, int slices, typename Stage::Line tensor = {})
      : m_training(training),
        m_slices(static_cast<std::size_t>(slices)),
        m_tensor(std::move(tensor)) {}

  /// Returns the shapes that slices have: at most two.
  [[nodiscard]] std::vector<GptBlockShape> shapes() const {
    std::vector<GptBlockShape> shapes;
    for (const std::size_t slice : {std::size_t{0}, m_slices - 1})
      shapes.push_back(Packed(m_training.model, m_tensor, {}, slice, m_slices, 0).shape);
    return shapes;
  }

  /// Returns the slices of step `step` of a replica.
  [[nodiscard]] std::vector<Packed> batch(const Text& text, int step, int replica) const {
    const std::vector<std::uint8_t> tokens = examples::batch(m_training, text, step, replica);
    const std::size_t each = tokens.size() / static_cast<std::size_t>(m_training.microbatches);
    std::vector<Packed> slices;
    for (std::size_t first = 0; first < tokens.size(); first += each)
      for (std::size_t slice = 0; slice < m_slices; ++slice)
        slices.emplace_back(m_training.model, m_tensor,
                            std::span<const std::uint8_t>(tokens).subspan(first, each), slice,
                            m_slices, weight(m_training));
    return slices;
  }

 private:
  GptTraining m_training;
  std::size_t m_slices;
  typename Stage::Line m_tensor;
};

}  // namespace examples
