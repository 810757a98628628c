// What does the demo compile? A graph with one of everything: a gather, a normalisation, two
// matmuls with a GELU between, a residual, and a cross entropy.
#include "tiny_compile/cli/demo_model.h"

#include "tiny_compile/tiny_compile.h"

namespace tiny_compile {

Tensor next_byte_loss(const DemoModel& m, Tensor bytes, Tensor next) {
  Tensor x = embedding(bytes, m.table);
  Tensor h = layer_norm(x, {DemoModel::kWidth}, m.norm, m.shift);
  h = gelu(linear(h, m.up, m.up_bias));
  h = linear(h, m.down, m.down_bias) + x;
  return cross_entropy(linear(h, m.head), next);
}

Graph demo_graph(int64_t bytes) {
  const DemoModel model;
  auto loss = compile([&](Tensor b, Tensor n) { return next_byte_loss(model, b, n); },
                      {.name = "next_byte_loss"});
  const Tensor text = empty_tensor(DType::i64, {bytes});
  return loss.specialization(text, text).traced.graph;
}

}  // namespace tiny_compile
