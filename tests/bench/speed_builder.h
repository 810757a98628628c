// A draw in the making: random choices, sizes of real networks, inputs, calls.
#pragma once

#include <initializer_list>

#include "tests/bench/speed_words.h"

namespace bench {

// How many bytes a draw's function reads and writes, about: on a GPU 1 MB to 1 GB, most of them
// 16 to 512 MB, on a CPU a sixteenth of it, and small: a few thousand elements for the
// interpreter. The seed makes the same function of the same dtypes at each scale.
enum class Scale { Small, Cpu, Gpu };

// Xorshift and multiplications of Vigna's splitmix64: the same numbers with every compiler.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  double uniform();  // in [0, 1)
  int64_t below(int64_t count) {
    return static_cast<int64_t>(next() % static_cast<uint64_t>(count));
  }

 private:
  uint64_t state_;
};

// Widths of layers, lengths of sequences, images' sides ..: lists of what networks have.
enum class Dim { Width, Vocabulary, Sequence, Side, Channels, Heads, HeadWidth, Experts };

struct Range {  // of an input's values: floats in [shift - scale, shift + scale)
  float scale = 3, shift = 0;
};

class Builder {
 public:
  Builder(uint64_t seed, Scale scale);

  // Choices of the function: the same at each scale.
  bool chance(double probability) { return choices_.uniform() < probability; }
  int64_t below(int64_t count) { return choices_.below(count); }
  template <typename T>
  T pick(std::initializer_list<T> list) {
    return list.begin()[choices_.below(static_cast<int64_t>(list.size()))];
  }
  tiny_compile::DType floats();  // f32 and bf16 often, f16 at times

  // Sizes. kFree stands for an axis that is as long as the draw's bytes ask for; where the
  // others are too long for these, they are halved.
  static constexpr int64_t kFree = 0;
  int64_t dim(Dim kind);  // now and then a ragged one
  tiny_compile::Sizes fit(tiny_compile::Sizes dims, double bytes_an_element);
  double bytes() const { return bytes_; }
  Scale scale() const { return scale_; }
  Random& sizes() { return sizes_; }

  // Inputs; `laid_out` ones may be views: transposed, a part of wider rows, misaligned.
  Value input(tiny_compile::DType dtype, const tiny_compile::Sizes& shape, Range range = {});
  Value laid_out(tiny_compile::DType dtype, const tiny_compile::Sizes& shape, Range range = {});
  Value integers(tiny_compile::DType dtype, const tiny_compile::Sizes& shape, int64_t classes,
                 int64_t first = 0);
  // Of booleans, as a comparison of bytes: true for `share` of them.
  Value mask(const tiny_compile::Sizes& shape, double share);
  void reads_only(Value input, double bytes);

  // Calls: their first result.
  Value call(const std::string& word, std::vector<Value> operands,
             tiny_compile::Sizes integers = {}, std::vector<double> numbers = {},
             int results = 1);
  Value to(tiny_compile::DType dtype, Value x);
  Value scaled(Value x, double factor) { return call("mul_number", {x}, {}, {factor}); }
  Value activation(Value x);

  void note(const std::string& words);  // of the function, for the record
  void returns(std::vector<Value> outputs) { draw_.outputs = std::move(outputs); }
  // The only output's gradients for these inputs; `shape`: of its own gradient, {} for a loss.
  void differentiate(std::vector<Value> leaves, Value output, tiny_compile::DType dtype,
                     const tiny_compile::Sizes& shape);

  Draw finish() && { return std::move(draw_); }

 private:
  void add_input(Input input);

  Scale scale_;
  Random choices_, sizes_;
  double bytes_;
  Value next_ = 0;
  Draw draw_;
};

}  // namespace bench
