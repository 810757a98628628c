// Numbers to run a graph on, and a line that says what came out.
#include "tiny_compile/cli/inputs.h"

#include <cctype>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "tiny_compile/compile/explain.h"
#include "tiny_compile/trace/creation.h"

namespace tiny_compile {
namespace {

Tensor drawn(const Type& type, const Shape& strides) {
  Sizes shape, layout;
  for (const Expr& size : type.shape) {
    if (!size.is_constant())
      fail("inputs of symbolic sizes cannot be drawn: give numbers for ", type.str());
    shape.push_back(size.constant());
  }
  for (const Expr& stride : strides) layout.push_back(stride.constant());
  Sizes room = shape;
  if (!layout.empty()) {
    int64_t reach = 1;
    for (size_t k = 0; k < shape.size(); k++)
      reach += std::max<int64_t>(shape[k] - 1, 0) * layout[k];
    room = {reach};
  }
  Tensor values = is_float(type.dtype)
                      ? randn(room).to(type.dtype)
                      : randint(0, type.dtype == DType::boolean ? 2 : 3, room).to(type.dtype);
  if (!values.is_contiguous()) values = contiguous_copy(values);
  return layout.empty() ? values : with_layout(values, shape, layout, 0);
}

std::vector<Tensor> fill(const std::vector<InputSlot>& slots, uint64_t seed,
                         const std::vector<Tensor>& given) {
  if (given.size() > slots.size())
    fail(given.size(), " inputs given with --in, but there are ", slots.size());
  manual_seed(seed);
  std::vector<Tensor> inputs;
  for (size_t k = 0; k < slots.size(); k++) {
    Tensor tensor = drawn(slots[k].type, slots[k].strides);
    if (k < given.size()) {
      if (given[k].dtype() != tensor.dtype() || given[k].shape() != tensor.shape())
        fail("input ", slots[k].name, " is ", slots[k].type.str(), ", but the file holds ",
             given[k].dtype(), "[", join(given[k].shape(), ","), "]");
      if (!slots[k].strides.empty())
        fail("input ", slots[k].name,
             " has strides of its own: --in gives row-major ones only");
      tensor = given[k];
    }
    inputs.push_back(tensor);
  }
  return inputs;
}

std::string hexadecimal(uint64_t bits) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(bits));
  return text;
}

Sizes unravel(const Sizes& shape, int64_t at) {
  Sizes index(shape.size());
  for (size_t k = shape.size(); k-- > 0;) {
    index[k] = at % shape[k];
    at /= shape[k];
  }
  return index;
}

}  // namespace

std::vector<Tensor> seeded_inputs(const Graph& graph, uint64_t seed,
                                  const std::vector<Tensor>& given) {
  return fill(input_slots(graph), seed, given);
}

std::vector<Tensor> seeded_inputs(const Program& program, uint64_t seed,
                                  const std::vector<Tensor>& given) {
  return fill(input_slots(program), seed, given);
}

Carry carry_of(const std::string& text) {
  Carry carry;
  std::istringstream pairs(text);
  for (std::string pair; std::getline(pairs, pair, ',');) {
    size_t output = 0, input = 0;
    char colon = 0, rest = 0;
    const bool is_pair =
        std::isdigit(static_cast<unsigned char>(pair[0])) &&
        std::sscanf(pair.c_str(), "%9zu%c%9zu%c", &output, &colon, &input, &rest) == 3 &&
        colon == ':';
    if (!is_pair) fail("--carry=", text, ": written --carry=OUTPUT:INPUT,..., as in 1:0,2:1");
    carry.push_back({output, input});
  }
  return carry;
}

std::vector<Tensor> carried(const Carry& carry, std::vector<Tensor> inputs,
                            const std::vector<Tensor>& outputs) {
  for (const auto& [output, input] : carry) {
    if (output >= outputs.size() || input >= inputs.size())
      fail("--carry=", output, ":", input, ": there are ", outputs.size(), " outputs and ",
           inputs.size(), " inputs, counted from 0");
    const Tensor &from = outputs[output], &to = inputs[input];
    if (from.dtype() != to.dtype() || from.shape() != to.shape())
      fail("--carry=", output, ":", input, ": output ", output, " is ", from.dtype(), "[",
           join(from.shape(), ","), "], but input ", input, " is ", to.dtype(), "[",
           join(to.shape(), ","), "]");
    inputs[input] = from;
  }
  return inputs;
}

std::pair<std::string, int64_t> size_value(const std::string& text) {  // "n=37"
  const size_t equals = text.find('=');
  const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
  const bool is_number = !number.empty() && number.size() < 16 &&
                         number.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || equals == 0) fail("--size ", text, ": written --size n=37");
  return {text.substr(0, equals), std::stoll(number)};
}

void require_numbers(const std::vector<Expr>& sizes, const std::string& command,
                     const std::string& file, const std::string& text, size_t start) {
  if (sizes.empty()) return;
  try {
    fail_in_text(
        text, text.find('[', start) + 1,
        str(command, " needs numbers for symbolic sizes: give --size ", sizes[0], "=NUMBER"));
  } catch (const Error& error) {
    fail(file, ":", error.what());
  }
}

std::string summary(size_t number, const Tensor& output) {
  const Tensor flat = contiguous_copy(output);
  const size_t width = size_of(flat.dtype());
  uint64_t checksum =
      1469598103934665603ull;  // FNV-1a over the elements' bits; every NaN is one NaN
  std::string first;
  for (int64_t i = 0; i < flat.numel(); i++) {
    Literal value{flat.dtype(), 0};
    std::memcpy(&value.bits, flat.bytes() + static_cast<size_t>(i) * width, width);
    if (is_float(value.dtype) && value.as_double() != value.as_double())
      value = Literal::of(value.dtype, value.as_double());
    for (size_t b = 0; b < width; b++)
      checksum = (checksum ^ (value.bits >> (8 * b) & 255)) * 1099511628211ull;
    if (i < 6) first += (i ? " " : "") + value.str();
  }
  return tiny_compile::str("output ", number, ": ", output.dtype(), "[",
                           join(output.shape(), ","), "] checksum ", hexadecimal(checksum),
                           " first ", first, flat.numel() > 6 ? " ..." : "");
}

std::string element_difference(const Tensor& wanted, const Tensor& got, int64_t at) {
  const Sizes index = unravel(wanted.shape(), at);
  const Literal a = wanted.element(index), b = got.element(index);
  return tiny_compile::str("[", join(index, ","), "] is ", b.str(), " (", hexadecimal(b.bits),
                           "), not ", a.str(), " (", hexadecimal(a.bits), ")");
}

}  // namespace tiny_compile
