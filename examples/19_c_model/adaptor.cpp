// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

// The layers of the GPT as those of a Chain: their sizes, their arrays, and the calls of its
// functions.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "adaptor.hpp"

using Forward = hd::ChainForward<float>;
using Backward = hd::ChainBackward<float>;

namespace {

/// What all layers have in common. Their arrays begin at `at` among the weights of the model.
struct Part {
  const Batch* batch;
  std::size_t at = 0;
  const GptShape* shape() const { return &batch->shape; }
  std::size_t rows(std::size_t n) const { return static_cast<std::size_t>(shape()->tokens) * n; }
  std::size_t width() const { return static_cast<std::size_t>(shape()->width); }
  std::size_t wte() const { return width() * static_cast<std::size_t>(shape()->vocabulary); }
  std::size_t inputs() const { return rows(width()); }
  std::size_t outputs() const { return rows(width()); }
  float* copy(std::size_t from, std::size_t count, float* to) const {
    return std::copy_n(batch->weights.data() + from, count, to);
  }
  void initialize(std::span<float> w) const { copy(at, w.size(), w.data()); }
};

struct Embedding : Part {
  std::size_t inputs() const { return 0; }
  std::size_t saved() const { return 0; }
  std::size_t delta() const { return 0; }
  std::vector<hd::ChainArray> arrays() const {
    return {{"wte", wte(), true}, {"wpe", rows(width())}};
  }
  void forward(const Forward& f) const {
    embed_forward(shape(), f.output.data(), batch->of(batch->ids, f.item), f.weights.data(),
                  f.weights.data() + wte(), batch->sequences);
  }
  void backward_input(const Backward&) const {}
  void backward_weight(const Backward& b) const {
    embed_backward(shape(), b.gradients.data(), b.gradients.data() + wte(), b.output_grad.data(),
                   batch->of(batch->ids, b.item), batch->sequences);
  }
};

/// The first or the second half of a transformer block.
template <bool mlp>
struct HalfBlock : Part {
  std::size_t saved() const { return rows((mlp ? mlp_saved : attention_saved)(shape())); }
  std::size_t delta() const { return saved(); }
  std::vector<hd::ChainArray> arrays() const {
    return {{mlp ? "mlp" : "attention", (mlp ? mlp_weights : attention_weights)(shape())}};
  }
  void forward(const Forward& f) const {
    (mlp ? mlp_forward : attention_forward)(shape(), f.output.data(), f.saved.data(),
                                            f.input.data(), f.weights.data(), batch->sequences);
  }
  void backward_input(const Backward& b) const {  // both halves: what is empty is left out
    (mlp ? mlp_backward : attention_backward)(shape(), b.input_grad.data(), b.gradients.data(),
                                              b.delta.data(), b.output_grad.data(), b.input.data(),
                                              b.saved.data(), b.weights.data(), batch->sequences);
  }
  void backward_weight(const Backward& b) const { backward_input(b); }
};

struct Head : Part {
  std::size_t outputs() const { return 0; }
  std::size_t saved() const { return rows(head_saved(shape())); }
  std::size_t delta() const { return saved(); }
  int all() const { return batch->microbatches * batch->sequences * shape()->tokens; }
  std::vector<hd::ChainArray> arrays() const {
    return {{"norm", 2 * width()}, {"wte", wte(), true}};
  }
  void initialize(std::span<float> w) const { copy(0, wte(), copy(at, 2 * width(), w.data())); }
  double forward(const Forward& f) const {
    return head_forward(shape(), f.saved.data(), f.input.data(), f.weights.data(),
                        f.weights.data() + 2 * width(), batch->of(batch->next, f.item),
                        batch->sequences, all());
  }
  void backward_input(const Backward& b) const {
    float* const dw = b.gradients.data();
    head_backward(shape(), b.input_grad.data(), dw, dw ? dw + 2 * width() : dw, b.delta.data(),
                  b.input.data(), b.saved.data(), b.weights.data(), b.weights.data() + 2 * width(),
                  batch->of(batch->next, b.item), batch->sequences, all());
  }
  void backward_weight(const Backward& b) const { backward_input(b); }
};

}  // namespace

hd::Chain<float> chain_of(const Batch& batch) {
  hd::Chain<float> chain({.samples = static_cast<std::size_t>(batch.sequences),
                          .update =
                              [](const hd::ChainUpdate<float>& u) {
                                momentum_step(u.weights.data(), u.gradients.data(),
                                              u.memory[0].data(), u.weights.size(), 0.1f);
                              },
                          .memory = {"velocity"}});
  Part part{&batch};
  chain.add(Embedding{part});
  part.at = part.wte() + part.rows(part.width());
  for (int l = 0; l < batch.shape.layers; ++l) {
    chain.add(HalfBlock<false>{part});
    part.at += attention_weights(part.shape());
    chain.add(HalfBlock<true>{part});
    part.at += mlp_weights(part.shape());
  }
  chain.add(Head{part});
  return chain;
}
