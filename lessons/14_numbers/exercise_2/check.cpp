#include "lessons/tools/check.h"
#include "exercise.h"

#include <limits>

#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;
using exercise::Blame;

namespace {

// div x, c => mul x, 1/c: another last bit for one element in some.
Graph divide_by_multiplying(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    if (node.op != Op::div || out[node.inputs[1]].op != Op::constant) return out.append(node);
    Node inverse = out[node.inputs[1]];
    inverse.value = Literal::of(inverse.type.dtype, 1 / inverse.value.as_double());
    const int id = out.append(inverse);
    node.op = Op::mul;
    node.inputs[1] = id;
    return out.append(node);
  });
}

// add x, 0 => x: -0 becomes 0 no more.
Graph drop_zeros(const Graph& graph) {
  return rebuild(graph, [](Graph& out, Node node) {
    const bool adds = node.op == Op::add && out[node.inputs[1]].op == Op::constant &&
                      out[node.inputs[1]].value.is(0.0);
    return adds ? node.inputs[0] : out.append(node);
  });
}

// The last bit of every f32 constant of every kernel.
Program flip_bits(const Program& program) {
  Program result = program;
  for (Kernel& kernel : result.kernels) {
    for (Scalar& scalar : kernel.scalars) {
      if (scalar.kind == ScalarKind::Constant && scalar.dtype == float32)
        scalar.value.bits ^= 1;
    }
  }
  return result;
}

const char* kThirds =
    "%1: f32[257] = constant {value=3.0}; %2: f32[257] = div %0, %1;"
    "%3: f32[257] = exp %0; return %3, %2";

struct Thirds {
  Graph graph = graph_of("%0 x: f32[257]", kThirds);
  std::vector<Tensor> inputs = {arange(257).to(float32)};
  // The second output's first element for which x / 3 is not x * (1 / 3).
  int64_t at() const {
    const float* x = inputs[0].data<float>();
    int64_t i = 0;
    while (x[i] / 3.0f == x[i] * (1.0f / 3.0f)) i++;
    return i;
  }
};

int place_of(const Pipeline& pipeline, const std::string& name) {
  int at = 0;
  while (pipeline[size_t(at)].name != name) at++;
  return at;
}

std::string in_words(const Blame& blame) {
  return str("stage ", blame.stage, ", output ", blame.output, ", element ", blame.element);
}

std::string other_blame(const Blame& got, const Blame& wanted) {
  return got == wanted ? "" : str("you blame ", in_words(got), "; it is ", in_words(wanted));
}

}  // namespace

TEST_CASE("the default pipeline keeps every bit") {
  const Thirds thirds;
  EXPECT(other_blame(exercise::blame(default_pipeline(), thirds.graph, thirds.inputs), {}));
}

TEST_CASE("a pass that multiplies by the inverse is found") {
  const Thirds thirds;
  const Pipeline mine =
      insert_after(default_pipeline(), "cse", {"inverse", divide_by_multiplying});
  EXPECT(other_blame(exercise::blame(mine, thirds.graph, thirds.inputs),
                     {place_of(mine, "inverse"), 1, thirds.at()}));
}

TEST_CASE("a stage that rewrites loops is found") {
  const Thirds thirds;
  const Pipeline mine = insert_after(default_pipeline(), "fuse", {"flip", flip_bits});
  EXPECT(other_blame(exercise::blame(mine, thirds.graph, thirds.inputs),
                     {place_of(mine, "flip"), 1, 1}));
}

TEST_CASE("the lowering is looked at like any other stage") {
  const Thirds thirds;
  const Pipeline mine = replace(default_pipeline(), "lower", [](const Graph& graph) {
    return lower(divide_by_multiplying(graph));
  });
  EXPECT(other_blame(exercise::blame(mine, thirds.graph, thirds.inputs),
                     {place_of(mine, "lower"), 1, thirds.at()}));
}

TEST_CASE("of two stages that change bits it is the first") {
  const Thirds thirds;
  Pipeline mine = insert_after(default_pipeline(), "fuse", {"flip", flip_bits});
  mine = insert_after(mine, "fold", {"inverse", divide_by_multiplying});
  EXPECT(other_blame(exercise::blame(mine, thirds.graph, thirds.inputs),
                     {place_of(mine, "inverse"), 1, thirds.at()}));
}

TEST_CASE("the second of two stages of one name is found") {
  const Thirds thirds;
  Pipeline mine = default_pipeline();
  const int place = place_of(mine, "lower");
  mine.insert(mine.begin() + place, {"cse", divide_by_multiplying});
  EXPECT(
      other_blame(exercise::blame(mine, thirds.graph, thirds.inputs), {place, 1, thirds.at()}));
}

TEST_CASE("0 and -0 are two results, NaN and NaN are one") {
  const Graph graph = graph_of("%0 x: f32[4]",
                               "%1: f32[4] = constant {value=0.0}; %2: f32[4] = add %0, %1;"
                               "%3: f32[4] = log %2; return %3, %2");
  const Tensor x =
      from_vector(std::vector<float>{-1, std::numeric_limits<float>::quiet_NaN(), 0.0f, -0.0f});
  const Pipeline mine = insert_after(default_pipeline(), "dce", {"drop", drop_zeros});
  EXPECT(other_blame(exercise::blame(default_pipeline(), graph, {x}), {}));
  EXPECT(other_blame(exercise::blame(mine, graph, {x}), {place_of(mine, "drop"), 1, 3}));
}

TEST_CASE("a stage whose graph is not sound is to blame") {
  const Thirds thirds;
  const Pipeline mine =
      insert_after(default_pipeline(), "simplify", {"tear", [](const Graph& graph) {
                                                      Graph torn = graph;
                                                      torn.nodes.back().inputs = {};
                                                      return torn;
                                                    }});
  EXPECT(other_blame(exercise::blame(mine, thirds.graph, thirds.inputs),
                     {place_of(mine, "tear"), -1, -1}));
}
