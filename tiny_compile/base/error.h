// How things go wrong: tc::Error for a user's mistake, CHECK for a broken invariant.
#pragma once

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tiny_compile {

// A place in a source file: the user's traced call, or the pass that made a node.
struct Location {
  std::string file;  // "" when unknown; a pass writes its own name here, with line 0
  int line = 0;

  std::string str() const;  // "mlp.cpp:14", "fuse" or "?"
  bool operator==(const Location&) const = default;
};

// A user's mistake. what() says what is wrong, where, and what to do about it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

namespace detail {
// As a stream would write it; most of what the compiler writes needs no stream.
template <typename Part>
void append(std::string& out, const Part& part) {
  if constexpr (std::is_convertible_v<const Part&, std::string_view>) {
    out += std::string_view(part);
  } else if constexpr (std::is_integral_v<Part> && sizeof(Part) > 1) {
    out += std::to_string(part);
  } else {
    std::ostringstream stream;
    stream << part;
    out += stream.str();
  }
}
}  // namespace detail

// str(1, " + ", 2.5) returns "1 + 2.5".
template <typename... Parts>
std::string str(const Parts&... parts) {
  std::string out;
  (detail::append(out, parts), ...);
  return out;
}

// join({"a", "b"}, ", ") returns "a, b"; works on any container of streamable values.
template <typename Container>
std::string join(const Container& items, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += separator;
    detail::append(out, item);
    first = false;
  }
  return out;
}

// replace_all("a LANES b", "LANES", "16") returns "a 16 b"; every place where `what`, which is not empty, stands.
std::string replace_all(std::string text, std::string_view what, std::string_view by);

// Throws Error("<where>: <message>"), or Error(message) when the place is unknown.
[[noreturn]] void fail_at(const Location& where, const std::string& message);

template <typename... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(str(parts...));
}

// An IR text (Graph or Program) that does not parse: message, line, column, the line
// and a caret.
//   "sum.graph:3:12: unknown op 'addd'\n  %2: f32[4] = addd %0, %1\n               ^"
[[noreturn]] void fail_in_text(std::string_view text, size_t position,
                               const std::string& message);

// Lines first..last of a source, as far as it has them; they count from 1, and one is marked:
// "  11 | float b;\n> 12 | b = nothing;\n". Nothing is marked by 0.
std::string numbered_lines(const std::string& source, int64_t first, int64_t last,
                           int64_t marked = 0);

namespace detail {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);
}  // namespace detail

// Stops the process: CHECK(n.inputs.size() == 2, "in\n", print(graph)). Never for user input.
#define CHECK(condition, ...)                                                                  \
  do {                                                                                         \
    if (!(condition))                                                                          \
      ::tiny_compile::detail::check_failed(                                                    \
          __FILE__, __LINE__, #condition, ::tiny_compile::str("" __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)

}  // namespace tiny_compile
