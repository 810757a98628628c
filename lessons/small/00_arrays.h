// What is an array? Its numbers, row by row, and a shape that says how many along each axis.
//
//   element (2,1) of [4,3] is number 2*3 + 1*1 = 7:  the steps along its axes are 3 and 1
#pragma once

#include <cstdint>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace small {

struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
using Array = std::vector<float>;
using Shape = std::vector<int64_t>;
using Axes = std::vector<int64_t>;
using Ids = std::vector<int64_t>;  // numbers of nodes, or of anything else

template <typename... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

constexpr int64_t kMost = int64_t{1} << 40;  // elements; 02 refuses as many or more
inline int64_t count(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, [](int64_t n, int64_t size) {
    return size > 0 && n > kMost / size ? kMost : n * size;
  });
}

inline int64_t power_of_two_from(int64_t n) {
  return n <= 1 ? 1 : 2 * power_of_two_from((n + 1) / 2);
}

inline std::string listed(const Shape& numbers) {
  std::string text;
  for (const int64_t each : numbers) text += (text.empty() ? "" : ",") + std::to_string(each);
  return "[" + text + "]";
}

inline Shape strides_of(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (size_t k = shape.size(); k-- > 1;) strides[k - 1] = strides[k] * shape[k];
  return strides;
}

// The offset of element i of these sizes, counted row by row, where a step along axis k is steps[k]
// elements.
template <typename Index>
Index place(Index i, const Shape& sizes, const Shape& steps) {
  Index sum(0);
  for (size_t k = sizes.size(); k-- > 0; i = i / sizes[k]) sum = sum + i % sizes[k] * steps[k];
  return sum;
}

}  // namespace small
