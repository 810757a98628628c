// What a lesson quotes: the whole definition of a name, found without markers.
#include "lessons/tools/quote.h"

#include "tests/catch.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kSource = R"(// The file's own comment.
#include <vector>

#define LIMIT(x) \
  ((x) + 1)

namespace tc {
namespace {

// Twice x.
int twice(int x) { return x * 2; }

const char* brace() { return "}"; }  // and a brace } in a string

}  // namespace

struct Point {
  int x = 0, y = 0;
  // The sum.
  int sum() const {
    return x + y;
  }
  explicit Point(int both) : x{both}, y(both) {}
  template <typename T>
  T scaled(T by) const { return by * x; }
};

enum class Colour : unsigned { Red, Green };

constexpr int kSizes[] = {1, 2};
using Points = std::vector<Point>;

int print(const Point& point);
int print(int x) { return x; }
int print(const Point& point) {
  return point.x;
}
bool operator==(const Point& a, const Point& b) { return a.x == b.x; }
}
)";

std::string quoted(const std::string& name) { return quote("a.cpp", kSource, name); }

}  // namespace

TEST_CASE("a function is quoted whole, with the comment above it", "[lessons]") {
  CHECK(quoted("twice") == "// Twice x.\nint twice(int x) { return x * 2; }\n");
}

TEST_CASE("braces in strings and comments are no braces", "[lessons]") {
  CHECK(quoted("brace") ==
        "const char* brace() { return \"}\"; }  // and a brace } in a string\n");
}

TEST_CASE("members are found by either name and lose their indentation", "[lessons]") {
  const std::string sum = "// The sum.\nint sum() const {\n  return x + y;\n}\n";
  CHECK(quoted("sum") == sum);
  CHECK(quoted("Point::sum") == sum);
  CHECK(quoted("scaled") == "template <typename T>\nT scaled(T by) const { return by * x; }\n");
  CHECK(quoted("Point::Point") == "explicit Point(int both) : x{both}, y(both) {}\n");
}

TEST_CASE("types, constants, aliases, operators and macros are definitions", "[lessons]") {
  CHECK_THAT(quoted("Point"),
             ContainsSubstring("explicit Point") && Catch::Matchers::EndsWith("};\n"));
  CHECK(quoted("Colour") == "enum class Colour : unsigned { Red, Green };\n");
  CHECK(quoted("kSizes") == "constexpr int kSizes[] = {1, 2};\n");
  CHECK(quoted("Points") == "using Points = std::vector<Point>;\n");
  CHECK(quoted("operator==") ==
        "bool operator==(const Point& a, const Point& b) { return a.x == b.x; }\n");
  CHECK(quoted("LIMIT") == "#define LIMIT(x) \\\n  ((x) + 1)\n");
}

TEST_CASE("of overloads the signature picks one, and bodies hide declarations", "[lessons]") {
  CHECK(quoted("print(const Point& point)") ==
        "int print(const Point& point) {\n  return point.x;\n}\n");
  CHECK(quoted("print(int x)") == "int print(int x) { return x; }\n");
  CHECK_THROWS_WITH(quoted("print"), ContainsSubstring("2 times"));
}

TEST_CASE("a name that is gone is an error that names what is there", "[lessons]") {
  CHECK_THROWS_WITH(quoted("thrice"),
                    ContainsSubstring("defines no 'thrice'") && ContainsSubstring("twice"));
}
