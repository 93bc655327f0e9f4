// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// GptSampler: draws the next token of a text from its logits. A draw depends on the seed, the
/// number of the request and the index of the token only, so that a text does not depend on the
/// other requests of its batch, on their order of arrival or on the ranks.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/random.hpp>
#include <heddle/core/text.hpp>

namespace examples {

/// How tokens are drawn. The options apply in this order: temperature, top_k, top_p.
struct GptSampling {
  double temperature = 0;  ///< divides the logits; 0: the likeliest token is taken
  int top_k = 256;         ///< only so many of the likeliest tokens may be drawn
  /// Only the fewest of the likeliest tokens may be drawn that together have this share of the
  /// probability (Holtzman et al., "The curious case of neural text degeneration", 2020).
  double top_p = 1;
  std::uint64_t seed = 1;  ///< seed of all draws
};

/// Throws contract_error naming the first option that is out of range.
inline void validate(const GptSampling& sampling) {
  const auto in_range = [](bool good, const char* what, double value, const char* remedy) {
    heddle::expects(good, [&] {
      return heddle::ErrorInfo{"GptSampling", what, heddle::text("got ", value), remedy};
    });
  };
  in_range(sampling.temperature >= 0 && std::isfinite(sampling.temperature),
           "the temperature is negative or not a number", sampling.temperature,
           "use 0 for the likeliest token, and 0.7 to 1 for varied texts");
  in_range(sampling.top_k >= 1, "top-k must be at least 1", sampling.top_k,
           "use 1 for the likeliest token, and 256 for all of them");
  in_range(sampling.top_p > 0 && sampling.top_p <= 1, "top-p must lie in (0, 1]", sampling.top_p,
           "use 1 for all tokens");
}

/// Draws tokens. It allocates memory when it is constructed only.
class GptSampler {
 public:
  /// Constructs a sampler of tokens below `vocabulary`. @throws contract_error as validate() does.
  GptSampler(const GptSampling& sampling, std::size_t vocabulary)
      : m_sampling(sampling),
        m_random(sampling.seed, "sample"),
        m_weights(vocabulary),
        m_order(vocabulary) {
    validate(sampling);
  }

  /// Returns the token with number `index` of request `request`, whose text has these logits.
  /// Logits that differ by a constant give the same token.
  /// @throws contract_error if there is another number of logits, or if one is not a number.
  template <class Real>
  [[nodiscard]] std::uint8_t draw(std::span<const Real> logits, std::uint32_t request,
                                  std::uint32_t index) {
    heddle::expects(logits.size() == m_weights.size() &&
                        std::ranges::none_of(logits, [](Real x) { return std::isnan(x); }),
                    [&] {
                      return heddle::ErrorInfo{
                          "GptSampler", "the logits are not those of the vocabulary",
                          heddle::text(logits.size(), " logits, ", m_weights.size(),
                                       " tokens, or a logit is not a number"),
                          "look for parameters that are not numbers"};
                    });
    const auto likeliest = std::ranges::max_element(logits);
    if (m_sampling.temperature == 0) return static_cast<std::uint8_t>(likeliest - logits.begin());
    const auto top = static_cast<double>(*likeliest);
    for (std::size_t i = 0; i < logits.size(); ++i)
      m_weights[i] = std::exp((static_cast<double>(logits[i]) - top) / m_sampling.temperature);
    drop_unlikely();
    const double sum = std::accumulate(m_weights.begin(), m_weights.end(), 0.0);
    double left = m_random.uniform((std::uint64_t{request} << 32) | index) * sum;
    std::size_t drawn = 0;
    for (std::size_t i = 0; i < m_weights.size(); ++i) {
      if (m_weights[i] == 0) continue;
      drawn = i;
      if ((left -= m_weights[i]) < 0) break;
    }
    return static_cast<std::uint8_t>(drawn);
  }

 private:
  /// Sets the weights of tokens to 0 that top_k and top_p leave out. Of equally likely tokens those
  /// with the lower numbers stay.
  void drop_unlikely() {
    const std::size_t kept = std::min(m_weights.size(), static_cast<std::size_t>(m_sampling.top_k));
    if (kept == m_weights.size() && m_sampling.top_p == 1) return;
    std::iota(m_order.begin(), m_order.end(), std::size_t{0});
    std::ranges::sort(m_order, [&](std::size_t a, std::size_t b) {
      return m_weights[a] != m_weights[b] ? m_weights[a] > m_weights[b] : a < b;
    });
    double all = 0;
    for (std::size_t i = 0; i < kept; ++i) all += m_weights[m_order[i]];
    std::size_t last = 0;
    for (double sum = 0; last < kept && sum < m_sampling.top_p * all; ++last)
      sum += m_weights[m_order[last]];
    for (std::size_t i = last; i < m_order.size(); ++i) m_weights[m_order[i]] = 0;
  }

  GptSampling m_sampling;
  heddle::Random m_random;
  std::vector<double> m_weights;
  std::vector<std::size_t> m_order;
};

}  // namespace examples
