// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The kernel room: what one rank computes. The patterns over Views, the matrix product, and the
/// layers that a transformer needs, each with forward, backward_input and backward_weight as
/// separate calls, so that a schedule may put them at different times.

#include <heddle/kernel/adam.hpp>
#include <heddle/kernel/attention.hpp>
#include <heddle/kernel/attention_rows.hpp>
#include <heddle/kernel/attention_state.hpp>
#include <heddle/kernel/blas_library.hpp>
#include <heddle/kernel/block_attention.hpp>
#include <heddle/kernel/cross_entropy.hpp>
#include <heddle/kernel/embedding.hpp>
#include <heddle/kernel/gelu.hpp>
#include <heddle/kernel/layer_norm.hpp>
#include <heddle/kernel/linalg.hpp>
#include <heddle/kernel/linear.hpp>
#include <heddle/kernel/map.hpp>
#include <heddle/kernel/pack.hpp>
#include <heddle/kernel/reduce.hpp>
#include <heddle/kernel/residual.hpp>
#include <heddle/kernel/stencil.hpp>
#include <heddle/kernel/team_gemm.hpp>
#include <heddle/kernel/transpose.hpp>
#include <heddle/kernel/vector_math.hpp>
#include <heddle/kernel/view.hpp>
#include <heddle/kernel/visible_keys.hpp>
