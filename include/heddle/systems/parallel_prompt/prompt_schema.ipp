// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of prompt_schema.hpp.

#include <cstddef>

#include <heddle/core/error.hpp>
#include <heddle/core/text.hpp>
#include <heddle/systems/parallel_prompt/prompt_schema.hpp>

namespace heddle::inline v0::systems {

namespace impl {

/// Returns the placeholder that begins at `form[at]`, which is a brace: a name in braces. Two
/// braces stand for a brace, and any other use of one is a fault.
inline std::string_view placeholder_at(std::string_view form, std::size_t at) {
  const std::size_t end = form.find('}', at);
  return end == std::string_view::npos ? form.substr(at) : form.substr(at, end - at + 1);
}

inline bool has_placeholder(std::string_view form, std::string_view name) {
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form.substr(i, 2) == "{{" || form.substr(i, 2) == "}}")
      ++i;
    else if (form[i] == '{' && placeholder_at(form, i) == name)
      return true;
  }
  return false;
}

inline std::optional<std::string> wrong_brace(std::string_view form) {
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form.substr(i, 2) == "{{" || form.substr(i, 2) == "}}") {
      ++i;
    } else if (form[i] == '}') {
      return text("form[", i, "]: a brace closes nothing; write }} for a brace");
    } else if (form[i] == '{') {
      const std::string_view name = placeholder_at(form, i);
      if (name != "{data}" && name != "{context}" && name != "{index}")
        return text("form[", i, "]: no placeholder '", name,
                    "'; use {data}, {context} or {index}, and {{ for a brace");
      i += name.size() - 1;
    }
  }
  return std::nullopt;
}

}  // namespace impl

HEDDLE_INLINE std::optional<std::string> first_fault(const PromptSchema& schema) {
  if (schema.serial.empty()) return "serial: the text of the request is missing";
  if (schema.form.empty()) return "form: the template is missing";
  if (schema.data.empty() && !schema.count) return "data, count: give one of them";
  if (!schema.data.empty() && schema.count) return "data, count: give only one of them";
  if (schema.count && *schema.count < 1)
    return text("count: there must be at least one request, got ", *schema.count);
  if (constexpr int most = 1'000'000; schema.count && *schema.count > most)
    return text("count: there may be at most ", most, " requests, got ", *schema.count);
  if (const auto brace = impl::wrong_brace(schema.form)) return brace;
  const bool takes_data = impl::has_placeholder(schema.form, "{data}");
  if (!schema.data.empty() && !takes_data) return "form: it has no {data}, but there are data";
  if (schema.count && takes_data) return "form: it has {data}, but there are none";
  const bool takes_context = impl::has_placeholder(schema.form, "{context}");
  if (schema.context.empty() && takes_context) return "form: it has {context}, but there is none";
  if (!schema.context.empty() && !takes_context)
    return "form: it has no {context}, but there is a context";
  for (std::size_t i = 0; i < schema.data.size(); ++i)
    if (schema.data[i].empty()) return text("data[", i, "]: the entry is empty");
  return std::nullopt;
}

HEDDLE_INLINE std::vector<std::string> fill_template(const PromptSchema& schema) {
  if (const auto fault = first_fault(schema))
    throw format_error(
        {"heddle::systems::fill_template", "the schema of the request is wrong", *fault});
  const std::size_t requests =
      schema.count ? static_cast<std::size_t>(*schema.count) : schema.data.size();
  std::vector<std::string> filled(requests);
  for (std::size_t r = 0; r < requests; ++r) {
    for (std::size_t i = 0; i < schema.form.size(); ++i) {
      const char letter = schema.form[i];
      if ((letter == '{' || letter == '}') && schema.form[i + 1] == letter) {
        filled[r] += letter;
        ++i;
      } else if (letter == '{') {
        const std::string_view name = impl::placeholder_at(schema.form, i);
        filled[r] += name == "{data}"      ? schema.data[r]
                     : name == "{context}" ? schema.context
                                           : std::to_string(r + 1);
        i += name.size() - 1;
      } else {
        filled[r] += letter;
      }
    }
  }
  return filled;
}

}  // namespace heddle::inline v0::systems
