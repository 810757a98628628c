// Rows that a GPU's threads do alone are tile programs: each thread has a row, and room for a few numbers.
#include "tests/tile/edited.h"
#include "tests/tile/lowered.h"
#include "tiny_compile/tile/verify.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;
using namespace tiny_compile::lowered;
using Catch::Matchers::ContainsSubstring;

namespace {

// A kernel of these steps, without a schedule, as tiles.
Tiles alone(const std::string& buffers, const std::string& rows, const std::string& steps,
            const std::string& results, const std::string& sizes = "") {
  return lower_to_tiles(parse_program(
      "program f" + sizes + " on cuda {\n" + buffers + "  kernel k rows(" + rows + ") {\n" +
      steps + "    schedule rows\n  }\n  launch k\n  return " + results + "\n}\n"));
}

// Of one reduction down columns of this length.
Tiles reduced(const std::string& op, const std::string& type, int64_t count) {
  const std::string result = op == "argmax" ? "i64" : type;
  return alone(str("  input x: ", type, "[", count * 3, "]\n  output y: ", result, "[3]\n"),
               "i0: 3",
               str("    r0: ", result, " = ", op, "(j0: ", count,
                   ") load x[j0*3 + i0]\n    store y[i0] = r0\n"),
               "y");
}

}  // namespace

TEST_CASE("a thread alone follows the tree with a stack", "[tile][alone]") {
  const std::string text = print(reduced("sum", "f32", 3000));
  INFO(text);
  CHECK_THAT(text, ContainsSubstring("tile k grid 1 block 4 warps alone {") &&
                       ContainsSubstring("array stack0_f32: f32[11]") &&
                       ContainsSubstring("array stack1_f32: f32[3]") &&
                       ContainsSubstring("left_1: 1025 = min(-number_1*1024 + 3000, 1024)"));
  for (const char* op : {"sum", "prod", "max", "min", "sum_exp", "argmax"}) {
    for (const char* type : {"f32", "bf16", "f64"}) {
      for (const int64_t count : {1, 7, 17, 1001, 1025, 5000}) {
        INFO(op << " of " << count << " " << type);
        check_tiles(reduced(op, type, count));
      }
    }
  }
  check_tiles(reduced("sum", "i64", 1001));
  check_tiles(reduced("sum", "f32", (1 << 20) + 1030));
}

TEST_CASE("a thread alone has steps that wait for each other", "[tile][alone]") {
  const auto both = [](int64_t n, const std::string& type) {
    const std::string all = str(type, "[", n * 5, "]");
    return alone(str("  input x: ", all, "\n  output y: ", all, "\n  output p: i64[", n * 5,
                     "]\n  output z: ", all, "\n"),
                 "i0: 5",
                 str("    $0 = load x[i0*", n, " + j0]\n    r0: ", type, " = sum(j0: ", n,
                     ") $0\n    scan y[i0*", n, " + j0] for (j0: ", n,
                     ") = cumsum sub($0, r0)\n    scan p[i0*", n, " + j0] for (j0: ", n,
                     ") = cummax $0\n    r3: ", type, " = max(j0: ", n, ") $0\n    store z[i0*",
                     n, " + j0] for (j0: ", n, ") = sub($0, r3)\n"),
                 "y, p, z");
  };
  for (const int64_t n : {1, 7, 16, 40, 1001}) {
    INFO(n);
    check_tiles(both(n, "f32"));
    check_tiles(both(n, "f64"));
  }
}

TEST_CASE("a thread alone adds up chunks of updates", "[tile][alone]") {
  for (const char* type : {"f32", "bf16", "i32"}) {
    for (const int64_t updates : {3, 1024, 1025, 2500}) {
      INFO(updates << " of " << type);
      check_tiles(alone(
          str("  input x: ", type, "[20]\n  input k: i64[", updates * 4, "]\n  input d: ", type,
              "[", updates * 4, "]\n  output y: ", type, "[20]\n  output s: ", type, "[4]\n"),
          "i0: 4",
          str("    store y[i0*5 + j0] for (j0: 5) = load x[i0*5 + j0]\n",
              "    scatter y[i0*5 + at0; at0 = remainder(load k[j1*4 + i0], i64 5) < 5] for "
              "(j1: ",
              updates, ") = scatter_add load d[j1*4 + i0]\n    r2: ", type,
              " = max(j1: ", updates, ") load d[j1*4 + i0]\n    store s[i0] = r2\n"),
          "y, s"));
    }
  }
}

TEST_CASE("one text of threads alone serves all sizes", "[tile][alone]") {
  const Tiles tiles =
      alone("  input x: f32[n,m]\n  output y: f32[n,m]\n  output s: f32[n]\n", "i0: n",
            "    scan y[i0*m + j0] for (j0: m) = cumsum load x[i0*m + j0]\n"
            "    r1: f32 = sum(j0: m) load x[i0*m + j0]\n"
            "    r2: f32 = sum_exp(j0: m) load x[i0*m + j0]\n"
            "    store s[i0] = add(r1, r2)\n",
            "y, s", "[n: 1..4096, m: 0..4096]");
  CHECK_NOTHROW(verify(tiles));
  CHECK(parse_tiles(print(tiles)) == tiles);
  for (const auto& shape : std::vector<Sizes>{{1, 0}, {1, 1}, {130, 5}, {3, 1001}, {2, 2049}}) {
    INFO(shape[0] << " x " << shape[1]);
    const std::vector<Tensor> inputs = {randn(shape)}, want = interpret(tiles.program, inputs),
                              got = interpret(tiles, inputs);
    for (size_t k = 0; k < want.size(); k++) CHECK(same_bits(want[k], got[k]));
  }
}

TEST_CASE("threads alone share nothing and wait for nobody", "[tile][alone]") {
  const std::string text = print(reduced("sum", "f32", 100));
  const auto refused = [&](const std::string& old, const std::string& by,
                           const std::string& why) { check_refused(text, old, by, why); };
  refused("array stack0_f32", "shared stack0_f32", "is shared, by threads that go alone");
  refused("row: 3 =", "barrier\n    row: 3 =", "one thread does not do this");
  refused("stack0_f32: f32[8]", "stack0_f32: f32[2]", "leaves the array's 2 elements");
  refused(" alone {", " {", "");
}
