// The contract's scans: results from groups of 16, whoever scans which group.
#include "tiny_compile/graph/scan.h"

#include <cmath>
#include <cstring>

#include "tests/catch.h"

using namespace tiny_compile;

namespace {

std::vector<float> values_of(int64_t count) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; i++)
    values.push_back(std::sin(static_cast<float>(i * i)) * std::exp(static_cast<float>(i % 7)));
  return values;
}

const std::byte* bytes(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

std::vector<float> scanned(Op op, const std::vector<float>& values,
                           const ScanStart& start = {}) {
  const std::vector<std::byte> result =
      scan(op, DType::f32, bytes(values), static_cast<int64_t>(values.size()), start);
  std::vector<float> floats(values.size());
  if (!floats.empty()) std::memcpy(floats.data(), result.data(), result.size());
  return floats;
}

float total_of(Op op, const std::vector<float>& values) {
  return static_cast<float>(
      scan_total(op, DType::f32, bytes(values), static_cast<int64_t>(values.size()))
          .as_double());
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("pieces of a power of 16 are scanned apart, from what stands before them", "[scan]") {
  for (Op op : {Op::cumsum, Op::cumprod, Op::logcumsumexp}) {
    for (int64_t count : {17, 256, 1001, 4097, 70000}) {
      const std::vector<float> all = values_of(count), whole = scanned(op, all);
      for (size_t piece : {16u, 256u, 4096u}) {
        std::vector<float> totals, together;
        for (size_t at = 0; at < all.size(); at += piece)
          totals.push_back(
              total_of(op, {all.begin() + at, all.begin() + std::min(all.size(), at + piece)}));
        const std::vector<float> starts = scanned(op, totals, {.exclusive = true});
        for (size_t at = 0; at < all.size(); at += piece) {
          Lanes before;
          before.as<float>()[0] = starts[at / piece];
          const std::vector<float> part =
              scanned(op, {all.begin() + at, all.begin() + std::min(all.size(), at + piece)},
                      {.before = &before});
          together.insert(together.end(), part.begin(), part.end());
        }
        INFO(info(op).name << " of " << count << " in pieces of " << piece);
        CHECK(same(together, whole));
      }
    }
  }
}

TEST_CASE("a result does not depend on what comes after it", "[scan]") {
  const std::vector<float> all = values_of(5000), whole = scanned(Op::cumsum, all);
  for (size_t count : {1u, 16u, 17u, 255u, 4096u, 4999u}) {
    const std::vector<float> some = scanned(Op::cumsum, {all.begin(), all.begin() + count});
    CHECK(same(some, {whole.begin(), whole.begin() + count}));
  }
}

TEST_CASE("the last result is the total where groups end", "[scan]") {
  for (int64_t count : {16, 256, 4096})
    CHECK(std::isfinite(total_of(Op::cumsum, values_of(count))));
  CHECK(std::signbit(total_of(Op::cumsum, {})));
  CHECK(total_of(Op::cumprod, {}) == 1);
}
