// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GradientSigns: how far the samples of a batch agree on the signs of a network's gradient, a
/// score that ranks networks without training. Source: Zhang and Jia, "GradSign: model performance
/// inference with theoretical insights", 2022, and the authors' code.

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <heddle/core/linkage.hpp>

namespace heddle::inline v0::systems {

/// The sums of the signs of the gradients of single samples, one sum for each parameter. The sums
/// are integers, so they do not depend on the order of the samples or on how samples are divided
/// among threads and ranks.
class GradientSigns {
 public:
  /// Constructs the sums of no samples.
  explicit GradientSigns(std::size_t parameters = 0) : m_sums(parameters, 0) {}

  /// Adds the signs of the gradient of one sample. The sign of 0 is 0.
  /// @throws contract_error if the gradient has another number of parameters, or an element that is
  ///         not a number. The sums are unchanged then.
  template <std::floating_point T>
  void add(std::span<const T> gradient) {
    check(gradient.size());
    for (std::size_t k = 0; k < gradient.size(); ++k)
      if (std::isnan(gradient[k])) reject(k);
    for (std::size_t k = 0; k < gradient.size(); ++k)
      m_sums[k] += (gradient[k] > 0) - (gradient[k] < 0);
    ++m_samples;
  }

  /// Adds the sums of other samples.
  /// @throws contract_error if they have another number of parameters, or if there are 2^31 samples
  ///         or more in all.
  void merge(const GradientSigns& other);

  /// Returns the number of parameters.
  [[nodiscard]] std::size_t parameters() const noexcept { return m_sums.size(); }
  /// Returns the number of samples.
  [[nodiscard]] std::int64_t samples() const noexcept { return m_samples; }
  /// Returns the sum of signs of each parameter.
  [[nodiscard]] std::span<const std::int32_t> sums() const noexcept {
    return {m_sums.data(), m_sums.size()};
  }

  /// Returns the score: the sum over the parameters of |sum of signs|. It is at most parameters() *
  /// samples(). A higher score predicts a lower loss after training.
  [[nodiscard]] std::int64_t score() const noexcept { return absolute_sum(m_sums); }

  /// Returns the sum of the absolute values of `sums`, such as a block of sums().
  [[nodiscard]] static std::int64_t absolute_sum(std::span<const std::int32_t> sums) noexcept;

  friend bool operator==(const GradientSigns&, const GradientSigns&) = default;

 private:
  void check(std::size_t parameters) const;
  [[noreturn]] static void reject(std::size_t parameter);

  std::vector<std::int32_t> m_sums;
  std::int64_t m_samples = 0;
};

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/gradsign/gradient_signs.ipp>
#endif
