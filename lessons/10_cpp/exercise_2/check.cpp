#include "lessons/tools/check.h"
#include "exercise.h"

#include <limits>
#include <map>

#include "tiny_compile/codegen/prelude.h"
#include "tiny_compile/runtime/cpp_toolchain.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A float that knows how many tc_maximum had to be done, one after the other, to make it.
struct Counting {
  float number;
  int waited;
};

const char* kFloats = "typedef float value;\n";
const char* kCounts = R"(
struct value {
  float number;
  int waited;
  value() = default;
  value(float f) : number(f), waited(0) {}
};
static value tc_maximum(value a, value b) {
  value r(a.number > b.number ? a.number : b.number);
  r.waited = 1 + (a.waited > b.waited ? a.waited : b.waited);
  return r;
}
)";

template <typename Value>
class RowMax {
 public:
  RowMax(int length, const std::string& head) : text_(exercise::write_row_max(length)) {
    library_ = build_cpp(head + text_, default_toolchain()).library;
    run_ = reinterpret_cast<Value (*)(const Value*)>(library_->symbol("row_max"));
  }
  Value operator()(const std::vector<Value>& row) const { return run_(row.data()); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::shared_ptr<SharedLibrary> library_;
  Value (*run_)(const Value*);
};

RowMax<float> floats(int length) {
  Calls calls;
  calls("tc_maximum");
  return {length, "#define TC_FN static inline\n" + prelude_for(calls, false) + kFloats};
}

// Of the row and 64 infinities behind it.
std::string other_maximum(const RowMax<float>& row_max, std::vector<float> row, float wanted) {
  const size_t length = row.size();
  row.resize(length + 64, kInfinity);
  const float got = row_max(row);
  if (std::memcmp(&got, &wanted, sizeof got) == 0) return "";
  return str("of a row of ", length, " your maximum is ", got, ", it should be ", wanted, "\n",
             row_max.text());
}

std::vector<float> descending(int length) {
  std::vector<float> row;
  for (int j = 0; j < length; j++) row.push_back(static_cast<float>(-1 - j));
  return row;
}

}  // namespace

TEST_CASE("the largest may stand anywhere") {
  const RowMax<float> row_max = floats(29);
  for (size_t at = 0; at < 29; at++) {
    std::vector<float> row = descending(29);
    row[at] = 7;
    EXPECT(other_maximum(row_max, row, 7));
  }
}

TEST_CASE("a row of negative numbers has a negative maximum") {
  EXPECT(other_maximum(floats(257), descending(257), -1));
}

TEST_CASE("a row shorter than eight") {
  for (int length : {1, 2, 3, 7}) EXPECT(other_maximum(floats(length), descending(length), -1));
}

TEST_CASE("what lies behind the row is not read") {
  for (int length : {8, 9, 15, 257})
    EXPECT(other_maximum(floats(length), descending(length), -1));
}

TEST_CASE("a NaN anywhere is the maximum") {
  const RowMax<float> row_max = floats(29);
  for (size_t at = 0; at < 29; at++) {
    std::vector<float> row = descending(29);
    row[at] = std::numeric_limits<float>::quiet_NaN();
    row.resize(93, kInfinity);
    INFO("a NaN at " << at);
    CHECK(row_max(row) != row_max(row));
  }
}

TEST_CASE("no chain is longer than an eighth of the row") {
  for (int length : {257, 1000}) {
    const RowMax<Counting> row_max(length, kCounts);
    std::vector<Counting> row;
    for (float number : descending(length)) row.push_back({number, 0});
    const int waited = row_max(row).waited;
    score(str("of ", length, " elements, waiting for each other"), waited, length / 8 + 4);
    CHECK(waited <= length / 8 + 16);
  }
}
