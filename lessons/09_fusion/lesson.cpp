// Lesson 09: which kernels may become one?   build/lessons/09 [part]
#include "lessons/tools/lesson.h"

#include <algorithm>
#include <cmath>

#include "lessons/09_fusion/greedy.h"
#include "tiny_compile/loops/interpreter.h"

using namespace tiny_compile;
using namespace tiny_compile::lessons;

namespace {

// Rows that sum to 1; on top, rows of their projection that sum to 1. An op a line.
Tensor mix(Tensor x, Tensor w) {
  Tensor total = x.sum(-1, true);
  Tensor h = x / total;
  Tensor scores = matmul(h, w);
  Tensor e = exp(scores);
  Tensor sum = e.sum(-1, true);
  Tensor p = e / sum;
  return h + p;
}

Graph mix_graph() {
  return compile(mix, {.name = "mix"})
      .specialization(zeros({257, 64}), zeros({64, 64}))
      .traced.graph;
}

Program after(const std::string& stage, const Graph& graph) {
  return run_pipeline(until(pipeline(), stage), graph, true).program;
}

void show_program(const Program& program) {
  for (const Kernel& kernel : program.kernels)
    std::printf("%s", print(program, kernel).c_str());
  std::printf("%zu kernel%s, %lld bytes\n", program.kernels.size(),
              program.kernels.size() == 1 ? "" : "s",
              static_cast<long long>(bytes_moved(program)));
}

void show_lowered() { show_program(after("lower", mix_graph())); }
void show_fused() { show_program(after("fuse", mix_graph())); }

void show_refusals() {
  for (const std::string& refusal : after("fuse", mix_graph()).refusals)
    std::printf("%s\n", refusal.c_str());
}

// The line of the source that a kernel of one op came from.
int line_of(const Kernel& kernel) { return kernel.where.empty() ? -1 : kernel.where[0].line; }

bool is_written(const Program& program, const std::string& buffer) {
  for (const Kernel& kernel : program.kernels) {
    const std::vector<bool> written = buffers_written(program, kernel);
    for (size_t b = 0; b < written.size(); b++) {
      if (written[b] && program.buffers[b].name == buffer) return true;
    }
  }
  return false;
}

// Kernels of one op as boxes, in a frame for each kernel that they became. Thick arrows: the
// buffer stays in memory.
void show_picture() {
  const Program before = after("lower", mix_graph()), now = after("fuse", mix_graph());
  std::printf("flowchart LR\n");
  for (size_t g = 0; g < now.kernels.size(); g++) {
    std::printf("  subgraph g%zu[\"kernel %zu\"]\n", g, g + 1);
    for (size_t k = 0; k < before.kernels.size(); k++) {
      for (const Location& where : now.kernels[g].where) {
        if (where.line != line_of(before.kernels[k])) continue;
        std::printf("    k%zu[\"%s\"]\n", k, before.kernels[k].name.c_str());
        break;
      }
    }
    std::printf("  end\n");
  }
  for (size_t p = 0; p < before.kernels.size(); p++) {
    for (size_t c = 0; c < before.kernels.size(); c++) {
      if (!reads_from(before, before.kernels[c], before.kernels[p])) continue;
      const std::string& buffer = before.buffers[before.kernels[p].steps.back().buffer].name;
      const bool stays = is_written(now, buffer);
      std::printf(stays ? "  k%zu == %s ==> k%zu\n" : "  k%zu -. %s .-> k%zu\n", p,
                  buffer.c_str(), c);
    }
  }
}

Graph graph_of(const std::string& inputs, std::string body) {
  std::replace(body.begin(), body.end(), ';', '\n');
  return parse_graph("graph g(" + inputs + ") {\n" + body + "\n}\n");
}

void show_pair(const char* title, const std::string& inputs, const std::string& body) {
  const Program program = after("fuse", graph_of(inputs, body));
  std::printf("%-27s %s\n", title, program.kernels.size() == 1 ? "one kernel" : "stay apart");
  for (const std::string& refusal : program.refusals) std::printf("    %s\n", refusal.c_str());
}

void show_reasons() {
  show_pair("element by element", "%0 x: f32[64,100]",
            "%1: f32[64,100] = exp %0; %2: f32[64,100] = neg %1; return %2");
  show_pair("a row, then its elements", "%0 x: f32[64,100]",
            "%1: f32[64,1] = max %0 {axes=[1], keepdim=1}; %2: f32[64,100] = expand %1;"
            "%3: f32[64,100] = sub %0, %2; return %3");
  show_pair("the same read twice", "%0 x: f32[64,100]",
            "%1: f32[64] = sum %0 {axes=[1]}; %2: f32[64] = max %0 {axes=[1]}; return %1, %2");
  show_pair("rows, then columns", "%0 x: f32[64,100]",
            "%1: f32[64,1] = sum %0 {axes=[1], keepdim=1}; %2: f32[64,100] = expand %1;"
            "%3: f32[64,100] = div %0, %2; %4: f32[100] = sum %3 {axes=[0]}; return %4");
  show_pair("a running sum", "%0 x: f32[64,100]",
            "%1: f32[64,100] = cumsum %0 {axis=1}; %2: f32[64,100] = exp %1; return %2");
  show_pair("a negation for 64 rows", "%0 x: f32[100], %1 y: f32[64,100]",
            "%2: f32[100] = neg %0; %3: f32[64,100] = expand %2; %4: f32[64,100] = add %1, %3;"
            "return %4");
  show_pair("an exponential for 64 rows", "%0 x: f32[100], %1 y: f32[64,100]",
            "%2: f32[100] = exp %0; %3: f32[64,100] = expand %2; %4: f32[64,100] = add %1, %3;"
            "return %4");
  show_pair("columns, then elements", "%0 x: f32[1024,512]",
            "%1: f32[1,512] = max %0 {axes=[0], keepdim=1}; %2: f32[1024,512] = expand %1;"
            "%3: f32[1024,512] = sub %0, %2; return %3");
  show_pair("long columns, the same", "%0 x: f32[8192,512]",
            "%1: f32[1,512] = max %0 {axes=[0], keepdim=1}; %2: f32[8192,512] = expand %1;"
            "%3: f32[8192,512] = sub %0, %2; return %3");
  show_pair("four rows of 100000", "%0 x: f32[4,100000]",
            "%1: f32[4,1] = sum %0 {axes=[1], keepdim=1}; %2: f32[4,100000] = expand %1;"
            "%3: f32[4,100000] = div %0, %2; return %3");
}

// A result that is used for 64 rows: computed once and stored, or for each row again?
void show_again() {
  show_program(after("fuse", graph_of("%0 x: f32[100], %1 y: f32[64,100]",
                                      "%2: f32[100] = neg %0; %3: f32[64,100] = expand %2;"
                                      "%4: f32[64,100] = add %1, %3; return %4")));
}

// Rows normalised, and the sums of columns that the weights' gradients are.
void show_folds() {
  const Graph graph =
      graph_of("%0 x: f32[8192,256], %1 dy: f32[8192,256]",
               "%2: f32[8192,1] = sum %0 {axes=[1], keepdim=1}; %3: f32[8192,256] = expand %2;"
               "%4: f32[8192,256] = div %0, %3; %5: f32[8192,256] = mul %4, %1;"
               "%6: f32[256] = sum %5 {axes=[0]}; return %4, %6");
  for (Target target : {Target::Cpp, Target::Cuda})
    show_program(run_pipeline(until(pipeline(), "fold_columns"), graph, true, target).program);
}

int64_t count_nans(const Tensor& tensor) {
  const std::vector<float> values = tensor.to_vector<float>();
  return std::count_if(values.begin(), values.end(), [](float v) { return std::isnan(v); });
}

// The first kernel and the last as one, although the matmul lies between.
void show_break() {
  const Program good = after("fuse", mix_graph());
  const Merged merged = merged_with_consumer(good, good.kernels.front(), good.kernels.back());
  std::printf("merge_consumer says: '%s'\n", merged.refusal.c_str());
  Program bad = good;
  bad.launches = {{0}, {1}};
  for (bool merged_first : {true, false}) {
    bad.kernels = {merged.kernel, good.kernels[1]};
    if (!merged_first) std::swap(bad.kernels[0], bad.kernels[1]);
    try {
      verify(bad);
      std::printf("sound\n");
    } catch (const Error& error) {
      std::printf("%s\n", error.what());
    }
    manual_seed(1);
    const Tensor x = rand({257, 64}), w = randn({64, 64});
    const std::vector<Tensor> outputs = interpret(bad, std::vector<Tensor>{x, w});
    std::printf("  run all the same: %lld of %lld results are NaN\n",
                static_cast<long long>(count_nans(outputs[0])),
                static_cast<long long>(outputs[0].numel()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  return show_parts(argc, argv,
                    {{"lowered", show_lowered},
                     {"fused", show_fused},
                     {"refusals", show_refusals},
                     {"picture", show_picture},
                     {"reasons", show_reasons},
                     {"again", show_again},
                     {"folds", show_folds},
                     {"break", show_break}});
}
