// make demo: a byte-level next-byte model reads a text, and every stage of the compiler shows what
// it bought: launches, bytes moved, time; the loss has the same bits on every rung.
//
// Exit codes: 0 right, 1 the user's mistake, 2 another loss on a GPU.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "tiny_compile/base/input_file.h"
#include "tiny_compile/cli/demo_model.h"
#include "tiny_compile/runtime/nvrtc.h"
#include "tiny_compile/tensor/cuda_driver.h"
#include "tiny_compile/tiny_compile.h"

namespace {

namespace tc = tiny_compile;

std::string text_of(const std::string& path) {
  const std::string text = tc::InputFile(path).read(tc::kDemoBytes + 1);
  if (text.size() < 2)
    tc::fail("demo: '", path, "' holds less than two bytes; name a text with FILE=path");
  return text;
}

void print_ladder(const tc::Explanation& e) {
  std::printf("  %-12s %9s %10s %10s %8s %13s\n", "after", "launches", "MB moved", "ms", "GB/s",
              "loss");
  for (const tc::Rung& rung : e.rungs)
    std::printf("  %-12s %9lld %10.2f %10.3f %8.2f %13a\n", rung.stage.c_str(),
                static_cast<long long>(rung.launches), static_cast<double>(rung.bytes) * 1e-6,
                rung.milliseconds, rung.gigabytes_per_second(),
                static_cast<double>(rung.outputs[0].item<float>()));
  const tc::Rung &first = e.rungs.front(), &last = e.rungs.back();
  std::printf(
      "\n  %lld launches became %lld, %.1f MB became %.1f MB, and it runs %.1f times as fast: "
      "loss %.6f, the same bits.\n",
      static_cast<long long>(first.launches), static_cast<long long>(last.launches),
      static_cast<double>(first.bytes) * 1e-6, static_cast<double>(last.bytes) * 1e-6,
      first.milliseconds / last.milliseconds, last.outputs[0].item<double>());
}

// The first kernel, as generated.
void show_one_kernel(const std::string& source) {
  const size_t at = source.find("extern \"C\" void k_");
  std::printf("\nThe first generated kernel:\n\n%s\n",
              source.substr(at, source.find("\n}\n", at) + 3 - at).c_str());
}

// The ladder again on a GPU, where there is one; whether it ends at the CPU's loss.
bool climb_on_gpu(const tc::Graph& graph, std::vector<tc::Tensor> inputs, float loss,
                  const std::string& beside) {
  const std::string missing = tc::why_no_gpu();
  if (!missing.empty()) {
    std::printf("\nNo ladder on a GPU here: %s\n", missing.c_str());
    return true;
  }
  for (tc::Tensor& input : inputs) input = input.to(tc::cuda);
  const tc::Explanation explanation = tc::explain(graph, inputs, tc::default_pipeline(), 0.3);
  std::printf("\nOn %s:\n\n", tc::cuda_device(0).name.c_str());
  print_ladder(explanation);
  const bool same = explanation.rungs.back().outputs[0].item<float>() == loss;
  std::printf("  %s\n",
              same ? "The CPU's loss, to the bit." : "NOT THE CPU'S LOSS: please report this.");
  std::ofstream(beside + "demo.cu") << explanation.staged.source.text;
  return same;
}

int run(const std::string& path, const std::string& beside) {
  const auto [bytes, next] = tc::bytes_and_next(path.empty() ? tc::demo_text() : text_of(path));
  tc::manual_seed(1);
  const tc::DemoModel model;
  auto loss = tc::compile(
      [&](const tc::Tensor& b, const tc::Tensor& n) { return tc::next_byte_loss(model, b, n); },
      {.name = "next_byte_loss"});
  std::printf("A next-byte model of seeded weights reads %lld bytes of %s.\n\n",
              static_cast<long long>(bytes.numel()),
              path.empty() ? "its own text" : path.c_str());
  const auto traced = loss.specialization(bytes, next);
  const tc::Explanation explanation =
      tc::explain(traced.traced.graph, traced.inputs, tc::default_pipeline(), 0.3);
  print_ladder(explanation);
  const bool same = climb_on_gpu(traced.traced.graph, traced.inputs,
                                 explanation.rungs.back().outputs[0].item<float>(), beside);
  show_one_kernel(explanation.staged.source.text);
  std::ofstream(beside + "demo.cpp") << explanation.staged.source.text;
  std::ofstream(beside + "demo.graph") << tc::print(traced.traced.graph);
  std::printf(
      "All of the generated source: %sdemo.cpp\nEvery stage: %stc explain %sdemo.graph\n",
      beside.c_str(), beside.c_str(), beside.c_str());
  return same ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string self = argv[0];  // build/demo
    return run(argc > 1 ? argv[1] : "", self.substr(0, self.rfind('/') + 1));
  } catch (const tc::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
