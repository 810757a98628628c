// A field of a schedule's line is obeyed or refused: no two values that are taken give the same tile.
#include <map>

#include "tests/catch.h"
#include "tests/fuzz/harness.h"
#include "tests/fuzz/layouts.h"
#include "tiny_compile/loops/legal_schedule.h"
#include "tiny_compile/tile/tiles.h"

using namespace tiny_compile;

namespace {

// Of these more than there is means all that there is, or whole units (loops/schedule.h); what `early` and a library's
// choices do is not the tile's to show.
bool may_be_cut(const std::string& field) {
  for (const char* name : {"keep", "grain", "early", "algorithm", "split_k"})
    if (field == name) return true;
  return false;
}

// Whether the default means as many as there are, where these are fewer.
bool has_default_cut(const std::string& field) {
  return field == "each" || field == "beside" || field == "depth";
}

std::string tile_of(const Program& program, size_t k) {
  const Tiles tiles = lower_to_tiles(program);
  return tiles.of_kernel[k] ? print(program, *tiles.of_kernel[k]) : "";
}

// Of one field of one kernel: the first of its values that is taken and gives the tile of another.
std::string same_tile(Program program, size_t k, const ScheduleField& field) {
  std::map<std::string, int64_t> seen;
  for (const int64_t value : {1, 0, 2, 3, 4, 6, 8, 16, 32, 64, 256, 512, 1024, 4096}) {
    if (value > field.values.most) continue;
    set_field(*program.kernels[k].schedule, field.name, value);
    if (!why_illegal(program, program.kernels[k]).empty()) continue;
    const std::string tile = tile_of(program, k);
    const auto [other, is_new] = seen.emplace(tile, value);
    const bool is_default = value == field.otherwise || other->second == field.otherwise;
    if (!tile.empty() && !is_new && !(is_default && has_default_cut(field.name)))
      return str(field.name, "=", value, " as ", field.name, "=", other->second, " of\n",
                 print(program));
  }
  return "";
}

// The same of any of its kernels' fields, under its own strategy and what others there are.
std::string same_tile_of(const Program& program) {
  using enum Strategy;
  for (size_t k = 0; k < program.kernels.size(); k++) {
    for (const Strategy strategy : {Pointwise, Rows, Columns, Tiles, Layouts}) {
      Program other = program;
      std::optional<Schedule>& schedule = other.kernels[k].schedule;
      if (!schedule || schedule->strategy != strategy)
        schedule = Schedule{.strategy = strategy};
      if (!why_illegal(other, other.kernels[k]).empty()) continue;
      for (const ScheduleField& field : fields(*schedule)) {
        if (!is_read(field, program.target, strategy) || may_be_cut(field.name)) continue;
        const std::string same = same_tile(other, k, field);
        if (!same.empty()) return same;
      }
    }
  }
  return "";
}

Program chosen(const Graph& graph, Target target, const Pipeline& pipeline) {
  return run_pipeline(until(pipeline, "plan_memory"), graph, true, target).program;
}

}  // namespace

TEMPLATE_TEST_CASE_SIG("no two values of a schedule's field that are taken do the same",
                       "[fuzz][fields]", ((int shard), shard), 0, 1, 2, 3) {
  const uint64_t first = 7000 + 40 * shard;
  for (uint64_t seed = first; seed < first + 40; seed++) {
    INFO(seed);
    for (const Target target : {Target::Cpp, Target::Cuda}) {
      const Graph graph = random_graph(seed);
      CHECK(same_tile_of(chosen(graph, target, default_pipeline())) == "");
      if (target == Target::Cuda)
        CHECK(same_tile_of(chosen(graph, target, layouts_pipeline())) == "");
    }
  }
}
