// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SPDX-FileCopyrightText: The Heddle contributors
#pragma once

/// @file
/// Policies of a Cache: which object leaves the faster tier when another one needs its room.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <heddle/core/linkage.hpp>
#include <heddle/tier/objects.hpp>

namespace heddle::inline v0::tier {

/// A rule that says which object to evict. `begin(objects)` is called once, `use(id)` at every
/// request, and `worth(id)` says how much it is worth to keep an object. A Cache evicts the object
/// of the least worth, of equal ones the one with the lowest number. One thread at a time calls it.
template <class P>
concept Policy = std::copyable<P> &&
    requires(P policy, const P& fixed, std::span<const Object> objects, ObjectId id) {
  policy.begin(objects);
  policy.use(id);
  { fixed.worth(id) } -> std::convertible_to<double>;
};

/// Evicts the object whose last request was the longest ago (least recently used).
class Lru {
 public:
  /// Forgets all requests.
  void begin(std::span<const Object> objects) { m_last.assign(objects.size(), 0); }
  /// Counts a request.
  void use(ObjectId id) { m_last[+id] = ++m_now; }
  /// Returns the number of the object's last request.
  [[nodiscard]] double worth(ObjectId id) const { return static_cast<double>(m_last[+id]); }

 private:
  std::uint64_t m_now = 0;
  std::vector<std::uint64_t> m_last;
};

/// Evicts the object that has transferred the fewest bytes so far: its size times its requests.
/// SambaNova's compiler chooses by the same quantity; see spill().
class LeastTransfers {
 public:
  /// Forgets all requests.
  void begin(std::span<const Object> objects) {
    m_bytes.clear();
    for (const Object& object : objects) m_bytes.push_back(static_cast<double>(object.bytes));
    m_uses.assign(objects.size(), 0);
  }
  /// Counts a request.
  void use(ObjectId id) { m_uses[+id] += 1; }
  /// Returns the bytes of all requests of the object.
  [[nodiscard]] double worth(ObjectId id) const { return m_uses[+id] * m_bytes[+id]; }

 private:
  std::vector<double> m_bytes, m_uses;
};

/// Evicts objects that will not be requested again first, and the least recently used one if there
/// are none. The objects of a program whose lifetimes are known then share the same room.
class Lifetimes {
 public:
  /// Constructs the policy. `requests[o]` is the number of requests of object o in all.
  explicit Lifetimes(std::vector<std::uint64_t> requests) : m_requests(std::move(requests)) {}
  /// Begins with no requests. @throws contract_error if there is not one number for each object.
  void begin(std::span<const Object> objects);
  /// Counts a request.
  void use(ObjectId id) {
    ++m_uses[+id];
    m_recent.use(id);
  }
  /// Returns 0 after the object's last request, else the number of its last request.
  [[nodiscard]] double worth(ObjectId id) const {
    return m_uses[+id] >= m_requests[+id] ? 0 : m_recent.worth(id);
  }

 private:
  std::vector<std::uint64_t> m_requests, m_uses;
  Lru m_recent;
};

/// Evicts the object whose next request is the farthest in the future. It knows all requests in
/// advance, so it is a bound and not a policy for a program (Belady, IBM Systems Journal 5(2),
/// 1966). If all objects have the same size, no policy has more hits.
class FarthestNext {
 public:
  /// Constructs the policy for these requests.
  explicit FarthestNext(std::vector<ObjectId> requests) : m_requests(std::move(requests)) {}
  /// Begins before the first request. @throws contract_error if a request names no object.
  void begin(std::span<const Object> objects);
  /// Counts a request. @throws contract_error if it is not the next one of the known requests.
  void use(ObjectId id);
  /// Returns minus the number of the object's next request.
  [[nodiscard]] double worth(ObjectId id) const { return -static_cast<double>(m_next[+id]); }

 private:
  std::vector<ObjectId> m_requests;
  std::vector<std::size_t> m_after;  ///< by request: the number of the next one of the same object
  std::vector<std::size_t> m_next;   ///< by object: the number of its next request
  std::size_t m_now = 0;
};

/// A policy of any type, as CacheOptions hold it.
class AnyPolicy {
 public:
  /// Constructs it from a policy: `.policy = tier::Lru{}`.
  template <class P>
  requires(!std::same_as<P, AnyPolicy> && Policy<P>) AnyPolicy(P policy)
      : m_policy(std::make_unique<Model<P>>(std::move(policy))) {}
  /// Copies the policy.
  AnyPolicy(const AnyPolicy& other) : m_policy(other.m_policy->copy()) {}
  /// Moves the policy.
  AnyPolicy(AnyPolicy&&) noexcept = default;
  /// Replaces the policy.
  AnyPolicy& operator=(AnyPolicy other) noexcept {
    m_policy = std::move(other.m_policy);
    return *this;
  }

  /// Calls `begin` of the policy.
  void begin(std::span<const Object> objects) { m_policy->begin(objects); }
  /// Calls `use` of the policy.
  void use(ObjectId id) { m_policy->use(id); }
  /// Calls `worth` of the policy.
  [[nodiscard]] double worth(ObjectId id) const { return m_policy->worth(id); }

 private:
  struct Base {
    virtual ~Base() = default;
    [[nodiscard]] virtual std::unique_ptr<Base> copy() const = 0;
    virtual void begin(std::span<const Object> objects) = 0;
    virtual void use(ObjectId id) = 0;
    [[nodiscard]] virtual double worth(ObjectId id) const = 0;
  };
  template <class P>
  struct Model final : Base {
    explicit Model(P given) : policy(std::move(given)) {}
    [[nodiscard]] std::unique_ptr<Base> copy() const override {
      return std::make_unique<Model>(policy);
    }
    void begin(std::span<const Object> objects) override { policy.begin(objects); }
    void use(ObjectId id) override { policy.use(id); }
    [[nodiscard]] double worth(ObjectId id) const override { return policy.worth(id); }
    P policy;
  };

  std::unique_ptr<Base> m_policy;
};

namespace impl {

/// Returns the number of objects if none of them `may_leave`, else the one of the least worth.
template <class MayLeave>
[[nodiscard]] std::size_t least_worth(const AnyPolicy& policy, std::size_t objects,
                                      MayLeave may_leave) {
  std::size_t least = objects;
  double worth = 0;
  for (std::size_t o = 0; o < objects; ++o) {
    if (!may_leave(o)) continue;
    const double of = policy.worth(ObjectId{o});
    if (least == objects || of < worth) {
      least = o;
      worth = of;
    }
  }
  return least;
}

}  // namespace impl

}  // namespace heddle::inline v0::tier

#if HEDDLE_DEFINES_TIER
#include <heddle/tier/policy.ipp>
#endif
