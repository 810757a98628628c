// Is each place that a tile names there? Elements of its arrays and of the program's buffers, with
// what is known of its integers where a statement stands.
#include "tiny_compile/tile/uses.h"

#include <algorithm>
#include <set>

#include "tiny_compile/base/integer.h"
#include "tiny_compile/base/text_cursor.h"
#include "tiny_compile/loops/in_place.h"
#include "tiny_compile/loops/lives.h"
#include "tiny_compile/loops/typing.h"

namespace tiny_compile {
namespace {

constexpr int kWidest = 8;  // elements of one access
constexpr int kAlign = 16;  // bytes, of a buffer that vectors are read from

// A tile reads and writes what its kernel does: launches are ordered and memory is planned by that.
void check_buffers(const Program& program, const Kernel& kernel, const std::vector<int>& used,
                   const std::vector<int>& allowed, const char* does) {
  std::set<int> storages;
  for (int buffer : allowed) storages.insert(storage_of(program, buffer));
  for (int buffer : used)
    require(storages.count(storage_of(program, buffer)) > 0, does, " ",
            program.buffers[buffer].name, ", which kernel ", kernel.name, " does not");
}

}  // namespace

// No place that data could choose is one.
bool is_never(const Scalar& s) {
  return std::any_of(s.limits.begin(), s.limits.end(),
                     [](const Expr& limit) { return limit.is_constant(0); });
}

void Accesses::check_readable(const Expr& index, size_t places) {
  const std::string why = known.why_unreadable(index, places);
  require(why.empty(), why);
}

void Accesses::check_element(int array, const Expr& index, int width, size_t places) {
  require(array >= 0 && array < static_cast<int>(tile_.arrays.size()), "no such array");
  const Array& a = tile_.arrays[array];
  check_readable(index, places);
  require(a.space != Space::Register || tile_.alone || known.is_unrolled(index), a.name, "[",
          index, "]: a thread's own elements are named by unrolled loops alone");
  require(known.is_within(index, a.size - width + 1), a.name, "[", index, "]",
          width == 1 ? "" : str(" x", width), " leaves the array's ", a.size, " elements");
}

bool Accesses::is_buffer(int buffer) const {
  return buffer >= 0 && buffer < static_cast<int>(program_.buffers.size());
}

void Accesses::check_place(int buffer, const Expr& index, int mask, size_t places, bool never) {
  const Buffer& b = program_.buffers[buffer];
  check_readable(index, places);
  std::vector<Expr> facts = known.facts_of_names();
  const auto is_within = [&](int holds) { return masks_.within(index, b.size, holds, facts); };
  const auto is_somehow_within = [&] {
    facts = known.conditions();
    return is_within(mask) || std::any_of(holding.begin(), holding.end(), is_within);
  };
  require(never || is_within(mask) || known.is_within(index, b.size) || is_somehow_within(),
          b.name, "[", index, "] leaves the buffer's ", b.size,
          " elements, as far as is known");
}

bool Accesses::ends_in_time(const Statement& s, size_t places) {
  if (s.left.is_constant(0)) return false;
  check_readable(s.index, places);
  check_readable(s.left);
  require(known.is_at_least_zero(s.left) && !tile_.arrays[s.array].packed, s.left,
          " elements of ", tile_.arrays[s.array].name, ", of which packed ones are read whole");
  return known.is_at_least_zero(s.index) &&
         known.is_at_least_zero(program_.buffers[s.buffer].size - (s.index + s.left));
}

void Accesses::check_vector(const Statement& s, size_t places, bool never) {
  const int w = s.width;
  require(is_buffer(s.buffer), "no such buffer");
  const Buffer& b = program_.buffers[s.buffer];
  check_element(s.array, s.place, w);
  require(w >= 1 && w <= kWidest && (w & (w - 1)) == 0, "vectors of ", w, ", not 1, 2, 4 or ",
          kWidest);
  const Array& array = tile_.arrays[s.array];
  require(array.dtype == b.type.dtype, array.name, " is ", array.dtype, ", ", b.name, " is ",
          b.type.dtype);
  const bool is_whole = w % 2 == 0 && known.has_only_multiples_of(s.place, 2);
  require(!array.packed || (is_whole && s.kind == StatementKind::Load), array.name,
          " is packed: it reads pairs, and is not stored");
  const bool is_part = ends_in_time(s, places);
  if (!is_part) check_place(s.buffer, s.index, -1, places, never);
  if (w > 1) {
    require(b.align >= kAlign && known.has_only_multiples_of(s.index, w), b.name, "[", s.index,
            "] x", w, " is astride, as far as is known");
    require(is_part || known.is_within(s.index, b.size - w + 1) || b.size.constant() % w == 0,
            b.name, "[", s.index, "] x", w, " leaves the buffer's ", b.size, " elements");
  }
  use(s.buffer, s.kind == StatementKind::StoreAll);
}

void Accesses::check_stream(const Statement& s) {
  require(is_on_cpu(tile_), "a GPU does not do this");
  require(is_buffer(s.buffer), "no such buffer");
  check_element(s.array, 0);
  const Array& array = tile_.arrays[s.array];
  const Buffer& b = program_.buffers[s.buffer];
  require(array.dtype == b.type.dtype && (array.packed || !is_half(array.dtype)), array.name,
          " does not hold what ", b.name, " does");
  check_readable(s.index);
  check_readable(s.place);
  require(known.is_at_least_zero(s.place) && known.is_at_least_zero(array.size - s.place),
          "streams ", s.place, " elements of ", array.name, ", which has ", array.size,
          ", as far as is known");
  require(
      known.is_at_least_zero(s.index) && known.is_at_least_zero(b.size - (s.index + s.place)),
      b.name, "[", s.index, "] x ", s.place, " leaves the buffer's ", b.size,
      " elements, as far as is known");
  use(s.buffer, true);
}

void Accesses::check_tree(const Statement& s) {
  require(is_on_cpu(tile_), "a GPU does not do this");
  check_element(s.array, 0);
  const Array& array = tile_.arrays[s.array];
  require(array.dtype == DType::f32 || array.dtype == DType::f64, array.name, " is ",
          array.dtype, ": a tree is of f32 or f64");
  const int64_t size = array.size.constant();
  const bool is_whole = size % kChunk == 0 || (size < kChunk && is_power_of_two(size));
  require(is_whole, array.name, " has ", array.size,
          " elements: a tree takes a power of two, or chunks of ", kChunk);
  check_readable(s.index);
  require(known.is_at_least_zero(s.index - 1) && known.is_at_least_zero(array.size - s.index),
          "a tree over ", s.index, " elements of ", array.name, ", which has ", array.size,
          ", as far as is known");
}

void Accesses::check_sum(const Statement& s) {
  check_element(s.array, s.index, 1, s.chosen >= 0 ? 1 : 0);
  const Array& a = tile_.arrays[s.array];
  require(a.space == Space::Shared && is_integer(a.dtype) && can_be_sent(a.dtype) &&
              s.op == Op::scatter_add,
          a.name, ": threads add to a block's integers of 32 or 64 bits, to nothing else");
}

void Accesses::check_update(const Statement& s) {
  require(is_scatter(s.op), info(s.op).name, " updates nothing");
  require(s.place.is_constant(), "updates places below ", s.place, ", which is no number");
  if (s.kind == StatementKind::Update && s.array >= 0) return check_sum(s);
  require(is_buffer(s.buffer), "no such buffer");
  const bool is_chosen = s.chosen >= 0, never = is_chosen && s.place.is_constant(0);
  check_place(s.buffer, s.index, -1, is_chosen ? 1 : 0, never);
  use(s.buffer, true);
  if (s.kind == StatementKind::Update) return;
  require(is_on_cpu(tile_), "a GPU does not do this");
  check_element(s.array, 0);
  check_element(s.chosen, 0);
  check_readable(s.left);
  check_readable(s.from);
  check_place(s.buffer, s.index + s.from - 1, -1, 1, never);
  const Array &values = tile_.arrays[s.array], &places = tile_.arrays[s.chosen];
  require(combiner(s.op).has_value(), info(s.op).name, " is no sum of a chunk's");
  require(places.dtype == DType::i64 && places.size.constant() <= kChunk, places.name,
          " does not choose places: i64, ", kChunk, " at most");
  require(values.dtype == program_.buffers[s.buffer].type.dtype && !values.packed, values.name,
          " does not hold what ", program_.buffers[s.buffer].name, " does");
  require(known.is_at_least_zero(s.left) && known.is_at_least_zero(places.size - s.left) &&
              places.size.constant() * s.width <= values.size.constant(),
          s.left, " updates of ", s.width, " elements are not all in ", places.name, " and ",
          values.name);
  require(known.is_at_least_zero(s.from - 1) && known.is_at_least_zero(s.width - s.from),
          s.from, " neighbours, not 1..", s.width, ", as far as is known");
}

void Accesses::check_prefetch(const Statement& s) {
  require(is_buffer(s.buffer), "no such buffer");
  const bool is_whole = s.left.is_constant(0);
  if (!is_whole) check_readable(s.left);
  require(is_whole || known.is_at_least_zero(s.left - 1), "asks for ", s.left, " elements");
  check_place(s.buffer, s.index + (is_whole ? Expr(s.width) : s.left) - 1, -1, 0, false);
  check_place(s.buffer, s.index, -1, 0, false);
  use(s.buffer, false);
}

void Accesses::use(int buffer, bool stores) const {
  if (stores)
    return check_buffers(program_, kernel_, {buffer}, stored_buffers(kernel_), "stores");
  std::vector<int> loaded = loaded_buffers(kernel_);
  for (const Step& step : kernel_.steps) {
    if (step.kind == StepKind::Scatter) loaded.push_back(step.buffer);  // what it has so far
  }
  check_buffers(program_, kernel_, {buffer}, loaded, "loads");
}

void Accesses::check_read(const Scalar& s) {
  check_element(s.step, s.index);
  require(s.dtype == tile_.arrays[s.step].dtype, "reads ", tile_.arrays[s.step].name, " as ",
          s.dtype);
  if (s.limits.empty()) return;
  const Expr& lane = s.limits[0];
  check_readable(lane);
  require(known.is_within(lane, 32), "lane ^ ", lane, " is no lane");
  require(!goes_alone(tile_) && known.all_lanes_come(),
          "a shuffle where not all lanes of a warp come");
}

void Accesses::check_votes(const Scalar& s) {
  require(s.operands.size() == 1 && s.dtype == DType::i32 &&
              tile_.kernel.scalars[s.operands[0]].dtype == DType::boolean,
          "votes are of a condition");
  require(!goes_alone(tile_) && known.all_lanes_come(),
          "a vote where not all lanes of a warp come");
}

void Accesses::check_name(const std::string& name) const {
  require(is_identifier(name) && name.find('.') == std::string::npos, "'", name,
          "' is no name of an integer");
  require(!known.has(name), name, " is named already");
  for (const Array& array : tile_.arrays) require(array.name != name, name, " is an array");
}

void Accesses::check_computed(int id, const Scalar& s) {
  if (s.kind == ScalarKind::Element) return check_read(s);
  if (s.kind == ScalarKind::Votes) return check_votes(s);
  const std::string why = why_ill_typed(program_, tile_.kernel, id);
  require(why.empty(), why);
  if (s.kind == ScalarKind::Apply) return;
  if (s.kind != ScalarKind::Load) return check_readable(s.index, s.operands.size());
  check_place(s.buffer, s.index, s.mask, s.operands.size(), is_never(s));
  use(s.buffer, false);
}

}  // namespace tiny_compile
