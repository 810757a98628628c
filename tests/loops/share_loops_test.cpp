// Loops of a kernel that are as long as others become the same loops.
#include "tiny_compile/loops/share_loops.h"

#include "tests/catch.h"
#include "tiny_compile/loops/dead.h"
#include "tiny_compile/loops/program.h"

using namespace tiny_compile;

namespace {

// A kernel's steps over rows(i0: 3), x and y: f32[3,2,49].
Program of_steps(const std::string& steps, const std::string& buffers = "") {
  return parse_program("program f {\n input x: f32[3,2,49]\n output y: f32[3,2,49]\n" +
                       buffers + "kernel a rows(i0: 3) {\n" + steps +
                       "}\nlaunch a\nreturn y\n}");
}

std::string shared(const std::string& steps) {
  Program program = of_steps(steps);
  program.kernels[0] = share_loops(program.kernels[0]);
  verify(program);
  return print(program, program.kernels[0]);
}

}  // namespace

TEST_CASE("steps of equal loops go over them together", "[share_loops]") {
  CHECK(shared(R"(
    r0: f32 = sum(j0: 2, j1: 49) load x[i0*98 + j0*49 + j1]
    store y[i0*98 + j2*49 + j3] for (j2: 2, j3: 49) = sub(load x[i0*98 + j2*49 + j3], r0)
  )") == R"(  kernel a rows(i0: 3) {
    r0: f32 = sum(j0: 2, j1: 49) load x[i0*98 + j0*49 + j1]
    store y[i0*98 + j0*49 + j1] for (j0: 2, j1: 49) = sub(load x[i0*98 + j0*49 + j1], r0)
  }
)");
}

TEST_CASE("loops in another order, or of another length, stay", "[share_loops]") {
  for (const char* sum :
       {"sum(j0: 49, j1: 2) load x[i0*98 + j0 + j1*49]", "sum(j0: 98) load x[i0*98 + j0]"}) {
    const std::string steps = std::string("r0: f32 = ") + sum +
                              "\nstore y[i0*98 + j2*49 + j3] for (j2: 2, j3: 49) = sub(load "
                              "x[i0*98 + j2*49 + j3], r0)\n";
    const Program program = of_steps(steps);
    CHECK(share_loops(program.kernels[0]) == program.kernels[0]);
  }
}

TEST_CASE("of two temporaries that hold the same one is left", "[share_loops]") {
  const Program program = with_one_of_each(parse_program(R"(program f {
    input x: f32[3,98]
    temp t: f32[3]
    temp u: f32[3]
    temp v: f32[3]
    output y: f32[3,98]
    kernel a rows(i0: 3) {
      r0: f32 = sum(j0: 98) load x[i0*98 + j0]
      store t[i0] = r0
      store u[i0] = r0
      store v[i0] = neg(r0)
    }
    kernel b rows(i0: 3, i1: 98) {
      store y[i0*98 + i1] = add(add(load t[i0], load u[i0]), load v[i0])
    }
    launch a
    launch b
    return y
  })"));
  CHECK(print(program, program.kernels[0]) == R"(  kernel a rows(i0: 3) {
    r0: f32 = sum(j0: 98) load x[i0*98 + j0]
    store t[i0] = r0
    store v[i0] = neg(r0)
  }
)");
  CHECK(print(program, program.kernels[1]) == R"(  kernel b rows(i0: 3, i1: 98) {
    $0 = load t[i0]
    store y[i0*98 + i1] = add(add($0, $0), load v[i0])
  }
)");
}
