// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// The version of the headers, for `#if` and for printing.
/// All public names are in the inline namespace `heddle::v0`; write `heddle::`.

/// The major version. It grows with breaking changes from 1.0 on and is 0 until then.
#define HEDDLE_VERSION_MAJOR 0
/// The minor version. It grows with additions and, while the major version is 0, with breaking
/// changes.
#define HEDDLE_VERSION_MINOR 1
/// The patch version. It grows with corrections.
#define HEDDLE_VERSION_PATCH 0

/// The version as one number, 10000 * major + 100 * minor + patch. It grows with every release.
#define HEDDLE_VERSION \
  (HEDDLE_VERSION_MAJOR * 10000 + HEDDLE_VERSION_MINOR * 100 + HEDDLE_VERSION_PATCH)
