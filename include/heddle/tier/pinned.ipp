// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of pinned.hpp.

#include <cstddef>
#include <span>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/core/units.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/tier/objects.hpp>
#include <heddle/tier/pinned.hpp>

namespace heddle::inline v0::tier {

HEDDLE_INLINE Pinned::~Pinned() {
  if (m_pins != nullptr) m_pins->release(m_id, m_access);
}

HEDDLE_INLINE std::span<std::byte> Pinned::writable_bytes() const {
  expects(m_access != Access::read, [&] {
    return ErrorInfo{"heddle::tier::Pinned",
                     text("object '", m_object->name, "' may only be read"),
                     {},
                     "request it with Access::update"};
  });
  return m_bytes;
}

HEDDLE_INLINE void Pinned::expect_type(Scalar type) const {
  expects(m_object->type == type, [&] {
    return ErrorInfo{"heddle::tier::Pinned",
                     text("object '", m_object->name, "' is of another type"),
                     text("its elements are ", m_object->type, ", not ", type)};
  });
}

}  // namespace heddle::inline v0::tier
