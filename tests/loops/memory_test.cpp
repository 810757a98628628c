// Temporaries share one arena, and never bytes while both are alive.
#include <algorithm>

#include "tests/catch.h"
#include "tests/fuzz/random_graph.h"
#include "tiny_compile/compile/pipeline.h"
#include "tiny_compile/loops/program.h"

using namespace tiny_compile;

namespace {

// A program of n running sums of 64 floats, each of the one before: t1, t2, ...
Program chain(int kernels) {
  std::string buffers = "program f {\n  input x: f32[64]\n", text, launches;
  for (int k = 1; k <= kernels; k++) {
    buffers += str(k == kernels ? "  output " : "  temp ", "t", k, ": f32[64]\n");
    text +=
        str("  kernel scan_", k, " rows() {\n    scan t", k, "[j0] for (j0: 64) = cumsum load ",
            k == 1 ? std::string("x") : str("t", k - 1), "[j0]\n  }\n");
    launches += str("  launch scan_", k, "\n");
  }
  return parse_program(buffers + text + launches + str("  return t", kernels, "\n}\n"));
}

int64_t bytes_of(const Buffer& buffer) {
  return buffer.size.constant() * size_of(buffer.type.dtype);
}

// What each byte of the arena holds is followed launch by launch: a kernel must find every
// temporary that it reads still whole.
void require_sound(const Program& program) {
  std::vector<int> owner(static_cast<size_t>(program.arena_bytes), -1);
  for (const std::vector<int>& launch : program.launches) {
    for (int id : launch) {
      const std::vector<bool> read = buffers_read(program, program.kernels[id]),
                              written = buffers_written(program, program.kernels[id]);
      auto each_byte = [&](size_t b, auto visit) {
        const Buffer& buffer = program.buffers[b];
        if (buffer.role != Role::Temporary) return;
        REQUIRE(buffer.place >= 0);
        REQUIRE(buffer.place % 64 == 0);
        REQUIRE(buffer.place + bytes_of(buffer) <= program.arena_bytes);
        for (int64_t k = 0; k < bytes_of(buffer); k++) visit(owner[buffer.place + k]);
      };
      bool whole = true;
      const auto check_reads = [&](auto is_asked) {
        for (size_t b = 0; b < read.size(); b++) {
          if (!read[b] || !is_asked(static_cast<int>(b))) continue;
          each_byte(b, [&](int& holder) { whole &= holder == static_cast<int>(b); });
        }
      };
      check_reads([](int) { return true; });
      for (size_t b = 0; b < written.size(); b++) {
        if (written[b]) each_byte(b, [&](int& holder) { holder = static_cast<int>(b); });
      }
      check_reads([&](int b) {  // what this kernel does not write over is still there
        for (size_t w = 0; w < written.size(); w++)
          if (written[w] && program.buffers[w].over == b) return false;
        return true;
      });
      INFO(print(program));
      REQUIRE(whole);
    }
  }
}

}  // namespace

TEST_CASE("a chain of temporaries needs the room of two", "[memory]") {
  const Program program = plan_memory(chain(6));
  REQUIRE(program.arena_bytes == 2 * 64 * 4);
  std::vector<int64_t> places;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.role == Role::Temporary) places.push_back(buffer.place);
  }
  REQUIRE(places == std::vector<int64_t>{0, 256, 0, 256, 0});
  verify(program);
}

TEST_CASE("a program without temporaries has no arena", "[memory]") {
  REQUIRE(plan_memory(chain(1)).arena_bytes == 0);
}

TEST_CASE("a value read late keeps its place until then", "[memory]") {
  Program program = plan_memory(parse_program(R"(program f {
    input x: f32[64]
    temp a: f32[64]
    temp b: f32[64]
    temp c: f32[10]
    output y: f32[64]
    kernel p rows(i0: 64) {
      store a[i0] = exp(load x[i0])
    }
    kernel q rows(i0: 64) {
      store b[i0] = exp(load a[i0])
    }
    kernel r rows(i0: 10) {
      store c[i0] = exp(load b[i0])
    }
    kernel s rows(i0: 64) {
      store y[i0] = add(load a[i0], load c[0])
    }
    launch p
    launch q
    launch r
    launch s
    return y
  })"));
  REQUIRE(program.arena_bytes == 256 + 256 + 64);
  require_sound(program);
  program.buffers[3].place = program.buffers[1].place;  // c over a, which is read later
  REQUIRE_THROWS_WITH(verify(program), Catch::Matchers::ContainsSubstring("share bytes"));
}

TEST_CASE("plans of random programs are sound, fused or not", "[memory]") {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    const Graph graph = random_graph(seed, 30);
    const Pipeline unfused = until(default_pipeline(), "lower");
    require_sound(plan_memory(run_pipeline(unfused, graph, false).program));
    require_sound(run_pipeline(default_pipeline(), graph, false).program);
  }
}
