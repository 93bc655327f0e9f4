// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Everything of sequence/: attention over a sequence that is sharded over ranks.

#include <heddle/sequence/sequence_attention.hpp>
#include <heddle/sequence/sequence_axes.hpp>
#include <heddle/sequence/sequence_explanation.hpp>
#include <heddle/sequence/sequence_line.hpp>
#include <heddle/sequence/sequence_options.hpp>
#include <heddle/sequence/sequence_shape.hpp>
