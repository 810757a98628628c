// What can be said of how a kernel is run, and how does it read?
//
//   {Columns, lanes 32, grain 8}   <=>  "columns lanes=32 grain=8"
#include "tiny_compile/loops/schedule.h"

#include <algorithm>
#include <variant>

#include "tiny_compile/base/error.h"

namespace tiny_compile {

const char* name_of(Strategy strategy) {
  static constexpr const char* kNames[] = {"pointwise", "rows",    "columns",
                                           "tiles",     "layouts", "library"};
  return kNames[static_cast<int>(strategy)];
}

namespace {

using Member =
    std::variant<int Schedule::*, int64_t Schedule::*, bool Schedule::*, Early Schedule::*>;

// All that a new field needs beside its member and its reader.
struct Row {
  const char* name;
  Member member;
  std::vector<FieldReader> readers;
  FieldValues values{};
};

std::vector<FieldReader> readers(Target target, std::initializer_list<Strategy> strategies) {
  std::vector<FieldReader> all;
  for (const Strategy strategy : strategies) all.push_back({target, strategy});
  return all;
}

const std::vector<Row>& table() {
  using S = Schedule;
  using enum Strategy;
  using enum Target;
  using enum FieldValues::Kind;
  static const std::vector<Row> kRows = {
      {"lanes", &S::lanes, readers(Cpp, {Columns}), {Powers, 16, 1024}},
      {"unroll", &S::unroll, readers(Cpp, {Rows}), {Ends, 1, 8}},
      {"keep", &S::keep, {{Cpp, Pointwise}, {Cpp, Rows}, {Cuda, Layouts}}},
      {"stream", &S::stream, readers(Cpp, {Pointwise, Rows})},
      {"grain", &S::grain, readers(Cpp, {Pointwise, Rows, Columns, Tiles}), {Range, 1}},
      {"down", &S::down, readers(Cpp, {Tiles})},
      {"across", &S::across, readers(Cpp, {Tiles})},
      {"panels_down", &S::panels_down, readers(Cpp, {Tiles})},
      {"panels_across", &S::panels_across, readers(Cpp, {Tiles})},
      {"depth", &S::depth, readers(Cpp, {Tiles})},
      {"kept", &S::kept, readers(Cpp, {Tiles})},
      {"packs_rows", &S::packs_rows, readers(Cpp, {Tiles})},
      {"each", &S::each, readers(Cuda, {Tiles, Rows})},
      {"slice", &S::slice, readers(Cuda, {Tiles})},
      {"groups", &S::groups, readers(Cuda, {Rows, Columns})},
      {"beside", &S::beside, readers(Cuda, {Rows, Columns})},
      {"run", &S::run, readers(Cuda, {Rows})},
      {"algorithm", &S::algorithm, readers(Cuda, {Library})},
      {"split_k", &S::split_k, readers(Cuda, {Library}), {Powers, 0, 64}},
      {"parted", &S::parted, readers(Cuda, {Pointwise})},
      {"resident", &S::resident, readers(Cuda, {Pointwise, Rows, Columns, Layouts})},
      {"early", &S::early, readers(Cuda, {Pointwise, Layouts})},
      {"prefetch", &S::prefetch, readers(Cuda, {Layouts})},
      {"outer", &S::outer, readers(Cuda, {Layouts})},
  };
  return kRows;
}

int64_t number_of(int64_t value) { return value; }
int64_t number_of(Early early) { return early == Early::Unsaid ? -1 : early == Early::Yes; }

int64_t value_of(const Schedule& schedule, const Member& member) {
  return std::visit([&](auto at) { return number_of(schedule.*at); }, member);
}

FieldValues values_of(const Row& row) {
  const bool is_flag = std::holds_alternative<bool Schedule::*>(row.member) ||
                       std::holds_alternative<Early Schedule::*>(row.member);
  return is_flag ? FieldValues{FieldValues::Range, 0, 1} : row.values;
}

void set(int& field, int64_t value) {
  field = static_cast<int>(std::min<int64_t>(value, 1 << 20));
}
void set(int64_t& field, int64_t value) { field = value; }
void set(bool& field, int64_t value) { field = value != 0; }
void set(Early& field, int64_t value) {
  field = value < 0 ? Early::Unsaid : value > 0 ? Early::Yes : Early::No;
}

}  // namespace

std::vector<ScheduleField> fields(const Schedule& schedule) {
  const Schedule otherwise;
  std::vector<ScheduleField> all;
  for (const Row& row : table())
    all.push_back({row.name, value_of(schedule, row.member), value_of(otherwise, row.member),
                   values_of(row), row.readers});
  return all;
}

bool is_read(const ScheduleField& field, Target target, Strategy strategy) {
  const FieldReader reader{target, strategy};
  return std::find(field.readers.begin(), field.readers.end(), reader) != field.readers.end();
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

bool set_field(Schedule& schedule, std::string_view name, int64_t value) {
  for (const Row& row : table()) {
    if (name != row.name) continue;
    std::visit([&](auto at) { set(schedule.*at, value); }, row.member);
    return true;
  }
  return false;
}

}  // namespace tiny_compile
