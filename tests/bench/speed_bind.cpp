// What must a drawn function move at least? What it reads of its inputs and all of its outputs:
// each byte once, whatever lies between.
#include "tests/bench/speed_bind.h"

#include <algorithm>
#include <charconv>

#include "tests/bench/speed_patterns.h"
#include "tiny_compile/tensor/cuda_memory.h"

namespace bench {
namespace {

namespace tc = tiny_compile;
using tc::Tensor;
using Tensors = std::vector<Tensor>;

constexpr double kTiny = 24e6;  // bytes: 6 us on an H200, about a launch

auto compiled(const Draw& draw, const tc::CompileOptions& options) {
  return tc::compile([draw](const Tensors& x) { return evaluate(draw, x); }, options);
}

tc::Graph traced(const Draw& draw) {
  Tensors inputs;
  for (const Input& input : draw.inputs) inputs.push_back(shape_only(input));
  return compiled(draw, {}).specialization(inputs).traced.graph;
}

bool has_product(const tc::Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const tc::Node& node) {
    return tc::info(node.op).op_class == tc::OpClass::Matmul;
  });
}

Ready bound_to(const Draw& draw, tc::CompileOptions options, const Tensors& x) {
  options.name = draw.family;
  const auto f = compiled(draw, options);
  Ready ready;
  ready.call = [=] { f(x); };
  ready.results = [=] { return f(x); };
  ready.graph = [=] { return f.specialization(x).traced.graph; };
  return ready;
}

std::string describe(const Draw& draw) {
  std::vector<std::string> inputs;
  for (const Input& input : draw.inputs) {
    if (inputs.size() == 4) break;
    inputs.push_back(tc::str(tc::name(input.dtype), "[", tc::join(input.shape, ","), "]"));
  }
  const size_t more = draw.inputs.size() - inputs.size();
  return tc::str(draw.what, "; ", tc::join(inputs, " "),
                 more ? tc::str(" and ", more, " more") : "");
}

uint64_t number_from(const std::string& digits) {
  uint64_t seed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), seed);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
    tc::fail("'", digits, "' is no seed (a number) and no pattern's name");
  return seed;
}

Draw draw_named(const std::string& name, Scale scale) {
  if (is_pattern(name)) return pattern(name, scale);
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return draw(number_from(name), scale);
  return draw_of(name.substr(0, colon), number_from(name.substr(colon + 1)), scale);
}

}  // namespace

double floor_bytes(const Draw& draw, const tc::Graph& graph) {
  double bytes = 0;
  for (int64_t read : draw.read) bytes += static_cast<double>(read);
  for (int id : graph.outputs) {
    double elements = 1;
    for (const tc::Expr& size : graph[id].type.shape)
      elements *= static_cast<double>(size.constant());
    bytes += elements * static_cast<double>(tc::size_of(graph[id].type.dtype));
  }
  return bytes;
}

GpuRow row_of(const Draw& draw, bool on_gpu) {
  const tc::Graph graph = traced(draw);
  GpuRow row;
  row.name = tc::str(draw.seed);
  row.family = draw.family;
  row.what = describe(draw);
  row.python = python(draw);
  row.bytes = floor_bytes(draw, graph);
  row.tiny = on_gpu && row.bytes < kTiny;
  row.exact = !on_gpu || !has_product(graph);
  row.inputs = draw.inputs;
  row.prepare = [draw](const tc::CompileOptions& options, const Tensors& x) {
    return bound_to(draw, options, x);
  };
  return row;
}

RowMaker draws_at(Scale scale, bool on_gpu) {
  return [=](const std::string& name, bool small) {
    GpuRow row = row_of(draw_named(name, small ? Scale::Small : scale), on_gpu);
    row.name = name;
    return row;
  };
}

}  // namespace bench
