// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The layers and the products of the room kernel, for scripts/gate.

#include <cstdint>

#include <heddle/kernel.hpp>
#include <heddle/layout/index_set.hpp>

#include "support.hpp"

namespace {

namespace hk = heddle::kernel;

template <class Real>
void layers(const gate::Exec& exec) {
  const auto a = gate::matrix<Real>(), b = gate::matrix<Real>(), c = gate::matrix<Real>(),
             d = gate::matrix<Real>();
  const auto u = gate::vector<Real>(), v = gate::vector<Real>(), w = gate::vector<Real>();
  const auto tokens = gate::matrix<std::uint8_t>();
  const hk::AttentionShape attention{1, 8, 2, 8};

  hk::embedding_forward(exec, tokens, a, b, c);
  hk::embedding_backward_weight(exec, tokens, a, b, c);
  hk::layer_norm_forward(exec, a, u, v, b, w, c);
  hk::layer_norm_output(exec, a, u, v, b);
  hk::layer_norm_backward_input(exec, a, u, v, b, c);
  hk::layer_norm_backward_weight(exec, a, b, u, v);
  hk::linear_forward(exec, a, b, u, c);
  hk::linear_backward_input(exec, a, b, c);
  hk::linear_backward_weight(exec, a, b, c, u);
  hk::attention_forward(exec, attention, a, b, c);
  hk::attention_backward_input(exec, attention, a, b, c, d, d);
  const hk::AttentionHeads heads{2, 1, 4};
  const hk::VisibleKeys<gate::Exec> visible(heddle::IndexSet(8), heddle::IndexSet(8), {});
  const hk::AttentionState<Real, gate::Exec> state{a, b, b};
  hk::clear_attention(exec, state);
  hk::block_attention_forward(exec, heads, visible, {a, b, c}, d, state);
  hk::block_attention_backward(exec, heads, visible, {a, b, c}, state, c, d,
                               hk::AttentionInputGrad<Real, gate::Exec>{a, b, c});
  hk::join_attention(exec, heads, state, hk::AttentionState<Real, gate::Exec>{c, d, d});
  hk::impl::attention_scores(exec, heads, visible, a, b, c);
  hk::impl::add_to_softmax_sums(exec, heads, visible, c, u, v);
  hk::impl::scores_to_probabilities(exec, heads, visible, u, v, c);
  hk::attend(exec, heads, visible, c, b, a);
  hk::impl::attention_values_backward(exec, heads, visible, c, b, a, a, d, b);
  hk::impl::attention_scores_backward(exec, heads, visible, d, a, b, a, b);
  hk::gelu_forward(exec, a, b);
  hk::gelu_backward_input(exec, a, b, c);
  hk::residual_add(exec, a, b);
  hk::cross_entropy_forward(exec, tokens, 1.0, a, u, gate::vector<double>());
  hk::cross_entropy_backward_input(exec, tokens, 1.0, a, b);
  hk::adam_update(exec, {}, 1, u, v, w, gate::vector<Real>());
  hk::gemm(exec, hk::Transpose::no, hk::Transpose::yes, Real(1), a, b, Real(0), c);
  hk::team_gemm(exec, hk::Transpose::no, hk::Transpose::yes, Real(1), a, b, Real(0), c);
}

}  // namespace

void gate_kernel_layers() {
  layers<float>({});
  layers<double>({});
}
