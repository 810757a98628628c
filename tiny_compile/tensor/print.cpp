// How does PyTorch print a tensor? All elements in one format, wide enough for the widest:
//
//   tensor([[ 1.0000, -2.5000],
//           [ 0.0000,     inf]])
//
// Whole numbers print as "1."; very large or small ranges in scientific form; more than 1000
// elements as the first and last three of each axis; a dtype that is no default is named.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tiny_compile/tensor/tensor.h"

namespace tiny_compile {
namespace {

constexpr int64_t kMostElements = 1000;
constexpr int64_t kEdge = 3;

struct Format {
  DType dtype = DType::f32;
  bool whole = true, scientific = false, summarize = false;
  size_t width = 0;

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
  std::vector<int64_t> result;
  for (int64_t i = 0; i < size; i++) {
    if (!summarize || size <= 2 * kEdge || i < kEdge || i >= size - kEdge) result.push_back(i);
    if (summarize && size > 2 * kEdge && i == kEdge) result.push_back(-1);
  }
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

Format choose_format(const Tensor& tensor) {
  Format format;
  format.dtype = tensor.dtype();
  format.summarize = tensor.numel() > kMostElements;
  double least = INFINITY, most = 0;
  Sizes index;
  for_each_shown(tensor, format.summarize, index, [&](const Literal& literal) {
    const double value = is_float(literal.dtype) ? literal.as_double() : 0;
    if (!std::isfinite(value)) return;
    if (value != std::ceil(value)) format.whole = false;
    if (value != 0)
      least = std::min(least, std::abs(value)), most = std::max(most, std::abs(value));
  });
  if (is_float(format.dtype) && most > 0)
    format.scientific = most > 1e8 || most / least > 1000 * (format.whole ? 1e300 : 1) ||
                        (!format.whole && least < 1e-4);
  for_each_shown(tensor, format.summarize, index, [&](const Literal& literal) {
    format.width = std::max(format.width, format.element(literal).size());
  });
  return format;
}

std::string nested(const Tensor& tensor, const Format& format, Sizes& index) {
  if (index.size() == tensor.shape().size()) {
    const std::string text = format.element(tensor.element(index));
    return std::string(format.width - std::min(format.width, text.size()), ' ') + text;
  }
  const bool last = index.size() + 1 == tensor.shape().size();
  const std::string between =
      last ? ", "
           : "," + std::string(tensor.shape().size() - index.size() - 1, '\n') +
                 std::string(8 + index.size(), ' ');
  std::string result = "[";
  bool first = true;
  for (int64_t i : shown(tensor.shape()[index.size()], format.summarize)) {
    if (!first) result += between;
    first = false;
    if (i < 0) {
      result += "...";
      continue;
    }
    index.push_back(i);
    result += nested(tensor, format, index);
    index.pop_back();
  }
  return result + "]";
}

bool is_default(DType dtype) {
  return dtype == DType::f32 || dtype == DType::i64 || dtype == DType::boolean;
}

}  // namespace

std::string Tensor::str() const {
  if (!defined()) return "tensor(undefined)";
  std::string type = is_default(dtype()) ? "" : tiny_compile::str(", dtype=", dtype());
  if (is_traced())
    return tiny_compile::str("tensor(traced %", info().node, ", shape=[", join(shape(), ", "),
                             "]", type, ")");
  if (device().kind != DeviceKind::Cpu) {
    std::string text = on_host(*this).str();
    return text.insert(text.size() - 1, tiny_compile::str(", device='", device().str(), "'"));
  }
  if (numel() == 0) {
    if (rank() != 1) type = tiny_compile::str(", size=(", join(shape(), ", "), ")", type);
    return "tensor([]" + type + ")";
  }
  Sizes index;
  return "tensor(" + nested(*this, choose_format(*this), index) + type + ")";
}

}  // namespace tiny_compile
