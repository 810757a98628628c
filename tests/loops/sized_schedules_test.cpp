// Schedules that are for some of a kernel's sizes.
#include "tiny_compile/loops/sized_schedules.h"

#include "tests/catch.h"

using namespace tiny_compile;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string kShort = "layouts rows grid \u00b7 warp 4 loop lane 32";
const std::string kLong = "layouts rows grid \u00b7 warp 4 loop register 32 \u00b7 lane 32";

// A sum of the rows of [n,m] with these lines as schedules.
std::string rows(const std::vector<std::string>& schedules,
                 const std::string& target = " on cuda") {
  std::string lines;
  for (const std::string& line : schedules) lines += "    schedule " + line + "\n";
  return "program f[n: 0..4096, m: 1..1000000]" + target +
         " {\n  input x: f32[n,m]\n  output y: f32[n]\n  kernel sum_1 rows(i0: n) {\n"
         "    r0: f32 = sum(j0: m) load x[i0*m + j0]\n    store y[i0] = r0\n" +
         lines + "  }\n  launch sum_1\n  return y\n}\n";
}

void require_refused(const std::vector<std::string>& schedules, const std::string& message,
                     const std::string& target = " on cuda") {
  REQUIRE_THROWS_WITH(parse_program(rows(schedules, target)), ContainsSubstring(message));
}

Substitution numbers(int64_t n, int64_t m) {
  return {{{"n", SymbolKind::Size}, n}, {{"m", SymbolKind::Size}, m}};
}

}  // namespace

TEST_CASE("a kernel has a schedule for each interval of its sizes", "[loops][sized]") {
  const Program program = parse_program(rows({"rows", "for n: 1..4096 and m: 1..32 " + kShort,
                                              "for n: 1..4096 and m: 33..1024 " + kLong}));
  const Kernel& kernel = program.kernels[0];
  REQUIRE(kernel.sized.size() == 2);
  CHECK(kernel.sized[1].when == std::vector<SizeRange>{{"n", 1, 4096}, {"m", 33, 1024}});
  CHECK(parse_program(print(program)) == program);
  const auto chosen = [&](int64_t n, int64_t m) {
    return str(*substitute(program, numbers(n, m)).kernels[0].schedule);
  };
  CHECK(chosen(7, 32) == kShort);
  CHECK(chosen(7, 33) == kLong);
  CHECK(chosen(4096, 1024) == kLong);
  CHECK(chosen(7, 1025) == "rows");
  CHECK(for_sizes(program, kernel, 1).kernels[0].axes[1].extent.bounds() == Interval{33, 1024});
}

TEST_CASE("a schedule is legal for all of its sizes", "[loops][sized]") {
  require_refused({"rows", "for n: 1..4096 and m: 1..33 " + kShort}, "covers 32 of 33");
  require_refused({"rows", "for m: 1..32 " + kShort}, "of sizes from 1 on");
  require_refused({"rows", "for n: 1..5000 and m: 1..32 " + kShort}, "is not within 0..4096");
  require_refused({"rows", "for k: 1..50 " + kShort}, "the program has no size k");
  require_refused(
      {"rows", "for n: 1..9 and m: 1..32 " + kShort, "for n: 9..20 and m: 32..40 " + kLong},
      "some of its sizes have another schedule");
  require_refused({"for n: 1..9 and m: 1..32 rows"}, "on cuda alone", "");
  CHECK_NOTHROW(parse_program(
      rows({"for n: 1..9 and m: 1..32 " + kShort, "for n: 10..20 and m: 32..40 " + kLong})));
}
