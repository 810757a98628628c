#include "exercise.h"
#include "lessons/tools/check_program.h"
#include "tiny_compile/loops/fuse.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::Pair;

namespace {

std::string said(const Program& program, const std::vector<Pair>& pairs) {
  std::vector<std::string> words;
  for (const Pair& pair : pairs)
    words.push_back(
        str(program.buffers[pair.to].name, " over ", program.buffers[pair.from].name));
  return words.empty() ? "none" : join(words, ", ");
}

// Whether the plan gives the bits of the graph, without asking the verifier.
std::string other_bits_in_place(const Graph& graph, const Program& program) {
  const std::vector<Pair> pairs = exercise::overwrites(program);
  for (const Pair& pair : pairs) {
    const int buffers = static_cast<int>(program.buffers.size());
    if (pair.from < 0 || pair.to < 0 || pair.from >= buffers || pair.to >= buffers)
      return "a pair names a buffer that is not there";
  }
  const Program planned = exercise::plan_in_place(program, pairs);
  for (uint64_t round = 1; round <= 3; round++) {
    const std::vector<Tensor> inputs = random_inputs(graph, round);
    const std::vector<Tensor> want = interpret(graph, inputs), got = interpret(planned, inputs);
    for (size_t k = 0; k < want.size(); k++) {
      const std::optional<int64_t> at = first_difference(want[k], got[k]);
      if (at)
        return str("with ", said(program, pairs), ", output ", k, " has other bits: element ",
                   element_difference(want[k], got[k], *at), "\n", print(planned));
    }
  }
  return "";
}

std::string finds(const Program& program, const std::string& wanted) {
  const std::string got = said(program, exercise::overwrites(program));
  return got == wanted ? ""
                       : str("you find: ", got, "; wanted: ", wanted, " in\n", print(program));
}

std::string finds(const std::string& inputs, const std::string& body, const std::string& wanted,
                  bool fused = false) {
  const Graph graph = graph_of(inputs, body);
  const Program program = fused ? fuse(lower(graph)) : lower(graph);
  const std::string trouble = finds(program, wanted);
  return trouble.empty() ? other_bits_in_place(graph, program) : trouble;
}

}  // namespace

TEST_CASE("element by element is in place") {
  EXPECT(finds("%0 x: f32[7,11]",
               "%1: f32[7,11] = exp %0; %2: f32[7,11] = neg %1; %3: f32[7,11] = abs %2;"
               "return %3",
               "t2 over t1"));
}

TEST_CASE("a chain is in place from end to end") {
  EXPECT(
      finds("%0 x: f32[7]",
            "%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = abs %2; %4: f32[7] = sin "
            "%3; %5: f32[7] = cos %4; return %5",
            "t2 over t1, t3 over t2, t4 over t3"));
}

TEST_CASE("the caller keeps its inputs") {
  EXPECT(finds("%0 x: f32[7]", "%1: f32[7] = exp %0; %2: f32[7] = neg %1; return %2", "none"));
}

TEST_CASE("a buffer that is read later stays") {
  EXPECT(finds("%0 x: f32[7]",
               "%1: f32[7] = exp %0; %2: f32[7] = neg %1; %3: f32[7] = sin %2;"
               "%4: f32[7] = add %3, %1; %5: f32[7] = cos %4; return %5",
               "t3 over t2, t4 over t1"));
}

TEST_CASE("a transposed read is not in place") {
  EXPECT(finds("%0 x: f32[7,7]",
               "%1: f32[7,7] = exp %0; %2: f32[7,7] = permute %1 {axes=[1,0]};"
               "%3: f32[7,7] = sin %2; %4: f32[7,7] = neg %3; return %4",
               "none"));
}

TEST_CASE("a matmul is not in place") {
  EXPECT(finds("%0 x: f32[8,8], %1 w: f32[8,8]",
               "%2: f32[8,8] = exp %0; %3: f32[8,8] = matmul %2, %1; %4: f32[8,8] = neg %3;"
               "return %4",
               "none"));
}

TEST_CASE("eight bytes do not lie over four") {
  EXPECT(finds("%0 x: f32[7]",
               "%1: f32[7] = exp %0; %2: f64[7] = cast %1; %3: f64[7] = neg %2; return %3",
               "none"));
}

TEST_CASE("as many bytes of another dtype will do") {
  EXPECT(finds("%0 x: f32[7]",
               "%1: f32[7] = exp %0; %2: i32[7] = cast %1; %3: i32[7] = neg %2; return %3",
               "t2 over t1"));
}

TEST_CASE("a row is normalised in place") {
  EXPECT(finds("%0 x: f32[9,8], %1 w: f32[8,8]",
               "%2: f32[9,8] = matmul %0, %1; %3: f32[9,1] = sum %2 {axes=[1], keepdim=1};"
               "%4: f32[9,8] = expand %3; %5: f32[9,8] = div %2, %4;"
               "%6: f32[9,8] = matmul %5, %1; return %6",
               "t5 over t2", true));
}

TEST_CASE("a store that others follow overwrites nothing") {
  const char* text = R"(program p {
  input x: f32[7]
  temp a: f32[7]
  temp b: f32[7]
  output y: f32[7]
  output z: f32[7]
  kernel first rows(i0: 7) {
    store a[i0] = exp(load x[i0])
  }
  kernel second rows(i0: 7) {
    $0 = load a[i0]
    store b[i0] = neg($0)
    store y[i0] = sin($0)
  }
  kernel third rows(i0: 7) {
    store z[i0] = cos(load b[i0])
  }
  launch first
  launch second
  launch third
  return y, z
}
)";
  EXPECT(finds(parse_program(text), "none"));
}

TEST_CASE("two hundred random programs keep their bits in place") {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    const Graph graph = flat_random_graph(seed, 24);
    EXPECT(other_bits_in_place(graph, lower(graph)));
    EXPECT(other_bits_in_place(graph, fuse(lower(graph))));
  }
}

TEST_CASE("a chain of twelve ops needs one buffer") {
  std::string body = "%1: f32[1000] = exp %0;";
  for (int k = 2; k <= 13; k++) body += str("%", k, ": f32[1000] = sin %", k - 1, ";");
  const Program program = lower(graph_of("%0 x: f32[1000]", body + "return %13"));
  const int64_t arena =
      exercise::plan_in_place(program, exercise::overwrites(program)).arena_bytes;
  score("arena bytes", arena, 4032);
  CHECK(arena <= 4032);
}
