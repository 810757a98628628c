#include "lessons/tools/check.h"
#include "exercise.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

const std::string kThree = "%0 x: f32[3,4], %1 y: f32[3,5], %2 z: f32[3,7]";
const std::string kWhole = "%3: f32[3,16] = concat %0, %1, %2 {axis=1}; ";

// A stop may stand anywhere behind the last element that is read, up to the next: there at once.
Graph with_tight_stops(Graph graph) {
  for (Node& node : graph.nodes) {
    if (node.op != Op::slice) continue;
    const int64_t axis = node.attr(Key::axis).constant();
    const int64_t count = node.type.shape[static_cast<size_t>(axis)].constant();
    const int64_t start = node.attr(Key::start).constant(),
                  step = node.attr(Key::step).constant();
    if (count > 0) node.set(Key::stop, {start + (count - 1) * step + 1});
  }
  return graph;
}

std::string becomes(const std::string& inputs, const std::string& before,
                    const std::string& after) {
  const Graph graph = graph_of(inputs, before), got = exercise::trim_concats(graph);
  if (const std::string trouble = other_bits(graph, got); !trouble.empty()) return trouble;
  const std::string trouble = other_graph(with_tight_stops(got), graph_of(inputs, after));
  return trouble.empty() ? "" : "from:\n" + print(graph) + trouble;
}

// The slice of x, y, z side by side, with the size it has.
std::string sliced(int64_t start, int64_t stop, int64_t step = 1) {
  return str(kWhole, "%4: f32[3,", (stop - start + step - 1) / step,
             "] = slice %3 {axis=1, start=", start, ", stop=", stop, ", step=", step,
             "}; return %4");
}

}  // namespace

TEST_CASE("a slice of the first part reads that part") {
  EXPECT(becomes(kThree, sliced(1, 3),
                 "%3: f32[3,2] = slice %0 {axis=1, start=1, stop=3, step=1}; return %3"));
}

TEST_CASE("a slice inside a later part begins at that part") {
  EXPECT(becomes(kThree, sliced(5, 8),
                 "%3: f32[3,3] = slice %1 {axis=1, start=1, stop=4, step=1}; return %3"));
  EXPECT(becomes(kThree, sliced(9, 16),
                 "%3: f32[3,7] = slice %2 {axis=1, start=0, stop=7, step=1}; return %3"));
}

TEST_CASE("a slice across two parts keeps both") {
  EXPECT(becomes(kThree, sliced(6, 11),
                 "%3: f32[3,12] = concat %1, %2 {axis=1}; %4: f32[3,5] = slice %3 {axis=1, "
                 "start=2, stop=7, step=1}; return %4"));
}

TEST_CASE("a slice of every part stays") {
  EXPECT(becomes(kThree, sliced(3, 10), sliced(3, 10)));
}

TEST_CASE("a step that stops short of the next part reads one part") {
  EXPECT(becomes(kThree, sliced(4, 10, 3),
                 "%3: f32[3,2] = slice %1 {axis=1, start=0, stop=4, step=3}; return %3"));
}

TEST_CASE("a slice along another axis stays") {
  const std::string body =
      kWhole + "%4: f32[2,16] = slice %3 {axis=0, start=0, stop=2, step=1}; return %4";
  EXPECT(becomes(kThree, body, body));
}

TEST_CASE("a slice of nothing stays") { EXPECT(becomes(kThree, sliced(4, 4), sliced(4, 4))); }

TEST_CASE("a part that comes twice is two parts") {
  EXPECT(becomes("%0 x: f32[5]",
                 "%1: f32[15] = concat %0, %0, %0 {axis=0}; %2: f32[4] = slice %1 {axis=0, "
                 "start=11, stop=15, step=1}; return %2",
                 "%1: f32[4] = slice %0 {axis=0, start=1, stop=5, step=1}; return %1"));
}

TEST_CASE("the concat stays for those who read all of it") {
  EXPECT(becomes(
      kThree,
      kWhole + "%4: f32[3,2] = slice %3 {axis=1, start=1, stop=3, step=1}; return %4, %3",
      "%3: f32[3,16] = concat %0, %1, %2 {axis=1}; %4: f32[3,2] = slice %0 {axis=1, "
      "start=1, stop=3, step=1}; return %4, %3"));
}

TEST_CASE("every slice of every step keeps its bits") {
  for (int64_t start = 0; start < 16; start++) {
    for (int64_t stop = start; stop <= 16; stop++) {
      const Graph graph = graph_of(kThree, sliced(start, stop, 1 + (start + stop) % 7));
      EXPECT(other_bits(graph, exercise::trim_concats(graph), 1));
    }
  }
}

TEST_CASE("two hundred random graphs keep their bits") {
  EXPECT(other_bits_somewhere(exercise::trim_concats));
}

TEST_CASE("one head of a projection costs one head") {
  const std::string inputs = "%0 x: f32[257,96], %1 y: f32[257,96], %2 z: f32[257,96]";
  const Graph graph =
      graph_of(inputs,
               "%3: f32[257,96] = exp %0; %4: f32[257,96] = tanh %1; %5: f32[257,96] = erf %2;"
               "%6: f32[257,288] = concat %3, %4, %5 {axis=1};"
               "%7: f32[257,96] = slice %6 {axis=1, start=96, stop=192, step=1};"
               "%8: f32[257] = sum %7 {axes=[1]}; return %8");
  const Staged staged = run_pipeline(exercise::with_mine(), graph, true);
  score("bytes moved", bytes_moved(staged.program), 257 * 96 * 4 + 257 * 4);
  CHECK(bytes_moved(staged.program) <= 257 * 96 * 4 + 257 * 4);
}
