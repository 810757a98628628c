#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::Bytes;

namespace {

constexpr std::pair<int64_t, int64_t> kSizes[] = {{3, 5}, {257, 1001}, {64, 1000}, {1000, 17}};

template <typename Function, typename... Inputs>
Bytes counted(const Function& function, const Inputs&... inputs) {
  const Graph graph = compile(function).specialization(inputs...).traced.graph;
  return {bytes_moved(run_pipeline({}, graph, true).program),
          bytes_moved(run_pipeline(default_pipeline(), graph, true).program)};
}

std::string other_count(int64_t rows, int64_t columns, int64_t yours, int64_t counted) {
  if (yours == counted) return "";
  return str("for f32[", rows, ",", columns, "] you say ", yours, " bytes; counted: ", counted);
}

Bytes count_brighten(int64_t rows, int64_t columns) {
  return counted(exercise::brighten, zeros({rows, columns}));
}
Bytes count_add_bias(int64_t rows, int64_t columns) {
  return counted(exercise::add_bias, zeros({rows, columns}), zeros({columns}));
}
Bytes count_normalise(int64_t rows, int64_t columns) {
  return counted(exercise::normalise, zeros({rows, columns}));
}

using Count = Bytes (*)(int64_t rows, int64_t columns);

std::string other_counts(Count yours, Count counted, int64_t Bytes::*which) {
  for (const auto& [rows, columns] : kSizes) {
    const std::string trouble =
        other_count(rows, columns, yours(rows, columns).*which, counted(rows, columns).*which);
    if (!trouble.empty()) return trouble;
  }
  return "";
}

}  // namespace

TEST_CASE("brighten, one kernel an op") {
  EXPECT(other_counts(exercise::brighten_bytes, count_brighten, &Bytes::eager));
}
TEST_CASE("brighten, compiled") {
  EXPECT(other_counts(exercise::brighten_bytes, count_brighten, &Bytes::compiled));
}
TEST_CASE("add_bias, one kernel an op") {
  EXPECT(other_counts(exercise::add_bias_bytes, count_add_bias, &Bytes::eager));
}
TEST_CASE("add_bias, compiled") {
  EXPECT(other_counts(exercise::add_bias_bytes, count_add_bias, &Bytes::compiled));
}
TEST_CASE("normalise, one kernel an op") {
  EXPECT(other_counts(exercise::normalise_bytes, count_normalise, &Bytes::eager));
}
TEST_CASE("normalise, compiled") {
  EXPECT(other_counts(exercise::normalise_bytes, count_normalise, &Bytes::compiled));
}
