// Which neighbours of a kernel lie side by side.
#include "tiny_compile/schedule/accesses.h"

#include "tests/catch.h"
#include "tiny_compile/tiny_compile.h"

using namespace tiny_compile;

namespace {

// y[i0] = the sum over loops of x (1 << 20 elements, f32) at `index`, of so many rows.
Lines lines_at(int64_t rows, const std::string& loops, const std::string& index,
               const std::string& more = "") {
  const Program program = parse_program(str(
      "program f on cuda {\n  input x: f32[1048576]\n  input n: i64[4096]\n  output y: f32[",
      rows, "]\n  kernel k rows(i0: ", rows, ") {\n    r0: f32 = sum(", loops, ") load x[",
      index, more, "]\n    store y[i0] = r0\n  }\n  launch k\n  return y\n}\n"));
  return lines_of(program, program.kernels[0]);
}

}  // namespace

TEST_CASE("lanes touch as many lines as their addresses say", "[schedule]") {
  const Lines column = lines_at(1024, "j0: 1000", "i0 + j0*1024");
  CHECK(column.of_rows == 1);
  CHECK(column.of_loops == 32);
  const Lines row = lines_at(1024, "j0: 1000", "i0*1024 + j0");
  CHECK(row.of_rows == 32);
  CHECK(row.of_loops == 1);
  const Lines mirrored = lines_at(1024, "j0: 1000", "1000*1024 - i0 - j0*1024");
  CHECK(mirrored.of_rows <= 2);
}

TEST_CASE("short rows and windows count the rows between", "[schedule]") {
  const Lines twelve = lines_at(4096, "j0: 12", "i0*12 + j0");
  CHECK(twelve.of_rows == 12);  // 48 bytes apart
  CHECK(twelve.of_loops <= 2);  // 12, 12 and 8 neighbours
  const Lines window = lines_at(4096, "j0: 3, j1: 3", "i0*2 + j0*8192 + j1");
  CHECK(window.of_rows <= 3);
  CHECK(window.of_loops >= 3);
}

TEST_CASE("what data chooses lies anywhere", "[schedule]") {
  const std::string chosen = "; at0 = load n[j0] < 1000";
  const Lines embedding = lines_at(96, "j0: 577", "at0*96 + i0", chosen);
  CHECK(embedding.of_rows == 1 + 1);  // a line of x, and one element of n for all
  CHECK(embedding.of_loops >= 32);
}
