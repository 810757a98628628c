// Which schedule does this text mean? The inverse of str(Schedule).
//
//   schedule := strategy [layouts] {key=n}
//   ranges   := size ':' n '..' n {'and' size ':' n '..' n}
//   layouts  := ['rows' layout] {'loop' layout} {'via' ('load' | 'store') n ['rows' layout] ['loop' layout]
//               ['padding' n] ['pieces' n]}
//   layout   := part {'·' part}
//   part     := 'grid' | ('cluster' | 'warp' | 'lane' | 'register' | 'vector' | 'serial') n ['from' n]
#include "tiny_compile/loops/parse_schedule.h"

#include <algorithm>

namespace tiny_compile {
namespace {

// What a field holds of what it was set to: 1 of any flag, of others as much as there is room for.
int64_t value_of(const Schedule& schedule, std::string_view name) {
  const std::vector<ScheduleField> all = fields(schedule);
  return std::find_if(all.begin(), all.end(),
                      [&](const ScheduleField& field) { return field.name == name; })
      ->value;
}

}  // namespace

int64_t ScheduleParser::bounded(int64_t low, int64_t high, const char* what) {
  skip_blanks();
  const size_t start = at_;
  const int64_t found = number();
  if (found >= low && found <= high) return found;
  error(start, str(what, " must be in ", low, "..", high));
}

std::vector<SizeRange> ScheduleParser::ranges() {
  constexpr int64_t kMost = int64_t{1} << 48;
  std::vector<SizeRange> all;
  do {
    skip_blanks();
    SizeRange& range = all.emplace_back();
    range.size = identifier("the size");
    expect(':', "the size");
    range.low = bounded(0, kMost, "a size");
    skip_blanks();
    if (!text_.substr(at_).starts_with("..")) error(at_, "expected .. and the greatest size");
    at_ += 2;
    range.high = bounded(0, kMost, "a size");
  } while (accept_word("and"));
  return all;
}

Strategy ScheduleParser::strategy() {
  const size_t start = at_;
  const std::string_view name = word();
  for (const Strategy known : {Strategy::Pointwise, Strategy::Rows, Strategy::Columns,
                               Strategy::Tiles, Strategy::Layouts, Strategy::Library}) {
    if (name == name_of(known)) return known;
  }
  error(start, "pointwise, rows, columns, tiles, layouts or library");
}

Schedule ScheduleParser::schedule() {
  Schedule s;
  s.strategy = strategy();
  if (s.strategy == Strategy::Layouts || s.strategy == Strategy::Pointwise) read_layouts(s);
  for (skip_blanks(); !at_end() && !next_is('\n') && !next_is('#'); skip_blanks()) {
    const size_t key = at_;
    const std::string_view name = word();
    expect('=', "the field");
    const int64_t value = bounded(0, int64_t{1} << 40, "a field");
    if (!set_field(s, name, value)) error(key, str("a schedule has no field '", name, "'"));
    if (const int64_t most = value_of(s, name); most != value)
      error(key, str(name, "=", value, ": at most ", most));
  }
  return s;
}

// rows grid · lane 32 loop register 8 · warp 16 from 2
void ScheduleParser::read_layouts(Schedule& s) {
  if (accept_word("rows")) s.rows = layout();
  while (accept_word("loop")) s.loops.push_back(layout());
  while (accept_word("via")) s.via.push_back(via());
}

// load 1 rows lane 8 · vector 4 loop register 4 · warp 8 padding 1
Via ScheduleParser::via() {
  constexpr int64_t kMost = 1 << 20;
  Via via;
  via.stores = accept_word("store");
  if (!via.stores && !accept_word("load")) error(at_, "expected load or store");
  via.number = static_cast<int>(bounded(1, kMost, "its number"));
  if (accept_word("rows")) via.rows = layout();
  if (accept_word("loop")) via.loop = layout();
  if (accept_word("padding")) via.padding = static_cast<int>(bounded(0, kMost, "padding"));
  if (accept_word("pieces"))
    via.pieces = static_cast<int>(bounded(1, kMost, "a number of pieces"));
  return via;
}

Layout ScheduleParser::layout() {
  static constexpr std::string_view kDot = "·";
  Layout parts;
  for (bool more = true; more;) {
    parts.push_back(part());
    skip_blanks();
    more = text_.substr(at_).starts_with(kDot);
    if (more) at_ += kDot.size();
  }
  return parts;
}

Part ScheduleParser::part() {
  std::vector<std::string> names;
  for (int level = 0; level < kLevelCount; level++) {
    Part part{static_cast<Level>(level)};
    names.push_back(name_of(part.level));
    if (!accept_word(names.back())) continue;
    constexpr int64_t kMost = int64_t{1} << 40;
    if (part.level != Level::Grid) part.extent = bounded(1, kMost, "a part's extent");
    if (accept_word("from")) part.step = bounded(1, kMost, "a part's place");
    return part;
  }
  error(at_, "expected one of " + join(names, ", "));
}

}  // namespace tiny_compile
