// Which layouts may a kernel have? Those that the verifier takes, and all of them must give the
// interpreter's bits. Half are drawn from what the search walks over, the others bit by bit:
//
//   rows of 40, a loop of 100   =>   rows grid · lane 4 · vector 2
//                                    loop warp 2 · register 4 · serial 2 · lane 8 from 4
#include "tests/fuzz/layouts.h"

#include <functional>
#include <random>
#include <utility>

#include "tests/fuzz/shrink.h"
#include "tiny_compile/base/integer.h"
#include "tiny_compile/graph/interpreter.h"
#include "tiny_compile/loops/axes.h"
#include "tiny_compile/loops/laid_out.h"
#include "tiny_compile/loops/legal_layouts.h"
#include "tiny_compile/loops/legal_via.h"
#include "tiny_compile/schedule/enumerate.h"
#include "tiny_compile/tile/interpreter.h"
#include "tiny_compile/tile/verify.h"

namespace tiny_compile {
namespace {

constexpr int kTries = 40;

class Drawing {
 public:
  Drawing(size_t seed, std::vector<Schedule> listed)
      : random_(seed), listed_(std::move(listed)) {}

  // Parts from the lowest up, until they cover the count; or some of it, and the grid has the rest.
  Layout layout(int64_t count, bool is_loop, bool has_grid, int64_t lanes, int64_t warps,
                int64_t& next_lane, int64_t& next_warp) {
    Layout parts;  // lowest first
    int64_t covered = 1;
    const int64_t aim = has_grid ? std::min<int64_t>(count, 1 + below(64)) : count;
    bool first = true, is_shared = false;
    while (covered < aim) {
      const int64_t drawn = is_loop ? 1 + below(6) : 2 + below(4);  // rows have no clusters
      const Level level = static_cast<Level>(drawn);
      const int64_t extent = int64_t{1} << (1 + below(3));
      if (level == Level::Vector && !first) continue;
      if (level == Level::Cluster && std::exchange(is_shared, true)) continue;
      if (level == Level::Lane) {
        if (next_lane * extent > lanes) continue;
        parts.push_back({level, extent, next_lane});
        next_lane *= extent;
      } else if (level == Level::Warp) {
        if (next_warp * extent > warps) continue;
        parts.push_back({level, extent, next_warp});
        next_warp *= extent;
      } else {
        parts.push_back({level, extent});
      }
      covered *= extent;
      first = false;
    }
    const bool is_of_warps =
        is_loop && !has_grid && !parts.empty() && parts.back().level == Level::Warp;
    if (is_of_warps && below(2) == 0)
      parts.back().extent = ceil_divide(count * parts.back().extent, covered);
    if (has_grid) parts.push_back({Level::Grid});
    return {parts.rbegin(), parts.rend()};
  }

  // So many elements, whoever has them.
  Layout side(int64_t elements, int64_t& next_lane, int64_t& next_warp, int64_t warps) {
    Layout parts;
    for (int64_t extent; elements > 1; elements /= extent) {
      extent = std::min(elements, int64_t{1} << (1 + below(3)));
      const int64_t drawn = below(4);
      if (drawn == 0 && parts.empty()) {
        parts.push_back({Level::Vector, extent});
      } else if (drawn == 1 && next_lane * extent <= 32) {
        parts.push_back({Level::Lane, extent, next_lane});
        next_lane *= extent;
      } else if (drawn == 2 && next_warp * extent <= warps) {
        parts.push_back({Level::Warp, extent, next_warp});
        next_warp *= extent;
      } else {
        parts.push_back({Level::Register, extent});
      }
    }
    return {parts.rbegin(), parts.rend()};
  }

  // Some accesses by way of shared memory, where the layouts let them.
  void add_via(const Program& program, Kernel& kernel) {
    const int pieces = 1 << below(3);
    const auto try_one = [&](bool stores, int number, const std::vector<int>& inner) {
      int64_t lane = 1, warp = 1;
      Via via{stores, number, {}, {}, static_cast<int>(below(3)), pieces};
      const int64_t warps = warps_of(*kernel.schedule);
      via.rows = side(covered_by(of_block(kernel.schedule->rows)), lane, warp, warps);
      via.loop = side(covered_by(of_block(layout_over(kernel, inner))), lane, warp, warps);
      Kernel tried = kernel;
      tried.schedule->via.push_back(std::move(via));
      if (why_illegal_layouts(program, tried).empty())
        kernel.schedule = std::move(tried.schedule);
    };
    int number = 0;
    for (const Scalar& s : kernel.scalars) {
      if (s.kind != ScalarKind::Load) continue;
      number++;
      if (below(2) == 0) continue;
      for (const std::vector<int>& inner : loops_of(kernel))
        if (depends_on_any(kernel, s.index, inner)) try_one(false, number, inner);
    }
    number = 0;
    for (const Step& step : std::vector<Step>(kernel.steps)) {
      number += step.kind == StepKind::Store;
      if (step.kind == StepKind::Store && below(2) == 0) try_one(true, number, step.inner);
    }
  }

  // One of those that the search walks over, or parts in any order.
  Schedule schedule(const Kernel& kernel) {
    if (listed_.empty() || below(2) == 0) return any_schedule(kernel);
    return listed_[static_cast<size_t>(below(static_cast<int64_t>(listed_.size())))];
  }

 private:
  Schedule any_schedule(const Kernel& kernel) {
    Schedule result;
    result.strategy = Strategy::Layouts;
    const bool rows_low = below(2) == 0;
    const int64_t row_lanes = int64_t{1} << below(6), row_warps = int64_t{1} << below(4);
    int64_t lane = rows_low ? 1 : 32 / row_lanes,
            warp = rows_low ? 1 : 8 / std::min<int64_t>(8, row_warps);
    const int64_t loop_lane = rows_low ? row_lanes : 1, loop_warp = rows_low ? row_warps : 1,
                  lanes_end = rows_low ? row_lanes : 32, warps_end = rows_low ? row_warps : 8,
                  loop_lanes_end = rows_low ? 32 : 32 / row_lanes,
                  loop_warps_end = rows_low ? 8 : 8 / std::min<int64_t>(8, row_warps);
    result.outer = static_cast<int>(below(4) == 0 ? below(kernel.rows + 1) : 0);
    Kernel with_outer = kernel;
    with_outer.schedule = result;
    result.rows =
        layout(rows_laid_out(with_outer), false, true, lanes_end, warps_end, lane, warp);
    const bool has_grid = only_stores(kernel) && loops_of(kernel).size() == 1 && below(2) == 0;
    for (const std::vector<int>& inner : loops_of(kernel)) {
      int64_t from_lane = loop_lane, from_warp = loop_warp;
      result.loops.push_back(layout(elements_of(kernel, inner), true, has_grid, loop_lanes_end,
                                    loop_warps_end, from_lane, from_warp));
    }
    result.keep = below(4) != 0;
    return result;
  }

  int64_t below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }
  std::mt19937_64 random_;
  std::vector<Schedule> listed_;
};

std::vector<Schedule> listed_as(Strategy strategy, const Program& program,
                                const Kernel& kernel) {
  std::vector<Schedule> listed = enumerate(program, kernel);
  std::erase_if(listed, [&](const Schedule& s) { return s.strategy != strategy; });
  return listed;
}

// Points in other packs, blocks and slabs.
void deal_out_otherwise(const Program& program, Kernel& kernel, size_t seed) {
  std::mt19937_64 random(seed);
  const std::vector<Schedule> listed = listed_as(Strategy::Pointwise, program, kernel);
  if (!listed.empty()) kernel.schedule = listed[random() % listed.size()];
}

bool same(const std::vector<Tensor>& want, const std::vector<Tensor>& got) {
  for (size_t k = 0; k < want.size(); k++) {
    if (!same_bits(want[k], got[k])) return false;
  }
  return want.size() == got.size();
}

Program laid_out_program(const Graph& graph) {
  Pipeline pipeline = until(layouts_pipeline(), "plan_memory");
  pipeline.push_back({"emit", Emit([](const Tiles&) { return Source{}; })});
  return run_pipeline(pipeline, graph, true, Target::Cuda).program;
}

// "" where the bits are the graph's, else what is wrong.
std::string why_wrong(const Graph& graph, uint64_t seed) {
  const std::vector<Tensor> inputs = random_inputs(graph, seed);
  std::vector<Tensor> want;
  try {
    want = interpret(graph, inputs);
  } catch (const Error&) {
    return "";  // inputs that raise errors are no fair
  }
  try {
    const Program program = laid_out_program(graph);
    if (!(parse_program(print(program)) == program))
      return "its text parses to another program";
    const Tiles tiles = lower_to_tiles(program);
    verify(tiles);
    if (!(parse_tiles(print(tiles)) == tiles)) return "its tiles' text parses to other tiles";
    return same(want, interpret(tiles, inputs)) ? "" : "other bits";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

Program with_random_layouts(const Program& program) {
  Program result = program;
  size_t seed = std::hash<std::string>{}(print(program));
  for (Kernel& kernel : result.kernels) {
    if (seed++ % 2 == 0 && schedule_of(kernel).strategy == Strategy::Pointwise) {
      deal_out_otherwise(program, kernel, seed);
      continue;
    }
    if (!can_be_laid_out(program, kernel)) continue;
    Drawing drawing(seed, listed_as(Strategy::Layouts, result, kernel));
    Kernel tried = kernel;
    for (int n = 0; n < kTries; n++) {
      tried.schedule = drawing.schedule(kernel);
      if (!why_illegal_layouts(result, tried).empty()) continue;
      if (n % 2 == 0) drawing.add_via(result, tried);
      kernel = tried;
      break;
    }
  }
  return result;
}

Pipeline layouts_pipeline() {
  return insert_after(default_pipeline(), "schedule", {"layouts", with_random_layouts});
}

std::vector<FuzzFailure> fuzz_layouts(uint64_t first, int count, const GraphMaker& make) {
  std::vector<FuzzFailure> failures;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(count); seed++) {
    const Graph graph = make(seed);
    const std::string why = why_wrong(graph, seed);
    if (why.empty()) continue;
    const Graph small =
        shrink(graph, [&](const Graph& g) { return !why_wrong(g, seed).empty(); });
    failures.push_back({seed, "layouts: " + why_wrong(small, seed),
                        print(small) + print(laid_out_program(small))});
  }
  return failures;
}

}  // namespace tiny_compile
