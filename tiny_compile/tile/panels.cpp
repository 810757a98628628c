// How does any operand become panels? Its element at a lane and a step of the depth is a scalar of the kernel: a load
// with strides, a window, a mask, a conversion. Loops evaluate it along the direction in which memory lies, into the
// panel where that is a row of lanes, else into lines that are transposed 64 steps at a time.
//
//   lanes lie side by side:   for k { for l vector { right[k*32 + l] = x[k*1000 + first + l] } }
//   steps lie side by side:   for l { for k vector { lines[l*64 + k] = w[(first + l)*1000 + k] } }
//                             for k transposed { for l vector { right[k*32 + l] = lines[l*64 + k] } }
#include "tiny_compile/tile/panels.h"

#include <algorithm>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/loops/dot_operands.h"
#include "tiny_compile/loops/kept_values.h"
#include "tiny_compile/tile/accumulator.h"
#include "tiny_compile/tile/row_elements.h"
#include "tiny_compile/tile/square.h"
#include "tiny_compile/tile/stores.h"
#include "tiny_compile/tile/vectors.h"

namespace tiny_compile {
namespace {

// What is packed, while it is written.
struct Packer {
  Tile& tile;
  const OperandLoops& loops;
  Packing& packing;
  const PanelRange& range;
  const DType type;
  ViewScalars scalars;
  Expr place{}, lane{}, end{};  // of the panel at hand: where it goes, its lanes

  const Kernel& kernel() const { return loops.view.kernel; }
  const std::vector<int>& lanes() const { return loops.view.lists[0]; }
  const std::vector<int>& depth() const { return loops.view.lists[1]; }
  Expr last_lane() const { return last_of(kernel(), lanes()); }
  Expr last_step() const { return last_of(kernel(), depth()); }

  Expr number(const char* what, const Expr& extent) const {
    return Expr::index(unused(loops.program, kernel(), what), extent);
  }
  // Names an integer at the end of the body.
  Expr named(Body& body, const char* what, const Expr& extent, const Expr& value) const {
    return tiny_compile::named(loops.program, kernel(), body, what, extent, value);
  }

  Stretch lanes_here() const {
    return {loops.program, kernel(), lanes(),       "lane",
            lane,          end,      packing.width, {lane + packing.width, range.stop}};
  }

  // What the operand is here, at `start` and so many elements more.
  Body put(int array, const Expr& start, int64_t most, const Expr& more) {
    return scalars.within([&] {
      Body body;
      const Expr here = start + named(body, "place", most, more);
      append(body, scalars.define_within(~uint64_t{0}));
      int value = scalars.id(packing.operand);
      if (tile.kernel.scalars[value].dtype != type)
        value = computed(tile, body, Op::cast, type, {value});
      body.push_back(set(array, here, value));
      return body;
    });
  }

  Statement put_zero(int array, const Expr& here) {
    return set(array, here, add_constant(tile, Literal::of(type, 0)));
  }

  // Where there are fewer lanes than a panel has: for each other one.
  Body for_others(const Expr& l, Body body, bool is_vector) const {
    Statement others =
        for_range(l.name(), packing.width, end - lane, packing.width, std::move(body));
    others.vector = is_vector;
    return {std::move(others)};
  }
  Body if_short(Body body) const {
    return {if_less(end, lane + packing.width, std::move(body))};
  }
};

// --- lanes side by side ------------------------------------------------------------------------------

Body step_loop(Packer& p, const Run& run, const std::function<Body(const Expr&)>& body) {
  if (p.depth().empty()) return body(0);
  const Axis& axis = p.kernel().axes[p.depth().back()];
  return {for_range(axis.name, axis.extent, run.from, run.to,
                    p.scalars.within([&] { return body(axis.symbol()); }))};
}

Body steps_of_run(Packer& p, const Run& run) {
  const uint64_t outside = all_but_last(p.kernel(), p.lanes());
  const Steps& all = p.range.steps;
  Body body = p.scalars.define_within(outside & all_but(p.kernel(), p.depth()));
  const Stretch steps{p.loops.program, p.kernel(), p.depth(),       "step",
                      all.first,       all.stop,   p.packing.steps, all.stops};
  append(body, over_runs(steps, [&](const Run& of_depth) {
           return step_loop(p, of_depth, [&](const Expr& k) {
             Body each = p.scalars.define_within(outside);
             const Expr step =
                 p.named(each, "step", p.packing.steps, of_depth.base + k - all.first);
             append(each, along_run(p.lanes_here(), run, [&] {
                      return p.put(p.packing.array, p.place + step * p.packing.width,
                                   p.packing.width, run.base + p.last_lane() - p.lane);
                    }));
             return each;
           });
         }));
  return body;
}

// A run of lanes, then the steps.
Body pack_lanes(Packer& p) {
  const int64_t width = p.packing.width;
  Body body = over_runs(p.lanes_here(), [&](const Run& run) {
    return p.scalars.within([&] { return steps_of_run(p, run); });
  });
  const Expr k = p.number("k", p.packing.steps), l = p.number("l", width);
  Body zeros = p.for_others(l, {p.put_zero(p.packing.array, p.place + k * width + l)}, true);
  append(body, p.if_short({for_range(k.name(), p.packing.steps, 0, p.range.steps.count,
                                     std::move(zeros))}));
  return body;
}

// --- steps side by side ------------------------------------------------------------------------------

int add_lines(const Packer& p) {
  const Machine& machine = p.loops.program.machine;
  const int64_t lanes = machine.vector / size_of(p.type),
                size = kLine * ceil_divide(p.packing.width, lanes) * lanes;
  return add_array(p.tile, {str("lines", p.tile.arrays.size()), p.type, size,
                            near_space(machine, size * size_of(p.type))});
}

Body fill_line(Packer& p, const Expr& lane, const Expr& from, const Expr& to) {
  Body body = p.scalars.define_within(all_but(p.kernel(), p.depth()));
  const Expr line = p.named(body, "line", p.packing.width, lane - p.lane);
  const Stretch steps{p.loops.program,
                      p.kernel(),
                      p.depth(),
                      "step",
                      from,
                      to,
                      kLine,
                      {from + kLine, p.range.steps.stop}};
  append(body, over_runs(steps, [&](const Run& run) {
           return p.scalars.within([&] {
             Body own = p.scalars.define_within(all_but_last(p.kernel(), p.depth()));
             append(own, along_run(steps, run, [&] {
                      return p.put(p.packing.lines, line * kLine, kLine,
                                   run.base + p.last_step() - from);
                    }));
             return own;
           });
         }));
  return body;
}

Body fill_lines(Packer& p, const Expr& from, const Expr& to) {
  return over_runs(p.lanes_here(), [&](const Run& run) {
    Body line =
        p.scalars.within([&] { return fill_line(p, run.base + p.last_lane(), from, to); });
    if (p.lanes().empty()) return line;
    const Axis& axis = p.kernel().axes[p.lanes().back()];
    return Body{for_range(axis.name, axis.extent, run.from, run.to, std::move(line))};
  });
}

// Some steps of each lane, then all lanes of each step.
Body pack_lines(Packer& p) {
  if (p.packing.lines < 0) p.packing.lines = add_lines(p);
  const int lines = p.packing.lines;
  const int64_t width = p.packing.width, pieces = ceil_divide(p.packing.steps, kLine);
  const Steps& all = p.range.steps;
  const Expr l = p.number("l", width), j = p.number("j", kLine),
             count = count_of(p.kernel(), p.depth()), piece = p.number("piece", pieces),
             before = piece * kLine;
  Body body = p.if_short(p.for_others(
      l, {vector_loop({j.name(), kLine}, 0, kLine, {p.put_zero(lines, l * kLine + j)})},
      false));
  Body each;
  const Expr some = p.named(each, "some_k", kLine + 1, min(all.count - before, kLine)),
             from = p.named(each, "from_k", count, all.first + before),
             to = p.named(each, "to_k", count + 1, min(from + kLine, all.stop));
  append(each, fill_lines(p, from, to));
  const int value = add_element(p.tile, lines, l * kLine + j);
  Statement turn = for_range(
      j.name(), kLine, 0, some,
      {vector_loop(
          {l.name(), width}, 0, width,
          {define(value), set(p.packing.array, p.place + (before + j) * width + l, value)})});
  turn.transposed = true;
  each.push_back(std::move(turn));
  body.push_back(for_range(piece.name(), pieces, 0, pieces,
                           {if_less(before, all.count, std::move(each))}));
  return body;
}

}  // namespace

Space near_space(const Machine& machine, int64_t bytes) {
  return bytes <= machine.l1 / 4 ? Space::L1 : Space::L2;
}

ViewScalars::ViewScalars(Tile& tile, const DotView& view, const std::vector<int>& roots,
                         const std::vector<std::pair<int, int>>& given)
    : kernel_(view.kernel), ids_(add_scalars(tile, view.kernel, given)) {
  needs_ = needs_of(kernel_);
  defined_.resize(kernel_.scalars.size());
  for (const auto& [scalar, id] : given) defined_[scalar] = true;
  wanted_ = evaluated_for(kernel_, roots, [&](int scalar) { return bool{defined_[scalar]}; });
}

Body ViewScalars::within(const std::function<Body()>& body) {
  const std::vector<bool> before = defined_;
  Body own = body();
  defined_ = before;
  return own;
}

Body ViewScalars::define_within(uint64_t axes) {
  Body body;
  for (int scalar : wanted_) {
    if (defined_[scalar] || kernel_.scalars[scalar].kind == ScalarKind::Constant ||
        (needs_[scalar] & ~axes) != 0)
      continue;
    defined_[scalar] = true;
    body.push_back(define(ids_[scalar]));
  }
  return body;
}

uint64_t all_but_last(const Kernel& kernel, const std::vector<int>& axes) {
  return all_but(kernel, axes.empty() ? axes : std::vector{axes.back()});
}

Expr last_of(const Kernel& kernel, const std::vector<int>& axes) {
  return axes.empty() ? Expr(0) : kernel.axes[axes.back()].symbol();
}

uint64_t all_but(const Kernel& kernel, const std::vector<int>& axes) {
  uint64_t mask = (uint64_t{1} << kernel.axes.size()) - 1;
  for (int axis : axes) mask &= ~(uint64_t{1} << axis);
  return mask;
}

Body over_runs(const Stretch& s, const std::function<Body(const Run&)>& body) {
  if (s.list.size() < 2) return body({s.first, s.stop, s.stop - s.first, 0});
  const Expr &extent = s.kernel.axes[s.list.back()].extent,
             lines = floor_div(count_of(s.kernel, s.list), extent);
  const auto number = [&](const char* what, const Expr& most) {
    return Expr::index(unused(s.program, s.kernel, str(s.name, what)), most);
  };
  const Expr run = number("_run", lines), from = number("_from", extent),
             to = number("_to", extent + 1), base = run * extent;
  const std::vector<int> outer(s.list.begin(), s.list.end() - 1);
  Body each = unpack(s.kernel, outer, run, {});
  each.push_back(let(from.name(), extent, max(s.first - base, 0)));
  Expr stop = extent, count = extent - from, runs = lines;
  for (const Expr& end : s.stops.empty() ? std::vector{s.stop} : s.stops) {
    stop = min(stop, end - base);
    count = min(count, end - base - from);
    runs = min(runs, ceil_div(end, extent));
  }
  each.push_back(let(to.name(), extent + 1, stop));
  append(each, body({from, to, count, base}));
  return {for_range(run.name(), lines, floor_div(s.first, extent), runs, std::move(each))};
}

Body along_run(const Stretch& s, const Run& run, const std::function<Body()>& each) {
  if (s.list.empty()) return each();
  const Axis& axis = s.kernel.axes[s.list.back()];
  const int64_t most = std::min(axis.extent.bounds().high, s.most);
  const Expr e = Expr::index(unused(s.program, s.kernel, str(s.name, "_e")), most);
  Body whole = {let(axis.name, axis.extent, run.from + e)};
  append(whole, each());
  return {
      if_less(most - 1, run.count, {vector_loop({e.name(), most}, 0, most, std::move(whole))}),
      otherwise({vector_loop(axis, run.from, run.to, each())})};
}

Body pack(Tile& tile, const OperandLoops& loops, Packing& packing, const PanelRange& range) {
  Packer p{tile,
           loops,
           packing,
           range,
           tile.arrays[packing.array].dtype,
           {tile, loops.view, {packing.operand}}};
  const Expr panel = p.number("panel", packing.panels),
             start = range.first + panel * packing.width,
             count = count_of(p.kernel(), p.lanes());
  p.place = range.place + panel * (packing.steps * packing.width);
  Body each;
  p.lane = p.named(each, packing.name, count, start);
  p.end = p.named(each, "till", count + 1, min(p.lane + packing.width, range.stop));
  append(each, lies_along_depth(loops.view, packing.operand) ? pack_lines(p) : pack_lanes(p));
  return {for_range(panel.name(), packing.panels, 0, packing.panels,
                    {if_less(start, range.stop, std::move(each))})};
}

}  // namespace tiny_compile
