// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// share_memory(): replaces messages by direct reads if ranks address each other's memory.

#include <cstdint>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/schedule/builder.hpp>
#include <heddle/schedule/schedule.hpp>

namespace heddle::inline v0 {

/// The rank that copies a value which must lie at its destination. The sender copies right after
/// the action that made the value, from its cache, and waits for no late rank. The receiver needs
/// no other rank to write to its memory.
enum class CopiedBy : std::uint8_t { receiver, sender };

namespace schedule {

/// Returns `schedule` for ranks that share memory. Ranks with the same number in `domains` (one
/// number per rank) address each other's memory. A value that moves between two such ranks is not
/// copied: its readers at the destination read it at its source. If the value must lie at the
/// destination, `copier` copies it, as a move in its local queue. This is the case if the
/// destination is persistent, if an action updates the value there, or if the destination keeps the
/// value longer than the source. Messages between domains stay. Every read sees the same value as
/// before.
///
/// Buffers that no action uses any more keep their numbers but have no bytes.
/// @throws contract_error if `domains` does not have one number per rank.
[[nodiscard]] Schedule share_memory(const Schedule& schedule,
                                    const std::vector<std::uint32_t>& domains,
                                    CopiedBy copier = CopiedBy::receiver);

}  // namespace schedule

}  // namespace heddle::inline v0

#if HEDDLE_DEFINES_SCHEDULE_PASS
#include <heddle/schedule/pass/share_memory.ipp>
#endif
