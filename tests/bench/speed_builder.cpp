// Which sizes are realistic? Those of published networks, each now and then one longer or
// shorter.
//
//   fit({kFree, 197, 768}, 4 bytes an element) => {332, 197, 768}   // of 200 MB
//   fit({kFree, 50257}, 4), small             => {1, 3142}          // halved until it fits
#include "tests/bench/speed_builder.h"

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes;

const std::vector<int64_t>& lengths_of(Dim kind) {
  static const std::vector<int64_t> kLengths[] = {
      {64,   96,   128,  192,  256,  320,  384,  512,  576,   640,   768,   1000, 1024,
       1280, 1536, 2048, 2560, 3072, 4096, 5120, 8192, 11008, 12288, 14336, 16384},
      {1000, 10000, 21841, 28996, 30522, 32000, 32064, 49152, 50257, 50304, 65024, 128256},
      {12, 49, 64, 77, 128, 196, 197, 256, 257, 384, 512, 577, 1000, 1024, 1500, 2048, 4096},
      {7, 8, 12, 14, 16, 24, 28, 32, 48, 56, 64, 96, 112, 128, 224},
      {3, 12, 16, 32, 64, 96, 128, 192, 256, 320, 512, 576, 768, 1024, 2048},
      {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 40},
      {32, 48, 64, 80, 96, 128, 256},
      {8, 16, 60, 64, 128, 256}};
  return kLengths[static_cast<size_t>(kind)];
}

// 4 in 5: 16 to 512 MB
double bytes_for(Scale scale, Random& random) {
  const double kind = random.uniform(), at = random.uniform();
  const auto between = [&](double low, double high) { return low * std::pow(high / low, at); };
  const double bytes = kind < 0.8    ? between(16e6, 512e6)
                       : kind < 0.92 ? between(1e6, 16e6)
                                     : between(512e6, 1e9);
  if (scale == Scale::Gpu) return bytes;
  return scale == Scale::Cpu ? bytes / 16 : std::clamp(bytes / 1024, 8e3, 2e5);
}

int64_t product(const Sizes& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim == Builder::kFree ? 1 : dim;
  return count;
}

// The free axis: a power of two, or a multiple of 8, or as it comes.
int64_t rounded(int64_t length, double kind) {
  if (kind < 0.55) {
    int64_t power = 1;
    while (power * 2 <= length) power *= 2;
    return power;
  }
  return kind < 0.75 && length > 8 ? length / 8 * 8 : length;
}

void transpose_last(Input& input) {
  const size_t n = input.shape.size();
  Sizes transposed = input.shape;
  std::swap(transposed[n - 1], transposed[n - 2]);
  input.strides = tc::contiguous_strides(transposed);
  std::swap(input.strides[n - 1], input.strides[n - 2]);
}

// Columns C .. 2C of rows of `parts` times C, as q, k and v lie in one product.
void take_part(Input& input, int64_t parts) {
  Sizes wide = input.shape;
  wide.back() *= parts;
  input.strides = tc::contiguous_strides(wide);
  input.start = input.shape.back();
  input.count = tc::element_count(wide);
}

}  // namespace

uint64_t Random::next() {
  uint64_t x = state_ += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

Builder::Builder(uint64_t seed, Scale scale)
    : scale_(scale), choices_(seed), sizes_(~seed), bytes_(bytes_for(scale, sizes_)) {
  draw_.seed = seed;
}

DType Builder::floats() {
  const double kind = choices_.uniform();
  return kind < 0.45 ? DType::f32 : kind < 0.87 ? DType::bf16 : DType::f16;
}

int64_t Builder::dim(Dim kind) {
  const auto& list = lengths_of(kind);
  const int64_t length =
      list[static_cast<size_t>(sizes_.below(static_cast<int64_t>(list.size())))];
  const double ragged = sizes_.uniform();
  if (length < 64 || ragged >= 0.14) return length;
  return ragged < 0.05 ? length + 1 : ragged < 0.1 ? length - 1 : length * 7 / 9 | 1;
}

Sizes Builder::fit(Sizes dims, double bytes_an_element) {
  const int64_t limit = std::max<int64_t>(1, static_cast<int64_t>(bytes_ / bytes_an_element));
  const double kind = sizes_.uniform();
  while (product(dims) > limit && product(dims) > 1) {
    int64_t& longest = *std::max_element(dims.begin(), dims.end());
    longest = longest / 2 + (longest > 2 ? longest & 1 : 0);
  }
  const int64_t left = std::max<int64_t>(1, limit / product(dims));
  for (int64_t& dim : dims) dim = dim == kFree ? rounded(left, kind) : dim;
  return dims;
}

void Builder::add_input(Input input) {
  int64_t read = tc::element_count(input.shape) * tc::size_of(input.dtype);
  draw_.read.push_back(read);
  draw_.inputs.push_back(std::move(input));
}

Value Builder::input(DType dtype, const Sizes& shape, Range range) {
  Input made = dense_input(dtype, shape, static_cast<uint32_t>(draw_.inputs.size()) + 1);
  made.scale = range.scale;
  made.shift = range.shift;
  add_input(std::move(made));
  return -static_cast<Value>(draw_.inputs.size());
}

Value Builder::laid_out(DType dtype, const Sizes& shape, Range range) {
  const Value x = input(dtype, shape, range);
  Input& made = draw_.inputs.back();
  const double kind = choices_.uniform();
  if (kind < 0.06 && shape.size() > 1) {
    transpose_last(made);
    note("transposed input");
  } else if (kind < 0.12 && shape.size() > 1) {
    take_part(made, kind < 0.09 ? 2 : 3);
    note("part of rows");
  } else if (kind < 0.15) {
    made.start = 1;
    made.count += 1;
    note("misaligned");
  }
  return x;
}

Value Builder::integers(DType dtype, const Sizes& shape, int64_t classes, int64_t first) {
  const Value x = input(dtype, shape, {1, static_cast<float>(first)});
  draw_.inputs.back().classes = classes;
  return x;
}

Value Builder::mask(const Sizes& shape, double share) {
  const Value bytes = integers(DType::u8, shape, 100);
  return call("less_number", {bytes}, {}, {std::round(share * 100)});
}

void Builder::reads_only(Value input, double bytes) {
  draw_.read.at(static_cast<size_t>(-1 - input)) = static_cast<int64_t>(bytes);
}

Value Builder::call(const std::string& word, std::vector<Value> operands, Sizes integers,
                    std::vector<double> numbers, int results) {
  draw_.calls.push_back({word, std::move(operands), std::move(integers), std::move(numbers),
                         DType::f32, results});
  next_ += results;
  return next_ - results;
}

Value Builder::to(DType dtype, Value x) {
  const Value made = call("to", {x});
  draw_.calls.back().dtype = dtype;
  return made;
}

Value Builder::activation(Value x) {
  const std::string word =
      pick({"gelu", "gelu_tanh", "silu", "relu", "tanh", "sigmoid", "leaky_relu", "softplus"});
  note(word);
  return call(word, {x});
}

void Builder::note(const std::string& words) {
  draw_.what += draw_.what.empty() ? words : ", " + words;
}

void Builder::differentiate(std::vector<Value> leaves, Value output, DType dtype,
                            const Sizes& shape) {
  returns({output});
  for (Value leaf : leaves) draw_.leaves.push_back(-1 - leaf);
  if (shape.empty()) return;
  draw_.cotangent = static_cast<int>(draw_.inputs.size());
  input(dtype, shape, {1, 0});
}

}  // namespace bench
