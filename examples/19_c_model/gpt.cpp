// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpt.hpp"

static void linear_forward(float* out, const float* in, const float* w, int n, int ni, int no) {
  for (int r = 0; r < n; ++r)
    for (int o = 0; o < no; ++o) {
      float sum = 0;
      for (int i = 0; i < ni; ++i) sum += w[o * ni + i] * in[r * ni + i];
      out[r * no + o] = sum;
    }
}
static void linear_input(float* din, const float* dout, const float* w, int n, int ni, int no) {
  memset(din, 0, (size_t)n * ni * sizeof(float));
  for (int r = 0; r < n; ++r)
    for (int o = 0; o < no; ++o)
      for (int i = 0; i < ni; ++i) din[r * ni + i] += w[o * ni + i] * dout[r * no + o];
}
static void linear_weight(float* dw, const float* dout, const float* in, int n, int ni, int no) {
  for (int r = 0; r < n; ++r)
    for (int o = 0; o < no; ++o)
      for (int i = 0; i < ni; ++i) dw[o * ni + i] += dout[r * no + o] * in[r * ni + i];
}

static void moments(const float* x, int c, float* mean, float* scale) {
  float sum = 0, squares = 0;
  for (int i = 0; i < c; ++i) sum += x[i];
  *mean = sum / c;
  for (int i = 0; i < c; ++i) squares += (x[i] - *mean) * (x[i] - *mean);
  *scale = 1 / sqrtf(squares / c + 1e-5f);
}
static void norm_forward(float* out, const float* in, const float* w, int n, int c) {
  for (int r = 0; r < n; ++r) {
    float mean, scale;
    moments(in + r * c, c, &mean, &scale);
    for (int i = 0; i < c; ++i) out[r * c + i] = (in[r * c + i] - mean) * scale * w[i] + w[c + i];
  }
}
static void norm_input(float* din, const float* dout, const float* in, const float* w, int n,
                       int c) {  // adds
  for (int r = 0; r < n; ++r) {
    const float *x = in + r * c, *dy = dout + r * c;
    float mean, scale, a = 0, b = 0;
    moments(x, c, &mean, &scale);
    for (int i = 0; i < c; ++i) {
      a += dy[i] * w[i];
      b += dy[i] * w[i] * (x[i] - mean) * scale;
    }
    for (int i = 0; i < c; ++i)
      din[r * c + i] += scale * (dy[i] * w[i] - a / c - (x[i] - mean) * scale * b / c);
  }
}
static void norm_weight(float* dw, const float* dout, const float* in, int n, int c) {
  for (int r = 0; r < n; ++r) {
    float mean, scale;
    moments(in + r * c, c, &mean, &scale);
    for (int i = 0; i < c; ++i) {
      dw[i] += dout[r * c + i] * (in[r * c + i] - mean) * scale;
      dw[c + i] += dout[r * c + i];
    }
  }
}

void embed_forward(const GptShape* s, float* out, const int* ids, const float* wte,
                   const float* wpe, int n) {
  for (int r = 0; r < n * s->tokens; ++r)
    for (int i = 0; i < s->width; ++i)
      out[r * s->width + i] = wte[ids[r] * s->width + i] + wpe[r % s->tokens * s->width + i];
}
void embed_backward(const GptShape* s, float* dwte, float* dwpe, const float* dout, const int* ids,
                    int n) {
  for (int r = 0; r < n * s->tokens; ++r)
    for (int i = 0; i < s->width; ++i) {
      dwte[ids[r] * s->width + i] += dout[r * s->width + i];
      dwpe[r % s->tokens * s->width + i] += dout[r * s->width + i];
    }
}

// Saved: the normed input, q k v, what the heads give, and the probabilities.
size_t attention_saved(const GptShape* s) { return (size_t)(5 * s->width + s->heads * s->tokens); }
size_t attention_weights(const GptShape* s) { return (size_t)(2 + 4 * s->width) * s->width; }

void attention_forward(const GptShape* s, float* out, float* saved, const float* in, const float* w,
                       int n) {
  const int c = s->width, t = s->tokens, h = c / s->heads, rows = n * t;
  float *normed = saved, *qkv = normed + rows * c, *heads = qkv + rows * 3 * c,
        *p = heads + rows * c;
  norm_forward(normed, in, w, rows, c);
  linear_forward(qkv, normed, w + 2 * c, rows, c, 3 * c);
  memset(heads, 0, (size_t)rows * c * sizeof(float));
  for (int r = 0; r < rows; ++r)
    for (int a = 0; a < s->heads; ++a) {
      const int first = r / t * t;
      const float* q = qkv + r * 3 * c + a * h;
      float *row = p + (r * s->heads + a) * t, sum = 0;
      for (int j = 0; j <= r - first; ++j) {
        float score = 0;
        for (int i = 0; i < h; ++i) score += q[i] * qkv[(first + j) * 3 * c + c + a * h + i];
        row[j] = expf(score / sqrtf((float)h));
        sum += row[j];
      }
      for (int j = 0; j <= r - first; ++j) {
        row[j] /= sum;
        for (int i = 0; i < h; ++i)
          heads[r * c + a * h + i] += row[j] * qkv[(first + j) * 3 * c + 2 * c + a * h + i];
      }
    }
  linear_forward(out, heads, w + 2 * c + 3 * c * c, rows, c, c);
  for (int i = 0; i < rows * c; ++i) out[i] += in[i];
}

void attention_backward(const GptShape* s, float* din, float* dw, float* d, const float* dout,
                        const float* in, const float* saved, const float* w, int n) {
  const int c = s->width, t = s->tokens, h = c / s->heads, rows = n * t;
  const float *normed = saved, *qkv = normed + rows * c, *heads = qkv + rows * 3 * c,
              *p = heads + rows * c;
  float *dnormed = d, *dqkv = dnormed + rows * c, *dheads = dqkv + rows * 3 * c;
  if (din) {
    linear_input(dheads, dout, w + 2 * c + 3 * c * c, rows, c, c);
    memset(dqkv, 0, (size_t)rows * 3 * c * sizeof(float));
    for (int r = 0; r < rows; ++r)
      for (int a = 0; a < s->heads; ++a) {
        const int first = r / t * t;
        const float *row = p + (r * s->heads + a) * t, *dh = dheads + r * c + a * h;
        float dot = 0;
        for (int i = 0; i < h; ++i) dot += dh[i] * heads[r * c + a * h + i];
        for (int j = 0; j <= r - first; ++j) {
          const int other = (first + j) * 3 * c + a * h;
          float dp = 0;
          for (int i = 0; i < h; ++i) {
            dp += dh[i] * qkv[other + 2 * c + i];
            dqkv[other + 2 * c + i] += row[j] * dh[i];
          }
          const float dscore = row[j] * (dp - dot) / sqrtf((float)h);
          for (int i = 0; i < h; ++i) {
            dqkv[r * 3 * c + a * h + i] += dscore * qkv[other + c + i];
            dqkv[other + c + i] += dscore * qkv[r * 3 * c + a * h + i];
          }
        }
      }
    linear_input(dnormed, dqkv, w + 2 * c, rows, c, 3 * c);
    memcpy(din, dout, (size_t)rows * c * sizeof(float));
    norm_input(din, dnormed, in, w, rows, c);
  }
  if (dw) {
    norm_weight(dw, dnormed, in, rows, c);
    linear_weight(dw + 2 * c, dqkv, normed, rows, c, 3 * c);
    linear_weight(dw + 2 * c + 3 * c * c, dout, heads, rows, c, c);
  }
}

// Saved: the normed input, the hidden values before tanh, and behind it.
size_t mlp_saved(const GptShape* s) { return (size_t)(9 * s->width); }
size_t mlp_weights(const GptShape* s) { return (size_t)(2 + 8 * s->width) * s->width; }

void mlp_forward(const GptShape* s, float* out, float* saved, const float* in, const float* w,
                 int n) {
  const int c = s->width, rows = n * s->tokens;
  float *normed = saved, *hidden = normed + rows * c, *active = hidden + rows * 4 * c;
  norm_forward(normed, in, w, rows, c);
  linear_forward(hidden, normed, w + 2 * c, rows, c, 4 * c);
  for (int i = 0; i < rows * 4 * c; ++i) active[i] = tanhf(hidden[i]);
  linear_forward(out, active, w + 2 * c + 4 * c * c, rows, 4 * c, c);
  for (int i = 0; i < rows * c; ++i) out[i] += in[i];
}
void mlp_backward(const GptShape* s, float* din, float* dw, float* d, const float* dout,
                  const float* in, const float* saved, const float* w, int n) {
  const int c = s->width, rows = n * s->tokens;
  const float *normed = saved, *active = saved + rows * 5 * c;
  float *dnormed = d, *dhidden = dnormed + rows * c;
  if (din) {
    linear_input(dhidden, dout, w + 2 * c + 4 * c * c, rows, 4 * c, c);
    for (int i = 0; i < rows * 4 * c; ++i) dhidden[i] *= 1 - active[i] * active[i];
    linear_input(dnormed, dhidden, w + 2 * c, rows, c, 4 * c);
    memcpy(din, dout, (size_t)rows * c * sizeof(float));
    norm_input(din, dnormed, in, w, rows, c);
  }
  if (dw) {
    norm_weight(dw, dnormed, in, rows, c);
    linear_weight(dw + 2 * c, dhidden, normed, rows, c, 4 * c);
    linear_weight(dw + 2 * c + 4 * c * c, dout, active, rows, 4 * c, c);
  }
}

// Saved: the normed input and the probabilities.
size_t head_saved(const GptShape* s) { return (size_t)(s->width + s->vocabulary); }

double head_forward(const GptShape* s, float* saved, const float* in, const float* norm,
                    const float* wte, const int* next, int n, int all) {
  const int c = s->width, v = s->vocabulary, rows = n * s->tokens;
  float* p = saved + rows * c;
  double loss = 0;
  norm_forward(saved, in, norm, rows, c);
  linear_forward(p, saved, wte, rows, c, v);
  for (int r = 0; r < rows; ++r) {
    float sum = 0;
    for (int i = 0; i < v; ++i) sum += p[r * v + i] = expf(p[r * v + i]);
    for (int i = 0; i < v; ++i) p[r * v + i] /= sum;
    loss -= log((double)p[r * v + next[r]]) / all;
  }
  return loss;
}
void head_backward(const GptShape* s, float* din, float* dnorm, float* dwte, float* d,
                   const float* in, const float* saved, const float* norm, const float* wte,
                   const int* next, int n, int all) {
  const int c = s->width, v = s->vocabulary, rows = n * s->tokens;
  const float* p = saved + rows * c;
  float *dnormed = d, *dscores = d + rows * c;
  if (din) {
    for (int r = 0; r < rows; ++r)
      for (int i = 0; i < v; ++i)
        dscores[r * v + i] = (p[r * v + i] - (i == next[r] ? 1.f : 0.f)) / (float)all;
    linear_input(dnormed, dscores, wte, rows, c, v);
    memset(din, 0, (size_t)rows * c * sizeof(float));
    norm_input(din, dnormed, in, norm, rows, c);
  }
  if (dwte) {
    norm_weight(dnorm, dnormed, in, rows, c);
    linear_weight(dwte, dscores, saved, rows, c, v);
  }
}

void momentum_step(float* w, const float* dw, float* velocity, size_t count, float rate) {
  for (size_t i = 0; i < count; ++i) {
    velocity[i] = 0.9f * velocity[i] + dw[i];
    w[i] -= rate * velocity[i];
  }
}

size_t gpt_weights(const GptShape* s) {
  return (size_t)(s->vocabulary + s->tokens + 2) * s->width +
         (size_t)s->layers * (attention_weights(s) + mlp_weights(s));
}
void gpt_initialize(const GptShape* s, float* w) {
  unsigned seed = 1;
  const size_t count = gpt_weights(s);
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    w[i] = 0.2f * ((float)(seed >> 8) / 16777216.f - 0.5f);
  }
}

double gpt_gradients(const GptShape* s, float* dw, const float* w, const int* ids, const int* next,
                     int parts, int groups, int n) {
  const int c = s->width, rows = n * s->tokens, layers = 2 * s->layers;
  const size_t wte = (size_t)s->vocabulary * c, wpe = (size_t)s->tokens * c;
  const size_t count = gpt_weights(s), most = attention_saved(s) + mlp_saved(s) + head_saved(s);
  float* x = (float*)calloc((size_t)rows * c * (layers + 1), sizeof(float));
  float* saved = (float*)calloc((size_t)rows * most * (layers + 1), sizeof(float));
  float* d = (float*)calloc((size_t)rows * most, sizeof(float));
  float* dx = (float*)calloc((size_t)rows * c * 2, sizeof(float));
  float* sums = (float*)calloc(count + wte, sizeof(float));  // of a group, then wte of the head
  float* dhead = (float*)calloc(wte, sizeof(float));
  double loss = 0;
  memset(dw, 0, count * sizeof(float));
  for (int group = 0; group < groups; ++group) {
    double losses = 0;
    memset(sums, 0, (count + wte) * sizeof(float));
    for (int m = group * parts / groups; m < (group + 1) * parts / groups; ++m) {
      const float *at = w + wte + wpe, *norm = w + count - 2 * c;
      embed_forward(s, x, ids + m * rows, w, w + wte, n);
      for (int l = 0; l < layers; ++l) {
        float *in = x + l * rows * c, *kept = saved + l * rows * most;
        (l % 2 ? mlp_forward : attention_forward)(s, in + rows * c, kept, in, at, n);
        at += l % 2 ? mlp_weights(s) : attention_weights(s);
      }
      float *in = x + layers * rows * c, *kept = saved + layers * rows * most;
      losses += head_forward(s, kept, in, norm, w, next + m * rows, n, parts * rows);
      head_backward(s, dx, sums + count - 2 * c, sums + count, d, in, kept, norm, w,
                    next + m * rows, n, parts * rows);
      for (int l = layers - 1; l >= 0; --l) {
        float *dout = dx + (layers - 1 - l) % 2 * rows * c, *din = dx + (layers - l) % 2 * rows * c;
        at -= l % 2 ? mlp_weights(s) : attention_weights(s);
        (l % 2 ? mlp_backward : attention_backward)(
            s, din, sums + (at - w), d, dout, x + l * rows * c, saved + l * rows * most, at, n);
      }
      embed_backward(s, sums, sums + wte, dx + layers % 2 * rows * c, ids + m * rows, n);
    }
    loss += losses;
    for (size_t i = 0; i < count; ++i) dw[i] += sums[i];
    for (size_t i = 0; i < wte; ++i) dhead[i] += sums[count + i];
  }
  for (size_t i = 0; i < wte; ++i) dw[i] += dhead[i];
  free(x), free(saved), free(d), free(dx), free(sums), free(dhead);
  return loss;
}
