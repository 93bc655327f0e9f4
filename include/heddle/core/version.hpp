// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The version of the headers, for `#if` and for printing.
/// Everything public lives in `heddle::v0`, an inline namespace: write `heddle::`.

/// Grows with breaking changes from 1.0 on; 0 until then.
#define HEDDLE_VERSION_MAJOR 0
/// Grows with additions; while the major version is 0, with breaking changes too.
#define HEDDLE_VERSION_MINOR 1
/// Grows with corrections.
#define HEDDLE_VERSION_PATCH 0

/// One number that grows with every release: 10000 * major + 100 * minor + patch.
#define HEDDLE_VERSION \
  (HEDDLE_VERSION_MAJOR * 10000 + HEDDLE_VERSION_MINOR * 100 + HEDDLE_VERSION_PATCH)
