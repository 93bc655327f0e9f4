// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// A GPT in plain functions over flat arrays, and the loop that trains it on one processor. It
/// knows nothing of Heddle.

#include <cstddef>

struct GptShape {
  int tokens, width, heads, vocabulary, layers;
};

// The elements that a layer has for a token, and those of its weights. Weights lie in the order of
// the names: attention (gain, bias, qkv, proj), mlp (gain, bias, up, down), head norm (gain, bias).
size_t attention_saved(const GptShape* s);
size_t attention_weights(const GptShape* s);
size_t mlp_saved(const GptShape* s);
size_t mlp_weights(const GptShape* s);
size_t head_saved(const GptShape* s);

// Forward passes over `n` sequences. Backward passes compute the gradient of the input (`din`), the
// gradients of the weights (added to `dw`), or both: a null pointer says what to leave out. They
// keep in `d` what the gradients of the weights need, in as many elements as are saved.
void embed_forward(const GptShape* s, float* out, const int* ids, const float* wte,
                   const float* wpe, int n);
void embed_backward(const GptShape* s, float* dwte, float* dwpe, const float* dout, const int* ids,
                    int n);
void attention_forward(const GptShape* s, float* out, float* saved, const float* in, const float* w,
                       int n);
void attention_backward(const GptShape* s, float* din, float* dw, float* d, const float* dout,
                        const float* in, const float* saved, const float* w, int n);
void mlp_forward(const GptShape* s, float* out, float* saved, const float* in, const float* w,
                 int n);
void mlp_backward(const GptShape* s, float* din, float* dw, float* d, const float* dout,
                  const float* in, const float* saved, const float* w, int n);
// The loss, the mean over `all` tokens of the batch. `wte` is the matrix of the embedding.
double head_forward(const GptShape* s, float* saved, const float* in, const float* norm,
                    const float* wte, const int* next, int n, int all);
void head_backward(const GptShape* s, float* din, float* dnorm, float* dwte, float* d,
                   const float* in, const float* saved, const float* norm, const float* wte,
                   const int* next, int n, int all);
void momentum_step(float* w, const float* dw, float* velocity, size_t count, float rate);

// The whole model: wte, wpe, then attention and mlp of every layer, then the norm of the head.
size_t gpt_weights(const GptShape* s);
void gpt_initialize(const GptShape* s, float* w);
// The gradients of `parts` microbatches of `n` sequences. The two uses of wte have a sum of their
// own each; the one of the head is added last. So are the sums of `groups` groups of microbatches.
double gpt_gradients(const GptShape* s, float* dw, const float* w, const int* ids, const int* next,
                     int parts, int groups, int n);
