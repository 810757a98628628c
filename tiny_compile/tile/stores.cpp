// How are results written? A large one that nobody reads soon goes past the caches, for an ordinary store
// first reads the line that it will overwrite: half of the traffic of a copy. The loop fills a block in
// L1, which is sent out in whole lines:
//
//   for i1: 300 = first .. last vector { store y[i0*300 + i1] = $1 }
// =>
//   for part: 3 = first/128 .. (last + 127)/128 {
//     start: 301 = max(first, part*128)
//     next: 301 = min(last, part*128 + 128)
//     if start < next {
//       for i1: 300 = start .. next vector { block0[i1 - start] = $1 }
//       stream y[i0*300 + start] x next - start = block0
//     }
//   }
//
// all but the first from a multiple of its length on.
#include "tiny_compile/tile/stores.h"

#include <algorithm>

#include "tiny_compile/loops/streamed_stores.h"

namespace tiny_compile {
namespace {

bool streams(const StoreLoop& s) {
  return schedule_of(s.kernel).stream && can_stream(s.program, s.kernel, s.steps, s.along);
}

// block0, block1, ...: one of a buffer, for all loops.
int block_for(Tile& tile, std::map<int, int>& blocks, DType dtype, int buffer) {
  const auto known = blocks.find(buffer);
  if (known != blocks.end()) return known->second;
  Array block{str("block", blocks.size()), dtype, kStreamed, Space::L1, is_half(dtype)};
  return blocks[buffer] = add_array(tile, std::move(block));
}

Body stream_points(Tile& tile, std::map<int, int>& blocks, const StoreLoop& s, const Expr& from,
                   const Expr& to, Body each) {
  const Expr &extent = s.along.extent, along = s.along.symbol(),
             number = Expr::index(unused(s.program, "part"), ceil_div(extent, kStreamed));
  Body body;
  // An end that is another's or a part's, by its name.
  const auto end = [&](const char* name, const Expr& value, ExprKind kind) {
    if (value.is_constant() || value.kind() != kind) return value;
    const Expr symbol = Expr::index(unused(s.program, name), extent + 1);
    body.push_back(let(symbol.name(), extent + 1, value));
    return symbol;
  };
  const Expr start = end("start", max(from, number * kStreamed), ExprKind::Max),
             next = end("next", min(to, number * kStreamed + kStreamed), ExprKind::Min);
  Body sent;
  for (size_t k = 0; k < s.steps.size(); k++) {
    const Step& step = *s.steps[k];
    const DType dtype = s.program.buffers[step.buffer].type.dtype;
    const int block = block_for(tile, blocks, dtype, step.buffer);
    each.push_back(set(block, along - start, s.values[k]));
    sent.push_back(stream(step.buffer, substitute(step.index, {{s.along.name, start}}), block,
                          next - start));
  }
  Body filled = {vector_loop(s.along, start, next, std::move(each))};
  append(filled, std::move(sent));
  body.push_back(if_less(start, next, std::move(filled)));
  return {for_range(number.name(), ceil_div(extent, kStreamed), floor_div(from, kStreamed),
                    ceil_div(to, kStreamed), std::move(body))};
}

}  // namespace

std::string unused(const Program& program, std::string name) {
  const std::vector<Expr> taken = sizes(program);
  const auto is_taken = [&](const Expr& size) { return size.name() == name; };
  while (std::any_of(taken.begin(), taken.end(), is_taken)) name += "_";
  return name;
}

std::string unused(const Program& program, const Kernel& kernel, std::string name) {
  const auto is_taken = [&](const Axis& axis) { return axis.name == name; };
  do name = unused(program, std::move(name));
  while (std::any_of(kernel.axes.begin(), kernel.axes.end(), is_taken) && (name += "_", true));
  return name;
}

Expr named(const Program& program, const Kernel& kernel, Body& body, const std::string& what,
           const Expr& extent, const Expr& value) {
  const Expr name = Expr::index(unused(program, kernel, what), extent);
  body.push_back(let(name.name(), extent, value));
  return name;
}

Statement vector_loop(const Axis& axis, const Expr& from, const Expr& to, Body body) {
  Statement loop = for_range(axis.name, axis.extent, from, to, std::move(body));
  loop.vector = true;
  return loop;
}

Body store_loop(Tile& tile, std::map<int, int>& blocks, const StoreLoop& stores,
                const Expr& from, const Expr& to, Body each) {
  if (streams(stores)) return stream_points(tile, blocks, stores, from, to, std::move(each));
  for (size_t k = 0; k < stores.steps.size(); k++)
    each.push_back(store(stores.steps[k]->buffer, stores.steps[k]->index, stores.values[k]));
  Statement loop = vector_loop(stores.along, from, to, std::move(each));
  loop.vector = is_on_cpu(tile);
  return {std::move(loop)};
}

}  // namespace tiny_compile
