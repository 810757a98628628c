// What does a graph mean? Each node in order, on strided tensors, one op at a time. Slow on
// purpose where speed would cost clarity: every other stage is checked against this one.
//
//   %1: f32[4,8] = permute %0 {axes=[1,0]}    a view: other strides, same bytes
//   %2: f32[4] = sum %1 {axes=[1]}            each row gathered, then reduce() (graph/lanes.h)
#include "tiny_compile/graph/interpreter.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <new>

#include "tiny_compile/base/first_exception.h"
#include "tiny_compile/graph/lanes.h"
#include "tiny_compile/graph/scan.h"
#include "tiny_compile/graph/sizes.h"
#include "tiny_compile/graph/sort.h"
#include "tiny_compile/graph/walk.h"

namespace tiny_compile {
namespace {

constexpr int64_t kParallel = 1 << 16;  // elements worth threads

Sizes sizes_of(const Shape& shape) {
  Sizes sizes;
  for (const Expr& size : shape) sizes.push_back(size.constant());
  return sizes;
}

// Runs body(begin, end) over 0..count, in threads where it is worth it; errors come together.
template <typename Body>
void for_blocks(int64_t count, int64_t block, Body body) {
  std::atomic<unsigned> errors{0};
  FirstException first;
  const int64_t blocks = (count + block - 1) / block;
#pragma omp parallel for schedule(static) if (count >= kParallel)
  for (int64_t b = 0; b < blocks; b++) {
    first.run([&] { body(b * block, std::min(count, (b + 1) * block)); });
    errors |= take_errors();
  }
  first.rethrow();
  raise_error(errors);
}

Tensor pointwise(const Node& node, std::span<const Tensor> operands) {
  const Sizes& shape = operands[0].shape();
  Tensor out = empty_tensor(node.type.dtype, shape);
  std::byte* const to = out.bytes();
  for_blocks(out.numel(), 16 * kLanesAtOnce, [&](int64_t begin, int64_t end) {
    Lanes lanes[3], result;
    int64_t offsets[kLanesAtOnce];
    std::vector<Walk> walks;
    for (const Tensor& operand : operands) walks.emplace_back(shape, operand.strides(), begin);
    for (int64_t at = begin; at < end; at += kLanesAtOnce) {
      const int n = static_cast<int>(std::min<int64_t>(kLanesAtOnce, end - at));
      for (size_t k = 0; k < operands.size(); k++) {
        walks[k].take(n, offsets);
        load(operands[k].dtype(), operands[k].bytes(), offsets, n, lanes[k]);
      }
      apply(node.op, node.type.dtype, &lanes[0], operands.size() > 1 ? &lanes[1] : nullptr,
            operands.size() > 2 ? &lanes[2] : nullptr, n, result);
      for (int i = 0; i < n; i++) offsets[i] = at + i;
      store(result, to, offsets, n);
    }
  });
  return out;
}

// Strides with which `shape` views the same elements in the same order, if there are any: runs
// of axes that step together are cut or joined.
std::optional<Sizes> reshaped_strides(const TensorData& data, const Sizes& shape) {
  Sizes strides(shape.size());
  size_t axis = data.shape().size();
  size_t to = shape.size();
  if (element_count(shape) == 0) return contiguous_strides(shape);
  while (axis > 0 || to > 0) {
    while (axis > 0 && data.shape()[axis - 1] == 1) axis--;
    if (axis == 0) {  // only sizes of 1 are left
      while (to > 0) {
        if (shape[--to] != 1) return std::nullopt;
        strides[to] = 1;
      }
      return strides;
    }
    int64_t run = data.shape()[axis - 1], step = data.strides()[axis - 1];
    size_t first = axis - 1;
    while (first > 0 &&
           (data.shape()[first - 1] == 1 || data.strides()[first - 1] == step * run)) {
      if (data.shape()[first - 1] != 1) run *= data.shape()[first - 1];
      first--;
    }
    while (to > 0 && (run > 1 || shape[to - 1] == 1)) {
      to--;
      if (run % shape[to] != 0) return std::nullopt;
      strides[to] = step;
      step *= shape[to];
      run /= shape[to];
    }
    if (run != 1) return std::nullopt;
    axis = first;
  }
  return strides;
}

Tensor reshape_tensor(const Tensor& x, const Sizes& shape) {
  const std::optional<Sizes> strides = reshaped_strides(x.info(), shape);
  if (strides) return with_layout(x, shape, *strides, x.info().offset);
  const Tensor copy = contiguous_copy(x);
  return with_layout(copy, shape, contiguous_strides(shape), 0);
}

Tensor view(const Node& node, const Tensor& x, const Sizes& shape) {
  Sizes sizes = x.shape(), strides = x.strides();
  int64_t offset = x.info().offset;
  const size_t axis = static_cast<size_t>(node.integer(Key::axis, 0));
  switch (node.op) {
    case Op::reshape: return reshape_tensor(x, shape);
    case Op::permute: {
      const std::vector<int> axes = node.axes();
      for (size_t k = 0; k < axes.size(); k++) strides[k] = x.strides()[axes[k]];
      break;
    }
    case Op::expand: {
      Sizes wider(shape.size() - sizes.size(), 0);
      for (size_t k = 0; k < sizes.size(); k++) wider.push_back(sizes[k] == 1 ? 0 : strides[k]);
      strides = wider;
      break;
    }
    case Op::slice:
      offset += node.integer(Key::start, 0) * strides[axis];
      strides[axis] *= node.integer(Key::step, 1);
      break;
    case Op::flip:
      for (int a : node.axes()) {
        offset += std::max<int64_t>(sizes[a] - 1, 0) * strides[a];
        strides[a] = -strides[a];
      }
      break;
    default:  // window
      strides.push_back(strides[axis]);
      strides[axis] *= node.integer(Key::step, 1);
      break;
  }
  return with_layout(x, shape, strides, offset);
}

// All of a strided tensor as values of its compute type, in row-major order.
std::vector<std::byte> gathered(const Tensor& x, const Sizes& shape, const Sizes& strides,
                                int64_t base) {
  const int64_t count = element_count(shape);
  const size_t width = size_of(compute_type(x.dtype()));
  std::vector<std::byte> values(static_cast<size_t>(count) * width);
  Walk walk(shape, strides, 0);
  Lanes lanes;
  int64_t offsets[kLanesAtOnce];
  for (int64_t at = 0; at < count; at += kLanesAtOnce) {
    const int n = static_cast<int>(std::min<int64_t>(kLanesAtOnce, count - at));
    walk.take(n, offsets);
    for (int i = 0; i < n; i++) offsets[i] += base;
    load(x.dtype(), x.bytes(), offsets, n, lanes);
    std::memcpy(values.data() + static_cast<size_t>(at) * width, lanes.data,
                static_cast<size_t>(n) * width);
  }
  return values;
}

void put(Tensor& out, int64_t at, const Literal& value) {
  const size_t width = size_of(value.dtype);
  std::memcpy(out.bytes() + static_cast<size_t>(at) * width, &value.bits, width);
}

Tensor reduction(const Node& node, const Tensor& x, const Sizes& shape) {
  const std::vector<int> axes = node.axes();
  Sizes kept, kept_strides, inner, inner_strides;
  for (int axis = 0; axis < x.rank(); axis++) {
    if (std::count(axes.begin(), axes.end(), axis)) continue;
    kept.push_back(x.shape()[axis]);
    kept_strides.push_back(x.strides()[axis]);
  }
  for (int axis : axes) {
    inner.push_back(x.shape()[axis]);
    inner_strides.push_back(x.strides()[axis]);
  }
  Tensor out = empty_tensor(node.type.dtype, shape);
  const int64_t length = element_count(inner);
  for_blocks(out.numel(), std::max<int64_t>(1, kParallel / std::max<int64_t>(length, 1) / 4),
             [&](int64_t begin, int64_t end) {
               Walk walk(kept, kept_strides, begin);
               for (int64_t row = begin; row < end; row++, walk.next())
                 put(out, row,
                     reduce(node.op, x.dtype(),
                            gathered(x, inner, inner_strides, walk.offset()).data(), length));
             });
  return out;
}

Tensor matmul(const Node& node, const Tensor& a, const Tensor& b, const Sizes& shape) {
  Tensor out = empty_tensor(node.type.dtype, shape);
  const size_t r = shape.size();
  const int64_t columns = shape[r - 1], depth = a.shape()[r - 1];
  const Sizes rows(shape.begin(), shape.end() - 1);  // batch..., M
  Sizes a_strides(a.strides().begin(), a.strides().end() - 1),
      b_strides(b.strides().begin(), b.strides().end() - 2);
  b_strides.push_back(0);
  for_blocks(element_count(rows), 1, [&](int64_t row, int64_t) {
    const int64_t a_base = Walk(rows, a_strides, row).offset(),
                  b_base = Walk(rows, b_strides, row).offset();
    const std::vector<std::byte> left = gathered(a, {depth}, {a.strides()[r - 1]}, a_base);
    for (int64_t column = 0; column < columns; column++) {
      const std::vector<std::byte> right =
          gathered(b, {depth}, {b.strides()[r - 2]}, b_base + column * b.strides()[r - 1]);
      put(out, row * columns + column, dot(a.dtype(), left.data(), right.data(), depth));
    }
  });
  return out;
}

int64_t index_at(const Tensor& index, int64_t offset) {
  return index.dtype() == DType::i64 ? reinterpret_cast<const int64_t*>(index.bytes())[offset]
                                     : reinterpret_cast<const int32_t*>(index.bytes())[offset];
}

Tensor gather(const Node& node, const Tensor& x, const Tensor& index) {
  const size_t axis = static_cast<size_t>(node.integer(Key::axis, 0));
  const int64_t width = size_of(x.dtype());
  Tensor out = empty_tensor(x.dtype(), index.shape());
  Walk at(index.shape(), index.strides(), 0);
  for (int64_t i = 0; i < out.numel(); i++, at.next()) {
    const int64_t chosen = index_at(index, at.offset());
    std::byte* to = out.bytes() + i * width;
    if (!index_fits(chosen, x.shape()[axis])) {
      std::memset(to, 0, width);
      continue;
    }
    int64_t offset = 0;
    for (size_t k = 0; k < at.index().size(); k++)
      offset += (k == axis ? chosen : at.index()[k]) * x.strides()[k];
    std::memcpy(to, x.bytes() + offset * width, width);
  }
  return out;
}

// Updates in ascending order, where it shows in chunks: `part` holds what a target's latest chunk
// gave so far, but for the first chunk, which goes on from the data.
Tensor scattered(const Node& node, const Tensor& x, const Tensor& index, const Tensor& source) {
  const size_t axis = static_cast<size_t>(node.integer(Key::axis, 0));
  const std::optional<Op> combine = combiner(node.op);
  const bool in_chunks = scatters_in_chunks(node.op, x.dtype());
  Tensor out = contiguous_copy(x), part = empty_tensor(x.dtype(), x.shape());
  std::vector<int64_t> chunk_of(in_chunks ? static_cast<size_t>(out.numel()) : 0);
  const auto add = [&](Tensor& to, int64_t i, const Tensor& by, int64_t j) {
    update(combine, x.dtype(), to.bytes(), i, by.bytes(), j);
  };
  Walk at(index.shape(), index.strides(), 0), from(source.shape(), source.strides(), 0);
  for (int64_t i = 0; i < index.numel(); i++, at.next(), from.next()) {
    const int64_t chosen = index_at(index, at.offset());
    if (!index_fits(chosen, x.shape()[axis])) continue;
    int64_t to = 0;
    for (size_t k = 0; k < at.index().size(); k++)
      to += (k == axis ? chosen : at.index()[k]) * out.strides()[k];
    const int64_t chunk = in_chunks ? at.index()[axis] / kChunk : 0;
    const bool first = chunk == 0, same = !first && chunk == chunk_of[to];
    if (!first && !same && chunk_of[to] > 0) add(out, to, part, to);
    if (first || same) add(first ? out : part, to, source, from.offset());
    if (!first && !same) update({}, x.dtype(), part.bytes(), to, source.bytes(), from.offset());
    if (!first) chunk_of[to] = chunk;
  }
  for (int64_t to = 0; to < static_cast<int64_t>(chunk_of.size()); to++) {
    if (chunk_of[to] > 0) add(out, to, part, to);
  }
  return out;
}

// Copies the box of `from` that starts at `source` to the place `target` of `out`.
void copy_box(const Tensor& from, Tensor& out, const Sizes& box, const Sizes& source,
              const Sizes& target) {
  const int64_t width = size_of(out.dtype());
  int64_t read = 0, write = 0;
  for (size_t k = 0; k < box.size(); k++) {
    read += source[k] * from.strides()[k];
    write += target[k] * out.strides()[k];
  }
  Walk in(box, from.strides(), 0), to(box, out.strides(), 0);
  for (int64_t left = element_count(box); left > 0; left--, in.next(), to.next())
    std::memcpy(out.bytes() + (write + to.offset()) * width,
                from.bytes() + (read + in.offset()) * width, width);
}

Tensor concat(const Node& node, std::span<const Tensor> parts, const Sizes& shape) {
  Tensor out = empty_tensor(node.type.dtype, shape);
  Sizes target(shape.size(), 0);
  const size_t axis = static_cast<size_t>(node.integer(Key::axis, 0));
  for (const Tensor& part : parts) {
    copy_box(part, out, part.shape(), Sizes(shape.size(), 0), target);
    target[axis] += part.shape()[axis];
  }
  return out;
}

Tensor pad(const Node& node, const Tensor& x, const Sizes& shape) {
  Tensor out = filled_tensor(node.value, shape);
  Sizes box(shape.size()), source(shape.size()), target(shape.size());
  for (size_t k = 0; k < shape.size(); k++) {
    const int64_t low = node.list(Key::low)[k].constant();
    source[k] = std::max<int64_t>(-low, 0);
    target[k] = std::max<int64_t>(low, 0);
    box[k] = std::max<int64_t>(0, std::min(x.shape()[k] - source[k], shape[k] - target[k]));
  }
  copy_box(x, out, box, source, target);
  return out;
}

// Scans and sorts, row by row in the compute type; each result is rounded when it is stored.
Tensor scanned(const Node& node, const Tensor& x, const Sizes& shape) {
  Tensor out = empty_tensor(node.type.dtype, shape);
  const size_t axis = static_cast<size_t>(node.integer(Key::axis, 0));
  Sizes rows = shape;
  const int64_t length = rows[axis];
  if (out.numel() == 0) return out;
  rows[axis] = 1;
  const size_t width = size_of(compute_type(out.dtype()));
  Walk from(rows, x.strides(), 0), to(rows, out.strides(), 0);
  Lanes one{out.dtype(), {}};
  for (int64_t row = element_count(rows); row > 0; row--, from.next(), to.next()) {
    const auto values = gathered(x, {length}, {x.strides()[axis]}, from.offset());
    const std::vector<std::byte> results =
        is_sort(node.op) ? argsort(node.op, x.dtype(), values.data(), length)
                         : scan(node.op, x.dtype(), values.data(), length);
    for (int64_t i = 0; i < length; i++) {
      const int64_t target = to.offset() + i * out.strides()[axis];
      std::memcpy(one.data, results.data() + static_cast<size_t>(i) * width, width);
      store(one, out.bytes(), &target, 1);
    }
  }
  return out;
}

Tensor iota(const Node& node, const Sizes& shape) {
  Tensor out = empty_tensor(DType::i64, shape);
  const int64_t count = shape[0], start = node.integer(Key::start, 0);
  for (int64_t i = 0; i < count; i++) reinterpret_cast<int64_t*>(out.bytes())[i] = start + i;
  return out;
}

Tensor philox(const Node& node, const Tensor& key, const Sizes& shape) {
  Tensor out = empty_tensor(DType::u32, shape);
  const uint64_t* words = reinterpret_cast<const uint64_t*>(key.bytes());
  const uint64_t seed = words[0], draw = words[key.strides()[0]] +
                                         static_cast<uint64_t>(node.integer(Key::draw, 0));
  uint32_t* to = reinterpret_cast<uint32_t*>(out.bytes());
  for_blocks(out.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++)
      to[i] = prelude::tc_philox(seed, draw, static_cast<uint64_t>(i));
  });
  return out;
}

Tensor compute(const Node& node, std::span<const Tensor> operands) {
  const Sizes shape = sizes_of(node.type.shape);
  switch (info(node.op).op_class) {
    case OpClass::Pointwise: return pointwise(node, operands);
    case OpClass::View: return view(node, operands[0], shape);
    case OpClass::Reduction: return reduction(node, operands[0], shape);
    case OpClass::Scan:
    case OpClass::Sort: return scanned(node, operands[0], shape);
    case OpClass::Matmul: return matmul(node, operands[0], operands[1], shape);
    case OpClass::Scatter: return scattered(node, operands[0], operands[1], operands[2]);
    default: break;
  }
  switch (node.op) {
    case Op::constant: return filled_tensor(node.value, shape);
    case Op::iota: return iota(node, shape);
    case Op::philox: return philox(node, operands[0], shape);
    case Op::gather: return gather(node, operands[0], operands[1]);
    case Op::concat: return concat(node, operands, shape);
    case Op::pad: return pad(node, operands[0], shape);
    default: CHECK(false, "no meaning for ", info(node.op).name);
  }
  return {};
}

// "mlp.cpp:14: gather"
std::string named(const Node& node) {
  return tiny_compile::str(node.where.file.empty() ? "" : node.where.str() + ": ",
                           info(node.op).name);
}

std::vector<Tensor> outputs_of(const Graph& graph, const std::vector<Tensor>& values) {
  std::vector<Tensor> outputs;
  for (int output : graph.outputs) outputs.push_back(values[output]);
  return outputs;
}

void check_input(const Node& node, const Tensor& tensor) {
  const bool same =
      tensor.dtype() == node.type.dtype && tensor.shape() == sizes_of(node.type.shape);
  if (!same)
    fail("input ", node.name, " is ", node.type.str(), ", but was given ", tensor.dtype(), "[",
         join(tensor.shape(), ","), "]");
}

}  // namespace

Tensor evaluate(const Node& node, std::span<const Tensor> operands) {
  take_errors();
  try {
    Tensor result = compute(node, operands);
    if (const unsigned errors = take_errors()) throw_errors(errors, named(node));
    return result;
  } catch (const std::bad_alloc&) {
    fail(named(node), ": out of memory: free some, or use smaller tensors");
  }
}

bool shares_storage(const Node& node, const Tensor& x) {
  return info(node.op).op_class == OpClass::View &&
         (node.op != Op::reshape || reshaped_strides(x.info(), sizes_of(node.type.shape)));
}

std::vector<Tensor> interpret_all(const Graph& graph, std::span<const Tensor> inputs,
                                  const std::function<void(const Node&)>& before) {
  std::map<int, std::vector<Tensor>> tuples;  // the results of calls
  const std::vector<Expr> unknown = symbols(graph);
  if (!unknown.empty()) {
    std::vector<std::vector<int64_t>> shapes;
    for (const Tensor& input : inputs) shapes.push_back(input.shape());
    return interpret_all(with_sizes_of(graph, shapes), inputs, before);
  }
  std::vector<Tensor> values;
  size_t next = 0;
  for (const Node& node : graph.nodes) {
    if (before) before(node);
    if (node.op == Op::input) {
      if (next == inputs.size())
        fail("graph ", graph.name, " has more inputs than the ", inputs.size(), " given");
      check_input(node, inputs[next]);
      values.push_back(inputs[next++]);
      continue;
    }
    std::vector<Tensor> operands;
    for (int input : node.inputs) operands.push_back(values[input]);
    if (!node.graphs.empty()) {
      const Graph& inside = node.graphs[0];
      tuples[static_cast<int>(values.size())] =
          outputs_of(inside, interpret_all(inside, operands, before));
      values.emplace_back();
    } else if (node.op == Op::item) {
      const size_t index = static_cast<size_t>(node.attr(Key::index).constant());
      values.push_back(tuples.at(node.inputs[0])[index]);
    } else {
      values.push_back(evaluate(node, operands));
    }
  }
  if (next != inputs.size())
    fail("graph ", graph.name, " has ", next, " inputs, but ", inputs.size(), " were given");
  return values;
}

std::vector<Tensor> interpret(const Graph& graph, std::span<const Tensor> inputs) {
  return outputs_of(graph, interpret_all(graph, inputs));
}

}  // namespace tiny_compile
