// What nobody needs, or has already.
#include "tiny_compile/loops/dead.h"

#include "tests/catch.h"
#include "tiny_compile/loops/program.h"

using namespace tiny_compile;

TEST_CASE("of two temporaries that hold the same one is left", "[dead]") {
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
