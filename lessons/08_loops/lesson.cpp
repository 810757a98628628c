// Lesson 08: which loops is an op?   build/lessons/08 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>

#include "tiny_compile/loops/interpreter.h"
#include "tiny_compile/loops/lower.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// x: f32[6,8], upside down, on its side, five of its eight rows; a bias for each column; sums.
Tensor corner(Tensor x, Tensor bias) {
  Tensor flipped = x.flip({0});
  Tensor transposed = flipped.t();
  Tensor part = transposed.slice(0, 2, 7);
  Tensor shifted = part + bias;
  return shifted.sum(-1);
}

Graph corner_graph() {
  return compile(corner, {.name = "corner"})
      .specialization(zeros({6, 8}), zeros({6}))
      .traced.graph;
}

// As lowered, with what WITH=mine puts behind it.
Program lowered(const Graph& graph) {
  Pipeline stages = pipeline();
  stages.erase(std::find_if(stages.begin(), stages.end(),
                            [](const Stage& stage) { return stage.name == "fuse"; }),
               stages.end());
  return run_pipeline(stages, graph, true).program;
}

Graph graph_of(const std::string& inputs, std::string body) {
  std::replace(body.begin(), body.end(), ';', '\n');
  return parse_graph("graph g(" + inputs + ") {\n" + body + "\n}\n");
}

void show_kernels_of(const Program& program) {
  for (const Kernel& kernel : program.kernels)
    std::printf("%s", print(program, kernel).c_str());
}

void show_graph() { std::printf("%s", print(corner_graph()).c_str()); }
void show_kernels() { show_kernels_of(lowered(corner_graph())); }

// The printed text read again, as it is and with an 'i' forgotten.
void show_text() {
  const Program program = lowered(corner_graph());
  std::string text = print(program);
  std::printf("read again: %s\n", parse_program(text) == program ? "equal" : "not equal");
  text.replace(text.find("[i0*6 + i1]"), 11, "[i0*6 + k1]");
  try {
    parse_program(text);
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
  }
}

// A kernel as a C programmer would write it. Only what this lesson's kernels need.
class PlainC {
 public:
  PlainC(const Program& program, const Kernel& kernel) : program_(program), kernel_(kernel) {}

  void print() {
    for (int row = 0; row < kernel_.rows; row++) open(row);
    for (size_t s = 0; s < kernel_.steps.size(); s++) step(static_cast<int>(s));
    while (depth_ > 0) close();
  }

 private:
  void line(const std::string& text) const {
    std::printf("%*s%s\n", 2 * depth_, "", text.c_str());
  }
  void open(int axis) {
    const Axis& a = kernel_.axes[axis];
    line(str("for (int ", a.name, " = 0; ", a.name, " < ", a.extent, "; ", a.name, "++) {"));
    depth_++;
  }
  void close() {
    depth_--;
    line("}");
  }

  void step(int number) {
    const Step& s = kernel_.steps[number];
    if (s.kind == StepKind::Reduce) line(str("float r", number, " = -0.0f;"));
    for (int axis : s.inner) open(axis);
    if (s.kind == StepKind::Reduce) line(str("r", number, " += ", value(s.value), ";"));
    if (s.kind == StepKind::Store)
      line(str(program_.buffers[s.buffer].name, "[", s.index, "] = ", value(s.value), ";"));
    for (size_t k = 0; k < s.inner.size(); k++) close();
  }

  std::string value(int id) const {
    const Scalar& s = kernel_.scalars[id];
    if (s.kind == ScalarKind::Register) return str("r", s.step);
    if (s.kind == ScalarKind::Constant) return s.value.str();
    if (s.kind == ScalarKind::Index) return s.index.str();
    if (s.kind == ScalarKind::Load) {
      const std::string element = str(program_.buffers[s.buffer].name, "[", s.index, "]");
      return s.mask < 0 ? element : str("(", value(s.mask), " ? ", element, " : 0)");
    }
    std::vector<std::string> operands;
    for (int operand : s.operands) operands.push_back(value(operand));
    if (s.op == Op::add) return join(operands, " + ");
    if (s.op == Op::lt) return join(operands, " < ");
    return str(info(s.op).name, "(", join(operands, ", "), ")");
  }

  const Program& program_;
  const Kernel& kernel_;
  int depth_ = 0;
};

void show_c() {
  const Program program = lowered(corner_graph());
  for (const Kernel& kernel : program.kernels) {
    std::printf("// %s\n", kernel.name.c_str());
    PlainC(program, kernel).print();
  }
}

void show_view(const char* title, const std::string& body) {
  const Program program = lowered(graph_of("%0 x: f32[6,8]", body));
  const Kernel& kernel = program.kernels[0];
  std::vector<std::string> loops;
  for (const Axis& axis : kernel.axes) loops.push_back(str(axis.name, ": ", axis.extent));
  std::printf("%-22s (%s)%*s x[%s]\n", title, join(loops, ", ").c_str(),
              static_cast<int>(16 - join(loops, ", ").size()), "",
              kernel.scalars[0].index.str().c_str());
}

void show_views() {
  show_view("x", "%1: f32[6,8] = neg %0; return %1");
  show_view("x.t()",
            "%1: f32[8,6] = permute %0 {axes=[1,0]}; %2: f32[8,6] = neg %1; return %2");
  show_view("x.flip({0})",
            "%1: f32[6,8] = flip %0 {axes=[0]}; %2: f32[6,8] = neg %1; return %2");
  show_view("x.slice(1, 1, 8, 3)",
            "%1: f32[6,3] = slice %0 {axis=1, start=1, stop=8, step=3}; %2: f32[6,3] = neg %1;"
            "return %2");
  show_view("x.reshape({48})", "%1: f32[48] = reshape %0; %2: f32[48] = neg %1; return %2");
  show_view("x.reshape({4, 12})",
            "%1: f32[4,12] = reshape %0; %2: f32[4,12] = neg %1; return %2");
  show_view("x.t().reshape({48})",
            "%1: f32[8,6] = permute %0 {axes=[1,0]}; %2: f32[48] = reshape %1;"
            "%3: f32[48] = neg %2; return %3");
}

void show_bounds() {
  for (int64_t extent : {8, 9}) {
    const Expr i = Expr::index("i", 6), j = Expr::index("j", extent), index = i * 8 + j;
    std::printf("j < %lld:  (%s)/8 = %-14s (%s)%%8 = %s\n", static_cast<long long>(extent),
                index.str().c_str(), floor_div(index, 8).str().c_str(), index.str().c_str(),
                mod(index, 8).str().c_str());
  }
}

void show_run() {
  const Graph graph = corner_graph();
  const Program program = lowered(graph);
  manual_seed(1);
  const Tensor x = randn({6, 8}), bias = randn({6});
  const std::vector<Tensor> inputs = {x, bias};
  const bool same =
      !first_difference(interpret(graph, inputs)[0], interpret(program, inputs)[0]);
  std::printf("graph and loops: %s\n", same ? "the same bits" : "other bits");
}

void show_scheduled(const char* title, const Graph& graph) {
  const Program before = lowered(graph);
  const Program scheduled = run_pipeline(pipeline(), graph, true).program;
  std::printf("-- %s\n", title);
  show_kernels_of(before);
  std::printf("   =>\n");
  show_kernels_of(scheduled);
}

void show_schedule() {
  show_scheduled("exp of f32[64,100]",
                 graph_of("%0 x: f32[64,100]", "%1: f32[64,100] = exp %0; return %1"));
  show_scheduled("exp of f32[100], for 64 rows",
                 graph_of("%0 x: f32[100]",
                          "%1: f32[64,100] = expand %0; %2: f32[64,100] = exp %1; return %2"));
  show_scheduled("column sums of f32[64,100]",
                 graph_of("%0 x: f32[64,100]", "%1: f32[100] = sum %0 {axes=[0]}; return %1"));
  show_scheduled("sum of f32[20000]",
                 graph_of("%0 x: f32[20000]", "%1: f32[] = sum %0 {axes=[0]}; return %1"));
}

// (j: n) => (jo: turns, ji: 4), j = jo*4 + ji, with nothing done about a rest.
Program split_by_four(Program program, int64_t turns) {
  Kernel& kernel = program.kernels[0];
  const std::string name = kernel.axes[0].name;
  kernel.axes = {{"jo", turns}, {"ji", 4}};
  const Substitution names = {{name, kernel.axes[0].symbol() * 4 + kernel.axes[1].symbol()}};
  for (Scalar& scalar : kernel.scalars) scalar.index = substitute(scalar.index, names);
  kernel.steps[0].inner = {0, 1};
  return program;
}

void show_split(const char* title, const Graph& graph, int64_t turns, const Tensor& x) {
  const Program program = split_by_four(lower(graph), turns);
  std::string said;
  try {
    verify(program);
    const Tensor sum = interpret(program, std::vector<Tensor>{x})[0];
    said = str(sum.item<float>());
  } catch (const Error& error) {
    said = error.what();
  }
  std::printf("  %s %s\n", title, said.c_str());
}

// x with the row i0 of the kernel that reads an element, or a dot.
void show_picture() {
  const Program program = lowered(corner_graph());
  const Kernel& add = program.kernels[0];
  std::vector<std::string> cells(48, ".");
  for (int64_t i0 = 0; i0 < 5; i0++) {
    for (int64_t i1 = 0; i1 < 6; i1++)
      cells[evaluate(add.scalars[0].index, {{"i0", i0}, {"i1", i1}})] = str(i0);
  }
  for (int row = 0; row < 6; row++) {
    std::printf("x[%d, 0..7]  ", row);
    for (int column = 0; column < 8; column++)
      std::printf(" %s", cells[row * 8 + column].c_str());
    std::printf("   i1 = %d\n", 5 - row);
  }
}

void show_break() {
  for (int64_t n : {1000, 1001}) {
    const Graph graph =
        graph_of(str("%0 x: f32[", n, "]"), "%1: f32[] = sum %0 {axes=[0]}; return %1");
    const Tensor x = ones({n});
    std::printf("%lld ones\n", static_cast<long long>(n));
    show_split("n/4 turns:      ", graph, n / 4, x);
    show_split("(n+3)/4 turns:  ", graph, (n + 3) / 4, x);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"graph", show_graph},
                     {"kernels", show_kernels},
                     {"c", show_c},
                     {"text", show_text},
                     {"views", show_views},
                     {"bounds", show_bounds},
                     {"run", show_run},
                     {"schedule", show_schedule},
                     {"picture", show_picture},
                     {"break", show_break}});
}
