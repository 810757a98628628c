#include "exercise.h"

namespace exercise {
namespace {

constexpr uint32_t kLargest = 0x7e, kNaN = 0x7f;
constexpr uint32_t kBias = 120u << 23;  // from fp8's 7 to f32's 127

}  // namespace

float to_f32(Fp8 x) {
  const uint32_t sign = uint32_t(x.bits & 0x80) << 24, magnitude = x.bits & 0x7f;
  if (magnitude == kNaN) return prelude::tc_from_bits(sign | 0x7fc00000u);
  if (magnitude < 8) return prelude::tc_copysign(float(magnitude) * 0x1p-9f, sign ? -1.f : 1.f);
  return prelude::tc_from_bits(sign | ((magnitude << 20) + kBias));
}

Fp8 to_fp8(float x, Overflow overflow) {
  const uint32_t bits = prelude::tc_bits(x), magnitude = bits & 0x7fffffffu;
  const uint32_t sign = (bits ^ magnitude) >> 24;
  if (x != x) return {uint8_t(sign | kNaN)};
  // Below 2^-6 codes are 2^-9 apart, and so are floats at 2^14: the addition rounds.
  const float shifted = prelude::tc_from_bits(magnitude) + 0x1p14f;
  const uint32_t denormal = prelude::tc_bits(shifted) - prelude::tc_bits(0x1p14f);
  // Elsewhere 20 bits go; a carry out of the mantissa is right in the exponent.
  const uint32_t normal = (magnitude - kBias + 0x7ffffu + ((magnitude >> 20) & 1)) >> 20;
  const uint32_t code = magnitude < 0x3c800000u ? denormal : normal;
  if (code <= kLargest) return {uint8_t(sign | code)};
  return {uint8_t(sign | (overflow == Overflow::Saturate ? kLargest : kNaN))};
}

Tensor store_fp8(const Tensor& x, Overflow overflow) {
  const Tensor rows = contiguous_copy(x);
  Tensor codes = empty_tensor(uint8, x.shape());
  for (int64_t i = 0; i < x.numel(); i++)
    codes.data<uint8_t>()[i] = to_fp8(rows.data<float>()[i], overflow).bits;
  return codes;
}

Tensor load_fp8(const Tensor& codes) {
  Tensor x = empty_tensor(float32, codes.shape());
  for (int64_t i = 0; i < codes.numel(); i++)
    x.data<float>()[i] = to_f32({codes.data<uint8_t>()[i]});
  return x;
}

std::vector<Tensor> interpret_fp8(const Graph& graph, const std::vector<Tensor>& inputs,
                                  Overflow overflow) {
  std::vector<Tensor> stored;
  size_t next = 0;
  for (const Node& node : graph.nodes) {
    std::vector<Tensor> operands;
    for (int id : node.inputs) {
      const bool is_fp8 = graph[id].type.dtype == float32;
      operands.push_back(is_fp8 ? load_fp8(stored[size_t(id)]) : stored[size_t(id)]);
    }
    const Tensor value = node.op == Op::input ? inputs[next++] : evaluate(node, operands);
    stored.push_back(node.type.dtype == float32 ? store_fp8(value, overflow) : value);
  }
  std::vector<Tensor> outputs;
  for (int output : graph.outputs) outputs.push_back(stored[size_t(output)]);
  return outputs;
}

}  // namespace exercise
