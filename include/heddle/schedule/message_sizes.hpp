// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Defines the roles of the buffers that hold messages at cuts, and with_message_sizes(). Passes
/// use it, and every caller that binds sizes after a pass.

#include <heddle/core/linkage.hpp>
#include <heddle/schedule/action.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

namespace role {
/// The message at either end of a cut.
inline constexpr const char* narrow = "narrow";
/// The rounding errors of the messages so far, which are added to the next message. They are zero
/// before the first step.
inline constexpr const char* residual = "residual";
}  // namespace role

namespace impl {

/// Sets the size of each part of `narrow` to the encoded size of the same part of `wide`.
void size_message(Buffer& narrow, const Buffer& wide);

/// Returns `schedule` with new sizes for the messages at cuts and for their residuals. The sizes
/// follow from those of the buffers that the messages are cast from and into. Call it if sizes are
/// bound after cast_at_cut().
/// @throws contract_error if the elements of a message are not smaller than those of its buffer.
[[nodiscard]] Schedule with_message_sizes(const Schedule& schedule);

}  // namespace impl

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE
#include <heddle/schedule/message_sizes.ipp>
#endif
