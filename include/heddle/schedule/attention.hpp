// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The room schedule/attention/: attention over a sequence that is sharded over ranks.

#include <heddle/schedule/attention/form.hpp>
#include <heddle/schedule/attention/head_exchange.hpp>
#include <heddle/schedule/attention/ring_attention.hpp>
#include <heddle/schedule/attention/rsa.hpp>
#include <heddle/schedule/attention/token_ring.hpp>
