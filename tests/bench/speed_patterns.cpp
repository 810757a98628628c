// Which function does a name stand for? Of the dtype and sizes that it ends in, so that it can
// not say others than are measured.
//
//   softmax_middle_axis_f32_64x21x50176 => class softmax, x0 f32[64,21,50176],
//                                          "softmax 1": torch.softmax(x0, 1)
#include "tests/bench/speed_patterns.h"

#include <charconv>

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::DType, tc::Sizes;

const std::vector<Pattern>& all_patterns() {
  static const std::vector<Pattern> kAll = [] {
    std::vector<Pattern> all = patterns_of_axes();
    for (Pattern& one : patterns_of_elements()) all.push_back(std::move(one));
    return all;
  }();
  return kAll;
}

const Pattern* find_pattern(const std::string& name) {
  for (const Pattern& one : all_patterns()) {
    if (name == one.name) return &one;
  }
  return nullptr;
}

const Pattern& pattern_named(const std::string& name) {
  if (const Pattern* found = find_pattern(name)) return *found;
  tc::fail("no pattern '", name, "': build/speed --patterns --list names them");
}

int64_t number_at(const std::string& text, size_t& at) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc()) tc::fail("'", text, "': sizes like 64x21x50176 or 2^26");
  at = static_cast<size_t>(end - text.data());
  return value;
}

// "64x21x50176" => {64, 21, 50176}, "2^26" => {67108864}
Sizes sizes_from(const std::string& text) {
  Sizes sizes;
  for (size_t at = 0; at <= text.size(); at++) {
    int64_t size = number_at(text, at);
    if (at < text.size() && text[at] == '^') size = int64_t{1} << number_at(text, ++at);
    sizes.push_back(size);
  }
  return sizes;
}

struct Ending {
  DType dtype;
  Sizes sizes;
};

Ending ending_of(const std::string& name) {
  const size_t last = name.rfind('_'), before = name.rfind('_', last - 1) + 1;
  const auto dtype = tc::dtype_from(name.substr(before, last - before));
  if (!dtype) tc::fail(name, ": the last words are a dtype and sizes");
  return {*dtype, sizes_from(name.substr(last + 1))};
}

// "add, softmax 1"
std::string text_of(const std::vector<Call>& calls) {
  std::vector<std::string> words;
  for (const Call& call : calls) {
    std::string word = call.word;
    if (word == "to") word += tc::str(" ", tc::name(call.dtype));
    if (!call.integers.empty()) word += tc::str(" ", tc::join(call.integers, " "));
    words.push_back(word);
  }
  return tc::join(words, ", ");
}

}  // namespace

std::vector<std::string> pattern_names() {
  std::vector<std::string> names;
  for (const Pattern& one : all_patterns()) names.push_back(one.name);
  return names;
}

bool is_pattern(const std::string& name) { return find_pattern(name) != nullptr; }

std::string class_of_pattern(const std::string& name) { return pattern_named(name).family; }

uint64_t seed_of_pattern(const std::string& name) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325u;
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

Draw pattern(const std::string& name, Scale scale) {
  const Pattern& one = pattern_named(name);
  const auto [dtype, sizes] = ending_of(name);
  Builder b(seed_of_pattern(name), scale);
  const Made made = one.make(b, dtype, scale == Scale::Small ? one.small : sizes);
  const std::string family = one.family;
  if (family.ends_with("_gradient"))
    b.differentiate(made.leaves, made.results.at(0), dtype, made.shape);
  else
    b.returns(made.results);
  Draw draw = std::move(b).finish();
  draw.family = family;
  draw.what = text_of(draw.calls) + (draw.leaves.empty() ? "" : " and gradients");
  return draw;
}

}  // namespace bench
