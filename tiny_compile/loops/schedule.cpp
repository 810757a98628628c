// What can be said of how a kernel is run, and how does it read?
//
//   {Columns, lanes 32, grain 8}   <=>  "columns lanes=32 grain=8"
#include "tiny_compile/loops/schedule.h"

#include <algorithm>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

const char* name_of(Strategy strategy) {
  static constexpr const char* kNames[] = {"pointwise", "rows",    "columns",
                                           "tiles",     "layouts", "library"};
  return kNames[static_cast<int>(strategy)];
}

std::vector<ScheduleField> fields(const Schedule& s) {
  const Schedule d;
  using enum Strategy;
  using enum Target;
  return {{"lanes", s.lanes, d.lanes, {Cpp}, {Columns}},
          {"unroll", s.unroll, d.unroll, {Cpp}, {Rows}},
          {"keep", s.keep, d.keep, {s.strategy == Layouts ? Cuda : Cpp}, {Rows, Layouts}},
          {"stream", s.stream, d.stream, {Cpp}, {Pointwise, Rows, Columns}},
          {"grain", s.grain, d.grain, {Cpp}, {Pointwise, Rows, Columns, Tiles}},
          {"down", s.down, d.down, {Cpp}, {Tiles}},
          {"across", s.across, d.across, {Cpp}, {Tiles}},
          {"panels_down", s.panels_down, d.panels_down, {Cpp}, {Tiles}},
          {"panels_across", s.panels_across, d.panels_across, {Cpp}, {Tiles}},
          {"depth", s.depth, d.depth, {Cpp}, {Tiles}},
          {"kept", s.kept, d.kept, {Cpp}, {Tiles}},
          {"packs_rows", s.packs_rows, d.packs_rows, {Cpp}, {Tiles}},
          {"each", s.each, d.each, {Cuda}, {Tiles, Rows}},
          {"slice", s.slice, d.slice, {Cuda}, {Tiles}},
          {"groups", s.groups, d.groups, {Cuda}, {Rows, Columns}},
          {"beside", s.beside, d.beside, {Cuda}, {Rows, Columns}},
          {"run", s.run, d.run, {Cuda}, {Rows}},
          {"algorithm", s.algorithm, d.algorithm, {Cuda}, {Library}},
          {"split_k", s.split_k, d.split_k, {Cuda}, {Library}},
          {"parted", s.parted, d.parted, {Cuda}, {Pointwise}},
          {"resident", s.resident, d.resident, {Cuda}, {Pointwise, Rows, Columns, Layouts}},
          {"early", s.early, d.early, {Cuda}, {Pointwise, Layouts}},
          {"ahead", s.ahead, d.ahead, {Cuda}, {Layouts}},
          {"outer", s.outer, d.outer, {Cuda}, {Layouts}}};
}

std::string str(const std::vector<SizeRange>& when) {
  std::vector<std::string> parts;
  for (const SizeRange& range : when)
    parts.push_back(str(range.size, ": ", range.low, "..", range.high));
  return join(parts, " and ");
}

std::string str(const Schedule& schedule) {
  std::string text = name_of(schedule.strategy);
  if (!schedule.rows.empty()) text += " rows " + str(schedule.rows);
  for (const Layout& loop : schedule.loops) text += " loop " + str(loop);
  for (const Via& via : schedule.via) text += " " + str(via);
  for (const ScheduleField& field : fields(schedule)) {
    if (field.value != field.otherwise)
      text += tiny_compile::str(" ", field.name, "=", field.value);
  }
  return text;
}

bool set_field(Schedule& s, std::string_view name, int64_t value) {
  const int small = static_cast<int>(std::min<int64_t>(value, 1 << 20));
  if (name == "lanes") return s.lanes = small, true;
  if (name == "unroll") return s.unroll = small, true;
  if (name == "keep") return s.keep = value != 0, true;
  if (name == "stream") return s.stream = value != 0, true;
  if (name == "grain") return s.grain = value, true;
  if (name == "down") return s.down = small, true;
  if (name == "across") return s.across = small, true;
  if (name == "panels_down") return s.panels_down = small, true;
  if (name == "panels_across") return s.panels_across = small, true;
  if (name == "depth") return s.depth = value, true;
  if (name == "kept") return s.kept = small, true;
  if (name == "packs_rows") return s.packs_rows = value != 0, true;
  if (name == "each") return s.each = small, true;
  if (name == "slice") return s.slice = small, true;
  if (name == "groups") return s.groups = small, true;
  if (name == "beside") return s.beside = small, true;
  if (name == "run") return s.run = value, true;
  if (name == "algorithm") return s.algorithm = small, true;
  if (name == "split_k") return s.split_k = small, true;
  if (name == "parted") return s.parted = value != 0, true;
  if (name == "resident") return s.resident = small, true;
  if (name == "early") return s.early = value != 0, true;
  if (name == "ahead") return s.ahead = small, true;
  if (name == "outer") return s.outer = small, true;
  return false;
}

}  // namespace tiny_compile
