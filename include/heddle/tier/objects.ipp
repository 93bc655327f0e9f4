// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Definitions of objects.hpp.

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include <heddle/core/contract.hpp>
#include <heddle/core/internal/near_miss.hpp>
#include <heddle/core/linkage.hpp>
#include <heddle/core/text.hpp>
#include <heddle/tier/objects.hpp>

namespace heddle::inline v0::tier {

HEDDLE_INLINE const Object& Objects::object(ObjectId id) const {
  expects(+id < m_objects.size(), [&] {
    return ErrorInfo{m_where, "there is no such object",
                     text("object ", id, " of ", m_objects.size())};
  });
  return m_objects[+id];
}

HEDDLE_INLINE ObjectId Objects::find(std::string_view name) const {
  const auto found = m_numbers.find(name);
  expects(found != m_numbers.end(), [&] {
    std::vector<std::string_view> names;
    for (const Object& object : m_objects) names.emplace_back(object.name);
    return ErrorInfo{m_where, text("there is no object '", name, "'"),
                     text(names.size(), " objects have other names"),
                     heddle::impl::did_you_mean(name, names)};
  });
  return found->second;
}

HEDDLE_INLINE void Objects::set_objects(std::vector<Object> objects) {
  std::map<std::string, ObjectId, std::less<>> numbers;
  for (std::size_t o = 0; o < objects.size(); ++o)
    expects(numbers.emplace(objects[o].name, ObjectId{o}).second, [&] {
      return ErrorInfo{m_where,
                       text("two objects are named '", objects[o].name, "'"),
                       {},
                       "give each object a name of its own"};
    });
  m_objects = std::move(objects);
  m_numbers = std::move(numbers);
}

HEDDLE_INLINE void Objects::expect_size(ObjectId id, std::size_t bytes) const {
  expects(bytes == object(id).bytes, [&] {
    return ErrorInfo{m_where,
                     text("the memory for object '", object(id).name, "' has the wrong size"),
                     text(bytes, " bytes, the object has ", object(id).bytes)};
  });
}

}  // namespace heddle::inline v0::tier
