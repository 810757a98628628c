// What does the demo compile? A graph with one of everything: a gather, a normalisation, two
// matmuls with a GELU between, a residual, and a cross entropy.
#include "tiny_compile/cli/demo_model.h"

#include "tiny_compile/tiny_compile.h"

namespace tiny_compile {
namespace {

constexpr const char* kParagraph =
    R"(A compiler for tensors is a chain of small steps, and each can be looked at. The first writes
down what a function does: every call leaves a node, and the nodes are a graph. The next ones
remove what is not needed, what is there twice and what is known beforehand. Then every node
becomes loops over numbers, and the loops are plain: read, compute, write. Most of the time goes
into the reading and the writing, because memory is slow and arithmetic is fast. So loops that
read what others wrote are merged, and what was written in between is never written at all. The
last steps say who runs which part of a loop, give every buffer its place, and print the text
that another compiler turns into instructions. None of them may change a single bit of the
result: what is fast and wrong is only wrong. You can stop the chain behind any step, run what is
there, and compare. If a number differs, the step that changed it is the one to read.

)";

Tensor bytes_of(const std::string& text, size_t from) {
  std::vector<int64_t> values;
  for (size_t i = from; i + 1 - from < text.size(); i++)
    values.push_back(static_cast<unsigned char>(text[i]));
  return from_vector(values);
}

}  // namespace

Tensor next_byte_loss(const DemoModel& m, const Tensor& bytes, const Tensor& next) {
  Tensor x = embedding(bytes, m.table);
  Tensor h = layer_norm(x, {DemoModel::kWidth}, m.norm, m.shift);
  h = gelu(linear(h, m.up, m.up_bias));
  h = linear(h, m.down, m.down_bias) + x;
  return cross_entropy(linear(h, m.head), next);
}

Graph demo_graph(int64_t bytes) {
  const DemoModel model;
  auto loss =
      compile([&](const Tensor& b, const Tensor& n) { return next_byte_loss(model, b, n); },
              {.name = "next_byte_loss"});
  const Tensor text = empty_tensor(DType::i64, {bytes});
  return loss.specialization(text, text).traced.graph;
}

std::string demo_text() {
  std::string text;
  while (text.size() <= kDemoBytes) text += kParagraph;
  return text.substr(0, kDemoBytes + 1);
}

std::pair<Tensor, Tensor> bytes_and_next(const std::string& text) {
  return {bytes_of(text, 0), bytes_of(text, 1)};
}

}  // namespace tiny_compile
