// How does PyTorch print a tensor? All elements in one format, wide enough for the widest:
//
//   tensor([[ 1.0000, -2.5000],
//           [ 0.0000,     inf]])
//
// Whole numbers print as "1."; very large or small ranges in scientific form; more than 1000
// elements as the first and last three of each axis; a dtype that is no default is named. Lines
// end before column 80. The rules are those of torch/_tensor_str.py.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostElements = 1000;
constexpr int64_t kEdge = 3;
constexpr size_t kLineWidth = 80;
constexpr size_t kIndent = 7;  // of "tensor("

struct Format {
  DType dtype = DType::f32;
  bool whole = true, scientific = false, summarize = false;
  size_t width = 1;

  std::string number(double value) const {
    if (value != value) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    char text[64];
    std::snprintf(text, sizeof text, scientific ? "%.4e" : whole ? "%.0f." : "%.4f", value);
    return text;
  }
  std::string element(const Literal& value) const {
    if (value.dtype == DType::boolean) return value.bits ? "True" : "False";
    return is_float(value.dtype) ? number(value.as_double()) : value.str();
  }
};

// Indices shown along an axis: all, or the edges with -1 where some are left out.
std::vector<int64_t> shown(int64_t size, bool summarize) {
  if (summarize && size > 2 * kEdge) return {0, 1, 2, -1, size - 3, size - 2, size - 1};
  std::vector<int64_t> result(static_cast<size_t>(size));
  std::iota(result.begin(), result.end(), 0);
  return result;
}

template <typename Visit>
void for_each_shown(const Tensor& tensor, bool summarize, Sizes& index, Visit visit) {
  if (index.size() == tensor.shape().size()) return visit(tensor.element(index));
  for (int64_t i : shown(tensor.shape()[index.size()], summarize)) {
    if (i < 0) continue;
    index.push_back(i);
    for_each_shown(tensor, summarize, index, visit);
    index.pop_back();
  }
}

// Zeros, infinities and NaN count for nothing: tensor([nan, 1.]) is not padded.
bool shapes_format(const Literal& literal) {
  const double value = literal.as_double();
  return !is_float(literal.dtype) || (std::isfinite(value) && value != 0);
}

Format choose_format(const Tensor& tensor) {
  Format format;
  format.dtype = tensor.dtype();
  format.summarize = tensor.numel() > kMostElements;
  double least = INFINITY, most = 0;
  Sizes index;
  for_each_shown(tensor, format.summarize, index, [&](const Literal& literal) {
    if (!is_float(literal.dtype) || !shapes_format(literal)) return;
    const double value = std::abs(literal.as_double());
    if (value != std::ceil(value)) format.whole = false;
    least = std::min(least, value);
    most = std::max(most, value);
  });
  if (is_float(format.dtype) && most > 0)
    format.scientific = most > 1e8 || most / least > 1000 || (!format.whole && least < 1e-4);
  for_each_shown(tensor, format.summarize, index, [&](const Literal& literal) {
    if (shapes_format(literal))
      format.width = std::max(format.width, format.element(literal).size());
  });
  return format;
}

std::string padded(const Format& format, const Literal& value) {
  const std::string text = format.element(value);
  return std::string(format.width - std::min(format.width, text.size()), ' ') + text;
}

// The last axis: broken where the line is full.
std::string row_text(const Tensor& tensor, const Format& format, Sizes& index) {
  const size_t indent = kIndent + index.size();
  const size_t fitting = indent < kLineWidth ? (kLineWidth - indent) / (format.width + 2) : 0;
  const size_t per_line = std::max<size_t>(1, fitting);
  std::string result = "[";
  size_t count = 0;
  for (int64_t i : shown(tensor.shape().back(), format.summarize)) {
    if (count > 0)
      result += count % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
    count++;
    index.push_back(i);
    result += i < 0 ? " ..." : padded(format, tensor.element(index));
    index.pop_back();
  }
  return result + "]";
}

std::string nested(const Tensor& tensor, const Format& format, Sizes& index) {
  const size_t rank = tensor.shape().size();
  if (rank == 0) return padded(format, tensor.element(index));
  if (index.size() + 1 == rank) return row_text(tensor, format, index);
  const std::string between = "," + std::string(rank - index.size() - 1, '\n') +
                              std::string(kIndent + 1 + index.size(), ' ');
  std::vector<std::string> parts;
  for (int64_t i : shown(tensor.shape()[index.size()], format.summarize)) {
    index.push_back(i);
    parts.push_back(i < 0 ? "..." : nested(tensor, format, index));
    index.pop_back();
  }
  return "[" + join(parts, between) + "]";
}

// ", dtype=f16)", on a line of its own where the last one is full.
std::string with_suffixes(std::string text, const std::vector<std::string>& suffixes) {
  for (const std::string& suffix : suffixes) {
    const size_t line = text.size() - (text.rfind('\n') + 1) + 2;
    const bool fits = line + suffix.size() + 2 <= kLineWidth;
    text += fits ? ", " + suffix : ",\n" + std::string(kIndent, ' ') + suffix;
  }
  return text + ")";
}

bool is_default(DType dtype) {
  return dtype == DType::f32 || dtype == DType::i64 || dtype == DType::boolean;
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "tensor(undefined)";
  const std::string type = tiny_compile::str("dtype=", dtype());
  std::vector<std::string> suffixes;
  if (is_traced()) {
    suffixes.push_back(tiny_compile::str("shape=[", join(shape(), ", "), "]"));
    if (!is_default(dtype())) suffixes.push_back(type);
    return with_suffixes(tiny_compile::str("tensor(traced %", info().node), suffixes);
  }
  if (device().kind != DeviceKind::Cpu)
    suffixes.push_back(tiny_compile::str("device='", device().str(), "'"));
  if (numel() == 0) {  // no element tells an i64 from an f32
    if (rank() != 1) suffixes.push_back(tiny_compile::str("size=(", join(shape(), ", "), ")"));
    if (dtype() != DType::f32) suffixes.push_back(type);
    return with_suffixes("tensor([]", suffixes);
  }
  if (!is_default(dtype())) suffixes.push_back(type);
  const Tensor host = on_host(*this);
  Sizes index;
  return with_suffixes("tensor(" + nested(host, choose_format(host), index), suffixes);
}

}  // namespace tiny_compile
