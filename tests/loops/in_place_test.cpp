// What a kernel may write over what it reads, and what it may not.
#include "tiny_compile/loops/in_place.h"
#include "tests/catch.h"

using namespace tiny_compile;

namespace {

// A Program whose kernel `k` reads t and writes u, both of 8 x 64 numbers.
Program around(const std::string& kernel, const std::string& after = "load u[i0*64 + i1]") {
  return parse_program(R"(program f {
  input x: f32[8,64]
  temp t: f32[8,64]
  temp u: f32[8,64]
  output y: f32[8,64]
  kernel exp_1 rows(i0: 8, i1: 64) {
    store t[i0*64 + i1] = exp(load x[i0*64 + i1])
  }
)" + kernel + R"(
  kernel last rows(i0: 8, i1: 64) {
    store y[i0*64 + i1] = exp()" +
                       after +
                       R"()
  }
  launch exp_1
  launch k
  launch last
  return y
}
)");
}

bool overwrites(const Program& program) {
  const Program planned = plan_memory(program);
  verify(planned);
  REQUIRE(parse_program(print(planned)) == planned);
  return planned.buffers[2].over == 1;
}

}  // namespace

TEST_CASE("a pointwise kernel writes over what it reads last", "[in_place]") {
  const Program program = around(R"(
  kernel k rows(i0: 8, i1: 64) {
    store u[i0*64 + i1] = neg(load t[i0*64 + i1])
  })");
  REQUIRE(overwrites(program));
  REQUIRE(plan_memory(program).arena_bytes == 8 * 64 * 4);
}

TEST_CASE("rows that know all of themselves are written over", "[in_place]") {
  REQUIRE(overwrites(around(R"(
  kernel k rows(i0: 8) {
    r0: f32 = max(j0: 64) load t[i0*64 + j0]
    store u[i0*64 + j0] for (j0: 64) = sub(load t[i0*64 + j0], r0)
  })")));
}

TEST_CASE("what another point or step still reads is not written over", "[in_place]") {
  SECTION("another element") {
    REQUIRE(!overwrites(around(R"(
  kernel k rows(i0: 8, i1: 64) {
    store u[i0*64 + i1] = add(load t[i0*64 + i1], load t[i0*64 + 63 - i1])
  })")));
  }
  SECTION("another row") {
    REQUIRE(!overwrites(around(R"(
  kernel k rows(i0: 8) {
    r0: f32 = max(j0: 8) load t[j0*64 + i0]
    store u[i0*64 + j1] for (j1: 64) = sub(load t[i0*64 + j1], r0)
  })")));
  }
  SECTION("a reduction that the store does not wait for") {
    REQUIRE(!overwrites(parse_program(R"(program f {
  input x: f32[8,64]
  temp t: f32[8,64]
  temp u: f32[8,64]
  output y: f32[8,64]
  output z: f32[8]
  kernel exp_1 rows(i0: 8, i1: 64) {
    store t[i0*64 + i1] = exp(load x[i0*64 + i1])
  }
  kernel k rows(i0: 8) {
    r0: f32 = max(j0: 64) load t[i0*64 + j0]
    store u[i0*64 + j0] for (j0: 64) = neg(load t[i0*64 + j0])
    store z[i0] = r0
  }
  kernel last rows(i0: 8, i1: 64) {
    store y[i0*64 + i1] = exp(load u[i0*64 + i1])
  }
  launch exp_1
  launch k
  launch last
  return y, z
}
)")));
  }
  SECTION("a later kernel") {
    REQUIRE(!overwrites(around(R"(
  kernel k rows(i0: 8, i1: 64) {
    store u[i0*64 + i1] = neg(load t[i0*64 + i1])
  })",
                               "add(load u[i0*64 + i1], load t[i0*64 + i1])")));
  }
}

TEST_CASE("threads that share a row have met before one of them overwrites what they read",
          "[in_place]") {
  const auto is_over = [](const std::string& first, const std::string& schedule) {
    const Program planned = plan_memory(parse_program(
        str("program f on cuda {\n  input x: f32[64,300] donated\n  output y: f32[64,300]\n",
            "  output z: f32[64,1000]\n  kernel k rows(i0: 64) {\n    $0 = load x[i0*300 + "
            "j0]\n    r0: f32 = ",
            first, "\n    store y[i0*300 + j0] for (j0: 300) = sub($0, r0)\n",
            "    store z[i0*1000 + j1] for (j1: 1000) = r0\n    schedule layouts ", schedule,
            "\n  }\n  launch k\n  return y, z\n}\n")));
    verify(planned);
    return planned.buffers[1].over == 0;
  };
  const std::string max = "max(j0: 300) $0";
  CHECK(
      is_over(max, "rows grid · warp 4 loop register 16 · lane 32 loop register 32 · lane 32"));
  CHECK(is_over(
      max, "rows grid loop register 4 · warp 4 · lane 32 loop register 8 · warp 4 · lane 32"));
  // Lanes that hold none of x exchange as well.
  CHECK(
      is_over(max, "rows grid · warp 4 loop register 32 · lane 16 loop register 32 · lane 32"));
  // The second warp may come to x when the first has stored y.
  CHECK(
      !is_over(max, "rows grid loop register 16 · lane 32 loop register 8 · warp 4 · lane 32"));
}

TEST_CASE("a reduction of no loops is no meeting", "[in_place]") {
  const auto is_over = [](const std::string& schedule) {
    const Program planned = plan_memory(parse_program(str(
        "program f on cuda {\n  input x: f32[64] donated\n  output y: f32[64]\n  output z: "
        "f32[64,3]\n",
        "  kernel k rows(i0: 64) {\n    $0 = load x[i0]\n    r0: f32 = max() $0\n",
        "    store y[i0] = sub($0, r0)\n    store z[i0*3 + j0] for (j0: 3) = r0\n    schedule ",
        schedule, "\n  }\n  launch k\n  return y, z\n}\n")));
    verify(planned);
    return planned.buffers[1].over == 0;
  };
  CHECK(!is_over("layouts rows grid · lane 4 from 8 loop lane 8"));
  CHECK(is_over("rows"));  // a thread each
}

TEST_CASE("stores change their order so that each may write over what it reads", "[in_place]") {
  // m' is stored before p', which reads m.
  const Program program = plan_memory(parse_program(R"(program step {
  input p: f32[1001] donated
  input m: f32[1001] donated
  input g: f32[1001]
  output m1: f32[1001]
  output p1: f32[1001]
  kernel k rows(i0: 1001) {
    store m1[i0] = add(load m[i0], load g[i0])
    store p1[i0] = sub(load p[i0], add(load m[i0], load g[i0]))
  }
  launch k
  return p1, m1
}
)"));
  verify(program);
  REQUIRE(program.buffers[3].over == 1);
  REQUIRE(program.buffers[4].over == 0);
  REQUIRE(program.kernels[0].steps[0].buffer == 4);
  REQUIRE(parse_program(print(program)) == program);
}

TEST_CASE("an input that is not donated, or returned, is not written over", "[in_place]") {
  const auto planned = [](const std::string& donated, const std::string& returned) {
    return plan_memory(parse_program("program f {\n  input x: f32[7]" + donated +
                                     "\n  output y: f32[7]\n  kernel k rows(i0: 7) {\n"
                                     "    store y[i0] = exp(load x[i0])\n  }\n  launch k\n"
                                     "  return " +
                                     returned + "\n}\n"));
  };
  REQUIRE(planned(" donated", "y").buffers[1].over == 0);
  REQUIRE(planned("", "y").buffers[1].over == -1);
  REQUIRE(planned(" donated", "y, x").buffers[1].over == -1);
}

TEST_CASE("a text whose buffer is over another without the right to be is refused",
          "[in_place]") {
  const auto refusal = [](const std::string& over, const std::string& index) {
    try {
      parse_program("program f {\n  input x: f32[8,8] donated\n  output y: f32[8,8]" + over +
                    "\n  kernel k rows(i0: 8, i1: 8) {\n    store y[i0*8 + i1] = exp(load x[" +
                    index + "])\n  }\n  launch k\n  return y\n}\n");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE(refusal(" over x", "i0*8 + i1").empty());
  const std::string other = refusal(" over x", "i1*8 + i0");
  CAPTURE(other);
  REQUIRE(other.find("y cannot be over x: kernel k reads other elements of it than the point "
                     "writes") != std::string::npos);
  REQUIRE(other.find("line 3, column 9") != std::string::npos);
  REQUIRE(refusal(" over y", "i0*8 + i1").find("y cannot be over y") != std::string::npos);
  REQUIRE(refusal(" over z", "i0*8 + i1").find("no buffer is called z") != std::string::npos);
}

TEST_CASE("outputs of sizes are over donated inputs, but where they have no elements",
          "[in_place][sizes]") {
  const Program program = plan_memory(parse_program(
      "program f[n: 0..8] {\n  input x: f32[n,3] donated\n  output y: f32[n,3]\n  kernel k "
      "rows(i0: "
      "n*3) {\n    store y[i0] = exp(load x[i0])\n  }\n  launch k\n  return y\n}\n"));
  REQUIRE(program.buffers[1].over == 0);
  for (const int64_t n : {0, 1, 5}) {
    const Program numbers = substitute(program, {{{"n", SymbolKind::Size}, n}});
    REQUIRE_NOTHROW(verify(numbers));
    REQUIRE(numbers.buffers[1].over == (n == 0 ? -1 : 0));
  }
}
