// Walking the tensors of a value: a Tensor, or any nesting of vector, array, pair, tuple,
// optional and plain aggregates of up to ten members that hold some; an aggregate may have a call
// operator and other member functions. Numbers, enums, strings and functions may stand among them;
// other types do not compile, since a change in them would not be seen.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile::tree {

struct Anything {
  template <typename T>
  operator T() const;
};

template <typename T, size_t... I>
constexpr bool takes_members(std::index_sequence<I...>) {
  return requires { T{(static_cast<void>(I), Anything{})...}; };
}

// The number of members of an aggregate: the most that its braces take.
template <typename T, size_t N = 10>
constexpr size_t member_count() {
  if constexpr (N == 0 || takes_members<T>(std::make_index_sequence<N>()))
    return N;
  else
    return member_count<T, N - 1>();
}

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <typename T, typename = void>
struct IsTuple : std::false_type {};
template <typename T>
struct IsTuple<T, std::void_t<decltype(std::tuple_size<T>::value)>> : std::true_type {};

// The members of a plain struct, as a tuple of references.
template <typename T>
auto members(T& value) {
  using Plain = std::remove_const_t<T>;
  static_assert(!takes_members<Plain>(std::make_index_sequence<11>()),
                "tc::compile: a struct of more than ten members; put some in another struct");
  constexpr size_t n = member_count<Plain>();
  static_assert(n > 0, "tc::compile: a struct whose members cannot be told apart");
  if constexpr (n == 1) {
    auto& [a] = value;
    return std::tie(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = value;
    return std::tie(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = value;
    return std::tie(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = value;
    return std::tie(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = value;
    return std::tie(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = value;
    return std::tie(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return std::tie(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    return std::tie(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    return std::tie(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    return std::tie(a, b, c, d, e, f, g, h, i, j);
  }
}

// A function itself, as tc::relu; a lambda without captures is an empty struct.
template <typename T>
constexpr bool is_function_pointer =
    std::is_pointer_v<T>&& std::is_function_v<std::remove_pointer_t<T>>;

// Calls leaf(tensor) for each Tensor in order; size(n) for each length that may differ between
// calls (vectors, optionals); other(value) for every other plain value.
template <typename T, typename Leaf, typename Size, typename Other>
void walk(T& value, Leaf& leaf, Size& size, Other& other) {
  using Plain = std::remove_const_t<T>;
  auto all = [&](auto&... members) { (walk(members, leaf, size, other), ...); };
  if constexpr (std::is_same_v<Plain, Tensor>) {
    leaf(value);
  } else if constexpr (IsVector<Plain>::value) {
    size(value.size());
    if constexpr (std::is_same_v<Plain, std::vector<bool>>) {
      for (const bool item : value) other(item);
    } else {
      for (auto& item : value) walk(item, leaf, size, other);
    }
  } else if constexpr (IsOptional<Plain>::value) {
    size(value.has_value());
    if (value) walk(*value, leaf, size, other);
  } else if constexpr (IsTuple<Plain>::value) {
    std::apply(all, value);
  } else if constexpr (std::is_arithmetic_v<Plain> || std::is_enum_v<Plain>) {
    other(value);
  } else if constexpr (std::is_convertible_v<Plain, std::string_view>) {
    const std::string_view text = value;
    size(text.size());
    for (const char item : text) other(item);
  } else if constexpr (is_function_pointer<Plain>) {
    other(value);
  } else if constexpr (std::is_aggregate_v<Plain> && !std::is_empty_v<Plain>) {
    std::apply(all, members(value));
  } else {
    static_assert(
        std::is_empty_v<Plain>,
        "tc::compile: arguments and results are tensors, numbers, strings, functions, and "
        "vectors, arrays, tuples, optionals and plain structs of them; capture anything else");
  }
}

template <typename T, typename Leaf>
void for_each_tensor(T& value, Leaf leaf) {
  auto nothing = [](const auto&) {};
  walk(value, leaf, nothing, nothing);
}

template <typename Tree>
std::vector<Tensor> tensors_of(const Tree& tree) {
  std::vector<Tensor> tensors;
  for_each_tensor(tree, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

// The tree with other tensors: map(f, {w, b}, {dw, db}) returns {f(w, dw), f(b, db)}. Throws
// tc::Error where a further tree has more tensors than the first, or fewer.
template <typename Function, typename Tree, typename... Others>
Tree map(Function function, Tree tree, const Others&... others) {
  const auto lists = std::make_tuple(tensors_of(others)...);
  const size_t count = tensors_of(tree).size();
  const auto check = [&](const std::vector<Tensor>& list) {
    if (list.size() != count)
      fail("tree::map: trees of ", count, " and of ", list.size(),
           " tensors; they must be of one structure");
  };
  std::apply([&](const auto&... list) { (check(list), ...); }, lists);
  size_t next = 0;
  for_each_tensor(tree, [&](Tensor& tensor) {
    const auto apply = [&](const auto&... list) {
      return function(std::as_const(tensor), list[next]...);
    };
    tensor = std::apply(apply, lists);
    next++;
  });
  return tree;
}

}  // namespace tiny_compile::tree
