// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// PromptSchema: a request that falls into independent ones of the same form, with the schema of
/// ParallelPrompt (Kolawole, Santhanam, Smith and Thaker, "PARALLELPROMPT", 2025).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/pattern/farm.hpp>

namespace heddle::inline v0::systems {

/// A request that falls into independent ones. Each is the template with its placeholders filled:
/// `{data}` by one entry of `data`, `{context}` by the context, and `{index}` by the number of the
/// request, from 1. It has either `data` or a `count`, not both.
struct PromptSchema {
  std::string serial;             ///< the request as one text, as it was before
  std::string form;               ///< the template
  std::string context;            ///< what all requests share; may be empty
  std::vector<std::string> data;  ///< one entry per request
  std::optional<int> count;       ///< number of requests, at most 10^6, in place of `data`
};

/// Returns the first fault of a schema in words, or nothing if it has none.
[[nodiscard]] std::optional<std::string> first_fault(const PromptSchema& schema);

/// Returns the requests of a schema in order. @throws format_error with the first fault.
[[nodiscard]] std::vector<std::string> fill_template(const PromptSchema& schema);

/// Sends the requests of a schema side by side: calls `answer(request)` for each on a farm, and
/// returns the outcomes in the order of the requests.
/// @throws format_error with the first fault of the schema; contract_error as farm() does.
template <class Answer>
[[nodiscard]] auto map_prompt(const pattern::FarmOptions& options, const PromptSchema& schema,
                              Answer&& answer) {
  const std::vector<std::string> requests = fill_template(schema);
  return pattern::farm(options, requests, answer);
}

}  // namespace heddle::inline v0::systems

#if HEDDLE_DEFINES_SYSTEMS
#include <heddle/systems/parallel_prompt/prompt_schema.ipp>
#endif
