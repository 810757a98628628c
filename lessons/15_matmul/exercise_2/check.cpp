#include "lessons/tools/check.h"
#include "exercise.h"

#include <cmath>
#include <limits>

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

constexpr int kTile = exercise::kTileColumns;
constexpr long long kStride = 257;

// The tile lies at c[2][3] of a result of 20 x 257; the rest of it holds -5.
std::string other_result(const std::vector<float>& tile, const std::vector<float>& bias,
                         int rows, int columns) {
  Walled<float> c(20 * kStride, -5.0f);
  exercise::store_tile(tile.data(), rows, columns, bias.data(), c.data() + 2 * kStride + 3,
                       kStride);
  if (!c.broken_wall().empty()) return c.broken_wall();
  for (int i = 0; i < 20; i++) {
    for (int j = 0; j < kStride; j++) {
      const int r = i - 2, l = j - 3;
      const bool inside = r >= 0 && r < rows && l >= 0 && l < columns;
      const float got = c[static_cast<size_t>(i * kStride + j)];
      if (!inside && got != -5)
        return str("a tile of ", rows, " x ", columns, " wrote into row ", r, ", column ", l);
      if (!inside) continue;
      const float sum = tile[static_cast<size_t>(r * kTile + l)] + bias[static_cast<size_t>(l)];
      const float wanted = std::isnan(sum) ? sum : sum > 0 ? sum : 0.0f;
      const bool same =
          std::isnan(wanted) ? std::isnan(got) : std::memcmp(&got, &wanted, sizeof got) == 0;
      if (!same)
        return str("row ", r, ", column ", l, ": ", tile[static_cast<size_t>(r * kTile + l)],
                   " and a bias of ", bias[static_cast<size_t>(l)], " gave ", got,
                   ", should be ", wanted);
    }
  }
  return "";
}

std::vector<float> constant(float value) { return std::vector<float>(12 * kTile, value); }

}  // namespace

TEST_CASE("each column has its bias") {
  std::vector<float> bias;
  for (int l = 0; l < kTile; l++) bias.push_back(static_cast<float>(l));
  EXPECT(other_result(constant(1), bias, 12, kTile));
}

TEST_CASE("the bias is added before relu") {
  EXPECT(other_result(constant(-1), std::vector<float>(kTile, 3.0f), 12, kTile));
  EXPECT(other_result(constant(1), std::vector<float>(kTile, -3.0f), 12, kTile));
}

TEST_CASE("a NaN stays a NaN") {
  EXPECT(other_result(constant(std::numeric_limits<float>::quiet_NaN()),
                      std::vector<float>(kTile, 1.0f), 12, kTile));
  EXPECT(other_result(constant(std::numeric_limits<float>::infinity()),
                      std::vector<float>(kTile, -std::numeric_limits<float>::infinity()), 12,
                      kTile));
}

TEST_CASE("minus zero becomes plus zero") {
  EXPECT(other_result(constant(-0.0f), std::vector<float>(kTile, -0.0f), 12, kTile));
}

TEST_CASE("nothing beside the tile is written") {
  manual_seed(4);
  const std::vector<float> tile = randn({12 * kTile}).to_vector<float>(),
                           bias = randn({kTile}).to_vector<float>();
  for (int rows : {0, 1, 11, 12})
    for (int columns : {0, 1, 17, 31, 32}) EXPECT(other_result(tile, bias, rows, columns));
}
