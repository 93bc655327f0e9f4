// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of error.hpp.

#include <string>
#include <utility>

#include <heddle/core/error.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>

namespace heddle::inline v0 {

HEDDLE_INLINE std::string to_string(const ErrorInfo& complaint) {
  std::string line = complaint.where + ": " + complaint.what;
  if (!complaint.why.empty()) line += " (" + complaint.why + ")";
  if (!complaint.fix.empty()) line += "; " + complaint.fix;
  return impl::printable(line);
}

HEDDLE_INLINE error::error(ErrorInfo complaint)
    : m_complaint(std::move(complaint)), m_line(to_string(m_complaint)) {}

HEDDLE_INLINE error::~error() = default;

}  // namespace heddle::inline v0
