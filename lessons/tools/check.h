// What the checks of exercises share. A check says what is wrong in the reader's words: helpers
// return a sentence, "" where all is well, and EXPECT shows it.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/random_graph.h"
#include "tiny_compile/tiny_compile.h"

#include "tests/catch.h"

#define EXPECT(sentence)                    \
  do {                                      \
    const std::string trouble = (sentence); \
    if (trouble.empty())                    \
      SUCCEED();                            \
    else                                    \
      FAIL_CHECK(trouble);                  \
  } while (false)

namespace tiny_compile::lessons {

// "graph g(inputs) { body }", the body's lines ended by ';'.
Graph graph_of(const std::string& inputs, std::string body);

// Whether `got`, without what nobody reads, is the graph of this text.
std::string other_graph(const Graph& got, const Graph& wanted);

// Whether a rewritten graph keeps the bits of every output on seeded inputs: NaN, Inf, -0 and
// denormals are among them. The inputs of the graph must stay as they were.
std::string other_bits(const Graph& before, const Graph& after, int rounds = 8);

// That over random graphs: every op, dtype, view and awkward size. Also what is no sound graph.
std::string other_bits_somewhere(const std::function<Graph(const Graph&)>& pass,
                                 int graphs = 200);

// Prints "nodes: 5, par 5"; a score is for the reader, it fails nothing.
void score(const std::string& what, int64_t yours, int64_t par);

// Room for `count` values between walls; what is written outside shows.
template <typename T>
class Walled {
 public:
  explicit Walled(size_t count, T fill = T()) : count_(count), all_(count + 2 * kWall, wall()) {
    for (size_t i = 0; i < count; i++) all_[kWall + i] = fill;
  }
  T* data() { return all_.data() + kWall; }
  size_t size() const { return count_; }
  T& operator[](size_t i) { return all_[kWall + i]; }
  std::string broken_wall() const {
    const T wanted = wall();
    for (size_t i = 0; i < all_.size(); i++) {
      const bool inside = i >= kWall && i < kWall + count_;
      if (!inside && std::memcmp(&all_[i], &wanted, sizeof(T)) != 0)
        return str("you wrote to element ",
                   static_cast<long long>(i) - static_cast<long long>(kWall),
                   " of an array of ", count_);
    }
    return "";
  }

 private:
  static constexpr size_t kWall = 64;
  static T wall() {
    T value;
    std::memset(&value, 0x5a, sizeof value);
    return value;
  }
  size_t count_;
  std::vector<T> all_;
};

}  // namespace tiny_compile::lessons
