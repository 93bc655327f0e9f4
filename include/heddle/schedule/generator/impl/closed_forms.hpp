// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The closed forms of the catalogue's bubble ratios, of which bubble_ratio() says what they hold
/// for. Each function states the idle time of a rank, and returns its ratio, or nothing if a
/// condition behind "if" does not hold. P, M and V are the ranks, the microbatches and the stages
/// of a rank; F, I and W are the times of a stage, the arguments f, i and w, and B is I + W.

#include <algorithm>
#include <optional>

#include <heddle/schedule/generator/catalogue.hpp>

namespace heddle::inline v0::schedule::impl {

using BubbleRatio = std::optional<double>;

/// Returns idle / (idle + work), where the work is that of `stages` stages per rank.
inline double bubble_of(double idle, const PipelineShape& s, double stages, double pass) {
  const double work = s.microbatches * stages * pass;
  return idle + work > 0 ? idle / (idle + work) : 0;
}

/// (P - 1)(F + B), for one stage per rank and any number of microbatches.
inline BubbleRatio bubble_1f1b(const PipelineShape& s, double f, double i, double w) {
  return bubble_of((s.ranks - 1) * (f + i + w), s, 1, f + i + w);
}
/// The same, if no rank lacks memory for the warm-up of policy B.
inline BubbleRatio bubble_dapple(const PipelineShape& s, double f, double i, double w) {
  if (s.most_live != 0 && s.most_live < std::min(s.microbatches, 2 * s.ranks - 1)) return {};
  return bubble_1f1b(s, f, i, w);
}
/// (P - 1) F, for forwards only.
inline BubbleRatio bubble_stream(const PipelineShape& s, double f, double, double) {
  return bubble_of((s.ranks - 1) * f, s, 1, f);
}
/// (P - 1)(F + B) of a single stage, if M >= P.
inline BubbleRatio bubble_interleaved(const PipelineShape& s, double f, double i, double w) {
  if (s.microbatches < s.ranks) return {};
  return bubble_of((s.ranks - 1) * (f + i + w), s, s.stages_per_rank, f + i + w);
}
/// (V max(M, P) + min(M, P) - 1 - V M)(F + B).
inline BubbleRatio bubble_looped(const PipelineShape& s, double f, double i, double w) {
  const double waits = std::max(s.ranks - s.microbatches, 0);
  const double last = std::min(s.microbatches, s.ranks) - 1;
  return bubble_of((s.stages_per_rank * waits + last) * (f + i + w), s, s.stages_per_rank,
                   f + i + w);
}
/// 2 (P - 1) + (V - 1) P / 2 for F = I = W = 1, if P is even, P / 2 divides M, and M >= P.
inline BubbleRatio bubble_gis(const PipelineShape& s, double f, double i, double w) {
  const int group = s.ranks / 2;
  if (f != i || i != w || s.ranks != 2 * group || s.microbatches < s.ranks ||
      s.microbatches % group != 0)
    return {};
  return bubble_of((2.0 * (s.ranks - 1) + (s.stages_per_rank - 1.0) * group) * f, s,
                   s.stages_per_rank, 3 * f);
}
/// (P/k - 2)(max(F, B) + (u - 1)|F - B|) for k pairs of pipelines and u whole units of P.
inline BubbleRatio bubble_chimera(const PipelineShape& s, double f, double i, double w) {
  if (s.microbatches % s.ranks != 0) return {};
  const double more = std::max(f, i + w), difference = more - std::min(f, i + w);
  const double units = s.microbatches / s.ranks;
  return bubble_of((s.ranks / s.pairs - 2) * (more + (units - 1) * difference), s, 1, f + i + w);
}
/// (P/2 - 1)(F + B) for one pair of pipelines, whole units of 2P, and F <= B <= 2F.
inline BubbleRatio bubble_chimera_doubled(const PipelineShape& s, double f, double i, double w) {
  if (s.pairs != 1 || s.microbatches % (2 * s.ranks) != 0 || i + w < f || i + w > 2 * f) return {};
  return bubble_of((s.ranks / 2 - 1) * (f + i + w), s, 1, f + i + w);
}
/// (P - 1) max(F, I, F + I - W), if M >= P. Source: Qi et al., "Zero bubble pipeline parallelism"
/// (2024), for F and I of at least W; the other cases were found by simulation.
inline BubbleRatio bubble_zb_h1(const PipelineShape& s, double f, double i, double w) {
  if (s.microbatches < s.ranks) return {};
  return bubble_of((s.ranks - 1) * std::max({f, i, f + i - w}), s, 1, f + i + w);
}
/// The same of single stages.
inline BubbleRatio bubble_interleaved_zb1p(const PipelineShape& s, double f, double i, double w) {
  if (s.microbatches < s.ranks) return {};
  return bubble_of((s.ranks - 1) * std::max({f, i, f + i - w}), s, s.stages_per_rank, f + i + w);
}
/// (P - 1) max(F, F + I - 2W, I - F), if M >= 2P - 1: the last rank starts (P - 1) F late. Source
/// and cases as for ZB-H1.
inline BubbleRatio bubble_zb_h2(const PipelineShape& s, double f, double i, double w) {
  if (s.microbatches < 2 * s.ranks - 1) return {};
  return bubble_of((s.ranks - 1) * std::max({f, f + i - 2 * w, i - f}), s, 1, f + i + w);
}
/// P - 1 for F = I = W = 1, if M >= 2P - 1 or M = P.
inline BubbleRatio bubble_zb_v(const PipelineShape& s, double f, double i, double w) {
  if (f != i || i != w || (s.microbatches < 2 * s.ranks - 1 && s.microbatches != s.ranks))
    return {};
  return bubble_of((s.ranks - 1) * f, s, 2, 3 * f);
}
/// 3P - 4 for F = I = W = 1 if P is odd, 3P - 7 if P is even, if M >= P >= 3.
inline BubbleRatio bubble_v_half(const PipelineShape& s, double f, double i, double w) {
  if (s.ranks < 3) return bubble_zb_v(s, f, i, w);
  if (f != i || i != w || s.microbatches < s.ranks) return {};
  return bubble_of((3 * s.ranks - (s.ranks % 2 == 0 ? 7 : 4)) * f, s, 2, 3 * f);
}
/// 4P - 7 for F = I = W = 1 if P is a multiple of 3, and 4P - 5 otherwise, if M >= P >= 3.
inline BubbleRatio bubble_v_min(const PipelineShape& s, double f, double i, double w) {
  if (f != i || i != w || s.ranks < 3 || s.microbatches < s.ranks) return {};
  return bubble_of((4 * s.ranks - (s.ranks % 3 == 0 ? 7 : 5)) * f, s, 2, 3 * f);
}
/// (stages / 2 - 1)(FB + B - 3W) with FB = F + B, if F = I >= W. Source: the README of
/// DeepSeek-AI's DualPipe.
inline BubbleRatio bubble_of_dualpipe(const PipelineShape& s, int stages, double f, double i,
                                      double w) {
  if (f != i || w > f) return {};
  return bubble_of((stages / 2 - 1) * (f + 2 * i - w), s, stages / s.ranks, f + i + w);
}
inline BubbleRatio bubble_dualpipe(const PipelineShape& s, double f, double i, double w) {
  return bubble_of_dualpipe(s, s.ranks, f, i, w);
}
inline BubbleRatio bubble_dualpipe_v(const PipelineShape& s, double f, double i, double w) {
  return bubble_of_dualpipe(s, 2 * s.ranks, f, i, w);
}
/// A step of 2 P M + 1 for F = I = W = 1, if P >= 2.
inline BubbleRatio bubble_2bp_naive(const PipelineShape& s, double f, double i, double w) {
  if (f != i || i != w || s.ranks < 2) return {};
  return bubble_of((2.0 * s.ranks * s.microbatches + 1 - 3.0 * s.microbatches) * f, s, 1, 3 * f);
}
/// (P - 1)(F + I): the weight gradients wait until the end.
inline BubbleRatio bubble_2bp_gpipe(const PipelineShape& s, double f, double i, double w) {
  return bubble_of((s.ranks - 1) * (f + i), s, 1, f + i + w);
}

}  // namespace heddle::inline v0::schedule::impl
